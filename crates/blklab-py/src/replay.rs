//! Recordings as loads: kept in memory and replayed, or made of a simulated run.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;
use std::sync::Arc;

use blklab_core::InputError;
use blklab_core::recorded::Names;
use blklab_core::recorded::{Header, Io, Tables};
use blklab_core::result::RunResult;
use blklab_core::simulation::{self, Recorded, ReplayFailed, ReplaySetup};
use blklab_core::source::replay::{
    Beyond, Fit, Grouping, Pace, Part, PlanError, ReplayPlan, Settings, Speed, Way, beside, plan,
};
use blklab_core::units::{Bytes, Nanos, SECTOR_BYTES, Sector};
use blklab_core::workload::machine;
use blklab_trace::recording::Writer;
use blklab_trace::{Records, Trace, Wanted};
use pyo3::prelude::*;

use crate::record::record;
use crate::run::Run;
use crate::specs::{Disk, Host, Job, Scheduler};
use crate::{CancelToken, bad_input, bad_job, failed, followed_by, run_setup, watched};

/// The most I/Os of a recording in memory: some 2 GB.
const IOS_MAX: usize = 1 << 24;

/// I/Os between two checks for Ctrl-C.
const IOS_PER_LOOK: usize = 1 << 16;

record! {
    /// What a replay does not have as it was recorded.
    ReplayNotes {
        processes: usize,
        left_out: u64,
        moved: u64,
        joined: u64,
        enlarged: u64,
        cgroups: usize,
        unnamed: usize,
        movers: usize,
        writes: bool,
    }
}

record! {
    /// What real processes cannot submit as it was recorded.
    BeyondProcess {
        asynchronous: u64,
        cut: u64,
        discards: u64,
        marked: u64,
    }
}

/// A part of a trace, in memory, as a load.
#[pyclass(frozen, module = "blklab._core")]
pub struct Recording {
    ios: Vec<Io>,
    tables: Tables,
    header: Header,
}

#[pymethods]
impl Recording {
    /// The I/Os from `from_ns` to before `until_ns`; their times count from `from_ns`.
    #[new]
    #[pyo3(signature = (path, *, format=None, device=None, keep_steps=false, from_ns=0, until_ns=None))]
    fn new(
        py: Python<'_>,
        path: PathBuf,
        format: Option<String>,
        device: Option<String>,
        keep_steps: bool,
        from_ns: u64,
        until_ns: Option<u64>,
    ) -> PyResult<Recording> {
        let wanted = Wanted { format, device, keep_steps, ..Wanted::default() };
        py.detach(|| {
            let mut trace = Trace::open(&path, &wanted).map_err(bad_input)?;
            let (from, until) = (Nanos(from_ns), Nanos(until_ns.unwrap_or(u64::MAX)));
            let mut ios = Vec::new();
            let mut read = 0;
            while let Some(io) = trace.next_io().map_err(bad_input)? {
                read += 1;
                if read % IOS_PER_LOOK == 0 {
                    Python::attach(|py| py.check_signals())?;
                }
                if io.queued >= until {
                    break;
                }
                if io.queued < from {
                    continue;
                }
                if ios.len() == IOS_MAX {
                    let reason = format!("more than {IOS_MAX} I/Os; choose a part of it");
                    let file = Some(path.display().to_string());
                    return Err(bad_input(InputError { file, ..InputError::new(reason) }));
                }
                let earlier = |time: Option<Nanos>| time.map(|time| time.saturating_sub(from));
                ios.push(Io {
                    queued: io.queued - from,
                    inserted: earlier(io.inserted),
                    issued: earlier(io.issued),
                    completed: earlier(io.completed),
                    ..io
                });
            }
            Ok(Recording { ios, tables: trace.tables().clone(), header: trace.header().clone() })
        })
    }

    /// The number of I/Os.
    #[getter]
    fn count(&self) -> usize {
        self.ios.len()
    }

    /// The time of the last I/O, ns.
    #[getter]
    fn last_ns(&self) -> u64 {
        self.ios.last().map_or(0, |io| io.queued.0)
    }

