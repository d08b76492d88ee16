//! The block layer: bios in, requests through plug and scheduler, commands out.
//!
//! Follows `blk-mq.c`, `blk-merge.c` and `blk-flush.c` of Linux 6.12: a bio first tries
//! to grow the request plugged last, then one that waits in the scheduler; otherwise it
//! needs a tag, and where there is none its process sleeps. Single-queue schedulers
//! (noop, deadline) get the block layer of 4.12: a pool of `nr_requests` for synchronous and
//! as many for asynchronous requests, a plug that is sorted, and a driver that peeks
//! (`rules.rs`).
//!
//! Who flushes a plug dispatches what the scheduler then lets go. What comes without a plug
//! is left to a worker (`kblockd`) by blk-mq's schedulers: it runs when the submitter sleeps,
//! so that all that the submitter brings until then is sorted and merged together.
//!
//! Left out: a worker for each CPU (one runs for all, when the first process sleeps),
//! requeueing after errors, writeback throttling (`wbt`), I/O cost and latency
//! controllers, zoned disks. A plug takes no time, since the process that fills it does
//! not sleep before it is flushed.

mod limits;
mod rules;
mod stream;
#[cfg(test)]
mod tests;

use crate::disk::{AnyDisk, Command, Completion, Disk, Tag};
use crate::host::Host;
use crate::recorder::{SeriesRecorder, TraceRecorder};
use crate::request::{Bio, BioChain, Op, ProcessId, Request, RequestId, RequestSlab};
use crate::result::DiskCounters;
use crate::scheduler::{AnyScheduler, Generation, InsertAt, Merge, Queue, QueueLimits, can_join, can_merge};
use crate::ticks::Ticks;
use crate::units::Nanos;

pub use limits::{QUEUE_TUNABLES, queue_limits};
pub use rules::Manner;
use rules::Rules;
pub use stream::{BIO_SECTORS, BioStream};

/// A plug whose last request has grown to 128 KiB is flushed (`BLK_PLUG_FLUSH_SIZE`).
const PLUG_SECTORS: u32 = 128 * 1024 / 512;

/// A scheduler that has requests and gives none is asked again after this time
/// (`BLK_MQ_BUDGET_DELAY`).
const BUDGET_DELAY: Nanos = Nanos::from_millis(3);

/// What became of a bio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Submitted {
    /// In a request of its own or in another's.
    Taken,
    /// Every request this bio may use is taken: submit it again when one has ended.
    NoRequest,
}

/// A bio behind the first of its request: most requests have none.
#[derive(Clone, Copy, Debug)]
struct BioNode {
    owner: u64,
    next: u32,
}

/// Requests in use and with the disk, of one hardware queue.
#[derive(Clone, Copy, Debug, Default)]
struct HwQueue {
    /// Made and not ended, async and sync.
    allocated: [u32; 2],
    /// Ended, or merged into another, since somebody asked.
    freed: u32,
    /// With the disk.
    in_flight: u32,
    /// Out of the scheduler and not with the disk yet ([`Rules::peeks`]).
    parked: Option<RequestId>,
    /// The disk was full when it ran last: the next completion runs it
    /// (`BLK_MQ_S_SCHED_RESTART`; SCSI counts `restarts`).
    restart: bool,
    /// Stands in [`Block::to_run`].
    to_run: bool,
}

impl HwQueue {
    /// A request of it is no more.
    #[inline]
    fn free(&mut self, sync: bool) {
        self.allocated[usize::from(sync)] -= 1;
        // Counts only while somebody sleeps, who asks often.
        self.freed = self.freed.wrapping_add(1);
    }
}

/// Flushes: one is with the disk at a time; those that come meanwhile share the next.
#[derive(Debug, Default)]
struct Flushes {
    waiting: Vec<u64>,
    running: Vec<u64>,
    /// The request that carries `running`.
    request: Option<RequestId>,
}

