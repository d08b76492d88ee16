//! `blklab-replay`: replays a load that blklab has planned on a file or a device. See the library.
//!
//! It leaves `run.json` and `run.i64` (see [`written`]) and `replay.json`: how late the replay was, and how
//! many processes have no priority. blklab confines it as it does fio, and has checked what it may write to.

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::SystemTime;

use blklab_core::units::Nanos;
use blklab_disk::service::clock;
use blklab_replay::{Replay, Replayed, Target, load_of, written};
use clap::Parser;
use serde_json::json;

/// The first I/O comes so much later than the start, so that each process is there in time. An estimate:
/// a thread takes some 30 us.
const BEFORE: Nanos = Nanos::from_millis(10);
const BEFORE_EACH: Nanos = Nanos::from_micros(100);

/// Replays a planned load on a file or a device, past the page cache.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    /// The load, as blklab has planned it for this target.
    load: PathBuf,
    /// An existing file or a device. Its contents are overwritten where the load writes.
    target: PathBuf,
    /// A directory, for the result.
    out: PathBuf,
    /// With more I/Os in flight than these a process may have to wait for a request.
    #[arg(long, default_value_t = 0)]
    requests: usize,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}

/// The wall clock, by which the start of another program can be compared.
fn unix_ns() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

fn run(arguments: &Arguments) -> Result<(), String> {
    let load = load_of(&arguments.load)?;
    let target = Target::real(&arguments.target, &load, arguments.requests)?;
    let mut replay = Replay::prepare(load, target)?;
    let now = clock();
    let epoch = now + BEFORE + Nanos(BEFORE_EACH.0 * replay.processes() as u64);
    let began_unix_ns = unix_ns() + (epoch - now).0;
    let Replayed { result, lateness, without_priority, .. } = replay.run(epoch)?;
    written::write(&result, &arguments.out)?;
    let told = json!({
        "lateness": lateness.to_json(),
        "without_priority": without_priority,
        "began_unix_ns": began_unix_ns,
    });
    let path = arguments.out.join("replay.json");
    fs::write(&path, told.to_string()).map_err(|error| format!("{}: {error}", path.display()))
}
