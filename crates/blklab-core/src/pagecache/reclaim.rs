//! Reclaim: the pages that are dropped when memory is full.
//!
//! The kernel keeps two lists: pages start on the inactive list, move to the active list when they
//! are read a second time (`folio_mark_accessed`), and are dropped from the end of the inactive
//! list if they are clean; the end of the active list moves back to the inactive list. Here the
//! hand of a clock does both: it drops pages that are neither active nor young, and turns active
//! pages into young and young into old ones. So a page stays for one to two rounds of the hand, and
//! one round more if it was read twice. The hand comes to chunks in the order in which they were filled; within one the
//! order is that of the bitmaps.
//!
//! Pages that are dirty when their turn comes stay. Where there are only such, flushers write everything
//! (`handle_reclaim_writeback`).

use super::first_bits;
use super::pages::{LINE_PAGES, LINES, Pages};

/// Pages that the kernel looks at together (`SWAP_CLUSTER_MAX`).
const TOGETHER: u32 = 32;
/// Between the watermarks at which the kernel begins and ends to drop pages (a quarter of `min_free_kbytes`, which is
/// 67,584 on a machine with huge pages and 4 GiB or more, and in a guest).
const BETWEEN_WATERMARKS: u64 = 67_584 / 4 / 4;
/// Memory that is smaller keeps most of its pages.
const PART_BETWEEN: u64 = 16;
/// The first round looks at this part of the pages, as a power of two, and each of the next at twice as many
/// (`DEF_PRIORITY`).
const PRIORITY: u32 = 12;

/// The pages that the kernel drops beyond those that it needs, of so many that there can be.
pub(super) fn beyond(memory_pages: u64) -> u64 {
    BETWEEN_WATERMARKS.min(memory_pages / PART_BETWEEN)
}

/// What the hand has passed.
struct Swept {
    /// Old pages that were looked at.
    looked_at: u64,
    /// All of the last ones were dirty.
    only_dirty: bool,
    /// Where it is now in the line: a page, or the number of all.
    end: u64,
}

impl Pages {
    /// Drops `wanted` clean pages and `beyond` more, if there are so many: as many rounds as that takes
    /// (`balance_pgdat`). True if all pages that were looked at together were dirty.
    pub fn reclaim(&mut self, wanted: u64, beyond: u64) -> bool {
        let needed = self.cached.saturating_sub(wanted);
        self.tired = self.tired.saturating_sub(1);
        let target = if self.tired == 0 { needed.saturating_sub(beyond) } else { needed };
        let mut only_dirty = false;
        let (mut priority, mut left) = (PRIORITY, 0);
        // Active, young, old: after three rounds of the hand no page is left that could be dropped.
        let round = self.chunks.len() + 1;
        let mut visits = 3 * round;
        while visits > 0 {
            if left == 0 {
                if self.cached <= target {
                    break;
                }
                left = (self.cached >> priority).max(1);
                priority = priority.saturating_sub(1).max(1);
            }
            // The kernel's priorities together are one round. What was not found in it is not looked for again at once.
            if visits <= 2 * round && self.cached <= needed {
                self.tired = round;
                break;
            }
            let Some(slot) = self.round.first() else { break };
            let chunk = &self.chunks[slot as usize];
            let (line, bit) = ((self.hand / LINE_PAGES) as u32, self.hand % LINE_PAGES);
            let present = if line < LINES as u32 { chunk.present & (u64::MAX << line) } else { 0 };
            if present == 0 {
                self.pass_first();
                visits -= 1;
                continue;
            }
            let index = present.trailing_zeros();
            let bit = if index == line { bit } else { 0 };
            let swept = self.sweep_line(slot as usize, index as usize, bit, left);
            only_dirty |= swept.only_dirty;
            left -= swept.looked_at;
            // It is at the next chunk already if this one is empty now.
            if self.round.first() == Some(slot) {
                self.hand = u64::from(index) * LINE_PAGES + swept.end;
            }
        }
        only_dirty
    }

    /// The hand passes the rest of a line: looks at up to `most` old pages, drops the clean ones, and ages the others.
    fn sweep_line(&mut self, slot: usize, index: usize, from: u64, most: u64) -> Swept {
        let line = &mut self.chunks[slot].lines[index];
        let passed = u64::MAX << from;
        let aged = !line.active & !line.young & passed;
        let dirty = line.dirty & !line.writeback & aged;
        let looked_at = first_bits((line.clean() & aged) | dirty, most);
        let count = u64::from(looked_at.count_ones());
        // Up to the last page that was looked at, or the whole line.
        let end = if count < most { LINE_PAGES } else { LINE_PAGES - u64::from(looked_at.leading_zeros()) };
        let seen = passed & line.uptodate & (u64::MAX >> (LINE_PAGES - end));
        line.young = (line.young & !seen) | (line.active & seen);
        line.active &= !seen;
        let (old, dirty) = (looked_at & !dirty, (looked_at & dirty).count_ones());
        let mut swept = Swept { looked_at: count, only_dirty: false, end };
        if old != 0 {
            self.dirty_in_a_row = 0;
            self.remove(slot, index, old);
            return swept;
        }
        self.dirty_in_a_row += dirty;
        swept.only_dirty = self.dirty_in_a_row >= TOGETHER;
        if swept.only_dirty {
            self.dirty_in_a_row = 0;
        }
        swept
    }
}
