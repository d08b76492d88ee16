//! Working sets: the areas of 1 MiB in which a device, a process, a cgroup has I/O.
//!
//! I/Os wait in a batch. Their places in the tables are far apart; the CPU looks up many that do not
//! depend on each other in the time of one miss of its cache.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use blklab_base::recorded::{Io, NameId};

/// The size of the areas in which the working set is counted, in sectors: 1 MiB.
pub const AREA_SECTORS: u64 = 2048;

/// Areas of a device that are counted: 16 TiB, for 2 MiB of memory. I/O beyond is left out.
const AREAS_MAX: u64 = 1 << 24;

/// The working set is counted for at most so many devices.
const DEVICES_MAX: usize = 1 << 6;

/// Words of 64 areas in a chunk: a cache line, for 512 MiB of a device.
const CHUNK: usize = 8;

/// Chunks of all processes and cgroups: some 40 MB.
const CHUNKS_MAX: usize = 1 << 19;

/// I/Os that wait.
const BATCH: usize = 256;

/// The number of a process or cgroup.
pub type Row = u32;

/// Areas with I/O.
#[derive(Clone, Debug, Default)]
pub struct Areas {
    waiting: Vec<Touched>,
    devices: Vec<Device>,
    /// Places of the rows' chunks. When there are [`CHUNKS_MAX`], areas of new ones are not counted.
    places: HashMap<u64, u32, BuildHasherDefault<Mixed>>,
    chunks: Vec<[u64; CHUNK]>,
    /// By row.
    counts: Vec<u64>,
    is_full: bool,
}

/// A device's areas, a bit for each.
#[derive(Clone, Debug)]
struct Device {
    name: NameId,
    count: u64,
    bits: Vec<u64>,
}

/// The areas of an I/O.
#[derive(Clone, Copy, Debug)]
struct Touched {
    device: usize,
    first: u64,
    last: u64,
    rows: [Option<Row>; 2],
}

impl Areas {
    /// Takes an I/O that has sectors, and the rows of its process and cgroup.
    #[inline]
    pub fn take(&mut self, io: &Io, rows: [Option<Row>; 2]) {
        let (first, last) = (io.sector.0 / AREA_SECTORS, (io.end().0 - 1) / AREA_SECTORS);
        let Some(device) = self.device(io.device) else { return };
        if first < AREAS_MAX {
            self.waiting.push(Touched { device, first, last: last.min(AREAS_MAX - 1), rows });
            if self.waiting.len() == BATCH {
                self.settle();
            }
        }
    }

    fn device(&mut self, name: NameId) -> Option<usize> {
        let known = self.devices.iter().position(|device| device.name == name);
        if known.is_none() && self.devices.len() < DEVICES_MAX {
            self.devices.push(Device { name, count: 0, bits: Vec::new() });
            return Some(self.devices.len() - 1);
        }
        known
    }

    /// Counts the areas of the I/Os that wait. To be called before counts are read.
    pub fn settle(&mut self) {
        let mut waiting = std::mem::take(&mut self.waiting);
        for touched in &waiting {
            for (word, mask) in touched.words() {
                self.devices[touched.device].count(word, mask);
            }
        }
        for touched in &waiting {
            for row in touched.rows.iter().flatten() {
                self.count(*row, touched);
            }
        }
        waiting.clear();
        self.waiting = waiting;
    }

    #[inline]
    fn count(&mut self, row: Row, touched: &Touched) {
        let place = row as usize;
        if self.counts.len() <= place {
            self.counts.resize(place + 1, 0);
        }
        for (word, mask) in touched.words() {
            let Some(chunk) = self.chunk(row, touched.device, word / CHUNK as u64) else { continue };
            let known = &mut self.chunks[chunk][word as usize % CHUNK];
            self.counts[place] += u64::from((mask & !*known).count_ones());
            *known |= mask;
        }
    }

