//! Turns a recording into a replay plan: the I/Os that one disk can serve, where on it, and what each
//! waits for ([`super::history`], [`super::inferred`]).
//!
//! A recording has times; it does not say why an I/O came when it did. There are three answers:
//!
//! * **open**: each comes at its recorded time. Right for I/O that others cause, such as a server's
//!   clients; on a slower disk the queue grows without end.
//! * **closed**: each comes after as many completions of its process as in the recording, and after
//!   the recorded think time since the last of them. Right for a program that waits for its I/O; a
//!   process with 16 I/Os in flight keeps 16 in flight.
//! * **inferred**: open or closed, or after I/Os of another process: for each process what fits its
//!   times.

use std::collections::HashMap;

use thiserror::Error;

use super::history::History;
use super::inferred::inferred_starts;
use super::stored::Load;
use super::{Plug, ReplayIo, Start};
use crate::block::{BIO_SECTORS, KERNEL};
use crate::device::{DeviceId, Location};
use crate::request::{IoPrio, Op, PrioClass, ProcessId};
use crate::scheduler::{Task, Tasks};
use crate::units::Sector;
use blklab_base::recorded::{self, Flags, Io, NameId, Names};

/// The most processes of a replay. Later ones share the last.
pub const PROCESSES_MAX: usize = 4096;

/// What an I/O of a recording waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Its recorded time.
    Open,
    /// Completions of its process, and the recorded think time.
    Closed,
    /// What its process's times suggest.
    Inferred,
}

/// What happens to an I/O beyond the end of the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fit {
    /// It is an error.
    Refuse,
    /// Addresses begin again at the disk's start.
    Wrap,
    /// All addresses are multiplied, so that the recorded disk becomes as large as this one.
    Scale,
}

/// How to replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// What I/Os wait for.
    pub way: Way,
    /// What happens beyond the end of the disk.
    pub fit: Fit,
    /// The recorded disk's size, if it is known: [`Fit::Scale`] needs it, or takes the end of the
    /// last I/O.
    pub recorded: Option<Sector>,
    /// The disk's size.
    pub capacity: Sector,
}

/// A process of a replay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReplayProcess {
    /// Its recorded number.
    pub pid: u32,
    /// Its recorded name.
    pub name: NameId,
    /// The priority of its first I/O.
    pub prio: IoPrio,
}

/// What is replayed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReplayPlan {
    /// The I/Os, by recorded time.
    pub ios: Vec<ReplayIo>,
    /// The processes, by id.
    pub processes: Vec<ReplayProcess>,
    /// I/Os that are not replayed, because no disk model has their operation, or they have no
    /// length.
    pub left_out: u64,
    /// I/Os that have another address than recorded.
    pub moved: u64,
    /// I/Os of processes that share the last id.
    pub joined: u64,
    /// I/Os with a flag that only the kernel sets: metadata, urgent, read-ahead.
    pub marked: u64,
}

impl ReplayPlan {
    /// The processes for the schedulers, all in the root cgroup.
    pub fn tasks(&self) -> Tasks {
        let task = |process: &ReplayProcess| Task { prio: process.prio, ..Task::default() };
        let root = Tasks::default().cgroups()[0].clone();
        Tasks::new(self.processes.iter().map(task).collect(), vec![root])
    }

    /// The names of the processes' results; those of the recording are `names`.
    pub fn job_names(&self, names: &Names) -> Vec<String> {
        let name = |process: &ReplayProcess| match (names.name(process.name), process.pid) {
            ("", 0) => "trace".to_owned(),
            ("", pid) => pid.to_string(),
            (name, 0 | KERNEL) => name.to_owned(),
            (name, pid) => format!("{name}-{pid}"),
        };
        self.processes.iter().map(name).collect()
    }

    /// The plan for a driver of real processes. `names` as for [`ReplayPlan::job_names`].
    pub fn load(&self, names: &Names) -> Load {
        let prios = self.processes.iter().map(|process| process.prio);
        Load { ios: self.ios.clone(), processes: self.job_names(names).into_iter().zip(prios).collect() }
    }

