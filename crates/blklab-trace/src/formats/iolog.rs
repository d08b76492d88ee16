//! fio's iolog, versions 2 and 3: what a job did to its files.
//!
//! Version 3 has a time before each line, in microseconds since the job's start: so fio's code writes
//! it (iolog.c, `utime_since_now`); its manual names no unit. Version 2 has lines `wait` instead. The
//! manual gives them microseconds; the code waits until as many milliseconds after its start
//! (`mtime_since_genesis`), and so does this reader.

use blklab_base::input_error::InputError;
use blklab_base::recorded::{Io, Level, Op};
use blklab_base::units::Nanos;

use crate::lines::Lines;
use crate::matching::Shared;
use crate::notes::Kind;
use crate::rows::{Rows, sectors_of};
use crate::text::{number, quoted, words};

/// The rows of a log.
pub struct Iolog {
    lines: Lines,
    version: u8,
    /// Version 2: the time to which the last `wait` led, ns.
    now: u64,
}

/// The version that the first line names.
pub fn version(line: &[u8]) -> Option<u8> {
    match line.trim_ascii() {
        b"fio version 2 iolog" => Some(2),
        b"fio version 3 iolog" => Some(3),
        _ => None,
    }
}

impl Iolog {
    /// Of these lines; the version follows from the first.
    ///
    /// # Errors
    /// The first line is of no version.
    pub fn new(mut lines: Lines, shared: &mut Shared) -> Result<Iolog, InputError> {
        let first = lines.next()?.unwrap_or_default();
        let found = version(first);
        let Some(version) = found else {
            let found = quoted(first);
            return Err(lines.refused(format!("iolog: found '{found}'; expected 'fio version 3 iolog'")));
        };
        shared.header.source = format!("fio iolog {version}");
        shared.header.level = Level::File;
        shared.header.resolution = Nanos(if version == 3 { 1000 } else { 1_000_000 });
        Ok(Iolog { lines, version, now: 0 })
    }

    fn row(&mut self, shared: &mut Shared) -> Result<Option<Io>, InputError> {
        let wrong = |expected: &str| {
            let found = quoted(self.lines.last());
            InputError {
                found: Some(found.clone()),
                expected: Some(expected.to_owned()),
                ..self.lines.refused(format!("iolog: found '{found}'; expected {expected}"))
            }
        };
        let line_number = self.lines.number();
        let mut words = words(self.lines.last());
        let time = if self.version == 3 {
            let Some(us) = words.next().and_then(number) else { return Err(wrong("a time in us first")) };
            us.checked_mul(1000).ok_or_else(|| wrong("a time in us that fits"))?
        } else {
            self.now
        };
        let (Some(file), Some(action)) = (words.next(), words.next()) else {
            return Err(wrong("a file and an action"));
        };
        let op = match action {
            b"add" | b"open" | b"close" => return Ok(None),
            b"read" => Op::Read,
            b"write" => Op::Write,
            b"trim" => Op::Discard,
            b"sync" | b"datasync" | b"sync_file_range" => Op::Flush,
            b"wait" => {
                let Some(ms) = words.next().and_then(number) else { return Err(wrong("wait and a number")) };
                shared.notes.add(Kind::WaitUnit, line_number, || quoted(self.lines.last()));
                let at = ms.checked_mul(1_000_000).ok_or_else(|| wrong("a wait that fits"))?;
                self.now = self.now.max(at);
                return Ok(None);
            }
            _ => return Err(wrong("read, write, trim, sync, datasync, wait, add, open or close")),
        };
        let mut io = Io {
            queued: Nanos(time),
            op,
            device: shared.tables.devices.id_of_bytes(file),
            number: line_number,
            ..Io::default()
        };
        if op == Op::Flush {
            shared.notes.add(Kind::Flushes, line_number, String::new);
            return Ok(Some(io));
        }
        let (offset, length) = (words.next().and_then(number), words.next().and_then(number));
        let (Some(offset), Some(length)) = (offset, length) else {
            return Err(wrong("offset and length in bytes"));
        };
        let Some((sector, sectors, widened)) = sectors_of(offset, length) else {
            return Err(wrong("an offset and a length below 2 TiB"));
        };
        if widened {
            shared.notes.add(Kind::Unaligned, line_number, || format!("{length} bytes from byte {offset}"));
        }
        if sectors == 0 {
            shared.notes.add(Kind::ZeroLength, line_number, String::new);
            return Ok(None);
        }
        (io.sector, io.sectors) = (sector, sectors);
        Ok(Some(io))
    }
}

impl Rows for Iolog {
    fn next_row(&mut self, shared: &mut Shared) -> Result<Option<Io>, InputError> {
        while let Some(line) = self.lines.next()? {
            if line.trim_ascii().is_empty() {
                continue;
            }
            if let Some(io) = self.row(shared)? {
                return Ok(Some(io));
            }
        }
        Ok(None)
    }
}
