//! Compares a model with published figures of its disk.
//!
//! Each figure is measured on the disk directly, without a scheduler, in the same way as published figures.

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::figures::{Measure, Where};
use super::published::Role;
use super::{AnyDisk, Command, Completion, Disk, DiskModel, Op, Tag};
use blklab_base::units::{Nanos, SECTOR_BYTES, Sector};

/// One figure of the model beside the published one.
#[derive(Clone, Debug, PartialEq)]
pub struct Check {
    /// The figure's name.
    pub figure: &'static str,
    /// Whether parameters were chosen from it.
    pub role: Role,
    /// Unit of both values.
    pub unit: &'static str,
    /// The model's value.
    pub model: f64,
    /// The published value.
    pub published: f64,
    /// The allowed deviation of the model, in per cent of the published value.
    pub tolerance_percent: f64,
    /// Whether it is within.
    pub met: bool,
    /// The reason if it is not, from the disk's file.
    pub not_met: Option<String>,
    /// The source of the figure.
    pub source: String,
}

/// Measures every figure in the file of `model`.
pub fn validate(model: &DiskModel) -> Vec<Check> {
    let rows = model.published().iter();
    rows.map(|row| {
        let value = measure(model, row.figure.measure, Effort::Full);
        Check {
            figure: row.figure.name,
            role: row.role,
            unit: row.figure.unit,
            model: value,
            published: row.value,
            tolerance_percent: row.tolerance_percent,
            met: (value - row.value).abs() <= row.value * row.tolerance_percent / 100.0,
            not_met: row.not_met.clone(),
            source: row.source.clone(),
        }
    })
    .collect()
}

/// With fewer pages per block by this factor, a disk can be filled within the time of a test.
const SHRINK: u64 = 128;
const SEQUENTIAL_SECTORS: u32 = 256;
const RANDOM_SECTORS: u32 = 8;

/// How many commands a measurement has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effort {
    /// As many as a published figure needs.
    Full,
    /// On flash a quarter of that, which is enough for its means. On a hard disk the same number: its commands
    /// take less time to simulate.
    Quick,
}

/// The figure of the model.
pub(super) fn measure(model: &DiskModel, what: Measure, effort: Effort) -> f64 {
    let mut rig = Rig::new(model);
    let capacity = model.limits().capacity.0;
    let counted = |full: u64| match effort {
        Effort::Quick if !model.limits().rotational => full / 4,
        _ => full,
    };
    // Long enough to exceed a cache of a few hundred writes.
    let (warm_up, count) = if model.limits().rotational { (1_500, 1_500) } else { (5_000, counted(20_000)) };
    match what {
        Measure::Sequential(op, Where::Throughout) => {
            let places = 32;
            let rates = (0..places).map(|i| rig.sequential(op, capacity * i / places, 100));
            rates.sum::<f64>() / places as f64
        }
        Measure::Sequential(op, place) => {
            let commands = 1_500;
            let from = match place {
                Where::End => capacity.saturating_sub(2 * commands * u64::from(SEQUENTIAL_SECTORS)),
                _ => 0,
            };
            rig.sequential(op, from, commands)
        }
        Measure::Random(op, depth) => rig.random(op, depth, warm_up, count).per_second(),
        Measure::Random8(op, depth) => {
            rig.random_of(2 * RANDOM_SECTORS, op, depth, warm_up, count).per_second()
        }
        Measure::Mixed(depth) => {
            let mut rng = Xoshiro256PlusPlus::seed_from_u64(11);
            let blocks = capacity / u64::from(RANDOM_SECTORS);
            let step = || {
                let op = if rng.next_u64() % 10 < 7 { Op::Read } else { Op::Write };
                (op, rng.next_u64() % blocks * u64::from(RANDOM_SECTORS), RANDOM_SECTORS)
            };
            rig.drive(depth, warm_up, count, step).per_second()
        }
        Measure::RandomP99(op, depth) => {
            rig.latencies = Some(Vec::with_capacity(count as usize));
            rig.random(op, depth, warm_up, count);
            let mut latencies = rig.latencies.take().unwrap_or_default();
            let rank = latencies.len() * 99 / 100;
            latencies.select_nth_unstable(rank).1.0 as f64 / 1e3
        }
        Measure::RandomLatency(op) => rig.random(op, 1, warm_up, count).mean_us(),
        Measure::Small(op) | Measure::SequentialLatency(op) => {
            let mut next = 0;
            let step = || {
                next += 1;
                (
                    op,
                    next % (capacity / u64::from(RANDOM_SECTORS)) * u64::from(RANDOM_SECTORS),
                    RANDOM_SECTORS,
                )
            };
            match what {
                Measure::Small(_) => rig.drive(32, 1_000, counted(20_000), step).mb_s(RANDOM_SECTORS),
                _ => rig.drive(1, 1_000, counted(10_000), step).mean_us(),
            }
        }
        Measure::Sustained => {
            let model = model.shrunk(SHRINK);
            let commands = model.limits().capacity.0 / u64::from(SEQUENTIAL_SECTORS);
            let mut next = 0;
            let step = || {
                let sector = next * u64::from(SEQUENTIAL_SECTORS);
                next += 1;
                (Op::Write, sector, SEQUENTIAL_SECTORS)
            };
            let warm_up = commands * 2 / 3;
            Rig::new(&model).drive(32, warm_up, commands - warm_up, step).mb_s(SEQUENTIAL_SECTORS)
        }
        Measure::Steady => {
            let model = model.shrunk(SHRINK);
            let mut rig = Rig::new(&model);
            let capacity = model.limits().capacity.0;
            rig.sequential(Op::Write, 0, capacity / u64::from(SEQUENTIAL_SECTORS) / 2);
            let blocks = capacity / u64::from(RANDOM_SECTORS);
            rig.random(Op::Write, 32, blocks, blocks / 4).per_second()
        }
    }
}

