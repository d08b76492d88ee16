//! Python binding of blklab-core: objects in, objects and columns out. No logic of its own.
//!
//! `python/blklab/_core.pyi` documents arguments and results of each function. Invalid input raises
//! `blklab.errors.InputError`.

mod describe;
mod events;
mod files;
mod live;
mod live_recording;
mod memory;
mod record;
mod replay;
mod run;
mod specs;
mod trace_edit;
mod trace_served;
mod traces;

use std::collections::BTreeMap;
use std::panic::resume_unwind;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use blklab_core::InputError;
use blklab_core::disk::catalogue;
use blklab_core::engine::{Followed, RunError, Watch};
use blklab_core::recorder::Window;
use blklab_core::result::RunResult;
use blklab_core::simulation::{self, Setup};
use blklab_core::units::Nanos;
use blklab_core::workload::error::{JobError, Problem};
use blklab_core::workload::machine;
use blklab_core::workload::plan::Plan;
use pyo3::exceptions::{PyKeyboardInterrupt, PyRuntimeError};
use pyo3::panic::PanicException;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use run::Run;
use specs::{Disk, Host, Job, Scheduler};

/// Exceptions of the Python package.
mod errors {
    pyo3::import_exception!(blklab.errors, InputError);
    pyo3::import_exception!(blklab.errors, NoRoomError);
}

/// Python's `InputError` with the same fields.
fn bad_input(error: impl Into<InputError>) -> PyErr {
    let InputError { reason, file, line, column, option, found, expected, nearest } = error.into();
    errors::InputError::new_err((reason, file, line, column, option, found, expected, nearest))
}

/// The same of a job file.
fn bad_job(error: JobError) -> PyErr {
    match error.problem {
        Problem::NoRoom { ref job, need_bytes, room_bytes } => errors::NoRoomError::new_err((
            error.problem.to_string(),
            error.path,
            error.line,
            job.clone(),
            need_bytes,
            room_bytes,
        )),
        _ => bad_input(error),
    }
}

/// blklab's version.
#[pyfunction]
fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}

/// Whether the build used a profile (`make pgo`).
#[pyfunction]
fn profile_guided() -> bool {
    cfg!(profile_guided)
}

/// See [`blklab_confine::give_up_rights`].
#[pyfunction]
fn give_up_rights(write: Vec<PathBuf>) -> PyResult<bool> {
    blklab_confine::give_up_rights(&write).map_err(PyRuntimeError::new_err)
}

/// Every scheduler with its tunables.
#[pyfunction]
fn schedulers() -> Vec<describe::SchedulerInfo> {
    describe::schedulers()
}

/// The kinds of decisions that schedulers note, in the order of their numbers.
#[pyfunction]
fn decision_kinds() -> Vec<&'static str> {
    blklab_core::decisions::KINDS.to_vec()
}

/// The tunables of queue, page cache and host.
#[pyfunction]
fn environment(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    // A dict of Python's keeps the order.
    let tables = PyDict::new(py);
    for (name, rows) in describe::environment() {
        tables.set_item(name, rows)?;
    }
    Ok(tables)
}

/// The texts of the shipped disks' files, by name.
#[pyfunction]
fn disk_files() -> BTreeMap<&'static str, &'static str> {
    catalogue::FILES.iter().copied().collect()
}

/// The keys of disk files.
#[pyfunction]
fn disk_keys() -> BTreeMap<&'static str, Vec<describe::DiskKey>> {
    describe::disk_keys()
}

/// The rules for the ranges of estimated parameters.
#[pyfunction]
fn disk_ranges() -> Vec<describe::DiskRange> {
    describe::disk_ranges()
}

/// Every option of job files.
#[pyfunction]
fn workload_options() -> Vec<describe::JobOption> {
    describe::workload_options()
}

/// Cancels a running simulation, and reports its progress.
#[pyclass(frozen)]
#[derive(Default)]
struct CancelToken {
    watch: Arc<Watch>,
}

#[pymethods]
impl CancelToken {
    #[new]
    fn new() -> CancelToken {
        CancelToken::default()
    }

    /// Cancels the simulation.
    fn cancel(&self) {
        self.watch.cancel.store(true, Ordering::Relaxed);
    }

    /// Virtual time reached, ns.
    #[getter]
    fn now_ns(&self) -> u64 {
        self.watch.now_ns.load(Ordering::Relaxed)
    }

    /// Virtual time by which the run will have ended, ns; 0 if unknown.
    #[getter]
    fn end_ns(&self) -> u64 {
        self.watch.end_ns.load(Ordering::Relaxed)
    }
}

