//! Rows of fields between signs: the public data sets, CSV with named columns.
//!
//! A [`Layout`] says what each field is. Data sets have theirs below, with the source of its fields; a
//! CSV with a line of names gets one from the names.

use blklab_base::input_error::InputError;
use blklab_base::recorded::{Flags, Io, Level, NameId, Op};
use blklab_base::units::{Nanos, SECTOR_BYTES, Sector};

use crate::lines::Lines;
use crate::matching::Shared;
use crate::notes::Kind;
use crate::rows::{Rows, sectors_of};
use crate::text::{decimals, hex, number, quoted, time, trimmed, words};

/// What a field is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// The arrival, in units of so many ns.
    Time(u64),
    /// From arrival to completion, in units of so many ns.
    Response(u64),
    /// A part of the device's name.
    Device,
    /// The operation: a word, a letter, a SCSI command in hexadecimal digits.
    Op,
    /// The operation: 0 is a write, 1 a read.
    WriteIsZero,
    /// The operation: 0 is a read, 1 a write.
    ReadIsZero,
    /// Where it begins, in bytes.
    Offset,
    /// Where it begins, in sectors.
    Sector,
    /// Its length in bytes.
    Bytes,
    /// Its length in sectors.
    Sectors,
    /// The process's number.
    Pid,
    /// The process's name.
    Process,
    /// The CPU.
    Cpu,
    /// Nothing that is needed.
    Skip,
}

/// How the fields of a row are separated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Separator {
    /// Blanks and tabs.
    Blanks,
    /// This sign; blanks around a field do not count.
    Sign(u8),
}

/// The fields of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The format's name.
    pub name: &'static str,
    /// Between fields.
    pub separator: Separator,
    /// The fields, in their order. Later fields of a row are not read.
    pub fields: Vec<Field>,
    /// The step of the clock, if the format fixes it; else the digits of the first time tell.
    pub resolution: Option<Nanos>,
    /// The level at which it was recorded.
    pub level: Level,
    /// Lines before the first row.
    pub heading: u64,
}

const SECOND: u64 = 1_000_000_000;

/// A row with the fields of one data set.
pub struct Known {
    /// Its name, as of `--format`.
    pub name: &'static str,
    /// What it is, in a line.
    pub about: &'static str,
    /// The names of its columns, as its publisher gives them; some files begin with them.
    names: &'static str,
    separator: Separator,
    fields: &'static [Field],
    resolution: Option<Nanos>,
    level: Level,
}

impl Known {
    /// Its layout.
    pub fn layout(&self) -> Layout {
        Layout {
            name: self.name,
            separator: self.separator,
            fields: self.fields.to_vec(),
            resolution: self.resolution,
            level: self.level,
            heading: 0,
        }
    }
}

