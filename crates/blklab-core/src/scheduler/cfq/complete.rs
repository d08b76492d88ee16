//! A request completes.

use super::Cfq;
use super::kinds::{Class, QueueId};
use super::parts::queueing::QUEUE_MIN;
use super::parts::requests::Origin;
use crate::request::{Request, RequestId};
use crate::scheduler::journal::EndReason;
use crate::units::Nanos;

impl Cfq {
    /// The request is freed (`cfq_put_request`).
    pub(super) fn ended(&mut self, id: RequestId, request: &Request) {
        let origin = self.requests.origin(id);
        if self.requests.free(id) {
            self.account(origin, request);
        }
        self.sharing.request_gone(origin.queue);
        self.free_if_unused(origin.queue);
    }

    /// `cfq_completed_request`
    fn account(&mut self, Origin { queue: q, context, sync, .. }: Origin, request: &Request) {
        self.look_at_depth();
        let queue = &mut self.queues[q];
        queue.backlog.completed();
        self.counts.completed(queue.sync);
        self.groups.completed(queue.group, self.now);
        if sync {
            self.contexts.completed(context, self.now);
            self.trees.completed(q, queue.group, (queue.class, queue.kind()), self.now);
            if self.was_late(request) {
                self.async_depth.sync_was_late(self.now);
            }
        }
        if self.active == Some(q) {
            self.active_queue_served(q, sync);
        }
    }

    /// Does the disk queue commands (`cfq_update_hw_tag`)?
    fn look_at_depth(&mut self) {
        let in_driver = self.counts.in_driver();
        let active = self.active.map(|q| &self.queues[q]);
        // A queue that the disk idles for keeps the disk from being filled.
        let is_starved = || {
            active.is_some_and(|queue| {
                let own = queue.backlog.in_flight() + queue.backlog.len() as u32;
                queue.window.is_open() && own < QUEUE_MIN && in_driver < QUEUE_MIN
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
        if self.queues[q].slice.is_new() {
            self.begin_slice(q);
        }
        if self.should_wait_busy(q) {
            let idle = match self.tuned.slice_idle {
                0 => self.tuned.group_idle,
                idle => idle,
            };
            self.queues[q].slice.extend(self.now + idle as i64);
        }
        let queue = &self.queues[q];
        if queue.slice.is_used(self.now) || queue.class == Class::Idle {
            self.expire(true, EndReason::TimeOut);
        } else if sync && queue.backlog.is_empty() && self.close_cooperator(q).is_none() {
            self.begin_idling(q);
        }
    }
}
