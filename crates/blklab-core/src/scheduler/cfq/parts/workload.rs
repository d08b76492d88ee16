//! Which group, class and workload type are served, and until when.
//!
//! Of a group's classes, real time is served before best effort, and the idle class only when no
//! other has busy queues. Within a class one workload type is served for its part of the round
//! (*async*, *sync-noidle* or *sync*), then the type whose first queue is due first: so a few
//! sequential readers do not wait for each of many random ones.
//!
//! When another group's turn comes, the group served so far keeps the rest of its type's time, and
//! continues with it. It loses this rest when its last queue is no longer busy, and when a queue of
//! another type preempts.
//!
//! Follows `serving_group`, `serving_wl_class`, `serving_wl_type` and `workload_expires` of
//! `cfq_data` in Linux 4.12 and the `saved_wl_*` fields of `cfq_group`: `cfq_choose_cfqg`,
//! `choose_wl_class_and_type`, and the end of `cfq_group_served`. The length of a type's time is in
//! [`lengths`](super::lengths).

use super::super::kinds::{Class, Instant, Kind, QueueId};
use super::service_trees::ServiceTrees;

/// A workload whose time is not over.
#[derive(Clone, Copy, Debug)]
struct Rest {
    left: u64,
    class: Class,
    kind: Kind,
}

/// The workload that is served, and what groups have left of theirs.
#[derive(Debug)]
pub(in crate::scheduler::cfq) struct Workload {
    group: Option<usize>,
    class: Class,
    kind: Kind,
    expires: Instant,
    /// By group.
    rests: Vec<Option<Rest>>,
    noted: Option<(usize, Class, Kind)>,
}

impl Workload {
    pub fn new(groups: usize) -> Workload {
        Workload {
            group: None,
            class: Class::BestEffort,
            kind: Kind::Async,
            expires: 0,
            rests: vec![None; groups],
            noted: None,
        }
    }

    /// It is this group's turn, with the rest of its last one (`cfq_choose_cfqg`).
    pub fn turn_to(&mut self, group: Option<usize>, now: Instant) {
        self.group = group;
        let Some(group) = group else { return };
        match self.rests[group] {
            Some(Rest { left, class, kind }) => {
                self.expires = now + left as i64;
                (self.class, self.kind) = (class, kind);
            }
            None => self.expires = now - 1,
        }
    }

    /// Chooses the class and the workload type of the group whose turn it is
    /// (`choose_wl_class_and_type`). True if the type gets a new time, which the caller must
    /// [begin](Workload::begin).
    pub fn choose(&mut self, trees: &ServiceTrees, now: Instant, tick: u64) -> bool {
        let Some(group) = self.group else { return false };
        let before = self.class;
        self.class = if trees.busy_of(group, Class::RealTime) > 0 {
            Class::RealTime
        } else if trees.busy_of(group, Class::BestEffort) > 0 {
            Class::BestEffort
        } else {
            Class::Idle
        };
        if self.class == Class::Idle {
            self.expires = now + tick as i64;
            return false;
        }
        let is_busy = trees.count(group, self.class, self.kind) > 0;
        if before == self.class && is_busy && now <= self.expires {
            return false;
        }
        self.kind = trees.first_kind(group, self.class);
        true
    }

    /// The chosen type is served for so long.
    pub fn begin(&mut self, now: Instant, length: u64) {
        self.expires = now.saturating_add(length as i64);
    }

    /// The group whose turn it is, and the chosen class and type.
    #[inline]
    pub fn served(&self) -> (Option<usize>, Class, Kind) {
        (self.group, self.class, self.kind)
    }

    #[inline]
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The queue that is due first.
    pub fn first_due(&self, trees: &ServiceTrees) -> Option<QueueId> {
        trees.first(self.group?, self.class, self.kind)
    }

    /// The group may lose its turn; it keeps what is left of the workload's time.
    pub fn keep_rest(&mut self, group: usize, now: Instant) {
        let left = self.expires - now;
        let rest = Rest { left: left as u64, class: self.class, kind: self.kind };
        self.rests[group] = (left > 0).then_some(rest);
    }

    /// The group loses what was left of its workload's time.
    pub fn lose_rest(&mut self, group: usize) {
        self.rests[group] = None;
    }

