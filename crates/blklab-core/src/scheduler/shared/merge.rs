//! Finds waiting requests that a bio or another request may merge with.
//!
//! Follows Linux 7.3 (`elv_merge`, `elv_attempt_insert_merge`, `blk_bio_list_merge`); 4.12 did the
//! same. Back merges come from a hash of the end sectors of waiting requests, after a cache of one:
//! the request that was last extended, or the first request to arrive when there was none. Front
//! merges are up to the scheduler. A request that would have grown too large is marked and never
//! tried again (`req_set_nomerge`).
//!
//! Discards are merged like writes, end to end. The kernel does so on disks that take one range per
//! command (SATA behind most bridges). NVMe takes up to 256 ranges that need not be adjacent; there
//! the kernel merges far more of them.

use super::merge_conditions::{adjoins, can_join, mergeable, same_kind};
use crate::request::{Bio, RequestId};
use crate::scheduler::{Merge, Queue};
use crate::units::Sector;

/// "No request" in a chain.
const NIL: u32 = u32::MAX;

/// The number of latest requests of a list that are tried (`blk_bio_list_merge`).
const LIST_TRIES: usize = 8;

/// A request's entry in the index.
#[derive(Clone, Copy, Debug)]
struct MergeEntry {
    /// The sector after the request: its key while hashed.
    end: Sector,
    previous: u32,
    next: u32,
    hashed: bool,
}

const VACANT: MergeEntry = MergeEntry { end: Sector(0), previous: NIL, next: NIL, hashed: false };

/// Waiting requests by their end sector, and the one-request cache.
#[derive(Debug)]
pub(in crate::scheduler) struct MergeIndex {
    /// First request of each chain; the number of chains is a power of two.
    chains: Vec<u32>,
    shift: u32,
    slots: Vec<MergeEntry>,
    last: Option<RequestId>,
}

impl MergeIndex {
    /// With room for about `requests` requests; more only make the chains longer. Most chains are
    /// empty, so that the processor predicts the result of a lookup.
    pub fn with_capacity(requests: usize) -> MergeIndex {
        let chains = (4 * requests).next_power_of_two().clamp(64, 1 << 12);
        MergeIndex {
            chains: vec![NIL; chains],
            shift: 64 - chains.trailing_zeros(),
            slots: Vec::with_capacity(requests),
            last: None,
        }
    }

    /// Fibonacci hashing: the top bits of a product with 2^64 over the golden ratio.
    #[inline]
    fn chain(&self, end: Sector) -> usize {
        (end.0.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> self.shift) as usize
    }

    #[inline]
    fn link(&mut self, id: RequestId, end: Sector) {
        let chain = self.chain(end);
        let next = self.chains[chain];
        if next != NIL {
            self.slots[next as usize].previous = id.0;
        }
        self.chains[chain] = id.0;
        self.slots[id.index()] = MergeEntry { end, previous: NIL, next, hashed: true };
    }

    #[inline]
    fn unlink(&mut self, id: RequestId) {
        let MergeEntry { end, previous, next, hashed, .. } = self.slots[id.index()];
        if !hashed {
            return;
        }
        self.slots[id.index()].hashed = false;
        match previous {
            NIL => {
                let chain = self.chain(end);
                self.chains[chain] = next;
            }
            p => self.slots[p as usize].next = next,
        }
        if next != NIL {
            self.slots[next as usize].previous = previous;
        }
    }

    /// A request starts waiting.
    #[inline(always)]
    pub fn insert(&mut self, queue: &Queue<'_>, id: RequestId) {
        if id.index() >= self.slots.len() {
            self.make_room(id);
        }
        let request = &queue.requests[id];
        if mergeable(request.op, request.fua) && !request.full {
            self.link(id, request.end());
            self.last.get_or_insert(id);
        }
    }

    #[cold]
    fn make_room(&mut self, id: RequestId) {
        self.slots.resize(id.index() + 1, VACANT);
    }

    /// A request no longer waits.
    #[inline]
    pub fn remove(&mut self, id: RequestId) {
        self.unlink(id);
        if self.last == Some(id) {
            self.last = None;
        }
    }

    /// A waiting request was extended and now ends at `end`.
    pub fn grown(&mut self, id: RequestId, end: Sector) {
        self.unlink(id);
        self.link(id, end);
        self.last = Some(id);
    }

