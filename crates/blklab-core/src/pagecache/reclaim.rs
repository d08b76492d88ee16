//! Reclaim: the pages that are dropped when memory is full.
//!
//! As in the kernel (`balance_pgdat`, `shrink_lruvec` and below, `mm/vmscan.c`): the first pages of the inactive list are
//! dropped if they are clean. The others are active from then on, with a mark by which they come to the list's begin
//! when they are written. If more pages are active than inactive, or pages have come back soon, the first active ones become
//! inactive. Where all pages that are looked at together are dirty, flushers write everything (`handle_reclaim_writeback`).
//! How long the lists are, and whether pages have come back, it knows from statistics that are up to two seconds old.

use std::collections::{HashSet, VecDeque};

use super::lru::{Kind, Place};
use super::pages::{LINES, Pages, line_end, line_index};
use super::search::Tag;
use super::{FileId, PageCache};
use crate::ticks::Ticks;
use crate::units::Nanos;

/// Pages that the kernel looks at together (`SWAP_CLUSTER_MAX`).
const TOGETHER: u64 = 32;
/// Between the watermarks at which the kernel begins and ends to drop pages (a quarter of `min_free_kbytes`, which is
/// 67,584 on a machine with huge pages and 4 GiB or more, and in a guest).
const BETWEEN_WATERMARKS: u64 = 67_584 / 4 / 4;
/// Memory that is smaller keeps most of its pages.
const PART_BETWEEN: u64 = 16;
/// The high watermark in distances between watermarks: the lowest one is four.
const HIGH_WATERMARK: u64 = 6;
/// The first round looks at this part of the pages, as a power of two, and each of the next at twice as many
/// (`DEF_PRIORITY`).
const PRIORITY: u32 = 12;
/// Pages that were dropped so long ago have made room for enough others (`HZ / 10` in `kswapd_try_to_sleep`).
const SHORT_SLEEP: Nanos = Nanos::from_millis(100);
/// How often the kernel sums up its statistics of pages (`FLUSH_TIME` in `mm/memcontrol.c`).
const COUNTS_EVERY: Nanos = Nanos::from_secs(2);
/// It has done so as long before a run begins, as in a guest.
const COUNTED_BEFORE: Nanos = Nanos::from_millis(1219);
/// Pages in 1 GiB, as a power of two.
const GIB_PAGES: u32 = 18;
/// The row of emptied lines is not made shorter than that.
const ROW_AT_LEAST: u64 = 1024;

/// The pages that the kernel drops beyond those that it needs, of so many that there can be.
fn beyond(memory_pages: u64) -> u64 {
    BETWEEN_WATERMARKS.min(memory_pages / PART_BETWEEN)
}

/// When the kernel sums up its statistics for the first time in a run.
pub(super) fn first_count(ticks: Ticks) -> Nanos {
    ticks.timer(Nanos::ZERO, ticks.span(COUNTS_EVERY - COUNTED_BEFORE))
}

/// What the kernel's statistics say of pages. They are kept for each cgroup and CPU, and are summed up every two seconds
/// (`flush_memcg_stats_dwork`): until then reclaim decides by what they were (`lruvec_page_state`).
#[derive(Debug, Default)]
pub(super) struct Counted {
    inactive: u64,
    pub active: u64,
    /// Since the last reclaim it was seen that pages had come back soon.
    come_back: bool,
}

impl PageCache {
    /// Pages of memory that are free.
    #[inline]
    pub(super) fn free(&self) -> u64 {
        self.memory_pages.saturating_sub(self.pages.taken())
    }

    /// Whether there is room for `pages` more cached pages.
    #[inline]
    pub(super) fn has_room(&self, pages: u64) -> bool {
        self.pages.have_room(pages, self.memory_pages)
    }

    /// Makes room for `pages` more cached pages; returns the number that fit.
    #[inline]
    pub(super) fn make_room(&mut self, pages: u64) -> u64 {
        if self.has_room(pages) {
            return pages;
        }
        self.reclaim_for(pages)
    }

    #[cold]
    fn reclaim_for(&mut self, pages: u64) -> u64 {
        let needed = self.memory_pages.saturating_sub(pages);
        let only_dirty = self.balance_memory(self.now, needed);
        let room = self.free();
        if only_dirty || room == 0 {
            self.backings.each(|_, backing| backing.flusher.write_everything());
        }
        room.min(pages)
    }

    /// The thread that drops pages does so until only `needed` are taken, and fewer, and looks again some time
    /// later. True if all pages that it looked at together were dirty.
    fn balance_memory(&mut self, now: Nanos, needed: u64) -> bool {
        self.looks_again = self.ticks.timer(now, self.ticks.span(SHORT_SLEEP));
        self.pages.reclaim(needed, beyond(self.memory_pages))
    }

