//! Think time: the time from a completion to the process's next request. Idling does not pay for a
//! process with a think time longer than the idling.
//!
//! Follows `cfq_ttime` of Linux 4.12: a weighted mean of pauses, in which each older pause counts
//! 7/8 of the next. Processes, service trees and groups each have one. The mean is valid once there
//! are enough samples.

use super::super::kinds::Instant;

/// An hour before the run.
const LONG_AGO: Instant = -3_600_000_000_000;

/// A decaying mean of pauses.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::scheduler::cfq) struct ThinkTime {
    last_end: Instant,
    total: u64,
    samples: u64,
}

impl ThinkTime {
    /// Without a sample. The scheduler was set up long before the run, so that the first pause is a
    /// long one (`CFQ_RB_ROOT`, `cfq_init_cfqg_base`).
    pub const UNKNOWN: ThinkTime = ThinkTime { last_end: LONG_AGO, total: 0, samples: 0 };

    /// A request completes.
    #[inline]
    pub fn ended(&mut self, now: Instant) {
        self.last_end = now;
    }

    /// A request comes; a pause longer than twice the idle time counts as that.
    pub fn sample(&mut self, now: Instant, idle: u64) {
        let elapsed = ((now - self.last_end) as u64).min(2 * idle);
        self.samples = (7 * self.samples + 256) / 8;
        self.total = self.total.wrapping_mul(7).wrapping_add(elapsed.wrapping_mul(256)) / 8;
    }

    pub fn is_known(&self) -> bool {
        self.samples > 80
    }

    /// The mean (`total / samples`, rounded) is valid and longer than `span`: too long to idle for
    /// (`cfq_io_thinktime_big`). Called less often than samples come, and computed without a
    /// division.
    #[inline]
    pub fn is_longer(&self, span: u64) -> bool {
        self.is_known() && self.total + 128 >= span.saturating_add(1).saturating_mul(self.samples)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDLE: u64 = 8_000_000;

    /// After `pauses` pauses of `pause` ns.
    fn think_time(pauses: i64, pause: i64) -> ThinkTime {
        let mut time = ThinkTime::default();
        for turn in 0..pauses {
            time.ended(turn * 1_000_000_000);
            time.sample(turn * 1_000_000_000 + pause, IDLE);
        }
        time
    }

    #[test]
    fn a_think_time_is_known_after_three_pauses() {
        assert!(!think_time(2, 1000).is_known());
        assert!(!think_time(2, 1000).is_longer(0), "an unknown think time is not long");
        assert!(think_time(3, 1000).is_known());
    }

    #[test]
    fn it_is_compared_by_its_mean_and_long_pauses_are_cut() {
        assert!(think_time(20, 5_000_000).is_longer(4_900_000));
        // Samples are counted in whole 256ths, which makes the mean up to 3 % too large.
        assert!(!think_time(20, 5_000_000).is_longer(5_200_000));
        assert!(!think_time(20, 900_000_000).is_longer(17_000_000), "twice the time of idling");
    }
}
