//! The block layer: bios in, requests through plug and scheduler, commands out.
//!
//! Follows `blk-mq.c`, `blk-merge.c` and `blk-flush.c` of Linux 7.3: a bio first tries to merge
//! with the request plugged last, then with one that waits in the scheduler; otherwise it needs a
//! tag, and without a free one its process sleeps. Single-queue schedulers (noop, deadline) get the
//! block layer of 4.12: a pool of `nr_requests` for synchronous and as many for asynchronous
//! requests, a plug that is sorted, and a driver that peeks (`rules.rs`).
//!
//! The process that flushes a plug also dispatches from the scheduler. For bios without a plug,
//! blk-mq's schedulers leave the dispatch to a worker (`kblockd`). It runs when the submitter
//! sleeps, so that everything submitted until then is sorted and merged together.
//!
//! Without a scheduler the driver refuses requests while the disk is full (`refused.rs`).
//!
//! Left out: requeueing after errors, I/O cost and latency controllers, zoned disks. A plug takes no time, since the process
//! that fills it does not sleep before the flush.

/// The scheduler's view of the queue. A macro, since it borrows fields beside the scheduler's.
macro_rules! queue {
    ($block:expr, $now:expr) => {
        crate::scheduler::Queue {
            now: $now,
            requests: &$block.requests,
            in_flight: $block.in_flight,
            limits: &$block.limits,
            tasks: &$block.tasks,
        }
    };
}

mod dispatch;
mod draining;
mod flush;
mod hw_queue;
mod limits;
mod measured;
mod merging;
mod places;
mod plug;
mod recording;
mod refused;
mod rules;
mod stream;
#[cfg(test)]
mod tests;
mod wbt;
mod worker;

use blklab_base::recorded::Flags;

use crate::containers::tags::{Order, Tags};
use crate::disk::{AnyDisk, Completion, Disk};
use crate::host::Host;
use crate::recorder::{SeriesRecorder, TraceRecorder};
use crate::request::{Bio, BioChain, Op, ProcessId, Request, RequestId, RequestSlab};
use crate::result::DiskCounters;
use crate::scheduler::{AnyScheduler, Generation, QueueLimits, Tasks};
use crate::units::Nanos;
use flush::Flushes;
use hw_queue::HwQueue;
pub use limits::{queue_limits, read_ahead};
pub use recording::KERNEL;
use recording::Recording;
pub use rules::{Admission, Manner};
use rules::{Merges, Rules};
pub use stream::{BIO_SECTORS, BioStream};

pub use wbt::Place;
use wbt::Wbt;
use worker::{Restart, Worker};

/// The result of submitting a bio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Submitted {
    /// The bio is in a request, its own or an earlier one.
    Taken,
    /// All requests that this bio may use (this many) are taken: submit it again after a
    /// completion.
    NoRequest(u32),
    /// The throttle of writeback has no place for it.
    NoPlace,
}

/// A bio after the first of its request; most requests have none.
#[derive(Clone, Copy, Debug)]
struct BioNode {
    owner: u64,
    next: u32,
}

/// The request queue of one disk.
pub struct Block {
    limits: QueueLimits,
    tasks: Tasks,
    scheduler: AnyScheduler,
    generation: Generation,
    rules: Rules,
    /// `none`: it has no limits, wake-ups or timer, so it is not asked. A request goes to the
    /// driver at once if nothing waits (`blk_mq_try_issue_list_directly`).
    is_none: bool,
    /// A write with FUA must be followed by a flush.
    flush_after_fua: bool,
    volatile_write_cache: bool,
    requests: RequestSlab,
    bios: slab::Slab<BioNode>,
    hw_queues: Vec<HwQueue>,
    /// Each request's tag.
    tag_of: Vec<u32>,
    /// Hardware queues that may have requests to dispatch, in order.
    to_run: Vec<u16>,
    /// Requests on their way from the scheduler to several hardware queues.
    given: Vec<RequestId>,
    /// A hardware queue's worker is woken ([`HwQueue::worker`]).
    worker_woken: bool,
    /// A worker has woken itself ([`Worker::OnAny`]) since it began.
    wakes_itself: bool,
    /// A process moves to another cgroup, after which the scheduler may ask for a run.
    has_moves: bool,
    /// The first time at which a worker runs by itself ([`HwQueue::due`]).
    worker_due: Nanos,
    plug: Vec<RequestId>,
    flushes: Flushes,
    /// A process that ends closes the disk ([`Host::probe_on_close`]).
    probes_on_close: bool,
    /// Commands without data that wait, and those at the disk.
    probes_waiting: u32,
    probes: Vec<RequestId>,
    /// None if it is off.
    wbt: Option<Box<Wbt>>,
    in_flight: u32,
    waiting: u32,
    changed: Nanos,
    counters: DiskCounters,
    /// Depth and throughput over time.
    pub series: SeriesRecorder,
    trace: TraceRecorder,
    recording: Option<Box<Recording>>,
}

