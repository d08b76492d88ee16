//! `cfq-2008`: CFQ as it was in 2008, the version that the first BFQ was compared with.
//!
//! Follows `block/cfq-iosched.c` of Linux 2.6.28, in the single-queue block layer of Linux 4.12.
//!
//! Synchronous requests of a process go into a queue of its own, asynchronous requests of all processes
//! into one queue for each priority. One queue at a time is *active*: it has the disk for a slice of time,
//! `slice_sync` or `slice_async`, a fifth more or less for each level above or below 4. The slice starts
//! when the turn's first request completes. All busy queues are in one order of service: real time, best
//! effort, the idle class; within a class by the time when a queue became busy or was last served, later
//! for low priorities and when more queues are busy.
//!
//! If the active queue becomes empty, the disk *idles* for `slice_idle`, because the next request of the
//! process is probably close. So it does for every process that comes back in time, whether it reads on or
//! seeks: a random reader has slices of its own too. For one that seeks the disk idles for 2 ms at most;
//! and not at all if the disk queues commands, which it finds out by counting.
//!
//! A new request *preempts* the active queue if that one's time is over, if it is of the idle class, or if it
//! is asynchronous and the request is synchronous; and if the disk idles, and the request is as near as those
//! of the process that it idles for. Real time does not preempt; it goes first when a turn ends. No
//! asynchronous request goes to the disk while a synchronous one is there.
//!
//! `cfq`, of Linux 4.12, differs from this version in what came later:
//!
//! * `low_latency` and `target_latency` (2.6.32): slices that shrink as the number of processes grows;
//! * groups of queues that are not worth idling for (2.6.33): random readers have no slices of their own,
//!   and are served in turn as if they were one; writes of an fsync belong there too;
//! * cgroups (2.6.33), `group_idle` (2.6.37), and shares in requests on flash;
//! * queues of processes that read one area in turns, which are merged (2.6.30 and later);
//! * half a `quantum` while the slice is not nearly over, and `slice_idle` in microseconds.
//!
//! Three traits of 2.6.28 look like mistakes. They are kept, because published results were measured with
//! them:
//!
//! * A queue that is preempted before its slice is over keeps the rest, but as a penalty: it is due so much
//!   *later*. A queue that overran its slice is due so much *earlier*. (4.12 has it the other way round.)
//! * A process's first seek distance is counted from the disk's first sector, so that a process that reads
//!   on far inside the disk counts as seeky for its first requests.
//! * `slice_async_rq` has an effect on level 7 alone: at the others more requests are allowed than `quantum`,
//!   which ends the round before.
//!
//! Left out: metadata requests (`REQ_META`), which went first and preempted; the model has none; raised
//! priority of processes that hold a file system's locks; nice values (a process without priority is best
//! effort, level 4); changes of priority while a process runs; extra requests beyond `nr_requests` for a
//! process that the disk idles for. In 2.6.28 a request that ended idling or preempted ran the queue before
//! the rest of its plug had come; here the queue runs after the plug. If two waiting requests are merged, the
//! one that is kept takes the earlier place in the FIFO; in 2.6.28 it took only the earlier time.
//! That version knew no cgroups: all processes are in one group.

mod complete;
mod enqueue;
mod parts;
mod queue;
mod requests;
mod select;
mod slice;
mod tunables;

#[cfg(test)]
mod tests;

use super::journal::{Decision, Journal};
use super::shared::idling::Idling;
use super::shared::linux_2_6_28::async_queues::AsyncQueues;
use super::shared::linux_2_6_28::counts::Counts;
use super::shared::linux_2_6_28::outgoing::Outgoing;
use super::shared::linux_2_6_28::requests::Requests;
use super::shared::linux_2_6_28::seeks::SeekDistance;
use super::shared::linux_2_6_28::{is_sync, tasks};
use super::shared::merge::MergeIndex;
use super::{Generation, Info, Merge, Queue, QueueLimits, Scheduler, Settings, Tasks};
use crate::request::{Bio, ProcessId, RequestId};
use crate::ticks::Ticks;
use crate::units::{Nanos, Sector};
use parts::lengths::Lengths;
use parts::queueing::QueueingWatch;
use parts::service_tree::ServiceTree;
use queue::{ProcessQueue, QueueId};
use tasks::TaskIndex;
use tunables::{TUNABLES, Tuned};

/// The state of cfq-2008.
pub struct Cfq2008 {
    tuned: Tuned,
    rotational: bool,
    ticks: Ticks,
    now: Nanos,
    tick: u64,
    journal: Journal,

    requests: Requests<QueueId>,
    merges: MergeIndex,
    outgoing: Outgoing,
    counts: Counts,

