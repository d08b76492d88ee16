//! A hard disk: one arm, rotating platters, a cache and a queue.
//!
//! A command that the cache cannot serve waits for the arm. Its time there is the seek, the wait until the
//! first sector comes round, and the passing of its sectors, track by track with the skews between; the
//! platter's angle follows from the absolute time and a phase drawn from the seed. The next few commands are
//! planned: their order is fixed. When one of them is served, another joins the end of the plan: among a
//! share of the commands, and the next time among the others, the one on the nearest cylinder, or the one that the head can reach first (SPTF;
//! Seltzer, Chen and Ousterhout, "Disk scheduling revisited", USENIX 1990), with a head start for those that
//! have waited long (Jacobson and Wilkes, "Disk scheduling algorithms based on rotational position", HP Labs
//! 1991). A command that reaches its deadline goes before all others, so no command waits longer than
//! `longest_wait`.
//!
//! After a read the head stays and reads ahead into the read's cache segment. This is not simulated by
//! events: its progress is computed when it is needed. Writes end when their data are in the write cache; the
//! arm writes them to the medium when the disk is quiet, in bursts when the cache fills, or for a flush, in
//! order of address.
//!
//! If its file has them, a drive's own map with its spare and slipped sectors, its seek table, its read-ahead
//! rules and its overheads replace the general formulas; `make validate` checks the model against five such
//! drives.
//!
//! Left out: thermal recalibration, servo retries, the controller's lookup cost, power states.

mod arm;
mod batch;
mod bound;
mod cache;
mod config;
mod deadline;
mod geometry;
mod layout;
mod link;
mod queue;
mod seek;
mod writeback;

use std::collections::VecDeque;

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::SplitMix64;
use slab::Slab;

pub use self::bound::LongestWait;
use self::cache::{ReadCache, Span, Waiting, WriteCache};
pub(super) use self::config::HddConfig;
use self::config::{AheadTo, Policy};
use self::geometry::Location;
use self::link::Sending;
use self::queue::{Queue, Queued};
use self::writeback::Bursts;
use super::{Begins, Command, Completion, Disk, DiskLimits, Op, Tag};
use blklab_base::event_queue::EventQueue;
use blklab_base::units::{Nanos, Sector};

/// A head that is late by this little still catches the sector: it is a rounding error, not motion. The
/// shortest sector of any disk so far passes in some 2,500 ns.
const SLACK_NS: u64 = 500;

/// The arm's current work.
#[derive(Clone, Copy, Debug)]
enum Work {
    /// The segment of the read cache that it continues, for a read that continues one.
    Serve(Served, Option<usize>),
    Destage,
}

/// The part of a command that is needed when the arm ends it.
#[derive(Clone, Copy, Debug)]
struct Served {
    span: Span,
    order: u64,
    tag: Tag,
    write: bool,
    /// Sectors that passed the head before the first one and go to the read cache.
    passed: u32,
    /// It is reported with the others of its batch.
    in_batch: bool,
}

impl Served {
    fn new(queued: &Queued, passed: u32, in_batch: bool) -> Served {
        let Queued { span, order, tag, write, .. } = *queued;
        Served { span, order, tag, write, passed, in_batch }
    }
}

/// The head reads ahead: `at` is the next sector, which begins at `time`.
#[derive(Clone, Copy, Debug)]
struct Stream {
    segment: usize,
    at: u64,
    time: u64,
    limit: u64,
}

/// A command whose transfer over the link is in progress.
#[derive(Clone, Copy, Debug)]
struct Transit {
    tag: Tag,
    /// For a cached write: its sectors and its number.
    write: Option<(Span, u64)>,
}

/// A flush, which waits for the writes that completed before it.
#[derive(Clone, Copy, Debug)]
struct Flush {
    tag: Tag,
    order: u64,
    arrived: u64,
    ready: u64,
}

