//! One run, tracked event by event.

use super::bios::{Bios, Done};
use super::requests::Requests;
use super::{Event, Owners};
use crate::recorder::{SeriesRecorder, TraceRecorder};
use crate::request::ProcessId;
use crate::result::{DiskTrace, Series};
use crate::units::Nanos;

/// Tracks the events of one job.
pub struct Watch {
    epoch: Nanos,
    owners: Owners,
    requests: Requests,
    /// None where a process's I/O does not go directly to the disk.
    bios: Option<Bios>,
    /// The time up to which the queue was integrated.
    changed: Nanos,
    series: SeriesRecorder,
    trace: TraceRecorder,
    depth: Depth,
    /// Bios that have ended, if they are kept.
    ended: Option<Vec<Done>>,
}

/// The queue over the whole run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Depth {
    /// Integral over time of the commands in flight, ns.
    pub in_flight_ns: u64,
    /// Sum over commands of the time from issue to completion, ns.
    pub service_ns: u64,
    /// The maximum of requests waiting or in flight.
    pub max: u64,
}

/// The results of a watch.
pub struct Watched {
    /// Over time: the queue, and the processes' I/O if it was tracked.
    pub series: Series,
    /// Width of its intervals.
    pub interval: Nanos,
    /// The disk's commands: a sample of the run; its stride; every command of one window.
    pub commands: (DiskTrace, u64, DiskTrace),
    /// Commands of the window that did not fit.
    pub left_out: u64,
    /// The queue over the whole run.
    pub depth: Depth,
    /// Reads and writes of processes, in the order of their ends, if they were kept.
    pub ended: Vec<Done>,
}

impl Watch {
    /// Times count from `epoch` of the clock; `trace` keeps the disk's commands. With `direct`
    /// every bio is an I/O of a process.
    pub fn new(epoch: Nanos, owners: Owners, trace: TraceRecorder, direct: bool) -> Watch {
        Watch {
            epoch,
            owners,
            requests: Requests::default(),
            bios: direct.then(Bios::default),
            changed: Nanos::ZERO,
            series: SeriesRecorder::default(),
            trace,
            depth: Depth::default(),
            ended: None,
        }
    }

    /// Keeps every bio that ends, and does not count them over time.
    #[must_use]
    pub fn keeping_bios(self) -> Watch {
        Watch { bios: Some(Bios::default()), ended: Some(Vec::new()), ..self }
    }

    /// Takes the next event; events come in order of time.
    pub fn take(&mut self, event: &Event) {
        if event.time < self.epoch.0 {
            return;
        }
        let now = Nanos(event.time) - self.epoch;
        self.lay_over_time(now);
        if let Some(mut request) = self.requests.take(now, event) {
            request.process = match event.is_kernels() {
                true => ProcessId::KERNEL,
                false => self.owners.of(request.sector.0),
            };
            self.depth.service_ns += (now - request.issued).0;
            self.trace.completed(&request, None, now);
        }
        if let Some(bios) = &mut self.bios {
            let (series, ended) = (&mut self.series, &mut self.ended);
            bios.take(now, event, |done| match ended {
                Some(ended) => ended.push(done),
                None => series.completed(now, done.write, done.bytes, done.latency),
            });
        }
    }

    /// Events are missing up to `time`: stops tracking current requests.
    pub fn forget(&mut self, time: Nanos) {
        if time >= self.epoch {
            self.lay_over_time(time - self.epoch);
        }
        self.requests.forget();
        if let Some(bios) = &mut self.bios {
            *bios = Bios::default();
        }
    }

    /// The number of requests that wait or are in flight.
    pub fn under_way(&self) -> u32 {
        self.requests.waiting() + self.requests.at_disk()
    }

    /// The queue was unchanged up to `now`.
    fn lay_over_time(&mut self, now: Nanos) {
        let (waiting, in_flight) = (self.requests.waiting(), self.requests.at_disk());
        let depth = u64::from(waiting + in_flight);
        if depth > 0 && now > self.changed {
            self.series.depth(self.changed, now, waiting, in_flight);
            self.depth.in_flight_ns += (now - self.changed).0 * u64::from(in_flight);
            self.depth.max = self.depth.max.max(depth);
        }
        self.changed = now;
    }

    /// The results.
    pub fn finish(self) -> Watched {
        let (series, interval) = self.series.finish();
        let left_out = self.trace.left_out();
        let ended = self.ended.unwrap_or_default();
        Watched { series, interval, left_out, commands: self.trace.finish(), depth: self.depth, ended }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Act;
    use super::*;
    use crate::request::Op;
    use crate::units::Sector;

    #[test]
    fn flushes_and_writes_that_no_process_waits_for_are_the_kernels() {
        let owners = Owners::of_ios([(Sector(0), ProcessId(3))].into_iter());
        let mut watch = Watch::new(Nanos::ZERO, owners, TraceRecorder::default(), false);
        let rows = [(Op::Read, false), (Op::Write, true), (Op::Write, false), (Op::Flush, true)];
        for (time, (op, sync)) in (1..).zip(rows) {
            for (act, time) in [(Act::Issue, 10 * time), (Act::Complete, 10 * time + 1)] {
                watch.take(&Event { time, sector: 8, bytes: 4096, act, op, sync });
            }
        }
        // The kernel's number in a trace.
        assert_eq!(watch.finish().commands.0.process, [3, 3, -1, -1]);
    }
}
