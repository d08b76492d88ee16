//! Which processes share a queue, which plan to, and how long a queue exists.
//!
//! BFQ merges the queues of processes that read side by side, or that start together and do the
//! same work. A merge is *planned* first: the processes of one queue will move to the other, each
//! with its next request. A queue with a plan of its own is followed to the end of its chain. A
//! shared queue that seeks when its slice ends is *to be split*: each of its processes gets a queue
//! of its own with its next request, and the last one keeps the shared queue.
//!
//! While one process alone uses a queue, it is the queue's *owner*; what the queue has learned is
//! then the owner's, and is kept for it when the queues merge (see [`tasks`](super::tasks)).
//!
//! A queue is kept by its processes (for an asynchronous queue, its group counts as one), by those
//! that will move to it, and by those that may do so later (a planned *stable* merge). Without
//! these and without requests it is freed.
//!
//! Follows the flags `coop` and `split_coop`, `new_bfqq`, `bic`, `ref` and `stable_ref` of
//! `bfq_queue` in Linux 7.3: `bfq_setup_merge`, `bfq_merge_bfqqs`, `bfq_split_bfqq`,
//! `bfq_put_cooperator`, `bfqq_process_refs`. Requests are counted by
//! [`wf2q`](crate::scheduler::shared::wf2q).

use super::QueueId;
use super::tasks::TaskIndex;

#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    /// Processes that issue here or will (`bfqq_process_refs`).
    processes: u32,
    /// Processes with a planned stable merge into it.
    stable: u32,
    owner: Option<TaskIndex>,
    /// The target of the planned merge.
    target: Option<QueueId>,
    /// Shared by several processes.
    shared: bool,
    to_split: bool,
}

/// The processes and plans of all queues.
#[derive(Debug, Default)]
pub(in crate::scheduler::bfq) struct Sharing(Vec<Entry>);

impl Sharing {
    /// A new queue: of one process, or of the group of asynchronous requests.
    pub fn queue_made(&mut self, q: QueueId) {
        if q.index() >= self.0.len() {
            self.0.resize(q.index() + 1, Entry::default());
        }
        self.0[q.index()] = Entry { processes: 1, ..Entry::default() };
    }

    #[inline]
    fn at(&mut self, q: QueueId) -> &mut Entry {
        &mut self.0[q.index()]
    }

    /// One process more issues here.
    pub fn process_comes(&mut self, q: QueueId) {
        self.at(q).processes += 1;
    }

    /// One process fewer issues here, or will.
    pub fn process_leaves(&mut self, q: QueueId) {
        self.at(q).processes -= 1;
    }

    /// No process issues here, or will.
    #[inline]
    pub fn has_no_process(&self, q: QueueId) -> bool {
        self.0[q.index()].processes == 0
    }

    /// One process issues here, or will.
    #[inline]
    pub fn has_one_process(&self, q: QueueId) -> bool {
        self.0[q.index()].processes == 1
    }

    /// Neither a process nor a plan needs the queue.
    pub fn is_unused(&self, q: QueueId) -> bool {
        self.has_no_process(q) && self.0[q.index()].stable == 0
    }

    /// The one process of the queue; none while it is shared.
    #[inline]
    pub fn owner(&self, q: QueueId) -> Option<TaskIndex> {
        self.0[q.index()].owner
    }

    /// The process owns the queue.
    pub fn set_owner(&mut self, q: QueueId, task: TaskIndex) {
        self.at(q).owner = Some(task);
    }

    /// A request of the process comes: the process owns the queue if it is the only one.
    #[inline]
    pub fn request_of(&mut self, q: QueueId, task: TaskIndex) {
        let entry = self.at(q);
        if entry.target.is_none() && entry.processes == 1 {
            entry.owner = Some(task);
        }
    }

    /// The process does not own the queue any more.
    pub fn disown(&mut self, q: QueueId, task: TaskIndex) {
        let entry = self.at(q);
        if entry.owner == Some(task) {
            entry.owner = None;
        }
    }

    /// Plans a merge of `q` into `other`, or into the end of its chain; `may` tells whether the two
    /// queues may merge (`bfq_setup_merge`). Returns the target.
    pub fn plan_merge(
        &mut self,
        q: QueueId,
        other: QueueId,
        may: impl FnOnce(QueueId) -> bool,
    ) -> Option<QueueId> {
        if self.has_no_process(other) {
            return None;
        }
        let mut into = other;
        while let Some(next) = self.target(into) {
            if next == q {
                return None;
            }
            into = next;
        }
        let processes = self.at(q).processes;
        if processes == 0 || self.has_no_process(into) || !may(into) {
            return None;
        }
        self.at(q).target = Some(into);
        // The processes that will join hold the new queue from now on.
        self.at(into).processes += processes;
        Some(into)
    }

    /// The queue to which the processes of this one move.
    #[inline]
    pub fn target(&self, q: QueueId) -> Option<QueueId> {
        self.0[q.index()].target
    }

    /// The last queue of the chain of planned merges.
    pub fn end_of_chain(&self, mut q: QueueId) -> QueueId {
        while let Some(next) = self.target(q) {
            q = next;
        }
        q
    }

