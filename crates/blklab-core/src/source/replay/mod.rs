//! Recorded I/Os as a source.
//!
//! Each [`ReplayIo`] goes to a place on a device, as recorded traces have it: no file, no page
//! cache. Its [`Start`] says what it waits for: a time (open loop), completions of its process and
//! the think time after them (closed loop), or one other I/O. `plan` makes them of a recording.
//!
//! A process submits its I/Os in order; one that waits delays those behind it. I/Os marked as
//! plugged come together with the next one of their process, under one plug. Where all requests of
//! the queue are taken, the process sleeps until it gets one, as in the kernel. The latency of an
//! I/O counts from the time at which it was due, however late it was submitted.
//!
//! Submission takes no CPU time, because the recorded times contain it; nor does completion.

mod following;
mod groups;
mod history;
mod inferred;
pub mod issuer;
mod pace;
mod plan;
pub mod stored;

use thiserror::Error;

use crate::block::{BioStream, Manner};
use crate::device::{DeviceId, Location};
use crate::disk::Disk;
use crate::engine::{Ran, Source, World};
use crate::owner::{Actor, Owner};
use crate::request::{Bio, IoPrio, Op, ProcessId};
use crate::result::JobResult;
use crate::scheduler::{CgroupId, Tasks};
use crate::units::{Nanos, SECTOR_BYTES, Sector};

use issuer::{Issuer, Step};

pub use groups::{Grouping, Members, THE_RECORDING, WEIGHT_RANGE};
pub use pace::{Pace, Speed};
pub use plan::{Beyond, Fit, Part, PlanError, ReplayPlan, ReplayProcess, Settings, Way, beside, plan};

/// What an I/O waits for before it comes; all of these.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Start {
    /// This time.
    pub not_before: Nanos,
    /// This many I/Os of its process that count have completed, in any order.
    pub after: u32,
    /// This I/O has completed: an index in the list of all.
    pub follows: Option<u32>,
    /// And so have all I/Os of its process before it: it was the last of several that were waited for.
    pub drains: bool,
    /// It waits for the I/O that it follows only if that is under way when all else has completed.
    pub if_begun: bool,
    /// It comes at once if this I/O had completed when those of its own process had: an index.
    pub unless: Option<u32>,
    /// The I/O of its process before it is in the block layer, and no time of its own is set.
    pub goes_on: bool,
    /// This time has passed since then, and since the I/O of its process before it was in the block
    /// layer: a process may have to wait for a request.
    pub think: Nanos,
}

impl Start {
    /// At that time, whatever has completed.
    pub fn at(not_before: Nanos) -> Start {
        Start { not_before, ..Start::default() }
    }
}

/// An I/O to be replayed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReplayIo {
    /// When it comes to the block layer.
    pub start: Start,
    /// The process that issues it.
    pub process: ProcessId,
    /// The cgroup that its process is in.
    pub cgroup: CgroupId,
    /// The operation.
    pub op: Op,
    /// Where it begins. A flush has a device and no sector.
    pub place: Location,
    /// Its length in sectors; 0 for a flush.
    pub sectors: u32,
    /// Synchronous (`REQ_SYNC`): reads, direct writes.
    pub sync: bool,
    /// Durable when it completes (`REQ_FUA`).
    pub fua: bool,
    /// What it follows is its own flush (`REQ_PREFLUSH`), so that its latency counts from there.
    pub preflush: bool,
    /// Its completion counts for [`Start::after`].
    pub counted: bool,
    /// The plug that it comes under.
    pub plug: Plug,
}

impl ReplayIo {
    /// Its length in bytes.
    pub fn bytes(&self) -> u64 {
        u64::from(self.sectors) * SECTOR_BYTES
    }
}

/// A plug, with which a process collects I/Os to hand them over together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Plug {
    /// None: as a direct I/O on a device, which needs one only if it is large.
    None,
    /// One of its own, or the open one that it is the last of.
    #[default]
    Ends,
    /// The process's next I/O comes together with it, under the same plug; its start has no effect.
    GoesOn,
}

/// The times of an I/O.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// When it was due, as its start says.
    pub due: Nanos,
    /// When its process began to submit it:
    pub begun: Nanos,
    /// so much later than it was due then,
    pub late: Nanos,
    /// and how much of that it was still submitting the I/O before.
    pub held: Nanos,
    /// When all of it was in the block layer: later, if it had to wait for a request, or for
    /// earlier I/Os of its process that had.
    pub issued: Nanos,
    /// When it completed.
    pub completed: Nanos,
}

