//! Injection: while the disk idles for the queue in service, BFQ dispatches requests of other
//! queues, as long as the queue's own requests do not take longer.
//!
//! Follows `bfq_update_inject_limit` and `bfq_reset_inject_limit` of Linux 7.3. Each queue has an
//! [`InjectLimit`]: how many requests may be in flight while the queue is in service and empty. BFQ
//! learns the limit. From time to time it measures how long the queue's next first request takes
//! from arrival to completion, without injection, and again with it. If the request took half as
//! long again, the limit goes down by one, otherwise up. A queue with a long think time begins at
//! one, since its pauses leave room for others.
//!
//! [`Injection`] is the current measurement; there is one, for the queue in service. The scheduler
//! chooses the queue to inject from (`inject.rs`).

use super::clock::{Clock, Jiffies};
use crate::request::RequestId;
use crate::units::Nanos;

/// The limit is learned again after this long without being lowered.
const RESET: Nanos = Nanos::from_millis(1000);
/// The shortest time from lowering the limit to the next measurement.
const MEASURE: Nanos = Nanos::from_millis(10);
/// The shortest time between resets of the limit by a changing think time.
const RESET_BY_THINKING: Nanos = Nanos::from_millis(100);

/// How many requests may be in flight while a queue is in service and empty.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::scheduler::bfq) struct InjectLimit {
    limit: u32,
    /// The time of a first request without injection; 0: not measured.
    alone_ns: u64,
    /// When the limit was last lowered or reset.
    decreased: Jiffies,
}

impl InjectLimit {
    /// The limit of a new queue.
    pub fn new(clock: &Clock) -> InjectLimit {
        InjectLimit { decreased: clock.jiffies, ..InjectLimit::default() }
    }

    #[inline]
    pub fn requests(&self) -> u32 {
        self.limit
    }

    /// The time of a first request without injection is known.
    #[inline]
    pub fn is_measured(&self) -> bool {
        self.alone_ns > 0
    }

    /// Learns the limit again (`bfq_reset_inject_limit`).
    pub fn reset(&mut self, has_short_think_time: bool, clock: &Clock) {
        *self =
            InjectLimit { limit: u32::from(!has_short_think_time), alone_ns: 0, decreased: clock.jiffies };
    }

    /// The limit should be learned again.
    pub fn is_old(&self, clock: &Clock) -> bool {
        self.was_lowered_before(RESET, clock)
    }

    /// The limit may be measured again.
    pub fn may_be_measured(&self, clock: &Clock) -> bool {
        self.was_lowered_before(MEASURE, clock)
    }

    /// The think time has become short or long: the limit should be learned again.
    pub fn is_outdated_by_thinking(&self, has_short_think_time: bool, clock: &Clock) -> bool {
        !self.is_measured() && (self.was_lowered_before(RESET_BY_THINKING, clock) || !has_short_think_time)
    }

    fn was_lowered_before(&self, span: Nanos, clock: &Clock) -> bool {
        clock.is_reached(self.decreased + clock.span(span))
    }

    /// A first request completes. `in_driver`: requests in flight, including this one;
    /// `max_in_driver`: their recent maximum.
    pub fn learn(&mut self, measured: Measured, in_driver: u32, max_in_driver: u32, clock: &Clock) {
        let Measured { took_ns, injected } = measured;
        let (limit, alone) = (self.limit, self.alone_ns);
        if alone > 0 && injected {
            let too_long = took_ns >= (alone * 3) >> 1;
            if too_long && limit > 0 {
                self.limit -= 1;
                self.decreased = clock.jiffies;
            } else if !too_long && limit <= max_in_driver {
                self.limit += 1;
            }
        }
        // The shortest time so far, or the first measurement; below, a new one without injection.
        if alone == 0 && in_driver == 1 || took_ns < alone {
            if alone == 0 {
                self.limit = limit.max(1);
            }
            self.alone_ns = took_ns;
        } else if !injected && in_driver == 1 {
            self.alone_ns = took_ns;
        }
    }
}

/// The time of a measured request, and whether requests were injected meanwhile.
#[derive(Clone, Copy, Debug)]
pub(in crate::scheduler::bfq) struct Measured {
    took_ns: u64,
    injected: bool,
}

