//! The core's tables as JSON.

use blklab_core::disk::{Absent, DiskModel, Key, RULES, Rule};
use blklab_core::formats::fio::options::real::{self, Handing};
use blklab_core::formats::fio::options::{self, Status};
use blklab_core::scheduler::QUEUE_TUNABLES;
use blklab_core::scheduler::registry;
use blklab_core::tunable::Tunable;
use blklab_core::workload::spec::{Idle, JobFile};
use serde_json::{Value, json};

fn tunables(table: &[Tunable]) -> Value {
    table
        .iter()
        .map(|tunable| {
            json!({
                "name": tunable.name, "unit": tunable.unit.symbol(), "default": tunable.default,
                "min": tunable.min, "max": tunable.max, "help": tunable.help,
            })
        })
        .collect()
}

/// See `schedulers` in `_core.pyi`.
pub fn schedulers() -> Value {
    registry::ALL
        .iter()
        .map(|info| {
            json!({
                "name": info.name, "summary": info.summary, "follows": info.follows,
                "tunables": tunables(info.tunables),
            })
        })
        .collect()
}

/// See `environment` in `_core.pyi`.
pub fn environment() -> Value {
    json!({
        "queue": tunables(QUEUE_TUNABLES),
        "page cache": tunables(blklab_core::pagecache::TUNABLES),
        "host": tunables(blklab_core::host::TUNABLES),
    })
}

/// A block of 4 KiB.
const BLOCK_SECTORS: u32 = 8;

/// See `disk` in `_core.pyi`.
pub fn disk(model: &DiskModel) -> Value {
    let limits = model.limits();
    json!({
        "name": model.name(),
        "summary": model.summary(),
        "kind": if limits.rotational { "hdd" } else { "ssd" },
        "transport": model.transport(),
        "limits": {
            "capacity_bytes": limits.capacity.to_bytes().0,
            "rotational": limits.rotational,
            "queue_depth": limits.queue_depth,
            "hw_queues": limits.hw_queues,
            "max_hw_sectors": limits.max_hw_sectors,
            "logical_block_bytes": limits.logical_block_bytes,
            "physical_block_bytes": limits.physical_block_bytes,
            "volatile_write_cache": limits.volatile_write_cache,
            "fua": limits.fua,
        },
        "longest_wait_ms": model.longest_wait(limits.queue_depth, BLOCK_SECTORS).map(|wait| {
            json!({ "reads": wait.reads.0 / 1_000_000, "any": wait.any.0 / 1_000_000 })
        }),
        "validation": model.validation(),
        "published": model.published(),
        "parameters": model.parameters(),
    })
}

/// See `disk_keys` in `_core.pyi`.
pub fn disk_keys() -> Value {
    let row = |key: &Key| {
        let (required, default) = match key.absent {
            Absent::Error => (true, None),
            Absent::Default(value) => (false, Some(value)),
            Absent::Without => (false, None),
        };
        json!({
            "key": key.name, "unit": key.unit, "allowed": key.allowed.to_string(),
            "required": required, "default": default, "help": key.help,
        })
    };
    let rows = |table: &[Key]| -> Value { table.iter().map(row).collect() };
    json!({"hdd": rows(blklab_core::disk::HDD_KEYS), "ssd": rows(blklab_core::disk::SSD_KEYS)})
}

/// See `disk_ranges` in `_core.pyi`.
pub fn disk_ranges() -> Value {
    let row = |rule: &Rule| {
        json!({
            "keys": rule.keys, "unit": rule.unit, "range": rule.spread.to_string(), "why": rule.why,
        })
    };
    RULES.iter().map(row).collect()
}

/// See `workload_options` in `_core.pyi`.
pub fn workload_options() -> Value {
    options::all()
        .map(|option| {
            let (status, why) = match option.status {
                Status::Simulated => ("simulated", String::new()),
                Status::NoEffect(why) => ("no effect", why.to_owned()),
                Status::RealOnly(why) => ("real disks only", why.to_owned()),
                Status::NotSimulated(_) | Status::OtherEngine(_) => {
                    ("not simulated", option.status.refusal().unwrap_or_default())
                }
            };
            let (real, real_why) = match real::handing(option.name, "") {
                Handing::Handed(why) => ("handed to fio", why),
                Handing::Rewritten(why) => ("rewritten", why),
                Handing::LeftOut(why) => ("left out", why),
                Handing::Refused(why) => ("refused", why),
            };
            json!({
                "real": real, "real_why": real_why,
                "name": option.name, "aliases": option.aliases, "type": option.expects(),
                "default": option.default, "help": option.help, "status": status, "why": why,
            })
        })
        .collect()
}

fn idle(list: &[Idle]) -> Value {
    list.iter()
        .map(|idle| {
            json!({
                "path": idle.path, "line": idle.line, "name": idle.name, "value": idle.value,
                "why": idle.why,
            })
        })
        .collect()
}

/// See `parse_job` in `_core.pyi`.
pub fn job_file(file: &JobFile) -> Value {
    let jobs: Value = file
        .jobs
        .iter()
        .map(|job| {
            json!({
                "name": job.name, "description": job.description, "line": job.line,
                "clones": job.clones, "options": job.given,
            })
        })
        .collect();
    json!({
        "path": file.path, "global": file.global, "jobs": jobs, "ignored": idle(&file.ignored),
        "without_effect": idle(&file.without_effect),
    })
}
