//! Requests in their queues: in the order of sectors and of arrival, and the next one.
//!
//! A request gets a queue, then waits in it, then is dispatched. While it waits, it is in two
//! orders: by sector, and by arrival with a time at which it expires. The *next* request of a queue
//! is the nearest to the head, upwards first: it is compared with each new request, and when it
//! leaves, its successor is chosen from the two neighbours by sector. Instead of it goes the oldest
//! request, if that has expired; this is checked once in each slice.
//!
//! Several requests of a queue may begin at one sector, where processes share a queue or one reads what it writes. A bio
//! that ends there goes in front of the one at which the search of the kernel's tree ends (`elv_rb_find`), or of none if
//! that has another operation. So the shape of the tree decides, and from the first such requests on it is kept.
//!
//! Follows `sort_list`, `fifo`, `next_rq`, `queued` and `dispatched` of `bfq_queue` in Linux 7.3:
//! `bfq_choose_req`, `bfq_find_next_rq`, `bfq_check_fifo`, `bfq_remove_request`, and the list
//! handling of `bfq_add_request`, `bfq_request_merged` and `bfq_requests_merged`. What BFQ keeps in
//! a request (`elv.priv`) is here by the request's number.

use std::iter;

use super::QueueId;
use super::tasks::TaskIndex;
use crate::containers::lists::{Links, List};
use crate::containers::rbtree::{Found, Trees};
use crate::containers::sorted::Sorted;
use crate::request::{Request, RequestId};
use crate::scheduler::shared::nearest::{BackSeek, Candidate};
use crate::units::Sector;

/// The stage of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Unknown to BFQ.
    Gone,
    /// Belongs to a queue, but is in no list yet.
    Assigned,
    /// Sorted into its queue.
    Waits,
    /// Dispatched.
    Started,
}

#[derive(Clone, Copy, Debug)]
struct Tracked {
    stage: Stage,
    sync: bool,
    sectors: u32,
    sector: Sector,
    queue: QueueId,
    task: TaskIndex,
    /// When it expires in the FIFO, in ns.
    fifo_time: u64,
}

/// The requests of one queue.
#[derive(Debug)]
pub(in crate::scheduler::bfq) struct Backlog {
    sorted: Sorted,
    /// The kernel's tree of the same requests.
    tree: Option<Trees>,
    fifo: List,
    next: Option<RequestId>,
    /// Waiting requests: async, sync.
    waiting: [u32; 2],
    in_flight: u32,
    /// The FIFO was checked in this slice.
    fifo_checked: bool,
}

impl Default for Backlog {
    fn default() -> Backlog {
        Backlog {
            sorted: Sorted::default(),
            tree: None,
            fifo: List::EMPTY,
            next: None,
            waiting: [0; 2],
            in_flight: 0,
            fifo_checked: false,
        }
    }
}

impl Backlog {
    /// Empty, with the capacity of this one.
    pub fn emptied(&mut self) -> Backlog {
        Backlog { sorted: std::mem::take(&mut self.sorted), ..Backlog::default() }
    }

    /// No request waits.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.fifo.is_empty()
    }

    #[inline]
    pub fn next(&self) -> Option<RequestId> {
        self.next
    }

    /// Waiting requests of that kind.
    #[inline]
    pub fn waiting(&self, sync: bool) -> u32 {
        self.waiting[usize::from(sync)]
    }

    /// Requests in flight (`dispatched`).
    #[inline]
    pub fn in_flight(&self) -> u32 {
        self.in_flight
    }

    /// Requests that wait or are in flight.
    #[inline]
    pub fn outstanding(&self) -> u32 {
        self.in_flight + self.waiting[0] + self.waiting[1]
    }

    /// A slice begins: the FIFO may be checked again.
    pub fn slice_begins(&mut self) {
        self.fifo_checked = false;
    }

    /// A request goes to the disk.
    pub fn dispatched(&mut self) {
        self.in_flight += 1;
    }

    /// A request in flight completes.
    pub fn completed(&mut self) {
        self.in_flight -= 1;
    }
}

/// All requests, by number, and the order of those that wait.
#[derive(Debug)]
pub(in crate::scheduler::bfq) struct Requests {
    slots: Vec<Tracked>,
    links: Links,
    back_seek: BackSeek,
    /// Two requests of one queue have begun at one sector.
    had_equals: bool,
}

impl Requests {
    pub fn new(requests: usize, back_seek: BackSeek) -> Requests {
        Requests {
            slots: Vec::with_capacity(requests),
            links: Links::with_capacity(requests),
            back_seek,
            had_equals: false,
        }
    }

    /// The request has a queue.
    #[inline]
    pub fn is_assigned(&self, id: RequestId) -> bool {
        self.slots.get(id.index()).is_some_and(|slot| slot.stage != Stage::Gone)
    }

