//! Waiting requests with a deadline, by sector and by arrival: the common part of deadline and
//! mq-deadline.
//!
//! A lane holds the requests of one direction (and one priority level). Each waiting
//! request is in its lane's sorted list, in its lane's FIFO and in the merge index, and
//! leaves all three at once.
//!
//! Of several requests at one sector, which only processes that read the same data have, a bio is put in front of that at
//! which the kernel's search of its tree ends (`elv_rb_find`), so its shape decides. It is kept from the first such
//! request on, and is the kernel's once the lane has been empty.

use std::iter;

use super::merge::MergeIndex;
use crate::containers::lists::{Links, List};
use crate::containers::rbtree::{Found, Trees};
use crate::containers::sorted::Sorted;
use crate::request::{Bio, RequestId};
use crate::scheduler::{Merge, Queue};
use crate::units::{Nanos, Sector};

/// "In no lane."
const NOWHERE: u8 = u8::MAX;

#[derive(Clone, Debug)]
struct Lane {
    sorted: Sorted,
    fifo: List,
}

/// The lane of a waiting request, and its deadline.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    expires: Nanos,
    /// The sector by which it was sorted in.
    sector: Sector,
    lane: u8,
}

/// `N` lanes and the merge index over all of them.
#[derive(Debug)]
pub(in crate::scheduler) struct Lanes<const N: usize> {
    lanes: [Lane; N],
    slots: Vec<Waiting>,
    links: Links,
    merges: MergeIndex,
    /// The kernel's trees of the lanes, once two requests have begun at one sector.
    trees: Option<Trees>,
    waiting: usize,
}

impl<const N: usize> Lanes<N> {
    /// With room for about `requests` requests.
    pub fn with_capacity(requests: usize) -> Lanes<N> {
        let lane = |_| Lane { sorted: Sorted::with_capacity(requests), fifo: List::EMPTY };
        Lanes {
            lanes: std::array::from_fn(lane),
            slots: Vec::with_capacity(requests),
            links: Links::with_capacity(requests),
            merges: MergeIndex::with_capacity(requests),
            trees: None,
            waiting: 0,
        }
    }

    /// Requests in all lanes.
    pub fn waiting(&self) -> usize {
        self.waiting
    }

    #[inline]
    pub fn is_empty(&self, lane: usize) -> bool {
        self.lanes[lane].fifo.is_empty()
    }

    /// Inserts the request; it should be dispatched before `expires`.
    #[inline]
    pub fn insert(&mut self, queue: &Queue<'_>, id: RequestId, lane: usize, expires: Nanos) {
        if id.index() >= self.slots.len() {
            let vacant = Waiting { expires: Nanos::NEVER, sector: Sector(0), lane: NOWHERE };
            self.slots.resize(id.index() + 1, vacant);
        }
        let sector = queue.requests[id].sector;
        self.slots[id.index()] = Waiting { expires, sector, lane: lane as u8 };
        self.sort_in(id);
        self.links.push_back(&mut self.lanes[lane].fifo, id);
        self.merges.insert(queue, id);
        self.waiting += 1;
    }

    /// Sorts a request into its lane by its slot's sector.
    #[inline]
    fn sort_in(&mut self, id: RequestId) {
        let Waiting { sector, lane, .. } = self.slots[id.index()];
        let is_beside = self.lanes[usize::from(lane)].sorted.insert(sector, id);
        if is_beside | self.trees.is_some() {
            self.link(id, lane.into());
        }
    }

    /// The opposite of [`Lanes::sort_in`].
    #[inline]
    fn sort_out(&mut self, id: RequestId) {
        let Waiting { sector, lane, .. } = self.slots[id.index()];
        self.lanes[usize::from(lane)].sorted.remove(sector, id);
        if let Some(trees) = &mut self.trees {
            trees.remove(lane.into(), id.0);
        }
    }

    /// Inserts a request that is sorted in into its lane's tree.
    #[cold]
    fn link(&mut self, id: RequestId, lane: usize) {
        if self.trees.is_none() {
            let mut trees = Trees::new(N);
            for (number, one) in self.lanes.iter().enumerate() {
                let oldest_first = iter::successors(one.fifo.first(), |&other| self.links.after(other));
                for other in oldest_first.filter(|&other| other != id) {
                    insert(&mut trees, &self.slots, number, other);
                }
            }
            self.trees = Some(trees);
        }
        self.trees.as_mut().into_iter().for_each(|trees| insert(trees, &self.slots, lane, id));
    }

    /// Removes the waiting request.
    #[inline]
    pub fn remove(&mut self, id: RequestId) {
        self.sort_out(id);
        let lane = std::mem::replace(&mut self.slots[id.index()].lane, NOWHERE);
        self.links.remove(&mut self.lanes[usize::from(lane)].fifo, id);
        self.merges.remove(id);
        self.waiting -= 1;
    }

