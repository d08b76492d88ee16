//! From events to I/Os.
//!
//! Events name no I/O, only sectors. An event of a request covers all of its bios, so each I/O that
//! waits for this event and has a sector in it takes the event's time; of several at one sector it is
//! the oldest. An I/O is issued, and complete, when all of its sectors are. That follows merges,
//! splits and partial completions without their own events.
//!
//! The kernel flushes the disk's cache before or after a request with requests of its own. Where it
//! does, the request is issued without the flags of its bio, and completes twice: with its sectors when
//! the data are on the disk, and without any when all is done (`blk-flush.c`). The second is the I/O's.
//!
//! A request that goes directly to the disk has no insert event: it was inserted when its bio got it. A bio that
//! was split has a request for each part, for which its process may have slept: it is inserted with the last one.
//!
//! An I/O begins at its queue event (level `bio`). Where a trace has none it begins at the insert
//! event, or at the issue event where there is no scheduler (level `request`). The first events of a
//! trace tell which.

use std::collections::{BTreeMap, VecDeque};

use blklab_base::input_error::InputError;
use blklab_base::recorded::{Flags, Header, Io, Level, NameId, Op, Tables};
use blklab_base::units::{Nanos, Sector};

use crate::Records;
use crate::event::{Act, Event};
use crate::notes::{Kind, Notes};
use crate::order::{Ordered, Timed};
use crate::plugs::Plugs;

/// I/Os that are followed at once.
const FOLLOWED_MAX: usize = 1 << 16;

impl Timed for Event {
    fn time(&self) -> u64 {
        self.time
    }

    fn set_time(&mut self, time: u64) {
        self.time = time;
    }
}

/// A reader of events.
pub trait Events {
    /// The next event of the file, in any order; None at the end.
    ///
    /// # Errors
    /// The file cannot be read further.
    fn next_event(&mut self, shared: &mut Shared) -> Result<Option<Event>, InputError>;

    /// The lane of an event: within one, events are in order.
    fn lane(&self, event: &Event) -> usize {
        usize::from(event.cpu)
    }
}

/// What all readers fill.
#[derive(Default)]
pub struct Shared {
    /// Facts about the recording.
    pub header: Header,
    /// Names.
    pub tables: Tables,
    /// Oddities.
    pub notes: Notes,
    /// A time of the tracer's clock, and the same in ns since 1970.
    pub wall: Option<(u64, i64)>,
}

/// An I/O that is followed.
struct Followed {
    io: Io,
    /// When it had a request.
    got: Option<Nanos>,
    /// Sectors that were not inserted, issued, completed yet.
    left: [u32; 3],
    /// It waits for nothing more.
    over: bool,
    /// A requeued request comes back.
    requeued: bool,
    /// The kernel has issued it without the flags for flushes: it completes once more when those are done.
    completes_twice: bool,
}

impl Followed {
    fn complete(&mut self, now: Nanos, event: &Event) {
        let failed = event.flags.has(Flags::FAILED);
        self.io.completed = Some(now);
        self.io.flags = self.io.flags.with_if(failed, Flags::FAILED);
        self.over = true;
    }
}

/// The flags for which the kernel may flush the disk's cache.
const FLUSHES: [Flags; 2] = [Flags::PREFLUSH, Flags::FUA];

const INSERT: usize = 0;
const ISSUE: usize = 1;
const COMPLETE: usize = 2;

/// The I/Os of a device that have sectors and are not complete, by class, first sector, number.
#[derive(Default)]
struct Places {
    by_sector: [BTreeMap<(u64, u64), u64>; 4],
    /// Length of the longest in `by_sector`.
    longest: [u64; 4],
    /// Flushes without data: number, and whether the bio was a flush by operation.
    flushes: VecDeque<(u64, bool)>,
}

fn class(op: Op) -> usize {
    match op {
        Op::Read => 0,
        Op::Write | Op::WriteZeroes | Op::Flush => 1,
        Op::Discard => 2,
        Op::Other => 3,
    }
}

