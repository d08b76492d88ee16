//! A hard disk: one arm, platters that never stop turning, a cache and a queue.
//!
//! A command that the cache cannot serve waits for the arm. Its time there is the seek,
//! the wait until the first sector comes round, and the passing of its sectors, track by
//! track with the skews between; where the platter stands follows from the absolute time
//! and a phase drawn from the seed. When the arm falls free, the next command is the one
//! it can reach first (SPTF; Seltzer, Chen and Ousterhout, "Disk scheduling revisited",
//! USENIX 1990), with a head start for those that have waited long (Jacobson and Wilkes,
//! "Disk scheduling algorithms based on rotational position", HP Labs 1991).
//!
//! After a read the head stays and reads on into the read's cache segment. That is not
//! simulated by events: how far it has come is worked out when somebody asks. Writes end
//! when their data are in the write cache; the arm puts them on the medium when the disk
//! is quiet, when the cache fills or when a flush wants it, nearest first.
//!
//! Left out: defect lists, thermal recalibration, servo retries, the controller's lookup
//! cost, caching of written data for later reads, power states.

mod cache;
mod geometry;
mod seek;

use std::collections::VecDeque;

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::SplitMix64;
use slab::Slab;

use self::cache::{ReadCache, Span, WriteCache};
use self::geometry::{Geometry, Place};
use self::seek::{BLOCK, SeekCurve};
use super::keys::Values;
use super::model::{Conflict, conflict};
use super::{Command, Completion, Disk, DiskLimits, Op, Tag};
use crate::timeline::Timeline;
use crate::units::{Nanos, SECTOR_BYTES, Sector};

/// A head that is this little late still catches the sector: it is rounding, not motion.
/// The shortest sector of any disk so far passes in some 2,500 ns.
const SLACK_NS: u64 = 500;

/// The most that one step of destaging writes before the arm looks round again.
const DESTAGE_SECTORS: u64 = 2_048;

/// The order of queued commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Policy {
    Fcfs,
    Clook,
    Sstf,
    Sptf,
}

/// The keys of a hard disk, in the units the model works in.
#[derive(Clone, Debug)]
pub(super) struct HddConfig {
    geometry: Geometry,
    seek: SeekCurve,
    write_settle_ns: u64,
    head_switch_ns: u64,
    /// Sectors of a physical block.
    physical_sectors: u64,
    segments: usize,
    segment_sectors: u64,
    /// 0: none.
    read_ahead_sectors: u64,
    write_cache: bool,
    write_cache_sectors: u64,
    write_cache_extents: usize,
    destage_percent: f64,
    destage_idle_ns: u64,
    policy: Policy,
    /// Time forgiven per time waited, in 1/1024.
    ageing: u64,
    read_overhead_ns: u64,
    read_hit_ns: u64,
    write_overhead_ns: u64,
    /// Link time per sector, times 2^16.
    link_fx: u64,
}

impl HddConfig {
    pub(super) fn new(values: &Values) -> Result<HddConfig, Conflict> {
        let geometry = Geometry::new(values)?;
        let seek = SeekCurve::new(values, geometry.cylinders)?;
        let segments = values.whole("cache_segments") as usize;
        let segment_sectors = values.whole("cache_kib") * 2 / segments as u64;
        let read_ahead_sectors =
            if values.flag("read_ahead") { values.whole("read_ahead_kib") * 2 } else { 0 };
        if read_ahead_sectors > segment_sectors {
            let message = format!(
                "found {}; a segment of the cache holds {} KiB",
                read_ahead_sectors / 2,
                segment_sectors / 2
            );
            return conflict("read_ahead_kib", message);
        }
        Ok(HddConfig {
            seek,
            write_settle_ns: values.ms("write_settle_ms"),
            head_switch_ns: values.ms("head_switch_ms"),
            physical_sectors: values.whole("physical_block_bytes") / SECTOR_BYTES,
            segments,
            segment_sectors,
            read_ahead_sectors,
            write_cache: values.flag("write_cache"),
            write_cache_sectors: values.whole("write_cache_kib") * 2,
            write_cache_extents: values.whole("write_cache_extents") as usize,
            destage_percent: values.given("destage_percent"),
            destage_idle_ns: values.ms("destage_idle_ms"),
            policy: match values.text("ncq_policy") {
                "fcfs" => Policy::Fcfs,
                "clook" => Policy::Clook,
                "sstf" => Policy::Sstf,
                _ => Policy::Sptf,
            },
            ageing: (values.given("ncq_ageing") * 1024.0).round() as u64,
            read_overhead_ns: values.us("read_overhead_us"),
            read_hit_ns: values.us("read_hit_us"),
            write_overhead_ns: values.us("write_overhead_us"),
            link_fx: (SECTOR_BYTES as f64 * 1e3 / values.given("link_mb_s") * 65_536.0).round() as u64,
            geometry,
        })
    }
}

