//! The sectors of the queues' next requests: how queues that read side by side find each other.
//!
//! Follows `rq_pos_tree` of Linux 7.3: in each group the queues are sorted by the sector of their
//! next request. A queue moves when its next request changes. A queue is not listed if it is empty,
//! of the idle class, or too late to merge. Of two queues with the same sector only the first is
//! listed.
//!
//! Of two queues near a sector, one on either side, the kernel takes the one that its tree's shape
//! shows first; the model takes the lower one.

use super::QueueId;
use super::seek::is_close;
use crate::containers::sorted::Sorted;
use crate::units::Sector;

/// Queues by group and by the sector of their next request when they were listed.
#[derive(Debug)]
pub(in crate::scheduler::bfq) struct Positions {
    groups: Vec<Sorted<QueueId>>,
    /// By queue: the sector under which it is listed.
    listed: Vec<Option<Sector>>,
}

impl Positions {
    pub fn new(groups: usize) -> Positions {
        Positions { groups: (0..groups).map(|_| Sorted::default()).collect(), listed: Vec::new() }
    }

    /// A new queue is not listed.
    pub fn queue_made(&mut self, q: QueueId) {
        if q.index() >= self.listed.len() {
            self.listed.resize(q.index() + 1, None);
        }
        self.listed[q.index()] = None;
    }

    /// The queue's next request is now at `next`; `None`: the queue must not be found
    /// (`bfq_pos_tree_add_move`).
    pub fn set(&mut self, q: QueueId, group: u32, next: Option<Sector>) {
        if next.is_some() && next == self.listed[q.index()] {
            return;
        }
        self.leave(q, group);
        let Some(sector) = next else { return };
        let positions = &mut self.groups[group as usize];
        if positions.starting_at(sector).is_none() {
            positions.insert(sector, q);
            self.listed[q.index()] = Some(sector);
        }
    }

    /// The queue has no next request.
    pub fn leave(&mut self, q: QueueId, group: u32) {
        if let Some(sector) = self.listed[q.index()].take() {
            self.groups[group as usize].remove(sector, q);
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
        let positions = &self.groups[group as usize];
        if let Some(there) = positions.starting_at(sector) {
            return Some(there);
        }
        let near = |&q: &QueueId| next_of(q).is_some_and(|next| is_close(next, sector));
        positions.highest_below(sector).filter(near).or_else(|| positions.at_or_above(sector).filter(near))
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::leaves;
    use super::*;

    fn positions(sectors: &[u64]) -> (Positions, Vec<QueueId>) {
        let (mut positions, queues) = (Positions::new(2), leaves(sectors.len()));
        for (&q, &sector) in queues.iter().zip(sectors) {
            positions.queue_made(q);
            positions.set(q, 0, Some(Sector(sector)));
        }
        (positions, queues)
    }

    #[test]
    fn the_queue_at_the_place_is_found_then_the_near_one_below_then_the_one_above() {
        let sectors = [100_000, 104_000, 130_000];
        let (positions, q) = positions(&sectors);
        let next_of = |id| q.iter().position(|&other| other == id).map(|place| Sector(sectors[place]));
        let find = |sector| positions.find_close(0, Sector(sector), next_of);
        assert_eq!(find(104_000), Some(q[1]));
        assert_eq!(find(103_000), Some(q[0]));
        assert_eq!(find(125_000), Some(q[2]));
        assert_eq!(find(115_000), None);
        assert_eq!(positions.find_close(1, Sector(104_000), next_of), None, "another group's");
    }

    #[test]
    fn a_queue_moves_with_its_next_request_and_leaves_with_its_last() {
        let (mut positions, q) = positions(&[100]);
        positions.set(q[0], 0, Some(Sector(500_000)));
        let find = |positions: &Positions, sector| positions.find_close(0, Sector(sector), |_| None);
        assert_eq!((find(&positions, 100), find(&positions, 500_000)), (None, Some(q[0])));
        positions.set(q[0], 0, None);
        assert_eq!(find(&positions, 500_000), None);
    }

    #[test]
    fn of_two_queues_at_one_sector_the_first_is_listed() {
        let (mut positions, q) = positions(&[100, 100]);
        assert_eq!(positions.find_close(0, Sector(100), |_| None), Some(q[0]));
        positions.leave(q[1], 0);
        assert_eq!(positions.find_close(0, Sector(100), |_| None), Some(q[0]));
    }
}
