//! How many asynchronous requests may be in flight at once, with `low_latency`.
//!
//! Many writes in the disk's own queue delay the next read, whatever the scheduler does with it. So
//! after a synchronous request was late, only one asynchronous request is in flight, and one more
//! for each `slice_sync` that passes without another late one.
//!
//! Follows `last_delayed_sync` and `cfq_may_dispatch` of Linux 4.12. A request is late if it took
//! longer than its FIFO time from its insertion to its completion (`cfq_completed_request`).

use super::super::kinds::Instant;

/// The time since the last late request.
#[derive(Debug)]
pub(in crate::scheduler::cfq) struct AsyncDepth {
    slice_sync: u64,
    last_late: Instant,
}

impl AsyncDepth {
    /// As if no request had been late for a second.
    pub fn new(slice_sync: u64) -> AsyncDepth {
        AsyncDepth { slice_sync, last_late: -1_000_000_000 }
    }

    /// A synchronous request completes late.
    pub fn sync_was_late(&mut self, now: Instant) {
        self.last_late = now;
    }

    /// The limit of a queue with `in_flight` requests in flight; it is at least one if none is in flight.
    pub fn limit(&self, now: Instant, in_flight: u32) -> u32 {
        let depth = ((now - self.last_late) as u64 / self.slice_sync) as u32;
        if depth == 0 && in_flight == 0 { 1 } else { depth }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLICE: u64 = 100_000_000;

    #[test]
    fn the_limit_grows_with_each_slice_since_a_request_was_late() {
        let mut depth = AsyncDepth::new(SLICE);
        assert_eq!(depth.limit(0, 0), 10, "a second before the run");
        depth.sync_was_late(1000);
        let after = |slices: u64| depth.limit(1000 + (slices * SLICE) as Instant, 1);
        assert_eq!([0, 1, 5].map(after), [0, 1, 5]);
    }

    #[test]
    fn one_request_may_always_go() {
        let mut depth = AsyncDepth::new(SLICE);
        depth.sync_was_late(1000);
        assert_eq!((depth.limit(1000, 0), depth.limit(1000, 1)), (1, 0));
    }
}
