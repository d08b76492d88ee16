//! A request completes.

use super::Cfq;
use super::parts::queueing::QUEUE_MIN;
use super::state::{Class, QueueId, Slot, State, tree_of};
use crate::request::{Request, RequestId};
use crate::scheduler::journal::EndReason;
use crate::units::Nanos;

impl Cfq {
    /// The request is freed (`cfq_put_request`).
    pub(super) fn ended(&mut self, id: RequestId, request: &Request) {
        let slot = self.slots[id.index()];
        if slot.state == State::Driver {
            self.account(slot, request);
        }
        self.slots[id.index()].state = State::Absent;
        self.queues[slot.queue].requests -= 1;
        self.free_if_unused(slot.queue);
    }

    /// `cfq_completed_request`
    fn account(&mut self, slot: Slot, request: &Request) {
        let q = slot.queue;
        self.look_at_depth();
        let queue = &mut self.queues[q];
        queue.dispatched -= 1;
        self.counts.completed(queue.sync);
        let group = &mut self.groups[queue.group];
        group.dispatched -= 1;
        if slot.sync {
            self.contexts[slot.context].think.ended(self.now);
            let tree = queue.tree.unwrap_or_else(|| tree_of(queue.class, queue.kind()));
            group.trees[tree].think.ended(self.now);
        }
        group.think.ended(self.now);
        if slot.sync && self.was_late(request) {
            self.last_delayed_sync = self.now;
        }
        if self.active == Some(q) {
            self.active_queue_served(q, slot.sync);
        }
    }

    /// Does the disk queue commands (`cfq_update_hw_tag`)?
    fn look_at_depth(&mut self) {
        let in_driver = self.counts.in_driver();
        let active = self.active.map(|q| &self.queues[q]);
        // A queue that the disk idles for keeps the disk from being filled.
        let is_starved = || {
            active.is_some_and(|queue| {
                let own = queue.dispatched + queue.sorted.len() as u32;
                queue.flags.idle_window && own < QUEUE_MIN && in_driver < QUEUE_MIN
            })
        };
        self.queueing.completed(in_driver, self.counts.queued(), is_starved);
    }

    /// The request took longer than its FIFO time; counted in ticks.
    fn was_late(&self, request: &Request) -> bool {
        let ticks = self.limits.ticks;
        let allowed = self.tuned.fifo_expire[1] / self.tick;
        ticks.at(request.inserted) + allowed <= ticks.at(Nanos(self.now as u64))
    }

    /// Continues the turn with idling, or ends it.
    fn active_queue_served(&mut self, q: QueueId, sync: bool) {
        if self.queues[q].flags.slice_new {
            self.begin_slice(q);
        }
        if self.should_wait_busy(q) {
            let idle = match self.tuned.slice_idle {
                0 => self.tuned.group_idle,
                idle => idle,
            };
            self.queues[q].slice_end = self.now + idle as i64;
            self.queues[q].flags.wait_busy = true;
        }
        let queue = &self.queues[q];
        if queue.slice_used(self.now) || queue.class == Class::Idle {
            self.expire(true, EndReason::TimeOut);
        } else if sync && queue.is_empty() && self.close_cooperator(q).is_none() {
            self.begin_idling(q);
        }
    }
}
