//! What a run is made of, as objects: read and checked once, from the texts that users write.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use blklab_core::InputError;
use blklab_core::disk::{self, DiskModel, Op, TraceRequest};
use blklab_core::formats;
use blklab_core::formats::fio::{changes, jobfile};
use blklab_core::host;
use blklab_core::host::spec::HostSpec;
use blklab_core::pagecache::{self, MemoryConfig};
use blklab_core::scheduler::spec::{self, OpenSpec, SchedulerSpec, Written};
use blklab_core::text;
use blklab_core::tunable::Settings;
use blklab_core::units::{Nanos, Sector};
use blklab_core::workload::journal::{JournalKind, JournalPlan};
use blklab_core::workload::plan::{self, FileKind, Plan};
use blklab_core::workload::spec::JobFile;
use blklab_plugin_host::Loaded;
use pyo3::prelude::*;

use crate::describe::{
    Check, DiskLimits, IdleOption, JobSection, LongestWait, Parameter, PublishedFigure, SchedulerInfo,
    Validation,
};
use crate::files::Machine;
use crate::{bad_input, bad_job, describe};

/// Costs of the modelled host, and its page cache.
#[pyclass(frozen, module = "blklab._core")]
pub struct Host {
    pub host: host::Host,
    pub memory: MemoryConfig,
    of_host: Settings,
    pub of_memory: Settings,
}

#[pymethods]
impl Host {
    /// The defaults, with these tunables changed.
    #[new]
    #[pyo3(signature = (changed = BTreeMap::new()))]
    pub fn new(changed: BTreeMap<String, i64>) -> PyResult<Host> {
        let (mut of_host, mut of_memory) = (host::Host::settings(), MemoryConfig::settings());
        let names: Vec<_> = of_host.iter().chain(of_memory.iter()).map(|(tunable, _)| tunable.name).collect();
        for (name, value) in changed {
            if !names.contains(&name.as_str()) {
                // Each table knows only its own names.
                let hint = text::hint(&name, &names);
                let wrong = InputError::new(format!("host has no tunable '{name}'{hint}"));
                return Err(bad_input(wrong.option(name).nearest(hint.nearest)));
            }
            let is_memory = pagecache::TUNABLES.iter().any(|tunable| tunable.name == name);
            debug_assert!(!(is_memory && host::TUNABLES.iter().any(|tunable| tunable.name == name)));
            let table = if is_memory { &mut of_memory } else { &mut of_host };
            table.set(&name, &value.to_string()).map_err(bad_input)?;
        }
        let host = host::Host::new(&of_host);
        let memory = MemoryConfig::new(&of_memory, host.ticks, host.cpus, host.kernel);
        Ok(Host { host, memory, of_host, of_memory })
    }

    /// Every tunable of host and page cache.
    #[getter]
    fn values(&self) -> BTreeMap<&'static str, i64> {
        let all = self.of_host.iter().chain(self.of_memory.iter());
        all.map(|(tunable, value)| (tunable.name, value)).collect()
    }
}

/// The values of a host file, by name.
#[pyfunction]
pub fn host_file(text: &str, path: &str) -> PyResult<Vec<(String, i64)>> {
    formats::host_file::parse(text, path).map_err(bad_input)
}

/// The pairs of ``name=value,...`` behind a name; `owner` and `expected` are for messages.
#[pyfunction]
pub fn pairs(text: &str, owner: &str, expected: &str) -> PyResult<Vec<(String, String)>> {
    let found = blklab_core::pairs::pairs(text).map_err(|error| bad_input(error.of(owner, expected)))?;
    Ok(found.into_iter().map(|(name, value)| (text::shown(name), text::shown(value))).collect())
}

/// The base of a host's text, and its values by name.
type HostText = (Option<String>, Vec<(String, i64)>);

/// The base of a host's text, and its values, both unchecked.
#[pyfunction]
pub fn host_spec(text: &str) -> PyResult<HostText> {
    let spec = HostSpec::parse(text).map_err(bad_input)?;
    Ok((spec.base, spec.values))
}

