//! The lengths of slices, by kind and level, and what follows from them.
//!
//! A level above or below 4 makes a slice a fifth longer or shorter: with `slice_sync` of 100 ms, level 0 has
//! 180 ms and level 7 has 40. A queue with a shorter slice than the longest is also due later, by the
//! difference for each other busy queue, so that low levels get fewer turns too.
//!
//! Follows `cfq_prio_slice`, `cfq_slice_offset` and `cfq_prio_to_maxrq` of Linux 2.6.28, with their integers:
//! a fifth is in whole ticks, and a lag below zero, which needs a `slice_async` longer than `slice_sync`, is
//! one of 32 bits without a sign: such queues come last of all.

/// A level changes a slice by a part of this size (`CFQ_SLICE_SCALE`).
const SCALE: i32 = 5;

/// The settings of slices, in ticks.
#[derive(Clone, Copy, Debug)]
pub(in crate::scheduler::cfq_2008) struct Lengths {
    /// Asynchronous, synchronous.
    slice: [i32; 2],
    slice_async_rq: u32,
}

impl Lengths {
    pub fn new(slice: [u64; 2], slice_async_rq: u32) -> Lengths {
        Lengths { slice: slice.map(|ticks| ticks as i32), slice_async_rq }
    }

    fn of(&self, sync: bool, level: u8) -> i32 {
        let base = self.slice[usize::from(sync)];
        base.wrapping_add((base / SCALE).wrapping_mul(4 - i32::from(level)))
    }

    /// The length of a slice.
    pub fn nominal(&self, sync: bool, level: u8) -> i64 {
        self.of(sync, level).into()
    }

    /// How much later than now a queue is due beside `others` busy queues.
    pub fn lag(&self, sync: bool, level: u8, others: u32) -> i64 {
        let shorter = self.of(true, 0).wrapping_sub(self.of(sync, level));
        others.wrapping_mul(shorter as u32).into()
    }

    /// Asynchronous requests after which a turn ends.
    pub fn async_requests(&self, level: u8) -> u32 {
        self.slice_async_rq.wrapping_mul(2 * (8 - u32::from(level)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LENGTHS: Lengths = Lengths { slice: [40, 100], slice_async_rq: 2 };

    #[test]
    fn a_level_is_worth_a_fifth_of_a_slice() {
        assert_eq!([0, 4, 7].map(|level| LENGTHS.nominal(true, level)), [180, 100, 40]);
        assert_eq!([0, 4, 7].map(|level| LENGTHS.nominal(false, level)), [72, 40, 16]);
    }

    #[test]
    fn a_fifth_is_in_whole_ticks() {
        let coarse = Lengths { slice: [4, 24], ..LENGTHS };
        assert_eq!([coarse.nominal(true, 0), coarse.nominal(false, 0)], [24 + 4 * 4, 4]);
    }

    #[test]
    fn short_slices_are_due_later_for_each_other_busy_queue() {
        assert_eq!([0, 1, 5].map(|others| LENGTHS.lag(true, 4, others)), [0, 80, 400]);
        assert_eq!([0, 7].map(|level| LENGTHS.lag(true, level, 2)), [0, 280]);
        assert_eq!(LENGTHS.lag(false, 4, 1), 140);
    }

    #[test]
    fn asynchronous_slices_that_are_longer_than_synchronous_ones_come_last() {
        let long = Lengths { slice: [1000, 100], ..LENGTHS };
        assert!(long.lag(false, 4, 1) > 1 << 31);
    }

    #[test]
    fn high_levels_may_send_more_asynchronous_requests() {
        assert_eq!([0, 4, 7].map(|level| LENGTHS.async_requests(level)), [32, 16, 4]);
    }
}
