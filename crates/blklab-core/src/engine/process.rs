//! One fio process: the loop of `do_io()` in fio's backend, as a state machine.
//!
//! A process runs until it has to wait: for its own CPU work, for a pause, for a free
//! request, for pages or for completions. Everything that takes CPU time moves its clock
//! on first and has its effect at the end of that time.

use std::collections::VecDeque;

use rand_core::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

use super::sync::{SyncProgress, Syncing};
use super::tally::{IoTimes, Tally};
use super::world::{Asleep, Owner, PageWork, Submitter, Wait, World};
use crate::block::{BioStream, Submitted};
use crate::pagecache::{self, Advice, Dirtier, FileId, ReadAhead};
use crate::request::{Bio, IoPrio, ProcessId};
use crate::result::JobResult;
use crate::units::{Bytes, Nanos, Sector};
use crate::workload::pattern::{IoUnit, Pattern};
use crate::workload::plan::ProcessSpec;
use crate::workload::random::{self, Stream};
use crate::workload::rate::RateLimiter;
use crate::workload::spec::{AdviceHint, Direction, SyncMode, ThinkAfter};

/// An I/O unit that fio has begun to work on (`struct io_u`).
#[derive(Clone, Copy, Debug)]
struct Slot {
    unit: IoUnit,
    start: Nanos,
    issued: Nanos,
    /// Bios not ended.
    bios_left: u32,
}

/// What follows when everything under way has been reaped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    Finish,
    Think,
    /// Sleep until then: the rate limit allows no I/O before.
    Pace(Nanos),
    /// Drop the cached pages of these regions' files.
    Invalidate(u32, u32),
    Pass,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Emptying the page cache before anything else.
    DropCaches,
    /// Decide what to do next.
    Top,
    /// Making the page cache and the disk agree on this slot's range.
    Uncache(u32),
    /// The CPU work of submitting this slot is done.
    Prepared(u32),
    /// Handing over what is prepared.
    Commit,
    /// All slots are in use: wait for completions.
    Reap,
    /// Reap everything, then go on with this.
    Drain(Next),
    /// A buffered I/O, so many bytes of which are done.
    Buffered {
        slot: u32,
        done: u64,
    },
    /// The buffered I/O's pages are being handed over; then this is to be waited for.
    BufferedPages {
        slot: u32,
        done: u64,
        wait: Option<pagecache::Wait>,
    },
    /// The buffered I/O is done; O_SYNC may follow.
    BufferedDone(u32),
    /// Making a write of this slot durable.
    SyncWrite(u32),
    /// fsync, then `Top`.
    Sync,
    /// Dropping the cached pages of these regions' files.
    Invalidate(u32, u32),
    /// fsync of every file at the end of a pass; `last`: no other may follow.
    PassSync {
        last: bool,
    },
    Ended,
}

/// How a step of the state machine ended.
enum Flow {
    /// Go on in the new state.
    Go,
    /// Go on at that time.
    At(Nanos),
    /// Somebody else will wake the process.
    Sleep,
}

/// A fio process at work.
pub struct Process {
    spec: ProcessSpec,
    who: Submitter,
    state: State,
    pattern: Pattern,
    rate: Option<RateLimiter>,
    rng: Xoshiro256PlusPlus,
    /// One per region of the specification.
    read_ahead: Vec<ReadAhead>,
    dirtier: Dirtier,
    pages: PageWork,
    syncing: Syncing,
    slots: Vec<Slot>,
    free: Vec<u32>,
    /// Begun, not handed over.
    prepared: VecDeque<u32>,
    /// What is left of the first of those.
    stream: Option<BioStream>,
    /// Slots handed over by the commit under way.
    handed_over: u32,
    in_flight: u32,
    /// Done, not reaped.
    done: VecDeque<u32>,
    /// Completions that the sleeping process waits for; 0 if it waits for something else.
    wake_at_done: usize,
    /// An I/O that had to wait for a pause.
    put_off: Option<IoUnit>,
    unsynced: u32,
    since_think: u32,
    think_end: Nanos,
    wrote: bool,
    counting: bool,
    count_from: Nanos,
    end_by: Nanos,
    told_to_end: bool,
    started: Nanos,
    ended: Nanos,
    system: Nanos,
    user: Nanos,
    sleeps: u64,
    tally: Tally,
}

