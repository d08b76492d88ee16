//! Differences between the block layer of 4.12 and blk-mq, besides their limits.
//!
//! Read from `blk-core.c`, `elevator.c` and `scsi_lib.c` of the last 4.x kernels with the
//! single-queue layer, and from `blk-mq.c` of 7.3; the facts are in
//! `docs/internals/blk-mq-facts.md`.

use super::BIO_SECTORS;
use crate::containers::tags::Order;
use crate::disk::DiskLimits;
use crate::host::Host;
use crate::request::Op;
use crate::scheduler::{Generation, Info};

/// The rules of one generation of the block layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rules {
    /// A plug holds at most this many requests (`BLK_MAX_REQUEST_COUNT`).
    pub plug_requests: usize,
    /// The number of plugged requests, latest first, that a bio may merge with.
    pub plug_merges: usize,
    /// See [`Kernel::plug_judged_by_first`](crate::kernel::Kernel::plug_judged_by_first).
    pub plug_judged_by_first: bool,
    /// A plug is sorted by sector when it is flushed; of two requests for the same sector the later
    /// goes first (`plug_rq_cmp`).
    pub plug_sorted: bool,
    /// A request that comes without a plug may be appended to a waiting one.
    pub joins_without_plug: bool,
    /// See [`Kernel::plugs_each_bio`](crate::kernel::Kernel::plugs_each_bio).
    pub plugs_each_bio: bool,
    /// The submitter of a request without a plug also dispatches it. Otherwise a worker of
    /// `kblockd` does, once its CPU is free of the submitter; everything that has come until then
    /// is sorted and merged together (`blk_mq_submit_bio`).
    pub runs_without_plug: bool,
    /// See [`Kernel::plugs_queued_device_io`](crate::kernel::Kernel::plugs_queued_device_io).
    pub plugs_queued_device_io: bool,
    /// See [`Kernel::reads_blocks_without_plug`](crate::kernel::Kernel::reads_blocks_without_plug).
    pub reads_blocks_without_plug: bool,
    /// See [`Kernel::joins_pages_of_bio`](crate::kernel::Kernel::joins_pages_of_bio).
    pub joins_pages_of_bio: bool,
    /// Each completion runs the queue (`scsi_run_queue` of `scsi_end_request`). Otherwise only a
    /// completion after a run on a full disk does.
    pub always_restarts: bool,
    /// The driver takes a request out of the scheduler before it checks whether the disk takes one
    /// more (`scsi_request_fn`).
    pub peeks: bool,
    /// A run of which the disk takes nothing takes one more request out of the scheduler; see
    /// [`super::draining`].
    pub drains: bool,
    /// The driver has more tags than the disk takes commands.
    pub spare_tags: bool,
    /// When a bio is merged with a waiting request.
    pub merges: Merges,
    /// Without a scheduler the driver may refuse a request that is already out of the software
    /// queue, because the disk is full; see [`super::refused`].
    pub refuses: bool,
    /// While the driver has a flush it refuses all else, and it gives the flush to the disk only when
    /// that has nothing else to do (`ata_std_qc_defer`, `ata_scsi_schedule_deferred_qc`).
    pub flush_alone: bool,
    /// The driver takes such a flush at any time and keeps it until then. Otherwise it refuses it
    /// ([`Kernel::keeps_flush`](crate::kernel::Kernel::keeps_flush)).
    pub keeps_flush: bool,
    /// The scheduler is asked for a request even if none waits (`__elv_next_request`); blk-mq first
    /// looks whether there is work (`has_work`). What the question changes, such as the end of a
    /// turn, then comes later.
    pub asks_in_vain: bool,
    /// Any hardware queue gets requests of all from the scheduler. See
    /// [`Kernel::runs_queue_of_cpu`](crate::kernel::Kernel::runs_queue_of_cpu).
    pub runs_queue_of_cpu: bool,
    /// Where the search for a tag begins: libata wants strict rounds (`tag_alloc_policy_rr`).
    pub tags: Order,
    /// No time passes between two steps of the block layer, not even a nanosecond.
    pub clock_stands: bool,
}

