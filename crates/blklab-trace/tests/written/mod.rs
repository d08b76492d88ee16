//! Traces as the kernel and its tools write them.
#![allow(dead_code, reason = "each test has its own part of it")]

use std::io::Cursor;

use blklab_base::input_error::InputError;
use blklab_base::recorded::{Header, Io, Tables};
use blklab_trace::doctor::Doctor;
use blklab_trace::input::Input;
use blklab_trace::notes::{Kind, Note};
use blklab_trace::{Records, Trace, Wanted};

/// `8,0`.
pub const DISK: u32 = 8 << 20;
/// `253,0`.
pub const MAPPED: u32 = 253 << 20;

pub const QUEUE: u64 = 1;
pub const BACK_MERGE: u64 = 2;
pub const GET_REQUEST: u64 = 4;
pub const REQUEUE: u64 = 6;
pub const ISSUE: u64 = 7;
pub const COMPLETE: u64 = 8;
pub const INSERT: u64 = 12;
pub const SPLIT: u64 = 13;
pub const REMAP: u64 = 15;

pub const READ: u64 = 1;
pub const WRITE: u64 = 1 << 1;
pub const FLUSH: u64 = 1 << 2;
pub const SYNC: u64 = 1 << 3;
pub const NOTIFY: u64 = 1 << 10;
pub const META: u64 = 1 << 12;
pub const DISCARD: u64 = 1 << 13;
pub const FUA: u64 = 1 << 15;

/// A record before it is written.
#[derive(Clone, Debug, Default)]
pub struct Raw {
    pub time: u64,
    pub act: u64,
    pub category: u64,
    pub sector: u64,
    pub sectors: u32,
    pub pid: u32,
    pub cpu: u32,
    pub sequence: u32,
    pub device: u32,
    pub cgroup: Option<u64>,
    pub data: Vec<u8>,
}

/// Version, and whether the bytes are in the other order than this machine's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Form(pub u8, pub bool);

impl Form {
    pub fn word(self, value: u32) -> [u8; 4] {
        if self.1 { value.swap_bytes() } else { value }.to_ne_bytes()
    }

    fn long(self, value: u64) -> [u8; 8] {
        if self.1 { value.swap_bytes() } else { value }.to_ne_bytes()
    }

    fn short(self, value: u16) -> [u8; 2] {
        if self.1 { value.swap_bytes() } else { value }.to_ne_bytes()
    }

    /// The record as blktrace writes it.
    pub fn record(self, raw: &Raw) -> Vec<u8> {
        let mut data = raw.cgroup.map(|id| self.long(id).to_vec()).unwrap_or_default();
        data.extend(&raw.data);
        let act = raw.act | if raw.cgroup.is_some() { 0x100 } else { 0 };
        let action = act | raw.category << 16;
        let mut bytes = Vec::new();
        bytes.extend(self.word(0x6561_7400 | u32::from(self.0)));
        bytes.extend(self.word(raw.sequence));
        bytes.extend(self.long(raw.time));
        bytes.extend(self.long(raw.sector));
        bytes.extend(self.word(raw.sectors * 512));
        if self.0 == 7 {
            bytes.extend(self.word(action as u32));
            bytes.extend(self.word(raw.pid));
        } else {
            bytes.extend(self.word(raw.pid));
            bytes.extend(self.long(action));
        }
        bytes.extend(self.word(raw.device));
        bytes.extend(self.word(raw.cpu));
        bytes.extend(self.short(0));
        bytes.extend(self.short(data.len() as u16));
        if self.0 == 8 {
            bytes.extend([0; 12]);
        }
        assert_eq!(bytes.len(), if self.0 == 7 { 48 } else { 64 });
        bytes.extend(data);
        bytes
    }

    pub fn stream(self, raws: &[Raw]) -> Vec<u8> {
        raws.iter().flat_map(|raw| self.record(raw)).collect()
    }
}

