//! Flushes of the disk's cache (`blk-flush.c` of Linux 7.3).
//!
//! A bio that flushes has a request, and so a tag, like any other, but that request does not go to the
//! disk: it waits for a flush, which is a request of its own. Each hardware queue has one flush under way at a time. All bios
//! of that queue that wait when it is made share it, and those that come later share the next one.
//!
//! A flush passes the scheduler by: the worker puts it in front of the requests that the driver has
//! refused (`hctx->dispatch`), and then runs the queue. The worker's two works, this one
//! (`blk_mq_requeue_work`) and a run of the queue, are done in the order in which they were asked for
//! last. So when a flush ends and the next one is due, requests that were refused for the first one go
//! before the second if nothing was out of a budget meanwhile, and after it otherwise. Each of them runs the
//! queue, so that a flush which goes first is followed by a second run, unless the driver has refused a request in the
//! first one: that puts the run off (`blk_mq_delay_run_hw_queue`).
//!
//! On a disk without FUA a durable write is followed by a flush, and no flush begins while the data of
//! such a write are under way, so that several share one.

use std::collections::VecDeque;

use super::wbt::Kind;
use super::{Block, Manner, Restart, Submitted, Worker};
use crate::disk::AnyDisk;
use crate::request::{Bio, Op, ProcessId, Request, RequestId};
use crate::units::Nanos;

/// A flush that has been due for so long no longer waits for durable writes (`FLUSH_PENDING_TIMEOUT`).
const PATIENCE: Nanos = Nanos::from_secs(5);

/// A bio that waits for a flush, with the tag of its request. One with data goes to the disk afterwards.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiter {
    pub owner: u64,
    pub tag: u32,
    pub hw_queue: u16,
    pub cpu: u16,
    pub sync: bool,
    /// Its place in the throttle of writeback.
    pub kind: Kind,
    /// When it was submitted; `None` for a durable write, which the scheduler has seen complete.
    pub since: Option<Nanos>,
    /// The bio, if it has data that go to the disk after the flush.
    pub data: Option<Bio>,
}

/// A write with data that had to wait for a flush, which has ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct AfterFlush {
    id: RequestId,
    /// When its bio was submitted.
    submitted: Nanos,
    /// The scheduler does not know it.
    passes: bool,
}

/// The flush of a hardware queue that is under way, and those that come after it (`struct blk_flush_queue`).
#[derive(Debug, Default)]
pub(super) struct FlushQueue {
    /// They share the next flush (`flush_queue`).
    pending: Vec<Waiter>,
    /// Since when there are any.
    pending_since: Nanos,
    /// They share the one under way.
    pub running: Vec<Waiter>,
    /// The flush under way.
    pub request: Option<RequestId>,
}

/// The flushes of all hardware queues.
#[derive(Debug, Default)]
pub(super) struct Flushes {
    /// Those of each hardware queue.
    pub queues: Vec<FlushQueue>,
    /// Hardware queues with a flush for which the driver has no room yet ([`super::rules::Rules::peeks`]).
    pub without_room: Vec<u16>,
    /// Hardware queues with a flush that is not in the hands of the driver yet: the worker brings it (`flush_list`).
    new: Vec<u16>,
    /// They shared the one that has just ended; the last is the first.
    ended: Vec<Waiter>,
    /// Data whose flush has ended, on their way to the scheduler; the last came first (`requeue_list`).
    requeued: Vec<RequestId>,
    /// Data after a flush that are not on the disk yet (`flush_data_in_flight`).
    pub data: Vec<AfterFlush>,
    /// Those that pass the scheduler by, before a driver that peeks.
    pub first: VecDeque<RequestId>,
    /// The worker that must bring the flush to the driver; where it was made at a completion, nothing
    /// keeps its CPU busy.
    pub worker: Worker,
    /// Before it runs the queue.
    pub goes_first: bool,
    /// The driver has refused a request: the queue runs again after some time, not at once.
    pub puts_off_run: bool,
    /// The driver has a flush and takes nothing else ([`super::rules::Rules::flush_alone`]).
    pub excludes: bool,
    /// The driver keeps it until the disk has nothing else to do.
    pub deferred: bool,
}

