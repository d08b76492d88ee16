//! Python binding of blklab-core: texts in, JSON and columns out. No logic of its own.
//!
//! `python/blklab/_core.pyi` says what each function takes and gives. Bad input becomes
//! `ValueError` with one line of text.

mod describe;
mod events;
mod files;
mod live;
mod memory;

use std::collections::BTreeMap;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use blklab_core::disk::{DiskModel, Op, TraceRequest};
use blklab_core::engine::{RunError, Watch};
use blklab_core::formats::fio::jobfile;
use blklab_core::host::{self, Host};
use blklab_core::pagecache::MemoryConfig;
use blklab_core::recorder::Window;
use blklab_core::result::RunResult;
use blklab_core::scheduler::spec::SchedulerSpec;
use blklab_core::simulation::{self, Setup};
use blklab_core::text;
use blklab_core::units::{Nanos, Sector};
use blklab_core::workload::spec::JobFile;
use blklab_core::workload::{machine, plan};
use pyo3::exceptions::{PyKeyError, PyKeyboardInterrupt, PyRuntimeError, PyValueError};
use pyo3::panic::PanicException;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde_json::json;

use files::Machine;

fn bad_input(error: impl std::fmt::Display) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// blklab's version.
#[pyfunction]
fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}

/// Whether a profile guided the compiler (`make pgo`).
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
fn schedulers() -> String {
    describe::schedulers().to_string()
}

/// The kinds of decisions that schedulers note, in the order of their numbers.
#[pyfunction]
fn decision_kinds() -> Vec<&'static str> {
    blklab_core::decisions::KINDS.to_vec()
}

/// The tunables of queue, page cache and host.
#[pyfunction]
fn environment() -> String {
    describe::environment().to_string()
}

/// What a scheduler specification sets.
#[pyfunction]
fn check_scheduler(spec: &str) -> PyResult<String> {
    let spec = SchedulerSpec::parse(spec).map_err(bad_input)?;
    let settings: BTreeMap<_, _> = spec.values().collect();
    let changed: BTreeMap<_, _> = spec.changed().collect();
    Ok(json!({"name": spec.info.name, "settings": settings, "changed": changed}).to_string())
}

fn disk_model(text: &str, path: &str, overrides: &[(String, String)]) -> PyResult<DiskModel> {
    let model = DiskModel::parse(text, path).map_err(bad_input)?;
    overrides.iter().try_fold(model, |model, (key, value)| model.with_override(key, value)).map_err(bad_input)
}

/// What a disk file describes.
#[pyfunction]
#[pyo3(signature = (text, path, overrides = Vec::new()))]
fn disk(text: &str, path: &str, overrides: Vec<(String, String)>) -> PyResult<String> {
    Ok(describe::disk(&disk_model(text, path, &overrides)?).to_string())
}

/// The keys of disk files.
#[pyfunction]
fn disk_keys() -> String {
    describe::disk_keys().to_string()
}

/// A disk model beside the figures published of the disk.
#[pyfunction]
fn validate_disk(py: Python<'_>, text: &str, path: &str) -> PyResult<String> {
    let model = disk_model(text, path, &[])?;
    Ok(py.detach(|| json!(blklab_core::disk::validate(&model)).to_string()))
}

/// How long each request of a trace takes on a disk, given one at a time.
#[pyfunction]
fn replay_disk(
    py: Python<'_>,
    text: &str,
    path: &str,
    trace: Vec<(u64, u64, u32, bool)>,
    seed: u64,
) -> PyResult<Vec<u64>> {
    let model = disk_model(text, path, &[])?;
    let request = |(gap, sector, sectors, write)| TraceRequest {
        gap: Nanos(gap),
        op: if write { Op::Write } else { Op::Read },
        sector: Sector(sector),
        sectors,
    };
    let trace: Vec<_> = trace.into_iter().map(request).collect();
    let times = py.detach(|| blklab_core::disk::replay(&model, seed, &trace));
    let times = times.map_err(|number| bad_input(format!("request {number} is not on the disk")))?;
    Ok(times.into_iter().map(|time| time.0).collect())
}

/// Every option of job files.
#[pyfunction]
fn workload_options() -> String {
    describe::workload_options().to_string()
}

