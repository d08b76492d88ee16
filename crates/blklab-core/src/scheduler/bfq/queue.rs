//! BFQ's state of one queue: of one process, of several processes with merged queues, or of a
//! group's asynchronous requests of one priority.

use super::parts::age::Age;
use super::parts::clock::{Clock, Jiffies};
use super::parts::learnt::Learnt;
use super::parts::raising::Raising;
use super::parts::requests::Backlog;
use super::parts::seek::SeekHistory;
use super::parts::soft_rt::SoftRt;
use super::parts::tasks::TaskIndex;
use super::parts::turn::Turn;

/// I/O class of a queue: 0 real-time, 1 best effort, 2 idle.
const CLASS_IDLE: u8 = 2;

/// The fixed properties of a queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kind {
    pub sync: bool,
    pub class: u8,
    pub level: u8,
    /// For the journal: the process that the queue was created for.
    pub made_for: TaskIndex,
}

/// One queue: what it is, and its parts.
#[derive(Debug)]
pub(super) struct BfqQueue {
    /// Not a free place in the table.
    pub used: bool,
    pub kind: Kind,
    pub age: Age,
    pub backlog: Backlog,
    pub turn: Turn,
    pub learnt: Learnt,
    pub seeks: SeekHistory,
    pub raising: Raising,
    pub soft_rt: SoftRt,
}

impl BfqQueue {
    /// A free place.
    pub fn vacant() -> BfqQueue {
        const NEVER: Jiffies = 0;
        BfqQueue {
            used: false,
            kind: Kind { sync: false, class: 1, level: 4, made_for: TaskIndex(0) },
            age: Age::new(false, NEVER),
            backlog: Backlog::default(),
            turn: Turn::new(0),
            learnt: Learnt::nothing(),
            seeks: SeekHistory::NEW,
            raising: Raising::new(NEVER),
            soft_rt: SoftRt::new(NEVER),
        }
    }

    /// Turns a free place into a new queue; its tables keep their capacity.
    pub fn begin(&mut self, kind: Kind, max_budget: i32, clock: &Clock) {
        *self = BfqQueue {
            used: true,
            kind,
            age: Age::new(kind.sync, clock.jiffies),
            backlog: self.backlog.emptied(),
            turn: Turn::new(max_budget),
            // Also in the idle class: `bfq_init_bfqq` looks for it before the queue has a class.
            learnt: Learnt::new(kind.sync, clock),
            seeks: SeekHistory::NEW,
            raising: Raising::new(clock.jiffies),
            soft_rt: SoftRt::new(clock.jiffies),
        };
    }

    /// No request waits.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.backlog.is_empty()
    }

    #[inline]
    pub fn is_raised(&self) -> bool {
        self.raising.is_raised()
    }

    #[inline]
    pub fn is_idle_class(&self) -> bool {
        self.kind.class == CLASS_IDLE
    }

    /// Sequential, I/O bound and with a short think time.
    #[inline]
    pub fn is_sequential_and_io_bound(&self) -> bool {
        !self.seeks.seeky() && self.learnt.is_io_bound() && self.learnt.has_short_ttime()
    }
}
