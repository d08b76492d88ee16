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

use std::collections::{HashMap, HashSet};

use thiserror::Error;

use super::groups::{CGROUPS_MAX, Grouping, Groups, Members};
use super::history::{AT_ONCE, History};
use super::inferred::inferred_starts;
use super::pace::Pace;
use super::stored::Load;
use super::{Plug, Replay, ReplayIo, Start};
use crate::block::{BIO_SECTORS, KERNEL};
use crate::device::{DeviceId, Location};
use crate::request::{IoPrio, Op, PrioClass, ProcessId};
use crate::scheduler::{Task, Tasks};
use crate::units::{Bytes, Nanos, Sector};
use crate::workload::cgroups::Cgroups;
use blklab_base::recorded::{self, Flags, Io, NameId, Names, Tables};

/// The most processes of a replay. Later ones share the last.
pub const PROCESSES_MAX: usize = 4096;

/// The most I/Os of a plan, for their memory.
pub const IOS_MAX: usize = 1 << 24;

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
#[derive(Clone, Debug, PartialEq, Eq)]
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
    /// How often, and how fast.
    pub pace: Pace,
    /// Which cgroups processes are in.
    pub grouping: Grouping,
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
    /// Their cgroups.
    pub cgroups: Cgroups,
    /// I/Os that are not replayed, because no disk model has their operation, or they have no
    /// length.
    pub left_out: u64,
    /// I/Os that have another address than recorded.
    pub moved: u64,
    /// I/Os of processes that share the last id.
    pub joined: u64,
    /// I/Os with a flag that only the kernel sets: metadata, urgent, read-ahead.
    pub marked: u64,
    /// I/Os that were made longer by [`ReplayPlan::align`].
    pub enlarged: u64,
    /// Cgroups of which the recording has a number and no path.
    pub unnamed: usize,
}

impl ReplayPlan {
    /// The processes as the schedulers know them.
    pub fn members(&self) -> Members {
        Members::new(&self.ios, Replay::count(&self.ios))
    }

    /// The same, with priorities and cgroups.
    pub fn tasks(&self) -> Tasks {
        let members = self.members();
        let task = |(number, (process, cgroup)): (u32, (ProcessId, _))| {
            let prio = self.processes[process.0 as usize].prio;
            Task { prio, cgroup, mover: (process.0 != number).then_some(process) }
        };
        Tasks::new((0..).zip(members.iter()).map(task).collect(), self.cgroups.groups())
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
        let processes = self.job_names(names).into_iter().zip(prios).collect();
        Load { ios: self.ios.clone(), processes, cgroups: self.cgroups.clone() }
    }

    /// Whether an I/O changes data.
    pub fn writes(&self) -> bool {
        self.ios.iter().any(|io| matches!(io.op, Op::Write | Op::Discard))
    }

    /// The places that I/Os use, by first byte and length, rising; gaps shorter than `near` are filled.
    pub fn places(&self, near: Bytes) -> Vec<(Bytes, Bytes)> {
        let moved = self.ios.iter().filter(|io| io.op != Op::Flush);
        let mut spans: Vec<_> = moved
            .map(|io| (io.place.sector.to_bytes().0, io.place.sector.to_bytes().0 + io.bytes()))
            .collect();
        spans.sort_unstable();
        let mut found: Vec<(u64, u64)> = Vec::new();
        for (begin, end) in spans {
            match found.last_mut() {
                Some(last) if begin <= last.1.saturating_add(near.0) => last.1 = last.1.max(end),
                _ => found.push((begin, end)),
            }
        }
        found.into_iter().map(|(begin, end)| (Bytes(begin), Bytes(end - begin))).collect()
    }

    /// Makes each I/O whole blocks of a disk that takes no less, by moving its begin down and its end up.
    pub fn align(&mut self, block: Sector) {
        let block = block.0.max(1);
        for io in &mut self.ios {
            let (begin, end) = (io.place.sector.0, io.place.sector.0 + u64::from(io.sectors));
            let (first, last) = (begin - begin % block, end.next_multiple_of(block));
            self.enlarged += u64::from((first, last) != (begin, end));
            io.place.sector = Sector(first);
            // An I/O that is longer than this has whole blocks, or some of its last block are left out.
            io.sectors = u32::try_from(last - first).unwrap_or((u64::from(u32::MAX) / block * block) as u32);
        }
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
#[derive(Clone, Debug, PartialEq, Eq, Error)]
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
    /// An index would not fit, or the memory.
    #[error("{loops} times {ios} I/Os; at most {IOS_MAX} in all")]
    TooMany {
        /// How often.
        loops: u32,
        /// I/Os of the recording.
        ios: usize,
    },
    /// Several recordings together have too many processes.
    #[error("{0} processes; at most {PROCESSES_MAX} in all")]
    TooManyProcesses(usize),
    /// There are too many cgroups.
    #[error(
        "more than {CGROUPS_MAX} cgroups, with those around them, or processes in so many; cgroups=none \
         replays it without"
    )]
    TooManyCgroups,
    /// A weight is of a cgroup that is not in the recording.
    #[error("no cgroup '{path}' in it; there is: {}", listed(.known))]
    NoCgroup {
        /// The given path.
        path: String,
        /// Those of the recording.
        known: Vec<String>,
    },
    /// A cgroup has two weights.
    #[error("{0}")]
    Weights(String),
}

