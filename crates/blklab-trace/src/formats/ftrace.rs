//! Text of the kernel's block events: `trace` and `trace_pipe` of tracefs, `trace-cmd report`,
//! `perf script`.
//!
//! A line is `process-pid [cpu] flags time: event: fields`; the fields are those of
//! include/trace/events/block.h (Linux 7.3): `8,0 WS 4096 () 800 + 8 none,0,0 [process]`.

use blklab_base::input_error::InputError;
use blklab_base::recorded::{Flags, NameId};
use blklab_base::rwbs;
use blklab_base::units::{Nanos, SECTOR_BYTES};

use crate::event::{Act, Event};
use crate::lines::Lines;
use crate::matching::{Events, Shared};
use crate::notes::Kind;
use crate::text::{decimals, number, quoted, time, words};

const SECOND_NS: u64 = 1_000_000_000;

/// The events that are read. The kernel calls `block_bio_complete` only where no request completes.
const EVENTS: &[(&[u8], Act)] = &[
    (b"block_bio_queue", Act::Queue),
    (b"block_getrq", Act::GetRequest),
    (b"block_bio_backmerge", Act::BackMerge),
    (b"block_bio_frontmerge", Act::FrontMerge),
    (b"block_rq_merge", Act::BackMerge),
    (b"block_rq_insert", Act::Insert),
    (b"block_rq_issue", Act::Issue),
    (b"block_rq_requeue", Act::Requeue),
    (b"block_rq_complete", Act::Complete),
    (b"block_bio_complete", Act::Complete),
    (b"block_split", Act::Split),
    (b"block_bio_remap", Act::Remap),
    (b"block_rq_remap", Act::Remap),
    (b"block_plug", Act::Plug),
    (b"block_unplug", Act::Unplug),
];

/// The events of a text.
pub struct Ftrace {
    lines: Lines,
    device: (Vec<u8>, NameId),
    lost: u32,
    has_time: bool,
}

impl Ftrace {
    /// Reads these lines.
    pub fn new(lines: Lines, shared: &mut Shared) -> Ftrace {
        shared.header.source = "ftrace".to_owned();
        shared.header.resolution = Nanos(1000);
        Ftrace { lines, device: (Vec::new(), NameId::NONE), lost: 0, has_time: false }
    }
}

/// A line's parts: process, pid, CPU, time, event, fields.
struct Head<'a> {
    process: &'a [u8],
    pid: u32,
    cpu: u16,
    stamp: &'a [u8],
    event: &'a [u8],
    fields: &'a [u8],
}

fn head(line: &[u8]) -> Option<Head<'_>> {
    // The process's name may hold any sign, so the line is read from the event backwards.
    let at = memchr::memmem::find(line, b": block_")?;
    let (before, rest) = (&line[..at], &line[at + 2..]);
    let colon = rest.iter().position(|byte| *byte == b':')?;
    let (event, fields) = (&rest[..colon], &rest[colon + 1..]);
    let stamp_at = before.iter().rposition(|byte| matches!(byte, b' ' | b'\t'))? + 1;
    let stamp = &before[stamp_at..];
    let open = before[..stamp_at].iter().rposition(|byte| *byte == b'[')?;
    let close = open + before[open..stamp_at].iter().position(|byte| *byte == b']')?;
    let cpu = number(&before[open + 1..close])?;
    let owner = before[..open].trim_ascii();
    // `name-123 (tgid)`: a thread group may follow.
    let owner = match owner.iter().rposition(|byte| *byte == b'(') {
        Some(open) if owner.ends_with(b")") => owner[..open].trim_ascii(),
        _ => owner,
    };
    // perf script has a blank between name and pid.
    let dash = owner.iter().rposition(|byte| matches!(byte, b'-' | b' '))?;
    let pid = number(&owner[dash + 1..])?;
    Some(Head {
        process: owner[..dash].trim_ascii(),
        pid: pid.try_into().ok()?,
        cpu: cpu.try_into().ok()?,
        stamp,
        event,
        fields,
    })
}

/// Whether a line is one of this format.
pub fn is_ours(line: &[u8]) -> bool {
    head(line).is_some_and(|head| time(head.stamp, SECOND_NS).is_some())
}

/// `none,0,0` or `rt,4,0`: the priority as in ioprio_set(2).
fn priority(word: &[u8]) -> Option<u16> {
    let mut parts = word.split(|byte| *byte == b',');
    let class = match parts.next()? {
        b"none" => 0,
        b"rt" => 1,
        b"be" => 2,
        b"idle" => 3,
        _ => return None,
    };
    let (_hint, level) = (parts.next().and_then(number)?, parts.next().and_then(number)?);
    Some(class << 13 | u16::try_from(level).ok()? & 7)
}

/// `(8,1)` or `8,1`.
fn device_name(word: &[u8]) -> Option<String> {
    let word = word.strip_prefix(b"(").and_then(|word| word.strip_suffix(b")")).unwrap_or(word);
    let comma = word.iter().position(|byte| *byte == b',')?;
    Some(format!("{}:{}", number(&word[..comma])?, number(&word[comma + 1..])?))
}

