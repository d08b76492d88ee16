//! `blklab-guest`: see the library.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use blklab_guest::job::cpu;
use blklab_guest::{mounts, network, session};
use rustix::system::{RebootCommand, reboot};

fn main() -> ExitCode {
    if std::env::args().nth(1).as_deref() == Some(cpu::CALIBRATE) {
        return match cpu::calibrate() {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("{error}");
                ExitCode::FAILURE
            }
        };
    }
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

/// Performs the run and leaves a result.
fn live() -> Result<(), String> {
    mounts::base()?;
    network::loopback()?;
    let directory = mounts::run_directory()?;
    mounts::host_directory(&directory, true)?;
    let result = session::run(&directory);
    write_result(&directory, &result)
}

/// Writes under another name first, so that a `result.json` is always complete.
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
