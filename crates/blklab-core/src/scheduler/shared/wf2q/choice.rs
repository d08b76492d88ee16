//! The next entity: in one group, and from the root down to a queue.

use super::Wf2q;
use super::entity::{CLASSES, IDLE_CLASS};
use super::tree::{NIL, later};
use crate::units::Nanos;

impl Wf2q {
    /// Updates the next entity of a group after a change: `changed` was activated or moved, or
    /// (`NIL`) something else changed. True if the group's own entity must now be moved in its
    /// parent (`bfq_update_next_in_service`).
    pub(super) fn update_next(&mut self, group: u32, changed: u32, expiration: bool, now: Nanos) -> bool {
        let old = self.groups[group as usize].next;
        let next = if changed != NIL && changed != old && !self.always_searches {
            // Without a search: only the changed entity can be better than before.
            if old == NIL || self.goes_before(group, changed, old) { changed } else { NIL }
        } else {
            NIL
        };
        let next = if next != NIL { next } else { self.lookup_next(group, expiration, now) };
        let mut parent_may_change = false;
        if next != NIL {
            parent_may_change = self.pass_budget_up(group, next) || old == NIL;
        }
        self.groups[group as usize].next = next;
        parent_may_change
    }

    fn goes_before(&self, group: u32, changed: u32, old: u32) -> bool {
        let class = self.class_of(changed);
        class == self.class_of(old)
            && !later(self.nodes[changed].start, self.groups[group as usize].trees[class].vtime)
            && later(self.nodes[old].finish, self.nodes[changed].finish)
    }

    /// A group's budget is that of its next child. True if it has shrunk: the group may now be
    /// served earlier.
    fn pass_budget_up(&mut self, group: u32, next: u32) -> bool {
        let above = self.groups[group as usize].entity;
        if above == NIL {
            return false;
        }
        let budget = self.entities[next as usize].budget;
        let shrunk = self.entities[above as usize].budget > budget;
        self.entities[above as usize].budget = budget;
        shrunk
    }

    /// The first eligible entity of the highest class that has one; or of the idle class, if it was
    /// not served for some time (`bfq_lookup_next_entity`).
    fn lookup_next(&mut self, group: u32, expiration: bool, now: Nanos) -> u32 {
        let from = if self.idle_class_is_due(group, now) { IDLE_CLASS } else { 0 };
        let in_service = self.groups[group as usize].in_service != NIL && !expiration;
        for class in from..CLASSES {
            let tree = &mut self.groups[group as usize].trees[class];
            if tree.active.is_empty() {
                continue;
            }
            // Virtual time jumps to the first start time if no entity is eligible. While an entity
            // is in service, that one is eligible: the jump is for this search alone.
            let mut vtime = tree.vtime;
            let min_start = self.nodes.min_start(&tree.active);
            if later(min_start, vtime) {
                vtime = min_start;
            }
            if !in_service && vtime > tree.vtime {
                tree.vtime = vtime;
                self.forget_idle(group, class);
            }
            let tree = &self.groups[group as usize].trees[class];
            if let Some(first) = self.nodes.first_eligible(&tree.active, vtime) {
                return first;
            }
        }
        NIL
    }

    /// Whether the idle class was not served for too long and has waiting entities. This check
    /// counts as service.
    fn idle_class_is_due(&mut self, group: u32, now: Nanos) -> bool {
        let Some(timeout) = self.idle_class_timeout else { return false };
        let tick = self.ticks.at(now);
        let group = &mut self.groups[group as usize];
        if group.idle_class_served.is_some_and(|served| tick <= served + timeout) {
            return false;
        }
        group.idle_class_served = Some(tick);
        !group.trees[IDLE_CLASS].active.is_empty()
    }

    /// Puts the next entity of each level into service, from the root down to a queue, which is
    /// returned. All groups on the way then get a new next entity.
    pub(super) fn descend(&mut self, now: Nanos) -> u32 {
        let mut group = 0;
        let leaf = loop {
            if self.always_searches {
                self.groups[group as usize].next = self.lookup_next(group, false, now);
            }
            let id = self.groups[group as usize].next;
            assert!(id != NIL, "a group on the way to a busy queue has a next entity");
            self.groups[group as usize].in_service = id;
            let own = self.entities[id as usize].own;
            // A group with more than one active child stays in the tree: another child may be next.
            if own == NIL || self.groups[own as usize].active == 1 {
                self.active_extract(id);
            }
            if own == NIL {
                break id;
            }
            group = own;
        };
        let mut id = leaf;
        while id != NIL {
            if !self.update_next(self.entities[id as usize].group, NIL, false, now) {
                break;
            }
            id = self.parent_of(id);
        }
        leaf
    }
}
