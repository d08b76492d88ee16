//! The flash translation layer: the place of each logical unit, and garbage collection.
//!
//! Blocks of all dies with the same number form a superblock, which is filled in stripes over the dies and
//! erased as a whole. The victim of garbage collection is the superblock with the fewest valid units (greedy;
//! Desnoyers, "Analytic modeling of SSD write performance", SYSTOR 2012). Write amplification is not a
//! parameter, but a result.

use std::ops::Range;

/// No unit: not mapped, or no owner.
pub(super) const NONE: u32 = u32::MAX;

const CHUNK: usize = 512;

/// With fewer free superblocks, every written unit must first free one.
const RESERVE: usize = 4;

/// The least number of spare superblocks for garbage collection.
pub(super) const SPARE_MIN: u64 = 7;

/// A place for appending.
#[derive(Clone, Copy, Debug)]
struct Frontier {
    /// Next physical unit.
    next: u32,
    /// The end of the superblock.
    end: u32,
}

/// The writers that append.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stream {
    Host = 0,
    Collector = 1,
}

#[derive(Debug)]
pub(super) struct Mapping {
    /// Logical to physical, in chunks that are created when one of their units is written.
    chunks: Vec<Option<Box<[u32; CHUNK]>>>,
    /// The existing chunks, one bit each. Random reads of a mostly unwritten disk use this bitmap, which fits
    /// into a processor's L1 cache, and not the table, which does not.
    exists: Box<[u64]>,
    /// Physical to logical, per superblock; none: unchanged since the fill before the run.
    owners: Vec<Option<Box<[u32]>>>,
    valid: Vec<u32>,
    /// Superblocks that can be a victim: full and not being collected.
    closed: Vec<bool>,
    free: Vec<u32>,
    frontiers: [Option<Frontier>; 2],
    victim: Option<Frontier>,
    /// Units that held data before the run, from the first on.
    filled: u32,
    units_per_superblock: u32,
    logical_units: u32,
    valid_units: u64,
    pub host_units: u64,
    pub moved_units: u64,
}

/// The result of a step of garbage collection.
pub(super) enum Step {
    /// The unit was not valid.
    Passed,
    /// The logical unit at `from` must be appended again.
    Move { unit: u32, from: u32 },
    /// The victim is completely read; its blocks are erased. No unit was freed yet.
    Erased,
}

/// Counts valid units while a range is mapped anew. Units that are written together were mostly stored
/// together, so the superblock of the last one is cached.
struct Books<'a> {
    valid: &'a mut [u32],
    valid_units: &'a mut u64,
    units_per_superblock: u32,
    superblock: u32,
    /// Its physical units.
    range: Range<u32>,
}

impl Books<'_> {
    /// The units that are now at these places of the table leave their physical ones, where they have any. Those
    /// that lie side by side leave together.
    fn leave(mut self, mut places: &[u32]) {
        while let Some(&physical) = places.first() {
            let units = match physical {
                NONE => places.iter().position(|&other| other != NONE).unwrap_or(places.len()),
                _ => self.left(physical, places),
            };
            places = &places[units..];
        }
    }

    /// The first of these units has left this physical place, and those after it the next ones of its superblock;
    /// returns their number.
    #[inline]
    fn left(&mut self, physical: u32, places: &[u32]) -> usize {
        if !self.range.contains(&physical) {
            self.superblock = physical / self.units_per_superblock;
            let start = self.superblock * self.units_per_superblock;
            self.range = start..start + self.units_per_superblock;
        }
        let followers = places[1..].iter().zip(physical + 1..self.range.end);
        let units = 1 + followers.take_while(|&(&place, next)| place == next).count();
        self.valid[self.superblock as usize] -= units as u32;
        *self.valid_units -= units as u64;
        units
    }
}

/// The chunk of that number, as it was filled before the run.
#[cold]
fn new_chunk(number: usize, filled: u32) -> Box<[u32; CHUNK]> {
    let mut chunk = Box::new([NONE; CHUNK]);
    let first = (number * CHUNK) as u32;
    chunk.iter_mut().zip(first..filled.max(first)).for_each(|(place, unit)| *place = unit);
    chunk
}

/// Sets them to numbers from the first one on.
#[inline]
fn count_up(units: &mut [u32], first: u32) {
    let (fours, rest) = units.as_chunks_mut::<4>();
    let mut next = first;
    for four in fours {
        *four = [next, next + 1, next + 2, next + 3];
        next += 4;
    }
    for unit in rest {
        *unit = next;
        next += 1;
    }
}

