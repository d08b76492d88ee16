//! What a section of a job file asks for, typed: [`JobSpec`].
//!
//! Options as they stand in effect once `[global]` sections, the section itself and
//! fio's defaults have been laid over one another. Nothing here depends on a disk;
//! sizes in percent and whole devices are settled by [`super::plan`].

use std::ops::{Index, IndexMut};

use crate::request::{IoPrio, Op};
use crate::units::{Bytes, Nanos};

/// What an I/O unit does (fio's `ddir`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// Reads.
    Read,
    /// Writes.
    Write,
    /// Discards.
    Trim,
}

impl Direction {
    /// All, in fio's order: that of comma-separated values.
    pub const ALL: [Direction; 3] = [Direction::Read, Direction::Write, Direction::Trim];

    /// As the block layer calls it.
    pub const fn op(self) -> Op {
        match self {
            Direction::Read => Op::Read,
            Direction::Write => Op::Write,
            Direction::Trim => Op::Discard,
        }
    }

    /// fio's word.
    pub const fn name(self) -> &'static str {
        match self {
            Direction::Read => "read",
            Direction::Write => "write",
            Direction::Trim => "trim",
        }
    }
}

/// One value for each direction (`bs=4k,8k,16k`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PerDirection<T> {
    /// For reads.
    pub read: T,
    /// For writes.
    pub write: T,
    /// For trims.
    pub trim: T,
}

impl<T> PerDirection<T> {
    /// The same for all.
    pub fn all(value: T) -> PerDirection<T>
    where
        T: Clone,
    {
        PerDirection { read: value.clone(), write: value.clone(), trim: value }
    }

    /// Every value through `f`.
    pub fn map<U>(&self, mut f: impl FnMut(&T) -> U) -> PerDirection<U> {
        PerDirection { read: f(&self.read), write: f(&self.write), trim: f(&self.trim) }
    }
}

impl<T> Index<Direction> for PerDirection<T> {
    type Output = T;
    #[inline]
    fn index(&self, direction: Direction) -> &T {
        match direction {
            Direction::Read => &self.read,
            Direction::Write => &self.write,
            Direction::Trim => &self.trim,
        }
    }
}

impl<T> IndexMut<Direction> for PerDirection<T> {
    #[inline]
    fn index_mut(&mut self, direction: Direction) -> &mut T {
        match direction {
            Direction::Read => &mut self.read,
            Direction::Write => &mut self.write,
            Direction::Trim => &mut self.trim,
        }
    }
}

/// `rw`: which directions, and whether offsets are random.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)] // The names are fio's own.
pub enum Rw {
    #[default]
    Read,
    Write,
    Trim,
    RandRead,
    RandWrite,
    RandTrim,
    ReadWrite,
    RandReadWrite,
    TrimWrite,
    RandTrimWrite,
}

impl Rw {
    /// fio's words and what they mean; `readwrite` is the second word for `rw`.
    pub const NAMES: &'static [(&'static str, Rw)] = &[
        ("read", Rw::Read),
        ("write", Rw::Write),
        ("trim", Rw::Trim),
        ("randread", Rw::RandRead),
        ("randwrite", Rw::RandWrite),
        ("randtrim", Rw::RandTrim),
        ("rw", Rw::ReadWrite),
        ("readwrite", Rw::ReadWrite),
        ("randrw", Rw::RandReadWrite),
        ("trimwrite", Rw::TrimWrite),
        ("randtrimwrite", Rw::RandTrimWrite),
    ];

    /// Offsets are random.
    pub const fn is_random(self) -> bool {
        matches!(self, Rw::RandRead | Rw::RandWrite | Rw::RandTrim | Rw::RandReadWrite | Rw::RandTrimWrite)
    }

    /// It reads, perhaps among other things.
    pub const fn reads(self) -> bool {
        matches!(self, Rw::Read | Rw::RandRead | Rw::ReadWrite | Rw::RandReadWrite)
    }

    /// It writes, perhaps among other things.
    pub const fn writes(self) -> bool {
        !matches!(self, Rw::Read | Rw::RandRead | Rw::Trim | Rw::RandTrim)
    }

    /// It trims, perhaps among other things.
    pub const fn trims(self) -> bool {
        matches!(self, Rw::Trim | Rw::RandTrim | Rw::TrimWrite | Rw::RandTrimWrite)
    }

    /// Reads and writes are mixed by `rwmixread`.
    pub const fn is_mixed(self) -> bool {
        matches!(self, Rw::ReadWrite | Rw::RandReadWrite)
    }

    /// Every block is trimmed, then written.
    pub const fn trims_before_writing(self) -> bool {
        matches!(self, Rw::TrimWrite | Rw::RandTrimWrite)
    }
}

