//! The engine: runs a source of I/O on the devices of a machine, in virtual time.
//!
//! Discrete events in integer nanoseconds, one thread, deterministic. The disk models, the
//! schedulers' timers, the flusher and the processes' timers each report when they are due; the
//! earliest goes next. A process whose CPU work is the only activity continues without an event.
//!
//! The engine has no knowledge of job files and traces. What issues I/O is a [`Source`].

mod clock;
mod flusher;
mod inode_lock;
mod journal;
mod page_io;
mod sync;
mod syncer;
mod wakeups;
mod world;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use blklab_base::recorded::Io;
use thiserror::Error;

use crate::block::{Block, queue_limits, read_ahead};
use crate::device::{Backing, Device, Devices, Ended, Layout, PlacedFile, Volume};
use crate::disk::{AnyDisk, Disk};
use crate::host::{Driver, DriverCosts, Host};
use crate::owner::{Actor, Owner};
use crate::pagecache::{BackingConfig, BackingId, Kept, MemoryConfig, PageCache};
use crate::recorder::{SeriesRecorder, TraceRecorder, Window};
use crate::request::ProcessId;
use crate::result::DiskCounters;
use crate::scheduler::journal::Note;
use crate::scheduler::plugin::Fault;
use crate::scheduler::spec::SchedulerSpec;
use crate::scheduler::{AnyScheduler, Tasks};
use crate::tunable::Settings;
use crate::units::{Bytes, Nanos, SECTOR_BYTES};
use crate::workload::machine::MEMORY_LEFT;
use flusher::Flusher;

pub use clock::HORIZON;
pub use inode_lock::Hold;
pub use journal::Journal;
pub use page_io::{Asleep, PageWork, Submitter, Wait};
pub use sync::{Dirty, SyncProgress, Syncing};
pub use world::World;

/// Steps between two checks for cancellation.
const STEPS_PER_LOOK: u32 = 1 << 12;

/// A source of I/O: processes that submit I/O to the [`World`].
///
/// The engine runs a process when it is ready, advances time while all sleep, and reports completed
/// bios to their process. The source decides which I/O it issues and when: closed loop, where a
/// process waits for its I/O before it issues more, or open loop, where I/O arrives at given times.
///
/// A process submits bios with [`Device::submit`] or [`Device::hand_over`], or through the page
/// cache with [`PageWork`]; each bio of its own carries [`Owner::Process`].
pub trait Source {
    /// The source's measurements.
    type Measured;

    /// The run begins: wakes the processes that start.
    fn begin(&mut self, world: &mut World);

    /// Runs a process until it must wait or has ended. The source keeps track of ended processes
    /// and reports them to the schedulers by [`World::process_exited`].
    fn run(&mut self, process: ProcessId, world: &mut World) -> Ran;

    /// A bio with the owner [`Owner::Process`] has completed: `io` is the number given there.
    fn bio_ended(&mut self, process: ProcessId, io: u32, world: &mut World);

    /// A flush with the owner [`Owner::Flush`] has completed.
    fn flush_ended(&mut self, process: ProcessId, world: &mut World);

    /// No process will run again: the run is over.
    fn has_ended(&self) -> bool;

    /// The run ends now, before processes that would go on.
    fn stop(&mut self, now: Nanos);

    /// The source's measurements.
    fn finish(self) -> Self::Measured;
}

/// How a process's turn on the CPU ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ran {
    /// It continues at that time.
    Until(Nanos),
    /// It sleeps until [`World::wake`], or has ended.
    Asleep,
}

/// A disk of the machine, and the scheduler in front of it.
pub struct Attached<'a> {
    /// The disk, built from its model.
    pub disk: AnyDisk,
    /// The scheduler, its tunables and the queue's.
    pub scheduler: &'a SchedulerSpec,
}

/// The machine of a run.
pub struct Machine<'a> {
    /// The disks, numbered by [`crate::device::DeviceId`] in this order; at least one.
    pub disks: Vec<Attached<'a>>,
    /// The host.
    pub host: Host,
    /// Memory and writeback; see [`crate::pagecache::TUNABLES`].
    pub memory: &'a Settings,
    /// Memory that the page cache cannot use, in bytes.
    pub locked: Bytes,
    /// Some I/O may take a place in the throttle of writeback. Without any, nothing needs to be counted.
    pub takes_places: bool,
    /// The processes, by their ids, and their cgroups, for the schedulers.
    pub tasks: Tasks,
    /// The number of processes.
    pub processes: usize,
}

