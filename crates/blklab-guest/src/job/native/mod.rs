//! A minimal driver: performs the I/O that the simulator generates for a job file and a seed, by
//! real system calls.
//!
//! The simulator's own [`Issuer`](blklab_core::source::fio::issuer::Issuer) decides the next step
//! of a process, so each process issues the same I/Os in the same order, with the same pauses, and
//! its measurements go into the same tally. A simulated process is a thread here: a thread has its
//! own I/O context and priority, and schedulers distinguish processes by I/O context.
//!
//! Under virtual time the duration of a run is in its system calls. So a process makes one per I/O,
//! which submits and waits (`io_uring_enter`, or `pread` and `pwrite` for an engine that blocks);
//! with libaio it makes two, as fio does (`io_submit`, `io_getevents`). It reads the clock once
//! after each. The guest's own CPU work takes no time; what the modelled host's takes, a process
//! sleeps ([`work`]).
//!
//! Files are where the simulator places them: on the bare disk, or each in a partition if there is
//! buffered I/O. Direct I/O comes as if they lay in a file system, if the host's do ([`as_files`]). Refused: trims by engines that queue (fio waits for them there), and POSIX AIO,
//! because glibc would have to create its threads.

mod as_files;
mod files;
mod process;
mod queue;
mod sys;
mod times;
mod work;

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex};
use std::thread;

use blklab_core::device::{DeviceId, Layout, PlacedFile};
use blklab_core::recorder::SeriesRecorder;
use blklab_core::result::{JobResult, RunResult};
use blklab_core::units::{Nanos, Sector};
use blklab_core::workload::plan::{Plan, ProcessSpec};
use blklab_core::workload::spec::Engine;
use blklab_disk::service::clock;
use rustix::fs::OFlags;

pub use as_files::AsFiles;
pub use files::Target;
use process::Process;
use queue::{Queue, Request};
pub use work::{Stay, Work};

use super::{cgroups, partitions};

/// The state that the processes share.
struct Run<'a> {
    plan: &'a Plan,
    /// The place of each file.
    places: &'a [Target],
    work: &'a Work,
    /// Direct I/O as of files in a file system.
    as_files: Option<AsFiles>,
    seed: u64,
    /// The run's time zero, on the clock.
    epoch: Nanos,
    states: Mutex<Vec<State>>,
    changed: Condvar,
    told_to_end: Vec<AtomicBool>,
    series: Mutex<SeriesRecorder>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Waiting,
    Started,
    Ended,
}

impl Run<'_> {
    /// Waits until the process may start.
    fn wait_to_start(&self, spec: &ProcessSpec) {
        let start = &spec.start;
        let may = |states: &[State]| start.is_met(|id| states[id as usize] == State::Ended);
        let states = self.states.lock().expect("no thread panics with it");
        let mut states = self.changed.wait_while(states, |states| !may(states)).expect("nor here");
        states[spec.id.0 as usize] = State::Started;
        drop(states);
        sys::sleep_until(self.epoch + start.not_before);
    }

    /// The process has ended: others may start, or must end.
    fn ended(&self, spec: &ProcessSpec) {
        let mut states = self.states.lock().expect("no thread panics with it");
        states[spec.id.0 as usize] = State::Ended;
        for other in &self.plan.processes {
            let index = other.id.0 as usize;
            if spec.ends(other, states[index] != State::Waiting) {
                self.told_to_end[index].store(true, Ordering::Relaxed);
            }
        }
        drop(states);
        self.changed.notify_all();
    }
}

/// Tells the kernel's driver of modelled CPUs, if it has one, that a run begins: chance no longer decides
/// where the search for a tag does. With `on_new_disk` writeback has not measured the disk either, whatever a mount
/// has written.
///
/// # Errors
/// One line.
pub fn begin_run(on_new_disk: bool) -> Result<(), String> {
    let Ok(driver) = File::open(sys::CPU) else { return Ok(()) };
    let begun = sys::begin_run(&driver)
        .and_then(|()| if on_new_disk { sys::forget_measurements(&driver) } else { Ok(()) });
    begun.map_err(|error| match error.raw_os_error() {
        Some(libc::ENOTTY) => {
            "another version of blklab has built this kernel: blklab kernel build".to_owned()
        }
        _ => format!("{}: {error}", sys::CPU),
    })
}

