//! One run, from `guest.json` to `result.json`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use blklab_core::disk::DiskModel;
use blklab_disk::log::{self, Log};
use blklab_disk::service::clock;
use blklab_disk::store::DataKind;
use blklab_disk::{Driver, Report, Server};
use rustix::fs::{Mode, OFlags};
use rustix::mount::{UnmountFlags, unmount};
use serde::Serialize;

use crate::block::{Block, Counters, Rounded};
use crate::config::{
    self, Config, FileSystem, JobConfig, LayOut, NfsConfig, Program, Run, Sectors, Workload,
};
use crate::costs::{self, Costs, Extents};
use crate::file_system;
use crate::job::cpu::Charged;
use crate::job::{self, InFiles, Job, OfDisk};
use crate::laid_out;
use crate::memory;
use crate::mounts;
use crate::nfs;
use crate::program::{self, Ended};
use crate::realtime;
use crate::ticks;
use crate::trace::{Trace, Traced};

/// A kernel that has just started rounds timers up to its tick (10 ms in user-mode Linux); it
/// changes to exact timers at one of the first ticks.
const TIMERS_SETTLE: Duration = Duration::from_millis(50);

/// The machine has run for so long when the disk appears. To bfq a disk without a completion has been idle since boot: its
/// observation of the disk's rate begins again after a pause in which its largest request, of 4 MiB, is less than a sector
/// per millisecond (`bfq_completed_request`).
const BOOTED: Duration = Duration::from_nanos(blklab_core::ticks::BOOTED.0);

/// A disk gets its scheduler long before its load. For bfq 200 ms are long: after so much time
/// without service the idle class is due (`BFQ_CL_IDLE_TIMEOUT`), and that time begins with bfq. After four seconds,
/// though, writeback would forget the bandwidth that it assumes of a new disk. Virtual time costs
/// nothing while the guest idles; in the host's time the wait is as short as the idle class allows.
const SCHEDULER_SETTLES: Duration = Duration::from_millis(3000);
const SCHEDULER_SETTLES_AT_LEAST: Duration = Duration::from_millis(250);
/// A run begins then, on the clock, if nothing has taken longer: until the first measurement of the
/// disk's bandwidth a writer's pauses depend on how long the disk has been there, as in the simulator
/// (its page cache counts this time).
const RUN_BEGINS: Duration = Duration::from_nanos(blklab_core::ticks::BEGINS.0);

/// Writes of a mount or a preparation double the places of writeback's throttling, on NVMe up to 64 times, and each
/// step back takes half a second. So all are taken back this long before a run, when the window of 100 ms that then
/// lasts has ended.
const THROTTLING_RESTS: Duration = Duration::from_millis(500);

/// If something has taken longer, it begins so many ticks later, or a multiple: then the buckets of the timer wheel's first
/// levels end where they would have (`LVL_GRAN`). With ticks of 10 ms, 512 would take longer than writeback remembers a
/// bandwidth.
const BUCKETS_END: u32 = 512;
const BUCKETS_END_SLOW: u32 = 64;

/// For ublk: Linux 7.3.4 corrupts its memory when more than 128 io_uring commands of one ring end
/// (seen at the removal of a disk with 160 tags; 128 is the length of the ring's cache of such
/// commands). A scheduler's `nr_requests` is the same from 128 tags on; `none` can have no more
/// requests in flight than this.
const QUEUE_DEPTH_MAX: u32 = 128;

/// Stands for the disk in a command.
const DEVICE_WORD: &str = "{disk}";

/// The disk, in a program's environment.
const DEVICE_VARIABLE: &str = "BLKLAB_DISK";

/// A multiple of any disk's logical block size.
const BLOCK_BYTES: usize = 4096;

