//! Processes that read one area together share a queue, and get their own queues again when they no
//! longer do.

use super::Cfq;
use super::parts::positions::is_close;
use super::state::{Class, QueueId};
use crate::scheduler::journal::{Decision, EndReason};
use crate::units::{Nanos, Sector};

impl Cfq {
    /// `cfq_rq_close`
    pub(super) fn is_close(&self, sector: Sector) -> bool {
        is_close(sector.0, self.last_position)
    }

    /// A queue of the same level whose next request is close to the end of the last one
    /// (`cfqq_close`).
    fn closest(&self, level: u8) -> Option<QueueId> {
        let next_of = |q: QueueId| {
            let next = self.queues[q].next.expect("a queue with a position has a request");
            self.slots[next.index()].sector.0
        };
        self.positions.closest(level, self.last_position, next_of)
    }

    /// A queue that continues where this queue, now empty, stopped (`cfq_close_cooperator`).
    pub(super) fn close_cooperator(&self, q: QueueId) -> Option<QueueId> {
        let queue = &self.queues[q];
        let alone = self.groups[queue.group].queues == 1;
        if queue.class == Class::Idle || !queue.sync || queue.is_seeky() || alone {
            return None;
        }
        self.closest(queue.level).filter(|&other| {
            let other = &self.queues[other];
            other.group == queue.group && other.sync && !other.is_seeky() && other.class == queue.class
        })
    }

    /// Plans that the processes of one of the two queues, the one with fewer, move to the other
    /// (`cfq_setup_merge`). They move with their next requests.
    pub(super) fn plan_merge(&mut self, q: QueueId, mut other: QueueId) {
        if self.queues[other].holders == 0 {
            return;
        }
        while let Some(further) = self.queues[other].merge_with {
            if further == q {
                return;
            }
            other = further;
        }
        let (own, others) = (self.queues[q].holders, self.queues[other].holders);
        if own == 0 || others == 0 {
            return;
        }
        let (from, to, moving) = if others >= own { (q, other, own) } else { (other, q, others) };
        self.queues[from].merge_with = Some(to);
        self.queues[to].holders += moving;
    }

    /// Moves the process from its queue `q` to the target of the planned merge (`cfq_merge_cfqqs`).
    pub(super) fn move_to_merged(&mut self, context: usize, q: QueueId, to: QueueId) -> QueueId {
        self.note_for(context, Decision::QueuesMerged { with: self.queues[to].process });
        self.contexts[context].queues[1] = Some(to);
        self.queues[to].flags.coop = true;
        self.release(q);
        to
    }

    /// The process leaves the shared queue `q`; the last process keeps it (`split_cfqq`).
    pub(super) fn split(&mut self, context: usize, q: QueueId) -> Option<QueueId> {
        self.note_for(context, Decision::QueueSplit);
        if self.queues[q].holders == 1 {
            let queue = &mut self.queues[q];
            queue.process = Cfq::process_of(context);
            queue.flags.coop = false;
            queue.flags.split_coop = false;
            return Some(q);
        }
        self.contexts[context].queues[1] = None;
        self.release_merge_plan(q);
        self.release(q);
        None
    }

    /// One process fewer will move along the chain of planned merges (`cfq_put_cooperator`).
    fn release_merge_plan(&mut self, q: QueueId) {
        let mut next = self.queues[q].merge_with;
        while let Some(to) = next {
            next = self.queues[to].merge_with;
            self.release(to);
        }
    }

    /// A process drops its queue (`cfq_put_queue`).
    pub(super) fn release(&mut self, q: QueueId) {
        self.queues[q].holders -= 1;
        self.free_if_unused(q);
    }

    /// Frees the queue if no process uses it and no request belongs to it.
    pub(super) fn free_if_unused(&mut self, q: QueueId) {
        if self.queues[q].holders > 0 || self.queues[q].requests > 0 {
            return;
        }
        if self.active == Some(q) {
            self.expire(false, EndReason::Released);
            self.kick();
        }
        debug_assert!(!self.queues[q].on_rr, "only the active queue is busy without requests");
        self.queues.remove(q);
    }

    /// The process exits (`cfq_exit_icq`).
    pub(super) fn leave(&mut self, context: usize) {
        self.contexts[context].alive = false;
        for kind in [0, 1] {
            let Some(q) = self.contexts[context].queues[kind].take() else { continue };
            if self.active == Some(q) {
                self.expire(false, EndReason::Released);
                self.kick();
            }
            self.release_merge_plan(q);
            self.release(q);
        }
        self.contexts[context].known = false;
    }

    /// Lets the block layer ask for requests, although none completes (`cfq_schedule_dispatch`).
    fn kick(&mut self) {
        if self.counts.busy() > 0 {
            self.kick = Nanos(self.now as u64);
        }
    }
}