    /// I/Os with a recorded completion.
    #[getter]
    fn completed(&self) -> usize {
        self.ios.iter().filter(|io| io.completed.is_some()).count()
    }

    /// The sector after the last one that an I/O uses.
    #[getter]
    fn end_sector(&self) -> u64 {
        self.ios.iter().map(|io| io.end().0).max().unwrap_or(0)
    }

    /// Devices with I/Os, by name.
    #[getter]
    fn devices(&self) -> Vec<&str> {
        let mut ids: Vec<_> = self.ios.iter().map(|io| io.device).collect();
        ids.sort_unstable();
        ids.dedup();
        ids.into_iter().map(|id| self.tables.devices.name(id)).collect()
    }

    /// The scheduler under which it was recorded, if that is known.
    #[getter]
    fn scheduler(&self) -> Option<&str> {
        self.header.scheduler.as_deref()
    }

    /// Where in the kernel it was recorded: `file`, `bio` or `request`.
    #[getter]
    fn level(&self) -> &'static str {
        self.header.level.name()
    }
}

/// A recording, and how it is replayed.
#[pyclass(frozen, module = "blklab._core")]
pub struct Replay {
    recording: Py<Recording>,
    way: Way,
    fit: Fit,
    pace: Pace,
    grouping: Grouping,
    label: String,
}

#[pymethods]
impl Replay {
    /// `cgroups` are the weights of some by their paths, or None for a replay with all in the root. `speed` is in millionths of the recorded one; a loop lasts `length_ns`, or until the last arrival or
    /// completion. The names of processes begin with `label` where there are several replays.
    #[new]
    #[pyo3(signature = (recording, way, fit, *, speed=1_000_000, loops=1, length_ns=None, cgroups=Some(Vec::new()),
        label=String::new()))]
    #[expect(clippy::too_many_arguments, reason = "what a replay is")]
    fn new(
        recording: Py<Recording>,
        way: &str,
        fit: &str,
        speed: u64,
        loops: u32,
        length_ns: Option<u64>,
        cgroups: Option<Vec<(String, u16)>>,
        label: String,
    ) -> PyResult<Replay> {
        let way = self::way(way).ok_or_else(|| unknown("way", way, "open, closed, inferred"))?;
        let fit = self::fit(fit).ok_or_else(|| unknown("fit", fit, "refuse, wrap, scale"))?;
        let none = |option: &str| bad_input(InputError::new(format!("{option}: expected more than 0")));
        let speed = Speed::of_millionths(speed).ok_or_else(|| none("speed"))?;
        if loops == 0 {
            return Err(none("loops"));
        }
        let pace = Pace { speed, loops, length: length_ns.map(Nanos) };
        let grouping = cgroups.map_or(Grouping::Root, Grouping::Recorded);
        Ok(Replay { recording, way, fit, pace, grouping, label })
    }
}

fn way(name: &str) -> Option<Way> {
    match name {
        "open" => Some(Way::Open),
        "closed" => Some(Way::Closed),
        "inferred" => Some(Way::Inferred),
        _ => None,
    }
}

fn fit(name: &str) -> Option<Fit> {
    match name {
        "refuse" => Some(Fit::Refuse),
        "wrap" => Some(Fit::Wrap),
        "scale" => Some(Fit::Scale),
        _ => None,
    }
}

fn unknown(option: &str, found: &str, expected: &str) -> PyErr {
    bad_input(InputError::new(format!("{option}: no '{found}'; there is: {expected}")))
}

