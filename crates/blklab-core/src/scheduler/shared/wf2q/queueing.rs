//! Insertion into the trees and removal: timestamps, changes of weights, forgotten entities.

use super::Wf2q;
use super::entity::{GROUP_CLASS, Membership, ServiceTree, delta};
use super::tree::{NIL, later};

/// Weights that a cgroup may have (`BFQ_MIN_WEIGHT`, `BFQ_MAX_WEIGHT`).
const WEIGHTS: (u32, u32) = (1, 1000);

impl Wf2q {
    /// Index of the entity's class in its group's trees (`bfq_class_idx`).
    #[inline]
    pub(super) fn class_of(&self, id: u32) -> usize {
        let entity = &self.entities[id as usize];
        usize::from(if entity.is_leaf() { entity.class } else { GROUP_CLASS })
    }

    /// The service tree that the entity belongs to.
    #[inline]
    pub(super) fn tree_of(&mut self, id: u32) -> &mut ServiceTree {
        let class = self.class_of(id);
        let group = self.entities[id as usize].group;
        &mut self.groups[group as usize].trees[class]
    }

    /// The entity of the group that this one is in; [`NIL`] below the root.
    #[inline]
    pub(super) fn parent_of(&self, id: u32) -> u32 {
        self.groups[self.entities[id as usize].group as usize].entity
    }

    #[inline]
    pub(super) fn is_in_service(&self, id: u32) -> bool {
        self.groups[self.entities[id as usize].group as usize].in_service == id
    }

    pub(super) fn set_finish(&mut self, id: u32, service: i32) {
        let weight = u64::from(self.entities[id as usize].weight);
        let node = &mut self.nodes[id];
        node.finish = node.start.wrapping_add(delta(service as u64, weight));
    }

    fn active_insert(&mut self, id: u32) {
        let class = self.class_of(id);
        let group = &mut self.groups[self.entities[id as usize].group as usize];
        self.nodes.insert(&mut group.trees[class].active, id);
        group.active += 1;
        self.entities[id as usize].place = Membership::Active;
        if self.entities[id as usize].is_leaf() {
            self.list_insert(id);
        }
    }

    pub(super) fn active_extract(&mut self, id: u32) {
        let class = self.class_of(id);
        let group = &mut self.groups[self.entities[id as usize].group as usize];
        self.nodes.remove(&mut group.trees[class].active, id);
        group.active -= 1;
        self.entities[id as usize].place = Membership::Nowhere;
        if self.entities[id as usize].is_leaf() {
            self.list_remove(id);
        }
    }

    pub(super) fn idle_insert(&mut self, id: u32) {
        let class = self.class_of(id);
        let tree = &mut self.groups[self.entities[id as usize].group as usize].trees[class];
        let finish = self.nodes[id].finish;
        if tree.first_idle == NIL || later(self.nodes[tree.first_idle].finish, finish) {
            tree.first_idle = id;
        }
        if tree.last_idle == NIL || later(finish, self.nodes[tree.last_idle].finish) {
            tree.last_idle = id;
        }
        self.nodes.insert(&mut tree.idle, id);
        self.entities[id as usize].place = Membership::Idle;
    }

    pub(super) fn idle_extract(&mut self, id: u32) {
        let class = self.class_of(id);
        let tree = &mut self.groups[self.entities[id as usize].group as usize].trees[class];
        if tree.first_idle == id {
            tree.first_idle = self.nodes.next(id);
        }
        if tree.last_idle == id {
            tree.last_idle = self.nodes.previous(id);
        }
        self.nodes.remove(&mut tree.idle, id);
        self.entities[id as usize].place = Membership::Nowhere;
    }

    /// Removes the weight of an entity in no tree from its tree's sum.
    pub(super) fn forget(&mut self, id: u32) {
        self.entities[id as usize].counts = false;
        let weight = self.entities[id as usize].weight;
        let tree = self.tree_of(id);
        tree.wsum = tree.wsum.wrapping_sub(u64::from(weight));
        self.free_if_unused(id);
    }

    /// Virtual time has advanced: forgets at most one entity whose finish time has passed. Only
    /// one, so that no step costs more than a search.
    #[inline]
    pub(super) fn forget_idle(&mut self, group: u32, class: usize) {
        let tree = &self.groups[group as usize].trees[class];
        if tree.first_idle != NIL || tree.last_idle != NIL {
            self.forget_idle_one(group, class);
        }
    }

    fn forget_idle_one(&mut self, group: u32, class: usize) {
        let tree = &mut self.groups[group as usize].trees[class];
        if tree.last_idle != NIL && tree.active.is_empty() {
            let last = self.nodes[tree.last_idle].finish;
            if !later(last, tree.vtime) {
                // As in the kernel: here this changes nothing, or moves time back to a moment that
                // all remaining entities have reached.
                tree.vtime = last;
            }
        }
        let first = tree.first_idle;
        if first != NIL && !later(self.nodes[first].finish, tree.vtime) {
            self.idle_extract(first);
            self.forget(first);
        }
    }

