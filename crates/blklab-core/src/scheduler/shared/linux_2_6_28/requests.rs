//! Requests in their queues: in the order of sectors and of arrival, and the next one.
//!
//! A request gets a queue, then waits in it, then is chosen. While it waits, it is in two orders: by
//! sector, and by arrival. The *next* request of a queue is the nearest to the head, upwards first:
//! it is compared with each new request, and when it leaves, its successor is chosen from the two
//! neighbours by sector. Instead of it goes the oldest request, if that has expired; this is checked
//! once in each turn.
//!
//! Follows `sort_list`, `fifo`, `next_rq` and `dispatched` of `cfq_queue`: `cfq_choose_req`,
//! `cfq_find_next_rq`, `cfq_check_fifo`, `cfq_add_rq_rb`, `cfq_reposition_rq_rb`, `cfq_remove_request`,
//! and the fifo's part of `cfq_merged_requests`.

use super::tasks::TaskIndex;
use crate::containers::lists::{Links, List};
use crate::containers::sorted::Sorted;
use crate::request::RequestId;
use crate::scheduler::shared::nearest::{BackSeek, Candidate};
use crate::units::Sector;

/// The state of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Unknown here.
    Absent,
    /// It has a queue, but is in no list yet.
    Attached,
    /// Sorted into its queue.
    Waiting,
    /// Chosen.
    Chosen,
}

/// What a request is: fixed when it gets its queue.
#[derive(Clone, Copy, Debug)]
pub(in crate::scheduler) struct Origin<Q> {
    pub queue: Q,
    pub task: TaskIndex,
    pub sync: bool,
    /// The tick in which it was created.
    pub since: u64,
}

#[derive(Clone, Copy, Debug)]
struct Tracked<Q> {
    state: State,
    origin: Origin<Q>,
    /// The sector by which it was sorted in.
    sector: Sector,
}

/// The requests of one queue.
#[derive(Debug)]
pub(in crate::scheduler) struct Backlog {
    sorted: Sorted,
    fifo: List,
    next: Option<RequestId>,
    /// Requests chosen or in flight.
    dispatched: u32,
    /// The FIFO was checked in this turn.
    fifo_checked: bool,
}

impl Default for Backlog {
    fn default() -> Backlog {
        Backlog {
            sorted: Sorted::default(),
            fifo: List::EMPTY,
            next: None,
            dispatched: 0,
            fifo_checked: false,
        }
    }
}

impl Backlog {
    /// No request waits.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.fifo.is_empty()
    }

    #[inline]
    pub fn next(&self) -> Option<RequestId> {
        self.next
    }

    /// The waiting request is the next one, even if another is nearer.
    pub fn set_next(&mut self, id: RequestId) {
        self.next = Some(id);
    }

    /// Requests that are chosen and have not completed.
    #[inline]
    pub fn dispatched(&self) -> u32 {
        self.dispatched
    }

    /// A chosen request completes.
    #[inline]
    pub fn completed(&mut self) {
        self.dispatched -= 1;
    }

    /// A turn begins: the FIFO may be checked again.
    pub fn turn_begins(&mut self) {
        self.fifo_checked = false;
    }

    /// The waiting request that starts at this sector.
    #[inline]
    pub fn starting_at(&self, sector: Sector) -> Option<RequestId> {
        self.sorted.starting_at(sector)
    }
}

/// All requests, by number, and the order of those that wait.
#[derive(Debug)]
pub(in crate::scheduler) struct Requests<Q> {
    slots: Vec<Tracked<Q>>,
    links: Links,
    back_seek: BackSeek,
}

impl<Q: Copy> Requests<Q> {
    pub fn new(requests: usize, back_seek: BackSeek) -> Requests<Q> {
        Requests { slots: Vec::with_capacity(requests), links: Links::with_capacity(requests), back_seek }
    }

    /// The request has a queue.
    #[inline]
    pub fn is_attached(&self, id: RequestId) -> bool {
        self.slots.get(id.index()).is_some_and(|slot| slot.state != State::Absent)
    }

