//! `cfq`: completely fair queueing: every process gets slices of the disk's time.
//!
//! Follows the single-queue scheduler of Linux 4.12 (`block/cfq-iosched.c`, with cgroups on
//! the default hierarchy and the legacy elevator core around it).
//!
//! Synchronous requests of a process go into a queue of its own, asynchronous requests of all
//! processes into one queue for each priority. One queue at a time is *active*: it has the disk for
//! a time slice, so that a sequential reader continues undisturbed, and no process gets more of the
//! disk's time than its priority allows (`slice_sync` or `slice_async`, a fifth more or less for
//! each level above or below 4). If the active queue becomes empty, the disk *idles* for
//! `slice_idle`: the process has its data and will probably send a nearby request. This short wait
//! saves a long seek to another process's data and back.
//!
//! Four steps choose the next queue:
//!
//! 1. Cgroup: the one that has had the least time for its weight.
//! 2. Class: real time, then best effort; the idle class when no other class has requests.
//! 3. Workload type: *sync* (worth idling for); *sync-noidle* (seeky, or with a long think time:
//!    these queues are served in turn as if they were one, with one idle wait at the end; the
//!    writes of an fsync belong here too); *async*. Each type has a share of the round of
//!    `target_latency` by its number of queues.
//! 4. Queue: the one that is due first. Its key is the time when it became busy or was last served;
//!    later for low priorities, earlier by the rest of its slice.
//!
//! A new request may *preempt*: a synchronous one before asynchronous ones, real time before the
//! other classes of its cgroup, and any of the same class while all requests of the active queue
//! are in flight and the disk would not idle for it. By this last rule a sequential reader that
//! comes back preempts random readers; and on a disk that takes one command at a time, a few busy
//! random readers overtake all others without end.
//!
//! Processes that read one area in turns share a queue until they part. CFQ measures whether idling
//! pays: think times, how many of the last 32 requests were seeks, and whether the disk queues
//! commands. On flash that queues commands, the disk idles for no queue, and groups share requests
//! instead of time.
//!
//! The rules are in `parts/`, one struct each, with its own state: service trees, slices and their
//! lengths, idle windows, think times, the shares of groups, the search for cooperators and others.
//! The other files coordinate: a request gets its queue (`contexts.rs`) and arrives (`enqueue.rs`),
//! the next queue is chosen (`select.rs`), a slice begins and ends (`slice.rs`), the disk idles
//! (`idle.rs`), a request completes (`complete.rs`), processes share a queue (`cooperate.rs`).
//!
//! Left out: metadata requests (`REQ_PRIO`), which go first in the kernel; the model has none; and
//! changes of a process while it runs (`ionice`, moves to another cgroup, tunables), which a run
//! does not make. The kernel lets a process that the disk idles for have one request beyond
//! `nr_requests`; here it waits for a request like all others, which matters where readers keep
//! more than 128 requests. In the kernel a request that ends idling or preempts runs the queue
//! before the rest of its plug has come; here the queue runs after the plug, which matters where a
//! process submits several requests at once. Of two queues that are both close enough to cooperate
//! the nearer is taken; the kernel takes the one that its tree shows first. 4.12 merged requests of
//! different priority; here they stay apart.

mod complete;
mod contexts;
mod cooperate;
mod enqueue;
mod groups;
mod idle;
mod kinds;
mod parts;
mod queue;
mod requests;
mod select;
mod service;
mod slice;
mod tunables;

#[cfg(test)]
mod tests;

use super::journal::{self, Decision, Journal};
use super::shared::idling::Idling;
use super::shared::merge::MergeIndex;
use super::shared::positions::Positions;
use super::{CgroupId, Generation, Info, Merge, Queue, QueueLimits, Scheduler, Settings, Tasks};
use crate::request::{Bio, PrioClass, ProcessId, RequestId};
use crate::units::{Nanos, Sector};
use kinds::{Class, Instant, Kind, QueueId};
use parts::async_depth::AsyncDepth;
use parts::contexts::{ContextId, Contexts};
use parts::counts::Counts;
use parts::groups::Groups;
use parts::lengths::Lengths;
use parts::queueing::QueueingWatch;
use parts::requests::Requests;
use parts::service_trees::ServiceTrees;
use parts::shares::Shares;
use parts::sharing::Sharing;
use parts::workload::Workload;
use queue::ProcessQueue;
use slab::Slab;
use tunables::{TUNABLES, Tuned};

