//! Budgets: how many sectors a queue may be served before another's turn, and how that follows
//! from what it did with the last one.

use super::Bfq;
use super::queue::QueueId;
use crate::request::RequestId;
use crate::scheduler::journal::EndReason;

/// Before so many budgets were given (in eighths, weighted) the largest is the default.
const MIN_BUDGETS: u32 = 194;
/// Sectors.
pub(super) const DEFAULT_MAX_BUDGET: i32 = 16 * 1024;
/// An asynchronous sector counts as so many.
const ASYNC_CHARGE_FACTOR: i32 = 3;

impl Bfq {
    #[inline]
    fn has_statistics(&self) -> bool {
        self.budgets_assigned >= MIN_BUDGETS
    }

    /// The most that a queue gets.
    pub(super) fn current_max_budget(&self) -> i32 {
        if self.has_statistics() { self.max_budget } else { DEFAULT_MAX_BUDGET }
    }

    /// The least.
    pub(super) fn min_budget(&self) -> i32 {
        self.current_max_budget() / 32
    }

    /// The disk's rate is known better: so is the largest budget, unless it was set.
    pub(super) fn update_max_budget(&mut self) {
        if self.tuning.max_budget == 0 {
            self.max_budget = self.peak_rate.sectors_in_ms(self.tuning.timeout_ms());
        }
    }

    #[inline]
    pub(super) fn budget_left(&self, q: QueueId) -> i32 {
        self.budget(q) - self.service(q)
    }

    /// What a request counts against its queue's budget (`bfq_serv_to_charge`).
    #[inline]
    pub(super) fn charge_for(&self, id: RequestId, q: QueueId) -> i32 {
        let sectors = self.slots[id].sectors as i32;
        if self.queues[q.index()].sync { sectors } else { self.charge_async(sectors, q) }
    }

    fn charge_async(&self, sectors: i32, q: QueueId) -> i32 {
        let plain = self.queues[q.index()].is_raised() || self.is_asymmetric(q);
        if plain { sectors } else { sectors * ASYNC_CHARGE_FACTOR }
    }

    /// Another request goes next: the budget must suffice for it (`bfq_updated_next_req`).
    pub(super) fn budget_for_next(&mut self, q: QueueId) {
        let Some(next) = self.queues[q.index()].next else { return };
        if self.in_service == Some(q) {
            return;
        }
        let wanted = self.queues[q.index()].max_budget.max(self.charge_for(next, q)).max(self.service(q));
        if self.budget(q) != wanted {
            self.set_budget(q, wanted);
            self.requeue(q, false);
        }
    }

    /// The budget of a queue that becomes busy. True if it goes on with what it had left, since
    /// its request came within `in_time` of its last one's end.
    pub(super) fn budget_for_activation(&mut self, q: QueueId, in_time: bool) -> bool {
        let left = self.budget_left(q);
        let queue = &mut self.queues[q.index()];
        let max = queue.max_budget;
        if queue.non_blocking_wait && in_time && left > 0 {
            // It keeps the flag: activation moves its timestamps back.
            self.set_budget(q, left.min(max));
            self.reset_service(q);
            return true;
        }
        queue.non_blocking_wait = false;
        let next = queue.next.expect("a request has come");
        self.reset_service(q);
        let budget = max.max(self.charge_for(next, q));
        self.set_budget(q, budget);
        false
    }

    /// The next budget, from how this one ended (`__bfq_bfqq_recalc_budget`).
    pub(super) fn recalculate_budget(&mut self, q: QueueId, reason: EndReason) {
        let min = self.min_budget();
        let service = self.service(q);
        let most = self.max_budget;
        let queue = &mut self.queues[q.index()];
        let old = if queue.is_raised() { 2 * min } else { queue.max_budget };
        let budget = match reason {
            _ if !queue.sync => most,
            _ if queue.is_raised() => old,
            // Requests are still with the disk: it would have gone on.
            EndReason::TooIdle if queue.dispatched > 0 => (old * 2).min(most),
            EndReason::TooIdle if old > 5 * min => old - 4 * min,
            EndReason::TooIdle => min,
            EndReason::TimeOut => (old * 2).min(most),
            EndReason::BudgetExhausted => old.saturating_mul(4).min(most),
            EndReason::NoMoreRequests => service.max(min),
            _ => return,
        };
        queue.max_budget = budget;
        if self.budgets_assigned >= MIN_BUDGETS && self.tuning.max_budget == 0 {
            queue.max_budget = budget.min(most);
        }
        let (next, max) = (queue.next, queue.max_budget);
        if let Some(next) = next {
            let budget = max.max(self.charge_for(next, q));
            self.set_budget(q, budget);
        }
    }

    /// The queue was slow: let it pay for the time that it had the disk, at the price of the
    /// largest budget per `timeout_sync`'s default (`bfq_bfqq_charge_time`).
    pub(super) fn charge_time(&mut self, q: QueueId, time_ms: u64) {
        let hz = self.tuning.ticks.hz();
        let timeout_ms = hz / 8 * 1000 / hz;
        let for_time = (self.max_budget as u64 * time_ms.min(timeout_ms) / timeout_ms) as i32;
        let total = for_time.max(self.service(q));
        if total > self.budget(q) {
            self.set_budget(q, total);
        }
        self.serve(q, total - self.service(q));
    }

    /// How long the queue has been in service, in ms, and whether it was slow: it seeks, or
    /// after 20 ms and more it has got less than half of the largest budget (`bfq_bfqq_is_slow`).
    pub(super) fn slowness(&self, q: QueueId, without_idling: bool) -> (bool, u64) {
        let queue = &self.queues[q.index()];
        if !queue.sync {
            return (false, 0);
        }
        let until = if without_idling { self.last_idling_start } else { self.clock.now };
        let spent_us = (until.wrapping_sub(self.last_budget_start) / 1000) as u32;
        if spent_us < 1000 {
            let assumed_ms = if self.tuning.rotational { 8 } else { 2 };
            return (queue.seeks.seeky(), assumed_ms);
        }
        let slow =
            if spent_us > 20_000 { self.service(q) < self.max_budget / 2 } else { queue.seeks.seeky() };
        (slow, u64::from(spent_us / 1000))
    }

    /// A queue comes into service: its time runs (`bfq_set_budget_timeout`).
    pub(super) fn start_budget_timeout(&mut self, q: QueueId) {
        let soft_rt = self.queues[q.index()].raising.cur_max_time == self.spans.soft_rt;
        let coeff = if soft_rt { 1 } else { self.wf2q.weight(q) / self.wf2q.orig_weight(q) };
        self.last_budget_start = self.clock.now;
        self.queues[q.index()].budget_timeout = self.clock.jiffies + self.tuning.timeout * i64::from(coeff);
    }

    #[inline]
    pub(super) fn budget_time_is_over(&self, q: QueueId) -> bool {
        self.clock.is_reached(self.queues[q.index()].budget_timeout)
    }

    /// The time is over, and no more than two thirds of the budget are used up if the disk waits
    /// for the queue (`bfq_may_expire_for_budg_timeout`).
    pub(super) fn may_expire_for_timeout(&self, q: QueueId) -> bool {
        (!self.queues[q.index()].wait_request || self.has_a_third_left(q)) && self.budget_time_is_over(q)
    }

    pub(super) fn has_a_third_left(&self, q: QueueId) -> bool {
        self.budget_left(q) >= self.budget(q) / 3
    }
}
