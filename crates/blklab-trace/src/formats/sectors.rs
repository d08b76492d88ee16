//! A list of sectors, one a line, without times, lengths and operations: order and places are all that
//! it has.

use blklab_base::input_error::InputError;
use blklab_base::recorded::{Io, Level, Op};
use blklab_base::units::{Nanos, SECTOR_BYTES, Sector};

use crate::lines::Lines;
use crate::matching::Shared;
use crate::notes::Kind;
use crate::rows::Rows;
use crate::text::{number, quoted};

/// The rows of a list.
pub struct Sectors(Lines);

impl Sectors {
    /// Of these lines.
    pub fn new(lines: Lines, shared: &mut Shared) -> Sectors {
        shared.header.source = "sectors".to_owned();
        shared.header.level = Level::Request;
        Sectors(lines)
    }
}

impl Rows for Sectors {
    fn next_row(&mut self, shared: &mut Shared) -> Result<Option<Io>, InputError> {
        while let Some(line) = self.0.next()? {
            let text = line.trim_ascii();
            if text.is_empty() {
                continue;
            }
            let Some(sector) = number(text).filter(|sector| *sector <= u64::MAX / SECTOR_BYTES) else {
                let found = quoted(self.0.last());
                return Err(self.0.refused(format!("sectors: found '{found}'; expected a sector's number")));
            };
            let number = self.0.number();
            shared.notes.add(Kind::NoTimes, number, String::new);
            shared.notes.add(Kind::NoOperation, number, String::new);
            let io = Io {
                queued: Nanos::ZERO,
                sector: Sector(sector),
                sectors: 1,
                op: Op::Other,
                number,
                ..Io::default()
            };
            return Ok(Some(io));
        }
        Ok(None)
    }
}
