//! Which of a queue's requests goes next: the nearest to the head, upwards rather than down.

use super::Bfq;
use super::queue::QueueId;
use crate::request::RequestId;
use crate::units::Sector;

/// A candidate.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    sync: bool,
    sector: Sector,
}

/// What it takes to get to a sector, or "too far back" (`bfq_choose_req`'s wrap).
fn distance(from: Sector, to: Sector, back_max: u64, back_penalty: u64) -> Option<u64> {
    if to >= from {
        Some(to.0 - from.0)
    } else if to.0 + back_max >= from.0 {
        Some((from.0 - to.0).wrapping_mul(back_penalty))
    } else {
        None
    }
}

/// Whether the first candidate is better than the second with the head at `from`.
fn first_is_better(a: Candidate, b: Candidate, from: Sector, back_max: u64, back_penalty: u64) -> bool {
    if a.sync != b.sync {
        return a.sync;
    }
    let distance = |c: Candidate| distance(from, c.sector, back_max, back_penalty);
    match (distance(a), distance(b)) {
        (Some(to_a), Some(to_b)) if to_a != to_b => to_a < to_b,
        // As far upwards as downwards: upwards.
        (Some(_), Some(_)) => a.sector >= b.sector,
        (Some(_), None) => true,
        (None, Some(_)) => false,
        // Both far behind: go back once, and upwards from there.
        (None, None) => a.sector <= b.sector,
    }
}

impl Bfq {
    /// The better of two requests, one of which may be none.
    pub(super) fn choose(
        &self,
        a: Option<RequestId>,
        b: Option<RequestId>,
        from: Sector,
    ) -> Option<RequestId> {
        let (Some(first), Some(second)) = (a, b) else { return a.or(b) };
        if first == second {
            return b;
        }
        let candidate =
            |id: RequestId| Candidate { sync: self.slots[id].sync, sector: self.slots[id].sector };
        let (back_max, penalty) = (self.tuning.back_seek_max_sectors, self.tuning.back_seek_penalty);
        let better = first_is_better(candidate(first), candidate(second), from, back_max, penalty);
        Some(if better { first } else { second })
    }

    /// The request after `last`, which still waits: the oldest if it has waited for too long,
    /// else the nearest to where `last` begins.
    pub(super) fn find_next(&mut self, q: QueueId, last: RequestId) -> Option<RequestId> {
        if let Some(expired) = self.check_fifo(q, last) {
            return Some(expired);
        }
        let from = self.slots[last].sector;
        let sorted = &self.queues[q.index()].sorted;
        let below = sorted.below(from, last);
        let above = sorted
            .above(from, last)
            .or_else(|| sorted.at_or_above(Sector(0)).filter(|&lowest| lowest != last));
        self.choose(above, below, from)
    }

    /// The head of the FIFO if its time has come; asked once per slice.
    fn check_fifo(&mut self, q: QueueId, last: RequestId) -> Option<RequestId> {
        let queue = &mut self.queues[q.index()];
        if std::mem::replace(&mut queue.fifo_checked, true) {
            return None;
        }
        queue.fifo.first().filter(|&oldest| oldest != last && self.slots[oldest].fifo_time <= self.clock.now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn better(a: u64, b: u64, from: u64) -> bool {
        let sync = |sector| Candidate { sync: true, sector: Sector(sector) };
        first_is_better(sync(a), sync(b), Sector(from), 1000, 2)
    }

    #[test]
    fn a_step_down_costs_twice_one_up_and_a_leap_down_is_the_last_resort() {
        assert!(better(1100, 940, 1000));
        assert!(!better(1100, 960, 1000));
        assert!(better(1100, 950, 1000), "as far: upwards");
        assert!(better(9_000_000, 8998, 10_000) && !better(8998, 9_000_000, 10_000));
        assert!(better(10, 20, 10_000), "both far behind: the lowest");
    }

    #[test]
    fn synchronous_requests_go_before_asynchronous_ones() {
        let at = |sync, sector| Candidate { sync, sector: Sector(sector) };
        assert!(first_is_better(at(true, 10), at(false, 1000), Sector(1000), 1000, 2));
        assert!(!first_is_better(at(false, 1000), at(true, 10), Sector(1000), 1000, 2));
    }
}
