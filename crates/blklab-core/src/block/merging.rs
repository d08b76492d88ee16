//! Merges of adjacent bios and requests.

use super::{BioNode, Block, Worker};
use crate::request::{Bio, BioChain, Op, ProcessId, RequestId};
use crate::scheduler::{Merge, adjoins};
use crate::units::{Nanos, Sector};

/// Sectors of a page of memory.
const PAGE_SECTORS: u32 = 8;

impl Block {
    #[inline]
    pub(super) fn merge_into_plug(&mut self, now: Nanos, bio: &Bio) -> bool {
        let merge = self.find_in_plug(now, bio);
        if let Some(merge) = merge {
            self.grow(merge, bio);
        }
        merge.is_some()
    }

    /// A merge with one of the latest requests of the plug.
    #[inline(always)]
    fn find_in_plug(&mut self, now: Nanos, bio: &Bio) -> Option<Merge> {
        if self.plug.is_empty() { None } else { self.find_among_plugged(now, bio) }
    }

    fn find_among_plugged(&mut self, now: Nanos, bio: &Bio) -> Option<Merge> {
        for at in (0..self.plug.len()).rev().take(self.rules.plug_merges) {
            let merge = adjoins(&queue!(self, now), self.plug[at], bio);
            if let Some(merge) = merge.filter(|&merge| self.has_room(merge, bio)) {
                return Some(merge);
            }
        }
        None
    }

    /// A merge with a request that waits in the scheduler.
    #[inline]
    fn find_waiting(&mut self, now: Nanos, bio: &Bio) -> Option<Merge> {
        if self.scheduler.waiting() == 0 { None } else { self.find_among_waiting(now, bio) }
    }

    fn find_among_waiting(&mut self, now: Nanos, bio: &Bio) -> Option<Merge> {
        let merge = self.scheduler.find_merge(&queue!(self, now), bio);
        if self.has_moves {
            self.wake_asked(bio.thread, bio.hw_queue);
        }
        merge.filter(|&merge| self.has_room(merge, bio))
    }

    /// Whether the request is small enough for the bio. If not, it takes no more (`req_set_nomerge`).
    #[inline]
    fn has_room(&mut self, merge: Merge, bio: &Bio) -> bool {
        let (Merge::Back(id) | Merge::Front(id)) = merge;
        let request = &mut self.requests[id];
        request.full = request.sectors + bio.sectors > self.limits.max_sectors;
        !request.full
    }

    #[inline]
    pub(super) fn merge_into_waiting(&mut self, now: Nanos, bio: &Bio) -> bool {
        let Some(merge) = self.find_waiting(now, bio) else { return false };
        let (Merge::Back(id) | Merge::Front(id)) = merge;
        let old_sector = self.requests[id].sector;
        self.grow(merge, bio);
        let after = matches!(merge, Merge::Back(_));
        let neighbour = self.scheduler.neighbour(&queue!(self, now), id, after);
        self.scheduler.bio_merged(&queue!(self, now), merge, old_sector);
        if let Some(other) = neighbour {
            let (kept, gone) = if after { (id, other) } else { (other, id) };
            self.scheduler.requests_merged(&queue!(self, now), kept, gone);
            self.append(now, kept, gone);
            self.restart_after_merge(bio.hw_queue, bio.thread);
        }
        true
    }

    /// Two requests have become one. The freed one runs the queue again if a request was refused
    /// (`blk_mq_sched_restart`), as that of a completion does.
    fn restart_after_merge(&mut self, hw_queue: u16, thread: ProcessId) {
        if self.hw_queues[usize::from(hw_queue)].refused.take_tried() {
            self.wake_worker(hw_queue, Worker::After(thread));
        }
    }

    /// Sectors that can be appended to the plug's last request, if it is a write that ends at `sector`.
    pub fn room_in_plug(&self, sector: Sector) -> u32 {
        let last = self.plug.last().map(|&id| &self.requests[id]);
        let last = last.filter(|last| last.op == Op::Write && last.end() == sector);
        last.map_or(0, |last| self.limits.max_sectors - last.sectors)
    }

