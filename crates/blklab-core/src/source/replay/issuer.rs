//! What a process of a replay submits next, and when.
//!
//! An [`Issuer`] has no clock and does no I/O. Its caller gives the time, asks for the next [`Step`] of
//! a process, performs it, and reports submissions and completions. The simulator's source calls it in
//! virtual time; the driver in the kernel rig's guest calls it around real system calls. So both submit
//! the same I/Os, wait for the same completions, and count latencies in the same way.

use std::collections::VecDeque;
use std::ops::Range;

use super::{Outcome, Plug, Replay, ReplayIo};
use crate::request::{Op, ProcessId};
use crate::result::JobResult;
use crate::source::fio::tally::{IoTimes, Tally};
use crate::units::Nanos;

/// The next step of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Submit this I/O, which was due at that time: see [`Issuer::begin`] and [`Issuer::submitted`].
    Submit {
        /// Its index.
        io: u32,
        /// When it was due.
        due: Nanos,
    },
    /// Ask again at that time.
    Pause(Nanos),
    /// Ask again when [`Issuer::completed`] names the process.
    Wait,
    /// All of its I/Os have completed.
    Finish,
}

/// A process, with its I/Os in their order.
#[derive(Debug)]
struct Process {
    /// The I/Os to begin, as a range of [`Issuer::order`].
    left: Range<usize>,
    /// The first that has not completed, as an index there.
    open: usize,
    in_flight: usize,
    /// When its first I/O was due, once it was.
    began: Option<Nanos>,
    /// When all of its latest I/O was in the block layer.
    submitted: Nanos,
    /// When its last I/O completed.
    ended: Nanos,
    /// The times of completions from the `forgotten`-th on.
    completions: VecDeque<Nanos>,
    forgotten: u32,
    /// An I/O of it waits for completions.
    counts: bool,
    /// The I/O that its next one follows, until it completes, or all of its process up to it have.
    follows: Option<u32>,
    /// The first of the I/Os to come was due at this time, and its plug is open.
    together: Option<Nanos>,
    /// I/Os that have begun and are not in the block layer: it does not wait for completions.
    submitting: u32,
    tally: Tally,
}

impl Process {
    fn completed(&self) -> u32 {
        self.forgotten + self.completions.len() as u32
    }

    /// When the `count`-th completion was, from 1; zero for none. Earlier ones are forgotten.
    fn completion(&mut self, count: u32) -> Nanos {
        while self.forgotten + 1 < count {
            self.completions.pop_front();
            self.forgotten += 1;
        }
        if count == 0 { Nanos::ZERO } else { self.completions[(count - 1 - self.forgotten) as usize] }
    }
}

/// Bandwidth and IOPS are sampled over this time, as by fio.
const SAMPLE: Nanos = Nanos::from_millis(500);

/// All I/Os of a replay and their state.
pub struct Issuer {
    ios: Vec<ReplayIo>,
    outcomes: Vec<Outcome>,
    has_begun: Vec<bool>,
    has_completed: Vec<bool>,
    /// Per I/O: it is the flush of a write that waits for it, of which it is a part.
    is_preflush: Vec<bool>,
    /// Per I/O: when it and all I/Os of its process before it had completed.
    drained: Vec<Nanos>,
    /// Indices of I/Os: those of the first process in their order, then those of the second, and
    /// so on.
    order: Vec<u32>,
    /// By id.
    processes: Vec<Process>,
    /// Processes that issue an I/O only after another process's I/O has completed.
    waiting: Vec<ProcessId>,
}

impl Issuer {
    /// `ios`, in which each process's are in its order, and none waits for one that comes later.
    pub fn new(ios: Vec<ReplayIo>) -> Issuer {
        let mut order: Vec<_> = (0..ios.len() as u32).collect();
        // Stable: a process's I/Os keep their order.
        order.sort_by_key(|&io| ios[io as usize].process);
        let mut begin = 0;
        let process = |id: usize| {
            let id = ProcessId(id as u32);
            let own = &order[begin..];
            let count = own.partition_point(|&io| ios[io as usize].process == id);
            let left = begin..begin + count;
            begin = left.end;
            Process {
                open: left.start,
                in_flight: 0,
                began: None,
                submitted: Nanos::ZERO,
                ended: Nanos::ZERO,
                completions: VecDeque::new(),
                forgotten: 0,
                counts: order[left.clone()].iter().any(|&io| ios[io as usize].start.after > 0),
                follows: None,
                together: None,
                submitting: 0,
                tally: Tally::new(SAMPLE, SAMPLE),
                left,
            }
        };
        let processes: Vec<_> = (0..Replay::count(&ios)).map(process).collect();
        let mut is_preflush = vec![false; ios.len()];
        for flush in ios.iter().filter(|io| io.preflush).filter_map(|io| io.start.follows) {
            is_preflush[flush as usize] = true;
        }
        Issuer {
            is_preflush,
            outcomes: vec![Outcome::default(); ios.len()],
            has_begun: vec![false; ios.len()],
            has_completed: vec![false; ios.len()],
            drained: vec![Nanos::NEVER; ios.len()],
            waiting: Vec::new(),
            ios,
            order,
            processes,
        }
    }