/// `rw_sequencer`: what the I/Os between two new random offsets do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sequencer {
    /// Go on behind the last one.
    #[default]
    Sequential,
    /// Use the same offset again.
    Identical,
}

/// How large I/O units are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BlockSizes {
    /// All alike (`bs`), in bytes.
    Fixed(u32),
    /// Evenly spread over a range (`bsrange`), in bytes; multiples of `min` unless
    /// `unaligned` (`bs_unaligned`).
    Range {
        /// Smallest.
        min: u32,
        /// Largest.
        max: u32,
        /// Any size between, not only multiples of `min`.
        unaligned: bool,
    },
    /// Weighted sizes (`bssplit`): bytes and weight; the weights' sum is not zero.
    Split(Vec<(u32, u32)>),
}

impl BlockSizes {
    /// The smallest that occurs, in bytes.
    pub fn min(&self) -> u32 {
        match self {
            BlockSizes::Fixed(bytes) => *bytes,
            BlockSizes::Range { min, .. } => *min,
            BlockSizes::Split(sizes) => sizes.iter().map(|s| s.0).min().unwrap_or(0),
        }
    }

    /// The largest that occurs, in bytes.
    pub fn max(&self) -> u32 {
        match self {
            BlockSizes::Fixed(bytes) => *bytes,
            BlockSizes::Range { max, .. } => *max,
            BlockSizes::Split(sizes) => sizes.iter().map(|s| s.0).max().unwrap_or(0),
        }
    }
}

/// One stretch of a zoned distribution: a share of the accesses and the width of the
/// stretch, which begins where the one before ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Zone {
    /// Percentage of the accesses.
    pub access_percent: u32,
    /// Width: percent of the file (`zoned`) or bytes (`zoned_abs`).
    pub width: u64,
}

/// `random_distribution`.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Distribution {
    /// Every block as likely as any other.
    #[default]
    Random,
    /// Zipf: the i-th most popular block is hit in proportion to i^-theta.
    Zipf {
        /// Skew; not 1.
        theta: f64,
        /// Where the most popular block lies, 0 to 1 of the file; random if `None`.
        center: Option<f64>,
    },
    /// Pareto, self-similar: as in "20 % of the blocks get 80 % of the accesses".
    Pareto {
        /// Power, between 0 and 1.
        h: f64,
        /// As for `Zipf`.
        center: Option<f64>,
    },
    /// Bell curve.
    Normal {
        /// Standard deviation in percent of the file.
        deviation_percent: f64,
        /// Middle of the curve, 0 to 1 of the file.
        center: f64,
    },
    /// Shares of the accesses go to percentages of the file.
    Zoned(PerDirection<Vec<Zone>>),
    /// Shares of the accesses go to stretches of so many bytes.
    ZonedAbs(PerDirection<Vec<Zone>>),
}

/// The order in which a job touches its files: what the pattern generator follows.
#[derive(Clone, Debug, PartialEq)]
pub struct Access {
    /// `rw`.
    pub rw: Rw,
    /// `rw=rand*:N`: I/Os per random offset, at least 1.
    pub ios_per_offset: u32,
    /// `rw=read:N`: bytes left out (or, negative, gone back) behind each sequential I/O.
    pub sequential_skip_bytes: i64,
    /// `rw_sequencer`.
    pub sequencer: Sequencer,
    /// `bs`, `bsrange`, `bssplit`.
    pub block_sizes: PerDirection<BlockSizes>,
    /// `bs_is_seq_rand`: reads' sizes are for sequential I/O, writes' for random I/O.
    pub sizes_by_randomness: bool,
    /// `blockalign`: what random offsets are multiples of; the smallest block size
    /// unless given.
    pub align: PerDirection<u32>,
    /// `percentage_random`.
    pub percentage_random: PerDirection<u32>,
    /// `rwmixread`: percentage of reads in a mix.
    pub read_percent: u32,
    /// `random_distribution`.
    pub distribution: Distribution,
    /// Every block once per pass; off with `norandommap`, `blockalign` and any
    /// distribution but `random`.
    pub random_map: bool,
    /// `randrepeat`: a pass begun anew repeats the offsets of the first.
    pub randrepeat: bool,
    /// `randseed`: used in place of the run's seed.
    pub randseed: Option<u64>,
    /// `number_ios`: stop after so many I/Os.
    pub number_ios: Option<u64>,
}

