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
//! The measurements and counts, the shares of groups and the search for cooperators are in
//! `parts/`, one struct each, with its own state. The other files coordinate: a request arrives
//! (`enqueue.rs`), the next queue is chosen (`select.rs`), a slice begins and ends (`slice.rs`), a
//! request completes (`complete.rs`).
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
mod parts;
mod requests;
mod select;
mod service;
mod slice;
mod state;
mod tunables;

#[cfg(test)]
mod tests;

use super::journal::{Decision, Journal, Workload};
use super::shared::merge::MergeIndex;
use super::{CgroupId, Generation, Info, Merge, Queue, QueueLimits, Scheduler, Settings, Tasks};
use crate::containers::lists::Links;
use crate::containers::ordered::Members;
use crate::request::{Bio, PrioClass, ProcessId, RequestId};
use crate::units::{Nanos, Sector};
use parts::counts::Counts;
use parts::positions::Positions;
use parts::queueing::QueueingWatch;
use parts::shares::Shares;
use slab::Slab;
use state::{Class, Context, Group, Instant, Kind, ProcessQueue, QueueId, Slot, State};
use tunables::{TUNABLES, Tuned};

/// A request of one page may still grow by merges.
const PAGE_SECTORS: u32 = 4096 / 512;

/// The state of cfq.
pub struct Cfq {
    tuned: Tuned,
    limits: QueueLimits,
    /// A jiffy.
    tick: u64,
    now: Instant,

    slots: Vec<Slot>,
    links: Links,
    merges: MergeIndex,
    waiting: usize,

    queues: Slab<ProcessQueue>,
    contexts: Vec<Context>,
    groups: Vec<Group>,
    /// Queues by due time, in the service trees of their groups.
    service: Members<i64>,
    positions: Positions,
    /// The service that groups have had for their weights.
    shares: Shares,

    serving_group: Option<usize>,
    serving_class: Class,
    serving_kind: Kind,
    workload_expires: Instant,
    active: Option<QueueId>,
    /// The process of the active queue's first request.
    active_context: Option<usize>,

    counts: Counts,
    /// Where the last dispatched request ended.
    last_position: u64,
    last_delayed_sync: Instant,
    queueing: QueueingWatch,

    idle_timer: Nanos,
    kick: Nanos,

    journal: Journal,
    idle_noted: bool,
    workload_noted: Option<(usize, Class, Kind)>,
}

impl Cfq {
    fn is_idling(&self) -> bool {
        self.idle_timer != Nanos::NEVER
    }

    #[inline]
    fn at(&mut self, queue: &Queue<'_>) {
        self.now = queue.now.0 as Instant;
    }

    fn note(&mut self, q: QueueId, decision: Decision) {
        if self.journal.is_kept() {
            self.journal.note(Nanos(self.now as u64), self.queues[q].process, decision);
        }
    }

    fn note_for(&mut self, context: usize, decision: Decision) {
        self.journal.note(Nanos(self.now as u64), Cfq::process_of(context), decision);
    }

