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
mod tests {
    use super::super::Start;
    use super::*;

    const US: fn(u64) -> Nanos = Nanos::from_micros;

    fn io(process: u32, start: Start) -> ReplayIo {
        let process = ProcessId(process);
        ReplayIo { start, process, sectors: 8, counted: true, plug: Plug::None, ..ReplayIo::default() }
    }

    #[test]
    fn an_io_that_follows_another_if_that_has_begun_waits_for_it_only_then() {
        let follows = Start { follows: Some(0), if_begun: true, think: US(5), after: 1, ..Start::default() };
        let ios = || vec![io(0, Start::at(US(100))), io(1, Start::at(US(0))), io(1, follows)];
        // It has not begun when the process's own I/O ends.
        let mut issuer = Issuer::new(ios());
        submit(&mut issuer, 1, US(0));
        assert_eq!(issuer.next(ProcessId(1), US(0)), Step::Wait);
        issuer.completed(1, US(40), |_| ());
        assert_eq!(issuer.next(ProcessId(1), US(40)), Step::Pause(US(45)));
        // It has.
        let mut issuer = Issuer::new(ios());
        submit(&mut issuer, 1, US(0));
        submit(&mut issuer, 0, US(100));
        issuer.completed(1, US(140), |_| ());
        assert_eq!(issuer.next(ProcessId(1), US(140)), Step::Wait);
        let mut woken = Vec::new();
        issuer.completed(0, US(300), |id| woken.push(id));
        // The other one ends.
        assert_eq!(woken, [ProcessId(0), ProcessId(1)]);
        assert_eq!(issuer.next(ProcessId(1), US(300)), Step::Pause(US(305)));
    }

    #[test]
    fn an_io_neither_waits_nor_pauses_if_more_was_written_when_its_own_process_could_go_on() {
        let waits = Start { follows: Some(1), unless: Some(0), think: US(50), after: 1, ..Start::default() };
        let written = |ends: [u64; 2]| {
            let at = |time| Start::at(US(time));
            let mut issuer = Issuer::new(vec![io(0, at(0)), io(0, at(0)), io(1, at(0)), io(1, waits)]);
            submit(&mut issuer, 0, US(0));
            submit(&mut issuer, 0, US(0));
            submit(&mut issuer, 1, US(0));
            let mut events = vec![(ends[0], 0), (ends[1], 1), (100, 2)];
            events.sort_unstable();
            for (time, index) in events {
                issuer.completed(index, US(time), |_| ());
                let _ = issuer.next(ProcessId(1), US(time));
            }
            issuer.next(ProcessId(1), US(100.max(ends[1])))
        };
        assert_eq!(written([90, 400]), Step::Submit { io: 3, due: US(100) });
        // Written only after the pause has begun, it does not shorten it.
        assert_eq!(written([110, 400]), Step::Pause(US(450)));
    }

    /// Submits the process's next I/O at `now`, at which it must be due; its index.
    fn submit(issuer: &mut Issuer, process: u32, now: Nanos) -> u32 {
        let step = issuer.next(ProcessId(process), now);
        let Step::Submit { io, due } = step else { panic!("{step:?} at {now}") };
        issuer.begin(io, due, now);
        issuer.submitted(io, now);
        io
    }

    fn completed(issuer: &mut Issuer, io: u32, now: Nanos) -> (Vec<u32>, Nanos) {
        let mut woken = Vec::new();
        let latency = issuer.completed(io, now, |process| woken.push(process.0));
        (woken, latency)
    }

