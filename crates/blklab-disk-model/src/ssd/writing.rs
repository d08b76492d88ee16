//! Writes: into the buffer, mapped to stripes, programmed; and garbage collection.

use super::die::Job;
use super::mapping::{NONE, Step, Stream};
use super::{ARRIVES, Arriving, Begun, Command, Ssd, Waiting};

impl Ssd {
    pub(super) fn submit_write(&mut self, now: u64, command: &Command) {
        let through = !self.config.protected && (command.fua || !self.config.write_cache);
        let (tag, sector, sectors) = (command.tag, command.sector.0, command.sectors);
        if self.config.direct {
            return self.write_in_place(now, command);
        }
        let write = Waiting { tag, sector, sectors, through, begun: None };
        if !self.waiting.is_empty() {
            self.waiting.push_back(write);
            return self.schedule();
        }
        if !self.has_room(now, sector, sectors) {
            self.waiting.push_back(write);
            return self.pump(now);
        }
        self.take_in(now, write, true);
    }

    #[inline]
    pub(super) fn buffer_need(&self, sector: u64, sectors: u32) -> u64 {
        self.units_of(sector, sectors).len() as u64 * self.config.unit_sectors
    }

    /// The buffer has room for all of a write.
    fn has_room(&mut self, now: u64, sector: u64, sectors: u32) -> bool {
        let need = self.buffer_need(sector, sectors);
        if need <= self.room() {
            return true;
        }
        self.catch_up(now);
        need <= self.room()
    }

    #[inline]
    fn room(&self) -> u64 {
        self.config.buffer_sectors - self.buffer_used
    }

    /// The sectors of a write that enter the buffer next, if it has room for them: all of them, or as many whole
    /// mapping units as fit, at least a stripe, so that data arrive while dies program others. A stripe and another
    /// one that is not yet full fit into the buffer, so that each write enters it in the end.
    #[inline]
    fn next_part(&self, sector: u64, sectors: u32) -> Option<u32> {
        let (need, room) = (self.buffer_need(sector, sectors), self.room());
        if need <= room {
            return Some(sectors);
        }
        if need <= self.stripe_sectors() || room < self.stripe_sectors() {
            return None;
        }
        let units = room >> self.config.unit_shift;
        let end = ((sector >> self.config.unit_shift) + units) << self.config.unit_shift;
        Some((end - sector) as u32)
    }

    /// Admits the next part of the first write that waits, if the buffer has room for it, now that all dies are up to
    /// date.
    pub(super) fn admit_first(&mut self, now: u64) -> bool {
        let Some(write) = self.waiting.front().copied() else { return false };
        let Some(sectors) = self.next_part(write.sector, write.sectors) else { return false };
        self.waiting.pop_front();
        let last = sectors == write.sectors;
        let begun = self.take_in(now, Waiting { sectors, ..write }, last);
        if !last {
            let (sector, sectors) = (write.sector + u64::from(sectors), write.sectors - sectors);
            self.waiting.push_front(Waiting { sector, sectors, begun: Some(begun), ..write });
        }
        true
    }

    /// The delay by pacing of a write of this many sectors, which has its room in the buffer.
    fn pace(&mut self, now: u64, sectors: u64) -> u64 {
        self.catch_up(now);
        let open = u64::from(self.open[Stream::Host as usize].units) * self.config.unit_sectors;
        (self.pacing.wait(now, self.buffer_used - self.on_the_way, open) * sectors) >> 16
    }

    pub(super) fn catch_up(&mut self, now: u64) {
        for die in &mut self.dies {
            self.buffer_used -= die.catch_up(now);
        }
    }

    /// Takes a write, or the part of it that `write` names, into the buffer; `ends`: its last part.
    #[inline]
    fn take_in(&mut self, now: u64, write: Waiting, ends: bool) -> Begun {
        let need = self.buffer_need(write.sector, write.sectors);
        self.buffer_used += need;
        // The controller accepts a command once, with its first part.
        let understood = if write.begun.is_none() { self.command(now, write.tag) } else { now };
        let end = write.sector + u64::from(write.sectors);
        let stream = self.config.stream_write.filter(|_| match write.begun {
            Some(begun) => {
                self.writes.follows(write.sector, end);
                begun.is_stream
            }
            None => self.writes.follows(write.sector, end).is_some(),
        });
        let takes = match (stream, write.begun) {
            (Some(pace), None) => pace.of(write.sectors),
            (Some(pace), Some(_)) => pace.more(write.sectors),
            (None, None) => self.config.write_command_ns,
            (None, Some(_)) => 0,
        };
        self.on_the_way += need;
        let takes = if self.config.paced { takes.max(self.pace(now, need)) } else { takes };
        self.writer_free = self.writer_free.max(understood) + takes;
        let from = self.writer_free.max(write.begun.map_or(0, |begun| begun.there));
        let there = self.link.transfer(self.now, from, u64::from(write.sectors));
        let key = self.arriving.insert(Arriving { write, ends }) as u32;
        self.ends.push(there + self.config.write_latency_ns, key | ARRIVES);
        Begun { is_stream: stream.is_some(), there }
    }