impl Mapping {
    pub fn new(logical_units: u32, filled: u32, units_per_superblock: u32, superblocks: u32) -> Mapping {
        let chunks = (logical_units as usize).div_ceil(CHUNK);
        let full = filled.div_ceil(units_per_superblock);
        let count = |sb: u32| filled.saturating_sub(sb * units_per_superblock).min(units_per_superblock);
        Mapping {
            chunks: (0..chunks).map(|_| None).collect(),
            exists: vec![0; chunks.div_ceil(64)].into_boxed_slice(),
            owners: (0..superblocks).map(|_| None).collect(),
            valid: (0..superblocks).map(|sb| if sb < full { count(sb) } else { 0 }).collect(),
            closed: (0..superblocks).map(|sb| sb < full).collect(),
            // Popped from the end: the lowest first.
            free: (full..superblocks).rev().collect(),
            frontiers: [None; 2],
            victim: None,
            filled,
            units_per_superblock,
            logical_units,
            valid_units: u64::from(filled),
            host_units: 0,
            moved_units: 0,
        }
    }

    #[inline]
    fn chunk(&self, unit: u32) -> Option<&[u32; CHUNK]> {
        let chunk = unit as usize / CHUNK;
        if self.exists[chunk / 64] >> (chunk % 64) & 1 == 0 { None } else { self.chunks[chunk].as_deref() }
    }

    /// Physical unit of a logical one, or [`NONE`].
    #[inline]
    pub fn lookup(&self, unit: u32) -> u32 {
        match self.chunk(unit) {
            Some(chunk) => chunk[unit as usize % CHUNK],
            None => self.untouched(unit),
        }
    }

    /// The place of `unit`, and the number of units from it on, at most `most`, that follow it contiguously
    /// (or are unmapped, like it).
    #[inline]
    pub fn stretch(&self, unit: u32, most: u32) -> (u32, u32) {
        let index = unit as usize % CHUNK;
        let most = most.min((CHUNK - index) as u32);
        let Some(chunk) = self.chunk(unit) else {
            let physical = self.untouched(unit);
            return (physical, if physical == NONE { most } else { most.min(self.filled - unit) });
        };
        let physical = chunk[index];
        let follows = |(offset, &next): (usize, &u32)| match physical {
            NONE => next == NONE,
            _ => next == physical + offset as u32,
        };
        let units = chunk[index..index + most as usize].iter().enumerate().position(|each| !follows(each));
        (physical, units.map_or(most, |units| units as u32))
    }

    #[inline]
    fn untouched(&self, unit: u32) -> u32 {
        if unit < self.filled { unit } else { NONE }
    }

    /// `units` of one chunk are now at `physical` and after it.
    #[inline]
    fn set(&mut self, units: Range<u32>, physical: u32) {
        let first = units.start as usize % CHUNK;
        self.place(units.start as usize / CHUNK, first..first + units.len(), |places| {
            count_up(places, physical)
        });
    }

    /// The unit is no longer mapped.
    fn unset(&mut self, unit: u32) {
        let place = unit as usize % CHUNK;
        self.place(unit as usize / CHUNK, place..place + 1, |places| places.fill(NONE));
    }

    /// Gives these units of a chunk other places. The chunk is created if necessary.
    #[inline]
    fn place(&mut self, number: usize, units: Range<usize>, set: impl FnOnce(&mut [u32])) {
        let chunk = match &mut self.chunks[number] {
            Some(chunk) => chunk,
            none => {
                self.exists[number / 64] |= 1 << (number % 64);
                none.insert(new_chunk(number, self.filled))
            }
        };
        let places = &mut chunk[units];
        if places.iter().any(|&before| before != NONE) {
            let books = Books {
                valid: &mut self.valid,
                valid_units: &mut self.valid_units,
                units_per_superblock: self.units_per_superblock,
                superblock: 0,
                range: 0..0,
            };
            books.leave(places);
        }
        set(places);
    }

    /// The logical unit last written to a physical one, valid or not.
    fn owner(&self, physical: u32) -> u32 {
        let superblock = (physical / self.units_per_superblock) as usize;
        match &self.owners[superblock] {
            Some(owners) => owners[(physical % self.units_per_superblock) as usize],
            None => self.untouched(physical),
        }
    }

    /// The place of the stream's next unit; `None` if it has no superblock.
    pub fn next(&self, stream: Stream) -> Option<u32> {
        self.frontiers[stream as usize].map(|frontier| frontier.next)
    }

