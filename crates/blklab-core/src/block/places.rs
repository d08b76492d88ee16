//! Places: the tags that requests need, and those that the throttle of writeback gives. What has none sleeps.

use super::{Block, Place};
use crate::containers::tags::NO_TAG;
use crate::disk::AnyDisk;
use crate::request::{Bio, Request, RequestId};
use crate::scheduler::Generation;
use crate::units::Nanos;

impl Block {
    /// A process that finds no tag runs the queue, once before it sleeps and once when it wakes (`blk_mq_get_tag`). What it
    /// has in a plug is not there yet: that is flushed because it sleeps.
    #[cold]
    pub(super) fn run_for_tag(&mut self, now: Nanos, hw_queue: u16, disk: &mut AnyDisk) {
        if self.generation == Generation::MultiQueue {
            self.run_again(now, hw_queue, disk);
        }
    }

    /// The throttle of writeback lets the bio pass.
    #[inline]
    pub(super) fn has_place(&mut self, now: Nanos, bio: &Bio) -> bool {
        self.wbt.as_mut().is_none_or(|wbt| wbt.admit(now, bio))
    }

    /// `actor` sleeps, because there is no place for `bio` in the throttle of writeback.
    pub fn sleep_for_place(&mut self, actor: u64, bio: &Bio) {
        if let Some(wbt) = &mut self.wbt {
            wbt.sleep(actor, bio);
        }
    }

    /// Whether `actor`, which has slept for one, has it now.
    pub fn place_of(&mut self, now: Nanos, actor: u64) -> Place {
        self.wbt.as_mut().map_or(Place::Taken, |wbt| wbt.wake(now, actor))
    }

    /// Sleepers have places and are to be woken.
    #[inline]
    pub fn has_admitted(&self) -> bool {
        self.wbt.as_ref().is_some_and(|wbt| wbt.has_woken())
    }

    /// Those sleepers.
    pub fn take_admitted(&mut self) -> impl Iterator<Item = u64> {
        self.wbt.iter_mut().flat_map(|wbt| wbt.take_woken())
    }

    /// A process pauses, because too much memory of the disk's files is dirty.
    pub fn writer_pauses(&mut self, now: Nanos) {
        if let Some(wbt) = &mut self.wbt {
            wbt.paused(now);
        }
    }

    /// See [`crate::scheduler::Scheduler::depth_limit`].
    #[inline]
    pub(super) fn depth_limit(&self, now: Nanos, bio: &Bio) -> u32 {
        if self.is_none {
            return u32::MAX;
        }
        self.scheduler.depth_limit(&queue!(self, now), bio.process, bio.op, bio.sync)
    }

    /// True if a bio of that kind would get a request of the single queue now.
    #[inline]
    pub fn may_allocate(&self, hw_queue: u16, sync: bool) -> bool {
        let allocated = self.hw_queues[usize::from(hw_queue)].allocated;
        allocated[usize::from(sync)] < self.limits.nr_requests
    }

    /// A tag for the bio's request; [`NO_TAG`] if there are no tags, `None` if all are taken.
    #[inline]
    pub(super) fn take_tag(&mut self, bio: &Bio, most: u32) -> Option<u32> {
        match self.generation {
            Generation::SingleQueue => self.may_allocate(bio.hw_queue, bio.sync).then_some(NO_TAG),
            Generation::MultiQueue => {
                let cpu = self.limits.software_queue(bio.cpu);
                self.hw_queues[usize::from(bio.hw_queue)].tags.take(most, cpu)
            }
        }
    }

    /// A request is freed, and with it its tag.
    #[inline]
    pub(super) fn free(&mut self, id: RequestId, gone: &Request) {
        let (tag, cpu) = (self.tag_of[id.index()], self.limits.software_queue(gone.cpu));
        self.hw_queues[usize::from(gone.hw_queue)].free(gone.sync, tag, cpu);
    }

    /// Requests of the hardware queue freed since the last call.
    pub fn take_freed(&mut self, hw_queue: u16) -> u32 {
        std::mem::take(&mut self.hw_queues[usize::from(hw_queue)].freed)
    }

    /// The smallest number of requests in use at which a bio may sleep: all, or the smallest number
    /// that the scheduler leaves to some kind of bio.
    pub fn least_depth(&self) -> u32 {
        self.limits.nr_requests.min(self.scheduler.least_depth())
    }

    pub(super) fn set_tag(&mut self, id: RequestId, tag: u32) {
        if id.index() >= self.tag_of.len() {
            self.tag_of.resize(id.index() + 1, NO_TAG);
        }
        self.tag_of[id.index()] = tag;
    }

    #[inline(always)]
    pub(super) fn allocate(&mut self, now: Nanos, bio: &Bio, most: u32) -> Option<RequestId> {
        let tag = self.take_tag(bio, most)?;
        self.hw_queues[usize::from(bio.hw_queue)].allocated[usize::from(bio.sync)] += 1;
        Some(self.request_of(now, bio, tag))
    }
}
