//! Actors, and the owners of I/Os: what is to be notified, packed in 64 bits.

use crate::pagecache::BackingId;
use crate::request::ProcessId;

/// An activity that the engine runs: it issues I/O, sleeps and is woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Actor {
    /// A process of the source of I/O.
    Process(ProcessId),
    /// The kernel's flusher thread of a backing device.
    Flusher(BackingId),
    /// The kernel thread that commits the file system's journal.
    Journal,
    /// Its timer.
    JournalTimer,
    /// A kernel thread that syncs a write of a process, by its number in the world.
    Syncer(u32),
}

impl Actor {
    /// The process that its I/Os belong to.
    #[inline]
    pub const fn process(self) -> ProcessId {
        match self {
            Actor::Process(process) => process,
            Actor::Flusher(_) | Actor::Syncer(_) => ProcessId::KERNEL,
            Actor::Journal | Actor::JournalTimer => ProcessId::JOURNAL,
        }
    }

    /// The thread that runs it. The kernel's own count as one.
    #[inline]
    pub const fn thread(self) -> ProcessId {
        match self {
            Actor::Process(process) => process,
            _ => ProcessId::KERNEL,
        }
    }

    /// One of the kernel's threads.
    #[inline]
    pub const fn is_kernels(self) -> bool {
        !matches!(self, Actor::Process(_))
    }

    /// A flusher.
    #[inline]
    pub const fn is_flusher(self) -> bool {
        matches!(self, Actor::Flusher(_))
    }

    /// The actor of an [`Owner::Sleeper`] in 64 bits.
    pub const fn of_sleeper(packed: u64) -> Option<Actor> {
        match Owner::unpack(packed) {
            Owner::Sleeper(actor) => Some(actor),
            _ => None,
        }
    }
}

/// The owner of a bio, as it travels through the block layer in `Bio::owner`; or a sleeper, in the
/// list of what is to be notified after commands have ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// An I/O of a process, by the process's own number for it.
    Process(ProcessId, u32),
    /// Page reads or writeback, by its number among the page I/Os.
    Pages(u32),
    /// A block of the journal, by its number in the commit.
    Journal(u32),
    /// A flush, with the process that waits for it.
    Flush(ProcessId),
    /// A flush, with the kernel thread that waits for it ([`Actor::Syncer`]).
    SyncersFlush(u32),
    /// No bio's: an actor that sleeps until it gets a tag, of which some may be free.
    Sleeper(Actor),
}

/// Marks a sleeping flusher.
const FLUSHER: u64 = 1 << 32;
/// Marks the journal, asleep or the owner of a bio.
const JOURNAL: u64 = 1 << 33;
/// Marks a kernel thread that syncs, asleep or the owner of a flush.
const SYNCER: u64 = 1 << 34;

impl Owner {
    /// As a number.
    #[inline]
    pub const fn pack(self) -> u64 {
        match self {
            Owner::Process(process, io) => (process.0 as u64) << 32 | io as u64,
            Owner::Pages(index) => 1 << 62 | index as u64,
            Owner::Journal(block) => 1 << 62 | JOURNAL | block as u64,
            Owner::Flush(process) => 2 << 62 | process.0 as u64,
            Owner::SyncersFlush(number) => 2 << 62 | SYNCER | number as u64,
            Owner::Sleeper(Actor::Syncer(number)) => 3 << 62 | SYNCER | number as u64,
            Owner::Sleeper(Actor::Process(process)) => 3 << 62 | process.0 as u64,
            Owner::Sleeper(Actor::Flusher(backing)) => 3 << 62 | FLUSHER | backing.0 as u64,
            // The timer submits nothing.
            Owner::Sleeper(Actor::Journal | Actor::JournalTimer) => 3 << 62 | JOURNAL,
        }
    }

    /// Back from the number.
    #[inline]
    pub const fn unpack(owner: u64) -> Owner {
        match owner >> 62 {
            0 => Owner::Process(ProcessId((owner >> 32) as u32), owner as u32),
            1 if owner & JOURNAL != 0 => Owner::Journal(owner as u32),
            1 => Owner::Pages(owner as u32),
            2 if owner & SYNCER != 0 => Owner::SyncersFlush(owner as u32),
            2 => Owner::Flush(ProcessId(owner as u32)),
            _ if owner & SYNCER != 0 => Owner::Sleeper(Actor::Syncer(owner as u32)),
            _ if owner & JOURNAL != 0 => Owner::Sleeper(Actor::Journal),
            _ if owner & FLUSHER != 0 => Owner::Sleeper(Actor::Flusher(BackingId(owner as u16))),
            _ => Owner::Sleeper(Actor::Process(ProcessId(owner as u32))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn an_owner_survives_being_a_number(process in 0..1_000_000u32, io: u32, backing: u16) {
            let process = ProcessId(process);
            let sleepers = [
                Actor::Process(process),
                Actor::Flusher(BackingId(backing)),
                Actor::Journal,
                Actor::Syncer(io),
            ];
            let owners =
                [Owner::Process(process, io), Owner::Pages(io), Owner::Journal(io), Owner::Flush(process), Owner::SyncersFlush(io)];
            for owner in owners.into_iter().chain(sleepers.map(Owner::Sleeper)) {
                prop_assert_eq!(Owner::unpack(owner.pack()), owner);
            }
        }
    }
}
