//! A process's effective I/O priority: its class and level.
//!
//! The class decides the order of service: real time goes first, then best effort, and the idle class
//! only when no other has requests. The level decides the share: a slice of CFQ, a weight of BFQ. In the
//! idle class all processes are equal.
//!
//! A process without a priority is best effort, level 4, as with nice 0. Each priority has a number
//! below [`Priority::COUNT`], because all processes of one priority in a group share one queue of
//! asynchronous requests ([`async_queues`](super::async_queues)).
//!
//! There is no state that changes: a queue's priority is that of the process when its queue is
//! created, with its first request.
//!
//! Left out: nice values, from which the kernel derives a missing priority; changes of priority while
//! a process runs; the raised priority of a process that holds a file system's locks.

use crate::request::{IoPrio, PrioClass};
use crate::scheduler::shared::wf2q::Class;

const LEVELS: u8 = 8;

/// The effective priority.
#[derive(Clone, Copy, Debug)]
pub(in crate::scheduler) struct Priority {
    class: Class,
    level: u8,
}

impl Priority {
    /// Priorities that are told apart: the levels of two classes, and the idle class.
    pub const COUNT: usize = 2 * LEVELS as usize + 1;

    pub fn of(prio: IoPrio) -> Priority {
        let level = match prio.class {
            PrioClass::RealTime | PrioClass::BestEffort => prio.level.min(LEVELS - 1),
            PrioClass::None => IoPrio::DEFAULT.level,
            PrioClass::Idle => LEVELS - 1,
        };
        Priority { class: Class::from(prio.class), level }
    }

    pub fn class(self) -> Class {
        self.class
    }

    /// 0 to 7; that of the idle class is 7.
    pub fn level(self) -> u8 {
        self.level
    }

    /// Below [`Priority::COUNT`], different for each.
    pub fn index(self) -> usize {
        match self.class {
            Class::RealTime => usize::from(self.level),
            Class::BestEffort => usize::from(LEVELS + self.level),
            Class::Idle => Priority::COUNT - 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn priority(class: PrioClass, level: u8) -> Priority {
        Priority::of(IoPrio { class, level })
    }

    #[test]
    fn without_a_priority_a_process_is_best_effort_level_4() {
        let (none, set) = (priority(PrioClass::None, 0), priority(PrioClass::BestEffort, 4));
        assert_eq!((none.class(), none.index()), (Class::BestEffort, set.index()));
        assert_eq!((none.level(), priority(PrioClass::Idle, 0).level()), (4, 7));
    }

    #[test]
    fn each_level_of_a_class_has_a_place_and_the_idle_class_one() {
        let all = |class| (0..8).map(move |level| priority(class, level).index());
        let places: BTreeSet<_> = all(PrioClass::RealTime).chain(all(PrioClass::BestEffort)).collect();
        assert!(places.into_iter().eq(0..Priority::COUNT - 1));
        assert!(all(PrioClass::Idle).all(|place| place == Priority::COUNT - 1));
    }
}
