//! The events of tracefs: pages of a CPU's ring buffer (`trace_pipe_raw`). `header_page` and each
//! event's `format` describe their layout.
//!
//! A page begins with the time of its first event and the length of its data. An event begins with
//! a word: the lower 5 bits are its kind or its length, the others the time since the previous
//! event; see `include/linux/ring_buffer.h`. Damaged data is skipped and counted: then events are
//! missing, as when the kernel had no room for them.

use super::{Act, Event, Watch, rwbs};
use crate::units::{Nanos, SECTOR_BYTES};

/// The required tracepoints, in the folder `events/block`, and their meanings.
///
/// A request that the scheduler does not hold back is issued without being inserted. An appended
/// bio changes neither a request's sector nor its time, so that event is not needed.
pub const TRACEPOINTS: [(&str, Act); 6] = [
    ("block_rq_insert", Act::Insert),
    ("block_rq_issue", Act::Issue),
    ("block_rq_requeue", Act::Requeue),
    ("block_rq_complete", Act::Complete),
    ("block_rq_merge", Act::BackMerge),
    ("block_bio_frontmerge", Act::FrontMerge),
];

/// The maximum of events kept until those of the other CPUs have come: 40 MiB.
const HELD_MAX: usize = 1 << 20;
/// The maximum of requests in flight; the kernel allows a disk some thousands.
const UNDER_WAY_MAX: u32 = 1 << 16;
/// No disk is larger: a sector beyond this is not a request's (the kernel gives -1 for none).
const SECTORS_MAX: u64 = 1 << 54;

/// The lower bits of a page's length; the others are flags.
const COMMIT: u64 = (1 << 27) - 1;
/// The flag for missing events before this page.
const MISSED: u64 = 1 << 31;

/// Kinds of entries that are not events, in the place of a length in words.
mod kind {
    pub const PADDING: u32 = 29;
    pub const TIME_EXTEND: u32 = 30;
    pub const TIME_STAMP: u32 = 31;
}

/// The position of a field.
#[derive(Clone, Copy, Debug)]
struct Field {
    offset: usize,
    size: usize,
}

impl Field {
    /// From the line `field:TYPE NAME; offset:N; size:N; ...` of a `format` file.
    fn find(format: &str, name: &str) -> Option<Field> {
        let line = format.lines().find_map(|line| {
            let (declared, rest) = line.trim().strip_prefix("field:")?.split_once(';')?;
            let found = declared.split_whitespace().last()?.split('[').next()?;
            (found == name).then_some(rest)
        })?;
        let number = |key: &str| -> Option<usize> {
            line.split(';').find_map(|part| part.trim().strip_prefix(key)?.parse().ok())
        };
        Some(Field { offset: number("offset:")?, size: number("size:")? })
    }

    fn bytes(self, of: &[u8]) -> Option<&[u8]> {
        of.get(self.offset..self.offset.checked_add(self.size)?)
    }

    /// A number of 2, 4 or 8 bytes.
    fn number(self, of: &[u8]) -> Option<u64> {
        let bytes = self.bytes(of)?;
        Some(match self.size {
            2 => u16::from_ne_bytes(bytes.try_into().ok()?).into(),
            4 => u32::from_ne_bytes(bytes.try_into().ok()?).into(),
            8 => u64::from_ne_bytes(bytes.try_into().ok()?),
            _ => return None,
        })
    }
}

/// One tracepoint's events.
#[derive(Clone, Copy, Debug)]
struct Kind {
    id: u64,
    act: Act,
    device: Field,
    sector: Field,
    sectors: Field,
    rwbs: Field,
}

/// The layout of pages and events of the running kernel.
#[derive(Clone, Debug)]
pub struct Format {
    time: Field,
    commit: Field,
    data: usize,
    /// `common_type`.
    id: Field,
    kinds: Vec<Kind>,
}

impl Format {
    /// From the texts of `header_page`, and of the tracepoints by name.
    ///
    /// # Errors
    /// One line: the text that lacks a required field.
    pub fn new(header_page: &str, formats: &[(String, String)]) -> Result<Format, String> {
        let needed = |text: &str, whose: &str, name: &str| {
            Field::find(text, name).ok_or_else(|| format!("tracefs: {whose}: no field '{name}'"))
        };
        let page = |name| needed(header_page, "header_page", name);
        let mut id = None;
        let mut kinds = Vec::new();
        for (name, act) in TRACEPOINTS {
            let text = formats.iter().find(|(of, _)| of == name).map_or("", |(_, text)| text);
            let number = text.lines().find_map(|line| line.strip_prefix("ID:")?.trim().parse().ok());
            let field = |key| needed(text, name, key);
            id = Some(field("common_type")?);
            kinds.push(Kind {
                id: number.ok_or_else(|| format!("tracefs: {name}: no 'ID: NUMBER'"))?,
                act,
                device: field("dev")?,
                sector: field("sector")?,
                sectors: field("nr_sector")?,
                rwbs: field("rwbs")?,
            });
        }
        let (time, commit, data) = (page("timestamp")?, page("commit")?, page("data")?.offset);
        Ok(Format { time, commit, data, id: id.ok_or("tracefs: no tracepoints")?, kinds })
    }