/// The data sets without a line of names.
pub const KNOWN: &[Known] = &[
    Known {
        name: "blkreplay",
        about: "blkreplay's .load: seconds ; sector ; sectors ; R or W",
        names: "",
        separator: Separator::Sign(b';'),
        fields: &[Field::Time(SECOND), Field::Sector, Field::Sectors, Field::Op],
        resolution: None,
        level: Level::Bio,
    },
    Known {
        name: "msr",
        about: "MSR Cambridge 2007: ticks of 100 ns since 1601, host, disk, Read or Write, bytes, response",
        names: "Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime",
        separator: Separator::Sign(b','),
        fields: &[
            Field::Time(100),
            Field::Device,
            Field::Device,
            Field::Op,
            Field::Offset,
            Field::Bytes,
            Field::Response(100),
        ],
        resolution: Some(Nanos(100)),
        level: Level::Request,
    },
    Known {
        name: "mqsim",
        about: "MQSim and DiskSim ASCII: ns, device, sector, sectors, 0 for a write or 1 for a read",
        names: "",
        separator: Separator::Blanks,
        fields: &[Field::Time(1), Field::Device, Field::Sector, Field::Sectors, Field::WriteIsZero],
        resolution: Some(Nanos(1)),
        level: Level::Request,
    },
    Known {
        name: "alibaba",
        about: "Alibaba 2020: device, R or W, offset and length in bytes, us",
        names: "device_id,opcode,offset,length,timestamp",
        separator: Separator::Sign(b','),
        fields: &[Field::Device, Field::Op, Field::Offset, Field::Bytes, Field::Time(1000)],
        resolution: Some(Nanos(1000)),
        level: Level::Request,
    },
    Known {
        name: "tencent",
        about: "Tencent CBS 2018: whole seconds, sector, sectors, 0 for a read or 1 for a write, volume",
        names: "Timestamp,Offset,Size,IOType,VolumeID",
        separator: Separator::Sign(b','),
        fields: &[Field::Time(SECOND), Field::Sector, Field::Sectors, Field::ReadIsZero, Field::Device],
        resolution: Some(Nanos(SECOND)),
        level: Level::Request,
    },
    Known {
        name: "systor",
        about: "SYSTOR '17: seconds, response in seconds, R or W or nothing, LUN, offset and bytes",
        names: "Timestamp,Response,IOType,LUN,Offset,Size",
        separator: Separator::Sign(b','),
        fields: &[
            Field::Time(SECOND),
            Field::Response(SECOND),
            Field::Op,
            Field::Device,
            Field::Offset,
            Field::Bytes,
        ],
        // Nine digits, true to microseconds: the data set's own description.
        resolution: Some(Nanos(1000)),
        level: Level::Request,
    },
    Known {
        name: "k5cloud",
        about: "K5cloud 2017: volume, seconds, R or W, offset and length in bytes",
        names: "ID,Timestamp,Type,Offset,Length",
        separator: Separator::Sign(b','),
        fields: &[Field::Device, Field::Time(SECOND), Field::Op, Field::Offset, Field::Bytes],
        resolution: None,
        level: Level::Request,
    },
    Known {
        name: "fiu",
        about: "FIU: ns, pid, process, sector, sectors, R or W, major, minor, hash",
        names: "",
        separator: Separator::Blanks,
        fields: &[
            Field::Time(1),
            Field::Pid,
            Field::Process,
            Field::Sector,
            Field::Sectors,
            Field::Op,
            Field::Device,
            Field::Device,
        ],
        resolution: Some(Nanos(1)),
        level: Level::Bio,
    },
];

/// The data set whose names of columns these are.
pub fn of_names(line: &[u8]) -> Option<&'static Known> {
    let same = |known: &&Known| !known.names.is_empty() && line.eq_ignore_ascii_case(known.names.as_bytes());
    KNOWN.iter().find(same)
}

/// Names of columns, of which a word behind `_` may be a unit; lower case.
const COLUMNS: &[(&[&str], Field)] = &[
    (&["time", "timestamp", "ts", "start", "queued", "arrival", "elapsed", "abs"], Field::Time(SECOND)),
    (&["response", "responsetime", "latency", "duration", "clat", "service"], Field::Response(SECOND)),
    (&["device", "dev", "disk", "volume", "lun", "host_lun", "hostname", "disknumber"], Field::Device),
    (&["op", "type", "rw", "operation", "opcode", "iotype", "cmd", "direction", "rwbs"], Field::Op),
    (&["offset"], Field::Offset),
    (&["sector", "lbn", "lba", "block", "blkno", "address"], Field::Sector),
    (&["size", "length", "bytes", "len"], Field::Bytes),
    (&["sectors", "blocks", "nblks", "nsectors", "count"], Field::Sectors),
    (&["pid", "tid"], Field::Pid),
    (&["process", "comm", "program"], Field::Process),
    (&["cpu"], Field::Cpu),
];

const UNITS: &[(&[&str], u64)] = &[
    (&["ns", "nsecs"], 1),
    (&["us", "usecs", "usec"], 1000),
    (&["ms", "msecs", "msec"], 1_000_000),
    (&["s", "secs", "sec", "seconds"], SECOND),
];

