//! The sectors of the queues' next requests: how queues that read one area in turns find each
//! other.
//!
//! Follows the `prio_trees` of Linux 4.12: the queues of each priority level are sorted by the
//! sector of their next request. Of two queues with the same sector only the first is listed. A search looks first at the
//! queue at which it ends, and then at the one on the other side of the sector: so the tree has the kernel's shape. A queue
//! stays where it is while it is served, though its next request changes; queues are compared by those of the moment.

use std::cmp::Ordering;

use super::super::kinds::QueueId;
use crate::containers::rbtree::{Found, Place, Trees};

const LEVELS: usize = 8;
/// Two requests no further apart than this are close (`CFQQ_CLOSE_THR`).
const CLOSE_SECTORS: u64 = 8 * 1024;

/// Whether two sectors are close to each other (`cfq_rq_close`).
pub(in crate::scheduler::cfq) fn is_close(a: u64, b: u64) -> bool {
    a.abs_diff(b) <= CLOSE_SECTORS
}

/// Queues by level and by the sector of their next request, which `next_of` gives for any listed one.
#[derive(Debug)]
pub(in crate::scheduler::cfq) struct Positions {
    trees: Trees,
    /// By queue.
    listed: Vec<bool>,
}

impl Positions {
    pub fn new() -> Positions {
        Positions { trees: Trees::new(LEVELS), listed: Vec::new() }
    }

    /// A new queue is not listed.
    pub fn queue_made(&mut self, q: QueueId) {
        if q >= self.listed.len() {
            self.listed.resize(q + 1, false);
        }
        self.listed[q] = false;
    }

    #[inline]
    pub fn is_listed(&self, q: QueueId) -> bool {
        self.listed[q]
    }

    /// The queue's next request is now at `next`; `None`: the queue must not be found
    /// (`cfq_prio_tree_add`).
    pub fn set(&mut self, q: QueueId, level: u8, next: Option<u64>, next_of: impl Fn(QueueId) -> u64) {
        self.leave(q, level);
        let Some(sector) = next else { return };
        if let Found::Below(place) = self.search(level, sector, next_of) {
            self.trees.insert(usize::from(level), q as u32, place);
            self.listed[q] = true;
        }
    }

    /// The queue must no longer be found.
    pub fn leave(&mut self, q: QueueId, level: u8) {
        if std::mem::take(&mut self.listed[q]) {
            self.trees.remove(usize::from(level), q as u32);
        }
    }

    /// A queue of the level whose next request is close to `place` (`cfqq_close`).
    pub fn close(&self, level: u8, place: u64, next_of: impl Fn(QueueId) -> u64) -> Option<QueueId> {
        let end = match self.search(level, place, &next_of) {
            Found::At(node) => return Some(node as QueueId),
            Found::Below(found) => found.map(|Place { parent, .. }| parent)?,
        };
        let next = |node: u32| next_of(node as QueueId);
        let is_near = |&node: &u32| is_close(next(node), place);
        let other = || match next(end) < place {
            true => self.trees.after(end),
            false => self.trees.before(end),
        };
        let found = Some(end).filter(is_near).or_else(|| other().filter(is_near))?;
        Some(found as QueueId)
    }

    fn search(&self, level: u8, sector: u64, next_of: impl Fn(QueueId) -> u64) -> Found {
        let order = |node: u32| -> Ordering { sector.cmp(&next_of(node as QueueId)) };
        self.trees.search(usize::from(level), order)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn positions(sectors: &[u64]) -> Positions {
        let mut positions = Positions::new();
        for (q, &sector) in sectors.iter().enumerate() {
            positions.queue_made(q);
            positions.set(q, 4, Some(sector), |other| sectors[other]);
        }
        positions
    }

    #[test]
    fn a_close_queue_of_the_level_is_found_first_that_at_which_the_search_ends() {
        let sectors = [100_000, 104_000, 130_000];
        let listed = positions(&sectors);
        let close = |level, place| listed.close(level, place, |q| sectors[q]);
        assert_eq!(close(4, 104_000), Some(1));
        assert_eq!(close(4, 101_000), Some(0));
        assert_eq!(close(4, 103_000), Some(0), "below the second, which is the root");
        assert_eq!(close(4, 130_000 - CLOSE_SECTORS), Some(2));
        assert_eq!(close(4, 115_000), None);
        assert_eq!(close(3, 104_000), None);
        let two = positions(&sectors[..2]);
        assert_eq!(two.close(4, 100_100, |q| sectors[q]), Some(1), "the first is the root");
    }

    #[test]
    fn a_queue_keeps_its_place_while_its_next_request_changes() {
        let mut next = [100_000, 500_000];
        let listed = positions(&next);
        next[0] = 900_000;
        assert_eq!(listed.close(4, 900_000, |q| next[q]), Some(0), "it is the root");
        assert_eq!(listed.close(4, 500_000, |q| next[q]), None, "below the root the search goes to the left");
    }

    #[test]
    fn of_two_queues_at_one_sector_the_first_is_listed() {
        let mut positions = positions(&[100, 100]);
        assert!(positions.is_listed(0) && !positions.is_listed(1));
        positions.leave(1, 4);
        assert_eq!(positions.close(4, 100, |_| 100), Some(0));
        positions.set(0, 4, None, |_| 100);
        assert_eq!(positions.close(4, 100, |_| 100), None);
    }
}
