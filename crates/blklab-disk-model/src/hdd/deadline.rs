//! The deadline of a command: a command that has waited this long goes first, and then some commands are
//! served in order of arrival.
//!
//! Without a deadline, near commands and streams would starve a distant command. On all hard disks that A.
//! Motin tried, a read beside a sequential stream waits for 1 to 4 s, by model; then the disk leaves the
//! stream and serves the waiting commands (OpenZFS, commit 6f5aac3c). On a Seagate ST14000NM0048, some
//! fifteen reads in a row were served after each such wait, in some 12 ms each: no read of the stream came
//! between, although two were in flight. So on a drive that lingers the stream then waits, until that many
//! commands are served or no other one comes. Commands that wait for the arm, flushes, and writes that wait
//! for room in the cache have the same deadline. It also ends the time for which the head lingers with a
//! stream.

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
        let turn = match (self.in_order, self.aside) {
            (0, _) => {
                let turn = self.due(now);
                if turn.is_some() {
                    self.in_order = self.config.deadline_batch;
                    self.aside = self.aside.or_else(|| self.stream_to_leave());
                }
                turn
            }
            (_, None) => self.oldest(now, now),
            (_, Some((start, width))) => self.due(now).or_else(|| {
                let command = self.queue.oldest_outside(start, width, now);
                self.first_of(command, now, now)
            }),
        };
        match turn {
            None if self.leaves_stream_aside() && now < self.lingers_until => {
                self.look_until(now, self.lingers_until);
                true
            }
            None => self.return_to_stream(now),
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

    /// The oldest work, if its deadline has passed.
    fn due(&mut self, now: u64) -> Option<Turn> {
        now.checked_sub(self.config.deadline_ns).and_then(|due| self.oldest(due, now))
    }

    /// The addresses of the stream that waits while commands are served in order of arrival: on a drive that
    /// lingers these are the other commands, one after another. Between two of them the head stays, as it does
    /// with a stream, and waits for the host's next one.
    fn stream_to_leave(&self) -> Option<(u64, u64)> {
        let stream = self.stream.filter(|_| self.config.linger_ns > 0)?;
        let start = self.read_cache.span(stream.segment).start;
        Some((start, self.queue.stream_end(start, stream.limit.max(start)) - start))
    }

    /// True while a stream waits for commands that are served in order of arrival.
    pub(super) fn leaves_stream_aside(&self) -> bool {
        self.in_order > 0 && self.aside.is_some()
    }

    /// The head goes back to the stream that it has left, if any; false if no read of it waits.
    fn return_to_stream(&mut self, now: u64) -> bool {
        let Some((start, width)) = self.aside.take() else { return false };
        self.in_order = 0;
        let next = self.queue.first_read_within(start, width, now);
        if let Some(slot) = next {
            self.serve(now, slot, None);
        }
        next.is_some()
    }

    /// The oldest work that arrived by `by` and can be done at `now`.
    fn oldest(&mut self, by: u64, now: u64) -> Option<Turn> {
        let command = self.queue.oldest(by, now);
        self.first_of(command, by, now)
    }

    /// The older one of a command and of data to be written for a flush or for room.
    fn first_of(&self, command: Option<QueueIndex>, by: u64, now: u64) -> Option<Turn> {
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

    /// The idle arm looks for work at `until`, or before that when a deadline passes or the controller has
    /// understood another command.
    fn look_until(&mut self, now: u64, until: u64) {
        let command = self.queue.oldest_arrival();
        let flush = self.flushes.front().map(|flush| flush.arrived);
        let room = self.write_cache.waiting.front().map(|write| write.arrived);
        let oldest = [command, flush, room].into_iter().flatten().min();
        let deadline = oldest.map(|arrived| arrived + self.config.deadline_ns);
        // Work that is due and cannot be done yet calls the arm itself.
        let deadline = deadline.filter(|at| *at > now);
        let next = [deadline, self.queue.ready_after(now)].into_iter().flatten().min();
        self.look(next.map_or(until, |at| at.min(until)));
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
            self.look_until(now, self.lingers_until);
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
