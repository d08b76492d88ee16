//! A histogram of latencies: the buckets of an HDR histogram with three significant digits (Gil Tene),
//! in memory that grows with what is recorded.
//!
//! Below 2,048 ns each latency has a bucket of its own; above, each doubling has 1,024 buckets.
//! Latencies of up to 10 ms have 15,000 buckets. An array of their counts takes 120 KiB for each
//! process; most counts are zero, and nearly every I/O misses the processor's caches. So the first
//! values are a list of bucket numbers, two bytes each. After [`LISTED`] values, buckets are counted in
//! pages, each of which exists once one of its buckets is used.

use std::collections::BTreeMap;
use std::iter;

use crate::result::HistogramColumns;
use crate::units::Nanos;

/// Buckets of each doubling, as a power of two: they are at most 0.1 % wide.
const BUCKETS_LOG2: u32 = 10;

/// Values kept as a list: 2 KiB.
const LISTED: usize = 1024;

/// Buckets in a page.
const PAGE: usize = 64;

/// The number of a bucket. The last one, of `u64::MAX` ns, has 56,319.
type Bucket = u16;

/// A latency distribution; takes no memory before the first value.
#[derive(Clone, Debug)]
pub struct LatencyHistogram(Counts);

#[derive(Clone, Debug)]
enum Counts {
    /// The bucket of each value.
    Listed(Vec<Bucket>),
    Paged(Pages),
}

/// The counts of more than [`LISTED`] values.
#[derive(Clone, Debug, Default)]
struct Pages {
    pages: Vec<Option<Box<[u32; PAGE]>>>,
    /// What does not fit into a bucket's 32 bits, in units of 2^32.
    carried: BTreeMap<Bucket, u64>,
}

impl Default for LatencyHistogram {
    fn default() -> Self {
        LatencyHistogram(Counts::Listed(Vec::new()))
    }
}

impl LatencyHistogram {
    /// One more value.
    #[inline]
    pub fn record(&mut self, value: Nanos) {
        self.record_n(value, 1);
    }

    /// The same value `times` times.
    #[inline]
    pub fn record_n(&mut self, value: Nanos, times: u64) {
        let bucket = bucket(value);
        match &mut self.0 {
            Counts::Paged(pages) => pages.add(bucket, times),
            Counts::Listed(list) if times == 1 && list.len() < LISTED => list.push(bucket),
            Counts::Listed(_) => self.add_several(bucket, times),
        }
    }

    /// The list is full, or there is more than one value.
    #[inline(never)]
    fn add_several(&mut self, bucket: Bucket, times: u64) {
        let Counts::Listed(list) = &mut self.0 else { return };
        let room = (LISTED - list.len()) as u64;
        if times <= room {
            list.extend(iter::repeat_n(bucket, times as usize));
            return;
        }
        let mut pages = Pages::default();
        list.iter().for_each(|&listed| pages.add(listed, 1));
        pages.add(bucket, times);
        self.0 = Counts::Paged(pages);
    }

    /// Its non-empty buckets.
    pub fn columns(&self) -> HistogramColumns {
        let filled = match &self.0 {
            Counts::Listed(list) => counted(list),
            Counts::Paged(pages) => pages.filled(),
        };
        HistogramColumns {
            value_ns: filled.iter().map(|&(bucket, _)| highest(bucket) as i64).collect(),
            count: filled.iter().map(|&(_, count)| count as i64).collect(),
        }
    }
}

/// The buckets of a list with their counts, in order.
fn counted(list: &[Bucket]) -> Vec<(Bucket, u64)> {
    let mut sorted = list.to_vec();
    sorted.sort_unstable();
    sorted.chunk_by(Bucket::eq).map(|equal| (equal[0], equal.len() as u64)).collect()
}

impl Pages {
    #[inline]
    fn add(&mut self, bucket: Bucket, times: u64) {
        let (page, place) = (usize::from(bucket) / PAGE, usize::from(bucket) % PAGE);
        match self.pages.get_mut(page) {
            Some(Some(counts)) => {
                let sum = u64::from(counts[place]) + times;
                counts[place] = sum as u32;
                if sum > u64::from(u32::MAX) {
                    *self.carried.entry(bucket).or_default() += sum >> u32::BITS;
                }
            }
            _ => {
                self.begin(page);
                self.add(bucket, times);
            }
        }
    }