/// The field of a column's name.
fn column(name: &[u8]) -> Field {
    let name = String::from_utf8_lossy(trimmed(name)).to_lowercase();
    // hfplayer's names end in the type: `LBA.I`.
    let name = name.trim_start_matches('#').split('.').next().unwrap_or_default().trim();
    let find = |name: &str| COLUMNS.iter().find(|(names, _)| names.contains(&name)).map(|row| row.1);
    if let Some(field) = find(name) {
        return field;
    }
    let Some((stem, unit)) = name.rsplit_once('_') else { return Field::Skip };
    let unit = UNITS.iter().find(|(names, _)| names.contains(&unit)).map(|row| row.1);
    match (find(stem), unit, &name[stem.len() + 1..]) {
        (Some(Field::Time(_)), Some(unit), _) => Field::Time(unit),
        (Some(Field::Response(_)), Some(unit), _) => Field::Response(unit),
        (Some(Field::Offset), _, "bytes") => Field::Offset,
        (Some(Field::Bytes), _, "bytes") => Field::Bytes,
        (Some(Field::Offset | Field::Sector), _, "sectors") => Field::Sector,
        (Some(Field::Bytes), _, "sectors") => Field::Sectors,
        _ => Field::Skip,
    }
}

/// The layout of a line of names; None if it has no place or length among them.
pub fn named(line: &[u8]) -> Option<Layout> {
    let separator = [b',', b';', b'\t'].into_iter().find(|sign| line.contains(sign))?;
    let mut fields: Vec<_> = line.split(|byte| *byte == separator).map(column).collect();
    // Of several columns of one kind the first is used, but a device's name may have parts.
    let once = |field: Field| std::mem::discriminant(&field);
    for place in 1..fields.len() {
        let field = fields[place];
        if field != Field::Device && fields[..place].iter().any(|other| once(*other) == once(field)) {
            // The finer of two clocks.
            match (field, fields[..place].iter().position(|other| once(*other) == once(field))) {
                (Field::Time(unit), Some(first)) if matches!(fields[first], Field::Time(other) if unit < other) =>
                {
                    fields[first] = Field::Skip;
                }
                _ => fields[place] = Field::Skip,
            }
        }
    }
    let has = |wanted: fn(&Field) -> bool| fields.iter().any(wanted);
    let place = has(|field| matches!(field, Field::Offset | Field::Sector));
    let length = has(|field| matches!(field, Field::Bytes | Field::Sectors));
    let timed = has(|field| matches!(field, Field::Time(_)));
    (place && length && timed).then_some(Layout {
        name: "csv",
        separator: Separator::Sign(separator),
        fields,
        resolution: None,
        level: Level::Request,
        heading: 1,
    })
}

/// The operation of a word.
pub fn operation(word: &[u8]) -> Option<(Op, Flags)> {
    let sync = Flags::SYNC;
    Some(match word {
        b"R" | b"r" | b"Read" | b"read" | b"READ" | b"RS" | b"Rs" => (Op::Read, Flags::default()),
        b"W" | b"w" | b"Write" | b"write" | b"WRITE" => (Op::Write, Flags::default()),
        b"WS" | b"Ws" => (Op::Write, sync),
        b"RD_IN" | b"RD" => (Op::Read, Flags::default()),
        b"WR_IN" | b"WR" => (Op::Write, Flags::default()),
        b"D" | b"d" | b"Discard" | b"discard" | b"Trim" | b"trim" | b"TRIM" | b"unmap" => {
            (Op::Discard, Flags::default())
        }
        b"F" | b"f" | b"Flush" | b"flush" | b"sync" => (Op::Flush, Flags::default()),
        _ => {
            if let Some(found) = blklab_base::rwbs::parse(word)
                && word.iter().all(|letter| b"RWDFSMAEZU".contains(letter))
            {
                return Some(found);
            }
            return scsi(hex(word)?).map(|op| (op, Flags::default()));
        }
    })
}

/// The operation of a SCSI command.
pub fn scsi(command: u64) -> Option<Op> {
    // SBC-4: 6, 10, 12, 16 bytes.
    Some(match command {
        0x08 | 0x28 | 0xa8 | 0x88 => Op::Read,
        0x0a | 0x2a | 0xaa | 0x8a | 0x2e | 0xae | 0x8e => Op::Write,
        0x35 | 0x91 => Op::Flush,
        0x42 => Op::Discard,
        0x41 | 0x93 => Op::WriteZeroes,
        _ => return None,
    })
}

/// The rows of a text.
pub struct Delimited {
    lines: Lines,
    layout: Layout,
    /// The parts of the last device's name.
    device: (Vec<u8>, NameId),
    begun: bool,
}

