//! The engine: runs a source of I/O on the devices of a machine, in virtual time.
//!
//! Discrete events in integer nanoseconds, one thread, deterministic. The disk models, the
//! schedulers' timers, the flusher and the processes' timers each say when they are due; the
//! earliest goes next. A process that is alone with its CPU work goes on without an event.
//!
//! The engine knows no job file and no trace. What issues I/O is a [`Source`].

mod clock;
mod flusher;
mod owner;
mod page_io;
mod sync;
mod wakeups;
mod world;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use thiserror::Error;

use crate::block::{Block, queue_limits};
use crate::device::{Device, Devices, Layout};
use crate::disk::{AnyDisk, Disk};
use crate::host::{Host, Lock};
use crate::pagecache::{MemoryConfig, PAGE_BYTES, PageCache};
use crate::recorder::{SeriesRecorder, TraceRecorder, Window};
use crate::request::{Actor, ProcessId};
use crate::result::DiskCounters;
use crate::scheduler::journal::Note;
use crate::scheduler::spec::SchedulerSpec;
use crate::scheduler::{AnyScheduler, Tasks};
use crate::tunable::Settings;
use crate::units::{Bytes, Nanos, SECTOR_BYTES};
use crate::workload::machine::MEMORY_LEFT;
use flusher::Flusher;

pub use clock::HORIZON;
pub use owner::Owner;
pub use page_io::{Asleep, PageWork, Submitter, Wait};
pub use sync::{SyncProgress, Syncing};
pub use world::World;

/// Steps between two looks at whether the run is to be ended.
const STEPS_PER_LOOK: u32 = 1 << 12;

/// A source of I/O: processes that ask the [`World`] for I/O.
///
/// The engine runs a process when it is ready, lets time pass while all sleep, and tells a process
/// of the ends of its bios. When I/O is issued, and of what, is the source's own affair: closed loop,
/// where a process waits for its I/O before it issues more, or open loop, where I/O arrives at given
/// times.
///
/// A process submits bios with [`Device::submit`] or [`Device::hand_over`], or through the page
/// cache with [`PageWork`]; each bio of its own carries [`Owner::Process`].
pub trait Source {
    /// What it has measured.
    type Measured;

    /// The run begins: wake the processes that start.
    fn begin(&mut self, world: &mut World);

    /// Let a process run until it has to wait or has ended. A process that ends is a matter of the
    /// source, which tells the schedulers by [`World::process_exited`].
    fn run(&mut self, process: ProcessId, world: &mut World) -> Ran;

    /// A bio with the owner [`Owner::Process`] has ended: `io` is the number given there.
    fn bio_ended(&mut self, process: ProcessId, io: u32, world: &mut World);

    /// A flush with the owner [`Owner::Flush`] has ended.
    fn flush_ended(&mut self, process: ProcessId, world: &mut World);

    /// No process will run again: the run is over.
    fn has_ended(&self) -> bool;

    /// What it has measured.
    fn finish(self) -> Self::Measured;
}

/// How a process's turn on the CPU ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ran {
    /// It goes on at that time.
    Until(Nanos),
    /// It sleeps, to be woken by [`World::wake`], or has ended.
    Asleep,
}

/// A disk of the machine, and the scheduler in front of it.
pub struct Attached<'a> {
    /// The disk, as built from its model.
    pub disk: AnyDisk,
    /// The scheduler, its tunables and the queue's.
    pub scheduler: &'a SchedulerSpec,
}

/// What I/O runs on.
pub struct Machine<'a> {
    /// The disks, numbered by [`crate::device::DeviceId`] in this order; at least one.
    pub disks: Vec<Attached<'a>>,
    /// The host.
    pub host: Host,
    /// Memory and write-back; see [`crate::pagecache::TUNABLES`].
    pub memory: &'a Settings,
    /// Memory that the page cache cannot have, in bytes.
    pub locked: Bytes,
    /// The processes, by their ids, and their cgroups, as schedulers see them.
    pub tasks: Tasks,
    /// How many processes there are.
    pub processes: usize,
}

impl Machine<'_> {
    /// The machine at time zero, with files where `layout` has them. One page cache serves all disks;
    /// its read-ahead and its largest I/O are those of the first.
    pub fn build(self, layout: Layout) -> World {
        let Machine { disks, host, memory, locked, tasks, processes } = self;
        let read_ahead_kib = disks[0].scheduler.queue.get("read_ahead_kb").unsigned_abs();
        let device = |Attached { disk, scheduler }: Attached<'_>| {
            let limits = queue_limits(disk.limits(), scheduler.info, &host, &scheduler.queue);
            let elevator = AnyScheduler::new(scheduler.info.name, &scheduler.settings, &limits, &tasks)
                .expect("a specification names a scheduler of the registry");
            let hold = if host.is_free() { 0 } else { scheduler.info.lock_ns };
            let block = Block::new(&disk, limits, elevator, tasks.clone(), &host);
            Device::new(block, disk, Lock::new(Nanos(hold)))
        };
        let devices: Vec<_> = disks.into_iter().map(device).collect();
        let max_io = Bytes(u64::from(devices[0].block.limits().max_sectors) * SECTOR_BYTES);
        let config = MemoryConfig::new(memory, Bytes::from_kib(read_ahead_kib), max_io);
        let mut cache = PageCache::new(&MemoryConfig {
            memory: Bytes(config.memory.0.saturating_sub(locked.0).max(MEMORY_LEFT.0)),
            request_pages: host.partitions.then_some((max_io.0 / PAGE_BYTES) as u32),
            ticks: host.ticks,
            ..config
        });
        for file in layout.files() {
            cache.add_file(file.size.0);
        }
        World::new(Devices::new(devices), layout, cache, host, processes)
    }
}

