//! The queue's limits, derived from the disk's properties as in the kernel.

use crate::disk::DiskLimits;
use crate::host::Host;
use crate::scheduler::{Generation, Info, QueueLimits};
use crate::tunable::Settings;
use crate::units::Nanos;

/// The default maximum of requests per hardware queue (`BLKDEV_DEFAULT_RQ`).
const DEFAULT_REQUESTS: u32 = 128;

/// Target latencies of reads beside writeback (`wbt_default_latency_nsec`).
const WBT_ROTATIONAL: Nanos = Nanos::from_millis(75);
const WBT_FLASH: Nanos = Nanos::from_millis(2);

/// Limits of a queue under the scheduler `info` on `host`.
///
/// `nr_requests`: twice the number of tags, at most 256, under a multi-queue scheduler
/// (`blk_mq_init_sched`); the number of tags under none; 128 in each direction for the
/// single-queue schedulers.
pub fn queue_limits(disk: &DiskLimits, info: &Info, host: &Host, queue: &Settings) -> QueueLimits {
    let cpus = host.kernel_cpus;
    // A host without a budget has no adapter either: as many tags as the disk takes commands. With NCQ
    // off a SATA disk's queue still holds 32 requests, and one is in flight.
    let adapter = disk.adapter_tags.filter(|_| host.has_budget(disk) || info.is_elevator());
    let tags = adapter.map_or(disk.queue_depth, |tags| disk.queue_depth.max(tags));
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
        wbt_target: match queue.get("wbt_lat_usec") {
            _ if info.generation == Generation::SingleQueue => Nanos::ZERO,
            ..0 if info.name == "bfq" => Nanos::ZERO,
            ..0 if disk.rotational => WBT_ROTATIONAL,
            ..0 => WBT_FLASH,
            target => Nanos::from_micros(target.unsigned_abs()),
        },
        cpus,
        ticks: host.ticks,
        kernel: host.kernel,
    }
}
