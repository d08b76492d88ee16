//! Binary records of blktrace, versions 7 and 8, of either order of bytes.
//!
//! `struct blk_io_trace` of include/uapi/linux/blktrace_api.h: version 7 has 48 bytes; version 8
//! (Linux 6.19) has 64, an action of 64 bits and its fields in another order. Data follow a record:
//! a process's name, the time of day, a cgroup's number, a remap's origin.

use std::collections::HashMap;
use std::io::{self, BufRead, Read};

use blklab_base::blktrace::{MAGIC, act, category};
use blklab_base::input_error::InputError;
use blklab_base::recorded::{Flags, NameId, Op};
use blklab_base::units::{Nanos, SECTOR_BYTES};

use crate::event::{Act, Event};
use crate::input::Input;
use crate::matching::{Events, Shared};
use crate::notes::Kind;

const BYTES_7: usize = 48;
const BYTES_8: usize = 64;

/// Processes whose names are known at once: as many as Linux has numbers by default.
const PROCESSES_MAX: usize = 1 << 16;

/// The most CPUs whose sequence numbers are followed.
const CPUS_MAX: usize = 1 << 12;

/// The action carries a cgroup's number.
const CGROUP: u64 = 1 << 8;

/// The layout of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Form {
    version: u8,
    swapped: bool,
}

impl Form {
    fn of(magic: [u8; 4]) -> Option<Form> {
        let (own, other) = (u32::from_ne_bytes(magic), u32::from_ne_bytes(magic).swap_bytes());
        let swapped = own & !0xff != MAGIC;
        let magic = if swapped { other } else { own };
        let version = (magic & 0xff) as u8;
        (magic & !0xff == MAGIC && matches!(version, 7 | 8)).then_some(Form { version, swapped })
    }

    const fn bytes(self) -> usize {
        if self.version == 7 { BYTES_7 } else { BYTES_8 }
    }

    /// The length of the data behind a record.
    #[inline]
    fn bytes_behind(self, record: &[u8]) -> usize {
        usize::from(self.u16(record, self.bytes() - if self.version == 7 { 2 } else { 14 }))
    }

    #[inline]
    fn u16(self, bytes: &[u8], at: usize) -> u16 {
        let value = u16::from_ne_bytes([bytes[at], bytes[at + 1]]);
        if self.swapped { value.swap_bytes() } else { value }
    }

    #[inline]
    fn u32(self, bytes: &[u8], at: usize) -> u32 {
        let value = u32::from_ne_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
        if self.swapped { value.swap_bytes() } else { value }
    }

    #[inline]
    fn u64(self, bytes: &[u8], at: usize) -> u64 {
        let value = u64::from_ne_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
        if self.swapped { value.swap_bytes() } else { value }
    }
}

/// The fields of a record.
struct Raw {
    sequence: u32,
    time: u64,
    sector: u64,
    bytes: u32,
    /// `enum blktrace_act` and the cgroup's bit.
    act: u64,
    /// `enum blktrace_cat`.
    category: u64,
    pid: u32,
    device: u32,
    cpu: u32,
    error: u16,
}

impl Raw {
    #[inline]
    fn parse(form: Form, record: &[u8]) -> Raw {
        let (action, act_bits, pid, device, cpu, error);
        if form.version == 7 {
            (action, pid) = (u64::from(form.u32(record, 28)), form.u32(record, 32));
            (device, cpu, error) = (form.u32(record, 36), form.u32(record, 40), form.u16(record, 44));
            act_bits = 16;
        } else {
            (pid, action) = (form.u32(record, 28), form.u64(record, 32));
            (device, cpu, error) = (form.u32(record, 40), form.u32(record, 44), form.u16(record, 48));
            act_bits = 16;
        }
        Raw {
            sequence: form.u32(record, 4),
            time: form.u64(record, 8),
            sector: form.u64(record, 16),
            bytes: form.u32(record, 24),
            act: action & ((1 << act_bits) - 1),
            category: action >> act_bits,
            pid,
            device,
            cpu,
            error,
        }
    }