    /// Whether another workload is served now than at the last call, with a queue of this group.
    pub fn take_note(&mut self, group: usize) -> bool {
        let now = (group, self.class, self.kind);
        self.noted.replace(now) != Some(now)
    }
}

#[cfg(test)]
mod tests {
    use super::super::service_trees::Due;
    use super::*;

    const TICK: u64 = 4;
    const BE: Class = Class::BestEffort;

    /// Busy queues of group 1 of that class and type, due in this order.
    fn trees(queues: &[(Class, Kind)]) -> ServiceTrees {
        let mut trees = ServiceTrees::new(3);
        for (q, &workload) in queues.iter().enumerate() {
            trees.queue_made(q);
            trees.schedule(q, 1, workload, Due::At(q as Instant), 0);
        }
        trees
    }

    fn served(workload: &Workload) -> (Class, Kind) {
        let (_, class, kind) = workload.served();
        (class, kind)
    }

    #[test]
    fn real_time_is_served_before_best_effort_and_the_idle_class_last() {
        let mut trees = trees(&[(Class::Idle, Kind::Sync), (BE, Kind::Sync), (Class::RealTime, Kind::Sync)]);
        let mut workload = Workload::new(3);
        let mut order = Vec::new();
        while trees.busy(1) > 0 {
            workload.turn_to(Some(1), 0);
            workload.choose(&trees, 0, TICK);
            order.push(served(&workload).0);
            trees.remove(order.len().abs_diff(3));
        }
        assert_eq!(order, [Class::RealTime, BE, Class::Idle]);
    }

    #[test]
    fn a_type_is_served_for_its_time_then_the_one_that_is_due_first() {
        let mut trees = trees(&[(BE, Kind::Sync), (BE, Kind::Async)]);
        let mut workload = Workload::new(3);
        workload.turn_to(Some(1), 0);
        assert!(workload.choose(&trees, 0, TICK) && workload.kind() == Kind::Sync);
        workload.begin(0, 50);
        assert_eq!(workload.first_due(&trees), Some(0));
        trees.schedule(0, 1, (BE, Kind::Sync), Due::At(9), 0);
        assert!(!workload.choose(&trees, 50, TICK) && workload.kind() == Kind::Sync);
        assert!(workload.choose(&trees, 51, TICK) && workload.kind() == Kind::Async);
        workload.begin(51, 50);
        trees.remove(1);
        assert!(workload.choose(&trees, 52, TICK) && workload.kind() == Kind::Sync, "no async queue left");
    }

    #[test]
    fn a_group_continues_with_the_rest_of_its_workload_s_time() {
        let trees = trees(&[(BE, Kind::Async), (BE, Kind::Sync)]);
        let mut workload = Workload::new(3);
        workload.turn_to(Some(1), 0);
        assert!(workload.choose(&trees, 0, TICK));
        workload.begin(0, 50);
        workload.keep_rest(1, 20);
        workload.turn_to(Some(2), 20);
        workload.turn_to(Some(1), 100);
        assert!(!workload.choose(&trees, 130, TICK), "30 were left");
        assert!(workload.choose(&trees, 131, TICK));
        workload.keep_rest(1, 200);
        workload.turn_to(Some(1), 200);
        assert!(workload.choose(&trees, 200, TICK), "nothing was left");
    }

    #[test]
    fn a_lost_rest_does_not_come_back() {
        let trees = trees(&[(BE, Kind::Async)]);
        let mut workload = Workload::new(3);
        workload.turn_to(Some(1), 0);
        workload.choose(&trees, 0, TICK);
        workload.begin(0, 50);
        workload.keep_rest(1, 20);
        workload.lose_rest(1);
        workload.turn_to(Some(1), 30);
        assert!(workload.choose(&trees, 30, TICK));
    }

    #[test]
    fn a_change_of_the_workload_is_noted_once() {
        let trees = trees(&[(BE, Kind::Sync)]);
        let mut workload = Workload::new(3);
        assert!(workload.take_note(1) && !workload.take_note(1) && workload.take_note(2));
        workload.turn_to(Some(1), 0);
        workload.choose(&trees, 0, TICK);
        assert!(workload.take_note(2));
    }
}