impl Machine<'_> {
    /// The machine at time zero, with files placed by `layout`. One page cache serves all disks. Each
    /// disk and each volume has its own flusher and read-ahead.
    pub fn build(self, layout: Layout) -> World {
        let Machine { disks, host, memory, locked, takes_places, tasks, processes } = self;
        let read_ahead = |Attached { disk, scheduler }: &Attached<'_>| {
            read_ahead(disk.limits(), scheduler.info, &host, &scheduler.queue)
        };
        let mut read_ahead: Vec<_> = disks.iter().map(read_ahead).collect();
        let device = |Attached { disk, scheduler }: Attached<'_>| {
            let mut limits = queue_limits(disk.limits(), scheduler.info, &host, &scheduler.queue);
            if !takes_places {
                limits.wbt_target = Nanos::ZERO;
            }
            let elevator = AnyScheduler::of(scheduler, &limits, &tasks);
            let block = Block::new(&disk, limits, elevator, tasks.clone(), &host);
            // Drivers of real disks have no thread; a constant disk stands for a device that has one.
            let is_real = !matches!(disk, AnyDisk::Constant(_));
            let driver = Driver::new(if is_real { DriverCosts::default() } else { host.driver });
            let lock = host.lock(scheduler.info);
            let lock = if driver.has_thread() { lock.of_two_threads() } else { lock };
            Device::new(block, disk, lock, driver)
        };
        let devices: Vec<_> = disks.into_iter().map(device).collect();
        let mut max_io: Vec<_> = devices.iter().map(|device| device.block.limits().max_sectors).collect();
        for (number, Volume { read_ahead: of_volume }) in (0..).zip(layout.volumes()) {
            // The smallest of its devices' (`blk_stack_limits`).
            let files = layout.files().iter().filter(|file| file.backing == Backing::Volume(number));
            let extents = files.flat_map(PlacedFile::extents);
            let smallest = extents.map(|extent| max_io[usize::from(extent.device.0)]).min();
            max_io.push(smallest.unwrap_or(max_io[0]));
            read_ahead.push(*of_volume);
        }
        let backing = |(read_ahead, max_sectors): (Bytes, u32)| {
            let max_io = Bytes(u64::from(max_sectors) * SECTOR_BYTES);
            BackingConfig { read_ahead, max_io }
        };
        let backings: Vec<_> = read_ahead.into_iter().zip(max_io).map(backing).collect();
        let config = MemoryConfig::new(memory, host.ticks, host.kernel_cpus, host.kernel);
        let config = MemoryConfig {
            memory: Bytes(config.memory.0.saturating_sub(locked.0).max(MEMORY_LEFT.0)),
            large_folios: host.large_folios,
            written_by_mount: host.files().written_by_mount,
            kept: Kept { heads: host.partitions || host.files().has_buffer_heads, bios: host.partitions },
            ..config
        };
        let mut cache = PageCache::new(&config, &backings);
        for file in layout.files() {
            let backing = match file.backing {
                Backing::Device(device) => usize::from(device.0),
                Backing::Volume(volume) => devices.len() + usize::from(volume),
            };
            cache.add_file(file.size.0, BackingId(backing as u16));
        }
        World::new(Devices::new(devices), layout, cache, host, processes)
    }
}

/// Lets another thread watch a run and cancel it.
#[derive(Debug, Default)]
pub struct Watch {
    /// Set to cancel the run.
    pub cancel: AtomicBool,
    /// Virtual time reached, ns.
    pub now_ns: AtomicU64,
    /// Virtual time by which the run will have ended, ns; 0 if unknown.
    pub end_ns: AtomicU64,
}

/// What is kept of a run, and how long it takes at most.
#[derive(Clone, Copy, Debug, Default)]
pub struct Followed {
    /// Every request and decision of this window is kept.
    pub window: Option<Window>,
    /// The run ends at this time, also before processes that would go on.
    pub until: Option<Nanos>,
}

/// Why there is no result.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RunError {
    /// [`Watch::cancel`] was set.
    #[error("cancelled")]
    Cancelled,
    /// Processes wait for an event that will never happen: a bug in blklab.
    #[error("the simulation stands still at {0}: please report this with the job file and the seed")]
    Stuck(Nanos),
    /// The next event would be after [`HORIZON`].
    #[error("the next I/O would be more than 292 years of virtual time away; give the jobs a runtime")]
    Endless,
    /// A plug-in broke a rule or failed.
    #[error("plug-in {name}, at {at} of virtual time: {reason}")]
    Plugin {
        /// The scheduler's name.
        name: &'static str,
        /// The virtual time.
        at: Nanos,
        /// In a few words.
        reason: String,
    },
}

