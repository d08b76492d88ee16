//! Decides whether the disk idles for the queue in service.
//!
//! Idling pays where it keeps throughput (a sequential reader on a hard disk would lose its place),
//! and where it keeps shares: while weights differ, the disk's own queue would serve the other
//! queues.

use super::Bfq;
use super::parts::QueueId;
use super::parts::queueing::QUEUEING_REQUESTS;
use crate::scheduler::journal::{Decision, IdleEnd};

/// The longest idling for a queue that seeks (`BFQ_MIN_TT`).
const SEEKY_IDLE_NS: u32 = 2_000_000;
/// The shortest idling for a weight-raised queue.
const RAISED_IDLE_NS: u32 = 20_000_000;

impl Bfq {
    /// Without idling, shares may be lost: weights or classes differ among the busy queues, or more
    /// than one group is busy. False for the queue with the smallest weight.
    #[inline]
    pub(super) fn is_asymmetric(&self, q: QueueId) -> bool {
        self.wf2q.is_asymmetric(Some(q))
    }

    /// `idling_boosts_thr_without_issues`.
    #[inline]
    pub(super) fn idling_boosts_throughput(&self, q: QueueId) -> bool {
        let queue = &self.queues[q.index()];
        if self.sharing.has_no_process(q) {
            return false;
        }
        let (rotational, queueing) = (self.tuning.rotational, self.queueing.may_queue());
        let boosts =
            rotational && !queueing || (rotational || !queueing) && queue.is_sequential_and_io_bound();
        boosts && self.wf2q.raised_busy() == 0
    }

    /// `idling_needed_for_service_guarantees`.
    #[inline]
    pub(super) fn idling_guarantees_service(&self, q: QueueId) -> bool {
        let queue = &self.queues[q.index()];
        if self.sharing.has_no_process(q) {
            return false;
        }
        let busy = self.total_busy();
        let raised_before_others = queue.is_raised()
            && (self.wf2q.raised_busy() < busy || self.counts.in_driver() >= queue.backlog.in_flight() + 4);
        raised_before_others || self.is_asymmetric(q) || busy == 1
    }

    /// `bfq_better_to_idle`.
    #[inline]
    pub(super) fn better_to_idle(&self, q: QueueId) -> bool {
        let queue = &self.queues[q.index()];
        if self.sharing.has_no_process(q) {
            return false;
        }
        if self.tuning.strict_guarantees {
            return true;
        }
        if self.tuning.slice_idle_ns == 0 || !queue.kind.sync || queue.is_idle_class() {
            return false;
        }
        self.idling_boosts_throughput(q) || self.idling_guarantees_service(q)
    }

    /// The queue is empty and the disk should idle for it.
    #[inline]
    pub(super) fn must_idle(&self, q: QueueId) -> bool {
        self.queues[q.index()].is_empty() && self.better_to_idle(q)
    }

    /// Starts idling for the queue in service (`bfq_arm_slice_timer`).
    pub(super) fn start_idling(&mut self, q: QueueId) {
        let queue = &mut self.queues[q.index()];
        queue.turn.begin_to_wait();
        let (seeky, raised) = (queue.seeks.seeky(), queue.is_raised());
        let mut span = self.tuning.slice_idle_ns;
        if seeky && !raised && !self.is_asymmetric(q) {
            span = span.min(SEEKY_IDLE_NS);
        } else if raised {
            span = span.max(RAISED_IDLE_NS);
        }
        self.idle_timer.start(span, &self.clock);
        self.note(q, Decision::IdleStart { until: self.idle_timer.until() });
    }

    /// Stops idling for the queue.
    pub(super) fn stop_idling(&mut self, q: QueueId, why: IdleEnd) {
        if self.queues[q.index()].turn.stop_waiting() {
            self.idle_timer.stop();
            self.note(q, Decision::IdleEnd { why });
        }
    }

    /// A request completes: does the disk queue commands (`bfq_update_hw_tag`)?
    pub(super) fn watch_queueing(&mut self) {
        let (in_driver, waiting) = (self.counts.in_driver(), self.counts.waiting());
        let in_service = self.in_service.map(|q| &self.queues[q.index()]);
        let is_starved = || {
            in_service.is_some_and(|queue| {
                let outstanding = queue.backlog.outstanding();
                let few = outstanding < QUEUEING_REQUESTS && in_driver < QUEUEING_REQUESTS;
                queue.learnt.has_short_ttime() && few
            })
        };
        self.queueing.completed(in_driver, waiting, is_starved);
    }
}
