//! Write-back: which data of the write cache the arm brings to the medium, and when.
//!
//! The drive collects what is written and then writes some of the oldest pieces in one go, in order of
//! address, so that the arm crosses the disk once (C-LOOK). How near the pieces lie to each other
//! depends on how many go together, and with it the rate of random writes: measured drives come to
//! 0.75 to 2 times their random reads, whatever the depth, so their bursts are short and the
//! platter's angle plays no part. After a burst the commands at the arm get as long as it took.

use super::arm::DESTAGE_SECTORS;
use super::{Hdd, Work};

/// The state of writing back.
#[derive(Debug, Default)]
pub(super) struct Bursts {
    /// Pieces that this burst may still write; 0: none goes on.
    left: u32,
    /// It writes what was written before this.
    order: u64,
    began: u64,
    /// No burst begins before this if commands came since the last.
    next: u64,
    /// The orders of the extents, to find the oldest.
    orders: Vec<u64>,
}

impl Hdd {
    /// Go on with a burst, or begin one if the cache is so full and no command is to be served first;
    /// true if the arm has work then.
    pub(super) fn write_burst(&mut self, now: u64) -> bool {
        if self.bursts.left == 0 {
            if !self.write_cache.presses() {
                return false;
            }
            // A reader that waits for each read comes again soon: meanwhile the head reads on.
            if now < self.bursts.next && !(self.queue.is_empty() && self.stream.is_none()) {
                let room = self.write_cache.waiting.front();
                let due = room.map(|write| write.arrived + self.config.deadline_ns);
                self.look(self.bursts.next.min(due.filter(|due| *due > now).unwrap_or(u64::MAX)));
                return false;
            }
            self.begin_burst(now);
        }
        if !self.write_back(now, self.bursts.order) {
            self.bursts.left = 0;
            return false;
        }
        self.bursts.left -= 1;
        // What the burst took is known when its last piece is.
        let end = self.work.as_ref().map_or(now, |(end, _)| *end);
        self.bursts.next = end + (end - self.bursts.began);
        true
    }

    /// The oldest pieces make up the burst.
    fn begin_burst(&mut self, now: u64) {
        let orders = &mut self.bursts.orders;
        orders.clear();
        orders.extend(self.write_cache.extents.iter().map(|extent| extent.order));
        let pieces = self.config.destage_burst;
        self.bursts.order = match orders.len() > pieces {
            true => *orders.select_nth_unstable(pieces).1,
            false => u64::MAX,
        };
        self.bursts.left = pieces as u32;
        self.bursts.began = now;
    }

    /// Write the next piece, in order of address, of what was written before `order`; false if there
    /// is none.
    pub(super) fn write_back(&mut self, now: u64, order: u64) -> bool {
        let extents = self.write_cache.extents.iter().enumerate();
        let old = extents.filter(|(_, extent)| extent.order < order);
        // What lies behind the head first, then from the disk's start again.
        let next = old.min_by_key(|(_, extent)| (extent.span.start < self.head_lba, extent.span.start));
        let Some((index, _)) = next else { return false };
        self.stream = None;
        let geometry = &self.config.geometry;
        let taken = self.write_cache.take(index, DESTAGE_SECTORS, |lba| geometry.locate(lba));
        let moved = self.move_ns(&self.head, &taken.place, true);
        let begins = self.comes_round(now, moved, taken.place.angle_ns);
        let end = self.work_on(now + moved, begins, taken.span, taken.place, true);
        self.busy_ns += end - now;
        self.work = Some((end, Work::Destage));
        true
    }
}
