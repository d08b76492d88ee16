//! `mq-deadline`: deadline for multi-queue block devices, with priorities.
//!
//! Follows Linux 7.3 (`block/mq-deadline.c`).
//!
//! Read [`deadline`](super::deadline) first: batches upwards across the disk, reads before
//! writes, a deadline for each request. What differs:
//!
//! * **Three levels**: real-time, best effort (also for "not set") and idle, each with its own
//!   sorted lists and FIFOs. A level is served only when no request of a higher level waits *or is
//!   in flight*. `prio_aging_expire` limits this: a lower request that has waited this long goes
//!   before higher ones.
//! * **Shared state**: the last direction, the progress of the batch and the count of starved
//!   writes are shared by all levels. Even a *search* for an aged request at a lower level ends a
//!   batch at the higher level; with two busy levels batches are therefore shorter than
//!   `fifo_batch`. This is the kernel's behaviour and is kept.
//! * **Position, not pointer**: a batch continues at the first request at or above the start of the
//!   last request of that level and direction, so that late arrivals are included.
//! * **`async_depth`**: how many of a queue's `nr_requests` writes and asynchronous requests may
//!   use; in 7.3 a setting of the queue, before that of the scheduler. Up to 6.12 the default was
//!   three quarters; now it is all, so that nothing is held back by default. Synchronous reads are
//!   never limited.
//! * One state for all hardware queues: a dispatch for one may return a request of another, which
//!   the block layer then passes on.
//!
//! When only lower levels wait while a higher level has requests in flight, dispatch returns
//! nothing although requests wait, and sets no timer: the kernel then polls every 3 ms
//! (`BLK_MQ_BUDGET_DELAY`), and also finds aged requests by that poll.
//!
//! Deadlines and ages are counted in jiffies, as by [`deadline`](super::deadline).
//!
//! Left out: zoned disks (since 6.10 the block layer's business anyway).

use std::collections::VecDeque;

use super::deadline::{
    FIFO_BATCH, FRONT_MERGES, READ_EXPIRE, WRITE_EXPIRE, WRITES_STARVED, direction, note_batch, span,
};
use super::journal::{Decision, Journal};
use super::shared::lanes::Lanes;
use super::{Generation, Info, Merge, Queue, QueueLimits, Scheduler, Settings, Tasks, Tunable, Unit};
use crate::request::{Bio, Op, PrioClass, ProcessId, RequestId};
use crate::units::{Nanos, Sector};

const READ: usize = 0;
const WRITE: usize = 1;

/// Priority levels: real-time, best effort, idle.
const LEVELS: usize = 3;

const fn level(class: PrioClass) -> usize {
    match class {
        PrioClass::RealTime => 0,
        PrioClass::None | PrioClass::BestEffort => 1,
        PrioClass::Idle => 2,
    }
}

/// The lane of a level and direction.
const fn lane(level: usize, direction: usize) -> usize {
    2 * level + direction
}

/// The state of mq-deadline.
pub struct MqDeadline {
    expire: [Nanos; 2],
    writes_starved: u32,
    front_merges: bool,
    fifo_batch: u32,
    prio_aging_expire: Nanos,
    async_depth: u32,
    /// See [`Scheduler::least_depth`].
    least_depth: u32,
    /// See [`Kernel::deadline_has_classes`](crate::kernel::Kernel::deadline_has_classes).
    has_classes: bool,

    lanes: Lanes<{ 2 * LEVELS }>,
    /// They go before all others (`dd->dispatch`).
    first: VecDeque<RequestId>,
    /// First sector of the last dispatched request, per lane.
    latest: [Sector; 2 * LEVELS],
    /// Requests that wait or are in flight, per level (`dd_queued`).
    queued: [u32; LEVELS],
    last_direction: usize,
    batching: u32,
    starved: u32,
    journal: Journal,
}

/// The start of the current tick.
#[inline]
fn tick(queue: &Queue<'_>) -> Nanos {
    let ticks = queue.limits.ticks;
    ticks.start(ticks.at(queue.now))
}

