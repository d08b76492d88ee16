//! `bfq`: budget fair queueing.
//!
//! Follows Linux 7.3 (`block/bfq-iosched.c`, `bfq-wf2q.c`, `bfq-cgroup.c`).
//!
//! Each process has a queue, and one queue at a time is in service: until it has used up its
//! *budget*, a number of sectors, or its time, or has no more requests. B-WF2Q+
//! ([`wf2q`](super::shared::wf2q)) decides which queue comes next, and its share of the sectors,
//! from the weights of processes (by I/O priority) and cgroups. Shares are of sectors and not of
//! time, so that a process gets its share whatever the others do to the disk's throughput. But a
//! queue that seeks, or leaves the disk idle, is charged for its time in service.
//!
//! This folder coordinates: a request arrives (`arrive.rs`), is dispatched (`serve.rs`), completes
//! (`complete.rs`). BFQ's state and rules are in `parts/`, one struct each:
//!
//! * **Next request** of a queue: the nearest to the head, upwards first (`parts/requests.rs`).
//! * **Processes** and their queues (`tasks.rs`, `parts/tasks.rs`), and the turns and ages of queues
//!   (`parts/turn.rs`, `parts/age.rs`).
//! * **Budgets** grow for a queue that uses them up and shrink for a queue that does not
//!   (`parts/budgets.rs`). The largest is what the disk moves at its peak rate in `timeout_sync`
//!   (`parts/peak_rate.rs`).
//! * **Idling**: the disk idles for an empty queue for `slice_idle`, where that keeps throughput or
//!   shares (`idling.rs`, `parts/idle_timer.rs`, `parts/pace.rs`, `parts/queueing.rs`). Meanwhile
//!   BFQ may *inject* requests of other queues (`inject.rs`, `parts/injection.rs`,
//!   `parts/wakers.rs`).
//! * **Low latency**: weight-raising for queues that look interactive or soft real-time
//!   (`raise.rs`, `parts/raising.rs`, `parts/soft_rt.rs`), unless they came in a burst (`parts/burst.rs`).
//! * **Merging of queues** that read side by side or were created together, and splits
//!   (`parts/positions.rs`, `parts/sharing.rs`, `merging.rs`, `tasks.rs`).
//! * **Moves to another cgroup** take the process's queue with them (`moves.rs`).
//! * **Depth**: asynchronous requests, writes, and processes beyond their share may use fewer of
//!   the disk queue's requests (`parts/depth.rs`).
//!
//! With several hardware queues there is still one state and one order for all of them.
//!
//! Left out, and why that does not matter, or where it would:
//! * disks with several actuators: no disk here has them;
//! * `REQ_META`: the kernel serves a file system's metadata before data of the same queue. Requests
//!   here have no such mark: files are extents of the disk and have no metadata;
//! * processes that change priority during a run, and cgroups that come and go: job files and
//!   recordings have none;
//! * the fallback queue for a machine without free memory;
//! * nice values: a process without an I/O priority counts as best effort, level 4, as with nice 0;
//! * of two queues near a sector, one on either side, the kernel takes the one that the shape of
//!   its tree shows first; the model takes the lower one (`parts/positions.rs`).
//!
//! `blklab verify` compares the model with the kernel's BFQ, command by command. They are the same,
//! except where chance (the tag of a request) or a guest's nanoseconds decide.

mod arrive;
mod bio_merge;
mod budget;
mod complete;
mod entities;
mod idling;
mod inject;
mod merging;
mod moves;
mod parts;
mod queue;
mod raise;
mod serve;
mod tasks;
mod tunables;

use std::collections::VecDeque;

use super::journal::Journal;
use super::shared::merge::MergeIndex;
use super::shared::positions::Positions;
use super::shared::wf2q::Wf2q;
use super::{Generation, Info, Merge, Queue, QueueLimits, Scheduler, Settings, Tasks};
use crate::request::{Bio, Op, ProcessId, RequestId};
use crate::units::{Nanos, Sector};
use parts::QueueId;
use parts::budgets::Budgets;
use parts::burst::Burst;
use parts::clock::{Clock, Jiffies};
use parts::counts::Counts;
use parts::depth::Depths;
use parts::idle_timer::IdleTimer;
use parts::injection::Injection;
use parts::peak_rate::PeakRate;
use parts::queueing::QueueingWatch;
use parts::raising::Spans;
use parts::requests::Requests;
use parts::seek::DiskKind;
use parts::sharing::Sharing;
use parts::tasks::TaskIndex;
use parts::wakers::Wakers;
use queue::BfqQueue;
use tasks::ASYNC_QUEUES;
use tunables::{TUNABLES, Tuning};