/// `result.json`.
#[derive(Debug, Default, Serialize)]
pub struct Outcome {
    /// The error, in one line. The other fields have the values known at that time.
    pub error: Option<String>,
    /// `uname -r`.
    pub kernel: String,
    /// CPUs of the guest.
    pub cpus: usize,
    /// The disk, as the kernel has it.
    pub device: Option<DeviceFound>,
    /// The scheduler, read back.
    pub scheduler: Option<String>,
    /// Everything in `queue/`, read back.
    pub queue: BTreeMap<String, String>,
    /// Everything in `queue/iosched/`, read back.
    pub iosched: BTreeMap<String, String>,
    /// Tunables whose values the kernel rounded.
    pub rounded: Vec<Rounded>,
    /// How the program ended.
    pub program: Option<Ended>,
    /// The disk's `stat`, only for the time of the program.
    pub counters: Option<Counters>,
    /// The requests that the disk served during the program (and until the unmount), and their
    /// lateness.
    pub disk: Option<Report>,
    /// What the program's work costs the disk, if it is a workload and no event was lost.
    pub costs: Option<Costs>,
    /// Time that the program's CPU work took, if it is a workload and took some.
    pub charged: Option<Charged>,
    /// The block layer's events, if requested.
    pub trace: Option<Traced>,
    /// The contents of `requests.i64`, if a log was requested.
    pub log: Option<LogFile>,
    /// The mounted file system: its type, and its options as the kernel tells them.
    pub file_system: Option<file_system::MountFound>,
    /// The places of the files that were laid out.
    pub laid_out: Option<Vec<Sectors>>,
    /// The journal of the file system in which they lie.
    pub journal: Option<costs::Journal>,
    /// Sectors of a job's files that are in another place after the job.
    pub moved_sectors: Option<u64>,
    /// The memory that the guest lacks for the page cache of its host.
    pub memory_short_kib: u64,
    /// What its page cache has before the run: of the file system, and nothing of a bare disk.
    pub memory_cached_kib: u64,
}

/// The disk in the guest.
#[derive(Debug, Serialize)]
pub struct DeviceFound {
    /// Its name, such as `sda`.
    pub name: String,
    /// Its transport: `sata`, `sas`, `nvme` or `ublk`.
    pub transport: String,
    /// Hardware queues.
    pub hw_queues: u16,
    /// Commands that it takes in each.
    pub queue_depth: u32,
}

