//! Parts that several schedulers share: conditions and search for merges, queues with deadlines,
//! the choice of the nearest request, the search for cooperators, idling for a process, B-WF2Q+, and what CFQ and BFQ of Linux 2.6.28
//! have in common.

pub(super) mod idling;
pub(super) mod lanes;
pub(super) mod linux_2_6_28;
pub(super) mod merge;
pub(super) mod merge_conditions;
pub(super) mod nearest;
pub(super) mod positions;
pub(super) mod wf2q;
