//! The figures of a recording, in one pass and bounded memory.
//!
//! Quantiles have three digits (hdrhistogram). Times between steps are those of btt (blktrace): Q2Q
//! between arrivals, Q2I to the scheduler, I2D in it, D2C at the disk, Q2C in all.

mod areas;
mod owner;
mod spread;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};

use blklab_base::recorded::{Flags, Io, NameId, Op, Tables};
use blklab_base::units::{Nanos, SECTOR_BYTES};

pub use self::areas::AREA_SECTORS;
use self::areas::{Areas, Row};
pub use self::owner::{Owner, Pauses};
pub use self::spread::{Figures, Spread};

/// I/Os that are followed for the depth: of more the depth is a lower bound.
const DEPTH_MAX: usize = 1 << 16;

/// Sizes, and processes, that are counted apart; the rest is one row.
const ROWS_MAX: usize = 1 << 16;

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

/// A device.
#[derive(Clone, Debug, Default)]
struct Device {
    count: u64,
    /// Where its last I/O ended.
    end: Option<u64>,
}

/// Processes, or cgroups.
#[derive(Clone, Debug)]
struct Table<K> {
    owners: Vec<(K, Owner)>,
    rows: HashMap<K, usize>,
    /// The row of the last one: the next is often the same.
    last: usize,
}

impl<K> Default for Table<K> {
    fn default() -> Table<K> {
        Table { owners: Vec::new(), rows: HashMap::new(), last: 0 }
    }
}

impl<K: Copy + Eq + std::hash::Hash> Table<K> {
    /// The row of an owner; all beyond the most share that of `rest`.
    #[inline]
    fn row(&mut self, key: K, rest: K) -> usize {
        if self.owners.get(self.last).is_none_or(|(last, _)| *last != key) {
            self.last = self.found(key, rest);
        }
        self.last
    }

    fn found(&mut self, key: K, rest: K) -> usize {
        if let Some(row) = self.rows.get(&key) {
            return *row;
        }
        if self.owners.len() >= ROWS_MAX && key != rest {
            return self.found(rest, rest);
        }
        self.owners.push((key, Owner::default()));
        self.rows.insert(key, self.owners.len() - 1);
        self.owners.len() - 1
    }
}

/// The number of a process in [`Areas`].
fn of_process(row: usize) -> Row {
    row as Row
}

/// The number of a cgroup there: after all processes, which are one more than [`ROWS_MAX`] at most.
fn of_cgroup(row: usize) -> Row {
    (ROWS_MAX + 1 + row) as Row
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
    /// Areas with I/O, once it is [finished](Summary::finish).
    pub areas: u64,
    /// I/Os that were not complete at an arrival, with it.
    pub depth: Spread,
    /// By the number of its name.
    devices: Vec<Device>,
    processes: Table<(u32, NameId)>,
    /// By number; I/Os of a cgroup that is not known have number 0, and their areas are not counted.
    cgroups: Table<u64>,
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
        self.owners(io, bytes);
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
        let number = io.device.0 as usize;
        if number >= self.devices.len() {
            self.devices.resize_with(number + 1, Device::default);
        }
        let device = &mut self.devices[number];
        device.count += 1;
        if io.sectors == 0 {
            return;
        }
        self.end_sector = self.end_sector.max(io.end().0);
        if let Some(before) = device.end.replace(io.end().0) {
            let distance = io.sector.0.abs_diff(before);
            if distance == 0 {
                self.sequential += 1;
            } else {
                self.seeks.add(distance);
            }
        }
    }

    fn owners(&mut self, io: &Io, bytes: u64) {
        let process = self.processes.row((io.pid, io.process), (0, NameId::NONE));
        if let Some(pause) = self.processes.owners[process].1.take(io, bytes) {
            self.think.add(pause);
        }
        let cgroup = self.cgroups.row(io.cgroup, 0);
        self.cgroups.owners[cgroup].1.take(io, bytes);
        if io.sectors > 0 {
            let is_known = io.cgroup != 0;
            self.by_owner.take(io, [Some(of_process(process)), is_known.then_some(of_cgroup(cgroup))]);
        }
    }

    /// All I/Os were taken: counts the working sets.
    #[must_use]
    pub fn finish(mut self) -> Summary {
        self.by_owner.settle();
        self.areas = self.by_owner.total();
        for (number, (_, owner)) in self.processes.owners.iter_mut().enumerate() {
            owner.areas = self.by_owner.of(of_process(number));
        }
        for (number, (_, owner)) in self.cgroups.owners.iter_mut().enumerate() {
            owner.areas = self.by_owner.of(of_cgroup(number));
        }
        self
    }

    /// The devices and their numbers of I/Os.
    pub fn devices(&self) -> impl Iterator<Item = (NameId, u64)> {
        let rows = (0..).zip(&self.devices).filter(|(_, device)| device.count > 0);
        rows.map(|(number, device)| (NameId(number), device.count))
    }

    /// The processes, the one with the most I/Os first.
    pub fn by_count(&self, tables: &Tables) -> Vec<(u32, String, &Owner)> {
        let mut rows: Vec<_> = self
            .processes
            .owners
            .iter()
            .map(|((pid, name), process)| (*pid, tables.processes.name(*name).to_owned(), process))
            .collect();
        rows.sort_by(|a, b| (Reverse(a.2.count), a.0, &a.1).cmp(&(Reverse(b.2.count), b.0, &b.1)));
        rows
    }

    /// The cgroups by number, the one with the most I/Os first; empty if none is known.
    pub fn cgroups_by_count(&self) -> Vec<(u64, &Owner)> {
        let mut rows: Vec<_> = self.cgroups.owners.iter().map(|(number, owner)| (*number, owner)).collect();
        if rows.iter().all(|(number, _)| *number == 0) {
            return Vec::new();
        }
        rows.sort_by_key(|(number, owner)| (Reverse(owner.count), *number));
        rows
    }

    /// Whether there were too many areas to count all of each process and cgroup.
    pub fn areas_are_incomplete(&self) -> bool {
        self.by_owner.are_incomplete()
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
        let summary = summary.finish();
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
        let summary = summary.finish();
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
        assert!(none.finish().cgroups_by_count().is_empty());
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
            let summary = summary.finish();
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
