//! Bursts: many queues that become active together, as when a service starts its workers or a build
//! starts its compilers. For these queues throughput matters more than the latency of each, so they
//! get neither weight-raising nor idling.
//!
//! Follows `bfq_handle_burst` of Linux 7.3. New queues whose first requests come within 180 ms of
//! each other, in the same group, belong to one burst. A burst begins only while no queue is busy:
//! a process that starts beside a busy one is not the first of many. Up to seven queues are only
//! listed. With the eighth the burst is large: all listed queues, and each that joins later, are
//! marked. A mark lasts until its queue has done no I/O for 10 seconds, or is freed.
//!
//! When a process's queue is merged, the process saves its membership in [`Membership`] and
//! restores it after a split. A queue that was just split off begins no burst.
//!
//! This part knows queues by number only. It does not change weights; it answers whether a queue is
//! marked ([`Burst::marks`]).

use super::QueueId;
use super::clock::{Clock, Jiffies};
use crate::scheduler::bfq::tunables::Tuning;

/// A burst with this many queues is large (`bfq_large_burst_thresh`).
const LARGE: u32 = 8;
/// Queues that come within this time of each other belong to one burst (`bfq_burst_interval`).
const INTERVAL_MS: u64 = 180;
/// A queue begins no burst for this long after a split.
const AFTER_SPLIT_MS: u64 = 10;

/// A queue's membership in bursts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::scheduler::bfq) struct Membership {
    /// Listed in a burst that is not large.
    listed: bool,
    /// Belongs to a large burst.
    marked: bool,
}

impl Membership {
    /// The queue belongs to a large burst from now on.
    pub fn mark(&mut self) {
        self.marked = true;
    }
}

/// A new queue that gets its first request.
#[derive(Clone, Copy, Debug)]
pub(in crate::scheduler::bfq) struct Newcomer {
    pub queue: QueueId,
    pub group: u32,
    /// When it was split off a shared queue.
    pub split_time: Jiffies,
    /// Other queues have requests.
    pub beside_busy: bool,
}

/// The latest burst, and the membership of all queues.
#[derive(Debug)]
pub(in crate::scheduler::bfq) struct Burst {
    interval: Jiffies,
    after_split: Jiffies,
    last_joined: Jiffies,
    size: u32,
    large: bool,
    /// The group of its queues.
    group: Option<u32>,
    /// Its queues, while it is not large.
    listed: Vec<QueueId>,
    /// By queue.
    members: Vec<Membership>,
}

impl Burst {
    pub fn new(tuning: &Tuning) -> Burst {
        Burst {
            interval: tuning.ticks_of_ms(INTERVAL_MS),
            after_split: tuning.ticks_of_ms(AFTER_SPLIT_MS),
            last_joined: 0,
            size: 0,
            large: false,
            group: None,
            listed: Vec::new(),
            members: Vec::new(),
        }
    }

    /// A new queue belongs to no burst.
    pub fn queue_made(&mut self, q: QueueId) {
        if q.index() >= self.members.len() {
            self.members.resize(q.index() + 1, Membership::default());
        }
        self.members[q.index()] = Membership::default();
    }

    /// Queues created within this time of each other may belong to one burst.
    pub fn interval(&self) -> Jiffies {
        self.interval
    }

    /// The queue belongs to a large burst.
    #[inline]
    pub fn marks(&self, q: QueueId) -> bool {
        self.members[q.index()].marked
    }

    /// The membership that a process saves when its queue is merged.
    pub fn membership(&self, q: QueueId) -> Membership {
        self.members[q.index()]
    }

    /// A new queue gets its first request: it begins a burst or joins one. Calls `marks` for each
    /// queue that now belongs to a large burst.
    pub fn arrives(&mut self, newcomer: Newcomer, clock: &Clock, mut marks: impl FnMut(QueueId)) {
        let Newcomer { queue: q, group, split_time, beside_busy } = newcomer;
        let known = self.members[q.index()];
        let after_split = !clock.is_past(split_time + self.after_split);
        if self.size == 0 && beside_busy || known.listed || known.marked || after_split {
            return;
        }
        if clock.is_past(self.last_joined + self.interval) || Some(group) != self.group {
            self.begin(q, group, beside_busy);
        } else if self.large {
            self.members[q.index()].marked = true;
            marks(q);
        } else {
            self.join(q, marks);
        }
        self.last_joined = clock.jiffies;
    }

    fn begin(&mut self, q: QueueId, group: u32, beside_busy: bool) {
        self.large = false;
        self.scatter();
        self.size = 0;
        if !beside_busy {
            self.list(q);
            self.size = 1;
        }
        self.group = Some(group);
    }

