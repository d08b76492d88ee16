//! Cgroups share the disk by weight: the group with the least service for its weight is served
//! next.
//!
//! Follows `cfq_group_service_tree_add`, `cfq_group_service_tree_del`, `cfq_get_next_cfqg` and the
//! arithmetic of `cfq_group_served` of Linux 4.12, on the default hierarchy.
//!
//! A group with busy queues takes part. Its *fraction* of the disk is its weight among its busy
//! siblings, at each level from itself to the root; its own processes compete with its children by
//! a leaf weight. Each group has a virtual time, which advances by its service divided by its
//! fraction; groups are sorted by it. A group that becomes busy is placed behind the last one, so
//! that idle time saves up no service.
//!
//! The measure of service (time or requests) and the choice of the queue are not part of this file.

use crate::containers::ordered::{Members, Set};
use crate::scheduler::Cgroup;

/// Shares and service are in 4096ths (`CFQ_SERVICE_SHIFT`).
const SERVICE_SHIFT: u32 = 12;

/// One group.
#[derive(Clone, Debug)]
struct Node {
    parent: Option<usize>,
    weight: u32,
    /// The weight of its own processes against its children.
    leaf_weight: u32,
    /// Busy children, and itself if it is busy.
    active: u32,
    /// The sum of their weights.
    children_weight: u32,
    /// Share of the whole disk, of 4096 (`vfraction`).
    fraction: u32,
    /// The virtual time (`vdisktime`).
    time: i64,
    /// Takes part.
    busy: bool,
}

impl Node {
    /// The weights of the default hierarchy: the root has twice the default, and leaf weights are
    /// fixed.
    fn new(cgroup: &Cgroup) -> Node {
        let default = u32::from(Cgroup::DEFAULT_WEIGHT);
        let root = 2 * default;
        let parent = cgroup.parent.map(|parent| usize::from(parent.0));
        Node {
            parent,
            weight: if parent.is_some() { u32::from(cgroup.weight) } else { root },
            leaf_weight: if parent.is_some() { default } else { root },
            active: 0,
            children_weight: 0,
            fraction: 0,
            time: 0,
            busy: false,
        }
    }
}

/// All groups, by number.
#[derive(Debug)]
pub(in crate::scheduler::cfq) struct Shares {
    groups: Vec<Node>,
    /// Groups that take part, by virtual time.
    members: Members<i64>,
    busy: Set,
    /// The smallest virtual time of groups that take part.
    least: i64,
}

impl Shares {
    pub fn new(cgroups: &[Cgroup]) -> Shares {
        let groups = cgroups.iter().map(Node::new).collect();
        Shares { groups, members: Members::default(), busy: Set::EMPTY, least: 0 }
    }

    /// The group has a busy queue: it now takes part, `delay` behind the last one.
    pub fn becomes_busy(&mut self, group: usize, delay: i64) {
        if self.groups[group].busy {
            return;
        }
        self.groups[group].time = match self.members.last(&self.busy) {
            Some(last) => self.members.key(last) + delay,
            None => self.least,
        };
        self.enter(group);
    }

    /// The group has no busy queue left.
    pub fn becomes_idle(&mut self, group: usize) {
        self.leave(group);
    }

    /// Computes the group's fraction: its weight among the busy groups, at each level up to the
    /// root.
    fn enter(&mut self, index: usize) {
        let group = &mut self.groups[index];
        group.busy = true;
        self.members.insert(&mut self.busy, group.time, index as u32);
        group.active += 1;
        group.children_weight += group.leaf_weight;
        let mut spreads = group.active == 1;
        let mut share = (1 << SERVICE_SHIFT) * group.leaf_weight / group.children_weight;
        let mut at = index;
        while let Some(parent) = self.groups[at].parent {
            let weight = self.groups[at].weight;
            let above = &mut self.groups[parent];
            if spreads {
                above.active += 1;
                spreads = above.active == 1;
                above.children_weight += weight;
            }
            share = share * weight / above.children_weight;
            at = parent;
        }
        self.groups[index].fraction = share.max(1);
    }

