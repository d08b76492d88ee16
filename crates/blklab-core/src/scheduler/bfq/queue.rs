//! What BFQ knows of one queue: of a process, of several whose queues were merged, or of a
//! group's asynchronous requests of one priority.

use super::clock::Clock;
use super::seek::SeekHistory;
use crate::containers::lists::List;
use crate::containers::sorted::Sorted;
use crate::request::RequestId;
use crate::units::Sector;

/// A queue's place in the table, and in the hierarchy of groups; reused after it is gone.
pub(super) use crate::scheduler::shared::wf2q::LeafId as QueueId;

/// A process's place in the table of those that BFQ knows (`bfq_io_cq`).
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

/// Ticks, counted from [`super::clock::BOOTED`] before the run.
pub(super) type Jiffies = i64;

/// How long a process thinks between the end of one request and the next (`bfq_ttime`).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ThinkTime {
    pub last_end_request: u64,
    total: u64,
    samples: u64,
    mean: u64,
}

impl ThinkTime {
    /// Of a new queue, whose first request comes at the same time. The kernel has one end a
    /// nanosecond later: a long time before the first, unless its clock has gone on by then.
    pub fn new(now: u64, clock_stands: bool) -> ThinkTime {
        ThinkTime { last_end_request: now + u64::from(clock_stands), ..ThinkTime::default() }
    }

    /// A request has come to an empty queue: a weighted mean, in which an older sample counts
    /// 7/8 of the next.
    pub fn sample(&mut self, now: u64, slice_idle_ns: u32) {
        let elapsed = now.wrapping_sub(self.last_end_request).min(2 * u64::from(slice_idle_ns));
        self.samples = (7 * self.samples + 256) / 8;
        self.total = (7 * self.total + 256 * elapsed) / 8;
        self.mean = (self.total + 128) / self.samples;
    }

    /// Enough samples, and longer on average than half of `slice_idle`.
    pub fn is_long(&self, slice_idle_ns: u32) -> bool {
        self.samples > 80 && self.mean > u64::from(slice_idle_ns >> 1)
    }
}

/// The part of a queue that its process takes along when its queue is merged into another,
/// and gets back when they are split.
#[derive(Clone, Copy, Debug)]
pub(super) struct Learnt {
    pub has_short_ttime: bool,
    pub io_bound: bool,
    pub last_serv_time_ns: u64,
    pub inject_limit: u32,
    pub decrease_time: Jiffies,
    pub ttime: ThinkTime,
    pub io_start_time: u64,
    pub tot_idle_time: u64,
}

/// The state of weight raising.
#[derive(Clone, Copy, Debug)]
pub(super) struct Raising {
    /// The weight is multiplied by so much; 1: not raised.
    pub coeff: u32,
    /// How long at most.
    pub cur_max_time: Jiffies,
    /// When the raising began; or, while not raised, when the last one ended.
    pub last_start_finish: Jiffies,
    /// When the interactive raising began from which this soft real-time one took over.
    pub start_at_switch_to_srt: Jiffies,
    /// Sectors served while raised.
    pub service: u64,
}

/// One queue.
#[derive(Debug)]
pub(super) struct BfqQueue {
    /// Not a free place of the table.
    pub used: bool,
    pub sync: bool,
    pub class: u8,
    pub ioprio: u8,
    /// The one process that it belongs to, while it is not shared.
    pub owner: Option<TaskIndex>,
    /// For the journal: the process that it was made for.
    pub made_for: TaskIndex,

    /// Processes that issue here, and for an asynchronous queue its group (`bfqq_process_refs`).
    pub process_refs: u32,
    /// Processes that may be merged into it later.
    pub stable_refs: u32,
    pub sorted: Sorted,
    pub fifo: List,
    pub next: Option<RequestId>,
    /// Waiting, async and sync.
    pub queued: [u32; 2],
    /// With the disk.
    pub dispatched: u32,
    /// The sector under which it stands in its group's table of positions.
    pub position: Option<Sector>,

