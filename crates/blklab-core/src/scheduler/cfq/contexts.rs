//! A request gets its queue.

use super::Cfq;
use super::kinds::{QueueId, priority};
use super::parts::contexts::{ContextId, Contexts};
use super::parts::requests::Origin;
use super::queue::ProcessQueue;
use crate::request::{Op, RequestId};
use crate::scheduler::Queue;

/// The request is synchronous, as the kernel sees it (`op_is_sync`).
pub(super) fn is_sync(op: Op, sync: bool, fua: bool) -> bool {
    sync || fua || op == Op::Read
}

impl Cfq {
    /// Assigns the request to a queue (`cfq_set_request`), if it has none yet.
    pub(super) fn attach(&mut self, queue: &Queue<'_>, id: RequestId) {
        if self.requests.is_attached(id) {
            return;
        }
        let request = &queue.requests[id];
        let sync = is_sync(request.op, request.sync, request.fua);
        let context = self.contexts.enter(request.process, self.now);
        let q = self.queue_for(queue, context, sync);
        self.sharing.request_attached(q);
        let is_last = request.op == Op::Write && request.sync && !request.idle;
        self.requests.attach(id, Origin { queue: q, context, sync, is_last });
    }

    fn queue_for(&mut self, queue: &Queue<'_>, context: ContextId, sync: bool) -> QueueId {
        loop {
            let Some(mut q) = self.contexts.queue(context, sync) else {
                let q = self.new_queue(queue, context, sync);
                self.contexts.set_queue(context, sync, q);
                return q;
            };
            if self.sharing.is_to_split(q) {
                match self.split(context, q) {
                    Some(own) => q = own,
                    None => continue,
                }
            }
            return match self.sharing.target(q) {
                Some(to) => self.move_to_merged(context, q, to),
                None => q,
            };
        }
    }

    /// A new queue, or the queue that all asynchronous requests of the group and the priority share
    /// (`cfq_get_queue`).
    fn new_queue(&mut self, queue: &Queue<'_>, context: ContextId, sync: bool) -> QueueId {
        let process = Contexts::process(context);
        let task = queue.tasks.get(process);
        let (group, (class, level)) = (usize::from(task.cgroup.0), priority(task));
        if self.groups.enter(group, self.now) {
            self.trees.group_appears(group, self.now);
        }
        let shared = self.groups.async_queue(group, class, level);
        if let Some(q) = shared.filter(|_| !sync) {
            self.sharing.hold(q);
            return q;
        }
        let q = self.queues.insert(ProcessQueue::new(process, group, (class, level), sync));
        self.positions.queue_made(q);
        self.trees.queue_made(q);
        self.sharing.queue_made(q);
        if !sync {
            // The group holds it, too.
            self.sharing.hold(q);
            *shared = Some(q);
        }
        q
    }
}