    /// It waits in its queue.
    #[cfg(test)]
    pub fn is_waiting(&self, id: RequestId) -> bool {
        self.slots[id.index()].state == State::Waiting
    }

    /// The request gets its queue.
    pub fn attach(&mut self, id: RequestId, origin: Origin<Q>) {
        let slot = Tracked { state: State::Attached, origin, sector: Sector(0) };
        if id.index() >= self.slots.len() {
            self.slots.resize(id.index() + 1, Tracked { state: State::Absent, ..slot });
        }
        self.slots[id.index()] = slot;
    }

    #[inline]
    pub fn origin(&self, id: RequestId) -> Origin<Q> {
        self.slots[id.index()].origin
    }

    #[inline]
    pub fn queue_of(&self, id: RequestId) -> Q {
        self.slots[id.index()].origin.queue
    }

    /// The request, at `sector`, waits in its queue from now on; the disk is at `head`.
    #[inline]
    pub fn insert(&mut self, backlog: &mut Backlog, id: RequestId, sector: Sector, head: Sector) {
        self.links.push_back(&mut backlog.fifo, id);
        self.sort_in(backlog, id, sector, head);
    }

    /// The request has grown downwards and starts at `sector` now.
    pub fn reposition(&mut self, backlog: &mut Backlog, id: RequestId, sector: Sector, head: Sector) {
        backlog.sorted.remove(self.slots[id.index()].sector, id);
        self.sort_in(backlog, id, sector, head);
    }

    fn sort_in(&mut self, backlog: &mut Backlog, id: RequestId, sector: Sector, head: Sector) {
        let slot = &mut self.slots[id.index()];
        slot.sector = sector;
        slot.state = State::Waiting;
        backlog.sorted.insert(sector, id);
        backlog.next = self.better(backlog.next, Some(id), head);
    }

    /// The better of two waiting requests, from the end of the last one.
    fn better(&self, a: Option<RequestId>, b: Option<RequestId>, head: Sector) -> Option<RequestId> {
        self.back_seek.better(a, b, head, |id| {
            let slot = &self.slots[id.index()];
            Candidate { sync: slot.origin.sync, sector: slot.sector }
        })
    }

    /// The waiting request leaves its queue. True if it was the next one.
    pub fn remove(&mut self, backlog: &mut Backlog, id: RequestId, head: Sector) -> bool {
        self.links.remove(&mut backlog.fifo, id);
        let (below, above) = backlog.sorted.remove(self.slots[id.index()].sector, id);
        let was_next = backlog.next == Some(id);
        if was_next {
            backlog.next = self.better(above, below, head);
        }
        was_next
    }

    /// The removed request goes to the dispatch list.
    #[inline]
    pub fn choose(&mut self, backlog: &mut Backlog, id: RequestId) {
        self.slots[id.index()].state = State::Chosen;
        backlog.dispatched += 1;
    }

    /// The oldest request if it is older than `limit` ticks; checked once in a turn.
    pub fn expired(&self, backlog: &mut Backlog, tick: u64, limit: u64) -> Option<RequestId> {
        if std::mem::replace(&mut backlog.fifo_checked, true) {
            return None;
        }
        let oldest = backlog.fifo.first()?;
        (tick >= self.origin(oldest).since.saturating_add(limit)).then_some(oldest)
    }

    /// `gone` is merged into `kept`, which takes its place in the FIFO if that is earlier. True if
    /// `gone` waits, and must now be removed.
    pub fn merge(&mut self, backlog: &mut Backlog, kept: RequestId, gone: RequestId) -> bool {
        let waits = self.slots[gone.index()].state == State::Waiting;
        let since = self.origin(gone).since;
        let kept_since = &mut self.slots[kept.index()].origin.since;
        if waits && since < *kept_since {
            self.links.remove(&mut backlog.fifo, kept);
            self.links.insert_after(&mut backlog.fifo, gone, kept);
        }
        *kept_since = since.min(*kept_since);
        waits
    }

    /// The request is freed.
    #[inline]
    pub fn free(&mut self, id: RequestId) {
        self.slots[id.index()].state = State::Absent;
    }

