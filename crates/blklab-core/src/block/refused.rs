//! Requests that the driver has refused, and a flush on its way to the driver (`hctx->dispatch`).
//!
//! Under a scheduler a request is refused only while a SATA disk flushes its cache, beside which libata
//! lets nothing else go; see [`Block::run_beside_flush`]. A flush passes the scheduler by, and is refused
//! if the disk is full. Under `none` nothing checks whether the disk takes one more before a request leaves the plug or
//! the software queue, and SCSI refuses the request while the disk is full. It then waits in a list
//! of its own (`hctx->dispatch`), which goes before all others and takes no merges. After
//! `blk-mq.c` and `blk-mq-sched.c` of Linux 7.3:
//!
//! * A plug is issued in order. The first request that is refused ends this, and the rest goes to
//!   the software queue, where bios may still merge with it (`blk_mq_issue_direct`).
//! * A request without a plug goes to the software queue.
//! * A run of the queue takes everything out of the software queue at once, so that all that the disk
//!   does not take is refused (`blk_mq_flush_busy_ctxs`).
//! * While requests have lately been refused the queue is *busy* (`dispatch_busy`): a run takes them
//!   one by one, each only if the disk takes it, and a request without a plug is left to the worker.
//! * After a refusal the queue runs again with the next completion, or after 3 ms.
//!
//! Without a flush only a disk that takes fewer commands than the host adapter has tags refuses
//! anything, such as SATA without NCQ.
//!
//! Before Linux 7 the flush itself is refused while the disk has anything else to do, and since it is
//! the first of the list, nothing else goes until then ([`super::rules::Rules::keeps_flush`]).
//!
//! A driver that refuses a request beside a flush blocks the disk: until a command ends, SCSI gives no
//! budget, and the driver is not asked (`device_blocked`).

use std::collections::VecDeque;

use super::{Block, Worker};
use crate::disk::AnyDisk;
use crate::request::{Bio, Op, RequestId};
use crate::scheduler::{AnyScheduler, Scheduler};
use crate::units::Nanos;

/// A refused request is tried again after this time (`BLK_MQ_RESOURCE_DELAY`).
const RESOURCE_DELAY: Nanos = Nanos::from_millis(3);
/// A new refusal counts this much in the average, of which it is an eighth (`EWMA_FACTOR`).
const REFUSAL: u32 = 1 << 4;

/// The refused requests of one hardware queue.
#[derive(Clone, Debug, Default)]
pub(super) struct Refused {
    requests: VecDeque<RequestId>,
    /// The list was tried since the last completion (`BLK_MQ_S_SCHED_RESTART`; that SCSI was out of
    /// budget, `restarts`, is not enough).
    tried: bool,
    /// The driver has refused a request since the last completion (`device_blocked`).
    blocked: bool,
    /// Average of refusals (`dispatch_busy`).
    busy: u32,
}

impl Refused {
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    /// A run of the queue must look at the list, or at what was refused lately.
    #[inline]
    pub fn matters(&self) -> bool {
        !self.is_empty() || self.is_busy()
    }

    pub fn len(&self) -> usize {
        self.requests.len()
    }

    /// It goes to the driver before all others: a flush (`BLK_MQ_INSERT_AT_HEAD`), or what was refused last
    /// before Linux 4.14.
    pub fn put_first(&mut self, id: RequestId) {
        self.requests.push_front(id);
    }

    pub fn put_last(&mut self, id: RequestId) {
        self.requests.push_back(id);
    }

    pub fn take_first(&mut self) -> Option<RequestId> {
        self.requests.pop_front()
    }

    /// A run tries the list.
    pub fn set_tried(&mut self) {
        self.tried = true;
    }

    /// A run has tried the list since the last completion.
    pub fn is_tried(&self) -> bool {
        self.tried
    }

    /// The same, and no longer.
    pub fn take_tried(&mut self) -> bool {
        std::mem::take(&mut self.tried)
    }

    /// Requests have lately been refused.
    #[inline]
    pub fn is_busy(&self) -> bool {
        self.busy > 0
    }

    /// The average of refusals.
    #[cfg(test)]
    pub fn busy(&self) -> u32 {
        self.busy
    }