    /// True if the request waits in a lane.
    pub fn contains(&self, id: RequestId) -> bool {
        self.slots.get(id.index()).is_some_and(|slot| slot.lane != NOWHERE)
    }

    /// The request at the head of the lane's FIFO.
    #[inline]
    pub fn oldest(&self, lane: usize) -> Option<RequestId> {
        self.lanes[lane].fifo.first()
    }

    /// The deadline of a request that waits here.
    #[inline]
    pub fn expires(&self, id: RequestId) -> Nanos {
        self.slots[id.index()].expires
    }

    /// True if the head of the lane's FIFO has reached its deadline.
    #[inline]
    pub fn has_expired(&self, lane: usize, now: Nanos) -> bool {
        self.oldest(lane).is_some_and(|id| self.expires(id) <= now)
    }

    /// The lane's lowest request at or above `sector`.
    #[inline]
    pub fn at_or_above(&self, lane: usize, sector: Sector) -> Option<RequestId> {
        self.lanes[lane].sorted.at_or_above(sector)
    }

    /// The next higher request in the lane of the waiting request `id`.
    #[inline]
    pub fn above(&self, id: RequestId) -> Option<RequestId> {
        let Waiting { sector, lane, .. } = self.slots[id.index()];
        self.lanes[usize::from(lane)].sorted.above(sector, id)
    }

    /// See [`Scheduler::find_merge`](crate::scheduler::Scheduler::find_merge); the bio belongs to `lane`.
    #[inline]
    pub fn find_merge(
        &mut self,
        queue: &Queue<'_>,
        bio: &Bio,
        lane: usize,
        front_merges: bool,
    ) -> Option<Merge> {
        let end = bio.sector.offset(bio.sectors);
        let Lanes { lanes, slots, merges, trees, .. } = self;
        let beginning = || match trees {
            None => lanes[lane].sorted.starting_at(end),
            Some(trees) => match trees.search(lane, |node| end.cmp(&slots[node as usize].sector)) {
                Found::At(node) => Some(RequestId(node)),
                Found::Below(_) => None,
            },
        };
        merges.find(queue, bio, || front_merges.then(beginning).flatten())
    }

    /// See [`Scheduler::bio_merged`](crate::scheduler::Scheduler::bio_merged).
    pub fn bio_merged(&mut self, queue: &Queue<'_>, merge: Merge) {
        match merge {
            Merge::Back(id) => self.merges.grown(id, queue.requests[id].end()),
            Merge::Front(id) => {
                self.sort_out(id);
                self.slots[id.index()].sector = queue.requests[id].sector;
                self.sort_in(id);
                self.merges.grown_downwards(id);
            }
        }
    }

    /// See [`Scheduler::neighbour`](crate::scheduler::Scheduler::neighbour).
    pub fn neighbour(&self, queue: &Queue<'_>, id: RequestId, after: bool) -> Option<RequestId> {
        let Waiting { sector, lane, .. } = self.slots[id.index()];
        let sorted = &self.lanes[usize::from(lane)].sorted;
        let other = if after { sorted.above(sector, id) } else { sorted.below(sector, id) }?;
        self.merges.joins(queue, id, other, after).then_some(other)
    }

    /// See [`Scheduler::find_join`](crate::scheduler::Scheduler::find_join).
    pub fn find_join(&self, queue: &Queue<'_>, id: RequestId) -> Option<RequestId> {
        self.merges.find_join(queue, id)
    }

    /// See [`Scheduler::requests_merged`](crate::scheduler::Scheduler::requests_merged). If `gone`
    /// waited here and would have expired first, `kept` takes its deadline and its place in the
    /// FIFO.
    pub fn requests_merged(&mut self, queue: &Queue<'_>, kept: RequestId, gone: RequestId) {
        if self.contains(gone) {
            if self.expires(gone) < self.expires(kept) {
                let lane = usize::from(self.slots[kept.index()].lane);
                let fifo = &mut self.lanes[lane].fifo;
                self.links.remove(fifo, kept);
                self.links.insert_after(fifo, gone, kept);
                self.slots[kept.index()].expires = self.slots[gone.index()].expires;
            }
            self.remove(gone);
        }
        self.merges.grown(kept, queue.requests[gone].end());
    }
}

/// Behind those at the same sector (`elv_rb_add`).
fn insert(trees: &mut Trees, slots: &[Waiting], lane: usize, id: RequestId) {
    trees.insert_behind(lane, id.0, |node| slots[id.index()].sector.cmp(&slots[node as usize].sector));
}
