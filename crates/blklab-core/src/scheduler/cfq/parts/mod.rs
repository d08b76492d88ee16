//! The parts of CFQ. Each has its own state and rules and gets all else as arguments; the scheduler
//! (the folder above) owns them and calls them.

pub(super) mod async_depth;
pub(super) mod contexts;
pub(super) mod counts;
pub(super) mod groups;
pub(super) mod idle_window;
pub(super) mod lengths;
pub(super) mod queueing;
pub(super) mod requests;
pub(super) mod seeks;
pub(super) mod service_trees;
pub(super) mod shares;
pub(super) mod sharing;
pub(super) mod slice;
pub(super) mod think_time;
pub(super) mod workload;
