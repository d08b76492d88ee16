//! Where the queues' next requests are, group by group: how queues that read side by side find
//! each other (`rq_pos_tree`).
//!
//! Of two queues near to a place, one on either side, the kernel takes whichever its tree's
//! shape shows first; here it is the lower one.

use super::Bfq;
use super::queue::QueueId;
use super::seek::is_close;
use crate::units::Sector;

/// A queue's reads are not compared with others' any more when it has done I/O for so long:
/// `HZ / 10` ticks.
const TOO_LATE_PER_SECOND: i64 = 10;

/// Queues by the sector of their next request when they were put in; one for each sector.
#[derive(Debug, Default)]
pub(super) struct Positions(Vec<(Sector, QueueId)>);

impl Positions {
    fn place(&self, sector: Sector) -> Result<usize, usize> {
        self.0.binary_search_by_key(&sector, |entry| entry.0)
    }
}

impl Bfq {
    /// The queue has been served for longer than cooperators need to show themselves.
    pub(super) fn is_too_late_to_merge(&self, q: QueueId) -> bool {
        let queue = &self.queues[q.index()];
        let limit = self.tuning.ticks.hz() as i64 / TOO_LATE_PER_SECOND;
        queue.service_from_backlogged > 0 && self.clock.is_past(queue.first_io_time + limit)
    }

    /// The queue's next request has changed (`bfq_pos_tree_add_move`).
    pub(super) fn move_in_positions(&mut self, q: QueueId) {
        self.leave_positions(q);
        if self.is_too_late_to_merge(q) || self.queues[q.index()].is_idle_class() {
            return;
        }
        let Some(next) = self.queues[q.index()].next else { return };
        let sector = self.slots[next].sector;
        let group = self.group(q) as usize;
        let positions = &mut self.positions[group];
        if let Err(at) = positions.place(sector) {
            positions.0.insert(at, (sector, q));
            self.queues[q.index()].position = Some(sector);
        }
    }

    /// The queue has no next request.
    pub(super) fn leave_positions(&mut self, q: QueueId) {
        if let Some(sector) = self.queues[q.index()].position.take() {
            let group = self.group(q) as usize;
            let positions = &mut self.positions[group];
            let at = positions.place(sector).expect("it was put in at that sector");
            positions.0.remove(at);
        }
    }

    /// A queue of the same group whose next request is near to `sector` (`bfqq_find_close`).
    pub(super) fn find_close(&self, q: QueueId, sector: Sector) -> Option<QueueId> {
        let positions = &self.positions[self.group(q) as usize];
        match positions.place(sector) {
            Ok(at) => Some(positions.0[at].1),
            Err(at) => {
                let near = |other: QueueId| {
                    let next = self.queues[other.index()].next;
                    next.is_some_and(|next| is_close(self.slots[next].sector, sector))
                };
                let below = at.checked_sub(1).map(|below| positions.0[below].1);
                let above = positions.0.get(at).map(|entry| entry.1);
                below.filter(|&other| near(other)).or(above.filter(|&other| near(other)))
            }
        }
    }
}
