//! Timed I/Os as a source: open loop.
//!
//! Each [`Arrival`] is an I/O with the time at which it comes to the block layer, a device and a
//! sector on it, as recorded traces have them: no file, no think time, no waiting for the previous
//! I/O. An arrival comes at its time however late the earlier ones are, so that the queue grows
//! where the disk is too slow. Its latency counts from its time.
//!
//! One thing delays an arrival, as in the kernel: where all requests of the queue are taken, the
//! process sleeps until it gets one, and its later arrivals wait too. [`Outcome::issued`] is the
//! time at which all of an arrival was in the block layer.
//!
//! Each I/O is submitted like direct I/O on a device: without a plug if it fits one bio. Submission
//! takes no CPU time, because the recorded times contain it; nor does completion, because no
//! process waits for it.

use std::ops::Range;

use thiserror::Error;

use crate::block::{BioStream, Manner};
use crate::device::{DeviceId, Location};
use crate::disk::Disk;
use crate::engine::{Owner, Ran, Source, World};
use crate::request::{Actor, Bio, IoPrio, Op, ProcessId};
use crate::scheduler::Tasks;
use crate::units::{Nanos, SECTOR_BYTES, Sector};

/// An I/O that comes at a given time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// When it comes to the block layer.
    pub at: Nanos,
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
}

/// The times of an arrival.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// When all of it was in the block layer: its time, unless it had to wait for a request.
    pub issued: Nanos,
    /// When it completed.
    pub completed: Nanos,
}

/// Why a machine cannot run the arrivals. Arrivals are numbered from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ArrivalError {
    /// There is no such device.
    #[error("I/O {0}: the machine has no device {1}")]
    NoDevice(usize, u16),
    /// The arrival is not on the disk.
    #[error("I/O {io}: {sectors} sectors from sector {sector} on; the disk has {capacity}")]
    NotOnDisk {
        /// The arrival.
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
}

/// A process, with its arrivals in order of time.
#[derive(Debug)]
struct Process {
    actor: Actor,
    prio: IoPrio,
    cpu: u16,
    /// The arrivals to come, as a range of [`Arrivals::order`].
    left: Range<usize>,
    in_flight: usize,
    /// The rest of the arrival that waits for a request.
    stream: Option<(DeviceId, BioStream)>,
}

/// The source: all arrivals and their state.
pub struct Arrivals {
    arrivals: Vec<Arrival>,
    outcomes: Vec<Outcome>,
    /// Per arrival: bios that have not completed.
    bios_left: Vec<u32>,
    /// Numbers of arrivals: those of the first process by time, then those of the second, and so
    /// on.
    order: Vec<u32>,
    /// By id.
    processes: Vec<Process>,
    living: usize,
}

impl Arrivals {
    /// The number of processes of `arrivals`, for [`crate::engine::Machine::processes`].
    pub fn count(arrivals: &[Arrival]) -> usize {
        arrivals.iter().map(|arrival| arrival.process.0 as usize + 1).max().unwrap_or(0)
    }

    /// `arrivals` in any order, on the machine `world`. A process's arrivals with the same time
    /// come in the order of the list. Priorities are those of `tasks`.
    ///
    /// # Errors
    /// The first arrival that names no disk of the machine, or lies beyond its end.
    pub fn new(arrivals: Vec<Arrival>, tasks: &Tasks, world: &World) -> Result<Arrivals, ArrivalError> {
        let capacities: Vec<_> = world.devices.iter().map(|device| device.disk.limits().capacity.0).collect();
        for (io, arrival) in arrivals.iter().enumerate() {
            let Location { device, sector: Sector(sector) } = arrival.place;
            let capacity =
                *capacities.get(usize::from(device.0)).ok_or(ArrivalError::NoDevice(io, device.0))?;
            let sectors = arrival.sectors;
            if (sectors == 0) != (arrival.op == Op::Flush) {
                return Err(ArrivalError::Length(io));
            }
            if sector.checked_add(sectors.into()).is_none_or(|end| end > capacity) {
                return Err(ArrivalError::NotOnDisk { io, sector, sectors, capacity });
            }
        }
        let mut order: Vec<_> = (0..arrivals.len() as u32).collect();
        order.sort_by_key(|&io| (arrivals[io as usize].process, arrivals[io as usize].at));
        let mut begin = 0;
        let process = |id: usize| {
            let id = ProcessId(id as u32);
            let count = order[begin..].partition_point(|&io| arrivals[io as usize].process == id);
            let left = begin..begin + count;
            begin = left.end;
            Process {
                actor: Actor::Process(id),
                prio: tasks.get(id).prio,
                cpu: (id.0 % u32::from(world.host.cpus)) as u16,
                left,
                in_flight: 0,
                stream: None,
            }
        };
        let processes: Vec<_> = (0..Arrivals::count(&arrivals)).map(process).collect();
        Ok(Arrivals {
            outcomes: vec![Outcome::default(); arrivals.len()],
            bios_left: vec![0; arrivals.len()],
            living: processes.iter().filter(|process| !process.left.is_empty()).count(),
            arrivals,
            order,
            processes,
        })
    }

