//! A solid-state disk: dies behind channels, a buffer, a mapping, garbage collection.
//!
//! A read passes the controller, its die, the die's channel and the link; each is a next-free time (die) or a
//! set of time slices (channel, link), and the command's end follows from them at submission: one event per
//! read. A write ends when its data are in the buffer. They are mapped to the open stripe of the open
//! superblock; a full stripe becomes a program of its die, which waits for the die's reads. When the buffer
//! is full, writes wait for the end of programs; a paced disk admits them evenly before that. When
//! superblocks run short, garbage collection frees as much space as is written, with each unit or in one step
//! for many, which stalls writes; its reads and programs take the dies' time, and write amplification is the
//! result.
//!
//! Single-bit (SLC) caching changes the time of a program while there is space, not the place of the data;
//! folding into the main cells happens in the disk's idle time and is accounted for at the next command. 3D
//! XPoint is written in place: no buffer, no mapping, no garbage collection.
//!
//! Left out: read retries and wear, the controller's varying speed before its queue is full, mapping tables
//! that do not fit the controller's memory, folding while the host writes, temperature.

mod config;
mod credits;
mod die;
mod mapping;
mod pacing;
mod reading;
mod streams;
mod writing;

use std::collections::VecDeque;

use slab::Slab;

pub(super) use self::config::SsdConfig;
use self::credits::Credits;
use self::die::Die;
use self::mapping::{Mapping, NONE, Stream};
use self::pacing::Pacing;
use self::streams::{STREAMS, Streams};
use super::{Begins, Command, Completion, Disk, DiskLimits, Op, Tag};
use blklab_base::event_queue::EventQueue;
use blklab_base::units::{Nanos, Sector};

/// The number of remembered read-ahead stripes of a stream.
const AHEAD: usize = 128;

/// The meaning of an event in the queue: with this bit, a write's data are in the buffer, and the rest is its
/// place in [`Ssd::arriving`]; without it, the command of this tag ends.
const ARRIVES: u32 = 1 << 31;

/// A flush or a write-through, which waits for the programs up to its number.
#[derive(Clone, Copy, Debug)]
struct Waiter {
    tag: Tag,
    order: u64,
    extra_ns: u64,
}

/// A write, or the rest of one, that waits for room in the buffer.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    tag: Tag,
    sector: u64,
    sectors: u32,
    through: bool,
    begun: Option<Begun>,
}

/// What is known of a write after its first part.
#[derive(Clone, Copy, Debug)]
struct Begun {
    is_stream: bool,
    /// The data so far have passed the link: the data of a command come in order.
    there: u64,
}

/// A write, or a part of one, with data on the way to the buffer.
#[derive(Clone, Copy, Debug)]
struct Arriving {
    write: Waiting,
    /// No other part follows.
    ends: bool,
}

/// Units of a stripe that is not yet programmed.
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
    pacing: Pacing,
    /// Units written since the last garbage collection.
    uncollected: u32,
    mapping: Mapping,
    open: [Open; 2],
    buffer_used: u64,
    /// The part of them with data that have not arrived yet.
    on_the_way: u64,
    waiting: VecDeque<Waiting>,
    waiters: VecDeque<Waiter>,
    orders: u64,
    /// Data were written since the last flush.
    unflushed: bool,
    slc_units: u64,
    /// Commands in flight, and the time since when there is none.
    out: u32,
    quiet_since: u64,
    reads: Streams,
    writes: Streams,
    stream_reader_free: u64,
    /// Stripes in the read buffer with the times at which they are ready, by the number of their stream.
    ahead: Box<[[(u64, u64); AHEAD]; STREAMS]>,
    /// Writes with data on the way to the buffer.
    arriving: Slab<Arriving>,
    ends: EventQueue,
    pump_at: u64,
    now: u64,
    begins: Begins,
}

impl Ssd {
    pub(super) fn new(config: SsdConfig, limits: DiskLimits) -> Ssd {
        let out = limits.queue_depth as usize * usize::from(limits.hw_queues);
        let (logical, superblocks) =
            if config.direct { (1, 1) } else { (config.logical_units, config.superblocks) };
        let per_superblock = config.dies * config.stripe_units * config.pages_per_block;
        // What is written in place is transferred stripe by stripe.
        let credits = if config.direct { Credits::of_short_transfers } else { Credits::new };
        Ssd {
            dies: (0..config.dies).map(|_| Die::default()).collect(),
            channels: (0..config.channels).map(|_| credits(config.channel_fx)).collect(),
            link: credits(config.link_fx),
            controller_free: 0,
            controller_busy: 0,
            writer_free: 0,
            pacing: Pacing::new(config.buffer_sectors),
            uncollected: 0,
            mapping: Mapping::new(logical, config.filled_units.min(logical), per_superblock, superblocks),
            open: [Open::default(); 2],
            buffer_used: 0,
            on_the_way: 0,
            waiting: VecDeque::new(),
            waiters: VecDeque::new(),
            orders: 1,
            unflushed: false,
            slc_units: 0,
            out: 0,
            quiet_since: 0,
            reads: Streams::new(),
            writes: Streams::new(),
            stream_reader_free: 0,
            ahead: Box::new([[(u64::MAX, 0); AHEAD]; STREAMS]),
            arriving: Slab::with_capacity(out.min(1_024)),
            ends: EventQueue::default(),
            pump_at: u64::MAX,
            now: 0,
            begins: Begins::default(),
            config,
            limits,
        }
    }

