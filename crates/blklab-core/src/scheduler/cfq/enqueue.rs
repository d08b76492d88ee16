//! A request comes, and perhaps preempts the active queue.

use super::Cfq;
use super::kinds::{Class, Kind, QueueId};
use super::parts::requests::Origin;
use crate::request::{Request, RequestId};
use crate::scheduler::journal::{Decision, EndReason};

impl Cfq {
    /// Updates the state for a request that now waits in its queue (`cfq_rq_enqueued`).
    pub(super) fn enqueued(&mut self, id: RequestId, request: &Request) {
        let origin = self.requests.origin(id);
        let q = origin.queue;
        self.counts.inserted();
        self.learn_from(origin, request);
        self.update_idle_window(q, origin.context);
        self.queues[q].seeks.set_end(request.end());
        if self.active == Some(q) {
            self.idled_for(q, request.sectors);
        } else if self.should_preempt(q, request, origin.sync) {
            self.preempt(q);
        }
    }

    /// Updates think time and seek history of the request's process (`cfq_update_io_thinktime`,
    /// `cfq_update_io_seektime`).
    fn learn_from(&mut self, Origin { queue: q, context, .. }: Origin, request: &Request) {
        let (now, idle) = (self.now, self.tuned.slice_idle);
        let queue = &mut self.queues[q];
        if queue.sync {
            self.contexts.request(context, now, idle);
            self.trees.request(q, now, idle);
        }
        self.groups.request(queue.group, now, self.tuned.group_idle);
        queue.seeks.request(request.sector, request.sectors, self.limits.rotational);
    }

    /// Whether the queue preempts the active queue (`cfq_should_preempt`).
    fn should_preempt(&self, q: QueueId, request: &Request, sync: bool) -> bool {
        let Some(active) = self.active else { return false };
        let (new, old) = (&self.queues[q], &self.queues[active]);
        if new.class == Class::Idle {
            return false;
        }
        if old.class == Class::Idle {
            return true;
        }
        let (new_rt, old_rt) = (new.class == Class::RealTime, old.class == Class::RealTime);
        if old_rt && !new_rt {
            return false;
        }
        if sync && !old.sync && !old.slice.must_dispatch() {
            return true;
        }
        // No preemption between groups, except for the rules above.
        if !self.shares.is_within(old.group, new.group) {
            return false;
        }
        if old.slice.is_used(self.now) || new_rt && !old_rt {
            return true;
        }
        // The sync-noidle queues are served as one.
        let as_one = self.workload.kind() == Kind::SyncNoIdle && new.kind() == Kind::SyncNoIdle;
        if old.backlog.is_empty() && (as_one || !self.should_idle(active)) {
            return true;
        }
        // As good as the request that the disk idles for.
        self.active_context.is_some() && self.idling.waits() && self.is_close(request.sector)
    }

    /// `cfq_preempt_queue`
    fn preempt(&mut self, q: QueueId) {
        let Some(active) = self.active else { return };
        let old_kind = self.queues[active].kind();
        self.note(q, Decision::Preempts { process: self.queues[active].process });
        self.expire(true, EndReason::Preempted);
        let queue = &self.queues[q];
        // The workload type changes: the rest of the old type's turn does not come first.
        if old_kind != queue.kind() {
            self.workload.lose_rest(queue.group);
        }
        self.schedule(q, true);
        self.queues[q].slice.renew();
    }
}
