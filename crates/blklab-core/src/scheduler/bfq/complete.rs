//! A request completes.

use super::Bfq;
use super::parts::QueueId;
use super::slots::Stage;
use crate::request::RequestId;
use crate::scheduler::journal::EndReason;

impl Bfq {
    /// Detaches the request from its queue, dispatched or not (`bfq_finish_requeue_request`).
    pub(super) fn finish(&mut self, id: RequestId) {
        let slot = self.slots[id];
        let q = slot.queue;
        if slot.stage == Stage::Started {
            if let Some(measured) = self.injection.ended(id, self.clock.now) {
                let limit = &mut self.queues[q.index()].learnt.inject_limit;
                limit.learn(measured, self.counts.in_driver(), self.queueing.max_in_driver(), &self.clock);
            }
            self.completed_request(q);
        }
        self.slots[id].stage = Stage::Gone;
        self.wf2q.request_freed(q);
        self.tasks[slot.task.index()].requests -= 1;
        self.free_if_unused(q);
    }

    /// `bfq_completed_request`.
    fn completed_request(&mut self, q: QueueId) {
        self.watch_queueing();
        self.counts.completed();
        let jiffies = self.clock.jiffies;
        let now = self.clock.now;
        let queue = &mut self.queues[q.index()];
        queue.dispatched -= 1;
        if queue.dispatched == 0 && !queue.busy {
            queue.budget_timeout = jiffies;
            self.wf2q.uncount_pending(q);
            self.wf2q.uncount_weight(q);
        }
        let queue = &mut self.queues[q.index()];
        queue.learnt.ttime.ended(now);
        self.wakers.completed((!queue.coop).then_some(q));
        if self.peak_rate.completed(now) {
            self.budgets.rate_changed(&self.peak_rate);
        }
        self.start_soft_rt(q);
        if self.in_service == Some(q) {
            if self.must_idle(q) {
                if self.queues[q.index()].dispatched == 0 {
                    self.start_idling(q);
                }
                return;
            }
            let queue = &self.queues[q.index()];
            if self.may_expire_for_timeout(q) {
                self.expire(q, false, EndReason::TimeOut);
            } else if queue.is_empty() && (queue.dispatched == 0 || !self.better_to_idle(q)) {
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
        let queue = &self.queues[q.index()];
        if queue.softrt_update && queue.dispatched == 0 && queue.is_empty() && !queue.raising.is_interactive()
        {
            let start = self.soft_rt_next_start(q);
            self.queues[q.index()].soft_rt_next_start = start;
        }
    }
}
