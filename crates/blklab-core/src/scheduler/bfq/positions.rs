//! Where the queues' next requests are, group by group: how queues that read side by side find
//! each other (`rq_pos_tree`).
//!
//! Of two queues near to a place, one on either side, the kernel takes whichever its tree's
//! shape shows first; here it is the lower one.

use super::Bfq;
use super::queue::QueueId;
use super::seek::is_close;
use crate::containers::sorted::Sorted;
use crate::units::Sector;

/// A queue's reads are not compared with others' any more when it has done I/O for so long:
/// `HZ / 10` ticks.
const TOO_LATE_PER_SECOND: i64 = 10;

/// Queues by the sector of their next request when they were put in; one for each sector.
pub(super) type Positions = Sorted<QueueId>;

impl Bfq {
    /// The queue has been served for longer than cooperators need to show themselves.
    pub(super) fn is_too_late_to_merge(&self, q: QueueId) -> bool {
        let queue = &self.queues[q.index()];
        let limit = self.tuning.ticks.hz() as i64 / TOO_LATE_PER_SECOND;
        queue.service_from_backlogged > 0 && self.clock.is_past(queue.first_io_time + limit)
    }

    /// The queue's next request has changed (`bfq_pos_tree_add_move`).
    pub(super) fn move_in_positions(&mut self, q: QueueId) {
        let queue = &self.queues[q.index()];
        let keeps_out = self.is_too_late_to_merge(q) || queue.is_idle_class();
        let next = queue.next.filter(|_| !keeps_out).map(|next| self.slots[next].sector);
        if next.is_some() && next == queue.position {
            return;
        }
        self.leave_positions(q);
        let Some(sector) = next else { return };
        let group = self.group(q) as usize;
        let positions = &mut self.positions[group];
        if positions.starting_at(sector).is_none() {
            positions.insert(sector, q);
            self.queues[q.index()].position = Some(sector);
        }
    }

    /// The queue has no next request.
    pub(super) fn leave_positions(&mut self, q: QueueId) {
        if let Some(sector) = self.queues[q.index()].position.take() {
            let group = self.group(q) as usize;
            self.positions[group].remove(sector, q);
        }
    }

    /// A queue of the same group whose next request is near to `sector` (`bfqq_find_close`).
    pub(super) fn find_close(&self, q: QueueId, sector: Sector) -> Option<QueueId> {
        let positions = &self.positions[self.group(q) as usize];
        if let Some(there) = positions.starting_at(sector) {
            return Some(there);
        }
        let near = |other: &QueueId| {
            let next = self.queues[other.index()].next;
            next.is_some_and(|next| is_close(self.slots[next].sector, sector))
        };
        positions.highest_below(sector).filter(near).or_else(|| positions.at_or_above(sector).filter(near))
    }
}
