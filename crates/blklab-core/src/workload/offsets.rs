//! The offset of the next I/O in one file.
//!
//! Offsets here count from the start of the process's region. Follows fio's `get_next_block()` and
//! the functions that it calls: a position per direction for sequential I/O, a map of touched
//! blocks for random I/O.

use rand_xoshiro::Xoshiro256PlusPlus;

use super::distribution::Skewed;
use super::fio_numbers::FioNumbers;
use super::plan::Region;
use super::random;
use super::random_map::RandomMap;
use super::spec::{Access, Direction, Distribution, PerDirection, Zone};

/// One process's state in one of its files.
#[derive(Clone, Debug)]
pub(super) struct Offsets {
    pub(super) region: Region,
    /// The state of each direction, by number.
    ways: [Way; 3],
    /// Maps of touched blocks; directions with the same block size share one.
    maps: Vec<RandomMap>,
    chooser: Chooser,
    /// A block that was trimmed and must be written next.
    pub(super) trimmed: Option<(u64, u32)>,
    /// No more I/O here in this pass.
    pub(super) done: bool,
}

/// One direction's state in a file, with all fields of an I/O together.
#[derive(Clone, Copy, Debug, Default)]
struct Way {
    /// After the last I/O.
    position: u64,
    /// Start of the last I/O.
    last: u64,
    /// Places for random I/O, `align` bytes apart.
    blocks: u64,
    align: u32,
    /// Index into `maps`, or beyond its end.
    map: u32,
}

#[derive(Clone, Debug)]
enum Chooser {
    Uniform,
    Skewed(Skewed),
    /// Per percent of the accesses: first block and number of blocks.
    Zoned(PerDirection<Vec<(u64, u64)>>),
}

/// The place of an I/O.
#[derive(Clone, Copy, Debug)]
pub(super) struct NextOffset {
    pub(super) offset: u64,
    /// Its block in the map of touched blocks, if it counts there.
    block: u64,
    /// It was drawn at random.
    pub(super) random: bool,
    /// It counts in the map of touched blocks.
    pub(super) mapped: bool,
    /// The file started again from its beginning.
    pub(super) wrapped: bool,
}

impl Offsets {
    pub(super) fn new(access: &Access, region: Region, rng: &mut Xoshiro256PlusPlus) -> Offsets {
        let smallest = match access.sizes_by_randomness {
            false => access.block_sizes.map(|sizes| u64::from(sizes.min())),
            true => PerDirection::all(u64::from(access.block_sizes.write.min())),
        };
        let mut blocks = PerDirection::default();
        for direction in Direction::ALL {
            let align = u64::from(access.align[direction]);
            // The last place has room for a block (fio's `last_block()`).
            let length = region.length.saturating_sub(smallest[direction].saturating_sub(align));
            blocks[direction] = length / align;
        }
        let mut maps: Vec<RandomMap> = Vec::new();
        let mut ways = [Way::default(); 3];
        for direction in Direction::ALL {
            let count = blocks[direction];
            let used = match direction {
                Direction::Read => access.rw.reads(),
                Direction::Write => access.rw.writes() && !access.rw.trims_before_writing(),
                Direction::Trim => access.rw.trims(),
            };
            let map = maps.iter().position(|map| map.len() == count).unwrap_or(maps.len());
            if access.random_map && used && map == maps.len() {
                maps.push(RandomMap::new(count));
            }
            let (map, align) = (map as u32, access.align[direction]);
            ways[direction as usize] = Way { blocks: count, align, map, ..Way::default() };
        }
        let chooser = Chooser::new(access, region, &blocks, rng);
        Offsets { region, ways, maps, chooser, trimmed: None, done: false }
    }

    /// Starts again (fio's `fio_file_reset()`).
    pub(super) fn reset(&mut self) {
        for way in &mut self.ways {
            (way.position, way.last) = (0, 0);
        }
        for map in &mut self.maps {
            map.clear();
        }
        self.trimmed = None;
        self.done = false;
    }

    /// A random place. `again`: start again when no block is left.
    #[inline(always)]
    pub(super) fn random(
        &mut self,
        direction: Direction,
        rng: &mut Xoshiro256PlusPlus,
        fio_numbers: Option<&mut FioNumbers>,
        again: bool,
    ) -> Option<NextOffset> {
        let way = &self.ways[direction as usize];
        let (count, align) = (way.blocks, u64::from(way.align));
        if count == 0 {
            return None;
        }
        let block = match &self.chooser {
            Chooser::Uniform => match fio_numbers {
                None => random::below(rng, count),
                Some(numbers) => numbers.block(count),
            },
            chooser => chooser.choose(direction, count, rng),
        };
        let (block, wrapped) = match self.maps.get(way.map as usize) {
            None => (block, false),
            Some(map) => match map.next_free(block) {
                Some(block) => (block, false),
                None if again => {
                    self.reset();
                    (block, true)
                }
                None => return None,
            },
        };
        Some(NextOffset {
            offset: block * align,
            block,
            random: true,
            mapped: !self.maps.is_empty(),
            wrapped,
        })
    }

