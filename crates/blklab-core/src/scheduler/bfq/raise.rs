//! Weight-raising: what the first request of an idle queue shows about the queue, and what the
//! start and end of [`raising`](super::parts::raising) change in weights and budgets.

use super::Bfq;
use super::parts::QueueId;
use super::parts::clock::Jiffies;
use crate::scheduler::journal::{Decision, Raising as For};

/// Only queues of the default weight are raised.
const DEFAULT_WEIGHT: u32 = 40;

/// Properties of a queue, detected at its first request after idling.
#[derive(Clone, Copy, Debug)]
pub(super) struct Signs {
    pub interactive: bool,
    soft_rt: bool,
    in_burst: bool,
    /// The queue is raised already, or should be.
    raised_or_deserves: bool,
}

impl Bfq {
    /// The queue's factor has changed: passes it to the hierarchy.
    pub(super) fn apply_coefficient(&mut self, q: QueueId) {
        self.wf2q.set_coefficient(q, self.queues[q.index()].raising.coefficient());
    }

    /// How long an interactive queue stays raised.
    fn interactive_span(&self) -> Jiffies {
        self.spans.interactive(&self.peak_rate)
    }

    /// Detects them at the arrival of a request at an idle queue.
    pub(super) fn signs(&self, q: QueueId, idle_for_long: bool, own_or_stable: bool) -> Signs {
        let queue = &self.queues[q.index()];
        let in_burst = self.burst.marks(q);
        let of_default_weight = self.wf2q.new_weight(q) == DEFAULT_WEIGHT;
        let soft_rt = !queue.seeks.totally_seeky()
            && !in_burst
            && queue.soft_rt.may_begin(&self.clock)
            && queue.backlog.in_flight() == 0
            && of_default_weight;
        let interactive = !in_burst && idle_for_long && of_default_weight;
        let deserves = queue.kind.sync && own_or_stable && (interactive || soft_rt);
        let raised_or_deserves = self.tuning.low_latency && (queue.is_raised() || deserves);
        Signs { interactive, soft_rt, in_burst, raised_or_deserves }
    }

    /// Starts, continues or ends raising, by the signs (`bfq_update_bfqq_wr_on_rq_arrival`).
    pub(super) fn raise_on_arrival(&mut self, q: QueueId, signs: Signs) {
        let duration = self.interactive_span();
        let raising = &mut self.queues[q.index()].raising;
        let old = raising.coefficient();
        if !raising.is_raised() && signs.raised_or_deserves {
            self.begin_raising(q, signs.interactive);
        } else if raising.is_raised() {
            if signs.interactive {
                raising.raise_to_interactive(duration);
            } else if signs.in_burst {
                raising.suspend();
                self.note(q, Decision::WeightRaisedEnd);
            } else if signs.soft_rt && raising.go_on_soft_rt(&self.spans, &self.clock) {
                self.note_raised(q);
            }
            self.apply_coefficient(q);
        }
        if self.queues[q.index()].raising.coefficient() != old {
            self.wf2q.mark_changed(q);
        }
    }

    fn begin_raising(&mut self, q: QueueId, interactive: bool) {
        let duration = self.interactive_span();
        let raising = &mut self.queues[q.index()].raising;
        if interactive {
            raising.begin_interactive(duration);
        } else {
            raising.begin_soft_rt(&self.spans);
        }
        self.apply_coefficient(q);
        // A short first slice, so that queues raised together all start soon.
        let budget = self.budget(q).min(2 * self.budgets.least());
        self.set_budget(q, budget);
        self.note_raised(q);
    }

    fn note_raised(&mut self, q: QueueId) {
        let raising = &self.queues[q.index()].raising;
        let kind = if raising.is_interactive() { For::Interactive } else { For::SoftRealTime };
        let factor = raising.coefficient();
        self.note(q, Decision::WeightRaised { kind, factor });
    }

    /// An asynchronous request comes to a busy queue after a long pause.
    pub(super) fn raise_async(&mut self, q: QueueId) {
        let duration = self.interactive_span();
        self.queues[q.index()].raising.raise_to_interactive(duration);
        self.apply_coefficient(q);
        self.wf2q.mark_changed(q);
        self.note_raised(q);
    }

    /// `bfq_bfqq_end_wr`.
    fn end_raising(&mut self, q: QueueId) {
        let queue = &mut self.queues[q.index()];
        if !queue.raising.is_soft_rt(&self.spans) {
            queue.soft_rt.restart(self.clock.jiffies);
        }
        queue.raising.end(&self.clock);
        self.apply_coefficient(q);
        self.wf2q.mark_changed(q);
        self.note(q, Decision::WeightRaisedEnd);
    }

    fn back_to_interactive(&mut self, q: QueueId) {
        let duration = self.interactive_span();
        self.queues[q.index()].raising.back_to_interactive(duration);
        self.apply_coefficient(q);
        self.note_raised(q);
    }

    /// The soft real-time span is over, or the queue is not soft real-time: it returns to the
    /// interactive span that came before, if that span is not over too.
    fn end_soft_rt(&mut self, q: QueueId) {
        let raising = &self.queues[q.index()].raising;
        if raising.is_interactive_over(self.interactive_span(), &self.clock) {
            self.end_raising(q);
        } else {
            self.back_to_interactive(q);
            self.wf2q.mark_changed(q);
        }
    }

    /// Ends raising if its span is over or the queue belongs to a large burst; applies changed
    /// factors to the weight (`bfq_update_wr_data`). Called after each dispatch.
    pub(super) fn update_raising(&mut self, q: QueueId) {
        let raising = &self.queues[q.index()].raising;
        if raising.is_raised() {
            if self.burst.marks(q) {
                self.end_raising(q);
            } else if raising.is_over(&self.clock) {
                if raising.is_soft_rt(&self.spans) {
                    self.end_soft_rt(q);
                } else {
                    self.end_raising(q);
                }
            }
            if self.queues[q.index()].raising.has_got_enough(&self.spans) {
                self.end_raising(q);
            }
        }
        if (self.wf2q.weight(q) > self.wf2q.orig_weight(q)) != self.queues[q.index()].is_raised() {
            self.wf2q.update_weight(q);
        }
    }

    /// A queue that only seeks is not soft real-time (in `bfq_update_io_seektime`).
    pub(super) fn end_soft_rt_of_seeker(&mut self, q: QueueId) {
        let queue = &self.queues[q.index()];
        if queue.is_raised() && queue.raising.is_soft_rt(&self.spans) && queue.seeks.totally_seeky() {
            self.end_soft_rt(q);
        }
    }

    /// Checks raising restored from before a merge (in `bfq_bfqq_resume_state`).
    pub(super) fn check_resumed_raising(&mut self, q: QueueId) {
        let raising = &self.queues[q.index()].raising;
        let in_burst = self.burst.marks(q);
        if !raising.is_raised() || !in_burst && !raising.is_over(&self.clock) {
            return;
        }
        let interactive_over = raising.is_interactive_over(self.interactive_span(), &self.clock);
        if raising.is_soft_rt(&self.spans) && !in_burst && !interactive_over {
            self.back_to_interactive(q);
        } else {
            self.queues[q.index()].raising.suspend();
            self.apply_coefficient(q);
            self.note(q, Decision::WeightRaisedEnd);
        }
    }
}
