//! Which queue is in service, and how long.

use super::Bfq;
use super::parts::QueueId;
use super::parts::peak_rate::Dispatch;
use crate::request::RequestId;
use crate::scheduler::journal::{Decision, EndReason, IdleEnd};
use crate::units::{Nanos, Sector};

impl Bfq {
    /// The next request to dispatch (`__bfq_dispatch_request`).
    pub(super) fn next_request(&mut self) -> Option<RequestId> {
        if let Some(id) = self.first.pop_front() {
            self.queues[self.requests.queue_of(id).index()].backlog.dispatched();
            self.hand_over(id);
            return Some(id);
        }
        if self.total_busy() == 0 || self.tuning.strict_guarantees && self.counts.in_driver() > 0 {
            return None;
        }
        let q = self.select_queue()?;
        let id = self.dispatch_from(q);
        self.hand_over(id);
        Some(id)
    }

    fn hand_over(&mut self, id: RequestId) {
        self.counts.dispatched();
        self.requests.started(id);
    }

    /// The queue in service, a queue to inject from, or the next queue (`bfq_select_queue`); none
    /// if the disk idles.
    fn select_queue(&mut self) -> Option<QueueId> {
        let mut current = self.in_service;
        if let Some(q) = current
            && self.may_expire_for_timeout(q)
            && !self.must_idle(q)
        {
            self.expire(q, false, EndReason::TimeOut);
            current = None;
        }
        loop {
            let q = match current {
                Some(q) => q,
                None => self.begin_service()?,
            };
            let queue = &self.queues[q.index()];
            let reason = match queue.backlog.next() {
                Some(next) if self.charge_for(next, q) <= self.budget_left(q) => {
                    self.stop_idling(q, IdleEnd::Request);
                    return Some(q);
                }
                Some(_) => EndReason::BudgetExhausted,
                None if queue.turn.waits() || queue.backlog.in_flight() != 0 && self.better_to_idle(q) => {
                    return self.choose_instead(q);
                }
                None => EndReason::NoMoreRequests,
            };
            self.expire(q, false, reason);
            current = None;
        }
    }

    /// Puts the next queue by B-WF2Q+ into service (`bfq_set_in_service_queue`).
    fn begin_service(&mut self) -> Option<QueueId> {
        let next = self.wf2q.next(self.clock.run);
        self.in_service = next;
        self.in_service_end = Sector(0);
        let q = next?;
        let queue = &mut self.queues[q.index()];
        queue.backlog.slice_begins();
        queue.raising.do_not_count_waiting(queue.turn.idle_since(), &self.spans, &self.clock);
        self.start_budget_timeout(q);
        let slice = Nanos(
            self.queues[q.index()].turn.time_left(&self.clock).max(0) as u64
                * (1_000_000_000 / self.tuning.ticks.hz()),
        );
        let budget = self.budget(q).max(0) as u32;
        self.note(q, Decision::SliceStart { budget, slice });
        Some(q)
    }

    /// Dispatches the queue's next request (`bfq_dispatch_rq_from_bfqq`).
    fn dispatch_from(&mut self, q: QueueId) -> RequestId {
        let id = self.queues[q.index()].backlog.next().expect("a selected queue has a request");
        let charge = self.charge_for(id, q);
        self.serve(q, charge);
        let in_service = self.in_service == Some(q);
        if in_service {
            self.injection.dispatched(id);
        }
        self.queues[q.index()].backlog.dispatched();
        self.observe_rate(q, id);
        self.remove_request(id);
        if in_service {
            self.update_raising(q);
            if self.total_busy() > 1 && self.queues[q.index()].is_idle_class() {
                self.expire(q, false, EndReason::BudgetExhausted);
            }
        }
        id
    }

    fn observe_rate(&mut self, q: QueueId, id: RequestId) {
        let dispatch = Dispatch {
            now: self.clock.now,
            sector: self.requests.sector(id),
            sectors: self.requests.sectors(id),
            last_position: self.last_position,
            in_driver: self.counts.in_driver(),
        };
        if self.peak_rate.dispatched(self.disk_kind(), dispatch) {
            self.budgets.rate_changed(&self.peak_rate);
        }
        self.last_position = self.requests.end(id);
        if self.in_service == Some(q) {
            self.in_service_end = self.last_position;
        }
    }

