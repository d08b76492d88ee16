//! A queue: the synchronous requests of one process, or the asynchronous requests of all processes
//! of one priority.

use super::parts::budgets::Allowance;
use super::parts::turn::Turn;
use crate::request::ProcessId;
use crate::scheduler::shared::linux_2_6_28::idle_window::IdleWindow;
use crate::scheduler::shared::linux_2_6_28::requests::Backlog;
use crate::scheduler::shared::wf2q::Class;

/// What a queue is, which does not change, and its parts.
#[derive(Debug)]
pub(super) struct ProcessQueue {
    /// The first process of the queue.
    pub process: ProcessId,
    pub sync: bool,
    pub class: Class,

    pub backlog: Backlog,
    pub allowance: Allowance,
    pub turn: Turn,
    pub window: IdleWindow,
}

impl ProcessQueue {
    pub fn new(process: ProcessId, sync: bool, class: Class, allowance: Allowance) -> ProcessQueue {
        ProcessQueue {
            process,
            sync,
            class,
            backlog: Backlog::default(),
            allowance,
            turn: Turn::NONE,
            window: IdleWindow::new(sync && class != Class::Idle),
        }
    }
}
