//! The disk's peak rate: that of the fastest turn so far.
//!
//! The largest budget is what the disk moves in three quarters of `timeout_sync` at this rate, once
//! 32 turns have been measured. Only turns longer than 20 ms count: short ones are full of hits in
//! the disk's cache. The rate never falls. Follows `bfq_update_peak_rate` and `bfq_calc_max_budget`
//! of the patch.

/// Turns after which the peak rate is used.
const ENOUGH_SAMPLES: u32 = 32;
/// Rates are in sectors per microsecond, with this many fractional bits.
const RATE_SHIFT: u32 = 16;
/// Only longer turns than this measure a rate.
const LEAST_MEASURED_US: u64 = 20_000;
/// A shorter turn has no rate at all.
const LEAST_BELIEVED_US: u64 = 100;

/// The rate of one turn.
#[derive(Clone, Copy, Debug)]
pub(in crate::scheduler::bfq_2008) struct TurnRate {
    rate: u64,
    us: u64,
}

impl TurnRate {
    /// The rate of that many sectors in that time, if it is not too short.
    pub fn of(sectors: u64, us: u64) -> Option<TurnRate> {
        (us >= LEAST_BELIEVED_US).then(|| TurnRate { rate: (sectors << RATE_SHIFT) / us, us })
    }

    /// The sectors that move at this rate in that time.
    pub fn sectors_in_ms(self, ms: u64) -> u64 {
        sectors_at(self.rate, ms)
    }
}

/// The rate of the fastest turn so far.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::scheduler::bfq_2008) struct PeakRate {
    rate: u64,
    samples: u32,
}

impl PeakRate {
    /// A turn ends. True if the largest budget should be computed again.
    pub fn measured(&mut self, turn: TurnRate) -> bool {
        if turn.us <= LEAST_MEASURED_US {
            return false;
        }
        let faster = turn.rate > self.rate;
        self.rate = self.rate.max(turn.rate);
        let last_missing = self.samples == ENOUGH_SAMPLES - 1;
        self.samples = (self.samples + 1).min(ENOUGH_SAMPLES);
        self.samples == ENOUGH_SAMPLES && (faster || last_missing)
    }

    /// The sectors that the disk moves in three quarters of the time.
    pub fn max_budget(&self, timeout_ms: u64) -> i32 {
        let sectors = sectors_at(self.rate, timeout_ms);
        i32::try_from(sectors - sectors / 4).unwrap_or(i32::MAX)
    }
}

fn sectors_at(rate: u64, ms: u64) -> u64 {
    rate.saturating_mul(1000).saturating_mul(ms) >> RATE_SHIFT
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turn(sectors: u64, us: u64) -> TurnRate {
        TurnRate::of(sectors, us).expect("long enough")
    }

    #[test]
    fn the_largest_budget_takes_three_quarters_of_the_timeout_at_the_peak_rate() {
        let mut peak = PeakRate::default();
        let mut measured = |sectors: u64, us: u64| peak.measured(turn(sectors, us));
        assert!((0..31).all(|_| !measured(8000, 60_000)));
        assert!(measured(8000, 60_000), "the 32nd makes it known");
        assert!(!measured(8000, 60_000) && !measured(4000, 60_000));
        assert!(!measured(8000, 60_000), "a slow turn does not make it slower");
        assert!(measured(9000, 60_000), "faster than ever");
        // 9000 sectors in 60 ms are 18750 in 125 ms.
        assert!((18_750 - 18_750 / 4 - peak.max_budget(125)).abs() < 10, "{}", peak.max_budget(125));
    }

    #[test]
    fn short_turns_measure_nothing() {
        let mut peak = PeakRate::default();
        assert!((0..100).all(|_| !peak.measured(turn(9000, 20_000))));
        assert_eq!(peak.max_budget(125), 0);
        assert!(TurnRate::of(8, 99).is_none());
        assert!(turn(8, 100).sectors_in_ms(100).abs_diff(8000) < 5, "though they have a rate");
    }
}