/// Why a machine cannot run the I/Os, which are numbered from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ReplayError {
    /// There is no such device.
    #[error("I/O {0}: the machine has no device {1}")]
    NoDevice(usize, u16),
    /// The I/O is not on the disk.
    #[error("I/O {io}: {sectors} sectors from sector {sector} on; the disk has {capacity}")]
    NotOnDisk {
        /// The I/O.
        io: usize,
        /// Its first sector.
        sector: u64,
        /// Its length.
        sectors: u32,
        /// The disk's size in sectors.
        capacity: u64,
    },
    /// A read, write or discard without length, or a flush with one.
    #[error("I/O {0}: a flush has no sectors, every other I/O has some")]
    Length(usize),
    /// It would never come: it waits for more I/Os of its process than come before it, or for one
    /// that comes later.
    #[error("I/O {0}: it waits for an I/O that does not come before it")]
    NeverDue(usize),
}

/// The source: the I/Os, of which an [`Issuer`] says what comes next, and those in the block layer.
pub struct Replay {
    issuer: Issuer,
    /// The machine's number of its first process.
    first: u32,
    /// Per I/O in the block layer: bios that have not completed.
    bios_left: Vec<u32>,
    /// By id.
    processes: Vec<Process>,
    members: Members,
    living: usize,
}

/// A process, as the machine has it.
#[derive(Debug)]
struct Process {
    actor: Actor,
    prio: IoPrio,
    cpu: u16,
    has_exited: bool,
    /// The I/O of which a part waits for a request, its device and that part.
    waits_for_request: Option<(u32, DeviceId, BioStream)>,
}

/// The measurements of a replay.
pub struct Replayed {
    /// One per I/O, in the order of the list.
    pub outcomes: Vec<Outcome>,
    /// One per process, by id, without names.
    pub jobs: Vec<JobResult>,
}

impl Replay {
    /// The number of processes of `ios`, for [`crate::engine::Machine::processes`].
    /// Schedulers may know more: see [`Members`].
    pub fn count(ios: &[ReplayIo]) -> usize {
        ios.iter().map(|io| io.process.0 as usize + 1).max().unwrap_or(0)
    }

    /// `ios`, in which each process's are in its order, on the machine `world`, where its processes have
    /// the numbers from `first` on. Priorities are those of `tasks`, which has all [`Members`].
    ///
    /// # Errors
    /// The first I/O that names no disk of the machine, lies beyond its end, or waits in vain.
    pub fn new(ios: Vec<ReplayIo>, first: u32, tasks: &Tasks, world: &World) -> Result<Replay, ReplayError> {
        let capacities: Vec<_> = world.devices.iter().map(|device| device.disk.limits().capacity.0).collect();
        check(&ios, &capacities)?;
        let process = |id: usize| {
            let id = ProcessId(first + id as u32);
            Process {
                actor: Actor::Process(id),
                prio: tasks.get(id).prio,
                cpu: (id.0 % u32::from(world.host.cpus)) as u16,
                has_exited: false,
                waits_for_request: None,
            }
        };
        let bios_left = vec![0; ios.len()];
        let members = Members::new(&ios, Replay::count(&ios));
        let issuer = Issuer::new(ios);
        let processes: Vec<_> = (0..issuer.processes()).map(process).collect();
        let living = (0..processes.len()).filter(|&id| issuer.has_ios(ProcessId(id as u32))).count();
        Ok(Replay { issuer, first, bios_left, processes, members, living })
    }

    /// Submits an I/O of the process to the block layer; false if the process sleeps, waiting for a
    /// request.
    fn submit(&mut self, id: ProcessId, index: u32, due: Nanos, world: &mut World) -> bool {
        let (io, now) = (*self.issuer.io(index), world.now());
        self.issuer.begin(index, due, now);
        let device = &mut world.devices[io.place.device];
        let is_of_a_write = self.issuer.is_preflush(index);
        if is_of_a_write || io.op == Op::Flush && !device.block.has_volatile_write_cache() {
            // As `submit_bio_noacct` does. The flush before a write comes with its bio.
            self.issuer.submitted(index, now);
            self.completed(index, world);
            return true;
        }
        self.bios_left[index as usize] = device.parts_of_bio(io.sectors);
        let process = &mut self.processes[id.0 as usize];
        let there = ProcessId(self.first + io.process.0);
        let bio = Bio {
            op: io.op,
            sector: io.place.sector,
            sectors: io.sectors,
            sync: io.sync,
            fua: io.fua,
            // A trace does not record it; it is set for direct writes, as most sync writes are.
            idle: io.sync,
            background: false,
            process: ProcessId(self.first + self.members.of(&io)),
            prio: process.prio,
            cpu: process.cpu,
            thread: process.actor.thread(),
            hw_queue: device.hw_queue(process.cpu),
            owner: Owner::Process(there, index).pack(),
        };
        let manner = match io.plug {
            Plug::None => Manner::on_a_device(io.op, io.sectors),
            Plug::Ends | Plug::GoesOn => Manner::PLUGGED,
        };
        let manner = Manner { after_flush: io.preflush, ..manner };
        let left = device.begin_bio(now, bio, manner);
        process.waits_for_request = left.map(|stream| (index, io.place.device, stream));
        if process.waits_for_request.is_some() {
            return self.submit_rest(id, world);
        }
        self.submitted(index, world);
        true
    }

