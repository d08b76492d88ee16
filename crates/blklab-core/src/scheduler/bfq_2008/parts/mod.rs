//! The parts of the first BFQ. Each has its own state and rules and gets all else as arguments; the
//! scheduler (the folder above) owns them and calls them.

pub(super) mod async_queues;
pub(super) mod budgets;
pub(super) mod counts;
pub(super) mod idle_timer;
pub(super) mod idle_window;
pub(super) mod outgoing;
pub(super) mod peak_rate;
pub(super) mod priority;
pub(super) mod queueing;
pub(super) mod requests;
pub(super) mod seeks;
pub(super) mod service;
pub(super) mod tasks;
#[cfg(test)]
mod testing;
pub(super) mod think_time;
pub(super) mod turn;

/// A queue's index in the table and in the hierarchy of groups.
pub(super) use crate::scheduler::shared::wf2q::LeafId as QueueId;
