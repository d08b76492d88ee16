//! Writeback throttling (`wbt`): limits the writes of the page cache in flight, so that reads are quick.
//!
//! Follows `blk-wbt.c`, `blk-rq-qos.c` and `blk-stat.c` of Linux 7.3. A write that is not direct takes a
//! place before it takes a tag, and gives it back when its request is freed. Without a place its
//! submitter sleeps, first come, first served. How many of the places a write may use depends on its
//! urgency: all for a process that waits, a quarter in the background. How many there are depends on the
//! reads: after each window of 100 ms the number is halved if even the fastest read took longer than the
//! target, and grows if reads were fast or if there were only writes. A single-queue scheduler and, unless
//! a target is set, bfq have no throttling.
//!
//! Left out: the places for swapping.

#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use crate::request::{Bio, Op, RequestId};
use crate::ticks::Ticks;
use crate::units::Nanos;

/// The number of places that the limits are derived from (`RWB_DEF_DEPTH`).
const DEPTH: u32 = 16;
/// The window that is looked at (`RWB_WINDOW_NSEC`).
const WINDOW: Nanos = Nanos::from_millis(100);
/// Writes in a window from which on reads were slow because of them (`RWB_MIN_WRITE_SAMPLES`).
const WRITES_MIN: u64 = 3;
/// After so many windows that say nothing the limits move towards their initial ones
/// (`RWB_UNKNOWN_BUMP`).
const UNKNOWN_MAX: u32 = 5;
/// More halvings change nothing.
const STEP_MAX: i32 = 31;

/// What a request counts as.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Kind {
    /// A direct write, or no request.
    #[default]
    Untracked,
    /// A read: its latency counts.
    Read,
    /// It has a place among the writes.
    Write,
    /// It has a place among the discards.
    Discard,
}

impl Kind {
    fn of(bio: &Bio) -> Kind {
        match bio.op {
            Op::Read => Kind::Read,
            Op::Discard => Kind::Discard,
            Op::Write if bio.sync && bio.idle => Kind::Untracked,
            Op::Write | Op::Flush => Kind::Write,
        }
    }
}

/// How urgent a write is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Urgency {
    /// A process that waits for it (`REQ_SYNC`).
    Awaited,
    /// The periodic flusher, or the one that keeps dirty memory low (`REQ_BACKGROUND`).
    Background,
    Other,
}

/// A submitter that sleeps for a place.
#[derive(Clone, Copy, Debug)]
struct Sleeper {
    /// See [`crate::request::Bio::owner`].
    actor: u64,
    urgency: Urgency,
}

/// Places of one kind, and the actors that sleep for one.
#[derive(Debug, Default)]
struct Places {
    taken: u32,
    sleepers: VecDeque<Sleeper>,
}

/// Whether an actor has a place for its next bio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// It slept for one and has it now.
    Taken,
    /// It sleeps for one.
    Awaited,
    /// It does not sleep for one yet.
    Unasked,
}

/// What a window has seen of one direction.
#[derive(Debug, Default)]
struct Samples {
    count: u64,
    least: Nanos,
}

impl Samples {
    fn add(&mut self, latency: Nanos) {
        self.least = if self.count == 0 { latency } else { self.least.min(latency) };
        self.count += 1;
    }
}

/// The places of a window, after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Good,
    OnlyWrites,
    Unknown,
    TooSlow,
}