    /// The waiting request directly above or below this one.
    pub fn neighbour(&self, backlog: &Backlog, id: RequestId, above: bool) -> Option<RequestId> {
        let sector = self.slots[id.index()].sector;
        if above { backlog.sorted.above(sector, id) } else { backlog.sorted.below(sector, id) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: Sector = Sector(1000);

    /// A queue with waiting requests at these sectors, one from each tick.
    fn queue(sectors: &[u64]) -> (Requests<char>, Backlog, Vec<RequestId>) {
        let mut requests = Requests::new(8, BackSeek { max: 16, penalty: 2 });
        let mut backlog = Backlog::default();
        let mut ids = Vec::new();
        for (number, &sector) in sectors.iter().enumerate() {
            let id = RequestId(number as u32);
            assert!(!requests.is_attached(id));
            requests.attach(id, Origin { queue: 'q', task: 1, sync: true, since: number as u64 });
            requests.insert(&mut backlog, id, Sector(sector), HEAD);
            ids.push(id);
        }
        (requests, backlog, ids)
    }

    #[test]
    fn the_next_request_is_the_nearest_upwards() {
        let (mut requests, mut backlog, ids) = queue(&[2000, 1500, 100, 1600]);
        assert_eq!(backlog.next(), Some(ids[1]));
        assert!(requests.remove(&mut backlog, ids[1], HEAD));
        assert_eq!(backlog.next(), Some(ids[3]));
        assert!(!requests.remove(&mut backlog, ids[0], HEAD));
        assert!(requests.remove(&mut backlog, ids[3], HEAD));
        assert_eq!(backlog.next(), Some(ids[2]), "there is no other");
        assert!(requests.remove(&mut backlog, ids[2], HEAD) && backlog.is_empty());
        assert_eq!(backlog.next(), None);
    }

    #[test]
    fn the_oldest_request_is_checked_once_in_a_turn() {
        let (requests, mut backlog, ids) = queue(&[9000, 1000]);
        assert_eq!(requests.expired(&mut backlog, 124, 125), None);
        assert_eq!(requests.expired(&mut backlog, 125, 125), None, "it was checked");
        backlog.turn_begins();
        assert_eq!(requests.expired(&mut backlog, 125, 125), Some(ids[0]));
        assert_eq!(requests.expired(&mut backlog, 125, 125), None);
    }

    #[test]
    fn a_merged_request_leaves_its_place_in_the_fifo_to_the_one_that_is_kept() {
        let (mut requests, mut backlog, ids) = queue(&[1008, 5000, 1000]);
        assert!(requests.merge(&mut backlog, ids[2], ids[0]));
        requests.remove(&mut backlog, ids[0], HEAD);
        requests.free(ids[0]);
        assert!(!requests.is_attached(ids[0]));
        assert_eq!(requests.expired(&mut backlog, 125, 125), Some(ids[2]), "it expires as the other would");
    }

    #[test]
    fn a_request_that_grows_downwards_is_sorted_in_again() {
        let (mut requests, mut backlog, ids) = queue(&[2000, 1100, 3000]);
        requests.reposition(&mut backlog, ids[0], Sector(1050), HEAD);
        assert_eq!(backlog.starting_at(Sector(1050)), Some(ids[0]));
        assert_eq!(backlog.next(), Some(ids[0]), "it is nearer now");
        assert_eq!(requests.neighbour(&backlog, ids[0], true), Some(ids[1]));
        assert_eq!(requests.neighbour(&backlog, ids[0], false), None);
    }

    #[test]
    fn chosen_requests_are_counted_until_they_complete() {
        let (mut requests, mut backlog, ids) = queue(&[1000, 2000]);
        requests.remove(&mut backlog, ids[0], HEAD);
        requests.choose(&mut backlog, ids[0]);
        assert_eq!(backlog.dispatched(), 1);
        assert!(!requests.is_waiting(ids[0]) && requests.is_waiting(ids[1]));
        backlog.completed();
        requests.free(ids[0]);
        assert!(!requests.is_attached(ids[0]) && backlog.dispatched() == 0);
    }
}