/// Priority levels.
const LEVELS: usize = 8;

/// A request of one page may still grow by merges.
const PAGE_SECTORS: u32 = 4096 / 512;

/// The state of cfq.
pub struct Cfq {
    tuned: Tuned,
    limits: QueueLimits,
    /// A jiffy.
    tick: u64,
    now: Instant,

    requests: Requests,
    merges: MergeIndex,
    waiting: usize,

    queues: Slab<ProcessQueue>,
    contexts: Contexts,
    sharing: Sharing,
    positions: Positions<QueueId>,

    groups: Groups,
    trees: ServiceTrees,
    /// The service that groups have had for their weights.
    shares: Shares,
    workload: Workload,
    lengths: Lengths,

    active: Option<QueueId>,
    /// The process of the active queue's first request.
    active_context: Option<ContextId>,
    idling: Idling,

    counts: Counts,
    queueing: QueueingWatch,
    async_depth: AsyncDepth,
    /// Where the last dispatched request ended.
    head: Sector,
    /// When the block layer must ask for requests, although none completes.
    kick: Nanos,

    journal: Journal,
}

impl Cfq {
    #[inline]
    fn at(&mut self, queue: &Queue<'_>) {
        self.now = queue.now.0 as Instant;
    }

    fn note(&mut self, q: QueueId, decision: Decision) {
        if self.journal.is_kept() {
            self.journal.note(Nanos(self.now as u64), self.queues[q].process, decision);
        }
    }

    fn note_for(&mut self, context: ContextId, decision: Decision) {
        self.journal.note(Nanos(self.now as u64), Contexts::process(context), decision);
    }

    /// Notes that another cgroup, class or workload type is served now, beginning with this queue.
    fn note_workload(&mut self, q: QueueId) {
        if !self.journal.is_kept() {
            return;
        }
        let group = self.queues[q].group;
        if self.workload.take_note(group) {
            let (_, class, kind) = self.workload.served();
            let decision = Decision::WorkloadChosen {
                cgroup: CgroupId(group as u16),
                class: match class {
                    Class::RealTime => PrioClass::RealTime,
                    Class::BestEffort => PrioClass::BestEffort,
                    Class::Idle => PrioClass::Idle,
                },
                workload: match kind {
                    Kind::Async => journal::Workload::Async,
                    Kind::SyncNoIdle => journal::Workload::SyncNoIdle,
                    Kind::Sync => journal::Workload::Sync,
                },
            };
            self.note(q, decision);
        }
    }
}

impl Scheduler for Cfq {
    const INFO: Info = Info {
        name: "cfq",
        generation: Generation::SingleQueue,
        summary: "time slices for each process by its priority, idling for its next request (single queue)",
        follows: "Linux 4.12, cfq-iosched.c, but for metadata requests",
        // estimate: as deadline, plus trees of queues.
        lock_ns: 1_000,
        tunables: TUNABLES,
    };

    fn new(settings: &Settings, limits: &QueueLimits, tasks: &Tasks) -> Self {
        let requests = limits.nr_requests as usize;
        let cgroups = tasks.cgroups();
        let tuned = Tuned::new(settings, limits);
        let tick = 1_000_000_000 / limits.ticks.hz();
        Cfq {
            tuned,
            limits: limits.clone(),
            tick,
            now: 0,
            requests: Requests::new(requests, tuned.back_seek),
            merges: MergeIndex::with_capacity(requests),
            waiting: 0,
            queues: Slab::new(),
            contexts: Contexts::default(),
            sharing: Sharing::default(),
            positions: Positions::new(LEVELS),
            groups: Groups::new(cgroups),
            trees: ServiceTrees::new(cgroups.len()),
            shares: Shares::new(cgroups),
            workload: Workload::new(cgroups.len()),
            lengths: Lengths::new(&tuned, tick),
            active: None,
            active_context: None,
            idling: Idling::NONE,
            counts: Counts::default(),
            queueing: QueueingWatch::default(),
            async_depth: AsyncDepth::new(tuned.slice[1]),
            head: Sector(0),
            kick: Nanos::NEVER,
            journal: Journal::default(),
        }
    }

