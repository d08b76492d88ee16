//! In what the block layer of 4.12 and blk-mq differ, beside their limits.
//!
//! Read from `blk-core.c`, `elevator.c` and `scsi_lib.c` of the last 4.x kernels that had the
//! single-queue layer, and from `blk-mq.c` of 7.3; the facts stand in
//! `docs/internals/blk-mq-facts.md`.

use super::BIO_SECTORS;
use crate::host::Host;
use crate::request::Op;
use crate::scheduler::{Generation, Info};

/// What one generation of the block layer does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rules {
    /// A plug holds at most this many requests (`BLK_MAX_REQUEST_COUNT`).
    pub plug_requests: usize,
    /// Plugged requests, the latest first, that a bio may grow.
    pub plug_merges: usize,
    /// A plug is sorted by sector when it is flushed; of two requests for the same sector the
    /// later one goes first (`plug_rq_cmp`).
    pub plug_sorted: bool,
    /// A request that comes without a plug may be appended to one that waits.
    pub joins_without_plug: bool,
    /// A request that comes without a plug is dispatched by whoever brings it. Otherwise a
    /// worker of `kblockd` does that, once its CPU is free of the submitter, and what has come
    /// until then is sorted and merged together (`blk_mq_submit_bio`).
    pub runs_without_plug: bool,
    /// Each completion runs the queue (`scsi_run_queue` of `scsi_end_request`). Otherwise only
    /// one that follows a run before a full disk does.
    pub always_restarts: bool,
    /// The driver takes a request out of the scheduler before it looks whether the disk takes
    /// one more (`scsi_request_fn`).
    pub peeks: bool,
    /// Between two steps of the block layer no time passes, not even a nanosecond.
    pub clock_stands: bool,
}

impl Rules {
    /// The rules under that scheduler. A driver without a `budget` peeks in blk-mq too: a
    /// request for which there is no tag stays in `hctx->dispatch` (`blk_mq_dispatch_rq_list`).
    pub fn of(scheduler: &Info, host: &Host) -> Rules {
        let clock_stands = host.is_free();
        match scheduler.generation {
            Generation::SingleQueue => Rules {
                plug_requests: 16,
                plug_merges: usize::MAX,
                plug_sorted: true,
                joins_without_plug: false,
                runs_without_plug: true,
                always_restarts: true,
                peeks: true,
                clock_stands,
            },
            Generation::MultiQueue => Rules {
                plug_requests: 32,
                plug_merges: 1,
                plug_sorted: false,
                joins_without_plug: true,
                runs_without_plug: !scheduler.is_elevator(),
                always_restarts: false,
                peeks: !host.budget,
                clock_stands,
            },
        }
    }
}

/// How a bio comes to the block layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Manner {
    /// Its submitter holds a plug. Whoever reads or writes a device, not a file on it, with what
    /// one bio holds, has none (`__blkdev_direct_IO_simple`, `__blkdev_direct_IO_async`), unless
    /// more than two I/Os are handed over at once (`AIO_PLUG_THRESHOLD`).
    pub plugged: bool,
    /// It has been refused a request before, of which it may use so many: it is not tried for
    /// merging a second time, and the scheduler is not asked for the number again.
    pub again: Option<u32>,
}

impl Manner {
    /// Under a plug, for the first time.
    pub const PLUGGED: Manner = Manner { plugged: true, again: None };

    /// Of an I/O on a device, one of few that are handed over at once, for the first time.
    #[inline]
    pub const fn on_a_device(op: Op, sectors: u32) -> Manner {
        let is_bare = sectors <= BIO_SECTORS && !matches!(op, Op::Discard);
        Manner { plugged: !is_bare, again: None }
    }
}