    /// A waiting request was extended at its front: its end is unchanged.
    pub fn grown_downwards(&mut self, id: RequestId) {
        self.last = Some(id);
    }

    /// The request that was last extended, or the first to arrive when there was none.
    #[inline]
    pub fn last(&self) -> Option<RequestId> {
        self.last
    }

    /// The latest request in the chain that ends at `end`.
    #[inline]
    pub fn ending_at(&self, end: Sector) -> Option<RequestId> {
        let mut at = self.chains[self.chain(end)];
        while at != NIL {
            let slot = &self.slots[at as usize];
            if slot.end == end {
                return Some(RequestId(at));
            }
            at = slot.next;
        }
        None
    }

    /// The found merge. If it would make the request too large, the request is no longer found: the caller
    /// marks it ([`Request::full`](crate::request::Request::full)).
    pub fn found(&mut self, queue: &Queue<'_>, bio: &Bio, merge: Merge) -> Merge {
        let (Merge::Back(id) | Merge::Front(id)) = merge;
        if queue.requests[id].sectors + bio.sectors > queue.limits.max_sectors {
            self.remove(id);
        }
        merge
    }

    /// A waiting request for `bio`: the cached one at either end, else a back merge, else the
    /// request that `front` finds to begin after the bio.
    #[inline]
    pub fn find(
        &mut self,
        queue: &Queue<'_>,
        bio: &Bio,
        front: impl FnOnce() -> Option<RequestId>,
    ) -> Option<Merge> {
        self.find_among(queue, bio, |_| true, front)
    }

    /// The same for a scheduler that allows merges with some requests only
    /// (`elevator_allow_bio_merge_fn`).
    #[inline]
    pub fn find_among(
        &mut self,
        queue: &Queue<'_>,
        bio: &Bio,
        allowed: impl Fn(RequestId) -> bool,
        front: impl FnOnce() -> Option<RequestId>,
    ) -> Option<Merge> {
        if !mergeable(bio.op, bio.fua) {
            return None;
        }
        let fits = |id: RequestId| same_kind(queue, &queue.requests[id], bio) && allowed(id);
        let last = self.last.filter(|&id| allowed(id)).and_then(|id| adjoins(queue, id, bio));
        let merge = last
            .or_else(|| self.ending_at(bio.sector).filter(|&id| fits(id)).map(Merge::Back))
            .or_else(|| front().filter(|&id| fits(id)).map(Merge::Front))?;
        Some(self.found(queue, bio, merge))
    }

    /// A waiting request to which the request `id` can be appended.
    pub fn find_join(&self, queue: &Queue<'_>, id: RequestId) -> Option<RequestId> {
        self.find_join_among(queue, id, |_| true)
    }

    /// The same for a scheduler that allows only some requests (`elevator_allow_rq_merge_fn`).
    pub fn find_join_among(
        &self,
        queue: &Queue<'_>,
        id: RequestId,
        allowed: impl Fn(RequestId) -> bool,
    ) -> Option<RequestId> {
        let can = |&first: &RequestId| can_join(queue, first, id) && allowed(first);
        self.last.filter(can).or_else(|| self.ending_at(queue.requests[id].sector).filter(can))
    }

    /// True if the request waits and may merge.
    pub fn contains(&self, id: RequestId) -> bool {
        self.slots.get(id.index()).is_some_and(|slot| slot.hashed)
    }

    /// Whether `other`, the next request after (`after` true) or before `id` in the scheduler's
    /// order, can merge with it.
    pub fn joins(&self, queue: &Queue<'_>, id: RequestId, other: RequestId, after: bool) -> bool {
        let (first, next) = if after { (id, other) } else { (other, id) };
        can_join(queue, first, next)
    }
}

/// A merge with one of the latest requests of a list, for schedulers without an index. The first
/// adjacent request decides: if it cannot take the bio, no other is tried.
pub(in crate::scheduler) fn find_in_list(
    queue: &Queue<'_>,
    bio: &Bio,
    mut newest_first: impl Iterator<Item = RequestId>,
) -> Option<Merge> {
    newest_first.by_ref().take(LIST_TRIES).find_map(|id| adjoins(queue, id, bio))
}
