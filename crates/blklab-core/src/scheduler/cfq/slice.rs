//! Time slices: their length, their start, and the rest of an unfinished one.

use super::Cfq;
use super::state::{Class, QueueId};
use crate::scheduler::journal::{Decision, EndReason, IdleEnd};
use crate::units::Nanos;

/// A mean over time follows an increase by three quarters (`cfq_hist_divisor`).
const HISTORY: u32 = 4;

impl Cfq {
    /// The nominal slice of a level, 0 (longest) to 7 (`cfq_prio_slice`).
    pub(super) fn prio_slice(&self, sync: bool, level: u8) -> i64 {
        let base = self.tuned.slice[usize::from(sync)];
        base as i64 + (base / 5) as i64 * (4 - i64::from(level))
    }

    /// The mean number of busy queues over time: of real time, or of all other classes
    /// (`cfq_group_get_avg_queues`).
    fn mean_busy(&mut self, group: usize, real_time: bool) -> u32 {
        let class = if real_time { Class::RealTime } else { Class::BestEffort };
        let group = &mut self.groups[group];
        let busy = group.busy(class);
        let mean = &mut group.busy_mean[class as usize];
        let (low, high) = (busy.min(*mean), busy.max(*mean));
        *mean = ((HISTORY - 1) * high + low + HISTORY / 2) / HISTORY;
        *mean
    }

    /// The group's share of a round (`cfq_group_slice`).
    pub(super) fn group_slice(&self, group: usize) -> u64 {
        self.shares.part_of(self.tuned.target_latency, group)
    }

    /// The nominal slice, shortened under `low_latency` until all busy queues of the group fit into
    /// its share of `target_latency`, but at least twice the idle time (`cfq_scaled_cfqq_slice`).
    fn scaled_slice(&mut self, q: QueueId) -> u64 {
        let queue = &self.queues[q];
        let (group, real_time) = (queue.group, queue.class == Class::RealTime);
        let slice = self.prio_slice(queue.sync, queue.level) as u64;
        if !self.tuned.low_latency {
            return slice;
        }
        let sync_slice = self.tuned.slice[1];
        let expected = sync_slice.wrapping_mul(self.mean_busy(group, real_time).into());
        let group_slice = self.group_slice(group);
        if expected <= group_slice {
            return slice;
        }
        let low = (2 * self.tuned.slice_idle).wrapping_mul(slice) / sync_slice;
        (slice.wrapping_mul(group_slice) / expected).max(slice.min(low))
    }

    /// The first request of the turn completes: the slice starts (`cfq_set_prio_slice`).
    pub(super) fn begin_slice(&mut self, q: QueueId) {
        let slice = self.scaled_slice(q);
        let now = self.now;
        let queue = &mut self.queues[q];
        queue.slice_start = Some(now);
        queue.slice_end = now + slice as i64;
        queue.allocated_slice = slice;
        queue.flags.slice_new = false;
        self.note(q, Decision::SliceTimed { slice: Nanos(slice) });
    }

    /// Makes the queue active (`__cfq_set_active_queue`).
    pub(super) fn activate_queue(&mut self, q: Option<QueueId>) {
        self.active = q;
        let Some(q) = q else { return };
        let now = self.now;
        let queue = &mut self.queues[q];
        queue.slice_start = None;
        queue.dispatch_start = now;
        queue.allocated_slice = 0;
        queue.slice_end = 0;
        queue.slice_dispatch = 0;
        queue.sectors = 0;
        let flags = &mut queue.flags;
        flags.wait_request = false;
        flags.must_dispatch = false;
        flags.fifo_checked = false;
        flags.slice_new = true;
        self.idle_timer = Nanos::NEVER;
        self.note_workload(q);
        self.note(q, Decision::SliceStart { budget: 0, slice: Nanos::ZERO });
    }

    /// Ends the active queue's turn. A queue that was cut off (`timed_out`) keeps the rest of its
    /// slice, or owes the time that it overran (`__cfq_slice_expired`).
    pub(super) fn expire(&mut self, timed_out: bool, reason: EndReason) {
        let Some(q) = self.active else { return };
        if self.queues[q].flags.wait_request {
            self.stop_idling(q, IdleEnd::GivenUp);
        }
        let seeky = self.queues[q].is_seeky();
        let flags = &mut self.queues[q].flags;
        flags.wait_busy = false;
        flags.split_coop |= flags.coop && seeky;
        if timed_out {
            let residual = match self.queues[q].flags.slice_new {
                true => self.scaled_slice(q) as i64,
                false => self.queues[q].slice_end - self.now,
            };
            self.queues[q].residual = residual;
        }
        let service = self.queues[q].sectors.min(u32::MAX.into()) as u32;
        self.note(q, Decision::SliceEnd { reason, service });
        self.charge(q);
        if self.queues[q].on_rr && self.queues[q].is_empty() {
            self.remove_busy(q);
        }
        self.reschedule(q);
        self.active = None;
        self.active_context = None;
    }

    /// `cfq_del_timer` for a queue that the disk idles for.
    pub(super) fn stop_idling(&mut self, q: QueueId, why: IdleEnd) {
        self.queues[q].flags.wait_request = false;
        self.idle_timer = Nanos::NEVER;
        self.note_idle_end(q, why);
    }

    /// Notes the end of idling for the queue, if the disk idled.
    pub(super) fn note_idle_end(&mut self, q: QueueId, why: IdleEnd) {
        if std::mem::take(&mut self.idle_noted) {
            self.note(q, Decision::IdleEnd { why });
        }
    }
}
