//! The table of CFQ's tunables, and their values in CFQ's units.

use super::super::shared::nearest::BackSeek;
use super::super::{QueueLimits, Settings, Tunable, Unit};

const fn tunable(
    name: &'static str,
    unit: Unit,
    default: i64,
    (min, max): (i64, i64),
    help: &'static str,
) -> Tunable {
    Tunable { name, unit, default, min, max, help }
}

/// The kernel keeps each in an `unsigned int`.
const FROM_0: (i64, i64) = (0, u32::MAX as i64);
const FROM_1: (i64, i64) = (1, u32::MAX as i64);

/// In the order of `cfq_attrs`.
pub(super) const TUNABLES: &[Tunable] = &[
    tunable(
        "quantum",
        Unit::Count,
        8,
        FROM_1,
        "requests of one process at the disk at most; half of that late in its slice",
    ),
    tunable(
        "fifo_expire_sync",
        Unit::Milliseconds,
        125,
        FROM_1,
        "a synchronous request that has waited this long goes first in its process's next slice",
    ),
    tunable("fifo_expire_async", Unit::Milliseconds, 250, FROM_1, "the same for async requests"),
    tunable(
        "back_seek_max",
        Unit::Kibibytes,
        16 * 1024,
        FROM_0,
        "largest distance behind the last request at which the next one counts as near",
    ),
    tunable(
        "back_seek_penalty",
        Unit::Count,
        2,
        FROM_1,
        "a distance backwards counts so many times a distance forwards",
    ),
    tunable(
        "slice_sync",
        Unit::Milliseconds,
        100,
        FROM_1,
        "time slice of a process of priority 4 for sync requests",
    ),
    tunable(
        "slice_sync_us",
        Unit::Microseconds,
        100_000,
        FROM_1,
        "slice_sync in microseconds; overrides it if both are set",
    ),
    tunable("slice_async", Unit::Milliseconds, 40, FROM_1, "time slice of priority 4 for async requests"),
    tunable(
        "slice_async_us",
        Unit::Microseconds,
        40_000,
        FROM_1,
        "slice_async in microseconds; overrides it if both are set",
    ),
    tunable(
        "slice_async_rq",
        Unit::Count,
        2,
        FROM_1,
        "requests in one asynchronous slice: 2 * this * (8 - priority)",
    ),
    tunable(
        "slice_idle",
        Unit::Milliseconds,
        8,
        FROM_0,
        "how long the disk idles for a process's next request; unless set, 0 on flash; 0: never, and shares count requests on disks with queues",
    ),
    tunable(
        "slice_idle_us",
        Unit::Microseconds,
        8_000,
        FROM_0,
        "slice_idle in microseconds; overrides it if both are set",
    ),
    tunable(
        "group_idle",
        Unit::Milliseconds,
        8,
        FROM_0,
        "how long the disk idles for the next request of a cgroup that has no other process to serve",
    ),
    tunable(
        "group_idle_us",
        Unit::Microseconds,
        8_000,
        FROM_0,
        "group_idle in microseconds; overrides it if both are set",
    ),
    tunable(
        "low_latency",
        Unit::Flag,
        1,
        (0, 1),
        "shorten slices so that all get a turn within target_latency, and hold asynchronous requests back",
    ),
    tunable(
        "target_latency",
        Unit::Milliseconds,
        300,
        FROM_1,
        "with low_latency: within this time every busy process gets a turn; also the length of a round over workload types",
    ),
    tunable(
        "target_latency_us",
        Unit::Microseconds,
        300_000,
        FROM_1,
        "target_latency in microseconds; overrides it if both are set",
    ),
];

/// The settings in sectors and nanoseconds. Pairs are asynchronous, synchronous.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tuned {
    pub quantum: u32,
    pub fifo_expire: [u64; 2],
    pub back_seek: BackSeek,
    pub slice: [u64; 2],
    pub slice_async_rq: u32,
    pub slice_idle: u64,
    pub group_idle: u64,
    pub low_latency: bool,
    pub target_latency: u64,
}

impl Tuned {
    pub fn new(settings: &Settings, limits: &QueueLimits) -> Tuned {
        let number = |name: &str| settings.get(name) as u64;
        let millis = |name: &str| number(name) * 1_000_000;
        // The kernel has one variable for both names.
        let either = |ms: &str, us: &str| {
            let chosen_us = settings.chosen(us).map(|value| value as u64 * 1_000);
            chosen_us.unwrap_or_else(|| millis(ms))
        };
        let idles = ["slice_idle", "slice_idle_us"].iter().any(|name| settings.chosen(name).is_some());
        Tuned {
            quantum: number("quantum") as u32,
            fifo_expire: [millis("fifo_expire_async"), millis("fifo_expire_sync")],
            // Cut to 32 bits, as in the kernel.
            back_seek: BackSeek {
                max: u64::from((number("back_seek_max") as u32).wrapping_mul(2)),
                penalty: number("back_seek_penalty"),
            },
            slice: [either("slice_async", "slice_async_us"), either("slice_sync", "slice_sync_us")],
            slice_async_rq: number("slice_async_rq") as u32,
            slice_idle: match limits.rotational || idles {
                true => either("slice_idle", "slice_idle_us"),
                false => 0,
            },
            group_idle: either("group_idle", "group_idle_us"),
            low_latency: number("low_latency") == 1,
            target_latency: either("target_latency", "target_latency_us"),
        }
    }
}