fn job_file(
    text: &str,
    path: &str,
    env: BTreeMap<String, String>,
    ignore_unsupported: bool,
    real: bool,
    host: &Host,
    memory: &MemoryConfig,
) -> PyResult<JobFile> {
    let within = real.then(|| Path::new(path).parent().unwrap_or(Path::new("")).to_owned());
    let mut machine = Machine { env, within, cpus: host.cpus.into(), memory_mib: memory.memory.0 >> 20 };
    let options = jobfile::ParseOptions { ignore_unsupported, real };
    jobfile::parse(text, path, &mut machine, options).map_err(bad_input)
}

/// What a job file asks for; if `real`, of real fio on a real disk.
#[pyfunction]
fn parse_job(
    text: &str,
    path: &str,
    env: BTreeMap<String, String>,
    ignore_unsupported: bool,
    real: bool,
) -> PyResult<String> {
    let (host, memory) = surroundings(BTreeMap::new())?;
    let file = job_file(text, path, env, ignore_unsupported, real, &host.0, &memory.0)?;
    Ok(describe::job_file(&file).to_string())
}

type Table<T> = (T, blklab_core::tunable::Settings);

/// Host and memory, from their tunables by name.
fn surroundings(values: BTreeMap<String, i64>) -> PyResult<(Table<Host>, Table<MemoryConfig>)> {
    let (mut host, mut memory) = (Host::settings(), MemoryConfig::settings());
    let names: Vec<_> = host.iter().chain(memory.iter()).map(|(tunable, _)| tunable.name).collect();
    for (name, value) in values {
        if !names.contains(&name.as_str()) {
            // Each table knows its own names only.
            return Err(bad_input(format!("host has no tunable '{name}'{}", text::hint(&name, &names))));
        }
        let of_memory = blklab_core::pagecache::TUNABLES.iter().any(|tunable| tunable.name == name);
        debug_assert!(!(of_memory && host::TUNABLES.iter().any(|tunable| tunable.name == name)));
        let table = if of_memory { &mut memory } else { &mut host };
        table.set(&name, &value.to_string()).map_err(bad_input)?;
    }
    let config = MemoryConfig::new(&memory, Default::default(), Default::default());
    Ok(((Host::new(&host), host), (config, memory)))
}

/// All tunables of host and page cache, with these changed.
#[pyfunction]
fn check_host(changed: BTreeMap<String, i64>) -> PyResult<String> {
    let ((_, host), (_, memory)) = surroundings(changed)?;
    let all = host.iter().chain(memory.iter());
    let values: BTreeMap<_, _> = all.map(|(tunable, value)| (tunable.name, value)).collect();
    Ok(json!(values).to_string())
}

/// Tells a running simulation to stop, and how far it is.
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

    /// Stop soon.
    fn cancel(&self) {
        self.watch.cancel.store(true, Ordering::Relaxed);
    }

    /// Virtual time reached, ns.
    #[getter]
    fn now_ns(&self) -> u64 {
        self.watch.now_ns.load(Ordering::Relaxed)
    }

    /// Virtual time by which the run will have ended, ns; 0 if nobody knows.
    #[getter]
    fn end_ns(&self) -> u64 {
        self.watch.end_ns.load(Ordering::Relaxed)
    }
}

/// A finished run.
#[pyclass(frozen)]
struct Run {
    summary: String,
    columns: BTreeMap<String, Vec<i64>>,
}

impl Run {
    fn new(result: &RunResult) -> Run {
        let columns = result.columns().into_iter().map(|(name, column)| (name, column.to_vec()));
        Run { summary: json!(result).to_string(), columns: columns.collect() }
    }
}

#[pymethods]
impl Run {
    /// The scalars, as JSON.
    #[getter]
    fn summary(&self) -> &str {
        &self.summary
    }

    /// Names of all columns.
    fn columns(&self) -> Vec<&str> {
        self.columns.keys().map(String::as_str).collect()
    }

    /// One column, little-endian 64-bit integers.
    fn column<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyBytes>> {
        let column = self.columns.get(name).ok_or_else(|| PyKeyError::new_err(name.to_owned()))?;
        let bytes: Vec<u8> = column.iter().flat_map(|value| value.to_le_bytes()).collect();
        Ok(PyBytes::new(py, &bytes))
    }
}

