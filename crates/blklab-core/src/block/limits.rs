//! The queue's limits, derived from the disk's properties as in the kernel.

use crate::disk::DiskLimits;
use crate::host::Host;
use crate::scheduler::{Generation, Info, QueueLimits};
use crate::tunable::Settings;
use crate::units::{Bytes, Nanos, SECTOR_BYTES};

/// The default maximum of requests per hardware queue (`BLKDEV_DEFAULT_RQ`).
const DEFAULT_REQUESTS: u32 = 128;
/// `BLK_DEF_MAX_SECTORS` of the last kernels with the single-queue layer (4.3 and later).
const SINGLE_QUEUE_MAX_KIB: u32 = 1280;
/// `VM_READAHEAD_PAGES`.
const READ_AHEAD: Bytes = Bytes::from_kib(128);
/// The least limit that a kernel takes, one page.
const LEAST_KIB: u32 = 4;

/// Target latencies of reads beside writeback (`wbt_default_latency_nsec`).
const WBT_ROTATIONAL: Nanos = Nanos::from_millis(75);
const WBT_FLASH: Nanos = Nanos::from_millis(2);

/// Limits of a queue under the scheduler `info` on `host`.
///
/// `nr_requests`: twice the number of tags, at most 256, under a multi-queue scheduler
/// (`blk_mq_init_sched`; before 4.14 256); the number of tags under none; 128 in each direction for the
/// single-queue schedulers.
pub fn queue_limits(disk: &DiskLimits, info: &Info, host: &Host, queue: &Settings) -> QueueLimits {
    let cpus = host.kernel_cpus;
    // A host without a budget has no adapter either: as many tags as the disk takes commands. With NCQ
    // off a SATA disk's queue still holds 32 requests, and one is in flight.
    let adapter = disk.adapter_tags.filter(|_| host.has_budget(disk) || info.is_elevator());
    let tags = adapter.map_or(disk.queue_depth, |tags| disk.queue_depth.max(tags));
    let of_scheduler = match host.kernel.requests_follow_tags {
        true => 2 * tags.min(DEFAULT_REQUESTS),
        false => 2 * DEFAULT_REQUESTS,
    };
    let kernels_choice = match info.generation {
        Generation::SingleQueue => DEFAULT_REQUESTS,
        Generation::MultiQueue if info.is_elevator() => of_scheduler,
        Generation::MultiQueue => tags,
    };
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
        max_sectors: max_sectors(disk, info, host, queue),
        wbt_target: match queue.get("wbt_lat_usec") {
            _ if info.generation == Generation::SingleQueue => Nanos::ZERO,
            ..0 if info.name == "bfq" => Nanos::ZERO,
            ..0 if disk.rotational => WBT_ROTATIONAL,
            ..0 => WBT_FLASH,
            target => Nanos::from_micros(target.unsigned_abs()),
        },
        wbt_depth: match disk.adapter_tags {
            // SCSI tells how many commands the disk takes.
            Some(_) => disk.queue_depth,
            // Of others it is what `nr_requests` was when the disk was added: with one hardware queue under
            // mq-deadline, with several without a scheduler (`elevator_set_default`).
            None if disk.hw_queues.min(cpus) == 1 => of_scheduler,
            None => disk.queue_depth,
        },
        cpus,
        ticks: host.ticks,
        merges_priorities: info.generation == Generation::SingleQueue || host.kernel.merges_priorities,
        kernel: host.kernel,
    }
}

/// The largest request (`blk_validate_limits`). No disk file says which size the disk likes best (`io_opt`).
fn max_sectors(disk: &DiskLimits, info: &Info, host: &Host, queue: &Settings) -> u32 {
    // The table's bounds keep every value within 32 bits.
    let kib = match queue.get("max_sectors_kb") as u32 {
        0 => kernels_max_kib(info, host),
        chosen => chosen.max(LEAST_KIB),
    };
    (kib * 2).min(disk.max_hw_sectors)
}

fn kernels_max_kib(info: &Info, host: &Host) -> u32 {
    match info.generation {
        Generation::SingleQueue => SINGLE_QUEUE_MAX_KIB,
        Generation::MultiQueue => host.kernel.max_sectors_kib,
    }
}

