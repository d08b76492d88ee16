//! Entities, service trees and groups.

use super::tree::{NIL, Tree};

/// A request advances virtual time by `sectors << SERVICE_SHIFT` over the weight
/// (`WFQ_SERVICE_SHIFT`).
const SERVICE_SHIFT: u32 = 22;

/// The number of I/O priority classes; each has a tree.
pub(super) const CLASSES: usize = 3;
/// The index of the idle class.
pub(super) const IDLE_CLASS: usize = 2;
/// Groups are best effort (`BFQ_DEFAULT_GRP_CLASS`).
pub(super) const GROUP_CLASS: u8 = 1;

/// Service in virtual time (`bfq_delta`): `sectors` over a weight, or over a sum of weights.
#[inline]
pub(super) fn delta(sectors: u64, weight: u64) -> u64 {
    debug_assert!(weight > 0, "a served entity has a weight");
    (sectors << SERVICE_SHIFT) / weight
}

/// The tree that an entity is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Membership {
    /// No tree: never active, forgotten, or in service.
    Nowhere,
    /// It has requests and waits for its turn.
    Active,
    /// It has no requests, but virtual time has not reached its finish time.
    Idle,
}

/// A queue or a group, as a child of its parent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entity {
    /// The group that holds it.
    pub group: u32,
    /// The group that it represents; [`NIL`] for a queue.
    pub own: u32,
    pub place: Membership,
    /// In a tree or in service: its weight counts in the sum (`on_st_or_in_serv`).
    pub counts: bool,
    /// Sectors served in this turn.
    pub service: i32,
    /// Sectors granted for a turn.
    pub budget: i32,
    pub weight: u32,
    pub orig_weight: u32,
    pub new_weight: u32,
    /// Weight-raising factor (`wr_coeff`); 1 for groups.
    pub coefficient: u32,
    /// The class as an index: real time, best effort, idle.
    pub class: u8,
    /// A new weight must be applied at the next opportunity.
    pub prio_changed: bool,
    /// It has requests, or is in service and empty.
    pub busy: bool,
    /// Counted in its group's `pending`.
    pub pending: bool,
    /// No longer in use; freed when it is forgotten.
    pub released: bool,
    /// The weight under which it is counted; 0 for none.
    pub counted_weight: u32,
    /// Requests allocated at or below it. A queue that moves does not take the count of its requests
    /// with it, as in the kernel: a group's may be negative.
    pub allocated: i32,
    /// Neighbours in the list of active queues: later, earlier.
    pub links: [u32; 2],
}

impl Entity {
    pub const fn new(group: u32, own: u32, class: u8, weight: u32) -> Entity {
        Entity {
            group,
            own,
            place: Membership::Nowhere,
            counts: false,
            service: 0,
            budget: 0,
            weight,
            orig_weight: weight,
            new_weight: weight,
            coefficient: 1,
            class,
            prio_changed: false,
            busy: false,
            pending: false,
            released: false,
            counted_weight: 0,
            allocated: 0,
            links: [NIL; 2],
        }
    }

    pub fn is_leaf(&self) -> bool {
        self.own == NIL
    }

    /// Its rounded share of `above` requests, where the weights sum up to `wsum`; all of them if
    /// `wsum` is 0.
    pub fn share(&self, above: u64, wsum: u64) -> u64 {
        (above * u64::from(self.weight) + wsum / 2).checked_div(wsum).unwrap_or(above)
    }

    /// It has fewer requests than its share (without a division), or there are no weights.
    #[inline]
    pub fn has_share_left(&self, above: u64, wsum: u64) -> bool {
        let one_more = u64::try_from(self.allocated + 1).unwrap_or(0);
        one_more * wsum <= above * u64::from(self.weight) + wsum / 2
    }
}

/// One class of one group: a B-WF2Q+ scheduler of its own (`bfq_service_tree`).
#[derive(Clone, Copy, Debug)]
pub(super) struct ServiceTree {
    pub active: Tree,
    pub idle: Tree,
    /// The first and the last idle entity by finish time.
    pub first_idle: u32,
    pub last_idle: u32,
    pub vtime: u64,
    /// Sum of the weights of all entities that count.
    pub wsum: u64,
}

/// A group's schedulers, one per class (`bfq_sched_data`).
#[derive(Clone, Copy, Debug)]
pub(super) struct Group {
    /// The entity that represents it in its parent; [`NIL`] for the root.
    pub entity: u32,
    pub in_service: u32,
    /// The next entity if nothing changes; the entity in service is not considered.
    pub next: u32,
    pub trees: [ServiceTree; CLASSES],
    /// The tick in which the idle class was last checked; `None`: long ago. The root's too: disks
    /// get their scheduler long before the run.
    pub idle_class_served: Option<u64>,
    /// Entities in active trees (not kept for the root).
    pub active: u32,
    /// Queues with requests, waiting or in flight.
    pub pending: u32,
}

impl Group {
    pub const fn new(entity: u32) -> Group {
        let tree = ServiceTree {
            active: Tree::EMPTY,
            idle: Tree::EMPTY,
            first_idle: NIL,
            last_idle: NIL,
            vtime: 0,
            wsum: 0,
        };
        Group {
            entity,
            in_service: NIL,
            next: NIL,
            trees: [tree; CLASSES],
            idle_class_served: None,
            active: 0,
            pending: 0,
        }
    }
}