    /// `other` is in the chain of planned merges behind `q`.
    pub fn leads_to(&self, q: QueueId, other: QueueId) -> bool {
        std::iter::successors(self.target(q), |&at| self.target(at)).any(|at| at == other)
    }

    /// The queue has a process beside those of a queue that will be split off.
    pub fn merged(&mut self, from: QueueId, into: QueueId) {
        self.at(from).owner = None;
        let shared = self.at(into);
        shared.shared = true;
        shared.owner = None;
    }

    /// More than one process has used it, and it was not split.
    #[inline]
    pub fn is_shared(&self, q: QueueId) -> bool {
        self.0[q.index()].shared
    }

    /// A slice of the queue ends.
    pub fn slice_ends(&mut self, q: QueueId, seeky: bool) {
        let entry = self.at(q);
        entry.to_split |= entry.shared && seeky;
    }

    /// Each of its processes should have a queue of its own again.
    #[inline]
    pub fn is_to_split(&self, q: QueueId) -> bool {
        self.0[q.index()].shared && self.0[q.index()].to_split
    }

    /// The last process of a queue that is to be split keeps it for itself; false if others use it,
    /// too, or will move on.
    pub fn keep_if_last(&mut self, q: QueueId) -> bool {
        let entry = self.at(q);
        let is_last = entry.processes == 1 && entry.target.is_none();
        if is_last {
            entry.shared = false;
            entry.to_split = false;
        }
        is_last
    }

    /// A process may move to this queue later.
    pub fn stable_merge_planned(&mut self, q: QueueId) {
        self.at(q).stable += 1;
    }

    /// A process with a planned stable merge into `q` has moved, or will not move.
    pub fn stable_merge_done(&mut self, q: QueueId) {
        self.at(q).stable -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::leaves;
    use super::*;

    const FIRST: TaskIndex = TaskIndex(1);

    fn sharing<const COUNT: usize>() -> (Sharing, [QueueId; COUNT]) {
        let queues: [QueueId; COUNT] = leaves(COUNT).try_into().expect("so many");
        let mut sharing = Sharing::default();
        queues.iter().for_each(|&q| sharing.queue_made(q));
        (sharing, queues)
    }

    #[test]
    fn the_target_of_a_plan_is_held_by_those_that_will_come() {
        let (mut sharing, [from, into]) = sharing();
        sharing.process_comes(from);
        assert_eq!(sharing.plan_merge(from, into, |_| true), Some(into));
        sharing.process_leaves(into);
        assert!(!sharing.is_unused(into) && !sharing.has_one_process(into), "two will come");
    }

    #[test]
    fn a_plan_leads_to_the_end_of_a_chain_and_never_in_a_circle() {
        let (mut sharing, [a, b, c]) = sharing();
        sharing.plan_merge(a, b, |_| true);
        assert_eq!(sharing.plan_merge(c, a, |_| true), Some(b));
        assert_eq!(sharing.plan_merge(b, c, |_| true), None);
        assert!(sharing.leads_to(c, b) && !sharing.leads_to(b, c));
        assert_eq!((sharing.end_of_chain(c), sharing.end_of_chain(b)), (b, b));
    }

    #[test]
    fn queues_that_must_stay_apart_or_have_no_process_do_not_merge() {
        let (mut sharing, [a, b]) = sharing();
        assert_eq!(sharing.plan_merge(a, b, |_| false), None);
        sharing.process_leaves(b);
        assert_eq!(sharing.plan_merge(a, b, |_| true), None);
        assert_eq!(sharing.plan_merge(b, a, |_| true), None);
    }

    #[test]
    fn a_queue_has_an_owner_while_one_process_uses_it() {
        let (mut sharing, [a, b]) = sharing();
        sharing.request_of(a, FIRST);
        assert_eq!(sharing.owner(a), Some(FIRST));
        sharing.disown(a, TaskIndex(2));
        assert_eq!(sharing.owner(a), Some(FIRST), "another process");
        sharing.plan_merge(b, a, |_| true);
        sharing.merged(b, a);
        assert_eq!(sharing.owner(a), None);
        sharing.request_of(a, FIRST);
        assert_eq!(sharing.owner(a), None, "two use it");
    }

    #[test]
    fn a_shared_queue_that_seeks_is_split_down_to_the_last_process() {
        let (mut sharing, [a, b]) = sharing();
        sharing.slice_ends(a, true);
        assert!(!sharing.is_to_split(a), "one process alone may seek");
        sharing.plan_merge(b, a, |_| true);
        sharing.merged(b, a);
        sharing.slice_ends(a, false);
        assert!(sharing.is_shared(a) && !sharing.is_to_split(a));
        sharing.slice_ends(a, true);
        assert!(sharing.is_to_split(a) && !sharing.keep_if_last(a));
        sharing.process_leaves(a);
        assert!(sharing.keep_if_last(a) && !sharing.is_shared(a));
    }

    #[test]
    fn a_planned_stable_merge_keeps_a_queue() {
        let (mut sharing, [a]) = sharing();
        sharing.stable_merge_planned(a);
        sharing.process_leaves(a);
        assert!(!sharing.is_unused(a));
        sharing.stable_merge_done(a);
        assert!(sharing.is_unused(a));
    }
}
