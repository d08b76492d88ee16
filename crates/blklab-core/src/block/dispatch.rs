//! From the scheduler to the disk.

use super::{Block, Worker};
use crate::disk::{AnyDisk, Command, Disk, Tag};
use crate::request::{Op, ProcessId, Request, RequestId};
use crate::units::Nanos;

/// A scheduler that has requests and dispatches none is asked again after this time
/// (`BLK_MQ_BUDGET_DELAY`).
const BUDGET_DELAY: Nanos = Nanos::from_millis(3);

impl Block {
    /// Issues a new request directly to the disk, if `none` would dispatch it at once and before
    /// all others. True if it did.
    #[inline]
    pub(super) fn issued_directly(&mut self, now: Nanos, id: RequestId, disk: &mut AnyDisk) -> bool {
        if !self.is_none || self.rules.drains || !self.to_run.is_empty() || self.queue_command_waits() {
            return false;
        }
        let hw_queue = self.requests[id].hw_queue;
        let index = usize::from(hw_queue);
        // A request that waits in the software queue was left to the worker, and nothing looks there.
        let is_first = self.rules.refuses || self.scheduler.waiting() == 0;
        let is_first = is_first && self.hw_queues[index].parked.is_none();
        let takes = is_first && self.takes_one_more(hw_queue);
        if takes {
            self.hw_queues[index].refused.taken();
            self.issue(now, id, disk);
        }
        takes
    }

    /// Hardware queue `hw_queue` may have requests to dispatch.
    #[inline]
    pub(super) fn mark(&mut self, hw_queue: u16) {
        if self.hw_queues[usize::from(hw_queue)].marked() {
            self.to_run.push(hw_queue);
        }
    }

    /// All hardware queues may have requests, so that none must be checked later. If the scheduler gives the requests of
    /// all to any of them, it is `hw_queue` that runs (`blk_mq_run_hw_queues`).
    pub(super) fn mark_all(&mut self, hw_queue: u16) {
        if self.rules.runs_queue_of_cpu {
            return self.run_at_once(hw_queue);
        }
        (0..self.limits.hw_queues).for_each(|hw_queue| self.run_at_once(hw_queue));
    }

    /// The worker dispatches as many requests as the scheduler allows and the disk takes.
    #[inline]
    pub fn run(&mut self, now: Nanos, disk: &mut AnyDisk) {
        if self.flushes.worker == Worker::OnAny {
            self.run_with_flush(now, disk);
        }
        if !self.to_run.is_empty() {
            self.run_marked(now, disk);
            if self.wakes_itself {
                self.run_once_more(now, disk);
            }
        }
    }

    /// The worker has woken itself.
    #[cold]
    fn run_once_more(&mut self, now: Nanos, disk: &mut AnyDisk) {
        while std::mem::take(&mut self.wakes_itself) {
            for hw_queue in 0..self.limits.hw_queues {
                let worker = &mut self.hw_queues[usize::from(hw_queue)].worker;
                if *worker == Worker::OnAny {
                    *worker = Worker::Asleep;
                    self.mark(hw_queue);
                }
            }
            self.run_marked(now, disk);
        }
    }

    /// The same by a process, which leaves to the worker what is to be run once more.
    #[inline]
    pub(super) fn run_now(&mut self, now: Nanos, disk: &mut AnyDisk) {
        if !self.to_run.is_empty() {
            self.run_marked(now, disk);
        }
    }

    /// Runs a hardware queue without a new event, unless the run cannot change anything.
    #[inline]
    pub(super) fn run_again(&mut self, now: Nanos, hw_queue: u16, disk: &mut AnyDisk) {
        let queue = &self.hw_queues[usize::from(hw_queue)];
        let is_full = queue.restart && queue.in_flight >= self.limits.queue_depth;
        let in_vain = (is_full || self.scheduler.is_settled(now)) && queue.refused.is_empty();
        if !self.to_run.is_empty() || self.rules.peeks || !in_vain {
            self.mark(hw_queue);
            self.run_now(now, disk);
        }
    }

    pub(super) fn run_marked(&mut self, now: Nanos, disk: &mut AnyDisk) {
        if self.rules.peeks {
            return self.run_peeking(now, disk);
        }
        while self.probes_waiting > 0 && self.hw_queues[0].in_flight < self.limits.queue_depth {
            self.issue_probe(now, disk);
        }
        self.hw_queues[0].restart |= self.probes_waiting > 0;
        for index in 0..self.to_run.len() {
            let hw_queue = self.to_run[index];
            self.hw_queues[usize::from(hw_queue)].to_run = false;
            if self.rules.drains {
                self.run_draining(now, hw_queue, disk);
                continue;
            }
            if self.rules.refuses {
                self.run_refusing(now, hw_queue, disk);
                continue;
            }
            if self.flushes.excludes || self.hw_queues[usize::from(hw_queue)].refused.matters() {
                self.run_beside_flush(now, hw_queue, disk);
                continue;
            }
            self.run_scheduler(now, hw_queue, disk);
        }
        self.to_run.clear();
    }

