//! The time of a queue's turn: it starts with the turn's first completion, and has a timeout.
//!
//! Until then the disk may still be busy with other queues' requests, which must not cost this
//! queue its time. Follows `budget_timeout` and the flag `budget_new` of `bfq_queue` in the patch.

/// The time of one queue's turn, in ticks.
#[derive(Clone, Copy, Debug)]
pub(in crate::scheduler::bfq_2008) struct Turn {
    /// No request of this turn has completed: its time has not started.
    new: bool,
    timeout: u64,
}

impl Turn {
    /// The state of a queue that has had no turn.
    pub const NONE: Turn = Turn { new: false, timeout: 0 };

    /// The queue comes into service.
    pub fn begins(&mut self) {
        self.new = true;
    }

    /// No request of this turn has completed.
    #[inline]
    pub fn is_new(&self) -> bool {
        self.new
    }

    /// The first request completes: the turn is over at `timeout`.
    pub fn starts(&mut self, timeout: u64) {
        *self = Turn { new: false, timeout };
    }

    #[inline]
    pub fn is_over(&self, tick: u64) -> bool {
        !self.new && tick >= self.timeout
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_runs_from_the_first_completion() {
        let mut turn = Turn::NONE;
        turn.begins();
        assert!(turn.is_new() && !turn.is_over(1_000_000));
        turn.starts(1_000_125);
        assert!(!turn.is_new() && !turn.is_over(1_000_124) && turn.is_over(1_000_125));
        turn.begins();
        assert!(!turn.is_over(2_000_000), "the next turn's has not started");
    }
}
