//! When a queue was created and last split off, and whether it has ever been busy.
//!
//! Young queues are treated differently:
//!
//! * A new queue may belong to a burst, of which none gets weight-raising (`burst.rs`), and is a
//!   candidate for a stable merge with the queue created before it (`merging.rs`).
//! * Until some time has passed since a split, the think time is not judged, and a queue that becomes
//!   busy keeps the weight-raising that the split has restored.
//! * A planned stable merge happens only once a queue is settled: created and split off long ago.
//!
//! The state is one flag and two times. The flag ends when the queue becomes busy, or when its process
//! moves to another queue before that. The time of creation never changes; the time of the split is
//! [`LONG_AGO`] until the queue is split off a shared one. All spans are in ticks.
//!
//! Follows `creation_time`, `split_time` and the flag `just_created` of `bfq_queue` in Linux 7.3. Only
//! queues of synchronous requests are ever just created, as in `bfq_init_bfqq`. Left out: nothing.

use super::clock::{Clock, Jiffies, LONG_AGO};

/// The age of one queue.
#[derive(Clone, Copy, Debug)]
pub(in crate::scheduler::bfq) struct Age {
    just_created: bool,
    created: Jiffies,
    split: Jiffies,
}

impl Age {
    /// The age of a queue created now; only a queue of synchronous requests counts as just created.
    pub fn new(sync: bool, now: Jiffies) -> Age {
        Age { just_created: sync, created: now, split: LONG_AGO }
    }

    /// It has not been busy yet.
    #[inline]
    pub fn is_just_created(&self) -> bool {
        self.just_created
    }

    /// It becomes busy, or its process leaves it before that.
    pub fn not_new_any_more(&mut self) {
        self.just_created = false;
    }

    pub fn created(&self) -> Jiffies {
        self.created
    }

    /// It was split off a shared queue.
    pub fn split_off(&mut self, now: Jiffies) {
        self.split = now;
    }

    /// When it was split off.
    pub fn split_time(&self) -> Jiffies {
        self.split
    }

    /// More than `span` has passed since it was split off, if it ever was.
    #[inline]
    pub fn is_long_after_split(&self, span: Jiffies, clock: &Clock) -> bool {
        clock.is_past(self.split + span)
    }

    /// Whether the last split and the creation are both longer ago than `span`, and the queue has been busy.
    pub fn is_settled(&self, span: Jiffies, clock: &Clock) -> bool {
        !self.just_created && self.is_long_after_split(span, clock) && clock.is_past(self.created + span)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::tuning;
    use super::*;
    use crate::units::Nanos;

    #[test]
    fn a_queue_settles_after_its_creation_and_again_after_a_split() {
        let at = |ms| {
            let mut clock = Clock::new(tuning(&[]).ticks);
            clock.set(Nanos::from_millis(ms));
            clock
        };
        let span = at(0).span(Nanos::from_millis(600));
        let mut age = Age::new(true, at(1000).jiffies);
        assert!(age.is_long_after_split(span, &at(1000)), "it never was");
        assert!(!age.is_settled(span, &at(1700)), "it has not been busy");
        age.not_new_any_more();
        assert!(!age.is_settled(span, &at(1600)) && age.is_settled(span, &at(1610)));
        age.split_off(at(2000).jiffies);
        assert!(!age.is_settled(span, &at(2600)) && age.is_settled(span, &at(2610)));
    }

    #[test]
    fn asynchronous_queues_never_count_as_just_created() {
        assert!(Age::new(true, 0).is_just_created() && !Age::new(false, 0).is_just_created());
    }
}
