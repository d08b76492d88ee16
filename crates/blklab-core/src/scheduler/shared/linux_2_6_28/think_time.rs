//! Think time: how long a process takes from a completion to its next request, in ticks.
//!
//! Idling for a process whose think time is longer than `slice_idle` is in vain: the timer expires
//! before the request comes. So such a process has no idle window
//! ([`idle_window`](super::idle_window)).
//!
//! The state of a process is the tick of its last completion, and a mean of its think times, in which
//! each new one counts an eighth. The mean is kept as two sums in 256ths, of samples and of ticks. A synchronous completion sets the tick; each request that comes adds a sample,
//! at most twice `slice_idle`, so that one long pause does not hide the short ones after it. Before the
//! third request there is no answer, and the window stays as it is.
//!
//! A process with several requests in flight need not have thought at all: each of its requests is
//! counted from the latest completion, whichever request that was.
//!
//! Follows `cfq_update_io_thinktime`. Left out: nothing. As in the kernel, a think time
//! shorter than a tick counts as none or as one tick.

/// A mean of more samples than this (in 256ths, weighted) is valid.
const ENOUGH: u32 = 80;

/// The think time of one process.
#[derive(Clone, Copy, Debug)]
pub(in crate::scheduler) struct ThinkTime {
    /// The tick of the last completion.
    last_end: u64,
    samples: u32,
    total: u64,
    mean: u64,
}

impl ThinkTime {
    /// The think time of a process that starts in this tick.
    pub fn since(tick: u64) -> ThinkTime {
        ThinkTime { last_end: tick, samples: 0, total: 0, mean: 0 }
    }

    /// A request comes; a pause longer than twice `slice_idle` counts as that.
    pub fn request(&mut self, tick: u64, slice_idle: u64) {
        let time = (tick - self.last_end).min(2 * slice_idle);
        self.samples = (7 * self.samples + 256) / 8;
        self.total = (7 * self.total + 256 * time) / 8;
        self.mean = (self.total + 128) / u64::from(self.samples);
    }

    /// A synchronous request completes.
    #[inline]
    pub fn completed(&mut self, tick: u64) {
        self.last_end = tick;
    }

    /// True if the mean is longer; `None` while it is not valid.
    pub fn is_longer(&self, ticks: u64) -> Option<bool> {
        (self.samples > ENOUGH).then_some(self.mean > ticks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn think_time_is_believed_after_three_requests_and_follows_the_process() {
        let mut think = ThinkTime::since(0);
        let mut ask = |after: u64| {
            think.request(think.last_end + after, 8);
            think.is_longer(8)
        };
        assert_eq!([ask(40), ask(40), ask(40)], [None, None, Some(true)]);
        assert_eq!([ask(0), ask(0), ask(0)], [Some(true), Some(true), Some(false)]);
    }

    #[test]
    fn a_pause_is_counted_from_the_last_completion() {
        let mut think = ThinkTime::since(0);
        for turn in 1..=30 {
            think.completed(turn * 1000);
            think.request(turn * 1000 + 3, 8);
        }
        assert_eq!((think.is_longer(2), think.is_longer(3)), (Some(true), Some(false)));
    }
}