/// Some names for a message.
fn listed(names: &[String]) -> String {
    const MOST: usize = 8;
    match names {
        [] => "none beside the root".to_owned(),
        _ if names.len() <= MOST => names.join(", "),
        _ => format!("{} and {} more", names[..MOST].join(", "), names.len() - MOST),
    }
}

/// An I/O that is replayed: as it was recorded, and what becomes of it.
#[derive(Clone, Copy, Debug)]
pub struct Candidate {
    /// As it was recorded.
    pub recorded: Io,
    /// Without its start.
    pub replay: ReplayIo,
    /// The index of the flush after which its data go to the disk (`REQ_PREFLUSH`).
    flush: Option<u32>,
}

impl Candidate {
    /// The same in a later loop, which begins at that time and after so many I/Os.
    fn later(self, begins: Nanos, ios: u32) -> Candidate {
        let later = |time: Option<Nanos>| time.map(|time| time.saturating_add(begins));
        let recorded = Io {
            queued: self.recorded.queued.saturating_add(begins),
            inserted: later(self.recorded.inserted),
            issued: later(self.recorded.issued),
            completed: later(self.recorded.completed),
            ..self.recorded
        };
        Candidate { recorded, flush: self.flush.map(|flush| flush + ios), ..self }
    }
}

/// What the names of the kernel's threads begin with that write back, among them.
const WORKER: &str = "kworker/u";

/// What the names of the threads of ext4's journals begin with.
const JOURNAL: &str = "jbd2/";

/// The I/Os of a recording, ordered by their times, for one disk.
///
/// # Errors
/// See [`PlanError`].
pub fn plan(recorded: &[Io], tables: &Tables, settings: &Settings) -> Result<ReplayPlan, PlanError> {
    let mut plan = ReplayPlan::default();
    let mut groups = Groups::new(recorded, &tables.cgroups, &settings.grouping)?;
    let once = chosen(recorded, tables, settings, &mut groups, &mut plan)?;
    (plan.cgroups, plan.unnamed) = groups.finish();
    if once.is_empty() {
        return Err(PlanError::Empty);
    }
    let Pace { speed, loops, length } = settings.pace;
    let too_many = PlanError::TooMany { loops, ios: once.len() };
    let all = once.len().checked_mul(loops as usize).filter(|&all| all <= IOS_MAX).ok_or(too_many)?;
    let length = length.unwrap_or_else(|| end_of(recorded));
    let begins = |number: u32| Nanos(length.0.saturating_mul(number.into()));
    let mut several = Vec::with_capacity(if loops > 1 { all } else { 0 });
    for number in 0..if loops > 1 { loops } else { 0 } {
        let ios = number * once.len() as u32;
        several.extend(once.iter().map(|one| one.later(begins(number), ios)));
    }
    let kept = if loops > 1 { &several } else { &once };
    let processes = plan.processes.len();
    let starts = match settings.way {
        Way::Open => kept.iter().map(|one| Start::at(one.recorded.queued)).collect(),
        Way::Closed => {
            let history = History::new(kept, processes);
            kept.iter().enumerate().map(|(index, one)| history.start(index, &one.recorded)).collect()
        }
        Way::Inferred => {
            let is_worker = |process: &ReplayProcess| tables.processes.name(process.name).starts_with(WORKER);
            let is_worker: Vec<_> = plan.processes.iter().map(is_worker).collect();
            inferred_starts(&once, kept, length, &is_worker)
        }
    };
    for (one, start) in kept.iter().zip(starts) {
        let start = match one.flush {
            Some(flush) => Start { follows: Some(flush), ..Start::default() },
            None => start,
        };
        let start = Start { not_before: speed.of(start.not_before), think: speed.of(start.think), ..start };
        plan.ios.push(ReplayIo { start, ..one.replay });
    }
    for (kept, ios) in kept.chunks(once.len()).zip(plan.ios.chunks_mut(once.len())) {
        mark_plugs(kept, ios);
    }
    let loops = u64::from(loops);
    for count in [&mut plan.left_out, &mut plan.moved, &mut plan.joined, &mut plan.marked] {
        *count *= loops;
    }
    match plan.members().iter().count() {
        known if known > plan.processes.len() + PROCESSES_MAX => Err(PlanError::TooManyCgroups),
        _ => Ok(plan),
    }
}

