//! A scheduler for blklab's simulator in one Rust file.
//!
//! Write a type that is a [`Scheduler`] and name it in [`plugin!`]. The crate is a `cdylib`. Compile it for
//! `wasm32-unknown-unknown`: `blklab compare --plugin FILE.wasm --scheduler NAME` runs the result. The
//! trait, its calls and their order are those of the simulator's own schedulers, less what the kernel's
//! elevator core does for a scheduler: it finds merges.
//!
//! A plug-in has no clock, no files and no threads. It decides by what it is told, so that it decides
//! the same each time. Whatever it gets wrong ends the run with one line: a panic, a loop without an end,
//! a request that does not wait, requests that it never dispatches.
//!
//! No function here is unsafe, and there are no dependencies.

mod described;
mod guest;
mod mailbox;
mod request;
mod settings;

#[doc(hidden)]
pub use guest::{Guest, exported};
pub use request::{Bio, IoPrio, Nanos, Op, PrioClass, ProcessId, Request, RequestId, Requests, Sector};
pub use settings::{Settings, Tunable, Unit};

/// The version of the calls between blklab and a plug-in. blklab refuses a plug-in of another version.
pub const INTERFACE: u32 = 1;

/// The block layer that a scheduler is written for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Generation {
    /// Before Linux 5.0: one queue, a pool of requests for each direction.
    SingleQueue,
    /// blk-mq: tags, hardware queues.
    MultiQueue,
}

/// Which waiting requests a bio may be merged into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Merges {
    /// None.
    Never,
    /// The latest eight that arrived.
    Latest,
    /// Any that ends where the bio begins, the last one that grew, and the one that [`Scheduler::front`]
    /// finds.
    Indexed,
}

/// What a scheduler says of itself.
#[derive(Clone, Copy, Debug)]
pub struct Info {
    /// Its name: letters, digits, `-` and `_`. Not the name of a scheduler of blklab.
    pub name: &'static str,
    /// The block layer that it is written for.
    pub generation: Generation,
    /// One line for lists.
    pub summary: &'static str,
    /// The source of its behaviour, and what is left out.
    pub follows: &'static str,
    /// CPU time of one request under the scheduler's lock, in ns, on a desktop CPU. Not that of the plug-in.
    pub lock_ns: u64,
    /// Which waiting requests a bio may be merged into.
    pub merges: Merges,
    /// Its tunables.
    pub tunables: &'static [Tunable],
}

/// The queue's fixed properties.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// The disk turns.
    pub rotational: bool,
    /// Commands the disk takes at once per hardware queue.
    pub queue_depth: u32,
    /// Hardware queues.
    pub hw_queues: u32,
    /// Requests per hardware queue that may wait or be in flight.
    pub nr_requests: u32,
    /// Largest request in sectors.
    pub max_sectors: u32,
    /// CPUs of the host.
    pub cpus: u32,
    /// Ticks of the kernel's coarse clock per second, for schedulers that count in jiffies.
    pub hz: u32,
}

/// The scheduler's view of its queue, at one moment.
pub struct Queue<'a> {
    /// The current time.
    pub now: Nanos,
    /// The requests that entered, by their ids; one that has completed is there until its id is used again.
    pub requests: &'a Requests,
    /// Requests in flight (dispatched, not completed).
    pub in_flight: u32,
    /// Limits that do not change during a run.
    pub limits: &'a Limits,
}

/// The calls of the queue's owner, in the order of a request's life.
///
/// Requests enter by `insert` and leave exactly once: by `dispatch` or by `requests_merged`. Functions that
/// have a default and are left out are called once.
pub trait Scheduler: Sized {
    /// Name, description and table of tunables.
    const INFO: Info;

    /// A scheduler with these settings.
    fn new(settings: &Settings, limits: &Limits) -> Self;

    /// A request enters.
    fn insert(&mut self, queue: &Queue<'_>, id: RequestId);

    /// The next request for hardware queue `hw_queue`. None: the scheduler holds its requests back until
    /// its timer, another request or a completion.
    fn dispatch(&mut self, queue: &Queue<'_>, hw_queue: u16) -> Option<RequestId>;

    /// `gone`, which waited, was appended to `kept`: the scheduler drops it. Both are as before.
    fn requests_merged(&mut self, queue: &Queue<'_>, kept: RequestId, gone: RequestId);

    /// A waiting request has grown; its first sector was `old_sector`.
    fn bio_merged(&mut self, queue: &Queue<'_>, id: RequestId, old_sector: Sector) {
        let _ = (queue, id, old_sector);
    }

    /// The disk has completed the request.
    fn completed(&mut self, queue: &Queue<'_>, id: RequestId) {
        let _ = (queue, id);
        mailbox::unused(mailbox::COMPLETED);
    }

    /// A waiting request that begins where `bio` ends, for [`Merges::Indexed`].
    fn front(&mut self, queue: &Queue<'_>, bio: &Bio) -> Option<RequestId> {
        let _ = (queue, bio);
        mailbox::unused(mailbox::FRONT);
        None
    }

    /// Whether `bio` may be merged into the waiting request.
    fn allows_merge(&mut self, queue: &Queue<'_>, id: RequestId, bio: &Bio) -> bool {
        let _ = (queue, id, bio);
        mailbox::unused(mailbox::ALLOWS);
        true
    }

    /// The waiting request directly after `id` (`after` true) or before it, which may now be merged with the
    /// extended `id`, for [`Merges::Indexed`]. It is asked before [`Scheduler::bio_merged`].
    fn neighbour(&mut self, queue: &Queue<'_>, id: RequestId, after: bool) -> Option<RequestId> {
        let _ = (queue, id, after);
        mailbox::unused(mailbox::NEIGHBOUR);
        None
    }

    /// How many of the queue's `nr_requests` may be in use before `process` gets another one of this kind;
    /// `u32::MAX`: no limit.
    fn depth_limit(&mut self, queue: &Queue<'_>, process: ProcessId, op: Op, sync: bool) -> u32 {
        let _ = (queue, process, op, sync);
        mailbox::unused(mailbox::DEPTH_LIMIT);
        u32::MAX
    }

    /// The smallest result of [`Scheduler::depth_limit`].
    fn least_depth(&self) -> u32 {
        u32::MAX
    }

    /// When [`Scheduler::timer`] must be called; [`Nanos::NEVER`]: not at all. Read after each call.
    fn next_timer(&self) -> Nanos {
        Nanos::NEVER
    }

    /// The time of `next_timer` has come. True if dispatching may now give more requests. The next timer
    /// must be later.
    fn timer(&mut self, queue: &Queue<'_>) -> bool {
        let _ = queue;
        false
    }

    /// A process has exited and will issue no more I/O.
    fn process_exited(&mut self, queue: &Queue<'_>, process: ProcessId) {
        let _ = (queue, process);
        mailbox::unused(mailbox::EXITED);
    }
}
