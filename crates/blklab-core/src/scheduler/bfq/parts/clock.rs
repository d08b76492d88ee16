//! The kernel's two clocks: nanoseconds and ticks.
//!
//! BFQ reads both. Spans that it measures are in nanoseconds (`blk_time_get_ns`): think times, the time
//! of a turn, the disk's rate. Spans that it compares with a limit are in ticks (`jiffies`): the timeout
//! of a turn, weight-raising, the age of a queue. A span in ticks may be up to one tick shorter or longer
//! than the limit says: 4 ms at 250 ticks per second.
//!
//! The state is the current time on both clocks. The scheduler sets it at the start of each event
//! (a request comes, is dispatched or completes, a timer ends), and during the event it stands
//! still. The number of the tick needs a division, so it is computed only when the next tick has begun.
//! For requests of one plug the kernel keeps the time at which it filled the plug; the flag
//! `stands_still` tells that of the request that has just come.
//!
//! Follows `jiffies` and `time_is_before_jiffies` (`include/linux/jiffies.h`) and
//! `bfq_smallest_from_now` (`block/bfq-iosched.c`) of Linux 7.3. Left out: the overflow of `jiffies`.
//! The kernel's starts shortly before it; here a run begins [`BOOTED`] after the machine's start.

use crate::ticks::{self, Ticks};
use crate::units::Nanos;

/// The uptime of the machine when the run begins: times that were never set are zero in the kernel,
/// and must lie far back.
pub(in crate::scheduler::bfq) const BOOTED: Nanos = Nanos(ticks::BOOTED.0 + ticks::BEGINS.0);

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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_tick_begins_at_its_multiple_and_not_before() {
        let mut clock = Clock::new(Ticks::per_second(250));
        let booted = clock.jiffies;
        assert_eq!((clock.now, booted), (67_600_000_000, 16_900));
        clock.set(Nanos(3_999_999));
        assert_eq!((clock.now, clock.jiffies), (67_603_999_999, booted));
        assert!(clock.is_in_same_tick(Nanos(3_999_999)) && !clock.is_in_same_tick(Nanos(4_000_000)));
        clock.set(Nanos(4_000_000));
        assert_eq!((clock.run, clock.jiffies), (Nanos(4_000_000), booted + 1));
    }

    #[test]
    fn a_time_is_reached_in_its_tick_and_past_in_the_next() {
        let mut clock = Clock::new(Ticks::per_second(1000));
        let time = clock.jiffies + clock.span(Nanos::from_millis(2));
        let mut at = |ms| {
            clock.set(Nanos::from_millis(ms));
            (clock.is_reached(time), clock.is_past(time))
        };
        assert_eq!([at(1), at(2), at(3)], [(false, false), (true, false), (true, true)]);
        assert!(clock.is_past(LONG_AGO + clock.span(Nanos::from_secs(1_000_000))));
    }

    proptest! {
        /// The number of the tick is kept until the next one begins; that changes nothing.
        #[test]
        fn the_tick_is_the_one_of_the_time(
            hz in prop::sample::select(vec![100u64, 250, 300, 1000]),
            steps in prop::collection::vec(0u64..20_000_000, 1..50),
        ) {
            let ticks = Ticks::per_second(hz);
            let (mut clock, mut now) = (Clock::new(ticks), Nanos::ZERO);
            for step in steps {
                let before = clock.jiffies;
                now += Nanos(step);
                let same = clock.is_in_same_tick(now);
                clock.set(now);
                prop_assert_eq!(clock.jiffies, ticks.at(now + BOOTED) as Jiffies);
                prop_assert_eq!(same, clock.jiffies == before);
            }
        }
    }
}
