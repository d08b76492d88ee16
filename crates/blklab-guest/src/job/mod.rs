//! A load that is measured: a fio job file or a recording, which runs in the guest as it would in the
//! simulator (the same files at the same places of the same disk, the same processes, the same result),
//! or a real program.

mod cgroups;
pub mod cpu;
mod native;
mod partitions;
pub mod program;
mod watch;

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;

use blklab_core::formats::fio::jobfile::{self, Bare};
use blklab_core::formats::fio::output;
use blklab_core::formats::fio::writer::{self, FioPath};
use blklab_core::formats::tracefs::Owners;
use blklab_core::host::Host;
use blklab_core::recorder::{TraceRecorder, Window};
use blklab_core::result::{DiskCounters, RunResult};
use blklab_core::source::replay::{THE_RECORDING, stored};
use blklab_core::units::{Nanos, Sector};
use blklab_core::workload::plan::{self, FileKind, FilePlan, Plan};
use blklab_core::workload::spec::JobFile;
use blklab_disk::Report;
use blklab_disk::service::clock;
use blklab_replay::{Replay, Replayed, Target, load_of, written};

pub use native::{begin_run, read_asynchronously};

use crate::block::Counters;
use crate::config::{Driver, FileSystem, JobConfig, Name, ReplayConfig, Sectors, WindowConfig};
use crate::costs::{Costs, Counter, Extents, Moved, commits};
use crate::laid_out;
use crate::program::{self as programs, Ended};
use crate::trace::relay::{Ready, Relay};
use crate::trace::{self, Format, RecordFile, Traced};
use watch::Follower;

/// A load prepared on the disk.
pub struct Job {
    load: Load,
    window: Option<Window>,
    /// For the block layer's events.
    ready: Option<Ready>,
    /// Gets the events too.
    records: Option<RecordFile>,
    traced: Option<Traced>,
    /// The measurements of the driver and of the events.
    result: RunResult,
    /// Those of a replay, before the events have told when its I/Os completed.
    replayed: Option<Replayed>,
    /// Those of a program, while its disk is still traced.
    measured: Option<(Ran, Relay<Follower>)>,
}

/// A program that has ended.
struct Ran {
    ended: Ended,
    commits: Option<u64>,
    asked_bytes: Option<u64>,
    charged: Option<cpu::Charged>,
}

/// The measurements of a program's run that its own output does not have.
pub struct Settled {
    /// How it ended.
    pub ended: Ended,
    /// What it costs the disk; None if events were lost.
    pub costs: Option<Costs>,
    /// Time that its CPU work took; None if it took none.
    pub charged: Option<cpu::Charged>,
}

/// What issues the I/O, and what it issues.
enum Load {
    /// fio itself, which reads its job file.
    Fio { plan: Plan, capacity: Sector },
    /// The native driver: the places of the plan's files, and the CPU work of its processes.
    Native(Box<Native>),
    /// Recorded I/O.
    Replay(Replay),
    /// A real program, and the journal of its file system.
    Program { program: Option<program::Program>, device: PathBuf, journal: Extents },
}

/// A load of the native driver.
struct Native {
    plan: Plan,
    seed: u64,
    capacity: Sector,
    places: Vec<native::Target>,
    work: native::Work,
    /// Direct I/O as of files in a file system, although they lie on the bare disk.
    as_files: Option<native::AsFiles>,
    /// Recorded I/O that comes at the same time, of processes with numbers behind those of the plan.
    beside: Option<Replay>,
}

impl Native {
    fn owners(&self) -> Owners {
        let owners = Owners::new(&self.plan, self.capacity);
        match &self.beside {
            None => owners,
            Some(replay) => owners.beside(replay.owners(), self.plan.processes.len() as u32),
        }
    }

    /// Runs it from `epoch` of the clock on; and the replay beside it.
    fn run(&mut self, epoch: Nanos) -> Result<(RunResult, Option<Replayed>), String> {
        let Native { plan, seed, places, work, as_files, beside, .. } = self;
        let jobs = || native::run(plan, *seed, places, work, *as_files, epoch);
        let Some(replay) = beside else { return Ok((jobs()?, None)) };
        thread::scope(|scope| {
            let name = "replay".to_owned();
            let replayed = thread::Builder::new().name(name).spawn_scoped(scope, || replay.run(epoch));
            let replayed = replayed.map_err(|error| format!("a thread for the replay: {error}"))?;
            let result = jobs();
            let replayed = replayed.join().map_err(|_| "the replay panicked")?;
            Ok((result?, Some(replayed?)))
        })
    }
}