impl Process {
    /// A process that has not started.
    pub fn new(spec: &ProcessSpec, seed: u64, world: &World) -> Process {
        let job = &spec.job;
        let depth = job.queueing.depth();
        let cpu = (spec.id.0 % u32::from(world.host.cpus)) as u16;
        let who = Submitter {
            process: spec.id,
            prio: job.priorities.base,
            cpu,
            hw_queue: cpu % world.block.limits().hw_queues,
            waits: true,
        };
        // fio tells the kernel what to expect (`fadvise_hint`).
        let advice = match job.advice {
            AdviceHint::Off => Advice::Normal,
            AdviceHint::AsRw if job.access.rw.is_random() => Advice::Random,
            AdviceHint::Random => Advice::Random,
            AdviceHint::AsRw | AdviceHint::Sequential => Advice::Sequential,
        };
        let seed = job.access.randseed.unwrap_or(seed);
        let unit = IoUnit { direction: Direction::Read, wrapped: false, file: 0, offset: 0, len: 0 };
        let slot = Slot { unit, start: Nanos::ZERO, issued: Nanos::ZERO, bios_left: 0 };
        Process {
            who,
            state: if job.drop_caches { State::DropCaches } else { State::Top },
            pattern: Pattern::new(spec, seed),
            rate: RateLimiter::new(spec, seed),
            rng: Xoshiro256PlusPlus::seed_from_u64(random::stream_seed(seed, spec.id, Stream::Priority)),
            read_ahead: spec.regions.iter().map(|_| world.cache.open(advice)).collect(),
            dirtier: world.cache.dirtier(),
            pages: PageWork::default(),
            syncing: Syncing::default(),
            slots: vec![slot; depth as usize],
            free: (0..depth).rev().collect(),
            prepared: VecDeque::with_capacity(depth as usize),
            stream: None,
            handed_over: 0,
            in_flight: 0,
            done: VecDeque::with_capacity(depth as usize),
            wake_at_done: 0,
            put_off: None,
            unsynced: 0,
            since_think: 0,
            think_end: Nanos::ZERO,
            wrote: false,
            counting: false,
            count_from: Nanos::ZERO,
            end_by: Nanos::NEVER,
            told_to_end: false,
            started: Nanos::ZERO,
            ended: Nanos::ZERO,
            system: Nanos::ZERO,
            user: Nanos::ZERO,
            sleeps: 0,
            tally: Tally::new(job.reporting.bw_average, job.reporting.iops_average),
            spec: spec.clone(),
        }
    }

    /// Its number.
    pub fn id(&self) -> ProcessId {
        self.spec.id
    }

    /// What it was asked to do.
    pub fn spec(&self) -> &ProcessSpec {
        &self.spec
    }

    /// It has ended.
    pub fn has_ended(&self) -> bool {
        self.state == State::Ended
    }

    /// Begin at `now`.
    pub fn start(&mut self, now: Nanos) {
        let timing = &self.spec.job.timing;
        self.started = now;
        self.count_from = now + timing.ramp_time;
        self.end_by = timing.runtime.map_or(Nanos::NEVER, |runtime| self.count_from.saturating_add(runtime));
        self.think_end = now;
    }

    /// End at the next opportunity (`exitall`).
    pub fn tell_to_end(&mut self) {
        self.told_to_end = true;
    }

    /// A bio of direct I/O has ended: CPU work, and the process woken if that was what it
    /// waited for.
    #[inline]
    pub fn bio_ended(&mut self, slot: u32, world: &mut World) {
        let io = &mut self.slots[slot as usize];
        io.bios_left -= 1;
        if io.bios_left > 0 {
            return;
        }
        self.in_flight -= 1;
        self.done.push_back(slot);
        let cost = world.host.complete;
        let at = world.cpus.work(self.who.cpu, world.now, cost);
        self.system += cost;
        if self.wake_at_done > 0 && self.done.len() >= self.wake_at_done {
            self.wake_at_done = 0;
            world.wake(self.spec.id, at);
        }
    }

