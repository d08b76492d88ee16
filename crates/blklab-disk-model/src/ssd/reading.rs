//! Reads: from the dies over their channels and the link, and read-ahead of streams.

use super::mapping::NONE;
use super::{AHEAD, Command, Ssd};

impl Ssd {
    #[inline]
    pub(super) fn submit_read(&mut self, now: u64, command: &Command) {
        let mut understood = self.command(now, command.tag);
        let (sector, end) = (command.sector.0, command.sector.0 + u64::from(command.sectors));
        let (ahead, pace) = (self.config.read_ahead_stripes > 0, self.config.stream_read);
        let follows = ahead || pace.is_some();
        let stream = if follows { self.reads.follows(sector, end) } else { None };
        if let (Some(_), Some(pace)) = (stream, pace) {
            understood = self.stream_reader_free.max(understood) + pace.of(command.sectors);
            self.stream_reader_free = understood;
        }
        let at = understood + self.config.read_latency_ns;
        let done = if let (true, Some(stream)) = (ahead, stream) {
            self.read_stream(at, sector, end, stream)
        } else if self.config.direct {
            self.read_in_place(at, sector, end)
        } else {
            self.read(at, sector, end, true)
        };
        self.end(done, command.tag);
    }

    /// Reads stripe by stripe, including read-ahead, so that the next reads find them ready.
    fn read_stream(&mut self, at: u64, sector: u64, end: u64, stream: usize) -> u64 {
        let stripe_sectors = self.stripe_sectors();
        let (first, last) = (sector / stripe_sectors, (end - 1) / stripe_sectors);
        let mut done = at;
        for stripe in first..=last + u64::from(self.config.read_ahead_stripes) {
            let start = stripe * stripe_sectors;
            if start >= self.config.capacity_sectors {
                break;
            }
            let slot = stripe as usize % AHEAD;
            if self.ahead[stream][slot].0 != stripe {
                let stop = (start + stripe_sectors).min(self.config.capacity_sectors);
                self.ahead[stream][slot] = (stripe, self.read(at, start, stop, false));
            }
            if stripe <= last {
                let ready = self.ahead[stream][slot].1.max(at);
                let part = end.min(start + stripe_sectors) - sector.max(start);
                done = done.max(self.link.transfer(self.now, ready, part));
            }
        }
        done
    }

    /// Reads sectors from the dies, and transfers them over the link if the host requested them.
    fn read(&mut self, at: u64, sector: u64, end: u64, to_host: bool) -> u64 {
        let (mut sector, mut done) = (sector, at);
        while sector < end {
            // Contiguous units of one stripe are read in one step.
            let unit = (sector >> self.config.unit_shift) as u32;
            let most = ((end - 1) >> self.config.unit_shift) as u32 - unit + 1;
            let (physical, side_by_side) = self.stretch(unit, most);
            let units = match physical {
                NONE => side_by_side,
                _ => side_by_side.min(self.config.stripe_units - (physical & (self.config.stripe_units - 1))),
            };
            let next = u64::from(unit + units) << self.config.unit_shift;
            let part = next.min(end) - sector;
            let ready = self.read_stripe(at, physical, part);
            done = done.max(if to_host { self.link.transfer(self.now, ready, part) } else { ready });
            sector = next;
        }
        done
    }

    /// The same for data written in place, on dies without jobs: stripe by stripe, each from its die over its
    /// channel.
    fn read_in_place(&mut self, at: u64, sector: u64, end: u64) -> u64 {
        let Ssd { config, dies, channels, link, .. } = self;
        let stripe_bits = config.unit_shift + config.stripe_shift;
        let (mut sector, mut done) = (sector, at);
        let mut die = config.die((sector >> config.unit_shift) as u32);
        while sector < end {
            let next = (((sector >> stripe_bits) + 1) << stripe_bits).min(end);
            let ns = config.of_page(&config.read_ns, (sector >> config.unit_shift) as u32);
            let in_register = dies[die as usize].read_without_jobs(at, ns);
            let channel = &mut channels[config.channel(die)];
            let ready = channel.transfer_short(self.now, in_register, next - sector);
            done = done.max(link.transfer_short(self.now, ready, next - sector));
            // The next stripe is on the next die.
            die = if die + 1 == config.dies { 0 } else { die + 1 };
            sector = next;
        }
        done
    }

    /// The place of a unit, and the number of contiguous units from it on, at most `most`. On a
    /// preconditioned disk, unwritten units are at their places after one sequential fill.
    #[inline]
    fn stretch(&self, unit: u32, most: u32) -> (u32, u32) {
        if self.config.direct {
            return (unit, most);
        }
        match self.mapping.stretch(unit, most) {
            (NONE, units) if self.config.preconditioned => (unit, units),
            found => found,
        }
    }

    /// Reads `sectors` of one stripe; returns the time at which they are in the controller.
    #[inline]
    fn read_stripe(&mut self, at: u64, physical: u32, sectors: u64) -> u64 {
        if physical == NONE {
            return at;
        }
        let index = self.config.die(physical);
        let die = &mut self.dies[index as usize];
        self.buffer_used -= die.catch_up(at);
        if self.buffer_used > 0 && (die.holds(physical) || self.in_open_stripe(physical)) {
            return at;
        }
        let ns = self.config.of_page(&self.config.read_ns, physical);
        let in_register = self.dies[index as usize].read(at, ns, self.config.suspend_ns);
        self.channels[self.config.channel(index)].transfer(self.now, in_register, sectors)
    }
}
