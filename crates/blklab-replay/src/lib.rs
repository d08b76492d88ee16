//! Recorded I/O, replayed by real system calls: on the disk of the kernel rig's guest, and by the program
//! `blklab-replay` on a real disk.
//!
//! The simulator's own [`Issuer`] decides what a process submits next and when, so that all rigs replay
//! a recording in the same way. A recorded process is a thread with its priority. It submits by
//! `io_submit()` to the disk, past the page cache: asynchronously, under a plug where the recording
//! has one, and it sleeps there if all requests of the queue are taken. Not by io_uring, which would hand
//! such an I/O to a thread of the kernel's. CPU work of a recorded program takes no time, because the
//! recorded times contain it.
//!
//! A process moves into the cgroup of its next I/O, where the caller says how ([`Replay::entering`]).
//!
//! What direct I/O of a process cannot express comes in another form, which
//! [`beyond_a_process`](blklab_core::source::replay::ReplayPlan::beyond_a_process) counts.

pub mod aio;
mod deputy;
mod from_events;
pub mod lateness;
mod process;
pub mod sys;
mod target;
pub mod written;

use std::fs;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::thread;

use blklab_core::formats::fio::options::PERCENTILES;
use blklab_core::formats::tracefs::Owners;
use blklab_core::recorder::SeriesRecorder;
use blklab_core::request::{Op, ProcessId};
use blklab_core::result::RunResult;
use blklab_core::scheduler::CgroupId;
use blklab_core::source::replay::issuer::Issuer;
use blklab_core::source::replay::stored::Load;
use blklab_core::source::replay::{Outcome, ReplayIo, check};
use blklab_core::units::Nanos;
use blklab_disk::service::clock;
use rustix::event::{EventfdFlags, eventfd};

use aio::{Context, Event};
use lateness::Lateness;
use process::Process;
use target::Place;
pub use target::Target;

/// The number of a notice among completions, which have numbers of I/Os.
const NOTICE: u64 = u64::MAX;

/// A thread needs little; there may be thousands.
const STACK_BYTES: usize = 256 << 10;

/// Moves the calling thread into the cgroup of that path.
type Enter = Box<dyn Fn(&str) -> io::Result<()> + Send + Sync>;

/// The calling thread is one of that process's.
type Begin = Box<dyn Fn(ProcessId) + Send + Sync>;

/// A load on a disk, prepared.
pub struct Replay {
    load: Load,
    enter: Option<Enter>,
    begin: Option<Begin>,
    // Declared before the target, which has the buffers: the kernel no longer uses them when the contexts
    // are gone.
    contexts: Vec<Context>,
    target: Target,
    /// Can always be read.
    ready: OwnedFd,
}

/// The measurements of a replay.
pub struct Replayed {
    /// A job for each process.
    pub result: RunResult,
    /// How late I/Os were.
    pub lateness: Lateness,
    /// The I/Os, and their times.
    pub ios: Vec<ReplayIo>,
    /// One per I/O.
    pub outcomes: Vec<Outcome>,
    /// Processes without the priority that they were recorded with, because the user may not give it.
    pub without_priority: u32,
}

/// Reads the load in `file`.
///
/// # Errors
/// One line.
pub fn load_of(file: &Path) -> Result<Load, String> {
    let bytes = fs::read(file).map_err(|error| format!("{}: {error}", file.display()))?;
    Load::of_bytes(&bytes).ok_or_else(|| format!("{}: is no load", file.display()))
}

impl Replay {
    /// The load on that target.
    ///
    /// # Errors
    /// One line: the load cannot run there.
    pub fn prepare(load: Load, target: Target) -> Result<Replay, String> {
        check(&load.ios, &[target.place.capacity().0]).map_err(|error| error.to_string())?;
        let open = || -> io::Result<Replay> {
            let mut own = vec![0_usize; load.processes.len()];
            load.ios.iter().for_each(|io| own[io.process.0 as usize] += 1);
            let depths = target.place.depths(&own)?;
            let contexts = depths.into_iter().map(Context::new).collect::<Result<_, _>>()?;
            let ready = eventfd(1, EventfdFlags::CLOEXEC)?;
            Ok(Replay { load, enter: None, begin: None, target, contexts, ready })
        };
        open().map_err(|error| format!("contexts for asynchronous I/O: {error}"))
    }

    /// The same in cgroups: `enter` moves the calling thread into the one of a path, which is empty for the
    /// root, where all threads begin.
    #[must_use]
    pub fn entering(self, enter: impl Fn(&str) -> io::Result<()> + Send + Sync + 'static) -> Replay {
        Replay { enter: Some(Box::new(enter)), ..self }
    }

