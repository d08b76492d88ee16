//! `deadline`: batches upwards across the disk, with a deadline for each request.
//!
//! Follows the single-queue scheduler of Linux 4.12 (`block/deadline-iosched.c` with the
//! legacy elevator core around it).
//!
//! A scheduler that always serves the oldest request makes the disk spend its time on seeks; one
//! that always serves the nearest request starves those far away. Deadline keeps every request
//! twice: sorted by sector, to serve *batches* that move upwards, and in a FIFO with a deadline, to
//! find requests that have waited too long. A batch is up to `fifo_batch` requests of one
//! direction. Only between batches does deadline choose again:
//!
//! 1. Direction: reads, because a process usually waits for a read; but writes, if writes wait too
//!    and reads were preferred `writes_starved` times.
//! 2. Position: the request after the last one served, if the last batch had the same direction,
//!    more requests lie above it, and the head of the FIFO has not expired (`read_expire`,
//!    `write_expire`). Otherwise the head of the FIFO: the oldest request, at any sector.
//!
//! So a deadline is not a guarantee: it is checked only between batches, an expired write still
//! waits for its turn, and under load nearly all requests have expired and deadline becomes first
//! come, first served in batches.
//!
//! The batch follows a *pointer* to the next request (`next_rq`), which is set at dispatch: a
//! request that arrives between the head and that pointer waits for the next sweep. mq-deadline
//! searches from the last position instead and includes such a request.
//!
//! Deadlines are counted in jiffies: a request expires up to a tick (`hz` of the host) early.
//!
//! Left out: 4.12 merged requests of different priority; here they stay apart, which matters only
//! for processes that share files and differ in priority.

use super::journal::{Decision, Journal};
use super::shared::lanes::Lanes;
use super::{Generation, Info, Merge, Queue, QueueLimits, Scheduler, Settings, Tasks, Tunable, Unit};
use crate::request::{Bio, Op, ProcessId, RequestId};
use crate::units::{Nanos, Sector};

const READ: usize = 0;
const WRITE: usize = 1;

/// The lane of an operation (`rq_data_dir`): discards go with the writes.
pub(super) const fn direction(op: Op) -> usize {
    if op.is_write() { WRITE } else { READ }
}

/// Tunables that deadline shares with mq-deadline.
pub(super) const READ_EXPIRE: Tunable = Tunable {
    name: "read_expire",
    unit: Unit::Milliseconds,
    default: 500,
    min: 0,
    max: i32::MAX as i64,
    help: "a read that has waited this long starts the next batch of reads",
};
/// See [`READ_EXPIRE`].
pub(super) const WRITE_EXPIRE: Tunable = Tunable {
    name: "write_expire",
    unit: Unit::Milliseconds,
    default: 5000,
    min: 0,
    max: i32::MAX as i64,
    help: "a write that has waited this long starts the next batch of writes",
};
/// Negative values count as huge ones: the kernel compares them as unsigned.
pub(super) const WRITES_STARVED: Tunable = Tunable {
    name: "writes_starved",
    unit: Unit::Count,
    default: 2,
    min: i32::MIN as i64,
    max: i32::MAX as i64,
    help: "batches of reads that may go before waiting writes; negative: any number",
};
/// See [`READ_EXPIRE`].
pub(super) const FRONT_MERGES: Tunable = Tunable {
    name: "front_merges",
    unit: Unit::Flag,
    default: 1,
    min: 0,
    max: 1,
    help: "look for waiting requests that begin where a new one ends; 0 saves the search",
};
/// See [`READ_EXPIRE`].
pub(super) const FIFO_BATCH: Tunable = Tunable {
    name: "fifo_batch",
    unit: Unit::Count,
    default: 16,
    min: 0,
    max: i32::MAX as i64,
    help: "requests of one direction in a row before deadlines are looked at: few for latency, many for throughput",
};

/// A tunable in milliseconds as a time.
pub(super) fn span(settings: &Settings, name: &str) -> Nanos {
    Nanos::from_millis(settings.get(name) as u64)
}

/// For the journal: the last batch of `last` requests is over, a new batch begins with `id`.
/// `reads` wait; the oldest request of the batch's direction has `expired`.
pub(super) fn note_batch(
    journal: &mut Journal,
    queue: &Queue<'_>,
    last: u32,
    id: RequestId,
    reads: bool,
    expired: bool,
) {
    let request = &queue.requests[id];
    let op = if request.op.is_write() { Op::Write } else { Op::Read };
    if last > 0 {
        journal.note(queue.now, ProcessId::KERNEL, Decision::BatchEnd { requests: last });
    }
    let starved = reads && op.is_write();
    journal.note(queue.now, ProcessId::KERNEL, Decision::BatchStart { op, starved });
    if expired {
        journal.note(queue.now, request.process, Decision::Expired);
    }
}

