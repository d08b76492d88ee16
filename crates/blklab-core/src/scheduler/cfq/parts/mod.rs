//! The parts of CFQ. Each has its own state and rules and gets all else as arguments; the scheduler
//! (the folder above) owns them and calls them.

pub(super) mod counts;
pub(super) mod positions;
pub(super) mod queueing;
pub(super) mod seeks;
pub(super) mod shares;
pub(super) mod think_time;