/// The I/Os of a reader of events.
pub struct Matched<E> {
    events: E,
    shared: Shared,
    ordered: Ordered<Event>,
    ended: bool,
    /// The event at which an I/O begins; None until it is known.
    begins: Option<Act>,
    followed: VecDeque<Followed>,
    /// The number of the first in `followed`.
    first: u64,
    devices: Vec<Places>,
    /// Time 0.
    epoch: Option<u64>,
    lost: u32,
    /// Pairs of remaps between whole devices: above, below.
    stacked: Vec<(NameId, NameId)>,
    /// Devices with I/Os of their own.
    has_ios: Vec<bool>,
    plugs: Plugs,
}

impl<E: Events> Matched<E> {
    /// The I/Os of these events.
    pub fn new(events: E, shared: Shared) -> Matched<E> {
        Matched {
            events,
            shared,
            ordered: Ordered::default(),
            ended: false,
            begins: None,
            followed: VecDeque::new(),
            first: 0,
            devices: Vec::new(),
            epoch: None,
            lost: 0,
            stacked: Vec::new(),
            has_ios: Vec::new(),
            plugs: Plugs::default(),
        }
    }

    /// The same where the events have those of plugs if there are any.
    #[must_use]
    pub fn with_plugs(self) -> Matched<E> {
        Matched { plugs: Plugs::all_known(), ..self }
    }

    /// The bios of these events, the first of which may be still to come; times count from `epoch`.
    pub fn live(events: E, shared: Shared, epoch: u64) -> Matched<E> {
        let mut matched = Matched::new(events, shared);
        matched.begins = Some(Act::Queue);
        matched.shared.header.level = Level::Bio;
        matched.epoch = Some(epoch);
        matched
    }

    /// The reader, which has more events now.
    pub fn more(&mut self) -> &mut E {
        self.ended = false;
        &mut self.events
    }

    /// The names, to which the reader's events may add.
    pub fn tables_mut(&mut self) -> &mut Tables {
        &mut self.shared.tables
    }

    /// The first I/O in order of queue times, if it is complete; `None` if it is not yet.
    ///
    /// # Errors
    /// As of [`Records::next_io`].
    pub fn next_finished(&mut self) -> Result<Option<Io>, InputError> {
        loop {
            if self.followed.front().is_some_and(|followed| followed.over)
                || self.followed.len() >= FOLLOWED_MAX
            {
                return Ok(self.leave());
            }
            if !self.step()? {
                return Ok(None);
            }
        }
    }

    fn fill(&mut self) -> Result<(), InputError> {
        while !self.ended && !self.ordered.is_full() {
            let Some(event) = self.events.next_event(&mut self.shared)? else {
                self.ended = true;
                break;
            };
            let back = self.ordered.push(self.events.lane(&event), event);
            self.shared.notes.add_back(back, event.number);
        }
        Ok(())
    }

    /// Takes one event; false at the end.
    fn step(&mut self) -> Result<bool, InputError> {
        self.fill()?;
        if self.begins.is_none() && self.ordered.iter().next().is_some() {
            self.choose_level();
        }
        let Some((event, late)) = self.ordered.pop() else { return Ok(false) };
        if late {
            self.shared.notes.add(Kind::ClockStep, event.number, String::new);
        }
        self.take(event);
        Ok(true)
    }

    /// By the first events, which wait in the window.
    fn choose_level(&mut self) {
        let has = |act| self.ordered.iter().any(|event| event.act == act);
        let begins = if has(Act::Queue) {
            Act::Queue
        } else if has(Act::Insert) {
            Act::Insert
        } else {
            Act::Issue
        };
        self.begins = Some(begins);
        self.shared.header.level = if begins == Act::Queue { Level::Bio } else { Level::Request };
    }