/// How often Python is asked whether the user has pressed Ctrl-C.
const SIGNALS_EVERY: Duration = Duration::from_millis(50);

/// Run it in a thread of its own, so that this one, which may be Python's main thread, can
/// look after signals meanwhile.
fn run_watched(setup: Setup<'_>, window: Option<Window>, watch: &Watch) -> PyResult<RunResult> {
    let (running, ended) = mpsc::channel::<()>();
    let (outcome, signals) = thread::scope(|scope| {
        let run = scope.spawn(move || {
            let _hangs_up_at_the_end = running;
            match window {
                None => simulation::run(setup, watch),
                Some(window) => simulation::run_and_keep(setup, window, watch),
            }
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
    outcome.unwrap_or_else(|panic| resume_unwind(panic)).map_err(|error| match error {
        RunError::Cancelled => PyKeyboardInterrupt::new_err(()),
        RunError::Stuck(_) | RunError::Endless => PyRuntimeError::new_err(error.to_string()),
    })
}

/// Run a job file on a modelled disk, without the GIL.
#[pyfunction]
#[allow(clippy::too_many_arguments)]
fn simulate(
    py: Python<'_>,
    job_text: &str,
    job_path: &str,
    env: BTreeMap<String, String>,
    disk_text: &str,
    disk_path: &str,
    disk_overrides: Vec<(String, String)>,
    scheduler: &str,
    seed: u64,
    host: BTreeMap<String, i64>,
    ignore_unsupported: bool,
    cancel: Option<&CancelToken>,
    window: Option<(u64, u64, usize)>,
) -> PyResult<Run> {
    let ((host, _), (memory, memory_settings)) = surroundings(host)?;
    let file = job_file(job_text, job_path, env, ignore_unsupported, false, &host, &memory)?;
    machine::check(&file, host.cpus, memory.memory).map_err(bad_input)?;
    let model = disk_model(disk_text, disk_path, &disk_overrides)?;
    let scheduler = SchedulerSpec::parse(scheduler).map_err(bad_input)?;
    let watch = cancel.map(|token| Arc::clone(&token.watch)).unwrap_or_default();
    py.detach(|| {
        let capacity = model.limits().capacity.to_bytes();
        let plan = plan::plan(&file, capacity, seed).map_err(bad_input)?;
        let setup = Setup {
            plan: &plan,
            disk: model.build(seed),
            scheduler: &scheduler,
            host,
            memory: &memory_settings,
            seed,
        };
        let window =
            window.map(|(from, until, requests)| Window { from: Nanos(from), until: Nanos(until), requests });
        run_watched(setup, window, &watch).map(|result| Run::new(&result))
    })
}

/// The module `blklab._core`.
#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<CancelToken>()?;
    module.add_class::<Run>()?;
    module.add_class::<live::FioJob>()?;
    module.add_class::<events::BlockEvents>()?;
    module.add("PanicException", module.py().get_type::<PanicException>())?;
    module.add_function(wrap_pyfunction!(version, module)?)?;
    module.add_function(wrap_pyfunction!(profile_guided, module)?)?;
    module.add_function(wrap_pyfunction!(give_up_rights, module)?)?;
    module.add_function(wrap_pyfunction!(schedulers, module)?)?;
    module.add_function(wrap_pyfunction!(decision_kinds, module)?)?;
    module.add_function(wrap_pyfunction!(environment, module)?)?;
    module.add_function(wrap_pyfunction!(check_scheduler, module)?)?;
    module.add_function(wrap_pyfunction!(check_host, module)?)?;
    module.add_function(wrap_pyfunction!(disk, module)?)?;
    module.add_function(wrap_pyfunction!(disk_keys, module)?)?;
    module.add_function(wrap_pyfunction!(validate_disk, module)?)?;
    module.add_function(wrap_pyfunction!(replay_disk, module)?)?;
    module.add_function(wrap_pyfunction!(workload_options, module)?)?;
    module.add_function(wrap_pyfunction!(parse_job, module)?)?;
    module.add_function(wrap_pyfunction!(simulate, module)?)?;
    Ok(())
}
