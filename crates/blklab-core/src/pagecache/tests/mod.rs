//! The page cache against the kernel's sequences, a naive model and a disk with a rate.

mod model;
mod readahead;
mod reclaim;
mod sync;
mod writeback;

use super::*;
use crate::kernel::Kernel;
use crate::ticks::Ticks;
use crate::units::Bytes;

const KIB: u64 = 1024;
const MIB: u64 = 1024 * KIB;

/// The defaults, on four CPUs with 1,000 ticks a second, without large folios.
fn config() -> MemoryConfig {
    let config = MemoryConfig::new(&MemoryConfig::settings(), Ticks::per_second(1000), 4, Kernel::LATEST);
    MemoryConfig { large_folios: false, ..config }
}

impl PageCache {
    /// The next range that the flusher writes, in whichever file.
    fn next_writeback(&mut self, backing: BackingId, now: Nanos, room: impl Into<Room>) -> Option<PageRange> {
        let room = room.into();
        loop {
            match self.write_back(backing, now, room) {
                WriteBack::Range(range) => return Some(range),
                WriteBack::EndOfFile => {}
                WriteBack::Nothing => return None,
            }
        }
    }
}

/// Writes by a process that uses no CPU time, until it must wait or is done.
fn write_on(
    cache: &mut PageCache,
    now: Nanos,
    file: FileId,
    offset: u64,
    bytes: u64,
    dirtier: &mut Dirtier,
) -> Step {
    let mut done = 0;
    loop {
        let step = cache.write(now, file, offset + done, bytes - done, dirtier, &mut Vec::new());
        done += step.bytes;
        if step.wait != Some(Wait::Work) {
            return Step { bytes: done, ..step };
        }
    }
}

/// The defaults, for a disk with that `max_sectors_kb`.
fn disk(max_sectors_kb: u64) -> BackingConfig {
    let [read_ahead, max_io] = [128, max_sectors_kb].map(Bytes::from_kib);
    BackingConfig { read_ahead, max_io }
}
