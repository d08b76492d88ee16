//! The wait for the active queue's next request.
//!
//! The active queue is empty, and the disk idles although other queues have requests: the next
//! request of the process will probably be close. The wait ends when the request comes, when the
//! timer expires, or when the queue loses its turn. Under CFQ of Linux 4.12 a request of one page does not
//! end it while no other queue is busy, because it may still grow by merges; so the wait has an end that is
//! noted (once) and a timer that may run on.
//!
//! Whether a wait pays is decided elsewhere: by the queue's idle window and by the scheduler.
//!
//! Follows the flag `wait_request` and the timer `idle_slice_timer` of Linux 4.12, which is set in
//! `cfq_arm_slice_timer` and stopped in `cfq_del_timer`, `__cfq_set_active_queue` and
//! `__cfq_slice_expired`; they are the same in 2.6.28, but for requests of one page. The kernel has the flag in each queue; only that of the active queue is
//! ever set.

use crate::units::Nanos;

/// The wait, if there is one.
#[derive(Debug)]
pub(in crate::scheduler) struct Idling {
    /// The active queue's next request is waited for (`wait_request`).
    waits: bool,
    /// When the timer expires.
    timer: Nanos,
    /// The end of the wait is still to be noted.
    to_note: bool,
}

impl Idling {
    pub const NONE: Idling = Idling { waits: false, timer: Nanos::NEVER, to_note: false };

    pub fn begin(&mut self, until: Nanos) {
        *self = Idling { waits: true, timer: until, to_note: true };
    }

    /// The request comes, or the queue loses its turn.
    pub fn stop(&mut self) {
        self.waits = false;
        self.timer = Nanos::NEVER;
    }

    /// The timer expires; the wait ends only if the queue loses its turn.
    pub fn timer_expired(&mut self) {
        self.timer = Nanos::NEVER;
    }

    /// Waits for the active queue's next request.
    #[inline]
    pub fn waits(&self) -> bool {
        self.waits
    }

    /// The timer runs: the disk idles.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.timer != Nanos::NEVER
    }

    /// When the timer expires.
    #[inline]
    pub fn timer(&self) -> Nanos {
        self.timer
    }

    /// Whether the end of the wait is to be noted now.
    pub fn take_note(&mut self) -> bool {
        std::mem::take(&mut self.to_note)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_lasts_until_it_is_stopped() {
        let mut idling = Idling::NONE;
        assert!(!idling.is_on() && !idling.waits());
        idling.begin(Nanos(8));
        assert!(idling.is_on() && idling.waits());
        assert_eq!(idling.timer(), Nanos(8));
        idling.stop();
        assert!(!idling.is_on() && !idling.waits());
    }

    #[test]
    fn after_the_timer_the_queue_s_request_is_still_the_one_waited_for() {
        let mut idling = Idling::NONE;
        idling.begin(Nanos(8));
        idling.timer_expired();
        assert!(!idling.is_on() && idling.waits());
        assert_eq!(idling.timer(), Nanos::NEVER);
    }

    #[test]
    fn the_end_of_a_wait_is_noted_once() {
        let mut idling = Idling::NONE;
        assert!(!idling.take_note());
        idling.begin(Nanos(8));
        assert!(idling.take_note());
        idling.stop();
        assert!(!idling.take_note());
    }
}
