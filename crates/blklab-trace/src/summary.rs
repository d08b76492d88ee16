//! The figures of a recording, in one pass and bounded memory.
//!
//! Quantiles have three digits (hdrhistogram). Times between steps are those of btt (blktrace): Q2Q
//! between arrivals, Q2I to the scheduler, I2D in it, D2C at the disk, Q2C in all.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};
use std::hash::{BuildHasherDefault, Hasher};

use blklab_base::recorded::{Flags, Io, NameId, Op, Tables};
use blklab_base::units::{Nanos, SECTOR_BYTES};
use hdrhistogram::Histogram;

/// I/Os that are followed for the depth: of more the depth is a lower bound.
const DEPTH_MAX: usize = 1 << 16;

/// Sizes, and processes, that are counted apart; the rest is one row.
const ROWS_MAX: usize = 1 << 16;

/// The size of the areas in which the working set is counted, in sectors: 1 MiB.
pub const AREA_SECTORS: u64 = 2048;

/// Areas of a device that are counted: 16 TiB, for 2 MiB of memory. I/O beyond is left out.
const AREAS_MAX: u64 = 1 << 24;

/// The working set is counted for at most so many devices.
const DEVICES_MAX: usize = 1 << 6;

/// Quantiles of one kind of value.
#[derive(Clone, Debug)]
pub struct Spread {
    values: Histogram<u64>,
    min: u64,
    max: u64,
    sum: u128,
}

/// The figures of a [`Spread`].
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Figures {
    /// How many values.
    pub count: u64,
    /// The least.
    pub min: u64,
    /// The mean.
    pub mean: f64,
    /// The middle.
    pub p50: u64,
    /// 90 %.
    pub p90: u64,
    /// 99 %.
    pub p99: u64,
    /// 99.9 %.
    pub p999: u64,
    /// The greatest.
    pub max: u64,
}

impl Default for Spread {
    fn default() -> Spread {
        let mut values = Histogram::new(3).expect("three digits");
        values.auto(true);
        Spread { values, min: u64::MAX, max: 0, sum: 0 }
    }
}

impl Spread {
    fn add(&mut self, value: u64) {
        // It grows; a value that does not fit is the greatest.
        if self.values.record(value).is_err() {
            self.values.saturating_record(value);
        }
        (self.min, self.max) = (self.min.min(value), self.max.max(value));
        self.sum += u128::from(value);
    }

    /// Its figures.
    pub fn figures(&self) -> Figures {
        let count = self.values.len();
        if count == 0 {
            return Figures::default();
        }
        // A bucket has its upper bound.
        let at = |quantile| self.values.value_at_quantile(quantile).min(self.max);
        Figures {
            count,
            min: self.min,
            mean: self.sum as f64 / count as f64,
            p50: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
            p999: at(0.999),
            max: self.max,
        }
    }
}

/// I/Os of one operation.
#[derive(Clone, Debug, Default)]
pub struct Operation {
    /// How many.
    pub count: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Synchronous ones.
    pub sync: u64,
    /// Read-ahead.
    pub read_ahead: u64,
    /// Metadata.
    pub meta: u64,
    /// With FUA.
    pub fua: u64,
    /// With a preflush.
    pub preflush: u64,
    /// Lengths in bytes.
    pub sizes: Spread,
    /// How many of each length in bytes.
    pub by_size: BTreeMap<u64, u64>,
    /// From queue to completion, ns.
    pub q2c: Spread,
}

/// I/Os of one process, or of one cgroup.
#[derive(Clone, Debug, Default)]
pub struct Owner {
    /// How many.
    pub count: u64,
    /// Bytes that it read.
    pub read_bytes: u64,
    /// Bytes that it wrote.
    pub written_bytes: u64,
    /// I/Os that begin where its one before ended.
    pub sequential: u64,
    /// Areas with its I/O.
    pub areas: u64,
    /// Its pauses: from the end of all of its I/O to its next arrival.
    pub think: Pauses,
    /// The sum of times from queue to completion, and of how many I/Os.
    q2c_ns: u128,
    completed: u64,
    /// Where its last I/O ended.
    end: Option<u64>,
    /// When the last of its I/Os completes.
    busy_until: Option<u64>,
    /// Its number in [`Areas`].
    row: u32,
}

impl Owner {
    fn new(row: u32) -> Owner {
        Owner { row, ..Owner::default() }
    }

