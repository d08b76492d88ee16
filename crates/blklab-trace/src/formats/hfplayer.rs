//! Raw dumps of hfplayer: an arrival (`RD_IN`, `WR_IN`) and a completion (`RD_OUT`, `WR_OUT`) are
//! lines of their own, which the column `SEQID.I` joins.
//!
//! Its processed traces have one line for each I/O, with a latency: CSV with named columns.

use std::collections::{HashMap, VecDeque};

use blklab_base::input_error::InputError;
use blklab_base::recorded::{Io, Level, Op};
use blklab_base::units::{Nanos, SECTOR_BYTES, Sector};

use crate::lines::Lines;
use crate::matching::Shared;
use crate::notes::Kind;
use crate::rows::Rows;
use crate::text::{number, quoted, time};

/// I/Os that wait for their completion: the dumps list completions behind arrivals.
const WAITING_MAX: usize = 1 << 17;

/// The columns, by place.
struct Columns {
    elapsed: usize,
    command: usize,
    id: usize,
    sector: usize,
    sectors: usize,
}

/// The rows of a dump.
pub struct Hfplayer {
    lines: Lines,
    columns: Columns,
    waiting: VecDeque<(u64, Io, bool)>,
    /// Place in `waiting`, counted from the first that ever waited.
    places: HashMap<u64, u64>,
    first: u64,
    ended: bool,
}

fn columns(line: &[u8]) -> Option<Columns> {
    let names: Vec<_> = line.strip_prefix(b"#")?.split(|byte| *byte == b',').collect();
    let place = |name: &[u8]| names.iter().position(|other| *other == name);
    place(b"PHASE.I")?;
    Some(Columns {
        elapsed: place(b"ELAPSED_USECS.D")?,
        command: place(b"CMD.S")?,
        id: place(b"SEQID.I")?,
        sector: place(b"LBA.I")?,
        sectors: place(b"NBLKS.I")?,
    })
}

/// Whether a file begins like this format: with completions among its first lines.
pub fn is_ours(head: &[u8]) -> bool {
    let line = head.split(|byte| *byte == b'\n').next().unwrap_or_default();
    columns(line).is_some() && memchr::memmem::find(line, b"THINK_USECS.D").is_some()
}

impl Hfplayer {
    /// Of these lines.
    ///
    /// # Errors
    /// The first line does not name the columns.
    pub fn new(mut lines: Lines, shared: &mut Shared) -> Result<Hfplayer, InputError> {
        let first = lines.next()?.unwrap_or_default();
        let Some(columns) = columns(first) else {
            let found = quoted(first);
            return Err(lines.refused(format!(
                "hfplayer: found '{found}'; expected the names of columns, ELAPSED_USECS.D among them"
            )));
        };
        shared.header.source = "hfplayer".to_owned();
        shared.header.level = Level::Request;
        shared.header.resolution = Nanos(1);
        Ok(Hfplayer {
            lines,
            columns,
            waiting: VecDeque::new(),
            places: HashMap::new(),
            first: 0,
            ended: false,
        })
    }

    /// Takes a line.
    fn take(&mut self, shared: &mut Shared) -> Result<(), InputError> {
        let line_number = self.lines.number();
        let fields: Vec<_> = self.lines.last().split(|byte| *byte == b',').collect();
        let wrong = || {
            let found = quoted(self.lines.last());
            self.lines.refused(format!("hfplayer: found '{found}'; expected the fields of the first line"))
        };
        let field = |place: usize| fields.get(place).copied().ok_or_else(wrong);
        let whole = |place: usize| number(field(place)?).ok_or_else(wrong);
        let at = time(field(self.columns.elapsed)?, 1000).ok_or_else(wrong)?;
        let id = whole(self.columns.id)?;
        let op = match field(self.columns.command)? {
            b"RD_IN" => Op::Read,
            b"WR_IN" => Op::Write,
            b"RD_OUT" | b"WR_OUT" => {
                match self
                    .places
                    .remove(&id)
                    .and_then(|place| self.waiting.get_mut((place - self.first) as usize))
                {
                    Some((_, io, over)) => (io.completed, *over) = (Some(Nanos(at.max(io.queued.0))), true),
                    None => shared.notes.add(Kind::NoQueue, line_number, String::new),
                }
                return Ok(());
            }
            _ => {
                shared.notes.add(Kind::NoSector, line_number, || quoted(self.lines.last()));
                return Ok(());
            }
        };
        let (sector, sectors) = (whole(self.columns.sector)?, whole(self.columns.sectors)?);
        if sectors == 0 {
            shared.notes.add(Kind::ZeroLength, line_number, String::new);
            return Ok(());
        }
        if sector > u64::MAX / SECTOR_BYTES {
            return Err(wrong());
        }
        let io = Io {
            queued: Nanos(at),
            sector: Sector(sector),
            sectors: u32::try_from(sectors).map_err(|_| wrong())?,
            op,
            number: line_number,
            ..Io::default()
        };
        self.places.insert(id, self.first + self.waiting.len() as u64);
        self.waiting.push_back((id, io, false));
        Ok(())
    }
}

impl Rows for Hfplayer {
    fn next_row(&mut self, shared: &mut Shared) -> Result<Option<Io>, InputError> {
        while !self.ended && self.waiting.len() < WAITING_MAX {
            match self.lines.next()? {
                None => self.ended = true,
                Some(line) if line.trim_ascii().is_empty() => {}
                Some(_) => self.take(shared)?,
            }
        }
        let Some((id, io, over)) = self.waiting.pop_front() else { return Ok(None) };
        self.first += 1;
        if !over {
            self.places.remove(&id);
            shared.notes.add(Kind::NoCompletion, io.number, String::new);
        }
        Ok(Some(io))
    }
}
