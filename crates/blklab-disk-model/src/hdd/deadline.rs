//! The deadline of a command: a command that has waited this long goes first, and then some commands are
//! served in order of arrival.
//!
//! Without a deadline, near commands and streams would starve a distant command. On all hard disks that A.
//! Motin tried, a read beside a sequential stream waits for 1 to 4 s, by model; then the disk leaves the
//! stream and serves the waiting commands (OpenZFS, commit 6f5aac3c). On a Seagate ST14000NM0048, some
//! fifteen reads in a row were served after each such wait. Commands that wait for the arm, flushes, and
//! writes that wait for room in the cache have the same deadline. It also ends the time for which the head
//! lingers with a stream.

use super::Hdd;
use super::queue::QueueIndex;

/// The next work in order of arrival.
#[derive(Clone, Copy, Debug)]
enum Turn {
    /// Serving this command of the queue.
    Command(QueueIndex),
    /// Writing data from before this number to the medium, for a flush or for room.
    WriteBack(u64),
}

impl Hdd {
    /// Begins the next work in order of arrival, if a deadline has passed now or recently.
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

    /// The oldest work that arrived by `by` and can be done at `now`.
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

    /// The first time at which the deadline of some work passes.
    fn next_deadline(&self) -> u64 {
        let command = self.queue.oldest_arrival();
        let flush = self.flushes.front().map(|flush| flush.arrived);
        let room = self.write_cache.waiting.front().map(|write| write.arrived);
        let oldest = [command, flush, room].into_iter().flatten().min();
        oldest.map_or(u64::MAX, |arrived| arrived + self.config.deadline_ns)
    }

    /// The host has read on in the stream and has the data at `end`: the head stays for its next read.
    pub(super) fn linger(&mut self, end: u64) {
        if self.config.linger_ns > 0 {
            self.lingers_until = self.lingers_until.max(end + self.config.linger_ns);
        }
    }

    /// True while the head stays with a stream although other commands wait: on many drives one sequential
    /// reader, with a single read in flight, keeps other reads waiting until their deadline (A. Motin, OpenZFS,
    /// commit 6f5aac3c).
    pub(super) fn lingers(&mut self, now: u64) -> bool {
        let lingers = self.stream.is_some() && now < self.lingers_until;
        if lingers {
            self.look(self.lingers_until.min(self.next_deadline()));
        }
        lingers
    }

    /// Serves a command in its turn, from the stream if the head reaches it by reading ahead.
    fn serve_command(&mut self, now: u64, slot: QueueIndex) {
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