/// `requests.i64`: columns of little-endian 64-bit integers, one after the other.
#[derive(Debug, Serialize)]
pub struct LogFile {
    /// Length of each column.
    pub rows: usize,
    /// Their names; see [`Log`] for the meanings.
    pub columns: [&'static str; 5],
}

/// Performs the orders of `guest.json` in `directory`.
pub fn run(directory: &Path) -> Outcome {
    let mut outcome = Outcome {
        kernel: rustix::system::uname().release().to_string_lossy().into_owned(),
        cpus: std::thread::available_parallelism().map_or(1, Into::into),
        ..Outcome::default()
    };
    if let Err(message) = try_run(directory, &mut outcome) {
        outcome.error = Some(message);
    }
    outcome
}

/// Time passes only while the guest idles.
fn has_virtual_time() -> Result<bool, String> {
    Ok(mounts::command_line()?.split_whitespace().any(|word| word == "time-travel=inf-cpu"))
}

fn try_run(directory: &Path, outcome: &mut Outcome) -> Result<(), String> {
    let config = read_config(directory)?;
    if has_virtual_time()? {
        std::thread::sleep(BOOTED);
    }
    for path in &config.host_directories {
        mounts::host_directory(path, false)?;
    }
    mounts::host_files(&config.host_files)?;
    // Programs whose work takes time would keep the CPU from the disk's server.
    let (server, transport) = match &config.run {
        Run::Workload(workload) if workload.cpu_permille > 0 => {
            realtime::in_first_place(|| start_disk(directory, &config))??
        }
        _ => start_disk(directory, &config)?,
    };
    std::thread::sleep(TIMERS_SETTLE);
    let device = server.path().to_owned();
    let (hw_queues, queue_depth) = server.queues();
    outcome.device = Some(DeviceFound { name: server.name(), transport, hw_queues, queue_depth });
    let worked = work(directory, &config, &server, &device, outcome);
    // The disk cannot be removed while it is mounted, by us or by the program. It may be busy,
    // because a program can leave processes behind. Their writes are on the disk already.
    for place in mounts::of_disk(&device) {
        rustix::fs::sync();
        let _ = unmount(&place, UnmountFlags::DETACH);
    }
    if worked.is_ok()
        && matches!(config.run, Run::LayOut(_))
        && let Some(file_system) = &config.file_system
    {
        outcome.journal = laid_out::log::at_rest(file_system.kind, &device)?;
    }
    let report = server.stop().map_err(|error| error.to_string());
    let job = match worked {
        Ok(job) => job,
        Err(message) => {
            // Its errors may be the reason.
            outcome.disk = report.ok();
            return Err(message);
        }
    };
    let report = report?;
    if let (Some(job), Some(counters)) = (job, &outcome.counters) {
        job.write_result(directory, counters, &report)?;
    }
    if config.log_rows > 0 {
        outcome.log = Some(write_log(directory, &report.log)?);
    }
    outcome.disk = Some(report);
    Ok(())
}

fn read_config(directory: &Path) -> Result<Config, String> {
    let path = directory.join("guest.json");
    let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    config::parse(&text, &path)
}

/// The disk's server, and the disk's transport in the guest.
fn start_disk(directory: &Path, config: &Config) -> Result<(Server, String), String> {
    let path = directory.join(&config.disk.file);
    let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let mut model =
        DiskModel::parse(&text, &path.display().to_string()).map_err(|error| error.to_string())?;
    for (key, value) in &config.disk.overrides {
        model = model.with_override(key, value).map_err(|error| error.to_string())?;
    }
    let data = match (&config.disk.image, config.disk.data.parse()) {
        (None, Ok(DataKind::File(path))) => DataKind::File(directory.join(path)),
        (None, Ok(kind)) => kind,
        (Some(image), Ok(DataKind::Memory)) => {
            let inside = |path: &PathBuf| directory.join(path);
            DataKind::Image { from: image.from.as_ref().map(inside), to: image.to.as_ref().map(inside) }
        }
        (Some(_), Ok(_)) => return Err("disk: an image is of data in memory".to_owned()),
    };
    let transport = model.transport().to_owned();
    let disk = blklab_disk::Config {
        model,
        seed: config.disk.seed,
        data,
        driver: if config.disk.ublk { Driver::Ublk } else { Driver::Own },
        id: Some(0),
        queue_depth_max: QUEUE_DEPTH_MAX,
        log_rows: config.log_rows,
    };
    let server = Server::start(disk, || {}).map_err(|error| error.to_string())?;
    let transport = if server.is_ublk() { "ublk".to_owned() } else { transport };
    Ok((server, transport))
}

/// The prepared program or job; a replay is one.
enum Work<'a> {
    Program(&'a Program),
    Job(Box<Job>),
}

/// Makes a file system and lays files out in it. The disk's data are the result.
fn lay_out(order: &LayOut, config: &Config, outcome: &mut Outcome) -> Result<(), String> {
    let file_system = config.file_system.as_ref().ok_or("files are laid out in a file system")?;
    outcome.laid_out = Some(laid_out::make(file_system, &order.sizes)?);
    Ok(())
}

/// Checks that the file system has a job's files where the job's host expects them. Memory then has what
/// the file system knows of their places, and the disk what the first opening of a file after a mount
/// and its first change leave in the journal (`ext4_sample_last_mounted`, `I_VERSION_QUERIED`), which would
/// be committed during the run. The first I/O without a waiting process has been, too: with it the file system gets
/// a work queue (`sb_init_dio_done_wq`), for which its process sleeps.
fn check_places(file_system: &FileSystem, expected: &[Sectors]) -> Result<(), String> {
    let found = laid_out::places(file_system, expected.len())?;
    for number in 0..expected.len() {
        let path = laid_out::path(file_system, number);
        let used = laid_out::touch(&path).and_then(|()| job::read_asynchronously(&path));
        used.map_err(|error| format!("{}: its first use: {error}", path.display()))?;
    }
    rustix::fs::sync();
    match found.iter().zip(expected).position(|(found, expected)| found != expected) {
        None => Ok(()),
        Some(number) => Err(format!("file {number} of the file system is not where it was laid out")),
    }
}

/// The work between the disk's creation and removal. A job's result is not written yet.
fn work(
    directory: &Path,
    config: &Config,
    server: &Server,
    device: &Path,
    outcome: &mut Outcome,
) -> Result<Option<Box<Job>>, String> {
    let block = Block::new(&server.name());
    if let Some(file_system) = &config.file_system {
        if !file_system.made {
            file_system::make(directory, file_system, device)?;
        }
        outcome.file_system = Some(file_system::mount(file_system, device)?);
    }
    if let Run::LayOut(order) = &config.run {
        lay_out(order, config, outcome)?;
        return Ok(None);
    }
    let in_files = match (&config.run, &config.file_system) {
        (Run::Job(JobConfig { files: Some(expected), .. }), Some(file_system)) => {
            check_places(file_system, expected)?;
            Some(InFiles { file_system, sectors: expected })
        }
        (Run::Job(JobConfig { files: Some(_), .. }), None) => {
            return Err("a job's files need a file system".to_owned());
        }
        _ => None,
    };
    // Until the work is done: its end is part of neither a run nor its costs.
    let _shared = match &config.run {
        Run::Workload(Workload { nfs: Some(order), .. }) => Some(share(config, order)?),
        _ => None,
    };
    let mut prepared = match &config.run {
        Run::Workload(workload) => Some(prepare(directory, config, workload, device)?),
        _ => None,
    };
    wake_workers(device)?;
    block.set_scheduler(&config.scheduler)?;
    outcome.rounded = block.set("queue", &config.queue)?;
    outcome.rounded.extend(block.set("queue/iosched", &config.iosched)?);
    outcome.scheduler = Some(block.scheduler()?);
    outcome.queue = block.values("queue");
    outcome.iosched = block.values("queue/iosched");
    set_sysctls(config)?;
    let of_disk = || -> Result<OfDisk<'_>, String> {
        let (scheduler, trace) = (&config.scheduler, config.trace);
        let (capacity, has_write_cache) = (block.capacity()?, block.has_write_cache()?);
        let has_fua = !has_write_cache || block.has_fua()?;
        Ok(OfDisk { scheduler, trace, device, capacity, has_write_cache, has_fua, in_files })
    };
    let mut work = match &config.run {
        Run::Program(program) => Work::Program(program),
        Run::Job(job) => Work::Job(Box::new(Job::prepare(job, &of_disk()?, directory)?)),
        Run::Replay(replay) => Work::Job(Box::new(Job::prepare_replay(replay, &of_disk()?, directory)?)),
        Run::LayOut(_) => return Ok(None),
        Run::Workload(workload) => {
            let (program, journal) = prepared.take().ok_or("a workload runs once")?;
            let job = Job::of_program(program, journal, workload.window, &of_disk()?, directory)?;
            Work::Job(Box::new(job))
        }
    };
    // A job's own events are traced in any case.
    let trace = config.trace.filter(|_| matches!(work, Work::Program(_)));
    let trace = trace.map(|format| Trace::begin(format, device, directory)).transpose()?;
    let mut held =
        config.page_cache_kib.map(|kib| memory::leave(kib << 10, in_files.is_none())).transpose()?;
    if let Some(held) = &held {
        (outcome.memory_short_kib, outcome.memory_cached_kib) = (held.short_kib, held.cached_kib);
    }
    // A run begins at a tick, as in the simulator: then values in ticks are the same.
    let since_boot = Duration::from_nanos(clock().0);
    let begins = match has_virtual_time()? {
        true => run_begins(since_boot, ticks::tick_ns().cast_unsigned()),
        false => since_boot + SCHEDULER_SETTLES_AT_LEAST,
    };
    let until = |time| ticks::wait_for_one(time).map_err(|error| format!("timer slack: {error}"));
    until(begins.saturating_sub(THROTTLING_RESTS))?;
    block.reset_throttling()?;
    until(begins)?;
    // Until now a program's server may have worked in the background: its I/O is not the run's.
    let before = block.counters()?;
    let epoch = clock();
    server.restart_model(epoch);
    job::begin_run(matches!(config.run, Run::Job(_)))?;
    match &mut work {
        Work::Program(program) => outcome.program = Some(run_program(program, device, directory)?),
        Work::Job(job) => match &mut held {
            Some(held) => held.beside(|| job.run(directory, epoch))?,
            None => job.run(directory, epoch)?,
        },
    }
    let counters = block.counters()?.since(&before);
    drop(held);
    outcome.trace = trace.map(Trace::end).transpose()?;
    if let Work::Job(job) = &mut work {
        if let Some(settled) = job.settle()? {
            outcome.program = Some(settled.ended);
            (outcome.costs, outcome.charged) = (settled.costs, settled.charged);
        }
        outcome.trace = job.traced();
    }
    outcome.counters = Some(counters);
    if let Some(InFiles { file_system, sectors }) = in_files {
        let after = laid_out::places(file_system, sectors.len())?;
        outcome.moved_sectors = Some(laid_out::moved(sectors, &after));
    }
    Ok(match work {
        Work::Job(job) => Some(job),
        Work::Program(_) => None,
    })
}