/// The disk of a load.
pub struct OfDisk<'a> {
    /// Its scheduler.
    pub scheduler: &'a Name,
    /// The block layer's events are kept, as records of blktrace.
    pub trace: Option<Format>,
    /// Its path.
    pub device: &'a Path,
    /// Its size.
    pub capacity: Sector,
    /// It has a volatile write cache.
    pub has_write_cache: bool,
    /// A write with FUA needs no flush after it: it has FUA, or no volatile write cache.
    pub has_fua: bool,
    /// The job's files are in its file system.
    pub in_files: Option<InFiles<'a>>,
}

/// Files of a job in a file system.
#[derive(Clone, Copy, Debug)]
pub struct InFiles<'a> {
    /// The file system, which is mounted.
    pub file_system: &'a FileSystem,
    /// The places of the files.
    pub sectors: &'a [Sectors],
}

impl InFiles<'_> {
    /// Puts the plan's files at their places; returns the path of each, or of the disk where the job
    /// names a device.
    fn place(&self, plan: &mut Plan, device: &Path, capacity: Sector) -> Result<Vec<String>, String> {
        let ranges = |file: &Sectors| file.iter().map(|&(start, count)| start..start + count).collect();
        let extents: Vec<_> = self.sectors.iter().map(ranges).collect();
        plan.place(&extents, capacity.to_bytes())?;
        let mut number = 0;
        let path = |file: &FilePlan| match file.kind {
            FileKind::Device => device.display().to_string(),
            FileKind::Regular => {
                number += 1;
                laid_out::path(self.file_system, number - 1).display().to_string()
            }
        };
        Ok(plan.files.iter().map(path).collect())
    }
}

impl Load {
    fn owners(&self) -> Owners {
        match self {
            Load::Fio { plan, capacity } => Owners::new(plan, *capacity),
            Load::Native(native) => native.owners(),
            Load::Replay(replay) => replay.owners(),
            Load::Program { .. } => Owners::default(),
        }
    }

    /// There is recorded I/O in it.
    fn has_replay(&self) -> bool {
        match self {
            Load::Fio { .. } | Load::Program { .. } => false,
            Load::Native(native) => native.beside.is_some(),
            Load::Replay(_) => true,
        }
    }

    /// The processes' own I/O is only known from the events.
    fn is_seen_in_events(&self) -> bool {
        // The I/O of all processes bypasses the page cache.
        let is_direct = |plan: &Plan| plan.processes.iter().all(|process| process.job.queueing.direct);
        matches!(self, Load::Fio { plan, .. } if is_direct(plan))
    }
}

impl Job {
    /// Reads the job file and prepares everything on the disk.
    ///
    /// # Errors
    /// One line.
    pub fn prepare(config: &JobConfig, disk: &OfDisk<'_>, directory: &Path) -> Result<Job, String> {
        let &OfDisk { scheduler, device, capacity, has_write_cache, has_fua, .. } = disk;
        let file = read(&config.text)?;
        let mut plan =
            plan::plan(&file, capacity.to_bytes(), config.seed).map_err(|error| error.to_string())?;
        let in_files = disk.in_files.map(|files| files.place(&mut plan, device, capacity)).transpose()?;
        let beside = config.beside.as_ref().map(|file| load_of(&directory.join(file))).transpose()?;
        let mut all = plan.cgroups.clone();
        if let Some(load) = &beside {
            all.join(&load.cgroups, THE_RECORDING)?;
        }
        let cgroups = cgroups::make(&all)?;
        let host = host(config)?;
        if beside.is_some() && config.driver == Driver::Fio {
            return Err("beside: only the native driver replays recorded I/O".to_owned());
        }
        let load = match config.driver {
            Driver::Fio => {
                let is_in_files = in_files.is_some();
                let paths = in_files.map_or_else(|| partitions::make(device, &plan, capacity), Ok)?;
                let places: Vec<_> = paths.into_iter().map(FioPath::whole).collect();
                let mut text = writer::job_file(&plan, &places, None, config.seed)?;
                if is_in_files {
                    // Of a file system's disk the guest's memory keeps all that is not zero.
                    text.insert_str(0, "[global]\nzero_buffers\n");
                }
                let path = directory.join("fio.job");
                fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
                Load::Fio { plan, capacity }
            }
            Driver::Native => {
                native::check(&plan)?;
                let whole = |path: String| native::Target { path: path.into(), start: 0 };
                let as_files = native::AsFiles::of(&host, has_fua).filter(|_| in_files.is_none());
                let places = match in_files {
                    Some(paths) => paths.into_iter().map(whole).collect(),
                    None => native::places(&plan, device, capacity)?,
                };
                let work = native::Work::new(host, &scheduler.to_string(), has_write_cache);
                let first = plan.processes.len() as u32;
                let beside = beside.map(|load| replay(load, disk, first)).transpose()?;
                let seed = config.seed;
                Load::Native(Box::new(Native { plan, seed, capacity, places, work, as_files, beside }))
            }
        };
        Job::of(load, &cgroups, config.window, disk, directory)
    }