/// A process's name, as the first event of the process brings it.
pub fn named(time: u64, pid: u32, name: &str) -> Raw {
    let mut data = name.as_bytes().to_vec();
    data.resize(16, 0);
    Raw { time, act: 0, category: NOTIFY, pid, data, ..Raw::default() }
}

/// Events of one read from queue to completion.
pub fn read(at: u64, sector: u64, sectors: u32, pid: u32) -> Vec<Raw> {
    [(QUEUE, 0), (GET_REQUEST, 100), (INSERT, 300), (ISSUE, 700), (COMPLETE, 90_000)]
        .into_iter()
        .map(|(act, after)| {
            // The interrupt comes to another process on another CPU.
            let (pid, cpu) = if act == COMPLETE { (0, 1) } else { (pid, 0) };
            Raw {
                time: at + after,
                act,
                category: READ,
                sector,
                sectors,
                pid,
                cpu,
                device: DISK,
                ..Raw::default()
            }
        })
        .collect()
}

/// In order of time, with the sequence numbers that the kernel counts for each CPU.
pub fn numbered(mut raws: Vec<Raw>) -> Vec<Raw> {
    raws.sort_by_key(|raw| raw.time);
    let mut counts = [0; 8];
    for raw in raws.iter_mut().filter(|raw| raw.category & NOTIFY == 0) {
        counts[raw.cpu as usize] += 1;
        raw.sequence = counts[raw.cpu as usize];
    }
    raws
}

/// All of a trace.
#[derive(Debug)]
pub struct Read {
    pub ios: Vec<Io>,
    pub header: Header,
    pub tables: Tables,
    pub notes: Vec<Note>,
}

impl Read {
    pub fn note(&self, kind: Kind) -> Option<(u64, u64)> {
        self.notes.iter().find(|note| note.kind == kind).map(|note| (note.count, note.first))
    }

    pub fn kinds(&self) -> Vec<&'static str> {
        self.notes.iter().map(|note| note.kind.name()).collect()
    }
}

pub fn inputs(files: &[&[u8]]) -> Vec<Input> {
    files.iter().map(|file| Input::new(Cursor::new(file.to_vec())).expect("memory")).collect()
}

pub fn try_read_files(files: &[&[u8]], wanted: &Wanted, capacity: Option<u64>) -> Result<Read, InputError> {
    let mut trace = Trace::new(inputs(files), wanted, "trace".to_owned())?;
    let mut doctor = Doctor::new(capacity.map(blklab_base::units::Sector));
    let mut ios = Vec::new();
    while let Some(io) = trace.next_io()? {
        doctor.take(&io, trace.tables());
        ios.push(io);
    }
    let header = trace.header().clone();
    let notes = doctor.findings(&header, trace.notes(), wanted.device.is_some());
    Ok(Read { ios, header, tables: trace.tables().clone(), notes })
}

pub fn read_all(file: &[u8]) -> Read {
    try_read_files(&[file], &Wanted::default(), None).expect("a good trace")
}