    fn join(&mut self, q: QueueId, mut marks: impl FnMut(QueueId)) {
        self.size += 1;
        self.list(q);
        if self.size != LARGE {
            return;
        }
        self.large = true;
        for &member in &self.listed {
            self.members[member.index()].marked = true;
            marks(member);
        }
        self.scatter();
    }

    /// Lists a queue without counting it.
    fn list(&mut self, q: QueueId) {
        self.members[q.index()].listed = true;
        self.listed.push(q);
    }

    fn scatter(&mut self) {
        while let Some(member) = self.listed.pop() {
            self.members[member.index()].listed = false;
        }
    }

    /// A process gets its own queue again and restores its saved membership.
    pub fn resume(&mut self, q: QueueId, kept: Membership) {
        let marked = kept.listed && self.large || kept.marked;
        self.members[q.index()].marked = marked;
        if !marked && kept.listed {
            self.list(q);
        }
    }

    /// The queue has done no I/O for a long time: it leaves its burst.
    pub fn leave(&mut self, q: QueueId) {
        self.unlist(q);
        self.members[q.index()].marked = false;
    }

    /// Removes the queue from the list; true if it was listed.
    fn unlist(&mut self, q: QueueId) -> bool {
        let listed = std::mem::take(&mut self.members[q.index()].listed);
        if listed {
            self.listed.retain(|&other| other != q);
        }
        listed
    }

    /// The queue is freed; `counts`: it belonged to one process to the end, so the burst shrinks by
    /// one.
    pub fn queue_gone(&mut self, q: QueueId, counts: bool) {
        if self.unlist(q) && counts && self.size > 0 {
            self.size -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{leaves, tuning};
    use super::*;
    use crate::units::Nanos;

    struct World {
        burst: Burst,
        clock: Clock,
        queues: Vec<QueueId>,
        marked: Vec<QueueId>,
    }

    impl World {
        fn new() -> World {
            let tuning = tuning(&[]);
            let (mut burst, queues) = (Burst::new(&tuning), leaves(16));
            queues.iter().for_each(|&q| burst.queue_made(q));
            World { burst, clock: Clock::new(tuning.ticks), queues, marked: Vec::new() }
        }

        /// A new queue gets its first request at `ms`.
        fn arrives(&mut self, place: usize, ms: u64, beside_busy: bool) {
            self.clock.set(Nanos::from_millis(ms));
            let split_time = super::super::clock::LONG_AGO;
            let newcomer = Newcomer { queue: self.queues[place], group: 0, split_time, beside_busy };
            self.burst.arrives(newcomer, &self.clock, |q| self.marked.push(q));
        }
    }

    #[test]
    fn eight_queues_that_come_together_and_all_later_ones_are_a_large_burst() {
        let mut world = World::new();
        (0..7).for_each(|place| world.arrives(place, place as u64 * 100, place > 0));
        assert_eq!(world.marked, []);
        world.arrives(7, 700, true);
        assert_eq!(world.marked, world.queues[..8]);
        world.arrives(8, 880, true);
        assert_eq!(world.marked, world.queues[..9]);
        assert!(world.burst.marks(world.queues[8]));
    }

    #[test]
    fn a_queue_that_comes_later_begins_another_burst() {
        let mut world = World::new();
        (0..8).for_each(|place| world.arrives(place, 0, place > 0));
        world.arrives(8, 182, false);
        assert!(!world.burst.marks(world.queues[8]));
    }

    #[test]
    fn no_burst_begins_beside_a_busy_queue() {
        let mut world = World::new();
        (0..16).for_each(|place| world.arrives(place, 0, true));
        assert_eq!(world.marked, []);
    }

    #[test]
    fn a_listed_queue_that_is_gone_no_longer_counts() {
        let mut world = World::new();
        (0..7).for_each(|place| world.arrives(place, 0, place > 0));
        world.burst.queue_gone(world.queues[3], true);
        world.arrives(7, 0, true);
        assert_eq!(world.marked, []);
        world.arrives(8, 0, true);
        assert_eq!(world.marked.len(), 8);
        assert!(!world.marked.contains(&world.queues[3]));
    }

    #[test]
    fn a_split_queue_is_marked_if_its_burst_has_become_large_meanwhile() {
        let mut world = World::new();
        (0..7).for_each(|place| world.arrives(place, 0, place > 0));
        let kept = world.burst.membership(world.queues[0]);
        world.arrives(7, 0, true);
        world.burst.resume(world.queues[10], kept);
        assert!(world.burst.marks(world.queues[10]));
        world.burst.leave(world.queues[10]);
        assert!(!world.burst.marks(world.queues[10]));
    }
}
