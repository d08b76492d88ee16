//! Which queue is active, and whether it may dispatch one more request.

use super::Cfq;
use super::state::{Class, Kind, ProcessQueue, QueueId, tree_of};
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
    /// Chooses the class to serve: real time before best effort before idle; and the workload type,
    /// whose turn lasts for its share of the group's (`choose_wl_class_and_type`).
    fn choose_workload(&mut self, group: usize) {
        let before = self.serving_class;
        let busy = |class| self.groups[group].busy(class);
        self.serving_class = if busy(Class::RealTime) > 0 {
            Class::RealTime
        } else if busy(Class::BestEffort) > 0 {
            Class::BestEffort
        } else {
            Class::Idle
        };
        if self.serving_class == Class::Idle {
            self.workload_expires = self.now + self.tick as i64;
            return;
        }
        let count = self.groups[group].trees[tree_of(self.serving_class, self.serving_kind)].count;
        if before == self.serving_class && count > 0 && self.now <= self.workload_expires {
            return;
        }
        self.serving_kind = self.choose_kind(group);
        self.workload_expires = self.now.saturating_add(self.workload_slice(group) as i64);
    }

    /// The workload type whose first queue is due first (`cfq_choose_wl_type`).
    fn choose_kind(&self, group: usize) -> Kind {
        let first = |kind: Kind| {
            let set = &self.groups[group].trees[tree_of(self.serving_class, kind)].set;
            self.service.first(set).map(|q| (self.service.key(q), kind))
        };
        Kind::ALL.into_iter().filter_map(first).min().map_or(Kind::SyncNoIdle, |(_, kind)| kind)
    }

    /// The group's share of a round, divided among the workload types by queues.
    fn workload_slice(&self, index: usize) -> u64 {
        let group = &self.groups[index];
        let (class, kind) = (self.serving_class, self.serving_kind);
        let count = u64::from(group.trees[tree_of(class, kind)].count);
        let all = group.busy_mean[class as usize].max(group.busy(class));
        let slice = self.group_slice(index).wrapping_mul(count) / u64::from(all);
        let slice = if kind == Kind::Async {
            // Asynchronous queues mostly belong to the root, whose weight is large.
            let target = self.tuned.target_latency;
            let system = target.wrapping_mul(group.busy_async().into()) / u64::from(self.counts.busy());
            slice.min(system).wrapping_mul(self.tuned.slice[0]) / self.tuned.slice[1]
        } else {
            slice.max(2 * self.tuned.slice_idle)
        };
        // `CFQ_MIN_TT`
        slice.max(2 * self.tick)
    }

    /// `cfq_choose_cfqg`
    fn choose_group(&mut self) {
        self.serving_group = self.shares.next();
        let Some(group) = self.serving_group else { return };
        match self.groups[group].saved {
            Some((left, class, kind)) => {
                self.workload_expires = self.now + left as i64;
                (self.serving_class, self.serving_kind) = (class, kind);
            }
            None => self.workload_expires = self.now - 1,
        }
        self.choose_workload(group);
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
            self.choose_group();
            next = self.first_due();
        }
        self.activate_queue(next);
        next
    }

    fn judge(&mut self, q: QueueId) -> Verdict {
        let queue = &self.queues[q];
        let (empty, under_way) = (queue.is_empty(), queue.dispatched > 0);
        if queue.flags.wait_busy && !empty {
            // The queue only kept its group busy.
            return Verdict::End(EndReason::TimeOut);
        }
        if queue.slice_used(self.now) && !queue.flags.must_dispatch {
            let alone = self.groups[queue.group].queues == 1;
            if alone && empty && under_way && self.should_idle(q) {
                return Verdict::Wait;
            }
            return self.unless_group_waits(q, EndReason::TimeOut);
        }
        if !empty {
            return Verdict::Keep;
        }
        if let Some(other) = self.close_cooperator(q) {
            if self.queues[q].merge_with.is_none() {
                self.plan_merge(q, other);
            }
            return Verdict::HandOver(other);
        }
        if self.is_idling() {
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
        let group = &self.groups[self.queues[q].group];
        let idle = self.tuned.group_idle;
        let waits = idle > 0 && group.queues == 1 && group.dispatched > 0 && !group.think.is_longer(idle);
        if waits { Verdict::Wait } else { Verdict::End(reason) }
    }

    /// The slice will end before the requests in flight complete (`cfq_slice_used_soon`).
    fn slice_used_soon(&self, queue: &ProcessQueue) -> bool {
        let needed = self.tuned.slice_idle.wrapping_mul(queue.dispatched.into());
        queue.flags.slice_new || self.now.saturating_add(needed as i64) > queue.slice_end
    }

    /// Whether the active queue may dispatch one more request (`cfq_may_dispatch`).
    fn may_dispatch(&self, q: QueueId) -> bool {
        let queue = &self.queues[q];
        if queue.flags.must_dispatch {
            return true;
        }
        let [asynchronous, synchronous] = [false, true].map(|sync| self.counts.in_flight(sync));
        // No requests of the other kind beside it: neither would have the disk alone.
        if asynchronous > 0 && self.should_idle(q) || synchronous > 0 && !queue.sync {
            return false;
        }
        let idle_class = queue.class == Class::Idle;
        let mut most = if idle_class { 1 } else { (self.tuned.quantum / 2).max(1) };
        if queue.dispatched >= most {
            // The only synchronous queue would preempt the others anyway.
            let alone = self.counts.busy() == 1 || queue.sync && self.counts.busy_sync() == 1;
            if idle_class || !alone && self.slice_used_soon(queue) {
                return false;
            }
            most = if alone { u32::MAX } else { self.tuned.quantum };
        }
        if !queue.sync && self.tuned.low_latency {
            most = most.min(self.async_depth(queue.dispatched));
        }
        queue.dispatched < most
    }

    /// The limit of asynchronous requests in flight: one more for each `slice_sync` since a
    /// synchronous request was late.
    fn async_depth(&self, dispatched: u32) -> u32 {
        let since = (self.now - self.last_delayed_sync) as u64;
        let depth = (since / self.tuned.slice[1]) as u32;
        if depth == 0 && dispatched == 0 { 1 } else { depth }
    }

    /// Requests in one asynchronous slice (`cfq_prio_to_maxrq`).
    fn async_requests(&self, level: u8) -> u64 {
        u64::from(self.tuned.slice_async_rq.wrapping_mul(2).wrapping_mul(8 - u32::from(level)))
    }

    /// Takes the next request out of the queues (`cfq_dispatch_requests`).
    pub(super) fn take_next(&mut self, requests: &RequestSlab) -> Option<RequestId> {
        if self.counts.busy() == 0 {
            return None;
        }
        let q = self.select()?;
        let expired = self.expired(q);
        if expired.is_some() {
            self.queues[q].flags.must_dispatch = true;
            self.note(q, Decision::Expired);
        }
        if !self.may_dispatch(q) {
            return None;
        }
        let id = expired.or(self.queues[q].next)?;
        self.send(id, requests[id].sectors);
        self.active_context.get_or_insert(self.slots[id.index()].context);
        let now = self.now;
        let queue = &mut self.queues[q];
        queue.slice_dispatch += 1;
        queue.flags.must_dispatch = false;
        let idle_class = queue.class == Class::Idle;
        let (sync, sent, level) = (queue.sync, queue.slice_dispatch, queue.level);
        if self.counts.busy() > 1 && (idle_class || !sync && sent >= self.async_requests(level)) {
            self.queues[q].slice_end = now + 1;
            self.expire(false, EndReason::BudgetExhausted);
        }
        Some(id)
    }
}
