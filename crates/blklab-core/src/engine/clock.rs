//! Virtual time.

use crate::units::Nanos;

/// Steps that processes may take without yielding while no other event happens.
const STEPS_ALONE: u32 = 1 << 8;

/// The last time of any run: 292 years, half of what 64 bits hold. This leaves room to add any time
/// of a job file ([`crate::formats::fio::value::TIME_MAX`]).
pub const HORIZON: Nanos = Nanos(1 << 63);

/// The time, and the number of process steps without other events.
#[derive(Debug)]
pub struct Clock {
    now: Nanos,
    /// Nothing happens later.
    end: Nanos,
    /// When the last other event than a process's step happened.
    last_event: Nanos,
    /// Steps of processes since that event or the last yield.
    steps_alone: u32,
}

impl Default for Clock {
    fn default() -> Clock {
        Clock { now: Nanos::ZERO, end: HORIZON, last_event: Nanos::ZERO, steps_alone: 0 }
    }
}

impl Clock {
    /// The time.
    #[inline]
    pub fn now(&self) -> Nanos {
        self.now
    }

    /// Advances the time to `at`, unless it is later already.
    #[inline]
    pub fn run_to(&mut self, at: Nanos) {
        self.now = self.now.max(at);
    }

    /// After this time nothing happens.
    #[inline]
    pub fn end(&self) -> Nanos {
        self.end
    }

    /// Nothing is to happen later than `end`.
    pub fn end_at(&mut self, end: Nanos) {
        self.end = end.min(HORIZON);
    }

    /// An event other than a process's step happens.
    #[inline]
    pub fn interrupt(&mut self) {
        self.steps_alone = 0;
        self.last_event = self.now;
    }

    /// When the last event happened that was no process's step.
    #[inline]
    pub fn last_event(&self) -> Nanos {
        self.last_event
    }

    /// A process takes a step that ends at `at`; false if it must yield. Every process yields from
    /// time to time, so that the run can be cancelled.
    #[inline]
    pub fn step(&mut self, at: Nanos) -> bool {
        self.steps_alone += 1;
        if self.steps_alone == STEPS_ALONE || at > self.end {
            self.steps_alone = 0;
            return false;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_never_waits_yields_now_and_then() {
        let mut clock = Clock::default();
        let yields = (0..3 * STEPS_ALONE).filter(|_| !clock.step(Nanos::ZERO)).count();
        assert_eq!(yields, 3);
        assert!((1..STEPS_ALONE).all(|_| clock.step(Nanos::ZERO)));
        clock.interrupt();
        assert!((1..STEPS_ALONE).all(|_| clock.step(Nanos::ZERO)));
        assert!(!clock.step(Nanos::ZERO));
        assert!(!clock.step(HORIZON + Nanos(1)), "nothing happens behind the horizon");
        clock.end_at(Nanos(5));
        assert_eq!([5, 6].map(|at| clock.step(Nanos(at))), [true, false]);
    }
}