impl MqDeadline {
    /// The level of a class; all have one before Linux 5.14.
    #[inline]
    fn level(&self, class: PrioClass) -> usize {
        if self.has_classes { level(class) } else { level(PrioClass::BestEffort) }
    }

    /// The best request of a level that began to wait at or before `latest_start` (which is
    /// negative early in a run). Changes the batch even if it returns none.
    fn choose(&mut self, queue: &Queue<'_>, level: usize, latest_start: i64) -> Option<RequestId> {
        let on_from_here = |s: &Self, dir| s.lanes.at_or_above(lane(level, dir), s.latest[lane(level, dir)]);

        let next = on_from_here(self, self.last_direction).filter(|_| self.batching < self.fifo_batch);
        let last_batch = self.batching;
        let (id, direction) = match next {
            Some(id) => (id, self.last_direction),
            None => {
                let direction = self.choose_direction(level)?;
                let lane = lane(level, direction);
                let id = match on_from_here(self, direction) {
                    Some(id) if !self.lanes.has_expired(lane, queue.now) => id,
                    _ => self.lanes.oldest(lane)?,
                };
                self.last_direction = direction;
                self.batching = 0;
                (id, direction)
            }
        };
        let began = self.lanes.expires(id).0 as i64 - self.expire[direction].0 as i64;
        if began > latest_start {
            return None;
        }
        if next.is_none() && self.journal.is_kept() {
            let starved = !self.lanes.is_empty(lane(level, READ));
            let expired = self.lanes.has_expired(lane(level, direction), queue.now);
            note_batch(&mut self.journal, queue, last_batch, id, starved, expired);
        }
        self.batching += 1;
        self.lanes.remove(id);
        Some(id)
    }

    /// Reads, unless writes wait too and reads were preferred often enough.
    fn choose_direction(&mut self, level: usize) -> Option<usize> {
        let writes = !self.lanes.is_empty(lane(level, WRITE));
        if !self.lanes.is_empty(lane(level, READ)) {
            let turn = self.starved;
            self.starved = if writes { turn.wrapping_add(1) } else { turn };
            if !writes || turn < self.writes_starved {
                return Some(READ);
            }
        }
        writes.then(|| {
            self.starved = 0;
            WRITE
        })
    }

    /// A lower level's request that has waited for `prio_aging_expire`.
    fn choose_aged(&mut self, queue: &Queue<'_>) -> Option<RequestId> {
        let busy_levels = self.queued.iter().filter(|&&queued| queued > 0).count();
        if busy_levels < 2 {
            return None;
        }
        let latest_start = tick(queue).0 as i64 - self.prio_aging_expire.0 as i64;
        let id = (1..LEVELS).find_map(|level| self.choose(queue, level, latest_start))?;
        self.journal.note(queue.now, queue.requests[id].process, Decision::Aged);
        Some(id)
    }

    /// Serves the highest level with requests, waiting or in flight.
    fn choose_by_level(&mut self, queue: &Queue<'_>) -> Option<RequestId> {
        for level in 0..LEVELS {
            if self.queued[level] == 0 {
                continue;
            }
            return self.choose(queue, level, queue.now.0 as i64);
        }
        None
    }
}

impl Scheduler for MqDeadline {
    const INFO: Info = Info {
        name: "mq-deadline",
        generation: Generation::MultiQueue,
        summary: "batches in sector order, reads before writes, a deadline for each, three priority levels",
        follows: "Linux 7.3, mq-deadline.c; without zones",
        // fio with libaio on a loop device, Linux 6.18: 323k IOPS against 423k under none.
        lock_ns: 730,
        tunables: &[
            READ_EXPIRE,
            WRITE_EXPIRE,
            WRITES_STARVED,
            FRONT_MERGES,
            Tunable {
                name: "async_depth",
                unit: Unit::Count,
                default: 0,
                min: 0,
                max: i32::MAX as i64,
                help: "requests that writes and asynchronous reads may use at once; 0: nr_requests, as the kernel sets it",
            },
            FIFO_BATCH,
            Tunable {
                name: "prio_aging_expire",
                unit: Unit::Milliseconds,
                default: 10_000,
                min: 0,
                max: i32::MAX as i64,
                help: "a request that has waited this long goes before those of higher priority classes",
            },
        ],
    };

