//! The objects of the block layer: bios from processes, and requests made of them.

pub use crate::disk::Op;
use crate::units::{Nanos, Sector};

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

impl IoPrio {
    /// That of the thread that commits a journal (`DEFAULT_JOURNAL_IOPRIO` of ext4).
    pub const JOURNAL: IoPrio = IoPrio { class: PrioClass::BestEffort, level: 3 };
    /// That of a process that has set none, at the nice value 0 (`__get_task_ioprio`).
    pub const DEFAULT: IoPrio = IoPrio { class: PrioClass::BestEffort, level: 4 };

    /// The same, or one is the default and the other is not set.
    #[inline]
    pub fn equals(self, other: IoPrio) -> bool {
        let set = |prio: IoPrio| if prio.class == PrioClass::None { IoPrio::DEFAULT } else { prio };
        self == other || set(self) == set(other)
    }
}

/// The CPU on which the kernel's threads run, and no process.
pub const KERNEL_CPU: u16 = u16::MAX;

/// A process (fio job, flusher), the unit that schedulers distinguish (the kernel's io_context).
/// Numbered from 0 in the order of the job file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProcessId(pub u32);

impl ProcessId {
    /// The kernel itself: the flusher thread.
    pub const KERNEL: ProcessId = ProcessId(u32::MAX);
    /// The kernel thread that commits a file system's journal (jbd2).
    pub const JOURNAL: ProcessId = ProcessId(u32::MAX - 1);

    /// One of the kernel's threads.
    #[inline]
    pub const fn is_kernels(self) -> bool {
        self.0 >= ProcessId::JOURNAL.0
    }

    /// Its place in a table of all: the kernel's threads come first.
    #[inline]
    pub const fn place(self) -> u32 {
        self.0.wrapping_sub(ProcessId::JOURNAL.0)
    }

    /// The process with that place.
    #[inline]
    pub const fn at_place(place: u32) -> ProcessId {
        ProcessId(place.wrapping_add(ProcessId::JOURNAL.0))
    }
}

/// A request's index in the [`RequestSlab`]; reused after the request was freed.
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
    /// The operation.
    pub op: Op,
    /// First sector.
    pub sector: Sector,
    /// Length in sectors; 0 for a flush.
    pub sectors: u32,
    /// Synchronous (`REQ_SYNC`): all reads, direct writes, fsync's writes.
    pub sync: bool,
    /// Force unit access: durable when it completes (`REQ_FUA`).
    pub fua: bool,
    /// Its process will soon send more requests (`REQ_IDLE`): direct writes; without meaning for
    /// reads.
    pub idle: bool,
    /// Writeback that is not urgent (`REQ_BACKGROUND`).
    pub background: bool,
    /// The process that submits it.
    pub process: ProcessId,
    /// Its priority.
    pub prio: IoPrio,
    /// The CPU that submits it: its software queue.
    pub cpu: u16,
    /// The thread that submits it, which may do so for another process. A worker that it wakes runs when it
    /// sleeps.
    pub thread: ProcessId,
    /// Hardware queue of that CPU.
    pub hw_queue: u16,
    /// The submitter's own number for the notification of completion.
    pub owner: u64,
}

/// Bios after a request's first one: indices into the block layer's store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BioChain {
    /// The second bio.
    pub head: u32,
    /// The last bio.
    pub tail: u32,
}

impl BioChain {
    /// No bio.
    pub const END: u32 = u32::MAX;
}

impl Default for BioChain {
    /// No bios.
    fn default() -> BioChain {
        BioChain { head: BioChain::END, tail: BioChain::END }
    }
}

/// One or more bios that the disk serves as one command.
#[derive(Clone, Copy, Debug, Default)]
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
    /// Its process will soon send more requests (`REQ_IDLE`), by its first bio.
    pub idle: bool,
    /// The process of its first bio.
    pub process: ProcessId,
    /// Priority of its first bio.
    pub prio: IoPrio,
    /// The CPU of its first bio.
    pub cpu: u16,
    /// The thread of its first bio.
    pub thread: ProcessId,
    /// Its hardware queue.
    pub hw_queue: u16,
    /// The kernel's clock stands still while the request enters the scheduler: it was in a plug,
    /// which keeps one time for all requests (`blk_time_get_ns`), or CPU work takes no time.
    pub clock_stands: bool,
    /// A merge was refused because of its size: it takes no more (`REQ_NOMERGE`).
    pub full: bool,
    /// When it was created and entered the scheduler (`start_time_ns`; a plug takes no time).
    pub inserted: Nanos,
    /// When it was dispatched to the disk (`io_start_time_ns`).
    pub issued: Nanos,
    /// The owner of its first bio ([`Bio::owner`]).
    pub owner: u64,
    /// The bios after the first; see [`crate::block`].
    pub rest: BioChain,
}

impl Request {
    /// The sector directly after the last one.
    pub fn end(&self) -> Sector {
        self.sector.offset(self.sectors)
    }
}

/// All requests that exist. A slab with indices, so that queues hold four-byte ids and nothing is
/// allocated per I/O once it has grown.
#[derive(Debug, Default)]
pub struct RequestSlab {
    slots: slab::Slab<Request>,
}

impl RequestSlab {
    /// Room for `capacity` requests before it grows.
    pub fn with_capacity(capacity: usize) -> RequestSlab {
        RequestSlab { slots: slab::Slab::with_capacity(capacity) }
    }

    /// Stores `request`; its id is the lowest free one.
    pub fn insert(&mut self, request: Request) -> RequestId {
        RequestId(self.slots.insert(request) as u32)
    }

    /// Frees a completed request.
    pub fn remove(&mut self, id: RequestId) -> Request {
        self.slots.remove(id.index())
    }

    /// All, in order of their ids.
    pub fn iter(&self) -> impl Iterator<Item = &Request> {
        self.slots.iter().map(|(_, request)| request)
    }

    /// The number of requests.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// True if there are no requests.
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
