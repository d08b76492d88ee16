//! A queue's turns: whether it is busy, what it may use in a turn, and how the last one ended.
//!
//! A queue is busy from its first request until a turn ends without one. A turn is bounded by a
//! budget (the largest that [`budgets`](super::budgets) gives the queue) and by a timeout. While
//! the queue in service is empty, the disk may idle for its next request. A queue that expired
//! without idling, while its next request was expected, may continue where it stopped: if the
//! request comes soon, it keeps the unused budget and its place in the order.
//!
//! One time has two meanings, as in the kernel: during a turn it is the timeout; of an idle queue
//! it is the time since which it has been idle.
//!
//! Follows the flags `busy`, `wait_request` and `non_blocking_wait_rq`, `max_budget` and
//! `budget_timeout` of `bfq_queue` in Linux 7.3.

use super::clock::{Clock, Jiffies, LONG_AGO};

/// The turns of one queue.
#[derive(Clone, Copy, Debug)]
pub(in crate::scheduler::bfq) struct Turn {
    busy: bool,
    /// The disk idles for its next request.
    waits: bool,
    /// It expired while its next request was expected, without idling.
    expected: bool,
    max_budget: i32,
    /// When the budget's timeout passes; for an idle queue, when it became idle.
    timeout: Jiffies,
}

impl Turn {
    /// The state of a queue that was never busy.
    pub fn new(max_budget: i32) -> Turn {
        Turn { busy: false, waits: false, expected: false, max_budget, timeout: LONG_AGO }
    }

    #[inline]
    pub fn is_busy(&self) -> bool {
        self.busy
    }

    /// The queue gets its first request. True if that was expected.
    pub fn becomes_busy(&mut self) -> bool {
        self.busy = true;
        self.take_expected()
    }

    /// The queue enters the order of service (`bfq_activate_bfqq`). True if its request was expected.
    pub fn take_expected(&mut self) -> bool {
        std::mem::take(&mut self.expected)
    }

    /// The turn has ended without a request.
    pub fn becomes_idle(&mut self) {
        self.busy = false;
    }

    /// The disk idles for its next request.
    #[inline]
    pub fn waits(&self) -> bool {
        self.waits
    }

    pub fn begin_to_wait(&mut self) {
        self.waits = true;
    }

    /// The disk does not idle for it any more. True if it did.
    pub fn stop_waiting(&mut self) -> bool {
        std::mem::take(&mut self.waits)
    }

    /// It expires without idling; its next request is expected.
    pub fn expect_request(&mut self) {
        self.expected = true;
    }

    /// Its next request was expected.
    pub fn is_expected(&self) -> bool {
        self.expected
    }

    /// The next request comes too late, or there is no budget left for it.
    pub fn begin_anew(&mut self) {
        self.expected = false;
    }

    /// The budget of a turn, unless its next request needs more.
    #[inline]
    pub fn max_budget(&self) -> i32 {
        self.max_budget
    }

    pub fn set_max_budget(&mut self, sectors: i32) {
        self.max_budget = sectors;
    }

    /// A turn begins, with that time (`bfq_set_budget_timeout`).
    pub fn begins(&mut self, clock: &Clock, span: Jiffies) {
        self.timeout = clock.jiffies + span;
    }

    /// The turn's time is over.
    #[inline]
    pub fn is_over(&self, clock: &Clock) -> bool {
        clock.is_reached(self.timeout)
    }

    /// The rest of the turn's time.
    pub fn time_left(&self, clock: &Clock) -> Jiffies {
        self.timeout - clock.jiffies
    }

    /// The queue has no request, waiting or in flight.
    pub fn idle_from(&mut self, now: Jiffies) {
        self.timeout = now;
    }

    /// The time since which the idle queue has been idle.
    pub fn idle_since(&self) -> Jiffies {
        self.timeout
    }

    /// The idle queue has been idle for longer than that.
    pub fn was_idle_for(&self, span: Jiffies, clock: &Clock) -> bool {
        clock.is_past(self.timeout + span)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::tuning;
    use super::*;
    use crate::units::Nanos;

    fn clock(ms: u64) -> Clock {
        let mut clock = Clock::new(tuning(&[]).ticks);
        clock.set(Nanos::from_millis(ms));
        clock
    }

    #[test]
    fn a_turn_is_over_when_its_time_has_passed() {
        let mut turn = Turn::new(100);
        assert!(turn.is_over(&clock(0)) && turn.was_idle_for(1_000_000, &clock(0)), "never busy");
        let now = clock(1000);
        turn.begins(&now, now.span(Nanos::from_millis(120)));
        assert!(!turn.is_over(&clock(1100)) && turn.is_over(&clock(1120)));
        assert_eq!(turn.time_left(&clock(1040)), now.span(Nanos::from_millis(80)));
    }

    #[test]
    fn an_idle_queue_knows_since_when() {
        let mut turn = Turn::new(100);
        turn.idle_from(clock(1000).jiffies);
        let span = clock(0).span(Nanos::from_millis(200));
        assert!(!turn.was_idle_for(span, &clock(1200)) && turn.was_idle_for(span, &clock(1210)));
        assert_eq!(turn.idle_since(), clock(1000).jiffies);
    }

    #[test]
    fn an_expected_request_is_expected_once() {
        let mut turn = Turn::new(100);
        turn.expect_request();
        assert!(turn.is_expected() && !turn.is_busy());
        assert!(turn.becomes_busy() && turn.is_busy());
        turn.becomes_idle();
        assert!(!turn.is_busy() && !turn.becomes_busy());
        turn.expect_request();
        turn.begin_anew();
        assert!(!turn.is_expected());
    }

    #[test]
    fn a_wait_is_stopped_once() {
        let mut turn = Turn::new(100);
        assert!(!turn.stop_waiting());
        turn.begin_to_wait();
        assert!(turn.waits() && turn.stop_waiting() && !turn.waits());
    }
}