    /// Merges only with requests of the bio's own queue (`cfq_allow_bio_merge`).
    #[inline]
    fn find_merge(&mut self, queue: &Queue<'_>, bio: &Bio) -> Option<Merge> {
        let q = self.contexts.queue_of(bio.process, contexts::is_sync(bio.op, bio.sync, bio.fua))?;
        let (requests, backlog) = (&self.requests, &self.queues[q].backlog);
        let allowed = |id: RequestId| requests.queue_of(id) == q;
        let end = bio.sector.offset(bio.sectors);
        self.merges.find_among(queue, bio, allowed, || backlog.starting_at(end))
    }

    fn bio_merged(&mut self, queue: &Queue<'_>, merge: Merge, _: Sector) {
        self.at(queue);
        match merge {
            Merge::Back(id) => self.merges.grown(id, queue.requests[id].end()),
            Merge::Front(id) => {
                self.reposition(id, queue.requests[id].sector);
                self.merges.grown_downwards(id);
            }
        }
    }

    fn neighbour(&self, queue: &Queue<'_>, id: RequestId, after: bool) -> Option<RequestId> {
        let backlog = &self.queues[self.requests.queue_of(id)].backlog;
        let other = self.requests.neighbour(backlog, id, after)?;
        self.merges.joins(queue, id, other, after).then_some(other)
    }

    fn find_join(&mut self, queue: &Queue<'_>, id: RequestId) -> Option<RequestId> {
        self.at(queue);
        self.attach(queue, id);
        let (requests, q) = (&self.requests, self.requests.queue_of(id));
        self.merges.find_join_among(queue, id, |first| requests.queue_of(first) == q)
    }

    fn requests_merged(&mut self, queue: &Queue<'_>, kept: RequestId, gone: RequestId) {
        self.at(queue);
        let q = self.requests.queue_of(gone);
        if self.requests.merge(&mut self.queues[q].backlog, kept, gone) {
            self.removed(gone, q);
            self.waiting -= 1;
        }
        // `kept` is in the same queue.
        self.sharing.request_gone(q);
        self.merges.grown(kept, queue.requests[gone].end());
    }

    #[inline]
    fn insert(&mut self, queue: &Queue<'_>, id: RequestId) {
        self.at(queue);
        self.attach(queue, id);
        self.waiting += 1;
        let request = &queue.requests[id];
        self.merges.insert(queue, id);
        self.sort_in(id, request.sector);
        self.enqueued(id, request);
    }

    #[inline]
    fn dispatch(&mut self, queue: &Queue<'_>, _: u16) -> Option<RequestId> {
        self.at(queue);
        let id = self.take_next(queue.requests)?;
        self.waiting -= 1;
        // `cfq_activate_request`
        self.counts.taken();
        self.head = queue.requests[id].end();
        Some(id)
    }

    #[inline]
    fn completed(&mut self, queue: &Queue<'_>, id: RequestId) {
        self.at(queue);
        self.ended(id, &queue.requests[id]);
    }

    fn next_timer(&self) -> Nanos {
        self.idling.timer().min(self.kick)
    }

    fn timer(&mut self, queue: &Queue<'_>) -> bool {
        self.at(queue);
        let kicked = std::mem::replace(&mut self.kick, Nanos::NEVER) != Nanos::NEVER;
        let idled = self.idling.timer() <= queue.now && self.idled_long_enough();
        kicked || idled
    }

    #[inline]
    fn has_work(&self, _: u16) -> bool {
        self.waiting > 0
    }

    #[inline]
    fn waiting(&self) -> usize {
        self.waiting
    }

    fn process_exited(&mut self, queue: &Queue<'_>, process: ProcessId) {
        self.at(queue);
        self.leave(process);
    }

    fn journal(&mut self) -> Option<&mut Journal> {
        Some(&mut self.journal)
    }
}