    /// The time is `now`: to be called before a read. If memory has been filled again since pages were dropped a short
    /// time ago, more of them are (`kswapd_try_to_sleep`).
    #[inline]
    pub fn advance(&mut self, now: Nanos) {
        self.now = now;
        if self.looks_again <= now {
            self.look_again();
        }
        if self.counts_again <= now {
            self.pages.count();
            // None of those that were missed would have counted otherwise.
            while self.counts_again <= now {
                self.counts_again = self.ticks.timer(self.counts_again, self.ticks.span(COUNTS_EVERY));
            }
        }
    }

    #[cold]
    fn look_again(&mut self) {
        while self.looks_again <= self.now {
            let at = std::mem::replace(&mut self.looks_again, Nanos::NEVER);
            if self.free() < beyond(self.memory_pages) && self.balance_memory(at, self.memory_pages) {
                self.backings.each(|_, backing| backing.flusher.write_everything());
            }
        }
    }
}

/// What a round, or a part of it, has done.
#[derive(Default)]
struct Round {
    looked_at: u64,
    dropped: u64,
    /// Pages that were looked at together were all dirty, and none was being written.
    only_dirty: bool,
}

impl Pages {
    /// Whether there is room for `more` cached pages in so many pages of memory.
    #[inline]
    pub fn have_room(&self, more: u64, memory: u64) -> bool {
        more + self.taken_at_most() <= memory || more <= memory.saturating_sub(self.taken())
    }

    #[cold]
    fn count(&mut self) {
        let [inactive, active] = [Kind::Inactive, Kind::Active].map(|kind| self.lru.count(kind));
        let come_back = self.counted.come_back | std::mem::take(&mut self.come_back);
        self.counted = Counted { inactive, active, come_back };
    }

    /// These pages were read for the second time (`folio_activate`).
    #[cold]
    pub fn activate(&mut self, file: FileId, page: u64, mask: u64) {
        let (slot, index) = (self.slot(file, page), line_index(page));
        self.ages.activated(u64::from(mask.count_ones()));
        self.put(Place { slot, line: index as u8 }, Kind::Active, mask);
    }

    /// Moves pages of a line to the end of a list.
    fn put(&mut self, place: Place, kind: Kind, mask: u64) {
        let line = &mut self.chunks[place.slot as usize].lines[place.line as usize];
        self.lru.take(&mut line.parts, mask);
        self.put_taken(place, kind, mask);
    }

    /// The same of pages that are in no list any more.
    fn put_taken(&mut self, place: Place, kind: Kind, mask: u64) {
        let line = &mut self.chunks[place.slot as usize].lines[place.line as usize];
        self.lru.push(kind, place, &mut line.parts, mask, u64::from(mask.count_ones()));
        match kind {
            Kind::Active => line.active |= mask,
            Kind::Inactive => line.active &= !mask,
        }
    }

    /// Moves pages of a line to where reclaim looks next.
    pub fn put_first(&mut self, place: Place, mask: u64) {
        let line = &mut self.chunks[place.slot as usize].lines[place.line as usize];
        self.lru.take(&mut line.parts, mask);
        self.lru.push_front(place, &mut line.parts, mask);
        line.active &= !mask;
    }

    /// Marks the pages of the file that are dirty or written (`lru_deactivate_file`).
    pub fn mark_for_reclaim(&mut self, file: FileId) {
        for tag in [Tag::Dirty, Tag::Writeback] {
            let mut from = 0;
            while let Some((page, bits)) = self.next_tagged_in_line(file, from, tag) {
                if let Some(line) = self.line_mut(file, page) {
                    line.marker |= bits;
                    line.referenced &= !bits;
                }
                let place = Place { slot: self.slot(file, page), line: line_index(page) as u8 };
                self.put(place, Kind::Inactive, bits);
                from = line_end(page);
            }
        }
    }

    /// Drops clean pages until at most `needed` are taken, and `beyond` fewer if there are so many: as many rounds as that
    /// takes. True if all pages that were looked at together were dirty.
    pub fn reclaim(&mut self, needed: u64, beyond: u64) -> bool {
        self.tired = self.tired.saturating_sub(1);
        let target = if self.tired == 0 { needed.saturating_sub(beyond) } else { needed };
        let high = HIGH_WATERMARK * beyond;
        let (mut only_dirty, mut priority) = (false, PRIORITY);
        while self.taken() > target {
            let round = self.shrink(priority, high);
            only_dirty |= round.only_dirty;
            if round.looked_at >= high && round.dropped > 0 {
                continue;
            }
            // After the round with priority 1 the kernel's thread sleeps. Processes that need memory try the last one, and what
            // was not found is not looked for again at once.
            if priority == 0 || (priority == 1 && self.taken() <= needed) {
                self.tired = self.chunks.len() + 1;
                break;
            }
            priority -= 1;
        }
        self.counted.come_back = false;
        self.free_empty_nodes();
        only_dirty
    }

