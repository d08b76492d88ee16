//! Further queries and settings: weights, budgets, counts.

use super::entity::Entity;
use super::tree::NIL;
use super::{LeafId, Wf2q};
use crate::scheduler::tasks::CgroupId;

impl Wf2q {
    fn leaf(&self, leaf: LeafId) -> &Entity {
        &self.entities[leaf.index()]
    }

    fn leaf_mut(&mut self, leaf: LeafId) -> &mut Entity {
        &mut self.entities[leaf.index()]
    }

    /// Sets a new weight, which counts from the queue's next activation.
    pub fn set_weight(&mut self, leaf: LeafId, weight: u32) {
        self.leaf_mut(leaf).new_weight = weight;
        self.mark_changed(leaf);
    }

    /// Sets the factor of the queue's weight (`wr_coeff`); it counts from the next activation after
    /// [`Wf2q::mark_changed`], or after [`Wf2q::update_weight`].
    pub fn set_coefficient(&mut self, leaf: LeafId, coefficient: u32) {
        let entity = self.leaf_mut(leaf);
        let (old, busy) = (entity.coefficient, entity.busy);
        entity.coefficient = coefficient;
        if busy {
            self.raised_busy += u32::from(coefficient > 1);
            self.raised_busy -= u32::from(old > 1);
        }
    }

    /// Marks the weight for a check at the next activation (`prio_changed`).
    pub fn mark_changed(&mut self, leaf: LeafId) {
        self.leaf_mut(leaf).prio_changed = true;
    }

    /// Applies a marked change of weight at once, in whatever state the queue is
    /// (`__bfq_entity_update_weight_prio`).
    pub fn update_weight(&mut self, leaf: LeafId) {
        self.take_over_changes(leaf.0);
    }

    /// Sectors granted for a turn.
    pub fn budget(&self, leaf: LeafId) -> i32 {
        self.leaf(leaf).budget
    }

    /// Must be set before [`Wf2q::activate`] or [`Wf2q::requeue`], which use it.
    pub fn set_budget(&mut self, leaf: LeafId, sectors: i32) {
        self.leaf_mut(leaf).budget = sectors;
    }

    /// Sectors served in this turn, or charged.
    pub fn service(&self, leaf: LeafId) -> i32 {
        self.leaf(leaf).service
    }

    /// Resets a queue's service.
    pub fn reset_service(&mut self, leaf: LeafId) {
        self.leaf_mut(leaf).service = 0;
    }

    /// Resets the service of all groups above it.
    pub fn reset_service_above(&mut self, leaf: LeafId) {
        let mut id = self.parent_of(leaf.0);
        while id != NIL {
            self.entities[id as usize].service = 0;
            id = self.parent_of(id);
        }
    }

    /// The current weight, with raising.
    pub fn weight(&self, leaf: LeafId) -> u32 {
        self.leaf(leaf).weight
    }

    /// The current weight without raising.
    pub fn orig_weight(&self, leaf: LeafId) -> u32 {
        self.leaf(leaf).orig_weight
    }

    /// The next weight without raising.
    pub fn new_weight(&self, leaf: LeafId) -> u32 {
        self.leaf(leaf).new_weight
    }

    /// The queue's group.
    pub fn group(&self, leaf: LeafId) -> CgroupId {
        CgroupId(self.leaf(leaf).group as u16)
    }

    /// The current weight of a group; `None` for the root.
    pub fn group_weight(&self, group: CgroupId) -> Option<u32> {
        let entity = self.groups[usize::from(group.0)].entity;
        (entity != NIL).then(|| self.entities[entity as usize].weight)
    }

    /// True between [`Wf2q::add_busy`] and [`Wf2q::remove_busy`].
    pub fn is_busy(&self, leaf: LeafId) -> bool {
        self.leaf(leaf).busy
    }

    /// Busy queues (`bfq_tot_busy_queues`).
    pub fn busy_total(&self) -> u32 {
        self.busy.iter().sum()
    }

    /// Busy queues whose weight is raised (`wr_busy_queues`).
    pub fn raised_busy(&self) -> u32 {
        self.raised_busy
    }

