//! Bios, requests and their units, as in the simulator.

use std::ops::{Add, Index};

/// A point in virtual time, or a duration, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Nanos(pub u64);

impl Nanos {
    /// The start of a run; an empty duration.
    pub const ZERO: Nanos = Nanos(0);
    /// Later than any event.
    pub const NEVER: Nanos = Nanos(u64::MAX);

    /// `us` microseconds.
    pub const fn from_micros(us: u64) -> Nanos {
        Nanos(us.saturating_mul(1_000))
    }

    /// `ms` milliseconds.
    pub const fn from_millis(ms: u64) -> Nanos {
        Nanos(ms.saturating_mul(1_000_000))
    }

    /// `self - earlier`, or zero when `earlier` is later.
    #[must_use]
    pub const fn saturating_sub(self, earlier: Nanos) -> Nanos {
        Nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Add for Nanos {
    type Output = Nanos;
    fn add(self, other: Nanos) -> Nanos {
        Nanos(self.0.saturating_add(other.0))
    }
}

/// A disk address: the number of a 512-byte sector.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sector(pub u64);

/// An operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Op {
    /// Read data.
    #[default]
    Read,
    /// Write data.
    Write,
    /// The data are no longer needed.
    Discard,
}

/// I/O priority class (ioprio_set(2)).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum PrioClass {
    /// Not set: as best effort.
    #[default]
    None,
    /// Served first.
    RealTime,
    /// The default class.
    BestEffort,
    /// Served only while no other class has requests.
    Idle,
}

/// I/O priority: a class and, within `RealTime` and `BestEffort`, a level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct IoPrio {
    /// The class.
    pub class: PrioClass,
    /// 0 (highest) to 7 (lowest).
    pub level: u8,
}

/// A process, numbered from 0 in the order of the job file; the kernel's own threads are `u32::MAX`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProcessId(pub u32);

/// A request's number; used again after the request has completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u32);

impl RequestId {
    /// As an index, for tables that schedulers keep.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A piece of I/O that may be merged into a waiting request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bio {
    /// The operation.
    pub op: Op,
    /// First sector.
    pub sector: Sector,
    /// Length in sectors.
    pub sectors: u32,
    /// Synchronous: all reads, direct writes, fsync's writes.
    pub sync: bool,
    /// The process that submits it.
    pub process: ProcessId,
    /// Its priority.
    pub prio: IoPrio,
}

impl Bio {
    /// The sector directly after the last one.
    pub const fn end(&self) -> Sector {
        Sector(self.sector.0.saturating_add(self.sectors as u64))
    }
}

/// One or more bios that the disk serves as one command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// The operation.
    pub op: Op,
    /// First sector.
    pub sector: Sector,
    /// Length in sectors.
    pub sectors: u32,
    /// Synchronous.
    pub sync: bool,
    /// Durable when it completes.
    pub fua: bool,
    /// Its process will soon send more requests (`REQ_IDLE`).
    pub idle: bool,
    /// The process of its first bio.
    pub process: ProcessId,
    /// Priority of its first bio.
    pub prio: IoPrio,
    /// The CPU of its first bio.
    pub cpu: u16,
    /// Its hardware queue.
    pub hw_queue: u16,
    /// When it was created.
    pub inserted: Nanos,
}

impl Request {
    /// The sector directly after the last one.
    pub const fn end(&self) -> Sector {
        Sector(self.sector.0.saturating_add(self.sectors as u64))
    }
}

/// Requests by their ids.
#[derive(Debug, Default)]
pub struct Requests {
    by_id: Vec<Request>,
}

impl Requests {
    pub(crate) fn put(&mut self, id: RequestId, request: Request) {
        if id.index() >= self.by_id.len() {
            self.by_id.resize(id.index() + 1, Request::default());
        }
        self.by_id[id.index()] = request;
    }

    pub(crate) fn change(&mut self, id: RequestId) -> &mut Request {
        &mut self.by_id[id.index()]
    }
}

impl Index<RequestId> for Requests {
    type Output = Request;
    fn index(&self, id: RequestId) -> &Request {
        &self.by_id[id.index()]
    }
}
