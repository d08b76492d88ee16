//! A request arrives: what is known of its process, and whether it preempts the active queue.

use super::Cfq2008;
use super::parts::service_tree::Due;
use super::queue::QueueId;
use crate::request::{RequestId, RequestSlab};
use crate::scheduler::journal::{Decision, EndReason, IdleEnd};
use crate::scheduler::shared::linux_2_6_28::requests::Origin;
use crate::scheduler::shared::linux_2_6_28::tasks::TaskIndex;

impl Cfq2008 {
    /// A new request waits (`cfq_rq_enqueued`).
    pub(super) fn enqueued(&mut self, id: RequestId, requests: &RequestSlab) {
        let Origin { queue: q, task, sync, .. } = self.requests.origin(id);
        let area = (requests[id].sector, requests[id].end());
        self.tasks.request(task, self.tick, self.tuned.slice_idle, area);
        self.decide_idling(q, task);
        if self.active == Some(q) {
            self.stop_timer(IdleEnd::Request);
        } else if self.should_preempt(q, sync, area.0.0) {
            self.preempt(q);
        }
    }

    /// No idling for a process that has exited, with a long think time, or that seeks on a disk that
    /// queues commands (`cfq_update_idle_window`).
    fn decide_idling(&mut self, q: QueueId, task: TaskIndex) {
        let slice_idle = self.tuned.slice_idle;
        let in_vain = self.queueing.is_queueing() && self.tasks.seeks(task).is_seeky();
        let never = slice_idle == 0 || in_vain || self.tasks.has_exited(task);
        let longer = self.tasks.think_time(task).is_longer(slice_idle);
        self.queues[q].window.request(never, longer);
    }

    /// Whether a request of `new` at `sector` ends the turn of the active queue
    /// (`cfq_should_preempt`).
    fn should_preempt(&self, new: QueueId, sync: bool, sector: u64) -> bool {
        let Some(active) = self.active.map(|q| &self.queues[q]) else { return false };
        if active.slice.is_used(self.tick) {
            return true;
        }
        if self.queues[new].is_idle_class() {
            return false;
        }
        if active.is_idle_class() || sync && !active.sync {
            return true;
        }
        // The request is as good as the one that the disk idles for (`cfq_rq_close`).
        let distance = sector.abs_diff(self.outgoing.head().0);
        let is_near = |task| self.tasks.seeks(task).is_as_near(distance);
        self.idling.waits() && self.active_task.is_some_and(is_near)
    }

    /// The queue is served next (`cfq_preempt_queue`).
    fn preempt(&mut self, q: QueueId) {
        if let Some(active) = self.active {
            let process = self.queues[active].process;
            self.note(q, Decision::Preempts { process });
        }
        self.expire(true, EndReason::Preempted);
        let queue = &mut self.queues[q];
        // One of the idle class goes behind all others even so.
        let due = if queue.is_idle_class() { Due::Last } else { Due::First };
        self.tree.schedule(q, queue.priority.class(), due, self.tick);
        queue.slice.renew();
    }
}