/// The state of BFQ.
pub struct Bfq {
    tuning: Tuning,
    spans: Spans,
    depths: Depths,
    clock: Clock,
    journal: Journal,

    wf2q: Wf2q,
    /// By entity number.
    queues: Vec<BfqQueue>,
    tasks: parts::tasks::Tasks,
    sharing: Sharing,
    /// By group, [`ASYNC_QUEUES`] each.
    async_queues: Vec<Option<QueueId>>,
    /// By group: the queue created last, and the sectors of next requests.
    last_created: Vec<Option<QueueId>>,
    positions: Positions<QueueId>,

    requests: Requests,
    merges: MergeIndex,
    counts: Counts,
    /// Requests that go before all others, whatever their queue (`bfqd->dispatch`).
    first: VecDeque<RequestId>,
    /// Such a request is being inserted, by kblockd's worker.
    inserts_as_worker: bool,

    in_service: Option<QueueId>,
    /// Where the last request of the queue in service ended; 0: it had none yet.
    in_service_end: Sector,
    last_position: Sector,

    idle_timer: IdleTimer,
    budgets: Budgets,
    peak_rate: PeakRate,
    queueing: QueueingWatch,
    burst: Burst,
    wakers: Wakers,
    injection: Injection,
    /// There was nothing to dispatch in this tick, and nothing has changed since.
    settled: Option<Jiffies>,
}

impl Bfq {
    fn disk_kind(&self) -> DiskKind {
        DiskKind { rotational: self.tuning.rotational }
    }

    /// Sets the time of an event.
    #[inline]
    fn happens(&mut self, now: Nanos) {
        self.clock.set(now);
        self.settled = None;
    }

    /// The queue in service is empty: the requests of other queues may have to wait.
    pub fn keeps_the_disk_idle(&self) -> bool {
        self.in_service.is_some_and(|q| self.queues[q.index()].is_empty())
    }
}

impl Scheduler for Bfq {
    const INFO: Info = Info {
        name: "bfq",
        generation: Generation::MultiQueue,
        summary: "shares of sectors by weight, budgets, idling, and weight-raising for interactive tasks",
        follows: "Linux 7.3, bfq-iosched.c; without actuators, REQ_META and changes of priority during a run",
        // bfq's own figure: about 1.9 us of scheduling per request on a desktop CPU
        // (Documentation/block/bfq-iosched.rst, "low latency" off).
        lock_ns: 1900,
        tunables: TUNABLES,
    };

    fn new(settings: &Settings, limits: &QueueLimits, tasks: &Tasks) -> Self {
        let tuning = Tuning::new(settings, limits);
        let requests = limits.nr_requests as usize;
        let groups = tasks.cgroups().len();
        let mut wf2q = Wf2q::new(limits.ticks);
        wf2q.know_groups(tasks.cgroups());
        let disk = DiskKind { rotational: tuning.rotational };
        let peak_rate = PeakRate::new(disk);
        Bfq {
            spans: Spans::new(&tuning),
            depths: Depths::new(limits),
            clock: Clock::new(tuning.ticks),
            journal: Journal::default(),
            wf2q,
            queues: Vec::new(),
            tasks: Default::default(),
            sharing: Sharing::default(),
            async_queues: vec![None; groups * ASYNC_QUEUES],
            last_created: vec![None; groups],
            positions: Positions::new(groups),
            requests: Requests::new(requests, tuning.back_seek),
            merges: MergeIndex::with_capacity(requests),
            counts: Counts::new(limits.hw_queues),
            first: VecDeque::new(),
            inserts_as_worker: false,
            in_service: None,
            in_service_end: Sector(0),
            last_position: Sector(0),
            idle_timer: IdleTimer::new(),
            budgets: Budgets::new(&tuning, &peak_rate),
            peak_rate,
            queueing: QueueingWatch::new(disk),
            burst: Burst::new(&tuning),
            wakers: Wakers::default(),
            injection: Injection::default(),
            settled: None,
            tuning,
        }
    }

    #[inline]
    fn find_merge(&mut self, queue: &Queue<'_>, bio: &Bio) -> Option<Merge> {
        self.clock.set(queue.now);
        self.find_bio_merge(queue, bio)
    }

