//! A hardware queue of the disk, as the block layer sees it.

use super::refused::Refused;
use super::worker::Worker;
use crate::containers::tags::{NO_TAG, Tags};
use crate::request::RequestId;
use crate::units::Nanos;

/// Requests in use and in flight, of one hardware queue.
#[derive(Clone, Debug)]
pub(super) struct HwQueue {
    pub tags: Tags,
    /// Created and not completed: async, sync.
    pub allocated: [u32; 2],
    /// Completed, or merged into another, since the last [`super::Block::take_freed`].
    pub freed: u32,
    /// Requests in flight.
    pub in_flight: u32,
    /// Out of the scheduler and not dispatched yet ([`super::rules::Rules::peeks`]).
    pub parked: Option<RequestId>,
    /// Requests that the driver has refused ([`super::rules::Rules::refuses`]).
    pub refused: Refused,
    /// The disk was full in the last run: the next completion runs the queue (SCSI counts `restarts`;
    /// without a budget, `BLK_MQ_S_SCHED_RESTART`).
    pub restart: bool,
    /// Listed in [`super::Block::to_run`].
    pub to_run: bool,
    pub worker: Worker,
    /// When the worker runs by itself; `NEVER` if it has not planned to.
    pub due: Nanos,
}

impl HwQueue {
    pub fn new(tags: Tags) -> HwQueue {
        HwQueue {
            tags,
            allocated: [0; 2],
            freed: 0,
            in_flight: 0,
            parked: None,
            refused: Refused::default(),
            restart: false,
            to_run: false,
            worker: Worker::Asleep,
            due: Nanos::NEVER,
        }
    }

    /// It may have requests to dispatch; true if that is new, so that it has to be listed.
    #[inline]
    pub fn marked(&mut self) -> bool {
        !std::mem::replace(&mut self.to_run, true)
    }

    /// One of its requests was freed, of that software queue.
    #[inline]
    pub fn free(&mut self, sync: bool, tag: u32, cpu: u16) {
        self.allocated[usize::from(sync)] -= 1;
        if tag != NO_TAG {
            self.tags.put(tag, cpu);
        }
        // Matters only while processes sleep; they read it often.
        self.freed = self.freed.wrapping_add(1);
    }
}
