//! The core's tables, and descriptions of its objects.

use std::collections::BTreeMap;

use blklab_core::disk::{self, Absent, DiskModel, Role};
use blklab_core::formats::fio::options::real::{self, Handing};
use blklab_core::formats::fio::options::{self, Status};
use blklab_core::scheduler::QUEUE_TUNABLES;
use blklab_core::scheduler::registry;
use blklab_core::tunable;
use blklab_core::workload::spec::{Idle, JobSpec};

use crate::record::record;

record! {
    /// A tunable of a scheduler, of the queue, of the page cache or of the host.
    Tunable {
        name: &'static str,
        unit: &'static str,
        default: i64,
        min: i64,
        max: i64,
        words: Vec<(&'static str, i64)>,
        help: &'static str,
    }
}

record! {
    /// A scheduler, with its defaults.
    SchedulerInfo {
        name: &'static str,
        summary: &'static str,
        follows: &'static str,
        tunables: Vec<Tunable>,
    }
}

record! {
    /// A key of disk files.
    DiskKey {
        key: &'static str,
        unit: &'static str,
        allowed: String,
        required: bool,
        default: Option<&'static str>,
        help: &'static str,
    }
}

record! {
    /// A rule for the ranges of estimated parameters.
    DiskRange {
        keys: Vec<&'static str>,
        unit: &'static str,
        range: String,
        why: &'static str,
    }
}

record! {
    /// What a host learns of a disk.
    DiskLimits {
        capacity_bytes: u64,
        rotational: bool,
        queue_depth: u32,
        hw_queues: u16,
        max_hw_sectors: u32,
        logical_block_bytes: u32,
        physical_block_bytes: u32,
        volatile_write_cache: bool,
        fua: bool,
    }
}

record! {
    /// How long a command of 4 KiB can be in a hard disk at full depth.
    LongestWait {
        reads: u64,
        any: u64,
    }
}

record! {
    /// A parameter of a disk, with its source and the range of an estimate.
    Parameter {
        key: &'static str,
        value: String,
        unit: &'static str,
        help: &'static str,
        source: String,
        range: Option<(f64, f64)>,
    }
}

record! {
    /// The result of the checked figures for a disk's model.
    Validation {
        validated: bool,
        independent: usize,
        met: usize,
        needed: usize,
        text: String,
    }
}

record! {
    /// A published figure of a disk.
    PublishedFigure {
        figure: &'static str,
        role: &'static str,
        value: f64,
        tolerance_percent: f64,
        not_met: Option<String>,
        source: String,
    }
}

record! {
    /// A figure of a disk's model beside the published one.
    Check {
        figure: &'static str,
        role: &'static str,
        unit: &'static str,
        model: f64,
        published: f64,
        tolerance_percent: f64,
        met: bool,
        not_met: Option<String>,
        source: String,
    }
}

record! {
    /// An option of job files.
    JobOption {
        name: &'static str,
        aliases: Vec<&'static str>,
        takes: String,
        default: &'static str,
        help: &'static str,
        status: &'static str,
        why: String,
        real: &'static str,
        real_why: &'static str,
    }
}

record! {
    /// An option of a job file that does nothing.
    IdleOption {
        path: String,
        line: u32,
        name: String,
        value: Option<String>,
        why: String,
    }
}

record! {
    /// A section of a job file.
    JobSection {
        name: String,
        description: Option<String>,
        line: u32,
        clones: u32,
        options: Vec<(String, String)>,
    }
}

fn tunables(table: &'static [tunable::Tunable]) -> Vec<Tunable> {
    let row = |row: &tunable::Tunable| Tunable {
        name: row.name,
        unit: row.unit.symbol(),
        default: row.default,
        min: row.min,
        max: row.max,
        words: match row.unit {
            tunable::Unit::Word(words) => words.to_vec(),
            _ => Vec::new(),
        },
        help: row.help,
    };
    table.iter().map(row).collect()
}

/// See `schedulers` in `_core.pyi`.
pub fn schedulers() -> Vec<SchedulerInfo> {
    registry::ALL.iter().map(scheduler).collect()
}

/// A scheduler's row.
pub fn scheduler(info: &'static blklab_core::scheduler::Info) -> SchedulerInfo {
    SchedulerInfo {
        name: info.name,
        summary: info.summary,
        follows: info.follows,
        tunables: tunables(info.tunables),
    }
}

/// See `environment` in `_core.pyi`.
pub fn environment() -> [(&'static str, Vec<Tunable>); 3] {
    [
        ("queue", tunables(QUEUE_TUNABLES)),
        ("page cache", tunables(blklab_core::pagecache::TUNABLES)),
        ("host", tunables(blklab_core::host::TUNABLES)),
    ]
}

/// See `disk_keys` in `_core.pyi`.
pub fn disk_keys() -> BTreeMap<&'static str, Vec<DiskKey>> {
    let row = |key: &'static disk::Key| {
        let (required, default) = match key.absent {
            Absent::Error => (true, None),
            Absent::Default(value) => (false, Some(value)),
            Absent::Without => (false, None),
        };
        DiskKey {
            key: key.name,
            unit: key.unit,
            allowed: key.allowed.to_string(),
            required,
            default,
            help: key.help,
        }
    };
    let rows = |table: &'static [disk::Key]| table.iter().map(row).collect();
    let tables = [("hdd", disk::HDD_KEYS), ("ssd", disk::SSD_KEYS), ("constant", disk::CONSTANT_KEYS)];
    tables.map(|(kind, table)| (kind, rows(table))).into()
}

