//! The block layer's conditions for merges of a bio into a request, and of two requests.

use crate::request::{Bio, IoPrio, Op, Request, RequestId};
use crate::scheduler::{Merge, Queue};

/// An operation that may merge at all (`rq_mergeable`, `bio_mergeable`): the kernel keeps flushes
/// and FUA writes apart.
pub(in crate::scheduler) const fn mergeable(op: Op, fua: bool) -> bool {
    !fua && !matches!(op, Op::Flush)
}

/// I/O of these priorities may be in one request.
fn may_mix(queue: &Queue<'_>, one: IoPrio, other: IoPrio) -> bool {
    queue.limits.merges_priorities || one.equals(other)
}

/// Whether `bio` is of the request's kind (`blk_rq_merge_ok`): both may merge, same operation, same
/// priority. Synchronous and asynchronous may mix. False if the request has refused a merge.
pub(in crate::scheduler) fn same_kind(queue: &Queue<'_>, request: &Request, bio: &Bio) -> bool {
    !request.full
        && request.op == bio.op
        && may_mix(queue, request.prio, bio.prio)
        && mergeable(request.op, request.fua)
        && mergeable(bio.op, bio.fua)
}

/// The end at which the request takes the bio, if its size allows it (`blk_attempt_bio_merge`).
pub fn adjoins(queue: &Queue<'_>, id: RequestId, bio: &Bio) -> Option<Merge> {
    let request = &queue.requests[id];
    if !same_kind(queue, request, bio) {
        None
    } else if request.end() == bio.sector {
        Some(Merge::Back(id))
    } else if bio.sector.offset(bio.sectors) == request.sector {
        Some(Merge::Front(id))
    } else {
        None
    }
}

/// Whether two requests may merge, `next` directly after `first` (`attempt_merge`). They may
/// belong to different hardware queues.
pub fn can_join(queue: &Queue<'_>, first: RequestId, next: RequestId) -> bool {
    let (first, next) = (&queue.requests[first], &queue.requests[next]);
    !(first.full || next.full)
        && first.end() == next.sector
        && first.op == next.op
        && may_mix(queue, first.prio, next.prio)
        && mergeable(first.op, first.fua)
        && mergeable(next.op, next.fua)
        && first.sectors + next.sectors <= queue.limits.max_sectors
}