/// The throttle of one disk.
#[derive(Debug)]
pub(super) struct Wbt {
    ticks: Ticks,
    /// Latency of reads that is too long.
    target: Nanos,
    volatile_write_cache: bool,
    /// Commands that the disk takes.
    queue_depth: u32,
    /// Times that the number of places was halved; negative: doubled.
    step: i32,
    /// The number cannot grow further.
    at_most: bool,
    /// Places for writes that a process waits for, for others, and for the background.
    limits: [u32; 3],
    unknown: u32,
    window: Nanos,
    /// When the window ends; `NEVER` if none runs.
    timer: Nanos,
    reads: Samples,
    writes: Samples,
    /// A read in flight, and since when.
    read_in_flight: Option<(RequestId, Nanos)>,
    /// In ticks: a read was last submitted; one has last completed; a process has last paused because of
    /// dirty memory.
    last_read: Option<u64>,
    last_completion: Option<u64>,
    last_pause: Option<u64>,
    writing: Places,
    discarding: Places,
    /// What each request counts as, by its number.
    kinds: Vec<Kind>,
    /// Sleepers that have a place and have not run yet.
    admitted: Vec<u64>,
    /// Those that are to be woken.
    woken: Vec<u64>,
}

impl Wbt {
    pub fn new(target: Nanos, queue_depth: u32, volatile_write_cache: bool, ticks: Ticks) -> Wbt {
        let mut wbt = Wbt {
            ticks,
            target,
            volatile_write_cache,
            queue_depth,
            step: 0,
            at_most: false,
            limits: [0; 3],
            unknown: 0,
            window: WINDOW,
            timer: Nanos::NEVER,
            reads: Samples::default(),
            writes: Samples::default(),
            read_in_flight: None,
            last_read: None,
            last_completion: None,
            last_pause: None,
            writing: Places::default(),
            discarding: Places::default(),
            kinds: Vec::new(),
            admitted: Vec::new(),
            woken: Vec::new(),
        };
        wbt.scale_to(0);
        wbt
    }

    /// When the window ends.
    pub fn timer(&self) -> Nanos {
        self.timer
    }

    /// A process pauses now because of dirty memory (`last_bdp_sleep`).
    pub fn paused(&mut self, now: Nanos) {
        self.last_pause = Some(self.ticks.at(now));
    }

    /// A bio that needs a request of its own: false if there is no place for it (`wbt_wait`).
    pub fn admit(&mut self, now: Nanos, bio: &Bio) -> bool {
        let kind = Kind::of(bio);
        if kind == Kind::Read {
            self.last_read = Some(self.ticks.at(now));
        }
        if let Kind::Untracked | Kind::Read = kind {
            return true;
        }
        let limit = self.limit(kind, urgency(bio), now);
        let places = self.places(kind);
        if !places.sleepers.is_empty() || places.taken >= limit {
            return false;
        }
        places.taken += 1;
        self.begin_window(now);
        true
    }

    /// `actor` sleeps until there is a place for `bio`.
    pub fn sleep(&mut self, actor: u64, bio: &Bio) {
        let urgency = urgency(bio);
        self.places(Kind::of(bio)).sleepers.push_back(Sleeper { actor, urgency });
    }

    /// Whether `actor` has slept for a place. If it has one, it goes on.
    pub fn wake(&mut self, now: Nanos, actor: u64) -> Place {
        if let Some(index) = self.admitted.iter().position(|&one| one == actor) {
            self.admitted.swap_remove(index);
            self.begin_window(now);
            return Place::Taken;
        }
        let places = [&self.writing, &self.discarding];
        match places.iter().any(|places| places.sleepers.iter().any(|sleeper| sleeper.actor == actor)) {
            true => Place::Awaited,
            false => Place::Unasked,
        }
    }

    /// A bio has its request (`wbt_track`).
    #[inline]
    pub fn track(&mut self, id: RequestId, bio: &Bio) {
        if id.index() >= self.kinds.len() {
            self.kinds.resize(id.index() + 1, Kind::default());
        }
        self.kinds[id.index()] = Kind::of(bio);
    }

    /// What the request counts as, which is then known by the caller alone.
    #[inline]
    pub fn take_kind(&mut self, id: RequestId) -> Kind {
        self.kinds.get_mut(id.index()).map(std::mem::take).unwrap_or_default()
    }