/// Starts a program that prepares its data, and returns it with the journal of its file system when it
/// is ready and nothing of it is cached. It prepares under the disk's initial scheduler, which is the same
/// in all runs, and with the limits for dirty pages of its run.
fn prepare(
    directory: &Path,
    config: &Config,
    workload: &Workload,
    device: &Path,
) -> Result<(job::program::Program, Extents), String> {
    let journal = config.file_system.as_ref().map(|file_system| costs::journal(file_system, device));
    set_sysctls(config)?;
    let program = job::program::Program::prepare(workload, device, directory)?;
    if config.file_system.is_some() {
        job::program::make_cold(&workload.directory);
    }
    if let (Some(file_system), Some(_)) = (&config.file_system, &workload.nfs) {
        // So far the client's pages, and now the server's.
        job::program::make_cold(&file_system.mountpoint);
    }
    Ok((program, journal.transpose()?.unwrap_or_default()))
}

/// Exports the disk's file system, and mounts it by NFS.
fn share(config: &Config, order: &NfsConfig) -> Result<nfs::Mounted, String> {
    let file_system = config.file_system.as_ref().ok_or("NFS exports a file system of the disk")?;
    nfs::share(&file_system.mountpoint, order)
}

fn set_sysctls(config: &Config) -> Result<(), String> {
    for (name, value) in &config.sysctl {
        let path = name.path();
        fs::write(&path, value.to_string())
            .map_err(|error| format!("{}={value}: {error}", path.display()))?;
    }
    Ok(())
}