impl Block {
    /// An empty queue of `disk`, for `tasks`.
    pub fn new(
        disk: &AnyDisk,
        limits: QueueLimits,
        scheduler: AnyScheduler,
        tasks: Tasks,
        host: &Host,
    ) -> Block {
        let found = disk.limits();
        let rules = Rules::of(scheduler.info(), found, host);
        let generation = scheduler.info().generation;
        let is_none = matches!(scheduler, AnyScheduler::None(_));
        let tags = match rules.tags {
            Order::Freed if is_none => Tags::alike(limits.nr_requests),
            order => Tags::new(limits.nr_requests, order, limits.cpus),
        };
        Block {
            flush_after_fua: found.volatile_write_cache && !found.fua,
            volatile_write_cache: found.volatile_write_cache,
            generation,
            is_none,
            rules,
            requests: RequestSlab::with_capacity(limits.nr_requests as usize),
            bios: slab::Slab::new(),
            hw_queues: vec![HwQueue::new(tags); usize::from(limits.hw_queues)],
            tag_of: Vec::new(),
            to_run: Vec::with_capacity(usize::from(limits.hw_queues)),
            given: Vec::new(),
            worker_woken: false,
            wakes_itself: false,
            has_moves: tasks.has_moves(),
            worker_due: Nanos::NEVER,
            plug: Vec::with_capacity(rules.plug_requests),
            flushes: Flushes::new(limits.hw_queues),
            probes_on_close: host.probe_on_close,
            probes_waiting: 0,
            probes: Vec::new(),
            wbt: (limits.wbt_target > Nanos::ZERO).then(|| {
                let (depth, cache) = (limits.wbt_depth, found.volatile_write_cache);
                Box::new(Wbt::new(limits.wbt_target, depth, cache, limits.ticks))
            }),
            in_flight: 0,
            waiting: 0,
            changed: Nanos::ZERO,
            counters: DiskCounters::default(),
            series: SeriesRecorder::default(),
            trace: TraceRecorder::default(),
            recording: None,
            limits,
            tasks,
            scheduler,
        }
    }

    /// The queue's fixed properties.
    pub fn limits(&self) -> &QueueLimits {
        &self.limits
    }

    /// A durable write is made so by a flush after it: the disk has a volatile write cache and no FUA.
    pub fn flushes_after_fua(&self) -> bool {
        self.flush_after_fua
    }

    /// A direct read of a file of at most a block comes without a plug.
    pub fn reads_blocks_without_plug(&self) -> bool {
        self.rules.reads_blocks_without_plug
    }

    /// A read of pages that are neighbours in memory is one bio of any length.
    pub fn joins_pages_of_bio(&self) -> bool {
        self.rules.joins_pages_of_bio
    }

    /// A completed write may be lost without a flush.
    pub fn has_volatile_write_cache(&self) -> bool {
        self.volatile_write_cache
    }

    /// When the scheduler or the worker must run next.
    #[inline]
    pub fn next_timer(&self) -> Nanos {
        let scheduler = if self.is_none { Nanos::NEVER } else { self.scheduler.next_timer() };
        let wbt = self.wbt.as_ref().map_or(Nanos::NEVER, |wbt| wbt.timer());
        scheduler.min(self.worker_due).min(wbt)
    }