/// What all formats have of an I/O, without its number.
pub type Plain = (u64, Option<u64>, Option<u64>, Option<u64>, u64, u32, &'static str, u16, u32, String);

pub fn plain(read: &Read) -> Vec<Plain> {
    read.ios
        .iter()
        .map(|io| {
            let name = read.tables.processes.name(io.process).to_owned();
            let ns = |time: Option<blklab_base::units::Nanos>| time.map(|time| time.0);
            let times = (io.queued.0, ns(io.inserted), ns(io.issued), ns(io.completed));
            let (sector, op) = (io.sector.0, io.op.name());
            (times.0, times.1, times.2, times.3, sector, io.sectors, op, io.flags.0, io.pid, name)
        })
        .collect()
}

/// The letters of an event's operation.
fn letters(raw: &Raw) -> String {
    let is = |bits: u64| raw.category & bits != 0;
    let mut text = String::new();
    if is(FLUSH) {
        text.push('F');
    }
    text.push(if is(DISCARD) {
        'D'
    } else if is(WRITE) {
        'W'
    } else if is(FLUSH) {
        'F'
    } else {
        'R'
    });
    for (bits, letter) in [(FUA, 'F'), (SYNC, 'S'), (META, 'M')] {
        if is(bits) {
            text.push(letter);
        }
    }
    text
}

/// The same events as blkparse prints them.
pub fn blkparse(raws: &[Raw], names: &[(u32, &str)]) -> String {
    let first = raws.iter().map(|raw| raw.time).min().unwrap_or(0);
    let mut text = String::new();
    for raw in raws.iter().filter(|raw| raw.category & NOTIFY == 0) {
        let letter = match raw.act {
            QUEUE => 'Q',
            BACK_MERGE => 'M',
            GET_REQUEST => 'G',
            REQUEUE => 'R',
            ISSUE => 'D',
            COMPLETE => 'C',
            INSERT => 'I',
            _ => continue,
        };
        let (major, minor, time) = (raw.device >> 20, raw.device & 0xf_ffff, raw.time - first);
        let name = names.iter().find(|(pid, _)| *pid == raw.pid).map_or("swapper", |row| row.1);
        let place =
            if raw.sectors > 0 { format!("{} + {} ", raw.sector, raw.sectors) } else { String::new() };
        let is_empty_end = raw.sectors == 0 && raw.act == COMPLETE;
        let place = if is_empty_end { format!("{} ", raw.sector) } else { place };
        let tail = if raw.act == COMPLETE { "[0]".to_owned() } else { format!("[{name}]") };
        text += &format!(
            "{major:3},{minor:<3} {:2} {:8} {:5}.{:09} {:5} {letter:>2} {:>3} {place}{tail}\n",
            raw.cpu,
            raw.sequence,
            time / 1_000_000_000,
            time % 1_000_000_000,
            raw.pid,
            letters(raw),
        );
    }
    text + "CPU0 (sda):\n Reads Queued:           2,        8KiB\n"
}

/// The same events as tracefs prints them; the clock has microseconds.
pub fn ftrace(raws: &[Raw], names: &[(u32, &str)]) -> String {
    let mut text = "# tracer: nop\n#\n#           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION\n".to_owned();
    for raw in raws.iter().filter(|raw| raw.category & NOTIFY == 0) {
        let event = match raw.act {
            QUEUE => "block_bio_queue",
            BACK_MERGE => "block_bio_backmerge",
            GET_REQUEST => "block_getrq",
            REQUEUE => "block_rq_requeue",
            ISSUE => "block_rq_issue",
            COMPLETE => "block_rq_complete",
            INSERT => "block_rq_insert",
            _ => continue,
        };
        let name = names.iter().find(|(pid, _)| *pid == raw.pid).map_or("<idle>", |row| row.1);
        let (major, minor) = (raw.device >> 20, raw.device & 0xf_ffff);
        let is_request = matches!(raw.act, ISSUE | INSERT);
        let bytes = if is_request { format!("{} () ", raw.sectors * 512) } else { String::new() };
        let bytes = if matches!(raw.act, COMPLETE | REQUEUE) { "() ".to_owned() } else { bytes };
        let tail = match raw.act {
            COMPLETE | REQUEUE => " none,0,0 [0]".to_owned(),
            ISSUE | INSERT => format!(" be,0,4 [{name}]"),
            _ => format!(" [{name}]"),
        };
        text += &format!(
            "{name:>16}-{:<7} [{:03}] d..1. {:5}.{:06}: {event}: {major},{minor} {} {bytes}{} + {}{tail}\n",
            raw.pid,
            raw.cpu,
            raw.time / 1_000_000_000,
            raw.time / 1000 % 1_000_000,
            letters(raw),
            raw.sector,
            raw.sectors,
        );
    }
    text
}
