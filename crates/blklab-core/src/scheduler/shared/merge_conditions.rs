//! The block layer's conditions for merges of a bio into a request, and of two requests.

use crate::request::{Bio, Op, Request, RequestId};
use crate::scheduler::{Merge, Queue};

/// An operation that may merge at all (`rq_mergeable`, `bio_mergeable`): the kernel keeps flushes
/// and FUA writes apart.
pub(in crate::scheduler) const fn mergeable(op: Op, fua: bool) -> bool {
    !fua && !matches!(op, Op::Flush)
}

/// Whether `bio` is of the request's kind (`blk_rq_merge_ok`): both may merge, same operation, same
/// priority. Synchronous and asynchronous may mix.
pub(in crate::scheduler) fn same_kind(request: &Request, bio: &Bio) -> bool {
    request.op == bio.op
        && request.prio == bio.prio
        && mergeable(request.op, request.fua)
        && mergeable(bio.op, bio.fua)
}

/// The block layer's own conditions for adding `bio` to `id` at that end (`elv_bio_merge_ok` and
/// `ll_back_merge_fn`): of one kind, adjacent, and together at most `max_sectors`.
pub fn can_merge(queue: &Queue<'_>, bio: &Bio, merge: Merge) -> bool {
    let (id, adjoins) = match merge {
        Merge::Back(id) => (id, queue.requests[id].end() == bio.sector),
        Merge::Front(id) => (id, bio.sector.offset(bio.sectors) == queue.requests[id].sector),
    };
    let request = &queue.requests[id];
    adjoins && same_kind(request, bio) && request.sectors + bio.sectors <= queue.limits.max_sectors
}

/// The same for merging two requests, `next` directly after `first` (`attempt_merge`). They may
/// belong to different hardware queues.
pub fn can_join(queue: &Queue<'_>, first: RequestId, next: RequestId) -> bool {
    let (first, next) = (&queue.requests[first], &queue.requests[next]);
    first.end() == next.sector
        && first.op == next.op
        && first.prio == next.prio
        && mergeable(first.op, first.fua)
        && mergeable(next.op, next.fua)
        && first.sectors + next.sectors <= queue.limits.max_sectors
}