    /// The sectors of `whole` that go to one request if each page is submitted with a bio of its own:
    /// the first page decides whether they are appended to a request or get a new one.
    pub fn sectors_for_one_request(&mut self, now: Nanos, whole: &Bio) -> u32 {
        let page = Bio { sectors: whole.sectors.min(PAGE_SECTORS), ..*whole };
        let found = self.find_in_plug(now, &page).or_else(|| self.find_waiting(now, &page));
        let room = match found {
            Some(Merge::Back(id)) => self.limits.max_sectors - self.requests[id].sectors,
            Some(Merge::Front(_)) => page.sectors,
            None => self.limits.max_sectors,
        };
        whole.sectors.min(room)
    }

    /// Adds `bio` to a request.
    fn grow(&mut self, merge: Merge, bio: &Bio) {
        let (Merge::Back(id) | Merge::Front(id)) = merge;
        let request = &mut self.requests[id];
        request.sectors += bio.sectors;
        let rest = if let Merge::Front(_) = merge {
            request.sector = bio.sector;
            let second = std::mem::replace(&mut request.owner, bio.owner);
            prepend(&mut self.bios, second, request.rest)
        } else {
            let last = prepend(&mut self.bios, bio.owner, BioChain::default());
            concat(&mut self.bios, request.rest, last)
        };
        self.requests[id].rest = rest;
        self.count_merge(bio.op);
    }

    fn count_merge(&mut self, op: Op) {
        match op {
            Op::Read => self.counters.read_merges += 1,
            _ => self.counters.write_merges += 1,
        }
    }

    /// Appends the chain of `gone` to that of `kept` and frees `gone`.
    fn append(&mut self, now: Nanos, kept: RequestId, gone: RequestId) {
        self.account(now);
        self.waiting -= 1;
        let id = gone;
        let gone = self.requests.remove(id);
        if let Some(wbt) = &mut self.wbt {
            wbt.freed(now, id);
        }
        self.free(id, &gone);
        let kept = &mut self.requests[kept];
        kept.sectors += gone.sectors;
        // A merged request's time counts from the earlier start, as in diskstats.
        self.counters.joined_ns += (now - gone.inserted.max(kept.inserted)).0;
        kept.inserted = kept.inserted.min(gone.inserted);
        let of_gone = prepend(&mut self.bios, gone.owner, gone.rest);
        kept.rest = concat(&mut self.bios, kept.rest, of_gone);
        self.count_merge(gone.op);
    }

    /// Appends a new request to a waiting one, and that to the next, as long as the scheduler finds
    /// one (`blk_mq_sched_try_insert_merge`).
    #[inline]
    pub(super) fn join_waiting(&mut self, now: Nanos, id: RequestId) -> bool {
        let mut last = id;
        let (hw_queue, thread) = (self.requests[id].hw_queue, self.requests[id].thread);
        while self.scheduler.waiting() > 0
            && let Some(kept) = self.scheduler.find_join(&queue!(self, now), last)
        {
            self.scheduler.requests_merged(&queue!(self, now), kept, last);
            self.append(now, kept, last);
            last = kept;
        }
        if last != id {
            self.restart_after_merge(hw_queue, thread);
        }
        last != id
    }
}

/// The chain of a bio of `owner`, followed by `rest`.
fn prepend(bios: &mut slab::Slab<BioNode>, owner: u64, rest: BioChain) -> BioChain {
    let head = bios.insert(BioNode { owner, next: rest.head }) as u32;
    BioChain { head, tail: if rest.tail == BioChain::END { head } else { rest.tail } }
}

/// `first`, followed by `second`, which is not empty.
fn concat(bios: &mut slab::Slab<BioNode>, first: BioChain, second: BioChain) -> BioChain {
    if first.tail == BioChain::END {
        return second;
    }
    bios[first.tail as usize].next = second.head;
    BioChain { head: first.head, tail: second.tail }
}
