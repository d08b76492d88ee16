//! Requests in their queues: assignment, order, merges.

use super::Bfq2008;
use super::state::{ASYNC_QUEUES, Priority, ProcessQueue, Slot, State, Task};
use crate::request::{Op, ProcessId, RequestId, RequestSlab};
use crate::scheduler::Queue;
use crate::scheduler::journal::IdleEnd;
use crate::scheduler::shared::nearest::Candidate;
use crate::scheduler::shared::wf2q::LeafId;
use crate::units::Sector;

/// The request is synchronous, as the kernel sees it.
pub(super) fn is_sync(op: Op, sync: bool) -> bool {
    sync || !op.is_write()
}

impl Bfq2008 {
    /// The queue of the process's requests of that kind, if it has one yet.
    pub(super) fn queue_of(&self, process: ProcessId, sync: bool) -> Option<LeafId> {
        self.tasks.get(Task::index_of(process))?.queues[usize::from(sync)]
    }

    /// Assigns the request to a queue (`bfq_set_request`), if it has none yet.
    pub(super) fn attach(&mut self, queue: &Queue<'_>, id: RequestId) {
        if self.slots.get(id.index()).is_some_and(|slot| slot.state != State::Absent) {
            return;
        }
        let request = &queue.requests[id];
        let sync = is_sync(request.op, request.sync);
        let task = Task::index_of(request.process);
        if task >= self.tasks.len() {
            self.tasks.resize(task + 1, Task::new(self.tick));
        }
        let q = self.queue_for(queue, task, sync);
        let slot =
            Slot { state: State::Attached, sync, queue: q, task, sector: request.sector, since: self.tick };
        if id.index() >= self.slots.len() {
            self.slots.resize(id.index() + 1, Slot { state: State::Absent, ..slot });
        }
        self.slots[id.index()] = slot;
    }

    /// The process's queue, created if needed; all processes of one priority in a group share one
    /// asynchronous queue (`bfq_get_queue`).
    fn queue_for(&mut self, queue: &Queue<'_>, task: usize, sync: bool) -> LeafId {
        if let Some(q) = self.tasks[task].queues[usize::from(sync)] {
            return q;
        }
        if self.tasks[task].queues == [None; 2] {
            self.tasks[task] = Task::new(self.tick);
        }
        let process = Task::process_at(task);
        let known = queue.tasks.get(process);
        let priority = Priority::of(known.prio);
        let shared = usize::from(known.cgroup.0) * ASYNC_QUEUES + priority.async_index();
        let existing = if sync { None } else { self.async_queues[shared] };
        let q = existing.unwrap_or_else(|| {
            let q = self.wf2q.add_leaf(known.cgroup, priority.class, priority.weight());
            let own = ProcessQueue::new(process, sync, priority.class, self.default_budget(0));
            if q.index() >= self.queues.len() {
                let vacant = || ProcessQueue::new(process, sync, priority.class, 0);
                self.queues.resize_with(q.index() + 1, vacant);
            }
            self.queues[q.index()] = own;
            q
        });
        if !sync {
            self.async_queues[shared] = Some(q);
        }
        self.tasks[task].queues[usize::from(sync)] = Some(q);
        q
    }

    /// The better of two waiting requests, from the end of the last one (`bfq_choose_req`).
    fn choose(&self, a: Option<RequestId>, b: Option<RequestId>) -> Option<RequestId> {
        let (Some(first), Some(second)) = (a, b) else { return a.or(b) };
        let candidate = |id: RequestId| {
            let slot = &self.slots[id.index()];
            Candidate { sync: slot.sync, sector: slot.sector }
        };
        let rule = self.tuned.back_seek;
        let better = rule.first_is_better(candidate(first), candidate(second), self.last_position);
        Some(if better && first != second { first } else { second })
    }

    /// The request after `id`, which still waits (`bfq_find_next_rq`).
    fn next_after(&self, q: LeafId, id: RequestId) -> Option<RequestId> {
        let sorted = &self.queues[q.index()].sorted;
        let at = self.slots[id.index()].sector;
        let (below, above) = sorted.beside(at, id);
        self.choose(above, below)
    }