    /// The flush that it waited for has ended.
    pub fn flush_ended(&mut self, world: &mut World) {
        self.syncing.flush_ended();
        let at = world.cpus.work(self.who.cpu, world.now, world.host.complete);
        world.wake(self.spec.id, at);
    }

    /// Run until it has to wait or has ended.
    #[inline]
    pub fn run(&mut self, world: &mut World) {
        world.begin(self.spec.id);
        loop {
            let flow = match self.state {
                State::DropCaches => {
                    // sync(1) before it would make no difference: nobody has written yet, or
                    // dirty pages stay, as they do in the kernel.
                    world.cache.drop_caches();
                    self.go(State::Top)
                }
                State::Top => self.top(world),
                State::Uncache(slot) => self.uncache(slot, world),
                State::Prepared(slot) => self.prepared(slot),
                State::Commit => self.commit(world),
                State::Reap => self.reap(world),
                State::Drain(next) => self.drain(next, world),
                State::Buffered { slot, done } => self.buffered(slot, done, world),
                State::BufferedPages { slot, done, wait } => self.buffered_pages(slot, done, wait, world),
                State::BufferedDone(slot) => self.buffered_done(slot, world),
                State::SyncWrite(slot) => self.sync_write(slot, world),
                State::Sync => self.sync(world),
                State::Invalidate(region, end) => self.invalidate(region, end, world),
                State::PassSync { last } => self.pass_sync(last, world),
                State::Ended => return,
            };
            match flow {
                Flow::Go => {}
                Flow::At(at) => {
                    if !world.advance_to(at) {
                        world.wake(self.spec.id, at);
                        return;
                    }
                }
                Flow::Sleep => {
                    self.sleeps += 1;
                    return;
                }
            }
        }
    }

    /// I/Os begun and not reaped (fio's `cur_depth`).
    fn depth(&self) -> u32 {
        self.slots.len() as u32 - self.free.len() as u32
    }

    #[inline]
    fn top(&mut self, world: &mut World) -> Flow {
        let now = world.now;
        if !self.counting && now >= self.count_from {
            self.counting = true;
            self.tally.restart(now);
        }
        if now >= self.end_by || self.told_to_end {
            return self.go(State::Drain(Next::Finish));
        }
        let job = &self.spec.job;
        if job.think.time > Nanos::ZERO && self.think_is_due(now) {
            return self.go(State::Drain(Next::Think));
        }
        if self.sync_is_due() {
            self.syncing.begin(now);
            return self.go(if self.prepared.is_empty() { State::Sync } else { State::Commit });
        }
        let unit = match self.put_off.take() {
            Some(unit) => unit,
            None => match self.pattern.next() {
                None => return self.go(State::Drain(Next::Pass)),
                Some(unit) => unit,
            },
        };
        if unit.wrapped && self.drops_pages() {
            self.put_off = Some(IoUnit { wrapped: false, ..unit });
            let region = self.region(unit.file);
            return self.go(State::Drain(Next::Invalidate(region, region + 1)));
        }
        if let Some(rate) = &mut self.rate {
            let due = self.started.saturating_add(rate.due(unit.direction));
            if due > now {
                self.put_off = Some(unit);
                return self.go(State::Drain(Next::Pace(due.min(self.end_by))));
            }
            rate.issued(unit.direction, unit.len);
        }
        self.begin_io(unit, world)
    }

