//! Parts that CFQ of Linux 2.6.28 and the first BFQ, a patch for that kernel, have in common. The
//! patch copied CFQ and replaced slices of time by budgets of sectors; these parts it left as they were.
//!
//! Each has its own state and rules and gets all else as arguments. `Q` is the number of a queue.

pub(in crate::scheduler) mod async_queues;
pub(in crate::scheduler) mod counts;
pub(in crate::scheduler) mod idle_window;
pub(in crate::scheduler) mod outgoing;
pub(in crate::scheduler) mod priority;
pub(in crate::scheduler) mod requests;
pub(in crate::scheduler) mod seeks;
pub(in crate::scheduler) mod spans;
pub(in crate::scheduler) mod tasks;
pub(in crate::scheduler) mod think_time;

/// The request is synchronous, as that kernel sees it (`rq_is_sync`).
pub(in crate::scheduler) fn is_sync(op: crate::request::Op, sync: bool) -> bool {
    sync || !op.is_write()
}
