//! The queue's limits, as the kernel derives them from what the disk says.

use crate::disk::DiskLimits;
use crate::host::Host;
use crate::scheduler::{Generation, Info, QueueLimits};
use crate::tunable::{Settings, Tunable, Unit};

/// Most requests per hardware queue without being asked (`BLKDEV_DEFAULT_RQ`).
const DEFAULT_REQUESTS: u32 = 128;

/// Tags of a SATA host adapter (`AHCI_MAX_CMDS`), whatever the disk behind it takes: with
/// NCQ off its queue still holds as many requests, and one is with the disk.
const HOST_ADAPTER_TAGS: u32 = 32;

/// What an administrator can set in `queue/`.
pub const QUEUE_TUNABLES: &[Tunable] = &[
    Tunable {
        name: "nr_requests",
        unit: Unit::Count,
        default: 0,
        min: 0,
        max: 10_240,
        help: "requests that may wait or be under way per hardware queue; 0: the kernel's choice",
    },
    Tunable {
        name: "max_sectors_kb",
        unit: Unit::Kibibytes,
        default: 1280,
        min: 4,
        max: 1 << 21,
        help: "largest request; the disk's own limit (max_hw_sectors_kb) holds too",
    },
    Tunable {
        name: "read_ahead_kb",
        unit: Unit::Kibibytes,
        default: 128,
        min: 0,
        max: 1 << 20,
        help: "largest read-ahead window of buffered reads; 0: no read-ahead",
    },
];

/// Limits of a queue under the scheduler `info` on `host`.
///
/// `nr_requests`: twice the number of tags, at most 256, under a multi-queue scheduler
/// (`blk_mq_init_sched`); the number of tags under none; 128 in each direction for the
/// single-queue schedulers.
pub fn queue_limits(disk: &DiskLimits, info: &Info, host: &Host, queue: &Settings) -> QueueLimits {
    let cpus = host.cpus;
    // Who has no budget has no adapter either: as many tags as the disk takes commands.
    let adapter = disk.hw_queues == 1 && (host.budget || info.is_elevator());
    let tags = if adapter { disk.queue_depth.max(HOST_ADAPTER_TAGS) } else { disk.queue_depth };
    let kernels_choice = match info.generation {
        Generation::SingleQueue => DEFAULT_REQUESTS,
        Generation::MultiQueue if info.is_elevator() => 2 * tags.min(DEFAULT_REQUESTS),
        Generation::MultiQueue => tags,
    };
    // The table's bounds keep every value within 32 bits.
    let max_sectors = queue.get("max_sectors_kb") as u32 * 2;
    QueueLimits {
        rotational: disk.rotational,
        queue_depth: disk.queue_depth,
        hw_queues: match info.generation {
            Generation::SingleQueue => 1,
            Generation::MultiQueue => disk.hw_queues.min(cpus),
        },
        nr_requests: match queue.get("nr_requests") as u32 {
            0 => kernels_choice,
            chosen => chosen,
        },
        max_sectors: max_sectors.min(disk.max_hw_sectors),
        cpus,
        ticks: host.ticks,
    }
}
