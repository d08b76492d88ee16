//! BFQ's state of one queue: of one process, of several processes with merged queues, or of a
//! group's asynchronous requests of one priority.

use super::parts::QueueId;
use super::parts::clock::{Clock, Jiffies, LONG_AGO};
use super::parts::injection::InjectLimit;
use super::parts::pace::{Intensity, ThinkTime};
use super::parts::raising::Raising;
use super::parts::seek::SeekHistory;
use crate::containers::lists::List;
use crate::containers::sorted::Sorted;
use crate::request::RequestId;
use crate::units::Sector;

/// A process's index in BFQ's table (`bfq_io_cq`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TaskIndex(pub u32);

impl TaskIndex {
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// I/O class of a queue: 0 real-time, 1 best effort, 2 idle.
pub(super) const CLASS_IDLE: u8 = 2;

/// The part of a queue's state that its process saves when the queues merge, and restores after a
/// split.
#[derive(Clone, Copy, Debug)]
pub(super) struct Learnt {
    pub has_short_ttime: bool,
    pub ttime: ThinkTime,
    pub intensity: Intensity,
    pub inject_limit: InjectLimit,
}

/// One queue.
#[derive(Debug)]
pub(super) struct BfqQueue {
    /// Not a free place in the table.
    pub used: bool,
    pub sync: bool,
    pub class: u8,
    pub ioprio: u8,
    /// The one process of the queue; none while it is shared.
    pub owner: Option<TaskIndex>,
    /// For the journal: the process that the queue was created for.
    pub made_for: TaskIndex,

    /// Processes that issue here; plus, for an asynchronous queue, its group (`bfqq_process_refs`).
    pub process_refs: u32,
    /// Processes with a planned stable merge into it.
    pub stable_refs: u32,
    pub sorted: Sorted,
    pub fifo: List,
    pub next: Option<RequestId>,
    /// Waiting requests: async, sync.
    pub queued: [u32; 2],
    /// Requests in flight.
    pub dispatched: u32,

    pub just_created: bool,
    pub busy: bool,
    /// The disk idles for its next request.
    pub wait_request: bool,
    /// It expired while its next request was expected, without idling.
    pub non_blocking_wait: bool,
    /// The FIFO was checked in this slice.
    pub fifo_checked: bool,
    pub softrt_update: bool,
    /// Shared by several processes.
    pub coop: bool,
    /// Shared, and about to be split.
    pub split_coop: bool,

    pub max_budget: i32,
    /// When the budget's timeout passes; for an idle queue, when it became idle.
    pub budget_timeout: Jiffies,
    pub learnt: Learnt,
    pub seeks: SeekHistory,
    pub last_request_end: Sector,
    pub raising: Raising,
    pub soft_rt_next_start: Jiffies,
    pub last_idle_bklogged: Jiffies,
    pub service_from_backlogged: u64,
    pub split_time: Jiffies,
    pub first_io_time: Jiffies,
    pub creation_time: Jiffies,

    /// The target of the planned merge.
    pub merge_into: Option<QueueId>,
}

impl BfqQueue {
    /// A free place.
    pub fn vacant() -> BfqQueue {
        BfqQueue {
            used: false,
            sync: false,
            class: 1,
            ioprio: 4,
            owner: None,
            made_for: TaskIndex(0),
            process_refs: 0,
            stable_refs: 0,
            sorted: Sorted::default(),
            fifo: List::EMPTY,
            next: None,
            queued: [0; 2],
            dispatched: 0,
            just_created: false,
            busy: false,
            wait_request: false,
            non_blocking_wait: false,
            fifo_checked: false,
            softrt_update: false,
            coop: false,
            split_coop: false,
            max_budget: 0,
            budget_timeout: LONG_AGO,
            learnt: Learnt {
                has_short_ttime: false,
                ttime: ThinkTime::default(),
                intensity: Intensity::new(0),
                inject_limit: InjectLimit::default(),
            },
            seeks: SeekHistory::NEW,
            last_request_end: Sector(0),
            raising: Raising::new(0),
            soft_rt_next_start: 0,
            last_idle_bklogged: 0,
            service_from_backlogged: 0,
            split_time: LONG_AGO,
            first_io_time: 0,
            creation_time: 0,
            merge_into: None,
        }
    }

    /// Turns a free place into a new queue; its tables keep their capacity.
    pub fn begin(&mut self, made_for: TaskIndex, sync: bool, clock: &Clock) {
        let sorted = std::mem::take(&mut self.sorted);
        *self = BfqQueue {
            used: true,
            sync,
            made_for,
            just_created: sync,
            sorted,
            soft_rt_next_start: clock.jiffies,
            creation_time: clock.jiffies,
            ..BfqQueue::vacant()
        };
        self.learnt.ttime = ThinkTime::new(clock.now, clock.stands_still);
        self.learnt.intensity = Intensity::new(clock.now);
        self.learnt.inject_limit = InjectLimit::new(clock);
        self.raising = Raising::new(clock.jiffies);
    }

    /// No request waits.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.fifo.is_empty()
    }

    #[inline]
    pub fn is_raised(&self) -> bool {
        self.raising.is_raised()
    }

    #[inline]
    pub fn is_idle_class(&self) -> bool {
        self.class == CLASS_IDLE
    }

    /// Sequential, I/O bound and with a short think time.
    #[inline]
    pub fn is_sequential_and_io_bound(&self) -> bool {
        !self.seeks.seeky() && self.learnt.intensity.is_io_bound() && self.learnt.has_short_ttime
    }
}
