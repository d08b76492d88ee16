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
mod history;
mod inferred;
mod plan;

use std::collections::VecDeque;
use std::ops::Range;

use thiserror::Error;

use crate::block::{BioStream, Manner};
use crate::device::{DeviceId, Location};
use crate::disk::Disk;
use crate::engine::{Ran, Source, World};
use crate::owner::{Actor, Owner};
use crate::request::{Bio, IoPrio, Op, ProcessId};
use crate::result::JobResult;
use crate::scheduler::Tasks;
use crate::source::fio::tally::{IoTimes, Tally};
use crate::units::{Nanos, SECTOR_BYTES, Sector};

pub use plan::{Fit, PlanError, ReplayPlan, ReplayProcess, Settings, Way, plan};

/// What an I/O waits for before it comes; all of these.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Start {
    /// This time.
    pub not_before: Nanos,
    /// This many I/Os of its process that count have completed, in any order.
    pub after: u32,
    /// This I/O has completed: an index in the list of all.
    pub follows: Option<u32>,
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplayIo {
    /// When it comes to the block layer.
    pub start: Start,
    /// The process that issues it.
    pub process: ProcessId,
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

/// A process, with its I/Os in their order.
#[derive(Debug)]
struct Process {
    actor: Actor,
    prio: IoPrio,
    cpu: u16,
    /// The I/Os to come, as a range of [`Replay::order`].
    left: Range<usize>,
    in_flight: usize,
    /// When its first I/O was due, once it was.
    began: Option<Nanos>,
    /// When all of its latest I/O was in the block layer.
    submitted: Nanos,
    /// When its last I/O completed.
    ended: Nanos,
    has_exited: bool,
    /// The times of completions from the `forgotten`-th on.
    completions: VecDeque<Nanos>,
    forgotten: u32,
    /// An I/O of it waits for completions.
    counts: bool,
    /// The I/O that its next one follows, until it completes.
    follows: Option<u32>,
    /// The first of the I/Os to come was due at this time, and its plug is open.
    together: Option<Nanos>,
    /// The rest of the I/O that waits for a request.
    stream: Option<(DeviceId, BioStream)>,
    tally: Tally,
}

impl Process {
    fn completed(&self) -> u32 {
        self.forgotten + self.completions.len() as u32
    }

    /// When the `count`-th completion was, from 1; zero for none. Earlier ones are forgotten.
    fn completion(&mut self, count: u32) -> Nanos {
        while self.forgotten + 1 < count {
            self.completions.pop_front();
            self.forgotten += 1;
        }
        if count == 0 { Nanos::ZERO } else { self.completions[(count - 1 - self.forgotten) as usize] }
    }
}

/// Bandwidth and IOPS are sampled over this time, as by fio.
const SAMPLE: Nanos = Nanos::from_millis(500);

/// The source: all I/Os and their state.
pub struct Replay {
    ios: Vec<ReplayIo>,
    outcomes: Vec<Outcome>,
    /// Per I/O: bios that have not completed; [`u32::MAX`] before it is submitted.
    bios_left: Vec<u32>,
    /// Indices of I/Os: those of the first process in their order, then those of the second, and
    /// so on.
    order: Vec<u32>,
    /// By id.
    processes: Vec<Process>,
    living: usize,
    /// Processes whose next I/O follows one that has not completed.
    waiting: Vec<ProcessId>,
}

/// The measurements of a replay.
pub struct Replayed {
    /// One per I/O, in the order of the list.
    pub outcomes: Vec<Outcome>,
    /// One per process, by id, without names.
    pub jobs: Vec<JobResult>,
}

const NOT_SUBMITTED: u32 = u32::MAX;

impl Replay {
    /// The number of processes of `ios`, for [`crate::engine::Machine::processes`].
    pub fn count(ios: &[ReplayIo]) -> usize {
        ios.iter().map(|io| io.process.0 as usize + 1).max().unwrap_or(0)
    }

    /// `ios`, in which each process's are in its order, on the machine `world`. Priorities are
    /// those of `tasks`.
    ///
    /// # Errors
    /// The first I/O that names no disk of the machine, lies beyond its end, or waits in vain.
    pub fn new(ios: Vec<ReplayIo>, tasks: &Tasks, world: &World) -> Result<Replay, ReplayError> {
        let capacities: Vec<_> = world.devices.iter().map(|device| device.disk.limits().capacity.0).collect();
        check(&ios, &capacities)?;
        let mut order: Vec<_> = (0..ios.len() as u32).collect();
        // Stable: a process's I/Os keep their order.
        order.sort_by_key(|&io| ios[io as usize].process);
        let mut begin = 0;
        let process = |id: usize| {
            let id = ProcessId(id as u32);
            let own = &order[begin..];
            let count = own.partition_point(|&io| ios[io as usize].process == id);
            let left = begin..begin + count;
            begin = left.end;
            Process {
                actor: Actor::Process(id),
                prio: tasks.get(id).prio,
                cpu: (id.0 % u32::from(world.host.cpus)) as u16,
                in_flight: 0,
                began: None,
                submitted: Nanos::ZERO,
                ended: Nanos::ZERO,
                has_exited: false,
                completions: VecDeque::new(),
                forgotten: 0,
                counts: order[left.clone()].iter().any(|&io| ios[io as usize].start.after > 0),
                follows: None,
                together: None,
                stream: None,
                tally: Tally::new(SAMPLE, SAMPLE),
                left,
            }
        };
        let processes: Vec<_> = (0..Replay::count(&ios)).map(process).collect();
        Ok(Replay {
            outcomes: vec![Outcome::default(); ios.len()],
            bios_left: vec![NOT_SUBMITTED; ios.len()],
            living: processes.iter().filter(|process| !process.left.is_empty()).count(),
            waiting: Vec::new(),
            ios,
            order,
            processes,
        })
    }

    fn has_completed(&self, io: u32) -> bool {
        self.bios_left[io as usize] == 0
    }

    /// When the next I/O `io` of `process` is due; `None` while it waits for completions.
    fn due(&mut self, id: ProcessId, io: u32) -> Option<Nanos> {
        if let Some(together) = self.processes[id.0 as usize].together {
            return Some(together);
        }
        let start = self.ios[io as usize].start;
        let followed = match start.follows {
            Some(other) if !self.has_completed(other) => {
                let process = &mut self.processes[id.0 as usize];
                if process.follows.is_none() {
                    process.follows = Some(other);
                    self.waiting.push(id);
                }
                return None;
            }
            Some(other) => self.outcomes[other as usize].completed,
            None => Nanos::ZERO,
        };
        let process = &mut self.processes[id.0 as usize];
        if start.after > process.completed() {
            return None;
        }
        let since = match start.after > 0 || start.follows.is_some() || start.goes_on {
            true => followed.max(process.completion(start.after)).max(process.submitted),
            false => Nanos::ZERO,
        };
        Some(start.not_before.max(since.saturating_add(start.think)))
    }

    /// Submits the first I/O of `process` to the block layer, or the rest of it; false if the
    /// process sleeps, waiting for a request.
    fn submit(&mut self, id: ProcessId, due: Nanos, world: &mut World) -> bool {
        let process = &mut self.processes[id.0 as usize];
        let index = self.order[process.left.start];
        let (io, now) = (self.ios[index as usize], world.now());
        let device = &mut world.devices[io.place.device];
        if process.stream.is_none() {
            process.began.get_or_insert(due);
            let flush = io.start.follows.filter(|_| io.preflush);
            self.outcomes[index as usize].due = flush.map_or(due, |flush| self.outcomes[flush as usize].due);
            process.in_flight += 1;
            process.tally.depth(process.in_flight as u32);
            let nothing_to_flush = io.op == Op::Flush && !device.block.has_volatile_write_cache();
            self.bios_left[index as usize] = 1;
            if !nothing_to_flush {
                self.bios_left[index as usize] = device.parts_of_bio(io.sectors);
                let bio = Bio {
                    op: io.op,
                    sector: io.place.sector,
                    sectors: io.sectors,
                    sync: io.sync,
                    fua: io.fua,
                    // A trace does not record it; it is set for direct writes, as most sync writes are.
                    idle: io.sync,
                    process: io.process,
                    prio: process.prio,
                    cpu: process.cpu,
                    hw_queue: device.hw_queue(process.cpu),
                    owner: Owner::Process(io.process, index).pack(),
                };
                let manner = match io.plug {
                    Plug::None => Manner::on_a_device(io.op, io.sectors),
                    Plug::Ends | Plug::GoesOn => Manner::PLUGGED,
                };
                let left = device.begin_bio(now, bio, manner);
                process.stream = left.map(|stream| (io.place.device, stream));
            }
            if nothing_to_flush {
                // As `submit_bio_noacct` does.
                self.outcomes[index as usize].issued = now;
                self.go_on(id, &io, due, now);
                self.bio_ended(id, index, world);
                return true;
            }
        }
        let process = &mut self.processes[id.0 as usize];
        if let Some((_, stream)) = &mut process.stream
            && !device.hand_over(now, stream, process.actor)
        {
            return false;
        }
        process.stream = None;
        self.outcomes[index as usize].issued = now;
        self.go_on(id, &io, due, now);
        if io.plug != Plug::GoesOn {
            world.unplug();
            world.pass_on_request();
        }
        true
    }

    /// The first I/O of the process was submitted.
    fn go_on(&mut self, id: ProcessId, io: &ReplayIo, due: Nanos, now: Nanos) {
        let process = &mut self.processes[id.0 as usize];
        process.submitted = now;
        process.left.start += 1;
        process.together = (io.plug == Plug::GoesOn && !process.left.is_empty()).then_some(due);
    }

    /// An I/O has completed: processes that wait for it go on.
    fn tell(&mut self, id: ProcessId, io: u32, world: &mut World) {
        let now = world.now();
        let (processes, waiting) = (&mut self.processes, &mut self.waiting);
        waiting.retain(|&other| {
            let process = &mut processes[other.0 as usize];
            if process.follows != Some(io) {
                return true;
            }
            process.follows = None;
            world.wake(process.actor, now);
            false
        });
        let process = &mut self.processes[id.0 as usize];
        let goes_on = match self.order[process.left.clone()].first() {
            // A process that sleeps until a time, or for a request, sleeps on.
            Some(&next) => {
                let after = self.ios[next as usize].start.after;
                process.counts && process.stream.is_none() && after == process.completed()
            }
            // The process ends.
            None => process.in_flight == 0,
        };
        if goes_on {
            world.wake(process.actor, now);
        }
    }

    fn result(process: &mut Process) -> JobResult {
        let begin = process.began.unwrap_or(Nanos::ZERO);
        process.tally.begin = begin;
        let [read, write, trim] = process.tally.directions(process.ended);
        let (sync_lat, sync_hist) = process.tally.syncs();
        JobResult {
            start_ns: begin.0,
            end_ns: process.ended.0,
            read,
            write,
            trim,
            sync_lat,
            sync_hist,
            latency_levels: process.tally.latency_levels(),
            depth_levels: process.tally.depth_levels,
            ..JobResult::default()
        }
    }
}

/// Every I/O can be submitted, and will be.
fn check(ios: &[ReplayIo], capacities: &[u64]) -> Result<(), ReplayError> {
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
        for process in self.processes.iter().filter(|process| !process.left.is_empty()) {
            world.wake(process.actor, Nanos::ZERO);
        }
    }

    fn run(&mut self, id: ProcessId, world: &mut World) -> Ran {
        loop {
            let process = &self.processes[id.0 as usize];
            let Some(&next) = self.order[process.left.clone()].first() else {
                if process.in_flight == 0 && !process.has_exited {
                    self.processes[id.0 as usize].has_exited = true;
                    let cpu = self.cpu(id);
                    world.process_exited(id, cpu);
                    self.living -= 1;
                }
                return Ran::Asleep;
            };
            let due = match process.stream {
                Some(_) => Some(self.outcomes[next as usize].due),
                None => self.due(id, next),
            };
            match due {
                // A plug is not open here: what comes under one is due at once.
                None => return Ran::Asleep,
                Some(due) if due > world.now() => {
                    world.wake(Actor::Process(id), due);
                    return Ran::Asleep;
                }
                Some(due) => {
                    if !self.submit(id, due, world) {
                        return Ran::Asleep;
                    }
                }
            }
        }
    }

    #[inline]
    fn cpu(&self, id: ProcessId) -> u16 {
        self.processes[id.0 as usize].cpu
    }

    fn bio_ended(&mut self, id: ProcessId, index: u32, world: &mut World) {
        self.bios_left[index as usize] -= 1;
        if self.bios_left[index as usize] > 0 {
            return;
        }
        let (now, io) = (world.now(), self.ios[index as usize]);
        let outcome = &mut self.outcomes[index as usize];
        outcome.completed = now;
        let due = outcome.due;
        let process = &mut self.processes[id.0 as usize];
        process.in_flight -= 1;
        process.ended = now;
        if process.counts && io.counted {
            process.completions.push_back(now);
        }
        let bytes = u64::from(io.sectors) * SECTOR_BYTES;
        let side = match io.op {
            Op::Read => Some(0),
            Op::Write => Some(1),
            Op::Discard => Some(2),
            Op::Flush => None,
        };
        match side {
            Some(side) => {
                let times = IoTimes { start: due, issued: due, reaped: now };
                process.tally.io(side, bytes, times, false);
                let series = &mut world.devices[io.place.device].block.series;
                series.completed(now, io.op.is_write(), bytes, now - due);
            }
            None => process.tally.sync(now - due),
        }
        self.tell(id, index, world);
    }

    fn flush_ended(&mut self, _: ProcessId, _: &mut World) {
        unreachable!("a flush is an I/O like any other, with an owner of that kind");
    }

    fn has_ended(&self) -> bool {
        self.living == 0
    }

    fn finish(mut self) -> Replayed {
        Replayed { outcomes: self.outcomes, jobs: self.processes.iter_mut().map(Replay::result).collect() }
    }
}
