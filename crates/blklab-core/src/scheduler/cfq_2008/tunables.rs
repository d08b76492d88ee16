//! The table of tunables, and their values in the scheduler's units.

use crate::scheduler::shared::linux_2_6_28::spans::in_ticks;
use crate::scheduler::shared::nearest::BackSeek;
use crate::scheduler::{QueueLimits, Settings, Tunable, Unit};

/// The kernel keeps each in an `unsigned int`.
const fn tunable(name: &'static str, unit: Unit, default: i64, min: i64, help: &'static str) -> Tunable {
    Tunable { name, unit, default, min, max: u32::MAX as i64, help }
}

/// In the order of `cfq_attrs`.
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
        "a synchronous request that has waited this long goes first in its process's next slice",
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
        "slice_sync",
        Unit::Milliseconds,
        100,
        1,
        "time slice of a process of priority 4 for sync requests",
    ),
    tunable("slice_async", Unit::Milliseconds, 40, 1, "time slice of priority 4 for async requests"),
    tunable(
        "slice_async_rq",
        Unit::Count,
        2,
        1,
        "async requests after which a slice ends: 2 * this * (8 - priority), if quantum allows as many",
    ),
    tunable(
        "slice_idle",
        Unit::Milliseconds,
        8,
        0,
        "how long the disk idles for the next request of the active process; 2 ms at most if it seeks; 0: not at all",
    ),
];

/// The settings in the scheduler's units. Spans are in ticks, pairs are asynchronous, synchronous.
#[derive(Clone, Debug)]
pub(super) struct Tuned {
    pub quantum: u32,
    pub fifo_expire: [u64; 2],
    pub back_seek: BackSeek,
    pub slice: [u64; 2],
    pub slice_async_rq: u32,
    pub slice_idle: u64,
}

impl Tuned {
    pub fn new(settings: &Settings, limits: &QueueLimits) -> Tuned {
        let number = |name| settings.get(name) as u32;
        let span = |name, default_ms| in_ticks(settings, limits.ticks, name, default_ms);
        Tuned {
            quantum: number("quantum"),
            fifo_expire: [span("fifo_expire_async", 250), span("fifo_expire_sync", 125)],
            back_seek: BackSeek {
                // Cut to 32 bits, as in the kernel.
                max: u64::from(number("back_seek_max").wrapping_mul(2)),
                penalty: number("back_seek_penalty").into(),
            },
            slice: [span("slice_async", 40), span("slice_sync", 100)],
            slice_async_rq: number("slice_async_rq"),
            slice_idle: span("slice_idle", 8),
        }
    }
}