    /// What a driver of real processes cannot submit as it was recorded.
    pub fn beyond_a_process(&self) -> Beyond {
        let count = |is: fn(&ReplayIo) -> bool| self.ios.iter().filter(|io| is(io)).count() as u64;
        Beyond {
            asynchronous: count(|io| io.op == Op::Write && !io.sync),
            cut: count(|io| io.op != Op::Discard && io.sectors > BIO_SECTORS),
            discards: count(|io| io.op == Op::Discard),
            marked: self.marked,
        }
    }
}

/// I/Os that a process cannot submit as they were recorded, below the page cache and by direct I/O.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Beyond {
    /// Asynchronous writes: a direct write is synchronous (`REQ_SYNC`).
    pub asynchronous: u64,
    /// Longer than a bio of direct I/O, and so several.
    pub cut: u64,
    /// Discards: a device has one at a time, for which a process waits.
    pub discards: u64,
    /// See [`ReplayPlan::marked`].
    pub marked: u64,
}

/// Why a recording cannot be replayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum PlanError {
    /// An I/O is beyond the end of the disk.
    #[error("I/O {number}: sectors {sector} to {end}; the disk has {capacity}")]
    BeyondTheEnd {
        /// Its line or record.
        number: u64,
        /// Its first sector.
        sector: u64,
        /// The sector after its last.
        end: u64,
        /// The disk's size in sectors.
        capacity: u64,
    },
    /// There is nothing to replay.
    #[error("no I/O that can be replayed")]
    Empty,
    /// An index would not fit.
    #[error("more than {} I/Os", u32::MAX - 1)]
    TooMany,
}

/// An I/O that is replayed: as it was recorded, and what becomes of it.
pub struct Candidate {
    /// As it was recorded.
    pub recorded: Io,
    /// Without its start.
    pub replay: ReplayIo,
    /// The index of the flush after which its data go to the disk (`REQ_PREFLUSH`).
    flush: Option<u32>,
}

/// The I/Os of a recording, ordered by their times, for one disk.
///
/// # Errors
/// See [`PlanError`].
pub fn plan(recorded: &[Io], settings: &Settings) -> Result<ReplayPlan, PlanError> {
    let mut plan = ReplayPlan::default();
    let kept = chosen(recorded, settings, &mut plan)?;
    if kept.is_empty() {
        return Err(PlanError::Empty);
    }
    if kept.len() >= u32::MAX as usize {
        return Err(PlanError::TooMany);
    }
    let starts = match settings.way {
        Way::Open => kept.iter().map(|one| Start::at(one.recorded.queued)).collect(),
        Way::Closed => {
            let history = History::new(&kept, plan.processes.len());
            kept.iter().enumerate().map(|(index, one)| history.start(index, &one.recorded)).collect()
        }
        Way::Inferred => inferred_starts(&kept, plan.processes.len()),
    };
    for (one, start) in kept.iter().zip(starts) {
        let start = match one.flush {
            Some(flush) => Start { follows: Some(flush), ..Start::default() },
            None => start,
        };
        plan.ios.push(ReplayIo { start, ..one.replay });
    }
    mark_plugs(&kept, &mut plan.ios);
    Ok(plan)
}