    #[test]
    fn in_the_open_loop_a_late_io_comes_at_once_and_its_latency_counts_from_its_time() {
        let mut issuer = Issuer::new(vec![io(0, Start::at(US(5))), io(0, Start::at(US(9)))]);
        assert_eq!(issuer.next(ProcessId(0), US(1)), Step::Pause(US(5)));
        assert_eq!(submit(&mut issuer, 0, US(5)), 0);
        assert_eq!(submit(&mut issuer, 0, US(12)), 1);
        assert_eq!(issuer.next(ProcessId(0), US(12)), Step::Wait);
        assert_eq!(completed(&mut issuer, 1, US(20)), (vec![], US(11)));
        assert_eq!(completed(&mut issuer, 0, US(21)), (vec![0], US(16)));
        assert_eq!(issuer.next(ProcessId(0), US(21)), Step::Finish);
        let (outcomes, jobs) = issuer.finish();
        assert_eq!(
            outcomes[1],
            Outcome {
                due: US(9),
                begun: US(12),
                late: US(3),
                held: US(0),
                issued: US(12),
                completed: US(20)
            }
        );
        assert_eq!((jobs[0].read.ios, jobs[0].start_ns, jobs[0].end_ns), (2, 5_000, 21_000));
    }

    #[test]
    fn an_io_that_comes_late_because_its_process_waited_for_a_request_is_held_that_long() {
        let mut issuer = Issuer::new(vec![io(0, Start::at(US(5))), io(0, Start::at(US(9)))]);
        issuer.begin(0, US(5), US(6));
        issuer.submitted(0, US(11));
        assert_eq!(submit(&mut issuer, 0, US(12)), 1);
        let of = |outcome: Outcome| (outcome.late, outcome.held);
        let outcomes = issuer.finish().0;
        assert_eq!([of(outcomes[0]), of(outcomes[1])], [(US(1), US(0)), (US(3), US(2))]);
    }

    #[test]
    fn an_io_that_follows_the_last_of_several_waits_for_all_of_them() {
        let follows = |drains| Start { follows: Some(2), drains, think: US(5), ..Start::default() };
        let ios = || (0..3).map(|_| io(0, Start::default()));
        for (drains, due) in [(false, 15), (true, 35)] {
            let mut issuer = Issuer::new(ios().chain([io(1, follows(drains))]).collect());
            assert_eq!([0; 3].map(|_| submit(&mut issuer, 0, US(0))), [0, 1, 2]);
            assert_eq!(issuer.next(ProcessId(1), US(0)), Step::Wait);
            let woken = [(2, 10), (0, 20), (1, 30)].map(|(io, at)| completed(&mut issuer, io, US(at)).0);
            let expected = if drains { [vec![], vec![], vec![0, 1]] } else { [vec![1], vec![], vec![0]] };
            assert_eq!(woken.map(|mut all| (all.sort_unstable(), all).1), expected);
            assert_eq!(
                issuer.next(ProcessId(1), US(30)),
                match due {
                    35 => Step::Pause(US(35)),
                    due => Step::Submit { io: 3, due: US(due) },
                }
            );
        }
    }

    #[test]
    fn in_the_closed_loop_an_io_comes_a_pause_after_so_many_completions_in_any_order() {
        let closed = Start { after: 2, think: US(3), ..Start::default() };
        let mut issuer = Issuer::new(vec![io(0, Start::default()), io(0, Start::default()), io(0, closed)]);
        assert_eq!([submit(&mut issuer, 0, US(0)), submit(&mut issuer, 0, US(0))], [0, 1]);
        assert_eq!(issuer.next(ProcessId(0), US(0)), Step::Wait);
        assert_eq!(completed(&mut issuer, 1, US(4)).0, [] as [u32; 0]);
        assert_eq!(completed(&mut issuer, 0, US(7)).0, [0]);
        assert_eq!(issuer.next(ProcessId(0), US(7)), Step::Pause(US(10)));
        assert_eq!(submit(&mut issuer, 0, US(10)), 2);
    }

