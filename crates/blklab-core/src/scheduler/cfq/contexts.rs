//! Processes, and the queues of their requests.

use super::Cfq;
use super::state::{Class, Context, ProcessQueue, QueueId, Slot, State, priority};
use crate::request::{Op, ProcessId, RequestId};
use crate::scheduler::Queue;

/// The request is synchronous, as the kernel sees it (`op_is_sync`).
pub(super) fn is_sync(op: Op, sync: bool, fua: bool) -> bool {
    sync || fua || op == Op::Read
}

impl Cfq {
    /// The process's index among the contexts; the kernel's own is first.
    pub(super) const fn context_of(process: ProcessId) -> usize {
        process.0.wrapping_add(1) as usize
    }

    pub(super) const fn process_of(context: usize) -> ProcessId {
        ProcessId((context as u32).wrapping_sub(1))
    }

    /// The current queue of the process's requests of that kind, if it has one.
    pub(super) fn queue_of(&self, process: ProcessId, sync: bool) -> Option<QueueId> {
        self.contexts.get(Cfq::context_of(process))?.queues[usize::from(sync)]
    }

    /// Assigns the request to a queue (`cfq_set_request`), if it has none yet.
    pub(super) fn attach(&mut self, queue: &Queue<'_>, id: RequestId) {
        if id.index() >= self.slots.len() {
            self.slots.resize(id.index() + 1, Slot::VACANT);
        }
        if self.slots[id.index()].state != State::Absent {
            return;
        }
        let request = &queue.requests[id];
        let sync = is_sync(request.op, request.sync, request.fua);
        let context = self.context(request.process);
        let q = self.queue_for(queue, context, sync);
        self.queues[q].requests += 1;
        let no_idle = request.op == Op::Write && request.sync && !request.idle;
        self.slots[id.index()] =
            Slot { state: State::Attached, sync, no_idle, queue: q, context, ..Slot::VACANT };
    }

    /// The process's context, created with its first request.
    fn context(&mut self, process: ProcessId) -> usize {
        let index = Cfq::context_of(process);
        if index >= self.contexts.len() {
            self.contexts.resize(index + 1, Context::default());
        }
        let context = &mut self.contexts[index];
        if !context.known {
            *context = Context { known: true, alive: true, ..Context::default() };
            context.think.ended(self.now);
        }
        index
    }

    fn queue_for(&mut self, queue: &Queue<'_>, context: usize, sync: bool) -> QueueId {
        loop {
            let Some(mut q) = self.contexts[context].queues[usize::from(sync)] else {
                let q = self.new_queue(queue, context, sync);
                self.contexts[context].queues[usize::from(sync)] = Some(q);
                return q;
            };
            let flags = self.queues[q].flags;
            if flags.coop && flags.split_coop {
                match self.split(context, q) {
                    Some(own) => q = own,
                    None => continue,
                }
            }
            return match self.queues[q].merge_with {
                Some(to) => self.move_to_merged(context, q, to),
                None => q,
            };
        }
    }

    /// A new queue, or the queue that all asynchronous requests of the group and the priority share
    /// (`cfq_get_queue`).
    fn new_queue(&mut self, queue: &Queue<'_>, context: usize, sync: bool) -> QueueId {
        let process = Cfq::process_of(context);
        let task = queue.tasks.get(process);
        let (index, (class, level)) = (usize::from(task.cgroup.0), priority(task));
        let now = self.now;
        let group = &mut self.groups[index];
        if !std::mem::replace(&mut group.known, true) {
            group.think.ended(now);
            group.trees.iter_mut().for_each(|tree| tree.think.ended(now));
        }
        let shared = match class {
            Class::Idle => &mut group.async_idle,
            Class::BestEffort | Class::RealTime => {
                &mut group.async_queues[class as usize][usize::from(level)]
            }
        };
        if let Some(q) = shared.filter(|_| !sync) {
            self.queues[q].holders += 1;
            return q;
        }
        let q = self.queues.insert(ProcessQueue::new(process, index, (class, level), sync));
        self.positions.queue_made(q);
        self.queues[q].holders = 1;
        if !sync {
            // The group's own reference.
            self.queues[q].holders += 1;
            *shared = Some(q);
        }
        q
    }
}