    /// Removes a waiting request from its queue (`bfq_remove_request`).
    pub(super) fn remove_request(&mut self, id: RequestId) {
        let q = self.requests.queue_of(id);
        let backlog = &mut self.queues[q.index()].backlog;
        if self.requests.remove(backlog, id, self.clock.now) {
            self.budget_for_next(q);
        }
        self.counts.removed();
        self.merges.remove(id);
        let queue = &self.queues[q.index()];
        if !queue.is_empty() {
            if !self.queueing.is_flash_with_queueing() {
                self.move_in_positions(q);
            }
            return;
        }
        if queue.turn.is_busy() && self.in_service != Some(q) {
            self.remove_busy(q, false);
            self.set_budget(q, 0);
            self.reset_service(q);
        }
        self.positions.leave(q, self.group(q) as usize);
    }

    /// Ends the slice of the queue in service (`bfq_bfqq_expire`).
    pub(super) fn expire(&mut self, q: QueueId, without_idling: bool, reason: EndReason) {
        let (slow, time_ms) = self.slowness(q, without_idling);
        let raised = self.queues[q.index()].is_raised();
        if !raised && (slow || reason == EndReason::TimeOut && self.has_a_third_left(q)) {
            self.charge_time(q, time_ms);
        }
        if self.tuning.low_latency {
            self.remember_for_soft_rt(q);
        }
        self.injection.slice_ends();
        let service = self.service(q).max(0) as u32;
        self.note(q, Decision::SliceEnd { reason, service });
        self.recalculate_budget(q, reason);
        if self.leave_service(q, reason) {
            return;
        }
        let used_up = matches!(reason, EndReason::TimeOut | EndReason::BudgetExhausted);
        let turn = &mut self.queues[q.index()].turn;
        if !turn.is_busy() && !used_up {
            turn.expect_request();
        } else {
            self.reset_service(q);
        }
        self.wf2q.reset_service_above(q);
    }

    fn remember_for_soft_rt(&mut self, q: QueueId) {
        let queue = &mut self.queues[q.index()];
        if !queue.is_raised() {
            queue.raising.restart(&self.clock);
        }
        if queue.is_empty() {
            if queue.backlog.in_flight() == 0 {
                queue.soft_rt.becomes_idle(&self.tuning, &self.clock);
            } else {
                queue.soft_rt.becomes_idle_at_completion();
            }
        }
    }

    /// `__bfq_bfqq_expire`; true if the queue was freed.
    pub(super) fn leave_service(&mut self, q: QueueId, reason: EndReason) -> bool {
        self.sharing.slice_ends(q, self.queues[q.index()].seeks.seeky());
        let keeps = reason == EndReason::Preempted && self.idling_guarantees_service(q);
        if self.queues[q.index()].is_empty() && !keeps {
            let queue = &mut self.queues[q.index()];
            if queue.backlog.in_flight() == 0 {
                queue.turn.idle_from(self.clock.jiffies);
            }
            self.remove_busy(q, true);
        } else {
            self.requeue(q, true);
            if !self.queueing.is_flash_with_queueing() && !self.queues[q.index()].is_empty() {
                self.move_in_positions(q);
            }
        }
        let why = match reason {
            EndReason::TooIdle | EndReason::TimeOut => IdleEnd::TimeOut,
            _ => IdleEnd::GivenUp,
        };
        self.stop_idling(q, why);
        self.in_service = None;
        self.wf2q.end_service();
        self.free_if_unused(q);
        !self.queues[q.index()].used
    }

    /// The idle timer of the queue in service expires (`bfq_idle_slice_timer`).
    pub(super) fn idle_timer(&mut self) {
        self.idle_timer.stop();
        let Some(q) = self.in_service else { return };
        let queue = &mut self.queues[q.index()];
        queue.turn.stop_waiting();
        let nothing_came = queue.is_empty();
        self.note(q, Decision::IdleEnd { why: IdleEnd::TimeOut });
        if self.budget_time_is_over(q) {
            self.expire(q, true, EndReason::TimeOut);
        } else if nothing_came {
            self.expire(q, true, EndReason::TooIdle);
        }
    }
}
