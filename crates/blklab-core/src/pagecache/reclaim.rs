//! Reclaim: the pages that are dropped when memory is full.
//!
//! The kernel keeps two lists: pages start on the inactive list, move to the active list when they
//! are read a second time (`folio_mark_accessed`), and are dropped from the end of the inactive
//! list if they are clean; the end of the active list moves back to the inactive list. Here the
//! hand of a clock does both: it drops pages that are neither active nor young, and turns active
//! pages into young and young into old ones. So a page stays for one to two rounds of the hand, and
//! one round more if it was read twice; the order within a round is that of the bitmaps.
//!
//! Pages that are dirty when their turn comes stay. Where there are only such, flushers write everything
//! (`handle_reclaim_writeback`).

use super::first_bits;
use super::pages::{LINES, Pages};

/// Pages that the kernel looks at together (`SWAP_CLUSTER_MAX`).
const TOGETHER: u32 = 32;

impl Pages {
    /// Drops up to `wanted` clean pages. True if all pages that were looked at together were dirty.
    pub fn reclaim(&mut self, wanted: u64) -> bool {
        let target = self.cached.saturating_sub(wanted);
        let mut only_dirty = false;
        // Active, young, old: after three rounds no page is left that could be dropped.
        let mut visits = 3 * self.chunks.len() + 1;
        while self.cached > target && visits > 0 {
            let (slot, line) = self.hand;
            let Some(chunk) = self.chunks.get(slot) else {
                self.hand = (0, 0);
                continue;
            };
            let present = if line < LINES as u32 { chunk.present & (u64::MAX << line) } else { 0 };
            if present == 0 {
                self.hand = (slot + 1, 0);
                visits -= 1;
                continue;
            }
            let index = present.trailing_zeros() as usize;
            only_dirty |= self.sweep_line(slot, index, self.cached - target);
            let done_with_line = self.cached > target;
            self.hand = (slot, index as u32 + u32::from(done_with_line));
        }
        only_dirty
    }

    /// The hand passes a line: drops old pages, up to `wanted`, and ages the others. True if it has passed dirty ones
    /// alone.
    fn sweep_line(&mut self, slot: usize, index: usize, wanted: u64) -> bool {
        let line = &mut self.chunks[slot].lines[index];
        let aged = !line.active & !line.young;
        let old = first_bits(line.clean() & aged, wanted);
        let dirty = (line.dirty & !line.writeback & aged).count_ones();
        if u64::from(old.count_ones()) < wanted {
            let seen = line.uptodate;
            line.young = (line.young & !seen) | (line.active & seen);
            line.active &= !seen;
        }
        if old != 0 {
            self.dirty_in_a_row = 0;
            self.remove(slot, index, old);
            return false;
        }
        self.dirty_in_a_row += dirty;
        let only_dirty = self.dirty_in_a_row >= TOGETHER;
        if only_dirty {
            self.dirty_in_a_row = 0;
        }
        only_dirty
    }
}
