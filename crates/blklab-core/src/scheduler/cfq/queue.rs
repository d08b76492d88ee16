//! A queue: the requests of one process, or of all that share it.

use super::kinds::{Class, Kind};
use super::parts::idle_window::IdleWindow;
use super::parts::requests::Backlog;
use super::parts::seeks::SeekHistory;
use super::parts::slice::Slice;
use crate::request::ProcessId;

/// The queue of a process's synchronous requests, or of all asynchronous requests of one priority
/// (`cfq_queue`): what it is, which does not change, and its parts.
#[derive(Debug)]
pub(super) struct ProcessQueue {
    /// The first process of the queue.
    pub process: ProcessId,
    pub group: usize,
    pub class: Class,
    pub level: u8,
    pub sync: bool,

    pub backlog: Backlog,
    pub slice: Slice,
    pub seeks: SeekHistory,
    pub window: IdleWindow,
}

impl ProcessQueue {
    pub fn new(process: ProcessId, group: usize, (class, level): (Class, u8), sync: bool) -> ProcessQueue {
        ProcessQueue {
            process,
            group,
            class,
            level,
            sync,
            backlog: Backlog::default(),
            slice: Slice::default(),
            seeks: SeekHistory::default(),
            window: IdleWindow::new(sync && class != Class::Idle),
        }
    }

    /// `cfqq_type`
    pub fn kind(&self) -> Kind {
        match (self.sync, self.window.is_open()) {
            (false, _) => Kind::Async,
            (true, false) => Kind::SyncNoIdle,
            (true, true) => Kind::Sync,
        }
    }
}
