//! Weight-raising: a queue that looks interactive or soft real-time is served before others.
//!
//! Follows `bfq_update_bfqq_wr_on_rq_arrival`, `bfq_update_wr_data` and what they call in Linux
//! 7.3.
//!
//! * **Interactive** is a queue that gets a request after two seconds without I/O. Its weight is
//!   multiplied by 30 for as long as it takes to load a large program: 3 to 25 s, shorter on a
//!   faster disk. Raising ends early after 60 MB.
//! * **Soft real-time** is a queue that asks for at most 7000 sectors/s and waits for its requests
//!   to complete before it continues, as a player does. Its weight is multiplied by 3000 for 300
//!   ms, again and again. When this ends before the interactive span that it replaced, the queue is
//!   interactive again.
//!
//! [`Raising`] is one queue's state; [`Spans`] are the times for all queues. `raise.rs` decides
//! which arrivals raise a queue, and how weights and budgets change.

use super::clock::{Clock, Jiffies, LONG_AGO};
use super::peak_rate::{PeakRate, REF_RATE};
use crate::scheduler::bfq::tunables::Tuning;

/// The weight factor of an interactive queue (`bfq_wr_coeff`).
pub(in crate::scheduler::bfq) const INTERACTIVE: u32 = 30;
/// The weight factor of a soft real-time queue (`BFQ_SOFTRT_WEIGHT_FACTOR`).
pub(in crate::scheduler::bfq) const SOFT_RT: u32 = INTERACTIVE * 100;
/// `bfq_wr_rt_max_time`.
const SOFT_RT_MS: u64 = 300;
/// `bfq_wr_min_idle_time`.
const MIN_IDLE_MS: u64 = 2000;
/// `bfq_wr_min_inter_arr_async`.
const MIN_INTER_ARRIVAL_ASYNC_MS: u64 = 500;
/// The bounds of an interactive span.
const LEAST_MS: u64 = 3000;
const MOST_MS: u64 = 25_000;
/// Sectors that an interactive queue may get while raised (`max_service_from_wr`).
const MAX_SERVICE: u64 = 120_000;
/// How long the reference disks take to load a large program: rotational, not rotational.
const REF_DURATION_MS: [u64; 2] = [7000, 2500];

/// Times of weight-raising, in ticks.
#[derive(Clone, Copy, Debug)]
pub(in crate::scheduler::bfq) struct Spans {
    soft_rt: Jiffies,
    min_idle: Jiffies,
    min_inter_arrival_async: Jiffies,
    least: Jiffies,
    most: Jiffies,
    /// The reference disk's rate times its duration.
    rate_duration: u64,
}

impl Spans {
    pub fn new(tuning: &Tuning) -> Spans {
        let kind = usize::from(!tuning.rotational);
        let ticks = |ms| tuning.ticks_of_ms(ms);
        Spans {
            soft_rt: ticks(SOFT_RT_MS),
            min_idle: ticks(MIN_IDLE_MS),
            min_inter_arrival_async: ticks(MIN_INTER_ARRIVAL_ASYNC_MS),
            least: ticks(LEAST_MS),
            most: ticks(MOST_MS),
            rate_duration: u64::from(REF_RATE[kind]) * ticks(REF_DURATION_MS[kind]) as u64,
        }
    }

    /// A queue without I/O for this long may be interactive.
    #[inline]
    pub fn min_idle(&self) -> Jiffies {
        self.min_idle
    }

    /// How long an interactive queue stays raised.
    pub fn interactive(&self, rate: &PeakRate) -> Jiffies {
        let duration = self.rate_duration / u64::from(rate.rate());
        (duration as Jiffies).clamp(self.least, self.most)
    }
}

/// The weight-raising of one queue.
#[derive(Clone, Copy, Debug)]
pub(in crate::scheduler::bfq) struct Raising {
    /// The factor of the weight; 1: not raised.
    coefficient: u32,
    /// The longest time to stay raised.
    span: Jiffies,
    /// When raising began; while not raised, when it last ended.
    since: Jiffies,
    /// When the interactive raising began that this soft real-time raising replaced.
    interactive_since: Jiffies,
    /// Sectors served while raised.
    service: u64,
}

