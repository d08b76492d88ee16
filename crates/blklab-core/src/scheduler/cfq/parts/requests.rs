//! Requests in their queues: in the order of sectors and of arrival, and the next one.
//!
//! A request gets a queue, then waits in it, then is dispatched. While it waits, it is in two
//! orders: by sector, and by arrival with a time at which it expires. The *next* request of a queue
//! is the best one for the disk's position: it is compared with each new request, and chosen anew
//! from the two neighbours of a request that leaves. The oldest request, if it has expired, goes
//! instead of it (once in each turn; see [`slice`](super::slice)).
//!
//! Follows `sort_list`, `fifo` and `next_rq` of `cfq_queue` in Linux 4.12: `cfq_add_rq_rb`,
//! `cfq_reposition_rq_rb`, `cfq_remove_request`, `cfq_find_next_rq`, `cfq_choose_req`,
//! `cfq_check_fifo`, and the fifo's part of `cfq_merged_requests`. What CFQ keeps in a request
//! (`elv.priv`) is here by the request's number.

use super::super::kinds::{Instant, QueueId};
use super::contexts::ContextId;
use crate::containers::lists::{Links, List};
use crate::containers::sorted::Sorted;
use crate::request::RequestId;
use crate::scheduler::shared::nearest::{BackSeek, Candidate};
use crate::units::Sector;

/// The state of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Unknown to CFQ.
    Absent,
    /// It has its queue and does not wait yet.
    Attached,
    /// Waits in its queue.
    Waiting,
    /// Dispatched.
    Sent,
}

/// CFQ's data of a request, fixed when it gets its queue.
#[derive(Clone, Copy, Debug)]
pub(in crate::scheduler::cfq) struct Origin {
    pub queue: QueueId,
    pub context: ContextId,
    pub sync: bool,
    /// A synchronous write after which no more requests are expected.
    pub is_last: bool,
}

#[derive(Clone, Copy, Debug)]
struct Tracked {
    state: State,
    origin: Origin,
    /// The sector by which it was sorted in.
    sector: Sector,
    expires: Instant,
}

impl Tracked {
    const VACANT: Tracked = Tracked {
        state: State::Absent,
        origin: Origin { queue: 0, context: 0, sync: false, is_last: false },
        sector: Sector(0),
        expires: 0,
    };
}

/// The requests of one queue.
#[derive(Debug)]
pub(in crate::scheduler::cfq) struct Backlog {
    sorted: Sorted,
    fifo: List,
    /// The next request, unless the head of the FIFO has expired.
    next: Option<RequestId>,
    in_flight: u32,
}

impl Default for Backlog {
    fn default() -> Backlog {
        Backlog { sorted: Sorted::default(), fifo: List::EMPTY, next: None, in_flight: 0 }
    }
}

impl Backlog {
    /// No request waits.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.sorted.is_empty()
    }

    /// Requests that wait.
    #[inline]
    pub fn len(&self) -> usize {
        self.sorted.len()
    }

    #[inline]
    pub fn next(&self) -> Option<RequestId> {
        self.next
    }

    /// Requests in flight (`dispatched`).
    #[inline]
    pub fn in_flight(&self) -> u32 {
        self.in_flight
    }

    /// A request in flight completes.
    pub fn completed(&mut self) {
        self.in_flight -= 1;
    }

    /// The waiting request that starts at this sector.
    #[inline]
    pub fn starting_at(&self, sector: Sector) -> Option<RequestId> {
        self.sorted.starting_at(sector)
    }
}

/// All requests, by number, and the order of those that wait.
#[derive(Debug)]
pub(in crate::scheduler::cfq) struct Requests {
    slots: Vec<Tracked>,
    links: Links,
    back_seek: BackSeek,
}

impl Requests {
    pub fn new(requests: usize, back_seek: BackSeek) -> Requests {
        Requests { slots: Vec::with_capacity(requests), links: Links::with_capacity(requests), back_seek }
    }

    /// The request has a queue.
    #[inline]
    pub fn is_attached(&self, id: RequestId) -> bool {
        self.slots.get(id.index()).is_some_and(|slot| slot.state != State::Absent)
    }

    /// The request gets its queue.
    pub fn attach(&mut self, id: RequestId, origin: Origin) {
        if id.index() >= self.slots.len() {
            self.slots.resize(id.index() + 1, Tracked::VACANT);
        }
        self.slots[id.index()] = Tracked { state: State::Attached, origin, ..Tracked::VACANT };
    }

    #[inline]
    pub fn origin(&self, id: RequestId) -> Origin {
        self.slots[id.index()].origin
    }