    /// Submits the first arrival of `process` to the block layer, or the rest of it; false if the
    /// process sleeps, waiting for a request.
    fn submit(&mut self, process: ProcessId, world: &mut World) -> bool {
        let io = self.order[self.processes[process.0 as usize].left.start];
        let (arrival, now) = (self.arrivals[io as usize], world.now());
        let process = &mut self.processes[process.0 as usize];
        let device = &mut world.devices[arrival.place.device];
        if arrival.op == Op::Flush && !device.block.has_volatile_write_cache() {
            // There is nothing to flush (`submit_bio_noacct`).
            process.left.start += 1;
            self.outcomes[io as usize] = Outcome { issued: now, completed: now };
            return true;
        }
        if process.stream.is_none() {
            self.bios_left[io as usize] = device.bios_of(arrival.sectors);
            process.in_flight += 1;
            let bio = Bio {
                op: arrival.op,
                sector: arrival.place.sector,
                sectors: arrival.sectors,
                sync: arrival.sync,
                fua: arrival.fua,
                // A trace does not record it; it is set for direct writes, as most sync writes are.
                idle: arrival.sync,
                process: arrival.process,
                prio: process.prio,
                cpu: process.cpu,
                hw_queue: device.hw_queue(process.cpu),
                owner: Owner::Process(arrival.process, io).pack(),
            };
            let left = device.begin(now, bio, Manner::on_a_device(arrival.op, arrival.sectors));
            process.stream = left.map(|stream| (arrival.place.device, stream));
        }
        if let Some((_, stream)) = &mut process.stream
            && !device.hand_over(now, stream, process.actor)
        {
            return false;
        }
        process.stream = None;
        process.left.start += 1;
        self.outcomes[io as usize].issued = now;
        world.unplug();
        world.pass_on_request();
        true
    }
}

impl Source for Arrivals {
    type Measured = Vec<Outcome>;

    fn begin(&mut self, world: &mut World) {
        for process in &self.processes {
            if let Some(&first) = self.order[process.left.clone()].first() {
                world.wake(process.actor, self.arrivals[first as usize].at);
            }
        }
    }

    fn run(&mut self, id: ProcessId, world: &mut World) -> Ran {
        loop {
            let process = &self.processes[id.0 as usize];
            let Some(&next) = self.order[process.left.clone()].first() else {
                if process.in_flight == 0 {
                    world.process_exited(id);
                    self.living -= 1;
                }
                return Ran::Asleep;
            };
            let at = self.arrivals[next as usize].at;
            if at > world.now() {
                world.wake(process.actor, at);
                return Ran::Asleep;
            }
            if !self.submit(id, world) {
                return Ran::Asleep;
            }
        }
    }

    fn bio_ended(&mut self, process: ProcessId, io: u32, world: &mut World) {
        let index = io as usize;
        self.bios_left[index] -= 1;
        if self.bios_left[index] > 0 {
            return;
        }
        let (now, arrival) = (world.now(), &self.arrivals[index]);
        self.outcomes[index].completed = now;
        let (write, bytes) = (arrival.op.is_write(), u64::from(arrival.sectors) * SECTOR_BYTES);
        let series = &mut world.devices[arrival.place.device].block.series;
        series.completed(now, write, bytes, now - arrival.at);
        let process = &mut self.processes[process.0 as usize];
        process.in_flight -= 1;
        if process.in_flight == 0 && process.left.is_empty() {
            // The process ends.
            world.wake(process.actor, now);
        }
    }

    fn flush_ended(&mut self, _: ProcessId, _: &mut World) {
        unreachable!("a flush is an arrival like any other, with an owner of that kind");
    }

    fn has_ended(&self) -> bool {
        self.living == 0
    }

    fn finish(self) -> Vec<Outcome> {
        self.outcomes
    }
}
