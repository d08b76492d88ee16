//! Which queue is active, and whether it may dispatch one more request.

use super::Cfq;
use super::kinds::{Class, QueueId};
use super::parts::lengths::Crowd;
use super::queue::ProcessQueue;
use crate::request::{RequestId, RequestSlab};
use crate::scheduler::journal::{Decision, EndReason};

/// What happens to the active queue.
enum Verdict {
    /// It continues.
    Keep,
    /// The disk waits for it.
    Wait,
    /// Its turn is over.
    End(EndReason),
    /// Another queue continues nearby.
    HandOver(QueueId),
}

impl Cfq {
    /// Chooses the group, its class and its workload type (`cfq_choose_cfqg`).
    fn choose_workload(&mut self) {
        self.workload.turn_to(self.shares.next(), self.now);
        if self.workload.choose(&self.trees, self.now, self.tick) {
            let length = self.workload_length();
            self.workload.begin(self.now, length);
        }
    }

    /// The time of the chosen workload type: its part of the group's share of a round.
    fn workload_length(&self) -> u64 {
        let (group, class, kind) = self.workload.served();
        let group = group.expect("one has been chosen");
        let crowd = Crowd {
            of_kind: self.trees.count(group, class, kind),
            of_class: self.trees.busy_now_or_usually(group, class),
            asynchronous: self.trees.busy_async(group),
            all: self.counts.busy(),
        };
        self.lengths.of_workload(kind, self.group_slice(group), crowd)
    }

    /// The queue of the chosen workload type that is due first (`cfq_get_next_queue`).
    fn first_due(&self) -> Option<QueueId> {
        self.workload.first_due(&self.trees).filter(|_| self.counts.queued() > 0)
    }

    /// The active queue, or the next one if its turn is over; `None` while the disk idles
    /// (`cfq_select_queue`).
    fn select(&mut self) -> Option<QueueId> {
        let mut next = None;
        if let Some(q) = self.active {
            if self.counts.queued() == 0 {
                return None;
            }
            match self.judge(q) {
                Verdict::Keep => return Some(q),
                Verdict::Wait => return None,
                Verdict::End(reason) => self.expire(false, reason),
                Verdict::HandOver(to) => {
                    self.expire(false, EndReason::HandedOver);
                    next = Some(to);
                }
            }
        }
        if next.is_none() {
            self.choose_workload();
            next = self.first_due();
        }
        self.activate_queue(next);
        next
    }

    fn judge(&mut self, q: QueueId) -> Verdict {
        let queue = &self.queues[q];
        let (empty, under_way) = (queue.backlog.is_empty(), queue.backlog.in_flight() > 0);
        if queue.slice.only_keeps_group() && !empty {
            return Verdict::End(EndReason::TimeOut);
        }
        if queue.slice.is_used(self.now) && !queue.slice.must_dispatch() {
            let alone = self.trees.busy(queue.group) == 1;
            if alone && empty && under_way && self.should_idle(q) {
                return Verdict::Wait;
            }
            return self.unless_group_waits(q, EndReason::TimeOut);
        }
        if !empty {
            return Verdict::Keep;
        }
        if let Some(other) = self.close_cooperator(q) {
            if self.sharing.target(q).is_none() {
                self.sharing.plan_merge(q, other);
            }
            return Verdict::HandOver(other);
        }
        if self.idling.is_on() {
            return Verdict::Wait;
        }
        self.doubt_idling(q);
        if under_way && self.should_idle(q) {
            return Verdict::Wait;
        }
        self.unless_group_waits(q, EndReason::NoMoreRequests)
    }

    /// The last queue of a group with requests in flight waits for them, so that the group can
    /// continue.
    fn unless_group_waits(&self, q: QueueId, reason: EndReason) -> Verdict {
        let group = self.queues[q].group;
        let waits =
            self.trees.busy(group) == 1 && self.groups.is_worth_waiting_for(group, self.tuned.group_idle);
        if waits { Verdict::Wait } else { Verdict::End(reason) }
    }

    /// The slice will end before the requests in flight complete (`cfq_slice_used_soon`).
    fn slice_used_soon(&self, queue: &ProcessQueue) -> bool {
        let needed = self.tuned.slice_idle.wrapping_mul(queue.backlog.in_flight().into());
        queue.slice.is_used_soon(self.now, needed)
    }

    /// Whether the active queue may dispatch one more request (`cfq_may_dispatch`).
    fn may_dispatch(&self, q: QueueId) -> bool {
        let queue = &self.queues[q];
        if queue.slice.must_dispatch() {
            return true;
        }
        let [asynchronous, synchronous] = [false, true].map(|sync| self.counts.in_flight(sync));
        // No requests of the other kind beside it: neither would have the disk alone.
        if asynchronous > 0 && self.should_idle(q) || synchronous > 0 && !queue.sync {
            return false;
        }
        let idle_class = queue.class == Class::Idle;
        let mut most = if idle_class { 1 } else { (self.tuned.quantum / 2).max(1) };
        let in_flight = queue.backlog.in_flight();
        if in_flight >= most {
            // The only synchronous queue would preempt the others anyway.
            let alone = self.counts.busy() == 1 || queue.sync && self.counts.busy_sync() == 1;
            if idle_class || !alone && self.slice_used_soon(queue) {
                return false;
            }
            most = if alone { u32::MAX } else { self.tuned.quantum };
        }
        if !queue.sync && self.tuned.low_latency {
            most = most.min(self.async_depth.limit(self.now, in_flight));
        }
        in_flight < most
    }

    /// Takes the next request out of the queues (`cfq_dispatch_requests`).
    pub(super) fn take_next(&mut self, requests: &RequestSlab) -> Option<RequestId> {
        if self.counts.busy() == 0 {
            return None;
        }
        let q = self.select()?;
        let expired = self.expired(q);
        if expired.is_some() {
            self.queues[q].slice.allow_one_more();
            self.note(q, Decision::Expired);
        }
        if !self.may_dispatch(q) {
            return None;
        }
        let id = expired.or(self.queues[q].backlog.next())?;
        self.send(id, requests[id].sectors);
        self.active_context.get_or_insert(self.requests.origin(id).context);
        let queue = &mut self.queues[q];
        let is_enough = queue.class == Class::Idle
            || !queue.sync && queue.slice.requests() >= self.lengths.async_requests(queue.level);
        if self.counts.busy() > 1 && is_enough {
            queue.slice.ends_now(self.now);
            self.expire(false, EndReason::BudgetExhausted);
        }
        Some(id)
    }
}
