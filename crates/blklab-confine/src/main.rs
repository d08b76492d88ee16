//! Runs a program that can open only the given paths; see [`blklab_confine::Room`].
//!
//! When memory runs out the kernel kills it first, and it leaves no core files.

use std::ffi::OsString;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use blklab_confine::Room;
use clap::Parser;
use rustix::process::{Resource, Rlimit, setrlimit};

/// Exit code if the sandbox cannot be set up.
const NO_WALL: u8 = 125;

/// Runs a program that can open only the given paths.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    /// May be read, with everything below.
    #[arg(long, value_name = "PATH")]
    read: Vec<PathBuf>,
    /// Programs there may be started and read.
    #[arg(long, value_name = "PATH")]
    run: Vec<PathBuf>,
    /// Files there may be changed, but not created or removed.
    #[arg(long, value_name = "PATH")]
    change: Vec<PathBuf>,
    /// May be changed, with everything below.
    #[arg(long, value_name = "PATH")]
    write: Vec<PathBuf>,
    /// Only check whether this kernel supports it: exit code 0 or 125.
    #[arg(long)]
    check: bool,
    /// The program and its arguments.
    #[arg(last = true)]
    command: Vec<OsString>,
}

fn main() -> ExitCode {
    let Err(why) = run(Arguments::parse()) else { return ExitCode::SUCCESS };
    eprintln!("blklab-confine: {why}");
    ExitCode::from(NO_WALL)
}

/// Returns only on failure, or after a check.
fn run(arguments: Arguments) -> Result<(), String> {
    let Arguments { read, run, change, write, check, command } = arguments;
    if !check {
        // A process may always raise its own score.
        fs::write("/proc/self/oom_score_adj", "1000").map_err(|error| format!("oom_score_adj: {error}"))?;
    }
    Room { read, run, change, write }.enter().map_err(|error| format!("Landlock: {error}"))?;
    if check {
        return Ok(());
    }
    let (program, more) = command.split_first().ok_or("no program to run")?;
    let none = Rlimit { current: Some(0), maximum: Some(0) };
    setrlimit(Resource::Core, none).map_err(|error| format!("no limit on core files: {error}"))?;
    Err(format!("{}: {}", program.display(), Command::new(program).args(more).exec()))
}