    /// Applies a new weight (`__bfq_entity_update_weight_prio`).
    pub(super) fn take_over_changes(&mut self, id: u32) {
        let index = id as usize;
        if !self.entities[index].prio_changed {
            return;
        }
        let old_weight = self.entities[index].weight;
        let old_tree = self.tree_of(id);
        old_tree.wsum = old_tree.wsum.wrapping_sub(u64::from(old_weight));
        let entity = &mut self.entities[index];
        if entity.new_weight != entity.orig_weight {
            entity.new_weight = entity.new_weight.clamp(WEIGHTS.0, WEIGHTS.1);
            entity.orig_weight = entity.new_weight;
        }
        entity.prio_changed = false;
        let weight = entity.orig_weight * entity.coefficient;
        let (leaf, coefficient) = (entity.is_leaf(), entity.coefficient);
        if weight != old_weight && leaf {
            self.uncount_weight_of(id);
        }
        self.entities[index].weight = weight;
        if weight != old_weight && leaf && coefficient == 1 {
            self.count_weight_of(id);
        }
        let tree = self.tree_of(id);
        tree.wsum = tree.wsum.wrapping_add(u64::from(weight));
    }

    /// Computes the finish time from the start time and the budget, and inserts into the active
    /// tree.
    fn enqueue(&mut self, id: u32, backshifted: bool) {
        self.take_over_changes(id);
        self.set_finish(id, self.entities[id as usize].budget);
        if backshifted {
            let vtime = self.tree_of(id).vtime;
            let node = &mut self.nodes[id];
            if later(vtime, node.finish) {
                // Without this, queues that often come a little late would gain an unbounded
                // advance over all others. Raised queues keep most of it.
                let coefficient = u64::from(self.entities[id as usize].coefficient);
                let push = vtime.wrapping_sub(node.finish) / coefficient;
                node.start = node.start.wrapping_add(push);
                node.finish = node.finish.wrapping_add(push);
            }
        }
        self.active_insert(id);
    }

    fn activate_entity(&mut self, id: u32, non_blocking_wait: bool) {
        let vtime = self.tree_of(id).vtime;
        let finish = self.nodes[id].finish;
        let backshifted = non_blocking_wait && later(vtime, finish);
        let earliest = if backshifted { finish } else { vtime };
        if self.entities[id as usize].place == Membership::Idle {
            self.idle_extract(id);
            self.nodes[id].start = if later(earliest, finish) { earliest } else { finish };
        } else {
            self.nodes[id].start = earliest;
            let weight = self.entities[id as usize].weight;
            let tree = self.tree_of(id);
            tree.wsum = tree.wsum.wrapping_add(u64::from(weight));
            self.entities[id as usize].counts = true;
        }
        self.enqueue(id, backshifted);
    }

    /// Computes new timestamps, and moves the entity, active or in service, in the active tree.
    pub(super) fn requeue_entity(&mut self, id: u32) {
        if self.is_in_service(id) {
            self.set_finish(id, self.entities[id as usize].service);
            let node = &mut self.nodes[id];
            node.start = node.finish;
            if self.entities[id as usize].place != Membership::Nowhere {
                self.active_extract(id);
            }
        } else {
            self.active_extract(id);
        }
        self.enqueue(id, false);
    }

    pub(super) fn activate_or_requeue(&mut self, id: u32, non_blocking_wait: bool) {
        if self.is_in_service(id) || self.entities[id as usize].place == Membership::Active {
            self.requeue_entity(id);
        } else {
            self.activate_entity(id, non_blocking_wait);
        }
    }

    /// Removes the entity from the active tree or from service: it becomes idle or is forgotten.
    /// False if it was in neither.
    pub(super) fn deactivate_entity(&mut self, id: u32, keep: bool) -> bool {
        if !self.entities[id as usize].counts {
            return false;
        }
        let in_service = self.is_in_service(id);
        self.set_finish(id, self.entities[id as usize].service);
        let entity = &mut self.entities[id as usize];
        if in_service {
            self.groups[entity.group as usize].in_service = NIL;
        } else {
            entity.service = 0;
        }
        match entity.place {
            Membership::Active => self.active_extract(id),
            Membership::Idle if !in_service => self.idle_extract(id),
            _ => {}
        }
        let vtime = self.tree_of(id).vtime;
        if keep && later(self.nodes[id].finish, vtime) {
            self.idle_insert(id);
        } else {
            self.forget(id);
        }
        true
    }
}