impl Raising {
    /// The state of a queue whose weight was never raised.
    pub fn new(since: Jiffies) -> Raising {
        Raising { coefficient: 1, span: 0, since, interactive_since: LONG_AGO, service: 0 }
    }

    #[inline]
    pub fn coefficient(&self) -> u32 {
        self.coefficient
    }

    #[inline]
    pub fn is_raised(&self) -> bool {
        self.coefficient > 1
    }

    #[inline]
    pub fn is_interactive(&self) -> bool {
        self.coefficient == INTERACTIVE
    }

    /// The current span is the soft real-time span.
    #[inline]
    pub fn is_soft_rt(&self, spans: &Spans) -> bool {
        self.span == spans.soft_rt
    }

    /// The queue is served these sectors.
    #[inline]
    pub fn served(&mut self, sectors: u32) {
        if self.is_raised() {
            self.service += u64::from(sectors);
        }
    }

    /// The current state, raised or not, starts again now.
    #[inline]
    pub fn restart(&mut self, clock: &Clock) {
        self.since = clock.jiffies;
    }

    /// A queue that was not raised looks interactive.
    pub fn begin_interactive(&mut self, duration: Jiffies) {
        self.service = 0;
        self.raise_to_interactive(duration);
    }

    /// The queue looks interactive; its state before does not matter.
    pub fn raise_to_interactive(&mut self, duration: Jiffies) {
        self.coefficient = INTERACTIVE;
        self.span = duration;
    }

    /// A queue that was not raised looks soft real-time.
    pub fn begin_soft_rt(&mut self, spans: &Spans) {
        self.interactive_since = LONG_AGO;
        self.span = spans.soft_rt;
        self.coefficient = SOFT_RT;
    }

    /// A raised queue looks soft real-time: the soft real-time span begins, or begins again. True
    /// if the queue was interactive until now.
    pub fn go_on_soft_rt(&mut self, spans: &Spans, clock: &Clock) -> bool {
        let begins = !self.is_soft_rt(spans);
        if begins {
            self.interactive_since = self.since;
            self.span = spans.soft_rt;
            self.coefficient = SOFT_RT;
        }
        self.since = clock.jiffies;
        begins
    }

    /// Ends the raising and its span.
    pub fn end(&mut self, clock: &Clock) {
        self.span = 0;
        self.since = clock.jiffies;
        self.coefficient = 1;
    }

    /// Ends the raising, but not its span.
    pub fn suspend(&mut self) {
        self.coefficient = 1;
    }

    /// The soft real-time span is over, but not the interactive span that it replaced.
    pub fn back_to_interactive(&mut self, duration: Jiffies) {
        self.raise_to_interactive(duration);
        self.since = self.interactive_since;
    }

    /// The span is over.
    pub fn is_over(&self, clock: &Clock) -> bool {
        clock.is_past(self.since + self.span)
    }

    /// The interactive span of `duration` before the soft real-time span is over too.
    pub fn is_interactive_over(&self, duration: Jiffies, clock: &Clock) -> bool {
        clock.is_past(self.interactive_since + duration)
    }

    /// An interactive queue has got as many sectors as loading a program needs.
    pub fn has_got_enough(&self, spans: &Spans) -> bool {
        self.is_raised() && !self.is_soft_rt(spans) && self.service > MAX_SERVICE
    }

    /// The pause is over after which an asynchronous request looks interactive.
    pub fn is_async_pause_over(&self, spans: &Spans, clock: &Clock) -> bool {
        clock.is_past(self.since + spans.min_inter_arrival_async)
    }

