//! The scheduler's interface, after the kernel's elevator hooks, and the registry.
//!
//! Adding a scheduler is one new file (or folder) here and two lines: its module below, and
//! its entry in [`schedulers!`](registry). A scheduler owns which request goes next; the block
//! layer owns the requests, their tags and the disk. [`shared`] has what several schedulers
//! use, [`containers`](crate::containers) the data structures below them.

mod info;
mod limits;
mod shared;
mod tasks;

pub mod bfq;
pub mod bfq_2008;
pub mod cfq;
pub mod cfq_2008;
pub mod deadline;
pub mod journal;
pub mod kyber;
pub mod mq_deadline;
pub mod none;
pub mod noop;
pub mod plugin;
pub mod registry;
pub mod spec;

#[cfg(test)]
mod testing;

use crate::request::{Bio, Op, ProcessId, RequestId, RequestSlab};
use crate::units::Nanos;

pub use crate::tunable::{Settings, Tunable, Unit};
pub use info::{Generation, Info};
pub use limits::{QUEUE_TUNABLES, QueueLimits};
pub use registry::AnyScheduler;
pub use shared::merge_conditions::{adjoins, can_join};
pub use tasks::{Cgroup, CgroupId, Task, Tasks};

/// The scheduler's view of its queue, at one moment.
pub struct Queue<'a> {
    /// The current time.
    pub now: Nanos,
    /// All requests that exist.
    pub requests: &'a RequestSlab,
    /// Requests in flight (dispatched, not completed).
    pub in_flight: u32,
    /// Limits that do not change during a run.
    pub limits: &'a QueueLimits,
    /// The processes.
    pub tasks: &'a Tasks,
}

/// How a bio fits a waiting request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Merge {
    /// The bio begins where the request ends.
    Back(RequestId),
    /// The bio ends where the request begins.
    Front(RequestId),
}

/// The calls of the queue's owner, in the order of a request's life.
///
/// Requests enter by `insert` and leave exactly once: by `dispatch` or by `requests_merged`.
/// Flushes never come here.
pub trait Scheduler: Sized {
    /// Name, description and table of tunables.
    const INFO: Info;

    /// A scheduler with these settings (already checked against the table) for these processes.
    fn new(settings: &Settings, limits: &QueueLimits, tasks: &Tasks) -> Self;

    /// A waiting request that `bio` [`adjoins`], if the scheduler allows the merge. If it would make the
    /// request too large, the caller does not merge them, and the request takes no more.
    fn find_merge(&mut self, queue: &Queue<'_>, bio: &Bio) -> Option<Merge>;

    /// The request has grown by a bio; when `merge` is `Front` its first sector changed
    /// from `old_sector`.
    fn bio_merged(&mut self, queue: &Queue<'_>, merge: Merge, old_sector: crate::units::Sector);

    /// The waiting request directly after `id` (`after` true) or before it, which may now be merged
    /// with the extended `id`; `None` if there is none or it may not. Asked before
    /// [`Scheduler::bio_merged`], so in the order of before (`attempt_front_merge`).
    fn neighbour(&self, queue: &Queue<'_>, id: RequestId, after: bool) -> Option<RequestId>;

    /// `gone` was appended to `kept`; the scheduler drops it. Both are still in the slab, `kept`
    /// without the addition. `kept` inherits the earlier deadline. After [`Scheduler::find_join`],
    /// `gone` was never inserted.
    fn requests_merged(&mut self, queue: &Queue<'_>, kept: RequestId, gone: RequestId);

    /// A waiting request to which the new `id` can be appended instead of being inserted
    /// (`blk_mq_sched_try_insert_merge`); `id` must not wait here yet. The caller then calls
    /// `requests_merged` with it, and may ask again for the extended request.
    fn find_join(&mut self, queue: &Queue<'_>, id: RequestId) -> Option<RequestId> {
        let _ = (queue, id);
        None
    }

    /// A request enters.
    fn insert(&mut self, queue: &Queue<'_>, id: RequestId);

    /// A request enters that goes before all others of its kind (`BLK_MQ_INSERT_AT_HEAD`). False if the
    /// scheduler has no place for it: then the block layer passes it by.
    fn insert_first(&mut self, queue: &Queue<'_>, id: RequestId) -> bool {
        let _ = (queue, id);
        false
    }

    /// The next request for hardware queue `hw_queue`. None: no request waits, or the scheduler
    /// holds requests back until `next_timer` or a completion.
    fn dispatch(&mut self, queue: &Queue<'_>, hw_queue: u16) -> Option<RequestId>;

    /// [`Scheduler::dispatch`] returned none, and nothing has changed since, including the time,
    /// that could change the answer: the caller need not ask again.
    fn is_settled(&self, now: Nanos) -> bool {
        let _ = now;
        false
    }

    /// The disk has completed the request. `id` is still in the slab.
    fn completed(&mut self, queue: &Queue<'_>, id: RequestId);

    /// A bio that flushes the disk's cache, submitted at `since`, has ended. Its request is an empty write
    /// that passed the scheduler by and never went to the disk.
    fn flush_ended(&mut self, queue: &Queue<'_>, since: Nanos) {
        let _ = (queue, since);
    }

    /// A hardware queue that was held back and may now continue; not necessarily that of the
    /// completed request. Called after `completed` until it returns `None`; each answer is given
    /// once.
    fn woken(&mut self) -> Option<u16> {
        None
    }

    /// How many of the queue's `nr_requests` may be in use before `process` gets another one of
    /// this kind (the kernel's `limit_depth`); `u32::MAX`: no limit by the scheduler. A limit of all of
    /// them is one too: the tags are searched in another way (`sbitmap_queue_get_shallow`).
    fn depth_limit(&self, queue: &Queue<'_>, process: ProcessId, op: Op, sync: bool) -> u32 {
        let _ = (queue, process, op, sync);
        u32::MAX
    }

    /// The smallest result of [`Scheduler::depth_limit`]: processes that wait for requests are
    /// woken in batches of an eighth of it (`blk_mq_set_min_shallow_depth`).
    fn least_depth(&self) -> u32 {
        u32::MAX
    }

    /// When [`Scheduler::timer`] must be called; [`Nanos::NEVER`]: not at all.
    fn next_timer(&self) -> Nanos {
        Nanos::NEVER
    }

    /// The time of `next_timer` has come. True if dispatching may now give more requests.
    fn timer(&mut self, queue: &Queue<'_>) -> bool {
        let _ = queue;
        false
    }

    /// True if `dispatch` might return a request for `hw_queue` now (`has_work`).
    fn has_work(&self, hw_queue: u16) -> bool;

    /// Waiting requests, for checks and depth figures.
    fn waiting(&self) -> usize;

    /// A process has exited and will issue no more I/O (the kernel's `exit_icq`).
    fn process_exited(&mut self, queue: &Queue<'_>, process: ProcessId) {
        let _ = (queue, process);
    }

    /// The journal of its decisions, if it keeps one.
    fn journal(&mut self) -> Option<&mut journal::Journal> {
        None
    }
}
