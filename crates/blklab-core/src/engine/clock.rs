//! Virtual time.

use crate::units::Nanos;

/// Steps that processes may take without yielding while nothing else happens.
const STEPS_ALONE: u32 = 1 << 8;

/// No run goes on behind this time: 292 years, half of what 64 bits hold, which leaves room
/// for adding any time that a job file may name ([`crate::formats::fio::value::TIME_MAX`]).
pub const HORIZON: Nanos = Nanos(1 << 63);

/// The time, and how long processes have had it to themselves.
#[derive(Debug, Default)]
pub struct Clock {
    now: Nanos,
    /// Steps that processes took since something else happened or one yielded.
    steps_alone: u32,
}

impl Clock {
    /// The time.
    #[inline]
    pub fn now(&self) -> Nanos {
        self.now
    }

    /// Let time run to `at`, unless it is later already.
    #[inline]
    pub fn run_to(&mut self, at: Nanos) {
        self.now = self.now.max(at);
    }

    /// Something other than a process's step happens.
    #[inline]
    pub fn interrupt(&mut self) {
        self.steps_alone = 0;
    }

    /// A process takes a step that ends at `at`; false if it has to yield: now and then every
    /// process does, so that the run can be ended from outside.
    #[inline]
    pub fn step(&mut self, at: Nanos) -> bool {
        self.steps_alone += 1;
        if self.steps_alone == STEPS_ALONE || at > HORIZON {
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
    }
}
