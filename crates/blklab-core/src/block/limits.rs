//! The queue's limits, as the kernel derives them from what the disk says.

use crate::disk::DiskLimits;
use crate::scheduler::{Generation, Info, QueueLimits};

/// Most requests per hardware queue without being asked (`BLKDEV_DEFAULT_RQ`).
const DEFAULT_REQUESTS: u32 = 128;

/// Largest request without being asked, in sectors: 1280 KiB (`BLK_DEF_MAX_SECTORS_CAP`).
const DEFAULT_MAX_SECTORS: u32 = 1280 * 1024 / 512;

/// What an administrator can set in `queue/`; `None` leaves the kernel's choice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueSettings {
    /// `queue/nr_requests`.
    pub nr_requests: Option<u32>,
    /// `queue/max_sectors_kb`.
    pub max_sectors_kb: Option<u32>,
    /// `queue/nomerges` is not simulated; `queue/read_ahead_kb` belongs to the page cache.
    pub read_ahead_kb: Option<u32>,
}

/// Limits of a queue under the scheduler `info` on a host with `cpus` CPUs.
///
/// `nr_requests`: twice the disk's depth, at most 256, under a multi-queue scheduler
/// (`blk_mq_init_sched`); the disk's depth under none; 128 in each direction for the
/// single-queue schedulers.
pub fn queue_limits(disk: &DiskLimits, info: &Info, cpus: u16, settings: QueueSettings) -> QueueLimits {
    let kernels_choice = match (info.generation, info.name) {
        (Generation::SingleQueue, _) => DEFAULT_REQUESTS,
        (Generation::MultiQueue, "none") => disk.queue_depth,
        (Generation::MultiQueue, _) => 2 * disk.queue_depth.min(DEFAULT_REQUESTS),
    };
    let max_sectors = settings.max_sectors_kb.map_or(DEFAULT_MAX_SECTORS, |kb| kb * 2);
    QueueLimits {
        rotational: disk.rotational,
        queue_depth: disk.queue_depth,
        hw_queues: match info.generation {
            Generation::SingleQueue => 1,
            Generation::MultiQueue => disk.hw_queues.min(cpus),
        },
        nr_requests: settings.nr_requests.unwrap_or(kernels_choice),
        max_sectors: max_sectors.min(disk.max_hw_sectors),
        cpus,
    }
}
