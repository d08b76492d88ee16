//! Budgets: how many sectors a queue may be served in one slice, and how the next budget follows
//! from the last slice.
//!
//! Follows `__bfq_bfqq_recalc_budget`, `bfq_bfqq_charge_time` and `bfq_bfqq_is_slow` of Linux 7.3.
//!
//! * A queue that used up its budget, or still had requests when its timeout passed, gets a larger
//!   one; a queue that left the disk idle gets a smaller one; a queue that ran out of requests gets
//!   what it used. No budget is below a 32nd of the largest.
//! * The largest budget is what the disk moves at its peak rate in `timeout_sync`, so that a
//!   sequential queue uses it up just before its timeout. For about the first 200 budgets, and if
//!   `max_budget` was set, it is a fixed number.
//! * A queue that was slow, because it seeks or has got less than half of the largest budget, is
//!   charged for time: the same fraction of the largest budget as of the slice's time. Otherwise a
//!   random reader would get its share of sectors, and with it most of the disk's time.
//!
//! Each queue's budget and the sectors served are stored in B-WF2Q+; this part computes.

use super::peak_rate::PeakRate;
use crate::scheduler::bfq::tunables::Tuning;
use crate::scheduler::journal::EndReason;

/// Until this many budgets (in eighths, weighted) the largest budget is the default.
const MIN_BUDGETS: u32 = 194;
/// Sectors.
const DEFAULT_MAX_BUDGET: i32 = 16 * 1024;
/// A slice longer than this is slow if less than half of the largest budget was served, in us.
const LONG_SLICE_US: u32 = 20_000;

/// The use that a queue made of its slice.
#[derive(Clone, Copy, Debug)]
pub(in crate::scheduler::bfq) struct Slice {
    pub sync: bool,
    pub raised: bool,
    /// The largest budget when the slice began.
    pub max_budget: i32,
    /// Sectors served.
    pub service: i32,
    /// Requests in flight.
    pub in_flight: u32,
}

/// The bounds of budgets, and the start of the current slice.
#[derive(Debug)]
pub(in crate::scheduler::bfq) struct Budgets {
    most: i32,
    /// `max_budget` was set.
    fixed: bool,
    /// `jiffies_to_msecs` of `timeout_sync`.
    timeout_ms: u64,
    /// In eighths, weighted.
    assigned: u32,
    slice_began: u64,
}

impl Budgets {
    pub fn new(tuning: &Tuning, rate: &PeakRate) -> Budgets {
        let fixed = tuning.max_budget > 0;
        let mut budgets = Budgets {
            most: if fixed { tuning.max_budget } else { DEFAULT_MAX_BUDGET },
            fixed,
            timeout_ms: tuning.timeout_ms(),
            assigned: 0,
            slice_began: 0,
        };
        if tuning.timeout_is_set {
            budgets.rate_changed(rate);
        }
        budgets
    }

    /// The estimate of the disk's rate has changed: so has the largest budget, unless it was set.
    pub fn rate_changed(&mut self, rate: &PeakRate) {
        if !self.fixed {
            self.most = rate.sectors_in_ms(self.timeout_ms);
        }
    }

    #[inline]
    fn has_statistics(&self) -> bool {
        self.assigned >= MIN_BUDGETS
    }

    /// The largest budget at the moment.
    #[inline]
    pub fn most(&self) -> i32 {
        if self.has_statistics() { self.most } else { DEFAULT_MAX_BUDGET }
    }

    /// The smallest budget.
    #[inline]
    pub fn least(&self) -> i32 {
        self.most() / 32
    }

    /// A queue comes into service and gets its budget.
    pub fn slice_begins(&mut self, now: u64) {
        self.assigned = (self.assigned * 7 + 256) / 8;
        self.slice_began = now;
    }

    /// The queue's next budget, from how its slice ended; `None`: unchanged.
    pub fn after(&self, slice: Slice, reason: EndReason) -> Option<i32> {
        let (least, most) = (self.least(), self.most);
        let old = if slice.raised { 2 * least } else { slice.max_budget };
        let budget = match reason {
            _ if !slice.sync => most,
            _ if slice.raised => old,
            // Requests are still in flight: the queue would have continued.
            EndReason::TooIdle if slice.in_flight > 0 => (old * 2).min(most),
            EndReason::TooIdle if old > 5 * least => old - 4 * least,
            EndReason::TooIdle => least,
            EndReason::TimeOut => (old * 2).min(most),
            EndReason::BudgetExhausted => old.saturating_mul(4).min(most),
            EndReason::NoMoreRequests => slice.service.max(least),
            _ => return None,
        };
        Some(if self.has_statistics() && !self.fixed { budget.min(most) } else { budget })
    }

