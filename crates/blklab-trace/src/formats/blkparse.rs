//! Text of blkparse: its default format, and formats of `-f` that keep device, time, action and RWBS.
//!
//! `%g` is read behind the device: the number of the cgroup as two hexadecimal numbers, inode and generation.
//!
//! The default is `%D %2c %8s %5T.%9t %5p %2a %3d` and then, by action, `sector + blocks [process]`
//! (`blkparse_fmt.c` of blktrace 1.3). A completion ends in `[error]`, a remap in `<- (device) sector`.

use blklab_base::input_error::InputError;
use blklab_base::recorded::{Flags, NameId, Op};
use blklab_base::rwbs;
use blklab_base::units::Nanos;

use crate::event::{Act, Event};
use crate::lines::Lines;
use crate::matching::{Events, Shared};
use crate::notes::Kind;
use crate::text::{number, quoted, time, words};

const SECOND_NS: u64 = 1_000_000_000;

/// The events of a text.
pub struct Blkparse {
    lines: Lines,
    device: (Vec<u8>, NameId),
    /// The summary at the end has begun.
    is_over: bool,
}

impl Blkparse {
    /// Reads these lines.
    pub fn new(lines: Lines, shared: &mut Shared) -> Blkparse {
        shared.header.source = "blkparse".to_owned();
        shared.header.resolution = Nanos(1);
        Blkparse { lines, device: (Vec::new(), NameId::NONE), is_over: false }
    }
}

/// `8,0`, as major and minor.
fn device(word: &[u8]) -> Option<(u64, u64)> {
    let comma = word.iter().position(|byte| *byte == b',')?;
    Some((number(&word[..comma])?, number(&word[comma + 1..])?))
}

/// `5b,1`: `%g`, the lower and the upper half of a cgroup's number (`struct blk_io_cgroup_payload`).
fn cgroup(word: &[u8]) -> Option<u64> {
    let comma = word.iter().position(|byte| *byte == b',')?;
    let half = |digits: &[u8]| {
        let is_hex = digits.iter().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'));
        let digits = std::str::from_utf8(digits).ok().filter(|digits| is_hex && digits.len() <= 8)?;
        u64::from_str_radix(digits, 16).ok()
    };
    Some(half(&word[..comma])? | half(&word[comma + 1..])? << 32)
}

/// `12.345678901`: a time with the nine digits of blkparse.
fn stamp(word: &[u8]) -> Option<u64> {
    let point = word.iter().position(|byte| *byte == b'.')?;
    (word.len() - point - 1 == 9).then(|| time(word, SECOND_NS))?
}

/// The parts of a line before its payload.
struct Head<'a> {
    device: &'a [u8],
    cpu: u64,
    time: u64,
    pid: u64,
    action: &'a [u8],
    letters: &'a [u8],
    /// 0 if the format has none before the payload.
    cgroup: u64,
    payload: &'a [u8],
}

/// What is behind `word`, a part of `line`.
fn behind<'a>(line: &'a [u8], word: &[u8]) -> &'a [u8] {
    let end = word.as_ptr() as usize + word.len() - line.as_ptr() as usize;
    &line[end..]
}

fn default_head(line: &[u8]) -> Option<Head<'_>> {
    let mut words = words(line);
    let first = words.next()?;
    device(first)?;
    let cpu = number(words.next()?)?;
    number(words.next()?)?;
    let time = time(words.next()?, SECOND_NS)?;
    let pid = number(words.next()?)?;
    let (action, letters) = (words.next()?, words.next()?);
    Some(Head { device: first, cpu, time, pid, action, letters, cgroup: 0, payload: behind(line, letters) })
}

/// The same of another format: device, time, action and letters in any order of columns, the payload
/// behind the letters.
fn other_head(line: &[u8]) -> Option<Head<'_>> {
    let (mut found_device, mut found_time, mut action, mut of_cgroup) = (None, None, None, 0);
    for word in words(line) {
        let word = word.strip_suffix(b",").unwrap_or(word);
        if found_device.is_none() && device(word).is_some() {
            found_device = Some(word);
        } else if let Some(number) = cgroup(word) {
            of_cgroup = number;
        } else if found_time.is_none()
            && let Some(time) = stamp(word)
        {
            found_time = Some(time);
        } else if action.is_none() && matches!(word, [b'A'..=b'Z'] | b"UT") {
            action = Some(word);
        } else if let (Some(action), Some(time)) = (action, found_time)
            && rwbs::parse(word).is_some()
        {
            let device = found_device.unwrap_or_default();
            return Some(Head {
                device,
                cpu: 0,
                time,
                pid: 0,
                action,
                letters: word,
                cgroup: of_cgroup,
                payload: behind(line, word),
            });
        }
    }
    None
}