    /// The same with `begin`, which each thread calls before its first I/O.
    #[must_use]
    pub fn beginning(self, begin: impl Fn(ProcessId) + Send + Sync + 'static) -> Replay {
        Replay { begin: Some(Box::new(begin)), ..self }
    }

    /// The process of each request, by its sector.
    pub fn owners(&self) -> Owners {
        let moved = self.load.ios.iter().filter(|io| io.op != Op::Flush);
        Owners::of_ios(moved.map(|io| (io.place.sector, io.process)))
    }

    /// The number of processes.
    pub fn processes(&self) -> usize {
        self.load.processes.len()
    }

    /// Replays it from `epoch` of the clock on.
    ///
    /// # Errors
    /// One line: I/O that failed.
    pub fn run(&mut self, epoch: Nanos) -> Result<Replayed, String> {
        let ios = std::mem::take(&mut self.load.ios);
        let issuer = Issuer::new(ios.clone());
        let with_ios = issuer.processes();
        let run = Run {
            epoch,
            load: &self.load,
            enter: self.enter.as_ref(),
            begin: self.begin.as_ref(),
            issuer: Mutex::new(issuer),
            contexts: &self.contexts,
            place: &self.target.place,
            in_flight: AtomicUsize::new(0),
            without_priority: AtomicU32::new(0),
            ready: &self.ready,
            series: Mutex::default(),
            failed: Mutex::default(),
        };
        thread::scope(|scope| {
            let mut processes = self.load.processes.iter().take(with_ios).zip(0..);
            let live = |((name, prio), id): (&(String, _), u32)| {
                let (run, prio) = (&run, *prio);
                let work = move || {
                    let id = ProcessId(id);
                    let lived = Process::new(run, id, prio).and_then(|process| process.live(scope));
                    lived.unwrap_or_else(|error| run.fail(error.to_string()));
                };
                let thread = thread::Builder::new().name(name.replace('\0', "")).stack_size(STACK_BYTES);
                thread.spawn_scoped(scope, work).map(|_| ())
            };
            let started = processes.try_for_each(live);
            started.unwrap_or_else(|error| run.fail(format!("a thread for each process: {error}")));
        });
        if let Some(error) = run.failed.into_inner().expect("no thread panicked") {
            return Err(error);
        }
        let (outcomes, mut jobs) = run.issuer.into_inner().expect("no thread panicked").finish();
        for (job, (name, _)) in jobs.iter_mut().zip(&self.load.processes) {
            job.name.clone_from(name);
            job.percentiles = PERCENTILES.to_vec();
        }
        let (series, interval) = run.series.into_inner().expect("no thread panicked").finish();
        let result = RunResult {
            duration_ns: jobs.iter().map(|job| job.end_ns).max().unwrap_or(0),
            jobs,
            series_interval_ns: interval.0,
            overview_stride: 1,
            series,
            ..RunResult::default()
        };
        let without_priority = run.without_priority.into_inner();
        Ok(Replayed { result, lateness: Lateness::of(&outcomes), ios, outcomes, without_priority })
    }
}

/// What the processes share.
struct Run<'a> {
    /// The run's time zero, on the clock.
    epoch: Nanos,
    /// Without its I/Os.
    load: &'a Load,
    enter: Option<&'a Enter>,
    begin: Option<&'a Begin>,
    issuer: Mutex<Issuer>,
    /// One per process, by id.
    contexts: &'a [Context],
    place: &'a Place,
    /// I/Os of all processes that have begun and not completed.
    in_flight: AtomicUsize,
    without_priority: AtomicU32,
    ready: &'a OwnedFd,
    series: Mutex<SeriesRecorder>,
    /// The first error.
    failed: Mutex<Option<String>>,
}

