//! A disk of any kind, dispatched by a match so that the hot path stays inlined.

use super::constant::Constant;
use super::hdd::Hdd;
use super::ssd::Ssd;
use super::{Command, Completion, Disk, DiskLimits};
use blklab_base::units::{Nanos, Sector};

/// A built disk model: what [`super::DiskModel::build`] returns.
// One of these exists per simulated disk; boxing the large variant would only add a
// pointer to follow per I/O.
#[allow(clippy::large_enum_variant)]
#[derive(Debug)]
pub enum AnyDisk {
    /// A hard disk.
    Hdd(Hdd),
    /// A solid-state disk.
    Ssd(Ssd),
    /// A disk of constant service time.
    Constant(Constant),
}

macro_rules! each {
    ($self:expr, $disk:ident => $call:expr) => {
        match $self {
            AnyDisk::Hdd($disk) => $call,
            AnyDisk::Ssd($disk) => $call,
            AnyDisk::Constant($disk) => $call,
        }
    };
}

impl Disk for AnyDisk {
    #[inline]
    fn limits(&self) -> &DiskLimits {
        each!(self, disk => disk.limits())
    }

    #[inline]
    fn submit(&mut self, now: Nanos, command: Command) {
        each!(self, disk => disk.submit(now, command));
    }

    #[inline]
    fn next_event(&self) -> Nanos {
        each!(self, disk => disk.next_event())
    }

    #[inline(always)]
    fn advance(&mut self, now: Nanos, done: &mut Vec<Completion>) {
        each!(self, disk => disk.advance(now, done));
    }

    #[inline]
    fn is_durable(&self, sector: Sector, sectors: u32) -> bool {
        each!(self, disk => disk.is_durable(sector, sectors))
    }

    fn keep_begins(&mut self) {
        each!(self, disk => disk.keep_begins());
    }

    #[inline]
    fn busy(&self) -> Nanos {
        each!(self, disk => disk.busy())
    }
}
