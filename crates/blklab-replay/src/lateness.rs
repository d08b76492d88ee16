//! How late a replay was: the times at which processes began to submit I/Os, against the plan's.

use blklab_core::source::replay::Outcome;
use blklab_core::units::Nanos;
use serde_json::{Value, json};

/// The lateness of all I/Os.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lateness {
    /// The number of I/Os.
    pub ios: usize,
    /// Half of the I/Os were not later than this.
    pub median: Nanos,
    /// 99 % were not later.
    pub p99: Nanos,
    /// The latest.
    pub max: Nanos,
    /// I/Os that were late because their process was still submitting the I/O before, which takes long
    /// where all requests of the queue are taken.
    pub held: usize,
}

impl Lateness {
    /// The lateness of these I/Os.
    pub fn of(outcomes: &[Outcome]) -> Lateness {
        let mut late: Vec<_> = outcomes.iter().map(|outcome| outcome.late).collect();
        late.sort_unstable();
        let at = |share: f64| {
            let rank = (late.len() as f64 * share).ceil() as usize;
            late.get(rank.max(1) - 1).copied().unwrap_or_default()
        };
        Lateness {
            ios: late.len(),
            median: at(0.5),
            p99: at(0.99),
            max: at(1.0),
            held: outcomes.iter().filter(|outcome| outcome.held > Nanos::ZERO).count(),
        }
    }

    /// As JSON, times in ns.
    pub fn to_json(self) -> Value {
        json!({
            "ios": self.ios,
            "median_ns": self.median.0,
            "p99_ns": self.p99.0,
            "max_ns": self.max.0,
            "held": self.held,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lateness_is_told_by_rank_and_that_of_nothing_is_none() {
        let outcome = |late| Outcome { late: Nanos(late), held: Nanos(late / 150), ..Outcome::default() };
        let outcomes: Vec<_> = (1..=200).rev().map(outcome).collect();
        let found = Lateness::of(&outcomes);
        let expected = Lateness { ios: 200, median: Nanos(100), p99: Nanos(198), max: Nanos(200), held: 51 };
        assert_eq!(found, expected);
        assert_eq!(Lateness::of(&[]), Lateness::default());
    }
}
