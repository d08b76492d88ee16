//! Requests in their queues: assignment, order, and what that changes in the order of service.

use super::Cfq2008;
use super::parts::service_tree::Due;
use super::queue::{ProcessQueue, QueueId};
use crate::request::{RequestId, RequestSlab};
use crate::scheduler::shared::linux_2_6_28::is_sync;
use crate::scheduler::shared::linux_2_6_28::priority::Priority;
use crate::scheduler::shared::linux_2_6_28::requests::Origin;
use crate::scheduler::shared::linux_2_6_28::tasks::{TaskIndex, process_at};
use crate::scheduler::{CgroupId, Queue};

impl Cfq2008 {
    /// Assigns the request to a queue (`cfq_set_request`), if it has none yet.
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

    /// The process's queue, created if needed; all processes of one priority share one asynchronous
    /// queue (`cfq_get_queue`).
    fn queue_for(&mut self, queue: &Queue<'_>, task: TaskIndex, sync: bool) -> QueueId {
        let process = process_at(task);
        if let Some(q) = self.tasks.queue_of(process, sync) {
            return q;
        }
        let priority = Priority::of(queue.tasks.get(process).prio);
        let existing = if sync { None } else { self.async_queues.get(CgroupId::ROOT, priority) };
        let q = existing.unwrap_or_else(|| {
            self.queues.push(ProcessQueue::new(process, sync, priority));
            let q = self.queues.len() - 1;
            self.tree.queue_made(q);
            q
        });
        if !sync {
            self.async_queues.set(CgroupId::ROOT, priority, q);
        }
        self.tasks.set_queue(task, sync, q);
        q
    }

    /// The request waits in its queue, sorted by its sector (`cfq_add_rq_rb`).
    pub(super) fn add(&mut self, id: RequestId, requests: &RequestSlab) {
        let q = self.requests.queue_of(id);
        let sector = requests[id].sector;
        self.make_room(q, id, requests);
        self.requests.insert(&mut self.queues[q].backlog, id, sector, self.outgoing.head());
        self.counts.inserted();
        if !self.tree.has(q) {
            self.reschedule(q);
        }
    }

    /// The request has grown downwards: sorts it in again (`cfq_reposition_rq_rb`).
    pub(super) fn reposition(&mut self, id: RequestId, requests: &RequestSlab) {
        let q = self.requests.queue_of(id);
        self.make_room(q, id, requests);
        let (head, sector) = (self.outgoing.head(), requests[id].sector);
        self.requests.reposition(&mut self.queues[q].backlog, id, sector, head);
    }

    /// A queue has one request at a sector: an earlier one goes to the dispatch list.
    fn make_room(&mut self, q: QueueId, id: RequestId, requests: &RequestSlab) {
        let at = requests[id].sector;
        if let Some(other) = self.queues[q].backlog.starting_at(at).filter(|&other| other != id) {
            self.send(other, requests);
        }
    }

    /// The waiting request goes to the dispatch list (`cfq_dispatch_insert`).
    pub(super) fn send(&mut self, id: RequestId, requests: &RequestSlab) {
        let q = self.requests.queue_of(id);
        self.remove(id);
        let queue = &mut self.queues[q];
        self.requests.choose(&mut queue.backlog, id);
        queue.slice.sent(requests[id].sectors);
        self.counts.chosen(queue.sync);
        self.outgoing.insert(id, requests);
    }

    /// Removes the waiting request from its queue (`cfq_remove_request`). An empty queue is not busy,
    /// even if it is the active one.
    pub(super) fn remove(&mut self, id: RequestId) {
        let q = self.requests.queue_of(id);
        let backlog = &mut self.queues[q].backlog;
        self.requests.remove(backlog, id, self.outgoing.head());
        self.merges.remove(id);
        self.counts.removed();
        if self.queues[q].backlog.is_empty() {
            self.tree.remove(q);
        }
    }

    /// The queue with requests gets its place by its state now (`cfq_resort_rr_list`).
    pub(super) fn reschedule(&mut self, q: QueueId) {
        let others = self.tree.busy() - u32::from(self.tree.has(q));
        let queue = &mut self.queues[q];
        let due = if queue.is_idle_class() {
            Due::Last
        } else {
            let lag = self.lengths.lag(queue.sync, queue.priority.level(), others);
            Due::In(lag + queue.slice.take_rest())
        };
        self.tree.schedule(q, queue.priority.class(), due, self.tick);
    }
}
