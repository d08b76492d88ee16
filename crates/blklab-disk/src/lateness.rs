//! How late completions were returned, compared with the model.
//!
//! Lateness is the time from a request's completion in the model to the server's clock reading
//! before it returns the completion. In virtual time with free CPU work it is zero; elsewhere the
//! measurement has at least this error.

use blklab_core::stats::{LatencyHistogram, Moments};
use blklab_core::units::Nanos;
use serde::Serialize;

/// Collects lateness.
#[derive(Clone, Debug, Default)]
pub struct Lateness {
    moments: Moments,
    histogram: LatencyHistogram,
}

/// The reported figures. Percentiles are correct to three digits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Summary {
    /// Requests completed.
    pub count: u64,
    /// Median, ns.
    pub p50_ns: u64,
    /// 99th percentile, ns.
    pub p99_ns: u64,
    /// Largest, ns.
    pub max_ns: u64,
}

impl Lateness {
    /// A request that the model completed at `modelled` is returned at `now`.
    #[inline]
    pub fn record(&mut self, modelled: Nanos, now: Nanos) {
        let late = now.saturating_sub(modelled);
        self.moments.record(late);
        self.histogram.record(late);
    }

    /// The figures so far.
    pub fn summary(&self) -> Summary {
        let all = self.moments.summary();
        let columns = self.histogram.columns();
        let percentile = |percent: u64| {
            // Nearest rank: the smallest value that at least this percentage does not exceed.
            let rank = (all.count * percent).div_ceil(100).max(1);
            let mut seen = 0;
            let found = columns.value_ns.iter().zip(&columns.count).find(|(_, count)| {
                seen += count.unsigned_abs();
                seen >= rank
            });
            found.map_or(0, |(value, _)| value.unsigned_abs().min(all.max_ns))
        };
        Summary { count: all.count, p50_ns: percentile(50), p99_ns: percentile(99), max_ns: all.max_ns }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_by_nearest_rank() {
        let mut lateness = Lateness::default();
        assert_eq!(lateness.summary(), Summary::default());
        for late in 1..=200 {
            lateness.record(Nanos(1000), Nanos(1000 + late));
        }
        lateness.record(Nanos(1000), Nanos(900));
        let summary = lateness.summary();
        assert_eq!(summary, Summary { count: 201, p50_ns: 100, p99_ns: 198, max_ns: 200 });
    }
}
