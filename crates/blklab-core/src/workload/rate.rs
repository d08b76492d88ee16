//! Limits of a process's I/O rate: when the next I/O may be issued.
//!
//! Follows fio's `usec_for_io()`: with `rate_process=linear` the n-th byte is due n / rate after
//! the start, so that a late process catches up; with `poisson` each I/O is due an exponentially
//! distributed time after the due time of the previous one. A limit in I/Os per second is a limit
//! in bytes, with the smallest block size.

use rand_core::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

use super::plan::ProcessSpec;
use super::random::{self, Stream};
use super::spec::{Direction, PerDirection, RateLimit, RateProcess};
use crate::units::Nanos;

/// The limits of one process. Times count from its start.
#[derive(Clone, Debug)]
pub struct RateLimiter {
    limits: PerDirection<Option<Limit>>,
    rng: Xoshiro256PlusPlus,
    poisson: bool,
    ignore_thinktime: bool,
}

#[derive(Clone, Copy, Debug)]
struct Limit {
    bytes_per_second: u128,
    smallest_block: u64,
    /// Bytes issued, and bytes that count as issued after a pause.
    bytes: u128,
    due: Nanos,
}

const NS_PER_SECOND: u128 = 1_000_000_000;

impl RateLimiter {
    /// The limits of `process`, in a run with `seed`; `None` if it has none.
    pub fn new(process: &ProcessSpec, seed: u64) -> Option<RateLimiter> {
        let job = &process.job;
        let mut limits = PerDirection::default();
        for direction in Direction::ALL {
            let smallest_block = u64::from(job.access.block_sizes[direction].min());
            let bytes_per_second = match job.rate.limit[direction] {
                RateLimit::Unlimited => continue,
                RateLimit::BytesPerSecond(bytes) => u128::from(bytes),
                RateLimit::IosPerSecond(ios) => u128::from(ios) * u128::from(smallest_block),
            };
            limits[direction] = Some(Limit { bytes_per_second, smallest_block, bytes: 0, due: Nanos::ZERO });
        }
        let any = Direction::ALL.iter().any(|d| limits[*d].is_some());
        let seed = random::stream_seed(job.access.randseed.unwrap_or(seed), process.id, Stream::Arrival);
        any.then(|| RateLimiter {
            limits,
            rng: Xoshiro256PlusPlus::seed_from_u64(seed),
            poisson: job.rate.process == RateProcess::Poisson,
            ignore_thinktime: job.rate.ignore_thinktime,
        })
    }

    /// When the next I/O in that direction may be issued.
    pub fn due(&self, direction: Direction) -> Nanos {
        self.limits[direction].map_or(Nanos::ZERO, |limit| limit.due)
    }

    /// An I/O has been issued.
    pub fn issued(&mut self, direction: Direction, bytes: u32) {
        let Some(limit) = &mut self.limits[direction] else { return };
        limit.bytes += u128::from(bytes);
        if self.poisson {
            let mean_ns = limit.smallest_block as f64 * 1e9 / limit.bytes_per_second as f64;
            let gap_ns = -libm::log(random::unit(&mut self.rng)) * mean_ns;
            limit.due = limit.due.saturating_add(Nanos(gap_ns as u64));
        } else {
            let ns = limit.bytes * NS_PER_SECOND / limit.bytes_per_second;
            limit.due = Nanos(u64::try_from(ns).unwrap_or(u64::MAX));
        }
    }

    /// The process has paused (`thinktime`): with `rate_ignore_thinktime`, the bytes that it could
    /// have issued meanwhile, except for one block, count as issued.
    pub fn paused(&mut self, direction: Direction, pause: Nanos) {
        let Some(limit) = &mut self.limits[direction] else { return };
        if !self.ignore_thinktime {
            return;
        }
        if self.poisson {
            limit.due = limit.due.saturating_add(pause);
        } else {
            let missed = u128::from(pause.0) * limit.bytes_per_second / NS_PER_SECOND;
            limit.bytes += missed.saturating_sub(u128::from(limit.smallest_block));
            let ns = limit.bytes * NS_PER_SECOND / limit.bytes_per_second;
            limit.due = Nanos(u64::try_from(ns).unwrap_or(u64::MAX));
        }
    }
}