/// How often Python checks for Ctrl-C.
const SIGNALS_EVERY: Duration = Duration::from_millis(50);

/// Runs the simulation; see [`watched`].
fn run_watched(setup: Setup<'_>, followed: Followed, watch: &Watch) -> PyResult<RunResult> {
    watched(watch, move || simulation::run_followed(setup, followed, watch))?.map_err(failed)
}

/// Python's error for a run without result.
fn failed(error: RunError) -> PyErr {
    match error {
        RunError::Cancelled => PyKeyboardInterrupt::new_err(()),
        RunError::Stuck(_) | RunError::Endless | RunError::Plugin { .. } => {
            PyRuntimeError::new_err(error.to_string())
        }
    }
}

/// Runs `run` in its own thread, so that this thread, which may be Python's main thread, can handle
/// signals meanwhile.
fn watched<T: Send>(watch: &Watch, run: impl FnOnce() -> T + Send) -> PyResult<T> {
    let (running, ended) = mpsc::channel::<()>();
    let (outcome, signals) = thread::scope(|scope| {
        let run = scope.spawn(move || {
            let _hangs_up_at_the_end = running;
            run()
        });
        let mut signals = Ok(());
        while signals.is_ok() && ended.recv_timeout(SIGNALS_EVERY) == Err(RecvTimeoutError::Timeout) {
            signals = Python::attach(|py| py.check_signals());
        }
        if signals.is_err() {
            watch.cancel.store(true, Ordering::Relaxed);
        }
        (run.join(), signals)
    });
    signals?;
    Ok(outcome.unwrap_or_else(|panic| resume_unwind(panic)))
}

/// The window from one time to another in ns, with so many requests; and the end of the run in ns.
fn followed_by(window: Option<(u64, u64, usize)>, until_ns: Option<u64>) -> Followed {
    let window =
        window.map(|(from, until, requests)| Window { from: Nanos(from), until: Nanos(until), requests });
    Followed { window, until: until_ns.map(Nanos) }
}

/// A run of a planned job.
fn run_setup<'a>(
    plan: &'a Plan,
    disk: &Disk,
    scheduler: &'a Scheduler,
    host: &'a Host,
    seed: u64,
) -> Setup<'a> {
    Setup {
        plan,
        disk: disk.model.build(seed),
        scheduler: &scheduler.known,
        host: host.host,
        memory: &host.of_memory,
        seed,
    }
}

/// Runs a job file on a modelled disk, without the GIL.
#[pyfunction]
#[pyo3(signature = (job, disk, scheduler, host, seed, cancel, window=None, until_ns=None))]
#[expect(clippy::too_many_arguments, reason = "what a run is, and how it is followed")]
fn simulate(
    py: Python<'_>,
    job: &Job,
    disk: &Disk,
    scheduler: &Scheduler,
    host: &Host,
    seed: u64,
    cancel: Option<&CancelToken>,
    window: Option<(u64, u64, usize)>,
    until_ns: Option<u64>,
) -> PyResult<Run> {
    machine::check(&job.file, host.host.cpus, host.memory.memory).map_err(bad_job)?;
    let watch = cancel.map(|token| Arc::clone(&token.watch)).unwrap_or_default();
    py.detach(|| {
        let plan = job.plan(disk, seed)?;
        let setup = run_setup(&plan, disk, scheduler, host, seed);
        run_watched(setup, followed_by(window, until_ns), &watch).map(|result| Run::new(&result))
    })
}

