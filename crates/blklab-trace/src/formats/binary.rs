//! Binary rows of a fixed length, little-endian: VMware's vscsiStats as CloudPhysics published it,
//! and libCacheSim's oracleGeneral.
//!
//! vscsi 1 has 32 bytes: u32 number, u32 bytes, u32 scatter-gather entries, u16 command, u16 version,
//! u64 sector, u64 us. vscsi 2 has 40: command and version first, then number, bytes, entries, sector,
//! us and the response time in us. The version is in the upper byte of its field.
//!
//! oracleGeneral has 24: u32 seconds, u64 object, u32 bytes, i64 next access. In traces of disks the
//! object is the first sector. It has no operation.

use std::io::{self, Read};

use blklab_base::input_error::InputError;
use blklab_base::recorded::{Io, Level, Op};
use blklab_base::units::{Nanos, SECTOR_BYTES, Sector};

use super::delimited::scsi;
use crate::input::Input;
use crate::matching::Shared;
use crate::notes::Kind;
use crate::rows::Rows;

/// The formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// vscsiStats, version 1.
    Vscsi1,
    /// vscsiStats, version 2.
    Vscsi2,
    /// libCacheSim's.
    OracleGeneral,
}

impl Form {
    const fn bytes(self) -> usize {
        match self {
            Form::Vscsi1 => 32,
            Form::Vscsi2 => 40,
            Form::OracleGeneral => 24,
        }
    }

    /// The name, as of `--format`.
    pub const fn name(self) -> &'static str {
        match self {
            Form::Vscsi1 => "vscsi 1",
            Form::Vscsi2 => "vscsi 2",
            Form::OracleGeneral => "oracleGeneral",
        }
    }
}

fn u16_at(row: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([row[at], row[at + 1]])
}

fn u32_at(row: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(row[at..at + 4].try_into().expect("four bytes"))
}

fn u64_at(row: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(row[at..at + 8].try_into().expect("eight bytes"))
}

/// The most rows by which a format is detected.
const ROWS_LOOKED_AT: usize = 100;

/// The format that all rows at the beginning agree with; neither has a magic number.
pub fn detect(head: &[u8]) -> Option<Form> {
    let all = |form: Form, good: &dyn Fn(&[u8]) -> bool| {
        let mut rows = head.chunks_exact(form.bytes()).take(ROWS_LOOKED_AT);
        head.len() >= form.bytes() && rows.all(good)
    };
    let command =
        |code: u16| code <= 0xff && scsi(code.into()).is_some() || matches!(code, 0 | 0x12 | 0x1a | 0x25);
    if all(Form::Vscsi1, &|row| u16_at(row, 14) >> 8 == 1 && command(u16_at(row, 12))) {
        return Some(Form::Vscsi1);
    }
    if all(Form::Vscsi2, &|row| u16_at(row, 2) >> 8 == 2 && command(u16_at(row, 0))) {
        return Some(Form::Vscsi2);
    }
    let next = |row: &[u8]| u64_at(row, 16) as i64;
    let sizes =
        |row: &[u8]| (1..=1 << 30).contains(&u32_at(row, 12)) && next(row) >= -1 && next(row) < 1 << 48;
    let times: Vec<_> = head.chunks_exact(24).take(ROWS_LOOKED_AT).map(|row| u32_at(row, 0)).collect();
    let rises = times.is_sorted() && times.first().zip(times.last()).is_some_and(|(a, b)| b - a < 1 << 24);
    (rises && all(Form::OracleGeneral, &sizes)).then_some(Form::OracleGeneral)
}

/// The rows of a file.
pub struct Binary {
    input: Input,
    form: Form,
    number: u64,
}

impl Binary {
    /// Of this format.
    pub fn new(input: Input, form: Form, shared: &mut Shared) -> Binary {
        shared.header.source = form.name().to_owned();
        shared.header.level = Level::Request;
        shared.header.resolution = Nanos(if form == Form::OracleGeneral { 1_000_000_000 } else { 1000 });
        Binary { input, form, number: 0 }
    }

    fn refused(&self, reason: String) -> InputError {
        InputError::new(format!("record {}: {}: {reason}", self.number, self.form.name()))
    }

    /// Fills `row`; false at the end.
    fn read(&mut self, row: &mut [u8], shared: &mut Shared) -> Result<bool, InputError> {
        let mut length = 0;
        while length < row.len() {
            match self.input.read(&mut row[length..]) {
                Ok(0) if length == 0 => return Ok(false),
                Ok(0) => {
                    shared.notes.add(Kind::Truncated, self.number, String::new);
                    return Ok(false);
                }
                Ok(read) => length += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.refused(format!("cannot be read further: {error}"))),
            }
        }
        Ok(true)
    }
}

impl Rows for Binary {
    fn next_row(&mut self, shared: &mut Shared) -> Result<Option<Io>, InputError> {
        let mut row = [0; 40];
        let row = &mut row[..self.form.bytes()];
        loop {
            self.number += 1;
            if !self.read(row, shared)? {
                return Ok(None);
            }
            let number = self.number;
            let (op, sector, bytes, time_ns, response_us);
            if self.form == Form::OracleGeneral {
                (op, sector, bytes) = (Some(Op::Other), u64_at(row, 4), u32_at(row, 12));
                (time_ns, response_us) = (Some(u64::from(u32_at(row, 0)) * 1_000_000_000), None);
                shared.notes.add(Kind::NoOperation, number, String::new);
            } else {
                let (command, version, us);
                if self.form == Form::Vscsi1 {
                    (bytes, command, version) = (u32_at(row, 4), u16_at(row, 12), u16_at(row, 14));
                    (sector, us, response_us) = (u64_at(row, 16), u64_at(row, 24), None);
                } else {
                    (command, version, bytes) = (u16_at(row, 0), u16_at(row, 2), u32_at(row, 8));
                    (sector, us, response_us) = (u64_at(row, 16), u64_at(row, 24), Some(u64_at(row, 32)));
                }
                let expected = if self.form == Form::Vscsi1 { 1 } else { 2 };
                if version >> 8 != expected {
                    return Err(
                        self.refused(format!("version {:#06x} in a file of version {expected}", version))
                    );
                }
                op = scsi(command.into());
                time_ns = us.checked_mul(1000);
            }
            let Some(time_ns) = time_ns else {
                return Err(self.refused("its time does not fit 64 bits of nanoseconds".to_owned()));
            };
            let Some(op) = op else {
                shared.notes.add(Kind::NoSector, number, String::new);
                continue;
            };
            let mut io = Io { queued: Nanos(time_ns), op, number, ..Io::default() };
            io.completed = response_us.map(|us| Nanos(time_ns.saturating_add(us.saturating_mul(1000))));
            if op == Op::Flush {
                shared.notes.add(Kind::Flushes, number, String::new);
                return Ok(Some(io));
            }
            if bytes == 0 {
                shared.notes.add(Kind::ZeroLength, number, String::new);
                continue;
            }
            if u64::from(bytes) % SECTOR_BYTES != 0 {
                shared.notes.add(Kind::Unaligned, number, || format!("{bytes} bytes from sector {sector}"));
            }
            if sector > u64::MAX / SECTOR_BYTES {
                return Err(self.refused(format!("sector {sector} is beyond any disk")));
            }
            io.sector = Sector(sector);
            io.sectors = u64::from(bytes).div_ceil(SECTOR_BYTES) as u32;
            return Ok(Some(io));
        }
    }
}