impl Ftrace {
    fn event(&mut self, shared: &mut Shared) -> Option<Event> {
        let (line, line_number) = (self.lines.last(), self.lines.number());
        let Some(head) = head(line) else {
            // `CPU:3 [LOST 12 EVENTS]`, of trace-cmd `CPU:3 [12 EVENTS DROPPED]`.
            if line.starts_with(b"CPU:") && memchr::memmem::find(line, b"EVENTS").is_some() {
                let count = line.split(|byte| matches!(byte, b' ' | b'[')).find_map(number).unwrap_or(1);
                self.lost = self.lost.saturating_add(count.try_into().unwrap_or(u32::MAX));
                shared.notes.add_many(Kind::Lost, count, line_number, || quoted(line));
            } else if !matches!(line.first(), Some(b'#')) && !line.starts_with(b"cpus=") {
                shared.notes.add(Kind::Foreign, line_number, || quoted(line));
            }
            return None;
        };
        let act = EVENTS.iter().find(|(name, _)| *name == head.event)?.1;
        let foreign = |shared: &mut Shared| {
            shared.notes.add(Kind::Foreign, line_number, || quoted(line));
            None
        };
        let Some(now) = time(head.stamp, SECOND_NS) else { return foreign(shared) };
        if !self.has_time {
            self.has_time = true;
            let digits = decimals(head.stamp).min(9) as u32;
            shared.header.resolution = Nanos(10_u64.pow(9 - digits));
        }
        if matches!(act, Act::Plug | Act::Unplug) {
            // Of a process, not of a device: `[process]`, and the number of requests.
            let process = shared.tables.processes.id_of_bytes(head.process);
            let (pid, cpu) = (head.pid, head.cpu);
            return Some(Event {
                time: now,
                act,
                pid,
                process,
                cpu,
                number: line_number,
                ..Event::default()
            });
        }
        let is_new = {
            let first = words(head.fields).next()?;
            self.device.0 != first
        };
        if is_new {
            let first = words(head.fields).next()?;
            let Some(name) = device_name(first) else { return foreign(shared) };
            self.device = (first.to_vec(), shared.tables.devices.id(&name));
        }
        let mut fields = words(head.fields).skip(1).peekable();
        let Some((op, mut flags)) = fields.next().and_then(rwbs::parse) else { return foreign(shared) };
        // Bytes, of issue and insert; a command in brackets, of all events of requests.
        let mut bytes = None;
        let mut word = fields.next();
        if let Some(text) = word
            && let Some(next) = fields.peek()
            && next.starts_with(b"(")
        {
            bytes = number(text);
            word = fields.next();
        }
        if let Some(text) = word
            && text.starts_with(b"(")
        {
            // A driver's command has blanks: up to its bracket.
            while word.is_some_and(|text| !text.ends_with(b")")) {
                word = fields.next();
            }
            word = fields.next();
        }
        let sector = word.and_then(number);
        let sign = fields.next();
        let length = fields.next().and_then(number);
        let (Some(sector), Some(length)) = (sector, length) else { return foreign(shared) };
        let (mut above, mut prio) = (NameId::NONE, None);
        let mut name = &b""[..];
        for word in fields {
            if act == Act::Remap && word.starts_with(b"(") {
                above = device_name(word).map_or(NameId::NONE, |name| shared.tables.devices.id(&name));
            } else if let Some(found) = priority(word) {
                prio = Some(found);
            } else if word.starts_with(b"[") {
                name = word;
            }
        }
        let sectors = match (sign, bytes) {
            (Some(b"+"), Some(bytes)) if length == 0 => bytes.div_ceil(SECTOR_BYTES),
            (Some(b"+"), _) => length,
            _ => 0,
        };
        if act == Act::Complete && !matches!(name, b"[0]" | b"") {
            flags = flags.with(Flags::FAILED);
            shared.notes.add(Kind::Failed, line_number, || format!("error {}", quoted(name)));
        }
        // The kernel writes the sector -1 for none.
        let sector = if sectors == 0 && sector > 1 << 55 { 0 } else { sector };
        let Ok(sectors) = u32::try_from(sectors) else { return foreign(shared) };
        Some(Event {
            time: now,
            sector,
            sectors,
            op,
            flags,
            act,
            device: self.device.1,
            above,
            pid: head.pid,
            process: shared.tables.processes.id_of_bytes(head.process),
            cpu: head.cpu,
            prio,
            cgroup: 0,
            lost: std::mem::take(&mut self.lost),
            number: line_number,
        })
    }
}

impl Events for Ftrace {
    fn next_event(&mut self, shared: &mut Shared) -> Result<Option<Event>, InputError> {
        while let Some(line) = self.lines.next()? {
            if line.trim_ascii().is_empty() {
                continue;
            }
            if let Some(event) = self.event(shared) {
                return Ok(Some(event));
            }
        }
        Ok(None)
    }
}
