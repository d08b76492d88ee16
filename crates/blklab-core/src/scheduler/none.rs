//! `none`: requests are dispatched in the order of arrival.
//!
//! Follows Linux 7.3 (`blk-mq.c` with no elevator). There is hardly anything to schedule: without
//! an elevator a request is created only when it gets one of the disk's own tags, so it goes
//! straight to the driver; a process that finds no tag sleeps until one is free. The order of those
//! sleepers, and the merges that matter (in the submitter's plug), belong to the block layer. What
//! remains is the software queue, for requests that the driver could not take at once. A bio may
//! still merge into one of the latest eight that wait there (`blk_bio_list_merge`). Requests that the
//! driver has refused are in a list of the block layer ([`crate::block`]).
//!
//! Left out: the kernel keeps these per CPU and empties them in turn; here one FIFO per hardware
//! queue keeps the order of arrival among its CPUs. This matters only where several CPUs share a
//! hardware queue whose driver refuses requests although tags are free.

use std::collections::VecDeque;

use super::shared::merge::find_in_list;
use super::{Generation, Info, Merge, Queue, QueueLimits, Scheduler, Settings, Tasks};
use crate::request::{Bio, RequestId};
use crate::units::Sector;

/// The state of `none`: one FIFO per hardware queue.
pub struct NoScheduler {
    fifos: Vec<VecDeque<RequestId>>,
    waiting: usize,
}

impl Scheduler for NoScheduler {
    const INFO: Info = Info {
        name: "none",
        generation: Generation::MultiQueue,
        summary: "no scheduling: requests go to the disk in order of arrival (multi-queue)",
        follows: "Linux 7.3, blk-mq without an elevator",
        // No shared lock: each software queue belongs to one CPU.
        lock_ns: 0,
        tunables: &[],
    };

    fn new(_: &Settings, limits: &QueueLimits, _: &Tasks) -> Self {
        NoScheduler { fifos: vec![VecDeque::new(); usize::from(limits.hw_queues)], waiting: 0 }
    }

    fn find_merge(&mut self, queue: &Queue<'_>, bio: &Bio) -> Option<Merge> {
        let newest_first = self.fifos[usize::from(bio.hw_queue)].iter().rev().copied();
        find_in_list(queue, bio, newest_first)
    }

    fn bio_merged(&mut self, _: &Queue<'_>, _: Merge, _: Sector) {}

    fn neighbour(&self, _: &Queue<'_>, _: RequestId, _: bool) -> Option<RequestId> {
        None
    }

    fn requests_merged(&mut self, _: &Queue<'_>, _: RequestId, _: RequestId) {
        unreachable!("neighbour() offers nothing");
    }

    #[inline]
    fn insert(&mut self, queue: &Queue<'_>, id: RequestId) {
        self.fifos[usize::from(queue.requests[id].hw_queue)].push_back(id);
        self.waiting += 1;
    }

    fn insert_first(&mut self, queue: &Queue<'_>, id: RequestId) -> bool {
        self.fifos[usize::from(queue.requests[id].hw_queue)].push_front(id);
        self.waiting += 1;
        true
    }

    #[inline]
    fn dispatch(&mut self, _: &Queue<'_>, hw_queue: u16) -> Option<RequestId> {
        let id = self.fifos[usize::from(hw_queue)].pop_front()?;
        self.waiting -= 1;
        Some(id)
    }

    fn completed(&mut self, _: &Queue<'_>, _: RequestId) {}

    #[inline]
    fn has_work(&self, hw_queue: u16) -> bool {
        !self.fifos[usize::from(hw_queue)].is_empty()
    }

    #[inline]
    fn waiting(&self) -> usize {
        self.waiting
    }
}