    /// Issues what the scheduler gives. When it gives no more, and has given something, it is asked once more
    /// (`blk_mq_do_dispatch_sched`), which may change what it gives later.
    #[inline]
    fn run_scheduler(&mut self, now: Nanos, hw_queue: u16, disk: &mut AnyDisk) {
        let mut has_given = false;
        while self.scheduler.waiting() > 0 {
            let queue = &mut self.hw_queues[usize::from(hw_queue)];
            if queue.in_flight >= self.limits.queue_depth {
                queue.restart = true;
                return;
            }
            match self.scheduler.dispatch(&queue!(self, now), hw_queue) {
                Some(id) => {
                    self.issue(now, id, disk);
                    has_given = true;
                }
                None if has_given && !self.scheduler.is_settled(now) => has_given = false,
                None => return self.try_later(now, hw_queue),
            }
        }
    }

    /// The same for a driver that peeks at the next request before it checks the disk. The peeked
    /// request is out of the scheduler, takes no merges and goes before all others, until the disk
    /// takes it (`scsi_request_fn`, `blk_peek_request`).
    fn run_peeking(&mut self, now: Nanos, disk: &mut AnyDisk) {
        if self.probes_waiting > 0 {
            self.mark(0);
        }
        for index in 0..self.flushes.without_room.len() {
            self.mark(self.flushes.without_room[index]);
        }
        for index in 0..self.to_run.len() {
            let hw_queue = self.to_run[index];
            self.hw_queues[usize::from(hw_queue)].to_run = false;
            match self.rules.runs_queue_of_cpu && self.limits.hw_queues > 1 {
                true => self.run_for_all(now, hw_queue, disk),
                false => self.run_peeking_one(now, hw_queue, disk),
            }
        }
        self.to_run.clear();
    }

    /// A command that passes the scheduler by waits for the disk.
    #[inline]
    fn queue_command_waits(&self) -> bool {
        self.probes_waiting > 0 || !self.flushes.without_room.is_empty()
    }

    fn run_peeking_one(&mut self, now: Nanos, hw_queue: u16, disk: &mut AnyDisk) {
        let index = usize::from(hw_queue);
        let has_flush = self.flushes.waiting(hw_queue).is_some();
        if self.hw_queues[index].parked.is_some() || has_flush {
            // Set before the second try, and not reset when the disk takes the request
            // (`__blk_mq_sched_dispatch_requests`).
            self.hw_queues[index].restart = true;
        }
        loop {
            if self.flushes.excludes {
                // Not even peeked at (`queue_flush_queueable`).
                self.hw_queues[index].restart = true;
                return;
            }
            // In front of what was peeked at (`ELEVATOR_INSERT_FRONT`).
            if hw_queue == 0
                && self.probes_waiting > 0
                && self.hw_queues[0].in_flight < self.limits.queue_depth
            {
                self.issue_probe(now, disk);
                continue;
            }
            let flush = self.flushes.waiting(hw_queue);
            if self.hw_queues[index].parked.is_none() && flush.is_none() {
                let mut next = self.flushes.first.pop_front();
                if next.is_none() {
                    if !self.rules.asks_in_vain && !self.scheduler.has_work(hw_queue) {
                        return;
                    }
                    next = self.scheduler.dispatch(&queue!(self, now), hw_queue);
                }
                self.hw_queues[index].parked = next;
                if next.is_none() {
                    self.try_later(now, hw_queue);
                    return;
                }
            }
            if self.hw_queues[index].in_flight >= self.limits.queue_depth {
                self.hw_queues[index].restart = true;
                return;
            }
            if let Some(id) = self.hw_queues[index].parked.take() {
                self.issue(now, id, disk);
            } else if let Some(flush) = flush {
                self.flushes.has_room(hw_queue);
                self.issue(now, flush, disk);
            }
        }
    }

    /// The same where the scheduler gives this hardware queue the requests of all. As many leave it as there are tags
    /// for, and then go to their own queues, one queue after the other (`blk_mq_dispatch_hctx_list`). One for which
    /// there is no tag goes to the list of its queue (`hctx->dispatch`), before all others.
    fn run_for_all(&mut self, now: Nanos, hw_queue: u16, disk: &mut AnyDisk) {
        if !self.issue_left(now, hw_queue, disk) {
            return;
        }
        let mut given = std::mem::take(&mut self.given);
        loop {
            let mut has_tag = true;
            while has_tag
                && self.hw_queues[usize::from(hw_queue)].refused.is_empty()
                && self.scheduler.has_work(hw_queue)
                && let Some(id) = self.scheduler.dispatch(&queue!(self, now), hw_queue)
            {
                given.push(id);
                has_tag = self.has_tag_for_last(&given);
            }
            if given.is_empty() {
                if self.hw_queues[usize::from(hw_queue)].refused.is_empty() {
                    self.try_later(now, hw_queue);
                }
                break;
            }
            let before = self.in_flight;
            given.sort_by_key(|&id| self.requests[id].hw_queue);
            for id in given.drain(..) {
                let own = &mut self.hw_queues[usize::from(self.requests[id].hw_queue)];
                match own.in_flight < self.limits.queue_depth {
                    true => self.issue(now, id, disk),
                    false => {
                        own.refused.put_last(id);
                        own.restart = true;
                    }
                }
            }
            if self.in_flight == before {
                break;
            }
        }
        self.given = given;
    }

