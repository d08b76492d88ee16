//! Weight raising: a queue that looks interactive or soft real-time is served before others.
//!
//! Interactive is who comes after two seconds without I/O: its weight counts 30 times as much
//! for as long as it takes to load a large program (`wr_duration`, 3 to 25 s, the shorter the
//! faster the disk), but for no more than 60 MB (`MAX_SERVICE`). Soft real-time is who asks for at
//! most 7000 sectors/s and waits for the answers before it goes on: 3000 times, for 300 ms, again and
//! again.

use super::Bfq;
use super::queue::{Jiffies, LONG_AGO, QueueId};
use crate::scheduler::journal::{Decision, Raising as For};

/// What an interactive queue's weight is multiplied by (`bfq_wr_coeff`).
pub(super) const INTERACTIVE: u32 = 30;
/// A soft real-time one's (`BFQ_SOFTRT_WEIGHT_FACTOR`).
pub(super) const SOFT_RT: u32 = INTERACTIVE * 100;
/// `bfq_wr_rt_max_time`.
const SOFT_RT_MS: u64 = 300;
/// `bfq_wr_min_idle_time`.
const MIN_IDLE_MS: u64 = 2000;
/// `bfq_wr_min_inter_arr_async`.
const MIN_INTER_ARRIVAL_ASYNC_MS: u64 = 500;
/// Sectors that an interactive queue gets while raised (`max_service_from_wr`).
const MAX_SERVICE: u64 = 120_000;
/// Sectors per second of a soft real-time queue at most (`bfq_wr_max_softrt_rate`).
const MAX_SOFT_RT_RATE: u64 = 7000;
/// How long the reference disks take to load a large program, rotational and not.
const REF_DURATION_MS: [u64; 2] = [7000, 2500];
/// Only queues of the default weight are raised.
const DEFAULT_WEIGHT: u32 = 40;

/// Spans of weight raising in ticks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spans {
    pub soft_rt: Jiffies,
    pub min_idle: Jiffies,
    min_inter_arrival_async: Jiffies,
    least: Jiffies,
    most: Jiffies,
    /// The reference disk's rate times its duration.
    rate_duration: u64,
}

impl Spans {
    pub fn new(tuning: &super::tunables::Tuning) -> Spans {
        let kind = usize::from(!tuning.rotational);
        let ticks = |ms| tuning.ticks_of_ms(ms);
        Spans {
            soft_rt: ticks(SOFT_RT_MS),
            min_idle: ticks(MIN_IDLE_MS),
            min_inter_arrival_async: ticks(MIN_INTER_ARRIVAL_ASYNC_MS),
            least: ticks(3000),
            most: ticks(25_000),
            rate_duration: u64::from(super::peak_rate::REF_RATE[kind]) * ticks(REF_DURATION_MS[kind]) as u64,
        }
    }
}

/// What a request that finds its queue idle says about it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Signs {
    pub interactive: bool,
    pub soft_rt: bool,
    pub in_burst: bool,
    /// Is raised already, or should be.
    pub raised_or_deserves: bool,
}

impl Bfq {
    /// A queue's factor, here and in the hierarchy.
    pub(super) fn set_coeff(&mut self, q: QueueId, coeff: u32) {
        self.queues[q.index()].raising.coeff = coeff;
        self.wf2q.set_coefficient(q, coeff);
    }

    /// How long an interactive queue stays raised.
    pub(super) fn wr_duration(&self) -> Jiffies {
        let duration = self.spans.rate_duration / u64::from(self.peak_rate.rate());
        (duration as Jiffies).clamp(self.spans.least, self.spans.most)
    }

    #[inline]
    fn is_soft_rt_span(&self, q: QueueId) -> bool {
        self.queues[q.index()].raising.cur_max_time == self.spans.soft_rt
    }

