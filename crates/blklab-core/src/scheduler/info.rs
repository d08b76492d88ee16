//! What a scheduler's file states about its scheduler.

use crate::tunable::{Settings, Tunable};

/// The block layer that a scheduler was written for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Generation {
    /// Before 5.0: one queue, a pool of requests for each direction.
    SingleQueue,
    /// blk-mq: tags, hardware queues.
    MultiQueue,
}

/// Description of a scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Info {
    /// As in `queue/scheduler`.
    pub name: &'static str,
    /// The block layer that it was written for.
    pub generation: Generation,
    /// One line for lists.
    pub summary: &'static str,
    /// The source of its behaviour, and what is left out.
    pub follows: &'static str,
    /// CPU time of one request under the scheduler's lock, on a desktop CPU.
    pub lock_ns: u64,
    /// Its tunables.
    pub tunables: &'static [Tunable],
}

impl Info {
    /// The kernel implements it as an elevator: all but `none`.
    pub fn is_elevator(&self) -> bool {
        self.name != "none"
    }

    /// Its tunables with their defaults.
    pub fn settings(&self) -> Settings {
        Settings::defaults(self.name, self.tunables)
    }
}