    /// Appends a logical unit and those after it, at most `most`, contiguously; returns the place of the
    /// first and their number, at least one. `None` when the stream has no superblock: call
    /// [`Mapping::open`].
    #[inline]
    pub fn append(&mut self, stream: Stream, unit: u32, most: u32) -> Option<(u32, u32)> {
        let frontier = self.frontiers[stream as usize].as_mut()?;
        let physical = frontier.next;
        let units = most.min(frontier.end - physical).min((CHUNK - unit as usize % CHUNK) as u32);
        let superblock = (frontier.end / self.units_per_superblock - 1) as usize;
        let first = (physical - (frontier.end - self.units_per_superblock)) as usize;
        frontier.next += units;
        self.set(unit..unit + units, physical);
        self.valid[superblock] += units;
        self.valid_units += u64::from(units);
        if let Some(owners) = &mut self.owners[superblock] {
            count_up(&mut owners[first..first + units as usize], unit);
        }
        self.close_if_full(stream);
        match stream {
            Stream::Host => self.host_units += u64::from(units),
            Stream::Collector => self.moved_units += u64::from(units),
        }
        Some((physical, units))
    }

    /// Leaves the stream's units up to the next multiple of `units` empty.
    pub fn pad(&mut self, stream: Stream, units: u32) {
        if let Some(frontier) = self.frontiers[stream as usize].as_mut() {
            frontier.next = frontier.next.next_multiple_of(units);
            self.close_if_full(stream);
        }
    }

    fn close_if_full(&mut self, stream: Stream) {
        if let Some(frontier) = self.frontiers[stream as usize].filter(|f| f.next == f.end) {
            self.closed[(frontier.end / self.units_per_superblock - 1) as usize] = true;
            self.frontiers[stream as usize] = None;
        }
    }

    /// Gives the stream an empty superblock.
    pub fn open(&mut self, stream: Stream) {
        let superblock = self.free.pop().expect("garbage collection keeps superblocks in reserve");
        let owners = vec![NONE; self.units_per_superblock as usize];
        self.owners[superblock as usize] = Some(owners.into_boxed_slice());
        let first = superblock * self.units_per_superblock;
        self.frontiers[stream as usize] =
            Some(Frontier { next: first, end: first + self.units_per_superblock });
    }

    /// True when every unit that the host writes must first free one.
    pub fn is_short(&self) -> bool {
        self.free.len() < RESERVE
    }

    /// Processes one more unit of the victim.
    pub fn collect(&mut self) -> Step {
        let Some(victim) = self.victim.as_mut() else {
            let candidates = (0..self.valid.len()).filter(|sb| self.closed[*sb]);
            let superblock = candidates.min_by_key(|sb| self.valid[*sb]).expect("some superblock is full");
            self.closed[superblock] = false;
            let first = superblock as u32 * self.units_per_superblock;
            self.victim = Some(Frontier { next: first, end: first + self.units_per_superblock });
            return self.collect();
        };
        if victim.next == victim.end {
            let superblock = victim.end / self.units_per_superblock - 1;
            self.victim = None;
            self.owners[superblock as usize] = Some(Box::default());
            self.free.insert(0, superblock);
            return Step::Erased;
        }
        let physical = victim.next;
        victim.next += 1;
        let unit = self.owner(physical);
        if unit != NONE && self.lookup(unit) == physical {
            Step::Move { unit, from: physical }
        } else {
            Step::Passed
        }
    }

    /// The data of a logical unit are discarded.
    pub fn discard(&mut self, unit: u32) {
        if self.lookup(unit) != NONE {
            self.unset(unit);
        }
    }

    /// Share of the logical units that hold data, in 1/1024.
    pub fn fill(&self) -> u64 {
        self.valid_units * 1024 / u64::from(self.logical_units)
    }

    #[cfg(test)]
    pub fn check(&self) {
        let mut counted = vec![0; self.valid.len()];
        let mut taken = std::collections::HashSet::new();
        for unit in 0..self.logical_units {
            let physical = self.lookup(unit);
            if physical != NONE {
                assert!(taken.insert(physical), "two units at {physical}");
                assert_eq!(self.owner(physical), unit, "owner of {physical}");
                counted[(physical / self.units_per_superblock) as usize] += 1;
            }
        }
        assert_eq!(counted, self.valid, "valid counts");
        assert_eq!(taken.len() as u64, self.valid_units);
        for superblock in &self.free {
            assert_eq!(counted[*superblock as usize], 0, "data in a free superblock");
        }
    }
}
