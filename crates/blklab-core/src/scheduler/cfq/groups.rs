//! Charges to groups for the turns of their queues ([`shares`](super::parts::shares)).

use super::Cfq;
use super::kinds::QueueId;

/// A group that becomes busy is placed this far behind the last one (`CFQ_SLICE_MODE_GROUP_DELAY`).
const GROUP_DELAY: i64 = 200_000_000;

impl Cfq {
    /// Time cannot be measured where the disk queues commands and does not idle. There, groups
    /// share requests instead (`iops_mode`).
    fn counts_requests(&self) -> bool {
        self.tuned.slice_idle == 0 && self.queueing.may_queue()
    }

    /// `cfq_group_notify_queue_add`
    pub(super) fn group_gains_queue(&mut self, group: usize) {
        let delay = if self.counts_requests() { self.limits.ticks.hz() as i64 / 5 } else { GROUP_DELAY };
        self.shares.becomes_busy(group, delay);
    }

    /// `cfq_group_notify_queue_del`
    pub(super) fn group_loses_queue(&mut self, group: usize) {
        if self.trees.busy(group) == 0 {
            self.shares.becomes_idle(group);
            self.workload.lose_rest(group);
        }
    }

    /// Charges the queue's turn to its group (`cfq_group_served`).
    pub(super) fn charge(&mut self, q: QueueId) {
        let queue = &self.queues[q];
        let charge = if self.counts_requests() {
            queue.slice.requests()
        } else if !queue.sync && self.trees.busy_sync(queue.group) == 0 {
            queue.slice.length()
        } else {
            queue.slice.used(self.now, self.tick)
        };
        self.shares.served(queue.group, charge);
        self.workload.keep_rest(queue.group, self.now);
    }
}
