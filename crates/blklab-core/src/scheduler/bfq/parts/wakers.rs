//! Wakers: a queue is another queue's waker if its completions bring that queue new requests. An
//! example is a process that waits for data that a second process reads, or for a journal's commit.
//! While the disk idles for a queue, BFQ injects its waker's requests (`injection.rs`), because
//! they make the queue's next request come sooner.
//!
//! Follows `bfq_check_waker` of Linux 7.3. It looks only at queues with a long think time. When
//! such a queue gets a first request within 4 ms after another queue's completion, that other queue
//! is its tentative waker. Three detections in a row, each within 128 `slice_idle` of the first,
//! make it the waker. A queue has one waker, and remembers it even after it is removed from the
//! waker's list. A waker may wake any number of queues; the queue that became busy last is first.
//!
//! This part keeps all links between queues, so that a freed queue is never a waker.

use super::QueueId;

/// A request that comes later than this after a completion has nothing to do with it.
const WITHIN_NS: u64 = 4_000_000;
/// Detections in a row that make a waker.
const DETECTIONS: u32 = 3;
/// All detections must come within this many `slice_idle`.
const SLICES: u64 = 128;

/// One queue's links.
#[derive(Debug, Default)]
struct Links {
    waker: Option<QueueId>,
    /// Listed in the waker's `woken`.
    linked: bool,
    tentative: Option<QueueId>,
    detections: u32,
    detection_started: u64,
    /// Queues that this one wakes; the queue that became busy last is first.
    woken: Vec<QueueId>,
}

/// The links of all queues.
#[derive(Debug, Default)]
pub(in crate::scheduler::bfq) struct Wakers {
    /// The queue of the latest completion, unless the queue is shared.
    last_completed: Option<QueueId>,
    /// By queue.
    links: Vec<Links>,
}

impl Wakers {
    /// A new queue has no links.
    pub fn queue_made(&mut self, q: QueueId) {
        if q.index() >= self.links.len() {
            self.links.resize_with(q.index() + 1, Links::default);
        }
        let links = &mut self.links[q.index()];
        let mut woken = std::mem::take(&mut links.woken);
        woken.clear();
        *links = Links { woken, ..Links::default() };
    }

    /// A request of the queue completes; `None`: the queue is shared.
    #[inline]
    pub fn completed(&mut self, q: Option<QueueId>) {
        self.last_completed = q;
    }

    /// The queue's waker.
    #[inline]
    pub fn waker_of(&self, q: QueueId) -> Option<QueueId> {
        self.links[q.index()].waker
    }

    /// The queue that `q` wakes and that became busy last.
    #[inline]
    pub fn woken_by(&self, q: QueueId) -> Option<QueueId> {
        self.links[q.index()].woken.first().copied()
    }

    /// `q`, which has a long think time, gets a first request `since_ns` after the latest
    /// completion (`bfq_check_waker`).
    pub fn first_request(&mut self, q: QueueId, now: u64, since_ns: u64, slice_idle_ns: u32) {
        let Some(last) = self.last_completed.filter(|&last| last != q) else { return };
        if since_ns >= WITHIN_NS {
            return;
        }
        let limit = SLICES * u64::from(slice_idle_ns);
        let links = &mut self.links[q.index()];
        if links.tentative != Some(last) || now > links.detection_started + limit {
            links.tentative = Some(last);
            links.detections = 1;
            links.detection_started = now;
        } else {
            links.detections += 1;
        }
        if links.detections == DETECTIONS {
            links.tentative = None;
            self.unlink(q);
            self.link(q, last);
        }
    }

    /// Makes `waker` the waker of `q`.
    pub fn link(&mut self, q: QueueId, waker: QueueId) {
        let own = &mut self.links[q.index()];
        own.waker = Some(waker);
        own.linked = true;
        self.links[waker.index()].woken.insert(0, q);
    }

    /// Removes `q` from its waker's list; `q` still knows its waker.
    fn unlink(&mut self, q: QueueId) {
        if std::mem::take(&mut self.links[q.index()].linked)
            && let Some(waker) = self.links[q.index()].waker
        {
            self.links[waker.index()].woken.retain(|&other| other != q);
        }
    }

    /// `q` becomes busy: it is now the first in its waker's list.
    pub fn became_busy(&mut self, q: QueueId) {
        let Links { waker, linked, .. } = self.links[q.index()];
        if linked
            && let Some(by) = waker
            && self.woken_by(by) != Some(q)
        {
            self.unlink(q);
            self.link(q, by);
        }
    }

