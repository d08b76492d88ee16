//! Latency statistics of one direction of one job: exact moments and a histogram.

mod histogram;

use crate::result::{LATENCY_BOUNDS_NS, LatencySummary, SampleSummary};
use crate::units::Nanos;

pub use histogram::LatencyHistogram;

/// Count, extremes, mean and standard deviation. Sums are integers, so that the order of recording
/// does not change the result.
#[derive(Clone, Copy, Debug, Default)]
pub struct Moments {
    count: u64,
    min: u64,
    max: u64,
    sum: u64,
    sum_of_squares: u128,
}

impl Moments {
    /// One more value.
    #[inline]
    pub fn record(&mut self, value: Nanos) {
        self.record_n(value, 1);
    }

    /// The same value `times` times, at least once.
    #[inline]
    pub fn record_n(&mut self, value: Nanos, times: u64) {
        let v = value.0;
        if self.count == 0 || v < self.min {
            self.min = v;
        }
        if v > self.max {
            self.max = v;
        }
        self.count += times;
        self.sum += v * times;
        let square = u128::from(v) * u128::from(v);
        self.sum_of_squares += if times == 1 { square } else { square * u128::from(times) };
    }

    /// How many were recorded.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// As stored in a result.
    pub fn summary(&self) -> LatencySummary {
        if self.count == 0 {
            return LatencySummary::default();
        }
        let n = self.count as f64;
        let mean_ns = self.sum as f64 / n;
        // n * sum(x^2) - sum(x)^2 in integers: no cancellation of nearly equal floats.
        let spread = (u128::from(self.count) * self.sum_of_squares)
            .saturating_sub(u128::from(self.sum) * u128::from(self.sum));
        let stddev_ns = if self.count > 1 { (spread as f64 / (n * (n - 1.0))).sqrt() } else { 0.0 };
        LatencySummary { count: self.count, min_ns: self.min, max_ns: self.max, mean_ns, stddev_ns }
    }
}

/// The class of `latency` in fio's `latency_ns`/`_us`/`_ms` table.
#[inline]
pub fn latency_level(latency: Nanos) -> usize {
    let mut level = usize::from(LEVEL_OF_BITS[64 - latency.0.leading_zeros() as usize]);
    while level < LATENCY_BOUNDS_NS.len() && LATENCY_BOUNDS_NS[level] <= latency.0 {
        level += 1;
    }
    level
}

/// The class of the smallest latency with this many bits; the largest is a few classes above it.
const LEVEL_OF_BITS: [u8; 65] = {
    let mut levels = [0; 65];
    let mut bits = 1;
    while bits < levels.len() {
        let smallest = 1 << (bits - 1);
        let mut level = levels[bits - 1];
        while (level as usize) < LATENCY_BOUNDS_NS.len() && LATENCY_BOUNDS_NS[level as usize] <= smallest {
            level += 1;
        }
        levels[bits] = level;
        bits += 1;
    }
    levels
};

/// Bandwidth or IOPS, sampled over equal intervals.
#[derive(Clone, Copy, Debug, Default)]
pub struct Samples {
    count: u64,
    min: f64,
    max: f64,
    mean: f64,
    sum_of_squares: f64,
}

impl Samples {
    /// One more sample (Welford's recurrence: samples are few and far apart).
    pub fn record(&mut self, value: f64) {
        self.min = if self.count == 0 { value } else { self.min.min(value) };
        self.max = if self.count == 0 { value } else { self.max.max(value) };
        self.count += 1;
        let delta = value - self.mean;
        self.mean += delta / self.count as f64;
        self.sum_of_squares += delta * (value - self.mean);
    }

    /// As stored in a result.
    pub fn summary(&self) -> SampleSummary {
        let stddev =
            if self.count > 1 { (self.sum_of_squares / (self.count - 1) as f64).sqrt() } else { 0.0 };
        SampleSummary { count: self.count, min: self.min, max: self.max, mean: self.mean, stddev }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn moments_are_those_of_the_textbook(values in prop::collection::vec(0..10_000_000_000u64, 2..200)) {
            let mut moments = Moments::default();
            values.iter().for_each(|&v| moments.record(Nanos(v)));
            let n = values.len() as f64;
            let mean = values.iter().map(|&v| v as f64).sum::<f64>() / n;
            let variance = values.iter().map(|&v| (v as f64 - mean).powi(2)).sum::<f64>() / (n - 1.0);
            let summary = moments.summary();
            prop_assert_eq!(summary.min_ns, *values.iter().min().unwrap());
            prop_assert_eq!(summary.max_ns, *values.iter().max().unwrap());
            prop_assert!((summary.mean_ns - mean).abs() <= mean * 1e-9);
            prop_assert!((summary.stddev_ns - variance.sqrt()).abs() <= variance.sqrt() * 1e-6 + 1e-6);
        }

        #[test]
        fn latency_class_holds_its_latency(ns in 0..5_000_000_000u64) {
            let level = latency_level(Nanos(ns));
            prop_assert!(level == LATENCY_BOUNDS_NS.len() || ns < LATENCY_BOUNDS_NS[level]);
            prop_assert!(level == 0 || ns >= LATENCY_BOUNDS_NS[level - 1]);
        }
    }
}
