//! The scheduler's decisions and their times: the log behind `blklab explain`.
//!
//! Off unless a run asks for it; then a note costs one comparison.

use std::collections::BTreeMap;

use super::CgroupId;
use crate::request::{Op, PrioClass, ProcessId};
use crate::units::Nanos;

/// Why a process's turn ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndReason {
    /// It had no more requests, not even after idling.
    NoMoreRequests,
    /// The disk idled for it too long: no request came in time.
    TooIdle,
    /// Its time was over.
    TimeOut,
    /// Its budget was used up.
    BudgetExhausted,
    /// Another process preempted it.
    Preempted,
    /// Its queue was merged with another, or the process exited.
    Released,
    /// Another process continues close to where it stopped.
    HandedOver,
}

/// Why idling for a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdleEnd {
    /// The process sent a request in time.
    Request,
    /// No request came in time.
    TimeOut,
    /// Another process was served instead.
    GivenUp,
}

/// The reason for weight-raising.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Raising {
    /// The process was idle and starts again: perhaps a user waits for it.
    Interactive,
    /// It sends few requests, at regular times.
    SoftRealTime,
}

/// A workload type of cfq.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workload {
    /// Asynchronous requests.
    Async,
    /// Synchronous queues without idling: seeky, or with a long think time.
    SyncNoIdle,
    /// Synchronous queues that are worth idling for.
    Sync,
}

/// A scheduler's decision about a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Its turn begins, limited in sectors or in time (0: no limit of that kind).
    SliceStart {
        /// Sectors that it may get.
        budget: u32,
        /// Time that it may take.
        slice: Nanos,
    },
    /// Its first request has completed: its time slice starts.
    SliceTimed {
        /// Time that it may take.
        slice: Nanos,
    },
    /// Its turn ends.
    SliceEnd {
        /// Why.
        reason: EndReason,
        /// Sectors that it got.
        service: u32,
    },
    /// The disk starts idling for it.
    IdleStart {
        /// Latest end.
        until: Nanos,
    },
    /// The disk stops idling.
    IdleEnd {
        /// Why.
        why: IdleEnd,
    },
    /// Its weight is raised.
    WeightRaised {
        /// The reason.
        kind: Raising,
        /// The factor of the weight.
        factor: u32,
    },
    /// The weight-raising ends.
    WeightRaisedEnd,
    /// One of its requests is injected into the turn of another process.
    Injected {
        /// The process in service.
        during: ProcessId,
    },
    /// It preempts another process.
    Preempts {
        /// The preempted process.
        process: ProcessId,
    },
    /// From now on it shares a queue with another process: their requests are close together.
    QueuesMerged {
        /// The other process.
        with: ProcessId,
    },
    /// It has its own queue again.
    QueueSplit,
    /// It started together with many others and does not count as interactive.
    LargeBurst,
    /// One of its requests has expired and goes first.
    Expired,
    /// One of its requests has waited so long that it goes before a higher priority class.
    Aged,
    /// A batch of requests of one direction begins.
    BatchStart {
        /// Reads, or everything else.
        op: Op,
        /// Writes, although reads wait: reads were preferred often enough.
        starved: bool,
    },
    /// The next batch begins.
    BatchEnd {
        /// Requests dispatched.
        requests: u32,
    },
    /// No more requests of this kind are dispatched until some complete.
    HeldBack {
        /// The kind.
        op: Op,
        /// The limit of requests in flight.
        depth: u32,
    },
    /// Requests of this kind are dispatched again.
    LetGo {
        /// The kind.
        op: Op,
    },
    /// The limit of requests in flight changes for this kind.
    DepthChanged {
        /// The kind.
        op: Op,
        /// The new limit.
        depth: u32,
    },
    /// Another cgroup, class or workload type is served, beginning with it.
    WorkloadChosen {
        /// The group.
        cgroup: CgroupId,
        /// The class.
        class: PrioClass,
        /// The workload type; without meaning for the idle class, which is not divided.
        workload: Workload,
    },
}

/// One decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Note {
    /// When.
    pub at: Nanos,
    /// The process that it concerns.
    pub process: ProcessId,
    /// The decision.
    pub decision: Decision,
}

/// A state that lasts from one decision to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Lasting {
    Slice,
    Idling,
    Raising,
    Batch,
    Holding { writes: bool },
}