    /// The number of processes.
    pub fn processes(&self) -> usize {
        self.processes.len()
    }

    /// Whether the process has I/Os to begin.
    pub fn has_ios(&self, process: ProcessId) -> bool {
        !self.processes[process.0 as usize].left.is_empty()
    }

    /// The first I/O that the process has to begin.
    pub fn first(&self, process: ProcessId) -> Option<&ReplayIo> {
        let own = self.order[self.processes[process.0 as usize].left.clone()].first();
        own.map(|&io| self.io(io))
    }

    /// An I/O by its index.
    pub fn io(&self, io: u32) -> &ReplayIo {
        &self.ios[io as usize]
    }

    /// Whether it is the flush of a write, of which it is a part.
    pub fn is_preflush(&self, io: u32) -> bool {
        self.is_preflush[io as usize]
    }

    /// I/Os of the process that have begun and not completed.
    pub fn in_flight(&self, process: ProcessId) -> usize {
        self.processes[process.0 as usize].in_flight
    }

    /// The next step of the process at `now`. It has submitted all that has begun, or keeps a plug open.
    pub fn next(&mut self, id: ProcessId, now: Nanos) -> Step {
        let process = &self.processes[id.0 as usize];
        let Some(&io) = self.order[process.left.clone()].first() else {
            return if process.in_flight == 0 { Step::Finish } else { Step::Wait };
        };
        match self.due(id, io) {
            None => Step::Wait,
            Some(due) if due > now => Step::Pause(due),
            Some(due) => Step::Submit { io, due },
        }
    }

    /// When the next I/O `io` of `process` is due; `None` while it waits for completions.
    fn due(&mut self, id: ProcessId, io: u32) -> Option<Nanos> {
        let process = &mut self.processes[id.0 as usize];
        let start = self.ios[io as usize].start;
        let goes_on = start.after > 0 || start.follows.is_some() || start.goes_on;
        if let Some(together) = process.together {
            // Under one plug as well, a process may have slept for a request.
            return Some(if goes_on { together.max(process.submitted) } else { together });
        }
        if (start.if_begun || start.unless.is_some()) && start.after > process.completed() {
            return None;
        }
        let had_completed = |other: u32, at: Nanos| {
            self.has_completed[other as usize] && self.outcomes[other as usize].completed <= at
        };
        let own = |process: &mut Process| process.completion(start.after).max(process.submitted);
        let at_once = start.unless.is_some_and(|other| had_completed(other, own(process)));
        let is_waited_for = |&other: &u32| !at_once && (!start.if_begun || self.has_begun[other as usize]);
        let followed = match start.follows.filter(is_waited_for) {
            None => Nanos::ZERO,
            Some(other) => match followed(other, start.drains, &self.has_completed, &self.drained) {
                true if start.drains => self.drained[other as usize],
                true => self.outcomes[other as usize].completed,
                false => {
                    if process.follows.is_none() {
                        process.follows = Some(other);
                        self.waiting.push(id);
                    }
                    return None;
                }
            },
        };
        if start.after > process.completed() {
            return None;
        }
        let since = match goes_on {
            true => followed.max(process.completion(start.after)).max(process.submitted),
            false => Nanos::ZERO,
        };
        let think = if at_once { Nanos::ZERO } else { start.think };
        Some(start.not_before.max(since.saturating_add(think)))
    }

    /// The process of the next step `Submit { io, due }` begins to submit that I/O at `now`.
    pub fn begin(&mut self, io: u32, due: Nanos, now: Nanos) {
        let ReplayIo { start, process, preflush, plug, .. } = self.ios[io as usize];
        let flush = start.follows.filter(|_| preflush);
        let since = flush.map_or(due, |flush| self.outcomes[flush as usize].due);
        let process = &mut self.processes[process.0 as usize];
        let (late, held) = (now - due, process.submitted.saturating_sub(due));
        self.outcomes[io as usize] = Outcome { due: since, begun: now, late, held, ..Outcome::default() };
        self.has_begun[io as usize] = true;
        process.began.get_or_insert(due);
        process.in_flight += 1;
        process.tally.depth(process.in_flight as u32);
        process.submitting += 1;
        process.left.start += 1;
        process.together = (plug == Plug::GoesOn && !process.left.is_empty()).then_some(due);
    }

    /// All of an I/O that has begun is in the block layer at `now`.
    pub fn submitted(&mut self, io: u32, now: Nanos) {
        self.outcomes[io as usize].issued = now;
        let process = &mut self.processes[self.ios[io as usize].process.0 as usize];
        process.submitted = now;
        process.submitting -= 1;
    }