    fn op(&self) -> (Op, Flags) {
        let is = |bits| self.category & bits != 0;
        // A discard and a zeroing write are writes too.
        let op = if is(category::PC | category::ZONE) {
            Op::Other
        } else if is(category::DISCARD) {
            Op::Discard
        } else if is(category::WRITE_ZEROES) {
            Op::WriteZeroes
        } else if is(category::WRITE) {
            Op::Write
        } else if is(category::FLUSH) {
            Op::Flush
        } else {
            Op::Read
        };
        let flags = Flags::default()
            .with_if(is(category::SYNC), Flags::SYNC)
            .with_if(is(category::META), Flags::META)
            .with_if(is(category::FUA), Flags::FUA)
            .with_if(is(category::FLUSH), Flags::PREFLUSH)
            .with_if(is(category::AHEAD), Flags::READ_AHEAD)
            .with_if(self.error != 0, Flags::FAILED);
        (op, flags)
    }
}

/// Whether a file begins like this format.
pub fn is_ours(head: &[u8]) -> bool {
    head.first_chunk::<4>().is_some_and(|magic| Form::of(*magic).is_some())
}

/// One stream of records: a CPU's file, or several CPUs' one after another.
struct Stream {
    input: Input,
    /// The time of its last record.
    time: u64,
    is_over: bool,
    data: Vec<u8>,
}

/// The events of a trace.
pub struct Blktrace {
    streams: Vec<Stream>,
    form: Option<Form>,
    number: u64,
    comms: HashMap<u32, NameId>,
    /// The process of the last event.
    last: Option<(u32, NameId)>,
    /// Names of devices; the last one used first.
    devices: Vec<(u32, NameId)>,
    /// The last sequence number of each CPU.
    sequences: Vec<Option<u32>>,
}

impl Blktrace {
    /// Reads one input, or the files of all CPUs.
    pub fn new(inputs: Vec<Input>) -> Blktrace {
        let stream = |input| Stream { input, time: 0, is_over: false, data: Vec::new() };
        Blktrace {
            streams: inputs.into_iter().map(stream).collect(),
            form: None,
            number: 0,
            comms: HashMap::new(),
            last: None,
            devices: Vec::new(),
            sequences: Vec::new(),
        }
    }

    fn device(&mut self, number: u32, shared: &mut Shared) -> NameId {
        if let Some((_, id)) = self.devices.iter().find(|(other, _)| *other == number) {
            return *id;
        }
        let id = shared.tables.devices.id(&format!("{}:{}", number >> 20, number & 0xf_ffff));
        if self.devices.len() < 256 {
            self.devices.push((number, id));
        }
        id
    }

    fn refused(&self, reason: String) -> InputError {
        InputError::new(format!("record {}: {reason}", self.number))
    }

    /// The stream whose last record is the earliest.
    fn earliest(&self) -> Option<usize> {
        if let [only] = self.streams.as_slice() {
            return (!only.is_over).then_some(0);
        }
        let open = self.streams.iter().enumerate().filter(|(_, stream)| !stream.is_over);
        open.min_by_key(|(_, stream)| stream.time).map(|(place, _)| place)
    }

