//! In what the block layer of 4.12 and blk-mq differ, beside their limits.
//!
//! Read from `blk-core.c`, `elevator.c` and `scsi_lib.c` of the last 4.x kernels that had the
//! single-queue layer, and from `blk-mq.c` of 6.12; the facts stand in
//! `docs/internals/blk-mq-facts.md`.

use crate::scheduler::Generation;

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
    /// The driver takes a request out of the scheduler before it looks whether the disk takes
    /// one more (`scsi_request_fn`).
    pub peeks: bool,
}

impl Rules {
    /// The rules of that generation. A driver without a `budget` peeks in blk-mq too: a request
    /// for which there is no tag stays in `hctx->dispatch` (`blk_mq_dispatch_rq_list`).
    pub const fn of(generation: Generation, budget: bool) -> Rules {
        match generation {
            Generation::SingleQueue => Rules {
                plug_requests: 16,
                plug_merges: usize::MAX,
                plug_sorted: true,
                joins_without_plug: false,
                peeks: true,
            },
            Generation::MultiQueue => Rules {
                plug_requests: 32,
                plug_merges: 1,
                plug_sorted: false,
                joins_without_plug: true,
                peeks: !budget,
            },
        }
    }
}

/// How a bio comes to the block layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Manner {
    /// Its submitter holds a plug. Whoever reads or writes a raw device and waits for it, with
    /// what one bio holds, has none (`__blkdev_direct_IO_simple`).
    pub plugged: bool,
    /// It has been refused a request before: it is not tried for merging a second time.
    pub again: bool,
}

impl Manner {
    /// Under a plug, for the first time.
    pub const PLUGGED: Manner = Manner { plugged: true, again: false };
}
