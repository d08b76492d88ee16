//! What shows whether a run stays as it is: short intervals for pile-ups, long ones for percentiles.
//!
//! A [`Series`](crate::result::Series) has 4,096 rows at most, which are 33 s long in a run of a day:
//! a queue that is long for 3 s does not show there. Levels are three numbers in up to 65,536 rows,
//! 2.6 s long in a day. Percentiles need many I/Os in each row, so their rows are few and long.

use super::rows::{Interval, Rows, widened};
use crate::result::{Levels, PercentileColumns, Percentiles};
use crate::units::Nanos;

/// The first width of both kinds of rows, and their maximum.
const LEVEL: (Nanos, usize) = (Nanos::from_millis(10), 65_536);
const SPREAD: (Nanos, usize) = (Nanos::from_millis(100), 512);
/// Rows of percentiles are widened until half of them have this many I/Os (the 99.9th percentile of
/// fewer than 2,995 has no interval at 95 %), but no further than to this many rows.
const IOS_WANTED: u64 = 3_000;
const SPREADS_LEAST: usize = 128;
/// Buckets of a histogram for each doubling of the latency, as a power of two.
const STEPS_LOG2: u32 = 4;
/// Below this latency, 256 ns, buckets have equal widths.
const FIRST_OCTAVE: u32 = 8;
/// Above two to this power of ns, 18 minutes, all is in the last bucket.
const LAST_OCTAVE: u32 = 40;
const BUCKETS: usize = ((LAST_OCTAVE - FIRST_OCTAVE + 2) << STEPS_LOG2) as usize;

/// The level of queue and latency in a short interval.
#[derive(Clone, Copy, Debug, Default)]
struct Level {
    ios: u64,
    clat_sum: u64,
    depth_area: u64,
}

impl Interval for Level {
    fn join(&mut self, next: &Level) {
        self.ios += next.ios;
        self.clat_sum += next.clat_sum;
        self.depth_area += next.depth_area;
    }
}

/// The latencies of reads and of writes in a long interval, as histograms that are empty until
/// their first I/O.
#[derive(Clone, Debug, Default)]
struct Spread {
    bytes: u64,
    counts: [Vec<u32>; 2],
}

impl Spread {
    fn ios(&self, side: usize) -> u64 {
        self.counts[side].iter().map(|&count| u64::from(count)).sum()
    }
}

impl Interval for Spread {
    fn join(&mut self, next: &Spread) {
        self.bytes += next.bytes;
        for (mine, more) in self.counts.iter_mut().zip(&next.counts) {
            mine.resize(mine.len().max(more.len()), 0);
            mine.iter_mut().zip(more).for_each(|(count, more)| *count = count.saturating_add(*more));
        }
    }
}

/// Collects [`Levels`] and [`Percentiles`].
#[derive(Debug)]
pub struct SteadinessRecorder {
    levels: Rows<Level>,
    spreads: Rows<Spread>,
}

impl Default for SteadinessRecorder {
    fn default() -> Self {
        SteadinessRecorder { levels: Rows::new(LEVEL.0, LEVEL.1), spreads: Rows::new(SPREAD.0, SPREAD.1) }
    }
}

impl SteadinessRecorder {
    /// An I/O of a process has completed.
    #[inline]
    pub fn completed(&mut self, at: Nanos, side: usize, bytes: u64, clat: Nanos) {
        let level = self.levels.row(at);
        level.ios += 1;
        level.clat_sum += clat.0;
        let spread = self.spreads.row(at);
        spread.bytes += bytes;
        let counts = &mut spread.counts[side];
        if counts.is_empty() {
            *counts = vec![0; BUCKETS];
        }
        let count = &mut counts[bucket(clat.0)];
        *count = count.saturating_add(1);
    }

    /// From `from` to `to`, this many requests waited or were in flight.
    #[inline]
    pub fn depth(&mut self, from: Nanos, to: Nanos, depth: u32) {
        let add = |level: &mut Level, span: Nanos| level.depth_area += u64::from(depth) * span.0;
        if from >= self.levels.last_begin && to <= self.levels.last_end {
            add(&mut self.levels.last, to - from);
        } else {
            self.levels.over(from, to, add);
        }
    }

    /// The sum of several recorders of one run.
    pub fn finish(several: &[&SteadinessRecorder]) -> (Levels, Percentiles) {
        let of: Vec<_> = several.iter().map(|one| &one.levels).collect();
        let (rows, width) = Rows::sum(&of, LEVEL.0);
        let column = |f: fn(&Level) -> u64| rows.iter().map(|row| f(row) as i64).collect::<Vec<_>>();
        let milli = |row: &Level| (u128::from(row.depth_area) * 1000 / u128::from(width.0)) as i64;
        let levels = Levels {
            start_ns: starts(rows.len(), width),
            ios: column(|row| row.ios),
            clat_sum_ns: column(|row| row.clat_sum),
            depth_milli: rows.iter().map(milli).collect(),
        };
        let of: Vec<_> = several.iter().map(|one| &one.spreads).collect();
        let (mut rows, mut width) = Rows::sum(&of, SPREAD.0);
        while rows.len() >= 2 * SPREADS_LEAST && usual_ios(&rows) < IOS_WANTED {
            rows = widened(&rows);
            width = width + width;
        }
        let percentiles = Percentiles {
            start_ns: starts(rows.len(), width),
            bytes: rows.iter().map(|row| row.bytes as i64).collect(),
            read: of_side(&rows, 0),
            write: of_side(&rows, 1),
        };
        (levels, percentiles)
    }
}

fn starts(rows: usize, width: Nanos) -> Vec<i64> {
    (0..rows).map(|row| (row as u64 * width.0) as i64).collect()
}

