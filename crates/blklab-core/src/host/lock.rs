//! The lock of a scheduler, as the spans in which it is held.
//!
//! Work is booked ahead: with several processes on a CPU, the last one knows when its turn ends. So a lock
//! may be booked for later than another CPU needs it. A holder gets the first gap from when it asks for it.

use std::collections::VecDeque;

use crate::units::Nanos;

/// A scheduler's lock.
#[derive(Clone, Debug)]
pub struct Lock {
    submission: Nanos,
    end: Nanos,
    /// From, to; in order, and apart from each other.
    held: VecDeque<(Nanos, Nanos)>,
}

impl Lock {
    /// A free lock that each I/O holds for `hold`.
    pub fn new(hold: Nanos) -> Lock {
        Lock { submission: hold, end: Nanos::ZERO, held: VecDeque::new() }
    }

    /// The same lock where the driver has a thread, which does half of the scheduler's work: it ends the requests.
    #[must_use]
    pub fn of_two_threads(self) -> Lock {
        let end = Nanos(self.submission.0 / 2);
        Lock { submission: self.submission - end, end, ..self }
    }

    /// How long the submission of an I/O holds it.
    pub fn submission(&self) -> Nanos {
        self.submission
    }

    /// How long the driver's thread holds it to end a request.
    pub fn end(&self) -> Nanos {
        self.end
    }

    /// Holds the lock, from `at` or as soon as it is free for long enough; returns until when. Nothing will
    /// ask for a time before `now`.
    #[inline]
    pub fn take(&mut self, now: Nanos, at: Nanos, hold: Nanos) -> Nanos {
        while self.held.front().is_some_and(|held| held.1 <= now) {
            self.held.pop_front();
        }
        match self.held.back_mut() {
            // Most wait for the last holder.
            Some(last) if last.0 < at && last.1 >= at => {
                last.1 += hold;
                last.1
            }
            Some(last) if last.1 >= at => self.take_gap(at, hold),
            _ => {
                self.held.push_back((at, at + hold));
                at + hold
            }
        }
    }

    fn take_gap(&mut self, at: Nanos, hold: Nanos) -> Nanos {
        let mut from = at;
        let mut index = 0;
        for &(begin, end) in &self.held {
            if from + hold <= begin {
                break;
            }
            from = from.max(end);
            index += 1;
        }
        let to = from + hold;
        let joins = |held: Option<&(Nanos, Nanos)>, at: Nanos, end: fn(&(Nanos, Nanos)) -> Nanos| {
            held.is_some_and(|held| end(held) == at)
        };
        let after = index > 0 && joins(self.held.get(index - 1), from, |held| held.1);
        let before = joins(self.held.get(index), to, |held| held.0);
        match (after, before) {
            (true, true) => {
                self.held[index - 1].1 = self.held[index].1;
                self.held.remove(index);
            }
            (true, false) => self.held[index - 1].1 = to,
            (false, true) => self.held[index].0 = from,
            (false, false) => self.held.insert(index, (from, to)),
        }
        to
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_span_booked_for_later_does_not_delay_work_before_it() {
        let mut lock = Lock::new(Nanos(30));
        assert_eq!(lock.take(Nanos(0), Nanos(100), Nanos(30)), Nanos(130));
        assert_eq!(lock.take(Nanos(0), Nanos(10), Nanos(30)), Nanos(40), "it is free until 100");
        assert_eq!(lock.take(Nanos(0), Nanos(20), Nanos(30)), Nanos(70));
        assert_eq!(lock.take(Nanos(0), Nanos(20), Nanos(30)), Nanos(100));
        assert_eq!(lock.take(Nanos(0), Nanos(20), Nanos(30)), Nanos(160), "the gap is full");
        assert_eq!(lock.held.len(), 1);
        assert_eq!(lock.take(Nanos(160), Nanos(160), Nanos(30)), Nanos(190));
        assert_eq!(lock.held.len(), 1, "what is over is forgotten");
    }

    proptest! {
        #[test]
        fn it_has_one_holder_at_a_time_and_is_not_idle_while_one_waits(
            asked in prop::collection::vec((0u64..40, 0u64..300, 1u64..50), 1..60),
        ) {
            let mut lock = Lock::new(Nanos(1));
            let (mut now, mut spans) = (0, Vec::<(u64, u64)>::new());
            for (step, ahead, hold) in asked {
                now += step;
                let at = now + ahead;
                let to = lock.take(Nanos(now), Nanos(at), Nanos(hold)).0;
                let from = to - hold;
                prop_assert!(from >= at);
                prop_assert!(spans.iter().all(|&(begin, end)| to <= begin || from >= end));
                // Every earlier beginning would meet another holder.
                let meets = |earlier| spans.iter().any(|&(begin, end)| earlier < end && earlier + hold > begin);
                prop_assert!((at..from).all(meets), "it was free for long enough before {}", from);
                spans.push((from, to));
            }
        }
    }
}
