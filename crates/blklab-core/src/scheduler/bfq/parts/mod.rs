//! The parts of BFQ. Each has its own state and rules and gets all else as arguments; the scheduler
//! (the folder above) owns one of each and calls them.

pub(super) mod age;
pub(super) mod budgets;
pub(super) mod burst;
pub(super) mod clock;
pub(super) mod counts;
pub(super) mod depth;
pub(super) mod idle_timer;
pub(super) mod injection;
pub(super) mod learnt;
pub(super) mod pace;
pub(super) mod peak_rate;
pub(super) mod queueing;
pub(super) mod raising;
pub(super) mod requests;
pub(super) mod seek;
pub(super) mod sharing;
pub(super) mod soft_rt;
pub(super) mod tasks;
#[cfg(test)]
mod testing;
pub(super) mod turn;
pub(super) mod wakers;

/// A queue's index in the table and in the hierarchy of groups; reused after the queue is freed.
pub(super) use crate::scheduler::shared::wf2q::LeafId as QueueId;