    fn take(&mut self, event: Event) {
        let epoch = *self.epoch.get_or_insert(event.time);
        if let (Some((time, unix_ns)), None) = (self.shared.wall, self.shared.header.begun_unix_ns) {
            let before = i64::try_from(i128::from(epoch) - i128::from(time)).unwrap_or_default();
            self.shared.header.begun_unix_ns = Some(unix_ns.saturating_add(before));
        }
        let now = Nanos(event.time.saturating_sub(epoch));
        let device = event.device.0 as usize;
        if self.devices.len() <= device {
            self.devices.resize_with(device + 1, Places::default);
            self.has_ios.resize(device + 1, false);
        }
        self.lost = self.lost.saturating_add(event.lost);
        let begins = self.begins.unwrap_or_default();
        let notes = &mut self.shared.notes;
        match event.act {
            Act::BackMerge | Act::FrontMerge => return notes.add(Kind::Merges, event.number, String::new),
            Act::Split => return notes.add(Kind::Splits, event.number, String::new),
            Act::GetRequest => return self.gets_request(now, &event),
            Act::Remap => return self.remap(&event),
            Act::Plug => return self.plugs.begin(event.pid),
            Act::Unplug => return self.plugs.end(event.pid),
            _ => {}
        }
        let is_flush = event.op == Op::Flush || event.sectors == 0 && event.flags.has(Flags::PREFLUSH);
        if event.act == begins && !(begins == Act::Insert && self.comes_back(&event)) {
            self.begin(now, &event, is_flush);
            if begins != Act::Issue {
                return;
            }
        }
        if is_flush && event.sectors == 0 {
            self.flush_event(now, &event);
        } else if event.sectors > 0 {
            self.cover(now, &event);
        } else if event.act == Act::Complete && event.op == Op::Write {
            self.done_with_flushes(now, &event);
        }
    }

    /// The oldest I/O there that had none has a request, or a part of one that was split. It may have waited for that.
    fn gets_request(&mut self, now: Nanos, event: &Event) {
        let class = class(event.op);
        let places = &self.devices[event.device.0 as usize];
        let mut found =
            places.by_sector[class].range((event.sector, 0)..=(event.sector, u64::MAX)).map(|(key, _)| key.1);
        let first = self.first;
        let waits = |number: &u64| {
            let followed = &self.followed[(number - first) as usize];
            followed.got.is_none() && followed.io.issued.is_none()
        };
        let part = || self.oldest_at(event, class, event.sector, ISSUE).map(|((_, number), _)| number);
        if let Some(number) = found.find(waits).or_else(part) {
            self.followed[(number - first) as usize].got = Some(now);
        }
    }

    fn remap(&mut self, event: &Event) {
        self.shared.notes.add(Kind::Remaps, event.number, String::new);
        let pair = (event.above, event.device);
        // Partitions of a disk have no I/Os of their own in a trace of the disk.
        if pair.0 != pair.1 && !self.stacked.contains(&pair) && self.stacked.len() < 64 {
            self.stacked.push(pair);
        }
    }

    fn begin(&mut self, now: Nanos, event: &Event, is_flush: bool) {
        if event.sectors == 0 && !is_flush {
            let kind = if event.op == Op::Other { Kind::NoSector } else { Kind::ZeroLength };
            return self.shared.notes.add(kind, event.number, String::new);
        }
        let is_flush = event.sectors == 0;
        if is_flush {
            self.shared.notes.add(Kind::Flushes, event.number, String::new);
        }
        let io = Io {
            queued: now,
            inserted: (event.act == Act::Insert).then_some(now),
            issued: None,
            completed: None,
            sector: Sector(if is_flush { 0 } else { event.sector }),
            sectors: event.sectors,
            op: if is_flush { Op::Flush } else { event.op },
            flags: event.flags,
            device: event.device,
            pid: event.pid,
            process: event.process,
            cpu: Some(event.cpu),
            prio: event.prio,
            cgroup: event.cgroup,
            lost: std::mem::take(&mut self.lost),
            number: event.number,
        };
        let number = self.first + self.followed.len() as u64;
        let device = event.device.0 as usize;
        self.has_ios[device] = true;
        let places = &mut self.devices[device];
        if is_flush {
            places.flushes.push_back((number, event.op == Op::Flush));
        } else {
            let class = class(event.op);
            let length = u64::from(event.sectors);
            if places.by_sector[class].is_empty() {
                places.longest[class] = 0;
            }
            places.longest[class] = places.longest[class].max(length);
            places.by_sector[class].insert((event.sector, number), event.sector.saturating_add(length));
        }
        let left = if event.act == Act::Insert { 0 } else { event.sectors };
        // Requests of a trace without bios have left their plugs.
        let joins = event.act == Act::Queue && self.plugs.queued(event.pid, number);
        let flags = io.flags.with_if(joins, Flags::JOINS_PLUG);
        self.followed.push_back(Followed {
            io: Io { flags, ..io },
            got: None,
            left: [left, event.sectors, event.sectors],
            over: false,
            requeued: false,
            completes_twice: false,
        });
    }