impl Delimited {
    /// Of these lines, with this layout.
    pub fn new(lines: Lines, layout: Layout, shared: &mut Shared) -> Delimited {
        shared.header.source = layout.name.to_owned();
        shared.header.level = layout.level;
        if let Some(resolution) = layout.resolution {
            shared.header.resolution = resolution;
        }
        Delimited { lines, layout, device: (Vec::new(), NameId::NONE), begun: false }
    }

    fn wrong(&self, what: &str, found: &[u8], expected: &str) -> InputError {
        let found = quoted(found);
        InputError {
            found: Some(found.clone()),
            expected: Some(expected.to_owned()),
            ..self.lines.refused(format!("{}: {what} '{found}'; expected {expected}", self.layout.name))
        }
    }

    fn row(&mut self, shared: &mut Shared) -> Result<Option<Io>, InputError> {
        let line_number = self.lines.number();
        let line = self.lines.last();
        let mut io = Io { number: line_number, ..Io::default() };
        let (mut place, mut length) = ((Field::Skip, 0), (Field::Skip, 0));
        let mut response = None;
        let mut device: &[u8] = b"";
        let mut device_parts = [0..0, 0..0];
        let mut parts = 0;
        let mut fields: Fields<'_> = match self.layout.separator {
            Separator::Blanks => Fields::Blanks(Box::new(words(line))),
            Separator::Sign(sign) => Fields::Sign(Some(line), sign),
        };
        for field in &self.layout.fields {
            let Some(raw) = fields.next() else {
                let expected = format!("{} fields", self.layout.fields.len());
                return Err(self.wrong("too few fields in", line, &expected));
            };
            let text = trimmed(raw);
            match *field {
                Field::Skip => {}
                Field::Time(unit) => {
                    let Some(at) = time(text, unit) else {
                        return Err(self.wrong("time", text, "a number"));
                    };
                    if !self.begun && self.layout.resolution.is_none() {
                        let step = unit / 10_u64.pow(decimals(text).min(9) as u32);
                        shared.header.resolution = Nanos(step.max(1));
                    }
                    io.queued = Nanos(at);
                }
                Field::Response(unit) => {
                    let Some(span) = time(text, unit) else {
                        return Err(self.wrong("response time", text, "a number"));
                    };
                    response = Some(span);
                }
                Field::Device => {
                    let begin = text.as_ptr() as usize - line.as_ptr() as usize;
                    if parts < 2 {
                        device_parts[parts] = begin..begin + text.len();
                        parts += 1;
                    }
                    device = text;
                }
                Field::Op => {
                    if text.is_empty() || text == b"-" {
                        shared.notes.add(Kind::BlankOperation, line_number, String::new);
                        io.op = Op::Other;
                    } else if let Some((op, flags)) = operation(text) {
                        (io.op, io.flags) = (op, flags);
                    } else {
                        return Err(self.wrong("operation", text, "R, W, Read, Write or another operation"));
                    }
                }
                Field::WriteIsZero | Field::ReadIsZero => {
                    let write = if *field == Field::WriteIsZero { &b"0"[..] } else { b"1" };
                    io.op = match text {
                        b"0" | b"1" if text == write => Op::Write,
                        b"0" | b"1" => Op::Read,
                        _ => return Err(self.wrong("operation", text, "0 or 1")),
                    };
                }
                Field::Offset | Field::Sector => match number(text) {
                    Some(value) => place = (*field, value),
                    None => return Err(self.wrong("place", text, "a whole number")),
                },
                Field::Bytes | Field::Sectors => match number(text) {
                    Some(value) => length = (*field, value),
                    None => return Err(self.wrong("length", text, "a whole number")),
                },
                Field::Pid => io.pid = number(text).and_then(|pid| pid.try_into().ok()).unwrap_or(0),
                Field::Process => io.process = shared.tables.processes.id_of_bytes(text),
                Field::Cpu => io.cpu = number(text).and_then(|cpu| cpu.try_into().ok()),
            }
        }
        let bytes = match length.0 {
            Field::Sectors => length.1.checked_mul(SECTOR_BYTES),
            _ => Some(length.1),
        };
        let offset = match place.0 {
            Field::Sector => place.1.checked_mul(SECTOR_BYTES),
            _ => Some(place.1),
        };
        let covered = offset.zip(bytes).and_then(|(offset, bytes)| sectors_of(offset, bytes));
        let Some((sector, sectors, widened)) = covered else {
            return Err(self.lines.refused(format!(
                "{}: place {} and length {} are beyond any disk",
                self.layout.name, place.1, length.1
            )));
        };
        (io.sector, io.sectors) = (sector, sectors);
        if widened {
            shared.notes.add(Kind::Unaligned, line_number, || {
                format!("{} bytes from byte {}", bytes.unwrap_or(0), offset.unwrap_or(0))
            });
        }
        if io.op == Op::Flush {
            (io.sector, io.sectors) = (Sector(0), 0);
            shared.notes.add(Kind::Flushes, line_number, String::new);
        } else if sectors == 0 {
            shared.notes.add(Kind::ZeroLength, line_number, String::new);
            return Ok(None);
        }
        io.completed = response.map(|span| Nanos(io.queued.0.saturating_add(span)));
        let joined;
        if parts == 2 {
            joined = [&line[device_parts[0].clone()], b".", &line[device_parts[1].clone()]].concat();
            device = &joined;
        }
        if self.device.0 != device {
            let device = device.to_vec();
            self.device = (device.clone(), shared.tables.devices.id_of_bytes(&device));
        }
        io.device = self.device.1;
        self.begun = true;
        Ok(Some(io))
    }
}

