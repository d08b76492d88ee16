//! A request completes.

use super::Bfq;
use super::parts::QueueId;
use crate::request::RequestId;
use crate::scheduler::journal::EndReason;

impl Bfq {
    /// Detaches the request from its queue, dispatched or not (`bfq_finish_requeue_request`).
    pub(super) fn finish(&mut self, id: RequestId) {
        let q = self.requests.queue_of(id);
        if self.requests.is_started(id) {
            if let Some(measured) = self.injection.ended(id, self.clock.now) {
                let (in_driver, most) = (self.counts.in_driver(), self.queueing.max_in_driver());
                let learnt = &mut self.queues[q.index()].learnt;
                learnt.learn_inject_limit(measured, in_driver, most, &self.clock);
            }
            self.completed_request(q);
        }
        self.requests.freed(id);
        self.wf2q.request_freed(q);
        self.tasks.freed(self.requests.task_of(id));
        self.free_if_unused(q);
    }

    /// `bfq_completed_request`.
    fn completed_request(&mut self, q: QueueId) {
        self.watch_queueing();
        self.counts.completed();
        let jiffies = self.clock.jiffies;
        let now = self.clock.now;
        let queue = &mut self.queues[q.index()];
        queue.backlog.completed();
        if queue.backlog.in_flight() == 0 && !queue.turn.is_busy() {
            queue.turn.idle_from(jiffies);
            self.wf2q.uncount_pending(q);
            self.wf2q.uncount_weight(q);
        }
        let queue = &mut self.queues[q.index()];
        queue.learnt.completed(now);
        self.wakers.completed((!self.sharing.is_shared(q)).then_some(q));
        if self.peak_rate.completed(now) {
            self.budgets.rate_changed(&self.peak_rate);
        }
        self.start_soft_rt(q);
        if self.in_service == Some(q) {
            if self.must_idle(q) {
                if self.queues[q.index()].backlog.in_flight() == 0 {
                    self.start_idling(q);
                }
                return;
            }
            let queue = &self.queues[q.index()];
            if self.may_expire_for_timeout(q) {
                self.expire(q, false, EndReason::TimeOut);
            } else if queue.is_empty() && (queue.backlog.in_flight() == 0 || !self.better_to_idle(q)) {
                self.expire(q, false, EndReason::NoMoreRequests);
            }
        }
        if self.counts.in_driver() == 0 {
            self.counts.run_hw_queues();
        }
    }

    /// The last request of an idle queue completes: sets the earliest time at which its next
    /// request makes it soft real-time.
    fn start_soft_rt(&mut self, q: QueueId) {
        let queue = &mut self.queues[q.index()];
        let is_idle = queue.backlog.in_flight() == 0 && queue.is_empty();
        if queue.soft_rt.is_idle_at_completion() && is_idle && !queue.raising.is_interactive() {
            queue.soft_rt.becomes_idle(&self.tuning, &self.clock);
        }
    }
}
