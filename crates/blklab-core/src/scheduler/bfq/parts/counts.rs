//! The number of waiting requests and of requests in flight (`queued` and `tot_rq_in_driver` of
//! `bfq_data`); and the hardware queues that BFQ still has to run (`bfq_schedule_dispatch`).
//!
//! A request counts as waiting from its insertion to its dispatch or merge, and as in the driver
//! from its dispatch to its completion. When the disk becomes idle while requests wait, or a queue
//! in service is freed, all hardware queues run again, one after the other.

/// Requests by state.
#[derive(Debug)]
pub(in crate::scheduler::bfq) struct Counts {
    waiting: u32,
    in_driver: u32,
    hw_queues: u16,
    /// The next hardware queue to run; `hw_queues` or more: none.
    to_wake: u16,
}

impl Counts {
    pub fn new(hw_queues: u16) -> Counts {
        Counts { waiting: 0, in_driver: 0, hw_queues, to_wake: u16::MAX }
    }

    /// The number of waiting requests.
    #[inline]
    pub fn waiting(&self) -> u32 {
        self.waiting
    }

    /// The number of requests in flight.
    #[inline]
    pub fn in_driver(&self) -> u32 {
        self.in_driver
    }

    #[inline]
    pub fn inserted(&mut self) {
        self.waiting += 1;
    }

    #[inline]
    pub fn removed(&mut self) {
        self.waiting -= 1;
    }

    #[inline]
    pub fn dispatched(&mut self) {
        self.in_driver += 1;
    }

    #[inline]
    pub fn completed(&mut self) {
        self.in_driver -= 1;
    }

    /// Runs all hardware queues if any request waits.
    pub fn run_hw_queues(&mut self) {
        if self.waiting > 0 {
            self.to_wake = 0;
        }
    }

    /// The next hardware queue to run.
    pub fn pop_woken(&mut self) -> Option<u16> {
        let next = self.to_wake;
        if next >= self.hw_queues {
            return None;
        }
        self.to_wake += 1;
        Some(next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_hardware_queue_is_woken_once_and_only_if_requests_wait() {
        let mut counts = Counts::new(2);
        counts.run_hw_queues();
        assert_eq!(counts.pop_woken(), None);
        counts.inserted();
        assert_eq!(counts.pop_woken(), None);
        counts.run_hw_queues();
        assert_eq!(std::iter::from_fn(|| counts.pop_woken()).collect::<Vec<_>>(), [0, 1]);
    }

    #[test]
    fn a_request_is_counted_from_insertion_to_completion() {
        let mut counts = Counts::new(1);
        counts.inserted();
        counts.inserted();
        counts.removed();
        counts.dispatched();
        assert_eq!((counts.waiting(), counts.in_driver()), (1, 1));
        counts.completed();
        assert_eq!((counts.waiting(), counts.in_driver()), (1, 0));
    }
}
