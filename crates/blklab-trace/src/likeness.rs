//! What a job file can say of a recording's processes: operations, sizes, places, depth, pauses.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};

use blklab_base::recorded::{Flags, Io, NameId, Op, Tables};
use blklab_base::units::{Nanos, SECTOR_BYTES};

/// Processes, and sizes of each, that are counted apart; more are left out.
const ROWS_MAX: usize = 1 << 12;
/// I/Os of a process that are followed for its depth.
const DEPTH_MAX: usize = 1 << 12;

/// I/Os of one operation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Operation {
    /// How many.
    pub count: u64,
    /// How many of each length in bytes.
    pub sizes: BTreeMap<u64, u64>,
}

/// One process.
#[derive(Clone, Debug, Default)]
pub struct Process {
    /// Reads, writes, discards.
    pub operations: [Operation; 3],
    /// Flushes, and writes with one before.
    pub flushes: u64,
    /// I/Os that begin where the one before ended.
    pub sequential: u64,
    /// Its first sector, and the one after its last.
    pub span: Option<(u64, u64)>,
    /// Its first arrival.
    pub first: Nanos,
    /// The most I/Os under way at once.
    pub depth: u32,
    /// Times at which nothing was under way before an arrival, and how long in all.
    pub pauses: u64,
    /// See `pauses`.
    pub paused: Nanos,
    end: Option<u64>,
    under_way: BinaryHeap<Reverse<u64>>,
    last_end: Option<u64>,
}

impl Process {
    /// All reads, writes and discards.
    pub fn count(&self) -> u64 {
        self.operations.iter().map(|operation| operation.count).sum()
    }

    fn take(&mut self, io: &Io, kind: usize) {
        if self.count() == 0 {
            self.first = io.queued;
        }
        let operation = &mut self.operations[kind];
        operation.count += 1;
        let bytes = u64::from(io.sectors) * SECTOR_BYTES;
        if operation.sizes.len() < ROWS_MAX || operation.sizes.contains_key(&bytes) {
            *operation.sizes.entry(bytes).or_default() += 1;
        }
        self.sequential += u64::from(self.end == Some(io.sector.0));
        self.end = Some(io.end().0);
        let (low, high) = self.span.unwrap_or((u64::MAX, 0));
        self.span = Some((low.min(io.sector.0), high.max(io.end().0)));
        while self.under_way.peek().is_some_and(|first| first.0 <= io.queued.0) {
            self.last_end = self.under_way.pop().map(|end| end.0);
        }
        if let Some(end) = self.last_end
            && self.under_way.is_empty()
        {
            self.pauses += 1;
            self.paused = Nanos(self.paused.0.saturating_add(io.queued.0.saturating_sub(end)));
        }
        if self.under_way.len() < DEPTH_MAX {
            self.under_way.push(Reverse(io.completed.unwrap_or(io.queued).0));
        }
        self.depth = self.depth.max(self.under_way.len() as u32);
    }
}

/// The processes of a recording.
#[derive(Clone, Debug, Default)]
pub struct Likeness {
    processes: HashMap<(u32, NameId), Process>,
    /// I/Os that no job does: other operations, and those of too many processes.
    pub left_out: u64,
}

impl Likeness {
    /// Takes the next I/O.
    pub fn take(&mut self, io: &Io) {
        let key = (io.pid, io.process);
        if self.processes.len() >= ROWS_MAX && !self.processes.contains_key(&key) {
            self.left_out += 1;
            return;
        }
        let process = self.processes.entry(key).or_default();
        let kind = match io.op {
            Op::Read => 0,
            Op::Write => 1,
            Op::Discard => 2,
            Op::Flush => {
                process.flushes += 1;
                return;
            }
            _ => {
                self.left_out += 1;
                return;
            }
        };
        if io.sectors == 0 {
            self.left_out += 1;
            return;
        }
        process.flushes += u64::from(io.flags.has(Flags::PREFLUSH));
        process.take(io, kind);
    }

    /// The processes with I/O, the one with the most first: number, name.
    pub fn by_count(self, tables: &Tables) -> Vec<(u32, String, Process)> {
        let name = |id: NameId| tables.processes.name(id).to_owned();
        let with_io = self.processes.into_iter().filter(|(_, process)| process.count() > 0);
        let mut all: Vec<_> = with_io.map(|((pid, id), process)| (pid, name(id), process)).collect();
        all.sort_by(|a, b| (b.2.count(), &a.1, a.0).cmp(&(a.2.count(), &b.1, b.0)));
        all
    }
}

#[cfg(test)]
mod tests {
    use blklab_base::units::Sector;

    use super::*;

    fn io(queued: u64, took: u64, sector: u64, sectors: u32, op: Op) -> Io {
        let (queued, completed) = (Nanos(queued), Some(Nanos(queued + took)));
        Io { queued, completed, sector: Sector(sector), sectors, op, pid: 7, ..Io::default() }
    }

    #[test]
    fn a_process_has_its_sizes_places_depth_and_pauses() {
        let mut like = Likeness::default();
        for one in [
            io(0, 100, 80, 8, Op::Read),
            io(50, 100, 88, 8, Op::Read),
            io(120, 10, 104, 8, Op::Read),
            io(400, 10, 0, 16, Op::Write),
            Io { flags: Flags::PREFLUSH, ..io(500, 10, 96, 8, Op::Write) },
            io(600, 10, 0, 0, Op::Flush),
        ] {
            like.take(&one);
        }
        let all = like.by_count(&Tables::default());
        let [(7, _, process)] = all.as_slice() else { panic!("{all:?}") };
        assert_eq!((process.count(), process.flushes, process.sequential), (5, 2, 1));
        assert_eq!((process.span, process.depth), (Some((0, 112)), 2));
        assert_eq!((process.pauses, process.paused), (2, Nanos(250 + 90)));
        assert_eq!(process.operations[0].sizes, BTreeMap::from([(4096, 3)]));
        assert_eq!(process.operations[1].sizes, BTreeMap::from([(4096, 1), (8192, 1)]));
    }
}
