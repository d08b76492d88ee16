//! BFQ's state of each request, by id.

use super::parts::QueueId;
use super::queue::TaskIndex;
use crate::request::{Request, RequestId};
use crate::units::Sector;

/// The stage of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Unknown to BFQ.
    Gone,
    /// Belongs to a queue, but is in no list yet.
    Assigned,
    /// Sorted into its queue.
    Waits,
    /// Dispatched.
    Started,
}

/// One request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot {
    pub stage: Stage,
    pub sync: bool,
    pub sectors: u32,
    pub sector: Sector,
    pub queue: QueueId,
    pub task: TaskIndex,
    /// When it expires in the FIFO, in ns.
    pub fifo_time: u64,
}

impl Slot {
    pub fn end(&self) -> Sector {
        self.sector.offset(self.sectors)
    }
}

/// All requests.
#[derive(Debug)]
pub(super) struct Slots(Vec<Slot>);

impl Slots {
    pub fn with_capacity(requests: usize) -> Slots {
        Slots(Vec::with_capacity(requests))
    }

    /// The stage of any request, also of one that never came here.
    #[inline]
    pub fn stage(&self, id: RequestId) -> Stage {
        self.0.get(id.index()).map_or(Stage::Gone, |slot| slot.stage)
    }

    /// The request now belongs to a queue.
    #[inline]
    pub fn assign(&mut self, id: RequestId, request: &Request, task: TaskIndex, queue: QueueId) {
        let slot = Slot {
            stage: Stage::Assigned,
            sync: request.sync,
            sectors: request.sectors,
            sector: request.sector,
            queue,
            task,
            fifo_time: 0,
        };
        if id.index() >= self.0.len() {
            self.0.resize(id.index() + 1, Slot { stage: Stage::Gone, ..slot });
        }
        self.0[id.index()] = slot;
    }
}

impl std::ops::Index<RequestId> for Slots {
    type Output = Slot;
    #[inline]
    fn index(&self, id: RequestId) -> &Slot {
        &self.0[id.index()]
    }
}

impl std::ops::IndexMut<RequestId> for Slots {
    #[inline]
    fn index_mut(&mut self, id: RequestId) -> &mut Slot {
        &mut self.0[id.index()]
    }
}
