//! The number of busy queues, and of requests that wait or are in flight: totals for CFQ's
//! decisions.
//!
//! A queue is busy from its first request until its turn has ended without one. A request is queued
//! from its insertion until it leaves its queue; then it is in flight, counted by the kind of its
//! queue, until it completes (`rq_in_flight`). Once the disk has taken it, it also counts as in the
//! driver (`rq_in_driver`).

/// The totals.
#[derive(Debug, Default)]
pub(in crate::scheduler::cfq) struct Counts {
    busy: u32,
    busy_sync: u32,
    queued: u32,
    in_driver: u32,
    /// Asynchronous and synchronous.
    in_flight: [u32; 2],
}

impl Counts {
    /// Busy queues.
    #[inline]
    pub fn busy(&self) -> u32 {
        self.busy
    }

    /// Busy queues of synchronous requests.
    #[inline]
    pub fn busy_sync(&self) -> u32 {
        self.busy_sync
    }

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

    /// Requests of asynchronous or synchronous queues that have left their queues and have not
    /// completed.
    #[inline]
    pub fn in_flight(&self, sync: bool) -> u32 {
        self.in_flight[usize::from(sync)]
    }

    pub fn queue_becomes_busy(&mut self, sync: bool) {
        self.busy += 1;
        self.busy_sync += u32::from(sync);
    }

    pub fn queue_becomes_idle(&mut self, sync: bool) {
        self.busy -= 1;
        self.busy_sync -= u32::from(sync);
    }

    pub fn inserted(&mut self) {
        self.queued += 1;
    }

    /// A request leaves its queue: merged, or to be dispatched.
    pub fn removed(&mut self) {
        self.queued -= 1;
    }

    /// A removed request of such a queue is going to the disk.
    pub fn sent(&mut self, sync: bool) {
        self.in_flight[usize::from(sync)] += 1;
    }

    /// The disk takes a request.
    pub fn taken(&mut self) {
        self.in_driver += 1;
    }

    /// A request completes.
    pub fn completed(&mut self, sync: bool) {
        self.in_driver -= 1;
        self.in_flight[usize::from(sync)] -= 1;
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
        counts.sent(true);
        counts.taken();
        assert_eq!((counts.queued(), counts.in_driver()), (1, 1));
        assert_eq!((counts.in_flight(false), counts.in_flight(true)), (0, 1));
        counts.completed(true);
        assert_eq!((counts.queued(), counts.in_driver(), counts.in_flight(true)), (1, 0, 0));
    }

    #[test]
    fn synchronous_queues_are_counted_among_the_busy_ones() {
        let mut counts = Counts::default();
        counts.queue_becomes_busy(true);
        counts.queue_becomes_busy(false);
        assert_eq!((counts.busy(), counts.busy_sync()), (2, 1));
        counts.queue_becomes_idle(true);
        assert_eq!((counts.busy(), counts.busy_sync()), (1, 0));
    }
}
