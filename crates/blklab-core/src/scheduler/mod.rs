//! The scheduler's interface, after the kernel's elevator hooks, and the registry.
//!
//! Adding a scheduler is one new file (or folder) here and one line in
//! [`schedulers!`](registry). A scheduler owns which request goes next; the block
//! layer owns the requests, their tags and the disk.

mod info;
mod lanes;
mod lists;
mod merge;
mod nearest;
mod ordered;
mod sorted;
mod tasks;

pub mod bfq;
pub mod bfq_2008;
pub mod cfq;
pub mod deadline;
pub mod journal;
pub mod kyber;
pub mod mq_deadline;
pub mod none;
pub mod noop;
pub mod registry;
pub mod spec;
pub mod wf2q;

#[cfg(test)]
mod deadline_rules;
#[cfg(test)]
mod merge_rules;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod testing;

use crate::request::{Bio, Op, ProcessId, Request, RequestId, RequestSlab};
use crate::ticks::Ticks;
use crate::units::Nanos;

pub use crate::tunable::{Settings, Tunable, Unit};
pub use info::{Generation, Info};
pub use registry::AnyScheduler;
pub use tasks::{Cgroup, CgroupId, Task, Tasks};

/// What a scheduler may see of the queue it serves, at one moment.
pub struct Queue<'a> {
    /// The time.
    pub now: Nanos,
    /// All living requests.
    pub requests: &'a RequestSlab,
    /// Requests that the disk has (dispatched, not completed).
    pub in_flight: u32,
    /// Limits that do not change during a run.
    pub limits: &'a QueueLimits,
    /// Who the processes are.
    pub tasks: &'a Tasks,
}

/// The queue's fixed properties.
#[derive(Clone, Debug, PartialEq)]
pub struct QueueLimits {
    /// `queue/rotational`.
    pub rotational: bool,
    /// Commands the disk takes at once per hardware queue.
    pub queue_depth: u32,
    /// Hardware queues.
    pub hw_queues: u16,
    /// `queue/nr_requests`: requests per hardware queue that may wait or be under way.
    pub nr_requests: u32,
    /// Largest request in sectors (`max_sectors_kb`, in sectors).
    pub max_sectors: u32,
    /// CPUs of the host (software queues).
    pub cpus: u16,
    /// The host's coarse clock, for who counts in jiffies.
    pub ticks: Ticks,
}

/// Where a new request goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InsertAt {
    /// Where the scheduler wants it.
    Sorted,
    /// To be dispatched before everything else (requeue, `BLK_MQ_INSERT_AT_HEAD`).
    Head,
}

/// How a bio fits a waiting request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Merge {
    /// The bio begins where the request ends.
    Back(RequestId),
    /// The bio ends where the request begins.
    Front(RequestId),
}

/// What the queue's owner calls, in the order of a request's life.
///
/// Requests come in by `insert` and leave by `dispatch` exactly once, or by
/// `requests_merged`. Flushes never come here.
pub trait Scheduler: Sized {
    /// Name, description and table of tunables.
    const INFO: Info;

    /// A scheduler with these settings (already checked against the table) for these processes.
    fn new(settings: &Settings, limits: &QueueLimits, tasks: &Tasks) -> Self;