/// A hard disk in virtual time.
#[derive(Debug)]
pub struct Hdd {
    config: HddConfig,
    limits: DiskLimits,
    /// The platter's angle at time zero.
    phase_ns: u64,
    /// Revolutions during the longest seek.
    turns_max: u32,
    /// The head's place: the sector just after the last one served.
    head: Location,
    /// The address at the head.
    head_lba: u64,
    queue: Queue,
    /// Commands of the current batch that have been served.
    batch: Vec<Tag>,
    /// The next batch is chosen at this time at the earliest.
    batch_at: u64,
    flushes: VecDeque<Flush>,
    read_cache: ReadCache,
    write_cache: WriteCache,
    stream: Option<Stream>,
    /// Until then the head stays with the stream, unless a deadline passes.
    lingers_until: u64,
    work: Option<(u64, Work)>,
    /// The time at which the idle arm looks for work.
    look_at: u64,
    /// The time from which the disk counts as quiet.
    quiet_at: u64,
    link_free: u64,
    /// The time in which the arm's current read occupies the link.
    held: (u64, u64),
    controller_free: u64,
    transits: Slab<Transit>,
    ends: EventQueue,
    orders: u64,
    /// The number of commands still to serve in order of arrival.
    in_order: u32,
    /// First address and number of sectors of the stream that waits meanwhile.
    aside: Option<(u64, u64)>,
    bursts: Bursts,
    /// The estimated time at which the arm has finished all planned commands.
    planned_until: u64,
    /// The read from the medium that the link delays.
    sending: Option<Sending>,
    /// The last command submitted was a write.
    after_write: bool,
    busy_ns: u64,
    begins: Begins,
}

impl Hdd {
    pub(super) fn new(config: HddConfig, limits: DiskLimits, seed: u64) -> Hdd {
        let phase_ns = SplitMix64::seed_from_u64(seed).next_u64() % config.geometry.turn_ns;
        let head = config.geometry.locate(0);
        Hdd {
            read_cache: ReadCache::new(config.segments, config.segment_sectors),
            write_cache: WriteCache::new(
                config.write_cache_sectors,
                config.write_cache_extents,
                config.destage_percent,
                config.write_cache_keeps,
            ),
            phase_ns,
            turns_max: config.seek.ns(config.geometry.cylinders - 1).div_ceil(config.geometry.turn_ns) as u32,
            head,
            head_lba: 0,
            queue: Queue::new(
                limits.queue_depth as usize,
                if config.batch > 1 { config.batch } else { config.plan - 1 },
            ),
            batch: Vec::new(),
            batch_at: 0,
            flushes: VecDeque::new(),
            stream: None,
            lingers_until: 0,
            work: None,
            look_at: u64::MAX,
            quiet_at: 0,
            link_free: 0,
            held: (0, 0),
            controller_free: 0,
            transits: Slab::with_capacity(limits.queue_depth as usize),
            ends: EventQueue::default(),
            orders: 1,
            in_order: 0,
            aside: None,
            bursts: Bursts::default(),
            planned_until: 0,
            sending: None,
            after_write: false,
            busy_ns: 0,
            begins: Begins::default(),
            config,
            limits,
        }
    }

    fn link_ns(&self, sectors: u64) -> u64 {
        (sectors * self.config.link_fx) >> 16
    }

    /// Occupies the link from `ready` on; returns the time of the last byte.
    fn over_link(&mut self, ready: u64, sectors: u64) -> u64 {
        self.occupy_link(ready, self.link_ns(sectors))
    }

    /// The same for data from the host.
    fn receive(&mut self, ready: u64, sectors: u64) -> u64 {
        self.occupy_link(ready, (sectors * self.config.link_write_fx) >> 16)
    }

    fn occupy_link(&mut self, ready: u64, ns: u64) -> u64 {
        let start = self.link_free.max(ready);
        let (from, until) = self.held;
        let start = if start < until && start + ns > from { until } else { start };
        self.link_free = start + ns;
        self.link_free
    }

    /// The controller processes one command after another; returns the time at which it has understood this
    /// one.
    fn understand(&mut self, now: u64, ns: u64, tag: Tag) -> u64 {
        self.begins.note(tag, self.controller_free.max(now));
        self.controller_free = self.controller_free.max(now) + ns;
        self.controller_free
    }

    fn end(&mut self, at: u64, tag: Tag, write: Option<(Span, u64)>) {
        let key = self.transits.insert(Transit { tag, write });
        self.ends.push(at, key as u32);
    }

    /// Lets the arm, if idle, look for work at `at`.
    fn look(&mut self, at: u64) {
        if self.work.is_none() {
            self.look_at = self.look_at.min(at);
        }
    }

