//! Processes as BFQ knows them: the queues that they use now, and what is kept for them while they
//! share one.
//!
//! A process names two queues, of its asynchronous and of its synchronous requests. When its queue
//! is merged into another, the state of the queue is saved here: what it has learned about the
//! process, its burst, its weight and its raising. When the shared queue is split, the process's
//! new queue continues with that.
//!
//! A process whose queue was created shortly after another one may get a *stable merge*: it is
//! planned here, decided later, and never split again.
//!
//! Follows `bfq_io_cq` and `bfq_iocq_bfqq_data` of Linux 7.3: `bic_to_bfqq`, `bic_set_bfqq`,
//! `bfq_bfqq_save_state`, `stable_merge_bfqq`, `stably_merged`.

use super::QueueId;
use super::burst::Membership;
use super::learnt::Learnt;
use super::raising::Raising;
use crate::request::{IoPrio, ProcessId};
use crate::scheduler::CgroupId;

/// A process's number; the kernel's own threads come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::scheduler::bfq) struct TaskIndex(pub u32);

impl TaskIndex {
    #[inline]
    pub const fn of(process: ProcessId) -> TaskIndex {
        TaskIndex(process.place())
    }

    #[inline]
    pub const fn process(self) -> ProcessId {
        ProcessId::at_place(self.0)
    }

    #[inline]
    const fn index(self) -> usize {
        self.0 as usize
    }
}

/// The state of a process's queue before the merge.
#[derive(Clone, Copy, Debug)]
pub(in crate::scheduler::bfq) struct Saved {
    pub learnt: Learnt,
    pub burst: Membership,
    pub weight: u32,
    pub raising: Raising,
}

#[derive(Debug)]
struct Task {
    /// Async, sync.
    queues: [Option<QueueId>; 2],
    /// Requests that have not completed.
    requests: u32,
    prio: IoPrio,
    cgroup: CgroupId,
    saved: Saved,
    /// The queue of the planned stable merge.
    stable_merge: Option<QueueId>,
    /// A stable merge was done.
    stably_merged: bool,
}

impl Task {
    fn new(prio: IoPrio, cgroup: CgroupId) -> Task {
        let saved = Saved {
            learnt: Learnt::nothing(),
            burst: Membership::default(),
            weight: 0,
            raising: Raising::new(0),
        };
        let (queues, requests) = ([None; 2], 0);
        Task { queues, requests, prio, cgroup, saved, stable_merge: None, stably_merged: false }
    }
}

/// All processes.
#[derive(Debug, Default)]
pub(in crate::scheduler::bfq) struct Tasks(Vec<Task>);

impl Tasks {
    /// Knows the process from now on; `facts` tells the priority and the cgroup of any process.
    #[inline]
    pub fn know(&mut self, task: TaskIndex, facts: impl Fn(ProcessId) -> (IoPrio, CgroupId)) {
        while self.0.len() <= task.index() {
            let (prio, cgroup) = facts(TaskIndex(self.0.len() as u32).process());
            self.0.push(Task::new(prio, cgroup));
        }
    }

    /// The process has sent a request.
    pub fn knows(&self, task: TaskIndex) -> bool {
        task.index() < self.0.len()
    }

    pub fn prio(&self, task: TaskIndex) -> IoPrio {
        self.0[task.index()].prio
    }

    pub fn cgroup(&self, task: TaskIndex) -> CgroupId {
        self.0[task.index()].cgroup
    }

    /// The process has moved to this cgroup.
    pub fn set_cgroup(&mut self, task: TaskIndex, cgroup: CgroupId) {
        self.0[task.index()].cgroup = cgroup;
    }

    /// The queue of the process's requests of that kind, if it has one.
    #[inline]
    pub fn queue(&self, task: TaskIndex, sync: bool) -> Option<QueueId> {
        self.0.get(task.index())?.queues[usize::from(sync)]
    }

    /// The process uses this queue from now on; returns the one before (`bic_set_bfqq`).
    pub fn set_queue(&mut self, task: TaskIndex, sync: bool, q: Option<QueueId>) -> Option<QueueId> {
        std::mem::replace(&mut self.0[task.index()].queues[usize::from(sync)], q)
    }