    /// An I/O that has begun has completed at `now`. Names each process that may go on; returns its
    /// latency.
    pub fn completed(&mut self, index: u32, now: Nanos, mut wake: impl FnMut(ProcessId)) -> Nanos {
        let io = self.ios[index as usize];
        self.has_completed[index as usize] = true;
        let outcome = &mut self.outcomes[index as usize];
        outcome.completed = now;
        let due = outcome.due;
        let process = &mut self.processes[io.process.0 as usize];
        process.in_flight -= 1;
        process.ended = now;
        while let Some(&first) = self.order[process.open..process.left.end].first()
            && self.has_completed[first as usize]
        {
            self.drained[first as usize] = now;
            process.open += 1;
        }
        if process.counts && io.counted {
            process.completions.push_back(now);
        }
        if !self.is_preflush[index as usize] {
            count(&mut process.tally, &io, due, now);
        }
        let Issuer { processes, waiting, order, ios, has_completed, drained, .. } = self;
        let mut woken = Vec::new();
        waiting.retain(|&other| {
            let process = &mut processes[other.0 as usize];
            let drains = order[process.left.clone()].first().is_some_and(|&io| ios[io as usize].start.drains);
            if process.follows.is_some_and(|io| !followed(io, drains, has_completed, drained)) {
                return true;
            }
            process.follows = None;
            woken.push(other);
            false
        });
        let goes_on = self.goes_on(io.process);
        if woken.is_empty() {
            if goes_on {
                wake(io.process);
            }
            return now - due;
        }
        if goes_on && !woken.contains(&io.process) {
            woken.push(io.process);
        }
        // Of what is due at one time the first recorded comes first.
        woken.sort_by_key(|id| self.order[self.processes[id.0 as usize].left.clone()].first());
        woken.into_iter().for_each(wake);
        now - due
    }

    /// Whether the completion was what the process waited for.
    fn goes_on(&self, id: ProcessId) -> bool {
        let process = &self.processes[id.0 as usize];
        match self.order[process.left.clone()].first() {
            // A process that sleeps until a time, or for a request, sleeps on.
            Some(&next) => {
                let after = self.ios[next as usize].start.after;
                process.counts && process.submitting == 0 && after == process.completed()
            }
            // The process ends.
            None => process.in_flight == 0,
        }
    }

    /// The times of each I/O, and a result for each process, by id, without names.
    pub fn finish(mut self) -> (Vec<Outcome>, Vec<JobResult>) {
        let jobs = self.processes.iter_mut().map(result).collect();
        (self.outcomes, jobs)
    }
}

/// Whether this I/O has completed; with `drains`, all of its process up to it.
fn followed(io: u32, drains: bool, has_completed: &[bool], drained: &[Nanos]) -> bool {
    if drains { drained[io as usize] < Nanos::NEVER } else { has_completed[io as usize] }
}

/// An I/O that was due then has completed.
fn count(tally: &mut Tally, io: &ReplayIo, due: Nanos, now: Nanos) {
    let side = match io.op {
        Op::Read => Some(0),
        Op::Write => Some(1),
        Op::Discard => Some(2),
        Op::Flush => None,
    };
    match side {
        Some(side) => tally.io(side, io.bytes(), IoTimes { start: due, issued: due, reaped: now }, false),
        None => tally.sync(now - due),
    }
}

/// The jobs of a replay with these outcomes, where completions were told later than they were.
pub fn retold(ios: Vec<ReplayIo>, outcomes: &[Outcome]) -> Vec<JobResult> {
    // Of what happens at one time, completions come first, but for that of an I/O that begins then.
    let mut events: Vec<_> = Vec::with_capacity(2 * ios.len());
    for (io, Outcome { begun, completed, .. }) in outcomes.iter().enumerate() {
        events.push((*begun, 1, io));
        events.push((*completed, if completed > begun { 0 } else { 2 }, io));
    }
    events.sort_unstable();
    let mut issuer = Issuer::new(ios);
    for (time, kind, index) in events {
        let (io, Outcome { due, begun, late, .. }) = (issuer.ios[index], outcomes[index]);
        let process = &mut issuer.processes[io.process.0 as usize];
        if kind == 1 {
            process.began.get_or_insert(begun - late);
            process.in_flight += 1;
            process.tally.depth(process.in_flight as u32);
        } else {
            process.in_flight -= 1;
            process.ended = time;
            if !issuer.is_preflush[index] {
                count(&mut process.tally, &io, due, time);
            }
        }
    }
    issuer.finish().1
}

fn result(process: &mut Process) -> JobResult {
    let begin = process.began.unwrap_or(Nanos::ZERO);
    process.tally.begin = begin;
    let [read, write, trim] = process.tally.directions(process.ended);
    let (sync_lat, sync_hist) = process.tally.syncs();
    JobResult {
        start_ns: begin.0,
        end_ns: process.ended.0,
        read,
        write,
        trim,
        sync_lat,
        sync_hist,
        latency_levels: process.tally.latency_levels(),
        depth_levels: process.tally.depth_levels,
        ..JobResult::default()
    }
}

#[cfg(test)]
mod tests;
