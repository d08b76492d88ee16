//! Processes, as CFQ knows them: the queues that they use now, and their think times.
//!
//! A process's context is made with its first request and ends when the process exits. It names two
//! queues, of its synchronous and of its asynchronous requests. Both may be shared with other
//! processes, and the first one changes when processes begin or cease to read one area together.
//! The think time is that of the process, whichever queue its requests are in: from the completion
//! of a synchronous request to the next one.
//!
//! A process that has exited sends nothing more, so the disk does not idle for it, even if its last
//! requests are still in flight.
//!
//! Follows `cfq_io_cq` of Linux 4.12 (`cic_to_cfqq`, `cic_set_cfqq`, `cfq_init_icq`,
//! `cfq_exit_icq`); the kernel's own requests have a context, too, here and there.

use super::super::kinds::{Instant, QueueId};
use super::think_time::ThinkTime;
use crate::request::ProcessId;

/// A process's number among the contexts; the kernel's own is 0.
pub(in crate::scheduler::cfq) type ContextId = usize;

#[derive(Clone, Copy, Debug, Default)]
struct Context {
    /// It has sent a request and has not exited.
    known: bool,
    /// It has not begun to exit.
    alive: bool,
    /// Asynchronous, synchronous.
    queues: [Option<QueueId>; 2],
    think: ThinkTime,
}

/// All processes.
#[derive(Debug, Default)]
pub(in crate::scheduler::cfq) struct Contexts(Vec<Context>);

impl Contexts {
    const fn id(process: ProcessId) -> ContextId {
        process.place() as ContextId
    }

    /// The process of a context.
    pub const fn process(context: ContextId) -> ProcessId {
        ProcessId::at_place(context as u32)
    }

    /// The process's context, created with its first request.
    #[inline]
    pub fn enter(&mut self, process: ProcessId, now: Instant) -> ContextId {
        let id = Contexts::id(process);
        if id >= self.0.len() {
            self.0.resize(id + 1, Context::default());
        }
        let context = &mut self.0[id];
        if !context.known {
            *context = Context { known: true, alive: true, ..Context::default() };
            context.think.ended(now);
        }
        id
    }

    /// The process begins to exit, if it has a context.
    pub fn exit(&mut self, process: ProcessId) -> Option<ContextId> {
        let id = Contexts::id(process);
        let context = self.0.get_mut(id).filter(|context| context.known)?;
        context.alive = false;
        Some(id)
    }

    /// The process has left its queues.
    pub fn forget(&mut self, id: ContextId) {
        self.0[id].known = false;
    }

    /// The current queue of the process's requests of that kind, if it has one.
    #[inline]
    pub fn queue_of(&self, process: ProcessId, sync: bool) -> Option<QueueId> {
        self.0.get(Contexts::id(process))?.queues[usize::from(sync)]
    }

    /// The same of a known process.
    #[inline]
    pub fn queue(&self, id: ContextId, sync: bool) -> Option<QueueId> {
        self.0[id].queues[usize::from(sync)]
    }

    /// The process uses this queue from now on.
    pub fn set_queue(&mut self, id: ContextId, sync: bool, q: QueueId) {
        self.0[id].queues[usize::from(sync)] = Some(q);
    }

    /// The process leaves its queue.
    pub fn leave_queue(&mut self, id: ContextId, sync: bool) -> Option<QueueId> {
        self.0[id].queues[usize::from(sync)].take()
    }

    #[inline]
    pub fn is_alive(&self, id: ContextId) -> bool {
        self.0[id].alive
    }

    #[inline]
    pub fn think_time(&self, id: ContextId) -> &ThinkTime {
        &self.0[id].think
    }

    /// A synchronous request of the process comes.
    pub fn request(&mut self, id: ContextId, now: Instant, idle: u64) {
        self.0[id].think.sample(now, idle);
    }

    /// A synchronous request of the process completes.
    pub fn completed(&mut self, id: ContextId, now: Instant) {
        self.0[id].think.ended(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const READER: ProcessId = ProcessId(3);

    #[test]
    fn a_process_has_a_queue_for_each_kind_of_request() {
        let mut contexts = Contexts::default();
        assert_eq!(contexts.queue_of(READER, true), None, "unknown");
        let reader = contexts.enter(READER, 0);
        contexts.set_queue(reader, true, 7);
        assert_eq!((contexts.queue_of(READER, true), contexts.queue(reader, false)), (Some(7), None));
        assert_eq!(contexts.leave_queue(reader, true), Some(7));
        assert_eq!(contexts.queue_of(READER, true), None);
    }

    #[test]
    fn the_kernel_has_a_context_like_all_others() {
        for process in [READER, ProcessId(0), ProcessId::KERNEL] {
            let mut contexts = Contexts::default();
            let id = contexts.enter(process, 0);
            assert_eq!(Contexts::process(id), process);
        }
    }

    #[test]
    fn a_process_that_exits_is_forgotten_once_it_has_left_its_queues() {
        let mut contexts = Contexts::default();
        assert_eq!(contexts.exit(READER), None, "it has sent nothing");
        let reader = contexts.enter(READER, 0);
        contexts.set_queue(reader, true, 7);
        assert!(contexts.is_alive(reader));
        assert_eq!(contexts.exit(READER), Some(reader));
        assert!(!contexts.is_alive(reader) && contexts.queue(reader, true) == Some(7));
        contexts.forget(reader);
        assert_eq!(contexts.exit(READER), None);
    }

    #[test]
    fn a_new_context_has_no_think_time_from_an_earlier_process() {
        let mut contexts = Contexts::default();
        let id = contexts.enter(READER, 0);
        for turn in 0..20 {
            contexts.completed(id, turn * 1000);
            contexts.request(id, turn * 1000 + 500, 1_000_000);
        }
        assert!(contexts.think_time(id).is_longer(400));
        contexts.enter(READER, 0);
        assert!(contexts.think_time(id).is_known(), "it is the same process");
        contexts.exit(READER);
        contexts.forget(id);
        contexts.enter(READER, 0);
        assert!(!contexts.think_time(id).is_known());
    }
}