    /// Reads recorded I/O and prepares everything on the disk.
    ///
    /// # Errors
    /// One line.
    pub fn prepare_replay(config: &ReplayConfig, disk: &OfDisk<'_>, directory: &Path) -> Result<Job, String> {
        let load = load_of(&directory.join(&config.file))?;
        let cgroups = cgroups::make(&load.cgroups)?;
        let replay = replay(load, disk, 0)?;
        Job::of(Load::Replay(replay), &cgroups, config.window, disk, directory)
    }

    /// A program that is ready, and the journal of its file system.
    ///
    /// # Errors
    /// One line.
    pub fn of_program(
        program: program::Program,
        journal: Extents,
        window: Option<WindowConfig>,
        disk: &OfDisk<'_>,
        directory: &Path,
    ) -> Result<Job, String> {
        let device = disk.device.to_owned();
        Job::of(Load::Program { program: Some(program), device, journal }, &[], window, disk, directory)
    }

    /// `cgroups` are those of its processes, by the kernel's numbers.
    fn of(
        load: Load,
        cgroups: &[(u64, String)],
        window: Option<WindowConfig>,
        disk: &OfDisk<'_>,
        directory: &Path,
    ) -> Result<Job, String> {
        let ready = Some(Ready::new(disk.device)?);
        let records = match disk.trace {
            None => None,
            Some(Format::Blktrace) => {
                if !cgroups.is_empty() {
                    trace::name_cgroups(cgroups, directory)?;
                }
                Some(RecordFile::of(disk.device, directory)?)
            }
            Some(Format::Events) => return Err("a job's events are records of blktrace".to_owned()),
        };
        let window = window.map(|window| Window {
            from: Nanos(window.from_ns),
            until: Nanos(window.until_ns),
            requests: window.requests,
        });
        let result = RunResult::default();
        Ok(Job { load, window, ready, records, traced: None, result, replayed: None, measured: None })
    }

    /// Runs it to its end. Its time zero is `epoch` of the clock.
    ///
    /// # Errors
    /// One line: fio failed, or its output cannot be read; or I/O failed.
    pub fn run(&mut self, directory: &Path, epoch: Nanos) -> Result<(), String> {
        let trace = self.window.map_or_else(TraceRecorder::default, TraceRecorder::of);
        let (owners, is_seen) = (self.load.owners(), self.load.is_seen_in_events());
        let mut watch = Follower::new(epoch, owners, trace, is_seen, self.records.take());
        let (mut end, mut ran) = (None, None);
        if self.load.has_replay() {
            watch = watch.keeping_bios();
        }
        if let Load::Program { journal, .. } = &mut self.load {
            let counter = Counter::new(std::mem::take(journal));
            end = Some(counter.end());
            watch = watch.counting(counter);
        }
        let relay = self.ready.take().ok_or("a job runs once")?.start(watch)?;
        let result = match &mut self.load {
            Load::Fio { plan, .. } => run_fio(plan, directory),
            Load::Native(native) => native.run(epoch).map(|(result, replayed)| {
                self.replayed = replayed;
                result
            }),
            Load::Replay(replay) => replay.run(epoch).map(|replayed| {
                self.replayed = Some(replayed);
                RunResult::default()
            }),
            Load::Program { program, device, .. } => {
                run_program(program.take(), device, epoch).map(|found| {
                    let duration_ns = found.ended.duration_ns;
                    ran = Some(found);
                    RunResult { duration_ns, overview_stride: 1, ..RunResult::default() }
                })
            }
        };
        if let Some(end) = end {
            end.set(clock());
        }
        match result {
            Ok(result) => {
                self.result = result;
                match ran {
                    Some(ran) => self.measured = Some((ran, relay)),
                    None => drop(self.add_events(relay)?),
                }
                Ok(())
            }
            // The disk cannot be removed while it is traced.
            Err(error) => relay.end().and(Err(error)),
        }
    }

