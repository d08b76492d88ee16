//! The better of two waiting requests for the head's position: the rule of the anticipatory
//! scheduler that CFQ and BFQ took over (`cfq_choose_req`, `bfq_choose_req`).

use crate::request::RequestId;
use crate::units::Sector;

/// A request's properties that count in the rule.
#[derive(Clone, Copy, Debug)]
pub(in crate::scheduler) struct Candidate {
    /// Synchronous.
    pub sync: bool,
    pub sector: Sector,
}

/// The tunables of the rule.
#[derive(Clone, Copy, Debug)]
pub(in crate::scheduler) struct BackSeek {
    /// The largest distance below the head at which a request competes, in sectors.
    pub max: u64,
    /// The factor by which a distance downwards counts.
    pub penalty: u64,
}

impl BackSeek {
    /// The cost of the distance; `None`: too far back.
    fn distance(self, head: Sector, to: Sector) -> Option<u64> {
        if to >= head {
            Some(to.0 - head.0)
        } else if to.0.saturating_add(self.max) >= head.0 {
            Some((head.0 - to.0).saturating_mul(self.penalty))
        } else {
            None
        }
    }

    /// The better of two waiting requests, either of which may be missing, with the disk at `head`.
    #[inline]
    pub fn better(
        self,
        a: Option<RequestId>,
        b: Option<RequestId>,
        head: Sector,
        candidate: impl Fn(RequestId) -> Candidate,
    ) -> Option<RequestId> {
        let (Some(first), Some(second)) = (a, b) else { return a.or(b) };
        let first_is_better =
            first != second && self.first_is_better(candidate(first), candidate(second), head);
        Some(if first_is_better { first } else { second })
    }

    /// Whether the first is better than the second: synchronous before asynchronous, near before
    /// far; of equal distances, upwards before downwards. Requests too far back come last, the
    /// lower one first: one long seek back, then upwards.
    fn first_is_better(self, first: Candidate, second: Candidate, head: Sector) -> bool {
        if first.sync != second.sync {
            return first.sync;
        }
        match (self.distance(head, first.sector), self.distance(head, second.sector)) {
            (Some(to_first), Some(to_second)) if to_first != to_second => to_first < to_second,
            (Some(_), Some(_)) => first.sector >= second.sector,
            (None, None) => first.sector <= second.sector,
            (reachable, _) => reachable.is_some(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn better(first: u64, second: u64) -> bool {
        let at = |sector| Candidate { sync: true, sector: Sector(sector) };
        let rule = BackSeek { max: 1000, penalty: 2 };
        rule.first_is_better(at(first), at(second), Sector(10_000))
    }

    #[test]
    fn a_way_down_costs_twice_as_much_and_a_long_one_is_the_last_resort() {
        assert!(better(10_100, 9940) && !better(10_100, 9960));
        assert!(better(10_100, 9950), "as far: upwards");
        assert!(better(9_000_000, 8999) && !better(9_000_000, 9000));
        assert!(better(10, 20) && !better(20, 10), "both too far back: the lower");
    }

    #[test]
    fn synchronous_requests_go_before_asynchronous_ones() {
        let at = |sync, sector| Candidate { sync, sector: Sector(sector) };
        let rule = BackSeek { max: 1000, penalty: 2 };
        assert!(rule.first_is_better(at(true, 10), at(false, 10_000), Sector(10_000)));
        assert!(!rule.first_is_better(at(false, 10_000), at(true, 10), Sector(10_000)));
    }
}
