//! The kernel's coarse clock: jiffies, and timers that fire on them.
//!
//! Follows `kernel/time/timer.c` of Linux 7.3: a timer that is set at jiffy `j` for `n` jiffies
//! fires at `j + n + 1`, because `j` may be almost over. A timer far in the future fires later,
//! because it waits in a coarser level of the wheel (`calc_index`).

use crate::units::Nanos;

/// Buckets of a level of the timer wheel (`LVL_SIZE`).
const LEVEL_SIZE: u64 = 64;
/// Each level is this many bits coarser than the one before (`LVL_CLK_SHIFT`).
const LEVEL_SHIFT: u32 = 3;
/// Levels beyond these are for times that no timer here has (`LVL_DEPTH`).
const LEVELS: u32 = 8;
/// The uptime of the machine when the disk appears, as in a guest: long enough that to bfq a disk without a completion
/// has been idle for long, whatever the size of its requests. At 1000 ticks per second the buckets of all timers of less
/// than 32 s end as they would without it.
pub const BOOTED: Nanos = Nanos::from_secs(64);
/// A run begins so long after its disk has appeared, as in a guest (`RUN_BEGINS` of `blklab-guest`). Until then nothing is
/// written. A writer that measures the bandwidth before the flusher has begun counts this time, and so does the flusher, which
/// looks for old data every five seconds.
pub const BEGINS: Nanos = Nanos::from_millis(3600);

/// A number of ticks per second (`CONFIG_HZ`), the first at time zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticks {
    hz: u64,
}

impl Ticks {
    /// `hz` ticks per second: at least one.
    pub const fn per_second(hz: u64) -> Ticks {
        Ticks { hz }
    }

    /// The number of ticks per second.
    pub const fn hz(self) -> u64 {
        self.hz
    }

    /// Ticks until `now` (`jiffies`).
    pub const fn at(self, now: Nanos) -> u64 {
        now.0 / self.length()
    }

    /// A span in ticks, rounded up (`msecs_to_jiffies`).
    pub const fn span(self, span: Nanos) -> u64 {
        span.0.div_ceil(self.length())
    }

    /// When a timer fires that is set at `now` for `ticks` ticks.
    pub fn timer(self, now: Nanos, ticks: u64) -> Nanos {
        self.fires(now, ticks, ticks)
    }

    /// The same of one that is set in a tick in which another has fired on that CPU: the wheel is a tick ahead then
    /// (`base->clk` in `__run_timers`), so that a level takes one tick more.
    pub fn timer_after_one(self, now: Nanos, ticks: u64) -> Nanos {
        self.fires(now, ticks, ticks.saturating_sub(1))
    }

    /// `ahead`: ticks from that of the wheel, which decide the level.
    fn fires(self, now: Nanos, ticks: u64, ahead: u64) -> Nanos {
        let mut shift = 0;
        while ahead >= (LEVEL_SIZE - 1) << shift && shift < (LEVELS - 1) * LEVEL_SHIFT {
            shift += LEVEL_SHIFT;
        }
        let fires = (((self.first() + self.at(now) + ticks) >> shift) + 1) << shift;
        Nanos((fires - self.first()).saturating_mul(self.length()))
    }

    /// The first whole second of the kernel's count of ticks that is after `tick` (`round_jiffies_up`).
    pub const fn next_second(self, tick: u64) -> u64 {
        ((self.first() + tick) / self.hz + 1) * self.hz - self.first()
    }

    /// The kernel's count of ticks at time zero, which decides where the buckets of coarser levels end: 300 s
    /// before an overflow of 32 bits at boot (`INITIAL_JIFFIES`), and a run begins later.
    const fn first(self) -> u64 {
        (1 << 32) - 300 * self.hz + (BOOTED.0 + BEGINS.0) / self.length()
    }

    /// The start of a tick: before Linux 4.8 made the wheel coarse, a timer set for the tick fired
    /// then.
    pub const fn start(self, tick: u64) -> Nanos {
        Nanos(tick.saturating_mul(self.length()))
    }

    const fn length(self) -> u64 {
        1_000_000_000 / self.hz
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timer_never_fires_early_and_near_ones_at_most_a_tick_late() {
        let ticks = Ticks::per_second(100);
        assert_eq!(ticks.span(Nanos::from_millis(3)), 1);
        assert_eq!(ticks.timer(Nanos::from_millis(400), 1), Nanos::from_millis(420));
        assert_eq!(ticks.timer(Nanos::from_millis(409), 1), Nanos::from_millis(420));
        assert_eq!(ticks.timer(Nanos::ZERO, 62), Nanos::from_millis(630));
    }

    #[test]
    fn a_distant_timer_waits_for_the_next_bucket_of_its_level() {
        let ticks = Ticks::per_second(1000);
        assert_eq!(ticks.timer(Nanos::ZERO, 63), Nanos::from_millis(64));
        assert_eq!(ticks.timer(Nanos::ZERO, 200), Nanos::from_millis(208));
        // Linux's count at the begin of a run is 48 more than a multiple of 512.
        assert_eq!(ticks.timer(Nanos::ZERO, 504), Nanos::from_millis(528));
        assert_eq!(ticks.timer(Nanos::from_millis(9), 520), Nanos::from_millis(592));
        // As seen in a guest: the flusher, 5 s after the first page became dirty.
        assert_eq!(ticks.timer(Nanos::ZERO, 5000), Nanos::from_millis(5072));
    }

    #[test]
    fn whole_seconds_are_those_of_the_kernels_count() {
        let ticks = Ticks::per_second(1000);
        // As seen in a guest: ext4's commit of a transaction that a run's begin has opened.
        let (due, next) = (5000, ticks.next_second(5000));
        assert_eq!((next, ticks.next_second(next - 1), ticks.next_second(next)), (5104, 5104, 6104));
        assert_eq!(ticks.timer(Nanos::ZERO, next), Nanos::from_millis(5584));
        assert!(ticks.next_second(due) - due <= ticks.hz());
    }

    #[test]
    fn a_level_takes_a_tick_more_if_another_timer_has_fired_in_this_tick() {
        let ticks = Ticks::per_second(1000);
        let at = Nanos::from_millis(607);
        // As seen in a guest: a writer's pause of 63 ticks, after another pause.
        assert_eq!(ticks.timer_after_one(at, 63), Nanos::from_millis(671));
        assert_eq!(ticks.timer(at, 63), Nanos::from_millis(672));
        assert_eq!(ticks.timer_after_one(at, 64), ticks.timer(at, 64));
        assert_eq!(ticks.timer_after_one(at, 0), Nanos::from_millis(608));
    }
}
