//! One process: fio's loop, as the simulator's process has it, with real I/O.

use std::io;
use std::num::NonZeroU64;
use std::os::fd::AsRawFd;
use std::sync::atomic::Ordering;

use blklab_core::source::fio::tally::IoTimes;
use blklab_core::workload::pattern::{IoUnit, Pattern};
use blklab_core::workload::random::{self, Stream};
use blklab_core::workload::rate::RateLimiter;
use blklab_core::workload::spec::{Direction, Engine, ThinkAfter};
use rand_core::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;
use rustix::io::{pread, pwrite};

use super::files::Files;
use super::queue::{Queue, Request};
use super::*;

/// What of a job this driver cannot do.
pub fn refuse(spec: &ProcessSpec) -> Result<(), &'static str> {
    let job = &spec.job;
    if job.access.rw.trims() && job.queueing.engine.is_queued() {
        return Err("the native driver trims only by engines that wait, such as psync: use one or fio");
    }
    if job.queueing.engine == Engine::Posixaio {
        return Err("the native driver knows no ioengine=posixaio: use libaio, io_uring or fio");
    }
    Ok(())
}

/// An I/O begun and not reaped.
#[derive(Clone, Copy, Debug)]
struct Slot {
    unit: IoUnit,
    start: Nanos,
    issued: Nanos,
}

/// A process at work. Times count from the run's epoch.
pub struct Process<'a> {
    spec: &'a ProcessSpec,
    run: &'a Run<'a>,
    files: Files,
    queue: Queue,
    pattern: Pattern,
    rate: Option<RateLimiter>,
    rng: Xoshiro256PlusPlus,
    slots: Vec<Option<Slot>>,
    free: Vec<u32>,
    /// Begun, not handed over.
    prepared: Vec<u32>,
    tally: Tally,
    now: Nanos,
    started: Nanos,
    think_end: Nanos,
    since_think: u32,
    unsynced: u32,
    wrote: bool,
    counting: bool,
    sleeps: u64,
}

