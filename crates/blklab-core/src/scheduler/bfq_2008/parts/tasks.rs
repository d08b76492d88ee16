//! Processes: their queues, and what their past requests say about the next one.
//!
//! A process is known from its first request. It has a queue for its synchronous requests and shares
//! one for the asynchronous ones. Its think time and its seek distance belong to the process, not to
//! a queue. After it has exited the disk does not idle for it, even if its last requests are still
//! in flight. Follows `cfq_io_context` as the patch uses it; the kernel itself is a process, too.

use super::QueueId;
use super::seeks::SeekDistance;
use super::think_time::ThinkTime;
use crate::request::ProcessId;
use crate::units::Sector;

/// A process's index among the tasks; the kernel's own is first.
pub(in crate::scheduler::bfq_2008) type TaskIndex = usize;

#[derive(Clone, Debug)]
struct Task {
    /// Asynchronous, synchronous; set with the first request of that kind.
    queues: [Option<QueueId>; 2],
    exited: bool,
    think: ThinkTime,
    seeks: SeekDistance,
}

impl Task {
    fn new(tick: u64) -> Task {
        Task {
            queues: [None; 2],
            exited: false,
            think: ThinkTime::since(tick),
            seeks: SeekDistance::default(),
        }
    }
}

/// All processes.
#[derive(Debug, Default)]
pub(in crate::scheduler::bfq_2008) struct Tasks(Vec<Task>);

impl Tasks {
    const fn index_of(process: ProcessId) -> TaskIndex {
        process.0.wrapping_add(1) as TaskIndex
    }

    /// The process of an index.
    pub const fn process_at(index: TaskIndex) -> ProcessId {
        ProcessId((index as u32).wrapping_sub(1))
    }

    /// A process sends a request. Before its first one nothing is known of it.
    pub fn enter(&mut self, process: ProcessId, tick: u64) -> TaskIndex {
        let index = Tasks::index_of(process);
        if index >= self.0.len() {
            self.0.resize(index + 1, Task::new(tick));
        } else if self.0[index].queues == [None; 2] {
            self.0[index] = Task::new(tick);
        }
        index
    }

    /// The queue of the process's requests of that kind, if it has one yet.
    #[inline]
    pub fn queue_of(&self, process: ProcessId, sync: bool) -> Option<QueueId> {
        self.0.get(Tasks::index_of(process))?.queues[usize::from(sync)]
    }

    pub fn set_queue(&mut self, task: TaskIndex, sync: bool, q: QueueId) {
        self.0[task].queues[usize::from(sync)] = Some(q);
    }

    /// A request comes.
    pub fn request(&mut self, task: TaskIndex, tick: u64, slice_idle: u64, (sector, end): (Sector, Sector)) {
        let task = &mut self.0[task];
        task.think.request(tick, slice_idle);
        task.seeks.request(sector, end);
    }

    /// A synchronous request completes.
    #[inline]
    pub fn completed(&mut self, task: TaskIndex, tick: u64) {
        self.0[task].think.completed(tick);
    }

    pub fn think_time(&self, task: TaskIndex) -> &ThinkTime {
        &self.0[task].think
    }

    pub fn seeks(&self, task: TaskIndex) -> &SeekDistance {
        &self.0[task].seeks
    }

    pub fn has_exited(&self, task: TaskIndex) -> bool {
        self.0[task].exited
    }

    /// The process exits. Returns its queue of synchronous requests.
    pub fn exit(&mut self, process: ProcessId) -> Option<QueueId> {
        let task = self.0.get_mut(Tasks::index_of(process))?;
        task.exited = true;
        task.queues[1]
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::leaves;
    use super::*;

    const READER: ProcessId = ProcessId(3);

    #[test]
    fn a_process_has_a_queue_for_each_kind_of_request() {
        let (mut tasks, q) = (Tasks::default(), leaves(1)[0]);
        assert_eq!(tasks.queue_of(READER, true), None, "unknown");
        let reader = tasks.enter(READER, 0);
        tasks.set_queue(reader, true, q);
        assert_eq!((tasks.queue_of(READER, true), tasks.queue_of(READER, false)), (Some(q), None));
        assert_eq!(tasks.queue_of(ProcessId(2), true), None, "another's");
    }

    #[test]
    fn the_kernel_is_a_process_like_all_others() {
        for process in [READER, ProcessId(0), ProcessId::KERNEL] {
            let index = Tasks::default().enter(process, 0);
            assert_eq!(Tasks::process_at(index), process);
        }
    }

    #[test]
    fn a_process_that_exits_gives_its_queue_back() {
        let (mut tasks, q) = (Tasks::default(), leaves(1)[0]);
        assert_eq!(tasks.exit(READER), None, "it has sent nothing");
        let reader = tasks.enter(READER, 0);
        tasks.set_queue(reader, true, q);
        assert!(!tasks.has_exited(reader));
        assert_eq!(tasks.exit(READER), Some(q));
        assert!(tasks.has_exited(reader));
    }

    #[test]
    fn think_time_runs_from_a_process_s_first_request() {
        let (mut tasks, q) = (Tasks::default(), leaves(1)[0]);
        // A later process makes room for this one, at tick 0.
        tasks.enter(ProcessId(9), 0);
        for tick in [500, 501, 502] {
            let reader = tasks.enter(READER, tick);
            tasks.set_queue(reader, true, q);
            tasks.request(reader, tick, 8, (Sector(tick), Sector(tick + 1)));
            tasks.completed(reader, tick);
        }
        let reader = tasks.enter(READER, 503);
        assert_eq!(tasks.think_time(reader).is_longer(3), Some(false));
        assert!(!tasks.seeks(reader).is_seeky());
    }
}
