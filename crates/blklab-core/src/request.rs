//! What travels through the block layer: bios from processes, requests made of them.

use crate::units::{Nanos, Sector};

/// What is asked of the disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Op {
    /// Read data.
    #[default]
    Read,
    /// Write data.
    Write,
    /// Make every write that has completed durable (`REQ_OP_FLUSH`). No address, no length.
    Flush,
    /// Tell the disk that the data are no longer wanted (`REQ_OP_DISCARD`; fio's trim).
    Discard,
}

impl Op {
    /// True for operations that change the medium (the kernel's `op_is_write`).
    pub const fn is_write(self) -> bool {
        !matches!(self, Op::Read)
    }
}

/// I/O priority class (ioprio_set(2)).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum PrioClass {
    /// Not set: schedulers treat it as best effort.
    #[default]
    None,
    /// Served first.
    RealTime,
    /// The default class.
    BestEffort,
    /// Served when nobody else wants the disk.
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

/// A process (fio job, flusher): who asked, as schedulers tell processes apart
/// (the kernel's io_context). Numbered from 0 in the order of the job file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProcessId(pub u32);

impl ProcessId {
    /// The kernel itself: the flusher thread.
    pub const KERNEL: ProcessId = ProcessId(u32::MAX);
}

/// What the engine runs: it asks for I/O, sleeps and is woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Actor {
    /// A process of the source of I/O.
    Process(ProcessId),
    /// The kernel's flusher thread.
    Flusher,
}

impl Actor {
    /// The process that its I/Os belong to.
    #[inline]
    pub const fn process(self) -> ProcessId {
        match self {
            Actor::Process(process) => process,
            Actor::Flusher => ProcessId::KERNEL,
        }
    }
}

/// A request's place in the [`RequestSlab`]; reused after the request has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u32);

impl RequestId {
    /// As an index, for tables that schedulers keep beside the slab.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// One contiguous piece of I/O as a process submits it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bio {
    /// What to do.
    pub op: Op,
    /// First sector.
    pub sector: Sector,
    /// Length in sectors; 0 for a flush.
    pub sectors: u32,
    /// Somebody waits for it (`REQ_SYNC`): all reads, direct writes, fsync's writes.
    pub sync: bool,
    /// Force unit access: durable when it completes (`REQ_FUA`).
    pub fua: bool,
    /// Its process will soon ask for more (`REQ_IDLE`): direct writes; of no meaning for reads.
    pub idle: bool,
    /// Who asks.
    pub process: ProcessId,
    /// With which priority.
    pub prio: IoPrio,
    /// CPU it is submitted on: its software queue.
    pub cpu: u16,
    /// Hardware queue of that CPU.
    pub hw_queue: u16,
    /// Whom to tell when it is done; meaning is the submitter's own.
    pub owner: u64,
}

/// Bios behind a request's first one: places in the block layer's store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BioChain {
    /// The second bio.
    pub head: u32,
    /// The last bio.
    pub tail: u32,
}

impl BioChain {
    /// No place.
    pub const END: u32 = u32::MAX;
}

impl Default for BioChain {
    /// No bios.
    fn default() -> BioChain {
        BioChain { head: BioChain::END, tail: BioChain::END }
    }
}

/// One or more bios that the disk will serve as one command.
#[derive(Clone, Copy, Debug, Default)]
pub struct Request {
    /// What to do.
    pub op: Op,
    /// First sector.
    pub sector: Sector,
    /// Length in sectors.
    pub sectors: u32,
    /// Somebody waits for it.
    pub sync: bool,
    /// Durable when it completes.
    pub fua: bool,
    /// More of its process will follow (`REQ_IDLE`), by its first bio.
    pub idle: bool,
    /// Who asked for its first bio.
    pub process: ProcessId,
    /// Priority of its first bio.
    pub prio: IoPrio,
    /// CPU that its first bio was submitted on.
    pub cpu: u16,
    /// Hardware queue it is bound to.
    pub hw_queue: u16,
    /// The kernel's clock does not go on while it comes into the scheduler: it was in a plug,
    /// which keeps one time for all (`blk_time_get_ns`), or CPU work takes no time.
    pub clock_stands: bool,
    /// When it was made and went into the scheduler (`start_time_ns`; a plug takes no time).
    pub inserted: Nanos,
    /// When it was handed to the disk (`io_start_time_ns`).
    pub issued: Nanos,
    /// Whom to tell of its first bio's end ([`Bio::owner`]).
    pub owner: u64,
    /// The bios behind the first; see [`crate::block`].
    pub rest: BioChain,
}

impl Request {
    /// The sector just behind the last one.
    pub fn end(&self) -> Sector {
        self.sector.offset(self.sectors)
    }
}

/// All living requests. An index list, so that queues hold four-byte ids and
/// nothing is allocated per I/O once the run is warm.
#[derive(Debug, Default)]
pub struct RequestSlab {
    slots: slab::Slab<Request>,
}

impl RequestSlab {
    /// Room for `capacity` requests before it grows.
    pub fn with_capacity(capacity: usize) -> RequestSlab {
        RequestSlab { slots: slab::Slab::with_capacity(capacity) }
    }

    /// Keep `request`; its id is the lowest that is free.
    pub fn insert(&mut self, request: Request) -> RequestId {
        RequestId(self.slots.insert(request) as u32)
    }

    /// Forget a request that has ended.
    pub fn remove(&mut self, id: RequestId) -> Request {
        self.slots.remove(id.index())
    }

    /// How many are alive.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// True when none is alive.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }
}

impl std::ops::Index<RequestId> for RequestSlab {
    type Output = Request;
    fn index(&self, id: RequestId) -> &Request {
        &self.slots[id.index()]
    }
}

impl std::ops::IndexMut<RequestId> for RequestSlab {
    fn index_mut(&mut self, id: RequestId) -> &mut Request {
        &mut self.slots[id.index()]
    }
}
