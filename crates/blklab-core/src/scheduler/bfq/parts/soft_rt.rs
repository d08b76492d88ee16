//! When a queue may count as soft real-time, and for how long it has done I/O.
//!
//! A soft real-time process (a player) reads a bounded amount, then pauses. So after a queue has
//! become idle, its next request may count as soft real-time only from a certain time on: so late
//! that the sectors served since the queue was last idle keep to the highest soft real-time rate,
//! and later than the disk would idle for a process that simply thinks. The time is set when the
//! queue has become idle and its last request has completed.
//!
//! The same count of sectors shows since when a queue does I/O without a pause: after some time it no longer
//! looks for cooperators.
//!
//! Follows `soft_rt_next_start`, `last_idle_bklogged`, `service_from_backlogged` and `first_IO_time`
//! of `bfq_queue` in Linux 7.3: `bfq_bfqq_softrt_next_start`, `bfq_too_late_for_merging`, and of
//! `bfq_bfqq_expire`, `bfq_completed_request` and `bfq_bfqq_served` what concerns these.

use super::super::tunables::Tuning;
use super::clock::{Clock, Jiffies};

/// The highest rate of a soft real-time queue, in sectors per second (`bfq_wr_max_softrt_rate`).
const MAX_RATE: u64 = 7000;
/// A queue that has done I/O for this long no longer looks for cooperators: `HZ / 10` ticks.
const TOO_LATE_PER_SECOND: i64 = 10;

/// The recent I/O of one queue.
#[derive(Clone, Copy, Debug)]
pub(in crate::scheduler::bfq) struct SoftRt {
    /// The earliest time of a soft real-time request (`soft_rt_next_start`).
    earliest: Jiffies,
    /// When the queue last became busy.
    busy_since: Jiffies,
    /// Sectors served since then.
    served: u64,
    first_service: Jiffies,
    /// The completion of the last request sets the time (`softrt_update`).
    at_completion: bool,
}

impl SoftRt {
    /// The state of a queue created at `now`.
    pub fn new(now: Jiffies) -> SoftRt {
        SoftRt { earliest: now, busy_since: 0, served: 0, first_service: 0, at_completion: false }
    }

    /// The queue gets its first request.
    pub fn becomes_busy(&mut self, now: Jiffies) {
        self.busy_since = now;
        self.served = 0;
        self.at_completion = false;
    }

    /// Sectors of the queue are served.
    #[inline]
    pub fn served(&mut self, sectors: u32, now: Jiffies) {
        if self.served == 0 {
            self.first_service = now;
        }
        self.served += u64::from(sectors);
    }

    /// A request may count as soft real-time now.
    #[inline]
    pub fn may_begin(&self, clock: &Clock) -> bool {
        clock.is_past(self.earliest)
    }

    /// From now on a request may count as soft real-time.
    pub fn restart(&mut self, now: Jiffies) {
        self.earliest = now;
    }

    /// The queue has become idle: sets the earliest time (`bfq_bfqq_softrt_next_start`).
    pub fn becomes_idle(&mut self, tuning: &Tuning, clock: &Clock) {
        let hz = tuning.ticks.hz();
        let at_rate = hz * self.served / MAX_RATE;
        let idle = u64::from(tuning.slice_idle_ns) / (1_000_000_000 / hz);
        self.earliest =
            self.earliest.max(self.busy_since + at_rate as Jiffies).max(clock.jiffies + idle as Jiffies + 4);
    }

    /// The queue's last requests are in flight; with their completion it becomes idle.
    pub fn becomes_idle_at_completion(&mut self) {
        self.at_completion = true;
    }

    /// The completion of the last request makes it idle.
    #[inline]
    pub fn is_idle_at_completion(&self) -> bool {
        self.at_completion
    }

    /// The queue has been served for longer than cooperators need to be found
    /// (`bfq_too_late_for_merging`).
    #[inline]
    pub fn is_too_late_to_merge(&self, tuning: &Tuning, clock: &Clock) -> bool {
        let limit = tuning.ticks.hz() as i64 / TOO_LATE_PER_SECOND;
        self.served > 0 && clock.is_past(self.first_service + limit)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::tuning;
    use super::*;
    use crate::units::Nanos;

    fn clock(tuning: &Tuning, ms: u64) -> Clock {
        let mut clock = Clock::new(tuning.ticks);
        clock.set(Nanos::from_millis(ms));
        clock
    }

    /// The milliseconds after 1000 at which a queue may be soft real-time, after it was served so
    /// many sectors from 1000 to 1100 ms.
    fn pause(sectors: u32) -> u64 {
        let tuning = tuning(&[]);
        let mut soft_rt = SoftRt::new(clock(&tuning, 0).jiffies);
        let begun = clock(&tuning, 1000).jiffies;
        soft_rt.becomes_busy(begun);
        soft_rt.served(sectors, begun);
        soft_rt.becomes_idle(&tuning, &clock(&tuning, 1100));
        let may_begin = |&ms: &u64| soft_rt.may_begin(&clock(&tuning, 1000 + ms));
        (0..10_000).step_by(4).find(may_begin).expect("within ten seconds")
    }

    #[test]
    fn a_queue_that_kept_to_the_rate_may_begin_after_a_longer_pause_than_the_disk_idles() {
        assert!((108..=140).contains(&pause(100)), "{} ms", pause(100));
    }

    #[test]
    fn a_queue_above_the_rate_must_pause_until_it_would_have_kept_to_it() {
        assert!((1000..=1010).contains(&pause(7000)), "{} ms", pause(7000));
        assert!((3000..=3010).contains(&pause(21_000)), "{} ms", pause(21_000));
    }

    #[test]
    fn a_queue_that_has_done_io_for_a_tenth_of_a_second_looks_for_no_cooperator() {
        let tuning = tuning(&[]);
        let mut soft_rt = SoftRt::new(0);
        let late = |soft_rt: &SoftRt, ms| soft_rt.is_too_late_to_merge(&tuning, &clock(&tuning, ms));
        assert!(!late(&soft_rt, 10_000), "nothing served");
        soft_rt.served(8, clock(&tuning, 1000).jiffies);
        soft_rt.served(8, clock(&tuning, 1090).jiffies);
        assert!(!late(&soft_rt, 1090) && late(&soft_rt, 1110));
        soft_rt.becomes_busy(clock(&tuning, 1200).jiffies);
        assert!(!late(&soft_rt, 1210));
    }

    #[test]
    fn the_decision_of_a_completion_ends_with_the_next_request() {
        let mut soft_rt = SoftRt::new(0);
        soft_rt.becomes_idle_at_completion();
        assert!(soft_rt.is_idle_at_completion());
        soft_rt.becomes_busy(5);
        assert!(!soft_rt.is_idle_at_completion());
    }
}
