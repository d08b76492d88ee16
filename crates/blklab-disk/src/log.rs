//! The first requests of a run, as they reached the disk: used to compare two rigs.

use std::io::{self, Write};

use blklab_core::disk::{Command, Op};
use blklab_core::units::Nanos;

/// Requests in order of arrival. Columns of equal length.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Log {
    rows_max: usize,
    /// Reached the disk, ns of the model's time.
    pub arrived_ns: Vec<i64>,
    /// Completed, by the model; -1 if not.
    pub completed_ns: Vec<i64>,
    /// First sector.
    pub sector: Vec<i64>,
    /// Length in sectors.
    pub sectors: Vec<i64>,
    /// 0 read, 1 write, 2 flush, 3 discard.
    pub op: Vec<i64>,
}

/// Names of the columns, in the order in which [`Log::write`] writes them.
pub const COLUMNS: [&str; 5] = ["arrived_ns", "completed_ns", "sector", "sectors", "op"];

impl Log {
    /// Stores the first `rows_max` requests.
    pub fn new(rows_max: usize) -> Log {
        Log { rows_max, ..Log::default() }
    }

    /// Drops all rows.
    pub fn restart(&mut self) {
        *self = Log::new(self.rows_max);
    }

    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.sector.len()
    }

    /// A request arrived. Returns its row, for [`Log::ended`].
    #[inline]
    pub fn arrived(&mut self, at: Nanos, command: &Command) -> Option<u32> {
        let row = self.rows();
        if row >= self.rows_max {
            return None;
        }
        let op = match command.op {
            Op::Read => 0,
            Op::Write => 1,
            Op::Flush => 2,
            Op::Discard => 3,
        };
        self.arrived_ns.push(at.0 as i64);
        self.completed_ns.push(-1);
        self.sector.push(command.sector.0 as i64);
        self.sectors.push(command.sectors.into());
        self.op.push(op);
        Some(row as u32)
    }

    /// The request of that row completed.
    #[inline]
    pub fn ended(&mut self, row: u32, at: Nanos) {
        self.completed_ns[row as usize] = at.0 as i64;
    }

    /// Writes the columns of [`COLUMNS`] as little-endian 64-bit integers, one after the other.
    ///
    /// # Errors
    /// Writing to `out` fails.
    pub fn write(&self, mut out: impl Write) -> io::Result<()> {
        for column in [&self.arrived_ns, &self.completed_ns, &self.sector, &self.sectors, &self.op] {
            let bytes: Vec<u8> = column.iter().flat_map(|value| value.to_le_bytes()).collect();
            out.write_all(&bytes)?;
        }
        out.flush()
    }
}

#[cfg(test)]
mod tests {
    use blklab_core::disk::Tag;
    use blklab_core::units::Sector;

    use super::*;

    #[test]
    fn the_first_requests_are_kept_and_written_column_by_column() {
        let mut log = Log::new(2);
        let command = |sector| {
            let (op, tag) = (Op::Write, Tag(0));
            Command { tag, op, sector: Sector(sector), sectors: 8, fua: false }
        };
        let rows = [10, 20, 30].map(|at| log.arrived(Nanos(at), &command(at * 100)));
        assert_eq!(rows, [Some(0), Some(1), None]);
        log.ended(1, Nanos(25));
        let mut bytes = Vec::new();
        log.write(&mut bytes).expect("memory");
        let values: Vec<_> = bytes.chunks(8).map(|b| i64::from_le_bytes(b.try_into().unwrap())).collect();
        assert_eq!(values, [10, 20, -1, 25, 1000, 2000, 8, 8, 1, 1]);
        assert_eq!(values.len(), COLUMNS.len() * log.rows());
        log.restart();
        assert_eq!(log, Log::new(2));
    }
}