impl Run<'_> {
    fn now(&self) -> Nanos {
        clock().saturating_sub(self.epoch)
    }

    fn issuer(&self) -> MutexGuard<'_, Issuer> {
        self.issuer.lock().expect("no thread panics with it")
    }

    /// The calling thread, one of that process's, begins.
    fn begin(&self, process: ProcessId) {
        if let Some(begin) = self.begin {
            begin(process);
        }
    }

    /// Moves the calling thread into that cgroup.
    fn enter(&self, cgroup: CgroupId) -> io::Result<()> {
        let path = self.load.cgroups.path(cgroup);
        let entered = self.enter.map_or(Ok(()), |enter| enter(path));
        entered.map_err(|error| io::Error::other(format!("cgroup {path}: {error}")))
    }

    fn context(&self, process: ProcessId) -> &Context {
        &self.contexts[process.0 as usize]
    }

    /// Whether a process that submits may have to wait for a request.
    fn may_sleep(&self) -> bool {
        self.in_flight.load(Ordering::Relaxed) > self.place.requests()
    }

    /// Lets a process that waits for completions look at what has changed.
    fn notify(&self, process: ProcessId) -> io::Result<()> {
        match self.context(process).notify(NOTICE, self.ready.as_raw_fd()) {
            // Without room for it there are completions, which the process is going to see.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
            result => result,
        }
    }

    /// Ends all processes.
    fn fail(&self, error: String) {
        self.failed.lock().expect("no thread panics with it").get_or_insert(error);
        for id in 0..self.contexts.len() as u32 {
            // A process that has ended is not told.
            let _ = self.notify(ProcessId(id));
        }
    }

    fn has_failed(&self) -> bool {
        self.failed.lock().expect("no thread panics with it").is_some()
    }

    /// Takes completions of a process's I/Os.
    fn take(&self, process: ProcessId, events: &[Event]) -> io::Result<()> {
        if events.iter().all(|event| event.data == NOTICE) {
            return Ok(());
        }
        let mut others = Vec::new();
        let mut issuer = self.issuer();
        // With the lock: completions are recorded in the order of their times.
        let now = self.now();
        for event in events.iter().filter(|event| event.data != NOTICE) {
            let index = event.data as u32;
            let io = *issuer.io(index);
            if event.result != io.bytes().cast_signed() {
                return Err(failure(index, &io, event.result));
            }
            self.completed(&mut issuer, index, now, &mut others);
        }
        drop(issuer);
        // The process itself asks for its next step.
        others.into_iter().filter(|&other| other != process).try_for_each(|other| self.notify(other))
    }

    /// An I/O has completed. Appends the processes that may go on to `woken`.
    fn completed(&self, issuer: &mut Issuer, index: u32, now: Nanos, woken: &mut Vec<ProcessId>) {
        let io = *issuer.io(index);
        self.in_flight.fetch_sub(1, Ordering::Relaxed);
        let latency = issuer.completed(index, now, |process| woken.push(process));
        if io.op != Op::Flush {
            let mut series = self.series.lock().expect("no thread panics with it");
            series.completed(now, io.op.is_write(), io.bytes(), latency);
        }
    }
}

/// An error of a system call, as the result of an I/O.
fn result_of(error: &io::Error) -> i64 {
    -i64::from(error.raw_os_error().unwrap_or(libc::EIO))
}

/// An I/O has failed: the kernel's error, or the number of bytes.
fn failure(index: u32, io: &ReplayIo, result: i64) -> io::Error {
    let what = match u64::try_from(result) {
        Ok(moved) => format!("{moved} of {} bytes", io.bytes()),
        Err(_) => io::Error::from_raw_os_error(result.unsigned_abs() as i32).to_string(),
    };
    io::Error::other(format!("I/O {index}, {:?} at sector {}: {what}", io.op, io.place.sector.0))
}

#[cfg(test)]
mod tests {
    use blklab_core::device::Location;
    use blklab_core::request::IoPrio;
    use blklab_core::source::replay::{Plug, Start};
    use blklab_core::units::Sector;

    use super::*;

    fn io(op: Op, sector: u64) -> ReplayIo {
        let place = Location { sector: Sector(sector), ..Location::default() };
        let sectors = if op == Op::Flush { 0 } else { 8 };
        ReplayIo { op, place, sectors, counted: true, plug: Plug::None, ..ReplayIo::default() }
    }

    fn processes() -> Vec<(String, IoPrio)> {
        vec![("a".to_owned(), IoPrio::default()), ("b".to_owned(), IoPrio::default())]
    }

    #[test]
    fn a_load_that_is_missing_or_damaged_is_refused_in_one_line() {
        let refused = |bytes: Option<&[u8]>| {
            let folder = tempfile::tempdir().expect("a folder");
            let file = folder.path().join("replay.bin");
            if let Some(bytes) = bytes {
                fs::write(&file, bytes).expect("written");
            }
            load_of(&file).expect_err("it is wrong").replace(&file.display().to_string(), "FILE")
        };
        assert_eq!(refused(None), "FILE: No such file or directory (os error 2)");
        assert_eq!(refused(Some(b"blkplan")), "FILE: is no load");
    }

    #[test]
    fn a_failed_io_is_named_with_its_place_and_the_kernels_error_or_its_bytes() {
        let of = |result| failure(7, &io(Op::Write, 48), result).to_string();
        assert_eq!(of(-5), "I/O 7, Write at sector 48: Input/output error (os error 5)");
        assert_eq!(of(512), "I/O 7, Write at sector 48: 512 of 4096 bytes");
    }