/// The text of a job file with these options changed: ``option=value,...``; `name` is for messages.
#[pyfunction]
pub fn changed_job(job: &Job, text: &str, name: &str, changes: &str) -> PyResult<String> {
    let written = changes::Written { name, path: &job.file.path, text, file: &job.file };
    changes::changed(written, changes).map_err(bad_input)
}

/// A disk model.
#[pyclass(frozen, module = "blklab._core")]
pub struct Disk {
    pub model: DiskModel,
    text: String,
    path: String,
    /// Measured when a disk is first drawn.
    kept: OnceLock<disk::Kept>,
}

/// The file of a drawn disk, the drawn values, and the figure that all attempts missed.
type DrawnText = (String, Vec<(&'static str, f64)>, Option<&'static str>);

#[pymethods]
impl Disk {
    /// From a disk file, with keys changed.
    #[new]
    #[pyo3(signature = (text, path, overrides = Vec::new()))]
    fn new(text: &str, path: &str, overrides: Vec<(String, String)>) -> PyResult<Disk> {
        let model = DiskModel::parse(text, path).map_err(bad_input)?;
        let changed = overrides.iter().try_fold(model, |model, (key, value)| model.with_override(key, value));
        let model = changed.map_err(bad_input)?;
        Ok(Disk { model, text: text.to_owned(), path: path.to_owned(), kept: OnceLock::new() })
    }

    /// A disk drawn from the ranges of its file's estimates: its file and the drawn values. If no attempt
    /// meets the calibrated figures that the file meets, these are the file's own, with the figure that most missed.
    fn draw(&self, py: Python<'_>, seed: u64) -> PyResult<DrawnText> {
        py.detach(|| {
            let kept = self.kept.get_or_init(|| disk::Kept::of(&self.model));
            let drawn = disk::draw(&self.text, &self.path, &self.model, kept, seed).map_err(bad_input)?;
            Ok((drawn.text, drawn.values, drawn.missed.map(|figure| figure.name)))
        })
    }

    #[classattr]
    #[allow(non_snake_case)]
    fn FIELDS() -> Vec<&'static str> {
        vec![
            "name",
            "summary",
            "kind",
            "transport",
            "limits",
            "longest_wait_ms",
            "validation",
            "published",
            "parameters",
        ]
    }

    /// Maker's name.
    #[getter]
    fn name(&self) -> &str {
        self.model.name()
    }

    /// What it is, in one line.
    #[getter]
    fn summary(&self) -> &str {
        self.model.summary()
    }

    /// `hdd` or `ssd`.
    #[getter]
    fn kind(&self) -> &'static str {
        if self.model.limits().rotational { "hdd" } else { "ssd" }
    }

    /// `sata`, `sas` or `nvme`.
    #[getter]
    fn transport(&self) -> &str {
        self.model.transport()
    }

    /// What a host learns of it.
    #[getter]
    fn limits(&self) -> DiskLimits {
        describe::limits(&self.model)
    }

    /// How long a command of 4 KiB can be in it at full depth.
    #[getter]
    fn longest_wait_ms(&self) -> Option<LongestWait> {
        describe::longest_wait_ms(&self.model)
    }

    /// Whether the model meets enough independent figures.
    #[getter]
    fn validation(&self) -> Validation {
        describe::validation(&self.model)
    }

    /// The published figures.
    #[getter]
    fn published(&self) -> Vec<PublishedFigure> {
        describe::published(&self.model)
    }

    /// Every parameter with its source.
    #[getter]
    fn parameters(&self) -> Vec<Parameter> {
        describe::parameters(&self.model)
    }

    /// Its figures beside the published figures of the disk.
    fn validate(&self, py: Python<'_>) -> Vec<Check> {
        py.detach(|| describe::checks(&self.model))
    }

    /// How long each request of a trace takes, ns, given one at a time: its gap after the end of
    /// the one before in ns, first sector, sectors, whether it writes.
    fn replay(&self, py: Python<'_>, trace: Vec<(u64, u64, u32, bool)>, seed: u64) -> PyResult<Vec<u64>> {
        let request = |(gap, sector, sectors, write)| TraceRequest {
            gap: Nanos(gap),
            op: if write { Op::Write } else { Op::Read },
            sector: Sector(sector),
            sectors,
        };
        let trace: Vec<_> = trace.into_iter().map(request).collect();
        let times = py.detach(|| disk::replay(&self.model, seed, &trace));
        let times = times
            .map_err(|number| bad_input(InputError::new(format!("request {number} is not on the disk"))))?;
        Ok(times.into_iter().map(|time| time.0).collect())
    }
}

