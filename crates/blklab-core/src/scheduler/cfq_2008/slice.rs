//! Turns of queues: a slice begins, and ends.

use super::Cfq2008;
use super::queue::QueueId;
use crate::request::ProcessId;
use crate::scheduler::journal::{Decision, EndReason, IdleEnd};
use crate::units::Nanos;

impl Cfq2008 {
    /// Starts the turn of the queue that is due first (`cfq_set_active_queue`).
    pub(super) fn begin_turn(&mut self) -> Option<QueueId> {
        self.active = self.tree.first();
        let q = self.active?;
        let queue = &mut self.queues[q];
        queue.slice.turn_begins();
        queue.backlog.turn_begins();
        self.note(q, Decision::SliceStart { budget: 0, slice: Nanos::ZERO });
        Some(q)
    }

    /// The first request of the turn completes: the slice starts (`cfq_set_prio_slice`).
    pub(super) fn begin_slice(&mut self, q: QueueId) {
        let queue = &mut self.queues[q];
        let length = self.lengths.nominal(queue.sync, queue.priority.level());
        queue.slice.starts(self.tick, length);
        let slice = self.ticks.start(length.max(0) as u64);
        self.note(q, Decision::SliceTimed { slice });
    }

    /// Ends the active queue's turn. With `keeps_rest` the queue keeps what is left of its slice, or
    /// what it overran (`__cfq_slice_expired`).
    pub(super) fn expire(&mut self, keeps_rest: bool, reason: EndReason) {
        let Some(q) = self.active else { return };
        self.stop_idling(IdleEnd::GivenUp);
        let slice = &mut self.queues[q].slice;
        if keeps_rest {
            slice.keep_rest(self.tick);
        }
        let service = slice.sectors();
        self.note(q, Decision::SliceEnd { reason, service });
        if self.tree.has(q) {
            self.reschedule(q);
        }
        self.active = None;
        self.active_task = None;
    }

    /// The idle timer no longer runs, if it did; the active queue's next request is still the one that was
    /// waited for (`del_timer`).
    pub(super) fn stop_timer(&mut self, why: IdleEnd) {
        self.idling.timer_expired();
        if let Some(q) = self.active
            && self.idling.take_note()
        {
            self.note(q, Decision::IdleEnd { why });
        }
    }

    /// No request is waited for any more.
    pub(super) fn stop_idling(&mut self, why: IdleEnd) {
        self.stop_timer(why);
        self.idling.stop();
    }

    /// The process exits: if one of its queues is active, the turn ends (`cfq_exit_cfqq`).
    pub(super) fn exit(&mut self, process: ProcessId) {
        for q in self.tasks.exit(process).into_iter().flatten() {
            if self.active == Some(q) {
                self.expire(false, EndReason::Released);
                self.kick = if self.tree.busy() > 0 { self.now } else { Nanos::NEVER };
            }
        }
    }
}