    /// The driver has the request (`wbt_issue`).
    #[inline]
    pub fn issued(&mut self, now: Nanos, id: RequestId) {
        let is_read = self.kinds.get(id.index()) == Some(&Kind::Read);
        if is_read && self.read_in_flight.is_none() {
            self.read_in_flight = Some((id, now));
        }
    }

    /// The disk has served a request with data, after this time (`blk_stat_add`).
    #[inline]
    pub fn served(&mut self, op: Op, latency: Nanos) {
        match op {
            _ if self.timer == Nanos::NEVER => {}
            Op::Read => self.reads.add(latency),
            Op::Write | Op::Discard => self.writes.add(latency),
            Op::Flush => {}
        }
    }

    /// The request is freed: it has completed, or was merged into another (`wbt_done`).
    #[inline]
    pub fn freed(&mut self, now: Nanos, id: RequestId) {
        match self.take_kind(id) {
            Kind::Untracked => {}
            Kind::Read => {
                self.read_in_flight = self.read_in_flight.filter(|(read, _)| *read != id);
                self.last_completion = Some(self.ticks.at(now));
            }
            kind => self.give_back(now, kind),
        }
    }

    /// A place is free (`wbt_rqw_done`). Sleepers are woken when enough are, which are more if the disk's
    /// write cache should drain.
    pub fn give_back(&mut self, now: Nanos, kind: Kind) {
        let [_, normal, background] = self.limits;
        let limit = match kind {
            Kind::Discard => background,
            _ if self.volatile_write_cache && !self.has_paused(now) => 0,
            _ => normal,
        };
        let places = self.places(kind);
        places.taken -= 1;
        let taken = places.taken;
        if taken == 0 || taken < limit && limit - taken >= background / 2 {
            self.wake_sleepers(now, kind);
        }
    }

