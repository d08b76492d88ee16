//! The I/Os of a process, or of a cgroup.

use blklab_base::recorded::{Io, Op};

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
    /// Areas with its I/O, once the summary is [finished](super::Summary::finish).
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
}

impl Owner {
    /// Takes its next I/O; the pause before it, ns.
    pub(super) fn take(&mut self, io: &Io, bytes: u64) -> Option<u64> {
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