/// Replays recordings side by side on a modelled disk, without the GIL. With `out`, a new file, the I/O of
/// the replay is written there as a recording.
#[pyfunction]
#[pyo3(signature = (replays, disk, scheduler, host, seed, cancel, window=None, out=None, until_ns=None))]
#[expect(clippy::too_many_arguments, reason = "what a replay is, and how it is followed")]
pub fn replay(
    py: Python<'_>,
    replays: Vec<Py<Replay>>,
    disk: &Disk,
    scheduler: &Scheduler,
    host: &Host,
    seed: u64,
    cancel: Option<&CancelToken>,
    window: Option<(u64, u64, usize)>,
    out: Option<PathBuf>,
    until_ns: Option<u64>,
) -> PyResult<(Run, ReplayNotes)> {
    let watch = cancel.map(|token| Arc::clone(&token.watch)).unwrap_or_default();
    py.detach(|| {
        let (plan, names) = planned(&replays, disk.model.limits().capacity)?;
        let setup = ReplaySetup {
            plan: &plan,
            names: &names,
            disk: disk.model.build(seed),
            scheduler: &scheduler.known,
            host: host.host,
            memory: &host.of_memory,
        };
        let result = match out {
            None => {
                let followed = followed_by(window, until_ns);
                watched(&watch, || simulation::replay(setup, followed, &watch))?
            }
            Some(out) => {
                let mut file = BufWriter::new(File::create_new(&out)?);
                match watched(&watch, || simulation::replay_and_record(setup, &watch))? {
                    Ok(recorded) => Ok(written(recorded, &mut file)?),
                    Err(error) => Err(error),
                }
            }
        };
        Ok((Run::new(&result.map_err(not_replayed)?), notes(&plan)))
    })
}

/// Runs a job file on a modelled disk and replays recordings beside its processes, without the GIL.
#[pyfunction]
#[pyo3(signature = (job, replays, disk, scheduler, host, seed, cancel, window=None, until_ns=None))]
#[expect(clippy::too_many_arguments, reason = "what a run is, and how it is followed")]
pub fn simulate_beside(
    py: Python<'_>,
    job: &Job,
    replays: Vec<Py<Replay>>,
    disk: &Disk,
    scheduler: &Scheduler,
    host: &Host,
    seed: u64,
    cancel: Option<&CancelToken>,
    window: Option<(u64, u64, usize)>,
    until_ns: Option<u64>,
) -> PyResult<(Run, ReplayNotes)> {
    machine::check(&job.file, host.host.cpus, host.memory.memory).map_err(bad_job)?;
    let watch = cancel.map(|token| Arc::clone(&token.watch)).unwrap_or_default();
    py.detach(|| {
        let capacity = disk.model.limits().capacity;
        let jobs = job.plan(disk, seed)?;
        let (plan, names) = planned(&replays, capacity)?;
        let setup = run_setup(&jobs, disk, scheduler, host, seed);
        let followed = followed_by(window, until_ns);
        let run = watched(&watch, || simulation::run_beside(setup, &plan, &names, followed, &watch))?;
        Ok((Run::new(&run.map_err(not_replayed)?), notes(&plan)))
    })
}

fn not_replayed(error: ReplayFailed) -> PyErr {
    match error {
        ReplayFailed::Refused(error) => bad_input(InputError::new(error.to_string())),
        ReplayFailed::Weights(error) => bad_input(InputError::new(error)),
        ReplayFailed::Run(error) => failed(error),
    }
}

/// Replays on that disk for a driver of real processes, as bytes, without the GIL; what is not as it was
/// recorded; and what such processes cannot submit.
#[pyfunction]
pub fn replay_load(
    py: Python<'_>,
    replays: Vec<Py<Replay>>,
    disk: &Disk,
) -> PyResult<(Cow<'static, [u8]>, ReplayNotes, BeyondProcess)> {
    py.detach(|| {
        let (plan, names) = planned(&replays, disk.model.limits().capacity)?;
        Ok((plan.load(&names).to_bytes().into(), notes(&plan), beyond(&plan)))
    })
}

/// The same on a file or a device of so many bytes, whose blocks have `block_bytes`; and the places that the
/// I/Os use: first byte and length, with gaps of less than `near_bytes` between them filled.
#[pyfunction]
#[expect(clippy::type_complexity, reason = "the load, and three facts about it")]
pub fn replay_load_on(
    py: Python<'_>,
    replays: Vec<Py<Replay>>,
    size_bytes: u64,
    block_bytes: u32,
    near_bytes: u64,
) -> PyResult<(Cow<'static, [u8]>, ReplayNotes, BeyondProcess, Vec<(u64, u64)>)> {
    py.detach(|| {
        let block = u64::from(block_bytes).max(SECTOR_BYTES);
        let (mut plan, names) = planned(&replays, Sector(size_bytes / block * block / SECTOR_BYTES))?;
        plan.align(Sector(block / SECTOR_BYTES));
        let places = plan.places(Bytes(near_bytes)).into_iter().map(|(Bytes(at), Bytes(bytes))| (at, bytes));
        let load = plan.load(&names).to_bytes();
        Ok((load.into(), notes(&plan), beyond(&plan), places.collect()))
    })
}

