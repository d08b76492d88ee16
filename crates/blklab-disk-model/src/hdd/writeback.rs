//! Destaging: which data of the write cache the arm writes to the medium, and when.
//!
//! The drive collects writes and then writes some of the oldest pieces in one burst, in order of address, so
//! that the arm crosses the disk once (C-LOOK). The size of a burst determines the distances between its
//! pieces, and thus the rate of random writes: measured drives reach 0.75 to 2 times their rate of random
//! reads, whatever the depth, so their bursts are short and the platter's angle does not matter. After a
//! burst, the commands at the arm get the same length of time.

use super::arm::DESTAGE_SECTORS;
use super::{Hdd, Work};

/// The state of destaging.
#[derive(Debug, Default)]
pub(super) struct Bursts {
    /// Pieces that this burst may still write; 0: no burst.
    left: u32,
    /// The burst writes data from before this number.
    order: u64,
    began: u64,
    /// No burst begins before this time if commands arrived since the last one.
    next: u64,
    /// The numbers of the extents, to find the oldest.
    orders: Vec<u64>,
}

impl Hdd {
    /// Continues a burst, or begins one if the cache is full enough and no command goes first; true if the
    /// arm then has work.
    pub(super) fn write_burst(&mut self, now: u64) -> bool {
        if self.bursts.left == 0 {
            if !self.write_cache.presses() {
                return false;
            }
            // A synchronous reader sends its next read soon: meanwhile the head reads ahead.
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
        // The burst's length is known after its last piece.
        let end = self.work.as_ref().map_or(now, |(end, _)| *end);
        self.bursts.next = end + (end - self.bursts.began);
        true
    }

    /// Selects the oldest pieces for the burst.
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

    /// Writes the next piece, in order of address, of the data from before `order`; false if there is none.
    pub(super) fn write_back(&mut self, now: u64, order: u64) -> bool {
        let extents = self.write_cache.extents.iter().enumerate();
        let old = extents.filter(|(_, extent)| extent.order < order);
        // First the addresses after the head, then from the disk's start again.
        let next = old.min_by_key(|(_, extent)| (extent.span.start < self.head_lba, extent.span.start));
        let Some((index, _)) = next else { return false };
        let leaves = self.leave_stream(now);
        let geometry = &self.config.geometry;
        let taken = self.write_cache.take(index, DESTAGE_SECTORS, |lba| geometry.locate(lba));
        let moved = self.move_ns(&self.head, &taken.place, true);
        let begins = self.comes_round(leaves, moved, taken.place.angle_ns);
        let end = self.work_on(leaves + moved, begins, taken.span, taken.place, true);
        self.busy_ns += end - now;
        self.work = Some((end, Work::Destage));
        true
    }
}