    /// The place after the last one. `again`: start again at the end.
    #[inline]
    pub(super) fn sequential(&mut self, skip: i64, direction: Direction, again: bool) -> Option<NextOffset> {
        let length = self.region.length;
        let mut at = self.ways[direction as usize].position;
        let mut wrapped = false;
        if at >= length {
            if !again {
                return None;
            }
            at = 0;
            wrapped = true;
        }
        if skip != 0 && at != 0 {
            at = self.skipped(at, skip, direction);
        }
        Some(NextOffset { offset: at, block: 0, random: false, mapped: false, wrapped })
    }

    /// `skip` bytes from `at`; wraps around at both ends.
    #[inline(never)]
    fn skipped(&self, at: u64, skip: i64, direction: Direction) -> u64 {
        let length = self.region.length;
        let moved = at as i64 + skip;
        if moved >= 0 && (moved as u64) < length {
            moved as u64
        } else if skip > 0 {
            0
        } else {
            // From the last whole block; fio starts at the end of the file, even inside a block.
            let align = u64::from(self.ways[direction as usize].align);
            ((length - length % align) as i64 + skip).max(0) as u64
        }
    }

    /// The place of the last I/O again.
    pub(super) fn identical(&self, direction: Direction) -> NextOffset {
        NextOffset {
            offset: self.ways[direction as usize].last,
            block: 0,
            random: false,
            mapped: false,
            wrapped: false,
        }
    }

    /// Places an I/O of `len` bytes at `place`; returns the number of bytes placed (fewer if it
    /// would reach blocks already touched in this pass).
    #[inline]
    pub(super) fn take(&mut self, direction: Direction, place: NextOffset, len: u32) -> u32 {
        let way = &mut self.ways[direction as usize];
        let mut len = len;
        if place.mapped {
            let map = &mut self.maps[way.map as usize];
            if len == way.align {
                map.take(place.block);
            } else {
                len = take_blocks(map, place.block, len, way.align);
            }
        }
        way.last = place.offset;
        way.position = place.offset + u64::from(len);
        len
    }

    /// Bytes from `offset` to the end of the region.
    #[inline]
    pub(super) fn room(&self, offset: u64) -> u64 {
        self.region.length.saturating_sub(offset)
    }
}

/// Marks the blocks of `len` bytes; returns the number of bytes marked.
#[inline(never)]
fn take_blocks(map: &mut RandomMap, block: u64, len: u32, align: u32) -> u32 {
    let wanted = u64::from(len.div_ceil(align));
    let taken = map.take_run(block, wanted);
    if taken < wanted { taken as u32 * align } else { len }
}

impl Chooser {
    /// A block below `count`.
    #[inline(never)]
    fn choose(&self, direction: Direction, count: u64, rng: &mut Xoshiro256PlusPlus) -> u64 {
        match self {
            Chooser::Uniform => random::below(rng, count),
            Chooser::Skewed(skewed) => skewed.next(rng) % count,
            Chooser::Zoned(zones) => {
                let zones = &zones[direction];
                let (first, blocks) = zones[random::below(rng, zones.len() as u64) as usize];
                first + random::below(rng, blocks)
            }
        }
    }

    fn new(
        access: &Access,
        region: Region,
        blocks: &PerDirection<u64>,
        rng: &mut Xoshiro256PlusPlus,
    ) -> Chooser {
        let smallest = access.block_sizes.read.min().min(access.block_sizes.write.min());
        let n = region.length.div_ceil(u64::from(smallest)).max(1);
        match &access.distribution {
            _ if !access.rw.is_random() => Chooser::Uniform,
            Distribution::Random => Chooser::Uniform,
            Distribution::Zipf { theta, center } => Chooser::Skewed(Skewed::zipf(n, *theta, *center, rng)),
            Distribution::Pareto { h, center } => Chooser::Skewed(Skewed::pareto(n, *h, *center, rng)),
            Distribution::Normal { deviation_percent, center } => {
                Chooser::Skewed(Skewed::normal(n, *deviation_percent, *center))
            }
            Distribution::Zoned(zones) => Chooser::zoned(zones, blocks, |width, direction| {
                (u128::from(blocks[direction]) * u128::from(width) / 100) as u64
            }),
            Distribution::ZonedAbs(zones) => Chooser::zoned(zones, blocks, |width, direction| {
                (width / u64::from(access.align[direction])).min(blocks[direction])
            }),
        }
    }

    fn zoned(
        zones: &PerDirection<Vec<Zone>>,
        blocks: &PerDirection<u64>,
        end: impl Fn(u64, Direction) -> u64,
    ) -> Chooser {
        let mut table = PerDirection::default();
        for direction in Direction::ALL {
            let everywhere = (0, blocks[direction]);
            let mut rows = Vec::with_capacity(100);
            let mut width = 0;
            for zone in &zones[direction] {
                let first = end(width, direction);
                width += zone.width;
                let count = end(width, direction) - first;
                // A zone without a block of its own: its accesses go to all blocks.
                let row = if count == 0 { everywhere } else { (first, count) };
                rows.extend(std::iter::repeat_n(row, zone.access_percent as usize));
            }
            if rows.is_empty() {
                rows.push(everywhere);
            }
            table[direction] = rows;
        }
        Chooser::Zoned(table)
    }
}