    /// Ends the measurement of a program, after its counters were read, and writes what it has left in the
    /// page cache, for its costs. None for other loads.
    ///
    /// # Errors
    /// One line.
    pub fn settle(&mut self) -> Result<Option<Settled>, String> {
        let Some((ran, relay)) = self.measured.take() else { return Ok(None) };
        rustix::fs::sync();
        let Ran { ended, commits, asked_bytes, charged } = ran;
        let moved = self.add_events(relay)?;
        let costs = moved.map(|(during, after)| Costs { during, after, commits, asked_bytes });
        Ok(Some(Settled { ended, costs, charged }))
    }

    /// The kept events.
    pub fn traced(&mut self) -> Option<Traced> {
        self.traced.take()
    }

    /// Adds the measurements that only the block layer's events have. Returns the requests of a program
    /// by kind, until its end and afterwards, if no event was lost.
    fn add_events(&mut self, relay: Relay<Follower>) -> Result<Option<(Moved, Moved)>, String> {
        let (watch, lost) = relay.end()?;
        let (watched, file, moved) = watch.finish();
        self.traced = file.map(|file| file.traced(lost));
        if let Some(replayed) = self.replayed.take() {
            let replayed = if lost > 0 { replayed.result } else { replayed.with_ends(&watched.ended) };
            self.result = match self.load {
                Load::Replay(_) => replayed,
                _ => both(std::mem::take(&mut self.result), replayed),
            };
        }
        // With gaps in the events the queue would be wrong: none.
        if lost > 0 {
            self.result.series.waiting_milli.clear();
            self.result.series.in_flight_milli.clear();
            return Ok(None);
        }
        let result = &mut self.result;
        let driver = (std::mem::take(&mut result.series), Nanos(result.series_interval_ns));
        let (series, interval) = match self.load {
            Load::Native(_) | Load::Replay(_) => watch::joined(driver, (watched.series, watched.interval)),
            Load::Fio { .. } if self.load.is_seen_in_events() => (watched.series, watched.interval),
            Load::Fio { .. } | Load::Program { .. } => (watch::queue_alone(watched.series), watched.interval),
        };
        (result.series, result.series_interval_ns) = (series, interval.0);
        (result.overview, result.overview_stride, result.detail) = watched.commands;
        result.detail_left_out = watched.left_out;
        result.disk.in_flight_ns = watched.depth.in_flight_ns;
        result.disk.service_ns = watched.depth.service_ns;
        result.disk.depth_max = watched.depth.max;
        Ok(moved)
    }

    /// Writes the result's files: see [`written`].
    ///
    /// # Errors
    /// One line.
    pub fn write_result(
        mut self,
        directory: &Path,
        counters: &Counters,
        report: &Report,
    ) -> Result<(), String> {
        self.result.disk = disk_counters(counters, report, &self.result.disk);
        written::write(&self.result, directory)
    }
}

/// Recorded I/O, prepared. Its cgroups are there, and its processes have the numbers from `first` on.
fn replay(load: stored::Load, disk: &OfDisk<'_>, first: u32) -> Result<Replay, String> {
    let target = Target::model(disk.device, disk.capacity, &load)?;
    let replay = Replay::prepare(load, target)?.entering(cgroups::enter);
    let cpus = native::Stay::new();
    Ok(replay.beginning(move |process| cpus.stay_on((first + process.0).into())))
}

/// The processes of a job file, and those of the replay beside them.
fn both(mut jobs: RunResult, replayed: RunResult) -> RunResult {
    let of = |result: &mut RunResult| (std::mem::take(&mut result.series), Nanos(result.series_interval_ns));
    let mut replayed = replayed;
    let (series, interval) = watch::together(of(&mut jobs), of(&mut replayed));
    (jobs.series, jobs.series_interval_ns) = (series, interval.0);
    jobs.duration_ns = jobs.duration_ns.max(replayed.duration_ns);
    jobs.jobs.append(&mut replayed.jobs);
    jobs
}

fn run_program(program: Option<program::Program>, device: &Path, epoch: Nanos) -> Result<Ran, String> {
    let before = commits(device);
    let ran = program.ok_or("a program runs once")?.run(epoch)?;
    let commits = commits(device).zip(before).map(|(after, before)| after.saturating_sub(before));
    Ok(Ran { ended: ran.ended, commits, asked_bytes: ran.asked_bytes, charged: ran.charged })
}

