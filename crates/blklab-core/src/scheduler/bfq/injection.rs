//! Injection: while the disk waits for the queue in service, requests of others are served, as
//! long as that does not make the queue's own requests take longer.
//!
//! `inject_limit` is how many requests the disk may have then. It is learnt: how long a first request
//! takes from its arrival to its end is measured without others' requests, and again with
//! them; if it took half as long again, the limit goes down by one, otherwise up.

use super::Bfq;
use super::queue::QueueId;
use super::seek::LARGE_SECTORS;
use crate::scheduler::journal::Decision;

impl Bfq {
    /// `bfq_reset_inject_limit`.
    pub(super) fn reset_inject_limit(&mut self, q: QueueId) {
        self.waited = None;
        let jiffies = self.clock.jiffies;
        let learnt = &mut self.queues[q.index()].learnt;
        learnt.last_serv_time_ns = 0;
        // A queue that thinks for long leaves room for others at any rate.
        learnt.inject_limit = u32::from(!learnt.has_short_ttime);
        learnt.decrease_time = jiffies;
    }

    /// The request that was watched has ended (`bfq_update_inject_limit`).
    pub(super) fn update_inject_limit(&mut self, q: QueueId) {
        let took = self.clock.now - self.last_empty_occupied;
        let (injected, in_driver, jiffies) = (self.injected, self.in_driver, self.clock.jiffies);
        let max_in_driver = self.queueing.max_in_driver;
        let learnt = &mut self.queues[q.index()].learnt;
        let limit = learnt.inject_limit;
        let alone = learnt.last_serv_time_ns;
        if alone > 0 && injected {
            let too_long = took >= (alone * 3) >> 1;
            if too_long && limit > 0 {
                learnt.inject_limit -= 1;
                learnt.decrease_time = jiffies;
            } else if !too_long && limit <= max_in_driver {
                learnt.inject_limit += 1;
            }
        }
        // The best measure so far, or the first; or a new one without injection.
        if alone == 0 && in_driver == 1 || took < alone {
            if alone == 0 {
                learnt.inject_limit = limit.max(1);
            }
            learnt.last_serv_time_ns = took;
        } else if !injected && in_driver == 1 {
            learnt.last_serv_time_ns = took;
        }
        self.waited = None;
        self.injected = false;
    }

    /// A queue of those that wait, for while the one in service is empty
    /// (`bfq_choose_bfqq_for_injection`).
    pub(super) fn choose_for_injection(&mut self, in_service: QueueId) -> Option<QueueId> {
        let queue = &self.queues[in_service.index()];
        let always = !queue.is_raised() || !queue.learnt.has_short_ttime;
        let mut limit = queue.learnt.inject_limit;
        // The kernel adds nanoseconds to ticks here, so that this never comes to pass unless
        // `slice_idle_us` is a handful.
        let waited_long = self.last_idling_start_jiffies + i64::from(self.tuning.slice_idle_ns);
        if limit == 0
            && queue.learnt.last_serv_time_ns == 0
            && queue.wait_request
            && self.clock.is_reached(waited_long)
        {
            limit = 1;
        }
        if self.in_driver >= limit {
            return None;
        }
        let chosen = self.wf2q.active_leaves().find(|&q| self.may_inject(q, always))?;
        self.injected = true;
        Some(chosen)
    }

    fn may_inject(&self, q: QueueId, always: bool) -> bool {
        let queue = &self.queues[q.index()];
        let Some(next) = queue.next else { return false };
        if !always && !queue.is_raised() || self.charge_for(next, q) > self.budget_left(q) {
            return false;
        }
        // On flash a large request holds up those of the queue in service.
        let large = !self.tuning.rotational && self.slots[next].sectors >= LARGE_SECTORS;
        !(large && self.in_driver >= 1)
    }

    /// While the queue in service is empty: whose request the disk gets instead, if any.
    pub(super) fn choose_instead(&mut self, q: QueueId) -> Option<QueueId> {
        let chosen = self.related_queue(q).or_else(|| {
            let queue = &self.queues[q.index()];
            let may_inject = !self.idling_boosts_throughput(q)
                && (!queue.is_raised() || self.wf2q.raised_busy() > 1 || !queue.learnt.has_short_ttime);
            if may_inject { self.choose_for_injection(q) } else { None }
        })?;
        let during = self.process_of(q);
        self.note(chosen, Decision::Injected { during });
        Some(chosen)
    }

    /// Asynchronous requests of the same process, or a queue that wakes this one or is woken by
    /// it: these bring the queue's next request nearer.
    fn related_queue(&self, q: QueueId) -> Option<QueueId> {
        let queue = &self.queues[q.index()];
        let own = queue.owner;
        let asynchronous = own.and_then(|task| self.tasks[task.index()].queues[0]).filter(|&other| {
            let next = self.queues[other.index()].next;
            next.is_some_and(|next| Some(self.slots[next].task) == own)
        });
        [asynchronous, queue.waker.queue, queue.woken.first().copied()]
            .into_iter()
            .flatten()
            .find(|&other| self.can_go_now(other))
    }

    fn can_go_now(&self, q: QueueId) -> bool {
        let queue = &self.queues[q.index()];
        queue.busy && queue.next.is_some_and(|next| self.charge_for(next, q) <= self.budget_left(q))
    }
}