/// A file system's name, and the extents, head and unit of its journal, in sectors.
type RestingJournal = (String, Vec<(u64, u64)>, u64, u32);

/// A job file.
#[pyclass(frozen, module = "blklab._core")]
pub struct Job {
    pub file: JobFile,
    /// The sectors of its regular files, where a file system has placed them.
    places: Option<Vec<Vec<Range<u64>>>>,
    /// The journal of that file system at rest.
    journal: Option<JournalPlan>,
}

impl Job {
    /// Its processes and files on that disk.
    pub fn plan(&self, disk: &Disk, seed: u64) -> PyResult<Plan> {
        let capacity = disk.model.limits().capacity.to_bytes();
        let mut plan = plan::plan(&self.file, capacity, seed).map_err(bad_job)?;
        if let Some(places) = &self.places {
            plan.place(places, capacity).map_err(|error| bad_input(InputError::new(error)))?;
            if let Some(journal) = self.journal.clone() {
                let journal = journal.in_use(places.len());
                let placed = plan.place_journal(journal, capacity);
                placed.map_err(|error| bad_input(InputError::new(error)))?;
            }
        }
        Ok(plan)
    }
}

#[pymethods]
impl Job {
    /// From its text; with `real`, for real fio on a real disk.
    #[new]
    #[pyo3(signature = (text, path, env, host, ignore_unsupported = false, real = false))]
    pub fn new(
        text: &str,
        path: &str,
        env: BTreeMap<String, String>,
        host: &Host,
        ignore_unsupported: bool,
        real: bool,
    ) -> PyResult<Job> {
        let within = real.then(|| Path::new(path).parent().unwrap_or(Path::new("")).to_owned());
        let memory_mib = host.memory.memory.0 >> 20;
        let mut machine = Machine { env, within, cpus: host.host.cpus.into(), memory_mib };
        let options = jobfile::ParseOptions { ignore_unsupported, real };
        let file = jobfile::parse(text, path, &mut machine, options).map_err(bad_job)?;
        Ok(Job { file, places: None, journal: None })
    }

    /// The same with its files where a file system has them: of each regular file, in their order, the
    /// first sector and the length of each extent. `journal`: the file system's name, and its journal at rest:
    /// extents, head and unit, in sectors.
    #[pyo3(signature = (places, journal = None))]
    fn placed(&self, places: Vec<Vec<(u64, u64)>>, journal: Option<RestingJournal>) -> PyResult<Job> {
        let range = |(start, sectors): (u64, u64)| start..start.saturating_add(sectors);
        let of_file = |file: Vec<_>| file.into_iter().map(range).collect();
        let kind_of = |name: &str| {
            let unknown = || bad_input(InputError::new(format!("no journal of {name} is modelled")));
            JournalKind::of(name).ok_or_else(unknown)
        };
        let plan = |(name, extents, head, unit): RestingJournal| {
            Ok::<_, PyErr>(JournalPlan { kind: kind_of(&name)?, extents: of_file(extents), head, unit })
        };
        let journal = journal.map(plan).transpose()?;
        let places = Some(places.into_iter().map(of_file).collect());
        Ok(Job { file: self.file.clone(), places, journal })
    }

    /// Sizes of its regular files on that disk, in bytes.
    fn file_sizes(&self, disk: &Disk, seed: u64) -> PyResult<Vec<u64>> {
        let plan = self.plan(disk, seed)?;
        let regular = plan.files.iter().filter(|file| file.kind == FileKind::Regular);
        Ok(regular.map(|file| file.size.0).collect())
    }

