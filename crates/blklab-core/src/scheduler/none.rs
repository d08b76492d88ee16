//! `none`: requests go to the disk in the order in which they came.
//!
//! Follows Linux 6.12 (`blk-mq.c` with no elevator): a software queue per CPU, emptied
//! in order of arrival; a bio may still be merged into one of the last eight requests
//! that wait there (`blk_bio_list_merge`).

use std::collections::VecDeque;

use super::{Generation, Info, InsertAt, Merge, Queue, QueueLimits, Scheduler, Settings, can_merge};
use crate::request::{Bio, RequestId};
use crate::units::Sector;

/// How many of the latest requests are tried for a merge (`blk_bio_list_merge`).
const MERGE_TRIES: usize = 8;

/// The state of `none`: one FIFO per hardware queue.
pub struct NoScheduler {
    fifos: Vec<VecDeque<RequestId>>,
}

impl Scheduler for NoScheduler {
    const INFO: Info = Info {
        name: "none",
        generation: Generation::MultiQueue,
        summary: "no scheduling: requests go to the disk in order of arrival (multi-queue)",
        follows: "Linux 6.12, blk-mq without an elevator",
        // No lock is shared: software queues belong to one CPU each.
        lock_ns: 0,
        tunables: &[],
    };

    fn new(_: &Settings, limits: &QueueLimits) -> Self {
        NoScheduler { fifos: vec![VecDeque::new(); usize::from(limits.hw_queues)] }
    }

    fn find_merge(&mut self, queue: &Queue<'_>, bio: &Bio) -> Option<Merge> {
        self.fifos[usize::from(bio.hw_queue)]
            .iter()
            .rev()
            .take(MERGE_TRIES)
            .flat_map(|&id| [Merge::Back(id), Merge::Front(id)])
            .find(|&merge| can_merge(queue, bio, merge))
    }

    fn bio_merged(&mut self, _: &Queue<'_>, _: Merge, _: Sector) {}

    fn neighbour(&self, _: &Queue<'_>, _: RequestId, _: bool) -> Option<RequestId> {
        None
    }

    fn requests_merged(&mut self, _: &Queue<'_>, _: RequestId, _: RequestId) {
        unreachable!("neighbour() offers nothing");
    }

    #[inline]
    fn insert(&mut self, queue: &Queue<'_>, id: RequestId, at: InsertAt) {
        let fifo = &mut self.fifos[usize::from(queue.requests[id].hw_queue)];
        match at {
            InsertAt::Sorted => fifo.push_back(id),
            InsertAt::Head => fifo.push_front(id),
        }
    }

    #[inline]
    fn dispatch(&mut self, _: &Queue<'_>, hw_queue: u16) -> Option<RequestId> {
        self.fifos[usize::from(hw_queue)].pop_front()
    }

    fn completed(&mut self, _: &Queue<'_>, _: RequestId) {}

    #[inline]
    fn has_work(&self, hw_queue: u16) -> bool {
        !self.fifos[usize::from(hw_queue)].is_empty()
    }

    fn waiting(&self) -> usize {
        self.fifos.iter().map(VecDeque::len).sum()
    }
}
