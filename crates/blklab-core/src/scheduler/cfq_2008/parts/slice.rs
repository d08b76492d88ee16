//! The slice of a queue: its end, and the rest of the last one.
//!
//! A turn begins without a slice, which starts when the first request of the turn completes: the disk may
//! have been busy with another queue's requests until then. If another queue ends
//! the turn of a queue, or a completion finds it over, the queue keeps what was left of its slice, or what
//! it overran (below zero). The kernel
//! *adds* that to the time when the queue is due next.
//!
//! Follows `slice_end`, `slice_resid` and the flag `slice_new` of `cfq_queue` in Linux 2.6.28. The sectors
//! are not in the kernel; the journal shows them.

/// The slice of one queue, in ticks.
#[derive(Clone, Copy, Debug)]
pub(in crate::scheduler::cfq_2008) struct Slice {
    /// No request of this turn has completed.
    new: bool,
    end: i64,
    rest: i64,
    sectors: u32,
}

impl Slice {
    /// The state of a queue that has had no turn.
    pub const NONE: Slice = Slice { new: false, end: 0, rest: 0, sectors: 0 };

    /// The queue becomes active.
    pub fn turn_begins(&mut self) {
        self.renew();
        self.sectors = 0;
    }

    /// The queue preempts: it is about to get a slice.
    pub fn renew(&mut self) {
        (self.new, self.end) = (true, 0);
    }

    /// No request of this turn has completed.
    #[inline]
    pub fn is_new(&self) -> bool {
        self.new
    }

    /// The first request completes.
    pub fn starts(&mut self, tick: u64, length: i64) {
        (self.new, self.end) = (false, tick as i64 + length);
    }

    /// The turn has dispatched all that it may.
    pub fn ends_in_a_tick(&mut self, tick: u64) {
        self.end = tick as i64 + 1;
    }

    #[inline]
    pub fn is_used(&self, tick: u64) -> bool {
        !self.new && tick as i64 >= self.end
    }

    /// Keeps what is left of the slice, if it has started.
    pub fn keep_rest(&mut self, tick: u64) {
        if !self.new {
            self.rest = self.end - tick as i64;
        }
    }

    /// The rest of the last slice, which counts once.
    pub fn take_rest(&mut self) -> i64 {
        std::mem::take(&mut self.rest)
    }

    /// A request is dispatched.
    #[inline]
    pub fn sent(&mut self, sectors: u32) {
        self.sectors = self.sectors.saturating_add(sectors);
    }

    /// Sectors of this turn.
    pub fn sectors(&self) -> u32 {
        self.sectors
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slice_runs_from_the_first_completion_of_the_turn() {
        let mut slice = Slice::NONE;
        slice.turn_begins();
        assert!(slice.is_new() && !slice.is_used(1_000_000));
        slice.starts(120, 50);
        assert!(!slice.is_new() && !slice.is_used(169) && slice.is_used(170));
        slice.renew();
        assert!(!slice.is_used(1000), "a queue that preempts gets a new one");
    }

    #[test]
    fn the_rest_of_a_slice_is_what_is_left_or_overrun_and_counts_once() {
        let mut slice = Slice::NONE;
        slice.turn_begins();
        slice.keep_rest(100);
        assert_eq!(slice.take_rest(), 0, "it had not started");
        slice.starts(100, 50);
        for (tick, rest) in [(130, 20), (155, -5)] {
            slice.keep_rest(tick);
            assert_eq!((slice.take_rest(), slice.take_rest()), (rest, 0));
        }
    }

    #[test]
    fn a_turn_counts_its_sectors() {
        let mut slice = Slice::NONE;
        slice.turn_begins();
        slice.sent(8);
        slice.sent(16);
        assert_eq!(slice.sectors(), 24);
        slice.turn_begins();
        assert_eq!(slice.sectors(), 0);
    }
}