    pub just_created: bool,
    pub busy: bool,
    /// The disk waits for its next request.
    pub wait_request: bool,
    /// It expired while its next request was awaited without the disk waiting.
    pub non_blocking_wait: bool,
    /// The FIFO has been looked at in this slice.
    pub fifo_checked: bool,
    pub in_large_burst: bool,
    pub softrt_update: bool,
    /// Shared by several processes.
    pub coop: bool,
    /// Shared, and to be split.
    pub split_coop: bool,
    pub in_burst_list: bool,

    pub max_budget: i32,
    /// When the budget's time is over; of an idle queue, when it became idle.
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

    /// The queue that it is to be merged into.
    pub merge_into: Option<QueueId>,
    pub waker: Waker,
    /// Queues that this one wakes, the latest that became busy first.
    pub woken: Vec<QueueId>,
}

/// Whose completions bring this queue new requests.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Waker {
    pub queue: Option<QueueId>,
    pub tentative: Option<QueueId>,
    pub detections: u32,
    pub detection_started: u64,
    /// Stands in the waker's `woken`.
    pub linked: bool,
}

/// `bfq_smallest_from_now`: so long ago that every span since is over.
pub(super) const LONG_AGO: Jiffies = i64::MIN / 4;

impl BfqQueue {
    /// Nobody's.
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
            position: None,
            just_created: false,
            busy: false,
            wait_request: false,
            non_blocking_wait: false,
            fifo_checked: false,
            in_large_burst: false,
            softrt_update: false,
            coop: false,
            split_coop: false,
            in_burst_list: false,
            max_budget: 0,
            budget_timeout: LONG_AGO,
            learnt: Learnt {
                has_short_ttime: false,
                io_bound: true,
                last_serv_time_ns: 0,
                inject_limit: 0,
                decrease_time: 0,
                ttime: ThinkTime::default(),
                io_start_time: 0,
                tot_idle_time: 0,
            },
            seeks: SeekHistory::NEW,
            last_request_end: Sector(0),
            raising: Raising {
                coeff: 1,
                cur_max_time: 0,
                last_start_finish: 0,
                start_at_switch_to_srt: LONG_AGO,
                service: 0,
            },
            soft_rt_next_start: 0,
            last_idle_bklogged: 0,
            service_from_backlogged: 0,
            split_time: LONG_AGO,
            first_io_time: 0,
            creation_time: 0,
            merge_into: None,
            waker: Waker::default(),
            woken: Vec::new(),
        }
    }

    /// Make a free place a new queue; its tables keep their room.
    pub fn begin(&mut self, made_for: TaskIndex, sync: bool, clock: &Clock) {
        let sorted = std::mem::take(&mut self.sorted);
        let mut woken = std::mem::take(&mut self.woken);
        woken.clear();
        *self = BfqQueue {
            used: true,
            sync,
            made_for,
            just_created: sync,
            sorted,
            woken,
            soft_rt_next_start: clock.jiffies,
            creation_time: clock.jiffies,
            ..BfqQueue::vacant()
        };
        self.learnt.ttime = ThinkTime::new(clock.now, clock.stands_still);
        self.learnt.io_start_time = clock.now;
        self.learnt.decrease_time = clock.jiffies;
        self.raising.last_start_finish = clock.jiffies;
    }

    /// No request waits.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.fifo.is_empty()
    }

    #[inline]
    pub fn is_raised(&self) -> bool {
        self.raising.coeff > 1
    }

    #[inline]
    pub fn is_idle_class(&self) -> bool {
        self.class == CLASS_IDLE
    }

    /// Sequential, always with something to do, and quick with the next request.
    #[inline]
    pub fn is_sequential_and_io_bound(&self) -> bool {
        !self.seeks.seeky() && self.learnt.io_bound && self.learnt.has_short_ttime
    }
}
