//! What to replay of a recording: which I/Os, where on the disk, and what each waits for.
//!
//! A recording has times; it does not say why an I/O came when it did. There are three answers:
//!
//! * **open**: each comes at its recorded time. Right for I/O that others cause, such as a server's
//!   clients; on a slower disk the queue grows without end.
//! * **closed**: each comes after as many completions of its process as in the recording, and after
//!   the recorded think time since the last of them. Right for a program that waits for its I/O; a
//!   process with 16 I/Os in flight keeps 16 in flight.
//! * **inferred**: for each process what fits its times. A process whose gaps vary less than its
//!   think times, or whose I/Os after a pause lie on one line over their numbers, follows a clock:
//!   open, with no more I/Os in flight than recorded, and behind its times it catches up. Asynchronous
//!   writes are write-back, for which no process waits; they follow the progress of the processes
//!   that read and write synchronously. An I/O that regularly comes shortly after completions of
//!   another process follows those. All else is closed.

use std::collections::HashMap;

use thiserror::Error;

use super::{Plug, ReplayIo, Start};
use crate::device::{DeviceId, Location};
use crate::request::{IoPrio, Op, PrioClass, ProcessId};
use crate::scheduler::{Task, Tasks};
use crate::units::{Nanos, Sector};
use blklab_base::recorded::{self, Flags, Io, NameId};

/// The most processes of a replay. Later ones share the last.
pub const PROCESSES_MAX: usize = 4096;

/// An I/O this soon after a completion may have waited for it: a wake-up and a little work.
const SOON: Nanos = Nanos::from_micros(200);

/// A process's times say nothing below this number of I/Os.
const ENOUGH: usize = 8;

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
}

impl ReplayPlan {
    /// The processes for the schedulers, all in the root cgroup.
    pub fn tasks(&self) -> Tasks {
        let task = |process: &ReplayProcess| Task { prio: process.prio, ..Task::default() };
        let root = Tasks::default().cgroups()[0].clone();
        Tasks::new(self.processes.iter().map(task).collect(), vec![root])
    }
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
        Way::Open => kept.iter().map(|(io, _)| Start::at(io.queued)).collect(),
        Way::Closed => closed(&kept, &History::new(&kept)),
        Way::Inferred => inferred(&kept, plan.processes.len()),
    };
    for (index, ((io, one), start)) in kept.iter().zip(starts).enumerate() {
        let flush = index.checked_sub(1).filter(|&before| kept[before].0 == *io && one.op == Op::Write);
        let start = match flush {
            // `REQ_PREFLUSH`: the data go to the disk after the flush.
            Some(flush) => Start { follows: Some(flush as u32), ..Start::default() },
            None => start,
        };
        plan.ios.push(ReplayIo { start, ..*one });
    }
    mark_plugs(&kept, &mut plan.ios);
    Ok(plan)
}