/// A length that may depend on the size of what it is a part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// So many bytes.
    Bytes(Bytes),
    /// Percent of the whole.
    Percent(u32),
}

/// `file_service_type`: which file the next I/O goes to.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum FileService {
    /// One after another.
    #[default]
    RoundRobin,
    /// Any.
    Random,
    /// A file is finished before the next is begun.
    Sequential,
    /// Zipf over files, with this theta.
    Zipf(f64),
    /// Pareto over files, with this power.
    Pareto(f64),
    /// Bell curve over files, with this deviation in percent.
    Normal(f64),
}

/// Where a job's files come from and how large they are.
#[derive(Clone, Debug, PartialEq)]
pub struct FileSet {
    /// `filename`, split at colons; empty if names are made up.
    pub names: Vec<String>,
    /// `directory`, split at colons; clones take turns.
    pub directories: Vec<String>,
    /// `filename_format`.
    pub name_format: String,
    /// `nrfiles`.
    pub count: u32,
    /// `file_service_type`.
    pub service: FileService,
    /// I/Os before another file is chosen (`file_service_type=random:N`).
    pub ios_per_file: u32,
    /// `size`.
    pub size: Option<Extent>,
    /// `io_size`: percent of `size`.
    pub io_size: Option<Extent>,
    /// `filesize`, smallest and largest.
    pub file_size: Option<(Bytes, Bytes)>,
    /// `offset`.
    pub offset: Extent,
    /// `offset_increment`, added once per clone.
    pub offset_increment: Extent,
    /// `offset_align`: what an offset in percent is rounded up to; the smallest block
    /// size if `None`.
    pub offset_align: Option<Bytes>,
}

/// `ioengine`: how a process asks for I/O.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Engine {
    /// lseek and read or write.
    Sync,
    /// pread, pwrite. Default.
    #[default]
    Psync,
    /// readv, writev: queued neighbours become one call.
    Vsync,
    /// preadv, pwritev.
    Pvsync,
    /// preadv2, pwritev2.
    Pvsync2,
    /// io_submit, io_getevents.
    Libaio,
    /// io_uring_enter.
    IoUring,
    /// aio_read, aio_write: threads of the C library.
    Posixaio,
}

impl Engine {
    /// fio's words.
    pub const NAMES: &'static [(&'static str, Engine)] = &[
        ("sync", Engine::Sync),
        ("psync", Engine::Psync),
        ("vsync", Engine::Vsync),
        ("pvsync", Engine::Pvsync),
        ("pvsync2", Engine::Pvsync2),
        ("libaio", Engine::Libaio),
        ("io_uring", Engine::IoUring),
        ("posixaio", Engine::Posixaio),
    ];

    /// `iodepth` counts: several I/Os can be under way. The others block.
    pub const fn is_queued(self) -> bool {
        matches!(self, Engine::Libaio | Engine::IoUring | Engine::Posixaio)
    }

    /// fio's word.
    pub fn name(self) -> &'static str {
        Engine::NAMES.iter().find(|(_, e)| *e == self).map_or("psync", |(name, _)| name)
    }
}

/// How many I/Os a process keeps under way, and how it hands them over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queueing {
    /// `ioengine`.
    pub engine: Engine,
    /// `direct`: past the page cache.
    pub direct: bool,
    /// `iodepth` as given; a blocking engine has one under way all the same
    /// (see [`Queueing::depth`]).
    pub iodepth: u32,
    /// `iodepth_batch`, resolved: I/Os per submit call.
    pub batch_submit: u32,
    /// `iodepth_batch_complete_min`: 0 polls.
    pub batch_complete_min: u32,
    /// `iodepth_batch_complete_max`, resolved.
    pub batch_complete_max: u32,
    /// `iodepth_low`, resolved: the depth to drain down to before filling again.
    pub low: u32,
}

impl Queueing {
    /// I/Os that can really be under way.
    pub const fn depth(&self) -> u32 {
        if self.engine.is_queued() { self.iodepth } else { 1 }
    }
}