    /// Writes in place: over the link and the channel into the die.
    fn write_in_place(&mut self, now: u64, command: &Command) {
        let understood = self.command(now, command.tag) + self.config.write_latency_ns;
        let (mut sector, end) = (command.sector.0, command.sector.0 + u64::from(command.sectors));
        let mut done = understood;
        while sector < end {
            let unit = (sector >> self.config.unit_shift) as u32;
            let next = (u64::from(unit + 1) << self.config.unit_shift).min(end);
            let here = self.link.transfer_short(self.now, understood, next - sector);
            let index = self.config.die(unit);
            let channel = self.config.channel(index);
            let at = self.channels[channel].transfer_short(self.now, here, next - sector);
            let ns = self.config.of_page(&self.config.program_ns, unit);
            done = done.max(self.dies[index as usize].read(at, ns, 0));
            sector = next;
        }
        self.end(done, command.tag);
    }

    /// A write's data are in the buffer: maps them and fills stripes with them.
    pub(super) fn store(&mut self, now: u64, sector: u64, sectors: u32) {
        let units = self.units_of(sector, sectors);
        let end = sector + u64::from(sectors);
        let mut unit = units.start;
        while unit < units.end {
            let start = u64::from(unit) << self.config.unit_shift;
            let whole = ((end - start) >> self.config.unit_shift) as u32;
            let part = start < sector || whole == 0;
            if part {
                let old = self.mapping.lookup(unit);
                if old != NONE {
                    self.open[Stream::Host as usize].reads_ns +=
                        self.config.of_page(&self.config.read_ns, old);
                }
            }
            // If each unit must free one first, they are appended one by one.
            let one = part || self.mapping.is_short() || self.mapping.next(Stream::Host).is_none();
            let units = self.append(now, Stream::Host, unit, if one { 1 } else { whole });
            unit += units;
            self.collect(now, units);
        }
        self.unflushed = true;
    }

    /// Appends a unit and those after it, at most `most`; returns the number that fits into the stripe.
    fn append(&mut self, now: u64, stream: Stream, unit: u32, most: u32) -> u32 {
        let stripe = self.config.stripe_units;
        let (physical, units) = loop {
            let room = self.mapping.next(stream).map(|next| stripe - (next & (stripe - 1)));
            match room.and_then(|room| self.mapping.append(stream, unit, most.min(room))) {
                Some(appended) => break appended,
                None => self.mapping.open(stream),
            }
        };
        let open = &mut self.open[stream as usize];
        if open.units == 0 {
            open.first = physical;
        }
        open.units += units;
        if (physical + units) & (stripe - 1) == 0 {
            self.program(now, stream);
        }
        units
    }

    /// Sends the open units of a stripe to their die.
    fn program(&mut self, now: u64, stream: Stream) {
        let open = std::mem::take(&mut self.open[stream as usize]);
        if open.units == 0 {
            return;
        }
        let host = stream == Stream::Host;
        let slc = host && {
            let (empty, full) = (self.config.slc_units_empty, self.config.slc_units_full);
            let fill = self.mapping.fill();
            let room = (empty * (1_024 - fill) + full * fill) / 1_024;
            self.slc_units + u64::from(open.units) <= room
        };
        let ns = if slc {
            self.slc_units += u64::from(open.units);
            self.config.slc_program_ns
        } else {
            self.config.of_page(&self.config.program_ns, open.first)
        };
        self.orders += 1;
        let sectors = u64::from(open.units) * self.config.unit_sectors;
        let index = self.config.die(open.first);
        let channel = &mut self.channels[self.config.channel(index)];
        let ready = channel.transfer(self.now, now, sectors);
        self.dies[index as usize].push(Job {
            ready,
            ns: ns + open.reads_ns,
            first_unit: open.first,
            units: open.units,
            release_sectors: if host { sectors as u32 } else { 0 },
            order: self.orders,
        });
    }

    /// Garbage collection for units that the host has written: with each, or for many in one step.
    fn collect(&mut self, now: u64, units: u32) {
        if !self.mapping.is_short() {
            return;
        }
        self.uncollected += units;
        if self.uncollected >= self.config.collect_units {
            (0..std::mem::take(&mut self.uncollected)).for_each(|_| self.win_back(now));
        }
    }

    /// Garbage collection for one host unit.
    fn win_back(&mut self, now: u64) {
        if !self.mapping.is_short() {
            return;
        }
        loop {
            match self.mapping.collect() {
                Step::Passed => return,
                Step::Move { unit, from } => {
                    // A read on the victim's die; the program waits for it.
                    self.open[Stream::Collector as usize].reads_ns +=
                        self.config.of_page(&self.config.read_ns, from);
                    self.append(now, Stream::Collector, unit, 1);
                }
                Step::Erased => {
                    let job = Job {
                        ready: now,
                        ns: self.config.erase_ns,
                        first_unit: NONE,
                        units: 0,
                        release_sectors: 0,
                        order: self.orders,
                    };
                    self.dies.iter_mut().for_each(|die| die.push(job));
                }
            }
        }
    }

    /// Programs the open stripe, and leaves the rest of its page empty.
    pub(super) fn close_page(&mut self, now: u64) {
        if self.open[Stream::Host as usize].units > 0 {
            self.mapping.pad(Stream::Host, self.config.page_units);
            self.program(now, Stream::Host);
        }
    }
}