    /// The disk has taken a request.
    #[inline]
    pub fn taken(&mut self) {
        if self.is_busy() {
            self.busy = self.busy * 7 / 8;
        }
    }

    /// A command has ended; true if the list was tried before and this `restarts` it.
    #[inline]
    pub fn command_ended(&mut self, restarts: bool) -> bool {
        self.blocked = false;
        restarts && self.take_tried()
    }

    fn refused(&mut self) {
        self.busy = (self.busy * 7 + REFUSAL) / 8;
    }
}

impl Block {
    /// The disk takes one more command.
    #[inline]
    pub(super) fn takes_one_more(&self, hw_queue: u16) -> bool {
        !self.is_out_of_budget(hw_queue) && !self.flushes.excludes
    }

    /// The driver takes the first of the refused requests.
    pub(super) fn takes_refused(&self, hw_queue: u16) -> bool {
        let queue = &self.hw_queues[usize::from(hw_queue)];
        let is_flush = |&id: &RequestId| self.requests[id].op == Op::Flush;
        let is_sent_back = self.rules.flush_alone
            && !self.rules.keeps_flush
            && queue.in_flight > 0
            && queue.refused.requests.front().is_some_and(is_flush);
        self.takes_one_more(hw_queue) && !is_sent_back
    }

    /// SCSI has no budget for one more command.
    #[inline]
    fn is_out_of_budget(&self, hw_queue: u16) -> bool {
        let queue = &self.hw_queues[usize::from(hw_queue)];
        queue.in_flight >= self.limits.queue_depth || queue.refused.blocked
    }

    /// A bio without a plug goes to the software queue, since the driver has lately refused others
    /// (`blk_mq_submit_bio`).
    #[inline]
    pub(super) fn leaves_to_the_worker(&self, bio: &Bio) -> bool {
        let busy = self.hw_queues[usize::from(bio.hw_queue)].refused.is_busy();
        busy && (self.limits.hw_queues == 1 || !bio.sync)
    }

    /// The driver refuses a request of a plug, if the disk is full. Otherwise false.
    #[cold]
    pub(super) fn refuse_one(&mut self, now: Nanos, id: RequestId, disk: &mut AnyDisk) -> bool {
        let hw_queue = self.requests[id].hw_queue;
        if self.takes_one_more(hw_queue) {
            return false;
        }
        let is_out_of_budget = self.is_out_of_budget(hw_queue);
        let queue = &mut self.hw_queues[usize::from(hw_queue)];
        if is_out_of_budget {
            queue.restart = true;
        } else {
            queue.refused.refused();
            queue.refused.blocked = true;
        }
        queue.refused.requests.push_back(id);
        self.run_refusing(now, hw_queue, disk);
        true
    }

    /// The driver itself refuses a request without a plug, because of a flush; otherwise false. Without a
    /// budget it would not be asked, and the request would go to the software queue
    /// (`blk_mq_try_issue_directly`).
    #[cold]
    pub(super) fn refused_beside_flush(&mut self, now: Nanos, id: RequestId, disk: &mut AnyDisk) -> bool {
        let hw_queue = self.requests[id].hw_queue;
        self.rules.refuses && !self.is_out_of_budget(hw_queue) && self.refuse_one(now, id, disk)
    }

    /// Runs a hardware queue (`__blk_mq_sched_dispatch_requests` without a scheduler).
    #[inline(never)]
    pub(super) fn run_refusing(&mut self, now: Nanos, hw_queue: u16, disk: &mut AnyDisk) {
        let index = usize::from(hw_queue);
        let had_refused = !self.hw_queues[index].refused.is_empty();
        if had_refused && !self.try_again(now, hw_queue, disk) {
            return;
        }
        if had_refused || self.hw_queues[index].refused.is_busy() {
            while self.scheduler.has_work(hw_queue) {
                if self.is_out_of_budget(hw_queue) {
                    self.hw_queues[index].restart = true;
                    return;
                }
                let AnyScheduler::None(software_queues) = &mut self.scheduler else { return };
                let Some(id) = software_queues.dispatch_in_turn(hw_queue) else { return };
                self.hw_queues[index].refused.requests.push_back(id);
                if !self.issue_taken_out(now, hw_queue, disk) {
                    return;
                }
            }
            return;
        }
        while let Some(id) = self.take_queued(now, hw_queue) {
            self.hw_queues[index].refused.requests.push_back(id);
        }
        if !self.hw_queues[index].refused.is_empty() {
            self.issue_taken_out(now, hw_queue, disk);
        }
    }

