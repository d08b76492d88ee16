//! The dispatch of multi-queue schedulers before Linux 4.14, which empties them while the disk is full.
//!
//! Nothing checked whether the disk takes one more before a request left the scheduler: the driver
//! refused it, and it went to the front of a list of its own (`hctx->dispatch`), where it takes no
//! merges. Each run of the hardware queue tries that list first. If the disk takes nothing of it, the run
//! takes **one more request out of the scheduler**, which is refused too. A submitter runs the queue after
//! each insertion, so that on a full disk every request leaves the scheduler as soon as it comes: nothing
//! waits there to be sorted or to be merged with, and the latest request goes first. Linux 4.14 leaves requests in the scheduler
//! while the list has any; since 4.15 a budget of the disk is taken first.
//!
//! Under `none` a run that finds the list empty takes all that waits, in order of arrival.
//!
//! Read from `blk_mq_sched_dispatch_requests` and `blk_mq_dispatch_rq_list`; held against a real 4.12.4, on
//! which none, mq-deadline, kyber and bfq merge nothing of 6,144 sequential I/Os with 64 in flight, where
//! the single-queue schedulers merge a third.

use super::{Block, Worker};
use crate::disk::AnyDisk;
use crate::units::Nanos;

impl Block {
    /// Runs a hardware queue.
    #[cold]
    pub(super) fn run_draining(&mut self, now: Nanos, hw_queue: u16, disk: &mut AnyDisk) {
        let index = usize::from(hw_queue);
        let had_refused = self.hw_queues[index].refused.len();
        if had_refused > 0 {
            self.hw_queues[index].refused.set_tried();
            self.issue_from_list(now, hw_queue, disk);
            if self.hw_queues[index].refused.len() < had_refused {
                return;
            }
        }
        if self.is_none {
            if had_refused == 0 {
                while let Some(id) = self.take_queued(now, hw_queue) {
                    self.hw_queues[index].refused.put_last(id);
                }
                self.issue_from_list(now, hw_queue, disk);
                self.run_once_more_unless_tried(hw_queue);
            }
            return;
        }
        while self.scheduler.has_work(hw_queue) {
            let Some(id) = self.scheduler.dispatch(&queue!(self, now), hw_queue) else { return };
            self.hw_queues[index].refused.put_first(id);
            if !self.takes_refused(hw_queue) {
                return self.run_once_more_unless_tried(hw_queue);
            }
            if let Some(id) = self.hw_queues[index].refused.take_first() {
                self.issue(now, id, disk);
            }
        }
    }

    /// The disk has refused a request. The next completion runs the queue again; until a run has found the list
    /// in use, the worker does so at once, unless the list waits for one of the driver's tags.
    fn run_once_more_unless_tried(&mut self, hw_queue: u16) {
        let queue = &mut self.hw_queues[usize::from(hw_queue)];
        if queue.refused.is_empty() {
            return;
        }
        queue.restart = true;
        if self.rules.spare_tags && !queue.refused.is_tried() {
            self.wakes_itself = true;
            self.wake_worker(hw_queue, Worker::OnAny);
        }
    }
}
