//! Recorded I/O, replayed by real system calls.
//!
//! The simulator's own [`Issuer`] decides what a process submits next and when, so that both rigs replay
//! a recording in the same way. A recorded process is a thread with its priority. It submits by
//! `io_submit()` to the disk, without a file and without the page cache: asynchronously, under a plug
//! where the recording has one, and it sleeps there if all requests of the queue are taken. CPU work
//! takes no time, because the recorded times contain it.
//!
//! What direct I/O of a process cannot express comes in another form, which
//! [`beyond_a_process`](blklab_core::source::replay::ReplayPlan::beyond_a_process) counts.

mod deputy;
mod process;

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::{Mutex, MutexGuard};
use std::thread;

use blklab_core::formats::fio::options::PERCENTILES;
use blklab_core::formats::tracefs::Owners;
use blklab_core::recorder::SeriesRecorder;
use blklab_core::request::{Op, ProcessId};
use blklab_core::result::RunResult;
use blklab_core::source::replay::issuer::Issuer;
use blklab_core::source::replay::stored::Load;
use blklab_core::source::replay::{ReplayIo, check};
use blklab_core::units::{Nanos, Sector};
use blklab_disk::service::clock;
use blklab_disk::shared::Buffers;
use rustix::event::{EventfdFlags, eventfd};
use rustix::fs::OFlags;

use super::aio::{Context, Event};
use process::Process;

/// A process has at most so many I/Os in flight; a queue has fewer requests.
const IN_FLIGHT_MAX: usize = 1 << 15;

/// Room for notices beside them.
const NOTICES: usize = 64;

/// The number of a notice among completions, which have numbers of I/Os.
const NOTICE: u64 = u64::MAX;

/// The limit of all contexts together.
const AIO_MAX: &str = "/proc/sys/fs/aio-max-nr";

/// A thread needs little; there may be thousands.
const STACK_BYTES: usize = 256 << 10;

/// A load on a disk, prepared.
pub struct Replay {
    load: Load,
    device: File,
    // Declared before the buffers: the kernel no longer uses them when the contexts are gone.
    contexts: Vec<Context>,
    /// The data of all I/Os: no disk model has any.
    buffers: Buffers,
    /// Can always be read.
    ready: OwnedFd,
}

impl Replay {
    /// Reads the load in `file`, for the disk `device` of `capacity`.
    ///
    /// # Errors
    /// One line: the load cannot run there.
    pub fn prepare(file: &Path, device: &Path, capacity: Sector) -> Result<Replay, String> {
        let bytes = fs::read(file).map_err(|error| format!("{}: {error}", file.display()))?;
        let load = Load::of_bytes(&bytes).ok_or_else(|| format!("{}: is no load", file.display()))?;
        check(&load.ios, &[capacity.0]).map_err(|error| error.to_string())?;
        let open = || -> io::Result<Replay> {
            fs::write(AIO_MAX, i32::MAX.to_string())?;
            let flags = OFlags::DIRECT.bits().cast_signed();
            let device = File::options().read(true).write(true).custom_flags(flags).open(device)?;
            let mut own = vec![0_usize; load.processes.len()];
            load.ios.iter().for_each(|io| own[io.process.0 as usize] += 1);
            let depth = |ios: usize| (ios.min(IN_FLIGHT_MAX) + NOTICES) as u32;
            let contexts = own.into_iter().map(|ios| Context::new(depth(ios))).collect::<Result<_, _>>()?;
            let moved = load.ios.iter().filter(|io| io.op != Op::Discard).map(ReplayIo::bytes);
            let buffers = Buffers::new(1, moved.max().unwrap_or(0).max(1) as usize)?;
            let ready = eventfd(1, EventfdFlags::CLOEXEC)?;
            Ok(Replay { load, device, contexts, buffers, ready })
        };
        open().map_err(|error| format!("replay on {}: {error}", device.display()))
    }