impl Flushes {
    pub fn new(hw_queues: u16) -> Flushes {
        let queues = std::iter::repeat_with(FlushQueue::default).take(hw_queues.into()).collect();
        Flushes { queues, ..Flushes::default() }
    }

    /// The flush of that hardware queue that waits for room.
    #[inline]
    pub fn waiting(&self, hw_queue: u16) -> Option<RequestId> {
        let request = self.queues[usize::from(hw_queue)].request;
        request.filter(|_| self.without_room.contains(&hw_queue))
    }

    /// There is room for that one.
    pub fn has_room(&mut self, hw_queue: u16) {
        self.without_room.retain(|&other| other != hw_queue);
    }
}

impl Block {
    /// See [`Block::submit`]; for a flush, which is an empty write (`blkdev_issue_flush`).
    #[cold]
    pub(super) fn take_flush(
        &mut self,
        now: Nanos,
        bio: &Bio,
        manner: Manner,
        disk: &mut AnyDisk,
    ) -> Submitted {
        if manner.is_first() && !self.has_place(now, bio) {
            return Submitted::NoPlace;
        }
        let write = Bio { op: Op::Write, ..*bio };
        if manner.woken {
            self.run_for_tag(now, bio.hw_queue, disk);
        }
        let most = manner.again.unwrap_or_else(|| self.depth_limit(now, &write));
        let Some(tag) = self.take_tag(&write, most) else {
            if manner.again.is_none() {
                self.run_for_tag(now, bio.hw_queue, disk);
            }
            return Submitted::NoRequest(most);
        };
        self.hw_queues[usize::from(bio.hw_queue)].allocated[usize::from(bio.sync)] += 1;
        let (owner, hw_queue, cpu, sync) = (bio.owner, bio.hw_queue, bio.cpu, bio.sync);
        let data = (bio.sectors > 0).then_some(*bio);
        let kind = Kind::Write;
        self.await_flush(now, Waiter { owner, tag, hw_queue, cpu, sync, kind, since: Some(now), data });
        self.worker_woken |= self.kick_flush(now, hw_queue, Worker::After(bio.thread));
        Submitted::Taken
    }

    /// A bio waits for a flush from now on.
    fn await_flush(&mut self, now: Nanos, waiter: Waiter) {
        let queue = &mut self.flushes.queues[usize::from(waiter.hw_queue)];
        if queue.pending.is_empty() {
            queue.pending_since = now;
        }
        queue.pending.push(waiter);
    }

    /// Makes the hardware queue's next flush, if one is due, for the worker to bring to the driver (`blk_kick_flush`).
    /// True if one was made.
    fn kick_flush(&mut self, now: Nanos, hw_queue: u16, worker: Worker) -> bool {
        let queue = &self.flushes.queues[usize::from(hw_queue)];
        let Some(&Waiter { cpu, .. }) = queue.pending.first().filter(|_| queue.request.is_none()) else {
            return false;
        };
        // `flush_data_in_flight`
        let is_here = |data: &AfterFlush| self.requests[data.id].hw_queue == hw_queue;
        let is_durable = |request: &Request| request.fua && request.hw_queue == hw_queue;
        let writes = self.flushes.data.iter().any(is_here)
            || self.flush_after_fua && self.requests.iter().any(is_durable);
        if writes && now < queue.pending_since + PATIENCE {
            return false;
        }
        let queue = &mut self.flushes.queues[usize::from(hw_queue)];
        std::mem::swap(&mut queue.pending, &mut queue.running);
        self.account(now);
        self.waiting += 1;
        let id = self.requests.insert(Request {
            op: Op::Flush,
            sync: true,
            process: ProcessId::KERNEL,
            cpu,
            hw_queue,
            clock_stands: false,
            inserted: now,
            ..Request::default()
        });
        self.flushes.queues[usize::from(hw_queue)].request = Some(id);
        self.flushes.new.push(hw_queue);
        self.wake_with_flush(worker);
        true
    }

