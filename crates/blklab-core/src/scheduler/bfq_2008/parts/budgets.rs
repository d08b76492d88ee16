//! Budgets: how many sectors a turn may use, and how the next budget follows from past turns.
//!
//! * A queue that used up its budget gets 1024 sectors more, up to the largest budget.
//! * A queue that left the disk idle gets 128 less, down to half of the largest.
//! * A queue that timed out starts again with three quarters of the largest, from which later turns
//!   can move it up or down.
//! * An asynchronous queue has the largest.
//!
//! The largest budget follows from the [peak rate](super::peak_rate), unless `max_budget` is set.
//! The ends of its first ten turns say little: until then, a queue's fallback is a fixed number.
//!
//! Follows `__bfq_bfqq_recalc_budget`, `bfq_default_budget` and `bfq_update_peak_rate` of the patch.
//! B-WF2Q+ stores the budget of a turn and the sectors served; this part computes.

use super::peak_rate::{PeakRate, TurnRate};
use crate::scheduler::journal::EndReason;

/// The largest budget before the disk's rate is known, in sectors.
const DEFAULT_MAX_BUDGET: i32 = 16 * 1024;
/// After this many turns (in 256ths, weighted: about ten) a queue's own behaviour has set its
/// budget.
const ENOUGH_TURNS: u32 = 194;
/// The step by which budgets change: eight steps up, one down.
const STEP: i32 = 128;

/// The budget of one queue's next turn, from its past turns.
#[derive(Clone, Copy, Debug)]
pub(in crate::scheduler::bfq_2008) struct Allowance {
    sectors: i32,
    /// Turns, in 256ths, weighted by age.
    turns: u32,
}

impl Allowance {
    fn new(sectors: i32) -> Allowance {
        Allowance { sectors, turns: 0 }
    }

    #[inline]
    pub fn sectors(&self) -> i32 {
        self.sectors
    }

    /// The queue comes into service.
    pub fn turn_begins(&mut self) {
        self.turns = (self.turns * 7 + 256) / 8;
    }

    fn is_settled(&self) -> bool {
        self.turns >= ENOUGH_TURNS
    }
}

/// The largest budget.
#[derive(Debug)]
pub(in crate::scheduler::bfq_2008) struct Budgets {
    most: i32,
    /// `max_budget` was set.
    fixed: bool,
    timeout_sync_ms: u64,
    peak: PeakRate,
}

impl Budgets {
    /// `max_budget`: 0 takes it from the peak rate.
    pub fn new(max_budget: i32, timeout_sync_ms: u64) -> Budgets {
        let fixed = max_budget > 0;
        let most = if fixed { max_budget } else { DEFAULT_MAX_BUDGET };
        Budgets { most, fixed, timeout_sync_ms, peak: PeakRate::default() }
    }

    /// The allowance of a new queue.
    pub fn first(&self) -> Allowance {
        Allowance::new(self.fallback(false))
    }

    /// Three quarters of the largest.
    fn fallback(&self, settled: bool) -> i32 {
        let most = if settled || self.fixed { self.most } else { DEFAULT_MAX_BUDGET };
        most - most / 4
    }

    /// The budget of the next turn, from the way this one ended. False if that changes nothing.
    pub fn recalculate(&self, allowance: &mut Allowance, sync: bool, reason: EndReason) -> bool {
        let (old, least, most) = (allowance.sectors, self.most / 2, self.most);
        let new = match reason {
            _ if !sync => most,
            EndReason::TooIdle => (old - STEP).max(least),
            EndReason::TimeOut => self.fallback(allowance.is_settled()),
            EndReason::BudgetExhausted => old.saturating_add(8 * STEP).min(most),
            _ => return false,
        };
        let limited = allowance.is_settled() && !self.fixed;
        allowance.sectors = if limited { new.min(most) } else { new };
        true
    }

    /// Measures the disk's rate when a turn of `sectors` with this budget ends. True if the queue was
    /// fast enough to use up its budget before the timeout.
    pub fn measure(&mut self, sectors: u64, us: u64, budget: u64) -> bool {
        let Some(turn) = TurnRate::of(sectors, us) else { return false };
        if self.peak.measured(turn) && !self.fixed {
            self.most = self.peak.max_budget(self.timeout_sync_ms);
        }
        turn.sectors_in_ms(self.timeout_sync_ms) > budget
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The budget after a turn that ended so.
    fn after(budgets: &Budgets, sectors: i32, reason: EndReason) -> Option<i32> {
        let mut allowance = Allowance::new(sectors);
        budgets.recalculate(&mut allowance, true, reason).then_some(allowance.sectors())
    }

    #[test]
    fn the_next_budget_follows_from_how_the_turn_ended() {
        let budgets = Budgets::new(0, 125);
        assert_eq!(budgets.first().sectors(), 12_288);
        for (reason, expected) in [
            (EndReason::BudgetExhausted, Some(11_024)),
            (EndReason::TimeOut, Some(12_288)),
            (EndReason::TooIdle, Some(9872)),
            (EndReason::NoMoreRequests, None),
        ] {
            assert_eq!(after(&budgets, 10_000, reason), expected, "{reason:?}");
        }
    }

    #[test]
    fn budgets_stay_between_half_of_the_largest_and_the_largest() {
        let budgets = Budgets::new(1000, 125);
        assert_eq!(after(&budgets, 510, EndReason::TooIdle), Some(500));
        assert_eq!(after(&budgets, 900, EndReason::BudgetExhausted), Some(1000));
        let mut asynchronous = Allowance::new(10);
        assert!(budgets.recalculate(&mut asynchronous, false, EndReason::NoMoreRequests));
        assert_eq!(asynchronous.sectors(), 1000);
    }

    #[test]
    fn a_queue_follows_the_peak_rate_after_ten_turns() {
        let mut budgets = Budgets::new(0, 125);
        // 4000 sectors in 40 ms: 9375 in three quarters of 125 ms.
        (0..32).for_each(|_| {
            budgets.measure(4000, 40_000, 4000);
        });
        let mut allowance = budgets.first();
        (0..10).for_each(|_| allowance.turn_begins());
        budgets.recalculate(&mut allowance, true, EndReason::TimeOut);
        assert_eq!(allowance.sectors(), 12_288);
        allowance.turn_begins();
        budgets.recalculate(&mut allowance, true, EndReason::TimeOut);
        assert!(allowance.sectors().abs_diff(9375 * 3 / 4) < 5, "{}", allowance.sectors());
    }

    #[test]
    fn a_turn_is_fast_if_its_budget_would_not_last_until_the_timeout() {
        let mut budgets = Budgets::new(2000, 125);
        assert!(budgets.measure(320, 4000, 1500));
        assert!(!budgets.measure(320, 120_000, 1500));
        assert!(!budgets.measure(320, 99, 1500), "too short to say");
    }
}
