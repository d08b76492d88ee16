//! A request arrives at its queue.

use super::Bfq;
use super::parts::QueueId;
use super::parts::tasks::TaskIndex;
use crate::request::RequestId;
use crate::scheduler::journal::{Decision, EndReason, IdleEnd};

/// For a request smaller than this, idling goes on: the next request may merge with it.
const SMALL_SECTORS: u32 = 32;
/// After this long without I/O a queue leaves its burst.
const LEAVE_BURST_MS: u64 = 10_000;

impl Bfq {
    /// `__bfq_insert_request`; the request already belongs to a queue.
    pub(super) fn insert_sorted(&mut self, id: RequestId) {
        let q = self.follow_merge(id, self.requests.queue_of(id));
        self.requests.move_to(id, q);
        self.update_thinktime(q);
        self.update_short_ttime(q);
        self.update_seeks(q, id);
        self.add_request(q, id);
        self.enqueued(q, id);
    }

    fn update_thinktime(&mut self, q: QueueId) {
        let queue = &mut self.queues[q.index()];
        if queue.backlog.in_flight() == 0 && !queue.turn.is_busy() {
            queue.learnt.returned(self.clock.now, self.tuning.slice_idle_ns);
        }
    }

    /// Decides whether idling for the queue is worth it (`bfq_update_has_short_ttime`).
    fn update_short_ttime(&mut self, q: QueueId) {
        let queue = &mut self.queues[q.index()];
        let slice_idle = self.tuning.slice_idle_ns;
        if !queue.kind.sync || queue.is_idle_class() || slice_idle == 0 {
            return;
        }
        // Too soon after a split to decide.
        if !queue.age.is_long_after_split(self.spans.min_idle(), &self.clock) {
            return;
        }
        if queue.learnt.judge_think_time(slice_idle, &self.clock) {
            self.reset_inject_limit(q);
        }
    }

    fn update_seeks(&mut self, q: QueueId, id: RequestId) {
        let disk = self.disk_kind();
        let queue = &mut self.queues[q.index()];
        queue.seeks.request(disk, self.requests.sector(id), self.requests.sectors(id));
        self.end_soft_rt_of_seeker(q);
    }

    /// `bfq_add_request`.
    fn add_request(&mut self, q: QueueId, id: RequestId) {
        let (sync, task) = (self.requests.is_sync(id), self.requests.task_of(id));
        let old_coeff = self.queues[q.index()].raising.coefficient();
        self.counts.inserted();
        if self.queues[q.index()].kind.sync {
            if self.tasks.has_one_request(task) {
                self.first_of_process(q);
            }
            self.update_io_bound(q);
        }
        let fifo_time = self.clock.now + self.tuning.fifo_expire_ns[usize::from(sync)];
        let backlog = &mut self.queues[q.index()].backlog;
        let changed = self.requests.insert(backlog, id, fifo_time, self.last_position);
        if changed && !self.queueing.is_flash_with_queueing() {
            self.move_in_positions(q);
        }
        let mut interactive = false;
        if self.queues[q.index()].turn.is_busy() {
            if self.tuning.low_latency
                && old_coeff == 1
                && !sync
                && self.queues[q.index()].raising.is_async_pause_over(&self.spans, &self.clock)
            {
                self.raise_async(q);
            }
            if changed {
                self.budget_for_next(q);
            }
        } else {
            interactive = self.becomes_busy(q, task);
        }
        let raising = &mut self.queues[q.index()].raising;
        if self.tuning.low_latency && (old_coeff == 1 || !raising.is_raised() || interactive) {
            raising.restart(&self.clock);
        }
    }

    /// The process has no other request in flight: its pace can be measured.
    fn first_of_process(&mut self, q: QueueId) {
        let learnt = &self.queues[q.index()].learnt;
        if !learnt.has_short_ttime() {
            let since_ns = self.clock.now - self.peak_rate.last_completion();
            self.wakers.first_request(q, self.clock.now, since_ns, self.tuning.slice_idle_ns);
        }
        if learnt.inject_limit().is_old(&self.clock) {
            self.reset_inject_limit(q);
        }
        let limit = self.queues[q.index()].learnt.inject_limit();
        let disk_is_idle = self.counts.in_driver() == 0;
        if self.in_service == Some(q)
            && (disk_is_idle || limit.is_measured() && self.injection.has_injected())
            && limit.may_be_measured(&self.clock)
        {
            self.injection.begin(self.clock.now, disk_is_idle);
        }
    }