    /// Submits the rest of an I/O that waits for a request; false if the process sleeps on.
    fn submit_rest(&mut self, id: ProcessId, world: &mut World) -> bool {
        let now = world.now();
        let process = &mut self.processes[id.0 as usize];
        let Some((index, device, stream)) = &mut process.waits_for_request else { return true };
        if !world.devices[*device].hand_over(now, stream, process.actor) {
            world.pass_on_request();
            return false;
        }
        let index = *index;
        process.waits_for_request = None;
        self.submitted(index, world);
        true
    }

    fn submitted(&mut self, index: u32, world: &mut World) {
        self.issuer.submitted(index, world.now());
        if self.issuer.io(index).plug != Plug::GoesOn {
            world.unplug();
            world.pass_on_request();
        }
    }

    /// An I/O has completed: processes that wait for it go on.
    fn completed(&mut self, index: u32, world: &mut World) {
        let now = world.now();
        let io = *self.issuer.io(index);
        let processes = &self.processes;
        let latency = self.issuer.completed(index, now, |id| {
            world.wake(processes[id.0 as usize].actor, now);
        });
        if io.op != Op::Flush {
            let series = &mut world.devices[io.place.device].block.series;
            series.completed(now, io.op.is_write(), io.bytes(), latency);
        }
    }
}

/// Every I/O can be submitted to one of the devices with these capacities, and will be.
///
/// # Errors
/// The first I/O of which that is not true.
pub fn check(ios: &[ReplayIo], capacities: &[u64]) -> Result<(), ReplayError> {
    let mut before = vec![0_u32; Replay::count(ios)];
    for (io, one) in ios.iter().enumerate() {
        let Location { device, sector: Sector(sector) } = one.place;
        let capacity = *capacities.get(usize::from(device.0)).ok_or(ReplayError::NoDevice(io, device.0))?;
        let sectors = one.sectors;
        if (sectors == 0) != (one.op == Op::Flush) {
            return Err(ReplayError::Length(io));
        }
        if sector.checked_add(sectors.into()).is_none_or(|end| end > capacity) {
            return Err(ReplayError::NotOnDisk { io, sector, sectors, capacity });
        }
        let own = &mut before[one.process.0 as usize];
        if one.start.after > *own || one.start.follows.is_some_and(|other| other as usize >= io) {
            return Err(ReplayError::NeverDue(io));
        }
        *own += u32::from(one.counted);
    }
    Ok(())
}

impl Source for Replay {
    type Measured = Replayed;

    fn begin(&mut self, world: &mut World) {
        for (id, process) in self.processes.iter().enumerate() {
            if self.issuer.has_ios(ProcessId(id as u32)) {
                world.wake(process.actor, Nanos::ZERO);
            }
        }
    }

    fn run(&mut self, there: ProcessId, world: &mut World) -> Ran {
        let id = ProcessId(there.0 - self.first);
        loop {
            if !self.submit_rest(id, world) {
                return Ran::Asleep;
            }
            match self.issuer.next(id, world.now()) {
                Step::Submit { io, due } => {
                    if !self.submit(id, io, due, world) {
                        return Ran::Asleep;
                    }
                }
                // A plug is not open here: what comes under one is due at once.
                Step::Wait => return Ran::Asleep,
                Step::Pause(until) => {
                    world.wake(Actor::Process(there), until);
                    return Ran::Asleep;
                }
                Step::Finish => {
                    let process = &mut self.processes[id.0 as usize];
                    if !process.has_exited {
                        process.has_exited = true;
                        let cpu = process.cpu;
                        world.process_exited(there, there, cpu);
                        for other in self.members.others(id) {
                            world.process_exited(ProcessId(self.first + other), there, cpu);
                        }
                        self.living -= 1;
                    }
                    return Ran::Asleep;
                }
            }
        }
    }

    fn bio_ended(&mut self, _: ProcessId, index: u32, world: &mut World) {
        self.bios_left[index as usize] -= 1;
        if self.bios_left[index as usize] == 0 {
            self.completed(index, world);
        }
    }

    fn flush_ended(&mut self, _: ProcessId, _: &mut World) {
        unreachable!("a flush is an I/O like any other, with an owner of that kind");
    }

    fn has_ended(&self) -> bool {
        self.living == 0
    }

    /// A process is measured until its last I/O has ended.
    fn stop(&mut self, _: Nanos) {}

    fn finish(self) -> Replayed {
        let (outcomes, jobs) = self.issuer.finish();
        Replayed { outcomes, jobs }
    }
}