    /// Issues what has just been taken out of the queue; false if the disk does not take all of it.
    fn issue_taken_out(&mut self, now: Nanos, hw_queue: u16, disk: &mut AnyDisk) -> bool {
        if self.issue_refused(now, hw_queue, disk) {
            return true;
        }
        if !self.hw_queues[usize::from(hw_queue)].refused.tried {
            // Nothing else would run the queue again.
            self.wakes_itself = true;
            self.wake_worker(hw_queue, Worker::OnAny);
        }
        false
    }

    /// Runs a hardware queue under a scheduler while the driver has a flush or requests are or were lately
    /// refused: as many as the disk has room for, or one if the queue is busy, leave the scheduler before
    /// the driver is asked (`__blk_mq_do_dispatch_sched`).
    #[cold]
    pub(super) fn run_beside_flush(&mut self, now: Nanos, hw_queue: u16, disk: &mut AnyDisk) {
        let index = usize::from(hw_queue);
        if !self.hw_queues[index].refused.is_empty() && !self.try_again(now, hw_queue, disk) {
            return;
        }
        loop {
            let most = if self.hw_queues[index].refused.is_busy() { 1 } else { usize::MAX };
            while self.scheduler.waiting() > 0 && self.hw_queues[index].refused.requests.len() < most {
                let queue = &mut self.hw_queues[index];
                if queue.in_flight as usize + queue.refused.requests.len() >= self.limits.queue_depth as usize
                {
                    queue.restart = true;
                    break;
                }
                let Some(id) = self.scheduler.dispatch(&queue!(self, now), hw_queue) else {
                    if self.hw_queues[index].refused.is_empty() {
                        self.try_later(now, hw_queue);
                    }
                    break;
                };
                self.hw_queues[index].refused.requests.push_back(id);
            }
            if self.hw_queues[index].refused.is_empty() || !self.issue_taken_out(now, hw_queue, disk) {
                return;
            }
        }
    }

    /// Takes the first request out of the software queue, which is all of `none`.
    pub(super) fn take_queued(&mut self, now: Nanos, hw_queue: u16) -> Option<RequestId> {
        let AnyScheduler::None(software_queue) = &mut self.scheduler else { return None };
        software_queue.dispatch(&queue!(self, now), hw_queue)
    }

    /// Issues what was refused before; false if the disk does not take all of it.
    fn try_again(&mut self, now: Nanos, hw_queue: u16, disk: &mut AnyDisk) -> bool {
        // Set before the second try, and not reset when the disk takes the requests.
        self.hw_queues[usize::from(hw_queue)].refused.tried = true;
        self.issue_refused(now, hw_queue, disk)
    }

    /// Issues requests of the list in order, as far as the disk takes them.
    pub(super) fn issue_from_list(&mut self, now: Nanos, hw_queue: u16, disk: &mut AnyDisk) {
        while self.takes_refused(hw_queue)
            && let Some(id) = self.hw_queues[usize::from(hw_queue)].refused.take_first()
        {
            self.issue(now, id, disk);
        }
    }

    /// Issues requests of the list in order; false if the disk does not take all of them.
    fn issue_refused(&mut self, now: Nanos, hw_queue: u16, disk: &mut AnyDisk) -> bool {
        let index = usize::from(hw_queue);
        self.issue_from_list(now, hw_queue, disk);
        let is_out_of_budget = self.is_out_of_budget(hw_queue);
        let queue = &mut self.hw_queues[index];
        if queue.refused.is_empty() {
            queue.refused.taken();
            return true;
        }
        queue.refused.refused();
        queue.restart |= is_out_of_budget;
        queue.refused.blocked |= !is_out_of_budget;
        // A run that the worker was asked for is put off too (`blk_mq_delay_run_hw_queue`).
        queue.worker = Worker::Asleep;
        self.flushes.puts_off_run = true;
        self.plan_run(hw_queue, self.limits.ticks.timer(now, self.limits.ticks.span(RESOURCE_DELAY)));
        false
    }
}
