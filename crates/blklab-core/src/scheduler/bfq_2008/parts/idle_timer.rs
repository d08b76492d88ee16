//! The idle timer: when idling for the queue in service began, and when it ends.
//!
//! After a request of a sequential process the disk idles, because the next one comes at once and is
//! close. The timer bounds that: `slice_idle`, or 2 ms for a process that seeks. `complete.rs` decides
//! whether the disk idles; this part has the times. There is one timer, since one queue is in service.
//!
//! It starts when a synchronous request completes, none is at the disk, and the queue in service is
//! empty. It stops when a request of that queue comes, when the turn ends, or when requests are
//! dispatched. If it expires, the turn ends as too idle, and the next budget is smaller, unless the
//! turn's time is over too. The start is kept after the timer ends: the rate of a turn that ends with
//! its timer is measured up to there, so that the idling does not count.
//!
//! Follows `idle_slice_timer`, `last_idling_start` and `bfq_arm_slice_timer` of the patch. The kernel's
//! timer is one of ticks, so the end is the start of a tick, which the caller computes. Left out: a
//! timer that expires while another CPU ends the turn, which virtual time excludes.

use crate::units::Nanos;

/// The only timer: one queue is in service.
#[derive(Debug)]
pub(in crate::scheduler::bfq_2008) struct IdleTimer {
    began: Nanos,
    /// [`Nanos::NEVER`]: no idling.
    until: Nanos,
}

impl IdleTimer {
    pub const NEW: IdleTimer = IdleTimer { began: Nanos::ZERO, until: Nanos::NEVER };

    pub fn start(&mut self, now: Nanos, until: Nanos) {
        *self = IdleTimer { began: now, until };
    }

    /// True if the disk was idling.
    #[inline]
    pub fn stop(&mut self) -> bool {
        std::mem::replace(&mut self.until, Nanos::NEVER) != Nanos::NEVER
    }

    /// The disk idles.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.until != Nanos::NEVER
    }

    #[inline]
    pub fn until(&self) -> Nanos {
        self.until
    }

    /// When it was last started.
    pub fn began(&self) -> Nanos {
        self.began
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timer_that_was_stopped_still_knows_when_it_began() {
        let mut timer = IdleTimer::NEW;
        assert!(!timer.is_on() && !timer.stop());
        timer.start(Nanos(5), Nanos(13));
        assert!(timer.is_on());
        assert_eq!(timer.until(), Nanos(13));
        assert!(timer.stop());
        assert!(!timer.is_on() && !timer.stop());
        assert_eq!((timer.until(), timer.began()), (Nanos::NEVER, Nanos(5)));
    }
}