    #[inline]
    pub fn queue_of(&self, id: RequestId) -> QueueId {
        self.slots[id.index()].origin.queue
    }

    /// The sector by which a waiting request was sorted in.
    #[inline]
    pub fn sector(&self, id: RequestId) -> Sector {
        self.slots[id.index()].sector
    }

    /// The request waits in its queue from now on; the disk is at `head`. True if the queue's next
    /// request has changed.
    #[inline]
    pub fn insert(
        &mut self,
        backlog: &mut Backlog,
        id: RequestId,
        (sector, expires): (Sector, Instant),
        head: Sector,
    ) -> bool {
        self.slots[id.index()].expires = expires;
        self.links.push_back(&mut backlog.fifo, id);
        self.sort_in(backlog, id, sector, head)
    }

    /// The request has grown downwards and starts at `sector` now. True if the queue's next request
    /// has changed.
    pub fn reposition(&mut self, backlog: &mut Backlog, id: RequestId, sector: Sector, head: Sector) -> bool {
        backlog.sorted.remove(self.sector(id), id);
        self.sort_in(backlog, id, sector, head)
    }

    fn sort_in(&mut self, backlog: &mut Backlog, id: RequestId, sector: Sector, head: Sector) -> bool {
        let slot = &mut self.slots[id.index()];
        slot.sector = sector;
        slot.state = State::Waiting;
        backlog.sorted.insert(sector, id);
        let before = backlog.next;
        backlog.next = self.better(before, Some(id), head);
        before != backlog.next
    }

    /// The better of two waiting requests, with the last one at `head` (`cfq_choose_req`).
    fn better(&self, a: Option<RequestId>, b: Option<RequestId>, head: Sector) -> Option<RequestId> {
        self.back_seek.better(a, b, head, |id| {
            let slot = &self.slots[id.index()];
            Candidate { sync: slot.origin.sync, sector: slot.sector }
        })
    }

    /// The waiting request leaves its queue; the next one is chosen from its neighbours
    /// (`cfq_find_next_rq`).
    fn remove(&mut self, backlog: &mut Backlog, id: RequestId) {
        let sector = self.sector(id);
        self.links.remove(&mut backlog.fifo, id);
        let (below, above) = backlog.sorted.remove(sector, id);
        if backlog.next == Some(id) {
            backlog.next = self.better(above, below, sector);
        }
    }

    /// The request is dispatched. The next one is chosen from this one's sector, even if the FIFO
    /// chose this one.
    #[inline]
    pub fn send(&mut self, backlog: &mut Backlog, id: RequestId) {
        backlog.next = Some(id);
        self.remove(backlog, id);
        backlog.in_flight += 1;
        self.slots[id.index()].state = State::Sent;
    }

    /// `gone` is merged into `kept`, which takes its place in the FIFO if that is earlier. True if
    /// `gone` waited.
    pub fn merge(&mut self, backlog: &mut Backlog, kept: RequestId, gone: RequestId) -> bool {
        let Tracked { state, expires, .. } = self.slots[gone.index()];
        self.slots[gone.index()].state = State::Absent;
        if state != State::Waiting {
            return false;
        }
        if expires < self.slots[kept.index()].expires {
            self.links.remove(&mut backlog.fifo, kept);
            self.links.insert_after(&mut backlog.fifo, gone, kept);
            self.slots[kept.index()].expires = expires;
        }
        if backlog.next == Some(gone) {
            backlog.next = Some(kept);
        }
        self.remove(backlog, gone);
        true
    }

    /// The request is freed. True if it was dispatched.
    pub fn free(&mut self, id: RequestId) -> bool {
        let state = std::mem::replace(&mut self.slots[id.index()].state, State::Absent);
        state == State::Sent
    }

    /// The waiting request directly above or below this one.
    pub fn neighbour(&self, backlog: &Backlog, id: RequestId, above: bool) -> Option<RequestId> {
        let sector = self.sector(id);
        if above { backlog.sorted.above(sector, id) } else { backlog.sorted.below(sector, id) }
    }

