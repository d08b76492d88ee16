//! The idle timer: when idling for the queue in service began, and when it ends.
//!
//! Idling keeps the disk free for the next request of a process that sends one request after the other.
//! `idling.rs` decides whether the disk idles and for how long: `slice_idle`, less for a queue that
//! seeks, more for a weight-raised one. This part has only the times. There is one timer, because one
//! queue at a time is in service.
//!
//! The timer starts when the last request of the queue in service completes. It stops when its next
//! request comes, or when the turn ends for another reason. If it expires, the turn ends too. The start is
//! kept after that: the time before idling decides whether a turn that ends with its timer was slow, and
//! injection looks at how long the disk has idled.
//!
//! Follows `bfq_arm_slice_timer`, `idle_slice_timer` and `last_idling_start` (in nanoseconds and in
//! ticks) of Linux 7.3. The kernel's timer is one of high resolution, so the end is not rounded to
//! ticks. Left out: a timer that expires while another CPU ends the turn, which virtual time excludes.

use super::clock::{Clock, Jiffies};
use crate::units::Nanos;

/// The only timer: one queue is in service.
#[derive(Debug)]
pub(in crate::scheduler::bfq) struct IdleTimer {
    /// [`Nanos::NEVER`]: no idling.
    until: Nanos,
    began: u64,
    began_jiffies: Jiffies,
}

impl IdleTimer {
    pub fn new() -> IdleTimer {
        IdleTimer { until: Nanos::NEVER, began: 0, began_jiffies: 0 }
    }

    /// Starts idling for at most `span_ns`.
    pub fn start(&mut self, span_ns: u32, clock: &Clock) {
        self.began = clock.now;
        self.began_jiffies = clock.jiffies;
        self.until = clock.run + Nanos(u64::from(span_ns));
    }

    /// Stops idling.
    pub fn stop(&mut self) {
        self.until = Nanos::NEVER;
    }

    /// In the run's time.
    #[inline]
    pub fn until(&self) -> Nanos {
        self.until
    }

    /// When it was last started, in ns.
    pub fn began(&self) -> u64 {
        self.began
    }

    /// It was started at least `slice_idle_ns` ticks ago. The kernel adds nanoseconds to ticks
    /// here, so this never happens unless `slice_idle_us` is very small.
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