/// Whether a line is one of this format.
pub fn is_ours(line: &[u8]) -> bool {
    default_head(line).or_else(|| other_head(line)).is_some()
}

/// A name in brackets at the end.
fn bracketed(payload: &[u8]) -> Option<(&[u8], &[u8])> {
    let text = payload.trim_ascii_end().strip_suffix(b"]")?;
    // A name may have brackets of its own; nothing before it does.
    let open = text.iter().position(|byte| *byte == b'[')?;
    Some((&text[..open], &text[open + 1..]))
}

impl Blkparse {
    fn event(&mut self, shared: &mut Shared) -> Option<Event> {
        let line_number = self.lines.number();
        let line = self.lines.last();
        let Some(head) = default_head(line).or_else(|| other_head(line)) else {
            // Plugs and messages have no letters: a process instead, or nothing.
            shared.notes.add(Kind::Foreign, line_number, || quoted(line));
            return None;
        };
        let [letter] = head.action else { return None };
        if *letter == b'm' {
            shared.notes.add(Kind::Notes, line_number, || quoted(head.payload));
            return None;
        }
        let act = Act::of_letter(*letter)?;
        let Some((op, mut flags)) = rwbs::parse(head.letters) else {
            shared.notes.add(Kind::Foreign, line_number, || quoted(line));
            return None;
        };
        let is_new = self.device.0 != head.device;
        let (rest, name) = bracketed(head.payload).unwrap_or((head.payload, b""));
        let mut of_cgroup = head.cgroup;
        let mut rest_words = words(rest).filter(|word| {
            cgroup(word).is_none_or(|number| {
                of_cgroup = number;
                false
            })
        });
        let first = rest_words.next();
        let sector = first.and_then(number);
        let (mut sectors, mut above) = (0, NameId::NONE);
        if let Some(sign) = rest_words.next() {
            match (sign, rest_words.next().and_then(number)) {
                (b"+", Some(length)) => sectors = length,
                // A split: sector / new sector.
                (b"/", Some(_)) => {}
                // A command of the driver: bytes, and the command.
                _ => {
                    shared.notes.add(Kind::NoSector, line_number, || quoted(line));
                    return None;
                }
            }
            if act == Act::Remap
                && let Some(b"<-") = rest_words.next()
                && let Some(from) = rest_words.next()
            {
                let from = from.strip_prefix(b"(").and_then(|from| from.strip_suffix(b")")).and_then(device);
                if let Some((major, minor)) = from {
                    above = shared.tables.devices.id(&format!("{major}:{minor}"));
                }
            }
        }
        // The cgroup may be the last word.
        rest_words.for_each(drop);
        if sector.is_none() && first.is_some() {
            shared.notes.add(Kind::Foreign, line_number, || quoted(line));
            return None;
        }
        let process = if act == Act::Complete {
            if !matches!(name, b"0" | b"") {
                flags = flags.with(Flags::FAILED);
                shared.notes.add(Kind::Failed, line_number, || format!("error {}", quoted(name)));
            }
            NameId::NONE
        } else {
            shared.tables.processes.id_of_bytes(name)
        };
        let event = Event {
            time: head.time,
            sector: sector.unwrap_or(0),
            sectors: u32::try_from(sectors).ok()?,
            op: if op == Op::Other { Op::Other } else { op },
            flags,
            act,
            device: NameId::NONE,
            above,
            pid: head.pid as u32,
            process,
            cpu: head.cpu.min(u16::MAX.into()) as u16,
            prio: None,
            cgroup: of_cgroup,
            lost: 0,
            number: line_number,
        };
        if is_new {
            let name = match device(head.device) {
                Some((major, minor)) => format!("{major}:{minor}"),
                None => String::new(),
            };
            self.device = (head.device.to_vec(), shared.tables.devices.id(&name));
        }
        Some(Event { device: self.device.1, ..event })
    }
}

impl Events for Blkparse {
    fn next_event(&mut self, shared: &mut Shared) -> Result<Option<Event>, InputError> {
        while !self.is_over {
            let Some(line) = self.lines.next()? else { break };
            if line.starts_with(b"CPU") || line.starts_with(b"Total (") {
                self.is_over = true;
                break;
            }
            if line.trim_ascii().is_empty() {
                continue;
            }
            if let Some(event) = self.event(shared) {
                return Ok(Some(event));
            }
        }
        Ok(None)
    }

    /// blkparse has sorted them, over all CPUs.
    fn lane(&self, _: &Event) -> usize {
        0
    }
}