    /// Frees the nodes that have been empty for longest, and forgets which pages they had, where they are many.
    fn free_empty_nodes(&mut self) {
        while self.overhead.has_too_many_empty_nodes(self.taken())
            && let Some((file, line)) = self.emptied.pop_front()
        {
            self.free_node(file, line);
            self.ages.forget((file, line));
        }
        // Some are in the row several times.
        if self.emptied.len() as u64 > 2 * self.overhead.empty_nodes() + ROW_AT_LEAST {
            let mut latest: HashSet<_> = HashSet::new();
            let mut row: VecDeque<_> =
                self.emptied.drain(..).rev().filter(|line| latest.insert(*line)).collect();
            row.make_contiguous().reverse();
            self.emptied = row;
        }
    }

    /// A round over a part of both lists, which ends early if `enough` pages are dropped (`shrink_lruvec`).
    fn shrink(&mut self, priority: u32, enough: u64) -> Round {
        let deactivates = self.counted.come_back || self.has_few_inactive();
        let mut inactive = self.lru.count(Kind::Inactive) >> priority;
        let mut active = if deactivates { self.lru.count(Kind::Active) >> priority } else { 0 };
        let mut round = Round::default();
        while inactive + active > 0 && round.dropped < enough {
            let now = inactive.min(TOGETHER);
            inactive -= now;
            let part = self.shrink_inactive(now);
            round.looked_at += part.looked_at;
            round.dropped += part.dropped;
            round.only_dirty |= part.only_dirty;
            let now = active.min(TOGETHER);
            active -= now;
            self.shrink_active(now);
        }
        round
    }

    /// `inactive_is_low`: the more memory, the fewer pages need to be inactive.
    fn has_few_inactive(&self) -> bool {
        let Counted { inactive, active, .. } = self.counted;
        let gib = (inactive + active) >> GIB_PAGES;
        let ratio = if gib > 0 { (10 * gib).isqrt() } else { 1 };
        inactive * ratio < active
    }

    /// Looks at the first pages of the inactive list, and drops the clean ones (`shrink_folio_list`).
    fn shrink_inactive(&mut self, pages: u64) -> Round {
        let mut left = pages.min(self.lru.count(Kind::Inactive));
        let mut round = Round { looked_at: left, ..Round::default() };
        let mut dirty_only = 0;
        self.have_at_hand(Kind::Inactive, left);
        while left > 0
            && let Some((place, pages)) = self.lru.first(Kind::Inactive, left)
        {
            left -= u64::from(pages.count_ones());
            let chunk = &mut self.chunks[place.slot as usize];
            let file_line = u64::from(chunk.index) * LINES as u64 + u64::from(place.line);
            let file_line = (chunk.file, file_line);
            let line = &mut chunk.lines[place.line as usize];
            self.lru.take_first(Kind::Inactive, &mut line.parts, pages);
            let (reading, clean) = (line.reading & pages, line.clean() & pages);
            let kept = pages & !reading & !clean;
            if reading != 0 {
                self.put_taken(place, Kind::Inactive, reading);
            }
            if kept != 0 {
                let line = &mut self.chunks[place.slot as usize].lines[place.line as usize];
                // Whether a page was read is forgotten when it could have been dropped for that.
                line.referenced &= !(kept & !line.writeback);
                line.marker |= kept;
                dirty_only += u64::from((kept & !line.writeback).count_ones());
                self.put_taken(place, Kind::Active, kept);
                self.ages.activated(u64::from(kept.count_ones()));
            }
            if clean != 0 {
                round.dropped += u64::from(clean.count_ones());
                let active = self.lru.count(Kind::Active).max(self.counted.active);
                self.ages.dropped(file_line, clean, active);
                if self.forget(place.slot as usize, place.line as usize, clean) {
                    self.emptied.push_back(file_line);
                }
            }
        }
        round.only_dirty = round.looked_at > 0 && dirty_only == round.looked_at;
        round
    }

    /// The CPU loads the lines of the first pages at the same time: when they are looked at, each one after the other would
    /// have to be waited for, since those of a random load are seldom in the CPU's caches.
    fn have_at_hand(&self, kind: Kind, pages: u64) {
        let lines = self.lru.first_lines(kind, pages);
        let cached = lines.map(|place| self.chunks[place.slot as usize].lines[place.line as usize].present());
        std::hint::black_box(cached.fold(0, |all, pages| all | pages));
    }

    /// The first pages of the active list become inactive (`shrink_active_list`).
    fn shrink_active(&mut self, pages: u64) {
        let mut left = pages.min(self.lru.count(Kind::Active));
        self.have_at_hand(Kind::Active, left);
        while left > 0
            && let Some((place, pages)) = self.lru.first(Kind::Active, left)
        {
            left -= u64::from(pages.count_ones());
            let line = &mut self.chunks[place.slot as usize].lines[place.line as usize];
            self.lru.take_first(Kind::Active, &mut line.parts, pages);
            self.put_taken(place, Kind::Inactive, pages);
        }
    }
}
