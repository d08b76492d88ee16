//! When each I/O of a recording came, among the completions of its process.

use super::Start;
use super::plan::Candidate;
use crate::request::Op;
use crate::units::Nanos;
use blklab_base::recorded::Io;

/// An I/O this soon after the one before it was in the block layer came at once. An estimate: a little
/// work.
pub const AT_ONCE: Nanos = Nanos::from_micros(20);

/// The completions of each process before each of its I/Os. Only counted I/Os, whose completion was
/// recorded, are among them.
pub struct History {
    /// Per I/O: how many counted I/Os of its process came before it.
    pub counted_before: Vec<u32>,
    /// Per I/O: how many of those had completed that it may have waited for. Where its process had to
    /// wait for a request and then went on at once, it is as many as of the I/O before it: the request
    /// was all that it waited for.
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
        let mut latest: Vec<Option<usize>> = vec![None; processes];
        for (index, one) in kept.iter().enumerate() {
            let Candidate { recorded, replay, .. } = one;
            let process = replay.process.0 as usize;
            let (times, next) = (&completions[process], &mut passed[process]);
            while times.get(*next).is_some_and(|&time| time <= recorded.queued) {
                *next += 1;
            }
            // A clock that stepped may show a completion before its I/O.
            let mut after = (*next).min(counted[process] as usize);
            if let Some(before) = latest[process]
                && let Io { queued, inserted: Some(inserted), .. } = kept[before].recorded
                && inserted > queued
                && !is_flushed(&kept[before])
                && recorded.queued - inserted.min(recorded.queued) <= AT_ONCE
            {
                after = after.min(history.after[before] as usize);
            }
            history.after.push(after as u32);
            latest[process] = Some(index);
            history.counted_before.push(counted[process]);
            let completed = if after == 0 { Nanos::ZERO } else { times[after - 1] };
            history.is_first.push(submitted[process].is_none());
            let before = submitted[process].unwrap_or_default().min(recorded.queued);
            history.submitted.push(before);
            history.since.push(completed.max(before).min(recorded.queued));
            let inserted = recorded.inserted.filter(|_| !is_flushed(one));
            submitted[process] = Some(inserted.unwrap_or(recorded.queued));
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

    /// It is its process's first.
    pub fn is_first(&self, index: usize) -> bool {
        self.is_first[index]
    }

    /// No counted I/O of the process was in flight when this one came.
    pub fn was_idle(&self, index: usize) -> bool {
        self.after[index] == self.counted_before[index]
    }
}

/// It is inserted only after a flush of the kernel's; its process goes on before.
fn is_flushed(one: &Candidate) -> bool {
    one.replay.preflush || one.replay.op == Op::Flush
}
