//! The sectors of the queues' next requests: how queues that read one area in turns find each
//! other.
//!
//! Follows the `prio_trees` of Linux 4.12: the queues of each priority level are sorted by the
//! sector of their next request. Of two queues with the same sector only the first is listed. Of
//! two queues that are both close to a sector the nearer is taken; the kernel takes the one that
//! its tree shows first.

use super::super::kinds::QueueId;
use crate::containers::ordered::{Members, Set};

const LEVELS: usize = 8;
/// Two requests no further apart than this are close (`CFQQ_CLOSE_THR`).
const CLOSE_SECTORS: u64 = 8 * 1024;

/// Whether two sectors are close to each other (`cfq_rq_close`).
pub(in crate::scheduler::cfq) fn is_close(a: u64, b: u64) -> bool {
    a.abs_diff(b) <= CLOSE_SECTORS
}

/// Queues by level and by the sector of their next request when they were listed.
#[derive(Debug)]
pub(in crate::scheduler::cfq) struct Positions {
    members: Members<u64>,
    levels: [Set; LEVELS],
    /// By queue.
    listed: Vec<bool>,
}

impl Positions {
    pub fn new() -> Positions {
        Positions { members: Members::default(), levels: [Set::EMPTY; LEVELS], listed: Vec::new() }
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
    pub fn set(&mut self, q: QueueId, level: u8, next: Option<u64>) {
        if self.listed[q] && next == Some(self.members.key(q as u32)) {
            return;
        }
        self.leave(q, level);
        let Some(sector) = next else { return };
        let set = &mut self.levels[usize::from(level)];
        let (below, _) = self.members.around(set, sector);
        if below.is_none_or(|below| self.members.key(below) != sector) {
            self.members.insert(set, sector, q as u32);
            self.listed[q] = true;
        }
    }

    /// The queue must no longer be found.
    pub fn leave(&mut self, q: QueueId, level: u8) {
        if std::mem::take(&mut self.listed[q]) {
            self.members.remove(&mut self.levels[usize::from(level)], q as u32);
        }
    }

    /// A queue of the level whose next request, given by `next_of`, is close to `place`
    /// (`cfqq_close`).
    pub fn closest(&self, level: u8, place: u64, next_of: impl Fn(QueueId) -> u64) -> Option<QueueId> {
        let (below, above) = self.members.around(&self.levels[usize::from(level)], place);
        if let Some(exact) = below.filter(|&q| self.members.key(q) == place) {
            return Some(exact as QueueId);
        }
        let both = below.into_iter().chain(above).map(|q| q as QueueId);
        both.filter(|&q| is_close(next_of(q), place)).min_by_key(|&q| next_of(q).abs_diff(place))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn positions(sectors: &[u64]) -> Positions {
        let mut positions = Positions::new();
        for (q, &sector) in sectors.iter().enumerate() {
            positions.queue_made(q);
            positions.set(q, 4, Some(sector));
        }
        positions
    }

    #[test]
    fn the_nearer_of_two_close_queues_of_the_level_is_found() {
        let sectors = [100_000, 104_000, 130_000];
        let positions = positions(&sectors);
        let closest = |level, place| positions.closest(level, place, |q| sectors[q]);
        assert_eq!(closest(4, 104_000), Some(1));
        assert_eq!(closest(4, 101_000), Some(0));
        assert_eq!(closest(4, 103_000), Some(1));
        assert_eq!(closest(4, 130_000 - CLOSE_SECTORS), Some(2));
        assert_eq!(closest(4, 115_000), None);
        assert_eq!(closest(3, 104_000), None);
    }

    #[test]
    fn of_two_queues_at_one_sector_the_first_is_listed() {
        let mut positions = positions(&[100, 100]);
        assert!(positions.is_listed(0) && !positions.is_listed(1));
        positions.leave(1, 4);
        assert_eq!(positions.closest(4, 100, |_| 100), Some(0));
        positions.set(0, 4, None);
        assert_eq!(positions.closest(4, 100, |_| 100), None);
    }
}