/// The largest read-ahead window (`blk_apply_bdi_limits`). A smaller `max_sectors_kb` does not lower it, a
/// larger one raises it.
pub fn read_ahead(disk: &DiskLimits, info: &Info, host: &Host, queue: &Settings) -> Bytes {
    let follows = disk.rotational
        && host.kernel.rotational_reads_ahead_two_requests
        && info.generation == Generation::MultiQueue;
    if let Some(own) = host.files().read_ahead {
        return own;
    }
    match queue.get("read_ahead_kb") {
        -1 if follows => {
            let kernels = (kernels_max_kib(info, host) * 2).min(disk.max_hw_sectors);
            let largest = kernels.max(max_sectors(disk, info, host, queue));
            READ_AHEAD.max(Bytes(2 * SECTOR_BYTES * u64::from(largest)))
        }
        -1 => READ_AHEAD,
        chosen => Bytes::from_kib(chosen.unsigned_abs()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::{Disk, catalogue};
    use crate::kernel::{Kernel, VERSIONS};
    use crate::scheduler::spec::SchedulerSpec;

    fn kib(disk: &DiskLimits, scheduler: &str, number: i64) -> (u32, u64) {
        let host = Host { kernel: Kernel::of(number), ..Host::FREE };
        let SchedulerSpec { info, queue, .. } = SchedulerSpec::parse(scheduler).expect(scheduler);
        let limits = queue_limits(disk, info, &host, &queue);
        (limits.max_sectors / 2, read_ahead(disk, info, &host, &queue).0 >> 10)
    }

    #[test]
    fn writeback_beside_reads_has_a_part_of_what_the_disk_was_added_with() {
        let depth = |name: &str, scheduler: &str, kernel_cpus: u16| {
            let disk = catalogue::model(name).expect(name).build(1);
            let host = Host { kernel_cpus, ..Host::FREE };
            let SchedulerSpec { info, queue, .. } = SchedulerSpec::parse(scheduler).expect(scheduler);
            queue_limits(disk.limits(), info, &host, &queue).wbt_depth
        };
        for scheduler in ["none", "mq-deadline", "kyber:nr_requests=64"] {
            // NVMe: the tags of a queue, and with one queue the requests of mq-deadline.
            assert_eq!([4, 1].map(|cpus| depth("950pro-256gb", scheduler, cpus)), [1023, 256], "{scheduler}");
            assert_eq!([4, 1].map(|cpus| depth("wd10ezrx", scheduler, cpus)), [32, 32], "{scheduler}");
        }
    }

    #[test]
    fn the_largest_request_and_the_read_ahead_are_those_of_the_version_and_of_the_single_queue_layer() {
        let [.., old, new] = *VERSIONS else { panic!("two versions") };
        let [old, new] = [old.1, new.1];
        let shipped = catalogue::model("wd10ezrx").expect("a shipped disk").build(1).limits().clone();
        let disk = |rotational, max_hw_kib: u32| DiskLimits {
            rotational,
            max_hw_sectors: max_hw_kib * 2,
            ..shipped.clone()
        };
        let (hdd, ssd) = (disk(true, 32_767), disk(false, 32_767));
        for scheduler in ["none", "mq-deadline", "kyber", "bfq"] {
            assert_eq!(kib(&ssd, scheduler, new), (4096, 128), "{scheduler}");
            assert_eq!(kib(&hdd, scheduler, new), (4096, 8192), "{scheduler}");
            assert_eq!(kib(&hdd, scheduler, old), (1280, 128), "{scheduler}");
            // The disk's own limit, which a user's does not exceed.
            assert_eq!(kib(&disk(true, 512), scheduler, new), (512, 1024), "{scheduler}");
            assert_eq!(kib(&disk(false, 512), &format!("{scheduler}:max_sectors_kb=4096"), old), (512, 128));
        }
        // What a shipped controller takes (MDTS).
        for (name, of_old, of_new) in
            [("950pro-256gb", 128, 128), ("optane-900p", 128, 128), ("pm983-960gb", 1280, 2048)]
        {
            let nvme = catalogue::model(name).expect("a shipped disk").build(1).limits().clone();
            assert_eq!((kib(&nvme, "none", old), kib(&nvme, "none", new)), ((of_old, 128), (of_new, 128)));
            let asked = kib(&nvme, "none:max_sectors_kb=4096", old);
            assert_eq!(asked, (of_new, 128), "{name}: a user's limit does not raise it");
        }
        for scheduler in ["noop", "deadline", "cfq", "bfq-2008"] {
            assert_eq!(kib(&hdd, scheduler, new), (1280, 128), "{scheduler}");
        }
        assert_eq!(
            kib(&hdd, "none:max_sectors_kb=1280", new),
            (1280, 8192),
            "a lower limit lowers no window"
        );
        assert_eq!(kib(&hdd, "none:max_sectors_kb=8192", new), (8192, 16_384), "a higher one raises it");
        assert_eq!(kib(&hdd, "none:max_sectors_kb=1280,read_ahead_kb=128", new), (1280, 128));
        assert_eq!(kib(&hdd, "none:read_ahead_kb=0", new), (4096, 0));
    }
}
