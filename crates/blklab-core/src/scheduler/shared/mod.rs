//! Parts that several schedulers share: conditions and search for merges, queues with deadlines,
//! the choice of the nearest request, and B-WF2Q+.

pub(super) mod lanes;
pub(super) mod merge;
pub(super) mod merge_conditions;
pub(super) mod nearest;
pub(super) mod wf2q;
