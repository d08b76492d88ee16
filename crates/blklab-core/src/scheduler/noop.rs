//! `noop`: first come, first served, after merging.
//!
//! Follows Linux 4.12 (`block/noop-iosched.c`, single queue).
//!
//! One FIFO. The elevator core around it adds merges: a new bio is appended to a waiting request
//! that ends where the bio begins, anywhere in the FIFO (a hash by end sector), or extends the
//! request that was last merged, at either end. Requests that have become adjacent are merged only
//! with their neighbour *in the FIFO*. Noop was meant for disks that sort requests themselves,
//! virtual disks and RAID controllers.
//!
//! Left out: requeued requests, which a disk model without errors never causes.

use super::shared::merge::MergeIndex;
use super::{Generation, Info, Merge, Queue, QueueLimits, Scheduler, Settings, Tasks};
use crate::containers::lists::{Links, List};
use crate::request::{Bio, RequestId};
use crate::units::Sector;

/// The state of noop.
pub struct Noop {
    links: Links,
    fifo: List,
    merges: MergeIndex,
    waiting: usize,
}

impl Scheduler for Noop {
    const INFO: Info = Info {
        name: "noop",
        generation: Generation::SingleQueue,
        summary: "first come, first served, with merging (single queue)",
        follows: "Linux 4.12, noop-iosched.c",
        // estimate: the single-queue block layer's one queue lock, held for insertion and dispatch.
        lock_ns: 500,
        tunables: &[],
    };

    fn new(_: &Settings, limits: &QueueLimits, _: &Tasks) -> Self {
        let requests = limits.nr_requests as usize;
        Noop {
            links: Links::with_capacity(requests),
            fifo: List::EMPTY,
            merges: MergeIndex::with_capacity(requests),
            waiting: 0,
        }
    }

    #[inline]
    fn find_merge(&mut self, queue: &Queue<'_>, bio: &Bio) -> Option<Merge> {
        self.merges.find(queue, bio, || None)
    }

    fn bio_merged(&mut self, queue: &Queue<'_>, merge: Merge, _: Sector) {
        match merge {
            Merge::Back(id) => self.merges.grown(id, queue.requests[id].end()),
            Merge::Front(id) => self.merges.grown_downwards(id),
        }
    }

    fn neighbour(&self, queue: &Queue<'_>, id: RequestId, after: bool) -> Option<RequestId> {
        let other = if after { self.links.after(id) } else { self.links.before(id) }?;
        self.merges.joins(queue, id, other, after).then_some(other)
    }

    fn find_join(&mut self, queue: &Queue<'_>, id: RequestId) -> Option<RequestId> {
        self.merges.find_join(queue, id)
    }

    fn requests_merged(&mut self, queue: &Queue<'_>, kept: RequestId, gone: RequestId) {
        if self.merges.contains(gone) {
            self.links.remove(&mut self.fifo, gone);
            self.merges.remove(gone);
            self.waiting -= 1;
        }
        self.merges.grown(kept, queue.requests[gone].end());
    }

    #[inline]
    fn insert(&mut self, queue: &Queue<'_>, id: RequestId) {
        self.waiting += 1;
        self.links.push_back(&mut self.fifo, id);
        self.merges.insert(queue, id);
    }

    #[inline]
    fn dispatch(&mut self, _: &Queue<'_>, _: u16) -> Option<RequestId> {
        let id = self.links.pop_front(&mut self.fifo)?;
        self.merges.remove(id);
        self.waiting -= 1;
        Some(id)
    }

    fn completed(&mut self, _: &Queue<'_>, _: RequestId) {}

    #[inline]
    fn has_work(&self, _: u16) -> bool {
        self.waiting > 0
    }

    #[inline]
    fn waiting(&self) -> usize {
        self.waiting
    }
}