/// The median of the I/Os in a row, of the direction that has more.
fn usual_ios(rows: &[Spread]) -> u64 {
    let median = |side: usize| {
        let mut ios: Vec<_> = rows.iter().map(|row| row.ios(side)).collect();
        let middle = ios.len() / 2;
        *ios.select_nth_unstable(middle).1
    };
    median(0).max(median(1))
}

fn of_side(rows: &[Spread], side: usize) -> PercentileColumns {
    let ios: Vec<_> = rows.iter().map(|row| row.ios(side) as i64).collect();
    if ios.iter().all(|&count| count == 0) {
        return PercentileColumns::default();
    }
    let at = |share: f64| rows.iter().map(|row| percentile(&row.counts[side], share)).collect();
    PercentileColumns { p50_ns: at(0.5), p99_ns: at(0.99), p999_ns: at(0.999), ios }
}

/// The latency, ns, below which this share of I/Os is; inside its bucket in proportion. 0 without
/// I/Os.
fn percentile(counts: &[u32], share: f64) -> i64 {
    let all: u64 = counts.iter().map(|&count| u64::from(count)).sum();
    let wanted = all as f64 * share;
    let mut before = 0.0;
    for (index, &count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
        let count = f64::from(count);
        if before + count >= wanted {
            let (low, high) = (lower_bound(index) as f64, lower_bound(index + 1) as f64);
            return (low + (high - low) * (wanted - before) / count) as i64;
        }
        before += count;
    }
    0
}

#[inline]
fn bucket(ns: u64) -> usize {
    let ns = ns.min((2 << LAST_OCTAVE) - 1);
    let octave = ns.checked_ilog2().unwrap_or(0).max(FIRST_OCTAVE);
    let step = ns >> (octave - STEPS_LOG2);
    // Below the first octave a step is from 0 to 15, in each octave from 16 to 31.
    ((octave - FIRST_OCTAVE) << STEPS_LOG2) as usize + step as usize
}

/// The least latency in a bucket, ns.
fn lower_bound(bucket: usize) -> u64 {
    let (steps, first) = (1_u64 << STEPS_LOG2, FIRST_OCTAVE - STEPS_LOG2);
    let (octave, step) = (bucket as u64 / steps, bucket as u64 % steps);
    match octave {
        0 => step << first,
        _ => (steps + step) << (first + octave as u32 - 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn buckets_follow_each_other_and_hold_what_they_bound() {
        for index in 0..BUCKETS {
            assert_eq!(bucket(lower_bound(index)), index);
            assert_eq!(bucket(lower_bound(index + 1) - 1), index);
        }
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }

    proptest! {
        #[test]
        fn percentiles_are_within_a_bucket_of_the_exact_ones(
            mut latencies in prop::collection::vec(1..10_000_000_000_u64, 1..300)
        ) {
            let mut recorder = SteadinessRecorder::default();
            for &ns in &latencies {
                recorder.completed(Nanos(1), 0, 4096, Nanos(ns));
            }
            latencies.sort_unstable();
            let found = SteadinessRecorder::finish(&[&recorder]).1.read;
            for (found, share) in [(found.p50_ns[0], 0.5), (found.p99_ns[0], 0.99), (found.p999_ns[0], 0.999)] {
                let rank = (latencies.len() as f64 * share).ceil() as usize;
                let exact = latencies[rank.max(1) - 1];
                prop_assert!((found as f64 / exact as f64 - 1.0).abs() < 0.07 || found.abs_diff(exact as i64) <= 17);
            }
        }

        #[test]
        fn every_io_and_all_time_in_the_queue_is_in_its_row(
            gaps in prop::collection::vec((0..9_000_000_000_u64, any::<bool>()), 1..300)
        ) {
            let (mut recorder, mut at, mut area) = (SteadinessRecorder::default(), Nanos::ZERO, 0_u128);
            for &(gap, write) in &gaps {
                recorder.depth(at, at + Nanos(gap), 3);
                area += 3 * u128::from(gap);
                at += Nanos(gap);
                recorder.completed(at, usize::from(write), 512, Nanos(gap));
            }
            let (levels, percentiles) = SteadinessRecorder::finish(&[&recorder]);
            prop_assert!(levels.ios.len() <= LEVEL.1 && percentiles.bytes.len() <= SPREAD.1);
            prop_assert_eq!(levels.ios.iter().sum::<i64>(), gaps.len() as i64);
            prop_assert_eq!(levels.clat_sum_ns.iter().sum::<i64>() as u64, at.0);
            let width = if levels.start_ns.len() > 1 { levels.start_ns[1] } else { 10_000_000 };
            let kept: u128 = levels.depth_milli.iter().map(|&milli| milli as u128 * width as u128 / 1000).sum();
            prop_assert!(area.abs_diff(kept) <= levels.ios.len() as u128 * (width as u128 / 1000 + 1));
            prop_assert_eq!(percentiles.bytes.iter().sum::<i64>(), 512 * gaps.len() as i64);
            let ios = percentiles.read.ios.iter().chain(&percentiles.write.ios).sum::<i64>();
            prop_assert_eq!(ios, gaps.len() as i64);
        }
    }

    #[test]
    fn rows_of_percentiles_are_widened_until_they_have_enough_ios_or_are_few() {
        let rows = |ios_each_ms: usize| {
            let mut recorder = SteadinessRecorder::default();
            for ms in 0..51_000 {
                (0..ios_each_ms).for_each(|_| recorder.completed(Nanos::from_millis(ms), 0, 1, Nanos(1000)));
            }
            SteadinessRecorder::finish(&[&recorder]).1.bytes.len()
        };
        // 510 rows of 100 ms: with 100 I/Os each they become 255, and no fewer than 128.
        assert_eq!((rows(1), rows(40)), (255, 510));
    }
}