    /// A file of 1 MiB of ones, in the current directory: temporary directories may have no direct I/O.
    fn file() -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new_in(".").expect("a file");
        fs::write(file.path(), vec![1; 1 << 20]).expect("written");
        file
    }

    fn replayed(ios: Vec<ReplayIo>, file: &Path, requests: usize) -> Result<Replayed, String> {
        let load = Load { ios, processes: processes(), ..Load::default() };
        let target = Target::real(file, &load, requests)?;
        let mut replay = Replay::prepare(load, target)?;
        replay.run(clock())
    }

    #[test]
    fn a_load_beyond_the_end_of_a_file_is_refused_in_one_line() {
        let file = file();
        let refused = replayed(vec![io(Op::Read, 0), io(Op::Read, 2041)], file.path(), 0).err();
        let expected = "I/O 1: 8 sectors from sector 2041 on; the disk has 2048";
        assert_eq!(refused.as_deref(), Some(expected));
    }

    #[test]
    fn ios_of_two_processes_are_replayed_into_a_file_and_measured_with_and_without_a_deputy() {
        for requests in [0, usize::MAX] {
            let file = file();
            let after = Start { after: 2, think: Nanos::from_millis(2), ..Start::default() };
            let mut ios = vec![
                io(Op::Write, 8),
                ReplayIo { plug: Plug::GoesOn, ..io(Op::Write, 16) },
                io(Op::Read, 64),
                ReplayIo { start: after, fua: true, ..io(Op::Write, 24) },
                io(Op::Flush, 0),
                io(Op::Discard, 128),
            ];
            ios.extend((0..200).map(|n| ReplayIo { process: ProcessId(1), ..io(Op::Read, 8 * (n % 200)) }));
            ios[5].start = Start { follows: Some(3), ..Start::default() };
            let Replayed { result, lateness, without_priority, .. } =
                replayed(ios, file.path(), requests).expect("it runs");
            let [a, b] = &result.jobs[..] else { panic!("{} jobs", result.jobs.len()) };
            assert_eq!((&*a.name, a.read.ios, a.write.ios, a.trim.ios), ("a", 1, 3, 1));
            assert_eq!((&*b.name, b.read.ios, b.read.bytes), ("b", 200, 200 * 4096));
            assert!(a.end_ns >= 2_000_000 && a.sync_lat.count == 1, "{} ns", a.end_ns);
            assert_eq!((lateness.ios, without_priority), (206, 0));
            let bytes = fs::read(file.path()).expect("it is there");
            let changed: Vec<_> = (0..256).filter(|n| bytes[n * 4096..][..4096].contains(&0xa5)).collect();
            assert_eq!(changed, [1, 2, 3], "written, and with random bytes");
        }
    }

    #[test]
    fn reads_never_change_what_is_written() {
        let file = file();
        let mut ios: Vec<_> = (0..64).map(|n| io(Op::Read, 8 * n)).collect();
        ios.extend((0..64).map(|n| io(Op::Write, 512 + 8 * n)));
        replayed(ios, file.path(), 0).expect("it runs");
        let bytes = fs::read(file.path()).expect("it is there");
        let blocks: Vec<_> = bytes[256 << 10..512 << 10].chunks(4096).collect();
        assert!(
            blocks.iter().all(|block| **block != [1; 4096]),
            "the file's own data were written elsewhere"
        );
        assert!(blocks.windows(2).all(|two| two[0] != two[1]), "neighbours are equal");
    }

    #[test]
    fn a_load_that_only_reads_cannot_write() {
        let file = file();
        let load = Load { ios: vec![io(Op::Read, 0)], processes: processes(), ..Load::default() };
        let target = Target::real(file.path(), &load, 0).expect("it is there");
        assert!(std::io::Write::write(&mut target.place.file(), b"x").is_err());
    }

    #[test]
    fn an_io_that_fails_ends_all_processes_with_its_error() {
        let file = file();
        let load = Load {
            ios: vec![
                io(Op::Read, 0),
                ReplayIo {
                    process: ProcessId(1),
                    start: Start::at(Nanos::from_secs(3600)),
                    ..io(Op::Read, 0)
                },
            ],
            processes: processes(),
            ..Load::default()
        };
        let target = Target::real(file.path(), &load, 0).expect("it is there");
        let mut replay = Replay::prepare(load, target).expect("it fits");
        fs::write(file.path(), b"").expect("cut");
        let error = replay.run(clock()).err().expect("nothing is there to read");
        assert_eq!(error, "I/O 0, Read at sector 0: 0 of 4096 bytes");
    }
}