    #[classattr]
    #[allow(non_snake_case)]
    fn FIELDS() -> Vec<&'static str> {
        vec!["path", "defaults", "jobs", "ignored", "without_effect"]
    }

    /// Its path, as given.
    #[getter]
    fn path(&self) -> &str {
        &self.file.path
    }

    /// The options of the `[global]` sections.
    #[getter]
    fn defaults(&self) -> Vec<(String, String)> {
        self.file.global.clone()
    }

    /// The other sections.
    #[getter]
    fn jobs(&self) -> Vec<JobSection> {
        self.file.jobs.iter().map(|job| describe::section(job)).collect()
    }

    /// Options that are left out.
    #[getter]
    fn ignored(&self) -> Vec<IdleOption> {
        describe::idle(&self.file.ignored)
    }

    /// Options that change nothing in a simulation.
    #[getter]
    fn without_effect(&self) -> Vec<IdleOption> {
        describe::idle(&self.file.without_effect)
    }
}

/// A scheduler from a file of WebAssembly.
#[pyclass(frozen, module = "blklab._core")]
pub struct Plugin {
    loaded: Arc<Loaded>,
}

#[pymethods]
impl Plugin {
    /// From the file's content; `digest` stands for it.
    #[new]
    fn new(py: Python<'_>, content: &[u8], digest: String, path: &str) -> PyResult<Plugin> {
        let loaded = py.detach(|| blklab_plugin_host::load(content, digest));
        let wrong = |why| InputError::new(format!("plug-in {path}: {why}"));
        Ok(Plugin { loaded: Arc::new(loaded.map_err(|why| bad_input(wrong(why)))?) })
    }

    /// What it says of itself.
    #[getter]
    fn info(&self) -> SchedulerInfo {
        describe::scheduler(self.loaded.info)
    }
}

/// A scheduler with its tunables.
#[pyclass(frozen, module = "blklab._core")]
pub struct Scheduler {
    /// For a scheduler of a real kernel, the part that the simulator knows.
    pub known: SchedulerSpec,
    #[pyo3(get)]
    name: String,
    #[pyo3(get)]
    own: Vec<(String, String)>,
}

#[pymethods]
impl Scheduler {
    /// By its name, with the tunables that were set: a simulated scheduler, with `real` one of any
    /// kernel, or this plug-in.
    #[new]
    #[pyo3(signature = (name, settings = Vec::new(), real = false, plugin = None))]
    fn new(
        name: &str,
        settings: Vec<(String, String)>,
        real: bool,
        plugin: Option<&Plugin>,
    ) -> PyResult<Scheduler> {
        let settings: Vec<_> = settings.iter().map(|(name, value)| (&**name, &**value)).collect();
        if let Some(Plugin { loaded }) = plugin {
            let known = SchedulerSpec::of_plugin(loaded.info, loaded.made(), &settings).map_err(bad_input)?;
            return Ok(Scheduler { known, name: loaded.info.name.to_owned(), own: Vec::new() });
        }
        let written = Written { name, settings };
        if real {
            let open = OpenSpec::of(&written).map_err(bad_input)?;
            return Ok(Scheduler { known: open.known, name: open.name, own: open.own });
        }
        let known = SchedulerSpec::of(&written).map_err(bad_input)?;
        let name = known.info.name.to_owned();
        Ok(Scheduler { known, name, own: Vec::new() })
    }

    /// Every tunable that the simulator knows.
    #[getter]
    fn settings(&self) -> BTreeMap<&'static str, i64> {
        self.known.values().collect()
    }

    /// The tunables in the text.
    #[getter]
    fn changed(&self) -> BTreeMap<&'static str, i64> {
        self.known.given().collect()
    }
}

/// Take a scheduler's text apart without looking at its values.
#[pyfunction]
pub fn split_scheduler(text: &str) -> PyResult<(&str, Vec<(&str, &str)>)> {
    let written = spec::written(text).map_err(bad_input)?;
    Ok((written.name, written.settings))
}