/// The plans of all, side by side, and the names of their processes.
fn planned(replays: &[Py<Replay>], capacity: Sector) -> PyResult<(ReplayPlan, Names)> {
    let refused = |error: PlanError, label: &str| {
        let of = if label.is_empty() { String::new() } else { format!("{label}: ") };
        bad_input(InputError::new(format!("{of}{error}")))
    };
    let mut plans = Vec::new();
    for replay in replays {
        let Replay { recording, way, fit, pace, grouping, label } = replay.get();
        let Recording { ios, header, tables, .. } = recording.get();
        let settings = Settings {
            way: *way,
            fit: *fit,
            recorded: header.capacity,
            capacity,
            pace: *pace,
            grouping: grouping.clone(),
        };
        plans.push(plan(ios, tables, &settings).map_err(|error| refused(error, label))?);
    }
    fn names(replay: &Replay) -> &Names {
        &replay.recording.get().tables.processes
    }
    if let [replay] = replays
        && replay.get().label.is_empty()
        && let Some(plan) = plans.pop()
    {
        return Ok((plan, names(replay.get()).clone()));
    }
    let pairs = replays.iter().map(Py::get).zip(&plans);
    let part = |(replay, plan)| Part { plan, names: names(replay), label: &replay.label };
    let parts: Vec<_> = pairs.map(part).collect();
    beside(&parts).map_err(|error| refused(error, ""))
}

fn notes(plan: &ReplayPlan) -> ReplayNotes {
    let &ReplayPlan { left_out, moved, joined, enlarged, unnamed, .. } = plan;
    let (processes, writes) = (plan.processes.len(), plan.writes());
    let (cgroups, movers) = (plan.cgroups.all().len() - 1, plan.members().movers());
    ReplayNotes { processes, left_out, moved, joined, enlarged, cgroups, unnamed, movers, writes }
}

fn beyond(plan: &ReplayPlan) -> BeyondProcess {
    let Beyond { asynchronous, cut, discards, marked } = plan.beyond_a_process();
    BeyondProcess { asynchronous, cut, discards, marked }
}

/// Runs a job file on a modelled disk, and writes its I/O to `out`, a new file, as a recording.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "what a run is, and how it is followed")]
pub fn record(
    py: Python<'_>,
    job: &Job,
    disk: &Disk,
    scheduler: &Scheduler,
    host: &Host,
    seed: u64,
    out: PathBuf,
    cancel: Option<&CancelToken>,
) -> PyResult<(Run, u64)> {
    machine::check(&job.file, host.host.cpus, host.memory.memory).map_err(bad_job)?;
    let watch = cancel.map(|token| Arc::clone(&token.watch)).unwrap_or_default();
    py.detach(|| {
        let plan = job.plan(disk, seed)?;
        let mut file = BufWriter::new(File::create_new(&out)?);
        let setup = run_setup(&plan, disk, scheduler, host, seed);
        let recorded = watched(&watch, || simulation::run_and_record(setup, &watch))?.map_err(failed)?;
        let count = recorded.ios.len() as u64;
        Ok((Run::new(&written(recorded, &mut file)?), count))
    })
}

/// Writes the recording; the result of the run.
fn written(recorded: Recorded, file: &mut BufWriter<File>) -> io::Result<RunResult> {
    let Recorded { result, ios, tables, header } = recorded;
    let mut writer = Writer::new(&mut *file, &header)?;
    for io in &ios {
        writer.push(io, &tables)?;
    }
    writer.finish(&tables)?;
    file.flush()?;
    Ok(result)
}