    #[inline]
    fn begin_io(&mut self, unit: IoUnit, world: &mut World) -> Flow {
        let slot = self.free.pop().expect("Top is left for Reap when no slot is free");
        self.slots[slot as usize] = Slot { unit, start: world.now, issued: world.now, bios_left: 0 };
        let job = &self.spec.job;
        if unit.direction == Direction::Write {
            self.wrote = true;
            self.unsynced += 1;
        }
        self.since_think += u32::from(job.think.after == ThinkAfter::Issue);
        if !job.queueing.direct && unit.direction != Direction::Trim {
            return self.go(State::Buffered { slot, done: 0 });
        }
        if world.cache.is_cached(FileId(unit.file), unit.offset, u64::from(unit.len)) {
            self.syncing.begin(world.now);
            return self.go(State::Uncache(slot));
        }
        self.submit_cost(slot, world)
    }

    /// The CPU work of submitting a direct I/O.
    #[inline]
    fn submit_cost(&mut self, slot: u32, world: &mut World) -> Flow {
        self.state = State::Prepared(slot);
        let cost = world.host.submit;
        self.system += cost;
        Flow::At(world.cpus.submit(self.who.cpu, world.now, cost))
    }

    /// Direct I/O to a range of which pages are cached: dirty ones go to the disk first,
    /// and what is written or trimmed is dropped (`kiocb_invalidate_pages`).
    fn uncache(&mut self, slot: u32, world: &mut World) -> Flow {
        let IoUnit { direction, file, offset, len, .. } = self.slots[slot as usize].unit;
        let (file, len) = (FileId(file), u64::from(len));
        if self.syncing.write_range(file, offset, len, self.who, world) == SyncProgress::Asleep {
            return Flow::Sleep;
        }
        if direction != Direction::Read {
            world.cache.invalidate(file, offset, len);
        }
        self.submit_cost(slot, world)
    }

    fn go(&mut self, state: State) -> Flow {
        self.state = state;
        Flow::Go
    }

    /// Where the loop goes on once an I/O has been queued.
    fn queued(&mut self) -> Flow {
        self.go(if self.free.is_empty() { State::Reap } else { State::Top })
    }

    #[inline]
    fn prepared(&mut self, slot: u32) -> Flow {
        self.prepared.push_back(slot);
        self.tally.depth(self.depth());
        let batch = self.spec.job.queueing.batch_submit;
        if self.prepared.len() as u32 >= batch || self.free.is_empty() {
            self.go(State::Commit)
        } else {
            self.go(State::Top)
        }
    }

    /// `io_submit()`: all that is prepared becomes bios.
    #[inline]
    fn commit(&mut self, world: &mut World) -> Flow {
        while let Some(&slot) = self.prepared.front() {
            let mut stream = match self.stream.take() {
                Some(stream) => stream,
                None => self.bios(slot, world),
            };
            if stream.submit(world.now, &mut world.block) == Submitted::NoRequest {
                // A plug is flushed before its owner sleeps.
                world.unplug();
                if stream.submit(world.now, &mut world.block) == Submitted::NoRequest {
                    world.sleep_until(self.spec.id, Wait::Request, Some(stream.needs()));
                    self.stream = Some(stream);
                    return Flow::Sleep;
                }
            }
            self.prepared.pop_front();
            self.in_flight += 1;
            self.handed_over += 1;
            if self.spec.job.queueing.engine.is_queued() {
                self.slots[slot as usize].issued = world.now;
            }
        }
        world.unplug();
        world.pass_on_request();
        self.tally.submit_levels[Tally::batch_level(self.handed_over)] += 1;
        self.handed_over = 0;
        self.queued()
    }

    /// The bios of a direct I/O.
    #[inline]
    fn bios(&mut self, slot: u32, world: &World) -> BioStream {
        let job = &self.spec.job;
        let io = &mut self.slots[slot as usize];
        let unit = io.unit;
        let file = &world.files[unit.file as usize];
        let sectors = Bytes(u64::from(unit.len)).sectors() as u32;
        let max_sectors = world.block.limits().max_sectors;
        io.bios_left = BioStream::parts(sectors, max_sectors);
        let prio = prio(&mut self.rng, &job.priorities, unit.direction);
        let whole = Bio {
            op: unit.direction.op(),
            sector: Sector(file.start.0 + Bytes(unit.offset).to_sector().0),
            sectors,
            sync: true,
            fua: unit.direction == Direction::Write && job.durability.mode != SyncMode::None,
            process: self.spec.id,
            prio,
            cpu: self.who.cpu,
            hw_queue: self.who.hw_queue,
            owner: Owner::Direct(self.spec.id, slot).pack(),
        };
        BioStream::new(whole, max_sectors)
    }

