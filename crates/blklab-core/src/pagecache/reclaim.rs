//! Which pages go when memory is full.
//!
//! The kernel keeps two lists: pages go to the inactive one, come to the active one when
//! they are read a second time (`folio_mark_accessed`), and leave from the inactive one's
//! end if they are clean; the active one's end goes back to the inactive. Here a clock's
//! hand does both: it drops pages that are neither active nor young, and makes active ones
//! young and young ones old. So a page lives for one to two rounds of the hand, and one
//! round more if it was read twice; the order within a round is that of the bitmaps.

use super::first_bits;
use super::pages::{LINES, Pages};

impl Pages {
    /// Drop up to `wanted` clean pages; returns how many.
    pub fn reclaim(&mut self, wanted: u64) -> u64 {
        let target = self.cached.saturating_sub(wanted);
        let before = self.cached;
        // Active, young, old: after three rounds nothing is left that could be dropped.
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

    /// The hand passes a line: drop old pages, up to `wanted`, and age the others.
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
