//! Operations, order and sizes of a job's I/O.

use super::PerDirection;

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
    /// fio's words and their meanings; `readwrite` is a second word for `rw`.
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

    /// Some or all of its I/Os are reads.
    pub const fn reads(self) -> bool {
        matches!(self, Rw::Read | Rw::RandRead | Rw::ReadWrite | Rw::RandReadWrite)
    }

    /// Some or all of its I/Os are writes.
    pub const fn writes(self) -> bool {
        !matches!(self, Rw::Read | Rw::RandRead | Rw::Trim | Rw::RandTrim)
    }

    /// Some or all of its I/Os are trims.
    pub const fn trims(self) -> bool {
        matches!(self, Rw::Trim | Rw::RandTrim | Rw::TrimWrite | Rw::RandTrimWrite)
    }

    /// Every block is trimmed, then written.
    pub const fn trims_before_writing(self) -> bool {
        matches!(self, Rw::TrimWrite | Rw::RandTrimWrite)
    }
}

/// `rw_sequencer`: the I/Os between two new random offsets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sequencer {
    /// Continue after the last one.
    #[default]
    Sequential,
    /// Use the same offset again.
    Identical,
}

/// Sizes of I/O units.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BlockSizes {
    /// One size (`bs`), in bytes.
    Fixed(u32),
    /// Uniformly distributed over a range (`bsrange`), in bytes; multiples of `min` unless
    /// `unaligned` (`bs_unaligned`).
    Range {
        /// Smallest.
        min: u32,
        /// Largest.
        max: u32,
        /// Any size in the range, not only multiples of `min`.
        unaligned: bool,
    },
    /// Weighted sizes (`bssplit`): bytes and weight; the weights' sum is not zero.
    Split(Vec<(u32, u32)>),
}

impl BlockSizes {
    /// The smallest possible size, in bytes.
    pub fn min(&self) -> u32 {
        match self {
            BlockSizes::Fixed(bytes) => *bytes,
            BlockSizes::Range { min, .. } => *min,
            BlockSizes::Split(sizes) => sizes.iter().map(|s| s.0).min().unwrap_or(0),
        }
    }

    /// The largest possible size, in bytes.
    pub fn max(&self) -> u32 {
        match self {
            BlockSizes::Fixed(bytes) => *bytes,
            BlockSizes::Range { max, .. } => *max,
            BlockSizes::Split(sizes) => sizes.iter().map(|s| s.0).max().unwrap_or(0),
        }
    }
}

/// One zone of a zoned distribution: a share of the accesses and the width of the zone, which
/// begins where the previous zone ends.
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
    /// All blocks are equally likely.
    #[default]
    Random,
    /// Zipf: the i-th most popular block is hit in proportion to i^-theta.
    Zipf {
        /// Skew; not 1.
        theta: f64,
        /// The place of the most popular block, 0 to 1 of the file; random if `None`.
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
    /// Shares of the accesses go to zones with a width in bytes.
    ZonedAbs(PerDirection<Vec<Zone>>),
}

/// A job's order of access: the input of the pattern generator.
#[derive(Clone, Debug, PartialEq)]
pub struct Access {
    /// `rw`.
    pub rw: Rw,
    /// `rw=rand*:N`: I/Os per random offset, at least 1.
    pub ios_per_offset: u32,
    /// `rw=read:N`: bytes skipped (or, if negative, repeated) after each sequential I/O.
    pub sequential_skip_bytes: i64,
    /// `rw_sequencer`.
    pub sequencer: Sequencer,
    /// `bs`, `bsrange`, `bssplit`.
    pub block_sizes: PerDirection<BlockSizes>,
    /// `bs_is_seq_rand`: reads' sizes are for sequential I/O, writes' for random I/O.
    pub sizes_by_randomness: bool,
    /// `blockalign`: random offsets are multiples of this; by default the smallest block size.
    pub align: PerDirection<u32>,
    /// `percentage_random`.
    pub percentage_random: PerDirection<u32>,
    /// `rwmixread`: percentage of reads in a mix.
    pub read_percent: u32,
    /// `random_distribution`.
    pub distribution: Distribution,
    /// Every block once per pass; off with `norandommap`, `blockalign` and all distributions except
    /// `random`.
    pub random_map: bool,
    /// `random_generator=tausworthe` in the job: places and mix by fio's own random numbers.
    pub fio_numbers: bool,
    /// `randrepeat`: another pass repeats the offsets of the first.
    pub randrepeat: bool,
    /// `randseed`: replaces the run's seed.
    pub randseed: Option<u64>,
    /// `number_ios`: stop after this many I/Os, times the loops; ignored in a time-based job.
    pub number_ios: Option<u64>,
}