    /// Wait until `least` I/Os are done; true when they are.
    #[inline]
    fn await_done(&mut self, least: usize) -> bool {
        self.wake_at_done = if self.done.len() >= least { 0 } else { least };
        self.wake_at_done == 0
    }

    #[inline]
    fn reap(&mut self, world: &mut World) -> Flow {
        let queueing = self.spec.job.queueing;
        if !self.prepared.is_empty() {
            return self.go(State::Commit);
        }
        let least = queueing.batch_complete_min.clamp(1, self.depth());
        if !self.await_done(least as usize) {
            return Flow::Sleep;
        }
        self.reap_done(queueing.batch_complete_max.max(least), world.now, world);
        let low = queueing.low.min(self.slots.len() as u32 - 1);
        if self.depth() > low { Flow::Go } else { self.go(State::Top) }
    }

    #[inline]
    fn reap_done(&mut self, most: u32, now: Nanos, world: &mut World) {
        let count = (self.done.len() as u32).min(most);
        for _ in 0..count {
            let Some(slot) = self.done.pop_front() else { break };
            self.reaped(slot, now, world);
        }
        self.tally.complete_levels[Tally::batch_level(count)] += 1;
    }

    #[inline]
    fn reaped(&mut self, slot: u32, now: Nanos, world: &mut World) {
        let Slot { unit, start, issued, .. } = self.slots[slot as usize];
        self.free.push(slot);
        let queued = self.spec.job.queueing.engine.is_queued();
        let bytes = u64::from(unit.len);
        self.tally.io(unit.direction as usize, bytes, IoTimes { start, issued, reaped: now }, queued);
        let write = unit.direction != Direction::Read;
        world.block.series.completed(now, write, bytes, now.saturating_sub(issued));
        self.since_think += u32::from(self.spec.job.think.after == ThinkAfter::Complete);
    }

    fn drain(&mut self, next: Next, world: &mut World) -> Flow {
        if !self.prepared.is_empty() {
            // Commit ends in Top or Reap, both of which find their way back here.
            return self.go(State::Commit);
        }
        while self.depth() > 0 {
            if !self.await_done(1) {
                return Flow::Sleep;
            }
            self.reap_done(u32::MAX, world.now, world);
        }
        match next {
            Next::Finish => self.go(State::PassSync { last: true }),
            Next::Think => self.think(world),
            Next::Pace(until) => {
                self.state = State::Top;
                Flow::At(until)
            }
            Next::Pass => self.go(State::PassSync { last: false }),
            Next::Invalidate(region, end) => self.go(State::Invalidate(region, end)),
        }
    }

    fn think_is_due(&self, now: Nanos) -> bool {
        let think = &self.spec.job.think;
        (think.blocks > 0 && self.since_think >= think.blocks)
            || (think.io_time > Nanos::ZERO && now.saturating_sub(self.think_end) >= think.io_time)
    }

    fn think(&mut self, world: &mut World) -> Flow {
        let think = self.spec.job.think;
        self.since_think = 0;
        let spun = world.cpus.work(self.who.cpu, world.now, think.spin.min(think.time));
        self.user += think.spin.min(think.time);
        self.think_end = (world.now + think.time).max(spun).min(self.end_by.max(world.now));
        if let Some(rate) = &mut self.rate {
            for direction in Direction::ALL {
                rate.paused(direction, self.think_end - world.now);
            }
        }
        self.state = State::Top;
        Flow::At(self.think_end)
    }

