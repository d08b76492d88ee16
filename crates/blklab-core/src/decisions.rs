//! A scheduler's decisions in a window of a run, as columns: a row for each note of its
//! [`Journal`](crate::scheduler::journal::Journal).

use crate::request::{Op, ProcessId};
use crate::scheduler::journal::{Decision, EndReason, IdleEnd, Note, Raising, Workload};

/// Rows of equal length, in order of time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decisions {
    /// Time, ns of virtual time.
    pub at_ns: Vec<i64>,
    /// Process: index into the result's jobs; -1 for the kernel's writeback, and for decisions
    /// about the whole queue.
    pub process: Vec<i64>,
    /// Kind: index into [`KINDS`].
    pub kind: Vec<i64>,
    /// The kind's first number, 0 if it has none.
    pub a: Vec<i64>,
    /// The kind's second number.
    pub b: Vec<i64>,
}

impl Decisions {
    /// The rows of `notes`; `owner` gives a process's index.
    pub fn new(notes: &[Note], owner: impl Fn(ProcessId) -> i64) -> Decisions {
        let mut all = Decisions::default();
        for note in notes {
            let (name, a, b) = row(note.decision, &owner);
            let kind = KINDS.iter().position(|kind| *kind == name).expect("one table has both");
            all.at_ns.push(note.at.0 as i64);
            all.process.push(owner(note.process));
            all.kind.push(kind as i64);
            all.a.push(a);
            all.b.push(b);
        }
        all
    }
}

/// Each kind's name, its meaning, and its two numbers. Times are in ns.
macro_rules! kinds {
    ($owner:ident: $($name:literal: $decision:pat => $a:expr, $b:expr;)+) => {
        /// Names of all kinds; readers identify kinds by name.
        pub const KINDS: &[&str] = &[$($name),+];

        fn row(decision: Decision, $owner: &impl Fn(ProcessId) -> i64) -> (&'static str, i64, i64) {
            match decision {
                $($decision => ($name, $a as i64, $b as i64)),+
            }
        }
    };
}

kinds! { owner:
    "slice-start": Decision::SliceStart { budget, slice } => budget, slice.0;
    "slice-timed": Decision::SliceTimed { slice } => slice.0, 0;
    "slice-end-no-more-requests": Decision::SliceEnd { reason: EndReason::NoMoreRequests, service } => service, 0;
    "slice-end-too-idle": Decision::SliceEnd { reason: EndReason::TooIdle, service } => service, 0;
    "slice-end-time-out": Decision::SliceEnd { reason: EndReason::TimeOut, service } => service, 0;
    "slice-end-budget-exhausted": Decision::SliceEnd { reason: EndReason::BudgetExhausted, service } => service, 0;
    "slice-end-preempted": Decision::SliceEnd { reason: EndReason::Preempted, service } => service, 0;
    "slice-end-released": Decision::SliceEnd { reason: EndReason::Released, service } => service, 0;
    "slice-end-handed-over": Decision::SliceEnd { reason: EndReason::HandedOver, service } => service, 0;
    "idle-start": Decision::IdleStart { until } => until.0, 0;
    "idle-end-request": Decision::IdleEnd { why: IdleEnd::Request } => 0, 0;
    "idle-end-time-out": Decision::IdleEnd { why: IdleEnd::TimeOut } => 0, 0;
    "idle-end-given-up": Decision::IdleEnd { why: IdleEnd::GivenUp } => 0, 0;
    "weight-raised-interactive": Decision::WeightRaised { kind: Raising::Interactive, factor } => factor, 0;
    "weight-raised-soft-real-time": Decision::WeightRaised { kind: Raising::SoftRealTime, factor } => factor, 0;
    "weight-raised-end": Decision::WeightRaisedEnd => 0, 0;
    "injected": Decision::Injected { during } => owner(during), 0;
    "preempts": Decision::Preempts { process } => owner(process), 0;
    "queues-merged": Decision::QueuesMerged { with } => owner(with), 0;
    "queue-split": Decision::QueueSplit => 0, 0;
    "large-burst": Decision::LargeBurst => 0, 0;
    "expired": Decision::Expired => 0, 0;
    "aged": Decision::Aged => 0, 0;
    "batch-start": Decision::BatchStart { op, starved } => code(op), starved;
    "batch-end": Decision::BatchEnd { requests } => requests, 0;
    "held-back": Decision::HeldBack { op, depth } => code(op), depth;
    "let-go": Decision::LetGo { op } => code(op), 0;
    "depth-changed": Decision::DepthChanged { op, depth } => code(op), depth;
    "async-chosen": Decision::WorkloadChosen { workload: Workload::Async, cgroup, class } => cgroup.0, class;
    "sync-noidle-chosen": Decision::WorkloadChosen { workload: Workload::SyncNoIdle, cgroup, class } => cgroup.0, class;
    "sync-chosen": Decision::WorkloadChosen { workload: Workload::Sync, cgroup, class } => cgroup.0, class;
}

/// As in [`DiskTrace::op`](crate::result::DiskTrace::op).
pub(crate) const fn code(op: Op) -> i64 {
    match op {
        Op::Read => 0,
        Op::Write => 1,
        Op::Flush => 2,
        Op::Discard => 3,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Nanos;

    #[test]
    fn a_row_has_the_name_and_the_numbers_of_its_decision() {
        let note = |ns, process, decision| Note { at: Nanos(ns), process: ProcessId(process), decision };
        let notes = [
            note(3, 0, Decision::SliceStart { budget: 64, slice: Nanos(9) }),
            note(5, 7, Decision::Injected { during: ProcessId(8) }),
            note(6, 1, Decision::BatchStart { op: Op::Write, starved: true }),
        ];
        let rows = Decisions::new(&notes, |process| i64::from(process.0) * 10);
        let names: Vec<_> = rows.kind.iter().map(|&kind| KINDS[kind as usize]).collect();
        assert_eq!(names, ["slice-start", "injected", "batch-start"]);
        assert_eq!((rows.at_ns, rows.process), (vec![3, 5, 6], vec![0, 70, 10]));
        assert_eq!((rows.a, rows.b), (vec![64, 80, 1], vec![9, 0, 1]));
    }
}
