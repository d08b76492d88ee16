//! The number of requests that wait in queues, of those at the disk, and of synchronous ones that are
//! chosen and have not completed.
//!
//! A request goes through four places. It waits in its queue; it is chosen and goes to the dispatch
//! list ([`outgoing`](super::outgoing)); the disk takes it from there; it completes. A merged request
//! leaves its queue and goes nowhere. Each step changes one of the totals:
//!
//! * `queued` says whether there is work, and whether the queue must be run when a process exits;
//! * `in_driver` says when the disk is idle, so that idling may begin, and how many commands the disk
//!   queues;
//! * `sync_flight` holds back asynchronous requests: none is chosen while a synchronous one is chosen
//!   and has not completed, so writeback yields to sync I/O.
//!
//! Follows `rq_queued`, `rq_in_driver` and `sync_flight` of `cfq_data`. The difference between
//! the last two is where they begin: at the disk, or already in the dispatch list. The number
//! of busy queues is where their order is.

/// The totals.
#[derive(Debug, Default)]
pub(in crate::scheduler) struct Counts {
    queued: u32,
    in_driver: u32,
    sync_flight: u32,
}

impl Counts {
    /// Requests in queues.
    #[inline]
    pub fn queued(&self) -> u32 {
        self.queued
    }

    /// Requests that the disk has taken.
    #[inline]
    pub fn in_driver(&self) -> u32 {
        self.in_driver
    }

    /// A synchronous request is chosen and has not completed.
    #[inline]
    pub fn has_sync_flight(&self) -> bool {
        self.sync_flight > 0
    }

    #[inline]
    pub fn inserted(&mut self) {
        self.queued += 1;
    }

    /// A request leaves its queue: merged, or to be dispatched.
    #[inline]
    pub fn removed(&mut self) {
        self.queued -= 1;
    }

    /// A removed request is to be dispatched.
    #[inline]
    pub fn chosen(&mut self, sync: bool) {
        self.sync_flight += u32::from(sync);
    }

    /// The disk takes a request.
    #[inline]
    pub fn taken(&mut self) {
        self.in_driver += 1;
    }

    /// A request completes.
    #[inline]
    pub fn completed(&mut self, sync: bool) {
        self.in_driver -= 1;
        self.sync_flight -= u32::from(sync);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_counted_where_it_is() {
        let mut counts = Counts::default();
        counts.inserted();
        counts.inserted();
        counts.removed();
        counts.chosen(true);
        assert_eq!((counts.queued(), counts.in_driver(), counts.has_sync_flight()), (1, 0, true));
        counts.taken();
        assert_eq!(counts.in_driver(), 1);
        counts.completed(true);
        assert_eq!((counts.queued(), counts.in_driver(), counts.has_sync_flight()), (1, 0, false));
    }

    #[test]
    fn asynchronous_requests_hold_back_no_others() {
        let mut counts = Counts::default();
        counts.inserted();
        counts.removed();
        counts.chosen(false);
        assert!(!counts.has_sync_flight());
    }
}