    fn next_internal(&self) -> u64 {
        let arm = self.work.as_ref().map_or(self.look_at, |(end, _)| *end);
        self.ends.next().min(arm)
    }

    // Reading

    fn submit_read(&mut self, now: u64, command: &Command) {
        let span = Span::new(command.sector.0, command.sectors);
        self.catch_up(now);
        let after = usize::from(std::mem::replace(&mut self.after_write, false));
        let hit = self.read_cache.find(span);
        if hit.is_some() || self.write_cache.holds(span) {
            let end = {
                let understood = self.understand(now, self.config.read_hit_ns[after], command.tag);
                self.over_link(understood, span.len()) + self.config.read_end_ns
            };
            self.end(end, command.tag, None);
            if let Some(segment) = hit {
                if self.stream.is_some_and(|stream| stream.segment == segment) {
                    self.linger(end);
                }
                self.read_on_after_hit(now, segment, span.end);
            }
            return;
        }
        let continued = self.stream.is_some_and(|s| self.reaches(&s, span));
        let overhead = if continued { self.config.read_hit_ns } else { self.config.read_overhead_ns };
        let understood = self.understand(now, overhead[after], command.tag);
        self.enqueue(now, understood, span, command);
    }

    /// True when the head reaches `span` by reading ahead, without a seek.
    fn reaches(&self, stream: &Stream, span: Span) -> bool {
        span.start <= stream.limit && span.start >= self.read_cache.span(stream.segment).start
    }

    /// Computes the progress of read-ahead by `now`.
    fn catch_up(&mut self, now: u64) {
        let Some(mut stream) = self.stream else { return };
        if self.work.is_some() || stream.time >= now || stream.at >= stream.limit {
            return;
        }
        while stream.at < stream.limit {
            let here = self.head;
            // A track passes in far less than a second: a longer time has the same effect.
            let passed = ((now - stream.time).min(1 << 30) << 32) / here.sector_fx;
            let left = u64::from(here.left_on_track).min(stream.limit - stream.at);
            let sectors = passed.min(left);
            let end = stream.time + ((sectors * here.sector_fx) >> 32);
            (stream.at, stream.time) = self.go_on(stream.at + sectors, end, false);
            if sectors < left || stream.time >= now {
                break;
            }
        }
        self.read_cache.extend(stream.segment, stream.at);
        self.stream = Some(stream);
    }

    /// The host has read up to `end` from this segment of the cache.
    fn read_on_after_hit(&mut self, now: u64, segment: usize, end: u64) {
        let stream = self.stream.filter(|stream| stream.segment == segment);
        match (self.config.read_ahead_to, stream) {
            (AheadTo::Distance, Some(stream)) => self.follow(now, stream, end),
            (AheadTo::Distance, None) => {}
            _ if self.config.read_ahead_after_hit => self.read_on_again(now, segment, end),
            _ => {}
        }
    }

    /// The head may continue to the same distance ahead of `end`. A head that stopped at its limit must wait
    /// for its sector to come round; it continues after half of the read-ahead is used up.
    fn follow(&mut self, now: u64, mut stream: Stream, end: u64) {
        let limit = (end + self.config.read_ahead_sectors).min(self.limits.capacity.0);
        let stands_still = stream.at >= stream.limit;
        if stands_still {
            if self.work.is_some() || limit < stream.at + self.config.read_ahead_sectors / 2 {
                return;
            }
            stream.time = self.comes_round(now, 0, self.head.angle_ns);
        }
        stream.limit = stream.limit.max(limit);
        self.stream = Some(stream);
    }

    // Writing

    fn submit_write(&mut self, now: u64, command: &Command) {
        let span = Span::new(command.sector.0, command.sectors);
        let after = usize::from(std::mem::replace(&mut self.after_write, true));
        let overhead = self.config.write_overhead_ns[after];
        if self.config.write_drops_read {
            self.catch_up(now);
            if self.read_cache.forget(span, self.stream.map(|stream| stream.segment)) {
                self.stream = None;
            }
        }
        let cached = self.config.write_cache && !command.fua && self.write_cache.fits(command.sectors);
        if !cached {
            let understood = self.understand(now, overhead, command.tag);
            let ready = match self.config.write_data_ns {
                Some(_) => understood,
                None => self.receive(understood, span.len()),
            };
            return self.enqueue(now, ready, span, command);
        }
        self.orders += 1;
        let transit = Transit { tag: command.tag, write: Some((span, self.orders)) };
        let key = self.transits.insert(transit) as u32;
        if self.write_cache.waiting.is_empty() && self.write_cache.promise(command.sectors) {
            let understood = self.understand(now, overhead, command.tag);
            let end = self.receive(understood, span.len()) + self.config.write_end_ns;
            self.ends.push(end, key);
        } else {
            self.write_cache.waiting.push_back(Waiting { key, arrived: now, order: self.orders });
            self.look(now);
        }
    }

