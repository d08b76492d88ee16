//! Busy queues in the order of service.

use super::Cfq;
use super::state::{Class, QueueId, TREES, tree_of};

/// A queue of the idle class is placed this far behind the last queue (`CFQ_IDLE_DELAY`).
const IDLE_DELAY: i64 = 200_000_000;
/// A preempting queue is placed this far before the first queue.
const FRONT: i64 = 1_000_000_000;

impl Cfq {
    /// Inserts the queue at its due time (`cfq_service_tree_add`): now, later for a low priority
    /// and more queues, earlier by the rest of its last slice.
    pub(super) fn schedule(&mut self, q: QueueId, front: bool) {
        let queue = &self.queues[q];
        let (class, group) = (queue.class, queue.group);
        let tree = tree_of(class, queue.kind());
        let set = &self.groups[group].trees[tree].set;
        let key = if class == Class::Idle {
            let last = self.service.last(set).filter(|&last| last as usize != q);
            IDLE_DELAY + last.map_or(self.now, |last| self.service.key(last))
        } else if front {
            self.service.first(set).map_or(self.now, |first| self.service.key(first)) - FRONT
        } else {
            let residual = std::mem::take(&mut self.queues[q].residual);
            self.slice_offset(q).wrapping_add(self.now).wrapping_sub(residual)
        };
        let was = self.queues[q].tree;
        if was == Some(tree) && self.service.key(q as u32) == key {
            return;
        }
        self.unschedule(q);
        let to = &mut self.groups[group].trees[tree];
        self.service.insert(&mut to.set, key, q as u32);
        to.count += 1;
        self.queues[q].tree = Some(tree);
        if !front && was.is_none() {
            self.group_gains_queue(group);
        }
    }

    fn unschedule(&mut self, q: QueueId) {
        let queue = &mut self.queues[q];
        if let Some(tree) = queue.tree.take() {
            let from = &mut self.groups[queue.group].trees[tree];
            self.service.remove(&mut from.set, q as u32);
            from.count -= 1;
        }
    }

    /// A low priority is due later than a high one (`cfq_slice_offset`).
    fn slice_offset(&self, q: QueueId) -> i64 {
        let queue = &self.queues[q];
        let others = i64::from(self.groups[queue.group].queues) - 1;
        others.wrapping_mul(self.prio_slice(true, 0) - self.prio_slice(queue.sync, queue.level))
    }

    /// The queue has requests now (`cfq_add_cfqq_rr`).
    pub(super) fn add_busy(&mut self, q: QueueId) {
        let queue = &mut self.queues[q];
        queue.on_rr = true;
        self.counts.queue_becomes_busy(queue.sync);
        self.reschedule(q);
    }

    /// The queue is empty, and its turn is over (`cfq_del_cfqq_rr`).
    pub(super) fn remove_busy(&mut self, q: QueueId) {
        self.queues[q].on_rr = false;
        self.unschedule(q);
        self.positions.leave(q, self.queues[q].level);
        self.group_loses_queue(self.queues[q].group);
        self.counts.queue_becomes_idle(self.queues[q].sync);
    }

    /// `cfq_resort_rr_list`
    pub(super) fn reschedule(&mut self, q: QueueId) {
        if self.queues[q].on_rr {
            self.schedule(q, false);
            self.note_position(q);
        }
    }

    /// Lists the queue by the sector of its next request, to find cooperators; not if another queue
    /// is listed at that sector (`cfq_prio_tree_add`).
    pub(super) fn note_position(&mut self, q: QueueId) {
        let queue = &self.queues[q];
        let next = queue.next.filter(|_| queue.class != Class::Idle);
        let sector = next.map(|next| self.slots[next.index()].sector.0);
        self.positions.set(q, queue.level, sector);
    }

    /// The queue of the chosen workload type that is due first (`cfq_get_next_queue`).
    pub(super) fn first_due(&self) -> Option<QueueId> {
        let group = self.serving_group.filter(|_| self.counts.queued() > 0)?;
        let tree = tree_of(self.serving_class, self.serving_kind);
        debug_assert!(tree < TREES);
        self.service.first(&self.groups[group].trees[tree].set).map(|q| q as usize)
    }
}
