//! What is measured of a disk's queue: counters, depths over time, requests and decisions that are kept.

use super::Block;
use crate::recorder::{SeriesRecorder, TraceRecorder, Window};
use crate::request::{Op, Request};
use crate::result::DiskCounters;
use crate::scheduler::journal::{Journal, Note};
use crate::scheduler::plugin::Fault;
use crate::units::Nanos;

/// Decisions kept for each request of a window: a fair scheduler that idles makes about four for
/// each of its requests.
const DECISIONS_PER_REQUEST: usize = 8;

impl Block {
    /// Advances the integrals over time to `now`, before a count changes.
    #[inline(always)]
    pub(super) fn account(&mut self, now: Nanos) {
        if now != self.changed {
            self.account_span(now);
        }
    }

    #[inline]
    fn account_span(&mut self, now: Nanos) {
        let depth = self.waiting + self.in_flight;
        if depth > 0 {
            self.series.depth(self.changed, now, self.waiting, self.in_flight);
            self.counters.io_ticks_ns += (now - self.changed).0;
            self.counters.depth_max = self.counters.depth_max.max(u64::from(depth));
        }
        self.changed = now;
    }

    /// Keeps every request of `window` and the scheduler's decisions in it.
    pub fn keep(&mut self, window: Window) {
        self.trace = TraceRecorder::of(window);
        if let Some(journal) = self.scheduler.journal() {
            journal.keep_until(window.from, window.until, DECISIONS_PER_REQUEST * window.requests);
        }
    }

    /// What the scheduler, a plug-in, did wrong, with its name.
    pub fn fault(&self) -> Option<(&'static str, Fault)> {
        self.scheduler.fault().map(|fault| (self.scheduler.info().name, fault))
    }

    /// The scheduler's notes, and the number that did not fit; `None` if the journal is off.
    pub fn decisions(&mut self) -> Option<(Vec<Note>, u64)> {
        self.scheduler.journal().filter(|journal| journal.is_kept()).map(Journal::take)
    }

    /// Ends the run at `now` and returns the measurements.
    pub fn finish(mut self, now: Nanos) -> (DiskCounters, SeriesRecorder, TraceRecorder) {
        self.account(now);
        let (waiting, in_flight) = self.series.depth_areas();
        self.counters.in_queue_ns = waiting + in_flight;
        self.counters.in_flight_ns = in_flight;
        (self.counters, self.series, self.trace)
    }
}

impl DiskCounters {
    /// Counts a completed request.
    #[inline]
    pub(super) fn count(&mut self, request: &Request, now: Nanos) {
        let ticks = (now - request.inserted).0;
        self.service_ns += (now - request.issued).0;
        match request.op {
            Op::Read => {
                self.read_ios += 1;
                self.read_sectors += u64::from(request.sectors);
                self.read_ticks_ns += ticks;
            }
            Op::Write => {
                self.write_ios += 1;
                self.write_sectors += u64::from(request.sectors);
                self.write_ticks_ns += ticks;
            }
            Op::Flush => {
                self.flush_ios += 1;
                self.flush_ticks_ns += ticks;
            }
            Op::Discard => {
                self.discard_ios += 1;
                self.discard_ticks_ns += ticks;
            }
        }
    }
}