/// See `disk_ranges` in `_core.pyi`.
pub fn disk_ranges() -> Vec<DiskRange> {
    let row = |rule: &disk::Rule| DiskRange {
        keys: rule.keys.to_vec(),
        unit: rule.unit,
        range: rule.spread.to_string(),
        why: rule.why,
    };
    disk::RULES.iter().map(row).collect()
}

/// See `workload_options` in `_core.pyi`.
pub fn workload_options() -> Vec<JobOption> {
    let row = |option: &'static options::JobOption| {
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
        JobOption {
            name: option.name,
            aliases: option.aliases.to_vec(),
            takes: option.expects(),
            default: option.default,
            help: option.help,
            status,
            why,
            real,
            real_why,
        }
    };
    options::all().map(row).collect()
}

/// A block of 4 KiB.
const BLOCK_SECTORS: u32 = 8;

/// See `Disk.limits` in `_core.pyi`.
pub fn limits(model: &DiskModel) -> DiskLimits {
    let limits = model.limits();
    DiskLimits {
        capacity_bytes: limits.capacity.to_bytes().0,
        rotational: limits.rotational,
        queue_depth: limits.queue_depth,
        hw_queues: limits.hw_queues,
        max_hw_sectors: limits.max_hw_sectors,
        logical_block_bytes: limits.logical_block_bytes,
        physical_block_bytes: limits.physical_block_bytes,
        volatile_write_cache: limits.volatile_write_cache,
        fua: limits.fua,
    }
}

/// See `Disk.longest_wait_ms` in `_core.pyi`.
pub fn longest_wait_ms(model: &DiskModel) -> Option<LongestWait> {
    let wait = model.longest_wait(model.limits().queue_depth, BLOCK_SECTORS)?;
    Some(LongestWait { reads: wait.reads.0 / 1_000_000, any: wait.any.0 / 1_000_000 })
}

/// See `Disk.parameters` in `_core.pyi`.
pub fn parameters(model: &DiskModel) -> Vec<Parameter> {
    let row = |disk::Parameter { key, value, unit, help, source, range }| {
        let range = range.map(|[low, high]| (low, high));
        Parameter { key, value, unit, help, source, range }
    };
    model.parameters().into_iter().map(row).collect()
}

/// See `Disk.validation` in `_core.pyi`.
pub fn validation(model: &DiskModel) -> Validation {
    let disk::Validation { validated, independent, met, needed, text } = model.validation();
    Validation { validated, independent, met, needed, text }
}

/// See `Disk.published` in `_core.pyi`.
pub fn published(model: &DiskModel) -> Vec<PublishedFigure> {
    let row = |row: &disk::Published| PublishedFigure {
        figure: row.figure.name,
        role: role(row.role),
        value: row.value,
        tolerance_percent: row.tolerance_percent,
        not_met: row.not_met.clone(),
        source: row.source.clone(),
    };
    model.published().iter().map(row).collect()
}

fn role(role: Role) -> &'static str {
    match role {
        Role::Calibrated => "calibrated",
        Role::Checked => "checked",
    }
}

/// See `Disk.validate` in `_core.pyi`.
pub fn checks(model: &DiskModel) -> Vec<Check> {
    let row = |check: disk::Check| Check {
        figure: check.figure,
        role: role(check.role),
        unit: check.unit,
        model: check.model,
        published: check.published,
        tolerance_percent: check.tolerance_percent,
        met: check.met,
        not_met: check.not_met,
        source: check.source,
    };
    disk::validate(model).into_iter().map(row).collect()
}

/// See `Job.jobs` in `_core.pyi`.
pub fn section(job: &JobSpec) -> JobSection {
    JobSection {
        name: job.name.clone(),
        description: job.description.clone(),
        line: job.line,
        clones: job.clones,
        options: job.given.clone(),
    }
}

/// See `Job.ignored` in `_core.pyi`.
pub fn idle(list: &[Idle]) -> Vec<IdleOption> {
    let row = |idle: &Idle| IdleOption {
        path: idle.path.clone(),
        line: idle.line,
        name: idle.name.clone(),
        value: idle.value.clone(),
        why: idle.why.clone(),
    };
    list.iter().map(row).collect()
}