    /// A waiting request that `bio` could grow, if the scheduler wants that. The
    /// caller has not checked sizes; the scheduler only returns requests for which
    /// [`can_merge`] holds.
    fn find_merge(&mut self, queue: &Queue<'_>, bio: &Bio) -> Option<Merge>;

    /// The request has grown by a bio; when `merge` is `Front` its first sector changed
    /// from `old_sector`.
    fn bio_merged(&mut self, queue: &Queue<'_>, merge: Merge, old_sector: crate::units::Sector);

    /// The waiting request adjoining `id` behind it (`after` true) or before it, with
    /// which the grown `id` may now be joined; `None` if there is none or it may not be.
    fn neighbour(&self, queue: &Queue<'_>, id: RequestId, after: bool) -> Option<RequestId>;

    /// `gone` was appended to `kept`; forget it. Both are still in the slab, `kept`
    /// not yet grown. `kept` inherits the earlier deadline. After
    /// [`Scheduler::find_join`], `gone` was never inserted.
    fn requests_merged(&mut self, queue: &Queue<'_>, kept: RequestId, gone: RequestId);

    /// A waiting request that the new `id` could be appended to instead of being inserted
    /// (`blk_mq_sched_try_insert_merge`); `id` must not wait here yet. The caller then calls
    /// `requests_merged` with it, and may ask again for the request that has grown.
    fn find_join(&mut self, queue: &Queue<'_>, id: RequestId) -> Option<RequestId> {
        let _ = (queue, id);
        None
    }

    /// A request enters.
    fn insert(&mut self, queue: &Queue<'_>, id: RequestId, at: InsertAt);

    /// The next request for hardware queue `hw_queue`, or none: because nothing waits,
    /// or because the scheduler holds back (it then says until when in `next_timer`, or
    /// a completion will make it go on).
    fn dispatch(&mut self, queue: &Queue<'_>, hw_queue: u16) -> Option<RequestId>;

    /// [`Scheduler::dispatch`] gave nothing, and nothing has happened since, time included,
    /// that could make it give something: it need not be asked again.
    fn is_settled(&self, now: Nanos) -> bool {
        let _ = now;
        false
    }

    /// The disk has ended the request. `id` is still in the slab.
    fn completed(&mut self, queue: &Queue<'_>, id: RequestId);

    /// A hardware queue, not necessarily the completed request's, that was held back and
    /// may now go on. Asked after `completed` until it returns `None`; each answer is
    /// given once.
    fn woken(&mut self) -> Option<u16> {
        None
    }

    /// How many of the queue's `nr_requests` may be in use for `process` to get one more of
    /// this kind (the kernel's `limit_depth`); `u32::MAX` for no limit of its own.
    fn depth_limit(&self, queue: &Queue<'_>, process: ProcessId, op: Op, sync: bool) -> u32 {
        let _ = (queue, process, op, sync);
        u32::MAX
    }

    /// The least that [`Scheduler::depth_limit`] ever gives: those who wait for requests are
    /// woken in batches of an eighth of it (`blk_mq_set_min_shallow_depth`).
    fn least_depth(&self) -> u32 {
        u32::MAX
    }

    /// When [`Scheduler::timer`] wants to be called; [`Nanos::NEVER`] for not at all.
    fn next_timer(&self) -> Nanos {
        Nanos::NEVER
    }

    /// The time of `next_timer` has come. True if dispatching may now give more.
    fn timer(&mut self, queue: &Queue<'_>) -> bool {
        let _ = queue;
        false
    }

    /// True if `dispatch` might return a request for `hw_queue` now (`has_work`).
    fn has_work(&self, hw_queue: u16) -> bool;

    /// Requests that wait here, for checks and depth figures.
    fn waiting(&self) -> usize;

    /// A process has ended and will issue no more (the kernel's `exit_icq`).
    fn process_exited(&mut self, queue: &Queue<'_>, process: ProcessId) {
        let _ = (queue, process);
    }

    /// Where it notes what it decides, if it does.
    fn journal(&mut self) -> Option<&mut journal::Journal> {
        None
    }
}

/// An operation that may be merged at all (`rq_mergeable`, `bio_mergeable`): the kernel
/// keeps flushes and FUA writes apart.
pub(crate) const fn mergeable(op: Op, fua: bool) -> bool {
    !fua && !matches!(op, Op::Flush)
}

/// Whether `bio` is of the request's kind (`blk_rq_merge_ok`): both may be merged, same
/// operation, same priority. Whether somebody waits for it (`sync`) does not count.
pub(crate) fn same_kind(request: &Request, bio: &Bio) -> bool {
    request.op == bio.op
        && request.prio == bio.prio
        && mergeable(request.op, request.fua)
        && mergeable(bio.op, bio.fua)
}

/// The block layer's own conditions for adding `bio` to `id` at that end
/// (`elv_bio_merge_ok` and `ll_back_merge_fn`): of one kind, adjoining, and together not
/// above `max_sectors`.
pub fn can_merge(queue: &Queue<'_>, bio: &Bio, merge: Merge) -> bool {
    let (id, adjoins) = match merge {
        Merge::Back(id) => (id, queue.requests[id].end() == bio.sector),
        Merge::Front(id) => (id, bio.sector.offset(bio.sectors) == queue.requests[id].sector),
    };
    let request = &queue.requests[id];
    adjoins && same_kind(request, bio) && request.sectors + bio.sectors <= queue.limits.max_sectors
}

/// The same for joining two requests, `next` directly behind `first` (`attempt_merge`).
/// They may be bound to different hardware queues.
pub fn can_join(queue: &Queue<'_>, first: RequestId, next: RequestId) -> bool {
    let (first, next) = (&queue.requests[first], &queue.requests[next]);
    first.end() == next.sector
        && first.op == next.op
        && first.prio == next.prio
        && mergeable(first.op, first.fua)
        && mergeable(next.op, next.fua)
        && first.sectors + next.sectors <= queue.limits.max_sectors
}