    /// What the arrival of a request at an idle queue says.
    pub(super) fn signs(&self, q: QueueId, idle_for_long: bool, own_or_stable: bool) -> Signs {
        let queue = &self.queues[q.index()];
        let in_burst = queue.in_large_burst;
        let of_default_weight = self.wf2q.new_weight(q) == DEFAULT_WEIGHT;
        let soft_rt = !queue.seeks.totally_seeky()
            && !in_burst
            && self.clock.is_past(queue.soft_rt_next_start)
            && queue.dispatched == 0
            && of_default_weight;
        let interactive = !in_burst && idle_for_long && of_default_weight;
        let deserves = queue.sync && own_or_stable && (interactive || soft_rt);
        let raised_or_deserves = self.tuning.low_latency && (queue.is_raised() || deserves);
        Signs { interactive, soft_rt, in_burst, raised_or_deserves }
    }

    /// Begin, go on with or end raising, as the signs say (`bfq_update_bfqq_wr_on_rq_arrival`).
    pub(super) fn raise_on_arrival(&mut self, q: QueueId, signs: Signs) {
        let old_coeff = self.queues[q.index()].raising.coeff;
        if old_coeff == 1 && signs.raised_or_deserves {
            self.begin_raising(q, signs.interactive);
        } else if old_coeff > 1 {
            if signs.interactive {
                let duration = self.wr_duration();
                self.set_coeff(q, INTERACTIVE);
                self.queues[q.index()].raising.cur_max_time = duration;
            } else if signs.in_burst {
                self.set_coeff(q, 1);
                self.note(q, Decision::WeightRaisedEnd);
            } else if signs.soft_rt {
                self.go_on_soft_rt(q);
            }
        }
        if self.queues[q.index()].raising.coeff != old_coeff {
            self.wf2q.mark_changed(q);
        }
    }

    fn begin_raising(&mut self, q: QueueId, interactive: bool) {
        let (duration, soft_rt) = (self.wr_duration(), self.spans.soft_rt);
        let factor = if interactive { INTERACTIVE } else { SOFT_RT };
        let raising = &mut self.queues[q.index()].raising;
        if interactive {
            raising.service = 0;
            raising.cur_max_time = duration;
        } else {
            raising.start_at_switch_to_srt = LONG_AGO;
            raising.cur_max_time = soft_rt;
        }
        self.set_coeff(q, factor);
        // A short first slice, so that queues raised together all get going.
        let budget = self.budget(q).min(2 * self.min_budget());
        self.set_budget(q, budget);
        let kind = if interactive { For::Interactive } else { For::SoftRealTime };
        self.note(q, Decision::WeightRaised { kind, factor });
    }

    fn go_on_soft_rt(&mut self, q: QueueId) {
        let soft_rt = self.spans.soft_rt;
        let jiffies = self.clock.jiffies;
        let raising = &mut self.queues[q.index()].raising;
        let begins = raising.cur_max_time != soft_rt;
        if begins {
            raising.start_at_switch_to_srt = raising.last_start_finish;
            raising.cur_max_time = soft_rt;
        }
        raising.last_start_finish = jiffies;
        if begins {
            self.set_coeff(q, SOFT_RT);
            self.note(q, Decision::WeightRaised { kind: For::SoftRealTime, factor: SOFT_RT });
        }
    }

    /// An asynchronous request has come to a busy queue after a long pause.
    pub(super) fn raise_async(&mut self, q: QueueId) {
        self.queues[q.index()].raising.cur_max_time = self.wr_duration();
        self.set_coeff(q, INTERACTIVE);
        self.wf2q.mark_changed(q);
        self.note(q, Decision::WeightRaised { kind: For::Interactive, factor: INTERACTIVE });
    }

    /// The pause before an asynchronous request that makes [`Bfq::raise_async`] due.
    pub(super) fn async_pause_is_over(&self, q: QueueId) -> bool {
        let last = self.queues[q.index()].raising.last_start_finish;
        self.clock.is_past(last + self.spans.min_inter_arrival_async)
    }

    /// `bfq_bfqq_end_wr`.
    pub(super) fn end_raising(&mut self, q: QueueId) {
        let soft_rt = self.is_soft_rt_span(q);
        let jiffies = self.clock.jiffies;
        let queue = &mut self.queues[q.index()];
        if !soft_rt {
            queue.soft_rt_next_start = jiffies;
        }
        queue.raising.cur_max_time = 0;
        queue.raising.last_start_finish = jiffies;
        self.set_coeff(q, 1);
        self.wf2q.mark_changed(q);
        self.note(q, Decision::WeightRaisedEnd);
    }