    /// Decides whether the queue always has requests (`bfq_update_io_intensity`).
    fn update_io_bound(&mut self, q: QueueId) {
        let queue = &mut self.queues[q.index()];
        let had_none = queue.is_empty() && queue.backlog.in_flight() == 0;
        queue.learnt.request(self.clock.now, had_none, queue.age.is_just_created());
    }

    /// The empty queue gets its first request; true if the queue looks interactive
    /// (`bfq_bfqq_handle_idle_busy_switch`).
    fn becomes_busy(&mut self, q: QueueId, task: TaskIndex) -> bool {
        let queue = &self.queues[q.index()];
        let idle_span = self.spans.min_idle();
        let idle_for_long = queue.backlog.in_flight() == 0 && queue.turn.was_idle_for(idle_span, &self.clock);
        let in_time = self.clock.now <= queue.learnt.last_end() + u64::from(self.tuning.slice_idle_ns) * 3;
        let own_or_stable = self.sharing.owner(q).is_some() || self.tasks.is_stably_merged(task);
        let signs = self.signs(q, idle_for_long, own_or_stable);
        let goes_on = self.budget_for_activation(q, in_time);

        let queue = &self.queues[q.index()];
        let very_long = self.tuning.ticks_of_ms(LEAVE_BURST_MS);
        let is_new = queue.age.is_just_created();
        if !is_new && idle_for_long && queue.turn.was_idle_for(very_long, &self.clock) {
            self.burst.leave(q);
        }
        let queue = &mut self.queues[q.index()];
        queue.age.not_new_any_more();
        if self.tuning.low_latency && queue.age.is_long_after_split(idle_span, &self.clock) {
            self.raise_on_arrival(q, signs);
        }
        self.queues[q.index()].soft_rt.becomes_busy(self.clock.jiffies);
        self.add_busy(q);
        self.consider_preemption(q, goes_on);
        signs.interactive
    }

    /// Expires the queue in service if `q` is next and may preempt it.
    fn consider_preemption(&mut self, q: QueueId, goes_on: bool) {
        let Some(current) = self.in_service else { return };
        let coeff = |q: QueueId| self.queues[q.index()].raising.coefficient();
        let deserves = goes_on && coeff(q) >= coeff(current)
            || self.is_higher(q, current)
            || !self.better_to_idle(current);
        if deserves && self.wf2q.next_may_preempt() {
            let process = self.process_of(current);
            self.note(q, Decision::Preempts { process });
            self.expire(current, false, EndReason::Preempted);
        }
    }

    /// `q` has a higher class or a larger weight (`bfq_bfqq_higher_class_or_weight`).
    fn is_higher(&self, q: QueueId, current: QueueId) -> bool {
        if self.queues[q.index()].kind.class < self.queues[current.index()].kind.class {
            return true;
        }
        let same_group = self.group(q) == self.group(current);
        let weight = |q| if same_group { self.wf2q.weight(q) } else { self.group_weight_or_own(q) };
        weight(q) > weight(current)
    }

    /// `bfq_rq_enqueued`: the disk may be idling for this request.
    fn enqueued(&mut self, q: QueueId, id: RequestId) {
        let queue = &mut self.queues[q.index()];
        queue.seeks.set_end(self.requests.end(id));
        if self.in_service != Some(q) || !queue.turn.waits() {
            return;
        }
        let is_alone = queue.backlog.waiting(self.requests.is_sync(id)) == 1;
        let alone_and_small = is_alone && self.requests.sectors(id) < SMALL_SECTORS;
        let timeout = self.budget_time_is_over(q);
        // More requests may come and merge with it.
        if alone_and_small && self.idling_boosts_throughput(q) && !timeout {
            return;
        }
        self.stop_idling(q, IdleEnd::Request);
        if timeout {
            self.expire(q, false, EndReason::TimeOut);
        }
    }
}
