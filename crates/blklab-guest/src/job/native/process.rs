//! One process: fio's loop with real I/O. An [`Issuer`] decides the next step.

use std::io;
use std::num::NonZeroU64;
use std::os::fd::AsRawFd;
use std::sync::atomic::Ordering;

use blklab_core::scheduler::CgroupId;
use blklab_core::source::fio::issuer::{Issuer, Step, Then};
use blklab_core::source::fio::tally::IoTimes;
use blklab_core::source::fio::units::{Started, Units};
use blklab_core::workload::pattern::IoUnit;
use blklab_core::workload::spec::{Direction, Engine, SyncMode};
use rustix::io::{pread, pwrite};

use super::files::Files;
use super::queue::{Queue, Request};
use super::*;

/// The reason if this driver cannot run the job.
pub fn refuse(spec: &ProcessSpec) -> Result<(), &'static str> {
    let job = &spec.job;
    if job.access.rw.trims() && job.queueing.engine.is_queued() {
        return Err(
            "the native driver trims only by engines that wait, such as psync: use one, or --driver fio",
        );
    }
    if job.queueing.engine == Engine::Posixaio {
        return Err("the native driver knows no ioengine=posixaio: use libaio or io_uring, or --driver fio");
    }
    Ok(())
}

/// A process and its state. Times count from the run's epoch.
pub struct Process<'a> {
    spec: &'a ProcessSpec,
    run: &'a Run<'a>,
    files: Files,
    /// Its direct I/O comes as of files in a file system.
    as_files: Option<AsFiles>,
    queue: Queue,
    issuer: Issuer,
    units: Units,
    /// Started, not submitted.
    prepared: Vec<Request>,
    now: Nanos,
    /// The modelled CPU on which it stays.
    cpu: u16,
    /// The kernel does the CPU work of its calls through the page cache.
    is_charged_in_calls: bool,
    /// The kernel does the CPU work of its completions.
    is_charged_at_ends: bool,
    /// Completions that can be taken and whose CPU work is counted.
    counted: u32,
    sleeps: u64,
}

