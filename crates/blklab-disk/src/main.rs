//! `blklab-disk`: a disk model as a block device of this machine.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use blklab_core::disk::{DiskModel, catalogue};
use blklab_core::text::shown;
use blklab_disk::control::Control;
use blklab_disk::store::DataKind;
use blklab_disk::{Config, Driver, Server};
use clap::{Parser, Subcommand};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// A disk model as a block device, through ublk
#[derive(Parser)]
#[command(version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Create /dev/ublkbN and serve it until SIGINT or SIGTERM; then print a report as JSON
    Create {
        /// Disk file (TOML), or the name of a shipped disk
        #[arg(long, value_name = "FILE|NAME")]
        disk: PathBuf,
        /// Change a key of the disk file; may be repeated
        #[arg(long = "set", value_name = "KEY=VALUE", value_parser = key_value)]
        overrides: Vec<(String, String)>,
        /// Where to keep data: memory, FILE (sparse, not removed), or none (reads return zeros,
        /// writes are discarded: for workloads that do not check their data)
        #[arg(long, default_value = "memory", value_name = "memory|none|FILE")]
        data: DataKind,
        /// The N of /dev/ublkbN [default: the first free one]
        #[arg(long)]
        id: Option<u32>,
        /// The driver: ublk, or own for the disk's own transport, where the kernel has blklab's driver
        #[arg(long, default_value = "ublk", value_name = "ublk|own", value_parser = driver)]
        driver: Driver,
        /// Seed of the platter's position at the start
        #[arg(long, default_value_t = 1)]
        seed: u64,
    },
    /// List all ublk devices
    List,
    /// Remove a device and end its server; also removes the leftover of a killed server
    Remove {
        /// The N of /dev/ublkbN
        id: u32,
    },
}

fn key_value(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("expected KEY=VALUE")?;
    Ok((key.to_owned(), value.to_owned()))
}

fn driver(text: &str) -> Result<Driver, String> {
    match text {
        "ublk" => Ok(Driver::Ublk),
        "own" => Ok(Driver::Own),
        _ => Err("expected ublk or own".to_owned()),
    }
}

fn main() -> ExitCode {
    match run(Arguments::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("blklab-disk: {}", shown(&message));
            ExitCode::FAILURE
        }
    }
}

type Outcome = Result<(), String>;

fn line(error: impl std::fmt::Display) -> String {
    error.to_string()
}

fn run(command: Command) -> Outcome {
    match command {
        Command::Create { disk, overrides, data, id, driver, seed } => {
            let model = read_model(&disk, &overrides)?;
            create(Config { model, seed, data, driver, id, queue_depth_max: u32::MAX, log_rows: 0 })
        }
        Command::List => list(),
        Command::Remove { id } => remove(id),
    }
}

fn read_model(path: &Path, overrides: &[(String, String)]) -> Result<DiskModel, String> {
    let shipped = if path.is_file() { None } else { path.to_str().and_then(catalogue::model) };
    let model = match shipped {
        Some(model) => model,
        None => {
            let text =
                std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
            DiskModel::parse(&text, &path.display().to_string()).map_err(line)?
        }
    };
    overrides.iter().try_fold(model, |model, (key, value)| model.with_override(key, value)).map_err(line)
}

fn create(config: Config) -> Outcome {
    let mut signals = Signals::new([SIGINT, SIGTERM]).map_err(|error| format!("signals: {error}"))?;
    let name = shown(config.model.name());
    // The device may be removed elsewhere; then there is nothing to wait for.
    let waiting = signals.handle();
    let server = Server::start(config, move || waiting.close()).map_err(line)?;
    let (queues, depth) = server.queues();
    println!("{}: {name}, {queues} x {depth} tags; ends with Ctrl-C", server.path().display());
    signals.forever().next();
    let report = server.stop().map_err(line)?;
    println!("{}", serde_json::to_string(&report).map_err(line)?);
    Ok(())
}

fn list() -> Outcome {
    for device in Control::open().and_then(|mut control| control.list()).map_err(line)? {
        let state = if device.state == 1 { "live" } else { "without a server" };
        println!("/dev/ublkb{}\t{state}\tpid {}", device.id, device.server_pid);
    }
    Ok(())
}

fn remove(id: u32) -> Outcome {
    let mut control = Control::open().map_err(line)?;
    control.stop(id).and_then(|()| control.delete(id)).map_err(line)
}