    /// Whether an insert event is of a request that the disk refused.
    fn comes_back(&mut self, event: &Event) -> bool {
        let class = class(event.op);
        let places = &self.devices[event.device.0 as usize].by_sector[class];
        let found = places.range((event.sector, 0)..=(event.sector, u64::MAX)).map(|(key, _)| key.1);
        for number in found {
            let followed = &mut self.followed[(number - self.first) as usize];
            if followed.requeued && followed.io.sectors == event.sectors {
                followed.requeued = false;
                return true;
            }
        }
        false
    }

    /// A flush without data. The kernel issues one of its own for all bios that wait for one.
    fn flush_event(&mut self, now: Nanos, event: &Event) {
        let places = &mut self.devices[event.device.0 as usize];
        let by_op = event.op == Op::Flush;
        let first = self.first;
        let place = |number: u64| (number - first) as usize;
        match event.act {
            Act::Insert => {
                for (number, _) in &places.flushes {
                    self.followed[place(*number)].io.inserted.get_or_insert(now);
                }
            }
            Act::Issue => {
                for (number, _) in &places.flushes {
                    self.followed[place(*number)].io.issued.get_or_insert(now);
                }
            }
            // The kernel's own flush completes before the bio that wanted it.
            Act::Complete => {
                if let Some(found) = places.flushes.iter().position(|(_, own)| *own == by_op)
                    && let Some((number, _)) = places.flushes.remove(found)
                {
                    self.followed[place(number)].complete(now, event);
                }
            }
            _ => {}
        }
    }

    /// A completion without sectors. It ends a flush without data, or a request with flushes before or after
    /// it, whose data had completed.
    fn done_with_flushes(&mut self, now: Nanos, event: &Event) {
        let places = &mut self.devices[event.device.0 as usize];
        let of_place = &mut places.by_sector[class(Op::Write)];
        let first = self.first;
        let place = |number: u64| (number - first) as usize;
        let found = of_place.range((event.sector, 0)..=(event.sector, u64::MAX)).map(|(key, _)| *key).find(
            |(_, number)| {
                let followed = &self.followed[place(*number)];
                followed.completes_twice && followed.left[COMPLETE] == 0
            },
        );
        if let Some(key) = found {
            of_place.remove(&key);
            self.followed[place(key.1)].complete(now, event);
        } else if let Some(found) = places.flushes.iter().position(|(_, by_op)| !by_op)
            && let Some((number, _)) = places.flushes.remove(found)
        {
            self.followed[place(number)].complete(now, event);
        }
    }

    /// An event of a request with sectors: of all its I/Os.
    fn cover(&mut self, now: Nanos, event: &Event) {
        let step = match event.act {
            Act::Insert => INSERT,
            Act::Issue | Act::Requeue => ISSUE,
            Act::Complete => COMPLETE,
            _ => return,
        };
        if event.act == Act::Requeue {
            self.shared.notes.add(Kind::Requeues, event.number, String::new);
        }
        let (end, mut at) = (event.sector.saturating_add(event.sectors.into()), event.sector);
        let class = class(event.op);
        let mut found = false;
        while at < end {
            let Some((key, its_end)) = self.oldest_at(event, class, at, step) else {
                // No I/O has this sector: go on at the next that begins in the request.
                let places = &self.devices[event.device.0 as usize].by_sector[class];
                match places.range((at + 1, 0)..(end, 0)).next() {
                    Some(((start, _), _)) if *start > at => at = *start,
                    _ => break,
                }
                continue;
            };
            found = true;
            let until = its_end.min(end);
            let sectors = (until - at) as u32;
            at = until;
            let followed = &mut self.followed[(key.1 - self.first) as usize];
            if event.act == Act::Requeue {
                followed.left[ISSUE] = (followed.left[ISSUE] + sectors).min(followed.io.sectors);
                followed.requeued = true;
                continue;
            }
            followed.left[step] = followed.left[step].saturating_sub(sectors);
            // Events of bios have no priority, those of requests have.
            followed.io.prio = followed.io.prio.or(event.prio);
            match step {
                INSERT => {
                    followed.io.inserted = Some(now);
                    self.plugs.handed_over(&mut followed.io, key.1);
                }
                ISSUE => {
                    followed.io.issued = Some(now);
                    // Without a scheduler a request may go to the disk without an insert event.
                    followed.io.inserted = followed.io.inserted.max(followed.got);
                    followed.completes_twice =
                        FLUSHES.iter().any(|&flag| followed.io.flags.has(flag) && !event.flags.has(flag));
                    self.plugs.handed_over(&mut followed.io, key.1);
                }
                _ if followed.left[COMPLETE] == 0 => {
                    followed.complete(now, event);
                    if followed.completes_twice {
                        followed.over = false;
                        continue;
                    }
                    self.devices[event.device.0 as usize].by_sector[class].remove(&key);
                }
                _ => {}
            }
        }
        if !found && matches!(event.act, Act::Issue | Act::Complete) {
            self.shared.notes.add(Kind::NoQueue, event.number, String::new);
        }
    }