/// `thinktime_blocks_type`: which end of an I/O counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ThinkAfter {
    /// Completions are counted.
    #[default]
    Complete,
    /// Submissions are counted.
    Issue,
}

/// Pauses between I/Os.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Think {
    /// `thinktime`; zero for no pause.
    pub time: Nanos,
    /// `thinktime_spin`: the part of it spent on the CPU.
    pub spin: Nanos,
    /// `thinktime_blocks`: I/Os between two pauses; 0 if only `io_time` counts.
    pub blocks: u32,
    /// `thinktime_blocks_type`.
    pub after: ThinkAfter,
    /// `thinktime_iotime`: pause after so much time of I/O, too; zero for not.
    pub io_time: Nanos,
}

/// `rate_process`: how a limited rate is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RateProcess {
    /// Even gaps.
    #[default]
    Linear,
    /// Exponentially distributed gaps.
    Poisson,
}

/// A limit on one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RateLimit {
    /// None.
    #[default]
    Unlimited,
    /// `rate`: bytes per second, at least 1.
    BytesPerSecond(u64),
    /// `rate_iops`: I/Os per second, at least 1.
    IosPerSecond(u64),
}

/// Limits on the rate of I/O.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rate {
    /// `rate` or `rate_iops`.
    pub limit: PerDirection<RateLimit>,
    /// `rate_process`.
    pub process: RateProcess,
    /// `rate_ignore_thinktime`: do not catch up after a pause.
    pub ignore_thinktime: bool,
}

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

/// When written data are made durable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Durability {
    /// `fsync`: after every so many writes; 0 for never.
    pub fsync_every: u32,
    /// `fdatasync`: the same without metadata.
    pub fdatasync_every: u32,
    /// `sync`.
    pub mode: SyncMode,
    /// `end_fsync`: once, when all is written.
    pub end_fsync: bool,
    /// `fsync_on_close`.
    pub fsync_on_close: bool,
}

/// Priorities of a job's I/O.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Priorities {
    /// `prioclass` and `prio`.
    pub base: IoPrio,
    /// `cmdprio_percentage`: this share of the I/Os has `raised` instead.
    pub raised_percent: PerDirection<u32>,
    /// `cmdprio_class` (real time if not given) and `cmdprio`.
    pub raised: PerDirection<IoPrio>,
}

/// `exit_what`: whom `exitall` takes along.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ExitWhat {
    /// The job's own group.
    #[default]
    Group,
    /// All that run; the next behind a stonewall goes on.
    Stonewall,
    /// All.
    All,
}

/// When a job starts and ends.
#[derive(Clone, Debug, PartialEq)]
pub struct Timing {
    /// `startdelay`, shortest and longest; every process draws its own.
    pub start_delay: (Nanos, Nanos),
    /// `runtime`.
    pub runtime: Option<Nanos>,
    /// `time_based`: begin again until `runtime` is over.
    pub time_based: bool,
    /// `ramp_time`: comes on top of `runtime` and is not counted.
    pub ramp_time: Nanos,
    /// `loops`: passes over the workload, at least 1.
    pub loops: u32,
    /// `stonewall`: start when all that stand before have ended.
    pub stonewall: bool,
    /// `wait_for`: start when the job of that name has ended.
    pub wait_for: Option<String>,
    /// `exitall` with `exit_what`.
    pub exit: Option<ExitWhat>,
}

/// `fadvise_hint`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AdviceHint {
    /// Say nothing.
    Off,
    /// Say random or sequential, as `rw` is.
    #[default]
    AsRw,
    /// Say random.
    Random,
    /// Say sequential.
    Sequential,
}

/// How a job's figures are shown.
#[derive(Clone, Debug, PartialEq)]
pub struct Reporting {
    /// `group_reporting`.
    pub group_reporting: bool,
    /// `percentile_list`, in percent, rising.
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
    /// What the job file says, in order, the section's own over `[global]`
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
    /// Start and end.
    pub timing: Timing,
    /// `invalidate`: the files' cached pages are dropped before each pass.
    pub invalidate: bool,
    /// `fadvise_hint`: what the kernel is told to expect of a buffered reader.
    pub advice: AdviceHint,
    /// `exec_prerun` with a command that writes to `/proc/sys/vm/drop_caches`: the page
    /// cache is dropped when the job starts.
    pub drop_caches: bool,
    /// Output.
    pub reporting: Reporting,
}