    /// The request now belongs to a queue.
    #[inline]
    pub fn assign(&mut self, id: RequestId, request: &Request, task: TaskIndex, queue: QueueId) {
        let slot = Tracked {
            stage: Stage::Assigned,
            sync: request.sync,
            sectors: request.sectors,
            sector: request.sector,
            queue,
            task,
            fifo_time: 0,
        };
        if id.index() >= self.slots.len() {
            self.slots.resize(id.index() + 1, Tracked { stage: Stage::Gone, ..slot });
        }
        self.slots[id.index()] = slot;
    }

    /// The request belongs to another queue, before it waits in one.
    pub fn move_to(&mut self, id: RequestId, queue: QueueId) {
        self.slots[id.index()].queue = queue;
    }

    #[inline]
    pub fn queue_of(&self, id: RequestId) -> QueueId {
        self.slots[id.index()].queue
    }

    #[inline]
    pub fn task_of(&self, id: RequestId) -> TaskIndex {
        self.slots[id.index()].task
    }

    #[inline]
    pub fn is_sync(&self, id: RequestId) -> bool {
        self.slots[id.index()].sync
    }

    #[inline]
    pub fn sector(&self, id: RequestId) -> Sector {
        self.slots[id.index()].sector
    }

    #[inline]
    pub fn sectors(&self, id: RequestId) -> u32 {
        self.slots[id.index()].sectors
    }

    /// Where it ends.
    #[inline]
    pub fn end(&self, id: RequestId) -> Sector {
        let slot = &self.slots[id.index()];
        slot.sector.offset(slot.sectors)
    }

    /// The request waits in its queue until it expires at `fifo_time`; the disk is at `head`. True
    /// if the queue's next request has changed.
    pub fn insert(&mut self, backlog: &mut Backlog, id: RequestId, fifo_time: u64, head: Sector) -> bool {
        let slot = &mut self.slots[id.index()];
        slot.stage = Stage::Waits;
        slot.fifo_time = fifo_time;
        let sync = slot.sync;
        self.sort_in(backlog, id);
        self.links.push_back(&mut backlog.fifo, id);
        backlog.waiting[usize::from(sync)] += 1;
        let before = backlog.next;
        backlog.next = self.nearer(before, Some(id), head);
        before != backlog.next
    }

    /// Sorts a request into its queue by its sector.
    #[inline]
    fn sort_in(&mut self, backlog: &mut Backlog, id: RequestId) {
        self.had_equals |= backlog.sorted.insert(self.sector(id), id);
        if self.had_equals {
            self.link(backlog, id);
        }
    }

    /// Inserts a request that is sorted in into the queue's tree.
    #[cold]
    fn link(&self, backlog: &mut Backlog, id: RequestId) {
        let insert = |tree: &mut Trees, id: RequestId| {
            tree.insert_behind(0, id.0, |node| self.sector(id).cmp(&self.sector(RequestId(node))));
        };
        let tree = backlog.tree.get_or_insert_with(|| {
            let mut tree = Trees::new(1);
            let oldest_first = iter::successors(backlog.fifo.first(), |&other| self.links.after(other));
            oldest_first.filter(|&other| other != id).for_each(|other| insert(&mut tree, other));
            tree
        });
        insert(tree, id);
    }

    /// The waiting request of the queue that starts at this sector; of several, the one that the kernel finds.
    #[inline]
    pub fn starting_at(&self, backlog: &Backlog, sector: Sector) -> Option<RequestId> {
        let Some(tree) = &backlog.tree else { return backlog.sorted.starting_at(sector) };
        match tree.search(0, |node| sector.cmp(&self.sector(RequestId(node)))) {
            Found::At(node) => Some(RequestId(node)),
            Found::Below(_) => None,
        }
    }

    /// A waiting request leaves its queue. True if it was the next one, and another is that now.
    pub fn remove(&mut self, backlog: &mut Backlog, id: RequestId, now: u64) -> bool {
        let was_next = backlog.next == Some(id);
        if was_next {
            backlog.next = self.after(backlog, id, now);
        }
        let slot = &self.slots[id.index()];
        self.links.remove(&mut backlog.fifo, id);
        sort_out(backlog, id, slot.sector);
        backlog.waiting[usize::from(slot.sync)] -= 1;
        was_next
    }

