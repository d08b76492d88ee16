//! Requests in their queue: their order, and the next one.

use super::Cfq;
use super::state::{QueueId, Slot, State};
use crate::request::RequestId;
use crate::scheduler::shared::nearest::Candidate;
use crate::units::Sector;

impl Cfq {
    /// The better of two waiting requests, with the last one at `last` (`cfq_choose_req`).
    fn choose(&self, a: Option<RequestId>, b: Option<RequestId>, last: Sector) -> Option<RequestId> {
        let (Some(first), Some(second)) = (a, b) else { return a.or(b) };
        if first == second {
            return b;
        }
        let candidate = |id: RequestId| {
            let slot = &self.slots[id.index()];
            Candidate { sync: slot.sync, sector: slot.sector }
        };
        let better = self.tuned.back_seek.first_is_better(candidate(first), candidate(second), last);
        Some(if better { first } else { second })
    }

    /// Sorts the request, at `sector`, into its queue (`cfq_add_rq_rb`).
    pub(super) fn sort_in(&mut self, id: RequestId, sector: Sector) {
        let slot = &mut self.slots[id.index()];
        slot.sector = sector;
        slot.state = State::Waiting;
        let q = slot.queue;
        self.queues[q].sorted.insert(sector, id);
        if !self.queues[q].on_rr {
            self.add_busy(q);
        }
        let before = self.queues[q].next;
        let next = self.choose(before, Some(id), Sector(self.last_position));
        self.queues[q].next = next;
        if before != next {
            self.note_position(q);
        }
    }

    /// The request has grown downwards: sorts it in again (`cfq_reposition_rq_rb`).
    pub(super) fn reposition(&mut self, id: RequestId, sector: Sector) {
        let Slot { queue: q, sector: old, .. } = self.slots[id.index()];
        self.queues[q].sorted.remove(old, id);
        self.sort_in(id, sector);
        if self.positions.is_listed(q) {
            self.note_position(q);
        }
    }

    /// Removes the waiting request from its queue (`cfq_remove_request`).
    pub(super) fn remove(&mut self, id: RequestId) {
        let Slot { queue: q, sector, .. } = self.slots[id.index()];
        let queue = &mut self.queues[q];
        self.links.remove(&mut queue.fifo, id);
        let (below, above) = queue.sorted.remove(sector, id);
        if queue.next == Some(id) {
            // `cfq_find_next_rq`
            self.queues[q].next = self.choose(above, below, sector);
        }
        // The queue stays busy until its turn is over.
        if self.queues[q].is_empty() {
            self.positions.leave(q, self.queues[q].level);
        }
        self.merges.remove(id);
        self.counts.removed();
    }

    /// Dispatches the request (`cfq_dispatch_insert`).
    pub(super) fn send(&mut self, id: RequestId, sectors: u32) {
        let q = self.slots[id.index()].queue;
        // The next request is chosen from this one's sector, even if the FIFO chose this one.
        self.queues[q].next = Some(id);
        self.remove(id);
        let queue = &mut self.queues[q];
        queue.dispatched += 1;
        queue.sectors += u64::from(sectors);
        self.groups[queue.group].dispatched += 1;
        self.counts.sent(queue.sync);
    }

    /// The oldest request if it has expired; checked once per slice (`cfq_check_fifo`).
    pub(super) fn expired(&mut self, q: QueueId) -> Option<RequestId> {
        let queue = &mut self.queues[q];
        if std::mem::replace(&mut queue.flags.fifo_checked, true) {
            return None;
        }
        queue.fifo.first().filter(|oldest| self.slots[oldest.index()].expires <= self.now)
    }
}
