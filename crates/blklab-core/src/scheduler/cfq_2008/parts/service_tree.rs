//! The busy queues in the order of their service.
//!
//! A queue is busy while it has requests that wait, even during its turn. Real time comes before best effort,
//! the idle class behind both. Within a class the queue that is due first comes first, and of equal ones that
//! which was put there first. A queue that preempts comes before all of its class; one of the idle class
//! goes behind the last queue, so that these take turns whatever their levels.
//!
//! Follows `service_tree` and `busy_queues` of `cfq_data` in Linux 2.6.28, and `cfq_service_tree_add`.

use crate::containers::ordered::{Members, Set};
use crate::scheduler::shared::wf2q::Class;
use crate::ticks::Ticks;
use crate::units::Nanos;

use super::super::queue::QueueId;

/// A queue of the idle class is placed this far behind the last queue (`CFQ_IDLE_DELAY`).
const IDLE_DELAY: Nanos = Nanos::from_millis(200);
/// Before all times; far from the least integer, so that a delay can be added.
const FRONT: i64 = i64::MIN / 2;

/// When a queue is due.
#[derive(Clone, Copy, Debug)]
pub(in crate::scheduler::cfq_2008) enum Due {
    /// So many ticks from now.
    In(i64),
    /// Before all others of its class.
    First,
    /// Behind all others.
    Last,
}

/// The busy queues.
#[derive(Debug)]
pub(in crate::scheduler::cfq_2008) struct ServiceTree {
    members: Members<i64>,
    /// By class.
    sets: [Set; 3],
    /// The class of each busy queue.
    places: Vec<Option<Class>>,
    busy: u32,
    idle_delay: i64,
}

impl ServiceTree {
    pub fn new(ticks: Ticks) -> ServiceTree {
        ServiceTree {
            members: Members::default(),
            sets: [Set::EMPTY; 3],
            places: Vec::new(),
            busy: 0,
            idle_delay: ticks.at(IDLE_DELAY) as i64,
        }
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

    /// The number of busy queues.
    #[inline]
    pub fn busy(&self) -> u32 {
        self.busy
    }

    /// The queue that is served next.
    #[inline]
    pub fn first(&self) -> Option<QueueId> {
        self.sets.iter().find_map(|set| self.members.first(set)).map(|q| q as QueueId)
    }

    fn last(&self) -> Option<u32> {
        self.sets.iter().rev().find_map(|set| self.members.last(set))
    }

    /// Inserts the queue, or moves it. If its time is the same as before, it keeps its place.
    pub fn schedule(&mut self, q: QueueId, class: Class, due: Due, tick: u64) {
        let id = q as u32;
        let now = tick as i64;
        let key = match due {
            Due::In(ticks) => now + ticks,
            Due::First => FRONT,
            Due::Last => {
                let last = self.last().filter(|&last| last != id);
                self.idle_delay + last.map_or(now, |last| self.members.key(last))
            }
        };
        if self.has(q) && self.members.key(id) == key {
            return;
        }
        self.remove(q);
        self.members.insert(&mut self.sets[class as usize], key, id);
        self.places[q] = Some(class);
        self.busy += 1;
    }

    /// The queue is not busy any more.
    pub fn remove(&mut self, q: QueueId) {
        if let Some(class) = self.places[q].take() {
            self.members.remove(&mut self.sets[class as usize], q as u32);
            self.busy -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheduler::shared::wf2q::Class::{BestEffort, Idle, RealTime};

    /// With queues of these classes, due in so many ticks.
    fn tree(queues: &[(Class, Due)]) -> ServiceTree {
        let mut tree = ServiceTree::new(Ticks::per_second(1000));
        for (q, &(class, due)) in queues.iter().enumerate() {
            tree.queue_made(q);
            tree.schedule(q, class, due, 1000);
        }
        tree
    }

    fn order(mut tree: ServiceTree) -> Vec<QueueId> {
        let next = |tree: &mut ServiceTree| {
            let first = tree.first()?;
            tree.remove(first);
            Some(first)
        };
        std::iter::from_fn(|| next(&mut tree)).collect()
    }

    #[test]
    fn classes_come_before_times_and_equal_times_in_order_of_arrival() {
        let at = Due::In;
        let tree = tree(&[
            (Idle, Due::Last),
            (BestEffort, at(300)),
            (RealTime, at(900)),
            (BestEffort, at(100)),
            (BestEffort, at(100)),
        ]);
        assert_eq!(tree.busy(), 5);
        assert_eq!(order(tree), [2, 3, 4, 1, 0]);
    }

    #[test]
    fn a_queue_that_preempts_is_first_in_its_class_only() {
        let mut tree =
            tree(&[(RealTime, Due::In(50)), (BestEffort, Due::In(-500)), (BestEffort, Due::In(0))]);
        tree.schedule(2, BestEffort, Due::First, 1000);
        assert_eq!(order(tree), [0, 2, 1]);
    }

    #[test]
    fn a_queue_that_is_due_at_the_same_time_keeps_its_place() {
        let mut tree = tree(&[(BestEffort, Due::In(5)), (BestEffort, Due::In(5))]);
        tree.schedule(0, BestEffort, Due::In(5), 1000);
        assert_eq!(tree.first(), Some(0));
        tree.schedule(0, BestEffort, Due::In(4), 1001);
        assert_eq!(tree.first(), Some(0), "the same time, told a tick later");
        tree.schedule(0, BestEffort, Due::In(6), 1000);
        assert_eq!((tree.first(), tree.busy()), (Some(1), 2));
    }

    #[test]
    fn queues_of_the_idle_class_take_turns() {
        let mut tree = tree(&[(Idle, Due::Last), (Idle, Due::Last)]);
        for turn in 0..4 {
            let first = tree.first().expect("both are busy");
            assert_eq!(first, turn % 2);
            tree.schedule(first, Idle, Due::Last, 1000 + turn as u64);
        }
    }
}