/// The I/Os that can be replayed, on this disk, without their starts.
fn chosen(recorded: &[Io], settings: &Settings, plan: &mut ReplayPlan) -> Result<Vec<Candidate>, PlanError> {
    let last = || recorded.iter().map(|io| io.end().0).max().unwrap_or(1);
    let size = settings.recorded.map_or_else(last, |size| size.0.max(1));
    let mut ids = HashMap::new();
    let mut kept: Vec<Candidate> = Vec::with_capacity(recorded.len());
    for io in recorded {
        let op = match io.op {
            recorded::Op::Read => Op::Read,
            recorded::Op::Write => Op::Write,
            recorded::Op::Flush => Op::Flush,
            recorded::Op::Discard => Op::Discard,
            recorded::Op::WriteZeroes | recorded::Op::Other => {
                plan.left_out += 1;
                continue;
            }
        };
        if io.sectors == 0 && op != Op::Flush {
            plan.left_out += 1;
            continue;
        }
        let known = plan.processes.len();
        let id = *ids.entry((io.pid, io.process)).or_insert(known.min(PROCESSES_MAX - 1));
        if id == known {
            let prio = io.prio.map_or_else(IoPrio::default, prio_of);
            plan.processes.push(ReplayProcess { pid: io.pid, name: io.process, prio });
        } else if id == PROCESSES_MAX - 1 {
            plan.joined += u64::from(plan.processes[id].pid != io.pid);
        }
        let sectors = if op == Op::Flush { 0 } else { io.sectors };
        let sector = if op == Op::Flush { Some(0) } else { fitted(io, size, settings) };
        let sector = sector.ok_or(PlanError::BeyondTheEnd {
            number: io.number,
            sector: io.sector.0,
            end: io.end().0,
            capacity: settings.capacity.0,
        })?;
        let marks = [Flags::META, Flags::PRIO, Flags::READ_AHEAD];
        plan.marked += u64::from(marks.into_iter().any(|mark| io.flags.has(mark)));
        plan.moved += u64::from(op != Op::Flush && sector != io.sector.0);
        let replay = ReplayIo {
            start: Start::default(),
            process: ProcessId(id as u32),
            op,
            place: Location { device: DeviceId(0), sector: Sector(sector) },
            sectors,
            sync: op == Op::Read || io.flags.has(Flags::SYNC),
            fua: op == Op::Write && io.flags.has(Flags::FUA),
            preflush: op == Op::Write && io.flags.has(Flags::PREFLUSH),
            counted: io.completed.is_some(),
            plug: if io.flags.has(Flags::BARE) { Plug::None } else { Plug::Ends },
        };
        let mut flush = None;
        if replay.preflush {
            flush = Some(kept.len() as u32);
            let place = Location { device: DeviceId(0), sector: Sector(0) };
            let before = ReplayIo {
                op: Op::Flush,
                place,
                sectors: 0,
                fua: false,
                preflush: false,
                counted: false,
                ..replay
            };
            kept.push(Candidate { recorded: *io, replay: before, flush: None });
        }
        kept.push(Candidate { recorded: *io, replay, flush });
    }
    Ok(kept)
}

/// Where the I/O begins on the disk; `None` if it does not fit.
fn fitted(io: &Io, size: u64, settings: &Settings) -> Option<u64> {
    let (sector, sectors, capacity) = (io.sector.0, u64::from(io.sectors), settings.capacity.0);
    let room = capacity.checked_sub(sectors)?;
    match settings.fit {
        Fit::Refuse => (sector <= room).then_some(sector),
        // The last I/O before the end may reach beyond it.
        Fit::Wrap => Some((sector % capacity).min(room)),
        Fit::Scale => Some(recorded::scaled(sector, size, capacity).min(room)),
    }
}

fn prio_of(prio: u16) -> IoPrio {
    let class = match prio >> 13 {
        1 => PrioClass::RealTime,
        2 => PrioClass::BestEffort,
        3 => PrioClass::Idle,
        _ => PrioClass::None,
    };
    IoPrio { class, level: (prio & 7) as u8 }
}

/// An I/O under the plug of the one before it comes together with that one.
fn mark_plugs(kept: &[Candidate], ios: &mut [ReplayIo]) {
    let mut last: HashMap<ProcessId, usize> = HashMap::new();
    for (index, Candidate { recorded, replay, .. }) in kept.iter().enumerate() {
        if replay.op == Op::Flush || replay.plug == Plug::None {
            last.remove(&replay.process);
        } else if let Some(before) = last.insert(replay.process, index)
            && recorded.flags.has(Flags::JOINS_PLUG)
        {
            ios[before].plug = Plug::GoesOn;
        }
    }
}