/// The I/Os that can be replayed, on this disk, without their starts.
fn chosen(
    recorded: &[Io],
    settings: &Settings,
    plan: &mut ReplayPlan,
) -> Result<Vec<(Io, ReplayIo)>, PlanError> {
    let last = || recorded.iter().map(|io| io.end().0).max().unwrap_or(1);
    let size = settings.recorded.map_or_else(last, |size| size.0.max(1));
    let mut ids = HashMap::new();
    let mut kept = Vec::with_capacity(recorded.len());
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
        plan.moved += u64::from(op != Op::Flush && sector != io.sector.0);
        let one = ReplayIo {
            start: Start::default(),
            process: ProcessId(id as u32),
            op,
            place: Location { device: DeviceId(0), sector: Sector(sector) },
            sectors,
            sync: op == Op::Read || io.flags.has(Flags::SYNC),
            fua: op == Op::Write && io.flags.has(Flags::FUA),
            counted: io.completed.is_some(),
            plug: if io.flags.has(Flags::BARE) { Plug::None } else { Plug::Ends },
        };
        if op == Op::Write && io.flags.has(Flags::PREFLUSH) {
            let flush = ReplayIo {
                op: Op::Flush,
                place: Location { device: DeviceId(0), sector: Sector(0) },
                sectors: 0,
                fua: false,
                counted: false,
                ..one
            };
            kept.push((*io, flush));
        }
        kept.push((*io, one));
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

/// The completions of each process, and where each I/O stands among them.
struct History {
    /// Per I/O: how many counted I/Os of its process had completed before it came.
    after: Vec<u32>,
    /// Per I/O: when its process could go on: when the last of them had completed, and the I/O of the
    /// process before it was in the block layer, for which it may have waited for a request.
    since: Vec<Nanos>,
}

impl History {
    fn new(kept: &[(Io, ReplayIo)]) -> History {
        let processes = super::Replay::count(&kept.iter().map(|(_, one)| *one).collect::<Vec<_>>());
        let mut completions = vec![Vec::new(); processes];
        for (io, one) in kept.iter().filter(|(_, one)| one.counted) {
            completions[one.process.0 as usize].extend(io.completed);
        }
        completions.iter_mut().for_each(|times| times.sort_unstable());
        let mut history = History { after: Vec::new(), since: Vec::new() };
        let mut passed = vec![0_usize; processes];
        let mut counted = vec![0_u32; processes];
        let mut submitted = vec![Nanos::ZERO; processes];
        for (io, one) in kept {
            let process = one.process.0 as usize;
            let (times, next) = (&completions[process], &mut passed[process]);
            while times.get(*next).is_some_and(|&time| time <= io.queued) {
                *next += 1;
            }
            // A clock that stepped may show a completion before its I/O.
            let after = (*next).min(counted[process] as usize);
            history.after.push(after as u32);
            let completed = if after == 0 { Nanos::ZERO } else { times[after - 1] };
            history.since.push(completed.max(submitted[process]).min(io.queued));
            submitted[process] = io.inserted.unwrap_or(io.queued);
            counted[process] += u32::from(one.counted);
        }
        history
    }

    fn start(&self, index: usize, io: &Io) -> Start {
        match self.after[index] {
            0 => Start::at(io.queued),
            after => Start { after, think: io.queued - self.since[index], ..Start::default() },
        }
    }
}

fn closed(kept: &[(Io, ReplayIo)], history: &History) -> Vec<Start> {
    kept.iter().enumerate().map(|(index, (io, _))| history.start(index, io)).collect()
}

/// The mean of squared deviations from the mean, without the largest tenth of the values: a program
/// that pauses now and then is still what it is between pauses.
fn spread(mut values: Vec<u64>) -> f64 {
    values.sort_unstable();
    values.truncate((values.len() * 9).div_ceil(10));
    let count = values.len() as f64;
    let mean = values.iter().map(|&value| value as f64).sum::<f64>() / count;
    values.iter().map(|&value| (value as f64 - mean).powi(2)).sum::<f64>() / count
}

/// What drives a process.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Driver {
    /// Completions of its own I/O, or of another process.
    Completions,
    /// A clock; with at most so many I/Os in flight. With a period, an I/O that came late was due at
    /// its number times that.
    Clock(u32, Option<Period>),
    /// The progress of others: write-back.
    Progress,
}

/// The times of a clock: the n-th I/O of the process at `first + n * period`, ns.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Period {
    first: f64,
    period: f64,
}

