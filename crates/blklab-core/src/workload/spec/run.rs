//! Durability, priorities, cgroup, start and end.

use super::PerDirection;
use crate::request::IoPrio;
use crate::units::Nanos;

/// `sync`: how durable a write is when it returns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SyncMode {
    /// Not at all.
    #[default]
    None,
    /// O_SYNC: data and metadata.
    Sync,
    /// O_DSYNC: data.
    Dsync,
}

/// When written data are synced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Durability {
    /// `fsync`: after this many writes; 0 for never.
    pub fsync_every: u32,
    /// `fdatasync`: the same without metadata.
    pub fdatasync_every: u32,
    /// `sync`.
    pub mode: SyncMode,
    /// `end_fsync`: once, after the last write.
    pub end_fsync: bool,
    /// `fsync_on_close`.
    pub fsync_on_close: bool,
}

/// Priorities of a job's I/O.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Priorities {
    /// `prioclass` and `prio`.
    pub base: IoPrio,
    /// `cmdprio_percentage`: this share of the I/Os has the priority `raised`.
    pub raised_percent: PerDirection<u32>,
    /// `cmdprio_class` (real time if not given) and `cmdprio`.
    pub raised: PerDirection<IoPrio>,
}

/// The cgroup of a job's processes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Membership {
    /// `cgroup`: its path below the root; the root if there is none.
    pub cgroup: Option<String>,
    /// `cgroup_weight`.
    pub weight: Option<u16>,
}

/// `exit_what`: the processes that `exitall` ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ExitWhat {
    /// The job's own group.
    #[default]
    Group,
    /// All running jobs; those after the next stonewall then start.
    Stonewall,
    /// All.
    All,
}

/// When a job starts and ends.
#[derive(Clone, Debug, PartialEq)]
pub struct Timing {
    /// `startdelay`, shortest and longest; every process draws its own delay.
    pub start_delay: (Nanos, Nanos),
    /// `runtime`.
    pub runtime: Option<Nanos>,
    /// `time_based`: start again until `runtime` is over.
    pub time_based: bool,
    /// `ramp_time`: in addition to `runtime`, and not counted.
    pub ramp_time: Nanos,
    /// `loops`: passes over the workload, at least 1.
    pub loops: u32,
    /// `stonewall`: start when all jobs before this one have ended.
    pub stonewall: bool,
    /// `wait_for`: start when the job of that name has ended.
    pub wait_for: Option<String>,
    /// `exitall` with `exit_what`.
    pub exit: Option<ExitWhat>,
}