fn run_fio(plan: &Plan, directory: &Path) -> Result<RunResult, String> {
    // By default fio reads the processor's time stamp counter, which is the host's time.
    let words = [
        "fio",
        "--clocksource=clock_gettime",
        "--eta=never",
        "--output-format=json+",
        "--output=fio.json",
        "fio.job",
    ];
    let ended = programs::run("program", &words.map(str::to_owned), [], directory, directory)?;
    let read = |name: &str| {
        let path = directory.join(name);
        fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))
    };
    if !ended.is_good() {
        let text = read("program.stderr")? + &read("fio.json").unwrap_or_default();
        let line = text.lines().find(|line| line.starts_with("fio: "));
        let line = line.or_else(|| text.lines().next()).unwrap_or("failed without a word");
        return Err(format!("fio: {}", line.trim_start_matches("fio: ")));
    }
    let jobs = output::read(&read("fio.json")?, plan).map_err(|error| error.to_string())?;
    Ok(RunResult { duration_ns: ended.duration_ns, jobs, overview_stride: 1, ..RunResult::default() })
}

/// The host has replaced variables, numbers of the machine and includes.
fn read(text: &str) -> Result<JobFile, String> {
    let mut nothing = Bare { memory_mib: 0, cpus: 0 };
    jobfile::parse(text, "job.fio", &mut nothing, Default::default()).map_err(|error| error.to_string())
}

/// The modelled host. The native driver's processes do its CPU work.
fn host(config: &JobConfig) -> Result<Host, String> {
    if config.host.is_empty() {
        return Ok(Host { cpus: 1, partitions: true, ..Host::FREE });
    }
    if config.driver == Driver::Fio {
        return Err("host: CPU work takes time with the native driver only".to_owned());
    }
    let mut settings = Host::settings();
    for (name, value) in &config.host {
        settings.set(name, &value.to_string()).map_err(|error| error.to_string())?;
    }
    Ok(Host::new(&settings))
}

/// The kernel's counters, with times in milliseconds; the server's; and the counts `seen` in the
/// events.
fn disk_counters(counters: &Counters, report: &Report, seen: &DiskCounters) -> DiskCounters {
    let get = |name: &str| counters.get(name);
    let ms = |name: &str| get(name) * 1_000_000;
    DiskCounters {
        read_ios: get("read_ios"),
        read_merges: get("read_merges"),
        read_sectors: get("read_sectors"),
        read_ticks_ns: ms("read_ticks_ms"),
        write_ios: get("write_ios"),
        write_merges: get("write_merges"),
        write_sectors: get("write_sectors"),
        write_ticks_ns: ms("write_ticks_ms"),
        flush_ios: get("flush_ios"),
        flush_ticks_ns: ms("flush_ticks_ms"),
        discard_ios: get("discard_ios"),
        discard_ticks_ns: ms("discard_ticks_ms"),
        io_ticks_ns: ms("io_ticks_ms"),
        in_queue_ns: ms("in_queue_ms"),
        disk_busy_ns: report.busy_ns,
        ..*seen
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_modelled_host_is_for_the_native_driver_and_a_wrong_value_is_refused() {
        let read = |driver: &str, values: &str| {
            let text = format!(r#"{{"text": "", "seed": 1, "driver": "{driver}", "host": {values}}}"#);
            host(&serde_json::from_str(&text).expect("a good order"))
        };
        let without = Host { cpus: 1, partitions: true, ..Host::FREE };
        assert_eq!(read("native", "{}"), Ok(without));
        assert_eq!(read("native", r#"{"cpus": 2}"#).expect("it is good").cpus, 2);
        assert_eq!(read("fio", "{}").expect("no costs"), without);
        assert!(!read("native", r#"{"partitions": 0}"#).expect("it is good").partitions);
        assert!(read("fio", r#"{"cpus": 2}"#).unwrap_err().contains("native driver only"));
        assert!(read("native", r#"{"cpu": 2}"#).unwrap_err().contains("did you mean 'cpus'"));
        assert!(read("native", r#"{"cpus": 0}"#).unwrap_err().contains("out of range"));
    }
}

#[cfg(test)]
mod testing {
    use super::*;

    /// A job file on a disk of 1 GiB.
    pub fn plan(job: &str) -> Plan {
        let file = read(job).expect("a good job");
        plan::plan(&file, Sector(1 << 21).to_bytes(), 1).expect("it fits")
    }
}
