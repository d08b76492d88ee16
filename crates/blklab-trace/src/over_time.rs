//! A recording over time, for pictures: rates, depth, places and latencies in steps of time.
//!
//! One pass and bounded memory: when a time, or a place, is beyond the last step, pairs of steps become
//! one, twice as long.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use blklab_base::recorded::{Io, Op};
use blklab_base::units::{Nanos, SECTOR_BYTES};

/// Steps of time, at most.
pub const STEPS: usize = 512;
/// Steps of places, at most.
pub const PLACES: usize = 128;
/// Steps of latency: four for each doubling, from [`LATENCY_MIN`] on; both ends hold what is beyond.
pub const LATENCIES: usize = 4 * 26;
/// The least latency that is told apart.
pub const LATENCY_MIN: Nanos = Nanos(1 << 10);
/// I/Os that are followed for the depth: of more the depth is a lower bound.
const DEPTH_MAX: usize = 1 << 16;
/// The first steps of time.
const STEP: Nanos = Nanos(1_000);
/// The first steps of places, in sectors.
const PLACE_SECTORS: u64 = 8;

/// One step of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Step {
    /// I/Os that were queued in it: reads, writes, others.
    pub ios: [u64; 3],
    /// Their bytes.
    pub bytes: [u64; 3],
    /// The time for which I/Os were under way, added up over all: divided by the step it is the mean depth.
    pub under_way_ns: u64,
}

impl Step {
    fn joined(self, other: Step) -> Step {
        let add = |a: [u64; 3], b: [u64; 3]| std::array::from_fn(|index| a[index] + b[index]);
        Step {
            ios: add(self.ios, other.ios),
            bytes: add(self.bytes, other.bytes),
            under_way_ns: self.under_way_ns.saturating_add(other.under_way_ns),
        }
    }
}

/// Counts by time and something else, for reads, writes and others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Grid {
    rows: usize,
    /// Those of step `s` and row `r` are at `s * rows + r`.
    counts: Vec<[u32; 3]>,
}

impl Grid {
    fn new(rows: usize) -> Grid {
        Grid { rows, counts: vec![[0; 3]; rows * STEPS] }
    }

    fn add(&mut self, step: usize, row: usize, kind: usize) {
        let count = &mut self.counts[step * self.rows + row][kind];
        *count = count.saturating_add(1);
    }

    fn join_steps(&mut self) {
        let rows = self.rows;
        for step in 0..STEPS {
            for row in 0..rows {
                let at = |step: usize| step * rows + row;
                let joined = match step < STEPS / 2 {
                    true => sum(self.counts[at(2 * step)], self.counts[at(2 * step + 1)]),
                    false => [0; 3],
                };
                self.counts[at(step)] = joined;
            }
        }
    }

    fn join_rows(&mut self) {
        for step in 0..STEPS {
            for row in 0..self.rows {
                let at = |row: usize| step * self.rows + row;
                let joined = match row < self.rows / 2 {
                    true => sum(self.counts[at(2 * row)], self.counts[at(2 * row + 1)]),
                    false => [0; 3],
                };
                self.counts[at(row)] = joined;
            }
        }
    }
}

fn sum(a: [u32; 3], b: [u32; 3]) -> [u32; 3] {
    std::array::from_fn(|kind| a[kind].saturating_add(b[kind]))
}

/// A recording over time.
#[derive(Clone, Debug)]
pub struct OverTime {
    step: Nanos,
    place_sectors: u64,
    steps: Vec<Step>,
    places: Grid,
    latencies: Grid,
    /// Ends of I/Os that are under way, and since when that is counted.
    under_way: BinaryHeap<Reverse<u64>>,
    counted: u64,
    last: usize,
}

impl Default for OverTime {
    fn default() -> OverTime {
        OverTime {
            step: STEP,
            place_sectors: PLACE_SECTORS,
            steps: vec![Step::default(); STEPS],
            places: Grid::new(PLACES),
            latencies: Grid::new(LATENCIES),
            under_way: BinaryHeap::new(),
            counted: 0,
            last: 0,
        }
    }
}

impl OverTime {
    /// Takes the next I/O.
    pub fn take(&mut self, io: &Io) {
        let kind = match io.op {
            Op::Read => 0,
            Op::Write => 1,
            _ => 2,
        };
        self.count_until(io.queued.0);
        let step = self.step_of(io.queued.0);
        self.steps[step].ios[kind] += 1;
        self.steps[step].bytes[kind] += u64::from(io.sectors) * SECTOR_BYTES;
        if io.sectors > 0 {
            while io.sector.0 / self.place_sectors >= PLACES as u64 {
                self.place_sectors *= 2;
                self.places.join_rows();
            }
            let row = (io.sector.0 / self.place_sectors) as usize;
            self.places.add(step, row, kind);
        }
        if let Some(completed) = io.completed {
            let took = completed.saturating_sub(io.queued);
            self.latencies.add(step, latency_row(took), kind);
            if self.under_way.len() < DEPTH_MAX {
                self.under_way.push(Reverse(completed.0));
            }
        }
    }

    /// The step of a time; all become longer until it has one.
    fn step_of(&mut self, time: u64) -> usize {
        while time / self.step.0 >= STEPS as u64 {
            self.step = Nanos(self.step.0.saturating_mul(2));
            self.last /= 2;
            for step in 0..STEPS {
                self.steps[step] = match step < STEPS / 2 {
                    true => self.steps[2 * step].joined(self.steps[2 * step + 1]),
                    false => Step::default(),
                };
            }
            self.places.join_steps();
            self.latencies.join_steps();
        }
        let step = (time / self.step.0) as usize;
        self.last = self.last.max(step);
        step
    }

