//! What a queue shows about its process: whether it comes back soon, whether it always has
//! requests, and how many requests of other queues may be injected while the disk idles for it.
//!
//! This is the part of a queue's state that belongs to the process: it is saved when queues merge,
//! and restored after a split.
//!
//! Follows `bfq_update_has_short_ttime` of Linux 7.3; the rules of the measures are in
//! [`pace`](super::pace) and [`injection`](super::injection).

use super::clock::Clock;
use super::injection::{InjectLimit, Measured};
use super::pace::{Intensity, ThinkTime};

/// The measures of one process.
#[derive(Clone, Copy, Debug)]
pub(in crate::scheduler::bfq) struct Learnt {
    has_short_ttime: bool,
    ttime: ThinkTime,
    intensity: Intensity,
    inject_limit: InjectLimit,
}

impl Learnt {
    /// Before the first request.
    pub fn nothing() -> Learnt {
        Learnt {
            has_short_ttime: false,
            ttime: ThinkTime::default(),
            intensity: Intensity::new(0),
            inject_limit: InjectLimit::default(),
        }
    }

    /// The state of a new queue. `comes_back`: its process is assumed to come back soon until measured.
    pub fn new(comes_back: bool, clock: &Clock) -> Learnt {
        Learnt {
            has_short_ttime: comes_back,
            ttime: ThinkTime::new(clock.now, clock.stands_still),
            intensity: Intensity::new(clock.now),
            inject_limit: InjectLimit::new(clock),
        }
    }

    /// The process comes back soon: idling for it pays.
    #[inline]
    pub fn has_short_ttime(&self) -> bool {
        self.has_short_ttime
    }

    /// The queue always has requests.
    #[inline]
    pub fn is_io_bound(&self) -> bool {
        self.intensity.is_io_bound()
    }

    /// When the last request completed.
    #[inline]
    pub fn last_end(&self) -> u64 {
        self.ttime.last_end()
    }

    /// A request completes.
    #[inline]
    pub fn completed(&mut self, now: u64) {
        self.ttime.ended(now);
    }

    /// A request comes to a queue that had none, waiting or in flight.
    pub fn returned(&mut self, now: u64, slice_idle_ns: u32) {
        self.ttime.sample(now, slice_idle_ns);
    }

    /// Decides whether idling for the process is worth it (`bfq_update_has_short_ttime`). True if
    /// the limit of injection is then out of date.
    pub fn judge_think_time(&mut self, slice_idle_ns: u32, clock: &Clock) -> bool {
        let short = !self.ttime.is_long(slice_idle_ns);
        let changed = std::mem::replace(&mut self.has_short_ttime, short) != short;
        changed && self.inject_limit.is_outdated_by_thinking(short, clock)
    }

    /// A request comes: does the queue always have some (`bfq_update_io_intensity`)? `is_empty`: it
    /// had none, waiting or in flight. `is_first`: the first request of a new queue.
    pub fn request(&mut self, now: u64, is_empty: bool, is_first: bool) {
        let idle_since = is_empty.then(|| self.ttime.last_end());
        self.intensity.request(now, idle_since, is_first);
    }

    /// The queue is merged into another, which is I/O bound if either was.
    pub fn pass_on_to(&mut self, other: &mut Learnt) {
        self.intensity.pass_on_to(&mut other.intensity);
    }

    /// How much may be injected.
    #[inline]
    pub fn inject_limit(&self) -> &InjectLimit {
        &self.inject_limit
    }

    /// The limit of injection is learned again.
    pub fn reset_inject_limit(&mut self, clock: &Clock) {
        self.inject_limit.reset(self.has_short_ttime, clock);
    }

    /// A request shows how injection changes its service time.
    pub fn learn_inject_limit(
        &mut self,
        measured: Measured,
        in_driver: u32,
        max_in_driver: u32,
        clock: &Clock,
    ) {
        self.inject_limit.learn(measured, in_driver, max_in_driver, clock);
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::tuning;
    use super::*;
    use crate::units::Nanos;

    const SLICE_IDLE_NS: u32 = 8_000_000;

    fn learnt() -> (Learnt, Clock) {
        let mut clock = Clock::new(tuning(&[]).ticks);
        clock.set(Nanos::from_millis(1000));
        (Learnt::new(true, &clock), clock)
    }

    #[test]
    fn a_process_comes_back_soon_until_its_think_times_are_long() {
        let (mut learnt, mut clock) = learnt();
        learnt.judge_think_time(SLICE_IDLE_NS, &clock);
        assert!(learnt.has_short_ttime(), "nothing is known");
        for turn in 0..10 {
            learnt.completed(clock.now);
            clock.set(Nanos::from_millis(1000 + (turn + 1) * 7));
            learnt.returned(clock.now, SLICE_IDLE_NS);
        }
        learnt.judge_think_time(SLICE_IDLE_NS, &clock);
        assert!(!learnt.has_short_ttime());
    }

    #[test]
    fn a_queue_without_pauses_is_io_bound_and_passes_that_on() {
        let ((mut idle, _), (mut busy, clock)) = (learnt(), learnt());
        idle.completed(clock.now);
        idle.request(clock.now + 1_000_000_000, true, false);
        busy.request(clock.now + 1_000_000_000, false, false);
        assert!(!idle.is_io_bound() && busy.is_io_bound());
        busy.pass_on_to(&mut idle);
        assert!(idle.is_io_bound() && !busy.is_io_bound());
    }
}