    #[cold]
    fn begin(&mut self, page: usize) {
        if self.pages.len() <= page {
            self.pages.resize(page + 1, None);
        }
        self.pages[page] = Some(Box::new([0; PAGE]));
    }

    /// The buckets with a count, in order.
    fn filled(&self) -> Vec<(Bucket, u64)> {
        let counts = self.pages.iter().enumerate().flat_map(|(page, counts)| {
            counts.iter().flat_map(move |counts| (page * PAGE..).zip(counts.iter()))
        });
        let all = counts.map(|(number, &count)| {
            let bucket = number as Bucket;
            let carried = self.carried.get(&bucket).copied().unwrap_or_default();
            (bucket, u64::from(count) + (carried << u32::BITS))
        });
        all.filter(|&(_, count)| count > 0).collect()
    }
}

/// The bucket of a latency.
#[inline]
fn bucket(Nanos(ns): Nanos) -> Bucket {
    let first_doubling = (2 << BUCKETS_LOG2) - 1;
    let doubling = (ns | first_doubling).ilog2() - BUCKETS_LOG2;
    ((doubling << BUCKETS_LOG2) + (ns >> doubling) as u32) as Bucket
}

/// The highest latency of a bucket, ns.
fn highest(bucket: Bucket) -> u64 {
    let doubling = (u32::from(bucket) >> BUCKETS_LOG2).saturating_sub(1);
    let step = u64::from(u32::from(bucket) - (doubling << BUCKETS_LOG2));
    step << doubling | ((1 << doubling) - 1)
}

#[cfg(test)]
mod tests {
    use hdrhistogram::Histogram;
    use proptest::prelude::*;

    use super::*;

    /// Latencies of all sizes.
    fn latency() -> impl Strategy<Value = u64> {
        (0..63_u32, any::<u64>()).prop_map(|(bits, ns)| ns >> (63 - bits) >> 1)
    }

    proptest! {
        #[test]
        fn the_buckets_are_those_of_an_hdr_histogram(
            values in prop::collection::vec((latency(), 1..4_u64), 1..2 * LISTED)
        ) {
            let mut histogram = LatencyHistogram::default();
            let mut expected = Histogram::<u64>::new(3).expect("three digits are allowed");
            expected.auto(true);
            for (value, times) in values {
                histogram.record_n(Nanos(value), times);
                expected.record_n(value, times).expect("it takes every value");
            }
            let columns = histogram.columns();
            let buckets: Vec<_> = expected.iter_recorded().collect();
            let highest: Vec<_> = buckets.iter().map(|one| one.value_iterated_to() as i64).collect();
            let counts: Vec<_> = buckets.iter().map(|one| one.count_since_last_iteration() as i64).collect();
            prop_assert_eq!(columns.value_ns, highest);
            prop_assert_eq!(columns.count, counts);
        }
    }

    #[test]
    fn a_bucket_counts_beyond_32_bits() {
        let mut histogram = LatencyHistogram::default();
        let times = [1 << 40, u32::MAX.into(), 1, 7];
        times.iter().for_each(|&times| histogram.record_n(Nanos(5_000), times));
        assert_eq!(histogram.columns().count, [times.iter().sum::<u64>() as i64]);
    }

    #[test]
    fn the_longest_latency_has_a_bucket() {
        assert_eq!((bucket(Nanos(u64::MAX)), highest(bucket(Nanos(u64::MAX)))), (56_319, u64::MAX));
    }

    #[test]
    fn a_histogram_of_a_thousand_latencies_takes_2_kib_and_one_of_a_million_20() {
        let mut histogram = LatencyHistogram::default();
        let mut record = |values: u64| {
            // Over four doublings, up to 16 ms.
            (0..values).for_each(|value| histogram.record(Nanos(1_000_000 + value * 7_919 % 15_000_000)));
            match &histogram.0 {
                Counts::Listed(list) => list.capacity() * size_of::<Bucket>(),
                Counts::Paged(Pages { pages, .. }) => {
                    size_of_val(&pages[..])
                        + pages.iter().flatten().map(|page| size_of_val(&page[..])).sum::<usize>()
                }
            }
        };
        assert!(record(LISTED as u64) <= 2 << 10);
        let paged = record(1_000_000);
        assert!((16 << 10..20 << 10).contains(&paged), "{paged} bytes");
    }
}
