//! Merges of bios into waiting requests. A bio merges only into a request of its own queue; the
//! search may also find that two queues should merge.

use super::Bfq;
use super::parts::QueueId;
use super::parts::tasks::TaskIndex;
use crate::request::{Bio, RequestId};
use crate::scheduler::shared::merge_conditions::{mergeable, same_kind};
use crate::scheduler::{Merge, Queue};

/// The process and the queue of the bio.
struct Bringer {
    task: TaskIndex,
    queue: QueueId,
}

impl Bfq {
    /// Checks, as `elv_merge`: the request last merged into, at both ends; a request that ends
    /// where the bio begins; a request of the same queue that begins where the bio ends.
    pub(super) fn find_bio_merge(&mut self, queue: &Queue<'_>, bio: &Bio) -> Option<Merge> {
        if !mergeable(bio.op, bio.fua) {
            return None;
        }
        let task = self.know(queue, bio.process);
        let own = self.tasks.queue(task, bio.sync)?;
        let mut bringer = Bringer { task, queue: own };
        let (begin, end) = (bio.sector, bio.sector.offset(bio.sectors));
        let fits = |id: RequestId| same_kind(queue, &queue.requests[id], bio);
        if let Some(id) = self.merges.last().filter(|&id| fits(id))
            && self.allows(id, bio, &mut bringer)
        {
            let last = &queue.requests[id];
            let merge = if last.end() == begin {
                Some(Merge::Back(id))
            } else if end == last.sector {
                Some(Merge::Front(id))
            } else {
                None
            };
            if let Some(merge) = merge {
                return self.take_merge(queue, bio, merge, &mut bringer);
            }
        }
        if let Some(id) = self.merges.ending_at(begin).filter(|&id| fits(id))
            && self.allows(id, bio, &mut bringer)
        {
            return self.take_merge(queue, bio, Merge::Back(id), &mut bringer);
        }
        let front = self.requests.starting_at(&self.queues[bringer.queue.index()].backlog, end);
        let id = front.filter(|&id| fits(id))?;
        if self.allows(id, bio, &mut bringer) {
            return self.take_merge(queue, bio, Merge::Front(id), &mut bringer);
        }
        None
    }

    /// The kernel checks the rules twice, then the size limit of a request.
    fn take_merge(
        &mut self,
        queue: &Queue<'_>,
        bio: &Bio,
        merge: Merge,
        bringer: &mut Bringer,
    ) -> Option<Merge> {
        let (Merge::Back(id) | Merge::Front(id)) = merge;
        if !self.allows(id, bio, bringer) {
            return None;
        }
        Some(self.merges.found(queue, bio, merge))
    }

    /// `bfq_allow_bio_merge`.
    fn allows(&mut self, id: RequestId, bio: &Bio, bringer: &mut Bringer) -> bool {
        if bio.sync && !self.requests.is_sync(id) {
            return false;
        }
        if let Some(into) = self.cooperator(bringer.queue, bio.sector, bringer.task) {
            self.merge_up_to(bringer.task, bringer.queue, into);
            bringer.queue = into;
        }
        bringer.queue == self.requests.queue_of(id)
    }
}
