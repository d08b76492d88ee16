//! A fio job file, run in the guest as the simulator would run it: the same files at the
//! same places of the same disk, the same processes, the same result.

mod fio_file;
mod fio_result;
mod partitions;

use std::fs;
use std::path::Path;

use blklab_core::engine;
use blklab_core::result::{DiskCounters, RunResult};
use blklab_core::units::Sector;
use blklab_core::workload::jobfile::{self, Resolver};
use blklab_core::workload::plan::{self, Plan};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::block::Counters;
use crate::program::{self, Ended};

/// A job file to run.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JobConfig {
    /// The job file, without variables and includes: the host has put them in.
    pub text: String,
    /// Decides everything random.
    pub seed: u64,
    /// Who issues the I/O.
    pub driver: Driver,
}

/// Who issues the I/O.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Driver {
    /// fio itself.
    Fio,
}

/// Variables and includes are the host's.
struct Nothing;

impl Resolver for Nothing {
    fn variable(&self, _: &str) -> Option<String> {
        None
    }

    fn include(&mut self, path: &str) -> Result<String, String> {
        Err(format!("{path}: the host has not put it in"))
    }

    fn memory_mib(&self) -> u64 {
        0
    }

    fn cpus(&self) -> u64 {
        1
    }
}

/// A job file that is laid on the disk.
pub struct Job {
    plan: Plan,
    driver: Driver,
}

impl Job {
    /// Read the job file, make its files' partitions on `device`, write what fio reads.
    ///
    /// # Errors
    /// One line.
    pub fn prepare(
        config: &JobConfig,
        device: &Path,
        capacity: Sector,
        directory: &Path,
    ) -> Result<Job, String> {
        let file = jobfile::parse(&config.text, "job.fio", &mut Nothing, Default::default())
            .map_err(|error| error.to_string())?;
        let plan =
            plan::plan(&file, capacity.to_bytes(), config.seed).map_err(|error| error.to_string())?;
        let places = engine::place(&plan, capacity);
        let devices = partitions::make(device, &plan, &places)?;
        let path = directory.join("fio.job");
        fs::write(&path, fio_file::write(&plan, &devices, config.seed))
            .map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(Job { plan, driver: config.driver })
    }

    /// Run it to its end.
    ///
    /// # Errors
    /// One line: fio could not be started.
    pub fn run(&self, directory: &Path) -> Result<Ended, String> {
        match self.driver {
            Driver::Fio => {
                // By default fio reads the processor's time stamp counter: the host's time.
                let words = [
                    "fio",
                    "--clocksource=clock_gettime",
                    "--eta=never",
                    "--output-format=json+",
                    "--output=fio.json",
                    "fio.job",
                ];
                program::run("program", &words.map(str::to_owned), [], directory, directory)
            }
        }
    }

    /// Write `run.json`: what was measured, as every rig has it.
    ///
    /// # Errors
    /// One line: fio failed, or what it wrote is not to be understood.
    pub fn write_result(
        &self,
        directory: &Path,
        ended: &Ended,
        counters: &Counters,
    ) -> Result<(), String> {
        let read = |name: &str| {
            let path = directory.join(name);
            fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))
        };
        if !ended.is_good() {
            let text = read("program.stderr")? + &read("fio.json").unwrap_or_default();
            let line = text.lines().find(|line| line.starts_with("fio: "));
            let line = line.or_else(|| text.lines().next()).unwrap_or("fio failed without a word");
            return Err(line.trim_start_matches("fio: ").to_owned());
        }
        let result = RunResult {
            duration_ns: ended.duration_ns,
            jobs: fio_result::read(&read("fio.json")?, &self.plan)?,
            disk: disk_counters(counters),
            overview_stride: 1,
            ..RunResult::default()
        };
        let path = directory.join("run.json");
        let text = whole(&result).to_string();
        fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))
    }
}

/// Scalars and columns, under the names that the binding gives them.
fn whole(result: &RunResult) -> Value {
    let columns: Map<_, _> =
        result.columns().into_iter().map(|(name, column)| (name, Value::from(column))).collect();
    json!({"summary": result, "columns": columns})
}

/// The kernel's counters; its times are in milliseconds, and some of ours it does not have.
fn disk_counters(counters: &Counters) -> DiskCounters {
    let get = |name: &str| counters.get(name);
    let ms = |name: &str| get(name) * 1_000_000;
    DiskCounters {
        read_ios: get("read_ios"),
        read_merges: get("read_merges"),
        read_sectors: get("read_sectors"),
        read_ticks_ns: ms("read_ticks_ms"),
        write_ios: get("write_ios"),
        write_merges: get("write_merges"),
        write_sectors: get("write_sectors"),
        write_ticks_ns: ms("write_ticks_ms"),
        flush_ios: get("flush_ios"),
        flush_ticks_ns: ms("flush_ticks_ms"),
        discard_ios: get("discard_ios"),
        discard_ticks_ns: ms("discard_ticks_ms"),
        io_ticks_ns: ms("io_ticks_ms"),
        in_queue_ns: ms("in_queue_ms"),
        ..DiskCounters::default()
    }
}

#[cfg(test)]
mod testing {
    use super::*;

    /// A job file on a disk of 1 GiB.
    pub fn plan(job: &str) -> Plan {
        let file = jobfile::parse(job, "t.fio", &mut Nothing, Default::default()).expect("a good job");
        plan::plan(&file, Sector(1 << 21).to_bytes(), 1).expect("it fits")
    }
}
