//! B-WF2Q+: chooses the next queue so that each gets the share of its weight.
//!
//! Follows `block/bfq-wf2q.c` of Linux 7.3 with the groups of `bfq-cgroup.c`; the algorithm
//! is that of Valente and Checconi, "High throughput disk scheduling with fair bandwidth
//! distribution" (IEEE Transactions on Computers, 2010), upon Bennett and Zhang's WF2Q+
//! (SIGCOMM 1996).
//!
//! Imagine a fluid disk that serves all queues at once, each in proportion to its weight. It has a
//! virtual clock, which advances by the service given, divided by the sum of the weights. A queue
//! with a *budget* of sectors would begin at its start time S and finish at F = S + budget /
//! weight. The real disk serves one queue at a time: of the queues that would have begun by now (S
//! <= V: *eligible*), the one with the smallest finish time. No queue gets ahead of the fluid disk
//! or behind it by much more than a budget.
//!
//! Groups nest: a group is an entity like a queue; its budget is that of its next child. In each
//! group there are three schedulers of this kind, one per I/O priority class. A class is served
//! only while the classes above it are empty; but the idle class goes first if it was not served
//! for 200 ms.
//!
//! A queue without requests stays as *idle* until virtual time passes its finish time: a queue that
//! comes back before the fluid disk would have finished it must not gain from that.
//!
//! Everything is an index: entities, tree nodes and groups lie in tables. A step costs O(log
//! entities) for each level and allocates nothing once the tables have grown.
//!
//! Two traits of the kernel's code are kept, since its choices depend on them: the search for the
//! first eligible entity may miss one ([`tree`]), and the next entity of a group is remembered and
//! computed again only at the same moments as in the kernel ([`choice`]).
//!
//! Left out: groups that go away. A run's cgroups are fixed.

mod choice;
mod counters;
mod entity;
#[cfg(test)]
mod promises;
mod queueing;
mod tree;
#[cfg(test)]
mod weights;

use crate::request::PrioClass;
use crate::scheduler::shared::positions::Numbered;
use crate::scheduler::tasks::{Cgroup, CgroupId};
use crate::ticks::Ticks;
use crate::units::Nanos;
use entity::{CLASSES, Entity, Group, Membership};
use tree::{NIL, Node, Nodes};

/// A queue of requests: a leaf of the hierarchy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LeafId(u32);

impl LeafId {
    /// The index, for tables that a scheduler keeps beside this one. Groups take some of the
    /// indices; those of released leaves are reused.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl Numbered for LeafId {
    fn number(self) -> usize {
        self.index()
    }
}

/// The class of a queue, highest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// Before all others.
    RealTime,
    /// The default.
    BestEffort,
    /// Only while no other class has requests.
    Idle,
}

impl From<PrioClass> for Class {
    /// A process without a class is best effort.
    fn from(class: PrioClass) -> Class {
        match class {
            PrioClass::RealTime => Class::RealTime,
            PrioClass::None | PrioClass::BestEffort => Class::BestEffort,
            PrioClass::Idle => Class::Idle,
        }
    }
}

/// The weight of an I/O priority level, 0 to 7 (`bfq_ioprio_to_weight`): 80 to 10.
pub const fn weight_of_level(level: u8) -> u32 {
    (8 - level as u32) * 10
}

/// The longest time of the idle class without service (`BFQ_CL_IDLE_TIMEOUT`).
const IDLE_CLASS_TIMEOUT: Nanos = Nanos::from_millis(200);

/// The hierarchy of queues and groups.
#[derive(Debug)]
pub struct Wf2q {
    nodes: Nodes,
    entities: Vec<Entity>,
    groups: Vec<Group>,
    ticks: Ticks,
    /// Ticks; `None`: the idle class has no such limit.
    idle_class_timeout: Option<u64>,
    always_searches: bool,
    in_service: u32,
    /// Busy queues per class, and the number of them with raised weight.
    busy: [u32; CLASSES],
    raised_busy: u32,
    /// Active queues, the latest first.
    newest_active: u32,
    /// Weights of queues with requests, ascending, with the number of queues of each.
    weights: Vec<(u32, u32)>,
    groups_pending: u32,
    /// Released and forgotten queues that were not yet returned.
    freed: Vec<LeafId>,
    vacant: Vec<u32>,
}