    /// The timer has expired. Call [`Block::run`] next.
    pub fn timer(&mut self, now: Nanos) {
        if let Some(wbt) = self.wbt.as_mut().filter(|wbt| wbt.timer() <= now) {
            wbt.expired(now);
        }
        let runs = self.scheduler.next_timer() <= now && self.scheduler.timer(&queue!(self, now));
        if runs {
            // An interrupt, on the first CPU.
            self.mark_all(0);
        } else if self.worker_due <= now {
            self.run_due(now);
        }
    }

    /// Reports a process's exit, on that CPU, to the scheduler. The worker dispatches the requests that this
    /// releases.
    pub fn process_exited(&mut self, now: Nanos, process: ProcessId, thread: ProcessId, cpu: u16) {
        self.scheduler.process_exited(&queue!(self, now), process);
        self.wake_asked(thread, self.limits.hw_queue(cpu));
        if self.probes_on_close {
            self.probes_waiting += 1;
            self.wake_worker(0, Worker::After(thread));
        }
    }

    /// A process submits a bio of at most `max_sectors`. With a plug it reaches the scheduler with
    /// [`Block::unplug`] at the latest. Without a plug it may stay there until
    /// [`Block::run_worker`].
    #[inline]
    pub fn submit(&mut self, now: Nanos, bio: &Bio, manner: Manner, disk: &mut AnyDisk) -> Submitted {
        if let Some(recording) = &mut self.recording
            && manner.again.is_none()
            && manner.place == Admission::Unasked
        {
            let plug = match (manner.plugged, self.plug.is_empty()) {
                (false, _) => Flags::BARE,
                (true, true) => Flags::default(),
                (true, false) => Flags::JOINS_PLUG,
            };
            let preflush = manner.after_flush && bio.op != Op::Flush;
            recording.queued(now, bio, plug.with_if(preflush, Flags::PREFLUSH));
        }
        self.take(now, bio, manner, disk)
    }

    #[inline]
    fn take(&mut self, now: Nanos, bio: &Bio, manner: Manner, disk: &mut AnyDisk) -> Submitted {
        if bio.op == Op::Flush || manner.after_flush && self.volatile_write_cache {
            return self.take_flush(now, bio, manner, disk);
        }
        if bio.fua && !self.volatile_write_cache {
            return self.take(now, &Bio { fua: false, ..*bio }, manner, disk);
        }
        if self.rules.plugs_each_bio && !manner.plugged {
            let submitted = self.take(now, bio, Manner { plugged: true, ..manner }, disk);
            self.unplug(now, disk);
            return submitted;
        }
        if manner.is_first() {
            let merges = self.rules.merges == Merges::Always
                || (self.rules.merges == Merges::WithoutPlug && !manner.plugged);
            if self.merge_into_plug(now, bio) || merges && self.merge_into_waiting(now, bio) {
                return Submitted::Taken;
            }
            if !self.has_place(now, bio) {
                return Submitted::NoPlace;
            }
        }
        if manner.woken {
            self.run_for_tag(now, bio.hw_queue, disk);
        }
        let most = manner.again.unwrap_or_else(|| self.depth_limit(now, bio));
        let Some(id) = self.allocate(now, bio, most) else {
            if manner.again.is_none() {
                self.run_for_tag(now, bio.hw_queue, disk);
            }
            return Submitted::NoRequest(most);
        };
        if let Some(wbt) = &mut self.wbt {
            wbt.track(id, bio);
        }
        if !manner.plugged {
            let busy = self.rules.refuses && self.leaves_to_the_worker(bio);
            if !busy && self.issued_directly(now, id, disk) {
                return Submitted::Taken;
            }
            if self.flushes.excludes && !busy && self.refused_beside_flush(now, id, disk) {
                return Submitted::Taken;
            }
            self.insert(now, id, self.rules.joins_without_plug);
            if self.rules.runs_without_plug && !busy {
                self.mark(bio.hw_queue);
                self.run_now(now, disk);
            } else {
                self.wake_worker(bio.hw_queue, Worker::After(bio.thread));
            }
            return Submitted::Taken;
        }
        self.add_to_plug(now, id, disk);
        Submitted::Taken
    }