    /// Takes its next I/O; the pause before it, ns.
    fn take(&mut self, io: &Io, bytes: u64, areas: Option<&mut Areas>) -> Option<u64> {
        self.count += 1;
        let pause = self.busy_until.filter(|before| io.queued.0 > *before).map(|before| io.queued.0 - before);
        if let Some(pause) = pause {
            self.think.add(pause);
        }
        self.busy_until = self.busy_until.max(io.completed.map(|completed| completed.0));
        match io.op {
            Op::Read => self.read_bytes += bytes,
            Op::Write | Op::WriteZeroes => self.written_bytes += bytes,
            _ => {}
        }
        if io.sectors > 0 {
            self.sequential += u64::from(self.end == Some(io.sector.0));
            self.end = Some(io.end().0);
            if let Some(areas) = areas {
                self.areas += areas.take(self.row, io);
            }
        }
        if let Some(completed) = io.completed {
            self.q2c_ns += u128::from(completed.saturating_sub(io.queued).0);
            self.completed += 1;
        }
        pause
    }

    /// The mean time from queue to completion, ns; None if no I/O completes.
    pub fn mean_q2c_ns(&self) -> Option<f64> {
        (self.completed > 0).then(|| self.q2c_ns as f64 / self.completed as f64)
    }
}

/// Rows of pauses: four for each doubling from 1 us on.
const PAUSES: usize = 4 * 34;
/// The least pause that is told apart, ns.
const PAUSE_MIN: u64 = 1 << 10;

/// The pauses of one process: their median is true to a tenth, in half a kilobyte.
#[derive(Clone, Debug, Default)]
pub struct Pauses {
    /// How many.
    pub count: u64,
    sum: u128,
    max: u64,
    rows: Option<Box<[u32; PAUSES]>>,
}

impl Pauses {
    fn add(&mut self, ns: u64) {
        self.count += 1;
        self.sum += u128::from(ns);
        self.max = self.max.max(ns);
        let doublings = (ns.max(PAUSE_MIN) as f64 / PAUSE_MIN as f64).log2();
        let row = ((4.0 * doublings) as usize).min(PAUSES - 1);
        let count = &mut self.rows.get_or_insert_with(|| Box::new([0; PAUSES]))[row];
        *count = count.saturating_add(1);
    }

    /// Their mean, ns; None without a pause.
    pub fn mean_ns(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum as f64 / self.count as f64)
    }

    /// The middle of the row with their median, ns; None without a pause.
    pub fn median_ns(&self) -> Option<f64> {
        let mut before = 0;
        let row = self.rows.as_ref()?.iter().position(|count| {
            before += u64::from(*count);
            2 * before >= self.count
        })?;
        let middle = PAUSE_MIN as f64 * 2_f64.powf((row as f64 + 0.5) / 4.0);
        Some(middle.min(self.max as f64))
    }
}

/// Areas of many owners, 64 to a word. When there are [`WORDS_MAX`], new ones are not counted.
#[derive(Clone, Debug, Default)]
struct Areas {
    words: HashMap<u64, u64, BuildHasherDefault<Mixed>>,
    devices: Vec<NameId>,
    is_full: bool,
}

/// Words of areas of all processes and cgroups: some 40 MB.
const WORDS_MAX: usize = 1 << 21;

