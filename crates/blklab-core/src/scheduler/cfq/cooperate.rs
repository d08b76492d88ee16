//! Processes that read one area together share a queue, and get their own queues again when they no
//! longer do.

use slab::Slab;

use super::Cfq;
use super::kinds::{Class, QueueId};
use super::parts::contexts::{ContextId, Contexts};
use super::parts::requests::Requests;
use super::queue::ProcessQueue;
use crate::request::ProcessId;
use crate::scheduler::journal::{Decision, EndReason};
use crate::scheduler::shared::positions::is_close;
use crate::units::{Nanos, Sector};

/// The sector of a queue's next request.
pub(super) fn next_of(queues: &Slab<ProcessQueue>, requests: &Requests, q: QueueId) -> Option<Sector> {
    queues[q].backlog.next().map(|next| requests.sector(next))
}

impl Cfq {
    /// `cfq_rq_close`
    pub(super) fn is_close(&self, sector: Sector) -> bool {
        is_close(sector, self.head)
    }

    /// A queue of the same level whose next request is close to the end of the last one
    /// (`cfqq_close`).
    fn close(&self, level: u8) -> Option<QueueId> {
        let next_of = |q: QueueId| next_of(&self.queues, &self.requests, q);
        self.positions.find_close(usize::from(level), self.head, next_of)
    }

    /// A queue that continues where this queue, now empty, stopped (`cfq_close_cooperator`).
    pub(super) fn close_cooperator(&self, q: QueueId) -> Option<QueueId> {
        let queue = &self.queues[q];
        let alone = self.trees.busy(queue.group) == 1;
        if queue.class == Class::Idle || !queue.sync || queue.seeks.is_seeky() || alone {
            return None;
        }
        self.close(queue.level).filter(|&other| {
            let other = &self.queues[other];
            let is_like_it = other.group == queue.group && other.class == queue.class;
            is_like_it && other.sync && !other.seeks.is_seeky()
        })
    }

    /// Moves the process from its queue `q` to the target of the planned merge (`cfq_merge_cfqqs`).
    pub(super) fn move_to_merged(&mut self, context: ContextId, q: QueueId, to: QueueId) -> QueueId {
        self.note_for(context, Decision::QueuesMerged { with: self.queues[to].process });
        self.contexts.set_queue(context, true, to);
        self.sharing.joined(to);
        self.release(q);
        to
    }

    /// The process leaves the shared queue `q`; the last process keeps it (`split_cfqq`).
    pub(super) fn split(&mut self, context: ContextId, q: QueueId) -> Option<QueueId> {
        self.note_for(context, Decision::QueueSplit);
        if self.sharing.keep_if_last(q) {
            self.queues[q].process = Contexts::process(context);
            return Some(q);
        }
        self.contexts.leave_queue(context, true);
        self.release_merge_plan(q);
        self.release(q);
        None
    }

    /// One process fewer will move along the chain of planned merges (`cfq_put_cooperator`).
    fn release_merge_plan(&mut self, q: QueueId) {
        let mut next = self.sharing.target(q);
        while let Some(to) = next {
            next = self.sharing.target(to);
            self.release(to);
        }
    }

    /// A process drops its queue (`cfq_put_queue`).
    fn release(&mut self, q: QueueId) {
        self.sharing.release(q);
        self.free_if_unused(q);
    }

    /// Frees the queue if no process uses it and no request belongs to it.
    pub(super) fn free_if_unused(&mut self, q: QueueId) {
        if !self.sharing.is_unused(q) {
            return;
        }
        self.end_turn_of(q);
        debug_assert!(!self.trees.has(q), "only the active queue is busy without requests");
        self.queues.remove(q);
    }

    /// The process exits (`cfq_exit_icq`).
    pub(super) fn leave(&mut self, process: ProcessId) {
        let Some(context) = self.contexts.exit(process) else { return };
        for sync in [false, true] {
            let Some(q) = self.contexts.leave_queue(context, sync) else { continue };
            self.end_turn_of(q);
            self.release_merge_plan(q);
            self.release(q);
        }
        self.contexts.forget(context);
    }

    /// Ends the turn of a queue that a process leaves. The block layer must then ask for requests,
    /// although none completes (`cfq_schedule_dispatch`).
    fn end_turn_of(&mut self, q: QueueId) {
        if self.active == Some(q) {
            self.expire(false, EndReason::Released);
            if self.counts.busy() > 0 {
                self.kick = Nanos(self.now as u64);
            }
        }
    }
}