impl Wf2q {
    /// With an empty root group only. `ticks` is the clock for the timeout of the idle class.
    pub fn new(ticks: Ticks) -> Wf2q {
        Wf2q {
            nodes: Nodes::default(),
            entities: Vec::new(),
            groups: vec![Group::new(NIL)],
            ticks,
            idle_class_timeout: Some(ticks.span(IDLE_CLASS_TIMEOUT)),
            always_searches: false,
            in_service: NIL,
            busy: [0; CLASSES],
            raised_busy: 0,
            newest_active: NIL,
            weights: Vec::new(),
            groups_pending: 0,
            freed: Vec::new(),
            vacant: Vec::new(),
        }
    }

    /// The rules of the patch of 2008: the idle class is served only while no other queue has
    /// requests, without a time limit, and every choice is a new search.
    pub fn with_rules_of_2008(self) -> Wf2q {
        Wf2q { idle_class_timeout: None, always_searches: true, ..self }
    }

    /// Adds the run's groups that are not here yet; queues may then be added to them. One
    /// comparison if there are none.
    #[inline]
    pub fn know_groups(&mut self, cgroups: &[Cgroup]) {
        while self.groups.len() < cgroups.len() {
            let number = self.groups.len();
            let parent = cgroups[number].parent.expect("only the root group has no parent");
            let weight = u32::from(cgroups[number].weight);
            let entity = Entity::new(u32::from(parent.0), number as u32, entity::GROUP_CLASS, weight);
            let entity = self.push(entity);
            self.groups.push(Group::new(entity));
        }
    }

    /// Adds a queue, not yet active. Weights of 10 to 80 are those of the priority levels.
    pub fn add_leaf(&mut self, group: CgroupId, class: Class, weight: u32) -> LeafId {
        let entity = Entity::new(u32::from(group.0), NIL, class as u8, weight);
        LeafId(match self.vacant.pop() {
            Some(id) => {
                self.entities[id as usize] = entity;
                self.nodes[id] = Node::NEW;
                id
            }
            None => self.push(entity),
        })
    }

    fn push(&mut self, entity: Entity) -> u32 {
        self.entities.push(entity);
        self.nodes.push(Node::NEW);
        self.entities.len() as u32 - 1
    }

    /// No process or request uses the queue any more. It still counts in its tree's weight sum
    /// until virtual time has passed it; then [`Wf2q::pop_freed`] returns it.
    pub fn release(&mut self, leaf: LeafId) {
        self.entities[leaf.index()].released = true;
        self.free_if_unused(leaf.0);
    }

    /// Whether [`Wf2q::pop_freed`] returns a queue.
    #[inline]
    pub fn has_freed(&self) -> bool {
        !self.freed.is_empty()
    }

    /// A released queue that is now forgotten. Its number is free from now on.
    pub fn pop_freed(&mut self) -> Option<LeafId> {
        let leaf = self.freed.pop()?;
        self.vacant.push(leaf.0);
        Some(leaf)
    }

    fn free_if_unused(&mut self, id: u32) {
        let entity = &mut self.entities[id as usize];
        let used = entity.counts || entity.counted_weight != 0 || self.in_service == id;
        if entity.released && !used {
            entity.released = false;
            self.freed.push(LeafId(id));
        }
    }

    /// The queue has requests (`bfq_activate_bfqq`); its budget has been set. If its request was
    /// expected without idling and comes in time, its start time may lie before the virtual time:
    /// the queue gets what it would have got without the gap.
    pub fn activate(&mut self, leaf: LeafId, non_blocking_wait: bool, now: Nanos) {
        self.activate_upwards(leaf.0, non_blocking_wait, false, false, now);
    }

    /// The queue's budget has changed, or its turn ends while it still has requests (`expiration`):
    /// computes new timestamps (`bfq_requeue_bfqq`).
    pub fn requeue(&mut self, leaf: LeafId, expiration: bool, now: Nanos) {
        self.activate_upwards(leaf.0, false, leaf.0 == self.in_service, expiration, now);
    }

    fn activate_upwards(
        &mut self,
        leaf: u32,
        non_blocking_wait: bool,
        all: bool,
        expiration: bool,
        now: Nanos,
    ) {
        let mut id = leaf;
        while id != NIL {
            self.activate_or_requeue(id, non_blocking_wait);
            if !self.update_next(self.entities[id as usize].group, id, expiration, now) && !all {
                break;
            }
            id = self.parent_of(id);
        }
    }