/// The measurement of the queue in service.
#[derive(Debug, Default)]
pub(in crate::scheduler::bfq) struct Injection {
    /// Measure the next request that the queue in service dispatches.
    awaits_dispatch: bool,
    watched: Option<RequestId>,
    began: u64,
    /// Requests of other queues were injected since.
    injected: bool,
}

impl Injection {
    /// Requests were injected since the measurement began, or in this slice.
    pub fn has_injected(&self) -> bool {
        self.injected
    }

    /// A request of another queue is injected.
    pub fn inject(&mut self) {
        self.injected = true;
    }

    /// A first request to measure has come; without injection if the disk is idle.
    pub fn begin(&mut self, now: u64, disk_is_idle: bool) {
        self.began = now;
        self.awaits_dispatch = true;
        if disk_is_idle {
            self.injected = false;
        }
    }

    /// The queue in service dispatches a request.
    #[inline]
    pub fn dispatched(&mut self, id: RequestId) {
        if std::mem::take(&mut self.awaits_dispatch) {
            self.watched = Some(id);
        }
    }

    /// A request completes; its measurement, if it is the measured one.
    #[inline]
    pub fn ended(&mut self, id: RequestId, now: u64) -> Option<Measured> {
        if self.watched != Some(id) {
            return None;
        }
        self.watched = None;
        Some(Measured { took_ns: now - self.began, injected: std::mem::take(&mut self.injected) })
    }

    /// The limit was reset: the measurement is no longer valid.
    pub fn stop_watching(&mut self) {
        self.watched = None;
    }

    /// The slice of the queue in service ends.
    pub fn slice_ends(&mut self) {
        *self = Injection { began: self.began, ..Injection::default() };
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::tuning;
    use super::*;

    fn clock() -> Clock {
        Clock::new(tuning(&[]).ticks)
    }

    fn measured(took_ns: u64, injected: bool) -> Measured {
        Measured { took_ns, injected }
    }

    /// Measured without injection: 8 ms.
    fn learnt(clock: &Clock) -> InjectLimit {
        let mut limit = InjectLimit::new(clock);
        limit.learn(measured(8_000_000, false), 1, 4, clock);
        assert_eq!(limit.requests(), 1, "the first measure allows one");
        limit
    }

    #[test]
    fn the_limit_rises_while_injection_does_no_harm_up_to_the_disks_depth() {
        let clock = clock();
        let mut limit = learnt(&clock);
        for expected in [2, 3, 4, 5, 5] {
            limit.learn(measured(11_999_999, true), 2, 4, &clock);
            assert_eq!(limit.requests(), expected);
        }
    }

    #[test]
    fn the_limit_goes_down_when_a_request_takes_half_as_long_again() {
        let clock = clock();
        let mut limit = learnt(&clock);
        for expected in [0, 0] {
            limit.learn(measured(12_000_000, true), 2, 4, &clock);
            assert_eq!(limit.requests(), expected);
        }
        assert!(!limit.may_be_measured(&clock));
    }

    #[test]
    fn a_reset_limit_depends_on_the_think_time() {
        let clock = clock();
        let mut limit = learnt(&clock);
        limit.reset(true, &clock);
        assert_eq!((limit.requests(), limit.is_measured()), (0, false));
        limit.reset(false, &clock);
        assert_eq!(limit.requests(), 1);
    }

    #[test]
    fn only_the_first_request_that_leaves_after_the_beginning_is_measured() {
        let mut injection = Injection::default();
        injection.begin(1000, true);
        injection.inject();
        injection.dispatched(RequestId(1));
        injection.dispatched(RequestId(2));
        assert!(injection.ended(RequestId(2), 5000).is_none());
        let Measured { took_ns, injected } = injection.ended(RequestId(1), 6000).expect("watched");
        assert_eq!((took_ns, injected), (5000, true));
        assert!(!injection.has_injected());
    }

    #[test]
    fn a_slice_that_ends_takes_its_measurement_along() {
        let mut injection = Injection::default();
        injection.begin(0, true);
        injection.dispatched(RequestId(1));
        injection.slice_ends();
        assert!(injection.ended(RequestId(1), 1).is_none());
        injection.begin(0, true);
        injection.slice_ends();
        injection.dispatched(RequestId(2));
        assert!(injection.ended(RequestId(2), 1).is_none());
    }
}
