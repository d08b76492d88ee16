//! Disk models: the caller gives the time and the commands, and collects completions.
//! A model has no clock and no transport. Its caller submits commands at given times, asks for the time of
//! the next event and collects completions; in the simulator the caller is the event loop, under a real
//! kernel it is a ublk server.

mod any;
pub mod catalogue;
mod constant;
mod draw;
mod figures;
mod file;
mod hdd;
mod independence;
mod kept;
mod keys;
mod model;
mod published;
mod ranges;
mod replay;
mod ssd;
#[cfg(test)]
mod testing;
mod validate;

use blklab_base::units::{Nanos, Sector};

pub use blklab_base::input_error::InputError;

pub use self::any::AnyDisk;
pub use self::constant::Constant;
pub use self::draw::{Drawn, draw};
pub use self::figures::{FIGURES, Figure};
pub use self::hdd::{Hdd, LongestWait};
pub use self::independence::Validation;
pub use self::kept::Kept;
pub use self::keys::{Absent, Allowed, CONSTANT_KEYS, HDD_KEYS, Key, Parameter, SSD_KEYS, Value};
pub use self::model::DiskModel;
pub use self::published::{Published, Role};
pub use self::ranges::{RULES, Rule, Spread};
pub use self::replay::{TraceRequest, replay};
pub use self::ssd::Ssd;
pub use self::validate::{Check, validate};

/// An operation of the disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Op {
    /// Read data.
    #[default]
    Read,
    /// Write data.
    Write,
    /// Make every completed write durable (`REQ_OP_FLUSH`). No address, no length.
    Flush,
    /// The data are no longer needed (`REQ_OP_DISCARD`; fio's trim).
    Discard,
}

impl Op {
    /// True for operations that change the medium (the kernel's `op_is_write`).
    pub const fn is_write(self) -> bool {
        !matches!(self, Op::Read)
    }
}

/// The number of a command while the disk has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Tag(pub u32);

/// One command as it crosses the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Command {
    /// Returned in the [`Completion`].
    pub tag: Tag,
    /// The operation. `Flush` has no address and no length.
    pub op: Op,
    /// First sector.
    pub sector: Sector,
    /// Length in sectors.
    pub sectors: u32,
    /// Write only: durable when it completes.
    pub fua: bool,
}

/// A completed command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The command's tag.
    pub tag: Tag,
    /// The time of its end, at the host's interrupt.
    pub at: Nanos,
    /// The time at which the disk began with it, if requested by [`Disk::keep_begins`].
    pub began: Option<Nanos>,
}

/// The time at which the disk began with each current command; off by default.
#[derive(Debug, Default)]
pub(crate) struct Begins {
    /// By tag.
    at: Option<Vec<Nanos>>,
}

impl Begins {
    fn keep(&mut self) {
        self.at.get_or_insert_default();
    }

    #[inline]
    fn note(&mut self, tag: Tag, at: u64) {
        if let Some(all) = &mut self.at {
            let index = tag.0 as usize;
            all.resize(all.len().max(index + 1), Nanos::ZERO);
            all[index] = Nanos(at);
        }
    }

    #[inline]
    fn of(&self, tag: Tag) -> Option<Nanos> {
        self.at.as_ref()?.get(tag.0 as usize).copied()
    }
}

/// The properties that a host reads from a disk: the block layer's queue limits.
#[derive(Clone, Debug, PartialEq)]
pub struct DiskLimits {
    /// Size in sectors.
    pub capacity: Sector,
    /// It rotates (`queue/rotational`).
    pub rotational: bool,
    /// Queue depth per hardware queue (NCQ: 32; NVMe: its queue size).
    pub queue_depth: u32,
    /// Tags of the host adapter behind which it is, whatever it takes itself: SATA and SAS, which the
    /// kernel reaches through its SCSI layer. NVMe has none.
    pub adapter_tags: Option<u32>,
    /// A flush is at the disk alone. The driver of SATA disks (libata) ensures that, since SATA's flush is not
    /// a queued command.
    pub flush_alone: bool,
    /// Hardware queues (SATA and SAS: 1; NVMe: one per CPU up to the controller's limit).
    pub hw_queues: u16,
    /// Largest command in sectors (`max_hw_sectors_kb`, in sectors).
    pub max_hw_sectors: u32,
    /// `queue/logical_block_size` in bytes.
    pub logical_block_bytes: u32,
    /// `queue/physical_block_size` in bytes.
    pub physical_block_bytes: u32,
    /// It has a volatile write cache: a flush has an effect (`queue/write_cache`).
    pub volatile_write_cache: bool,
    /// It supports FUA; otherwise the host sends a flush after the write.
    pub fua: bool,
}

/// A disk in virtual time.
/// The caller never lets time run backwards, calls [`Disk::advance`] whenever [`Disk::next_event`] is due,
/// and has at most `queue_depth * hw_queues` commands in flight.
pub trait Disk {
    /// Its properties for the host.
    fn limits(&self) -> &DiskLimits;

    /// Submits a command at `now`. Tags in use are unique.
    fn submit(&mut self, now: Nanos, command: Command);

    /// The time of the next call of [`Disk::advance`]; [`Nanos::NEVER`] when the disk waits for the host. No
    /// command completes before this time.
    fn next_event(&self) -> Nanos;

    /// Advances the time to `now` and appends completions to `done`, in order. Background work (destaging,
    /// garbage collection) is also done here.
    fn advance(&mut self, now: Nanos, done: &mut Vec<Completion>);

    /// True when every sector of the range would survive a power cut now: no write
    /// to it is still in a volatile cache. Commands not yet completed do not count.
    fn is_durable(&self, sector: Sector, sectors: u32) -> bool;

    /// From now on, records the time at which the disk began with each command: the start of a hard disk's
    /// seek, or else of the controller's work.
    fn keep_begins(&mut self);

    /// Busy time of the disk's busiest part so far, for the utilisation law.
    fn busy(&self) -> Nanos;
}
