//! The page cache against the kernel's sequences, a naive model and a disk with a rate.

mod model;
mod readahead;
mod reclaim;
mod writeback;

use super::*;
use crate::units::Bytes;

const KIB: u64 = 1024;
const MIB: u64 = 1024 * KIB;

/// The defaults, for a disk with that `max_sectors_kb`.
fn config(max_sectors_kb: u64) -> MemoryConfig {
    MemoryConfig::new(&MemoryConfig::settings(), Bytes::from_kib(128), Bytes::from_kib(max_sectors_kb))
}
