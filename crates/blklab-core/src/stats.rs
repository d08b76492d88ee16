//! Latency statistics of one direction of one job: exact moments and a histogram.

use crate::result::{HistogramColumns, LATENCY_BOUNDS_NS, LatencySummary, SampleSummary};
use crate::units::Nanos;

/// Buckets of a latency histogram per doubling of the value, as a power of two: each is
/// less than 0.1 % wide (three significant digits).
const BUCKET_BITS: u32 = 10;

/// Count, extremes, mean and standard deviation. Sums are integers, so that the order
/// of recording does not show in the result.
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
        let v = value.0;
        if self.count == 0 || v < self.min {
            self.min = v;
        }
        if v > self.max {
            self.max = v;
        }
        self.count += 1;
        self.sum += v;
        self.sum_of_squares += u128::from(v) * u128::from(v);
    }

    /// How many were recorded.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// As it goes into a result.
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

/// A latency distribution; takes no memory before the first value.
///
/// Buckets are those of HdrHistogram (Tene, hdrhistogram.org) with three digits: one per
/// nanosecond up to 2048, then 1024 per doubling.
#[derive(Clone, Debug, Default)]
pub struct LatencyHistogram {
    /// By bucket, as far as values have come.
    counts: Vec<u64>,
}

impl LatencyHistogram {
    /// One more value.
    #[inline]
    pub fn record(&mut self, value: Nanos) {
        // The bits below the leading eleven do not count.
        let dropped = (u64::BITS - value.0.leading_zeros()).saturating_sub(BUCKET_BITS + 1);
        let bucket = ((dropped as usize) << BUCKET_BITS) + (value.0 >> dropped) as usize;
        if bucket >= self.counts.len() {
            self.counts.resize((bucket + 1).next_multiple_of(1 << BUCKET_BITS), 0);
        }
        self.counts[bucket] += 1;
    }

    /// Its non-empty buckets, each by the largest value in it.
    pub fn columns(&self) -> HistogramColumns {
        let mut columns = HistogramColumns::default();
        for (bucket, &count) in self.counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            let dropped = (bucket >> BUCKET_BITS).saturating_sub(1);
            let leading = bucket - (dropped << BUCKET_BITS);
            columns.value_ns.push(((leading << dropped) + (1 << dropped) - 1) as i64);
            columns.count.push(count as i64);
        }
        columns
    }
}

/// The class of `latency` in fio's `latency_ns`/`_us`/`_ms` table.
#[inline]
pub fn latency_level(latency: Nanos) -> usize {
    LATENCY_BOUNDS_NS.partition_point(|&bound| bound <= latency.0)
}

/// Bandwidth or IOPS, sampled over equal spans.
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

    /// As it goes into a result.
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
        fn histogram_keeps_every_count_and_is_right_to_three_digits(
            values in prop::collection::vec(1..100_000_000_000u64, 1..200)
        ) {
            let mut histogram = LatencyHistogram::default();
            values.iter().for_each(|&v| histogram.record(Nanos(v)));
            let columns = histogram.columns();
            prop_assert_eq!(columns.count.iter().sum::<i64>() as usize, values.len());
            let largest = *values.iter().max().unwrap() as f64;
            let last = *columns.value_ns.last().unwrap() as f64;
            prop_assert!(last >= largest && last <= largest * 1.001 + 1.0);
            prop_assert!(columns.value_ns.windows(2).all(|pair| pair[0] < pair[1]));
        }

        #[test]
        fn a_histogram_tells_apart_every_nanosecond_below_2048(ns in 0..2048_u64) {
            let mut histogram = LatencyHistogram::default();
            histogram.record(Nanos(ns));
            prop_assert_eq!(histogram.columns().value_ns, [ns as i64]);
        }

        #[test]
        fn latency_class_holds_its_latency(ns in 0..5_000_000_000u64) {
            let level = latency_level(Nanos(ns));
            prop_assert!(level == LATENCY_BOUNDS_NS.len() || ns < LATENCY_BOUNDS_NS[level]);
            prop_assert!(level == 0 || ns >= LATENCY_BOUNDS_NS[level - 1]);
        }
    }
}
