//! How many of the queue's requests a process may use.
//!
//! Asynchronous requests and writes would else take all of them, and reads would wait for a
//! request before BFQ ever sees them; so would a process that has more than its weight's share.

use super::Bfq;
use super::tasks::task_index;
use crate::request::{Op, ProcessId};
use crate::scheduler::QueueLimits;

/// A SATA adapter's, whatever its disk takes.
const ADAPTER_TAGS: u32 = 32;
/// Twice as many requests are there at most without being asked for (`BLKDEV_DEFAULT_RQ`).
const DEFAULT_REQUESTS: u32 = 128;

/// Most requests for writes and asynchronous requests.
#[derive(Clone, Copy, Debug)]
pub(super) struct Depths {
    nr_requests: u32,
    /// While no raised queue is busy, and while one is: async, sync.
    limits: [[u32; 2]; 2],
}

impl Depths {
    /// `bfq_depth_updated`.
    ///
    /// 7.3 works the limits out before it sets the queue's `async_depth` to three quarters of
    /// `nr_requests`. So they are by what the scheduler before it had: `mq-deadline`, which is set
    /// on a single hardware queue, all requests, `none` the tags. That changes when
    /// `nr_requests` is written.
    pub fn new(queue: &QueueLimits) -> Depths {
        let nr_requests = queue.nr_requests;
        let single = queue.hw_queues == 1;
        let tags = if single { queue.queue_depth.max(ADAPTER_TAGS) } else { queue.queue_depth };
        let unchanged = nr_requests == 2 * tags.min(DEFAULT_REQUESTS);
        let depth = match (unchanged, single) {
            (true, true) => nr_requests,
            (true, false) => tags,
            (false, _) => (nr_requests * 3) >> 2,
        };
        let limits = [[depth * 2 / 3, depth], [depth >> 2, depth >> 1]];
        Depths { nr_requests, limits: limits.map(|pair| pair.map(|limit| limit.max(1))) }
    }
}

impl Bfq {
    /// `bfq_limit_depth`.
    pub(super) fn limit_for(&self, process: ProcessId, op: Op, sync: bool) -> u32 {
        let limit = if sync && !op.is_write() {
            self.depths.nr_requests
        } else {
            self.depths.limits[usize::from(self.wf2q.raised_busy() > 0)][usize::from(sync)]
        };
        let own = self.tasks.get(task_index(process).index()).and_then(|task| task.queues[usize::from(sync)]);
        if own.is_some_and(|q| self.wf2q.is_over_limit(q, limit)) { 1 } else { limit }
    }
}
