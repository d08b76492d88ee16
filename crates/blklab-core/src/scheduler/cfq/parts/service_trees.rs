//! The service trees: the busy queues of each group, by class and workload type, in the order of
//! their service.
//!
//! A queue is busy from its first request until its turn ends without one; while it is busy, it is
//! in one tree of its group. There are three trees (one for each workload type) of each of the
//! classes real time and best effort, and one for the idle class. A queue's key is the time when
//! its turn is due. The one that is due first is served next; the workload type whose first queue
//! is due first is the next type.
//!
//! A queue that preempts comes before the first of its tree, by far; one of the idle class goes
//! behind the last, so that these queues take turns whatever their levels.
//!
//! With the queues go three things that describe a tree or group as a whole: the number of busy
//! queues; its mean over time, which follows an increase at once by three quarters and a decrease
//! slowly, so that slices are not too long when queues come and go; and a think time of each tree,
//! with which the disk idles for a tree whose last queue is not worth idling for by itself.
//!
//! Follows `cfq_rb_root` and `service_trees` of Linux 4.12, and `st_for`, `cfq_service_tree_add`,
//! `cfq_rb_erase`, `cfq_choose_wl_type`, `cfq_group_busy_queues_wl`, `cfqg_busy_async_queues` and
//! `cfq_group_get_avg_queues`.

use super::super::kinds::{Class, Instant, Kind, QueueId};
use super::think_time::ThinkTime;
use crate::containers::ordered::{Members, Set};

/// A queue of the idle class is placed this far behind the last queue (`CFQ_IDLE_DELAY`).
const IDLE_DELAY: i64 = 200_000_000;
/// A preempting queue is placed this far before the first queue.
const FRONT: i64 = 1_000_000_000;
/// A mean over time follows an increase by three quarters (`cfq_hist_divisor`).
const HISTORY: u32 = 4;
/// Three types of two classes, and one tree for the idle class.
const TREES: usize = 7;

/// The tree of that class and type (`st_for`).
const fn tree_of(class: Class, kind: Kind) -> usize {
    match class {
        Class::Idle => TREES - 1,
        Class::BestEffort | Class::RealTime => class as usize * 3 + kind as usize,
    }
}

/// When a queue is due.
#[derive(Clone, Copy, Debug)]
pub(in crate::scheduler::cfq) enum Due {
    At(Instant),
    /// Before all others of its tree.
    First,
    /// Behind all others of its tree.
    Last,
}

#[derive(Clone, Copy, Debug)]
struct Tree {
    set: Set,
    count: u32,
    think: ThinkTime,
}

#[derive(Clone, Copy, Debug)]
struct Group {
    trees: [Tree; TREES],
    /// Queues in all trees.
    busy: u32,
    /// The mean number of busy queues: best effort and real time.
    busy_mean: [u32; 2],
}

impl Group {
    const NEW: Group = Group {
        trees: [Tree { set: Set::EMPTY, count: 0, think: ThinkTime::UNKNOWN }; TREES],
        busy: 0,
        busy_mean: [0; 2],
    };

    fn busy_of(&self, class: Class) -> u32 {
        match class {
            Class::Idle => self.trees[TREES - 1].count,
            _ => Kind::ALL.iter().map(|&kind| self.trees[tree_of(class, kind)].count).sum(),
        }
    }

    fn busy_async(&self) -> u32 {
        let of = |class| self.trees[tree_of(class, Kind::Async)].count;
        of(Class::RealTime) + of(Class::BestEffort)
    }
}

/// Where a queue is.
#[derive(Clone, Copy, Debug)]
struct TreeIndex {
    group: usize,
    tree: usize,
}

/// The trees of all groups.
#[derive(Debug)]
pub(in crate::scheduler::cfq) struct ServiceTrees {
    members: Members<Instant>,
    groups: Vec<Group>,
    /// By queue.
    places: Vec<Option<TreeIndex>>,
}

impl ServiceTrees {
    pub fn new(groups: usize) -> ServiceTrees {
        ServiceTrees { members: Members::default(), groups: vec![Group::NEW; groups], places: Vec::new() }
    }

    /// The group is used for the first time: think times count from now.
    pub fn group_appears(&mut self, group: usize, now: Instant) {
        self.groups[group].trees.iter_mut().for_each(|tree| tree.think.ended(now));
    }

    /// A new queue is not busy.
    pub fn queue_made(&mut self, q: QueueId) {
        if q >= self.places.len() {
            self.places.resize(q + 1, None);
        }
        self.places[q] = None;
    }

    /// The queue is busy.
    #[inline]
    pub fn has(&self, q: QueueId) -> bool {
        self.places[q].is_some()
    }