    /// Reads a record of a stream into `record`, its data into the stream; None at its end.
    fn read(
        &mut self,
        place: usize,
        record: &mut [u8; BYTES_8],
        shared: &mut Shared,
    ) -> Result<Option<Form>, InputError> {
        self.number += 1;
        let number = self.number;
        let cut = |shared: &mut Shared| {
            shared.notes.add(Kind::Truncated, number, String::new);
            Ok(None)
        };
        let stream = &mut self.streams[place];
        if let Some(form) = self.form
            && let Ok(true) = at_once(&mut stream.input, form, record)
        {
            stream.data.clear();
            return Ok(Some(form));
        }
        match fill(&mut stream.input, &mut record[..4]) {
            Ok(4) => {}
            Ok(0) => return Ok(None),
            Ok(_) => return cut(shared),
            Err(error) => return Err(self.refused(format!("cannot be read further: {error}"))),
        }
        let magic = [record[0], record[1], record[2], record[3]];
        let Some(form) = Form::of(magic) else {
            let found = u32::from_ne_bytes(magic);
            return Err(InputError {
                found: Some(format!("{found:#010x}")),
                expected: Some("0x65617407 or 0x65617408".to_owned()),
                ..self.refused(format!(
                    "begins with {found:#010x}; expected blktrace 7 or 8 (0x65617407, 0x65617408)"
                ))
            });
        };
        match self.form {
            None => self.form = Some(form),
            Some(other) if other == form => {}
            Some(other) => {
                return Err(self.refused(format!(
                    "is of version {}{}, the ones before of version {}{}",
                    form.version,
                    if form.swapped { " of the other order of bytes" } else { "" },
                    other.version,
                    if other.swapped { " of the other order of bytes" } else { "" },
                )));
            }
        }
        let stream = &mut self.streams[place];
        let rest = &mut record[4..form.bytes()];
        let wanted = rest.len();
        match fill(&mut stream.input, rest) {
            Ok(length) if length == wanted => {}
            Ok(_) => return cut(shared),
            Err(error) => return Err(self.refused(format!("cannot be read further: {error}"))),
        }
        let behind = form.bytes_behind(record);
        stream.data.resize(behind, 0);
        if behind > 0 {
            match fill(&mut stream.input, &mut stream.data) {
                Ok(length) if length == behind => {}
                Ok(_) => return cut(shared),
                Err(error) => return Err(self.refused(format!("cannot be read further: {error}"))),
            }
        }
        Ok(Some(form))
    }

    /// A process's name, or the time of day.
    fn notice(&mut self, form: Form, raw: &Raw, place: usize, shared: &mut Shared) {
        let data = &self.streams[place].data;
        match raw.act & 0xff {
            0 => {
                let end = data.iter().position(|byte| *byte == 0).unwrap_or(data.len());
                let name = shared.tables.processes.id_of_bytes(&data[..end]);
                if self.comms.len() >= PROCESSES_MAX {
                    self.comms.clear();
                }
                self.comms.insert(raw.pid, name);
                self.last = None;
            }
            1 if data.len() >= 8 => {
                let (seconds, ns) = (form.u32(data, 0), form.u32(data, 4));
                let unix_ns = i64::from(seconds) * 1_000_000_000 + i64::from(ns);
                shared.wall.get_or_insert((raw.time, unix_ns));
            }
            1 => {}
            _ => shared.notes.add(Kind::Notes, self.number, || {
                let text = data.get(if raw.act & CGROUP != 0 { 8 } else { 0 }..).unwrap_or_default();
                crate::text::quoted(text)
            }),
        }
    }

    /// Records that are missing before this one.
    fn missing(&mut self, raw: &Raw) -> u32 {
        let cpu = raw.cpu as usize % CPUS_MAX;
        if self.sequences.len() <= cpu {
            self.sequences.resize(cpu + 1, None);
        }
        let before = self.sequences[cpu].replace(raw.sequence);
        // A number that goes back begins another trace.
        match before {
            Some(before) if raw.sequence > before => raw.sequence - before - 1,
            _ => 0,
        }
    }
}

/// Takes a record without data if all of it is in the input's buffer, which is the rule: true if it is.
#[inline]
fn at_once(input: &mut Input, form: Form, record: &mut [u8; BYTES_8]) -> io::Result<bool> {
    let filled = input.fill_buf()?;
    let Some(bytes) = filled.get(..form.bytes()) else { return Ok(false) };
    if bytes.first_chunk::<4>().and_then(|magic| Form::of(*magic)) != Some(form)
        || form.bytes_behind(bytes) > 0
    {
        return Ok(false);
    }
    record[..form.bytes()].copy_from_slice(bytes);
    input.consume(form.bytes());
    Ok(true)
}

