//! Completion of a request: the turn's timeout, idling, and whether the disk queues commands.

use super::Bfq2008;
use super::state::{Slot, State};
use crate::request::{RequestId, RequestSlab};
use crate::scheduler::journal::{Decision, EndReason, IdleEnd};
use crate::units::Nanos;

/// The longest idling for a process that seeks: its next request is elsewhere anyway
/// (`BFQ_MIN_TT`).
const SEEKY_IDLE: Nanos = Nanos::from_millis(2);

/// Whether the disk queues commands, from the maximum of requests in flight.
#[derive(Clone, Copy, Debug)]
pub(super) struct HwTag {
    queueing: bool,
    in_driver_max: u32,
    samples: u32,
}

impl HwTag {
    /// With this many requests, in flight or waiting, the disk could queue commands.
    const THRESHOLD: u32 = 4;
    const SAMPLES: u32 = 32;

    /// The disk counts as one that queues commands until it is measured.
    pub const NEW: HwTag = HwTag { queueing: true, in_driver_max: 0, samples: 0 };

    pub fn is_queueing(&self) -> bool {
        self.queueing
    }

    fn sample(&mut self, in_driver: u32, queued: u32) {
        self.in_driver_max = self.in_driver_max.max(in_driver);
        if in_driver + queued < Self::THRESHOLD {
            return;
        }
        self.samples += 1;
        if self.samples > Self::SAMPLES {
            let queueing = self.in_driver_max > Self::THRESHOLD;
            *self = HwTag { queueing, in_driver_max: 0, samples: 0 };
        }
    }
}

impl Bfq2008 {
    /// A request completes (`bfq_completed_request`).
    pub(super) fn ended(&mut self, id: RequestId, requests: &RequestSlab) {
        let Slot { queue: q, task, sync, .. } = self.slots[id.index()];
        self.slots[id.index()].state = State::Absent;
        self.hw_tag.sample(self.in_driver, self.queued);
        self.in_driver -= 1;
        let queue = &mut self.queues[q.index()];
        queue.dispatched -= 1;
        self.sync_flight -= u32::from(queue.sync);
        if sync {
            self.tasks[task].thinking.last_end = self.tick;
        }
        if self.in_service != Some(q) {
            return;
        }
        if self.queues[q.index()].budget_new {
            self.start_timeout(q);
        }
        if self.is_timed_out(q) {
            self.expire(q, false, EndReason::TimeOut, requests);
        } else if sync && self.in_driver == 0 && self.queues[q.index()].is_empty() {
            self.begin_idling();
        }
    }

    pub(super) fn is_idling(&self) -> bool {
        self.idle_until != Nanos::NEVER
    }

    /// Starts idling for the queue in service (`bfq_arm_slice_timer`).
    fn begin_idling(&mut self) {
        let Some(queue) = self.in_service.map(|q| &self.queues[q.index()]) else { return };
        let Some(task) = self.in_service_task.map(|task| &self.tasks[task]) else { return };
        if self.tuned.slice_idle == 0 || !queue.idles || task.exited {
            return;
        }
        let seeky = task.seeks.is_surely_seeky();
        let most = if seeky { self.ticks.span(SEEKY_IDLE) } else { u64::MAX };
        let process = queue.process;
        self.idling_start = self.now;
        self.idle_until = self.ticks.start(self.tick.saturating_add(self.tuned.slice_idle.min(most)));
        self.note(process, Decision::IdleStart { until: self.idle_until });
    }

    /// Stops idling.
    pub(super) fn stop_idling(&mut self, why: IdleEnd) {
        if std::mem::replace(&mut self.idle_until, Nanos::NEVER) == Nanos::NEVER {
            return;
        }
        if let Some(q) = self.in_service {
            self.note(self.queues[q.index()].process, Decision::IdleEnd { why });
        }
    }

    /// The idle timer expires, and no request has come (`bfq_idle_slice_timer`).
    pub(super) fn idled_long_enough(&mut self, requests: &RequestSlab) {
        self.stop_idling(IdleEnd::TimeOut);
        let Some(q) = self.in_service else { return };
        let reason = if self.is_timed_out(q) { EndReason::TimeOut } else { EndReason::TooIdle };
        self.expire(q, true, reason, requests);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_that_never_has_more_than_one_command_does_not_queue() {
        let mut hw_tag = HwTag::NEW;
        // Too few requests for a sample.
        (0..100).for_each(|_| hw_tag.sample(1, 2));
        assert!(hw_tag.is_queueing());
        (0..33).for_each(|_| hw_tag.sample(1, 3));
        assert!(!hw_tag.is_queueing());
        (0..33).for_each(|turn| hw_tag.sample(turn % 5 + 1, 3));
        assert!(hw_tag.is_queueing());
    }
}