/// A command that waits for the arm.
#[derive(Clone, Copy, Debug)]
struct Queued {
    span: Span,
    place: Place,
    /// When the controller has understood it.
    ready: u64,
    /// Its time of submission times the ageing, less much if it is urgent: see
    /// [`Hdd::soonest_reached`].
    handicap: i64,
    order: u64,
    tag: Tag,
    write: bool,
    urgent: bool,
}

/// What the arm is doing.
#[derive(Clone, Copy, Debug)]
enum Work {
    Serve(Queued),
    Destage,
}

/// The head reads on: `at` is the next sector, which begins at `time`.
#[derive(Clone, Copy, Debug)]
struct Stream {
    segment: usize,
    at: u64,
    time: u64,
    limit: u64,
}

/// A command on its way over the link.
#[derive(Clone, Copy, Debug)]
struct Transit {
    tag: Tag,
    /// For a cached write: its sectors and its order.
    write: Option<(Span, u64)>,
}

/// A flush waits for the writes that ended before it.
#[derive(Clone, Copy, Debug)]
struct Flush {
    tag: Tag,
    order: u64,
    ready: u64,
}

/// A hard disk in virtual time.
#[derive(Debug)]
pub struct Hdd {
    config: HddConfig,
    limits: DiskLimits,
    /// Where the platter stands at time zero.
    phase_ns: u64,
    /// Turns that pass in the longest seek.
    turns_max: u32,
    /// Where the head is: the sector just behind the last one served.
    head: Place,
    /// The address it would serve next.
    head_lba: u64,
    queue: Vec<Queued>,
    /// Their cylinders, side by side.
    cylinders: Vec<u32>,
    flushes: VecDeque<Flush>,
    read_cache: ReadCache,
    write_cache: WriteCache,
    stream: Option<Stream>,
    work: Option<(u64, Work)>,
    /// When the arm, at rest, looks for work.
    look_at: u64,
    /// When the disk counts as quiet.
    quiet_at: u64,
    link_free: u64,
    controller_free: u64,
    transits: Slab<Transit>,
    ends: Timeline,
    orders: u64,
    busy_ns: u64,
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
            ),
            phase_ns,
            turns_max: config.seek.ns(config.geometry.cylinders - 1).div_ceil(config.geometry.turn_ns) as u32,
            head,
            head_lba: 0,
            queue: Vec::with_capacity(limits.queue_depth as usize),
            cylinders: Vec::with_capacity(limits.queue_depth as usize),
            flushes: VecDeque::new(),
            stream: None,
            work: None,
            look_at: u64::MAX,
            quiet_at: 0,
            link_free: 0,
            controller_free: 0,
            transits: Slab::with_capacity(limits.queue_depth as usize),
            ends: Timeline::default(),
            orders: 1,
            busy_ns: 0,
            config,
            limits,
        }
    }

    fn link_ns(&self, sectors: u64) -> u64 {
        (sectors * self.config.link_fx) >> 16
    }

    /// Occupy the link from `ready` on; when the last byte is over.
    fn over_link(&mut self, ready: u64, sectors: u64) -> u64 {
        self.link_free = self.link_free.max(ready) + self.link_ns(sectors);
        self.link_free
    }

    /// The controller works on one command after another; when it has understood this one.
    fn understand(&mut self, now: u64, ns: u64) -> u64 {
        self.controller_free = self.controller_free.max(now) + ns;
        self.controller_free
    }

    fn end(&mut self, at: u64, tag: Tag, write: Option<(Span, u64)>) {
        let key = self.transits.insert(Transit { tag, write });
        self.ends.push(at, key as u32);
    }

    /// Let the arm, if at rest, look for work at `at`.
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
        let hit = self.read_cache.find(span);
        if hit.is_some() || self.write_cache.holds(span) {
            let end = {
                let understood = self.understand(now, self.config.read_hit_ns);
                self.over_link(understood, span.len())
            };
            self.end(end, command.tag, None);
            if hit.is_some() && self.stream.map(|s| s.segment) == hit {
                self.follow(now, span.end);
            }
            return;
        }
        let continued = self.stream.is_some_and(|s| self.reaches(&s, span));
        let overhead = if continued { self.config.read_hit_ns } else { self.config.read_overhead_ns };
        let understood = self.understand(now, overhead);
        self.enqueue(now, understood, span, command);
    }

    /// True when the head, reading on, comes to `span` without a seek.
    fn reaches(&self, stream: &Stream, span: Span) -> bool {
        span.start <= stream.limit && span.start >= self.read_cache.span(stream.segment).start
    }

    /// Work out how far the head has read on by `now`.
    fn catch_up(&mut self, now: u64) {
        let Some(mut stream) = self.stream else { return };
        if self.work.is_some() || stream.time >= now || stream.at >= stream.limit {
            return;
        }
        while stream.at < stream.limit {
            let here = self.head;
            // A track passes in far less than a second: more time than that is as good as that.
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

    /// The host has read up to `end` out of the stream's segment: the head may go on as far
    /// ahead of it as before. A head that stood still at its limit has to wait for its
    /// sector to come round; it does once half of what was read ahead is used up.
    fn follow(&mut self, now: u64, end: u64) {
        let Some(mut stream) = self.stream else { return };
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
        let cached = self.config.write_cache && !command.fua && self.write_cache.fits(command.sectors);
        if !cached {
            let ready = {
                let understood = self.understand(now, self.config.write_overhead_ns);
                self.over_link(understood, span.len())
            };
            return self.enqueue(now, ready, span, command);
        }
        self.orders += 1;
        let transit = Transit { tag: command.tag, write: Some((span, self.orders)) };
        let key = self.transits.insert(transit) as u32;
        if self.write_cache.waiting.is_empty() && self.write_cache.promise(command.sectors) {
            let end = {
                let understood = self.understand(now, self.config.write_overhead_ns);
                self.over_link(understood, span.len())
            };
            self.ends.push(end, key);
        } else {
            self.write_cache.waiting.push_back(key);
            self.look(now);
        }
    }

    /// Give room to writes that wait for it. Their commands were understood long ago.
    fn admit(&mut self, now: u64) {
        while let Some(key) = self.write_cache.waiting.front().copied() {
            let span = self.transits[key as usize].write.map_or(Span::default(), |(span, _)| span);
            if !self.write_cache.promise(span.len() as u32) {
                return;
            }
            self.write_cache.waiting.pop_front();
            let end = self.over_link(now, span.len());
            self.ends.push(end, key);
        }
    }

    fn flush_order(&self) -> u64 {
        self.flushes.front().map_or(0, |f| f.order)
    }

    /// End the flushes whose writes are all on the medium.
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

    // The arm

    fn enqueue(&mut self, now: u64, ready: u64, span: Span, command: &Command) {
        self.orders += 1;
        let place = self.config.geometry.locate(span.start);
        self.cylinders.push(place.cylinder);
        self.queue.push(Queued {
            span,
            place,
            ready,
            handicap: ((now * self.config.ageing) >> 10) as i64 - (i64::from(command.urgent) << 56),
            order: self.orders,
            tag: command.tag,
            write: command.op == Op::Write,
            urgent: command.urgent,
        });
        self.look(ready);
    }

    /// First time from `from` on, after `least` more, when `angle` is under the head.
    #[inline]
    fn comes_round(&self, from: u64, least: u64, angle_ns: u32) -> u64 {
        let stands = (from + self.phase_ns) % self.config.geometry.turn_ns;
        from + self.wait_ns(stands, angle_ns, least)
    }

    /// Time from angle `stands` to `angle`, at least `least`.
    #[inline]
    fn wait_ns(&self, stands: u64, angle_ns: u32, least: u64) -> u64 {
        let turn = self.config.geometry.turn_ns;
        let angle = u64::from(angle_ns) + SLACK_NS;
        let mut wait = angle + if angle < stands { turn } else { 0 } - stands;
        wait -= if wait >= turn { turn } else { 0 };
        // A fixed number of conditional moves: nobody could predict these branches.
        for _ in 0..self.turns_max {
            wait += if wait < least { turn } else { 0 };
        }
        // What is longer than the longest seek is rare: a command not understood yet.
        while wait < least {
            wait += turn;
        }
        wait.saturating_sub(SLACK_NS).max(least)
    }

    /// Time to bring the head from `from` to `to` and let it settle.
    #[inline]
    fn move_ns(&self, from: &Place, to: &Place, write: bool) -> u64 {
        let moved = match from.cylinder.abs_diff(to.cylinder) {
            0 if from.head == to.head => return 0,
            0 => self.config.head_switch_ns,
            distance => self.config.seek.ns(distance),
        };
        if write { moved + self.config.write_settle_ns } else { moved }
    }

    /// Put the head before sector `lba`, which follows the last one served at `time`;
    /// returns both, with the time of a change of track added.
    fn go_on(&mut self, lba: u64, time: u64, write: bool) -> (u64, u64) {
        let next = self.config.geometry.locate(lba.min(self.limits.capacity.0 - 1));
        let moved = self.move_ns(&self.head, &next, write);
        self.head = next;
        self.head_lba = lba;
        if moved == 0 { (lba, time) } else { (lba, self.comes_round(time, moved, next.angle_ns)) }
    }

    /// Let `sectors` from the head's place on pass by, beginning at `time`; when the last
    /// has passed. The head then stands before the next sector.
    fn pass(&mut self, mut sectors: u64, mut time: u64, write: bool) -> u64 {
        let mut lba = self.head_lba;
        while sectors > 0 {
            let here = self.head;
            let run = sectors.min(u64::from(here.left_on_track));
            let end = time + ((run * here.sector_fx) >> 32);
            sectors -= run;
            (lba, time) = self.go_on(lba + run, end, write);
            if sectors == 0 {
                return end;
            }
        }
        time
    }

    /// Choose work at `now` and begin it.
    fn begin(&mut self, now: u64) {
        self.look_at = u64::MAX;
        self.catch_up(now);
        match self.flushes.front().copied() {
            Some(flush) if flush.ready <= now => match self.nearest_extent(now, flush.order) {
                Some((_, index)) => self.destage(now, index),
                None => self.end_flushes(now),
            },
            Some(flush) => {
                self.begin_without_flush(now);
                self.look(flush.ready);
            }
            None => self.begin_without_flush(now),
        }
    }

    fn begin_without_flush(&mut self, now: u64) {
        let presses = self.write_cache.presses();
        let extent = if presses || (self.queue.is_empty() && now >= self.quiet_at) {
            self.nearest_extent(now, u64::MAX)
        } else {
            None
        };
        if self.queue.is_empty() {
            match extent {
                Some((_, index)) => self.destage(now, index),
                None if self.write_cache.extents.is_empty() => {}
                None => self.look(self.quiet_at),
            }
            return;
        }
        if let Some(stream) = self.stream {
            // Its width tells in one comparison whether a command starts in the window.
            let start = self.read_cache.span(stream.segment).start;
            let width = stream.limit.saturating_sub(start);
            let mut first = (u64::MAX, 0);
            for (index, queued) in self.queue.iter().enumerate() {
                let within = queued.span.start.wrapping_sub(start);
                if within <= width && within < first.0 && !queued.write && queued.ready <= now {
                    first = (within, index);
                }
            }
            if first.0 != u64::MAX {
                return self.serve_stream(now, stream, first.1);
            }
        }
        if self.queue.iter().all(|queued| queued.ready > now) {
            return match extent {
                Some((_, index)) => self.destage(now, index),
                None => self.look(self.queue.iter().map(|q| q.ready).min().unwrap_or(now)),
            };
        }
        let (cost, index) = self.next_command(now);
        match extent {
            Some((other, extent)) if other < cost => self.destage(now, extent),
            _ => self.serve(now, index),
        }
    }

    /// The queued command to serve next, and the time to reach it less its head start.
    fn next_command(&self, now: u64) -> (i64, usize) {
        match self.config.policy {
            Policy::Sptf => self.soonest_reached(now),
            Policy::Fcfs => self.least(|queued| queued.order as i64),
            // Those behind the head come after all those before it.
            Policy::Clook => self.least(|queued| {
                queued.span.start as i64 + (i64::from(queued.span.start < self.head_lba) << 48)
            }),
            Policy::Sstf => self.least(|q| i64::from(self.head.cylinder.abs_diff(q.place.cylinder))),
        }
    }

    /// The queued command of least cost; urgent ones cost less than all others.
    fn least(&self, cost: impl Fn(&Queued) -> i64) -> (i64, usize) {
        let costs = self.queue.iter().map(|queued| cost(queued) - (i64::from(queued.urgent) << 56));
        costs.enumerate().map(|(index, cost)| (cost, index)).min().unwrap_or((i64::MAX, 0))
    }

    /// Shortest positioning time first. All head starts grow at the same pace, so that each
    /// command's handicap, fixed when it came, orders them. The seeks are worked out
    /// together first: on their own, without branches, they cost a third.
    fn soonest_reached(&self, now: u64) -> (i64, usize) {
        let stands = (now + self.phase_ns) % self.config.geometry.turn_ns;
        let mut seeks = [0; BLOCK];
        let mut best = (i64::MAX, 0);
        let blocks = self.queue.chunks(BLOCK).zip(self.cylinders.chunks(BLOCK));
        for (block, (queue, cylinders)) in blocks.enumerate() {
            self.config.seek.fill(self.head.cylinder, cylinders, &mut seeks);
            for (index, (queued, seek)) in queue.iter().zip(&seeks).enumerate() {
                let mut moved = u64::from(*seek);
                if moved == 0 || queued.write {
                    moved = self.move_ns(&self.head, &queued.place, queued.write);
                }
                let least = queued.ready.saturating_sub(now) + moved;
                let cost = self.wait_ns(stands, queued.place.angle_ns, least) as i64 + queued.handicap;
                best = if cost < best.0 { (cost, block * BLOCK + index) } else { best };
            }
        }
        (best.0 - ((now * self.config.ageing) >> 10) as i64, best.1)
    }

    /// Take a command out of the queue.
    fn take(&mut self, index: usize) -> Queued {
        self.cylinders.swap_remove(index);
        self.queue.swap_remove(index)
    }

    /// The extent of the write cache, written before `order`, that the head reaches first.
    fn nearest_extent(&self, now: u64, order: u64) -> Option<(i64, usize)> {
        let stands = (now + self.phase_ns) % self.config.geometry.turn_ns;
        let extents = self.write_cache.extents.iter().enumerate();
        extents
            .filter(|(_, extent)| extent.order < order)
            .map(|(index, extent)| {
                let moved = self.move_ns(&self.head, &extent.place, true);
                (self.wait_ns(stands, extent.place.angle_ns, moved) as i64, index)
            })
            .min()
    }

    /// Bring the head to the command's first sector and let it pass.
    fn serve(&mut self, now: u64, index: usize) {
        let queued = self.take(index);
        self.stream = None;
        let mut start = queued.span.start;
        if !queued.write
            && let Some(segment) = self.read_cache.continues(start)
        {
            // Its front is in the cache already.
            start = self.read_cache.span(segment).end.min(queued.span.end - 1);
        }
        let place =
            if start == queued.span.start { queued.place } else { self.config.geometry.locate(start) };
        let span = Span { start, end: queued.span.end };
        let end = self.work_on(now.max(queued.ready), span, place, queued.write);
        self.busy_ns += end - now;
        self.work = Some((end, Work::Serve(queued)));
    }

    /// Serve a read that the head comes to by reading on.
    fn serve_stream(&mut self, now: u64, stream: Stream, index: usize) {
        let queued = self.take(index);
        let mut end = now;
        if queued.span.end > stream.at {
            // A stream that stood still at its limit waits for its sector to come round.
            let time = if stream.at >= stream.limit && stream.time < now {
                self.comes_round(now, 0, self.head.angle_ns)
            } else {
                stream.time
            };
            end = self.pass(queued.span.end - stream.at, time, false).max(now);
        }
        self.busy_ns += end - now;
        self.work = Some((end, Work::Serve(queued)));
    }

    fn destage(&mut self, now: u64, index: usize) {
        self.stream = None;
        let geometry = &self.config.geometry;
        let taken = self.write_cache.take(index, DESTAGE_SECTORS, |lba| geometry.locate(lba));
        let end = self.work_on(now, taken.span, taken.place, true);
        self.busy_ns += end - now;
        self.work = Some((end, Work::Destage));
    }

    /// Seek, wait and pass; when the last sector has passed.
    fn work_on(&mut self, now: u64, span: Span, place: Place, write: bool) -> u64 {
        let moved = self.move_ns(&self.head, &place, write);
        let mut start = self.comes_round(now, moved, place.angle_ns);
        let physical = self.config.physical_sectors;
        if write && !(span.start.is_multiple_of(physical) && span.end.is_multiple_of(physical)) {
            // A part of a physical sector: read it in one turn, write it in the next.
            start += self.config.geometry.turn_ns;
        }
        self.head = place;
        self.head_lba = span.start;
        self.pass(span.len(), start, write)
    }

    /// The arm has finished at `now`.
    fn finish(&mut self, now: u64, work: Work) {
        match work {
            Work::Serve(queued) if queued.write => {
                let geometry = &self.config.geometry;
                self.write_cache.remove(queued.span, queued.order, |lba| geometry.locate(lba));
                self.end(now, queued.tag, None);
                self.admit(now);
            }
            Work::Serve(queued) => {
                // The data went over the link as they came; the last block is still to go.
                let end = self.over_link(now, queued.span.len().min(self.config.physical_sectors));
                self.end(end, queued.tag, None);
                self.read_on(now, queued.span);
            }
            Work::Destage => {
                self.write_cache.under_way = None;
                self.admit(now);
            }
        }
        self.end_flushes(now);
        if !self.queue.is_empty() || !self.write_cache.extents.is_empty() {
            self.look(now);
        }
    }

    /// After a read: note it in its segment and let the head read on.
    fn read_on(&mut self, now: u64, span: Span) {
        let segment = match self.stream {
            Some(stream) => stream.segment,
            None => match self.read_cache.continues(span.start) {
                Some(segment) => segment,
                None => self.read_cache.replace(span),
            },
        };
        let at = self.head_lba.max(span.end);
        self.read_cache.extend(segment, at);
        let ahead = self.config.read_ahead_sectors.min(self.read_cache.segment_sectors());
        let limit = (span.end + ahead).min(self.limits.capacity.0);
        let limit = self.stream.map_or(limit, |s| s.limit.max(limit));
        let time = match self.stream {
            Some(stream) if span.end <= stream.at => stream.time,
            _ => self.comes_round(now, 0, self.head.angle_ns),
        };
        self.stream = (ahead > 0).then_some(Stream { segment, at, time, limit });
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
                let ready = now + self.config.write_overhead_ns;
                self.flushes.push_back(Flush { tag: command.tag, order: self.orders, ready });
                self.end_flushes(now);
            }
            // Nothing to tell a hard disk: it ends the command.
            Op::Discard => self.end(now + self.config.write_overhead_ns, command.tag, None),
        }
    }

    fn next_event(&self) -> Nanos {
        Nanos(self.next_internal())
    }

    fn advance(&mut self, now: Nanos, done: &mut Vec<Completion>) {
        loop {
            let at = self.next_internal();
            if at > now.0 || at == u64::MAX {
                return;
            }
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
                done.push(Completion { tag: transit.tag, at: Nanos(at) });
            } else if let Some((_, work)) = self.work.take() {
                self.finish(at, work);
            } else {
                self.begin(at);
            }
        }
    }

    fn is_durable(&self, sector: Sector, sectors: u32) -> bool {
        !self.write_cache.overlaps(Span::new(sector.0, sectors))
    }

    fn busy(&self) -> Nanos {
        Nanos(self.busy_ns)
    }
}

#[cfg(test)]
mod tests;
