//! The time of a queue's turn: it starts with the turn's first completion, and has a timeout.
//!
//! A budget of sectors alone would let a process that seeks hold the disk for seconds. So a turn also
//! ends `timeout_sync` (or `timeout_async`) after it started, and the queue is charged for its whole
//! budget. At the start of a turn the disk may still be busy with other queues' requests, which must not
//! cost this queue its time; so the time runs from the completion of its own first request.
//!
//! The state is the flag "no request of this turn has completed" and the tick of the timeout. The flag
//! is set when the queue comes into service and cleared at its first completion, which also sets the
//! timeout. The scheduler asks whether it is over before each choice of a request, at each completion
//! and when the idle timer expires. While the flag is set a turn cannot time out, and its rate is not
//! measured.
//!
//! Follows `budget_timeout` and the flag `budget_new` of `bfq_queue` in the patch. Left out: the
//! overflow of `jiffies`.

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