    fn leave(&mut self, index: usize) {
        let group = &mut self.groups[index];
        group.active -= 1;
        group.children_weight -= group.leaf_weight;
        let mut spreads = group.active == 0;
        let mut at = index;
        while spreads {
            self.groups[at].fraction = 0;
            let Some(parent) = self.groups[at].parent else { break };
            let weight = self.groups[at].weight;
            let above = &mut self.groups[parent];
            above.active -= 1;
            above.children_weight -= weight;
            spreads = above.active == 0;
            at = parent;
        }
        self.groups[index].busy = false;
        self.members.remove(&mut self.busy, index as u32);
    }

    /// The group with the least service for its weight.
    pub fn next(&mut self) -> Option<usize> {
        let first = self.members.first(&self.busy)?;
        self.least = self.least.max(self.members.key(first));
        Some(first as usize)
    }

    /// Adds service to a group that takes part.
    pub fn served(&mut self, group: usize, service: u64) {
        let share = u64::from(self.groups[group].fraction);
        self.leave(group);
        self.groups[group].time += ((service << SERVICE_SHIFT << SERVICE_SHIFT) / share) as i64;
        self.enter(group);
    }

    /// The group's fraction of `whole`.
    pub fn part_of(&self, whole: u64, group: usize) -> u64 {
        whole.wrapping_mul(self.groups[group].fraction.into()) >> SERVICE_SHIFT
    }

    /// `of` is `ancestor`, or a group below it.
    pub fn is_within(&self, of: usize, ancestor: usize) -> bool {
        std::iter::successors(Some(of), |&at| self.groups[at].parent).any(|at| at == ancestor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheduler::CgroupId;

    /// The root, two groups in it, and one in the second.
    fn shares(weights: [u16; 3]) -> Shares {
        let below = |parent, weight| Cgroup { parent: Some(CgroupId(parent)), weight };
        Shares::new(&[
            Cgroup { parent: None, weight: 100 },
            below(0, weights[0]),
            below(0, weights[1]),
            below(2, weights[2]),
        ])
    }

    /// How many of `count` turns of equal length each group gets.
    fn turns(shares: &mut Shares, count: usize) -> [usize; 4] {
        let mut served = [0; 4];
        for _ in 0..count {
            let group = shares.next().expect("some are busy");
            served[group] += 1;
            shares.served(group, 1000);
        }
        served
    }

    #[test]
    fn busy_groups_are_served_by_their_weights_at_each_level() {
        let mut shares = shares([100, 300, 100]);
        shares.becomes_busy(1, 0);
        shares.becomes_busy(2, 0);
        let [_, light, heavy, _] = turns(&mut shares, 400);
        assert!(light.abs_diff(100) <= 1 && heavy.abs_diff(300) <= 1, "{light} {heavy}");
        // The child now has half of the heavy group's share.
        shares.becomes_busy(3, 0);
        turns(&mut shares, 10);
        let [_, light, heavy, child] = turns(&mut shares, 800);
        assert!(light.abs_diff(200) <= 2 && heavy.abs_diff(300) <= 2, "{light} {heavy} {child}");
    }

    #[test]
    fn a_group_that_comes_back_has_saved_nothing_up() {
        let mut shares = shares([100, 100, 100]);
        shares.becomes_busy(1, 0);
        turns(&mut shares, 1000);
        shares.becomes_busy(2, 0);
        let [_, first, second, _] = turns(&mut shares, 100);
        assert!(first.abs_diff(second) <= 2, "{first} {second}");
    }

    #[test]
    fn the_delay_of_a_newcomer_is_served_to_those_before_it() {
        let mut shares = shares([100, 100, 100]);
        shares.becomes_busy(1, 0);
        shares.served(1, 1000);
        let one = shares.members.key(1);
        shares.becomes_busy(2, 5 * one);
        // One turn still with the whole disk, then two with half of it, which count twice.
        assert_eq!(turns(&mut shares, 3), [0, 3, 0, 0]);
        assert_eq!(shares.next(), Some(2));
    }

    #[test]
    fn parts_follow_the_fractions_and_idle_groups_count_for_nothing() {
        let mut shares = shares([100, 300, 100]);
        shares.becomes_busy(1, 0);
        assert_eq!(shares.part_of(4000, 1), 4000);
        shares.becomes_busy(2, 0);
        assert_eq!(shares.part_of(4000, 2), 3000);
        shares.becomes_idle(1);
        shares.served(2, 1);
        assert_eq!((shares.part_of(4000, 1), shares.part_of(4000, 2)), (0, 4000));
        assert!(shares.is_within(3, 2) && shares.is_within(3, 0) && !shares.is_within(3, 1));
    }
}