    /// The queue has no more requests (`bfq_deactivate_bfqq`). `keep`: it may stay idle until its
    /// finish time; otherwise it is forgotten at once. `expiration`: its turn ends.
    pub fn deactivate(&mut self, leaf: LeafId, keep: bool, expiration: bool, now: Nanos) {
        let (mut id, mut keep) = (leaf.0, keep);
        loop {
            let group = self.entities[id as usize].group;
            if !self.deactivate_entity(id, keep) {
                return;
            }
            if self.groups[group as usize].next == id {
                self.update_next(group, NIL, expiration, now);
            }
            let parent = self.groups[group as usize].entity;
            let Group { next, in_service, .. } = self.groups[group as usize];
            id = parent;
            if next != NIL || in_service != NIL || parent == NIL {
                break;
            }
            keep = true;
        }
        while id != NIL {
            self.requeue_entity(id);
            let group = self.entities[id as usize].group;
            if !self.update_next(group, id, expiration, now) && !expiration {
                break;
            }
            id = self.parent_of(id);
        }
    }

    /// The queue leaves the order of its group and does not count there any more; it is not in service
    /// (`bfq_bfqq_move`).
    pub fn leave_group(&mut self, leaf: LeafId, now: Nanos) {
        if self.is_busy(leaf) {
            self.deactivate(leaf, false, false, now);
        } else if self.entities[leaf.index()].counts {
            if self.entities[leaf.index()].place == Membership::Idle {
                self.idle_extract(leaf.0);
            }
            self.forget(leaf.0);
        }
    }

    /// A queue that has left its group belongs to another one. If it is busy, it must be activated.
    pub fn enter_group(&mut self, leaf: LeafId, group: CgroupId) {
        debug_assert!(!self.entities[leaf.index()].counts, "a queue counts in one group");
        self.entities[leaf.index()].group = u32::from(group.0);
    }

    /// An empty queue gets requests (`bfq_add_bfqq_busy`). `under_way`: earlier requests are still
    /// in flight. For `non_blocking_wait` see [`Wf2q::activate`].
    pub fn add_busy(&mut self, leaf: LeafId, under_way: bool, non_blocking_wait: bool, now: Nanos) {
        self.activate(leaf, non_blocking_wait, now);
        let entity = &mut self.entities[leaf.index()];
        entity.busy = true;
        self.busy[usize::from(entity.class)] += 1;
        let raised = entity.coefficient > 1;
        self.raised_busy += u32::from(raised);
        if !under_way {
            self.count_pending(leaf);
            if !raised {
                self.count_weight(leaf);
            }
        }
    }

    /// A queue has no more waiting requests (`bfq_del_bfqq_busy`).
    pub fn remove_busy(&mut self, leaf: LeafId, under_way: bool, expiration: bool, now: Nanos) {
        let entity = &mut self.entities[leaf.index()];
        entity.busy = false;
        self.busy[usize::from(entity.class)] -= 1;
        self.raised_busy -= u32::from(entity.coefficient > 1);
        self.deactivate(leaf, true, expiration, now);
        if !under_way {
            self.uncount_pending(leaf);
            self.uncount_weight(leaf);
        }
    }

    /// The next queue, which is now in service with all entities above it; `None` if no queue is
    /// busy (`bfq_get_next_queue`). No queue may be in service before.
    pub fn next(&mut self, now: Nanos) -> Option<LeafId> {
        debug_assert!(self.in_service == NIL, "a turn ends before the next begins");
        if self.busy.iter().sum::<u32>() == 0 {
            return None;
        }
        self.in_service = self.descend(now);
        Some(LeafId(self.in_service))
    }

    /// The turn is over; the queue in service has been requeued or deactivated
    /// (`__bfq_bfqd_reset_in_service`).
    pub fn end_service(&mut self) {
        let leaf = std::mem::replace(&mut self.in_service, NIL);
        let mut id = leaf;
        while id != NIL {
            self.groups[self.entities[id as usize].group as usize].in_service = NIL;
            id = self.parent_of(id);
        }
        if leaf != NIL && !self.entities[leaf as usize].counts {
            self.free_if_unused(leaf);
        }
    }

    /// The next entity at the root is not the one in service (`next_queue_may_preempt`).
    pub fn next_may_preempt(&self) -> bool {
        self.groups[0].next != self.groups[0].in_service
    }

    /// Adds sectors to the service of the queue in service and of all groups above it; virtual time
    /// advances there (`bfq_bfqq_served`).
    #[inline(always)]
    pub fn served(&mut self, leaf: LeafId, sectors: u32) {
        let mut id = leaf.0;
        while id != NIL {
            let (class, group) = (self.class_of(id), self.entities[id as usize].group);
            self.entities[id as usize].service += sectors as i32;
            let tree = &mut self.groups[group as usize].trees[class];
            tree.vtime = tree.vtime.wrapping_add(entity::delta(u64::from(sectors), tree.wsum));
            self.forget_idle(group, class);
            id = self.parent_of(id);
        }
    }
}
