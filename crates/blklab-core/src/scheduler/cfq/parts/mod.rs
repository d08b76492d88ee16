//! The parts of CFQ. Each has its own state and rules and knows of the others only what its
//! calls are given; the scheduler (the folder above) owns them and tells them what happens.

pub(super) mod counts;
pub(super) mod positions;
pub(super) mod queueing;
pub(super) mod seeks;
pub(super) mod shares;
pub(super) mod think_time;