    queues: Vec<ProcessQueue>,
    tasks: tasks::Tasks<QueueId>,
    async_queues: AsyncQueues<QueueId>,

    tree: ServiceTree,
    lengths: Lengths,
    active: Option<QueueId>,
    /// The process of the turn's first request (`active_cic`).
    active_task: Option<TaskIndex>,
    idling: Idling,
    queueing: QueueingWatch,
    /// The active process has exited: other queues may be served.
    kick: Nanos,
}

impl Cfq2008 {
    /// The request is in a queue and not chosen yet.
    #[cfg(test)]
    pub(super) fn is_in_queue(&self, id: RequestId) -> bool {
        self.requests.is_waiting(id)
    }

    #[inline]
    fn at(&mut self, queue: &Queue<'_>) {
        self.now = queue.now;
        self.tick = self.ticks.at(queue.now);
    }

    #[inline]
    fn note(&mut self, q: QueueId, decision: Decision) {
        self.journal.note(self.now, self.queues[q].process, decision);
    }
}

impl Scheduler for Cfq2008 {
    const INFO: Info = Info {
        name: "cfq-2008",
        generation: Generation::SingleQueue,
        summary: "cfq of 2008: time slices for every process, random readers too (single queue)",
        follows: "Linux 2.6.28, cfq-iosched.c, but for metadata requests",
        // estimate: as cfq.
        lock_ns: 1_000,
        tunables: TUNABLES,
    };

    fn new(settings: &Settings, limits: &QueueLimits, _: &Tasks) -> Self {
        let tuned = Tuned::new(settings, limits);
        let requests = limits.nr_requests as usize;
        Cfq2008 {
            rotational: limits.rotational,
            ticks: limits.ticks,
            now: Nanos::ZERO,
            tick: 0,
            journal: Journal::default(),
            requests: Requests::new(requests, tuned.back_seek),
            merges: MergeIndex::with_capacity(requests),
            outgoing: Outgoing::new(requests),
            counts: Counts::default(),
            queues: Vec::new(),
            tasks: tasks::Tasks::new(SeekDistance::FROM_THE_FIRST_SECTOR),
            async_queues: AsyncQueues::new(1),
            tree: ServiceTree::new(limits.ticks),
            lengths: Lengths::new(tuned.slice, tuned.slice_async_rq),
            active: None,
            active_task: None,
            idling: Idling::NONE,
            queueing: QueueingWatch::NEW,
            kick: Nanos::NEVER,
            tuned,
        }
    }

    /// Merges only with requests of the bio's own queue (`cfq_allow_merge`).
    #[inline]
    fn find_merge(&mut self, queue: &Queue<'_>, bio: &Bio) -> Option<Merge> {
        let q = self.tasks.queue_of(bio.process, is_sync(bio.op, bio.sync))?;
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
                self.reposition(id, queue.requests);
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
        let backlog = &mut self.queues[self.requests.queue_of(gone)].backlog;
        if self.requests.merge(backlog, kept, gone) {
            self.remove(gone);
        }
        self.requests.free(gone);
        self.merges.grown(kept, queue.requests[gone].end());
    }

    #[inline]
    fn insert(&mut self, queue: &Queue<'_>, id: RequestId) {
        self.at(queue);
        self.attach(queue, id);
        self.add(id, queue.requests);
        self.merges.insert(queue, id);
        self.enqueued(id, queue.requests);
    }

    #[inline]
    fn dispatch(&mut self, queue: &Queue<'_>, _: u16) -> Option<RequestId> {
        self.at(queue);
        if self.outgoing.is_empty() {
            self.fill(queue.requests);
        }
        let id = self.outgoing.take(queue.requests)?;
        self.counts.taken();
        Some(id)
    }

    #[inline]
    fn completed(&mut self, queue: &Queue<'_>, id: RequestId) {
        self.at(queue);
        self.ended(id);
    }

    #[inline]
    fn next_timer(&self) -> Nanos {
        self.idling.timer().min(self.kick)
    }

    fn timer(&mut self, queue: &Queue<'_>) -> bool {
        self.at(queue);
        self.kick = Nanos::NEVER;
        if self.idling.timer() <= queue.now {
            self.idled_long_enough();
        }
        self.waiting() > 0
    }

    #[inline]
    fn has_work(&self, _: u16) -> bool {
        self.waiting() > 0
    }

    #[inline]
    fn waiting(&self) -> usize {
        self.counts.queued() as usize + self.outgoing.len()
    }

    fn process_exited(&mut self, queue: &Queue<'_>, process: ProcessId) {
        self.at(queue);
        self.exit(process);
    }

    fn journal(&mut self) -> Option<&mut Journal> {
        Some(&mut self.journal)
    }
}