/// The state of deadline.
pub struct Deadline {
    expire: [Nanos; 2],
    writes_starved: u32,
    front_merges: bool,
    fifo_batch: u32,

    lanes: Lanes<2>,
    /// The next request of the batch; its direction is the last one served.
    next: Option<RequestId>,
    next_direction: usize,
    batching: u32,
    starved: u32,
    journal: Journal,
}

impl Deadline {
    /// The request chosen by the rules in this file's header.
    fn choose(&mut self, queue: &Queue<'_>) -> Option<RequestId> {
        if let Some(next) = self.next
            && self.batching < self.fifo_batch
        {
            return Some(next);
        }
        let (reads, writes) = (!self.lanes.is_empty(READ), !self.lanes.is_empty(WRITE));
        let direction = match (reads, writes) {
            (false, false) => return None,
            (true, false) => READ,
            (false, true) => WRITE,
            (true, true) if self.starved >= self.writes_starved => WRITE,
            (true, true) => {
                self.starved += 1;
                READ
            }
        };
        if direction == WRITE {
            self.starved = 0;
        }
        let expired = self.lanes.has_expired(direction, queue.now);
        let goes_on = self.next.filter(|_| self.next_direction == direction && !expired);
        let id = goes_on.or_else(|| self.lanes.oldest(direction))?;
        if self.journal.is_kept() {
            note_batch(&mut self.journal, queue, self.batching, id, reads, expired);
        }
        self.batching = 0;
        Some(id)
    }

    /// `id` no longer waits: the batch must not continue there.
    fn remove(&mut self, id: RequestId) {
        if self.next == Some(id) {
            self.next = self.lanes.above(id);
        }
        self.lanes.remove(id);
    }
}

impl Scheduler for Deadline {
    const INFO: Info = Info {
        name: "deadline",
        generation: Generation::SingleQueue,
        summary: "batches in sector order, reads before writes, a deadline for each (single queue)",
        follows: "Linux 4.12, deadline-iosched.c",
        // estimate: as noop, plus a sorted tree.
        lock_ns: 700,
        tunables: &[READ_EXPIRE, WRITE_EXPIRE, WRITES_STARVED, FRONT_MERGES, FIFO_BATCH],
    };

    fn new(settings: &Settings, limits: &QueueLimits, _: &Tasks) -> Self {
        let requests = limits.nr_requests as usize;
        Deadline {
            expire: [span(settings, "read_expire"), span(settings, "write_expire")],
            writes_starved: settings.get("writes_starved") as u32,
            front_merges: settings.get("front_merges") == 1,
            fifo_batch: settings.get("fifo_batch") as u32,
            lanes: Lanes::with_capacity(requests),
            next: None,
            next_direction: READ,
            batching: 0,
            starved: 0,
            journal: Journal::default(),
        }
    }

    #[inline]
    fn find_merge(&mut self, queue: &Queue<'_>, bio: &Bio) -> Option<Merge> {
        self.lanes.find_merge(queue, bio, direction(bio.op), self.front_merges)
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
        if self.next == Some(gone) {
            self.next = self.lanes.above(gone);
        }
        self.lanes.requests_merged(queue, kept, gone);
    }

    #[inline]
    fn insert(&mut self, queue: &Queue<'_>, id: RequestId) {
        let direction = direction(queue.requests[id].op);
        // In jiffies, as the kernel counts.
        let ticks = queue.limits.ticks;
        let tick = ticks.at(queue.now).saturating_add(ticks.span(self.expire[direction]));
        self.lanes.insert(queue, id, direction, ticks.start(tick));
    }

    #[inline]
    fn dispatch(&mut self, queue: &Queue<'_>, _: u16) -> Option<RequestId> {
        let id = self.choose(queue)?;
        self.batching += 1;
        self.next = Some(id);
        self.next_direction = direction(queue.requests[id].op);
        self.remove(id);
        Some(id)
    }

    fn completed(&mut self, _: &Queue<'_>, _: RequestId) {}

    #[inline]
    fn has_work(&self, _: u16) -> bool {
        self.waiting() > 0
    }

    fn journal(&mut self) -> Option<&mut Journal> {
        Some(&mut self.journal)
    }

    #[inline]
    fn waiting(&self) -> usize {
        self.lanes.waiting()
    }
}