    /// A soft real-time queue that has waited for its turn since `waits` comes into service: it
    /// stays raised longer by that time.
    pub fn do_not_count_waiting(&mut self, waits: Jiffies, spans: &Spans, clock: &Clock) {
        let now = clock.jiffies;
        if self.is_raised() && self.is_soft_rt(spans) && self.since < now && waits < now {
            self.since = if waits > self.since { self.since + now - waits } else { now };
        }
    }

    /// The state after a raised queue was merged into this queue, which is not raised.
    pub fn taken_over(&self, from: &Raising) -> Raising {
        Raising { service: self.service, ..*from }
    }

    /// The state of a queue that would have been raised without its immediate merge.
    pub fn as_new_interactive(&self, duration: Jiffies, clock: &Clock) -> Raising {
        let service = self.service;
        Raising { coefficient: INTERACTIVE, span: duration, service, ..Raising::new(clock.jiffies) }
    }

    /// The state saved before a merge, with this queue's coefficient.
    pub fn resumed(&self, saved: &Raising) -> Raising {
        Raising { coefficient: self.coefficient, ..*saved }
    }
}

#[cfg(test)]
mod tests {
    use super::super::seek::DiskKind;
    use super::super::testing::tuning;
    use super::*;
    use crate::units::Nanos;

    fn world() -> (Spans, Clock) {
        let tuning = tuning(&[]);
        (Spans::new(&tuning), Clock::new(tuning.ticks))
    }

    #[test]
    fn an_interactive_span_is_as_long_as_the_disk_takes_to_load_a_program() {
        let (spans, _) = world();
        // The first estimate is two thirds of the reference disk's rate.
        let rate = PeakRate::new(DiskKind { rotational: true });
        assert_eq!(spans.interactive(&rate), 14_000 * 7000 / 9333);
    }

    #[test]
    fn a_soft_real_time_span_that_took_over_from_an_interactive_one_gives_it_back() {
        let (spans, mut clock) = world();
        let mut raising = Raising::new(clock.jiffies);
        raising.begin_interactive(10_000);
        clock.set(Nanos::from_millis(1000));
        assert!(raising.go_on_soft_rt(&spans, &clock));
        assert_eq!(raising.coefficient(), SOFT_RT);
        clock.set(Nanos::from_millis(1200));
        assert!(!raising.go_on_soft_rt(&spans, &clock), "it goes on");
        clock.set(Nanos::from_millis(1500));
        assert!(!raising.is_over(&clock));
        clock.set(Nanos::from_millis(1501));
        assert!(raising.is_over(&clock) && !raising.is_interactive_over(10_000, &clock));
        raising.back_to_interactive(10_000);
        assert!(raising.is_interactive() && !raising.is_soft_rt(&spans));
        clock.set(Nanos::from_millis(10_000));
        assert!(!raising.is_over(&clock));
        clock.set(Nanos::from_millis(10_001));
        assert!(raising.is_over(&clock), "counted from where it began");
    }

    #[test]
    fn sixty_megabytes_are_enough_for_an_interactive_queue() {
        let (spans, _) = world();
        let mut raising = Raising::new(0);
        raising.served(200_000);
        raising.begin_interactive(10_000);
        raising.served(120_000);
        assert!(!raising.has_got_enough(&spans));
        raising.served(1);
        assert!(raising.has_got_enough(&spans));
        raising.begin_soft_rt(&spans);
        assert!(!raising.has_got_enough(&spans));
    }

    #[test]
    fn a_soft_real_time_queue_is_raised_for_longer_by_the_time_that_it_waited_for_its_turn() {
        let (spans, mut clock) = world();
        let mut raising = Raising::new(clock.jiffies);
        raising.begin_soft_rt(&spans);
        let begun = clock.jiffies;
        clock.set(Nanos::from_millis(250));
        raising.do_not_count_waiting(begun + 100, &spans, &clock);
        clock.set(Nanos::from_millis(450));
        assert!(!raising.is_over(&clock), "300 ms and 150 ms of waiting");
        clock.set(Nanos::from_millis(451));
        assert!(raising.is_over(&clock));
    }
}