    #[test]
    fn jobs_that_are_told_again_are_what_they_were_and_with_earlier_completions_faster() {
        let starts =
            [Start::at(US(5)), Start::at(US(9)), Start { after: 2, think: US(3), ..Start::default() }];
        let ios: Vec<_> = starts.into_iter().map(|start| io(0, start)).collect();
        let mut issuer = Issuer::new(ios.clone());
        assert_eq!([submit(&mut issuer, 0, US(5)), submit(&mut issuer, 0, US(12))], [0, 1]);
        assert_eq!(completed(&mut issuer, 1, US(20)).0, [] as [u32; 0]);
        assert_eq!(completed(&mut issuer, 0, US(21)).0, [0]);
        assert_eq!(submit(&mut issuer, 0, US(24)), 2);
        completed(&mut issuer, 2, US(24));
        let (mut outcomes, jobs) = issuer.finish();
        assert_eq!(format!("{:?}", retold(ios.clone(), &outcomes)), format!("{jobs:?}"));
        outcomes[1].completed = US(14);
        let [earlier] = &retold(ios, &outcomes)[..] else { panic!("one process") };
        assert_eq!((earlier.read.lat.min_ns, earlier.read.ios), (0, 3));
        assert_eq!(jobs[0].read.lat.max_ns - earlier.read.lat.max_ns, 0);
        assert!((jobs[0].read.lat.mean_ns - earlier.read.lat.mean_ns - 2_000.0).abs() < 1e-6);
    }

    #[test]
    fn a_process_that_waits_for_a_request_is_not_woken_by_its_completions() {
        let closed = Start { after: 1, ..Start::default() };
        let mut issuer = Issuer::new(vec![io(0, Start::default()), io(0, Start::default()), io(0, closed)]);
        assert_eq!(submit(&mut issuer, 0, US(0)), 0);
        issuer.begin(1, US(0), US(0));
        assert_eq!(completed(&mut issuer, 0, US(4)).0, [] as [u32; 0], "it asks when it is back");
        issuer.submitted(1, US(5));
        assert_eq!(issuer.next(ProcessId(0), US(5)), Step::Submit { io: 2, due: US(5) });
    }

    #[test]
    fn a_follower_is_named_when_the_io_of_another_process_completes() {
        let follows = Start { follows: Some(0), think: US(2), ..Start::default() };
        let mut issuer = Issuer::new(vec![io(0, Start::default()), io(1, follows), io(2, follows)]);
        assert_eq!(submit(&mut issuer, 0, US(0)), 0);
        for process in [2, 1] {
            assert_eq!(issuer.next(ProcessId(process), US(0)), Step::Wait);
        }
        // The first process has no more I/Os, and only ends.
        assert_eq!(completed(&mut issuer, 0, US(4)).0, [0, 1, 2], "in the order in which they were recorded");
        assert_eq!(issuer.next(ProcessId(1), US(4)), Step::Pause(US(6)));
    }

    #[test]
    fn an_io_of_a_plug_is_due_when_its_process_has_got_a_request_for_the_one_before() {
        let goes_on = Start { goes_on: true, ..Start::default() };
        for (start, due) in [(goes_on, 40), (Start::at(US(5)), 5)] {
            let first = ReplayIo { plug: Plug::GoesOn, ..io(0, Start::at(US(5))) };
            let mut issuer = Issuer::new(vec![first, io(0, start)]);
            issuer.begin(0, US(5), US(5));
            issuer.submitted(0, US(40));
            assert_eq!(issuer.next(ProcessId(0), US(40)), Step::Submit { io: 1, due: US(due) });
        }
    }

    #[test]
    fn ios_under_one_plug_are_due_together_whatever_their_own_starts() {
        let first = ReplayIo { plug: Plug::GoesOn, ..io(0, Start::at(US(5))) };
        let mut issuer = Issuer::new(vec![first, io(0, Start::at(US(900)))]);
        issuer.begin(0, US(5), US(5));
        assert_eq!(issuer.next(ProcessId(0), US(5)), Step::Submit { io: 1, due: US(5) });
        assert_eq!(issuer.in_flight(ProcessId(0)), 1);
    }
}