    /// `from` is merged into `into`, which takes over the waker unless it has one.
    pub fn merged(&mut self, from: QueueId, into: QueueId) {
        if let Some(waker) = self.waker_of(from)
            && self.waker_of(into).is_none()
            && waker != into
        {
            self.links[into.index()].tentative = None;
            self.link(into, waker);
        }
    }

    /// `q` is freed: it wakes no queue, and no queue wakes it.
    pub fn queue_gone(&mut self, q: QueueId) {
        self.unlink(q);
        while let Some(other) = self.links[q.index()].woken.pop() {
            let links = &mut self.links[other.index()];
            links.waker = None;
            links.linked = false;
        }
        for links in &mut self.links {
            if links.tentative == Some(q) {
                links.tentative = None;
            }
        }
        if self.last_completed == Some(q) {
            self.last_completed = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::leaves;
    use super::*;

    const SLICE_IDLE_NS: u32 = 8_000_000;

    fn wakers() -> (Wakers, Vec<QueueId>) {
        let (mut wakers, queues) = (Wakers::default(), leaves(4));
        queues.iter().for_each(|&q| wakers.queue_made(q));
        (wakers, queues)
    }

    /// `waker` completes a request, and `since_ns` later `q` gets a first request.
    fn detect(wakers: &mut Wakers, waker: QueueId, q: QueueId, now: u64, since_ns: u64) {
        wakers.completed(Some(waker));
        wakers.first_request(q, now, since_ns, SLICE_IDLE_NS);
    }

    #[test]
    fn three_requests_soon_after_completions_of_one_queue_make_it_the_waker() {
        let (mut wakers, q) = wakers();
        detect(&mut wakers, q[1], q[0], 0, 1_000_000);
        detect(&mut wakers, q[1], q[0], 1, 1_000_000);
        assert_eq!(wakers.waker_of(q[0]), None);
        detect(&mut wakers, q[1], q[0], 2, 3_999_999);
        assert_eq!(wakers.waker_of(q[0]), Some(q[1]));
        assert_eq!(wakers.woken_by(q[1]), Some(q[0]));
    }

    #[test]
    fn late_requests_other_queues_and_long_gaps_begin_anew() {
        let (mut wakers, q) = wakers();
        let gap = SLICES * u64::from(SLICE_IDLE_NS) + 1;
        for (waker, now, since_ns) in
            [(1, 0, 0), (1, 1, 0), (1, 2, WITHIN_NS), (2, 3, 0), (1, 4, 0), (1, 5, 0), (1, 4 + gap, 0)]
        {
            detect(&mut wakers, q[waker], q[0], now, since_ns);
            assert_eq!(wakers.waker_of(q[0]), None, "at {now}");
        }
    }

    #[test]
    fn the_queue_that_became_busy_last_is_woken_first() {
        let (mut wakers, q) = wakers();
        wakers.link(q[1], q[0]);
        wakers.link(q[2], q[0]);
        assert_eq!(wakers.woken_by(q[0]), Some(q[2]));
        wakers.became_busy(q[1]);
        assert_eq!(wakers.woken_by(q[0]), Some(q[1]));
    }

    #[test]
    fn a_queue_that_is_gone_leaves_no_link() {
        let (mut wakers, q) = wakers();
        wakers.link(q[1], q[0]);
        wakers.link(q[0], q[3]);
        detect(&mut wakers, q[0], q[2], 0, 0);
        wakers.queue_gone(q[0]);
        assert_eq!((wakers.waker_of(q[1]), wakers.woken_by(q[3])), (None, None));
        // Nor as a tentative waker: it takes three detections again.
        detect(&mut wakers, q[1], q[2], 1, 0);
        detect(&mut wakers, q[1], q[2], 2, 0);
        assert_eq!(wakers.waker_of(q[2]), None);
    }

    #[test]
    fn a_merged_queue_passes_its_waker_on_to_one_that_has_none() {
        let (mut wakers, q) = wakers();
        wakers.link(q[0], q[3]);
        wakers.merged(q[0], q[1]);
        assert_eq!(wakers.waker_of(q[1]), Some(q[3]));
        wakers.link(q[2], q[1]);
        wakers.merged(q[0], q[2]);
        assert_eq!(wakers.waker_of(q[2]), Some(q[1]), "it had one");
    }
}
