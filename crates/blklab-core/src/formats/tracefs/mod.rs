//! tracefs: the events of the kernel's block layer.
//!
//! [`ring`] reads pages of the trace buffer; [`Watch`] follows a run event by event and yields the
//! requests in the scheduler and in flight over time, each with its times.

mod bios;
mod owners;
mod requests;
pub mod ring;
mod rwbs;
mod watch;

pub use bios::Done;
pub use owners::Owners;
pub use watch::{Depth, Watch, Watched};

use crate::request::Op;

/// The kind of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// A bio arrives.
    Queue,
    /// A bio was appended to a request, or a request was merged with the one before it.
    BackMerge,
    /// A bio was merged in front of a request.
    FrontMerge,
    /// A request waits in the scheduler.
    Insert,
    /// A request was dispatched to the disk.
    Issue,
    /// The disk could not take a request.
    Requeue,
    /// A request completed.
    Complete,
}

/// One event of one disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// ns of `CLOCK_MONOTONIC`.
    pub time: u64,
    /// First sector; 0 for a flush.
    pub sector: u64,
    /// Length in bytes.
    pub bytes: u32,
    /// The kind of the event.
    pub act: Act,
    /// The operation.
    pub op: Op,
    /// A process waits for it (`REQ_SYNC`), as for all its own writes that bypass the page cache.
    pub sync: bool,
}

impl Event {
    /// The request is the kernel's own: writeback that no process waits for, or a flush, which has no
    /// sector that would tell its process.
    pub fn is_kernels(&self) -> bool {
        self.op == Op::Flush || self.op == Op::Write && !self.sync
    }
}
