//! CFQ's state of requests, processes, their queues and groups.

use super::super::{Cgroup, Task};
use super::parts::seeks::SeekHistory;
use super::parts::think_time::ThinkTime;
use crate::containers::lists::List;
use crate::containers::ordered::Set;
use crate::containers::sorted::Sorted;
use crate::request::{PrioClass, ProcessId, RequestId};
use crate::units::Sector;

/// Nanoseconds since the run began; signed, because some times lie before that.
pub(super) type Instant = i64;

/// A queue's index in [`super::Cfq::queues`].
pub(super) type QueueId = usize;

/// Priority classes, in the order of `wl_class_t`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    BestEffort,
    RealTime,
    Idle,
}

/// The workload type of a queue (`wl_type_t`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Async,
    SyncNoIdle,
    Sync,
}

impl Kind {
    pub const ALL: [Kind; 3] = [Kind::Async, Kind::SyncNoIdle, Kind::Sync];
}

/// Service trees of a group: three types of two classes, and one tree for the idle class.
pub(super) const TREES: usize = 7;

/// The service tree of that class and type (`st_for`).
pub(super) const fn tree_of(class: Class, kind: Kind) -> usize {
    match class {
        Class::Idle => TREES - 1,
        Class::BestEffort | Class::RealTime => class as usize * 3 + kind as usize,
    }
}

/// A process's class and level (`cfq_init_prio_data`); without a priority, those of nice 0.
pub(super) fn priority(task: Task) -> (Class, u8) {
    match task.prio.class {
        PrioClass::None => (Class::BestEffort, 4),
        PrioClass::RealTime => (Class::RealTime, task.prio.level.min(7)),
        PrioClass::BestEffort => (Class::BestEffort, task.prio.level.min(7)),
        PrioClass::Idle => (Class::Idle, 7),
    }
}

/// The queue of a process's synchronous requests, or of all asynchronous requests of one priority
/// (`cfq_queue`).
#[derive(Debug)]
pub(super) struct ProcessQueue {
    /// The first process of the queue.
    pub process: ProcessId,
    pub group: usize,
    pub class: Class,
    pub level: u8,
    pub sync: bool,
    /// Processes that use it, or will after a merge; for an asynchronous queue, also its group.
    pub holders: u32,
    /// Its requests that are not freed.
    pub requests: u32,

    pub sorted: Sorted,
    pub fifo: List,
    /// The next request, unless the head of the FIFO has expired.
    pub next: Option<RequestId>,
    /// Requests in flight.
    pub dispatched: u32,

    /// Busy: it has requests, or it is active.
    pub on_rr: bool,
    /// The service tree that it is in.
    pub tree: Option<usize>,

    /// When its turn began.
    pub dispatch_start: Instant,
    /// When its first request completed and its slice started.
    pub slice_start: Option<Instant>,
    pub slice_end: Instant,
    pub allocated_slice: u64,
    pub slice_dispatch: u64,
    /// The rest of its last slice; negative if it overran.
    pub residual: i64,
    /// Sectors dispatched in this turn.
    pub sectors: u64,

    pub seeks: SeekHistory,

    pub flags: Flags,
    /// The target of the planned merge.
    pub merge_with: Option<QueueId>,
}

/// A queue's flags (`cfqq_state_flags`).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Flags {
    /// The disk idles for it.
    pub wait_request: bool,
    /// It may dispatch once, even if its slice is used up.
    pub must_dispatch: bool,
    /// The FIFO was checked in this slice.
    pub fifo_checked: bool,
    /// Worth idling for.
    pub idle_window: bool,
    /// No request of this slice has completed yet.
    pub slice_new: bool,
    /// More than one process has used it.
    pub coop: bool,
    /// Its processes should have queues of their own again.
    pub split_coop: bool,
    /// It has had four waiting requests at once.
    pub deep: bool,
    /// Its slice was extended to keep its group busy.
    pub wait_busy: bool,
}

