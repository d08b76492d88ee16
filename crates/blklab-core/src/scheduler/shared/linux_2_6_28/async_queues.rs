//! The queues of asynchronous requests: all processes of one priority in a group share one.
//!
//! Writeback writes the data of many processes and is itself one, so asynchronous requests say
//! little about their process. Follows `async_cfqq` and `async_idle_cfqq` of `cfq_data`, and in BFQ's patch
//! those of each group; CFQ of that kernel has no groups. Such a queue, once created, stays.

use super::priority::Priority;
use crate::scheduler::CgroupId;

/// The queues by group and priority, created with their first request.
#[derive(Debug)]
pub(in crate::scheduler) struct AsyncQueues<Q>(Vec<Option<Q>>);

impl<Q: Copy> AsyncQueues<Q> {
    pub fn new(groups: usize) -> AsyncQueues<Q> {
        AsyncQueues(vec![None; groups * Priority::COUNT])
    }

    fn place(group: CgroupId, priority: Priority) -> usize {
        usize::from(group.0) * Priority::COUNT + priority.index()
    }

    pub fn get(&self, group: CgroupId, priority: Priority) -> Option<Q> {
        self.0[Self::place(group, priority)]
    }

    pub fn set(&mut self, group: CgroupId, priority: Priority, q: Q) {
        self.0[Self::place(group, priority)] = Some(q);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::{IoPrio, PrioClass};

    #[test]
    fn a_queue_is_shared_within_a_group_and_a_priority() {
        let of = |level| Priority::of(IoPrio { class: PrioClass::BestEffort, level });
        let (mut queues, q) = (AsyncQueues::new(2), ['a', 'b']);
        queues.set(CgroupId(0), of(7), q[0]);
        queues.set(CgroupId(1), of(0), q[1]);
        assert_eq!(queues.get(CgroupId(0), of(7)), Some(q[0]));
        assert_eq!(queues.get(CgroupId(1), of(0)), Some(q[1]));
        assert_eq!((queues.get(CgroupId(1), of(7)), queues.get(CgroupId(0), of(0))), (None, None));
    }
}