    /// Inserts the queue, or moves it (`cfq_service_tree_add`). True if it was not busy before.
    pub fn schedule(
        &mut self,
        q: QueueId,
        group: usize,
        (class, kind): (Class, Kind),
        due: Due,
        now: Instant,
    ) -> bool {
        let tree = tree_of(class, kind);
        let set = &self.groups[group].trees[tree].set;
        let key = match due {
            Due::At(time) => time,
            Due::First => self.members.first(set).map_or(now, |first| self.members.key(first)) - FRONT,
            Due::Last => {
                let last = self.members.last(set).filter(|&last| last as usize != q);
                IDLE_DELAY + last.map_or(now, |last| self.members.key(last))
            }
        };
        let was = self.places[q];
        if let Some(place) = was {
            if place.tree == tree && self.members.key(q as u32) == key {
                return false;
            }
            self.take_out(q, place);
        }
        let group_trees = &mut self.groups[group];
        group_trees.busy += 1;
        let to = &mut group_trees.trees[tree];
        to.count += 1;
        self.members.insert(&mut to.set, key, q as u32);
        self.places[q] = Some(TreeIndex { group, tree });
        was.is_none()
    }

    /// The queue is not busy any more (`cfq_rb_erase`).
    pub fn remove(&mut self, q: QueueId) {
        if let Some(place) = self.places[q].take() {
            self.take_out(q, place);
        }
    }

    fn take_out(&mut self, q: QueueId, TreeIndex { group, tree }: TreeIndex) {
        let group = &mut self.groups[group];
        group.busy -= 1;
        let from = &mut group.trees[tree];
        from.count -= 1;
        self.members.remove(&mut from.set, q as u32);
    }

    /// The queue of that group, class and type that is due first.
    #[inline]
    pub fn first(&self, group: usize, class: Class, kind: Kind) -> Option<QueueId> {
        let set = &self.groups[group].trees[tree_of(class, kind)].set;
        self.members.first(set).map(|q| q as QueueId)
    }

    /// The workload type whose first queue is due first (`cfq_choose_wl_type`).
    pub fn first_kind(&self, group: usize, class: Class) -> Kind {
        let first = |kind| self.first(group, class, kind).map(|q| (self.members.key(q as u32), kind));
        Kind::ALL.into_iter().filter_map(first).min().map_or(Kind::SyncNoIdle, |(_, kind)| kind)
    }

    /// Busy queues of a class and type.
    #[inline]
    pub fn count(&self, group: usize, class: Class, kind: Kind) -> u32 {
        self.groups[group].trees[tree_of(class, kind)].count
    }

    /// Busy queues of the group.
    #[inline]
    pub fn busy(&self, group: usize) -> u32 {
        self.groups[group].busy
    }

    /// Busy queues of a class (`cfq_group_busy_queues_wl`).
    #[inline]
    pub fn busy_of(&self, group: usize, class: Class) -> u32 {
        self.groups[group].busy_of(class)
    }

    /// Busy asynchronous queues, without those of the idle class (`cfqg_busy_async_queues`).
    pub fn busy_async(&self, group: usize) -> u32 {
        self.groups[group].busy_async()
    }

    /// Busy synchronous queues, without those of the idle class.
    pub fn busy_sync(&self, group: usize) -> u32 {
        let group = &self.groups[group];
        group.busy - group.busy_async() - group.busy_of(Class::Idle)
    }

    /// Busy queues of a class, now or in the mean, whichever is more.
    pub fn busy_now_or_usually(&self, group: usize, class: Class) -> u32 {
        let group = &self.groups[group];
        group.busy_mean[class as usize].max(group.busy_of(class))
    }

    /// The mean number of busy queues, to which this adds the current one: of real time, or of
    /// best effort (`cfq_group_get_avg_queues`).
    pub fn mean_busy(&mut self, group: usize, real_time: bool) -> u32 {
        let class = if real_time { Class::RealTime } else { Class::BestEffort };
        let group = &mut self.groups[group];
        let busy = group.busy_of(class);
        let mean = &mut group.busy_mean[class as usize];
        let (low, high) = (busy.min(*mean), busy.max(*mean));
        *mean = ((HISTORY - 1) * high + low + HISTORY / 2) / HISTORY;
        *mean
    }

    #[inline]
    fn tree(&self, q: QueueId) -> Option<&Tree> {
        self.places[q].map(|TreeIndex { group, tree }| &self.groups[group].trees[tree])
    }

    /// The queue is the only one of its tree, and the think time of the tree is not longer than
    /// `span`.
    pub fn is_last_and_returns_within(&self, q: QueueId, span: u64) -> bool {
        self.tree(q).is_some_and(|tree| tree.count == 1 && !tree.think.is_longer(span))
    }

    /// The think time of the queue's tree is longer than `span`.
    pub fn thinks_longer(&self, q: QueueId, span: u64) -> bool {
        self.tree(q).is_some_and(|tree| tree.think.is_longer(span))
    }

    /// A request of a busy queue comes.
    pub fn request(&mut self, q: QueueId, now: Instant, idle: u64) {
        let TreeIndex { group, tree } = self.places[q].expect("a queue with a request is in a service tree");
        self.groups[group].trees[tree].think.sample(now, idle);
    }

