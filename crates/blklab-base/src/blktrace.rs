//! Numbers of blktrace's records (include/uapi/linux/blktrace_api.h), for the readers of its files and of
//! a guest's own trace.

/// The magic number without the version, which is in its last byte.
pub const MAGIC: u32 = 0x6561_7400;

/// What happened: `enum blktrace_act`, the lower byte of an action.
pub mod act {
    /// A bio arrives.
    pub const QUEUE: u64 = 1;
    /// A bio is appended to a request.
    pub const BACK_MERGE: u64 = 2;
    /// A bio is put in front of a request.
    pub const FRONT_MERGE: u64 = 3;
    /// A bio becomes a request.
    pub const GET_REQUEST: u64 = 4;
    /// The disk refused a request.
    pub const REQUEUE: u64 = 6;
    /// A request goes to the disk.
    pub const ISSUE: u64 = 7;
    /// A request or a bio is complete.
    pub const COMPLETE: u64 = 8;
    /// A process begins to collect requests.
    pub const PLUG: u64 = 9;
    /// A process hands over what it has collected.
    pub const UNPLUG: u64 = 10;
    /// The same by a timer, in old kernels.
    pub const UNPLUG_TIMER: u64 = 11;
    /// A request enters the scheduler.
    pub const INSERT: u64 = 12;
    /// A bio is split.
    pub const SPLIT: u64 = 13;
    /// A bio comes from a partition or from a device above.
    pub const REMAP: u64 = 15;
}

/// What it is about: bits of `enum blktrace_cat`, the upper part of an action.
pub mod category {
    /// It writes.
    pub const WRITE: u64 = 1 << 1;
    /// It flushes the disk's cache.
    pub const FLUSH: u64 = 1 << 2;
    /// It is synchronous.
    pub const SYNC: u64 = 1 << 3;
    /// It is a command of the driver.
    pub const PC: u64 = 1 << 9;
    /// It is a note about a process or the time of day.
    pub const NOTIFY: u64 = 1 << 10;
    /// It is read-ahead.
    pub const AHEAD: u64 = 1 << 11;
    /// It is metadata.
    pub const META: u64 = 1 << 12;
    /// It discards.
    pub const DISCARD: u64 = 1 << 13;
    /// It is durable when it completes.
    pub const FUA: u64 = 1 << 15;
    /// Zone reset, reset of all, finish, open, close; an append is a write.
    pub const ZONE: u64 = 0b11_1110 << 16;
    /// It writes zeroes.
    pub const WRITE_ZEROES: u64 = 1 << 22;
}
