//! Quantiles with three digits.

use hdrhistogram::Histogram;

/// Quantiles of one kind of value.
#[derive(Clone, Debug)]
pub struct Spread {
    values: Histogram<u64>,
    min: u64,
    max: u64,
    sum: u128,
}

/// The figures of a [`Spread`].
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Figures {
    /// How many values.
    pub count: u64,
    /// The least.
    pub min: u64,
    /// The mean.
    pub mean: f64,
    /// The middle.
    pub p50: u64,
    /// 90 %.
    pub p90: u64,
    /// 99 %.
    pub p99: u64,
    /// 99.9 %.
    pub p999: u64,
    /// The greatest.
    pub max: u64,
}

impl Default for Spread {
    fn default() -> Spread {
        let mut values = Histogram::new(3).expect("three digits");
        values.auto(true);
        Spread { values, min: u64::MAX, max: 0, sum: 0 }
    }
}

impl Spread {
    #[inline]
    pub(super) fn add(&mut self, value: u64) {
        // It grows; a value that does not fit is the greatest.
        if self.values.record(value).is_err() {
            self.values.saturating_record(value);
        }
        (self.min, self.max) = (self.min.min(value), self.max.max(value));
        self.sum += u128::from(value);
    }

    /// Its figures.
    pub fn figures(&self) -> Figures {
        let count = self.values.len();
        if count == 0 {
            return Figures::default();
        }
        // A bucket has its upper bound.
        let at = |quantile| self.values.value_at_quantile(quantile).min(self.max);
        Figures {
            count,
            min: self.min,
            mean: self.sum as f64 / count as f64,
            p50: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
            p999: at(0.999),
            max: self.max,
        }
    }
}