    /// The place of a row's chunk; None if it is new and there are too many.
    #[inline]
    fn chunk(&mut self, row: Row, device: usize, number: u64) -> Option<usize> {
        // A device has 6 bits, the number of a chunk 15.
        let key = u64::from(row) << 21 | (device as u64) << 15 | number;
        if let Some(place) = self.places.get(&key) {
            return Some(*place as usize);
        }
        if self.chunks.len() >= CHUNKS_MAX {
            self.is_full = true;
            return None;
        }
        self.chunks.push([0; CHUNK]);
        self.places.insert(key, self.chunks.len() as u32 - 1);
        Some(self.chunks.len() - 1)
    }

    /// Areas with I/O of all devices.
    pub fn total(&self) -> u64 {
        debug_assert!(self.waiting.is_empty(), "settled");
        self.devices.iter().map(|device| device.count).sum()
    }

    /// Areas with I/O of that process or cgroup.
    pub fn of(&self, row: Row) -> u64 {
        debug_assert!(self.waiting.is_empty(), "settled");
        self.counts.get(row as usize).copied().unwrap_or_default()
    }

    /// Whether there were too many to count those of all processes and cgroups.
    pub fn are_incomplete(&self) -> bool {
        self.is_full
    }
}

impl Device {
    #[inline]
    fn count(&mut self, word: u64, mask: u64) {
        let word = word as usize;
        if word >= self.bits.len() {
            self.bits.resize(word + 1, 0);
        }
        let known = &mut self.bits[word];
        self.count += u64::from((mask & !*known).count_ones());
        *known |= mask;
    }
}

impl Touched {
    /// Words of 64 areas: the number of each, and its touched areas as bits.
    #[inline]
    fn words(&self) -> impl Iterator<Item = (u64, u64)> + use<> {
        let (first, last) = (self.first, self.last);
        (first / 64..=last / 64).map(move |word| {
            let from = first.max(64 * word);
            let until = last.min(64 * word + 63);
            (word, (u64::MAX >> (63 - (until - from))) << (from % 64))
        })
    }
}

/// A fast hash of one number that the trace's author does not gain from choosing.
#[derive(Clone, Copy, Debug, Default)]
struct Mixed(u64);

impl Hasher for Mixed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, value: u64) {
        // The finalizer of splitmix64 (Steele, Lea, Flood, OOPSLA 2014).
        let mut mixed = (self.0 ^ value).wrapping_add(0x9e37_79b9_7f4a_7c15);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        self.0 = mixed ^ (mixed >> 31);
    }
}

#[cfg(test)]
mod tests {
    use blklab_base::units::Sector;

    use super::*;

    #[test]
    fn areas_beyond_the_most_chunks_are_not_counted_and_it_is_told() {
        let mut areas = Areas::default();
        // 16 rows fill the table: a device has 2^15 chunks.
        let chunk = AREA_SECTORS * 64 * CHUNK as u64;
        for row in 0..17 {
            for number in 0..1 << 15 {
                let io = Io { sector: Sector(number * chunk), sectors: 8, ..Io::default() };
                areas.take(&io, [Some(row), None]);
            }
            areas.settle();
            assert_eq!(areas.are_incomplete(), row == 16);
        }
        // What is known is counted on.
        areas.take(&Io { sector: Sector(AREA_SECTORS), sectors: 8, ..Io::default() }, [Some(3), Some(16)]);
        areas.settle();
        assert_eq!((areas.of(3), areas.of(16)), ((1 << 15) + 1, 0));
        assert_eq!(areas.total(), (1 << 15) + 1);
    }

    #[test]
    fn io_beyond_the_counted_areas_and_of_too_many_devices_is_left_out() {
        let mut areas = Areas::default();
        for name in 0..DEVICES_MAX as u32 + 2 {
            let io = Io { device: NameId(name), sectors: 8, ..Io::default() };
            areas.take(&io, [Some(0), None]);
            let last =
                Io { sector: Sector((AREAS_MAX - 1) * AREA_SECTORS), sectors: 3 * AREA_SECTORS as u32, ..io };
            areas.take(&last, [Some(0), None]);
            areas.take(&Io { sector: Sector(AREAS_MAX * AREA_SECTORS), ..io }, [Some(0), None]);
        }
        areas.settle();
        assert_eq!((areas.total(), areas.of(0)), (2 * DEVICES_MAX as u64, 2 * DEVICES_MAX as u64));
    }
}