    /// Counts the I/Os under way up to this time.
    fn count_until(&mut self, until: u64) {
        while let Some(&Reverse(end)) = self.under_way.peek()
            && end <= until
        {
            self.spread(end);
            self.under_way.pop();
        }
        self.spread(until);
    }

    /// From where it is counted to this time nothing begins or ends.
    fn spread(&mut self, until: u64) {
        let depth = self.under_way.len() as u64;
        if depth > 0 && until > self.counted {
            let last = self.step_of(until - 1);
            let mut from = self.counted;
            for step in (from / self.step.0) as usize..=last {
                let end = until.min((step as u64 + 1).saturating_mul(self.step.0));
                let count = &mut self.steps[step].under_way_ns;
                *count = count.saturating_add(depth.saturating_mul(end - from));
                from = end;
            }
        }
        self.counted = self.counted.max(until);
    }

    /// The end: all that was under way is counted.
    pub fn finish(mut self) -> OverTime {
        self.count_until(u64::MAX);
        self
    }

    /// The length of a step.
    pub fn step(&self) -> Nanos {
        self.step
    }

    /// The steps, up to the last one in which something happens.
    pub fn steps(&self) -> &[Step] {
        &self.steps[..=self.last]
    }

    /// The size of a step of places, in sectors.
    pub fn place_sectors(&self) -> u64 {
        self.place_sectors
    }

    /// I/Os by step, each with [`PLACES`] rows from the disk's start: reads, writes, others.
    pub fn places(&self) -> &[[u32; 3]] {
        &self.places.counts[..(self.last + 1) * PLACES]
    }

    /// Completed I/Os by step, each with [`LATENCIES`] rows: reads, writes, others.
    pub fn latencies(&self) -> &[[u32; 3]] {
        &self.latencies.counts[..(self.last + 1) * LATENCIES]
    }
}

/// The row of a latency.
fn latency_row(took: Nanos) -> usize {
    let doublings = (took.0.max(LATENCY_MIN.0) as f64 / LATENCY_MIN.0 as f64).log2();
    ((4.0 * doublings) as usize).min(LATENCIES - 1)
}

#[cfg(test)]
mod tests {
    use blklab_base::units::Sector;
    use proptest::prelude::*;

    use super::*;

    fn io(queued: u64, took: u64, sector: u64, op: Op) -> Io {
        Io {
            queued: Nanos(queued),
            completed: Some(Nanos(queued + took)),
            sector: Sector(sector),
            sectors: 8,
            op,
            ..Io::default()
        }
    }

    fn over(ios: &[Io]) -> OverTime {
        let mut over = OverTime::default();
        ios.iter().for_each(|io| over.take(io));
        over.finish()
    }

    #[test]
    fn rates_and_depth_are_in_the_steps_in_which_they_happen() {
        let found =
            over(&[io(0, 1500, 0, Op::Read), io(500, 2500, 8, Op::Write), io(2000, 10, 16, Op::Flush)]);
        assert_eq!(found.step(), Nanos(1000));
        let [first, second, third] = found.steps() else { panic!("{:?}", found.steps()) };
        assert_eq!((first.ios, first.bytes), ([1, 1, 0], [4096, 4096, 0]));
        assert_eq!((second.ios, third.ios), ([0; 3], [0, 0, 1]));
        assert_eq!([first, second, third].map(|step| step.under_way_ns), [1500, 1500, 1010]);
    }

    #[test]
    fn latencies_have_four_rows_for_each_doubling() {
        let row = |ns| latency_row(Nanos(ns));
        assert_eq!([row(0), row(1024), row(1217), row(1218), row(2048), row(4096)], [0, 0, 0, 1, 4, 8]);
        assert_eq!(row(u64::MAX), LATENCIES - 1);
    }

    #[test]
    fn the_last_step_is_the_last_with_an_io() {
        let found = over(&[io(0, 1, 0, Op::Read), io(511_000, 1, 0, Op::Read), io(600_000, 1, 0, Op::Read)]);
        assert_eq!((found.step(), found.steps().len()), (Nanos(2000), 301));
    }

    #[test]
    fn time_without_bounds_ends() {
        let found = over(&[io(0, 1, u64::MAX / 1024, Op::Read), io(u64::MAX / 4, u64::MAX / 4, 0, Op::Read)]);
        assert_eq!(found.steps().iter().map(|step| step.ios[0]).sum::<u64>(), 2);
    }

    proptest! {
        #[test]
        fn nothing_is_lost_when_steps_become_longer(
            rows in prop::collection::vec((0u64..1 << 34, 0u64..1 << 32, 0u64..1 << 34, 0usize..3), 1..60)
        ) {
            let mut ios: Vec<_> = rows
                .iter()
                .map(|&(queued, took, sector, op)| io(queued, took, sector, [Op::Read, Op::Write, Op::Flush][op]))
                .collect();
            ios.sort_by_key(|io| io.queued);
            let found = over(&ios);
            let steps = found.steps();
            let all = |count: &dyn Fn(&Step) -> u64| steps.iter().map(count).sum::<u64>();
            prop_assert_eq!(all(&|step| step.ios.iter().sum()), ios.len() as u64);
            let took: u64 = ios.iter().map(|io| io.completed.unwrap_or(io.queued).0 - io.queued.0).sum();
            prop_assert_eq!(all(&|step| step.under_way_ns), took);
            for grid in [found.places(), found.latencies()] {
                let sum: u64 = grid.iter().flatten().map(|count| u64::from(*count)).sum();
                prop_assert_eq!(sum, ios.len() as u64);
            }
            for io in &ios {
                let step = (io.queued.0 / found.step().0) as usize;
                let row = (io.sector.0 / found.place_sectors()) as usize;
                prop_assert!(found.places()[step * PLACES + row].iter().sum::<u32>() > 0);
            }
        }
    }
}
