//! The table of tunables, and their values in the scheduler's units.

use crate::scheduler::shared::linux_2_6_28::spans::in_ticks;
use crate::scheduler::shared::nearest::BackSeek;
use crate::scheduler::{QueueLimits, Settings, Tunable, Unit};

const fn tunable(name: &'static str, unit: Unit, default: i64, min: i64, help: &'static str) -> Tunable {
    Tunable { name, unit, default, min, max: i32::MAX as i64, help }
}

/// In the order of `bfq_attrs`.
pub(super) const TUNABLES: &[Tunable] = &[
    tunable(
        "quantum",
        Unit::Count,
        4,
        1,
        "requests of one process at the disk at most; four times as many if it is alone",
    ),
    tunable(
        "fifo_expire_sync",
        Unit::Milliseconds,
        125,
        1,
        "a synchronous request that has waited this long goes first in its process's next turn",
    ),
    tunable("fifo_expire_async", Unit::Milliseconds, 250, 1, "the same for asynchronous requests"),
    tunable(
        "back_seek_max",
        Unit::Kibibytes,
        16 * 1024,
        0,
        "how far below the head a request may be and still compete with those above it",
    ),
    tunable(
        "back_seek_penalty",
        Unit::Count,
        2,
        1,
        "a distance downwards counts so many times as much as one upwards",
    ),
    tunable(
        "slice_idle",
        Unit::Milliseconds,
        8,
        0,
        "how long the disk idles for the next request of the process in service; 0: not at all",
    ),
    tunable(
        "max_budget",
        Unit::Sectors,
        0,
        0,
        "largest service of a process in one turn; 0: the data that the peak rate moves in 3/4 of timeout_sync",
    ),
    tunable(
        "max_budget_async_rq",
        Unit::Count,
        4,
        1,
        "asynchronous requests in one turn, while others want the disk too",
    ),
    tunable(
        "timeout_sync",
        Unit::Milliseconds,
        125,
        1,
        "how long a process may take to use up its budget; a slower process is charged for the whole budget",
    ),
    tunable("timeout_async", Unit::Milliseconds, 40, 0, "the same for asynchronous requests"),
];

/// The settings in the scheduler's units.
#[derive(Clone, Debug)]
pub(super) struct Tuned {
    pub quantum: u32,
    /// Ticks; asynchronous, synchronous. So are the timeouts.
    pub fifo_expire: [u64; 2],
    pub back_seek: BackSeek,
    /// Ticks.
    pub slice_idle: u64,
    /// 0: from the peak rate.
    pub max_budget: i32,
    pub max_budget_async_rq: u32,
    pub timeout: [u64; 2],
    /// `timeout_sync` in ms, rounded to ticks.
    pub timeout_sync_ms: u64,
}

impl Tuned {
    pub fn new(settings: &Settings, limits: &QueueLimits) -> Tuned {
        let ticks = limits.ticks;
        let get = |name| settings.get(name);
        let span = |name, default_ms| in_ticks(settings, ticks, name, default_ms);
        let timeout_sync = span("timeout_sync", 125);
        Tuned {
            quantum: get("quantum") as u32,
            fifo_expire: [span("fifo_expire_async", 250), span("fifo_expire_sync", 125)],
            back_seek: BackSeek {
                max: get("back_seek_max") as u64 * 2,
                penalty: get("back_seek_penalty") as u64,
            },
            slice_idle: span("slice_idle", 8),
            max_budget: get("max_budget") as i32,
            max_budget_async_rq: get("max_budget_async_rq") as u32,
            timeout: [span("timeout_async", 40), timeout_sync],
            timeout_sync_ms: timeout_sync * 1000 / ticks.hz(),
        }
    }
}
