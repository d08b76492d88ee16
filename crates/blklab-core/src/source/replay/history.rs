//! When each I/O of a recording came, among the completions of its process.

use super::Start;
use super::plan::Candidate;
use crate::request::Op;
use crate::units::Nanos;
use blklab_base::recorded::Io;

/// The completions of each process before each of its I/Os. Only counted I/Os, whose completion was
/// recorded, are among them.
pub struct History {
    /// Per I/O: how many counted I/Os of its process came before it.
    pub counted_before: Vec<u32>,
    /// Per I/O: how many of those had completed.
    pub after: Vec<u32>,
    /// Per I/O: when its process could go on: when the last of them had completed, and the I/O of the
    /// process before it was in the block layer, for which it may have waited for a request.
    pub since: Vec<Nanos>,
    /// Per I/O: when the I/O of the process before it was in the block layer.
    pub submitted: Vec<Nanos>,
    /// Per I/O: its process has none before it.
    is_first: Vec<bool>,
}

impl History {
    /// The history of these I/Os, which are in order of their times, of so many processes.
    pub fn new(kept: &[Candidate], processes: usize) -> History {
        let mut completions = vec![Vec::new(); processes];
        for one in kept.iter().filter(|one| one.replay.counted) {
            completions[one.replay.process.0 as usize].extend(one.recorded.completed);
        }
        completions.iter_mut().for_each(|times| times.sort_unstable());
        let mut history = History {
            counted_before: Vec::new(),
            after: Vec::new(),
            since: Vec::new(),
            submitted: Vec::new(),
            is_first: Vec::new(),
        };
        let mut passed = vec![0_usize; processes];
        let mut counted = vec![0_u32; processes];
        let mut submitted: Vec<Option<Nanos>> = vec![None; processes];
        for Candidate { recorded, replay, .. } in kept {
            let process = replay.process.0 as usize;
            let (times, next) = (&completions[process], &mut passed[process]);
            while times.get(*next).is_some_and(|&time| time <= recorded.queued) {
                *next += 1;
            }
            // A clock that stepped may show a completion before its I/O.
            let after = (*next).min(counted[process] as usize);
            history.after.push(after as u32);
            history.counted_before.push(counted[process]);
            let completed = if after == 0 { Nanos::ZERO } else { times[after - 1] };
            history.is_first.push(submitted[process].is_none());
            let before = submitted[process].unwrap_or_default().min(recorded.queued);
            history.submitted.push(before);
            history.since.push(completed.max(before).min(recorded.queued));
            // One that waits for a flush of the kernel's is inserted after that; its process goes on.
            let is_flushed = replay.preflush || replay.op == Op::Flush;
            submitted[process] = Some(recorded.inserted.filter(|_| !is_flushed).unwrap_or(recorded.queued));
            counted[process] += u32::from(replay.counted);
        }
        history
    }

    /// Closed loop: after as many completions as in the recording, and the think time since. The first of
    /// a process comes at its time.
    pub fn start(&self, index: usize, recorded: &Io) -> Start {
        if self.is_first[index] {
            return Start::at(recorded.queued);
        }
        let think = recorded.queued - self.since[index];
        Start { after: self.after[index], goes_on: true, think, ..Start::default() }
    }

    /// No counted I/O of the process was in flight when this one came.
    pub fn was_idle(&self, index: usize) -> bool {
        self.after[index] == self.counted_before[index]
    }
}