    fn bio_merged(&mut self, queue: &Queue<'_>, merge: Merge, _: Sector) {
        self.happens(queue.now);
        match merge {
            Merge::Back(id) => {
                self.requests.grown(id, queue.requests[id].sectors);
                self.merges.grown(id, queue.requests[id].end());
            }
            Merge::Front(id) => {
                let (request, q) = (&queue.requests[id], self.requests.queue_of(id));
                let (requests, backlog) = (&mut self.requests, &mut self.queues[q.index()].backlog);
                let (sector, sectors) = (request.sector, request.sectors);
                if requests.grown_downwards(backlog, id, sector, sectors, self.last_position) {
                    self.budget_for_next(q);
                    if !self.queueing.is_flash_with_queueing() {
                        self.move_in_positions(q);
                    }
                }
                self.merges.grown_downwards(id);
            }
        }
    }

    fn neighbour(&self, queue: &Queue<'_>, id: RequestId, after: bool) -> Option<RequestId> {
        let own = &self.queues[self.requests.queue_of(id).index()];
        let other = self.requests.neighbour(&own.backlog, id, after)?;
        self.merges.joins(queue, id, other, after).then_some(other)
    }

    fn find_join(&mut self, queue: &Queue<'_>, id: RequestId) -> Option<RequestId> {
        self.happens(queue.now);
        self.assign(queue, id);
        self.merges.find_join(queue, id)
    }

    /// `bfq_requests_merged`.
    fn requests_merged(&mut self, queue: &Queue<'_>, kept: RequestId, gone: RequestId) {
        self.happens(queue.now);
        let own = &mut self.queues[self.requests.queue_of(kept).index()];
        if self.requests.merge(&mut own.backlog, kept, gone) {
            self.remove_request(gone);
        }
        self.merges.grown(kept, queue.requests[gone].end());
        self.finish(gone);
    }

    #[inline]
    fn insert(&mut self, queue: &Queue<'_>, id: RequestId) {
        self.happens(queue.now);
        self.assign(queue, id);
        self.insert_sorted(id);
        self.merges.insert(queue, id);
        self.reap();
    }

    fn insert_first(&mut self, queue: &Queue<'_>, id: RequestId) -> bool {
        self.happens(queue.now);
        self.inserts_as_worker = true;
        self.assign(queue, id);
        self.inserts_as_worker = false;
        self.first.push_front(id);
        true
    }

    #[inline]
    fn dispatch(&mut self, queue: &Queue<'_>, _: u16) -> Option<RequestId> {
        self.clock.set(queue.now);
        if self.settled == Some(self.clock.jiffies) {
            return None;
        }
        let id = self.next_request();
        self.reap();
        self.settled = id.is_none().then_some(self.clock.jiffies);
        id
    }

    #[inline]
    fn is_settled(&self, now: Nanos) -> bool {
        self.settled == Some(self.clock.jiffies) && self.clock.is_in_same_tick(now)
    }

    #[inline]
    fn completed(&mut self, queue: &Queue<'_>, id: RequestId) {
        self.happens(queue.now);
        self.finish(id);
    }

    fn woken(&mut self) -> Option<u16> {
        self.counts.pop_woken()
    }

    #[inline]
    fn depth_limit(&self, queue: &Queue<'_>, process: ProcessId, op: Op, sync: bool) -> u32 {
        let limit = self.depths.limit(op, sync, self.wf2q.raised_busy() > 0);
        let process = queue.tasks.get(process).mover.unwrap_or(process);
        let own = self.tasks.queue(TaskIndex::of(process), sync);
        let is_over = own.is_some_and(|q| self.wf2q.is_over_limit(q, limit));
        self.depths.passed_to_tags(if is_over { 1 } else { limit })
    }

    fn least_depth(&self) -> u32 {
        1
    }

    #[inline]
    fn next_timer(&self) -> Nanos {
        self.idle_timer.until()
    }

    fn timer(&mut self, queue: &Queue<'_>) -> bool {
        self.happens(queue.now);
        self.idle_timer();
        self.reap();
        self.counts.waiting() > 0
    }

    #[inline]
    fn has_work(&self, _: u16) -> bool {
        self.waiting() > 0
    }

    #[inline]
    fn waiting(&self) -> usize {
        self.counts.waiting() as usize + self.first.len()
    }

    fn process_exited(&mut self, queue: &Queue<'_>, process: ProcessId) {
        self.happens(queue.now);
        self.exit(queue, process);
    }

    fn journal(&mut self) -> Option<&mut Journal> {
        Some(&mut self.journal)
    }
}

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;
