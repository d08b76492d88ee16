//! The sectors of the queues' next requests: how queues that read side by side find each other.
//!
//! Follows `rq_pos_tree` of Linux 7.3: in each group the queues are sorted by the sector of their
//! next request. A queue moves when its next request changes. A queue is not listed if it is empty,
//! of the idle class, or too late to merge. Of two queues with the same sector only the first is
//! listed.
//!
//! Of two queues near a sector, one on either side, the kernel looks first at the one at which its search ended, and then
//! at the other: so the tree has the kernel's shape. Queues are compared by their next requests of the moment, whose
//! sectors change with merges in front.

use std::cmp::Ordering;

use super::QueueId;
use super::seek::is_close;
use crate::containers::rbtree::{Found, Place, Trees};
use crate::units::Sector;

/// Queues by group and by the sector of their next request.
#[derive(Debug)]
pub(in crate::scheduler::bfq) struct Positions {
    trees: Trees,
    /// By queue, which is a node of the trees: itself, while it is listed.
    listed: Vec<Option<QueueId>>,
}

impl Positions {
    pub fn new(groups: usize) -> Positions {
        Positions { trees: Trees::new(groups), listed: Vec::new() }
    }

    /// A new queue is not listed.
    pub fn queue_made(&mut self, q: QueueId) {
        if q.index() >= self.listed.len() {
            self.listed.resize(q.index() + 1, None);
        }
        self.listed[q.index()] = None;
    }

    /// The queue's next request may have changed; `next_of` gives the sector of any queue's. It is no longer listed, and
    /// again if it may be found (`bfq_pos_tree_add_move`).
    pub fn set(
        &mut self,
        q: QueueId,
        group: u32,
        may_be_found: bool,
        next_of: impl Fn(QueueId) -> Option<Sector>,
    ) {
        self.leave(q, group);
        let Some(sector) = next_of(q).filter(|_| may_be_found) else { return };
        if let Found::Below(place) = self.search(group, sector, next_of) {
            self.trees.insert(group as usize, q.index() as u32, place);
            self.listed[q.index()] = Some(q);
        }
    }

    /// The queue has no next request.
    pub fn leave(&mut self, q: QueueId, group: u32) {
        if self.listed[q.index()].take().is_some() {
            self.trees.remove(group as usize, q.index() as u32);
        }
    }

    /// A queue of the group whose next request, given by `next_of`, is near `sector`
    /// (`bfqq_find_close`).
    pub fn find_close(
        &self,
        group: u32,
        sector: Sector,
        next_of: impl Fn(QueueId) -> Option<Sector>,
    ) -> Option<QueueId> {
        let end = match self.search(group, sector, &next_of) {
            Found::At(node) => return Some(self.queue(node)),
            Found::Below(place) => place.map(|Place { parent, .. }| parent)?,
        };
        let next = |node: u32| next_of(self.queue(node)).unwrap_or_default();
        let is_near = |&node: &u32| is_close(next(node), sector);
        let other = || match next(end) < sector {
            true => self.trees.after(end),
            false => self.trees.before(end),
        };
        Some(end).filter(is_near).or_else(|| other().filter(is_near)).map(|node| self.queue(node))
    }

    fn search(&self, group: u32, sector: Sector, next_of: impl Fn(QueueId) -> Option<Sector>) -> Found {
        let order = |node: u32| -> Ordering { sector.cmp(&next_of(self.queue(node)).unwrap_or_default()) };
        self.trees.search(group as usize, order)
    }

    fn queue(&self, node: u32) -> QueueId {
        self.listed[node as usize].expect("a node of a tree is a listed queue")
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::leaves;
    use super::*;

    /// Queues with next requests at these sectors, listed in this order.
    struct Listed {
        positions: Positions,
        q: Vec<QueueId>,
        next: Vec<Option<Sector>>,
    }

    impl Listed {
        fn new(sectors: &[u64]) -> Listed {
            let q = leaves(sectors.len());
            let mut listed = Listed { positions: Positions::new(2), next: vec![None; q.len()], q };
            for place in 0..sectors.len() {
                listed.positions.queue_made(listed.q[place]);
            }
            for (place, &sector) in sectors.iter().enumerate() {
                listed.set(place, Some(sector));
            }
            listed
        }

        fn set(&mut self, place: usize, sector: Option<u64>) {
            self.next[place] = sector.map(Sector);
            let Listed { positions, q, next } = self;
            positions.set(q[place], 0, true, |id| next_of(q, next, id));
        }

        /// The number of the queue that is found.
        fn find(&self, sector: u64) -> Option<usize> {
            let next = |id| next_of(&self.q, &self.next, id);
            let found = self.positions.find_close(0, Sector(sector), next)?;
            self.q.iter().position(|&other| other == found)
        }
    }

    fn next_of(q: &[QueueId], next: &[Option<Sector>], id: QueueId) -> Option<Sector> {
        next[q.iter().position(|&other| other == id)?]
    }

    #[test]
    fn the_queue_at_the_place_is_found_or_the_one_at_which_the_search_ends_or_the_one_on_the_other_side() {
        let listed = Listed::new(&[100_000, 104_000, 130_000]);
        assert_eq!(listed.find(104_000), Some(1));
        assert_eq!(listed.find(125_000), Some(2));
        assert_eq!(listed.find(115_000), None);
        assert_eq!(
            listed.find(103_000),
            Some(0),
            "below the middle one, which is the root, it ends at the first"
        );
        assert_eq!(Listed::new(&[100_000, 104_000]).find(100_100), Some(1), "the first is the root");
        assert_eq!(
            Listed::new(&[100_000, 120_000]).find(100_100),
            Some(0),
            "where the search ends is too far"
        );
        let nothing = listed.positions.find_close(1, Sector(104_000), |_| None);
        assert_eq!(nothing, None, "another group's");
    }

    #[test]
    fn a_queue_moves_with_its_next_request_and_leaves_with_its_last() {
        let mut listed = Listed::new(&[100]);
        listed.set(0, Some(500_000));
        assert_eq!((listed.find(100), listed.find(500_000)), (None, Some(0)));
        listed.set(0, None);
        assert_eq!(listed.find(500_000), None);
    }

    #[test]
    fn of_two_queues_at_one_sector_the_first_is_listed() {
        let mut listed = Listed::new(&[100, 100]);
        assert_eq!(listed.find(100), Some(0));
        listed.positions.leave(listed.q[1], 0);
        assert_eq!(listed.find(100), Some(0));
    }
}
