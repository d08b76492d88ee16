//! A solid-state disk: dies behind channels, a buffer, a mapping, garbage collection.
//!
//! A read passes the controller, its die, the die's channel and the link; each is a time
//! until which it is taken (die) or a store of time slices (channel, link), and the
//! command's end follows from them when it is submitted: one event per read. A write ends
//! when its data are in the buffer. They are mapped to the open stripe of the open
//! superblock; a full stripe becomes a program of its die, which goes behind the die's
//! reads. When the buffer has no room, writes wait for programs to end. When superblocks
//! run short, each unit written makes garbage collection win one back, whose reads and
//! programs take the dies' time: write amplification is what comes out of that.
//!
//! Single-bit (SLC) caching changes the time of a program while there is room, not where
//! the data lie; folding into the main cells happens in the disk's quiet time and is
//! accounted for when the next command comes. 3D XPoint is written in place: no buffer, no
//! mapping, no garbage collection.
//!
//! Left out: read retries and wear, mapping tables that do not fit the controller's memory,
//! folding while the host writes, temperature.

mod config;
mod credits;
mod die;
mod mapping;

use std::collections::VecDeque;

use slab::Slab;

pub(super) use self::config::SsdConfig;
use self::credits::Credits;
use self::die::{Die, Job};
use self::mapping::{Mapping, NONE, Step, Stream};
use super::{Command, Completion, Disk, DiskLimits, Op, Tag};
use crate::timeline::Timeline;
use crate::units::{Nanos, Sector};

/// Sequential streams that the controller follows at once (estimate: no maker tells).
const STREAMS: usize = 8;
/// Stripes that were read ahead and are remembered.
const AHEAD: usize = 128;

/// What the end of a transfer means, as it stands in the timeline: with this bit, a write's
/// data are in the buffer, and the rest is its place in [`Ssd::arriving`]; without it,
/// nothing is left but to end the command of this tag.
const ARRIVES: u32 = 1 << 31;

/// A flush or a write-through waits for the programs up to its order.
#[derive(Clone, Copy, Debug)]
struct Waiter {
    tag: Tag,
    order: u64,
    extra_ns: u64,
}

/// A write for which the buffer has no room yet, or whose data are on their way there.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    tag: Tag,
    sector: u64,
    sectors: u32,
    through: bool,
}

/// Units appended to a stripe whose program has not been given to its die.
#[derive(Clone, Copy, Debug, Default)]
struct Open {
    first: u32,
    units: u32,
    /// Reads of old data that the program has to wait for.
    reads_ns: u64,
}

/// A solid-state disk in virtual time.
#[derive(Debug)]
pub struct Ssd {
    config: SsdConfig,
    limits: DiskLimits,
    dies: Vec<Die>,
    channels: Vec<Credits>,
    link: Credits,
    controller_free: u64,
    controller_busy: u64,
    writer_free: u64,
    mapping: Mapping,
    open: [Open; 2],
    buffer_used: u64,
    waiting: VecDeque<Waiting>,
    waiters: VecDeque<Waiter>,
    orders: u64,
    /// Data were written since the last flush.
    unflushed: bool,
    slc_units: u64,
    /// Commands out, and since when there is none.
    out: u32,
    quiet_since: u64,
    /// Where each followed stream goes on, and the one to forget next.
    streams: [u64; STREAMS],
    forget: usize,
    ahead: Box<[(u64, u64); AHEAD]>,
    /// Writes whose data are on their way to the buffer.
    arriving: Slab<Waiting>,
    ends: Timeline,
    pump_at: u64,
    now: u64,
}

