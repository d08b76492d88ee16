//! Requests come into their queue and leave it.

use super::Cfq;
use super::kinds::QueueId;
use crate::request::RequestId;
use crate::units::Sector;

impl Cfq {
    /// The request waits in its queue (`cfq_add_rq_rb`).
    #[inline]
    pub(super) fn sort_in(&mut self, id: RequestId, sector: Sector) {
        let origin = self.requests.origin(id);
        let q = origin.queue;
        let expires = self.now.saturating_add(self.tuned.fifo_expire[usize::from(origin.sync)] as i64);
        let backlog = &mut self.queues[q].backlog;
        let changed = self.requests.insert(backlog, id, (sector, expires), self.head);
        if !self.trees.has(q) {
            self.add_busy(q);
        } else if changed {
            self.note_position(q);
        }
    }

    /// The request has grown downwards: sorts it in again (`cfq_reposition_rq_rb`).
    pub(super) fn reposition(&mut self, id: RequestId, sector: Sector) {
        let q = self.requests.queue_of(id);
        let backlog = &mut self.queues[q].backlog;
        let changed = self.requests.reposition(backlog, id, sector, self.head);
        if changed || self.positions.is_listed(q) {
            self.note_position(q);
        }
    }

    /// The request has left its queue (`cfq_remove_request`), which stays busy until its turn is
    /// over.
    pub(super) fn removed(&mut self, id: RequestId, q: QueueId) {
        let queue = &self.queues[q];
        if queue.backlog.is_empty() {
            self.positions.leave(q, usize::from(queue.level));
        }
        self.merges.remove(id);
        self.counts.removed();
    }

    /// Dispatches the request (`cfq_dispatch_insert`).
    #[inline]
    pub(super) fn send(&mut self, id: RequestId, sectors: u32) {
        let q = self.requests.queue_of(id);
        let queue = &mut self.queues[q];
        self.requests.send(&mut queue.backlog, id);
        queue.slice.sent(sectors);
        self.groups.sent(queue.group);
        self.counts.sent(queue.sync);
        self.removed(id, q);
    }

    /// The oldest request if it has expired; checked once per slice (`cfq_check_fifo`).
    pub(super) fn expired(&mut self, q: QueueId) -> Option<RequestId> {
        let queue = &mut self.queues[q];
        if !queue.slice.check_fifo() {
            return None;
        }
        self.requests.expired(&queue.backlog, self.now)
    }
}