    /// Gives room to writes that wait for it. The controller understood their commands earlier.
    fn admit(&mut self, now: u64) {
        while let Some(Waiting { key, .. }) = self.write_cache.waiting.front().copied() {
            let span = self.transits[key as usize].write.map_or(Span::default(), |(span, _)| span);
            if !self.write_cache.promise(span.len() as u32) {
                return;
            }
            self.write_cache.waiting.pop_front();
            self.begins.note(self.transits[key as usize].tag, now);
            let end = self.receive(now, span.len()) + self.config.write_end_ns;
            self.ends.push(end, key);
        }
    }

    fn flush_order(&self) -> u64 {
        self.flushes.front().map_or(0, |f| f.order)
    }

    /// Ends the flushes that have all their writes on the medium.
    fn end_flushes(&mut self, now: u64) {
        while let Some(flush) = self.flushes.front().copied() {
            if self.write_cache.older_than(flush.order) {
                self.look(now.max(flush.ready));
                return;
            }
            self.flushes.pop_front();
            self.end(now.max(flush.ready), flush.tag, None);
        }
    }
}

impl Disk for Hdd {
    fn limits(&self) -> &DiskLimits {
        &self.limits
    }

    fn submit(&mut self, now: Nanos, command: Command) {
        let now = now.0;
        self.quiet_at = now + self.config.destage_idle_ns;
        match command.op {
            Op::Read => self.submit_read(now, &command),
            Op::Write => self.submit_write(now, &command),
            Op::Flush => {
                self.orders += 1;
                let ready = now + self.config.write_overhead_ns[0];
                self.begins.note(command.tag, now);
                let flush = Flush { tag: command.tag, order: self.orders, arrived: now, ready };
                self.flushes.push_back(flush);
                self.end_flushes(now);
            }
            // A discard has no effect on a hard disk: the command ends.
            Op::Discard => {
                self.begins.note(command.tag, now);
                self.end(now + self.config.write_overhead_ns[0], command.tag, None);
            }
        }
    }

    fn next_event(&self) -> Nanos {
        Nanos(self.next_internal())
    }

    fn advance(&mut self, now: Nanos, done: &mut Vec<Completion>) {
        let mut last = 0;
        loop {
            let at = self.next_internal();
            if at > now.0 || at == u64::MAX {
                return;
            }
            debug_assert!(at >= last, "{at} after {last}");
            last = at;
            if self.ends.next() == at {
                let Some((_, key)) = self.ends.pop() else { return };
                let transit = self.transits.remove(key as usize);
                if let Some((span, order)) = transit.write {
                    let flush_order = self.flush_order();
                    let geometry = &self.config.geometry;
                    self.write_cache.insert(span, order, flush_order, |lba| geometry.locate(lba));
                    let look = if self.write_cache.presses() { at } else { self.quiet_at.max(at) };
                    self.look(look);
                }
                let (tag, began) = (transit.tag, self.begins.of(transit.tag));
                done.push(Completion { tag, at: Nanos(at), began });
            } else if let Some((_, work)) = self.work.take() {
                // What the arm has waited for before this work may be over by now.
                self.look_at = u64::MAX;
                self.finish(at, work);
            } else {
                self.begin(at);
            }
        }
    }

    fn is_durable(&self, sector: Sector, sectors: u32) -> bool {
        !self.write_cache.overlaps(Span::new(sector.0, sectors))
    }

    fn keep_begins(&mut self) {
        self.begins.keep();
    }

    fn busy(&self) -> Nanos {
        Nanos(self.busy_ns)
    }
}

#[cfg(test)]
mod tests;
