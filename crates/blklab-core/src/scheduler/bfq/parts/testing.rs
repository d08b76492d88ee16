//! Helpers of the parts' tests: settings, and queues in a hierarchy of their own.

use super::QueueId;
use crate::scheduler::bfq::tunables::{TUNABLES, Tuning};
use crate::scheduler::shared::wf2q::{Class, Wf2q};
use crate::scheduler::testing::limits;
use crate::scheduler::{CgroupId, QueueLimits, Settings};
use crate::ticks::Ticks;

/// The defaults on a hard disk, with these settings.
pub(in crate::scheduler::bfq) fn tuning(tunables: &[(&str, i64)]) -> Tuning {
    let mut settings = Settings::defaults("bfq", TUNABLES);
    for (name, value) in tunables {
        settings.set(name, &value.to_string()).expect("within bounds");
    }
    Tuning::new(&settings, &QueueLimits { rotational: true, ..limits() })
}

/// `count` queues.
pub(in crate::scheduler::bfq) fn leaves(count: usize) -> Vec<QueueId> {
    let mut wf2q = Wf2q::new(Ticks::per_second(1000));
    (0..count).map(|_| wf2q.add_leaf(CgroupId::ROOT, Class::BestEffort, 40)).collect()
}
