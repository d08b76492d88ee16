//! Processes: their queues, and what their past requests say about the next one.
//!
//! A process is known from its first request. It has a queue for its synchronous requests and shares
//! one for the asynchronous ones. Its think time and its seek distance belong to the process, not to
//! a queue. After it has exited the disk does not idle for it, even if its last requests are still
//! in flight. Follows `cfq_io_context`; the kernel itself is a process, too.

use super::seeks::SeekDistance;
use super::think_time::ThinkTime;
use crate::request::ProcessId;
use crate::units::Sector;

/// A process's index among the tasks; the kernel's own is first.
pub(in crate::scheduler) type TaskIndex = usize;

#[derive(Clone, Debug)]
struct Task<Q> {
    /// Asynchronous, synchronous; set with the first request of that kind.
    queues: [Option<Q>; 2],
    exited: bool,
    think: ThinkTime,
    seeks: SeekDistance,
}

/// All processes.
#[derive(Debug)]
pub(in crate::scheduler) struct Tasks<Q> {
    tasks: Vec<Task<Q>>,
    /// What is known of the seeks of a process without requests.
    seeks: SeekDistance,
}

const fn index_of(process: ProcessId) -> TaskIndex {
    process.place() as TaskIndex
}

/// The process of an index.
pub(in crate::scheduler) const fn process_at(index: TaskIndex) -> ProcessId {
    ProcessId::at_place(index as u32)
}

impl<Q: Copy> Tasks<Q> {
    /// No process is known.
    pub fn new(seeks: SeekDistance) -> Tasks<Q> {
        Tasks { tasks: Vec::new(), seeks }
    }

    fn at(&self, process: ProcessId) -> Option<&Task<Q>> {
        self.tasks.get(index_of(process))
    }

    /// A process sends a request. Before its first one nothing is known of it.
    pub fn enter(&mut self, process: ProcessId, tick: u64) -> TaskIndex {
        let index = index_of(process);
        let new =
            || Task { queues: [None; 2], exited: false, think: ThinkTime::since(tick), seeks: self.seeks };
        if index >= self.tasks.len() {
            self.tasks.resize(index + 1, new());
        } else if self.tasks[index].queues.iter().all(Option::is_none) {
            self.tasks[index] = new();
        }
        index
    }

    /// The queue of the process's requests of that kind, if it has one yet.
    #[inline]
    pub fn queue_of(&self, process: ProcessId, sync: bool) -> Option<Q> {
        self.at(process)?.queues[usize::from(sync)]
    }

    pub fn set_queue(&mut self, task: TaskIndex, sync: bool, q: Q) {
        self.tasks[task].queues[usize::from(sync)] = Some(q);
    }

    /// A request comes.
    pub fn request(&mut self, task: TaskIndex, tick: u64, slice_idle: u64, (sector, end): (Sector, Sector)) {
        let task = &mut self.tasks[task];
        task.think.request(tick, slice_idle);
        task.seeks.request(sector, end);
    }

    /// A synchronous request completes.
    #[inline]
    pub fn completed(&mut self, task: TaskIndex, tick: u64) {
        self.tasks[task].think.completed(tick);
    }

    pub fn think_time(&self, task: TaskIndex) -> &ThinkTime {
        &self.tasks[task].think
    }

    pub fn seeks(&self, task: TaskIndex) -> &SeekDistance {
        &self.tasks[task].seeks
    }

    pub fn has_exited(&self, task: TaskIndex) -> bool {
        self.tasks[task].exited
    }

    /// The process exits. Returns its queues of asynchronous and of synchronous requests.
    pub fn exit(&mut self, process: ProcessId) -> [Option<Q>; 2] {
        let Some(task) = self.tasks.get_mut(index_of(process)) else { return [None; 2] };
        task.exited = true;
        task.queues
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const READER: ProcessId = ProcessId(3);

    #[test]
    fn a_process_has_a_queue_for_each_kind_of_request() {
        let (mut tasks, q) = (Tasks::new(SeekDistance::NONE), 'q');
        assert_eq!(tasks.queue_of(READER, true), None, "unknown");
        let reader = tasks.enter(READER, 0);
        tasks.set_queue(reader, true, q);
        assert_eq!((tasks.queue_of(READER, true), tasks.queue_of(READER, false)), (Some(q), None));
        assert_eq!(tasks.queue_of(ProcessId(2), true), None, "another's");
    }

    #[test]
    fn the_kernel_is_a_process_like_all_others() {
        for process in [READER, ProcessId(0), ProcessId::KERNEL] {
            let index = Tasks::<char>::new(SeekDistance::NONE).enter(process, 0);
            assert_eq!(process_at(index), process);
        }
    }

    #[test]
    fn a_process_that_exits_gives_its_queue_back() {
        let (mut tasks, q) = (Tasks::new(SeekDistance::NONE), 'q');
        assert_eq!(tasks.exit(READER), [None; 2], "it has sent nothing");
        let reader = tasks.enter(READER, 0);
        tasks.set_queue(reader, true, q);
        assert!(!tasks.has_exited(reader));
        assert_eq!(tasks.exit(READER), [None, Some(q)]);
        assert!(tasks.has_exited(reader));
    }

    #[test]
    fn think_time_runs_from_a_process_s_first_request() {
        let (mut tasks, q) = (Tasks::new(SeekDistance::NONE), 'q');
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