impl<'a> Process<'a> {
    /// Wait for its start and open the device.
    pub fn new(spec: &'a ProcessSpec, run: &'a Run<'a>) -> io::Result<Process<'a>> {
        run.wait_to_start(spec);
        let job = &spec.job;
        cgroups::enter(run.plan, spec)?;
        sys::set_priority(job.priorities.base)?;
        // Sleeps may take 50 us longer otherwise, so that they can end with others'.
        rustix::thread::set_current_timer_slack(NonZeroU64::new(1))?;
        let depth = job.queueing.depth();
        let largest = Direction::ALL.map(|d| job.access.block_sizes[d].max()).into_iter().max().unwrap_or(0);
        let seed = job.access.randseed.unwrap_or(run.seed);
        let now = clock() - run.epoch;
        Ok(Process {
            spec,
            run,
            files: Files::open(spec, run.places)?,
            queue: Queue::new(job.queueing.engine, depth, largest as usize)?,
            pattern: Pattern::new(spec, seed),
            rate: RateLimiter::new(spec, seed),
            rng: Xoshiro256PlusPlus::seed_from_u64(random::stream_seed(seed, spec.id, Stream::Priority)),
            slots: vec![None; depth as usize],
            free: (0..depth).rev().collect(),
            prepared: Vec::with_capacity(depth as usize),
            tally: Tally::new(job.reporting.bw_average, job.reporting.iops_average),
            now,
            started: now,
            think_end: now,
            since_think: 0,
            unsynced: 0,
            wrote: false,
            counting: false,
            sleeps: 0,
        })
    }

    /// From its start to its end.
    pub fn live(mut self) -> io::Result<JobResult> {
        loop {
            let more = self.pass()?;
            self.drain()?;
            let durability = self.spec.job.durability;
            if self.wrote && (durability.end_fsync || durability.fsync_on_close) {
                self.files.sync()?;
                self.look();
                self.wrote = false;
            }
            if !more || !self.pattern.begin_pass() {
                return Ok(self.result());
            }
            if self.drops_pages() {
                self.files.drop_pages(None)?;
                self.look();
            }
        }
    }

    /// One pass over the workload; false when the process is to end.
    fn pass(&mut self) -> io::Result<bool> {
        let job = &self.spec.job;
        let count_from = self.started + job.timing.ramp_time;
        let end_by = job.timing.runtime.map_or(Nanos::NEVER, |runtime| count_from.saturating_add(runtime));
        let mut put_off = None;
        loop {
            if !self.counting && self.now >= count_from {
                self.counting = true;
                self.tally.restart(self.now);
            }
            let told = self.run.told_to_end[self.spec.id.0 as usize].load(Ordering::Relaxed);
            if self.now >= end_by || told {
                return Ok(false);
            }
            if job.think.time > Nanos::ZERO && self.think_is_due() {
                self.drain()?;
                self.think(end_by);
                continue;
            }
            if self.sync_is_due() {
                self.sync()?;
                continue;
            }
            let Some(unit) = put_off.take().or_else(|| self.pattern.next()) else { return Ok(true) };
            if unit.wrapped && self.drops_pages() {
                put_off = Some(IoUnit { wrapped: false, ..unit });
                self.drain()?;
                self.files.drop_pages(Some(unit.file))?;
                self.look();
                continue;
            }
            if let Some(rate) = &mut self.rate {
                let due = self.started.saturating_add(rate.due(unit.direction));
                if due > self.now {
                    put_off = Some(unit);
                    self.drain()?;
                    self.sleep_until(due.min(end_by));
                    continue;
                }
                rate.issued(unit.direction, unit.len);
            }
            self.begin(unit)?;
        }
    }

    fn begin(&mut self, unit: IoUnit) -> io::Result<()> {
        let job = &self.spec.job;
        if unit.direction == Direction::Write {
            self.wrote = true;
            self.unsynced += 1;
        }
        self.since_think += u32::from(job.think.after == ThinkAfter::Issue);
        let slot = self.free.pop().expect("the queue is reaped when it is full");
        self.slots[slot as usize] = Some(Slot { unit, start: self.now, issued: self.now });
        self.tally.depth(self.depth());
        if !job.queueing.engine.is_queued() {
            return self.block_on(slot, unit);
        }
        let (file, start) = self.files.get(unit.file);
        let (at, write) = (start + unit.offset, unit.direction == Direction::Write);
        let percent = job.priorities.raised_percent[unit.direction];
        let raised = percent > 0 && random::chance(&mut self.rng, percent);
        let prio = if raised { job.priorities.raised[unit.direction] } else { job.priorities.base };
        let (fd, bytes, prio) = (file.as_raw_fd(), unit.len, sys::priority(prio));
        self.queue.prepare(Request { slot, fd, write, at, bytes, prio });
        self.prepared.push(slot);
        if self.free.is_empty() {
            return self.reap();
        }
        if self.prepared.len() as u32 >= job.queueing.batch_submit {
            self.submit(0)?;
        }
        Ok(())
    }

    /// I/O by an engine that blocks.
    fn block_on(&mut self, slot: u32, unit: IoUnit) -> io::Result<()> {
        let (file, start) = self.files.get(unit.file);
        let (at, len) = (start + unit.offset, unit.len);
        let buffer = self.queue.buffer(slot, len as usize);
        let done = match unit.direction {
            Direction::Read => pread(file, buffer, at)? as u32,
            Direction::Write => pwrite(file, buffer, at)? as u32,
            Direction::Trim => sys::discard(file, at, len.into()).map(|()| len)?,
        };
        self.look();
        self.tally.submit_levels[1] += 1;
        self.tally.complete_levels[1] += 1;
        self.reaped(slot, done)
    }

    /// Hand over what is prepared; an engine that can waits for `least` by the same call.
    fn submit(&mut self, least: u32) -> io::Result<()> {
        if self.prepared.is_empty() {
            return Ok(());
        }
        self.queue.submit(least)?;
        self.tally.submit_levels[Tally::batch_level(self.prepared.len() as u32)] += 1;
        if self.spec.job.queueing.engine == Engine::Libaio {
            // It may have slept for want of a tag; for fio they are issued when it returns.
            self.look();
        }
        for slot in self.prepared.drain(..) {
            self.slots[slot as usize].as_mut().expect("it was begun").issued = self.now;
        }
        Ok(())
    }

    /// Hand over what is prepared, wait for `least` completions and reap at most `most`.
    fn reap_some(&mut self, least: u32, most: u32) -> io::Result<()> {
        self.submit(least)?;
        self.queue.wait(least, most)?;
        self.look();
        let count = self.queue.ready().min(most);
        for _ in 0..count {
            let Some((slot, bytes)) = self.queue.take() else { break };
            self.reaped(slot, bytes?)?;
        }
        self.tally.complete_levels[Tally::batch_level(count)] += 1;
        Ok(())
    }

    /// All slots are in use: wait for completions, down to the depth to refill from.
    fn reap(&mut self) -> io::Result<()> {
        let queueing = self.spec.job.queueing;
        let low = queueing.low.min(self.slots.len() as u32 - 1);
        loop {
            let least = queueing.batch_complete_min.clamp(1, self.depth());
            self.reap_some(least, queueing.batch_complete_max.max(least))?;
            if self.depth() <= low {
                return Ok(());
            }
        }
    }

    /// Wait for everything under way.
    fn drain(&mut self) -> io::Result<()> {
        while self.depth() > 0 {
            self.reap_some(1, u32::MAX)?;
        }
        Ok(())
    }

    fn reaped(&mut self, slot: u32, done: u32) -> io::Result<()> {
        let Slot { unit, start, issued } = self.slots[slot as usize].take().expect("it was begun");
        if done != unit.len {
            let what = format!("{done} of {} bytes at {}", unit.len, unit.offset);
            return Err(io::Error::other(what));
        }
        self.free.push(slot);
        let job = &self.spec.job;
        let bytes = u64::from(unit.len);
        let times = IoTimes { start, issued, reaped: self.now };
        self.tally.io(unit.direction as usize, bytes, times, job.queueing.engine.is_queued());
        let write = unit.direction != Direction::Read;
        let clat = self.now.saturating_sub(issued);
        self.run.series.lock().expect("nobody panics with it").completed(self.now, write, bytes, clat);
        self.since_think += u32::from(job.think.after == ThinkAfter::Complete);
        Ok(())
    }

    /// fio drops its files' pages when it begins them anew.
    fn drops_pages(&self) -> bool {
        self.spec.job.invalidate && !self.spec.job.queueing.direct
    }

    /// I/Os begun and not reaped.
    fn depth(&self) -> u32 {
        (self.slots.len() - self.free.len()) as u32
    }

    /// What time is it? A call that took any has slept, for CPU work takes none.
    fn look(&mut self) {
        let now = clock() - self.run.epoch;
        self.sleeps += u64::from(now > self.now);
        self.now = now;
    }

    fn sleep_until(&mut self, at: Nanos) {
        sys::sleep_until(self.run.epoch + at);
        self.look();
    }

    fn think_is_due(&self) -> bool {
        let think = &self.spec.job.think;
        (think.blocks > 0 && self.since_think >= think.blocks)
            || (think.io_time > Nanos::ZERO && self.now.saturating_sub(self.think_end) >= think.io_time)
    }

    /// Pause. What of it is to be spent on the CPU is slept as well.
    fn think(&mut self, end_by: Nanos) {
        let begun = self.now;
        self.since_think = 0;
        self.think_end = (begun + self.spec.job.think.time).min(end_by.max(begun));
        if let Some(rate) = &mut self.rate {
            for direction in Direction::ALL {
                rate.paused(direction, self.think_end - begun);
            }
        }
        self.sleep_until(self.think_end);
    }

    fn sync_is_due(&self) -> bool {
        let durability = &self.spec.job.durability;
        let due = |every| every > 0 && self.unsynced >= every;
        due(durability.fsync_every) || due(durability.fdatasync_every)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.submit(0)?;
        let begun = self.now;
        self.files.sync()?;
        self.look();
        self.tally.sync(self.now.saturating_sub(begun));
        self.unsynced = 0;
        Ok(())
    }

    fn result(&mut self) -> JobResult {
        let job = &self.spec.job;
        let [read, write, trim] = self.tally.directions(self.now);
        let (sync_lat, sync_hist) = self.tally.syncs();
        JobResult {
            name: job.name.clone(),
            group: job.group,
            group_reporting: job.reporting.group_reporting,
            options: job.given.clone(),
            percentiles: job.reporting.percentiles.clone(),
            start_ns: self.started.0,
            end_ns: self.now.0,
            user_ns: 0,
            system_ns: 0,
            context_switches: self.sleeps,
            read,
            write,
            trim,
            sync_lat,
            sync_hist,
            depth_levels: self.tally.depth_levels,
            submit_levels: self.tally.submit_levels,
            complete_levels: self.tally.complete_levels,
            latency_levels: self.tally.latency_levels(),
        }
    }
}