/// A plan beside others on one disk.
#[derive(Clone, Copy, Debug)]
pub struct Part<'a> {
    /// The plan.
    pub plan: &'a ReplayPlan,
    /// The names of its recording.
    pub names: &'a Names,
    /// Stands before the names of its processes.
    pub label: &'a str,
}

/// Several plans on one disk, which begin together, each with its own processes; and the names of all.
/// Cgroups of one path are one.
///
/// # Errors
/// [`PlanError::TooMany`], [`PlanError::TooManyProcesses`], [`PlanError::TooManyCgroups`] or
/// [`PlanError::Weights`].
pub fn beside(parts: &[Part<'_>]) -> Result<(ReplayPlan, Names), PlanError> {
    let (mut all, mut names) = (ReplayPlan::default(), Names::default());
    for Part { plan, names: its, label } in parts {
        let (ios, processes) = (all.ios.len() as u32, all.processes.len() as u32);
        let by = format!("recording '{label}'");
        let ids = all.cgroups.join(&plan.cgroups, &by).map_err(PlanError::Weights)?;
        if all.cgroups.all().len() > CGROUPS_MAX {
            return Err(PlanError::TooManyCgroups);
        }
        all.ios.extend(plan.ios.iter().map(|io| ReplayIo {
            start: Start {
                follows: io.start.follows.map(|other| other + ios),
                unless: io.start.unless.map(|other| other + ios),
                ..io.start
            },
            process: ProcessId(io.process.0 + processes),
            cgroup: ids[usize::from(io.cgroup.0)],
            ..*io
        }));
        all.processes.extend(plan.processes.iter().map(|process| {
            let name = match its.name(process.name) {
                "" => names.id(label),
                name => names.id(&format!("{label}:{name}")),
            };
            ReplayProcess { name, ..*process }
        }));
        all.left_out += plan.left_out;
        all.moved += plan.moved;
        all.joined += plan.joined;
        all.marked += plan.marked;
        all.enlarged += plan.enlarged;
        all.unnamed += plan.unnamed;
        if all.ios.len() > IOS_MAX {
            return Err(PlanError::TooMany { loops: 1, ios: all.ios.len() });
        }
        if all.processes.len() > PROCESSES_MAX {
            return Err(PlanError::TooManyProcesses(all.processes.len()));
        }
    }
    Ok((all, names))
}

/// When the last I/O had come, and the last had completed.
fn end_of(recorded: &[Io]) -> Nanos {
    recorded.iter().map(|io| io.completed.unwrap_or_default().max(io.queued)).max().unwrap_or_default()
}

/// The I/Os that can be replayed, on this disk, without their starts.
fn chosen(
    recorded: &[Io],
    tables: &Tables,
    settings: &Settings,
    groups: &mut Groups<'_>,
    plan: &mut ReplayPlan,
) -> Result<Vec<Candidate>, PlanError> {
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
            let prio = io.prio.map_or_else(|| usual_prio(tables.processes.name(io.process)), prio_of);
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
            cgroup: groups.of(io),
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

/// The priority of a process where the recording tells none; blktrace records no priorities. The thread of ext4's journal
/// has one without being told (`DEFAULT_JOURNAL_IOPRIO`), all others have none.
fn usual_prio(name: &str) -> IoPrio {
    match name.starts_with(JOURNAL) {
        true => IoPrio { class: PrioClass::BestEffort, level: 3 },
        false => IoPrio::default(),
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

/// An I/O under the plug of the one before it comes together with that one. A process that slept for a
/// request has handed over its plug, and goes on under it where it comes at once: with more requests it
/// would not have slept. Only of a process that collects I/Os under plugs: another one hands over each.
fn mark_plugs(kept: &[Candidate], ios: &mut [ReplayIo]) {
    let mut last: HashMap<ProcessId, usize> = HashMap::new();
    let joined = kept.iter().filter(|one| one.recorded.flags.has(Flags::JOINS_PLUG));
    let collects: HashSet<ProcessId> = joined.map(|one| one.replay.process).collect();
    for (index, Candidate { recorded, replay, .. }) in kept.iter().enumerate() {
        if replay.op == Op::Flush || replay.plug == Plug::None {
            last.remove(&replay.process);
        } else if let Some(before) = last.insert(replay.process, index)
            && (recorded.flags.has(Flags::JOINS_PLUG)
                || collects.contains(&replay.process) && slept_before(&kept[before].recorded, recorded))
        {
            ios[before].plug = Plug::GoesOn;
        }
    }
}

/// The I/O comes at once after the one before it got a request for which its process had slept.
fn slept_before(before: &Io, one: &Io) -> bool {
    let Some(inserted) = before.inserted else { return false };
    inserted > before.queued.saturating_add(AT_ONCE)
        && one.queued >= inserted
        && one.queued - inserted <= AT_ONCE
}

#[cfg(test)]
mod tests;