    /// The oldest I/O with this sector that waits for `step`: its key, its end.
    fn oldest_at(&self, event: &Event, class: usize, at: u64, step: usize) -> Option<((u64, u64), u64)> {
        let places = &self.devices[event.device.0 as usize];
        let waits = |number: u64| {
            let followed = &self.followed[(number - self.first) as usize];
            if event.act == Act::Requeue {
                followed.left[ISSUE] < followed.io.sectors
            } else {
                followed.left[step] > 0
            }
        };
        let map = &places.by_sector[class];
        let exact = map.range((at, 0)..=(at, u64::MAX)).find(|(key, _)| waits(key.1));
        if let Some((key, end)) = exact {
            return Some((*key, *end));
        }
        let from = at.saturating_sub(places.longest[class]);
        let holds = |((_, number), end): &(&(u64, u64), &u64)| **end > at && waits(*number);
        let found = map.range((from, 0)..(at, 0)).filter(holds).min_by_key(|((_, number), _)| *number);
        found.map(|(key, end)| (*key, *end))
    }

    /// The first followed I/O leaves, complete or not.
    fn leave(&mut self) -> Option<Io> {
        let followed = self.followed.pop_front()?;
        let number = self.first;
        self.first += 1;
        let io = followed.io;
        if !followed.over {
            if io.completed.is_none() {
                self.shared.notes.add(Kind::NoCompletion, io.number, String::new);
            }
            let places = &mut self.devices[io.device.0 as usize];
            if io.sectors == 0 {
                places.flushes.retain(|(other, _)| *other != number);
            } else {
                places.by_sector[class(io.op)].remove(&(io.sector.0, number));
            }
        }
        Some(io)
    }

    /// Whether I/Os were recorded both at a device and at one below it.
    fn check_levels(&mut self) {
        let has = |id: &NameId| self.has_ios.get(id.0 as usize).copied().unwrap_or(false);
        for (above, below) in &self.stacked {
            if has(above) && has(below) {
                let name = |id: &NameId| self.shared.tables.devices.name(*id).to_owned();
                let found = format!("{} lies on {}", name(above), name(below));
                if self.shared.notes.get(Kind::TwoLevels).is_none() {
                    self.shared.notes.add(Kind::TwoLevels, 0, || found);
                }
            }
        }
    }
}

impl<E: Events> Records for Matched<E> {
    fn next_io(&mut self) -> Result<Option<Io>, InputError> {
        loop {
            let first = self.followed.front();
            if first.is_some_and(|followed| followed.over) {
                return Ok(self.leave());
            }
            if self.followed.len() >= FOLLOWED_MAX {
                let number = self.followed[0].io.number;
                self.shared.notes.add(Kind::PastEnd, number, String::new);
                return Ok(self.leave());
            }
            if !self.step()? {
                self.check_levels();
                return Ok(self.leave());
            }
        }
    }

    fn header(&self) -> &Header {
        &self.shared.header
    }

    fn tables(&self) -> &Tables {
        &self.shared.tables
    }

    fn notes(&self) -> &Notes {
        &self.shared.notes
    }
}