    /// The worker is to bring a flush, or data after one.
    fn wake_with_flush(&mut self, worker: Worker) {
        self.flushes.worker = worker;
        self.flushes.goes_first = self.to_run.is_empty() && self.hw_queues[0].worker == Worker::Asleep;
    }

    /// The flush that data waited for has ended: they go to the scheduler, before all others
    /// (`REQ_FSEQ_DATA`).
    fn requeue_data(&mut self, now: Nanos, bio: &Bio, waiter: &Waiter) {
        let id = self.request_of(now, bio, waiter.tag);
        // Never merged (`RQF_FLUSH_SEQ`).
        self.requests[id].full = true;
        if let Some(wbt) = &mut self.wbt {
            wbt.track(id, bio);
        }
        self.flushes.requeued.push(id);
        self.flushes.data.push(AfterFlush { id, submitted: waiter.since.unwrap_or(now), passes: false });
        self.wake_with_flush(Worker::OnAny);
    }

    /// Data whose flush has ended go to the scheduler, before all others, or pass it by.
    fn insert_first(&mut self, now: Nanos, id: RequestId) {
        if self.scheduler.insert_first(&queue!(self, now), id) {
            return;
        }
        self.flushes.data.iter_mut().filter(|data| data.id == id).for_each(|data| data.passes = true);
        match self.rules.peeks {
            true => self.flushes.first.push_front(id),
            false => self.hw_queues[usize::from(self.requests[id].hw_queue)].refused.put_first(id),
        }
    }

    /// The scheduler is told that a request has completed, which for data after a flush began with its
    /// submission.
    #[cold]
    pub(super) fn completed_since(&mut self, now: Nanos, id: RequestId) {
        let Some(&data) = self.flushes.data.iter().find(|data| data.id == id) else {
            return self.scheduler.completed(&queue!(self, now), id);
        };
        if !data.passes {
            let inserted = std::mem::replace(&mut self.requests[id].inserted, data.submitted);
            self.scheduler.completed(&queue!(self, now), id);
            self.requests[id].inserted = inserted;
        }
    }

    /// A command of that hardware queue has ended: if it wrote data after a flush, the next flush may begin.
    #[cold]
    pub(super) fn data_ended(&mut self, now: Nanos, id: RequestId, hw_queue: u16) {
        if let Some(place) = self.flushes.data.iter().position(|data| data.id == id) {
            self.flushes.data.swap_remove(place);
            self.kick_flush(now, hw_queue, Worker::OnAny);
        }
    }

    /// The worker brings the flush to the driver, before or after it runs the queue
    /// (`blk_mq_requeue_work`).
    #[cold]
    pub(super) fn run_with_flush(&mut self, now: Nanos, disk: &mut AnyDisk) {
        if !self.flushes.goes_first && !self.to_run.is_empty() {
            self.run_marked(now, disk);
        }
        self.flushes.worker = Worker::Asleep;
        let asked_for = self.to_run.clone();
        while let Some(id) = self.flushes.requeued.pop() {
            self.insert_first(now, id);
            self.mark(self.requests[id].hw_queue);
        }
        for hw_queue in std::mem::take(&mut self.flushes.new) {
            match (self.rules.peeks, self.flushes.queues[usize::from(hw_queue)].request) {
                (false, Some(flush)) => self.hw_queues[usize::from(hw_queue)].refused.put_first(flush),
                _ => self.flushes.without_room.push(hw_queue),
            }
            self.mark(hw_queue);
        }
        if !self.rules.peeks && !asked_for.is_empty() {
            self.flushes.puts_off_run = false;
            self.run_marked(now, disk);
            if !self.flushes.puts_off_run {
                asked_for.into_iter().for_each(|hw_queue| self.mark(hw_queue));
            }
        }
    }