impl Decision {
    /// The state that begins (true) or ends with it, if any.
    fn lasting(&self) -> Option<(Lasting, bool)> {
        Some(match self {
            Decision::SliceStart { .. } => (Lasting::Slice, true),
            Decision::SliceEnd { .. } => (Lasting::Slice, false),
            Decision::IdleStart { .. } => (Lasting::Idling, true),
            Decision::IdleEnd { .. } => (Lasting::Idling, false),
            Decision::WeightRaised { .. } => (Lasting::Raising, true),
            Decision::WeightRaisedEnd => (Lasting::Raising, false),
            Decision::BatchStart { .. } => (Lasting::Batch, true),
            Decision::BatchEnd { .. } => (Lasting::Batch, false),
            Decision::HeldBack { op, .. } => (Lasting::Holding { writes: op.is_write() }, true),
            Decision::LetGo { op } => (Lasting::Holding { writes: op.is_write() }, false),
            _ => return None,
        })
    }
}

/// A log of decisions of bounded size.
#[derive(Clone, Debug, Default)]
pub struct Journal {
    notes: Vec<Note>,
    /// States that had begun and not ended when the window began.
    under_way: BTreeMap<(Lasting, ProcessId), Note>,
    /// The maximum number of notes; 0: the journal is off.
    limit: usize,
    from: Nanos,
    until: Nanos,
    left_out: u64,
}

impl Journal {
    /// Keeps decisions from `from` on, up to `limit` notes.
    pub fn keep(&mut self, from: Nanos, limit: usize) {
        self.keep_until(from, Nanos::NEVER, limit);
    }

    /// Keeps decisions from `from` to `until`, up to `limit` notes.
    pub fn keep_until(&mut self, from: Nanos, until: Nanos, limit: usize) {
        (self.from, self.until, self.limit) = (from, until, limit);
    }

    /// The journal is on.
    #[inline]
    pub fn is_kept(&self) -> bool {
        self.limit > 0
    }

    /// Notes a `decision` about `process`.
    #[inline]
    pub fn note(&mut self, now: Nanos, process: ProcessId, decision: Decision) {
        if self.is_kept() {
            self.write(Note { at: now, process, decision });
        }
    }

    #[cold]
    fn write(&mut self, note: Note) {
        if note.at < self.from {
            return self.before(note);
        }
        if note.at > self.until {
            return;
        }
        if self.notes.len() < self.limit {
            self.notes.push(note);
        } else {
            self.left_out += 1;
        }
    }

    fn before(&mut self, note: Note) {
        if let Some((lasting, begins)) = note.decision.lasting() {
            let key = (lasting, note.process);
            match begins {
                true => self.under_way.insert(key, note),
                false => self.under_way.remove(&key),
            };
        }
    }

    /// The notes, in order of time, and the number of notes that did not fit. States that had begun
    /// before the window come first.
    pub fn take(&mut self) -> (Vec<Note>, u64) {
        let mut all: Vec<_> = std::mem::take(&mut self.under_way).into_values().collect();
        all.sort_by_key(|note| note.at);
        all.append(&mut self.notes);
        (all, std::mem::take(&mut self.left_out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_at_the_windows_begin_are_known() {
        let mut journal = Journal::default();
        journal.keep(Nanos(10), 9);
        let raised = Decision::WeightRaised { kind: Raising::Interactive, factor: 30 };
        let held = |op| Decision::HeldBack { op, depth: 1 };
        let notes = [
            (1, 7, raised),
            (2, 8, raised),
            (3, 0, held(Op::Write)),
            (4, 0, held(Op::Read)),
            (5, 8, Decision::WeightRaisedEnd),
            (6, 0, Decision::LetGo { op: Op::Read }),
            (7, 7, Decision::Expired),
            (12, 7, Decision::WeightRaisedEnd),
        ];
        for (at, process, decision) in notes {
            journal.note(Nanos(at), ProcessId(process), decision);
        }
        let found: Vec<_> = journal.take().0.into_iter().map(|note| (note.at.0, note.decision)).collect();
        assert_eq!(found, [(1, raised), (3, held(Op::Write)), (12, Decision::WeightRaisedEnd)]);
    }

    #[test]
    fn a_journal_keeps_the_requested_notes_and_counts_the_rest() {
        let mut journal = Journal::default();
        let at = |journal: &mut Journal, ns| journal.note(Nanos(ns), ProcessId(1), Decision::QueueSplit);
        at(&mut journal, 1);
        let kept = |journal: &mut Journal| {
            (2..9).for_each(|ns| at(journal, ns));
            let (notes, left_out) = journal.take();
            (notes.iter().map(|note| note.at.0).collect::<Vec<_>>(), left_out)
        };
        journal.keep(Nanos(5), 2);
        assert_eq!(kept(&mut journal), (vec![5, 6], 2));
        journal.keep_until(Nanos(5), Nanos(7), 2);
        assert_eq!(kept(&mut journal), (vec![5, 6], 1));
    }
}
