//! A queue's turn, and its time slice in that turn.
//!
//! A turn begins when the queue becomes active. Its slice does not begin then, but when the first
//! request of the turn completes: until then the disk may still serve requests of the last queue,
//! and the long seek to this queue's data is a cost of changing queues, not of this one. The turn
//! ends when the slice is used up, when the queue has no more requests, or when another queue
//! preempts it. A queue that was cut off keeps the rest of its slice, or owes the time that it
//! overran: its next turn comes so much earlier or later.
//!
//! Within a turn, three exceptions are remembered. The queue may dispatch one request although its
//! slice is used up (the request that the disk idled for, or one that has expired). The FIFO is
//! looked at once. And the slice of a group's last queue may be extended by an idle wait that keeps
//! the group busy.
//!
//! The group pays for the turn: for the time from the slice's start, at most the slice; if no
//! request has completed, for the time since the turn began, and at least a tick.
//!
//! Follows the slice fields of `cfq_queue` in Linux 4.12 and the functions that work on them:
//! `__cfq_set_active_queue`, `cfq_set_prio_slice`, `cfq_slice_used`, `cfq_slice_used_soon`,
//! `cfq_cfqq_slice_usage`, and of `__cfq_slice_expired` and `cfq_preempt_queue` what concerns the
//! slice. The length of a slice is in [`lengths`](super::lengths).

use super::super::kinds::Instant;

/// The turn and the slice of one queue.
#[derive(Debug, Default)]
pub(in crate::scheduler::cfq) struct Slice {
    /// When the turn began (`dispatch_start`).
    turn: Instant,
    /// When the first request of the turn completed.
    start: Option<Instant>,
    end: Instant,
    length: u64,
    /// No request of this turn has completed yet (`slice_new`).
    is_new: bool,
    /// Requests and sectors dispatched in this turn.
    requests: u64,
    sectors: u64,
    /// The rest of the last slice; negative if it was overrun (`slice_resid`).
    rest: i64,
    fifo_checked: bool,
    /// One request may go, even if the slice is used up (`must_dispatch`).
    must_dispatch: bool,
    /// Extended to keep the group busy (`wait_busy`).
    keeps_group: bool,
}

impl Slice {
    /// The queue becomes active.
    pub fn turn_begins(&mut self, now: Instant) {
        *self = Slice { turn: now, is_new: true, rest: self.rest, ..Slice::default() };
    }

    /// The first request of the turn completes: the slice starts.
    pub fn starts(&mut self, now: Instant, length: u64) {
        self.start = Some(now);
        self.end = now + length as i64;
        self.length = length;
        self.is_new = false;
    }

    /// The queue preempts the active one: whatever slice it had is not used up.
    pub fn renew(&mut self) {
        self.end = 0;
        self.is_new = true;
    }

    /// The turn is long enough: nothing is left beyond this moment.
    pub fn ends_now(&mut self, now: Instant) {
        self.end = now + 1;
    }

    /// Extends the slice by an idle wait, to keep the group busy.
    pub fn extend(&mut self, until: Instant) {
        self.end = until;
        self.keeps_group = true;
    }

    /// Only extended, to keep the group busy.
    #[inline]
    pub fn only_keeps_group(&self) -> bool {
        self.keeps_group
    }

    /// No request of the turn has completed: the slice has not started.
    #[inline]
    pub fn is_new(&self) -> bool {
        self.is_new
    }

    /// The slice is over (`cfq_slice_used`).
    #[inline]
    pub fn is_used(&self, now: Instant) -> bool {
        !self.is_new && now >= self.end
    }

    /// The slice will be over in `needed` ns, or has not started (`cfq_slice_used_soon`).
    pub fn is_used_soon(&self, now: Instant, needed: u64) -> bool {
        self.is_new || now.saturating_add(needed as i64) > self.end
    }

    /// Not half of the slice is over.
    pub fn is_in_first_half(&self, now: Instant) -> bool {
        self.is_new || self.left(now) as u64 > (now - self.start.unwrap_or(0)) as u64
    }

    /// The rest of the slice; negative if it was overrun.
    #[inline]
    pub fn left(&self, now: Instant) -> i64 {
        self.end - now
    }

    /// A request is dispatched; an exception for one more request is used up.
    pub fn sent(&mut self, sectors: u32) {
        self.requests += 1;
        self.sectors += u64::from(sectors);
        self.must_dispatch = false;
    }

    /// Requests dispatched in this turn.
    #[inline]
    pub fn requests(&self) -> u64 {
        self.requests
    }