/// The queue of one disk.
pub struct Block {
    limits: QueueLimits,
    scheduler: AnyScheduler,
    generation: Generation,
    rules: Rules,
    /// Without a scheduler a request goes to the driver at once if nothing waits
    /// (`blk_mq_try_issue_list_directly`).
    issues_directly: bool,
    /// A write with FUA must be followed by a flush.
    flush_after_fua: bool,
    volatile_write_cache: bool,
    requests: RequestSlab,
    bios: slab::Slab<BioNode>,
    hw_queues: Vec<HwQueue>,
    /// Hardware queues that may have something to dispatch, in order.
    to_run: Vec<u16>,
    /// The worker: runs once its CPU is free ...
    worker_woken: bool,
    /// ... or at this time.
    worker_due: Nanos,
    ticks: Ticks,
    plug: Vec<RequestId>,
    flushes: Flushes,
    in_flight: u32,
    waiting: u32,
    changed: Nanos,
    counters: DiskCounters,
    /// Depth and throughput over time.
    pub series: SeriesRecorder,
    trace: TraceRecorder,
}

/// What the scheduler sees. A macro, since it borrows fields beside the scheduler's.
macro_rules! queue {
    ($block:expr, $now:expr) => {
        Queue { now: $now, requests: &$block.requests, in_flight: $block.in_flight, limits: &$block.limits }
    };
}

impl Block {
    /// An empty queue before `disk`.
    pub fn new(disk: &AnyDisk, limits: QueueLimits, scheduler: AnyScheduler, host: &Host) -> Block {
        let found = disk.limits();
        let rules = Rules::of(scheduler.info(), host.budget);
        let generation = scheduler.info().generation;
        Block {
            flush_after_fua: found.volatile_write_cache && !found.fua,
            volatile_write_cache: found.volatile_write_cache,
            generation,
            issues_directly: matches!(scheduler, AnyScheduler::None(_)) && !rules.peeks,
            rules,
            requests: RequestSlab::with_capacity(limits.nr_requests as usize),
            bios: slab::Slab::new(),
            hw_queues: vec![HwQueue::default(); usize::from(limits.hw_queues)],
            to_run: Vec::with_capacity(usize::from(limits.hw_queues)),
            worker_woken: false,
            worker_due: Nanos::NEVER,
            ticks: host.ticks,
            plug: Vec::with_capacity(rules.plug_requests),
            flushes: Flushes::default(),
            in_flight: 0,
            waiting: 0,
            changed: Nanos::ZERO,
            counters: DiskCounters::default(),
            series: SeriesRecorder::default(),
            trace: TraceRecorder::default(),
            limits,
            scheduler,
        }
    }

    /// Fixed properties.
    pub fn limits(&self) -> &QueueLimits {
        &self.limits
    }

    /// A completed write may be lost without a flush.
    pub fn has_volatile_write_cache(&self) -> bool {
        self.volatile_write_cache
    }

    /// When the scheduler or the worker wants to be woken.
    #[inline]
    pub fn next_timer(&self) -> Nanos {
        self.scheduler.next_timer().min(self.worker_due)
    }

    /// That time has come. Call [`Block::run`] next.
    pub fn timer(&mut self, now: Nanos) {
        let runs = self.scheduler.next_timer() <= now && self.scheduler.timer(&queue!(self, now));
        if runs || self.worker_due <= now {
            self.mark_all();
        }
    }

    /// A process sleeps, so that its CPU's worker runs, if that was woken.
    #[inline]
    pub fn run_worker(&mut self, now: Nanos, disk: &mut AnyDisk) {
        if self.worker_woken {
            self.worker_woken = false;
            if self.worker_due != Nanos::NEVER {
                // It does now what it was to do later.
                self.mark_all();
            }
            self.run(now, disk);
        }
    }

    /// Tell the scheduler that a process has ended.
    pub fn process_exited(&mut self, now: Nanos, process: ProcessId) {
        self.scheduler.process_exited(&queue!(self, now), process);
    }

    /// A process hands over a bio of at most `max_sectors`. Under a plug it reaches the
    /// scheduler at the latest with [`Block::unplug`]. What comes without one may stay there
    /// until [`Block::run_worker`].
    #[inline]
    pub fn submit(&mut self, now: Nanos, bio: &Bio, manner: Manner, disk: &mut AnyDisk) -> Submitted {
        if bio.op == Op::Flush {
            self.flushes.waiting.push(bio.owner);
            // `blk_kick_flush` leaves it to the worker (`blk_mq_kick_requeue_list`).
            self.worker_woken = true;
            return Submitted::Taken;
        }
        if bio.fua && !self.volatile_write_cache {
            return self.submit(now, &Bio { fua: false, ..*bio }, manner, disk);
        }
        if !manner.again && (self.merge_into_plug(now, bio) || self.merge_into_waiting(now, bio)) {
            return Submitted::Taken;
        }
        if !self.may_allocate(bio.hw_queue, bio.op, bio.sync) {
            return Submitted::NoRequest;
        }
        let id = self.allocate(now, bio);
        if !manner.plugged {
            if self.issued_directly(now, id, disk) {
                return Submitted::Taken;
            }
            self.insert(now, id, self.rules.joins_without_plug);
            if self.rules.runs_without_plug {
                self.run(now, disk);
            } else {
                self.worker_woken = true;
            }
            return Submitted::Taken;
        }
        let last_is_large = self.plug.last().is_some_and(|&last| self.requests[last].sectors >= PLUG_SECTORS);
        if self.plug.len() >= self.rules.plug_requests || last_is_large {
            self.unplug(now, disk);
        }
        self.plug.push(id);
        Submitted::Taken
    }

