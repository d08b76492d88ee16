//! Wakers: a queue after whose completions another, slow to ask, gets its next request. What the
//! waker has to do is done first then, since it brings the other's next request nearer.

use super::Bfq;
use super::queue::QueueId;

/// A request that comes later after a completion has nothing to do with it.
const WITHIN_NS: u64 = 4_000_000;
/// So many times in a row.
const DETECTIONS: u32 = 3;
/// Detections must follow each other within so many `slice_idle`.
const SLICES: u64 = 128;

impl Bfq {
    /// A first request has come to `q` (`bfq_check_waker`).
    pub(super) fn check_waker(&mut self, q: QueueId) {
        let Some(last) = self.last_completed.filter(|&last| last != q) else { return };
        let now = self.clock.now;
        if self.queues[q.index()].learnt.has_short_ttime
            || now - self.peak_rate.last_completion() >= WITHIN_NS
        {
            return;
        }
        let limit = SLICES * u64::from(self.tuning.slice_idle_ns);
        let waker = &mut self.queues[q.index()].waker;
        if waker.tentative != Some(last) || now > waker.detection_started + limit {
            waker.tentative = Some(last);
            waker.detections = 1;
            waker.detection_started = now;
        } else {
            waker.detections += 1;
        }
        if waker.detections == DETECTIONS {
            waker.tentative = None;
            self.unlink_from_waker(q);
            self.link_to_waker(q, last);
        }
    }

    /// `waker` wakes `q` from now on.
    pub(super) fn link_to_waker(&mut self, q: QueueId, waker: QueueId) {
        let own = &mut self.queues[q.index()].waker;
        own.queue = Some(waker);
        own.linked = true;
        self.queues[waker.index()].woken.insert(0, q);
    }

    /// `q` leaves its waker's list, but goes on to know it.
    fn unlink_from_waker(&mut self, q: QueueId) {
        if std::mem::take(&mut self.queues[q.index()].waker.linked)
            && let Some(waker) = self.queues[q.index()].waker.queue
        {
            self.queues[waker.index()].woken.retain(|&other| other != q);
        }
    }

    /// `q` has become busy: it is the first that its waker's idling makes room for.
    pub(super) fn first_of_its_wakers(&mut self, q: QueueId) {
        let waker = self.queues[q.index()].waker;
        if waker.linked
            && let Some(by) = waker.queue
            && self.queues[by.index()].woken.first() != Some(&q)
        {
            self.unlink_from_waker(q);
            self.link_to_waker(q, by);
        }
    }

    /// `q` is gone: nobody's waker and woken by nobody.
    pub(super) fn forget_waker(&mut self, q: QueueId) {
        self.unlink_from_waker(q);
        while let Some(other) = self.queues[q.index()].woken.pop() {
            let waker = &mut self.queues[other.index()].waker;
            waker.queue = None;
            waker.linked = false;
        }
        for queue in &mut self.queues {
            if queue.waker.tentative == Some(q) {
                queue.waker.tentative = None;
            }
        }
        if self.last_completed == Some(q) {
            self.last_completed = None;
        }
    }
}