/// A device's measurements.
pub struct DeviceMeasured {
    /// The block layer's counters.
    pub counters: DiskCounters,
    /// Depth and throughput over time.
    pub series: SeriesRecorder,
    /// Commands, overview and detail.
    pub trace: TraceRecorder,
    /// The scheduler's decisions in the window, and the number that did not fit; `None` if the
    /// journal was off.
    pub decisions: Option<(Vec<Note>, u64)>,
    /// All bios, after [`Engine::record`].
    pub recorded: Vec<Io>,
}

/// A run's measurements.
pub struct Measured<M> {
    /// The virtual time of the run.
    pub duration: Nanos,
    /// The source's measurements.
    pub source: M,
    /// The devices' measurements, in order.
    pub devices: Vec<DeviceMeasured>,
}

/// One run: a source of I/O in its world.
pub struct Engine<S> {
    pub(crate) world: World,
    source: S,
    /// By backing device.
    flushers: Vec<Flusher>,
    /// Steps since the last check of the watch.
    steps: u32,
}

impl<S: Source> Engine<S> {
    /// A run that has not started.
    pub fn new(world: World, source: S) -> Engine<S> {
        let flushers =
            (0..world.cache.backings() as u16).map(|index| Flusher::new(BackingId(index))).collect();
        Engine { world, source, flushers, steps: 0 }
    }

    /// Before the run: sets the window that is kept, and the run's end.
    pub fn follow(&mut self, Followed { window, until }: Followed) {
        if let Some(window) = window {
            for (_, device) in self.world.devices.iter_mut() {
                device.block.keep(window);
                device.disk.keep_begins();
            }
        }
        if let Some(until) = until {
            self.world.clock.end_at(until);
        }
    }

    /// Records all bios.
    pub fn record(&mut self) {
        self.world.devices.iter_mut().for_each(|(_, device)| device.block.record());
    }

    /// Runs until the last process has ended, or as long as [`Followed`] says.
    ///
    /// # Errors
    /// See [`RunError`].
    pub fn run(mut self, watch: &Watch) -> Result<Measured<S::Measured>, RunError> {
        let ended = self.run_processes(watch);
        // The reason of any other error.
        self.check_plugins()?;
        ended?;
        Ok(self.finish())
    }

    pub(crate) fn run_processes(&mut self, watch: &Watch) -> Result<(), RunError> {
        let mut ended = Ended::default();
        self.source.begin(&mut self.world);
        loop {
            while let Some(actor) = self.next_actor() {
                self.look(watch)?;
                self.world.wakeups.begin(actor);
                match actor {
                    Actor::Flusher(backing) => {
                        self.flushers[usize::from(backing.0)].run(&mut self.world);
                        self.world.leave_cpu(actor);
                    }
                    Actor::Journal => {
                        journal::run(&mut self.world);
                        self.world.leave_cpu(actor);
                    }
                    Actor::JournalTimer => journal::timer(&mut self.world),
                    Actor::Syncer(number) => {
                        if let Some((process, io)) = syncer::run(number, &mut self.world) {
                            self.source.bio_ended(process, io, &mut self.world);
                        }
                        self.world.leave_cpu(actor);
                    }
                    Actor::Process(process) => {
                        self.run_process(process, &mut ended, watch)?;
                    }
                }
            }
            if self.source.has_ended() {
                return Ok(());
            }
            if !self.world.happen(self.world.clock.end(), &mut ended) {
                return self.nothing_happens();
            }
            self.tell(&mut ended);
            self.look(watch)?;
        }
    }

    /// No event is left until the end of time, which may be that of the run.
    #[cold]
    fn nothing_happens(&mut self) -> Result<(), RunError> {
        let (next, end) = (self.world.next_event(), self.world.clock.end());
        match next {
            Nanos::NEVER => Err(RunError::Stuck(self.world.now())),
            _ if end == HORIZON => Err(RunError::Endless),
            _ => {
                self.world.clock.run_to(end);
                // Commands that ended just before may have taken until later.
                self.source.stop(self.world.now());
                Ok(())
            }
        }
    }

    /// The next actor that is ready.
    #[inline]
    fn next_actor(&mut self) -> Option<Actor> {
        match self.world.host.has_one_cpu() {
            true => self.world.wakeups.next_on_one_cpu(),
            false => self.world.wakeups.next_ready(),
        }
    }