impl<'a> Process<'a> {
    /// Waits for its start and opens the device.
    pub fn new(spec: &'a ProcessSpec, run: &'a Run<'a>) -> io::Result<Process<'a>> {
        // Otherwise a sleep may take 50 us longer, so that it can end together with others.
        rustix::thread::set_current_timer_slack(NonZeroU64::new(1))?;
        run.wait_to_start(spec);
        let job = &spec.job;
        if spec.cgroup != CgroupId::ROOT {
            cgroups::enter(run.plan.cgroups.path(spec.cgroup))?;
        }
        sys::set_priority(job.priorities.base)?;
        let depth = job.queueing.depth();
        let largest = Direction::ALL.map(|d| job.access.block_sizes[d].max()).into_iter().max().unwrap_or(0);
        let now = clock() - run.epoch;
        let cpu = run.work.cpu_of(spec);
        run.work.stay_on(cpu);
        let works_in_calls = !job.queueing.direct && job.queueing.engine != Engine::IoUring;
        let as_files = run.as_files.filter(|_| AsFiles::fits(&job.queueing));
        let waits_as_files = as_files.is_some() && !job.queueing.engine.is_queued();
        let engine = if waits_as_files { Engine::Libaio } else { job.queueing.engine };
        let mut queue = Queue::new(engine, depth, largest as usize)?;
        if job.queueing.direct {
            queue.touch_buffers();
        }
        let is_of_aio = job.queueing.direct && engine == Engine::Libaio;
        let mut issuer = Issuer::new(spec, run.seed);
        issuer.start(now);
        Ok(Process {
            spec,
            run,
            files: Files::open(spec, run.places, waits_as_files)?,
            as_files,
            queue,
            issuer,
            units: Units::new(&job.queueing),
            prepared: Vec::with_capacity(depth as usize),
            now,
            cpu,
            is_charged_in_calls: works_in_calls && run.work.charge_calls(cpu, run.epoch),
            is_charged_at_ends: is_of_aio && run.work.charge_completions(cpu, run.epoch),
            counted: 0,
            sleeps: 0,
        })
    }

    /// Runs from its start to its end.
    pub fn live(mut self) -> io::Result<JobResult> {
        loop {
            let more = self.pass()?;
            self.drain()?;
            if self.issuer.owes_sync() {
                self.files.sync(true)?;
                self.look();
                self.issuer.synced_at_end();
            }
            if !more || !self.issuer.begin_pass() {
                return Ok(self.result());
            }
            if self.issuer.drops_pages() {
                self.files.drop_pages(None)?;
                self.look();
            }
        }
    }

    /// One pass over the workload; false when the process must end.
    fn pass(&mut self) -> io::Result<bool> {
        loop {
            if self.run.told_to_end[self.spec.id.0 as usize].load(Ordering::Relaxed) {
                self.issuer.tell_to_end();
            }
            match self.issuer.next(self.now) {
                Step::Begin(unit) => self.begin(unit)?,
                Step::Sync => self.sync()?,
                Step::Drain(Then::Finish) => return Ok(false),
                Step::Drain(Then::EndPass) => return Ok(true),
                Step::Drain(Then::Think) => {
                    self.drain()?;
                    let think = self.spec.job.think;
                    let spun = self.run.work.compute(self.cpu, self.now, think.spin.min(think.time));
                    let until = self.issuer.think(self.now, spun);
                    self.sleep_until(until);
                }
                Step::Drain(Then::Pace(until)) => {
                    self.drain()?;
                    self.sleep_until(until);
                }
                Step::Drain(Then::Drop(file)) => {
                    self.drain()?;
                    self.files.drop_pages(Some(file))?;
                    self.look();
                }
            }
        }
    }

    fn begin(&mut self, unit: IoUnit) -> io::Result<()> {
        let job = &self.spec.job;
        self.issuer.begun(unit.direction);
        let slot = self.units.start(unit, self.now);
        self.issuer.tally.depth(self.units.depth());
        let (work, bytes) = (self.run.work, u64::from(unit.len));
        let is_buffered = !job.queueing.direct && unit.direction != Direction::Trim;
        let done = match is_buffered {
            true if self.is_charged_in_calls => self.now,
            true => work.call(self.cpu, self.now, bytes),
            false => work.submission(self.cpu, self.now),
        };
        self.work_until(done)?;
        if !job.queueing.engine.is_queued() {
            return self.block_on(slot, unit);
        }
        let prio = sys::priority(self.issuer.priority(unit.direction));
        self.prepared.push(Request { prio, ..self.request(slot, &unit) });
        if self.units.all_in_use() {
            return self.reap();
        }
        if self.units.is_batch(self.prepared.len()) {
            self.submit(0)?;
        }
        Ok(())
    }

    /// Without a priority of its own.
    fn request(&self, slot: u32, unit: &IoUnit) -> Request {
        let (file, start) = self.files.get(unit.file);
        let plan = &self.run.plan.files[unit.file as usize];
        Request {
            slot,
            fd: file.as_raw_fd(),
            write: unit.direction == Direction::Write,
            at: start + unit.offset,
            bytes: unit.len,
            prio: 0,
            own_plug: self.as_files.is_some_and(|how| how.plugs(unit, plan)),
            durable: false,
        }
    }

    /// A read or write of a process that waits for it, as of a file in a file system.
    fn move_as_file(&mut self, slot: u32, unit: &IoUnit, how: AsFiles) -> io::Result<u32> {
        let request = self.request(slot, unit);
        let mode = if request.write { self.spec.job.durability.mode } else { SyncMode::None };
        let durable = how.durable(mode, &self.run.plan.files[unit.file as usize]);
        self.queue.prepare(Request { durable: durable.itself, ..request });
        self.queue.submit(1)?;
        self.queue.wait(1, 1)?;
        self.look();
        self.wake(1)?;
        let (_, moved) = self.queue.take().expect("it was waited for");
        if durable.flushed {
            self.files.get(unit.file).0.sync_data()?;
            self.look();
            self.work_until(self.run.work.wake(self.cpu, self.now))?;
        }
        moved
    }

    /// Works until the process runs that has waited for so many completions.
    fn wake(&mut self, count: u32) -> io::Result<()> {
        let work = self.run.work;
        let at = match self.queue.done_at(count) {
            Some(done) => work.woken(self.cpu, self.now, done),
            None if self.is_charged_at_ends => self.now,
            None => work.wake(self.cpu, self.now),
        };
        self.work_until(at)
    }

    /// I/O by a blocking engine.
    fn block_on(&mut self, slot: u32, unit: IoUnit) -> io::Result<()> {
        let (file, start) = self.files.get(unit.file);
        let (at, len) = (start + unit.offset, unit.len);
        let as_files = self.as_files.filter(|_| unit.direction != Direction::Trim);
        let done = match (unit.direction, as_files) {
            (_, Some(how)) => self.move_as_file(slot, &unit, how)?,
            (Direction::Trim, None) => sys::discard(file, at, len.into()).map(|()| len)?,
            (Direction::Read, None) => pread(file, self.queue.buffer(slot, len as usize), at)? as u32,
            (Direction::Write, None) => pwrite(file, self.queue.buffer(slot, len as usize), at)? as u32,
        };
        self.look();
        let is_durable =
            unit.direction == Direction::Write && self.spec.job.durability.mode != SyncMode::None;
        let waits_for_disk = self.spec.job.queueing.direct || (is_durable && self.run.work.flushes());
        if waits_for_disk && as_files.is_none() {
            self.work_until(self.run.work.wake(self.cpu, self.now))?;
        }
        self.issuer.submitted(1);
        self.issuer.collected(1);
        self.reaped(slot, done)
    }

    /// Submits what is prepared; if the engine can, it waits for `least` in the same call.
    fn submit(&mut self, least: u32) -> io::Result<()> {
        if self.prepared.is_empty() {
            return Ok(());
        }
        for request in &self.prepared {
            self.queue.prepare(*request);
        }
        self.queue.submit(least)?;
        self.issuer.submitted(self.prepared.len() as u32);
        // It may have slept for a tag; fio counts the I/Os as issued when the call returns.
        let slept = self.spec.job.queueing.engine == Engine::Libaio && self.look();
        if slept && !self.is_charged_at_ends && !self.run.work.is_free() {
            // The CPU has done the work of what has completed meanwhile.
            self.queue.gather()?;
            self.counted = self.queue.ready();
        }
        for request in &self.prepared {
            self.units.issued(request.slot, self.now);
        }
        self.prepared.clear();
        Ok(())
    }

    /// Submits what is prepared, waits for `least` completions and reaps at most `most`.
    fn reap_some(&mut self, least: u32, most: u32) -> io::Result<()> {
        self.submit(least)?;
        self.queue.wait(least, most)?;
        let waited = self.look();
        self.work_on_completions(waited, least)?;
        let count = self.queue.ready().min(most);
        self.counted = self.counted.saturating_sub(count);
        for _ in 0..count {
            let Some((slot, bytes)) = self.queue.take() else { break };
            self.reaped(slot, bytes?)?;
        }
        self.issuer.collected(count);
        Ok(())
    }

    /// The CPU work of the completions that can be taken. If the process has waited for `least`, it runs
    /// on when that of the last one is done, and finds those that came meanwhile.
    fn work_on_completions(&mut self, waited: bool, least: u32) -> io::Result<()> {
        let work = self.run.work;
        if work.is_free() {
            return Ok(());
        }
        if self.is_charged_at_ends {
            if waited {
                self.wake(least)?;
                self.queue.gather()?;
            }
            return Ok(());
        }
        // All that are there, also beyond those to reap now.
        self.queue.gather()?;
        if !waited {
            self.count_completions(0);
            return Ok(());
        }
        let at = work.wake(self.cpu, self.now);
        self.count_completions(1);
        self.work_until(at)?;
        self.queue.gather()?;
        self.count_completions(0);
        Ok(())
    }

    /// Counts the work of new completions, but for that of so many.
    fn count_completions(&mut self, without: u32) {
        let ready = self.queue.ready();
        let new = ready.saturating_sub(self.counted + without);
        self.run.work.completions(self.cpu, self.now, new);
        self.counted = ready;
    }

    /// All slots are in use: waits for completions, down to the depth at which it fills again.
    fn reap(&mut self) -> io::Result<()> {
        loop {
            let (least, most) = self.units.to_reap();
            self.reap_some(least, most)?;
            if self.units.is_low() {
                return Ok(());
            }
        }
    }

    /// Waits for everything in flight.
    fn drain(&mut self) -> io::Result<()> {
        while self.units.depth() > 0 {
            self.reap_some(1, u32::MAX)?;
        }
        Ok(())
    }

    fn reaped(&mut self, slot: u32, done: u32) -> io::Result<()> {
        let Started { unit, start, issued } = self.units.reaped(slot);
        if done != unit.len {
            let what = format!("{done} of {} bytes at {}", unit.len, unit.offset);
            return Err(io::Error::other(what));
        }
        let bytes = u64::from(unit.len);
        self.issuer.reaped(&unit, IoTimes { start, issued, reaped: self.now });
        let write = unit.direction != Direction::Read;
        let clat = self.now.saturating_sub(issued);
        self.run.series.lock().expect("no thread panics with it").completed(self.now, write, bytes, clat);
        Ok(())
    }

    /// Reads the clock. A call that took time has slept, because the guest's CPU work takes none: true
    /// for that.
    fn look(&mut self) -> bool {
        let now = clock() - self.run.epoch;
        let slept = now > self.now;
        self.sleeps += u64::from(slept);
        self.now = now;
        slept
    }

    /// Works until then.
    fn work_until(&mut self, at: Nanos) -> io::Result<()> {
        if self.run.work.takes_time() {
            self.run.work.work_until(self.run.epoch + at)?;
            self.now = clock() - self.run.epoch;
        }
        Ok(())
    }

    fn sleep_until(&mut self, at: Nanos) {
        sys::sleep_until(self.run.epoch + at);
        self.look();
    }

    fn sync(&mut self) -> io::Result<()> {
        self.submit(0)?;
        let begun = self.now;
        self.files.sync(self.issuer.syncs_times())?;
        self.look();
        if self.run.work.flushes() {
            self.work_until(self.run.work.wake(self.cpu, self.now))?;
        }
        self.issuer.synced(self.now.saturating_sub(begun));
        Ok(())
    }

    fn result(&mut self) -> JobResult {
        JobResult { context_switches: self.sleeps, ..self.issuer.result(self.now) }
    }
}