/// The module `blklab._core`.
#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<CancelToken>()?;
    module.add_class::<Run>()?;
    module.add_class::<run::RunSummary>()?;
    module.add_class::<run::JobSummary>()?;
    module.add_class::<run::DirectionSummary>()?;
    module.add_class::<run::LatencySummary>()?;
    module.add_class::<run::SampleSummary>()?;
    module.add_class::<run::DiskCounters>()?;
    module.add_class::<live::FioJob>()?;
    module.add_class::<events::BlockEvents>()?;
    module.add_class::<live_recording::MachineRecorder>()?;
    module.add("PanicException", module.py().get_type::<PanicException>())?;
    module.add_function(wrap_pyfunction!(version, module)?)?;
    module.add_function(wrap_pyfunction!(profile_guided, module)?)?;
    module.add_function(wrap_pyfunction!(give_up_rights, module)?)?;
    module.add_function(wrap_pyfunction!(schedulers, module)?)?;
    module.add_function(wrap_pyfunction!(decision_kinds, module)?)?;
    module.add_function(wrap_pyfunction!(environment, module)?)?;
    module.add_class::<describe::Tunable>()?;
    module.add_class::<describe::SchedulerInfo>()?;
    module.add_class::<describe::DiskKey>()?;
    module.add_class::<describe::DiskRange>()?;
    module.add_class::<describe::DiskLimits>()?;
    module.add_class::<describe::LongestWait>()?;
    module.add_class::<describe::Parameter>()?;
    module.add_class::<describe::Validation>()?;
    module.add_class::<describe::PublishedFigure>()?;
    module.add_class::<describe::Check>()?;
    module.add_class::<describe::JobOption>()?;
    module.add_class::<describe::IdleOption>()?;
    module.add_class::<describe::JobSection>()?;
    module.add_class::<live::FioFile>()?;
    module.add_class::<live::FioCgroup>()?;
    module.add_class::<Host>()?;
    module.add_class::<Disk>()?;
    module.add_class::<Job>()?;
    module.add_class::<Scheduler>()?;
    module.add_class::<specs::Plugin>()?;
    module.add_function(wrap_pyfunction!(specs::split_scheduler, module)?)?;
    module.add_function(wrap_pyfunction!(specs::host_file, module)?)?;
    module.add_function(wrap_pyfunction!(specs::host_spec, module)?)?;
    module.add_function(wrap_pyfunction!(specs::pairs, module)?)?;
    module.add_function(wrap_pyfunction!(specs::changed_job, module)?)?;
    module.add_function(wrap_pyfunction!(disk_files, module)?)?;
    module.add_function(wrap_pyfunction!(disk_keys, module)?)?;
    module.add_function(wrap_pyfunction!(disk_ranges, module)?)?;
    module.add_function(wrap_pyfunction!(workload_options, module)?)?;
    module.add_function(wrap_pyfunction!(simulate, module)?)?;
    module.add_class::<traces::TraceFormat>()?;
    module.add_class::<traces::RecordingColumn>()?;
    module.add_class::<traces::TraceFindingKind>()?;
    module.add_class::<traces::TraceFinding>()?;
    module.add_class::<traces::TraceFigures>()?;
    module.add_class::<traces::TraceOperation>()?;
    module.add_class::<traces::TraceProcess>()?;
    module.add_class::<traces::TraceCgroup>()?;
    module.add_class::<traces::TraceReading>()?;
    module.add_class::<traces::TraceOverTime>()?;
    module.add_class::<traces::LikeProcess>()?;
    module.add_class::<traces::TraceLikeness>()?;
    module.add_function(wrap_pyfunction!(traces::trace_formats, module)?)?;
    module.add_function(wrap_pyfunction!(traces::trace_format_of, module)?)?;
    module.add_function(wrap_pyfunction!(traces::trace_files, module)?)?;
    module.add_function(wrap_pyfunction!(traces::trace_finding_kinds, module)?)?;
    module.add_function(wrap_pyfunction!(traces::recording_columns, module)?)?;
    module.add_function(wrap_pyfunction!(traces::read_trace, module)?)?;
    module.add_function(wrap_pyfunction!(traces::trace_over_time, module)?)?;
    module.add_function(wrap_pyfunction!(traces::trace_likeness, module)?)?;
    module.add_class::<trace_served::ServedOwner>()?;
    module.add_class::<trace_served::ServedCounts>()?;
    module.add_class::<trace_served::ServedIo>()?;
    module.add_class::<trace_served::ServedGot>()?;
    module.add_class::<trace_served::ServedSlow>()?;
    module.add_class::<trace_served::TraceServed>()?;
    module.add_class::<trace_served::TraceIos>()?;
    module.add_function(wrap_pyfunction!(trace_served::trace_served, module)?)?;
    module.add_function(wrap_pyfunction!(trace_served::trace_ios, module)?)?;
    module.add_class::<trace_edit::TraceEdit>()?;
    module.add_function(wrap_pyfunction!(trace_edit::edit_traces, module)?)?;
    module.add_class::<replay::Recording>()?;
    module.add_class::<replay::Replay>()?;
    module.add_class::<replay::ReplayNotes>()?;
    module.add_class::<replay::BeyondProcess>()?;
    module.add_function(wrap_pyfunction!(replay::replay, module)?)?;
    module.add_function(wrap_pyfunction!(replay::simulate_beside, module)?)?;
    module.add_function(wrap_pyfunction!(replay::replay_load, module)?)?;
    module.add_function(wrap_pyfunction!(replay::replay_load_on, module)?)?;
    module.add_function(wrap_pyfunction!(replay::record, module)?)?;
    Ok(())
}
