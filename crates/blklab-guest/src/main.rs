//! `blklab-guest`: the first process of the kernel rig's guest.
//!
//! The host boots a kernel (user-mode Linux, its own root seen through hostfs) with
//! `init=.../blklab-guest blklab.run=DIRECTORY`, having written [`config`]'s `guest.json`
//! into that directory. The guest mounts what programs expect, serves the disk model as
//! `/dev/ublkb0` from a thread, sets the scheduler and its tunables and reads them back,
//! runs the program, and leaves in the directory
//!
//! * `program.stdout`, `program.stderr`, and the same of `mkfs`,
//! * of a job file, `run.json` and `run.i64`: see [`job`],
//! * the block layer's events (see [`trace`]) and `requests.i64` if asked for,
//! * `result.json`: how it ended and what was measured, or one line of what went wrong.
//!
//! Then it powers off. It never exits: a kernel without a first process panics.
//!
//! Time may be virtual: nothing here polls or waits for time to pass.

mod block;
mod config;
mod job;
mod mounts;
mod program;
mod session;
mod ticks;
mod trace;

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use rustix::system::{RebootCommand, reboot};

fn main() -> ExitCode {
    if std::process::id() != 1 {
        eprintln!(
            "blklab-guest: process {} is not the first one: blklab starts it as init of the kernel rig's guest",
            std::process::id()
        );
        return ExitCode::FAILURE;
    }
    // A panic would end the kernel with a page of text; its one line is enough.
    let outcome =
        std::panic::catch_unwind(live).unwrap_or_else(|_| Err("a mistake of blklab-guest's own".into()));
    if let Err(message) = outcome {
        // The console: the run directory could not be written.
        println!("blklab-guest: {message}");
    }
    rustix::fs::sync();
    let error = reboot(RebootCommand::PowerOff);
    panic!("power off: {error:?}");
}

/// Do everything and leave a result.
fn live() -> Result<(), String> {
    mounts::base()?;
    let directory = mounts::run_directory()?;
    mounts::host_directory(&directory, true)?;
    let result = session::run(&directory);
    write_result(&directory, &result)
}

/// Under another name first, so that a `result.json` is whole.
fn write_result(directory: &Path, result: &session::Outcome) -> Result<(), String> {
    let write = || {
        let path = directory.join("result.json.part");
        let mut file = File::create(&path)?;
        serde_json::to_writer_pretty(&mut file, result)?;
        file.write_all(b"\n")?;
        file.sync_all()?;
        std::fs::rename(path, directory.join("result.json"))
    };
    write().map_err(|error: std::io::Error| format!("{}/result.json: {error}", directory.display()))
}
