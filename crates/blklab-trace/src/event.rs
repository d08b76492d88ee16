//! An event of the kernel's block layer, as blktrace and tracefs record them.

use blklab_base::recorded::{Flags, NameId, Op};

/// What happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Act {
    /// A bio arrives (`Q`).
    #[default]
    Queue,
    /// A bio becomes a request (`G`).
    GetRequest,
    /// A bio or request is appended to a request (`M`).
    BackMerge,
    /// A bio is put in front of a request (`F`).
    FrontMerge,
    /// A request enters the scheduler (`I`).
    Insert,
    /// A request goes to the disk (`D`).
    Issue,
    /// The disk refused a request (`R`).
    Requeue,
    /// A request or a bio is complete (`C`).
    Complete,
    /// A bio is split (`X`).
    Split,
    /// A bio comes from a partition or from a device above (`A`).
    Remap,
    /// The process begins to collect requests: the bio that it queued last is the first (`P`).
    Plug,
    /// The process hands over what it has collected (`U`).
    Unplug,
}

impl Act {
    /// The event of blkparse's letter.
    pub const fn of_letter(letter: u8) -> Option<Act> {
        Some(match letter {
            b'Q' => Act::Queue,
            b'G' => Act::GetRequest,
            b'M' => Act::BackMerge,
            b'F' => Act::FrontMerge,
            b'I' => Act::Insert,
            b'D' => Act::Issue,
            b'R' => Act::Requeue,
            b'C' => Act::Complete,
            b'X' => Act::Split,
            b'A' => Act::Remap,
            b'P' => Act::Plug,
            b'U' => Act::Unplug,
            _ => return None,
        })
    }
}

/// An event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Event {
    /// ns of the tracer's clock.
    pub time: u64,
    /// First sector; 0 for a flush.
    pub sector: u64,
    /// Length in sectors.
    pub sectors: u32,
    /// The operation; a flush without data may be a write with a preflush.
    pub op: Op,
    /// Its flags.
    pub flags: Flags,
    /// The event.
    pub act: Act,
    /// The device.
    pub device: NameId,
    /// A remap's device above.
    pub above: NameId,
    /// The process that runs.
    pub pid: u32,
    /// Its name.
    pub process: NameId,
    /// The CPU.
    pub cpu: u16,
    /// I/O priority, if the tracer has it.
    pub prio: Option<u16>,
    /// The cgroup's number; 0 if it is not known.
    pub cgroup: u64,
    /// Events that were lost before it.
    pub lost: u32,
    /// Its line or record, from 1.
    pub number: u64,
}