/// Reads until `into` is full or the input ends.
fn fill(input: &mut Input, into: &mut [u8]) -> io::Result<usize> {
    let filled = input.fill_buf()?;
    if let Some(bytes) = filled.get(..into.len()) {
        into.copy_from_slice(bytes);
        input.consume(into.len());
        return Ok(into.len());
    }
    let mut length = 0;
    while length < into.len() {
        match input.read(&mut into[length..]) {
            Ok(0) => break,
            Ok(read) => length += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(length)
}

impl Events for Blktrace {
    fn next_event(&mut self, shared: &mut Shared) -> Result<Option<Event>, InputError> {
        let mut record = [0; BYTES_8];
        while let Some(place) = self.earliest() {
            let Some(form) = self.read(place, &mut record, shared)? else {
                self.streams[place].is_over = true;
                continue;
            };
            if self.number == 1 {
                shared.header.source = format!("blktrace {}", form.version);
                shared.header.resolution = Nanos(1);
                if form.version == 8 {
                    shared.notes.add(Kind::Version8, 1, String::new);
                }
                if form.swapped {
                    shared.notes.add(Kind::Swapped, 1, String::new);
                }
            }
            let raw = Raw::parse(form, &record);
            self.streams[place].time = raw.time;
            if raw.category & category::NOTIFY != 0 {
                self.notice(form, &raw, place, shared);
                continue;
            }
            let lost = self.missing(&raw);
            if lost > 0 {
                let before = raw.sequence - lost;
                shared.notes.add_many(Kind::Lost, lost.into(), self.number, || {
                    format!("CPU {}: sequence {} after {}", raw.cpu, raw.sequence, before.wrapping_sub(1))
                });
            }
            let cgroup = if raw.act & CGROUP != 0 && self.streams[place].data.len() >= 8 {
                shared.notes.add(Kind::CgroupBit, self.number, String::new);
                form.u64(&self.streams[place].data, 0)
            } else {
                0
            };
            let act = match raw.act & 0xff {
                act::QUEUE => Act::Queue,
                act::BACK_MERGE => Act::BackMerge,
                act::FRONT_MERGE => Act::FrontMerge,
                act::GET_REQUEST => Act::GetRequest,
                act::REQUEUE => Act::Requeue,
                act::ISSUE => Act::Issue,
                act::COMPLETE => Act::Complete,
                act::PLUG => Act::Plug,
                act::UNPLUG | act::UNPLUG_TIMER => Act::Unplug,
                act::INSERT => Act::Insert,
                act::SPLIT => Act::Split,
                act::REMAP => Act::Remap,
                // Sleeping, data of drivers, plugs of zones.
                _ => continue,
            };
            let (op, flags) = raw.op();
            let device = self.device(raw.device, shared);
            let mut above = NameId::NONE;
            if act == Act::Remap {
                let data = &self.streams[place].data;
                let data = &data[if cgroup != 0 || raw.act & CGROUP != 0 { 8.min(data.len()) } else { 0 }..];
                // In network order, whatever the machine's.
                if let Some(from) = data.first_chunk::<4>() {
                    above = self.device(u32::from_be_bytes(*from), shared);
                }
            }
            if flags.has(Flags::FAILED) && act == Act::Complete {
                shared.notes.add(Kind::Failed, self.number, || format!("error {}", raw.error as i16));
            }
            // A completion's process is the interrupted one.
            let process = match self.last {
                _ if act == Act::Complete => NameId::NONE,
                Some((pid, name)) if pid == raw.pid => name,
                _ => {
                    let name = self.comms.get(&raw.pid).copied().unwrap_or_default();
                    self.last = Some((raw.pid, name));
                    name
                }
            };
            return Ok(Some(Event {
                time: raw.time,
                sector: raw.sector,
                sectors: (u64::from(raw.bytes).div_ceil(SECTOR_BYTES)) as u32,
                op,
                flags,
                act,
                device,
                above,
                pid: raw.pid,
                process,
                cpu: raw.cpu.min(u16::MAX.into()) as u16,
                prio: None,
                cgroup,
                lost,
                number: self.number,
            }));
        }
        self.number -= u64::from(self.number > 0);
        Ok(None)
    }
}
