//! What several schedulers share: what may be merged and how a waiting request is found for it, queues with deadlines, the
//! choice of the nearest request, and B-WF2Q+.

pub(super) mod lanes;
pub(super) mod merge;
pub(super) mod merge_conditions;
pub(super) mod nearest;
pub(super) mod wf2q;