/// Refuses what this driver cannot do.
///
/// # Errors
/// One line.
pub fn check(plan: &Plan) -> Result<(), String> {
    let refused =
        |spec: &ProcessSpec| process::refuse(spec).map_err(|what| format!("{}: {what}", spec.job.name));
    plan.processes.iter().try_for_each(refused)
}

/// The places of the plan's files on `device`, a disk of `capacity`: on the bare disk, or each in a
/// partition if there is buffered I/O, because pages and read-ahead belong to files.
///
/// # Errors
/// One line: the partitions cannot be created.
pub fn places(plan: &Plan, device: &Path, capacity: Sector) -> Result<Vec<Target>, String> {
    let buffered = plan.processes.iter().any(|spec| !spec.job.queueing.direct);
    if buffered {
        let paths = partitions::make(device, plan, capacity)?;
        return Ok(paths.into_iter().map(|path| Target { path: path.into(), start: 0 }).collect());
    }
    let place = |file: &PlacedFile| Target { path: device.to_owned(), start: file.start().to_bytes().0 };
    Ok(Layout::in_a_row(&plan.files, DeviceId(0), capacity).files().iter().map(place).collect())
}

/// The places of files in the page cache, open until the run has ended. When the last process closes a partition the
/// kernel writes back all its pages at once (`blkdev_flush_mapping`), which it does not do for a file in a
/// file system.
fn hold_open(plan: &Plan, places: &[Target]) -> io::Result<Vec<File>> {
    let buffered = plan.processes.iter().any(|spec| !spec.job.queueing.direct);
    places.iter().filter(|_| buffered).map(|place| File::open(&place.path)).collect()
}

/// Reads the first page of a file, directly, by an I/O that is submitted and waited for.
pub fn read_asynchronously(path: &Path) -> io::Result<()> {
    let flags = OFlags::DIRECT.bits().cast_signed();
    let file = File::options().read(true).custom_flags(flags).open(path)?;
    let (fd, bytes) = (file.as_raw_fd(), 4096);
    let mut queue = Queue::new(Engine::Libaio, 1, bytes)?;
    queue.touch_buffers();
    queue.prepare(Request {
        slot: 0,
        fd,
        write: false,
        at: 0,
        bytes: bytes as u32,
        prio: 0,
        own_plug: false,
        durable: false,
    });
    queue.submit(1)?;
    queue.wait(1, 1)?;
    queue.take().map_or(Ok(()), |(_, read)| read.map(drop))
}

/// Runs the plan's processes on its files from `epoch` of the clock on; their CPU work is `work`, and their direct
/// I/O comes as `as_files` says.
///
/// # Errors
/// One line: I/O that failed.
pub fn run(
    plan: &Plan,
    seed: u64,
    places: &[Target],
    work: &Work,
    as_files: Option<AsFiles>,
    epoch: Nanos,
) -> Result<RunResult, String> {
    let count = plan.processes.len();
    let run = Run {
        places,
        work,
        as_files,
        plan,
        seed,
        epoch,
        states: Mutex::new(vec![State::Waiting; count]),
        changed: Condvar::new(),
        told_to_end: std::iter::repeat_with(AtomicBool::default).take(count).collect(),
        series: Mutex::default(),
    };
    let _open = hold_open(plan, places).map_err(|error| format!("a process's file: {error}"))?;
    let jobs = thread::scope(|scope| {
        let live = |spec| {
            let run = &run;
            scope.spawn(move || {
                let done = Process::new(spec, run).and_then(Process::live);
                run.ended(spec);
                done.map_err(|error| format!("{}: {error}", spec.job.name))
            })
        };
        let threads: Vec<_> = plan.processes.iter().map(live).collect();
        let join =
            |thread: thread::ScopedJoinHandle<'_, _>| thread.join().map_err(|_| "a process panicked")?;
        threads.into_iter().map(join).collect::<Result<Vec<JobResult>, String>>()
    })?;
    let recorder = run.series.into_inner().expect("no thread panicked");
    // The queue is in the events; the series is joined with it, the levels are not.
    let (_, percentiles) = SeriesRecorder::steadiness(std::slice::from_ref(&recorder));
    let (series, interval) = recorder.finish();
    let ended = jobs.iter().map(|job| job.end_ns).max().unwrap_or(0);
    Ok(RunResult {
        duration_ns: ended,
        jobs,
        series_interval_ns: interval.0,
        overview_stride: 1,
        series,
        percentiles,
        ..RunResult::default()
    })
}
