//! Kyber's feedback: latency histograms, and the depths that follow from them.
//!
//! Follows Linux 7.3 (`kyber_timer_fn`, `calculate_percentile`). A latency counts in quarters of
//! its domain's target: four good buckets, four bad ones, the last open.
//!
//! * Congestion: the 90th percentile of the time *in the disk* is bad in some domain.
//! * With congestion, every domain with a known 99th percentile of the *total* time is scaled by
//!   that percentile over the target, in quarters, rounded up: a domain with low latency shrinks,
//!   one with high latency grows.
//! * Without, only domains with high latency grow. So a domain that was throttled grows back when
//!   its requests wait too long for tokens, and only then.
//!
//! A percentile is computed once there are 500 samples, or one second after the first check that
//! saw any. Both histograms of a domain share that second, and computing one percentile restarts it
//! for the other. So with fewer than 500 I/Os per second the time in the disk is checked every
//! second and the total latency only after 500 I/Os: a domain that was throttled to one request at
//! a time may take half a minute to get its second token. The kernel does the same. A domain's
//! percentile from a time without congestion is kept until the next congestion uses it.

use crate::units::Nanos;

/// Domains whose latency is measured: reads, writes, discards.
pub(super) const MEASURED: usize = 3;

/// Buckets up to the target; there are as many above it.
const GOOD: usize = 4;
const BUCKETS: usize = 2 * GOOD;

/// Samples that suffice for a percentile.
const SAMPLES: u32 = 500;
/// After this long, fewer samples suffice.
const PATIENCE: Nanos = Nanos::from_secs(1);

/// The upper bound of each bucket but the last: multiples of a quarter of the target, at least 1 ns.
#[derive(Clone, Copy, Debug)]
struct Bounds([Nanos; BUCKETS - 1]);

impl Bounds {
    fn new(target: Nanos) -> Bounds {
        let width = (target.0 / GOOD as u64).max(1);
        Bounds(std::array::from_fn(|bucket| Nanos(width.saturating_mul(bucket as u64 + 1))))
    }
}

/// Latencies in quarters of the target.
#[derive(Clone, Copy, Debug, Default)]
struct Histogram([u32; BUCKETS]);

impl Histogram {
    /// Counts `latency` in the first bucket whose bound it does not exceed. A few comparisons cost
    /// less than the kernel's division.
    #[inline]
    fn record(&mut self, latency: Nanos, bounds: &Bounds) {
        let bucket = bounds.0.iter().position(|&bound| latency <= bound);
        self.0[bucket.unwrap_or(BUCKETS - 1)] += 1;
    }

    /// The bucket that holds the given percentile.
    fn percentile(&self, percent: u32) -> usize {
        let mut left = (self.0.iter().sum::<u32>() * percent).div_ceil(100);
        for (bucket, &count) in self.0[..BUCKETS - 1].iter().enumerate() {
            if count >= left {
                return bucket;
            }
            left -= count;
        }
        BUCKETS - 1
    }
}

/// Measurements of one domain.
#[derive(Clone, Copy, Debug)]
struct Domain {
    bounds: Bounds,
    total: Histogram,
    in_disk: Histogram,
    /// When fewer samples than [`SAMPLES`] suffice, once a check has seen any.
    patience_ends: Option<Nanos>,
    /// The last 99th percentile of the total latency, not yet used by a congestion.
    remembered: Option<usize>,
}

impl Domain {
    /// Computes a percentile and empties the histogram, if it has enough samples.
    fn take(
        &mut self,
        now: Nanos,
        percent: u32,
        which: impl Fn(&mut Domain) -> &mut Histogram,
    ) -> Option<usize> {
        let samples: u32 = which(self).0.iter().sum();
        if samples == 0 {
            return None;
        }
        let patience_ends = *self.patience_ends.get_or_insert(now + PATIENCE);
        if samples < SAMPLES && now < patience_ends {
            return None;
        }
        self.patience_ends = None;
        let histogram = std::mem::take(which(self));
        Some(histogram.percentile(percent))
    }
}