/// The result of a run of commands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    pub commands: u64,
    pub elapsed: Nanos,
    pub latency_sum: Nanos,
}

impl Run {
    pub fn per_second(&self) -> f64 {
        self.commands as f64 / self.elapsed.as_secs_f64()
    }

    pub fn mean_us(&self) -> f64 {
        self.latency_sum.0 as f64 / self.commands as f64 / 1e3
    }

    fn mb_s(&self, sectors: u32) -> f64 {
        self.per_second() * f64::from(sectors) * SECTOR_BYTES as f64 / 1e6
    }
}

/// A disk with a generator of commands.
pub(super) struct Rig {
    disk: AnyDisk,
    now: Nanos,
    /// The latency of each command after the warm-up, if requested.
    latencies: Option<Vec<Nanos>>,
}

impl Rig {
    pub fn new(model: &DiskModel) -> Rig {
        Rig { disk: model.build(1), now: Nanos::ZERO, latencies: None }
    }

    /// Twice `commands` of 128 KiB from sector `from` on; MB/s of the second half.
    fn sequential(&mut self, op: Op, from: u64, commands: u64) -> f64 {
        let places = self.disk.limits().capacity.0 / u64::from(SEQUENTIAL_SECTORS);
        let mut next = from / u64::from(SEQUENTIAL_SECTORS);
        let step = || {
            // A run larger than the disk starts again at its beginning.
            let sector = next % places * u64::from(SEQUENTIAL_SECTORS);
            next += 1;
            (op, sector, SEQUENTIAL_SECTORS)
        };
        self.drive(32, commands, commands, step).mb_s(SEQUENTIAL_SECTORS)
    }

    /// Random 4 KiB commands over the whole disk.
    pub fn random(&mut self, op: Op, depth: u32, warm_up: u64, count: u64) -> Run {
        self.random_of(RANDOM_SECTORS, op, depth, warm_up, count)
    }

    /// The same of commands of `sectors`.
    fn random_of(&mut self, sectors: u32, op: Op, depth: u32, warm_up: u64, count: u64) -> Run {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(7);
        let blocks = self.disk.limits().capacity.0 / u64::from(sectors);
        let step = || (op, rng.next_u64() % blocks * u64::from(sectors), sectors);
        self.drive(depth, warm_up, count, step)
    }

    /// Keeps `depth` commands, or the disk's maximum, in flight until `warm_up + count` have ended; returns
    /// the result of the last `count`.
    pub fn drive(
        &mut self,
        depth: u32,
        warm_up: u64,
        count: u64,
        mut next: impl FnMut() -> (Op, u64, u32),
    ) -> Run {
        let depth = depth.min(self.disk.limits().queue_depth);
        let mut submitted = vec![self.now; depth as usize];
        let mut done: Vec<Completion> = Vec::with_capacity(depth as usize);
        let mut run = Run { commands: 0, elapsed: Nanos::ZERO, latency_sum: Nanos::ZERO };
        let (mut sent, mut ended, mut began) = (0, 0, self.now);
        let mut free: Vec<u32> = (0..depth).collect();
        while ended < warm_up + count {
            while sent < warm_up + count
                && let Some(tag) = free.pop()
            {
                let (op, sector, sectors) = next();
                let sector = Sector(sector);
                let command = Command { tag: Tag(tag), op, sector, sectors, fua: false };
                submitted[tag as usize] = self.now;
                self.disk.submit(self.now, command);
                sent += 1;
            }
            self.now = self.disk.next_event();
            assert!(self.now != Nanos::NEVER, "the disk forgot a command");
            self.disk.advance(self.now, &mut done);
            for completion in done.drain(..) {
                ended += 1;
                if ended <= warm_up {
                    began = completion.at;
                } else {
                    run.commands += 1;
                    run.elapsed = completion.at - began;
                    let latency = completion.at - submitted[completion.tag.0 as usize];
                    run.latency_sum += latency;
                    if let Some(latencies) = &mut self.latencies {
                        latencies.push(latency);
                    }
                }
                free.push(completion.tag.0);
            }
        }
        run
    }
}
