//! The parts of CFQ of 2008 that are its own. Each has its own state and rules and gets all else as
//! arguments; the scheduler (the folder above) owns them and calls them. Those that it has in common with
//! the first BFQ are in [`linux_2_6_28`](super::super::shared::linux_2_6_28).

pub(super) mod lengths;
pub(super) mod queueing;
pub(super) mod service_tree;
pub(super) mod slice;
