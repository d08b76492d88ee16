//! A real program as the load.
//!
//! It may prepare data first, before the disk has its scheduler: then every scheduler finds the same
//! files at the same places. After that its files leave the page cache, as on a disk of this machine
//! under `--cache cold`.

use std::ffi::CString;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Stdio};
use std::thread::{self, JoinHandle};

use blklab_core::units::Nanos;
use blklab_disk::service::clock;
use rustix::fs::{Advice, Mode, OFlags};
use rustix::process::{Pid, Signal, kill_process};

use super::cpu::{self, Charged};
use crate::config::Workload;
use crate::costs::written_by_calls;
use crate::program::{self, Ended};

/// The name of its output files.
const NAME: &str = "program";
/// Stands for the disk in a command.
const DEVICE_WORD: &str = "{disk}";
/// The disk, in a program's environment.
const DEVICE_VARIABLE: &str = "BLKLAB_DISK";

/// A program that is ready to run.
pub struct Program {
    name: String,
    directory: PathBuf,
    cpu_permille: u32,
    state: State,
}

enum State {
    /// It waits for a line.
    Ready(Child, BufReader<ChildStdout>),
    /// It ended before it was ready, or has run.
    Ended(Ended),
}

/// The measurements of a run.
pub struct Ran {
    /// How it ended.
    pub ended: Ended,
    /// Bytes given to write calls; None if the kernel does not count them.
    pub asked_bytes: Option<u64>,
    /// Time that its CPU work took; None if it took none.
    pub charged: Option<Charged>,
}

impl Program {
    /// Starts a program, and waits until it is ready. `directory` is the run directory.
    ///
    /// # Errors
    /// One line: it cannot be started.
    pub fn prepare(config: &Workload, device: &Path, directory: &Path) -> Result<Program, String> {
        let device = device.display().to_string();
        let words: Vec<_> = config.command.0.iter().map(|word| word.replace(DEVICE_WORD, &device)).collect();
        let mut environment = config.environment.clone();
        environment.insert(DEVICE_VARIABLE.to_owned(), device);
        let place = &config.directory;
        fs::create_dir_all(place).map_err(|error| format!("{}: {error}", place.display()))?;
        cpu::prepare(config.cpu_permille, directory)?;
        let started = clock();
        let outputs = [Stdio::piped(), program::output(NAME, "stderr", directory)?.into()];
        let mut child = program::start(&words, environment, place, Stdio::piped(), outputs)?;
        let mut output = BufReader::new(child.stdout.take().ok_or("no standard output")?);
        let mut line = Vec::new();
        let state = match output.read_until(b'\n', &mut line) {
            Ok(_) if line.ends_with(b"\n") => State::Ready(child, output),
            _ => State::Ended(program::wait_for(&child, &words[0], started)?),
        };
        Ok(Program {
            name: words[0].clone(),
            directory: directory.to_owned(),
            cpu_permille: config.cpu_permille,
            state,
        })
    }

    /// Runs it to its end, and ends all processes that it has left. Its duration counts from `epoch`.
    ///
    /// # Errors
    /// One line: its output cannot be kept.
    pub fn run(self, epoch: Nanos) -> Result<Ran, String> {
        let (mut child, output) = match self.state {
            State::Ended(ended) => return Ok(Ran { ended, asked_bytes: None, charged: None }),
            State::Ready(child, output) => (child, output),
        };
        let asked_before = written_by_calls();
        let copying = copy(output, program::output(NAME, "stdout", &self.directory)?)?;
        let charging = cpu::begin(self.cpu_permille)?;
        if let Some(mut input) = child.stdin.take() {
            // If it has ended meanwhile, its exit code shows it.
            let _ = input.write_all(b"go\n");
        }
        let ended = program::wait_for(&child, &self.name, epoch)?;
        let charged = charging.map(cpu::Charging::end).transpose()?;
        let asked = written_by_calls();
        end_all();
        copying.join().map_err(|_| "the reader of the program's output panicked")??;
        let asked_bytes = asked.zip(asked_before).map(|(after, before)| after.saturating_sub(before));
        Ok(Ran { ended, asked_bytes, charged })
    }
}

/// Copies everything that the program writes from now on.
fn copy(mut from: BufReader<ChildStdout>, mut to: File) -> Result<JoinHandle<Result<(), String>>, String> {
    let work = move || {
        let mut block = vec![0; 1 << 16];
        loop {
            let read = from.read(&mut block).map_err(|error| format!("the program's output: {error}"))?;
            if read == 0 {
                return Ok(());
            }
            to.write_all(&block[..read]).map_err(|error| format!("the program's output: {error}"))?;
        }
    };
    thread::Builder::new().name("output".to_owned()).spawn(work).map_err(|error| format!("a thread: {error}"))
}

/// Kills every process but the first one, which this is.
fn end_all() {
    let numbers = fs::read_dir("/proc").into_iter().flatten().filter_map(Result::ok);
    let first = std::process::id() as i32;
    for number in numbers.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok()) {
        // A kernel thread takes no signal.
        if let Some(pid) = Pid::from_raw(number).filter(|_| number != first) {
            let _ = kill_process(pid, Signal::KILL);
        }
    }
}

/// Writes back and drops the cached pages of all files below `directory`. Nothing of it counts as an
/// access to them: the next one would write their times.
pub fn make_cold(directory: &Path) {
    rustix::fs::sync();
    let mut left = vec![directory.to_owned()];
    while let Some(place) = left.pop() {
        let Ok(file) = open_unseen(&place) else { continue };
        let Ok(stat) = rustix::fs::fstat(&file) else { continue };
        match rustix::fs::FileType::from_raw_mode(stat.st_mode) {
            rustix::fs::FileType::Directory => {
                let Ok(entries) = rustix::fs::Dir::new(file) else { continue };
                for entry in entries.filter_map(Result::ok) {
                    let name = entry.file_name().to_bytes();
                    if name != b"." && name != b".." {
                        left.push(place.join(std::ffi::OsStr::from_bytes(name)));
                    }
                }
            }
            // A file without pages in memory takes no time; other kinds have none.
            rustix::fs::FileType::RegularFile => {
                let _ = rustix::fs::fadvise(&file, 0, None, Advice::DontNeed);
            }
            _ => {}
        }
    }
}

fn open_unseen(path: &Path) -> rustix::io::Result<rustix::fd::OwnedFd> {
    let name = CString::new(path.as_os_str().as_bytes()).map_err(|_| rustix::io::Errno::INVAL)?;
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOATIME;
    rustix::fs::open(name, flags, Mode::empty())
}