    fn new(settings: &Settings, limits: &QueueLimits, _: &Tasks) -> Self {
        let requests = limits.nr_requests as usize;
        let async_depth = match settings.get("async_depth") {
            _ if !limits.kernel.deadline_has_classes => u32::MAX,
            0 => limits.nr_requests,
            depth => depth as u32,
        };
        let ticks = limits.ticks;
        let span = |name| ticks.start(ticks.span(span(settings, name)));
        MqDeadline {
            expire: [span("read_expire"), span("write_expire")],
            writes_starved: settings.get("writes_starved") as u32,
            front_merges: settings.get("front_merges") == 1,
            fifo_batch: settings.get("fifo_batch") as u32,
            prio_aging_expire: span("prio_aging_expire"),
            async_depth,
            least_depth: if limits.kernel.deadline_wakes_in_batches { async_depth } else { 1 },
            has_classes: limits.kernel.deadline_has_classes,
            lanes: Lanes::with_capacity(requests),
            first: VecDeque::new(),
            latest: [Sector(0); 2 * LEVELS],
            queued: [0; LEVELS],
            last_direction: WRITE,
            batching: 0,
            starved: 0,
            journal: Journal::default(),
        }
    }

    #[inline]
    fn find_merge(&mut self, queue: &Queue<'_>, bio: &Bio) -> Option<Merge> {
        let lane = lane(self.level(bio.prio.class), direction(bio.op));
        self.lanes.find_merge(queue, bio, lane, self.front_merges)
    }

    fn bio_merged(&mut self, queue: &Queue<'_>, merge: Merge, _: Sector) {
        self.lanes.bio_merged(queue, merge);
    }

    fn neighbour(&self, queue: &Queue<'_>, id: RequestId, after: bool) -> Option<RequestId> {
        self.lanes.neighbour(queue, id, after)
    }

    fn find_join(&mut self, queue: &Queue<'_>, id: RequestId) -> Option<RequestId> {
        self.lanes.find_join(queue, id)
    }

    fn requests_merged(&mut self, queue: &Queue<'_>, kept: RequestId, gone: RequestId) {
        if self.lanes.contains(gone) {
            self.queued[self.level(queue.requests[gone].prio.class)] -= 1;
        }
        self.lanes.requests_merged(queue, kept, gone);
    }

    #[inline]
    fn insert(&mut self, queue: &Queue<'_>, id: RequestId) {
        let request = &queue.requests[id];
        let level = self.level(request.prio.class);
        self.queued[level] += 1;
        let direction = direction(request.op);
        let expires = tick(queue).saturating_add(self.expire[direction]);
        self.lanes.insert(queue, id, lane(level, direction), expires);
    }

    fn insert_first(&mut self, queue: &Queue<'_>, id: RequestId) -> bool {
        self.queued[self.level(queue.requests[id].prio.class)] += 1;
        self.first.push_front(id);
        true
    }

    #[inline]
    fn dispatch(&mut self, queue: &Queue<'_>, _: u16) -> Option<RequestId> {
        let id = match self.first.pop_front() {
            Some(id) => id,
            None => self.choose_aged(queue).or_else(|| self.choose_by_level(queue))?,
        };
        let request = &queue.requests[id];
        self.latest[lane(self.level(request.prio.class), direction(request.op))] = request.sector;
        Some(id)
    }

    #[inline]
    fn completed(&mut self, queue: &Queue<'_>, id: RequestId) {
        self.queued[self.level(queue.requests[id].prio.class)] -= 1;
    }

    fn depth_limit(&self, _: &Queue<'_>, _: ProcessId, op: Op, sync: bool) -> u32 {
        if sync && !op.is_write() { u32::MAX } else { self.async_depth }
    }

    fn least_depth(&self) -> u32 {
        self.least_depth
    }

    #[inline]
    fn has_work(&self, _: u16) -> bool {
        self.waiting() > 0
    }

    fn journal(&mut self) -> Option<&mut Journal> {
        Some(&mut self.journal)
    }

    #[inline]
    fn waiting(&self) -> usize {
        self.lanes.waiting() + self.first.len()
    }
}