    /// The process issues a request.
    #[inline]
    pub fn request(&mut self, task: TaskIndex) {
        self.0[task.index()].requests += 1;
    }

    /// A request of the process is freed.
    #[inline]
    pub fn freed(&mut self, task: TaskIndex) {
        self.0[task.index()].requests -= 1;
    }

    /// The process has no more than this one request.
    #[inline]
    pub fn has_one_request(&self, task: TaskIndex) -> bool {
        self.0[task.index()].requests <= 1
    }

    /// The saved state of the process's queue.
    pub fn saved(&self, task: TaskIndex) -> &Saved {
        &self.0[task.index()].saved
    }

    /// The process's queue is merged.
    pub fn save(&mut self, task: TaskIndex, saved: Saved) {
        self.0[task.index()].saved = saved;
    }

    /// The shared queue of the process belongs to a large burst, and so does its next own one.
    pub fn mark_burst(&mut self, task: TaskIndex) {
        self.0[task.index()].saved.burst.mark();
    }

    /// Plans a stable merge of the process's queue into this one.
    pub fn plan_stable_merge(&mut self, task: TaskIndex, into: QueueId) {
        self.0[task.index()].stable_merge = Some(into);
    }

    /// The queue of the planned stable merge.
    #[inline]
    pub fn stable_merge(&self, task: TaskIndex) -> Option<QueueId> {
        self.0[task.index()].stable_merge
    }

    /// The planned stable merge is decided, or dropped.
    pub fn take_stable_merge(&mut self, task: TaskIndex) -> Option<QueueId> {
        self.0[task.index()].stable_merge.take()
    }

    /// The process's queue will not be split again.
    pub fn merged_stably(&mut self, task: TaskIndex) {
        self.0[task.index()].stably_merged = true;
    }

    #[inline]
    pub fn is_stably_merged(&self, task: TaskIndex) -> bool {
        self.0[task.index()].stably_merged
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::leaves;
    use super::*;

    const READER: TaskIndex = TaskIndex(3);

    fn tasks() -> Tasks {
        let mut tasks = Tasks::default();
        tasks.know(READER, |process| {
            (IoPrio { level: process.place() as u8, ..IoPrio::default() }, CgroupId::ROOT)
        });
        tasks
    }

    #[test]
    fn all_processes_up_to_the_one_that_came_are_known_by_their_own_facts() {
        let tasks = tasks();
        assert!(tasks.knows(TaskIndex::of(ProcessId::KERNEL)) && !tasks.knows(TaskIndex(4)));
        assert_eq!([0, 1, 3].map(|task| tasks.prio(TaskIndex(task)).level), [0, 1, 3]);
        assert_eq!(READER.process(), ProcessId(1));
        assert_eq!(tasks.queue(TaskIndex(9), true), None);
    }

    #[test]
    fn a_process_has_a_queue_for_each_kind_of_request() {
        let (mut tasks, queues) = (tasks(), leaves(2));
        assert_eq!(tasks.set_queue(READER, true, Some(queues[0])), None);
        assert_eq!((tasks.queue(READER, true), tasks.queue(READER, false)), (Some(queues[0]), None));
        assert_eq!(tasks.set_queue(READER, true, Some(queues[1])), Some(queues[0]));
    }

    #[test]
    fn a_stable_merge_is_planned_then_taken_once() {
        let (mut tasks, queues) = (tasks(), leaves(1));
        tasks.plan_stable_merge(READER, queues[0]);
        assert_eq!(tasks.stable_merge(READER), Some(queues[0]));
        assert_eq!(tasks.take_stable_merge(READER), Some(queues[0]));
        assert_eq!(tasks.take_stable_merge(READER), None);
        assert!(!tasks.is_stably_merged(READER));
        tasks.merged_stably(READER);
        assert!(tasks.is_stably_merged(READER));
    }

    #[test]
    fn a_process_with_one_request_can_be_measured() {
        let mut tasks = tasks();
        tasks.request(READER);
        assert!(tasks.has_one_request(READER));
        tasks.request(READER);
        assert!(!tasks.has_one_request(READER));
        tasks.freed(READER);
        assert!(tasks.has_one_request(READER));
    }
}
