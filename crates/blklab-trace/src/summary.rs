//! The figures of a recording, in one pass and bounded memory.
//!
//! Quantiles have three digits (hdrhistogram). Times between steps are those of btt (blktrace): Q2Q
//! between arrivals, Q2I to the scheduler, I2D in it, D2C at the disk, Q2C in all.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};

use blklab_base::recorded::{Flags, Io, NameId, Op, Tables};
use blklab_base::units::{Nanos, SECTOR_BYTES};
use hdrhistogram::Histogram;

/// I/Os that are followed for the depth: of more the depth is a lower bound.
const DEPTH_MAX: usize = 1 << 16;

/// Sizes, and processes, that are counted apart; the rest is one row.
const ROWS_MAX: usize = 1 << 16;

/// Quantiles of one kind of value.
#[derive(Clone, Debug)]
pub struct Spread {
    values: Histogram<u64>,
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
        Spread { values: Histogram::new(3).expect("three digits"), sum: 0 }
    }
}

impl Spread {
    fn add(&mut self, value: u64) {
        self.values.saturating_record(value);
        self.sum += u128::from(value);
    }

    /// Its figures.
    pub fn figures(&self) -> Figures {
        let count = self.values.len();
        if count == 0 {
            return Figures::default();
        }
        let at = |quantile| self.values.value_at_quantile(quantile);
        Figures {
            count,
            min: self.values.min(),
            mean: self.sum as f64 / count as f64,
            p50: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
            p999: at(0.999),
            max: self.values.max(),
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

/// I/Os of one process.
#[derive(Clone, Copy, Debug, Default)]
pub struct Process {
    /// How many.
    pub count: u64,
    /// Bytes that it read.
    pub read_bytes: u64,
    /// Bytes that it wrote.
    pub written_bytes: u64,
    /// I/Os that begin where its one before ended.
    pub sequential: u64,
    /// The sum of times from queue to completion, and of how many I/Os.
    q2c_ns: u128,
    completed: u64,
    /// Where its last I/O ended.
    end: Option<u64>,
}

impl Process {
    /// The mean time from queue to completion, ns; None if no I/O completes.
    pub fn mean_q2c_ns(&self) -> Option<f64> {
        (self.completed > 0).then(|| self.q2c_ns as f64 / self.completed as f64)
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
    /// I/Os that were not complete at an arrival, with it.
    pub depth: Spread,
    /// Devices: I/Os, end of the last one.
    pub devices: BTreeMap<NameId, u64>,
    ends: HashMap<NameId, u64>,
    /// By process: number and name.
    pub processes: HashMap<(u32, NameId), Process>,
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
        if let Some(before) = self.ends.insert(io.device, io.end().0) {
            let distance = io.sector.0.abs_diff(before);
            if distance == 0 {
                self.sequential += 1;
            } else {
                self.seeks.add(distance);
            }
        }
    }

    fn process(&mut self, io: &Io, bytes: u64) {
        let mut key = (io.pid, io.process);
        if self.processes.len() >= ROWS_MAX && !self.processes.contains_key(&key) {
            key = (0, NameId::NONE);
        }
        let process = self.processes.entry(key).or_default();
        process.count += 1;
        match io.op {
            Op::Read => process.read_bytes += bytes,
            Op::Write | Op::WriteZeroes => process.written_bytes += bytes,
            _ => {}
        }
        if io.sectors > 0 {
            process.sequential += u64::from(process.end == Some(io.sector.0));
            process.end = Some(io.end().0);
        }
        if let Some(completed) = io.completed {
            process.q2c_ns += u128::from(completed.saturating_sub(io.queued).0);
            process.completed += 1;
        }
    }

    /// The processes, the one with the most I/Os first.
    pub fn by_count(&self, tables: &Tables) -> Vec<(u32, String, Process)> {
        let mut rows: Vec<_> = self
            .processes
            .iter()
            .map(|((pid, name), process)| (*pid, tables.processes.name(*name).to_owned(), *process))
            .collect();
        rows.sort_by(|a, b| (Reverse(a.2.count), a.0, &a.1).cmp(&(Reverse(b.2.count), b.0, &b.1)));
        rows
    }
}