    /// True if a bio of this kind would get a request now.
    #[inline]
    pub fn may_allocate(&self, hw_queue: u16, op: Op, sync: bool) -> bool {
        let allocated = self.hw_queues[usize::from(hw_queue)].allocated;
        match self.generation {
            Generation::SingleQueue => allocated[usize::from(sync)] < self.limits.nr_requests,
            Generation::MultiQueue => {
                let depth = self.limits.nr_requests.min(self.scheduler.depth_limit(op, sync));
                allocated[0] + allocated[1] < depth
            }
        }
    }

    /// Requests of the hardware queue that have become free since the last call.
    pub fn take_freed(&mut self, hw_queue: u16) -> u32 {
        std::mem::take(&mut self.hw_queues[usize::from(hw_queue)].freed)
    }

    /// The fewest requests that a bio may find taken and sleep: all, or as many as the
    /// scheduler leaves to some kind of bio.
    pub fn least_depth(&self) -> u32 {
        let kinds = [Op::Read, Op::Write].into_iter().flat_map(|op| [(op, true), (op, false)]);
        let least = kinds.map(|(op, sync)| self.scheduler.depth_limit(op, sync)).min();
        self.limits.nr_requests.min(least.unwrap_or(u32::MAX))
    }

    /// Behind the one queue of the time before blk-mq.
    pub fn is_single_queue(&self) -> bool {
        self.generation == Generation::SingleQueue
    }

    fn allocate(&mut self, now: Nanos, bio: &Bio) -> RequestId {
        self.account(now);
        self.waiting += 1;
        self.hw_queues[usize::from(bio.hw_queue)].allocated[usize::from(bio.sync)] += 1;
        self.requests.insert(Request {
            op: bio.op,
            sector: bio.sector,
            sectors: bio.sectors,
            sync: bio.sync,
            fua: bio.fua,
            process: bio.process,
            prio: bio.prio,
            cpu: bio.cpu,
            hw_queue: bio.hw_queue,
            inserted: now,
            issued: Nanos::ZERO,
            owner: bio.owner,
            rest: BioChain::default(),
        })
    }

    #[inline]
    fn merge_into_plug(&mut self, now: Nanos, bio: &Bio) -> bool {
        let queue = queue!(self, now);
        for &id in self.plug.iter().rev().take(self.rules.plug_merges) {
            for merge in [Merge::Back(id), Merge::Front(id)] {
                if can_merge(&queue, bio, merge) {
                    self.grow(merge, bio);
                    return true;
                }
            }
        }
        false
    }

    #[inline]
    fn merge_into_waiting(&mut self, now: Nanos, bio: &Bio) -> bool {
        if self.scheduler.waiting() == 0 {
            return false;
        }
        let Some(merge) = self.scheduler.find_merge(&queue!(self, now), bio) else { return false };
        let (Merge::Back(id) | Merge::Front(id)) = merge;
        let old_sector = self.requests[id].sector;
        self.grow(merge, bio);
        self.scheduler.bio_merged(&queue!(self, now), merge, old_sector);
        self.join_neighbour(now, id, matches!(merge, Merge::Back(_)));
        true
    }

    /// Add `bio` to a request.
    fn grow(&mut self, merge: Merge, bio: &Bio) {
        let (Merge::Back(id) | Merge::Front(id)) = merge;
        let request = &mut self.requests[id];
        request.sectors += bio.sectors;
        let rest = if let Merge::Front(_) = merge {
            request.sector = bio.sector;
            let second = std::mem::replace(&mut request.owner, bio.owner);
            prepend(&mut self.bios, second, request.rest)
        } else {
            let last = prepend(&mut self.bios, bio.owner, BioChain::default());
            concat(&mut self.bios, request.rest, last)
        };
        self.requests[id].rest = rest;
        self.count_merge(bio.op);
    }

