//! When a hardware queue is run by its worker (`kblockd`), and when by a completion.
//!
//! A submitter without a plug leaves the dispatch to the worker, on its own CPU, where the worker runs when
//! the submitter sleeps. Until then a scheduler can sort and merge. Other processes that sleep there meanwhile
//! do not matter: the submitter has the CPU.

use super::Block;
use crate::disk::AnyDisk;
use crate::request::ProcessId;
use crate::units::Nanos;

/// The worker of a hardware queue (`kblockd`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Worker {
    #[default]
    Asleep,
    /// It runs when that thread sleeps.
    After(ProcessId),
    /// It wakes itself: nothing keeps its CPU busy.
    OnAny,
}

impl Worker {
    /// It runs when `thread` sleeps.
    fn is_after(self, thread: ProcessId) -> bool {
        self == Worker::OnAny || self == Worker::After(thread)
    }
}

/// Why a completion runs its hardware queue.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Restart {
    /// Its driver has refused a request (`BLK_MQ_S_SCHED_RESTART`).
    Refused,
    /// That, or the disk was full (SCSI's `restarts`).
    RefusedOrFull,
    /// Only that the disk was full.
    Full,
}

impl Block {
    /// `thread` sleeps: the workers run that it woke last.
    #[inline]
    pub fn run_worker(&mut self, now: Nanos, thread: ProcessId, disk: &mut AnyDisk) {
        if self.worker_woken && self.mark_workers_after(thread) {
            if self.worker_due != Nanos::NEVER && self.limits.hw_queues == 1 {
                // It does now what was planned for later.
                self.run_at_once(0);
            }
            self.run(now, disk);
        }
    }

    /// Marks each hardware queue with a worker that waits for `thread`. Returns whether any worker does, that of the
    /// flushes included.
    fn mark_workers_after(&mut self, thread: ProcessId) -> bool {
        let mut any = self.flushes.worker.is_after(thread);
        if any {
            self.flushes.worker = Worker::OnAny;
        }
        self.worker_woken = !any && self.flushes.worker != Worker::Asleep;
        for (hw_queue, queue) in (0..).zip(&mut self.hw_queues) {
            if queue.worker == Worker::Asleep {
                continue;
            }
            if !queue.worker.is_after(thread) {
                self.worker_woken = true;
                continue;
            }
            queue.worker = Worker::Asleep;
            any = true;
            if queue.marked() {
                self.to_run.push(hw_queue);
            }
        }
        any
    }

    /// Wakes the worker of a hardware queue. One that already waits for another thread, or for a later
    /// time, waits for this one (`kblockd_mod_delayed_work_on`).
    #[inline]
    pub(super) fn wake_worker(&mut self, hw_queue: u16, worker: Worker) {
        self.hw_queues[usize::from(hw_queue)].worker = worker;
        self.worker_woken = true;
        self.not_later(hw_queue);
    }

    /// Wakes the workers of the hardware queues that the scheduler asks to be run, outside of a completion. `thread` is the
    /// cause; `own` is the hardware queue of its CPU.
    #[cold]
    pub(super) fn wake_asked(&mut self, thread: ProcessId, own: u16) {
        while let Some(hw_queue) = self.scheduler.woken() {
            if hw_queue == own || !self.rules.runs_queue_of_cpu {
                self.wake_worker(hw_queue, Worker::After(thread));
            }
        }
    }

    /// After a completion: runs the hardware queue for these reasons, if it may dispatch a request.
    #[inline]
    pub(super) fn restart(&mut self, hw_queue: u16, why: Restart) {
        let queue = &mut self.hw_queues[usize::from(hw_queue)];
        let mut restarts = queue.refused.command_ended(why != Restart::Full);
        // Only SCSI's budget is a reason of its own.
        if why == Restart::RefusedOrFull || (why == Restart::Full) != self.rules.peeks {
            restarts |= std::mem::take(&mut queue.restart) | self.rules.always_restarts;
        }
        if restarts && self.has_pending(hw_queue) {
            self.run_at_once(hw_queue);
            // The worker was asked for this last.
            self.flushes.goes_first = true;
        }
    }

    /// A run of the hardware queue may find something to dispatch (`blk_mq_hctx_has_pending`). The single-queue layer
    /// asks its scheduler in any case (`blk_run_queue`).
    #[inline]
    fn has_pending(&self, hw_queue: u16) -> bool {
        let queue = &self.hw_queues[usize::from(hw_queue)];
        let has_own = || queue.parked.is_some() || self.flushes.waiting(hw_queue).is_some();
        self.scheduler.waiting() > 0
            || !queue.refused.is_empty()
            || self.rules.peeks && (self.rules.always_restarts || has_own() || !self.flushes.first.is_empty())
    }

    /// The worker runs a hardware queue at once, and not again at the time that it had planned.
    #[inline]
    pub(super) fn run_at_once(&mut self, hw_queue: u16) {
        self.mark(hw_queue);
        self.not_later(hw_queue);
    }

    /// The worker of that hardware queue runs earlier than it has planned to: a work of Linux is queued once.
    #[inline]
    pub(super) fn not_later(&mut self, hw_queue: u16) {
        if self.hw_queues[usize::from(hw_queue)].due != Nanos::NEVER {
            self.plan_run(hw_queue, Nanos::NEVER);
        }
    }

    /// The worker of that hardware queue runs at that time; each has a time of its own.
    pub(super) fn plan_run(&mut self, hw_queue: u16, due: Nanos) {
        self.hw_queues[usize::from(hw_queue)].due = due;
        self.worker_due = self.hw_queues.iter().map(|queue| queue.due).min().unwrap_or(Nanos::NEVER);
    }

    /// Runs each hardware queue whose worker is due.
    pub(super) fn run_due(&mut self, now: Nanos) {
        for hw_queue in 0..self.limits.hw_queues {
            if self.hw_queues[usize::from(hw_queue)].due <= now {
                self.run_at_once(hw_queue);
            }
        }
    }
}