impl Ssd {
    pub(super) fn new(config: SsdConfig, limits: DiskLimits) -> Ssd {
        let out = limits.queue_depth as usize * usize::from(limits.hw_queues);
        let (logical, superblocks) =
            if config.direct { (1, 1) } else { (config.logical_units, config.superblocks) };
        let per_superblock = config.dies * config.stripe_units * config.pages_per_block;
        Ssd {
            dies: (0..config.dies).map(|_| Die::default()).collect(),
            channels: (0..config.channels).map(|_| Credits::new(config.channel_fx)).collect(),
            link: Credits::new(config.link_fx),
            controller_free: 0,
            controller_busy: 0,
            writer_free: 0,
            mapping: Mapping::new(logical, config.filled_units.min(logical), per_superblock, superblocks),
            open: [Open::default(); 2],
            buffer_used: 0,
            waiting: VecDeque::new(),
            waiters: VecDeque::new(),
            orders: 1,
            unflushed: false,
            slc_units: 0,
            out: 0,
            quiet_since: 0,
            streams: [u64::MAX; STREAMS],
            forget: 0,
            ahead: Box::new([(u64::MAX, 0); AHEAD]),
            arriving: Slab::with_capacity(out.min(1_024)),
            ends: Timeline::default(),
            pump_at: u64::MAX,
            now: 0,
            config,
            limits,
        }
    }

    /// Units written and moved so far: their sum over the first is the write amplification.
    pub fn units_written(&self) -> (u64, u64) {
        (self.mapping.host_units, self.mapping.moved_units)
    }

    /// The command has nothing before it but to end at `at`.
    #[inline]
    fn end(&mut self, at: u64, tag: Tag) {
        debug_assert!(tag.0 & ARRIVES == 0, "tags are small numbers");
        self.ends.push(at, tag.0);
    }

    /// The controller takes a command; when it has.
    #[inline]
    fn command(&mut self, now: u64) -> u64 {
        self.controller_free = self.controller_free.max(now) + self.config.command_ns;
        self.controller_busy += self.config.command_ns;
        self.controller_free
    }

    // Reading

    #[inline]
    fn submit_read(&mut self, now: u64, command: &Command) {
        let understood = self.command(now) + self.config.read_latency_ns;
        let (sector, end) = (command.sector.0, command.sector.0 + u64::from(command.sectors));
        let done = if self.config.direct && self.config.read_ahead_stripes == 0 {
            self.read_in_place(understood, sector, end)
        } else if self.config.read_ahead_stripes > 0 && self.follows(sector, end) {
            self.read_stream(understood, sector, end)
        } else {
            self.read(understood, sector, end, true)
        };
        self.end(done, command.tag);
    }

    /// True when the read goes on where another has ended.
    #[inline]
    fn follows(&mut self, sector: u64, end: u64) -> bool {
        if let Some(stream) = self.streams.iter_mut().find(|next| **next == sector) {
            *stream = end;
            return true;
        }
        self.streams[self.forget] = end;
        self.forget = (self.forget + 1) % STREAMS;
        false
    }

    /// Read stripe by stripe, those ahead too, so that the next reads find them ready.
    fn read_stream(&mut self, at: u64, sector: u64, end: u64) -> u64 {
        let stripe_sectors = self.stripe_sectors();
        let (first, last) = (sector / stripe_sectors, (end - 1) / stripe_sectors);
        let mut done = at;
        for stripe in first..=last + u64::from(self.config.read_ahead_stripes) {
            let start = stripe * stripe_sectors;
            if start >= self.config.capacity_sectors {
                break;
            }
            let slot = stripe as usize % AHEAD;
            if self.ahead[slot].0 != stripe {
                let stop = (start + stripe_sectors).min(self.config.capacity_sectors);
                self.ahead[slot] = (stripe, self.read(at, start, stop, false));
            }
            if stripe <= last {
                let ready = self.ahead[slot].1.max(at);
                let part = end.min(start + stripe_sectors) - sector.max(start);
                done = done.max(self.link.transfer(ready, part));
            }
        }
        done
    }

    /// Read sectors from the dies, and over the link if the host wants them.
    fn read(&mut self, at: u64, sector: u64, end: u64, to_host: bool) -> u64 {
        let (mut sector, mut done) = (sector, at);
        while sector < end {
            // As many units as lie side by side in one stripe are read in one step.
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
            done = done.max(if to_host { self.link.transfer(ready, part) } else { ready });
            sector = next;
        }
        done
    }

