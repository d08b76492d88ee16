//! Helpers of the parts' tests: queues in a hierarchy of their own.

use super::QueueId;
use crate::scheduler::CgroupId;
use crate::scheduler::shared::wf2q::{Class, Wf2q};
use crate::ticks::Ticks;

/// `count` queues.
pub(super) fn leaves(count: usize) -> Vec<QueueId> {
    let mut wf2q = Wf2q::new(Ticks::per_second(1000)).with_rules_of_2008();
    (0..count).map(|_| wf2q.add_leaf(CgroupId::ROOT, Class::BestEffort, 4)).collect()
}
