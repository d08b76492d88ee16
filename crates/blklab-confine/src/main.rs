//! Runs a program that can open nothing but what it is given; see [`blklab_confine::Room`].
//!
//! Where memory runs out it is the first to be ended, and it leaves no core files.

use std::ffi::OsString;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use blklab_confine::Room;
use clap::Parser;
use rustix::process::{Resource, Rlimit, setrlimit};

/// Exit code if the wall cannot be built.
const NO_WALL: u8 = 125;

/// Runs a program that can open nothing but what it is given.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    /// May be read, with all below.
    #[arg(long, value_name = "PATH")]
    read: Vec<PathBuf>,
    /// Programs there may be started, and read.
    #[arg(long, value_name = "PATH")]
    run: Vec<PathBuf>,
    /// Files there may be changed; none may be made or removed.
    #[arg(long, value_name = "PATH")]
    change: Vec<PathBuf>,
    /// May be changed, with all below.
    #[arg(long, value_name = "PATH")]
    write: Vec<PathBuf>,
    /// Only say whether this kernel can do it: exit code 0 or 125.
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

/// Returns only if it fails, or was only to check.
fn run(arguments: Arguments) -> Result<(), String> {
    let Arguments { read, run, change, write, check, command } = arguments;
    if !check {
        // A process may always raise its own.
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
