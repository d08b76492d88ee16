//! The timer of idling: until when the disk waits for the next request of the queue in service, and
//! since when (`idle_slice_timer` of Linux 7.3). Whether idling pays is decided in `idling.rs`.
//!
//! The beginning is kept after the timer has ended: a slice that ends through its timer is judged
//! by the time before the idling began, and injection looks at how long the idling lasts.

use super::clock::{Clock, Jiffies};
use crate::units::Nanos;

/// One timer, since one queue is in service.
#[derive(Debug)]
pub(in crate::scheduler::bfq) struct IdleTimer {
    /// [`Nanos::NEVER`]: the disk does not idle.
    until: Nanos,
    began: u64,
    began_jiffies: Jiffies,
}

impl IdleTimer {
    pub fn new() -> IdleTimer {
        IdleTimer { until: Nanos::NEVER, began: 0, began_jiffies: 0 }
    }

    /// The disk begins to idle for `span_ns` at most.
    pub fn start(&mut self, span_ns: u32, clock: &Clock) {
        self.began = clock.now;
        self.began_jiffies = clock.jiffies;
        self.until = clock.run + Nanos(u64::from(span_ns));
    }

    /// The disk no longer idles.
    pub fn stop(&mut self) {
        self.until = Nanos::NEVER;
    }

    /// In the run's own time.
    #[inline]
    pub fn until(&self) -> Nanos {
        self.until
    }

    /// When it was started last, in ns.
    pub fn began(&self) -> u64 {
        self.began
    }

    /// It was started `slice_idle_ns` ticks ago or earlier. The kernel adds nanoseconds to ticks
    /// here, so that this never comes to pass unless `slice_idle_us` is a handful.
    pub fn is_long_ago(&self, slice_idle_ns: u32, clock: &Clock) -> bool {
        clock.is_reached(self.began_jiffies + i64::from(slice_idle_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::tuning;
    use super::*;

    #[test]
    fn a_timer_that_was_stopped_still_knows_when_it_began() {
        let mut clock = Clock::new(tuning(&[]).ticks);
        clock.set(Nanos::from_millis(5));
        let mut timer = IdleTimer::new();
        timer.start(8_000_000, &clock);
        assert_eq!(timer.until(), Nanos::from_millis(13));
        let began = clock.now;
        clock.set(Nanos::from_millis(8));
        timer.stop();
        assert_eq!((timer.until(), timer.began()), (Nanos::NEVER, began));
        assert!(timer.is_long_ago(3, &clock) && !timer.is_long_ago(4, &clock));
    }
}
