//! The scheduler's state of requests, queues and processes.

use super::habits::{Seeks, Thinking};
use crate::containers::lists::List;
use crate::containers::sorted::Sorted;
use crate::request::{IoPrio, PrioClass, ProcessId, RequestId};
use crate::scheduler::shared::wf2q::{Class, LeafId, weight_of_level};
use crate::units::Sector;

/// Level of a process without a priority, as with nice 0.
const DEFAULT_LEVEL: u8 = 4;
const LEVELS: u8 = 8;
/// Asynchronous queues of a group: one for each level of two classes, and one for the idle class.
pub(super) const ASYNC_QUEUES: usize = 2 * LEVELS as usize + 1;

/// The state of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Unknown here.
    Absent,
    /// It has a queue, but is in no list yet.
    Attached,
    /// Sorted into its queue.
    Waiting,
    /// In the dispatch list.
    Outgoing,
    /// Dispatched.
    Driver,
}

/// What the scheduler keeps of a request, by id.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot {
    pub state: State,
    pub sync: bool,
    pub queue: LeafId,
    pub task: usize,
    /// The sector by which it was sorted in.
    pub sector: Sector,
    /// The tick in which it was created.
    pub since: u64,
}

/// The synchronous requests of one process, or the asynchronous requests of all processes of one
/// priority.
#[derive(Debug)]
pub(super) struct ProcessQueue {
    pub process: ProcessId,
    pub sync: bool,
    pub class: Class,
    pub sorted: Sorted,
    pub fifo: List,
    pub next: Option<RequestId>,
    /// Requests chosen or in flight.
    pub dispatched: u32,
    /// The budget of its next turn, from its past turns.
    pub max_budget: i32,
    /// Turns, in 256ths, weighted by age.
    pub budgets_assigned: u32,
    /// The disk may idle for it.
    pub idles: bool,
    /// No request of this turn has completed: the timeout has not started.
    pub budget_new: bool,
    /// The FIFO was checked in this turn.
    pub fifo_checked: bool,
    /// The tick of the timeout.
    pub budget_timeout: u64,
}

impl ProcessQueue {
    pub fn new(process: ProcessId, sync: bool, class: Class, max_budget: i32) -> ProcessQueue {
        ProcessQueue {
            process,
            sync,
            class,
            sorted: Sorted::default(),
            fifo: List::EMPTY,
            next: None,
            dispatched: 0,
            max_budget,
            budgets_assigned: 0,
            idles: sync && class != Class::Idle,
            budget_new: false,
            fifo_checked: false,
            budget_timeout: 0,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.fifo.is_empty()
    }
}

/// A process.
#[derive(Clone, Debug)]
pub(super) struct Task {
    /// Asynchronous, synchronous; created with the first request.
    pub queues: [Option<LeafId>; 2],
    pub exited: bool,
    pub thinking: Thinking,
    pub seeks: Seeks,
}

impl Task {
    pub fn new(tick: u64) -> Task {
        Task { queues: [None; 2], exited: false, thinking: Thinking::since(tick), seeks: Seeks::default() }
    }

    /// The process's index among the tasks; the kernel's own is first.
    pub const fn index_of(process: ProcessId) -> usize {
        process.0.wrapping_add(1) as usize
    }

    pub const fn process_at(index: usize) -> ProcessId {
        ProcessId((index as u32).wrapping_sub(1))
    }
}

/// The effective priority: without one, best effort; the idle class has one level.
#[derive(Clone, Copy, Debug)]
pub(super) struct Priority {
    pub class: Class,
    level: u8,
}

impl Priority {
    pub fn of(prio: IoPrio) -> Priority {
        let level = match prio.class {
            PrioClass::RealTime | PrioClass::BestEffort => prio.level.min(LEVELS - 1),
            PrioClass::None => DEFAULT_LEVEL,
            PrioClass::Idle => LEVELS - 1,
        };
        Priority { class: Class::from(prio.class), level }
    }

    /// Proportional to 8 minus the level.
    pub fn weight(self) -> u32 {
        weight_of_level(self.level)
    }

    /// The index of its asynchronous queue in its group.
    pub fn async_index(self) -> usize {
        match self.class {
            Class::RealTime => usize::from(self.level),
            Class::BestEffort => usize::from(LEVELS + self.level),
            Class::Idle => ASYNC_QUEUES - 1,
        }
    }
}