impl Areas {
    /// The number of areas that are new for this owner.
    fn take(&mut self, row: u32, io: &Io) -> u64 {
        let device = match self.devices.iter().position(|known| *known == io.device) {
            Some(device) => device,
            None if self.devices.len() < DEVICES_MAX => {
                self.devices.push(io.device);
                self.devices.len() - 1
            }
            None => return 0,
        };
        let (first, last) = (io.sector.0 / AREA_SECTORS, (io.end().0 - 1) / AREA_SECTORS);
        let (mut new, mut area) = (0, first);
        while area <= last.min(AREAS_MAX - 1) {
            // A word has 64 areas: a row has 17 bits, a device 6, a word 18.
            let key = u64::from(row) << 24 | (device as u64) << 18 | (area / 64);
            let until = last.min(area | 63);
            let mask = (u64::MAX >> (63 - (until - area))) << (area % 64);
            if self.words.len() >= WORDS_MAX && !self.words.contains_key(&key) {
                self.is_full = true;
                return new;
            }
            let word = self.words.entry(key).or_default();
            new += u64::from((mask & !*word).count_ones());
            *word |= mask;
            area = until + 1;
        }
        new
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

/// The figures.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// How many I/Os.
    pub count: u64,
    /// The last arrival.
    pub last: Nanos,
    /// The last completion.
    pub end: Nanos,
    /// By operation, in the order of [`Op::ALL`].
    pub operations: [Operation; Op::ALL.len()],
    /// I/Os that begin where the one before on the same device ended.
    pub sequential: u64,
    /// From the end of one I/O to the start of the next of its device, either way, in sectors; without
    /// flushes and sequential I/Os.
    pub seeks: Spread,
    /// Between arrivals, ns.
    pub q2q: Spread,
    /// From queue to insert, ns.
    pub q2i: Spread,
    /// From insert, or queue, to issue, ns.
    pub i2d: Spread,
    /// From issue to completion, ns.
    pub d2c: Spread,
    /// From queue to completion, ns.
    pub q2c: Spread,
    /// From the end of all I/O of a process to its next arrival, ns.
    pub think: Spread,
    /// Areas with I/O.
    pub areas: u64,
    /// The same by device, a bit for each.
    bits: HashMap<NameId, Vec<u64>>,
    /// I/Os that were not complete at an arrival, with it.
    pub depth: Spread,
    /// Devices: I/Os, end of the last one.
    pub devices: BTreeMap<NameId, u64>,
    ends: HashMap<NameId, u64>,
    /// By process: number and name.
    pub processes: HashMap<(u32, NameId), Owner>,
    /// By cgroup, by its number; I/Os of a cgroup that is not known have number 0, and their areas are not
    /// counted.
    cgroups: Vec<(u64, Owner)>,
    cgroup_rows: HashMap<u64, usize>,
    /// The row of the last cgroup.
    cgroup_last: usize,
    by_owner: Areas,
    /// The highest sector, the one after it.
    pub end_sector: u64,
    /// Events that were lost.
    pub lost: u64,
    under_way: BinaryHeap<Reverse<u64>>,
    before: Option<Nanos>,
}

impl Summary {
    /// Takes the next I/O.
    pub fn take(&mut self, io: &Io) {
        self.count += 1;
        self.lost += u64::from(io.lost);
        if let Some(before) = self.before {
            self.q2q.add(io.queued.saturating_sub(before).0);
        }
        self.before = Some(io.queued);
        self.last = self.last.max(io.queued);
        self.end = self.end.max(io.completed.unwrap_or(io.queued));
        let bytes = u64::from(io.sectors) * SECTOR_BYTES;
        let operation = &mut self.operations[io.op as usize];
        operation.count += 1;
        operation.bytes += bytes;
        for (flag, count) in [
            (Flags::SYNC, &mut operation.sync),
            (Flags::READ_AHEAD, &mut operation.read_ahead),
            (Flags::META, &mut operation.meta),
            (Flags::FUA, &mut operation.fua),
            (Flags::PREFLUSH, &mut operation.preflush),
        ] {
            *count += u64::from(io.flags.has(flag));
        }
        if io.sectors > 0 {
            operation.sizes.add(bytes);
            if operation.by_size.len() < ROWS_MAX || operation.by_size.contains_key(&bytes) {
                *operation.by_size.entry(bytes).or_default() += 1;
            }
        }
        self.times(io);
        self.place(io);
        self.process(io, bytes);
        *self.devices.entry(io.device).or_default() += 1;
    }

    fn times(&mut self, io: &Io) {
        if let Some(inserted) = io.inserted {
            self.q2i.add(inserted.saturating_sub(io.queued).0);
        }
        if let Some(issued) = io.issued {
            self.i2d.add(issued.saturating_sub(io.inserted.unwrap_or(io.queued)).0);
            if let Some(completed) = io.completed {
                self.d2c.add(completed.saturating_sub(issued).0);
            }
        }
        if let Some(completed) = io.completed {
            let span = completed.saturating_sub(io.queued).0;
            self.q2c.add(span);
            self.operations[io.op as usize].q2c.add(span);
            while self.under_way.peek().is_some_and(|first| first.0 <= io.queued.0) {
                self.under_way.pop();
            }
            if self.under_way.len() < DEPTH_MAX {
                self.under_way.push(Reverse(completed.0));
            }
            self.depth.add(self.under_way.len() as u64);
        }
    }

    fn place(&mut self, io: &Io) {
        if io.sectors == 0 {
            return;
        }
        self.end_sector = self.end_sector.max(io.end().0);
        self.areas(io);
        if let Some(before) = self.ends.insert(io.device, io.end().0) {
            let distance = io.sector.0.abs_diff(before);
            if distance == 0 {
                self.sequential += 1;
            } else {
                self.seeks.add(distance);
            }
        }
    }