    /// Commands have ended: a flush that the driver keeps goes to the disk, if that has nothing else to do
    /// now (`ata_scsi_schedule_deferred_qc`). Call it before [`Block::run`].
    #[inline]
    pub fn start_kept_flush(&mut self, now: Nanos, disk: &mut AnyDisk) {
        if self.flushes.deferred {
            self.start_deferred(now, disk);
        }
    }

    #[cold]
    fn start_deferred(&mut self, now: Nanos, disk: &mut AnyDisk) {
        let flush = self.flushes.queues[0].request.filter(|_| self.hw_queues[0].in_flight == 1);
        if let Some(flush) = flush {
            self.flushes.deferred = false;
            self.give(now, flush, disk);
        }
    }

    /// The driver has the flush, beside which it may take nothing else. True if the driver does not pass it to
    /// the disk yet.
    #[cold]
    pub(super) fn driver_keeps_flush(&mut self) -> bool {
        self.flushes.excludes = self.rules.flush_alone;
        self.flushes.deferred = self.rules.flush_alone && self.hw_queues[0].in_flight > 1;
        self.flushes.deferred
    }

    /// A flush has ended, or the data of a write that needs one. What runs the queue because a request was
    /// refused and because a budget was comes before and after the next flush is made.
    #[cold]
    pub(super) fn complete_flushing(&mut self, now: Nanos, id: RequestId) -> bool {
        let request = &self.requests[id];
        let (hw_queue, cpu, sync, owner) = (request.hw_queue, request.cpu, request.sync, request.owner);
        if request.op == Op::Flush {
            let queue = &mut self.flushes.queues[usize::from(hw_queue)];
            queue.request = None;
            let waiters = std::mem::take(&mut queue.running);
            self.flushes.excludes = false;
            // They are looked at one after the other, and each time the next flush is made if no data are
            // under way. Only those that end free a request, which runs the queue if one was refused.
            let mut restart = Restart::Full;
            for waiter in waiters {
                match waiter.data {
                    Some(bio) => self.requeue_data(now, &bio, &waiter),
                    None => {
                        self.restart(hw_queue, Restart::Refused);
                        restart = Restart::RefusedOrFull;
                        self.flushes.ended.push(waiter);
                    }
                }
                self.kick_flush(now, hw_queue, Worker::OnAny);
            }
            self.flushes.ended.reverse();
            self.requests.remove(id);
            self.restart(hw_queue, restart);
        } else {
            let tag = self.tag_of[id.index()];
            self.requests[id].fua = false;
            self.flushes.data.retain(|data| data.id != id);
            let kind = self.wbt.as_mut().map(|wbt| wbt.take_kind(id)).unwrap_or_default();
            let (since, data) = (None, None);
            self.await_flush(now, Waiter { owner, tag, hw_queue, cpu, sync, kind, since, data });
            self.kick_flush(now, hw_queue, Worker::OnAny);
            self.requests.remove(id);
            self.restart(hw_queue, Restart::RefusedOrFull);
        }
        !self.flushes.ended.is_empty()
    }

    /// A bio that shared the flush that has ended: its owner is appended to `owners` before its tag is
    /// free; false if there are no more (`flush_end_io`).
    #[cold]
    pub fn end_next_of_flush(&mut self, now: Nanos, owners: &mut Vec<u64>) -> bool {
        let Some(waiter) = self.flushes.ended.pop() else { return false };
        if let Some(since) = waiter.since {
            self.scheduler.flush_ended(&queue!(self, now), since);
        }
        let cpu = self.limits.software_queue(waiter.cpu);
        self.hw_queues[usize::from(waiter.hw_queue)].free(waiter.sync, waiter.tag, cpu);
        owners.push(waiter.owner);
        if let Some(wbt) = self.wbt.as_mut().filter(|_| waiter.kind == Kind::Write) {
            wbt.give_back(now, waiter.kind);
            owners.extend(wbt.take_woken());
        }
        true
    }
}
