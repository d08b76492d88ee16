//! The deadline of a command: what has waited so long goes first, and then some in order of arrival.
//!
//! Short ways and streams always win over a command that is far away. Firmware ends that by a
//! deadline: on all hard disks that A. Motin tried a read beside a sequential stream waits for 1
//! to 4 s, by model, and then the disk leaves the stream and serves what has gathered (OpenZFS,
//! commit 6f5aac3c). Some fifteen reads in a row went through after each such wait on a
//! Seagate ST14000NM0048.
//!
//! Commands at the arm, flushes and writes that wait for room in the cache all have the same deadline.

use super::Hdd;
use super::queue::Slot;

/// What is to be done next in order of arrival.
#[derive(Clone, Copy, Debug)]
enum Turn {
    /// Serve this command of the queue.
    Command(Slot),
    /// Write to the medium what was written before this order, for a flush or for room.
    WriteBack(u64),
}

impl Hdd {
    /// Begin what order of arrival wants, if a deadline has passed or did so a short while ago.
    pub(super) fn serve_in_order(&mut self, now: u64) -> bool {
        if self.write_cache.overfull() {
            return self.write_back(now, u64::MAX);
        }
        let turn = if self.in_order > 0 {
            self.oldest(now, now)
        } else {
            let due = now.checked_sub(self.config.deadline_ns);
            let turn = due.and_then(|due| self.oldest(due, now));
            if turn.is_some() {
                self.in_order = self.config.deadline_batch;
            }
            turn
        };
        match turn {
            None => false,
            Some(Turn::WriteBack(order)) => {
                self.in_order -= 1;
                self.write_back(now, order)
            }
            Some(Turn::Command(slot)) => {
                self.serve_command(now, slot);
                true
            }
        }
    }

    /// The oldest of all that came by `by` and can be done at `now`.
    fn oldest(&mut self, by: u64, now: u64) -> Option<Turn> {
        let command = self.queue.oldest(by, now);
        let command = command.map(|slot| (self.queue.get(slot).order, Turn::Command(slot)));
        let flush = self.flushes.front().filter(|flush| {
            flush.arrived <= by && flush.ready <= now && self.write_cache.older_than(flush.order)
        });
        let flush = flush.map(|flush| (flush.order, Turn::WriteBack(flush.order)));
        let room = self.write_cache.waiting.front();
        let room = room.filter(|write| write.arrived <= by && !self.write_cache.extents.is_empty());
        let room = room.map(|write| (write.order, Turn::WriteBack(u64::MAX)));
        let turns = [command, flush, room].into_iter().flatten();
        turns.min_by_key(|(order, _)| *order).map(|(_, turn)| turn)
    }

    /// Serve a command in its turn, out of the stream if the head comes to it by reading on.
    fn serve_command(&mut self, now: u64, slot: Slot) {
        let queued = self.queue.get(slot);
        match self.stream.filter(|stream| !queued.write && self.reaches(stream, queued.span)) {
            Some(stream) => self.serve_stream(now, stream, slot),
            None => {
                if queued.write || self.read_cache.continues(queued.span.start).is_none() {
                    self.in_order -= 1;
                }
                self.serve(now, slot, None);
            }
        }
    }
}
