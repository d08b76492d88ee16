//! How long turns last: the slice of a queue, and the time for which one workload type is served.
//!
//! A queue's *nominal* slice is `slice_sync` or `slice_async` at level 4, a fifth more or less for
//! each level above or below. With `low_latency`, slices are shortened when many queues are busy:
//! all of a group together fit into the group's share of `target_latency`, but none is cut below
//! twice the idle time, since after such a slice the disk would do little but idle.
//!
//! A group's share of a round of `target_latency` is divided among its workload types by their
//! numbers of queues. Asynchronous writes mostly belong to the root, whose weight is large, so their
//! time is also bounded by their number among the queues of all groups, and reduced by the ratio of
//! `slice_async` to `slice_sync`.
//!
//! Follows `cfq_prio_slice`, `cfq_scaled_cfqq_slice`, `cfq_prio_to_maxrq` and the arithmetic of
//! `choose_wl_class_and_type` of Linux 4.12. The means and counts of busy queues come from
//! [`service_trees`](super::service_trees), a group's share from [`shares`](super::shares).

use super::super::kinds::Kind;
use super::super::tunables::Tuned;

/// The tunables that lengths depend on.
#[derive(Clone, Copy, Debug)]
pub(in crate::scheduler::cfq) struct Lengths {
    /// Asynchronous, synchronous.
    slice: [u64; 2],
    slice_async_rq: u32,
    slice_idle: u64,
    target_latency: u64,
    /// A jiffy.
    tick: u64,
}

/// The busy queues among which a group's time is divided.
#[derive(Clone, Copy, Debug)]
pub(in crate::scheduler::cfq) struct Crowd {
    /// Queues of the workload type.
    pub of_kind: u32,
    /// Queues of the class in the group, now or usually.
    pub of_class: u32,
    /// Asynchronous ones in the group.
    pub asynchronous: u32,
    /// All of the disk.
    pub all: u32,
}

impl Lengths {
    pub fn new(tuned: &Tuned, tick: u64) -> Lengths {
        let &Tuned { slice, slice_async_rq, slice_idle, target_latency, .. } = tuned;
        Lengths { slice, slice_async_rq, slice_idle, target_latency, tick }
    }

    /// The nominal slice of a level, 0 (longest) to 7 (`cfq_prio_slice`).
    pub fn nominal(&self, sync: bool, level: u8) -> i64 {
        let base = self.slice[usize::from(sync)];
        base as i64 + (base / 5) as i64 * (4 - i64::from(level))
    }

    /// How much later than the highest level a queue of this level is due, beside `others` busy
    /// queues of its group (`cfq_slice_offset`).
    pub fn lag(&self, sync: bool, level: u8, others: i64) -> i64 {
        others.wrapping_mul(self.nominal(true, 0) - self.nominal(sync, level))
    }

    /// A nominal slice with `low_latency`, in a group with `busy` busy queues and `share` of a round
    /// (`cfq_scaled_cfqq_slice`).
    pub fn shortened(&self, nominal: u64, busy: u32, share: u64) -> u64 {
        let [_, sync_slice] = self.slice;
        let expected = sync_slice.wrapping_mul(busy.into());
        if expected <= share {
            return nominal;
        }
        let low = (2 * self.slice_idle).wrapping_mul(nominal) / sync_slice;
        (nominal.wrapping_mul(share) / expected).max(nominal.min(low))
    }

    /// A workload type's part of the group's share of a round.
    pub fn of_workload(&self, kind: Kind, share: u64, crowd: Crowd) -> u64 {
        let part = share.wrapping_mul(crowd.of_kind.into()) / u64::from(crowd.of_class);
        let part = if kind == Kind::Async {
            let system = self.target_latency.wrapping_mul(crowd.asynchronous.into()) / u64::from(crowd.all);
            let [async_slice, sync_slice] = self.slice;
            part.min(system).wrapping_mul(async_slice) / sync_slice
        } else {
            part.max(2 * self.slice_idle)
        };
        // `CFQ_MIN_TT`
        part.max(2 * self.tick)
    }

    /// Requests in one asynchronous slice (`cfq_prio_to_maxrq`).
    pub fn async_requests(&self, level: u8) -> u64 {
        u64::from(self.slice_async_rq.wrapping_mul(2).wrapping_mul(8 - u32::from(level)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// The defaults on a hard disk.
    const LENGTHS: Lengths = Lengths {
        slice: [40 * MS, 100 * MS],
        slice_async_rq: 2,
        slice_idle: 8 * MS,
        target_latency: 300 * MS,
        tick: 4 * MS,
    };

    #[test]
    fn a_level_is_a_fifth_of_the_slice() {
        let of = |sync| [0, 4, 7].map(|level| LENGTHS.nominal(sync, level) as u64 / MS);
        assert_eq!((of(true), of(false)), ([180, 100, 40], [72, 40, 16]));
    }

    #[test]
    fn low_levels_are_due_later_the_more_queues_are_busy() {
        assert_eq!(LENGTHS.lag(true, 4, 0), 0);
        assert_eq!(LENGTHS.lag(true, 4, 3), 3 * 80 * MS as i64);
        assert!(LENGTHS.lag(true, 7, 3) > LENGTHS.lag(true, 4, 3));
    }

    #[test]
    fn slices_of_many_queues_fit_into_the_share_but_are_no_shorter_than_two_idle_waits() {
        let shortened = |busy| LENGTHS.shortened(100 * MS, busy, 300 * MS) / MS;
        assert_eq!([1, 3, 6, 15, 100].map(shortened), [100, 100, 50, 20, 16]);
        assert_eq!(LENGTHS.shortened(10 * MS, 100, 300 * MS), 16 * MS / 10, "in proportion to its own");
    }

    #[test]
    fn a_round_is_divided_among_the_types_by_queues() {
        let crowd = Crowd { of_kind: 1, of_class: 3, asynchronous: 1, all: 3 };
        assert_eq!(LENGTHS.of_workload(Kind::Sync, 300 * MS, crowd), 100 * MS);
        assert_eq!(LENGTHS.of_workload(Kind::Async, 300 * MS, crowd), 40 * MS);
        let crowded = Crowd { all: 30, ..crowd };
        assert_eq!(LENGTHS.of_workload(Kind::Async, 300 * MS, crowded), 8 * MS, "at least two ticks");
        let little = Crowd { of_class: 300, ..crowd };
        assert_eq!(LENGTHS.of_workload(Kind::Sync, 300 * MS, little), 16 * MS, "at least two idle waits");
    }

    #[test]
    fn high_levels_may_send_more_asynchronous_requests() {
        assert_eq!([0, 4, 7].map(|level| LENGTHS.async_requests(level)), [32, 16, 4]);
    }
}