    fn count_merge(&mut self, op: Op) {
        match op {
            Op::Read => self.counters.read_merges += 1,
            _ => self.counters.write_merges += 1,
        }
    }

    /// The grown `id` may now touch the request behind (or before) it.
    fn join_neighbour(&mut self, now: Nanos, id: RequestId, after: bool) {
        let queue = queue!(self, now);
        let Some(other) = self.scheduler.neighbour(&queue, id, after) else { return };
        let (first, next) = if after { (id, other) } else { (other, id) };
        if can_join(&queue, first, next) {
            self.scheduler.requests_merged(&queue, first, next);
            self.append(now, first, next);
        }
    }

    /// Append the chain of `gone` to that of `kept` and free `gone`.
    fn append(&mut self, now: Nanos, kept: RequestId, gone: RequestId) {
        self.account(now);
        self.waiting -= 1;
        let gone = self.requests.remove(gone);
        self.hw_queues[usize::from(gone.hw_queue)].free(gone.sync);
        let kept = &mut self.requests[kept];
        kept.sectors += gone.sectors;
        // A joined request's time counts from the earlier start on, as in diskstats.
        self.counters.joined_ns += (now - gone.inserted.max(kept.inserted)).0;
        kept.inserted = kept.inserted.min(gone.inserted);
        let of_gone = prepend(&mut self.bios, gone.owner, gone.rest);
        kept.rest = concat(&mut self.bios, kept.rest, of_gone);
        self.count_merge(gone.op);
    }

    /// Hand plugged requests to the scheduler, and what it lets go to the disk
    /// (`blk_finish_plug`).
    #[inline]
    pub fn unplug(&mut self, now: Nanos, disk: &mut AnyDisk) {
        if self.plug.is_empty() {
            return;
        }
        if self.rules.plug_sorted {
            let requests = &self.requests;
            self.plug.reverse();
            self.plug.sort_by_key(|&id| requests[id].sector);
        }
        for index in 0..self.plug.len() {
            let id = self.plug[index];
            if !self.issued_directly(now, id, disk) {
                self.insert(now, id, true);
            }
        }
        self.plug.clear();
        self.run(now, disk);
    }

    /// A new request has gone to the disk past the scheduler, which would have kept it for no
    /// time and before no other.
    #[inline]
    fn issued_directly(&mut self, now: Nanos, id: RequestId, disk: &mut AnyDisk) -> bool {
        if !self.issues_directly || !self.to_run.is_empty() || !self.flushes.waiting.is_empty() {
            return false;
        }
        let hw_queue = &self.hw_queues[usize::from(self.requests[id].hw_queue)];
        let takes = hw_queue.in_flight < self.limits.queue_depth && self.scheduler.waiting() == 0;
        if takes {
            self.issue(now, id, disk);
        }
        takes
    }

    /// `joins`: a request may be appended to one that waits instead.
    #[inline]
    fn insert(&mut self, now: Nanos, id: RequestId, joins: bool) {
        self.mark(self.requests[id].hw_queue);
        if !(joins && self.join_waiting(now, id)) {
            self.scheduler.insert(&queue!(self, now), id, InsertAt::Sorted);
        }
    }

    /// Append a new request to one that waits, and that to the next, as far as the
    /// scheduler offers any (`blk_mq_sched_try_insert_merge`).
    #[inline]
    fn join_waiting(&mut self, now: Nanos, id: RequestId) -> bool {
        let mut last = id;
        while self.scheduler.waiting() > 0
            && let Some(kept) = self.scheduler.find_join(&queue!(self, now), last)
        {
            self.scheduler.requests_merged(&queue!(self, now), kept, last);
            self.append(now, kept, last);
            last = kept;
        }
        last != id
    }

    /// Hardware queue `hw_queue` may have something to dispatch.
    #[inline]
    fn mark(&mut self, hw_queue: u16) {
        let queue = &mut self.hw_queues[usize::from(hw_queue)];
        if !queue.to_run {
            queue.to_run = true;
            self.to_run.push(hw_queue);
        }
    }