    /// Device number and event of a payload; None if the event is not needed.
    fn event(&self, time: u64, payload: &[u8]) -> Option<(u64, Event)> {
        let id = self.id.number(payload)?;
        let kind = self.kinds.iter().find(|kind| kind.id == id)?;
        let sector = kind.sector.number(payload)?;
        let bytes = u32::try_from(kind.sectors.number(payload)?.checked_mul(SECTOR_BYTES)?).ok()?;
        let op = rwbs::op(kind.rwbs.bytes(payload)?)?;
        let event = Event { time, sector, bytes, act: kind.act, op };
        (sector < SECTORS_MAX).then_some((kind.device.number(payload)?, event))
    }
}

/// Tracks the disk's requests through the pages of all CPUs.
pub struct Ring {
    format: Format,
    /// Numbers of the disk and its partitions.
    devices: Vec<u64>,
    watch: Watch,
    /// Events not yet in order: those of another CPU may lie between.
    held: Vec<(u64, Held)>,
    /// The time up to which events were passed to the watch.
    told: u64,
    gaps: u64,
}

#[derive(Clone, Copy, Debug)]
enum Held {
    Event(Event),
    /// Events before this time are missing.
    Gap,
}

impl Ring {
    /// Events of the disk with these device `numbers` go to `watch`.
    pub fn new(format: Format, numbers: Vec<u64>, watch: Watch) -> Ring {
        Ring { format, devices: numbers, watch, held: Vec::new(), told: 0, gaps: 0 }
    }

    /// Takes one page of any CPU; pages of one CPU come in order.
    pub fn take(&mut self, page: &[u8]) {
        if self.read(page).is_none() {
            self.gap(self.held.last().map_or(self.told, |held| held.0));
        }
    }

    /// None at the first damaged byte.
    fn read(&mut self, page: &[u8]) -> Option<()> {
        let commit = self.format.commit.number(page)?;
        let mut time = self.format.time.number(page)?;
        let data = page.get(self.format.data..)?.get(..(commit & COMMIT) as usize)?;
        let word = |at: usize| Some(u32::from_ne_bytes(data.get(at..at + 4)?.try_into().ok()?));
        let mut missed = commit & MISSED != 0;
        let mut at = 0;
        while at < data.len() {
            let head = word(at)?;
            let (of_kind, delta) = (head & 31, u64::from(head >> 5));
            let (from, until) = match of_kind {
                kind::TIME_EXTEND => (at + 8, at + 8),
                kind::TIME_STAMP => (at + 8, at + 8),
                kind::PADDING if delta == 0 => return Some(()),
                kind::PADDING => (at, at + 4 + word(at + 4)? as usize),
                0 => (at + 8, at + 4 + word(at + 4)? as usize),
                words => (at + 4, at + 4 + 4 * words as usize),
            };
            time = match of_kind {
                kind::TIME_EXTEND => time.checked_add(u64::from(word(at + 4)?) << 27 | delta)?,
                // The upper bits, which do not fit here, are unchanged.
                kind::TIME_STAMP => time & !((1 << 59) - 1) | u64::from(word(at + 4)?) << 27 | delta,
                _ => time.checked_add(delta)?,
            };
            if missed {
                self.gap(time);
                missed = false;
            }
            if of_kind < kind::PADDING {
                let payload = data.get(from..until)?;
                if let Some((device, event)) = self.format.event(time, payload)
                    && self.devices.contains(&device)
                {
                    self.hold(event);
                }
            }
            at = until;
        }
        Some(())
    }

    fn hold(&mut self, event: Event) {
        if self.held.len() < HELD_MAX {
            self.held.push((event.time, Held::Event(event)));
        } else {
            self.gap(event.time);
        }
    }

    fn gap(&mut self, time: u64) {
        self.gaps += 1;
        if self.held.len() < HELD_MAX {
            self.held.push((time, Held::Gap));
        } else if let Some(last) = self.held.last_mut() {
            *last = (time, Held::Gap);
        }
    }

    /// All events of every CPU up to `until`, ns of the clock, have been taken.
    pub fn advance(&mut self, until: u64) {
        self.held.sort_by_key(|held| held.0);
        let ready = self.held.partition_point(|held| held.0 <= until);
        for (time, held) in self.held.drain(..ready) {
            // A late event must not come before those already passed on.
            self.told = self.told.max(time);
            match held {
                Held::Event(event) => self.watch.take(&Event { time: self.told, ..event }),
                Held::Gap => self.watch.forget(Nanos(self.told)),
            }
            if self.watch.under_way() > UNDER_WAY_MAX {
                self.gaps += 1;
                self.watch.forget(Nanos(self.told));
            }
        }
    }

    /// How often events were missing, so that tracking started again.
    pub fn gaps(&self) -> u64 {
        self.gaps
    }

    /// The watch with its results.
    pub fn into_watch(self) -> Watch {
        self.watch
    }
}

#[cfg(test)]
#[path = "ring_tests.rs"]
mod tests;
