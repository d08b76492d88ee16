//! How a process issues I/O: engine, depth, pauses, rates.

use super::PerDirection;
use crate::units::Nanos;

/// `ioengine`: how a process issues I/O.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Engine {
    /// lseek and read or write.
    Sync,
    /// pread, pwrite. Default.
    #[default]
    Psync,
    /// readv, writev: adjacent queued I/Os become one call.
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

    /// The engine uses `iodepth`: several I/Os can be in flight. The other engines block.
    pub const fn is_queued(self) -> bool {
        matches!(self, Engine::Libaio | Engine::IoUring | Engine::Posixaio)
    }

    /// fio's word.
    pub fn name(self) -> &'static str {
        Engine::NAMES.iter().find(|(_, e)| *e == self).map_or("psync", |(name, _)| name)
    }
}

/// How many I/Os a process keeps in flight, and how it submits them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queueing {
    /// `ioengine`.
    pub engine: Engine,
    /// `direct`: past the page cache.
    pub direct: bool,
    /// `iodepth` as given; a blocking engine has only one I/O in flight (see [`Queueing::depth`]).
    pub iodepth: u32,
    /// `iodepth_batch`, resolved: I/Os per submit call.
    pub batch_submit: u32,
    /// `iodepth_batch_complete_min`: 0 polls.
    pub batch_complete_min: u32,
    /// `iodepth_batch_complete_max`, resolved.
    pub batch_complete_max: u32,
    /// `iodepth_low`, resolved: drain to this depth before filling again.
    pub low: u32,
}

impl Queueing {
    /// The possible number of I/Os in flight.
    pub const fn depth(&self) -> u32 {
        if self.engine.is_queued() { self.iodepth } else { 1 }
    }
}

/// `thinktime_blocks_type`: the event that is counted.
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
    /// `thinktime_spin`: the part of it that uses the CPU.
    pub spin: Nanos,
    /// `thinktime_blocks`: I/Os between two pauses; 0 if only `io_time` is used.
    pub blocks: u32,
    /// `thinktime_blocks_type`.
    pub after: ThinkAfter,
    /// `thinktime_iotime`: also pause after this much time of I/O; zero: never.
    pub io_time: Nanos,
}

/// `rate_process`: the gaps under a rate limit.
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
    /// No limit.
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
