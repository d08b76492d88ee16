//! Random numbers: one stream per process and purpose, so that a change to one process's job does
//! not change the others' numbers.

use rand_core::Rng;
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::request::ProcessId;

/// The purpose of a stream of random numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// Delays and file sizes, drawn before the run.
    Plan = 1,
    /// Offsets.
    Offset = 2,
    /// All other properties of an I/O: direction, size, file.
    Shape = 3,
    /// Gaps of a Poisson process.
    Arrival = 4,
    /// Which I/Os have the raised priority.
    Priority = 5,
}

/// The seed of a process's stream: `run` mixed with both numbers by SplitMix64's finaliser (Steele,
/// Lea, Flood, OOPSLA 2014), so that neighbouring streams are unrelated.
pub fn stream_seed(run: u64, process: ProcessId, stream: Stream) -> u64 {
    let mut z = run ^ (u64::from(process.0) << 8 | stream as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A number in `0..bound` by multiply and shift (Lemire, ACM TOMACS 29, 2019, without the rejection
/// step: off by less than `bound` / 2^64). `bound` 0 means 2^64.
#[inline(always)]
pub fn below(rng: &mut Xoshiro256PlusPlus, bound: u64) -> u64 {
    let word = rng.next_u64();
    if bound == 0 { word } else { ((u128::from(word) * u128::from(bound)) >> 64) as u64 }
}

/// A number in `low..=high`.
#[inline]
pub fn between(rng: &mut Xoshiro256PlusPlus, low: u64, high: u64) -> u64 {
    low + below(rng, (high - low).wrapping_add(1))
}

/// True with a probability of `percent`.
#[inline]
pub fn chance(rng: &mut Xoshiro256PlusPlus, percent: u32) -> bool {
    below(rng, 100) < u64::from(percent)
}

/// A number in `(0, 1]`, with a double's resolution.
#[inline]
pub fn unit(rng: &mut Xoshiro256PlusPlus) -> f64 {
    ((rng.next_u64() >> 11) + 1) as f64 * (1.0 / (1_u64 << 53) as f64)
}