    /// Runs a process until it sleeps or has ended. While it works and no other actor is due, the
    /// disks advance as well.
    #[inline]
    fn run_process(&mut self, process: ProcessId, ended: &mut Ended, watch: &Watch) -> Result<(), RunError> {
        let alone = self.world.host.has_one_cpu();
        while let Ran::Until(mut at) = self.source.run(process, &mut self.world) {
            // A pause is no work: whatever is ready runs.
            let keeps_cpu = alone && self.world.cpus.works_until(0, at);
            let (began, end) = (self.world.now(), self.world.clock.end());
            while (keeps_cpu || self.world.no_actor_runs_before(at)) && self.world.happen(at.min(end), ended)
            {
                self.tell(ended);
                if keeps_cpu {
                    at = self.preempt(process, at, ended, watch)?;
                }
            }
            // What was woken by commands that ended before `at` goes first, even if their ends took until then.
            let waited_since = self.world.clock.last_event().max(began);
            let interrupted = !keeps_cpu && at > waited_since && !self.world.no_actor_runs_before(at);
            if interrupted || at > end {
                self.world.wake(Actor::Process(process), at);
                return Ok(());
            }
            self.world.clock.run_to(at);
            self.look(watch)?;
        }
        self.world.leave_cpu(Actor::Process(process));
        Ok(())
    }

    /// The process works on the only CPU until `at`. Others that are ready and take it from the process run now; returns
    /// until when it works then.
    #[cold]
    fn preempt(
        &mut self,
        process: ProcessId,
        at: Nanos,
        ended: &mut Ended,
        watch: &Watch,
    ) -> Result<Nanos, RunError> {
        let mut until = at;
        while let Some(other) = self.world.wakeups.next_instead_of(process) {
            // An interrupt that takes time may have ended later than its work.
            let left = until.saturating_sub(self.world.now());
            self.world.cpus.set_free(0, self.world.now());
            self.world.wakeups.begin(Actor::Process(other));
            self.run_process(other, ended, watch)?;
            until = self.world.now() + left;
            self.world.cpus.set_free(0, until);
        }
        Ok(until)
    }

    /// Checks from time to time whether the run is cancelled.
    #[inline]
    fn look(&mut self, watch: &Watch) -> Result<(), RunError> {
        self.steps += 1;
        if self.steps == STEPS_PER_LOOK {
            self.steps = 0;
            watch.now_ns.store(self.world.now().0, Ordering::Relaxed);
            if watch.cancel.load(Ordering::Relaxed) {
                return Err(RunError::Cancelled);
            }
            self.check_plugins()?;
        }
        Ok(())
    }

    /// A plug-in that has failed ends the run.
    #[cold]
    fn check_plugins(&self) -> Result<(), RunError> {
        let fault = self.world.devices.iter().find_map(|device| device.block.fault());
        fault.map_or(Ok(()), |(name, Fault { at, reason })| Err(RunError::Plugin { name, at, reason }))
    }

    /// Reports completed bios to their owners, and free tags to actors that sleep until they get one.
    #[inline(always)]
    fn tell(&mut self, ended: &mut Ended) {
        if !ended.is_empty() {
            self.tell_all(ended);
        }
        // The owner of a request is woken before the request is free. So it may take the request
        // again before an actor that waits for it runs.
        self.world.pass_on_request();
        self.world.expire_timers();
    }

    /// A function of its own: after most events there is nothing to tell.
    #[inline(never)]
    fn tell_all(&mut self, ended: &mut Ended) {
        for owner in ended.drain() {
            match Owner::unpack(owner) {
                Owner::Process(process, io) => self.source.bio_ended(process, io, &mut self.world),
                Owner::Pages(index) => self.world.page_bio_ended(index),
                Owner::Journal(block) => self.world.journal_bio_ended(block),
                Owner::Flush(process) => self.source.flush_ended(process, &mut self.world),
                Owner::SyncersFlush(number) => syncer::flush_ended(number, &mut self.world),
                Owner::Sleeper(actor) => self.world.wake(actor, self.world.now()),
            }
        }
        self.world.run_journals_worker();
    }

    fn finish(self) -> Measured<S::Measured> {
        let duration = self.world.now();
        let device = |mut device: Device| {
            let decisions = device.block.decisions();
            let recorded = device.block.recorded();
            let disk_busy_ns = device.disk.busy().0;
            let (counters, series, trace) = device.block.finish(duration);
            let counters = DiskCounters { disk_busy_ns, ..counters };
            DeviceMeasured { counters, series, trace, decisions, recorded }
        };
        let devices = self.world.devices.into_vec().into_iter().map(device).collect();
        Measured { duration, source: self.source.finish(), devices }
    }
}