impl ProcessQueue {
    pub fn new(process: ProcessId, group: usize, (class, level): (Class, u8), sync: bool) -> ProcessQueue {
        let idle_window = sync && class != Class::Idle;
        ProcessQueue {
            process,
            group,
            class,
            level,
            sync,
            holders: 0,
            requests: 0,
            sorted: Sorted::default(),
            fifo: List::EMPTY,
            next: None,
            dispatched: 0,
            on_rr: false,
            tree: None,
            dispatch_start: 0,
            slice_start: None,
            slice_end: 0,
            allocated_slice: 0,
            slice_dispatch: 0,
            residual: 0,
            sectors: 0,
            seeks: SeekHistory::default(),
            flags: Flags { idle_window, ..Flags::default() },
            merge_with: None,
        }
    }

    /// `cfqq_type`
    pub fn kind(&self) -> Kind {
        match (self.sync, self.flags.idle_window) {
            (false, _) => Kind::Async,
            (true, false) => Kind::SyncNoIdle,
            (true, true) => Kind::Sync,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.sorted.is_empty()
    }

    pub fn is_seeky(&self) -> bool {
        self.seeks.is_seeky()
    }

    /// The slice is over (`cfq_slice_used`).
    pub fn slice_used(&self, now: Instant) -> bool {
        !self.flags.slice_new && now >= self.slice_end
    }
}

/// Queues of one class and workload type (`cfq_rb_root`).
#[derive(Clone, Copy, Debug)]
pub(super) struct ServiceTree {
    pub set: Set,
    pub count: u32,
    pub think: ThinkTime,
}

/// A cgroup (`cfq_group`).
#[derive(Clone, Debug)]
pub(super) struct Group {
    /// A process has used it.
    pub known: bool,
    /// Busy queues.
    pub queues: u32,
    /// The mean number of busy queues: best effort and real time.
    pub busy_mean: [u32; 2],
    pub trees: [ServiceTree; TREES],
    /// The workload that was served when the group lost its turn, and for how much longer.
    pub saved: Option<(u64, Class, Kind)>,
    /// Requests in flight.
    pub dispatched: u32,
    pub think: ThinkTime,
    /// Asynchronous queues of best effort and real time, by level.
    pub async_queues: [[Option<QueueId>; 8]; 2],
    /// The asynchronous queue of the idle class.
    pub async_idle: Option<QueueId>,
}

impl Group {
    pub fn new(cgroup: &Cgroup) -> Group {
        Group {
            known: cgroup.parent.is_none(),
            queues: 0,
            busy_mean: [0; 2],
            trees: [ServiceTree { set: Set::EMPTY, count: 0, think: ThinkTime::default() }; TREES],
            saved: None,
            dispatched: 0,
            think: ThinkTime::default(),
            async_queues: [[None; 8]; 2],
            async_idle: None,
        }
    }

    /// Busy queues of a class (`cfq_group_busy_queues_wl`).
    pub fn busy(&self, class: Class) -> u32 {
        match class {
            Class::Idle => self.trees[TREES - 1].count,
            _ => Kind::ALL.iter().map(|&kind| self.trees[tree_of(class, kind)].count).sum(),
        }
    }

    /// Busy asynchronous queues, without those of the idle class (`cfqg_busy_async_queues`).
    pub fn busy_async(&self) -> u32 {
        let of = |class| self.trees[tree_of(class, Kind::Async)].count;
        of(Class::RealTime) + of(Class::BestEffort)
    }
}

/// A process (`cfq_io_cq`).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Context {
    /// It has sent a request and has not exited.
    pub known: bool,
    pub alive: bool,
    /// Asynchronous, synchronous.
    pub queues: [Option<QueueId>; 2],
    pub think: ThinkTime,
}

/// The state of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Unknown to CFQ.
    Absent,
    /// It has its queue and does not wait yet, or it was requeued and goes first.
    Attached,
    /// Waits in its queue.
    Waiting,
    /// Dispatched.
    Driver,
}

/// What CFQ keeps of a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot {
    pub state: State,
    pub sync: bool,
    /// A synchronous write after which no more requests are expected.
    pub no_idle: bool,
    pub queue: QueueId,
    pub context: usize,
    /// The sector by which it was sorted in.
    pub sector: Sector,
    pub expires: Instant,
}

impl Slot {
    pub const VACANT: Slot = Slot {
        state: State::Absent,
        sync: false,
        no_idle: false,
        queue: 0,
        context: 0,
        sector: Sector(0),
        expires: 0,
    };
}
