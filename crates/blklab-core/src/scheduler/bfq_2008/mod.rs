//! `bfq-2008`: the first BFQ, which shares the disk in sectors instead of time.
//!
//! Follows the patch of Checconi and Valente for Linux 2.6.28, of the algorithm that they
//! presented in 2008 ("High throughput disk scheduling with fair bandwidth distribution", IEEE
//! Transactions on Computers 2010), in the single-queue block layer of Linux 4.12.
//!
//! CFQ of that time gave each process slices of the disk's *time*. On a hard disk equal time does
//! not mean equal data: the outer tracks are twice as fast as the inner ones, and a process that
//! seeks more in its slice reads less. BFQ gives each process a *budget* of sectors instead.
//! B-WF2Q+ ([`wf2q`](super::shared::wf2q)) decides which process is served next for its budget.
//! Each process gets its weight's share of the sectors, wherever they lie, and is never late by
//! more than about one budget of the others. The turn of a process ends when:
//!
//! * its budget is used up: the next one is larger, up to the largest;
//! * it has no more requests. After a request the disk *idles* for `slice_idle`, because a
//!   sequential process sends its next request at once; a process that lets this time pass gets a
//!   smaller budget;
//! * its time is over (`timeout_sync`): the process seeks. It is charged for its whole budget, so
//!   that it does not take most of the disk's time for few sectors. So processes that seek share
//!   the disk by time, as under CFQ.
//!
//! Shares are in sectors, so a process that has used a large budget waits until other processes of
//! its weight have got as many sectors. If those seek, and pause before their timeout, this takes
//! seconds: two random readers with a think time of 2 ms keep a sequential one waiting for 7 s.
//!
//! The largest budget is what the disk moves in three quarters of `timeout_sync` at the rate of the
//! fastest turn: with 125 ms, about the 100 ms of a slice of CFQ.
//!
//! Weights come from I/O priorities: 8 minus the level, so that level 0 has eight times the share
//! of level 7. Real time goes before best effort; the idle class is served only when no other class
//! has requests, however long that takes. Within a turn requests are sorted as in CFQ: the nearest
//! to the head, upwards first; but the oldest request goes first when it has expired.
//!
//! Later versions added low latency, preemption, merging of queues that read side by side, and
//! injection; they judge slowness by the disk's rate and charge timed-out queues for time. That is
//! `bfq`; this scheduler has none of it.
//!
//! Three traits of the patch look like mistakes. They are kept, because published results were
//! measured with them:
//!
//! * The patch calls a turn "slow" that was *fast*: the comparison in `bfq_update_peak_rate`
//!   contradicts its comment. So a fast reader that pauses is charged for its whole budget, and a
//!   seeky reader that pauses is not.
//! * A turn whose end is found before a dispatch is charged before its rate is measured, and so
//!   looks faster than it was.
//! * The turn's first request, and requests that are chosen but not dispatched when it ends, count
//!   in that rate; their time does not.
//!
//! Left out: metadata requests (`REQ_META`), which went first; the model has none; raised priority
//! of processes that hold a file system's locks; nice values (a process without priority is best
//! effort, level 4); changes of priority or group while a process runs; extra requests beyond
//! `nr_requests` for a process that the disk idles for, which would matter only where all of the
//! queue's requests are in use. Groups have weights of 1 to 1000, as today's cgroups have; in the
//! patch they had levels. Two requests of a process at the same sector both wait; the patch
//! dispatched the first at once.

mod budget;
mod complete;
mod parts;
mod queue;
mod requests;
mod serve;
mod tunables;

#[cfg(test)]
mod tests;

use super::journal::{Decision, Journal};
use super::shared::linux_2_6_28::async_queues::AsyncQueues;
use super::shared::linux_2_6_28::counts::Counts;
use super::shared::linux_2_6_28::outgoing::Outgoing;
use super::shared::linux_2_6_28::requests::Requests;
use super::shared::linux_2_6_28::seeks::SeekDistance;
use super::shared::linux_2_6_28::{is_sync, tasks};
use super::shared::merge::MergeIndex;
use super::shared::wf2q::Wf2q;
use super::{Generation, Info, Merge, Queue, QueueLimits, Scheduler, Settings, Tasks};
use crate::request::{Bio, ProcessId, RequestId};
use crate::ticks::Ticks;
use crate::units::{Nanos, Sector};
use parts::QueueId;
use parts::budgets::Budgets;
use parts::idle_timer::IdleTimer;
use parts::queueing::QueueingWatch;
use parts::service::Service;
use queue::ProcessQueue;
use tunables::{TUNABLES, Tuned};

