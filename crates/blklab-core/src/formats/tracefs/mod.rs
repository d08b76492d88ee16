//! tracefs: the events of the kernel's block layer.
//!
//! [`ring`] reads pages of the trace buffer; [`Watch`] follows a run from event to event and gives
//! the requests in the queue and at the disk over time, each with its times.

mod bios;
mod owners;
mod requests;
pub mod ring;
mod rwbs;
mod watch;

pub use owners::Owners;
pub use watch::{Depth, Watch, Watched};

use crate::request::Op;

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// A bio has come.
    Queue,
    /// It was appended to a request, or a request was joined with the one before it.
    BackMerge,
    /// It was put in front of a request.
    FrontMerge,
    /// A request waits in the scheduler.
    Insert,
    /// It was handed to the disk.
    Issue,
    /// The disk could not take it.
    Requeue,
    /// It has ended.
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
    /// What happened.
    pub act: Act,
    /// To what.
    pub op: Op,
}