/// Checks latencies and computes depths.
#[derive(Debug)]
pub(super) struct Judge {
    domains: [Domain; MEASURED],
}

impl Judge {
    /// With one target per domain.
    pub fn new(targets: [Nanos; MEASURED]) -> Judge {
        let domain = |target: Nanos| Domain {
            bounds: Bounds::new(target),
            total: Histogram::default(),
            in_disk: Histogram::default(),
            patience_ends: None,
            remembered: None,
        };
        Judge { domains: targets.map(domain) }
    }

    /// A request took `total` from its creation, and `in_disk` of that in the disk.
    #[inline]
    pub fn record(&mut self, domain: usize, total: Nanos, in_disk: Nanos) {
        let domain = &mut self.domains[domain];
        domain.total.record(total, &domain.bounds);
        domain.in_disk.record(in_disk, &domain.bounds);
    }

    /// The depths that the domains should have, from their current depths; not yet clamped.
    pub fn depths(&mut self, now: Nanos, mut depths: [u32; MEASURED]) -> [u32; MEASURED] {
        let mut congested = false;
        for domain in &mut self.domains {
            let p90 = domain.take(now, 90, |d| &mut d.in_disk);
            congested |= p90.is_some_and(|bucket| bucket >= GOOD);
        }
        for (domain, depth) in self.domains.iter_mut().zip(&mut depths) {
            let fresh = domain.take(now, 99, |d| &mut d.total);
            let p99 = if congested {
                fresh.or(domain.remembered.take())
            } else {
                domain.remembered = fresh.or(domain.remembered);
                fresh
            };
            if let Some(p99) = p99.filter(|&bucket| congested || bucket >= GOOD) {
                *depth = *depth * (p99 as u32 + 1) / GOOD as u32;
            }
        }
        depths
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TARGET: u64 = 2_000_000;
    const READ: usize = 0;
    const WRITE: usize = 1;

    fn judge() -> Judge {
        Judge::new([Nanos(TARGET), Nanos(TARGET), Nanos(TARGET)])
    }

    fn samples(judge: &mut Judge, domain: usize, count: u32, total: u64, in_disk: u64) {
        (0..count).for_each(|_| judge.record(domain, Nanos(total), Nanos(in_disk)));
    }

    proptest! {
        #[test]
        fn a_latency_falls_into_the_bucket_that_division_gives(latency in 0u64..10_000_000, target in 0u64..8_000_000) {
            let width = (target / 4).max(1);
            let mut histogram = Histogram::default();
            histogram.record(Nanos(latency), &Bounds::new(Nanos(target)));
            let expected = (latency.saturating_sub(1) / width).min(7) as usize;
            prop_assert_eq!(histogram.0[expected], 1);
        }

        #[test]
        fn a_percentile_is_the_first_bucket_that_covers_it(counts in prop::array::uniform8(0u32..1000), percent in 1u32..=100) {
            let histogram = Histogram(counts);
            let all: u32 = counts.iter().sum();
            prop_assume!(all > 0);
            let bucket = histogram.percentile(percent);
            let up_to = |b: usize| counts[..b].iter().sum::<u32>() * 100;
            prop_assert!(up_to(bucket + 1) >= all * percent);
            prop_assert!(up_to(bucket) < all * percent);
        }
    }

    #[test]
    fn a_latency_at_the_bound_of_a_bucket_belongs_to_it() {
        let quarter = TARGET / 4;
        for (latency, bucket) in [
            (0, 0),
            (quarter, 0),
            (quarter + 1, 1),
            (TARGET, 3),
            (TARGET + 1, 4),
            (7 * quarter, 6),
            (7 * quarter + 1, 7),
            (100 * TARGET, 7),
        ] {
            let mut histogram = Histogram::default();
            histogram.record(Nanos(latency), &Bounds::new(Nanos(TARGET)));
            assert_eq!(histogram.0[bucket], 1, "{latency} ns");
        }
    }

    #[test]
    fn a_share_that_is_no_whole_number_of_samples_is_rounded_up() {
        let p90 = |quick, slow| Histogram([quick, slow, 0, 0, 0, 0, 0, 0]).percentile(90);
        // 90 % of ten samples are nine, of eleven ten, of two both.
        assert_eq!([p90(9, 1), p90(9, 2), p90(1, 1)], [0, 1, 1]);
    }

    #[test]
    fn slow_reads_in_the_disk_shrink_the_depth_of_writes_that_are_well_off() {
        let mut judge = judge();
        samples(&mut judge, READ, 500, 2 * TARGET, 2 * TARGET);
        samples(&mut judge, WRITE, 500, TARGET / 4, TARGET / 4);
        // Reads: open bucket, twice the depth. Writes: within the first quarter, a quarter.
        assert_eq!(judge.depths(Nanos::from_millis(100), [100, 100, 64]), [200, 25, 64]);
    }

    #[test]
    fn without_congestion_a_domain_that_waits_for_tokens_grows_and_no_other_changes() {
        let mut judge = judge();
        samples(&mut judge, READ, 500, TARGET / 2, TARGET / 2);
        samples(&mut judge, WRITE, 500, TARGET + TARGET / 4, TARGET / 4);
        assert_eq!(judge.depths(Nanos::from_millis(100), [100, 100, 64]), [100, 125, 64]);
    }

    #[test]
    fn congestion_uses_the_remembered_state_of_a_quiet_domain_once() {
        let mut judge = judge();
        samples(&mut judge, WRITE, 500, TARGET / 2, TARGET / 2);
        assert_eq!(judge.depths(Nanos::from_millis(100), [256, 128, 64]), [256, 128, 64]);
        samples(&mut judge, READ, 500, TARGET, 2 * TARGET);
        assert_eq!(judge.depths(Nanos::from_millis(200), [256, 128, 64]), [256, 64, 64]);
        samples(&mut judge, READ, 500, TARGET, 2 * TARGET);
        assert_eq!(judge.depths(Nanos::from_millis(300), [256, 64, 64]), [256, 64, 64]);
    }

    #[test]
    fn a_time_in_the_disk_beyond_the_target_by_a_nanosecond_is_congestion() {
        for (in_disk, writes) in [(TARGET, 100), (TARGET + 1, 25)] {
            let mut judge = judge();
            samples(&mut judge, READ, 500, in_disk, in_disk);
            samples(&mut judge, WRITE, 500, TARGET / 4, TARGET / 4);
            let [_, found, _] = judge.depths(Nanos::from_millis(100), [100, 100, 64]);
            assert_eq!(found, writes, "{in_disk} ns");
        }
    }

    #[test]
    fn one_slow_request_in_ten_is_no_congestion() {
        let mut judge = judge();
        samples(&mut judge, READ, 450, TARGET / 4, TARGET / 4);
        samples(&mut judge, READ, 50, TARGET / 4, 2 * TARGET);
        assert_eq!(judge.depths(Nanos::from_millis(100), [256, 128, 64]), [256, 128, 64]);
    }

    #[test]
    fn few_samples_are_judged_after_a_second_and_the_total_latency_waits_longer() {
        let mut judge = judge();
        samples(&mut judge, READ, 1, TARGET / 4, 2 * TARGET);
        let depths = [256, 128, 64];
        assert_eq!(judge.depths(Nanos::from_millis(100), depths), depths);
        // The time in the disk is checked now, which restarts the second for the total.
        assert_eq!(judge.depths(Nanos::from_millis(1100), depths), depths);
        assert_eq!(judge.depths(Nanos::from_millis(2000), depths), depths);
        samples(&mut judge, READ, 499, TARGET / 4, 2 * TARGET);
        // By now 500 samples of the total, but only 499 of the disk's: a second has passed.
        assert_eq!(judge.depths(Nanos::from_millis(2100), depths), [64, 128, 64]);
    }
}
