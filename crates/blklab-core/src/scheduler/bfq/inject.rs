//! Chooses the queue whose request is injected while the disk idles: a queue that makes the next
//! request of the queue in service come sooner, else any queue, within the limits of
//! [`injection`](super::parts::injection).

use super::Bfq;
use super::parts::QueueId;
use super::parts::seek::LARGE_SECTORS;
use crate::scheduler::journal::Decision;

impl Bfq {
    /// Resets the queue's limit, which is then learned again.
    pub(super) fn reset_inject_limit(&mut self, q: QueueId) {
        self.injection.stop_watching();
        self.queues[q.index()].learnt.reset_inject_limit(&self.clock);
    }

    /// A busy queue to inject from while the queue in service is empty
    /// (`bfq_choose_bfqq_for_injection`).
    pub(super) fn choose_for_injection(&mut self, in_service: QueueId) -> Option<QueueId> {
        let queue = &self.queues[in_service.index()];
        let always = !queue.is_raised() || !queue.learnt.has_short_ttime();
        let inject_limit = queue.learnt.inject_limit();
        let mut limit = inject_limit.requests();
        if limit == 0
            && !inject_limit.is_measured()
            && queue.turn.waits()
            && self.idle_timer.is_long_ago(self.tuning.slice_idle_ns, &self.clock)
        {
            limit = 1;
        }
        if self.counts.in_driver() >= limit {
            return None;
        }
        let chosen = self.wf2q.active_leaves().find(|&q| self.may_inject(q, always))?;
        self.injection.inject();
        Some(chosen)
    }

    fn may_inject(&self, q: QueueId, always: bool) -> bool {
        let queue = &self.queues[q.index()];
        let Some(next) = queue.backlog.next() else { return false };
        if !always && !queue.is_raised() || self.charge_for(next, q) > self.budget_left(q) {
            return false;
        }
        // On flash a large request delays those of the queue in service.
        let large = !self.tuning.rotational && self.requests.sectors(next) >= LARGE_SECTORS;
        !(large && self.counts.in_driver() >= 1)
    }

    /// While the queue in service is empty: the queue to inject from, if any.
    pub(super) fn choose_instead(&mut self, q: QueueId) -> Option<QueueId> {
        let chosen = self.related_queue(q).or_else(|| {
            let queue = &self.queues[q.index()];
            let may_inject = !self.idling_boosts_throughput(q)
                && (!queue.is_raised() || self.wf2q.raised_busy() > 1 || !queue.learnt.has_short_ttime());
            if may_inject { self.choose_for_injection(q) } else { None }
        })?;
        let during = self.process_of(q);
        self.note(chosen, Decision::Injected { during });
        Some(chosen)
    }

    /// The asynchronous queue of the same process, this queue's waker, or a queue that it wakes:
    /// their requests make the queue's next request come sooner.
    fn related_queue(&self, q: QueueId) -> Option<QueueId> {
        let own = self.sharing.owner(q);
        let asynchronous = own.and_then(|task| self.tasks.queue(task, false)).filter(|&other| {
            let next = self.queues[other.index()].backlog.next();
            next.is_some_and(|next| Some(self.requests.task_of(next)) == own)
        });
        [asynchronous, self.wakers.waker_of(q), self.wakers.woken_by(q)]
            .into_iter()
            .flatten()
            .find(|&other| self.can_go_now(other))
    }

    fn can_go_now(&self, q: QueueId) -> bool {
        let queue = &self.queues[q.index()];
        let next = queue.backlog.next().filter(|_| queue.turn.is_busy());
        next.is_some_and(|next| self.charge_for(next, q) <= self.budget_left(q))
    }
}