    /// The same where data lie where they were written and dies have no jobs: stripe by
    /// stripe, each from its die over its channel.
    fn read_in_place(&mut self, at: u64, sector: u64, end: u64) -> u64 {
        let stripe_bits = self.config.unit_shift + self.config.stripe_shift;
        let (mut sector, mut done) = (sector, at);
        while sector < end {
            let next = (((sector >> stripe_bits) + 1) << stripe_bits).min(end);
            let unit = (sector >> self.config.unit_shift) as u32;
            let index = self.config.die(unit);
            let ns = self.config.of_page(&self.config.read_ns, unit);
            let in_register = self.dies[index as usize].read(at, ns, 0);
            let channel = &mut self.channels[(index % self.config.channels) as usize];
            let ready = channel.transfer(in_register, next - sector);
            done = done.max(self.link.transfer(ready, next - sector));
            sector = next;
        }
        done
    }

    /// Where a unit lies and how many, at most `most`, lie side by side from it on. Those never
    /// written lie, on a preconditioned disk, where one sequential fill would have put them.
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

    /// Read `sectors` of one stripe; when they are in the controller.
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
        self.channels[(index % self.config.channels) as usize].transfer(in_register, sectors)
    }

    fn in_open_stripe(&self, physical: u32) -> bool {
        let open = self.open[Stream::Host as usize];
        (open.first..open.first + open.units).contains(&physical)
    }

    // Writing

    fn submit_write(&mut self, now: u64, command: &Command) {
        let through = !self.config.protected && (command.fua || !self.config.write_cache);
        let (tag, sector, sectors) = (command.tag, command.sector.0, command.sectors);
        if self.config.direct {
            return self.write_in_place(now, command);
        }
        if !self.waiting.is_empty() || !self.has_room(now, sector, sectors) {
            self.waiting.push_back(Waiting { tag, sector, sectors, through });
            return self.schedule();
        }
        self.take_in(now, Waiting { tag, sector, sectors, through });
    }

    fn units_of(&self, sector: u64, sectors: u32) -> std::ops::Range<u32> {
        let end = sector + u64::from(sectors);
        (sector >> self.config.unit_shift) as u32..end.div_ceil(self.config.unit_sectors) as u32
    }

    fn buffer_need(&self, sector: u64, sectors: u32) -> u64 {
        self.units_of(sector, sectors).len() as u64 * self.config.unit_sectors
    }

    fn has_room(&mut self, now: u64, sector: u64, sectors: u32) -> bool {
        let used = self.buffer_used + self.buffer_need(sector, sectors);
        if used <= self.config.buffer_sectors {
            return true;
        }
        self.catch_up(now);
        let used = self.buffer_used + self.buffer_need(sector, sectors);
        // A write larger than the buffer goes alone.
        used <= self.config.buffer_sectors || self.buffer_used < self.stripe_sectors()
    }

    fn stripe_sectors(&self) -> u64 {
        u64::from(self.config.stripe_units) * self.config.unit_sectors
    }

    fn catch_up(&mut self, now: u64) {
        for die in &mut self.dies {
            self.buffer_used -= die.catch_up(now);
        }
    }

    /// Let a write into the buffer.
    fn take_in(&mut self, now: u64, write: Waiting) {
        self.buffer_used += self.buffer_need(write.sector, write.sectors);
        let understood = self.command(now);
        self.writer_free = self.writer_free.max(understood) + self.config.write_command_ns;
        let there = self.link.transfer(self.writer_free, u64::from(write.sectors));
        let key = self.arriving.insert(write) as u32;
        self.ends.push(there + self.config.write_latency_ns, key | ARRIVES);
    }

    /// Written in place: over the link, the channel and into the die.
    fn write_in_place(&mut self, now: u64, command: &Command) {
        let understood = self.command(now) + self.config.write_latency_ns;
        let (mut sector, end) = (command.sector.0, command.sector.0 + u64::from(command.sectors));
        let mut done = understood;
        while sector < end {
            let unit = (sector >> self.config.unit_shift) as u32;
            let next = (u64::from(unit + 1) << self.config.unit_shift).min(end);
            let here = self.link.transfer(understood, next - sector);
            let index = self.config.die(unit);
            let channel = (index % self.config.channels) as usize;
            let at = self.channels[channel].transfer(here, next - sector);
            let ns = self.config.of_page(&self.config.program_ns, unit);
            done = done.max(self.dies[index as usize].read(at, ns, 0));
            sector = next;
        }
        self.end(done, command.tag);
    }

    /// A write's data are in the buffer: map them and fill stripes with them.
    fn store(&mut self, now: u64, sector: u64, sectors: u32) {
        let units = self.units_of(sector, sectors);
        let end = sector + u64::from(sectors);
        for unit in units {
            let start = u64::from(unit) << self.config.unit_shift;
            let old = self.mapping.lookup(unit);
            if old != NONE && (start < sector || start + self.config.unit_sectors > end) {
                self.open[Stream::Host as usize].reads_ns += self.config.of_page(&self.config.read_ns, old);
            }
            self.append(now, Stream::Host, unit);
            self.win_back(now);
        }
        self.unflushed = true;
    }

    fn append(&mut self, now: u64, stream: Stream, unit: u32) {
        let physical = loop {
            match self.mapping.append(stream, unit) {
                Some(physical) => break physical,
                None => self.mapping.open(stream),
            }
        };
        let open = &mut self.open[stream as usize];
        if open.units == 0 {
            open.first = physical;
        }
        open.units += 1;
        if (physical + 1) & (self.config.stripe_units - 1) == 0 {
            self.program(now, stream);
        }
    }

    /// Give the open units of a stripe to their die.
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
        let channel = &mut self.channels[(index % self.config.channels) as usize];
        let ready = channel.transfer(now, sectors);
        self.dies[index as usize].push(Job {
            ready,
            ns: ns + open.reads_ns,
            first_unit: open.first,
            units: open.units,
            release_sectors: if host { sectors as u32 } else { 0 },
            order: self.orders,
        });
    }

    /// Garbage collection for one unit of the host's.
    fn win_back(&mut self, now: u64) {
        if !self.mapping.is_short() {
            return;
        }
        loop {
            match self.mapping.collect() {
                Step::Passed => return,
                Step::Move { unit, from } => {
                    // Read on the victim's die; the program waits for it.
                    self.open[Stream::Collector as usize].reads_ns +=
                        self.config.of_page(&self.config.read_ns, from);
                    self.append(now, Stream::Collector, unit);
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

    /// Program what is in the open stripe, leaving the rest of its page empty.
    fn close_page(&mut self, now: u64) {
        if self.open[Stream::Host as usize].units > 0 {
            self.mapping.pad(Stream::Host, self.config.page_units);
            self.program(now, Stream::Host);
        }
    }

    // Waiting

    /// When a write that waits for room, or somebody who waits for programs, is to be looked at.
    fn schedule(&mut self) {
        self.pump_at = u64::MAX;
        if !self.waiting.is_empty() || !self.waiters.is_empty() {
            let ends = self.dies.iter().filter_map(Die::next_end);
            self.pump_at = ends.min().map_or(u64::MAX, |end| end.max(self.now));
        }
    }

    /// Dies have ended jobs: end who waited for them, let in who waited for room.
    fn pump(&mut self, now: u64) {
        self.catch_up(now);
        let oldest = self.dies.iter().filter_map(Die::oldest).min().unwrap_or(u64::MAX);
        while let Some(waiter) = self.waiters.front().copied() {
            if waiter.order >= oldest {
                break;
            }
            self.waiters.pop_front();
            self.end(now + waiter.extra_ns, waiter.tag);
        }
        while let Some(write) = self.waiting.front().copied() {
            if !self.has_room(now, write.sector, write.sectors) {
                break;
            }
            self.waiting.pop_front();
            self.take_in(now, write);
        }
        self.schedule();
    }

    fn submit_flush(&mut self, now: u64, tag: Tag) {
        let understood = self.command(now);
        let nothing = self.config.protected || self.config.direct || !self.config.write_cache;
        if nothing || (!self.unflushed && self.waiters.is_empty()) {
            return self.end(understood, tag);
        }
        self.unflushed = false;
        self.close_page(now);
        self.waiters.push_back(Waiter { tag, order: self.orders, extra_ns: self.config.flush_ns });
        self.pump(now);
    }

    /// Quiet time folds what is in SLC cells into the main ones, all dies at once.
    fn fold(&mut self, now: u64) {
        let quiet = now.saturating_sub(self.quiet_since + self.config.slc_idle_ns);
        let mean = |times: &[u64]| times.iter().sum::<u64>() / times.len() as u64;
        let stripe_ns = mean(&self.config.read_ns) + mean(&self.config.program_ns);
        let stripes = quiet / stripe_ns * u64::from(self.config.dies);
        self.slc_units = self.slc_units.saturating_sub(stripes * u64::from(self.config.stripe_units));
    }
}

impl Disk for Ssd {
    fn limits(&self) -> &DiskLimits {
        &self.limits
    }

    #[inline]
    fn submit(&mut self, now: Nanos, command: Command) {
        self.now = now.0;
        if self.out == 0 && self.slc_units > 0 {
            self.fold(now.0);
        }
        self.out += 1;
        match command.op {
            Op::Read => self.submit_read(now.0, &command),
            Op::Write => self.submit_write(now.0, &command),
            Op::Flush => self.submit_flush(now.0, command.tag),
            Op::Discard => {
                if !self.config.direct {
                    let (first, end) = (command.sector.0, command.sector.0 + u64::from(command.sectors));
                    let first = first.div_ceil(self.config.unit_sectors) as u32;
                    (first..(end >> self.config.unit_shift) as u32).for_each(|u| self.mapping.discard(u));
                }
                let understood = self.command(now.0);
                self.end(understood, command.tag);
            }
        }
    }

    #[inline]
    fn next_event(&self) -> Nanos {
        Nanos(self.ends.next().min(self.pump_at))
    }

    #[inline]
    fn advance(&mut self, now: Nanos, done: &mut Vec<Completion>) {
        loop {
            let (end, pump) = (self.ends.next(), self.pump_at);
            let at = end.min(pump);
            if at > now.0 || at == u64::MAX {
                self.now = now.0;
                return;
            }
            self.now = at;
            if end > at {
                self.pump(at);
                continue;
            }
            let Some((_, key)) = self.ends.pop() else { return };
            let mut tag = Tag(key);
            if key & ARRIVES != 0 {
                let write = self.arriving.remove((key & !ARRIVES) as usize);
                self.store(at, write.sector, write.sectors);
                if write.through {
                    self.close_page(at);
                    self.waiters.push_back(Waiter { tag: write.tag, order: self.orders, extra_ns: 0 });
                    self.pump(at);
                    continue;
                }
                if !self.waiting.is_empty() {
                    self.pump(at);
                }
                tag = write.tag;
            }
            self.out -= 1;
            if self.out == 0 {
                self.quiet_since = at;
            }
            done.push(Completion { tag, at: Nanos(at) });
        }
    }

    fn is_durable(&self, sector: Sector, sectors: u32) -> bool {
        if self.config.protected || self.config.direct || self.buffer_used == 0 {
            return true;
        }
        // By mapping unit: a write to a unit's other part makes the unit volatile again.
        self.units_of(sector.0, sectors).all(|unit| {
            let physical = self.mapping.lookup(unit);
            physical == NONE
                || !(self.in_open_stripe(physical)
                    || self.dies[self.config.die(physical) as usize].holds_at(physical, self.now))
        })
    }

    fn busy(&self) -> Nanos {
        let dies = self.dies.iter().map(|die| die.busy_ns);
        let channels = self.channels.iter().map(|channel| channel.busy_ns);
        let parts = dies.chain(channels).chain([self.link.busy_ns, self.controller_busy]);
        Nanos(parts.max().unwrap_or(0))
    }
}

#[cfg(test)]
mod tests;
