//! A queue: the synchronous requests of one process, or the asynchronous requests of all processes
//! of one priority.

use super::parts::slice::Slice;
use crate::request::ProcessId;
use crate::scheduler::shared::linux_2_6_28::idle_window::IdleWindow;
use crate::scheduler::shared::linux_2_6_28::priority::Priority;
use crate::scheduler::shared::linux_2_6_28::requests::Backlog;
use crate::scheduler::shared::wf2q::Class;

/// A queue's index in [`super::Cfq2008::queues`].
pub(super) type QueueId = usize;

/// What a queue is, which does not change, and its parts.
#[derive(Debug)]
pub(super) struct ProcessQueue {
    /// The first process of the queue.
    pub process: ProcessId,
    pub sync: bool,
    pub priority: Priority,

    pub backlog: Backlog,
    pub slice: Slice,
    pub window: IdleWindow,
}

impl ProcessQueue {
    pub fn new(process: ProcessId, sync: bool, priority: Priority) -> ProcessQueue {
        ProcessQueue {
            process,
            sync,
            priority,
            backlog: Backlog::default(),
            slice: Slice::NONE,
            window: IdleWindow::new(sync && priority.class() != Class::Idle),
        }
    }

    /// It is in the idle class.
    #[inline]
    pub fn is_idle_class(&self) -> bool {
        self.priority.class() == Class::Idle
    }
}
