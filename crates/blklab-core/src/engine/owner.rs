//! Owners of bios: what the engine notifies when a bio completes.

use crate::request::ProcessId;

/// The owner of a bio, as it travels through the block layer in `Bio::owner`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// An I/O of a process, by the process's own number for it.
    Process(ProcessId, u32),
    /// Page reads or writeback, by its number among the page I/Os.
    Pages(u32),
    /// A flush, with the process that waits for it.
    Flush(ProcessId),
}

impl Owner {
    /// As a number.
    #[inline]
    pub const fn pack(self) -> u64 {
        match self {
            Owner::Process(process, io) => (process.0 as u64) << 32 | io as u64,
            Owner::Pages(index) => 1 << 62 | index as u64,
            Owner::Flush(process) => 2 << 62 | process.0 as u64,
        }
    }

    /// Back from the number.
    #[inline]
    pub const fn unpack(owner: u64) -> Owner {
        match owner >> 62 {
            0 => Owner::Process(ProcessId((owner >> 32) as u32), owner as u32),
            1 => Owner::Pages(owner as u32),
            _ => Owner::Flush(ProcessId(owner as u32)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn an_owner_survives_being_a_number(process in 0..1_000_000u32, io: u32) {
            for owner in [Owner::Process(ProcessId(process), io), Owner::Pages(io), Owner::Flush(ProcessId(process))] {
                prop_assert_eq!(Owner::unpack(owner.pack()), owner);
            }
        }
    }
}