    /// Sleepers that have a place now, to be woken.
    pub fn take_woken(&mut self) -> std::vec::Drain<'_, u64> {
        self.woken.drain(..)
    }

    /// True if there are any.
    #[inline]
    pub fn has_woken(&self) -> bool {
        !self.woken.is_empty()
    }

    /// The window has ended (`wb_timer_fn`).
    pub fn expired(&mut self, now: Nanos) {
        self.timer = Nanos::NEVER;
        let taken = self.writing.taken + self.discarding.taken;
        let verdict = self.verdict(now, taken);
        self.reads = Samples::default();
        self.writes = Samples::default();
        match verdict {
            Verdict::TooSlow => self.scale_down(true),
            Verdict::Good | Verdict::OnlyWrites => self.scale_up(now),
            Verdict::Unknown => {
                self.unknown += 1;
                if self.unknown >= UNKNOWN_MAX && self.step != 0 {
                    match self.step > 0 {
                        true => self.scale_up(now),
                        false => self.scale_down(false),
                    }
                }
            }
        }
        if self.step != 0 || taken > 0 {
            self.start_timer(now);
        }
    }

    /// `latency_exceeded`
    fn verdict(&self, now: Nanos, taken: u32) -> Verdict {
        let waited = self.read_in_flight.map_or(Nanos::ZERO, |(_, since)| now.saturating_sub(since));
        if waited > self.window || (waited > self.target && self.reads.count == 0) {
            return Verdict::TooSlow;
        }
        if self.reads.count == 0 || self.writes.count < WRITES_MIN {
            let writes = self.writes.count > 0 || self.has_paused(now) || taken > 0;
            return if writes { Verdict::OnlyWrites } else { Verdict::Unknown };
        }
        if self.reads.least > self.target { Verdict::TooSlow } else { Verdict::Good }
    }

    /// More places, unless there are as many as there can be.
    fn scale_up(&mut self, now: Nanos) {
        if self.at_most {
            return;
        }
        self.at_most = self.scale_to(self.step - 1);
        self.unknown = 0;
        for kind in [Kind::Write, Kind::Discard] {
            self.wake_sleepers(now, kind);
        }
    }

    /// Fewer places. `hard`: because reads were slow, so that a larger number than the initial one is none
    /// any more.
    fn scale_down(&mut self, hard: bool) {
        if self.limits[0] == 1 {
            return;
        }
        self.at_most = false;
        self.scale_to(if self.step < 0 && hard { 0 } else { self.step + 1 });
        self.unknown = 0;
    }

    /// Returns whether there can be no more places (`rq_depth_calc_max_depth`, `calc_wb_limits`).
    fn scale_to(&mut self, step: i32) -> bool {
        self.step = step;
        let depth = DEPTH.min(self.queue_depth);
        let (most, at_most) = match step {
            1.. if self.queue_depth == 1 => (1, false),
            _ if self.queue_depth == 1 => (2, true),
            1.. => (1 + ((depth - 1) >> step.min(STEP_MAX)), false),
            0 => (depth, false),
            _ => {
                let most = 3 * self.queue_depth / 4;
                let grown = 1 + (u64::from(depth - 1) << step.unsigned_abs().min(STEP_MAX as u32));
                if grown > u64::from(most) { (most, true) } else { (grown as u32, false) }
            }
        };
        self.limits = match most {
            0..=2 => [most, most, 1],
            _ => [most, most.div_ceil(2), most.div_ceil(4)],
        };
        at_most
    }

    fn begin_window(&mut self, now: Nanos) {
        if self.timer == Nanos::NEVER {
            self.start_timer(now);
        }
    }

    /// `rwb_arm_timer`: windows are shorter where there are few places.
    fn start_timer(&mut self, now: Nanos) {
        self.window = match self.step {
            1.. => {
                let root = (((self.step as u64) + 1) << 8).isqrt();
                Nanos((WINDOW.0 << 4) / root)
            }
            _ => WINDOW,
        };
        let whole_ticks = self.window.0 * self.ticks.hz() / 1_000_000_000;
        self.timer = self.ticks.timer(now, whole_ticks);
    }

    /// `wb_recent_wait`
    fn has_paused(&self, now: Nanos) -> bool {
        self.is_within(self.last_pause, now, self.ticks.hz())
    }

    /// That many ticks have not passed since then.
    fn is_within(&self, since: Option<u64>, now: Nanos, ticks: u64) -> bool {
        since.is_some_and(|since| self.ticks.at(now) < since + ticks)
    }

    /// `get_limit`
    fn limit(&self, kind: Kind, urgency: Urgency, now: Nanos) -> u32 {
        let [most, normal, background] = self.limits;
        let tenth = self.ticks.hz() / 10;
        let reads_around =
            || self.is_within(self.last_read, now, tenth) || self.is_within(self.last_completion, now, tenth);
        match urgency {
            _ if kind == Kind::Discard => background,
            Urgency::Awaited => most,
            _ if self.has_paused(now) => most,
            Urgency::Background => background,
            Urgency::Other if reads_around() => background,
            Urgency::Other => normal,
        }
    }

    fn places(&mut self, kind: Kind) -> &mut Places {
        if kind == Kind::Discard { &mut self.discarding } else { &mut self.writing }
    }

    /// Gives free places to sleepers in order, up to the first that gets none (`wake_up_all` with
    /// `rq_qos_wake_function`).
    fn wake_sleepers(&mut self, now: Nanos, kind: Kind) {
        while let Some(&Sleeper { actor, urgency }) = self.places(kind).sleepers.front() {
            let limit = self.limit(kind, urgency, now);
            let places = self.places(kind);
            if places.taken >= limit {
                return;
            }
            places.taken += 1;
            places.sleepers.pop_front();
            self.admitted.push(actor);
            self.woken.push(actor);
        }
    }
}

/// A flush is an empty write, and its process waits (`submit_bio_wait`).
fn urgency(bio: &Bio) -> Urgency {
    match bio.op {
        Op::Write | Op::Flush if bio.sync => Urgency::Awaited,
        _ if bio.background => Urgency::Background,
        _ => Urgency::Other,
    }
}