    /// Sectors dispatched in this turn.
    #[inline]
    pub fn sectors(&self) -> u64 {
        self.sectors
    }

    /// One request may go, even if the slice is used up.
    pub fn allow_one_more(&mut self) {
        self.must_dispatch = true;
    }

    #[inline]
    pub fn must_dispatch(&self) -> bool {
        self.must_dispatch
    }

    /// Whether to look at the FIFO: once in each turn.
    #[inline]
    pub fn check_fifo(&mut self) -> bool {
        !std::mem::replace(&mut self.fifo_checked, true)
    }

    /// The queue is cut off with this rest of its slice.
    pub fn keep_rest(&mut self, rest: i64) {
        self.rest = rest;
    }

    /// The rest of the last slice, which counts once.
    pub fn take_rest(&mut self) -> i64 {
        std::mem::take(&mut self.rest)
    }

    /// The turn ends.
    pub fn turn_ends(&mut self) {
        self.keeps_group = false;
    }

    /// The slice as it was given.
    #[inline]
    pub fn length(&self) -> u64 {
        self.length
    }

    /// The time that the turn has used (`cfq_cfqq_slice_usage`).
    pub fn used(&self, now: Instant, tick: u64) -> u64 {
        match self.start.filter(|&start| start != now) {
            None => ((now - self.turn) as u64).max(tick),
            Some(start) => ((now - start) as u64).min(self.length),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICK: u64 = 4;

    /// A turn that began at 100, with a slice of 50 from 120 on.
    fn started() -> Slice {
        let mut slice = Slice::default();
        slice.turn_begins(100);
        slice.starts(120, 50);
        slice
    }

    #[test]
    fn a_slice_runs_from_the_first_completion_of_the_turn() {
        let mut slice = Slice::default();
        slice.turn_begins(100);
        assert!(slice.is_new() && !slice.is_used(1_000_000), "nothing has completed");
        assert!(slice.is_used_soon(100, 0) && slice.is_in_first_half(1_000_000));
        slice.starts(120, 50);
        assert!(!slice.is_used(169) && slice.is_used(170));
        assert!(!slice.is_used_soon(160, 10) && slice.is_used_soon(160, 11));
        assert!(slice.is_in_first_half(144) && !slice.is_in_first_half(145));
    }

    #[test]
    fn a_turn_costs_the_time_of_its_slice_or_without_one_at_least_a_tick() {
        let mut slice = Slice::default();
        slice.turn_begins(100);
        assert_eq!((slice.used(101, TICK), slice.used(130, TICK)), (TICK, 30));
        slice.starts(120, 50);
        assert_eq!(slice.used(120, TICK), 20, "the first completion ends the turn: all since it began");
        assert_eq!((slice.used(150, TICK), slice.used(900, TICK)), (30, 50));
    }

    #[test]
    fn the_rest_of_a_slice_lasts_beyond_the_turn_and_counts_once() {
        let mut slice = started();
        slice.keep_rest(slice.left(180));
        slice.turn_ends();
        slice.turn_begins(500);
        assert_eq!((slice.take_rest(), slice.take_rest()), (-10, 0));
    }

    #[test]
    fn the_permission_for_one_more_request_is_used_by_that_request() {
        let mut slice = started();
        slice.allow_one_more();
        assert!(slice.must_dispatch());
        slice.sent(8);
        assert!(!slice.must_dispatch());
        assert_eq!((slice.requests(), slice.sectors()), (1, 8));
        slice.allow_one_more();
        slice.turn_begins(300);
        assert_eq!((slice.must_dispatch(), slice.requests(), slice.sectors()), (false, 0, 0));
    }

    #[test]
    fn the_fifo_is_looked_at_once_in_each_turn() {
        let mut slice = started();
        assert!(slice.check_fifo() && !slice.check_fifo());
        slice.turn_begins(300);
        assert!(slice.check_fifo());
    }

    #[test]
    fn an_extended_slice_is_known_as_such_until_the_turn_ends() {
        let mut slice = started();
        slice.extend(200);
        assert!(slice.only_keeps_group() && !slice.is_used(199) && slice.is_used(200));
        slice.turn_ends();
        assert!(!slice.only_keeps_group());
    }

    #[test]
    fn a_preempting_queue_has_a_slice_that_is_not_used_up() {
        let mut slice = started();
        assert!(slice.is_used(1000));
        slice.renew();
        assert!(!slice.is_used(1000));
        let mut slice = started();
        slice.ends_now(130);
        assert!(!slice.is_used(130) && slice.is_used(131));
    }
}
