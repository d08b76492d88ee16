//! One section of a job file as typed values: [`JobSpec`].
//!
//! The effective options, from fio's defaults, the `[global]` sections and the section itself.
//! Nothing here depends on a disk; [`super::plan`] resolves sizes in percent and whole devices.

mod access;
mod direction;
mod files;
mod job_file;
mod pace;
mod run;

use crate::units::{Bytes, Nanos};

pub use access::{Access, BlockSizes, Distribution, Rw, Sequencer, Zone};
pub use direction::{Direction, PerDirection};
pub use files::{Extent, FileService, FileSet};
pub use job_file::{Idle, JobFile};
pub use pace::{Engine, Queueing, Rate, RateLimit, RateProcess, Think, ThinkAfter};
pub use run::{Durability, ExitWhat, Membership, Priorities, SyncMode, Timing};

/// `fadvise_hint`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AdviceHint {
    /// No advice.
    Off,
    /// Advise random or sequential, by `rw`.
    #[default]
    AsRw,
    /// Advise random.
    Random,
    /// Advise sequential.
    Sequential,
}

/// The output of a job's results.
#[derive(Clone, Debug, PartialEq)]
pub struct Reporting {
    /// `group_reporting`.
    pub group_reporting: bool,
    /// `percentile_list`, in percent, ascending.
    pub percentiles: Vec<f64>,
    /// `clat_percentiles`.
    pub clat_percentiles: bool,
    /// `lat_percentiles`.
    pub lat_percentiles: bool,
    /// `slat_percentiles`.
    pub slat_percentiles: bool,
    /// `bwavgtime`: width of a bandwidth sample.
    pub bw_average: Nanos,
    /// `iopsavgtime`: width of an IOPS sample.
    pub iops_average: Nanos,
}

/// One section of a job file, ready to run.
#[derive(Clone, Debug, PartialEq)]
pub struct JobSpec {
    /// `name`, or the section's.
    pub name: String,
    /// Line of the section's `[name]`, for messages.
    pub line: u32,
    /// `description`.
    pub description: Option<String>,
    /// The options of the job file, in order, the section's own override `[global]`
    /// (fio's `job options`).
    pub given: Vec<(String, String)>,
    /// `numjobs`: clones, at least 1.
    pub clones: u32,
    /// fio's `groupid`, from 0; rises at each `stonewall` and `new_group`.
    pub group: u32,
    /// Order of access.
    pub access: Access,
    /// Files.
    pub files: FileSet,
    /// Queueing.
    pub queueing: Queueing,
    /// Pauses.
    pub think: Think,
    /// Rates.
    pub rate: Rate,
    /// Durability.
    pub durability: Durability,
    /// Priorities.
    pub priorities: Priorities,
    /// Cgroup.
    pub membership: Membership,
    /// Start and end.
    pub timing: Timing,
    /// `invalidate`: the files' cached pages are dropped before each pass.
    pub invalidate: bool,
    /// `fadvise_hint`: the advice to the kernel about a buffered reader's access.
    pub advice: AdviceHint,
    /// `exec_prerun` with a command that writes to `/proc/sys/vm/drop_caches`: the page
    /// cache is dropped when the job starts.
    pub drop_caches: bool,
    /// `cpus_allowed`, `cpumask`: ascending; empty for all.
    pub cpus: Vec<u16>,
    /// `cpus_allowed_policy=split`: clones take turns among them.
    pub cpus_split: bool,
    /// `lockmem`: memory that each process locks.
    pub lock_memory: Bytes,
    /// Output.
    pub reporting: Reporting,
}
