//! The parts of the first BFQ that are its own. Each has its own state and rules and gets all else as
//! arguments; the scheduler (the folder above) owns them and calls them. Those that it has in common with CFQ
//! of its kernel are in [`linux_2_6_28`](super::super::shared::linux_2_6_28).

pub(super) mod budgets;
pub(super) mod idle_timer;
pub(super) mod peak_rate;
pub(super) mod queueing;
pub(super) mod service;
#[cfg(test)]
mod testing;
pub(super) mod turn;

/// A queue's index in the table and in the hierarchy of groups.
pub(super) use crate::scheduler::shared::wf2q::LeafId as QueueId;