    /// The oldest request of the queue, if it has expired.
    #[inline]
    pub fn expired(&self, backlog: &Backlog, now: Instant) -> Option<RequestId> {
        backlog.fifo.first().filter(|oldest| self.slots[oldest.index()].expires <= now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: Sector = Sector(1000);

    /// A queue with waiting requests, numbered from 0, at these sectors; each expires a nanosecond
    /// after the one before.
    fn queue(sectors: &[u64]) -> (Requests, Backlog) {
        let back_seek = BackSeek { max: 16, penalty: 2 };
        let (mut requests, mut backlog) = (Requests::new(8, back_seek), Backlog::default());
        for (number, &sector) in sectors.iter().enumerate() {
            let id = RequestId(number as u32);
            assert!(!requests.is_attached(id));
            requests.attach(id, Origin { queue: 0, context: 1, sync: true, is_last: false });
            requests.insert(&mut backlog, id, (Sector(sector), number as Instant), HEAD);
        }
        (requests, backlog)
    }

    fn next(backlog: &Backlog) -> Option<u32> {
        backlog.next().map(|id| id.0)
    }

    #[test]
    fn the_next_request_is_the_best_for_the_disk_s_position() {
        let (mut requests, mut backlog) = queue(&[2000, 1500, 100, 1600]);
        assert_eq!((next(&backlog), backlog.len()), (Some(1), 4));
        requests.send(&mut backlog, RequestId(1));
        assert_eq!((next(&backlog), backlog.len(), backlog.in_flight()), (Some(3), 3, 1));
        // The FIFO's choice moves the position, too.
        requests.send(&mut backlog, RequestId(2));
        assert_eq!(next(&backlog), Some(3), "upwards from 100");
        backlog.completed();
        assert_eq!(backlog.in_flight(), 1);
    }

    #[test]
    fn a_new_request_tells_whether_it_is_the_next() {
        let (mut requests, mut backlog) = queue(&[2000]);
        let mut insert = |number, sector| {
            requests.attach(RequestId(number), requests.origin(RequestId(0)));
            requests.insert(&mut backlog, RequestId(number), (Sector(sector), 9), HEAD)
        };
        assert_eq!([insert(1, 3000), insert(2, 1500)], [false, true]);
        assert!(!requests.reposition(&mut backlog, RequestId(1), Sector(2990), HEAD));
        assert!(requests.reposition(&mut backlog, RequestId(0), Sector(1200), HEAD));
        assert_eq!(next(&backlog), Some(0));
        assert_eq!(backlog.starting_at(Sector(2990)), Some(RequestId(1)));
    }

    #[test]
    fn the_oldest_request_expires_wherever_it_is() {
        let (mut requests, mut backlog) = queue(&[9000, 1000, 2000]);
        assert_eq!(requests.expired(&backlog, -1), None);
        assert_eq!(requests.expired(&backlog, 0), Some(RequestId(0)));
        requests.send(&mut backlog, RequestId(0));
        assert_eq!(requests.expired(&backlog, 0), None);
        assert_eq!(requests.expired(&backlog, 1), Some(RequestId(1)));
    }

    #[test]
    fn a_merged_request_leaves_its_place_in_the_fifo_to_the_one_that_is_kept() {
        let (mut requests, mut backlog) = queue(&[1008, 5000, 1000]);
        assert_eq!(next(&backlog), Some(2));
        assert!(requests.merge(&mut backlog, RequestId(2), RequestId(0)));
        assert_eq!(requests.expired(&backlog, 0), Some(RequestId(2)));
        assert!(!requests.is_attached(RequestId(0)));
        assert_eq!((next(&backlog), backlog.len()), (Some(2), 2));
    }

    #[test]
    fn if_the_next_request_is_merged_the_kept_one_is_next() {
        let (mut requests, mut backlog) = queue(&[1000, 992, 1004]);
        assert_eq!(next(&backlog), Some(0));
        assert!(requests.merge(&mut backlog, RequestId(1), RequestId(0)));
        assert_eq!(next(&backlog), Some(1));
    }

    #[test]
    fn a_request_is_freed_after_it_was_dispatched_or_merged() {
        let (mut requests, mut backlog) = queue(&[1000, 2000]);
        requests.send(&mut backlog, RequestId(0));
        assert!(requests.free(RequestId(0)) && !requests.is_attached(RequestId(0)));
        let plugged = RequestId(2);
        requests.attach(plugged, requests.origin(RequestId(1)));
        assert!(!requests.merge(&mut backlog, RequestId(1), plugged), "it did not wait yet");
        assert!(!requests.is_attached(plugged) && backlog.len() == 1);
    }

    #[test]
    fn neighbours_are_found_by_sector() {
        let (requests, backlog) = queue(&[2000, 1000, 3000]);
        let of = |id, above| requests.neighbour(&backlog, RequestId(id), above).map(|id| id.0);
        assert_eq!([of(0, true), of(0, false), of(2, true), of(1, false)], [Some(2), Some(1), None, None]);
    }
}
