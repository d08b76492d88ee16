//! The sectors of the queues' next requests: how queues whose processes read side by side find each
//! other.
//!
//! Follows `rq_pos_tree` of bfq in Linux 7.3 and `prio_trees` of CFQ in Linux 4.12, which are alike: the queues of each
//! group, or of each priority level, are in a tree by the sector of their next request. Of two queues with the same sector
//! only the first is listed. Of two queues near a sector, one on either side, the kernel looks first at the queue at which
//! its search has ended, and then at the other one. So this tree has the kernel's shape. A queue keeps its place while the
//! sector of its next request changes, until it is listed anew: a search compares with the sectors of today.

use crate::containers::rbtree::{Found, Place, Trees};
use crate::units::Sector;

/// Requests this close to each other may come from cooperating processes (`BFQQ_CLOSE_THR`, `CFQQ_CLOSE_THR`).
const CLOSE_SECTORS: u64 = 8 * 1024;

/// Whether two sectors are close to each other (`bfq_rq_close_to_sector`, `cfq_rq_close`).
pub(in crate::scheduler) fn is_close(a: Sector, b: Sector) -> bool {
    a.0.abs_diff(b.0) <= CLOSE_SECTORS
}

/// A queue that has a number.
pub(in crate::scheduler) trait Numbered: Copy {
    /// Small and its own.
    fn number(self) -> usize;
}

impl Numbered for usize {
    fn number(self) -> usize {
        self
    }
}

/// Queues by tree and by the sector of their next request. Methods take `next_of`, which gives it for any queue.
#[derive(Debug)]
pub(in crate::scheduler) struct Positions<Q> {
    trees: Trees,
    /// By number, which is also that of the node: the queue, while it is listed.
    listed: Vec<Option<Q>>,
}

impl<Q: Numbered> Positions<Q> {
    /// So many empty trees.
    pub fn new(trees: usize) -> Positions<Q> {
        Positions { trees: Trees::new(trees), listed: Vec::new() }
    }

    /// A new queue is not listed.
    pub fn queue_made(&mut self, q: Q) {
        if q.number() >= self.listed.len() {
            self.listed.resize(q.number() + 1, None);
        }
        self.listed[q.number()] = None;
    }

    #[inline]
    pub fn is_listed(&self, q: Q) -> bool {
        self.listed[q.number()].is_some()
    }

    /// Lists the queue anew, by its next request as it is now, or no longer if it has none or must not be found
    /// (`bfq_pos_tree_add_move`, `cfq_prio_tree_add`).
    pub fn set(&mut self, q: Q, tree: usize, may_be_found: bool, next_of: impl Fn(Q) -> Option<Sector>) {
        self.leave(q, tree);
        let Some(sector) = next_of(q).filter(|_| may_be_found) else { return };
        if let Found::Below(place) = self.search(tree, sector, next_of) {
            self.trees.insert(tree, q.number() as u32, place);
            self.listed[q.number()] = Some(q);
        }
    }

    /// The queue must no longer be found.
    pub fn leave(&mut self, q: Q, tree: usize) {
        if self.listed[q.number()].take().is_some() {
            self.trees.remove(tree, q.number() as u32);
        }
    }

    /// A queue of that tree whose next request is close to `sector` (`bfqq_find_close`, `cfqq_close`).
    pub fn find_close(
        &self,
        tree: usize,
        sector: Sector,
        next_of: impl Fn(Q) -> Option<Sector>,
    ) -> Option<Q> {
        let end = match self.search(tree, sector, &next_of) {
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

    fn search(&self, tree: usize, sector: Sector, next_of: impl Fn(Q) -> Option<Sector>) -> Found {
        self.trees.search(tree, |node| sector.cmp(&next_of(self.queue(node)).unwrap_or_default()))
    }

    fn queue(&self, node: u32) -> Q {
        self.listed[node as usize].expect("a node of a tree is a listed queue")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Queues with next requests at these sectors, listed in this order.
    struct Listed {
        positions: Positions<usize>,
        next: Vec<Option<Sector>>,
    }

    impl Listed {
        fn new(sectors: &[u64]) -> Listed {
            let mut listed = Listed { positions: Positions::new(2), next: vec![None; sectors.len()] };
            for (q, &sector) in sectors.iter().enumerate() {
                listed.positions.queue_made(q);
                listed.set(q, Some(sector));
            }
            listed
        }

        fn set(&mut self, q: usize, sector: Option<u64>) {
            self.next[q] = sector.map(Sector);
            self.positions.set(q, 0, true, |other| self.next[other]);
        }

        fn find(&self, sector: u64) -> Option<usize> {
            self.positions.find_close(0, Sector(sector), |q| self.next[q])
        }
    }

    #[test]
    fn the_queue_at_the_place_is_found_or_the_one_at_which_the_search_ends_or_the_one_on_the_other_side() {
        let listed = Listed::new(&[100_000, 104_000, 130_000]);
        assert_eq!(listed.find(104_000), Some(1));
        assert_eq!(listed.find(125_000), Some(2));
        assert_eq!(listed.find(130_000 - CLOSE_SECTORS), Some(2));
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
        let nothing = listed.positions.find_close(1, Sector(104_000), |q| listed.next[q]);
        assert_eq!(nothing, None, "it is in the other tree");
    }

    #[test]
    fn a_queue_moves_when_it_is_listed_anew_and_leaves_with_its_last_request() {
        let mut listed = Listed::new(&[100]);
        listed.set(0, Some(500_000));
        assert_eq!((listed.find(100), listed.find(500_000)), (None, Some(0)));
        listed.set(0, None);
        assert_eq!((listed.find(500_000), listed.positions.is_listed(0)), (None, false));
    }

    #[test]
    fn a_queue_keeps_its_place_while_its_next_request_changes() {
        let mut listed = Listed::new(&[100_000, 500_000]);
        listed.next[0] = Some(Sector(900_000));
        assert_eq!(listed.find(900_000), Some(0), "it is the root");
        assert_eq!(listed.find(500_000), None, "below the root the search goes to the left");
    }

    #[test]
    fn of_two_queues_at_one_sector_the_first_is_listed() {
        let mut listed = Listed::new(&[100, 100]);
        assert!(listed.positions.is_listed(0) && !listed.positions.is_listed(1));
        listed.positions.leave(1, 0);
        assert_eq!(listed.find(100), Some(0));
    }

    #[test]
    fn a_queue_that_must_not_be_found_is_not_listed() {
        let mut listed = Listed::new(&[100]);
        listed.positions.set(0, 0, false, |q| listed.next[q]);
        assert_eq!(listed.find(100), None);
    }
}