/// Lets another thread watch a run and end it.
#[derive(Debug, Default)]
pub struct Watch {
    /// Set to end the run.
    pub cancel: AtomicBool,
    /// Virtual time reached, ns.
    pub now_ns: AtomicU64,
    /// Virtual time by which the run will have ended, ns; 0 if that is not known.
    pub end_ns: AtomicU64,
}

/// Why there is no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum RunError {
    /// [`Watch::cancel`] was set.
    #[error("cancelled")]
    Cancelled,
    /// Processes wait for what will never happen: a mistake of blklab's own.
    #[error("the simulation stands still at {0}: please report this with the job file and the seed")]
    Stuck(Nanos),
    /// The next thing would happen behind the end of time.
    #[error("the next I/O would be more than 292 years of virtual time away; give the jobs a runtime")]
    Endless,
}

/// What a device has measured.
pub struct DeviceMeasured {
    /// The block layer's counters.
    pub counters: DiskCounters,
    /// Depth and throughput over time.
    pub series: SeriesRecorder,
    /// Commands, overview and detail.
    pub trace: TraceRecorder,
    /// The scheduler's decisions in the window, and how many did not fit; `None` if none were noted.
    pub decisions: Option<(Vec<Note>, u64)>,
}

/// What a run has measured.
pub struct Measured<M> {
    /// Virtual time that it took.
    pub duration: Nanos,
    /// The source's part.
    pub source: M,
    /// The devices', in order.
    pub devices: Vec<DeviceMeasured>,
}

/// One run: a source of I/O in its world.
pub struct Engine<S> {
    pub(crate) world: World,
    source: S,
    flusher: Flusher,
    /// Since the last look at the watch.
    steps: u32,
}

impl<S: Source> Engine<S> {
    /// A run that has not begun.
    pub fn new(world: World, source: S) -> Engine<S> {
        Engine { world, source, flusher: Flusher::default(), steps: 0 }
    }

    /// Keep every request and decision of `window`.
    pub fn keep(&mut self, window: Window) {
        for (_, device) in self.world.devices.iter_mut() {
            device.block.keep(window);
            device.disk.keep_begins();
        }
    }

    /// Run until the last process has ended.
    ///
    /// # Errors
    /// See [`RunError`].
    pub fn run(mut self, watch: &Watch) -> Result<Measured<S::Measured>, RunError> {
        self.run_processes(watch)?;
        Ok(self.finish())
    }

    pub(crate) fn run_processes(&mut self, watch: &Watch) -> Result<(), RunError> {
        let mut owners = Vec::new();
        self.source.begin(&mut self.world);
        loop {
            while let Some(actor) = self.world.wakeups.next_ready() {
                self.look(watch)?;
                self.world.wakeups.begin(actor);
                match actor {
                    Actor::Flusher => {
                        self.flusher.run(&mut self.world);
                        self.world.leave_cpu();
                    }
                    Actor::Process(process) => self.run_process(process, &mut owners, watch)?,
                }
            }
            if self.source.has_ended() {
                return Ok(());
            }
            if !self.world.happen(&mut owners) {
                let stuck = self.world.next_event() == Nanos::NEVER;
                return Err(if stuck { RunError::Stuck(self.world.now()) } else { RunError::Endless });
            }
            self.tell(&mut owners);
            self.look(watch)?;
        }
    }

    /// Let a process run until it sleeps or has ended. While it works and no other actor is about to
    /// run, the disks go on beneath it.
    #[inline]
    fn run_process(
        &mut self,
        process: ProcessId,
        owners: &mut Vec<u64>,
        watch: &Watch,
    ) -> Result<(), RunError> {
        while let Ran::Until(at) = self.source.run(process, &mut self.world) {
            while self.world.no_actor_runs_before(at) && self.world.next_event() <= at {
                self.world.happen(owners);
                self.tell(owners);
            }
            let interrupted = at > self.world.now() && !self.world.no_actor_runs_before(at);
            if interrupted || at > HORIZON {
                self.world.wake(Actor::Process(process), at);
                return Ok(());
            }
            self.world.clock.run_to(at);
            self.look(watch)?;
        }
        self.world.leave_cpu();
        Ok(())
    }

    /// See now and then whether the run is to be ended.
    #[inline]
    fn look(&mut self, watch: &Watch) -> Result<(), RunError> {
        self.steps += 1;
        if self.steps == STEPS_PER_LOOK {
            self.steps = 0;
            watch.now_ns.store(self.world.now().0, Ordering::Relaxed);
            if watch.cancel.load(Ordering::Relaxed) {
                return Err(RunError::Cancelled);
            }
        }
        Ok(())
    }

    /// Bios have ended: their owners are told.
    #[inline]
    fn tell(&mut self, owners: &mut Vec<u64>) {
        for &owner in owners.iter() {
            match Owner::unpack(owner) {
                Owner::Process(process, io) => self.source.bio_ended(process, io, &mut self.world),
                Owner::Pages(index) => self.world.page_bio_ended(index),
                Owner::Flush(process) => self.source.flush_ended(process, &mut self.world),
            }
        }
        owners.clear();
        // A request's owner is woken before the request is free, and so may take it again
        // before one that waits for it runs.
        self.world.pass_on_request();
    }

    fn finish(self) -> Measured<S::Measured> {
        let duration = self.world.now();
        let device = |mut device: Device| {
            let decisions = device.block.decisions();
            let disk_busy_ns = device.disk.busy().0;
            let (counters, series, trace) = device.block.finish(duration);
            let counters = DiskCounters { disk_busy_ns, ..counters };
            DeviceMeasured { counters, series, trace, decisions }
        };
        let devices = self.world.devices.into_vec().into_iter().map(device).collect();
        Measured { duration, source: self.source.finish(), devices }
    }
}