/// The fields of a line.
enum Fields<'a> {
    Blanks(Box<dyn Iterator<Item = &'a [u8]> + 'a>),
    Sign(Option<&'a [u8]>, u8),
}

impl<'a> Iterator for Fields<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        match self {
            Fields::Blanks(words) => words.next(),
            Fields::Sign(rest, sign) => {
                let line = (*rest)?;
                match memchr::memchr(*sign, line) {
                    Some(end) => {
                        *rest = Some(&line[end + 1..]);
                        Some(&line[..end])
                    }
                    None => rest.take(),
                }
            }
        }
    }
}

impl Rows for Delimited {
    fn next_row(&mut self, shared: &mut Shared) -> Result<Option<Io>, InputError> {
        while let Some(line) = self.lines.next()? {
            if line.trim_ascii().is_empty() || self.lines.number() <= self.layout.heading {
                continue;
            }
            if !self.begun {
                // The licence and the names of columns stand before blkreplay's rows, a name of columns
                // before some files of the data sets.
                let first = self.lines.last().trim_ascii_start();
                let is_row = first.first().is_some_and(u8::is_ascii_digit) || self.layout.heading > 0;
                let digits =
                    is_row && !(self.layout.name == "blkreplay" && memchr::memchr(b';', first).is_none());
                let letters = self.layout.fields.first() == Some(&Field::Device);
                if !digits && (!letters || self.lines.number() == 1 && named(self.lines.last()).is_some()) {
                    continue;
                }
            }
            if let Some(io) = self.row(shared)? {
                return Ok(Some(io));
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_known_by_their_names() {
        let layout = named(b"version,time,op,size,lbn").expect("a layout");
        let expected = [Field::Skip, Field::Time(SECOND), Field::Op, Field::Bytes, Field::Sector];
        assert_eq!((layout.fields.as_slice(), layout.separator), (&expected[..], Separator::Sign(b',')));
        let layout = named(b"Offset_Sectors;Size_sectors;ts_us;latency_ms").expect("a layout");
        let expected = [Field::Sector, Field::Sectors, Field::Time(1000), Field::Response(1_000_000)];
        assert_eq!(layout.fields, expected);
        assert_eq!(named(b"time,op,size"), None);
        assert_eq!(named(b"5,4,3"), None);
    }

    #[test]
    fn of_two_clocks_the_finer_is_used() {
        let layout = named(b"ABS_SECS.D,ELAPSED_USECS.D,LBA.I,NBLKS.I").expect("a layout");
        assert_eq!(layout.fields, [Field::Skip, Field::Time(1000), Field::Sector, Field::Sectors]);
    }
}
