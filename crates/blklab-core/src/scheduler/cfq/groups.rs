//! Charges to groups for the turns of their queues ([`shares`](super::parts::shares)).

use super::Cfq;
use super::state::{Class, QueueId};

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
        self.groups[group].queues += 1;
        let delay = if self.counts_requests() { self.limits.ticks.hz() as i64 / 5 } else { GROUP_DELAY };
        self.shares.becomes_busy(group, delay);
    }

    /// `cfq_group_notify_queue_del`
    pub(super) fn group_loses_queue(&mut self, group: usize) {
        self.groups[group].queues -= 1;
        if self.groups[group].queues == 0 {
            self.shares.becomes_idle(group);
            self.groups[group].saved = None;
        }
    }

    /// Charges the queue's turn to its group (`cfq_group_served`).
    pub(super) fn charge(&mut self, q: QueueId) {
        let queue = &self.queues[q];
        let index = queue.group;
        let group = &self.groups[index];
        let sync = group.queues - group.busy_async() - group.busy(Class::Idle);
        let charge = if self.counts_requests() {
            queue.slice_dispatch
        } else if !queue.sync && sync == 0 {
            queue.allocated_slice
        } else {
            self.used(q)
        };
        self.shares.served(index, charge);
        let left = self.workload_expires - self.now;
        let serving = (left as u64, self.serving_class, self.serving_kind);
        self.groups[index].saved = (left > 0).then_some(serving);
    }

    /// The time of the turn, at most its slice; if no request has completed yet, the time since its
    /// start and at least a tick (`cfq_cfqq_slice_usage`).
    fn used(&self, q: QueueId) -> u64 {
        let queue = &self.queues[q];
        match queue.slice_start.filter(|&start| start != self.now) {
            None => ((self.now - queue.dispatch_start) as u64).max(self.tick),
            Some(start) => ((self.now - start) as u64).min(queue.allocated_slice),
        }
    }
}