    /// Whether the driver has a tag for the last of these requests, which all need one.
    #[inline]
    fn has_tag_for_last(&self, given: &[RequestId]) -> bool {
        let Some(&last) = given.last() else { return true };
        let own = self.requests[last].hw_queue;
        let free =
            self.limits.queue_depth.saturating_sub(self.hw_queues[usize::from(own)].in_flight) as usize;
        let is_of_own = |&&id: &&RequestId| self.requests[id].hw_queue == own;
        given.len() <= free || given.iter().filter(is_of_own).count() <= free
    }

    /// Issues a flush of the hardware queue, and what earlier runs have left. False if there is no tag for one of them.
    fn issue_left(&mut self, now: Nanos, hw_queue: u16, disk: &mut AnyDisk) -> bool {
        let index = usize::from(hw_queue);
        loop {
            let flush = self.flushes.waiting(hw_queue);
            if flush.is_none() && self.hw_queues[index].refused.is_empty() {
                return true;
            }
            // Set before the second try, and not reset when the disk takes the request.
            self.hw_queues[index].restart = true;
            if self.hw_queues[index].in_flight >= self.limits.queue_depth {
                return false;
            }
            if flush.is_some() {
                self.flushes.has_room(hw_queue);
            }
            if let Some(next) = flush.or_else(|| self.hw_queues[index].refused.take_first()) {
                self.issue(now, next, disk);
            }
        }
    }

    /// The scheduler has requests but dispatches none: the worker asks again later, unless it is
    /// woken before (`blk_mq_delay_run_hw_queues`).
    pub(super) fn try_later(&mut self, now: Nanos, hw_queue: u16) {
        if self.rules.always_restarts || !self.scheduler.has_work(hw_queue) {
            return;
        }
        let due = self.limits.ticks.timer(now, self.limits.ticks.span(BUDGET_DELAY));
        let queues = match self.rules.runs_queue_of_cpu {
            true => hw_queue..hw_queue + 1,
            false => 0..self.limits.hw_queues,
        };
        for hw_queue in queues {
            // A time that is planned stays.
            if self.hw_queues[usize::from(hw_queue)].due == Nanos::NEVER {
                self.plan_run(hw_queue, due);
            }
        }
    }

    #[inline]
    pub(super) fn issue(&mut self, now: Nanos, id: RequestId, disk: &mut AnyDisk) {
        self.account(now);
        self.waiting -= 1;
        self.in_flight += 1;
        let request = &mut self.requests[id];
        request.issued = now;
        if let Some(wbt) = &mut self.wbt {
            wbt.issued(now, id);
        }
        let hw_queue = &mut self.hw_queues[usize::from(request.hw_queue)];
        hw_queue.in_flight += 1;
        if request.op == Op::Flush && self.driver_keeps_flush() {
            return;
        }
        self.give(now, id, disk);
    }

    /// Gives the disk the command of a request.
    #[inline]
    pub(super) fn give(&self, now: Nanos, id: RequestId, disk: &mut AnyDisk) {
        let request = &self.requests[id];
        let command = Command {
            tag: Tag(id.0),
            op: request.op,
            sector: request.sector,
            sectors: request.sectors,
            fua: request.fua && !self.flush_after_fua,
            // Linux leaves NCQ priorities off (`ncq_prio_enable`).
        };
        disk.submit(now, command);
    }

    /// A command without data, which needs no tag and passes the scheduler by.
    #[cold]
    fn issue_probe(&mut self, now: Nanos, disk: &mut AnyDisk) {
        self.probes_waiting -= 1;
        self.account(now);
        self.waiting += 1;
        let id = self.requests.insert(Request {
            op: Op::Discard,
            sync: true,
            process: ProcessId::KERNEL,
            clock_stands: false,
            inserted: now,
            ..Request::default()
        });
        self.probes.push(id);
        self.issue(now, id, disk);
    }

    /// The command that completed is one of [`Block::issue_probe`].
    #[cold]
    pub(super) fn probe_ended(&mut self, id: RequestId) -> bool {
        let Some(index) = self.probes.iter().position(|&probe| probe == id) else { return false };
        self.probes.swap_remove(index);
        self.requests.remove(id);
        self.hw_queues[0].in_flight -= 1;
        self.mark(0);
        true
    }
}
