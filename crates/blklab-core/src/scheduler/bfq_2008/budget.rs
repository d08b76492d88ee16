//! Budgets: how many sectors a turn may use, and how the next budget follows from past turns.

use super::Bfq2008;
use crate::request::{RequestId, RequestSlab};
use crate::scheduler::journal::EndReason;
use crate::scheduler::shared::wf2q::LeafId;

/// The largest budget before the disk's rate is known, in sectors.
pub(super) const DEFAULT_MAX_BUDGET: i32 = 16 * 1024;
/// After this many turns (in 256ths, weighted: about ten) a queue's own behaviour has set its
/// budget.
const ENOUGH_TURNS: u32 = 194;
/// The step by which budgets change: eight steps up, one down.
const STEP: i32 = 128;
/// Turns after which the peak rate is used.
const ENOUGH_SAMPLES: u32 = 32;
/// Rates are in sectors per microsecond, with this many fractional bits.
const RATE_SHIFT: u32 = 16;
/// Only longer turns than this measure a rate: short turns are full of hits in the disk's cache.
const LEAST_MEASURED_US: u64 = 20_000;
/// A shorter turn is not measured at all.
const LEAST_BELIEVED_US: u64 = 100;

/// The rate of the fastest turn so far.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PeakRate {
    rate: u64,
    samples: u32,
}

impl PeakRate {
    /// Counts the rate of a turn. True if the largest budget should be computed again.
    fn measured(&mut self, rate: u64) -> bool {
        let faster = rate > self.rate;
        self.rate = self.rate.max(rate);
        let last_missing = self.samples == ENOUGH_SAMPLES - 1;
        self.samples = (self.samples + 1).min(ENOUGH_SAMPLES);
        self.samples == ENOUGH_SAMPLES && (faster || last_missing)
    }

    /// The sectors that the disk moves in three quarters of the time (`bfq_calc_max_budget`).
    fn max_budget(&self, timeout_ms: u64) -> i32 {
        let sectors = sectors_at(self.rate, timeout_ms);
        i32::try_from(sectors - sectors / 4).unwrap_or(i32::MAX)
    }
}

fn sectors_at(rate: u64, ms: u64) -> u64 {
    rate.saturating_mul(1000).saturating_mul(ms) >> RATE_SHIFT
}

impl Bfq2008 {
    /// A queue's first and fallback budget: three quarters of the largest, so that later turns can
    /// move it up or down (`bfq_default_budget`).
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

    /// The queue's budget, and at least the sectors of its next request.
    pub(super) fn set_budget_for_next(&mut self, q: LeafId, requests: &RequestSlab) {
        let queue = &self.queues[q.index()];
        let Some(next) = queue.next else { return };
        let budget = queue.max_budget.max(requests[next].sectors as i32);
        self.wf2q.set_budget(q, budget);
    }

    /// The queue's next request changes. During the queue's own turn nothing changes: a queue is
    /// served for the budget with which it was chosen (`bfq_updated_next_req`).
    pub(super) fn next_has_changed(&mut self, q: LeafId, requests: &RequestSlab) {
        if self.queues[q.index()].next.is_some() && self.in_service != Some(q) {
            self.set_budget_for_next(q, requests);
            self.wf2q.requeue(q, false, self.now);
        }
    }

    /// Charges the queue for its whole budget: where shares in sectors cannot be kept, time is
    /// shared (`bfq_bfqq_charge_full_budget`).
    pub(super) fn charge_full_budget(&mut self, q: LeafId) {
        let rest = self.budget_left(q).max(0);
        self.wf2q.served(q, rest as u32);
    }

    /// The budget of the next turn, from the way this one ended (`__bfq_bfqq_recalc_budget`).
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

    /// Measures the disk's rate when a turn ends. True if the queue was fast enough to use up its
    /// budget before the timeout (`bfq_update_peak_rate`).
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

    /// Starts the timeout of a turn: its first request has completed.
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

    /// True if the rest of the budget suffices for `id`.
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
        // 9000 sectors in 60 ms are 18750 in 125 ms.
        assert!((18_750 - 18_750 / 4 - peak.max_budget(125)).abs() < 10, "{}", peak.max_budget(125));
    }
}