    /// A buffered read or write goes on at byte `done`.
    #[inline]
    fn buffered(&mut self, slot: u32, done: u64, world: &mut World) -> Flow {
        let unit = self.slots[slot as usize].unit;
        let (offset, left) = (unit.offset + done, u64::from(unit.len) - done);
        let file = FileId(unit.file);
        self.pages.begin(false);
        let step = if unit.direction == Direction::Read {
            let region = self.region(unit.file);
            let ra = &mut self.read_ahead[region as usize];
            world.cache.read(file, offset, left, ra, &mut self.pages.ranges)
        } else {
            let (dirtier, out) = (&mut self.dirtier, &mut self.pages.ranges);
            let step = world.cache.write(world.now, file, offset, left, dirtier, out);
            world.wake_flusher();
            step
        };
        let done = done + step.bytes;
        let begun = if done == step.bytes { world.host.syscall } else { Nanos::ZERO };
        let cost = begun + world.host.copying(step.bytes);
        self.system += cost;
        let at = world.cpus.work(self.who.cpu, world.now, cost);
        self.state = if self.pages.ranges.is_empty() && step.wait.is_none() {
            State::BufferedDone(slot)
        } else {
            State::BufferedPages { slot, done, wait: step.wait }
        };
        Flow::At(at)
    }

    /// Hand the pages over, then wait for what the cache said.
    fn buffered_pages(
        &mut self,
        slot: u32,
        done: u64,
        wait: Option<pagecache::Wait>,
        world: &mut World,
    ) -> Flow {
        if self.pages.hand_over(world, self.who) == Err(Asleep) {
            return Flow::Sleep;
        }
        let file = FileId(self.slots[slot as usize].unit.file);
        match wait {
            None => self.go(State::BufferedDone(slot)),
            Some(pagecache::Wait::Page(page)) if world.cache.is_reading(file, page) => {
                world.sleep_until(self.spec.id, Wait::Pages(file), None);
                Flow::Sleep
            }
            Some(pagecache::Wait::Page(_)) => self.go(State::Buffered { slot, done }),
            Some(pagecache::Wait::Memory) => {
                world.sleep_until(self.spec.id, Wait::AnyPages, None);
                self.state = State::Buffered { slot, done };
                Flow::Sleep
            }
            Some(pagecache::Wait::Pause(pause)) => {
                self.state = if done == u64::from(self.slots[slot as usize].unit.len) {
                    State::BufferedDone(slot)
                } else {
                    State::Buffered { slot, done }
                };
                self.sleeps += 1;
                Flow::At(world.now + pause)
            }
        }
    }

    #[inline]
    fn buffered_done(&mut self, slot: u32, world: &mut World) -> Flow {
        let durable = self.spec.job.durability.mode != SyncMode::None;
        if durable && self.slots[slot as usize].unit.direction == Direction::Write {
            self.syncing.begin(world.now);
            return self.go(State::SyncWrite(slot));
        }
        self.blocking_done(slot, world)
    }

    /// An I/O that blocked its caller is done: reaped at once by a blocking engine, or to
    /// be reaped like any other by a queued one.
    #[inline]
    fn blocking_done(&mut self, slot: u32, world: &mut World) -> Flow {
        self.tally.depth(self.depth());
        self.tally.submit_levels[1] += 1;
        if self.spec.job.queueing.engine.is_queued() {
            self.slots[slot as usize].issued = world.now;
            self.done.push_back(slot);
            return self.queued();
        }
        self.tally.complete_levels[1] += 1;
        self.reaped(slot, world.now, world);
        self.go(State::Top)
    }

    fn sync_write(&mut self, slot: u32, world: &mut World) -> Flow {
        let unit = self.slots[slot as usize].unit;
        match self.syncing.run(&[unit.file], !self.spec.job.queueing.direct, self.who, world) {
            SyncProgress::Asleep => Flow::Sleep,
            SyncProgress::Done => self.blocking_done(slot, world),
        }
    }

    fn sync_is_due(&self) -> bool {
        let durability = &self.spec.job.durability;
        [durability.fsync_every, durability.fdatasync_every]
            .iter()
            .any(|&every| every > 0 && self.unsynced >= every)
    }