    /// A request of a queue of that group, class and type completes.
    pub fn completed(&mut self, q: QueueId, group: usize, (class, kind): (Class, Kind), now: Instant) {
        let tree = self.places[q].map_or_else(|| tree_of(class, kind), |place| place.tree);
        self.groups[group].trees[tree].think.ended(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SYNC: (Class, Kind) = (Class::BestEffort, Kind::Sync);
    const SPAN: u64 = 8_000_000;

    /// Two groups; best-effort synchronous queues of the second, due at these times.
    fn trees(due: &[Instant]) -> ServiceTrees {
        let mut trees = ServiceTrees::new(2);
        for (q, &time) in due.iter().enumerate() {
            trees.queue_made(q);
            assert!(trees.schedule(q, 1, SYNC, Due::At(time), 0));
        }
        trees
    }

    /// The queues of the tree in the order of service.
    fn order(mut trees: ServiceTrees, (class, kind): (Class, Kind)) -> Vec<QueueId> {
        let next = || {
            let q = trees.first(1, class, kind)?;
            trees.remove(q);
            Some(q)
        };
        std::iter::from_fn(next).collect()
    }

    #[test]
    fn queues_are_served_by_the_time_they_are_due() {
        assert_eq!(order(trees(&[30, 10, 20, 10]), SYNC), [1, 3, 2, 0]);
    }

    #[test]
    fn a_preempting_queue_comes_before_all_others() {
        let mut trees = trees(&[30, 10, 20]);
        assert!(!trees.schedule(0, 1, SYNC, Due::First, 0), "it was busy");
        assert_eq!(order(trees, SYNC), [0, 1, 2]);
    }

    #[test]
    fn queues_of_the_idle_class_take_turns() {
        let idle = (Class::Idle, Kind::Async);
        let mut trees = trees(&[]);
        for q in 0..3 {
            trees.queue_made(q);
            trees.schedule(q, 1, idle, Due::Last, 100);
        }
        trees.schedule(0, 1, idle, Due::Last, 200);
        assert_eq!(trees.busy_of(1, Class::Idle), 3);
        assert_eq!(order(trees, idle), [1, 2, 0]);
    }

    #[test]
    fn queues_are_counted_by_group_class_and_type() {
        let mut trees = trees(&[10, 20]);
        trees.queue_made(2);
        trees.schedule(2, 1, (Class::BestEffort, Kind::Async), Due::At(5), 0);
        trees.queue_made(3);
        trees.schedule(3, 1, (Class::Idle, Kind::Sync), Due::Last, 0);
        assert_eq!((trees.busy(0), trees.busy(1)), (0, 4));
        assert_eq!((trees.busy_sync(1), trees.busy_async(1)), (2, 1));
        assert_eq!((trees.busy_of(1, Class::BestEffort), trees.busy_of(1, Class::RealTime)), (3, 0));
        // A queue that becomes seeky changes its tree.
        assert!(!trees.schedule(0, 1, (Class::BestEffort, Kind::SyncNoIdle), Due::At(10), 0));
        assert_eq!((trees.count(1, Class::BestEffort, Kind::Sync), trees.busy(1)), (1, 4));
        trees.remove(0);
        assert!(!trees.has(0) && trees.has(1));
        assert_eq!((trees.busy(1), trees.busy_sync(1)), (3, 1));
    }

    #[test]
    fn the_next_type_is_that_of_the_queue_due_first() {
        let mut trees = trees(&[10]);
        assert_eq!(trees.first_kind(1, Class::BestEffort), Kind::Sync);
        trees.queue_made(1);
        trees.schedule(1, 1, (Class::BestEffort, Kind::Async), Due::At(9), 0);
        assert_eq!(trees.first_kind(1, Class::BestEffort), Kind::Async);
        assert_eq!(trees.first_kind(1, Class::RealTime), Kind::SyncNoIdle, "no queue");
    }

    #[test]
    fn the_mean_number_of_queues_rises_fast_and_falls_slowly() {
        let mut trees = trees(&[0; 8]);
        assert_eq!([trees.mean_busy(1, false), trees.mean_busy(1, false)], [6, 8]);
        (0..7).for_each(|q| trees.remove(q));
        assert_eq!([trees.mean_busy(1, false), trees.mean_busy(1, false)], [6, 5]);
        assert_eq!((trees.busy_now_or_usually(1, Class::BestEffort), trees.mean_busy(1, true)), (5, 0));
    }

    #[test]
    fn the_last_queue_of_a_tree_stands_for_the_tree_s_think_time() {
        let mut trees = trees(&[0, 0]);
        assert!(!trees.is_last_and_returns_within(0, SPAN), "there is another");
        trees.remove(1);
        assert!(trees.is_last_and_returns_within(0, SPAN));
        for turn in 0..20 {
            trees.completed(0, 1, SYNC, turn * 1_000_000_000);
            trees.request(0, turn * 1_000_000_000 + 12_000_000, SPAN);
        }
        assert!(!trees.is_last_and_returns_within(0, SPAN) && trees.thinks_longer(0, SPAN));
        trees.remove(0);
        assert!(!trees.thinks_longer(0, SPAN), "it is in no tree");
    }
}
