//! Budgets: how many sectors a turn is worth, and how that follows from the last ones.

use super::Bfq2008;
use crate::request::{RequestId, RequestSlab};
use crate::scheduler::journal::EndReason;
use crate::scheduler::shared::wf2q::LeafId;

/// The largest budget before the disk's rate is known, in sectors.
pub(super) const DEFAULT_MAX_BUDGET: i32 = 16 * 1024;
/// A queue that has had so many turns (in 256ths, weighted: ten or so) has a budget that its
/// own behaviour made.
const ENOUGH_TURNS: u32 = 194;
/// What budgets grow and shrink by: eight steps up, one down.
const STEP: i32 = 128;
/// Turns after which the peak rate is believed.
const ENOUGH_SAMPLES: u32 = 32;
/// Rates are in sectors per microsecond with so many bits behind the point.
const RATE_SHIFT: u32 = 16;
/// A rate is measured over more than that only: short turns are full of hits in the disk's cache.
const LEAST_MEASURED_US: u64 = 20_000;
/// Less than that is no measurement at all.
const LEAST_BELIEVED_US: u64 = 100;

/// The fastest turn so far.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PeakRate {
    rate: u64,
    samples: u32,
}

impl PeakRate {
    /// A turn moved so many sectors in that time. True if the largest budget should be
    /// reckoned anew.
    fn measured(&mut self, rate: u64) -> bool {
        let faster = rate > self.rate;
        self.rate = self.rate.max(rate);
        let last_missing = self.samples == ENOUGH_SAMPLES - 1;
        self.samples = (self.samples + 1).min(ENOUGH_SAMPLES);
        self.samples == ENOUGH_SAMPLES && (faster || last_missing)
    }

    /// What moves in three quarters of the time (`bfq_calc_max_budget`).
    fn max_budget(&self, timeout_ms: u64) -> i32 {
        let sectors = sectors_at(self.rate, timeout_ms);
        i32::try_from(sectors - sectors / 4).unwrap_or(i32::MAX)
    }
}

fn sectors_at(rate: u64, ms: u64) -> u64 {
    rate.saturating_mul(1000).saturating_mul(ms) >> RATE_SHIFT
}

impl Bfq2008 {
    /// What a queue begins with, and falls back to: three quarters of the most, so that it can
    /// be learnt from there which way to go (`bfq_default_budget`).
    pub(super) fn default_budget(&self, budgets_assigned: u32) -> i32 {
        let most = if budgets_assigned < ENOUGH_TURNS && self.tuned.max_budget == 0 {
            DEFAULT_MAX_BUDGET
        } else {
            self.max_budget
        };
        most - most / 4
    }

    #[inline]
    pub(super) fn budget_left(&self, q: LeafId) -> i32 {
        self.wf2q.budget(q) - self.wf2q.service(q)
    }

    /// The queue's budget, and at least what its next request takes.
    pub(super) fn set_budget_for_next(&mut self, q: LeafId, requests: &RequestSlab) {
        let queue = &self.queues[q.index()];
        let Some(next) = queue.next else { return };
        let budget = queue.max_budget.max(requests[next].sectors as i32);
        self.wf2q.set_budget(q, budget);
    }

    /// Another request goes next. Nothing changes during the queue's own turn: who was chosen
    /// for a budget is served for that budget (`bfq_updated_next_req`).
    pub(super) fn next_has_changed(&mut self, q: LeafId, requests: &RequestSlab) {
        if self.queues[q.index()].next.is_some() && self.in_service != Some(q) {
            self.set_budget_for_next(q, requests);
            self.wf2q.requeue(q, false, self.now);
        }
    }

    /// Let the queue pay for all of its budget: where shares in sectors cannot be kept, they
    /// are kept in time (`bfq_bfqq_charge_full_budget`).
    pub(super) fn charge_full_budget(&mut self, q: LeafId) {
        let rest = self.budget_left(q).max(0);
        self.wf2q.served(q, rest as u32);
    }

    /// The budget of the next turn, from how this one ended (`__bfq_bfqq_recalc_budget`).
    pub(super) fn recalculate_budget(&mut self, q: LeafId, reason: EndReason, requests: &RequestSlab) {
        let queue = &self.queues[q.index()];
        let (old, least, most) = (queue.max_budget, self.max_budget / 2, self.max_budget);
        let new = match reason {
            _ if !queue.sync => most,
            EndReason::TooIdle => (old - STEP).max(least),
            EndReason::TimeOut => self.default_budget(queue.budgets_assigned),
            EndReason::BudgetExhausted => old.saturating_add(8 * STEP).min(most),
            _ => return,
        };
        let limited = queue.budgets_assigned >= ENOUGH_TURNS && self.tuned.max_budget == 0;
        self.queues[q.index()].max_budget = if limited { new.min(most) } else { new };
        self.set_budget_for_next(q, requests);
    }

    /// Learn the disk's rate from a turn that ends. True if the queue got sectors so fast that
    /// it would have been through with its budget before its time was over
    /// (`bfq_update_peak_rate`).
    pub(super) fn measure(&mut self, q: LeafId, without_idling: bool) -> bool {
        let queue = &self.queues[q.index()];
        if !queue.sync || queue.budget_new {
            return false;
        }
        let until = if without_idling { self.idling_start } else { self.now };
        let us = until.saturating_sub(self.budget_start).0 / 1000;
        if us < LEAST_BELIEVED_US {
            return false;
        }
        let rate = ((self.wf2q.service(q).max(0) as u64) << RATE_SHIFT) / us;
        if us > LEAST_MEASURED_US && self.peak_rate.measured(rate) && self.tuned.max_budget == 0 {
            self.max_budget = self.peak_rate.max_budget(self.tuned.timeout_sync_ms);
        }
        sectors_at(rate, self.tuned.timeout_sync_ms) > self.wf2q.budget(q).max(0) as u64
    }

    /// The time of a turn begins to run: when its first request has ended.
    pub(super) fn start_timeout(&mut self, q: LeafId) {
        self.budget_start = self.now;
        let queue = &mut self.queues[q.index()];
        queue.budget_new = false;
        queue.budget_timeout = self.tick + self.tuned.timeout[usize::from(queue.sync)];
    }

    pub(super) fn is_timed_out(&self, q: LeafId) -> bool {
        let queue = &self.queues[q.index()];
        !queue.budget_new && self.tick >= queue.budget_timeout
    }

    /// What `id` counts against a budget.
    #[inline]
    pub(super) fn fits_budget(&self, q: LeafId, id: RequestId, requests: &RequestSlab) -> bool {
        i64::from(requests[id].sectors) <= i64::from(self.budget_left(q))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_budget_is_what_moves_at_the_peak_rate_in_three_quarters_of_the_timeout() {
        let mut peak = PeakRate::default();
        let mut measured = |sectors: u64, us: u64| peak.measured((sectors << RATE_SHIFT) / us);
        assert!((0..31).all(|_| !measured(8000, 60_000)));
        assert!(measured(8000, 60_000), "the 32nd makes it known");
        assert!(!measured(8000, 60_000) && !measured(4000, 60_000));
        assert!(!measured(8000, 60_000), "a slow turn does not make it slower");
        assert!(measured(9000, 60_000), "faster than ever");
        // 9000 sectors in 60 ms are 18750 in 125.
        assert!((18_750 - 18_750 / 4 - peak.max_budget(125)).abs() < 10, "{}", peak.max_budget(125));
    }
}
