//! The files of `queue/iosched`, and their values in BFQ's units.

use crate::scheduler::shared::nearest::BackSeek;
use crate::scheduler::{QueueLimits, Settings, Tunable, Unit};
use crate::ticks::Ticks;
use crate::units::Nanos;

const INT_MAX: i64 = i32::MAX as i64;

/// The default of two tunables that are one number in the kernel.
const SLICE_IDLE_MS: i64 = 8;
const SLICE_IDLE_US: i64 = 8000;
/// `HZ / 8`: 120 ms with ticks of 10 ms, 124 ms with ticks of 4 ms.
const TIMEOUT_MS: i64 = 125;

pub(super) const TUNABLES: &[Tunable] = &[
    Tunable {
        name: "fifo_expire_sync",
        unit: Unit::Milliseconds,
        default: 125,
        min: 1,
        max: INT_MAX,
        help: "a synchronous request that has waited this long goes before its process's others, once per slice",
    },
    Tunable {
        name: "fifo_expire_async",
        unit: Unit::Milliseconds,
        default: 250,
        min: 1,
        max: INT_MAX,
        help: "the same for asynchronous requests",
    },
    Tunable {
        name: "back_seek_max",
        unit: Unit::Kibibytes,
        default: 16 * 1024,
        min: 0,
        max: INT_MAX,
        help: "how far below the head a request may be and still compete with those above it",
    },
    Tunable {
        name: "back_seek_penalty",
        unit: Unit::Count,
        default: 2,
        min: 1,
        max: INT_MAX,
        help: "a distance downwards counts so many times as much as one upwards",
    },
    Tunable {
        name: "slice_idle",
        unit: Unit::Milliseconds,
        default: SLICE_IDLE_MS,
        min: 0,
        max: INT_MAX,
        help: "how long the disk idles for the next request of the process in service; 0: not at all",
    },
    Tunable {
        name: "slice_idle_us",
        unit: Unit::Microseconds,
        default: SLICE_IDLE_US,
        min: 0,
        max: u32::MAX as i64,
        help: "slice_idle in microseconds; overrides it unless this is at its default",
    },
    Tunable {
        name: "max_budget",
        unit: Unit::Sectors,
        default: 0,
        min: 0,
        max: INT_MAX,
        help: "largest service of a process in one turn; 0: the data that the disk's peak rate moves in timeout_sync",
    },
    Tunable {
        name: "timeout_sync",
        unit: Unit::Milliseconds,
        default: TIMEOUT_MS,
        min: 1,
        max: INT_MAX,
        help: "how long a process may take to use up its budget",
    },
    Tunable {
        name: "strict_guarantees",
        unit: Unit::Flag,
        default: 0,
        min: 0,
        max: 1,
        help: "1: always idle for the process in service, with one request at the disk at a time",
    },
    Tunable {
        name: "low_latency",
        unit: Unit::Flag,
        default: 1,
        min: 0,
        max: 1,
        help: "1: raise the weights of interactive and soft real-time processes",
    },
];

/// The settings in BFQ's units: ns, sectors, ticks.
#[derive(Clone, Debug)]
pub(super) struct Tuning {
    pub ticks: Ticks,
    /// Async, sync.
    pub fifo_expire_ns: [u64; 2],
    pub back_seek: BackSeek,
    /// 32 bits, as the kernel keeps it: 4.3 s is the longest.
    pub slice_idle_ns: u32,
    /// 0: from the peak rate.
    pub max_budget: i32,
    /// Ticks.
    pub timeout: i64,
    /// `timeout_sync` was set: the first budgets come from the peak rate.
    pub timeout_is_set: bool,
    pub strict_guarantees: bool,
    pub low_latency: bool,
    /// `queue/rotational`.
    pub rotational: bool,
}

impl Tuning {
    pub fn new(settings: &Settings, limits: &QueueLimits) -> Tuning {
        let ticks = limits.ticks;
        let get = |name| settings.get(name);
        let strict_guarantees = get("strict_guarantees") == 1;
        let slice_idle_us = match get("slice_idle_us") {
            SLICE_IDLE_US => get("slice_idle") as u64 * 1000,
            us => us as u64,
        };
        // The kernel's multiplication is cut to 32 bits too.
        let slice_idle_ns = slice_idle_us.wrapping_mul(1000) as u32;
        let least_ns = if strict_guarantees { 8_000_000 } else { 0 };
        let timeout_is_set = get("timeout_sync") != TIMEOUT_MS;
        let timeout = if timeout_is_set {
            ticks.span(Nanos::from_millis(get("timeout_sync") as u64)) as i64
        } else {
            (ticks.hz() / 8) as i64
        };
        Tuning {
            ticks,
            fifo_expire_ns: ["fifo_expire_async", "fifo_expire_sync"]
                .map(|name| get(name) as u64 * 1_000_000),
            back_seek: BackSeek {
                max: get("back_seek_max") as u64 * 2,
                penalty: get("back_seek_penalty") as u64,
            },
            slice_idle_ns: slice_idle_ns.max(least_ns),
            max_budget: get("max_budget") as i32,
            timeout,
            timeout_is_set,
            strict_guarantees,
            low_latency: get("low_latency") == 1,
            rotational: limits.rotational,
        }
    }

    /// `msecs_to_jiffies`.
    pub fn ticks_of_ms(&self, ms: u64) -> i64 {
        self.ticks.span(Nanos::from_millis(ms)) as i64
    }

    /// `jiffies_to_msecs` of `timeout`.
    pub fn timeout_ms(&self) -> u64 {
        self.timeout as u64 * 1000 / self.ticks.hz()
    }
}
