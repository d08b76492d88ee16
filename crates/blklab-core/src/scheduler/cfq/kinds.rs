//! CFQ's words: instants, queues by number, classes and workload types.

use super::super::Task;
use crate::request::{IoPrio, PrioClass};

/// Nanoseconds since the run began; signed, because some times lie before that.
pub(super) type Instant = i64;

/// A queue's index in [`super::Cfq::queues`]; reused after the queue is freed.
pub(super) type QueueId = usize;

/// Priority classes, in the order of `wl_class_t`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    BestEffort,
    RealTime,
    Idle,
}

/// The workload type of a queue (`wl_type_t`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Async,
    SyncNoIdle,
    Sync,
}

impl Kind {
    pub const ALL: [Kind; 3] = [Kind::Async, Kind::SyncNoIdle, Kind::Sync];
}

/// A process's class and level (`cfq_init_prio_data`); without a priority, those of nice 0.
pub(super) fn priority(task: Task) -> (Class, u8) {
    match task.prio.class {
        PrioClass::None => (Class::BestEffort, IoPrio::DEFAULT.level),
        PrioClass::RealTime => (Class::RealTime, task.prio.level.min(7)),
        PrioClass::BestEffort => (Class::BestEffort, task.prio.level.min(7)),
        PrioClass::Idle => (Class::Idle, 7),
    }
}