    /// Busy queues that wait; the one activated last comes first (`active_list`).
    pub fn active_leaves(&self) -> impl Iterator<Item = LeafId> + '_ {
        let some = |id: u32| (id != NIL).then_some(LeafId(id));
        std::iter::successors(some(self.newest_active), move |leaf| {
            some(self.entities[leaf.index()].links[1])
        })
    }

    pub(super) fn list_insert(&mut self, id: u32) {
        let old = std::mem::replace(&mut self.newest_active, id);
        self.entities[id as usize].links = [NIL, old];
        if old != NIL {
            self.entities[old as usize].links[0] = id;
        }
    }

    pub(super) fn list_remove(&mut self, id: u32) {
        let [later, earlier] = self.entities[id as usize].links;
        match later {
            NIL => self.newest_active = earlier,
            _ => self.entities[later as usize].links[1] = earlier,
        }
        if earlier != NIL {
            self.entities[earlier as usize].links[0] = later;
        }
    }

    /// Counts the queue under its weight, once (`bfq_weights_tree_add`).
    pub fn count_weight(&mut self, leaf: LeafId) {
        self.count_weight_of(leaf.0);
    }

    /// Removes the queue from the count (`bfq_weights_tree_remove`).
    pub fn uncount_weight(&mut self, leaf: LeafId) {
        self.uncount_weight_of(leaf.0);
    }

    pub(super) fn count_weight_of(&mut self, id: u32) {
        let entity = &mut self.entities[id as usize];
        if entity.counted_weight != 0 {
            return;
        }
        entity.counted_weight = entity.weight;
        match self.weights.binary_search_by_key(&entity.weight, |counter| counter.0) {
            Ok(place) => self.weights[place].1 += 1,
            Err(place) => self.weights.insert(place, (entity.weight, 1)),
        }
    }

    pub(super) fn uncount_weight_of(&mut self, id: u32) {
        let weight = std::mem::replace(&mut self.entities[id as usize].counted_weight, 0);
        if weight == 0 {
            return;
        }
        let place = self.weights.binary_search_by_key(&weight, |counter| counter.0);
        let place = place.expect("a counted queue's weight has a counter");
        self.weights[place].1 -= 1;
        if self.weights[place].1 == 0 {
            self.weights.remove(place);
        }
        self.free_if_unused(id);
    }

    /// The weights of queues with requests differ; false if `leaf` has the smallest weight (the
    /// first half of `bfq_asymmetric_scenario`).
    pub fn weights_vary(&self, leaf: Option<LeafId>) -> bool {
        let least = self.weights.first().map_or(0, |counter| counter.0);
        let is_least = leaf.is_some_and(|leaf| least != 0 && self.leaf(leaf).counted_weight == least);
        !is_least && self.weights.len() > 1
    }

    /// More than one class is busy.
    pub fn classes_vary(&self) -> bool {
        self.busy.iter().filter(|&&busy| busy > 0).count() > 1
    }

    /// Idling must protect shares: weights or classes differ, or more than one group has requests
    /// (`bfq_asymmetric_scenario`).
    pub fn is_asymmetric(&self, leaf: Option<LeafId>) -> bool {
        self.weights_vary(leaf) || self.classes_vary() || self.groups_pending > 1
    }

    /// The queue has requests, waiting or in flight (`bfq_add_bfqq_in_groups_with_pending_reqs`).
    pub fn count_pending(&mut self, leaf: LeafId) {
        let entity = &mut self.entities[leaf.index()];
        if std::mem::replace(&mut entity.pending, true) {
            return;
        }
        let group = &mut self.groups[entity.group as usize];
        group.pending += 1;
        self.groups_pending += u32::from(group.pending == 1);
    }

    /// The queue has no requests left, or leaves its group. True if it was counted.
    pub fn uncount_pending(&mut self, leaf: LeafId) -> bool {
        let entity = &mut self.entities[leaf.index()];
        if !std::mem::replace(&mut entity.pending, false) {
            return false;
        }
        let group = &mut self.groups[entity.group as usize];
        group.pending -= 1;
        self.groups_pending -= u32::from(group.pending == 0);
        true
    }

    /// A request of the queue was allocated (`bfqq_request_allocated`).
    pub fn request_allocated(&mut self, leaf: LeafId) {
        let mut id = leaf.0;
        while id != NIL {
            self.entities[id as usize].allocated += 1;
            id = self.parent_of(id);
        }
    }

    /// A request of the queue was freed (`bfqq_request_freed`).
    pub fn request_freed(&mut self, leaf: LeafId) {
        let mut id = leaf.0;
        while id != NIL {
            self.entities[id as usize].allocated -= 1;
            id = self.parent_of(id);
        }
    }

    /// The queue's allocated requests.
    pub fn allocated(&self, leaf: LeafId) -> i32 {
        self.leaf(leaf).allocated
    }

    /// The queue, or a group above it, has used up its share by weight of `limit` requests
    /// (`bfqq_request_over_limit`).
    #[inline(always)]
    pub fn is_over_limit(&self, leaf: LeafId, limit: u32) -> bool {
        let entity = self.leaf(leaf);
        if !entity.counts {
            return false;
        }
        let above = match self.parent_of(leaf.0) {
            NIL => u64::from(limit),
            parent => match self.share_of_group(parent, limit) {
                Some(Some(share)) => share,
                Some(None) => return true,
                None => return false,
            },
        };
        let trees = &self.groups[entity.group as usize].trees;
        // A low priority of a high class gets more than a high one of a low class.
        let wsum = trees[..=usize::from(entity.class)].iter().fold(0, |sum, tree| sum * 8 + tree.wsum);
        !entity.has_share_left(above, wsum)
    }

    /// `None`: an entity on the way is not active. `Some(None)`: the share is used up. Else the
    /// group's share.
    fn share_of_group(&self, id: u32, limit: u32) -> Option<Option<u64>> {
        let entity = &self.entities[id as usize];
        if !entity.counts {
            return None;
        }
        let above = match self.parent_of(id) {
            NIL => u64::from(limit),
            parent => match self.share_of_group(parent, limit)? {
                Some(share) => share,
                None => return Some(None),
            },
        };
        let wsum = self.groups[entity.group as usize].trees[self.class_of(id)].wsum;
        Some(entity.has_share_left(above, wsum).then(|| entity.share(above, wsum)))
    }
}