impl Rules {
    /// The rules of that disk under that scheduler. A driver without a budget peeks in blk-mq too:
    /// a request for which there is no tag stays in `hctx->dispatch` (`blk_mq_dispatch_rq_list`).
    pub fn of(scheduler: &Info, disk: &DiskLimits, host: &Host) -> Rules {
        let clock_stands = host.clock_stands || host.is_free();
        let is_libata = disk.flush_alone && host.has_budget(disk);
        let tags = if is_libata { Order::Rounds } else { Order::Freed };
        match scheduler.generation {
            Generation::SingleQueue => Rules {
                plug_requests: 16,
                plug_merges: usize::MAX,
                plug_judged_by_first: false,
                plug_sorted: true,
                joins_without_plug: false,
                plugs_each_bio: false,
                runs_without_plug: true,
                plugs_queued_device_io: false,
                reads_blocks_without_plug: false,
                joins_pages_of_bio: false,
                always_restarts: true,
                peeks: true,
                drains: false,
                spare_tags: false,
                merges: Merges::Always,
                refuses: false,
                flush_alone: is_libata,
                keeps_flush: true,
                asks_in_vain: true,
                runs_queue_of_cpu: false,
                tags,
                clock_stands,
            },
            Generation::MultiQueue if !host.kernel.leaves_requests_in_scheduler => Rules {
                // With several hardware queues a plug keeps one request, and issues the one before it.
                plug_requests: if disk.hw_queues > 1 { 1 } else { 16 },
                plug_merges: usize::MAX,
                plug_judged_by_first: false,
                plug_sorted: !host.kernel.plugs_in_order,
                joins_without_plug: true,
                plugs_each_bio: false,
                runs_without_plug: !scheduler.is_elevator() && disk.hw_queues > 1,
                plugs_queued_device_io: host.kernel.plugs_queued_device_io,
                reads_blocks_without_plug: false,
                joins_pages_of_bio: host.kernel.joins_pages_of_bio,
                // SCSI runs the queue at each completion (`scsi_end_request`).
                always_restarts: host.has_budget(disk),
                peeks: false,
                drains: true,
                spare_tags: disk.adapter_tags.is_some_and(|tags| tags > disk.queue_depth),
                merges: match scheduler.name {
                    _ if host.kernel.software_queues_merge => Merges::Always,
                    "none" => Merges::WithoutPlug,
                    "kyber" => Merges::Never,
                    _ => Merges::Always,
                },
                refuses: false,
                flush_alone: is_libata,
                keeps_flush: host.kernel.keeps_flush,
                asks_in_vain: false,
                runs_queue_of_cpu: false,
                tags,
                clock_stands,
            },
            Generation::MultiQueue => Rules {
                plug_requests: 32,
                plug_merges: 1,
                plug_judged_by_first: host.kernel.plug_judged_by_first,
                plug_sorted: false,
                joins_without_plug: true,
                plugs_each_bio: host.kernel.plugs_each_bio,
                runs_without_plug: !scheduler.is_elevator(),
                plugs_queued_device_io: host.kernel.plugs_queued_device_io,
                reads_blocks_without_plug: host.reads_blocks_without_plug(),
                joins_pages_of_bio: host.kernel.joins_pages_of_bio,
                always_restarts: false,
                peeks: !host.has_budget(disk),
                drains: false,
                spare_tags: false,
                merges: Merges::Always,
                refuses: host.has_budget(disk) && !scheduler.is_elevator(),
                flush_alone: is_libata,
                keeps_flush: host.kernel.keeps_flush,
                asks_in_vain: false,
                // Those that say so (`QUEUE_FLAG_SQ_SCHED`).
                runs_queue_of_cpu: host.kernel.runs_queue_of_cpu
                    && matches!(scheduler.name, "bfq" | "mq-deadline"),
                tags,
                clock_stands,
            },
        }
    }
}

/// When a bio is merged with a request that waits, not in a plug.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Merges {
    /// At all times.
    Always,
    /// If the bio comes without a plug (`blk_mq_merge_queue_io`).
    WithoutPlug,
    /// Never.
    Never,
}

/// How a bio is submitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Manner {
    /// Its submitter holds a plug. A process that reads or writes a device, not a file on it, with
    /// an I/O that fits one bio has none (`__blkdev_direct_IO_simple`, `__blkdev_direct_IO_async`),
    /// unless it submits more than two I/Os at once (`AIO_PLUG_THRESHOLD`).
    pub plugged: bool,
    /// It was refused a request before, with this limit of requests: it does not try merges a
    /// second time, and the scheduler is not asked for the limit again.
    pub again: Option<u32>,
    /// Its submitter has slept for a request, and runs the queue before it looks for one again.
    pub woken: bool,
    /// Its place in the writeback throttle ([`super::wbt`]).
    pub place: Admission,
    /// It goes to the disk after a flush of the disk's cache (`REQ_PREFLUSH`).
    pub after_flush: bool,
}

/// Whether a bio has a place in the writeback throttle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Admission {
    /// It was not asked for yet.
    #[default]
    Unasked,
    /// There was none.
    Refused,
    /// It has one: it tries no merges again.
    Given,
}

impl Manner {
    /// Under a plug, for the first time.
    pub const PLUGGED: Manner = Manner { plugged: true, ..Manner::BARE };
    /// Without a plug, for the first time.
    pub const BARE: Manner =
        Manner { plugged: false, again: None, woken: false, place: Admission::Unasked, after_flush: false };
    /// The same after a flush.
    pub const AFTER_FLUSH: Manner = Manner { after_flush: true, ..Manner::BARE };

    /// It has asked neither for a place nor for a request in vain: merges are tried, and a place is needed.
    #[inline]
    pub fn is_first(&self) -> bool {
        self.again.is_none() && self.place != Admission::Given
    }

    /// For an I/O on a device, one of at most two submitted at once, for the first time.
    #[inline]
    pub const fn on_a_device(op: Op, sectors: u32) -> Manner {
        let is_bare = sectors <= BIO_SECTORS && !matches!(op, Op::Discard);
        Manner { plugged: !is_bare, ..Manner::BARE }
    }
}