impl Period {
    /// The line through the I/Os that came after a pause, if they lie on one, and nearer than their
    /// think times are to each other.
    fn of(own: &[usize], kept: &[(Io, ReplayIo)], history: &History) -> Option<Period> {
        let think = |index: usize| kept[index].0.queued - history.since[index];
        let paused = own.iter().enumerate().filter(|&(_, &i)| history.after[i] > 0 && think(i) > SOON);
        let points: Vec<_> =
            paused.clone().map(|(place, &index)| (place as f64, kept[index].0.queued.0 as f64)).collect();
        if points.len() < ENOUGH {
            return None;
        }
        let count = points.len() as f64;
        let mean = |f: fn(&(f64, f64)) -> f64| points.iter().map(f).sum::<f64>() / count;
        let (places, times) = (mean(|point| point.0), mean(|point| point.1));
        let covariance = points.iter().map(|(x, y)| (x - places) * (y - times)).sum::<f64>();
        let period = covariance / points.iter().map(|(x, _)| (x - places).powi(2)).sum::<f64>();
        let first = times - period * places;
        let off = points.iter().map(|(x, y)| (y - first - period * x).powi(2)).sum::<f64>() / count;
        let thinks = spread(paused.map(|(_, &index)| think(index).0).collect());
        (period > 0.0 && off.sqrt() < period / 10.0 && off < thinks).then_some(Period { first, period })
    }

    fn at(self, place: usize) -> Nanos {
        Nanos((self.first + self.period * place as f64).max(0.0) as u64)
    }
}

fn driver(own: &[usize], kept: &[(Io, ReplayIo)], history: &History) -> Driver {
    let is_write_back = |&&index: &&usize| {
        let one = &kept[index].1;
        one.op == Op::Write && !one.sync
    };
    if own.iter().filter(is_write_back).count() * 2 > own.len() {
        return Driver::Progress;
    }
    let queued = |index: usize| kept[index].0.queued;
    let pairs = own.windows(2).filter(|pair| history.after[pair[1]] > 0);
    let gaps: Vec<_> = pairs.clone().map(|pair| (queued(pair[1]) - queued(pair[0])).0).collect();
    let thinks: Vec<_> = pairs.map(|pair| (queued(pair[1]) - history.since[pair[1]]).0).collect();
    let period = Period::of(own, kept, history);
    if period.is_none() && (gaps.len() < ENOUGH || spread(gaps) >= spread(thinks)) {
        return Driver::Completions;
    }
    let mut place = 0;
    let in_flight = own.iter().map(|&index| {
        place += u32::from(kept[index].1.counted);
        place - history.after[index]
    });
    Driver::Clock(in_flight.max().unwrap_or(1).max(1), period)
}

/// The latest completion of another process before each I/O, by index.
fn latest_before(kept: &[(Io, ReplayIo)], counts: impl Fn(usize) -> bool) -> Vec<[Option<u32>; 2]> {
    let mut ends: Vec<_> = (0..kept.len())
        .filter(|&index| counts(index))
        .filter_map(|index| Some((kept[index].0.completed?, index as u32)))
        .collect();
    ends.sort_unstable();
    let process = |index: u32| kept[index as usize].1.process;
    let mut next = 0;
    // The latest, and the latest of another process than that one's.
    let mut latest: [Option<u32>; 2] = [None; 2];
    let mut found = Vec::with_capacity(kept.len());
    for (index, (io, _)) in kept.iter().enumerate() {
        while let Some(&(time, ended)) = ends.get(next)
            && time <= io.queued
        {
            if latest[0].is_some_and(|before| process(before) != process(ended)) {
                latest[1] = latest[0];
            }
            latest[0] = Some(ended);
            next += 1;
        }
        // Ordered by time, so that what has completed comes before in the list, too.
        found.push(latest.map(|one| one.filter(|&one| (one as usize) < index)));
    }
    found
}

