//! Requests in their queues: assignment, order, and what that changes in the order of service.

use super::Bfq2008;
use super::parts::QueueId;
use super::queue::ProcessQueue;
use crate::request::{RequestId, RequestSlab};
use crate::scheduler::Queue;
use crate::scheduler::journal::IdleEnd;
use crate::scheduler::shared::linux_2_6_28::is_sync;
use crate::scheduler::shared::linux_2_6_28::priority::Priority;
use crate::scheduler::shared::linux_2_6_28::requests::Origin;
use crate::scheduler::shared::linux_2_6_28::tasks::{TaskIndex, process_at};
use crate::scheduler::shared::wf2q::weight_of_level;

impl Bfq2008 {
    /// Assigns the request to a queue (`bfq_set_request`), if it has none yet.
    pub(super) fn attach(&mut self, queue: &Queue<'_>, id: RequestId) {
        if self.requests.is_attached(id) {
            return;
        }
        let request = &queue.requests[id];
        let sync = is_sync(request.op, request.sync);
        let task = self.tasks.enter(request.process, self.tick);
        let q = self.queue_for(queue, task, sync);
        self.requests.attach(id, Origin { queue: q, task, sync, since: self.tick });
    }

    /// The process's queue, created if needed; all processes of one priority in a group share one
    /// asynchronous queue (`bfq_get_queue`).
    fn queue_for(&mut self, queue: &Queue<'_>, task: TaskIndex, sync: bool) -> QueueId {
        let process = process_at(task);
        if let Some(q) = self.tasks.queue_of(process, sync) {
            return q;
        }
        let known = queue.tasks.get(process);
        let priority = Priority::of(known.prio);
        let existing = if sync { None } else { self.async_queues.get(known.cgroup, priority) };
        let q = existing.unwrap_or_else(|| {
            let q = self.wf2q.add_leaf(known.cgroup, priority.class(), weight_of_level(priority.level()));
            let own = || ProcessQueue::new(process, sync, priority.class(), self.budgets.first());
            if q.index() >= self.queues.len() {
                self.queues.resize_with(q.index() + 1, own);
            }
            self.queues[q.index()] = own();
            q
        });
        if !sync {
            self.async_queues.set(known.cgroup, priority, q);
        }
        self.tasks.set_queue(task, sync, q);
        q
    }

    /// The request waits in its queue, sorted by its sector (`bfq_add_rq_rb`).
    pub(super) fn add(&mut self, id: RequestId, requests: &RequestSlab) {
        let (q, head) = (self.requests.queue_of(id), self.outgoing.head());
        let backlog = &mut self.queues[q.index()].backlog;
        self.requests.insert(backlog, id, requests[id].sector, head);
        self.counts.inserted();
        self.sorted_in(q, requests);
    }

    /// The request has grown downwards: sorts it in again (`bfq_reposition_rq_rb`).
    pub(super) fn reposition(&mut self, id: RequestId, requests: &RequestSlab) {
        let (q, head) = (self.requests.queue_of(id), self.outgoing.head());
        let backlog = &mut self.queues[q.index()].backlog;
        self.requests.reposition(backlog, id, requests[id].sector, head);
        self.sorted_in(q, requests);
    }

    fn sorted_in(&mut self, q: QueueId, requests: &RequestSlab) {
        if self.wf2q.is_busy(q) {
            self.next_has_changed(q, requests);
        } else {
            self.set_budget_for_next(q, requests);
            self.wf2q.add_busy(q, true, false, self.now);
        }
    }

    /// A new request waits: updates its process's means, and ends idling for it
    /// (`bfq_rq_enqueued`).
    pub(super) fn enqueued(&mut self, id: RequestId, requests: &RequestSlab) {
        let Origin { queue: q, task, .. } = self.requests.origin(id);
        let area = (requests[id].sector, requests[id].end());
        self.tasks.request(task, self.tick, self.tuned.slice_idle, area);
        self.decide_idling(q, task);
        if self.service.is_of(q) {
            self.stop_idling(IdleEnd::Request);
        }
    }

    /// No idling for a process with a long think time, nor for one that seeks on a disk that queues
    /// commands (`bfq_update_idle_window`).
    fn decide_idling(&mut self, q: QueueId, task: TaskIndex) {
        let slice_idle = self.tuned.slice_idle;
        let in_vain = self.queueing.is_queueing() && self.tasks.seeks(task).is_seeky();
        let longer = self.tasks.think_time(task).is_longer(slice_idle);
        self.queues[q.index()].window.request(slice_idle == 0 || in_vain, longer);
    }

    /// Removes the waiting request from its queue (`bfq_remove_request`).
    pub(super) fn remove(&mut self, id: RequestId, requests: &RequestSlab) {
        let (q, head) = (self.requests.queue_of(id), self.outgoing.head());
        if self.requests.remove(&mut self.queues[q.index()].backlog, id, head) {
            self.next_has_changed(q, requests);
        }
        self.merges.remove(id);
        self.counts.removed();
        let is_empty = self.queues[q.index()].backlog.is_empty();
        if is_empty && !self.service.is_of(q) && self.wf2q.is_busy(q) {
            self.wf2q.remove_busy(q, true, false, self.now);
        }
    }
}