    /// All hardware queues may, so that nobody has to look later.
    fn mark_all(&mut self) {
        self.worker_due = Nanos::NEVER;
        (0..self.limits.hw_queues).for_each(|hw_queue| self.mark(hw_queue));
    }

    /// Give the disk as much as it takes and the scheduler lets go.
    #[inline]
    pub fn run(&mut self, now: Nanos, disk: &mut AnyDisk) {
        if !self.to_run.is_empty() || !self.flushes.waiting.is_empty() {
            self.run_marked(now, disk);
        }
    }

    fn run_marked(&mut self, now: Nanos, disk: &mut AnyDisk) {
        if self.rules.peeks {
            return self.run_peeking(now, disk);
        }
        if self.flush_is_due() && self.hw_queues[0].in_flight < self.limits.queue_depth {
            self.issue_flush(now, disk);
        }
        for index in 0..self.to_run.len() {
            let hw_queue = self.to_run[index];
            self.hw_queues[usize::from(hw_queue)].to_run = false;
            while self.scheduler.waiting() > 0 {
                let queue = &mut self.hw_queues[usize::from(hw_queue)];
                if queue.in_flight >= self.limits.queue_depth {
                    queue.restart = true;
                    break;
                }
                let Some(id) = self.scheduler.dispatch(&queue!(self, now), hw_queue) else {
                    self.try_later(now, hw_queue);
                    break;
                };
                self.issue(now, id, disk);
            }
        }
        self.to_run.clear();
    }

    /// The same with a driver that looks at the next request first and at the disk then: what
    /// it has seen stays out of the scheduler, unmerged and before all others, until the disk
    /// takes it (`scsi_request_fn`, `blk_peek_request`).
    fn run_peeking(&mut self, now: Nanos, disk: &mut AnyDisk) {
        for hw_queue in self.to_run.drain(..) {
            self.hw_queues[usize::from(hw_queue)].to_run = false;
        }
        for hw_queue in 0..self.limits.hw_queues {
            self.run_peeking_one(now, hw_queue, disk);
        }
    }

