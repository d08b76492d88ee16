//! Queues become busy, and are put in the order of service.

use super::Cfq;
use super::cooperate::next_of;
use super::kinds::{Class, QueueId};
use super::parts::service_trees::Due;

impl Cfq {
    /// Inserts the queue at its due time (`cfq_service_tree_add`): now, later for a low priority
    /// and more queues, earlier by the rest of its last slice; or before all others.
    pub(super) fn schedule(&mut self, q: QueueId, front: bool) {
        let queue = &mut self.queues[q];
        let group = queue.group;
        let due = if queue.class == Class::Idle {
            Due::Last
        } else if front {
            Due::First
        } else {
            let others = i64::from(self.trees.busy(group)) - 1;
            let lag = self.lengths.lag(queue.sync, queue.level, others);
            Due::At(lag.wrapping_add(self.now).wrapping_sub(queue.slice.take_rest()))
        };
        if self.trees.schedule(q, group, (queue.class, queue.kind()), due, self.now) {
            self.group_gains_queue(group);
        }
    }

    /// The queue has requests now (`cfq_add_cfqq_rr`).
    pub(super) fn add_busy(&mut self, q: QueueId) {
        self.counts.queue_becomes_busy(self.queues[q].sync);
        self.reschedule(q);
    }

    /// The queue is empty, and its turn is over (`cfq_del_cfqq_rr`).
    pub(super) fn remove_busy(&mut self, q: QueueId) {
        let queue = &self.queues[q];
        self.trees.remove(q);
        self.positions.leave(q, usize::from(queue.level));
        self.counts.queue_becomes_idle(queue.sync);
        self.group_loses_queue(queue.group);
    }

    /// The busy queue gets its place by its state now (`cfq_resort_rr_list`).
    pub(super) fn reschedule(&mut self, q: QueueId) {
        self.schedule(q, false);
        self.note_position(q);
    }

    /// Lists the queue by the sector of its next request, to find cooperators; not if another queue
    /// is listed at that sector (`cfq_prio_tree_add`).
    pub(super) fn note_position(&mut self, q: QueueId) {
        let queue = &self.queues[q];
        let (may_be_found, level) = (queue.class != Class::Idle, usize::from(queue.level));
        let Cfq { positions, queues, requests, .. } = self;
        positions.set(q, level, may_be_found, |other| next_of(queues, requests, other));
    }
}
