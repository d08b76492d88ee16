//! What CFQ keeps of requests, processes, their queues and groups.

use super::super::{Cgroup, Task};
use super::parts::seeks::SeekHistory;
use super::parts::think_time::ThinkTime;
use crate::containers::lists::List;
use crate::containers::ordered::Set;
use crate::containers::sorted::Sorted;
use crate::request::{PrioClass, ProcessId, RequestId};
use crate::units::Sector;

/// A time in nanoseconds since the run began; signed, for some lie before that.
pub(super) type Instant = i64;

/// A queue's place in [`super::Cfq::queues`].
pub(super) type QueueId = usize;

/// Priority classes, in the order of `wl_class_t`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    BestEffort,
    RealTime,
    Idle,
}

/// What a queue asks for and how (`wl_type_t`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Async,
    SyncNoIdle,
    Sync,
}

impl Kind {
    pub const ALL: [Kind; 3] = [Kind::Async, Kind::SyncNoIdle, Kind::Sync];
}

/// Service trees of a group: three kinds of two classes, and one for the idle class.
pub(super) const TREES: usize = 7;

/// Where the queues of that class and kind are (`st_for`).
pub(super) const fn tree_of(class: Class, kind: Kind) -> usize {
    match class {
        Class::Idle => TREES - 1,
        Class::BestEffort | Class::RealTime => class as usize * 3 + kind as usize,
    }
}

/// A process's class and level (`cfq_init_prio_data`); without one, those of nice 0.
pub(super) fn priority(task: Task) -> (Class, u8) {
    match task.prio.class {
        PrioClass::None => (Class::BestEffort, 4),
        PrioClass::RealTime => (Class::RealTime, task.prio.level.min(7)),
        PrioClass::BestEffort => (Class::BestEffort, task.prio.level.min(7)),
        PrioClass::Idle => (Class::Idle, 7),
    }
}

/// The queue of a process's synchronous requests, or of all asynchronous ones of a priority
/// (`cfq_queue`).
#[derive(Debug)]
pub(super) struct ProcessQueue {
    /// Who first used it.
    pub process: ProcessId,
    pub group: usize,
    pub class: Class,
    pub level: u8,
    pub sync: bool,
    /// Processes that use it, or will after a merge, and the group's hold on asynchronous ones.
    pub holders: u32,
    /// Requests of it that live.
    pub requests: u32,

    pub sorted: Sorted,
    pub fifo: List,
    /// Goes next, unless the FIFO's head has expired.
    pub next: Option<RequestId>,
    /// Requests that the disk has.
    pub dispatched: u32,

    /// Counts among the busy ones: always with requests, and as long as it is active.
    pub on_rr: bool,
    /// The service tree that it is in.
    pub tree: Option<usize>,

    /// When its turn began ...
    pub dispatch_start: Instant,
    /// ... and when its first request ended and its slice began to run.
    pub slice_start: Option<Instant>,
    pub slice_end: Instant,
    pub allocated_slice: u64,
    pub slice_dispatch: u64,
    /// What was left of its last slice; less than nothing if it overran.
    pub residual: i64,
    /// Sectors dispatched in this turn.
    pub sectors: u64,

    pub seeks: SeekHistory,

    pub flags: Flags,
    /// Its processes are to move there.
    pub merge_with: Option<QueueId>,
}

/// What is the case with a queue (`cfqq_state_flags`).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Flags {
    /// The disk idles for it.
    pub wait_request: bool,
    /// It may dispatch once, whatever else is the case.
    pub must_dispatch: bool,
    /// The FIFO has been looked at in this slice.
    pub fifo_checked: bool,
    /// Worth idling for.
    pub idle_window: bool,
    /// No request of this slice has ended yet.
    pub slice_new: bool,
    /// More than one process has used it.
    pub coop: bool,
    /// Its processes should have queues of their own again.
    pub split_coop: bool,
    /// It has had four requests waiting at once.
    pub deep: bool,
    /// Its slice was prolonged so that its group stays busy.
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

    /// Its time is over (`cfq_slice_used`).
    pub fn slice_used(&self, now: Instant) -> bool {
        !self.flags.slice_new && now >= self.slice_end
    }
}

/// Queues of one class and kind (`cfq_rb_root`).
#[derive(Clone, Copy, Debug)]
pub(super) struct ServiceTree {
    pub set: Set,
    pub count: u32,
    pub think: ThinkTime,
}

/// A cgroup (`cfq_group`).
#[derive(Clone, Debug)]
pub(super) struct Group {
    /// Somebody has used it.
    pub known: bool,
    /// Busy queues.
    pub queues: u32,
    /// Their number over time, best effort and real time.
    pub busy_mean: [u32; 2],
    pub trees: [ServiceTree; TREES],
    /// What it was serving when it was left, and for how much longer.
    pub saved: Option<(u64, Class, Kind)>,
    /// Requests that the disk has.
    pub dispatched: u32,
    pub think: ThinkTime,
    /// Asynchronous queues of best effort and real time, by level, ...
    pub async_queues: [[Option<QueueId>; 8]; 2],
    /// ... and of the idle class.
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
    /// It has asked for something and has not ended.
    pub known: bool,
    pub alive: bool,
    /// For what it does not wait for, and for what it waits for.
    pub queues: [Option<QueueId>; 2],
    pub think: ThinkTime,
}

/// Where a request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Not here.
    Absent,
    /// It has its queue and does not wait yet, or is back from the disk and goes first.
    Attached,
    /// It waits in its queue.
    Waiting,
    /// The disk has it.
    Driver,
}

/// What CFQ keeps of a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot {
    pub state: State,
    pub sync: bool,
    /// A write that is waited for and that nothing will follow.
    pub no_idle: bool,
    pub queue: QueueId,
    pub context: usize,
    /// As sorted in.
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