    fn sync_files(&mut self, world: &mut World) -> SyncProgress {
        let files = self.spec.regions.iter().map(|region| region.file).collect::<Vec<_>>();
        self.syncing.run(&files, !self.spec.job.queueing.direct, self.who, world)
    }

    fn sync(&mut self, world: &mut World) -> Flow {
        match self.sync_files(world) {
            SyncProgress::Asleep => Flow::Sleep,
            SyncProgress::Done => {
                self.tally.sync(world.now - self.syncing.begun());
                self.unsynced = 0;
                self.go(State::Top)
            }
        }
    }

    fn pass_sync(&mut self, last: bool, world: &mut World) -> Flow {
        let durability = self.spec.job.durability;
        if self.wrote && (durability.end_fsync || durability.fsync_on_close) {
            if !self.syncing.is_running() {
                self.syncing.begin(world.now);
            }
            if self.sync_files(world) == SyncProgress::Asleep {
                return Flow::Sleep;
            }
            self.wrote = false;
        }
        if !last && self.pattern.begin_pass() {
            let regions = if self.drops_pages() { self.spec.regions.len() as u32 } else { 0 };
            return self.go(State::Invalidate(0, regions));
        }
        self.state = State::Ended;
        self.ended = world.now;
        Flow::Go
    }

    /// fio drops its files' pages when it begins them anew.
    fn drops_pages(&self) -> bool {
        self.spec.job.invalidate && !self.spec.job.queueing.direct
    }

    /// Which of the process's regions lies in that file.
    #[inline]
    fn region(&self, file: u32) -> u32 {
        let regions = &self.spec.regions;
        // A process's files mostly follow one another.
        let guess = file.wrapping_sub(regions[0].file) as usize;
        if regions.get(guess).is_some_and(|region| region.file == file) {
            return guess as u32;
        }
        regions.iter().position(|region| region.file == file).expect("the pattern keeps to the regions")
            as u32
    }

    /// `posix_fadvise(POSIX_FADV_DONTNEED)`: dirty pages are handed to the disk, clean
    /// ones dropped.
    fn invalidate(&mut self, region: u32, end: u32, world: &mut World) -> Flow {
        if region == end {
            return self.go(State::Top);
        }
        let file = FileId(self.spec.regions[region as usize].file);
        if !self.syncing.is_running() {
            self.syncing.begin(world.now);
        }
        if self.syncing.write_out(file, self.who, world) == SyncProgress::Asleep {
            return Flow::Sleep;
        }
        world.cache.invalidate(file, 0, u64::MAX);
        self.go(State::Invalidate(region + 1, end))
    }

    /// What it measured.
    pub fn result(&self) -> JobResult {
        let job = &self.spec.job;
        let [read, write, trim] = self.tally.directions(self.ended);
        let (sync_lat, sync_hist) = self.tally.syncs();
        JobResult {
            name: job.name.clone(),
            group: job.group,
            group_reporting: job.reporting.group_reporting,
            options: job.given.clone(),
            percentiles: job.reporting.percentiles.clone(),
            start_ns: self.started.0,
            end_ns: self.ended.0,
            user_ns: self.user.0,
            system_ns: self.system.0,
            context_switches: self.sleeps,
            read,
            write,
            trim,
            sync_lat,
            sync_hist,
            depth_levels: self.tally.depth_levels,
            submit_levels: self.tally.submit_levels,
            complete_levels: self.tally.complete_levels,
            latency_levels: self.tally.latency_levels.to_vec(),
        }
    }
}

/// The priority of one I/O (`cmdprio_percentage`).
#[inline]
fn prio(
    rng: &mut Xoshiro256PlusPlus,
    priorities: &crate::workload::spec::Priorities,
    direction: Direction,
) -> IoPrio {
    let percent = priorities.raised_percent[direction];
    if percent > 0 && random::chance(rng, percent) { priorities.raised[direction] } else { priorities.base }
}