    /// The charge for `time_ms` of the disk's time: the largest budget per default `timeout_sync`.
    pub fn sectors_for_time(&self, time_ms: u64, hz: u64) -> i32 {
        let timeout_ms = hz / 8 * 1000 / hz;
        (self.most as u64 * time_ms.min(timeout_ms) / timeout_ms) as i32
    }

    /// Whether a synchronous queue was slow in its slice until `until`, and how many ms it was in
    /// service.
    pub fn slowness(&self, until: u64, service: i32, seeky: bool, rotational: bool) -> (bool, u64) {
        let spent_us = (until.wrapping_sub(self.slice_began) / 1000) as u32;
        if spent_us < 1000 {
            return (seeky, if rotational { 8 } else { 2 });
        }
        let slow = if spent_us > LONG_SLICE_US { service < self.most / 2 } else { seeky };
        (slow, u64::from(spent_us / 1000))
    }
}

#[cfg(test)]
mod tests {
    use super::super::seek::DiskKind;
    use super::super::testing::tuning;
    use super::*;

    fn budgets(tunables: &[(&str, i64)]) -> Budgets {
        Budgets::new(&tuning(tunables), &PeakRate::new(DiskKind { rotational: true }))
    }

    const SLICE: Slice = Slice { sync: true, raised: false, max_budget: 4096, service: 1000, in_flight: 0 };

    #[test]
    fn the_next_budget_follows_from_how_the_slice_ended() {
        let budgets = budgets(&[]);
        for (reason, expected) in [
            (EndReason::BudgetExhausted, Some(16_384)),
            (EndReason::TimeOut, Some(8192)),
            // 4096 minus four times the smallest budget, which is a 32nd of 16384.
            (EndReason::TooIdle, Some(2048)),
            (EndReason::NoMoreRequests, Some(1000)),
            (EndReason::Preempted, None),
        ] {
            assert_eq!(budgets.after(SLICE, reason), expected, "{reason:?}");
        }
        let busy = Slice { in_flight: 1, ..SLICE };
        assert_eq!(budgets.after(busy, EndReason::TooIdle), Some(8192));
        let small = Slice { max_budget: 600, service: 1, ..SLICE };
        assert_eq!(budgets.after(small, EndReason::TooIdle), Some(512));
        assert_eq!(budgets.after(small, EndReason::NoMoreRequests), Some(512));
    }

    #[test]
    fn however_often_a_queue_pauses_no_budget_falls_below_a_32nd_of_the_largest() {
        let budgets = budgets(&[]);
        for max_budget in 512..=16_384 {
            let next = budgets.after(Slice { max_budget, ..SLICE }, EndReason::TooIdle);
            assert!(
                next.is_some_and(|next| (512..=max_budget).contains(&next)),
                "{next:?} after {max_budget}"
            );
        }
    }

    #[test]
    fn raised_queues_get_short_slices_and_asynchronous_ones_the_longest() {
        let budgets = budgets(&[]);
        let raised = Slice { raised: true, ..SLICE };
        let asynchronous = Slice { sync: false, ..SLICE };
        for reason in [EndReason::BudgetExhausted, EndReason::TooIdle, EndReason::NoMoreRequests] {
            assert_eq!(budgets.after(raised, reason), Some(1024));
            assert_eq!(budgets.after(asynchronous, reason), Some(16_384));
        }
    }

    #[test]
    fn max_budget_holds_once_enough_budgets_were_given() {
        let mut budgets = budgets(&[("max_budget", 1024)]);
        assert_eq!(budgets.most(), 16_384);
        (0..10).for_each(|_| budgets.slice_begins(0));
        assert_eq!(budgets.most(), 16_384);
        budgets.slice_begins(0);
        assert_eq!((budgets.most(), budgets.least()), (1024, 32));
    }

    #[test]
    fn a_slice_is_slow_if_it_seeks_or_moves_little_for_long() {
        let mut budgets = budgets(&[]);
        budgets.slice_begins(0);
        let us = |us: u64| us * 1000;
        assert_eq!(budgets.slowness(us(999), 9000, true, true), (true, 8), "too short to measure");
        assert_eq!(budgets.slowness(us(20_000), 0, false, true), (false, 20));
        assert_eq!(budgets.slowness(us(20_001), 8191, false, true), (true, 20));
        assert_eq!(budgets.slowness(us(20_001), 8192, true, true), (false, 20));
    }

    #[test]
    fn time_is_charged_as_sectors_of_the_largest_budget() {
        let budgets = budgets(&[]);
        assert_eq!(budgets.sectors_for_time(25, 1000), 16_384 / 5);
        assert_eq!(budgets.sectors_for_time(5000, 1000), 16_384, "no more than a whole one");
    }
}
