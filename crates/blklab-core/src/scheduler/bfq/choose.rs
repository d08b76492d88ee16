//! The queue's next request: the nearest to the head; requests above the head come first.

use super::Bfq;
use super::parts::QueueId;
use crate::request::RequestId;
use crate::scheduler::shared::nearest::Candidate;
use crate::units::Sector;

impl Bfq {
    /// The better of two requests; either may be missing.
    pub(super) fn choose(
        &self,
        a: Option<RequestId>,
        b: Option<RequestId>,
        from: Sector,
    ) -> Option<RequestId> {
        let (Some(first), Some(second)) = (a, b) else { return a.or(b) };
        if first == second {
            return b;
        }
        let candidate =
            |id: RequestId| Candidate { sync: self.slots[id].sync, sector: self.slots[id].sector };
        let better = self.tuning.back_seek.first_is_better(candidate(first), candidate(second), from);
        Some(if better { first } else { second })
    }

    /// The request after `last`, which still waits: the head of the FIFO if it has expired, else
    /// the request nearest to the start of `last`.
    pub(super) fn find_next(&mut self, q: QueueId, last: RequestId) -> Option<RequestId> {
        if let Some(expired) = self.check_fifo(q, last) {
            return Some(expired);
        }
        let from = self.slots[last].sector;
        let sorted = &self.queues[q.index()].sorted;
        let (below, above) = sorted.beside(from, last);
        self.choose(above, below, from)
    }

    /// The head of the FIFO if it has expired; checked once per slice.
    fn check_fifo(&mut self, q: QueueId, last: RequestId) -> Option<RequestId> {
        let queue = &mut self.queues[q.index()];
        if std::mem::replace(&mut queue.fifo_checked, true) {
            return None;
        }
        queue.fifo.first().filter(|&oldest| oldest != last && self.slots[oldest].fifo_time <= self.clock.now)
    }
}
