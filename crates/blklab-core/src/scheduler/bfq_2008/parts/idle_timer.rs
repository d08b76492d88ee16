//! The idle timer: when idling for the queue in service began, and when it ends (`idle_slice_timer`
//! and `last_idling_start` of the patch).
//!
//! The start is kept after the timer ends: a turn that ends with its timer is measured up to there.

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
