//! Turns of queues: a slice begins, and ends.

use super::Cfq;
use super::kinds::{Class, QueueId};
use crate::scheduler::journal::{Decision, EndReason, IdleEnd};
use crate::units::Nanos;

impl Cfq {
    /// The group's share of a round (`cfq_group_slice`).
    pub(super) fn group_slice(&self, group: usize) -> u64 {
        self.shares.part_of(self.tuned.target_latency, group)
    }

    /// The length of the queue's slice: with `low_latency` shortened if many queues are busy
    /// (`cfq_scaled_cfqq_slice`).
    fn scaled_slice(&mut self, q: QueueId) -> u64 {
        let queue = &self.queues[q];
        let (group, real_time) = (queue.group, queue.class == Class::RealTime);
        let nominal = self.lengths.nominal(queue.sync, queue.level) as u64;
        if !self.tuned.low_latency {
            return nominal;
        }
        let busy = self.trees.mean_busy(group, real_time);
        self.lengths.shortened(nominal, busy, self.group_slice(group))
    }

    /// The first request of the turn completes: the slice starts (`cfq_set_prio_slice`).
    pub(super) fn begin_slice(&mut self, q: QueueId) {
        let slice = self.scaled_slice(q);
        self.queues[q].slice.starts(self.now, slice);
        self.note(q, Decision::SliceTimed { slice: Nanos(slice) });
    }

    /// Makes the queue active (`__cfq_set_active_queue`).
    pub(super) fn activate_queue(&mut self, q: Option<QueueId>) {
        self.active = q;
        let Some(q) = q else { return };
        self.queues[q].slice.turn_begins(self.now);
        self.note_workload(q);
        self.note(q, Decision::SliceStart { budget: 0, slice: Nanos::ZERO });
    }

    /// Ends the active queue's turn. A queue that was cut off (`timed_out`) keeps the rest of its
    /// slice, or owes the time that it overran (`__cfq_slice_expired`).
    pub(super) fn expire(&mut self, timed_out: bool, reason: EndReason) {
        let Some(q) = self.active else { return };
        if self.idling.waits() {
            self.stop_idling(q, IdleEnd::GivenUp);
        }
        self.sharing.turn_ended(q, self.queues[q].seeks.is_seeky());
        if timed_out {
            let rest = match self.queues[q].slice.is_new() {
                true => self.scaled_slice(q) as i64,
                false => self.queues[q].slice.left(self.now),
            };
            self.queues[q].slice.keep_rest(rest);
        }
        self.queues[q].slice.turn_ends();
        let service = self.queues[q].slice.sectors().min(u32::MAX.into()) as u32;
        self.note(q, Decision::SliceEnd { reason, service });
        self.charge(q);
        if self.trees.has(q) {
            match self.queues[q].backlog.is_empty() {
                true => self.remove_busy(q),
                false => self.reschedule(q),
            }
        }
        self.active = None;
        self.active_context = None;
    }

    /// `cfq_del_timer` for a queue that the disk idles for.
    pub(super) fn stop_idling(&mut self, q: QueueId, why: IdleEnd) {
        self.idling.stop();
        self.note_idle_end(q, why);
    }

    /// Notes the end of idling for the queue, if the disk idled.
    pub(super) fn note_idle_end(&mut self, q: QueueId, why: IdleEnd) {
        if self.idling.take_note() {
            self.note(q, Decision::IdleEnd { why });
        }
    }
}