fn inferred(kept: &[(Io, ReplayIo)], processes: usize) -> Vec<Start> {
    let history = History::new(kept);
    let mut own = vec![Vec::new(); processes];
    for (index, (_, one)) in kept.iter().enumerate() {
        own[one.process.0 as usize].push(index);
    }
    let drivers: Vec<_> = own.iter().map(|own| driver(own, kept, &history)).collect();
    let of = |index: usize| drivers[kept[index].1.process.0 as usize];
    let latest = latest_before(kept, |index| of(index) != Driver::Progress);
    let completed = |index: u32| kept[index as usize].0.completed.expect("it was chosen by its completion");
    let others = |index: usize| {
        let process = kept[index].1.process;
        latest[index].into_iter().flatten().find(|&one| kept[one as usize].1.process != process)
    };
    let follows = followed(kept, &own, &history, |index| {
        let one = others(index)?;
        (kept[index].0.queued - completed(one) <= SOON).then_some(one)
    });
    let mut places = vec![0_u32; processes];
    let mut seen = vec![0_usize; processes];
    let mut starts = Vec::with_capacity(kept.len());
    for (index, (io, one)) in kept.iter().enumerate() {
        let process = one.process.0 as usize;
        let start = match (drivers[process], follows[index]) {
            (Driver::Progress, _) => match latest[index][0] {
                Some(one) => {
                    Start { follows: Some(one), think: io.queued - completed(one), ..Start::default() }
                }
                None => Start::at(io.queued),
            },
            (Driver::Clock(depth, period), _) => {
                let is_late = history.after[index] > 0 && io.queued - history.since[index] <= SOON;
                let due = match period {
                    Some(period) if is_late => period.at(seen[process]).min(io.queued),
                    _ => io.queued,
                };
                Start { after: (places[process] + 1).saturating_sub(depth), ..Start::at(due) }
            }
            (Driver::Completions, Some(one)) => Start {
                follows: Some(one),
                think: io.queued - completed(one),
                after: history.after[index],
                ..Start::default()
            },
            (Driver::Completions, None) => history.start(index, io),
        };
        places[process] += u32::from(one.counted);
        seen[process] += 1;
        starts.push(start);
    }
    starts
}

/// Per I/O: the I/O of another process that it follows. A process follows another one if most of
/// its I/Os that could come soon after completions of the other do, and this is no chance.
fn followed(
    kept: &[(Io, ReplayIo)],
    own: &[Vec<usize>],
    history: &History,
    soon_after: impl Fn(usize) -> Option<u32>,
) -> Vec<Option<u32>> {
    let mut follows = vec![None; kept.len()];
    let span = kept.last().map_or(0, |(io, _)| io.queued.0) - kept.first().map_or(0, |(io, _)| io.queued.0);
    for own in own {
        // Those that come later than soon after the last completion of their own process.
        let free: Vec<_> = own
            .iter()
            .enumerate()
            .filter(|&(place, &index)| {
                history.after[index] as usize == place && kept[index].0.queued - history.since[index] > SOON
            })
            .map(|(_, &index)| index)
            .collect();
        let mut found: HashMap<ProcessId, Vec<(usize, u32)>> = HashMap::new();
        for &index in &free {
            if let Some(other) = soon_after(index) {
                found.entry(kept[other as usize].1.process).or_default().push((index, other));
            }
        }
        for (other, pairs) in found {
            let ends = kept.iter().filter(|(_, one)| one.process == other && one.counted).count();
            let by_chance = ends as f64 * SOON.0 as f64 / span.max(1) as f64;
            let share = pairs.len() as f64 / free.len() as f64;
            if pairs.len() >= 3 && share > 0.5 && share > 5.0 * by_chance {
                pairs.iter().for_each(|&(index, one)| follows[index] = Some(one));
            }
        }
    }
    follows
}

/// An I/O under the plug of the one before it comes together with that one.
fn mark_plugs(kept: &[(Io, ReplayIo)], ios: &mut [ReplayIo]) {
    let mut last: HashMap<ProcessId, usize> = HashMap::new();
    for (index, (io, one)) in kept.iter().enumerate() {
        if one.op == Op::Flush || one.plug == Plug::None {
            last.remove(&one.process);
        } else if let Some(before) = last.insert(one.process, index)
            && io.flags.has(Flags::JOINS_PLUG)
        {
            ios[before].plug = Plug::GoesOn;
        }
    }
}