    /// A soft real-time span is over, but the interactive one that it took over is not.
    fn back_to_interactive(&mut self, q: QueueId) {
        let duration = self.wr_duration();
        let raising = &mut self.queues[q.index()].raising;
        raising.cur_max_time = duration;
        raising.last_start_finish = raising.start_at_switch_to_srt;
        self.set_coeff(q, INTERACTIVE);
        self.note(q, Decision::WeightRaised { kind: For::Interactive, factor: INTERACTIVE });
    }

    fn interactive_span_is_over(&self, q: QueueId) -> bool {
        let raising = &self.queues[q.index()].raising;
        self.clock.is_past(raising.start_at_switch_to_srt + self.wr_duration())
    }

    /// Raising whose time is over, or whose queue belongs to a large burst, ends; what has been
    /// decided since takes effect on the weight (`bfq_update_wr_data`). After each dispatch.
    pub(super) fn update_raising(&mut self, q: QueueId) {
        if self.queues[q.index()].is_raised() {
            let raising = self.queues[q.index()].raising;
            if self.queues[q.index()].in_large_burst {
                self.end_raising(q);
            } else if self.clock.is_past(raising.last_start_finish + raising.cur_max_time) {
                if !self.is_soft_rt_span(q) || self.interactive_span_is_over(q) {
                    self.end_raising(q);
                } else {
                    self.back_to_interactive(q);
                    self.wf2q.mark_changed(q);
                }
            }
            let queue = &self.queues[q.index()];
            if queue.is_raised() && !self.is_soft_rt_span(q) && queue.raising.service > MAX_SERVICE {
                self.end_raising(q);
            }
        }
        if (self.wf2q.weight(q) > self.wf2q.orig_weight(q)) != self.queues[q.index()].is_raised() {
            self.wf2q.update_weight(q);
        }
    }

    /// Nothing but seeks is no soft real-time load (in `bfq_update_io_seektime`).
    pub(super) fn end_soft_rt_of_seeker(&mut self, q: QueueId) {
        let queue = &self.queues[q.index()];
        if !queue.is_raised() || !self.is_soft_rt_span(q) || !queue.seeks.totally_seeky() {
            return;
        }
        if self.interactive_span_is_over(q) {
            self.end_raising(q);
        } else {
            self.back_to_interactive(q);
            self.wf2q.mark_changed(q);
        }
    }

    /// Raising restored from before a merge, if it is still due (in `bfq_bfqq_resume_state`).
    pub(super) fn check_resumed_raising(&mut self, q: QueueId) {
        let queue = &self.queues[q.index()];
        let raising = queue.raising;
        let in_burst = queue.in_large_burst;
        let over = self.clock.is_past(raising.last_start_finish + raising.cur_max_time);
        if queue.is_raised() && (in_burst || over) {
            if self.is_soft_rt_span(q) && !in_burst && !self.interactive_span_is_over(q) {
                self.back_to_interactive(q);
            } else {
                self.set_coeff(q, 1);
                self.note(q, Decision::WeightRaisedEnd);
            }
        }
    }

    /// The earliest time at which the queue, now idle, may count as soft real-time: when it
    /// could have got what it got at no more than the highest rate of such a load, and not
    /// before it has thought for longer than the disk waits (`bfq_bfqq_softrt_next_start`).
    pub(super) fn soft_rt_next_start(&self, q: QueueId) -> Jiffies {
        let queue = &self.queues[q.index()];
        let at_rate = self.tuning.ticks.hz() * queue.service_from_backlogged / MAX_SOFT_RT_RATE;
        let idle = u64::from(self.tuning.slice_idle_ns) / (1_000_000_000 / self.tuning.ticks.hz());
        queue
            .soft_rt_next_start
            .max(queue.last_idle_bklogged + at_rate as Jiffies)
            .max(self.clock.jiffies + idle as Jiffies + 4)
    }
}
