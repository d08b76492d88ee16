//! The kernel's two clocks: nanoseconds and ticks.

use crate::ticks::Ticks;
use crate::units::Nanos;

/// The uptime of the machine when the run begins: times that were never set are zero in the kernel,
/// and must lie far back.
pub(in crate::scheduler::bfq) const BOOTED: Nanos = Nanos::from_secs(60);

/// Ticks, counted from [`BOOTED`] before the run.
pub(in crate::scheduler::bfq) type Jiffies = i64;

/// `bfq_smallest_from_now`: so far back that every span since then is over.
pub(in crate::scheduler::bfq) const LONG_AGO: Jiffies = i64::MIN / 4;

/// The current time on both clocks.
#[derive(Clone, Copy, Debug)]
pub(in crate::scheduler::bfq) struct Clock {
    ticks: Ticks,
    /// Nanoseconds.
    pub now: u64,
    /// Ticks.
    pub jiffies: Jiffies,
    /// The run's time.
    pub run: Nanos,
    next_tick: u64,
    /// The kernel reads one time for the current request and uses it everywhere.
    pub stands_still: bool,
}

impl Clock {
    pub fn new(ticks: Ticks) -> Clock {
        let mut clock =
            Clock { ticks, now: 0, jiffies: 0, run: Nanos::ZERO, next_tick: 0, stands_still: false };
        clock.set(Nanos::ZERO);
        clock
    }

    #[inline]
    pub fn set(&mut self, now: Nanos) {
        self.run = now;
        self.now = now.0 + BOOTED.0;
        if self.now >= self.next_tick {
            self.jiffies = self.ticks.at(Nanos(self.now)) as Jiffies;
            self.next_tick = (self.jiffies as u64 + 1) * (1_000_000_000 / self.ticks.hz());
        }
    }

    /// A span in ticks (`msecs_to_jiffies`).
    pub fn span(&self, span: Nanos) -> Jiffies {
        self.ticks.span(span) as Jiffies
    }

    /// No tick has passed until `now`.
    #[inline]
    pub fn is_in_same_tick(&self, now: Nanos) -> bool {
        now.0 + BOOTED.0 < self.next_tick
    }

    /// `time_is_before_jiffies`.
    #[inline]
    pub fn is_past(&self, time: Jiffies) -> bool {
        time < self.jiffies
    }

    /// `time_is_before_eq_jiffies`.
    #[inline]
    pub fn is_reached(&self, time: Jiffies) -> bool {
        time <= self.jiffies
    }
}
