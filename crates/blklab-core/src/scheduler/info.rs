//! What a scheduler's file says about its scheduler.

use crate::tunable::{Settings, Tunable};

/// The block layer that a scheduler was written for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Generation {
    /// Before 5.0: one queue, a pool of requests for each direction.
    SingleQueue,
    /// blk-mq: tags, hardware queues.
    MultiQueue,
}

/// What there is to say about a scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Info {
    /// As in `queue/scheduler`.
    pub name: &'static str,
    /// The block layer that it belongs to.
    pub generation: Generation,
    /// One line for lists.
    pub summary: &'static str,
    /// Whose behaviour it follows, and what it leaves out.
    pub follows: &'static str,
    /// CPU time under the scheduler's lock that one request costs, on a desktop CPU.
    pub lock_ns: u64,
    /// Its tunables.
    pub tunables: &'static [Tunable],
}

impl Info {
    /// The kernel has an elevator with it: all but `none`.
    pub fn is_elevator(&self) -> bool {
        self.name != "none"
    }

    /// Its tunables at their defaults.
    pub fn settings(&self) -> Settings {
        Settings::defaults(self.name, self.tunables)
    }
}