    fn run_peeking_one(&mut self, now: Nanos, hw_queue: u16, disk: &mut AnyDisk) {
        let index = usize::from(hw_queue);
        loop {
            let flush = hw_queue == 0 && self.flush_is_due();
            if self.hw_queues[index].parked.is_none() && !flush {
                let next = self.scheduler.dispatch(&queue!(self, now), hw_queue);
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
            match self.hw_queues[index].parked.take() {
                Some(id) => self.issue(now, id, disk),
                None => self.issue_flush(now, disk),
            }
        }
    }

    /// The scheduler gives nothing although it has something: the worker asks again later,
    /// unless it is woken before (`blk_mq_delay_run_hw_queues`).
    fn try_later(&mut self, now: Nanos, hw_queue: u16) {
        let polls = !self.rules.always_restarts && self.worker_due == Nanos::NEVER;
        if polls && self.scheduler.has_work(hw_queue) {
            self.worker_due = self.ticks.timer(now, self.ticks.span(BUDGET_DELAY));
        }
    }

    /// A flush waits and none is with the disk.
    #[inline]
    fn flush_is_due(&self) -> bool {
        !self.flushes.waiting.is_empty() && self.flushes.request.is_none()
    }

    #[inline]
    fn issue(&mut self, now: Nanos, id: RequestId, disk: &mut AnyDisk) {
        self.account(now);
        self.waiting -= 1;
        self.in_flight += 1;
        let request = &mut self.requests[id];
        request.issued = now;
        self.hw_queues[usize::from(request.hw_queue)].in_flight += 1;
        disk.submit(
            now,
            Command {
                tag: Tag(id.0),
                op: request.op,
                sector: request.sector,
                sectors: request.sectors,
                fua: request.fua && !self.flush_after_fua,
                // Linux leaves NCQ priorities off (`ncq_prio_enable`).
                urgent: false,
            },
        );
    }

    fn issue_flush(&mut self, now: Nanos, disk: &mut AnyDisk) {
        std::mem::swap(&mut self.flushes.waiting, &mut self.flushes.running);
        self.account(now);
        self.waiting += 1;
        let id = self.requests.insert(Request {
            op: Op::Flush,
            sync: true,
            process: ProcessId::KERNEL,
            inserted: now,
            ..Request::default()
        });
        self.hw_queues[0].allocated[1] += 1;
        self.flushes.request = Some(id);
        self.issue(now, id, disk);
    }

    /// The disk has ended a command: append the owners of its bios to `owners`. Call
    /// [`Block::run`] afterwards.
    #[inline]
    pub fn complete(&mut self, completion: Completion, owners: &mut Vec<u64>) {
        let now = completion.at;
        let id = RequestId(completion.tag.0);
        self.account(now);
        self.in_flight -= 1;
        if self.flushes.request != Some(id) {
            self.scheduler.completed(&queue!(self, now), id);
            while let Some(hw_queue) = self.scheduler.woken() {
                self.mark(hw_queue);
            }
        }
        let request = &self.requests[id];
        let hw_queue = &mut self.hw_queues[usize::from(request.hw_queue)];
        hw_queue.in_flight -= 1;
        hw_queue.free(request.sync);
        self.counters.count(request, now);
        self.trace.completed(request, now);
        let number = request.hw_queue;
        if request.op == Op::Flush {
            self.flushes.request = None;
            owners.append(&mut self.flushes.running);
        } else {
            let ended = if request.fua && self.flush_after_fua { &mut self.flushes.waiting } else { owners };
            ended.push(request.owner);
            let mut node = request.rest.head;
            while node != BioChain::END {
                let bio = self.bios.remove(node as usize);
                ended.push(bio.owner);
                node = bio.next;
            }
        }
        self.requests.remove(id);
        let restarts =
            self.rules.always_restarts || std::mem::take(&mut self.hw_queues[usize::from(number)].restart);
        if restarts && (self.scheduler.waiting() > 0 || self.rules.peeks) {
            self.mark(number);
            if self.limits.hw_queues == 1 {
                self.worker_due = Nanos::NEVER;
            }
        }
    }

    /// Carry the integrals over time up to `now`, before a count changes.
    #[inline]
    fn account(&mut self, now: Nanos) {
        if now != self.changed {
            self.account_span(now);
        }
    }

    #[inline(never)]
    fn account_span(&mut self, now: Nanos) {
        let depth = self.waiting + self.in_flight;
        if depth > 0 {
            self.series.depth(self.changed, now, self.waiting, self.in_flight);
            self.counters.io_ticks_ns += (now - self.changed).0;
            self.counters.depth_max = self.counters.depth_max.max(u64::from(depth));
        }
        self.changed = now;
    }

    /// Requests that are neither waiting nor with the disk have ended.
    pub fn is_idle(&self) -> bool {
        self.requests.is_empty() && self.flushes.waiting.is_empty()
    }

    /// End the run at `now` and give what was measured.
    pub fn finish(mut self, now: Nanos) -> (DiskCounters, SeriesRecorder, TraceRecorder) {
        self.account(now);
        let (waiting, in_flight) = self.series.depth_areas();
        self.counters.in_queue_ns = waiting + in_flight;
        self.counters.in_flight_ns = in_flight;
        (self.counters, self.series, self.trace)
    }
}

impl DiskCounters {
    /// A request has ended.
    #[inline]
    fn count(&mut self, request: &Request, now: Nanos) {
        let ticks = (now - request.inserted).0;
        self.service_ns += (now - request.issued).0;
        match request.op {
            Op::Read => {
                self.read_ios += 1;
                self.read_sectors += u64::from(request.sectors);
                self.read_ticks_ns += ticks;
            }
            Op::Write => {
                self.write_ios += 1;
                self.write_sectors += u64::from(request.sectors);
                self.write_ticks_ns += ticks;
            }
            Op::Flush => {
                self.flush_ios += 1;
                self.flush_ticks_ns += ticks;
            }
            Op::Discard => {
                self.discard_ios += 1;
                self.discard_ticks_ns += ticks;
            }
        }
    }
}

/// The chain that begins with a bio of `owner` and goes on with `rest`.
fn prepend(bios: &mut slab::Slab<BioNode>, owner: u64, rest: BioChain) -> BioChain {
    let head = bios.insert(BioNode { owner, next: rest.head }) as u32;
    BioChain { head, tail: if rest.tail == BioChain::END { head } else { rest.tail } }
}

/// `first`, then `second`, which is not empty.
fn concat(bios: &mut slab::Slab<BioNode>, first: BioChain, second: BioChain) -> BioChain {
    if first.tail == BioChain::END {
        return second;
    }
    bios[first.tail as usize].next = second.head;
    BioChain { head: first.head, tail: second.tail }
}