/// When a run begins that is ready at `ready`, after boot in virtual time.
fn run_begins(ready: Duration, tick_ns: u64) -> Duration {
    let ticks = if tick_ns > 1_000_000 { BUCKETS_END_SLOW } else { BUCKETS_END };
    let later = Duration::from_nanos(tick_ns) * ticks;
    let mut begins = BOOTED + RUN_BEGINS;
    while begins < ready + SCHEDULER_SETTLES {
        begins += later;
    }
    begins
}

/// Reads a block under the disk's initial scheduler. Before `kblockd`'s only worker runs its first
/// work, it has another worker created, and until then nothing is dispatched: the first requests of
/// all processes would meet in the scheduler, and later requests never would.
fn wake_workers(device: &Path) -> Result<(), String> {
    let failed = |error: rustix::io::Errno| format!("{}: {error}", device.display());
    let flags = OFlags::RDONLY | OFlags::DIRECT | OFlags::CLOEXEC;
    let disk = rustix::fs::open(device, flags, Mode::empty()).map_err(failed)?;
    let mut room = vec![0; 2 * BLOCK_BYTES];
    let aligned = room.as_ptr().align_offset(BLOCK_BYTES);
    rustix::io::pread(&disk, &mut room[aligned..aligned + BLOCK_BYTES], 0).map_err(failed)?;
    Ok(())
}

fn run_program(program: &Program, device: &Path, directory: &Path) -> Result<Ended, String> {
    let start_in: PathBuf = directory.join(&program.directory);
    let device = device.display().to_string();
    let words: Vec<_> = program.command.0.iter().map(|word| word.replace(DEVICE_WORD, &device)).collect();
    let mut environment = program.environment.clone();
    environment.insert(DEVICE_VARIABLE.to_owned(), device);
    program::run("program", &words, environment, &start_in, directory)
}

fn write_log(directory: &Path, log: &Log) -> Result<LogFile, String> {
    let path = directory.join("requests.i64");
    let written = fs::File::create(&path).and_then(|file| log.write(file));
    written.map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(LogFile { rows: log.rows(), columns: log::COLUMNS })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_begins_where_buckets_of_the_timer_wheel_end_and_when_its_scheduler_has_settled() {
        let at = |ready_ms, tick_ns| run_begins(Duration::from_millis(ready_ms), tick_ns).as_millis();
        assert_eq!(
            [64_000, 64_600, 64_601, 66_000].map(|ms| at(ms, 1_000_000)),
            [67_600, 67_600, 68_112, 69_136]
        );
        assert_eq!(at(64_601, 10_000_000), 68_240);
    }
}