    /// The process of each request, by its sector.
    pub fn owners(&self) -> Owners {
        let moved = self.load.ios.iter().filter(|io| io.op != Op::Flush);
        Owners::of_ios(moved.map(|io| (io.place.sector, io.process)))
    }

    /// Replays it from `epoch` of the clock on.
    ///
    /// # Errors
    /// One line: I/O that failed.
    pub fn run(&mut self, epoch: Nanos) -> Result<RunResult, String> {
        let run = Run {
            epoch,
            issuer: Mutex::new(Issuer::new(std::mem::take(&mut self.load.ios))),
            contexts: &self.contexts,
            device: &self.device,
            buffer: self.buffers.address(0),
            ready: &self.ready,
            series: Mutex::default(),
            failed: Mutex::default(),
        };
        thread::scope(|scope| {
            let mut processes = self.load.processes.iter().zip(0..);
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
        let (_, mut jobs) = run.issuer.into_inner().expect("no thread panicked").finish();
        for (job, (name, _)) in jobs.iter_mut().zip(&self.load.processes) {
            job.name.clone_from(name);
            job.percentiles = PERCENTILES.to_vec();
        }
        let (series, interval) = run.series.into_inner().expect("no thread panicked").finish();
        Ok(RunResult {
            duration_ns: jobs.iter().map(|job| job.end_ns).max().unwrap_or(0),
            jobs,
            series_interval_ns: interval.0,
            overview_stride: 1,
            series,
            ..RunResult::default()
        })
    }
}

/// What the processes share.
struct Run<'a> {
    /// The run's time zero, on the clock.
    epoch: Nanos,
    issuer: Mutex<Issuer>,
    /// One per process, by id.
    contexts: &'a [Context],
    device: &'a File,
    /// The address of the data of all I/Os.
    buffer: u64,
    ready: &'a OwnedFd,
    series: Mutex<SeriesRecorder>,
    /// The first error.
    failed: Mutex<Option<String>>,
}

impl Run<'_> {
    fn now(&self) -> Nanos {
        clock() - self.epoch
    }

    fn issuer(&self) -> MutexGuard<'_, Issuer> {
        self.issuer.lock().expect("no thread panics with it")
    }

    fn context(&self, process: ProcessId) -> &Context {
        &self.contexts[process.0 as usize]
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
        let now = self.now();
        let mut others = Vec::new();
        let mut issuer = self.issuer();
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
    use blklab_core::source::replay::Plug;

    use super::*;

    fn write(sector: u64) -> ReplayIo {
        let place = Location { sector: Sector(sector), ..Location::default() };
        ReplayIo { op: Op::Write, place, sectors: 8, counted: true, plug: Plug::None, ..ReplayIo::default() }
    }

    fn refused(bytes: Option<&[u8]>) -> String {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("replay.bin");
        if let Some(bytes) = bytes {
            fs::write(&file, bytes).expect("written");
        }
        let error = Replay::prepare(&file, Path::new("/dev/null"), Sector(1000)).err().expect("it is wrong");
        error.replace(&file.display().to_string(), "FILE")
    }

    #[test]
    fn a_load_that_is_missing_damaged_or_not_on_the_disk_is_refused_in_one_line() {
        assert_eq!(refused(None), "FILE: No such file or directory (os error 2)");
        assert_eq!(refused(Some(b"blkplan")), "FILE: is no load");
        let processes = vec![("a".to_owned(), IoPrio::default())];
        let load = Load { ios: vec![write(0), write(993)], processes };
        let error = refused(Some(&load.to_bytes()));
        assert_eq!(error, "I/O 1: 8 sectors from sector 993 on; the disk has 1000");
    }

    #[test]
    fn a_failed_io_is_named_with_its_place_and_the_kernels_error_or_its_bytes() {
        let of = |result| failure(7, &write(48), result).to_string();
        assert_eq!(of(-5), "I/O 7, Write at sector 48: Input/output error (os error 5)");
        assert_eq!(of(512), "I/O 7, Write at sector 48: 512 of 4096 bytes");
    }
}
