//! What all queues of a cgroup have in common: requests in flight, a think time, and the queues of
//! its asynchronous requests.
//!
//! If the last busy queue of a group became empty, the group would lose its turn, although its next
//! request may come at once. So the disk idles for a group (`group_idle`), too, unless the group
//! has requests in flight or its think time is longer: the time from a completion to the next
//! request of any of its processes.
//!
//! The kernel writes asynchronous requests on behalf of processes, and often long after them.
//! Therefore they have no queue for each process, but one for each priority in each group; the idle
//! class has one for all levels. The group keeps such a queue for good.
//!
//! Follows the fields of `cfq_group` in Linux 4.12 (`dispatched`, `ttime`, `async_cfqq`,
//! `async_idle_cfqq`), `cfq_async_queue_prio`, and `cfq_init_cfqg_base`. A group's share of the
//! disk is in [`shares`](super::shares), its busy queues are in
//! [`service_trees`](super::service_trees).

use super::super::kinds::{Class, Instant, QueueId};
use super::think_time::ThinkTime;
use crate::scheduler::Cgroup;

#[derive(Clone, Debug)]
struct Group {
    /// A process has used it.
    known: bool,
    in_flight: u32,
    think: ThinkTime,
    /// Queues of best effort and real time, by level.
    async_queues: [[Option<QueueId>; 8]; 2],
    /// The queue of the idle class.
    async_idle: Option<QueueId>,
}

/// All groups, by number.
#[derive(Debug)]
pub(in crate::scheduler::cfq) struct Groups(Vec<Group>);

impl Groups {
    /// The root is known from the start.
    pub fn new(cgroups: &[Cgroup]) -> Groups {
        let new = |cgroup: &Cgroup| Group {
            known: cgroup.parent.is_none(),
            in_flight: 0,
            think: ThinkTime::UNKNOWN,
            async_queues: [[None; 8]; 2],
            async_idle: None,
        };
        Groups(cgroups.iter().map(new).collect())
    }

    /// A process uses the group. True if it is the first.
    pub fn enter(&mut self, group: usize, now: Instant) -> bool {
        let group = &mut self.0[group];
        let is_first = !std::mem::replace(&mut group.known, true);
        if is_first {
            group.think.ended(now);
        }
        is_first
    }

    /// The place for the queue of asynchronous requests of that priority (`cfq_async_queue_prio`).
    pub fn async_queue(&mut self, group: usize, class: Class, level: u8) -> &mut Option<QueueId> {
        let group = &mut self.0[group];
        match class {
            Class::Idle => &mut group.async_idle,
            Class::BestEffort | Class::RealTime => {
                &mut group.async_queues[class as usize][usize::from(level)]
            }
        }
    }

    /// A request comes.
    pub fn request(&mut self, group: usize, now: Instant, idle: u64) {
        self.0[group].think.sample(now, idle);
    }

    /// A request is dispatched.
    pub fn sent(&mut self, group: usize) {
        self.0[group].in_flight += 1;
    }

    /// A request completes.
    pub fn completed(&mut self, group: usize, now: Instant) {
        self.0[group].in_flight -= 1;
        self.0[group].think.ended(now);
    }

    /// The group's next request takes longer than `span`.
    #[inline]
    pub fn thinks_longer(&self, group: usize, span: u64) -> bool {
        self.0[group].think.is_longer(span)
    }

    /// The group has requests in flight, after which its next one comes within `span`.
    pub fn is_worth_waiting_for(&self, group: usize, span: u64) -> bool {
        span > 0 && self.0[group].in_flight > 0 && !self.thinks_longer(group, span)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheduler::CgroupId;

    const SPAN: u64 = 8_000_000;

    /// The root and one group.
    fn groups() -> Groups {
        Groups::new(&[
            Cgroup { parent: None, weight: 100 },
            Cgroup { parent: Some(CgroupId(0)), weight: 100 },
        ])
    }

    #[test]
    fn a_group_appears_with_its_first_process_and_the_root_is_there_before() {
        let mut groups = groups();
        assert_eq!([groups.enter(0, 5), groups.enter(1, 5), groups.enter(1, 6)], [false, true, false]);
    }

    #[test]
    fn asynchronous_queues_are_shared_by_priority_and_the_idle_class_has_one() {
        let mut groups = groups();
        *groups.async_queue(1, Class::BestEffort, 4) = Some(7);
        *groups.async_queue(1, Class::Idle, 7) = Some(8);
        assert_eq!(*groups.async_queue(1, Class::BestEffort, 4), Some(7));
        assert_eq!(*groups.async_queue(1, Class::BestEffort, 5), None);
        assert_eq!(*groups.async_queue(1, Class::RealTime, 4), None);
        assert_eq!(*groups.async_queue(0, Class::BestEffort, 4), None);
        assert_eq!(*groups.async_queue(1, Class::Idle, 0), Some(8));
    }

    #[test]
    fn the_disk_idles_for_a_group_with_requests_in_flight_that_soon_has_more() {
        let mut groups = groups();
        assert!(!groups.is_worth_waiting_for(1, SPAN), "nothing in flight");
        groups.sent(1);
        assert!(groups.is_worth_waiting_for(1, SPAN) && !groups.is_worth_waiting_for(1, 0));
        groups.completed(1, 0);
        assert!(!groups.is_worth_waiting_for(1, SPAN));
        for turn in 1..20 {
            groups.request(1, turn * 1_000_000_000 + 12_000_000, SPAN);
            groups.sent(1);
            groups.completed(1, (turn + 1) * 1_000_000_000);
        }
        groups.sent(1);
        assert!(groups.thinks_longer(1, SPAN) && !groups.is_worth_waiting_for(1, SPAN));
        assert!(!groups.thinks_longer(0, SPAN), "another group");
    }
}