/// The state of the first BFQ.
pub struct Bfq2008 {
    tuned: Tuned,
    ticks: Ticks,
    now: Nanos,
    tick: u64,
    journal: Journal,

    requests: Requests<QueueId>,
    merges: MergeIndex,
    outgoing: Outgoing,
    counts: Counts,

    wf2q: Wf2q,
    /// By leaf number.
    queues: Vec<ProcessQueue>,
    tasks: tasks::Tasks<QueueId>,
    async_queues: AsyncQueues<QueueId>,

    service: Service,
    idle_timer: IdleTimer,
    /// The process in service has exited: other queues may be served.
    kick: Nanos,

    budgets: Budgets,
    queueing: QueueingWatch,
}

impl Bfq2008 {
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
    fn note(&mut self, process: ProcessId, decision: Decision) {
        self.journal.note(self.now, process, decision);
    }
}

impl Scheduler for Bfq2008 {
    const INFO: Info = Info {
        name: "bfq-2008",
        generation: Generation::SingleQueue,
        summary: "the first BFQ: shares of sectors by I/O priority, in budgets (single queue)",
        follows: "the patch for Linux 2.6.28 (Checconi and Valente), without metadata requests",
        // estimate: as cfq, and the search for the next queue.
        lock_ns: 1_000,
        tunables: TUNABLES,
    };

    fn new(settings: &Settings, limits: &QueueLimits, tasks: &Tasks) -> Self {
        let tuned = Tuned::new(settings, limits);
        let requests = limits.nr_requests as usize;
        let mut wf2q = Wf2q::new(limits.ticks).with_rules_of_2008();
        wf2q.know_groups(tasks.cgroups());
        Bfq2008 {
            ticks: limits.ticks,
            now: Nanos::ZERO,
            tick: 0,
            journal: Journal::default(),
            requests: Requests::new(requests, tuned.back_seek),
            merges: MergeIndex::with_capacity(requests),
            outgoing: Outgoing::new(requests),
            counts: Counts::default(),
            wf2q,
            queues: Vec::new(),
            tasks: tasks::Tasks::new(SeekDistance::NONE),
            async_queues: AsyncQueues::new(tasks.cgroups().len()),
            service: Service::NONE,
            idle_timer: IdleTimer::NEW,
            kick: Nanos::NEVER,
            budgets: Budgets::new(tuned.max_budget, tuned.timeout_sync_ms),
            queueing: QueueingWatch::NEW,
            tuned,
        }
    }

    /// Merges only with requests of the bio's own queue (`bfq_allow_merge`).
    #[inline]
    fn find_merge(&mut self, queue: &Queue<'_>, bio: &Bio) -> Option<Merge> {
        let q = self.tasks.queue_of(bio.process, is_sync(bio.op, bio.sync))?;
        let (requests, backlog) = (&self.requests, &self.queues[q.index()].backlog);
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
        let backlog = &self.queues[self.requests.queue_of(id).index()].backlog;
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
        let backlog = &mut self.queues[self.requests.queue_of(gone).index()].backlog;
        if self.requests.merge(backlog, kept, gone) {
            self.remove(gone, queue.requests);
        }
        self.requests.free(gone);
        self.merges.grown(kept, queue.requests[gone].end());
    }

    #[inline]
    fn insert(&mut self, queue: &Queue<'_>, id: RequestId) {
        self.at(queue);
        self.attach(queue, id);
        self.merges.insert(queue, id);
        self.add(id, queue.requests);
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
        self.ended(id, queue.requests);
    }

    #[inline]
    fn next_timer(&self) -> Nanos {
        self.idle_timer.until().min(self.kick)
    }

    fn timer(&mut self, queue: &Queue<'_>) -> bool {
        self.at(queue);
        self.kick = Nanos::NEVER;
        if self.idle_timer.until() <= queue.now {
            self.idled_long_enough(queue.requests);
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