    /// Units written and moved so far: their sum divided by the first is the write amplification.
    pub fn units_written(&self) -> (u64, u64) {
        (self.mapping.host_units, self.mapping.moved_units)
    }

    /// The command ends at `at`.
    #[inline]
    fn end(&mut self, at: u64, tag: Tag) {
        debug_assert!(tag.0 & ARRIVES == 0, "tags are small numbers");
        self.ends.push(at, tag.0);
    }

    /// The controller accepts a command; returns the time at which it has.
    #[inline(always)]
    fn command(&mut self, now: u64, tag: Tag) -> u64 {
        self.begins.note(tag, self.controller_free.max(now));
        self.controller_free = self.controller_free.max(now) + self.config.command_ns;
        self.controller_busy += self.config.command_ns;
        match self.config.link_command_ns {
            0 => self.controller_free,
            frames => self.link.take(now, self.controller_free, frames),
        }
    }

    fn units_of(&self, sector: u64, sectors: u32) -> std::ops::Range<u32> {
        let end = sector + u64::from(sectors);
        (sector >> self.config.unit_shift) as u32..end.div_ceil(self.config.unit_sectors) as u32
    }

    fn stripe_sectors(&self) -> u64 {
        u64::from(self.config.stripe_units) * self.config.unit_sectors
    }

    fn in_open_stripe(&self, physical: u32) -> bool {
        let open = self.open[Stream::Host as usize];
        (open.first..open.first + open.units).contains(&physical)
    }

    /// The next time at which a write that waits for room, or a command that waits for programs, may
    /// continue.
    fn schedule(&mut self) {
        self.pump_at = u64::MAX;
        if !self.waiting.is_empty() || !self.waiters.is_empty() {
            let ends = self.dies.iter().filter_map(Die::next_end);
            self.pump_at = ends.min().map_or(u64::MAX, |end| end.max(self.now));
        }
    }

    /// Dies have ended jobs: ends commands that waited for them, and admits writes that waited for room.
    fn pump(&mut self, now: u64) {
        self.catch_up(now);
        if !self.waiters.is_empty() {
            self.end_waiters(now);
        }
        while self.admit_first(now) {}
        self.schedule();
    }

    /// Ends the flushes and write-throughs that have all their writes on flash.
    fn end_waiters(&mut self, now: u64) {
        let oldest = self.dies.iter().filter_map(Die::oldest).min().unwrap_or(u64::MAX);
        while let Some(waiter) = self.waiters.front().copied() {
            if waiter.order >= oldest {
                break;
            }
            self.waiters.pop_front();
            self.end(now + waiter.extra_ns, waiter.tag);
        }
    }

    fn submit_flush(&mut self, now: u64, tag: Tag) {
        let understood = self.command(now, tag);
        let nothing = self.config.protected || self.config.direct || !self.config.write_cache;
        if nothing || (!self.unflushed && self.waiters.is_empty()) {
            return self.end(understood, tag);
        }
        self.unflushed = false;
        self.close_page(now);
        self.waiters.push_back(Waiter { tag, order: self.orders, extra_ns: self.config.flush_ns });
        self.pump(now);
    }

    /// In idle time, data in SLC cells are folded into the main ones, on all dies at once.
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
                let understood = self.command(now.0, command.tag);
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
                let Arriving { write, ends } = self.arriving.remove((key & !ARRIVES) as usize);
                let need = self.buffer_need(write.sector, write.sectors);
                self.on_the_way -= need;
                self.pacing.arrive(need);
                self.store(at, write.sector, write.sectors);
                if write.through && ends {
                    self.close_page(at);
                    self.waiters.push_back(Waiter { tag: write.tag, order: self.orders, extra_ns: 0 });
                    self.pump(at);
                    continue;
                }
                if !self.waiting.is_empty() {
                    self.pump(at);
                }
                if !ends {
                    continue;
                }
                tag = write.tag;
            }
            self.out -= 1;
            if self.out == 0 {
                self.quiet_since = at;
            }
            done.push(Completion { tag, at: Nanos(at), began: self.begins.of(tag) });
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

    fn keep_begins(&mut self) {
        self.begins.keep();
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