    /// The request after `last`, which still waits: the head of the FIFO if it has expired, else
    /// the request nearest to the start of `last` (`bfq_find_next_rq`).
    fn after(&self, backlog: &mut Backlog, last: RequestId, now: u64) -> Option<RequestId> {
        if !std::mem::replace(&mut backlog.fifo_checked, true) {
            let oldest = backlog.fifo.first().filter(|&oldest| oldest != last);
            let expired = oldest.filter(|oldest| self.slots[oldest.index()].fifo_time <= now);
            if expired.is_some() {
                return expired;
            }
        }
        let from = self.sector(last);
        let (below, above) = backlog.sorted.beside(from, last);
        self.nearer(above, below, from)
    }

    /// The better of two requests; either may be missing (`bfq_choose_req`).
    fn nearer(&self, a: Option<RequestId>, b: Option<RequestId>, from: Sector) -> Option<RequestId> {
        self.back_seek.better(a, b, from, |id| {
            let slot = &self.slots[id.index()];
            Candidate { sync: slot.sync, sector: slot.sector }
        })
    }

    /// A bio was merged at the end of the request.
    pub fn grown(&mut self, id: RequestId, sectors: u32) {
        self.slots[id.index()].sectors = sectors;
    }

    /// A bio was merged in front of the waiting request, which begins at `sector` now. If it passes the one before
    /// it, it may become the queue's next request, as one that arrives (`bfq_request_merged`). True if the next
    /// request changes.
    pub fn grown_downwards(
        &mut self,
        backlog: &mut Backlog,
        id: RequestId,
        sector: Sector,
        sectors: u32,
        head: Sector,
    ) -> bool {
        let slot = &mut self.slots[id.index()];
        let old = std::mem::replace(&mut slot.sector, sector);
        slot.sectors = sectors;
        let passed =
            backlog.sorted.below(old, id).is_some_and(|below| sector < self.slots[below.index()].sector);
        sort_out(backlog, id, old);
        self.sort_in(backlog, id);
        let before = backlog.next;
        if passed {
            backlog.next = self.nearer(before, Some(id), head);
        }
        before != backlog.next
    }

    /// `gone`, which may be in another queue, is about to be merged into `kept`, which is in this
    /// one: `kept` takes its place in the FIFO if that is earlier, and its place as the next
    /// request. True if `gone` waits, and must now be removed.
    pub fn merge(&mut self, backlog: &mut Backlog, kept: RequestId, gone: RequestId) -> bool {
        let (keeper, goner) = (self.slots[kept.index()], self.slots[gone.index()]);
        let both_wait = keeper.stage == Stage::Waits && goner.stage == Stage::Waits;
        if keeper.queue == goner.queue && both_wait && goner.fifo_time < keeper.fifo_time {
            self.links.remove(&mut backlog.fifo, kept);
            self.links.insert_after(&mut backlog.fifo, gone, kept);
            self.slots[kept.index()].fifo_time = goner.fifo_time;
        }
        if backlog.next == Some(gone) {
            backlog.next = Some(kept);
        }
        self.slots[kept.index()].sectors += goner.sectors;
        goner.stage == Stage::Waits
    }

    /// The request goes to the disk.
    pub fn started(&mut self, id: RequestId) {
        self.slots[id.index()].stage = Stage::Started;
    }

    /// The request was dispatched.
    #[inline]
    pub fn is_started(&self, id: RequestId) -> bool {
        self.slots[id.index()].stage == Stage::Started
    }

    /// The request is freed.
    pub fn freed(&mut self, id: RequestId) {
        self.slots[id.index()].stage = Stage::Gone;
    }

    /// The waiting request directly above or below this one.
    pub fn neighbour(&self, backlog: &Backlog, id: RequestId, above: bool) -> Option<RequestId> {
        let sector = self.sector(id);
        if above { backlog.sorted.above(sector, id) } else { backlog.sorted.below(sector, id) }
    }
}

