//! How many of the disk queue's requests a process may use.
//!
//! The queue has `nr_requests` requests. Without limits, asynchronous requests and writes would use all
//! of them, and reads would wait for a free request before BFQ sees them and can choose among them. A
//! process beyond its weight's share would do the same.
//!
//! * Synchronous reads may use all requests.
//! * Synchronous writes may use the whole depth, asynchronous requests two thirds of it.
//! * While a weight-raised queue is busy, the two limits are a half and a quarter of the depth.
//! * For a process whose queue or group has used its weight's share, the limit is one, whatever the
//!   request. B-WF2Q+ knows that (`is_over_limit`).
//!
//! The state is `nr_requests` and the four limits, computed once, when the queue gets its scheduler.
//! Nothing changes them during a run; the block layer asks for the limit before it allocates a request.
//!
//! Follows `bfq_depth_updated` and `bfq_limit_depth` of Linux 7.3. Versions before 7.0 have other limits, those before 4.16 none. Left out: a change of `nr_requests`
//! or `async_depth` during a run, which no rig makes.

use crate::request::Op;
use crate::scheduler::QueueLimits;

/// The tags of a SATA adapter, whatever its disk has.
const ADAPTER_TAGS: u32 = 32;
/// The default of `nr_requests` is at most twice this (`BLKDEV_DEFAULT_RQ`).
const DEFAULT_REQUESTS: u32 = 128;

/// The limits for writes and asynchronous requests.
#[derive(Clone, Copy, Debug)]
pub(in crate::scheduler::bfq) struct Depths {
    nr_requests: u32,
    /// First without, then with a busy weight-raised queue; each: async, sync.
    limits: [[u32; 2]; 2],
}

impl Depths {
    /// `bfq_depth_updated`.
    ///
    /// 7.3 computes the limits before it sets the queue's `async_depth` to three quarters of
    /// `nr_requests`. So they depend on the previous scheduler's depth: `mq-deadline`, the default
    /// of a single hardware queue, leaves all requests; `none` leaves the tags. A write to
    /// `nr_requests` changes that.
    pub fn new(queue: &QueueLimits) -> Depths {
        let nr_requests = queue.nr_requests;
        if !queue.kernel.bfq_limits_requests {
            return Depths::with(nr_requests, [[nr_requests; 2]; 2]);
        }
        if !queue.kernel.bfq_limits_follow_async_depth {
            return Depths::of_requests(nr_requests);
        }
        let single = queue.hw_queues == 1;
        let tags = if single { queue.queue_depth.max(ADAPTER_TAGS) } else { queue.queue_depth };
        let unchanged = nr_requests == 2 * tags.min(DEFAULT_REQUESTS);
        let depth = match (unchanged, single) {
            (true, true) => nr_requests,
            (true, false) => tags,
            (false, _) => (nr_requests * 3) >> 2,
        };
        Depths::with(nr_requests, [[depth * 2 / 3, depth], [depth >> 2, depth >> 1]])
    }

    /// Before 7.0: parts of `nr_requests` (`bfq_update_depths`).
    fn of_requests(nr: u32) -> Depths {
        Depths::with(nr, [[nr >> 1, (nr * 3) >> 2], [(nr * 3) >> 4, (nr * 6) >> 4]])
    }

    fn with(nr_requests: u32, limits: [[u32; 2]; 2]) -> Depths {
        Depths { nr_requests, limits: limits.map(|pair| pair.map(|limit| limit.max(1))) }
    }

    /// The number of requests that may be in use before another of this kind. `raised`: a
    /// weight-raised queue is busy.
    #[inline]
    pub fn limit(&self, op: Op, sync: bool, raised: bool) -> u32 {
        if sync && !op.is_write() {
            self.nr_requests
        } else {
            self.limits[usize::from(raised)][usize::from(sync)]
        }
    }

    /// What the tags are told of a limit: nothing if it allows all requests.
    #[inline]
    pub fn passed_to_tags(&self, limit: u32) -> u32 {
        if limit < self.nr_requests { limit } else { u32::MAX }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Kernel;
    use crate::scheduler::testing::limits;

    /// Limits of reads, synchronous writes and asynchronous writes.
    fn limits_of(queue: &QueueLimits, raised: bool) -> [u32; 3] {
        let depths = Depths::new(queue);
        [(Op::Read, true), (Op::Write, true), (Op::Write, false)]
            .map(|(op, sync)| depths.limit(op, sync, raised))
    }

    #[test]
    fn reads_get_all_requests_and_writes_fewer_while_a_raised_queue_is_busy() {
        // Two hardware queues: nr_requests is twice the tags, and the depth is the tags.
        assert_eq!(limits_of(&limits(), false), [64, 32, 21]);
        assert_eq!(limits_of(&limits(), true), [64, 16, 8]);
    }

    #[test]
    fn a_changed_number_of_requests_brings_three_quarters_of_it() {
        let changed = QueueLimits { nr_requests: 100, ..limits() };
        assert_eq!(limits_of(&changed, false), [100, 75, 50]);
        assert_eq!(limits_of(&changed, true), [100, 37, 18]);
    }

    #[test]
    fn before_linux_7_limits_are_parts_of_the_number_of_requests() {
        let older = QueueLimits { kernel: Kernel::of(6012), ..limits() };
        assert_eq!(limits_of(&older, false), [64, 48, 32]);
        assert_eq!(limits_of(&older, true), [64, 24, 12]);
        assert_eq!(limits_of(&QueueLimits { nr_requests: 2, ..older }, true), [2, 1, 1]);
    }

    #[test]
    fn the_tags_are_told_only_limits_below_the_number_of_requests() {
        let depths = Depths::new(&limits());
        assert_eq!([1, 63, 64].map(|limit| depths.passed_to_tags(limit)), [1, 63, u32::MAX]);
    }

    #[test]
    fn at_least_one_request_is_allowed() {
        let few = QueueLimits { nr_requests: 1, ..limits() };
        assert_eq!(limits_of(&few, true), [1, 1, 1]);
    }
}