    /// Notes that another cgroup, class or workload type is served now, beginning with this queue.
    fn note_workload(&mut self, q: QueueId) {
        if !self.journal.is_kept() {
            return;
        }
        let queue = &self.queues[q];
        let serving = (queue.group, self.serving_class, self.serving_kind);
        if self.workload_noted.replace(serving) != Some(serving) {
            let decision = Decision::WorkloadChosen {
                cgroup: CgroupId(queue.group as u16),
                class: match self.serving_class {
                    Class::RealTime => PrioClass::RealTime,
                    Class::BestEffort => PrioClass::BestEffort,
                    Class::Idle => PrioClass::Idle,
                },
                workload: match self.serving_kind {
                    Kind::Async => Workload::Async,
                    Kind::SyncNoIdle => Workload::SyncNoIdle,
                    Kind::Sync => Workload::Sync,
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
        Cfq {
            tuned: Tuned::new(settings, limits),
            limits: limits.clone(),
            tick: 1_000_000_000 / limits.ticks.hz(),
            now: 0,
            slots: Vec::with_capacity(requests),
            links: Links::with_capacity(requests),
            merges: MergeIndex::with_capacity(requests),
            waiting: 0,
            queues: Slab::new(),
            contexts: Vec::new(),
            groups: tasks.cgroups().iter().map(Group::new).collect(),
            service: Members::default(),
            positions: Positions::new(),
            shares: Shares::new(tasks.cgroups()),
            serving_group: None,
            serving_class: Class::BestEffort,
            serving_kind: Kind::Async,
            workload_expires: 0,
            active: None,
            active_context: None,
            counts: Counts::default(),
            last_position: 0,
            // As if no request had been late for a second.
            last_delayed_sync: -1_000_000_000,
            queueing: QueueingWatch::default(),
            idle_timer: Nanos::NEVER,
            kick: Nanos::NEVER,
            journal: Journal::default(),
            idle_noted: false,
            workload_noted: None,
        }
    }

    /// Merges only with requests of the bio's own queue (`cfq_allow_bio_merge`).
    #[inline]
    fn find_merge(&mut self, queue: &Queue<'_>, bio: &Bio) -> Option<Merge> {
        let q = self.queue_of(bio.process, contexts::is_sync(bio.op, bio.sync, bio.fua))?;
        let (slots, sorted) = (&self.slots, &self.queues[q].sorted);
        let allowed = |id: RequestId| slots[id.index()].queue == q;
        let end = bio.sector.offset(bio.sectors);
        self.merges.find_among(queue, bio, allowed, || sorted.starting_at(end))
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
        let slot = &self.slots[id.index()];
        let sorted = &self.queues[slot.queue].sorted;
        let other = if after { sorted.above(slot.sector, id) } else { sorted.below(slot.sector, id) }?;
        self.merges.joins(queue, id, other, after).then_some(other)
    }

    fn find_join(&mut self, queue: &Queue<'_>, id: RequestId) -> Option<RequestId> {
        self.at(queue);
        self.attach(queue, id);
        let (slots, q) = (&self.slots, self.slots[id.index()].queue);
        self.merges.find_join_among(queue, id, |first| slots[first.index()].queue == q)
    }

    fn requests_merged(&mut self, queue: &Queue<'_>, kept: RequestId, gone: RequestId) {
        self.at(queue);
        let Slot { state, queue: q, expires, .. } = self.slots[gone.index()];
        if state == State::Waiting {
            if expires < self.slots[kept.index()].expires {
                let fifo = &mut self.queues[q].fifo;
                self.links.remove(fifo, kept);
                self.links.insert_after(fifo, gone, kept);
                self.slots[kept.index()].expires = expires;
            }
            if self.queues[q].next == Some(gone) {
                self.queues[q].next = Some(kept);
            }
            self.remove(gone);
            self.waiting -= 1;
        }
        self.slots[gone.index()].state = State::Absent;
        // `kept` is in the same queue.
        self.queues[q].requests -= 1;
        self.merges.grown(kept, queue.requests[gone].end());
    }

    #[inline]
    fn insert(&mut self, queue: &Queue<'_>, id: RequestId) {
        self.at(queue);
        self.attach(queue, id);
        self.waiting += 1;
        let request = &queue.requests[id];
        let Slot { sync, queue: q, .. } = self.slots[id.index()];
        self.slots[id.index()].expires =
            self.now.saturating_add(self.tuned.fifo_expire[usize::from(sync)] as i64);
        self.links.push_back(&mut self.queues[q].fifo, id);
        self.merges.insert(queue, id);
        self.sort_in(id, request.sector);
        self.enqueued(id, request);
    }

    #[inline]
    fn dispatch(&mut self, queue: &Queue<'_>, _: u16) -> Option<RequestId> {
        self.at(queue);
        let id = self.take_next(queue.requests)?;
        self.slots[id.index()].state = State::Driver;
        self.waiting -= 1;
        // `cfq_activate_request`
        self.counts.taken();
        self.last_position = queue.requests[id].end().0;
        Some(id)
    }

    #[inline]
    fn completed(&mut self, queue: &Queue<'_>, id: RequestId) {
        self.at(queue);
        self.ended(id, &queue.requests[id]);
    }

    fn next_timer(&self) -> Nanos {
        self.idle_timer.min(self.kick)
    }

    fn timer(&mut self, queue: &Queue<'_>) -> bool {
        self.at(queue);
        let kicked = std::mem::replace(&mut self.kick, Nanos::NEVER) != Nanos::NEVER;
        let idled = self.idle_timer <= queue.now && self.idled_long_enough();
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
        let context = Cfq::context_of(process);
        if self.contexts.get(context).is_some_and(|context| context.known) {
            self.leave(context);
        }
    }

    fn journal(&mut self) -> Option<&mut Journal> {
        Some(&mut self.journal)
    }
}