/// The opposite of [`Requests::sort_in`].
#[inline]
fn sort_out(backlog: &mut Backlog, id: RequestId, sector: Sector) {
    backlog.sorted.remove(sector, id);
    if let Some(tree) = &mut backlog.tree {
        tree.remove(0, id.0);
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::leaves;
    use super::*;

    const HEAD: Sector = Sector(1000);

    /// A queue with waiting requests at these sectors; each expires a nanosecond after the one
    /// before.
    fn queue(sectors: &[u64]) -> (Requests, Backlog, Vec<RequestId>) {
        let back_seek = BackSeek { max: 16, penalty: 2 };
        let (mut requests, mut backlog) = (Requests::new(8, back_seek), Backlog::default());
        let own = leaves(1)[0];
        let mut ids = Vec::new();
        for (number, &sector) in sectors.iter().enumerate() {
            let id = RequestId(number as u32);
            assert!(!requests.is_assigned(id));
            let request = Request { sector: Sector(sector), sectors: 8, sync: true, ..Request::default() };
            requests.assign(id, &request, TaskIndex(1), own);
            requests.insert(&mut backlog, id, number as u64, HEAD);
            ids.push(id);
        }
        (requests, backlog, ids)
    }

    #[test]
    fn the_next_request_is_the_nearest_upwards() {
        let (mut requests, mut backlog, ids) = queue(&[2000, 1500, 100, 1600]);
        assert_eq!(backlog.next(), Some(ids[1]));
        backlog.fifo_checked = true;
        assert!(requests.remove(&mut backlog, ids[1], 9));
        assert_eq!(backlog.next(), Some(ids[3]));
        assert!(!requests.remove(&mut backlog, ids[0], 9));
        assert_eq!((backlog.next(), backlog.outstanding()), (Some(ids[3]), 2));
    }

    #[test]
    fn an_expired_request_is_next_once_in_a_slice() {
        let (mut requests, mut backlog, ids) = queue(&[9000, 1000, 1200, 1100, 9008]);
        backlog.slice_begins();
        requests.remove(&mut backlog, ids[1], 0);
        assert_eq!(backlog.next(), Some(ids[0]));
        requests.remove(&mut backlog, ids[0], 9);
        assert_eq!(backlog.next(), Some(ids[4]), "the nearest, though an older one has expired");
        backlog.slice_begins();
        requests.remove(&mut backlog, ids[4], 9);
        assert_eq!(backlog.next(), Some(ids[2]), "though the lowest would be next");
    }

    #[test]
    fn a_merged_request_leaves_its_places_to_the_one_that_is_kept() {
        let (mut requests, mut backlog, ids) = queue(&[1008, 5000, 1000]);
        backlog.next = Some(ids[0]);
        assert!(requests.merge(&mut backlog, ids[2], ids[0]));
        assert_eq!((backlog.next(), requests.sectors(ids[2])), (Some(ids[2]), 16));
        assert!(!requests.remove(&mut backlog, ids[0], 9));
        backlog.slice_begins();
        backlog.next = Some(ids[1]);
        requests.remove(&mut backlog, ids[1], 0);
        assert_eq!(backlog.next(), Some(ids[2]), "it expires when the other would have");
    }

    #[test]
    fn a_request_that_grows_keeps_its_neighbours() {
        let (mut requests, mut backlog, ids) = queue(&[2000, 1000, 3000]);
        assert!(!requests.grown_downwards(&mut backlog, ids[0], Sector(1992), 16, Sector(0)));
        assert_eq!(requests.starting_at(&backlog, Sector(1992)), Some(ids[0]));
        assert_eq!(requests.end(ids[0]), Sector(2008));
        let of = |id, above| requests.neighbour(&backlog, id, above);
        assert_eq!((of(ids[0], true), of(ids[0], false)), (Some(ids[2]), Some(ids[1])));
    }

    #[test]
    fn of_requests_at_one_sector_the_root_of_the_kernels_tree_is_found() {
        // The second of two equal ones is below the first. A third balances the tree: the second becomes the root.
        for (count, found) in [(2, 0), (3, 1)] {
            let (mut requests, mut backlog, ids) = queue(&vec![2000; count]);
            assert_eq!(requests.starting_at(&backlog, Sector(2000)), Some(ids[found]));
            requests.remove(&mut backlog, ids[found], 0);
            assert_eq!(requests.starting_at(&backlog, Sector(2000)), Some(ids[count - 1]), "{count}");
            assert_eq!(requests.starting_at(&backlog, Sector(1992)), None);
        }
    }

    #[test]
    fn a_request_that_grows_past_the_one_before_it_may_be_the_next_one() {
        let next_after = |head| {
            let (mut requests, mut backlog, ids) = queue(&[2000, 2000]);
            assert_eq!(backlog.next(), Some(ids[0]));
            let changes = requests.grown_downwards(&mut backlog, ids[1], Sector(1992), 16, Sector(head));
            assert_eq!(changes, backlog.next() == Some(ids[1]));
            changes
        };
        assert!(next_after(1000) && !next_after(1999), "the nearer one to the head");
    }

    #[test]
    fn requests_are_counted_while_they_wait_and_while_they_are_in_flight() {
        let (mut requests, mut backlog, ids) = queue(&[1000, 2000]);
        assert_eq!((backlog.waiting(true), backlog.waiting(false)), (2, 0));
        requests.remove(&mut backlog, ids[0], 0);
        requests.started(ids[0]);
        backlog.dispatched();
        assert_eq!((backlog.waiting(true), backlog.in_flight(), backlog.outstanding()), (1, 1, 2));
        assert!(requests.is_started(ids[0]) && !requests.is_started(ids[1]));
        backlog.completed();
        requests.freed(ids[0]);
        assert!(!requests.is_assigned(ids[0]) && backlog.in_flight() == 0);
    }
}
