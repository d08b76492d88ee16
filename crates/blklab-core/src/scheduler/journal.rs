//! What a scheduler decided, and when: the log behind `blklab explain`.
//!
//! Off unless a run asks for it; then a note is one comparison.

use std::collections::BTreeMap;

use super::CgroupId;
use crate::request::{Op, PrioClass, ProcessId};
use crate::units::Nanos;

/// Why a process's turn ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndReason {
    /// It had nothing to ask for, not even after idling for it.
    NoMoreRequests,
    /// It kept the disk waiting too often: its turn's budget was not worth idling for.
    TooIdle,
    /// Its time was over.
    TimeOut,
    /// Its budget was used up.
    BudgetExhausted,
    /// Another process was to go before it.
    Preempted,
    /// The queue was merged with another, or its process ended.
    Released,
    /// Another process goes on close to where it stopped.
    HandedOver,
}

/// Why idling for a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdleEnd {
    /// The process asked for something in time.
    Request,
    /// It did not.
    TimeOut,
    /// Another process was served instead.
    GivenUp,
}

/// For what kind of process a weight is raised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Raising {
    /// It was idle and has begun again: perhaps somebody waits before a screen.
    Interactive,
    /// It asks for little, at regular times.
    SoftRealTime,
}

/// A kind of load, as cfq tells them apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workload {
    /// Requests that nobody waits for.
    Async,
    /// Processes that nobody idles for: seeky, or slow to come back.
    SyncNoIdle,
    /// Processes that are worth idling for.
    Sync,
}

/// What a scheduler decided for a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Its turn begins: for so many sectors, or for so long (0: not limited that way).
    SliceStart {
        /// Sectors that it may ask for.
        budget: u32,
        /// Time that it may take.
        slice: Nanos,
    },
    /// Its first request has ended: from now on its turn takes so long.
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
    /// The disk is kept idle for it, until then at the latest.
    IdleStart {
        /// Until when.
        until: Nanos,
    },
    /// The disk is not kept idle any more.
    IdleEnd {
        /// Why.
        why: IdleEnd,
    },
    /// Its weight is raised.
    WeightRaised {
        /// What it is taken for.
        kind: Raising,
        /// By this factor.
        factor: u32,
    },
    /// Its weight is its own again.
    WeightRaisedEnd,
    /// One of its requests is served in the turn of another process.
    Injected {
        /// Whose turn it is.
        during: ProcessId,
    },
    /// It takes the turn of another process.
    Preempts {
        /// Whose.
        process: ProcessId,
    },
    /// It shares a queue with another process from now on: their requests lie side by side.
    QueuesMerged {
        /// With whom.
        with: ProcessId,
    },
    /// It has a queue of its own again.
    QueueSplit,
    /// It began together with many others and is not taken for an interactive one.
    LargeBurst,
    /// A request of it waited longer than its limit and goes first.
    Expired,
    /// A request of it waited so long that it goes before those of a higher priority class.
    Aged,
    /// Requests of one direction go, one behind the other.
    BatchStart {
        /// Reads, or everything else.
        op: Op,
        /// Writes, although reads wait: they were passed over often enough.
        starved: bool,
    },
    /// The next batch begins.
    BatchEnd {
        /// How many went.
        requests: u32,
    },
    /// No more requests of this kind go until some have ended.
    HeldBack {
        /// Of which kind.
        op: Op,
        /// So many may be with the disk at once.
        depth: u32,
    },
    /// They may go again.
    LetGo {
        /// Of which kind.
        op: Op,
    },
    /// Another number of requests of this kind may be with the disk at once.
    DepthChanged {
        /// Of which kind.
        op: Op,
        /// How many.
        depth: u32,
    },
    /// Another cgroup, class or kind of load is served, beginning with it.
    WorkloadChosen {
        /// The group.
        cgroup: CgroupId,
        /// The class.
        class: PrioClass,
        /// The kind of load; of no meaning for the idle class, which is not divided.
        workload: Workload,
    },
}

/// One decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Note {
    /// When.
    pub at: Nanos,
    /// For whom.
    pub process: ProcessId,
    /// What.
    pub decision: Decision,
}

/// What lasts from one decision to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Lasting {
    Slice,
    Idling,
    Raising,
    Batch,
    Holding { writes: bool },
}

impl Decision {
    /// What begins (true) or ends with it, if it is of that kind.
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
    /// What had begun and not ended when the window began.
    under_way: BTreeMap<(Lasting, ProcessId), Note>,
    /// Notes that fit; 0: nobody wants any.
    limit: usize,
    from: Nanos,
    until: Nanos,
    left_out: u64,
}

impl Journal {
    /// Keep what is decided from `from` on, up to `limit` notes.
    pub fn keep(&mut self, from: Nanos, limit: usize) {
        self.keep_until(from, Nanos::NEVER, limit);
    }

    /// Keep what is decided from `from` to `until`, up to `limit` notes.
    pub fn keep_until(&mut self, from: Nanos, until: Nanos, limit: usize) {
        (self.from, self.until, self.limit) = (from, until, limit);
    }

    /// Somebody reads what is noted.
    #[inline]
    pub fn is_kept(&self) -> bool {
        self.limit > 0
    }

    /// `process` is concerned by `decision`.
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

    /// What was noted, in order of time, and how many notes did not fit. First comes what had
    /// begun before and was under way when the window began.
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
    fn what_is_under_way_when_the_window_begins_is_known() {
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
    fn a_journal_keeps_what_is_asked_for_and_counts_the_rest() {
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