    fn areas(&mut self, io: &Io) {
        if self.bits.len() >= DEVICES_MAX && !self.bits.contains_key(&io.device) {
            return;
        }
        let bits = self.bits.entry(io.device).or_default();
        let (first, last) = (io.sector.0 / AREA_SECTORS, (io.end().0 - 1) / AREA_SECTORS);
        for area in first..=last.min(AREAS_MAX - 1) {
            let (word, bit) = ((area / 64) as usize, 1 << (area % 64));
            if word >= bits.len() {
                bits.resize(word + 1, 0);
            }
            self.areas += u64::from(bits[word] & bit == 0);
            bits[word] |= bit;
        }
    }

    fn process(&mut self, io: &Io, bytes: u64) {
        let mut key = (io.pid, io.process);
        if self.processes.len() >= ROWS_MAX && !self.processes.contains_key(&key) {
            key = (0, NameId::NONE);
        }
        let row = self.processes.len() as u32;
        let process = self.processes.entry(key).or_insert_with(|| Owner::new(row));
        if let Some(pause) = process.take(io, bytes, Some(&mut self.by_owner)) {
            self.think.add(pause);
        }
        let last = self.cgroups.get(self.cgroup_last);
        if last.is_none_or(|(number, _)| *number != io.cgroup) {
            self.cgroup_last = self.cgroup_row(io.cgroup);
        }
        let is_known = io.cgroup != 0;
        let (_, cgroup) = &mut self.cgroups[self.cgroup_last];
        cgroup.take(io, bytes, is_known.then_some(&mut self.by_owner));
    }

    /// The row of a cgroup; all beyond the most share that of number 0.
    fn cgroup_row(&mut self, number: u64) -> usize {
        if let Some(row) = self.cgroup_rows.get(&number) {
            return *row;
        }
        if self.cgroups.len() >= ROWS_MAX && number != 0 {
            return self.cgroup_row(0);
        }
        let row = self.cgroups.len();
        self.cgroups.push((number, Owner::new((ROWS_MAX + 1 + row) as u32)));
        self.cgroup_rows.insert(number, row);
        row
    }

    /// The processes, the one with the most I/Os first.
    pub fn by_count(&self, tables: &Tables) -> Vec<(u32, String, &Owner)> {
        let mut rows: Vec<_> = self
            .processes
            .iter()
            .map(|((pid, name), process)| (*pid, tables.processes.name(*name).to_owned(), process))
            .collect();
        rows.sort_by(|a, b| (Reverse(a.2.count), a.0, &a.1).cmp(&(Reverse(b.2.count), b.0, &b.1)));
        rows
    }

    /// The cgroups by number, the one with the most I/Os first; empty if none is known.
    pub fn cgroups_by_count(&self) -> Vec<(u64, &Owner)> {
        let mut rows: Vec<_> = self.cgroups.iter().map(|(number, owner)| (*number, owner)).collect();
        if rows.iter().all(|(number, _)| *number == 0) {
            return Vec::new();
        }
        rows.sort_by_key(|(number, owner)| (Reverse(owner.count), *number));
        rows
    }

    /// Whether there were too many areas to count all of each process and cgroup.
    pub fn areas_are_incomplete(&self) -> bool {
        self.by_owner.is_full
    }
}

#[cfg(test)]
mod tests {
    use blklab_base::units::Sector;
    use proptest::prelude::*;

    use super::*;

    fn io(at: u64, completed: u64, sector: u64, sectors: u32, pid: u32) -> Io {
        Io {
            queued: Nanos(at),
            issued: Some(Nanos(at + 10)),
            completed: Some(Nanos(completed)),
            sector: Sector(sector),
            sectors,
            pid,
            ..Io::default()
        }
    }

