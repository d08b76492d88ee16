//! The pace of a queue: the think time of its process, and whether the queue always has requests.
//! Both show whether idling for the queue pays.
//!
//! Follows `bfq_update_io_thinktime` and `bfq_update_io_intensity` of Linux 7.3. The think time is
//! a weighted mean of the pauses from one completion to the next arrival; each older pause counts
//! 7/8 of the next. A queue is I/O bound if it was without requests for at most a fifth of the
//! time; after 200 ms, older time counts half.

/// The time over which I/O intensity is judged.
const WINDOW_NS: u64 = 200_000_000;

/// The time from one completion to the process's next request (`bfq_ttime`).
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::scheduler::bfq) struct ThinkTime {
    last_end: u64,
    total: u64,
    samples: u64,
    mean: u64,
}

impl ThinkTime {
    /// The think time of a new queue, whose first request comes at the same time. In the kernel the last
    /// completion is one nanosecond later: a very long time before the first request, unless its
    /// clock has moved on by then.
    pub fn new(now: u64, clock_stands: bool) -> ThinkTime {
        ThinkTime { last_end: now + u64::from(clock_stands), ..ThinkTime::default() }
    }

    /// A request of the queue completes.
    #[inline]
    pub fn ended(&mut self, now: u64) {
        self.last_end = now;
    }

    /// When the last one completed.
    #[inline]
    pub fn last_end(&self) -> u64 {
        self.last_end
    }

    /// A request comes to an empty queue.
    pub fn sample(&mut self, now: u64, slice_idle_ns: u32) {
        let elapsed = now.wrapping_sub(self.last_end).min(2 * u64::from(slice_idle_ns));
        self.samples = (7 * self.samples + 256) / 8;
        self.total = (7 * self.total + 256 * elapsed) / 8;
        self.mean = (self.total + 128) / self.samples;
    }

    /// There are enough samples, and their mean is longer than half of `slice_idle`.
    pub fn is_long(&self, slice_idle_ns: u32) -> bool {
        self.samples > 80 && self.mean > u64::from(slice_idle_ns >> 1)
    }
}

/// Whether a queue always has requests.
#[derive(Clone, Copy, Debug)]
pub(in crate::scheduler::bfq) struct Intensity {
    io_bound: bool,
    since: u64,
    idle_ns: u64,
}

impl Intensity {
    /// The state of a new queue: I/O bound until measured.
    pub fn new(now: u64) -> Intensity {
        Intensity { io_bound: true, since: now, idle_ns: 0 }
    }

    #[inline]
    pub fn is_io_bound(&self) -> bool {
        self.io_bound
    }

    /// A request comes. `idle_since`: the time since which the queue was empty; `None`: it was not.
    /// `is_first`: the first request of a new queue.
    pub fn request(&mut self, now: u64, idle_since: Option<u64>, is_first: bool) {
        let total = now - self.since;
        if let Some(idle_since) = idle_since {
            // A process needs at least a nanosecond for its next request. This makes up for the
            // nanosecond by which the very first request may have come too early.
            let idle = now.wrapping_sub(idle_since).max(1);
            self.idle_ns = self.idle_ns.wrapping_add(idle);
        }
        if is_first {
            return;
        }
        self.io_bound = self.idle_ns.wrapping_mul(5) <= total;
        if total > WINDOW_NS {
            self.since = now - (total >> 1);
            self.idle_ns >>= 1;
        }
    }

    /// The queue is merged into that of `other`, which is I/O bound if either was.
    pub fn pass_on_to(&mut self, other: &mut Intensity) {
        other.io_bound |= std::mem::take(&mut self.io_bound);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLICE_IDLE_NS: u32 = 8_000_000;

    /// After `pauses` pauses of `pause_ns`.
    fn think_time(pauses: u64, pause_ns: u64) -> ThinkTime {
        let mut time = ThinkTime::new(0, false);
        for turn in 0..pauses {
            time.ended(turn * 1_000_000_000);
            time.sample(turn * 1_000_000_000 + pause_ns, SLICE_IDLE_NS);
        }
        time
    }

    #[test]
    fn a_think_time_is_long_beyond_half_of_slice_idle_once_it_has_samples() {
        assert!(think_time(9, 4_100_000).is_long(SLICE_IDLE_NS));
        assert!(!think_time(9, 3_900_000).is_long(SLICE_IDLE_NS));
        assert!(!think_time(2, 8_000_000).is_long(SLICE_IDLE_NS), "too few samples");
    }

    #[test]
    fn a_queue_that_pauses_for_more_than_a_fifth_of_the_time_is_not_io_bound() {
        for (pause_us, bound) in [(2000, true), (2100, false)] {
            let mut intensity = Intensity::new(0);
            // One request each 10 ms.
            for turn in 1..100 {
                let now = turn * 10_000_000;
                intensity.request(now, Some(now - pause_us * 1000), false);
            }
            assert_eq!(intensity.is_io_bound(), bound, "{pause_us}");
        }
    }

    #[test]
    fn a_merged_queue_is_io_bound_if_one_of_the_two_was() {
        let (mut idle, mut busy) = (Intensity::new(0), Intensity::new(0));
        idle.request(10, Some(0), false);
        assert!(!idle.is_io_bound());
        busy.pass_on_to(&mut idle);
        assert!(idle.is_io_bound() && !busy.is_io_bound());
    }
}