    /// Sorts the request, at `sector`, into its queue (`bfq_add_rq_rb`).
    pub(super) fn sort_in(&mut self, id: RequestId, sector: Sector, requests: &RequestSlab) {
        let slot = &mut self.slots[id.index()];
        slot.sector = sector;
        slot.state = State::Waiting;
        let q = slot.queue;
        self.queues[q.index()].sorted.insert(sector, id);
        let next = self.choose(self.queues[q.index()].next, Some(id));
        self.queues[q.index()].next = next;
        if self.wf2q.is_busy(q) {
            self.next_has_changed(q, requests);
        } else {
            self.set_budget_for_next(q, requests);
            self.wf2q.add_busy(q, true, false, self.now);
        }
    }

    /// The request has grown downwards: sorts it in again (`bfq_reposition_rq_rb`).
    pub(super) fn reposition(&mut self, id: RequestId, requests: &RequestSlab) {
        let Slot { queue: q, sector: old, .. } = self.slots[id.index()];
        self.queues[q.index()].sorted.remove(old, id);
        self.sort_in(id, requests[id].sector, requests);
    }

    /// A new request waits: updates its process's means, and ends idling for it
    /// (`bfq_rq_enqueued`).
    pub(super) fn enqueued(&mut self, id: RequestId, requests: &RequestSlab) {
        let Slot { queue: q, task, .. } = self.slots[id.index()];
        let (tick, slice_idle) = (self.tick, self.tuned.slice_idle);
        let seen = &mut self.tasks[task];
        seen.thinking.request(tick, slice_idle);
        seen.seeks.request(requests[id].sector, requests[id].end());
        self.decide_idling(q, task);
        if self.in_service == Some(q) {
            self.stop_idling(IdleEnd::Request);
        }
    }

    /// No idling for a process with a long think time, nor for one that seeks on a disk that queues
    /// commands (`bfq_update_idle_window`).
    fn decide_idling(&mut self, q: LeafId, task: usize) {
        let seen = &self.tasks[task];
        let never = self.tuned.slice_idle == 0 || self.hw_tag.is_queueing() && seen.seeks.is_seeky();
        let longer = seen.thinking.is_longer(self.tuned.slice_idle);
        let queue = &mut self.queues[q.index()];
        if queue.sync && queue.class != crate::scheduler::shared::wf2q::Class::Idle {
            queue.idles = !never && longer.map_or(queue.idles, |longer| !longer);
        }
    }

    /// Removes the waiting request from its queue (`bfq_remove_request`).
    pub(super) fn remove(&mut self, id: RequestId, requests: &RequestSlab) {
        let Slot { queue: q, sector, .. } = self.slots[id.index()];
        if self.queues[q.index()].next == Some(id) {
            self.queues[q.index()].next = self.next_after(q, id);
            self.next_has_changed(q, requests);
        }
        let queue = &mut self.queues[q.index()];
        self.links.remove(&mut queue.fifo, id);
        queue.sorted.remove(sector, id);
        self.merges.remove(id);
        self.queued -= 1;
        if queue.is_empty() && self.in_service != Some(q) && self.wf2q.is_busy(q) {
            self.wf2q.remove_busy(q, true, false, self.now);
        }
    }

    /// Inserts the request into the dispatch list, upwards from the head's position
    /// (`elv_dispatch_sort`).
    pub(super) fn send(&mut self, id: RequestId, requests: &RequestSlab) {
        let slot = &mut self.slots[id.index()];
        slot.state = State::Outgoing;
        let (op, sector) = (requests[id].op, requests[id].sector);
        let boundary = self.last_position;
        let goes_behind = |place: &RequestId| {
            let other = &requests[*place];
            let kind = |op: Op| (op.is_write(), op == Op::Discard);
            if kind(op) != kind(other.op) {
                return true;
            }
            // First the requests above the boundary, then those below.
            let below = |sector: Sector| sector < boundary;
            (below(sector), sector) >= (below(other.sector), other.sector)
        };
        let place = self.links.newest_first(&self.outgoing).find(goes_behind);
        match place {
            Some(place) => self.links.insert_after(&mut self.outgoing, place, id),
            None => self.links.push_front(&mut self.outgoing, id),
        }
        self.outgoing_count += 1;
    }
}