    #[test]
    fn figures_of_three_reads_are_those_of_their_times_and_places() {
        let mut summary = Summary::default();
        for one in
            [io(0, 2_000_000, 0, 8, 1), io(1_000_000, 3_000_000, 8, 8, 2), io(9_000_000, 9_500_000, 8, 16, 1)]
        {
            summary.take(&one);
        }
        let reads = &summary.operations[Op::Read as usize];
        assert_eq!((reads.count, reads.bytes, reads.by_size.len()), (3, 32 * 512, 2));
        assert_eq!((summary.sequential, summary.seeks.figures().max), (1, 8));
        let q2q = summary.q2q.figures();
        assert_eq!((q2q.min, q2q.max, q2q.mean), (1_000_000, 8_000_000, 4_500_000.0));
        let q2c = summary.q2c.figures();
        assert_eq!((q2c.count, q2c.min, q2c.max), (3, 500_000, 2_000_000));
        assert!(q2c.p50.abs_diff(2_000_000) <= 2000, "{}", q2c.p50);
        assert_eq!((summary.i2d.figures().max, summary.d2c.figures().max), (10, 1_999_990));
        // Process 1 pauses for 7 ms, process 2 has one I/O; both are within the first area.
        assert_eq!((summary.think.figures().count, summary.think.figures().max), (1, 7_000_000));
        assert_eq!(summary.areas, 1);
        // The second read arrives while the first is under way.
        assert_eq!((summary.depth.figures().max, summary.depth.figures().mean), (2, 4.0 / 3.0));
        let rows = summary.by_count(&Tables::default());
        let counts: Vec<_> = rows.iter().map(|row| (row.0, row.2.count, row.2.sequential)).collect();
        assert_eq!(counts, [(1, 2, 1), (2, 1, 0)]);
    }

    #[test]
    fn working_sets_and_pauses_are_those_of_each_process_and_cgroup() {
        let mut summary = Summary::default();
        let mib = AREA_SECTORS;
        let of = |cgroup, one: Io| Io { cgroup, ..one };
        for one in [
            of(7, io(0, 1_000, 0, 8, 1)),
            of(7, io(2_000, 9_000, 70 * mib - 8, 16, 2)),
            of(0, io(3_000, 4_000, 8, 8, 3)),
            // 5 ms after process 1's first is complete, in areas 0 to 3.
            of(7, io(5_001_000, 5_002_000, 0, 3 * mib as u32 + 8, 1)),
            of(9, io(10_000_000, 10_001_000, 128 * mib, 8, 2)),
        ] {
            summary.take(&one);
        }
        let rows = summary.by_count(&Tables::default());
        let found: Vec<_> = rows.iter().map(|row| (row.0, row.2.areas, row.2.think.count)).collect();
        assert_eq!(found, [(1, 4, 1), (2, 3, 1), (3, 1, 0)]);
        assert_eq!(rows[0].2.think.mean_ns(), Some(5_000_000.0));
        let median = rows[0].2.think.median_ns().expect("a pause");
        assert!((median / 5e6 - 1.0).abs() < 0.1 && median <= 5e6, "{median}");
        assert_eq!(rows[2].2.think.median_ns(), None);
        let cgroups = summary.cgroups_by_count();
        let found: Vec<_> = cgroups.iter().map(|(number, one)| (*number, one.count, one.areas)).collect();
        assert_eq!(found, [(7, 3, 6), (0, 1, 0), (9, 1, 1)]);
        assert!(!summary.areas_are_incomplete());
        let mut none = Summary::default();
        none.take(&io(0, 1, 0, 8, 1));
        assert!(none.cgroups_by_count().is_empty());
    }

    proptest! {
        #[test]
        fn areas_of_a_process_are_those_of_a_set(
            ios in prop::collection::vec((0..3_u32, 0..400 * AREA_SECTORS, 1..200_000_u32), 0..60)
        ) {
            let mut summary = Summary::default();
            let mut sets: HashMap<u32, std::collections::HashSet<u64>> = HashMap::new();
            for (at, (pid, sector, sectors)) in (0..).zip(ios) {
                let one = io(at, at + 1, sector, sectors, pid);
                let areas = sector / AREA_SECTORS..=(one.end().0 - 1) / AREA_SECTORS;
                sets.entry(pid).or_default().extend(areas);
                summary.take(&one);
            }
            for (pid, _, process) in summary.by_count(&Tables::default()) {
                prop_assert_eq!(process.areas, sets[&pid].len() as u64);
            }
        }
    }

    #[test]
    fn quantiles_have_three_digits_over_all_times() {
        let mut spread = Spread::default();
        for value in 1..=1_000_000_u64 {
            spread.add(value * 1000);
        }
        let figures = spread.figures();
        for (found, expected) in [(figures.p50, 5e8), (figures.p90, 9e8), (figures.p99, 9.9e8)] {
            assert!((found as f64 / expected - 1.0).abs() < 2e-3, "{found}, not {expected}");
        }
        spread.add(u64::MAX);
        assert_eq!(spread.figures().max, u64::MAX);
    }
}
