//! Reclaim: the pages that are dropped when memory is full.
//!
//! The kernel keeps two lists: pages start on the inactive list, move to the active list when they
//! are read a second time (`folio_mark_accessed`), and are dropped from the end of the inactive
//! list if they are clean; the end of the active list moves back to the inactive list. Here the
//! hand of a clock does both: it drops pages that are neither active nor young, and turns active
//! pages into young and young into old ones. So a page stays for one to two rounds of the hand, and
//! one round more if it was read twice; the order within a round is that of the bitmaps.

use super::first_bits;
use super::pages::{LINES, Pages};

impl Pages {
    /// Drops up to `wanted` clean pages; returns how many.
    pub fn reclaim(&mut self, wanted: u64) -> u64 {
        let target = self.cached.saturating_sub(wanted);
        let before = self.cached;
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
            self.sweep_line(slot, index, self.cached - target);
            let done_with_line = self.cached > target;
            self.hand = (slot, index as u32 + u32::from(done_with_line));
        }
        before - self.cached
    }

    /// The hand passes a line: drops old pages, up to `wanted`, and ages the others.
    fn sweep_line(&mut self, slot: usize, index: usize, wanted: u64) {
        let line = &mut self.chunks[slot].lines[index];
        let clean = line.clean();
        let old = first_bits(clean & !line.active & !line.young, wanted);
        if u64::from(old.count_ones()) < wanted {
            line.young = (line.young & !clean) | (line.active & clean);
            line.active &= !clean;
        }
        if old != 0 {
            self.remove(slot, index, old);
        }
    }
}