    /// An I/O of at most a bio on a device has a plug, unless the call waits for it.
    pub fn plugs_queued_device_io(&self) -> bool {
        self.rules.plugs_queued_device_io
    }

    /// Nothing waits in a plug.
    pub fn has_no_plug(&self) -> bool {
        self.plug.is_empty()
    }

    /// The single queue of the time before blk-mq.
    pub fn is_single_queue(&self) -> bool {
        self.generation == Generation::SingleQueue
    }

    /// A bio with a tag becomes a request, which waits for the scheduler.
    #[inline(always)]
    fn request_of(&mut self, now: Nanos, bio: &Bio, tag: u32) -> RequestId {
        self.account(now);
        self.waiting += 1;
        let id = self.requests.insert(Request {
            op: bio.op,
            sector: bio.sector,
            sectors: bio.sectors,
            sync: bio.sync,
            fua: bio.fua,
            idle: bio.idle,
            process: bio.process,
            prio: bio.prio,
            cpu: bio.cpu,
            thread: bio.thread,
            hw_queue: bio.hw_queue,
            clock_stands: self.rules.clock_stands,
            full: false,
            inserted: now,
            issued: Nanos::ZERO,
            owner: bio.owner,
            rest: BioChain::default(),
        });
        self.set_tag(id, tag);
        id
    }

    /// Inserts the request. `joins`: it may instead be appended to a waiting one.
    #[inline]
    fn insert(&mut self, now: Nanos, id: RequestId, joins: bool) {
        if !(joins && self.join_waiting(now, id)) {
            let Request { thread, hw_queue, .. } = self.requests[id];
            self.scheduler.insert(&queue!(self, now), id);
            if self.has_moves {
                self.wake_asked(thread, hw_queue);
            }
        }
    }

    /// The disk has completed a command: appends the owners of its bios to `owners`. Call
    /// [`Block::start_kept_flush`] and [`Block::run`] afterwards. True for a flush: call
    /// [`Block::end_next_of_flush`] first.
    #[inline]
    pub fn complete(&mut self, completion: Completion, owners: &mut Vec<u64>) -> bool {
        let now = completion.at;
        let id = RequestId(completion.tag.0);
        self.account(now);
        self.in_flight -= 1;
        if !self.probes.is_empty() && self.probe_ended(id) {
            return false;
        }
        let has_data = !self.flushes.data.is_empty();
        if !self.is_none && self.requests[id].op != Op::Flush {
            match has_data {
                true => self.completed_since(now, id),
                false => self.scheduler.completed(&queue!(self, now), id),
            }
            let own = self.requests[id].hw_queue;
            while let Some(hw_queue) = self.scheduler.woken() {
                if hw_queue == own || !self.rules.runs_queue_of_cpu {
                    self.run_at_once(hw_queue);
                }
            }
        }
        if self.recording.is_some() {
            self.record_completed(now, id);
        }
        let request = &self.requests[id];
        let hw_queue = &mut self.hw_queues[usize::from(request.hw_queue)];
        hw_queue.in_flight -= 1;
        if let Some(wbt) = &mut self.wbt {
            wbt.served(request.op, now - request.issued);
        }
        self.counters.count(request, now);
        self.trace.completed(request, completion.began, now);
        let number = request.hw_queue;
        if request.op == Op::Flush || request.fua && self.flush_after_fua {
            return self.complete_flushing(now, id);
        }
        let cpu = self.limits.software_queue(request.cpu);
        hw_queue.free(request.sync, self.tag_of[id.index()], cpu);
        owners.push(request.owner);
        let mut node = request.rest.head;
        while node != BioChain::END {
            let bio = self.bios.remove(node as usize);
            owners.push(bio.owner);
            node = bio.next;
        }
        self.requests.remove(id);
        if let Some(wbt) = &mut self.wbt {
            wbt.freed(now, id);
            owners.extend(wbt.take_woken());
        }
        if has_data {
            self.data_ended(now, id, number);
        }
        self.restart(number, Restart::RefusedOrFull);
        false
    }
}
