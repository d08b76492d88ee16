//! The events of the block layer in the ring buffers of tracefs. Damaged data is skipped and counted:
//! then events are missing, as when the kernel had no room for them.

use blklab_base::ring_buffer::{Entry, Field, Pages, id_of};

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
    pages: Pages,
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
        let mut id = None;
        let mut kinds = Vec::new();
        for (name, act) in TRACEPOINTS {
            let text = formats.iter().find(|(of, _)| of == name).map_or("", |(_, text)| text);
            let field = |key| Field::needed(text, name, key);
            id = Some(field("common_type")?);
            kinds.push(Kind {
                id: id_of(text).ok_or_else(|| format!("tracefs: {name}: no 'ID: NUMBER'"))?,
                act,
                device: field("dev")?,
                sector: field("sector")?,
                sectors: field("nr_sector")?,
                rwbs: field("rwbs")?,
            });
        }
        Ok(Format { pages: Pages::new(header_page)?, id: id.ok_or("tracefs: no tracepoints")?, kinds })
    }

    /// Device number and event of a payload; None if the event is not needed.
    fn event(&self, time: u64, payload: &[u8]) -> Option<(u64, Event)> {
        let id = self.id.number(payload)?;
        let kind = self.kinds.iter().find(|kind| kind.id == id)?;
        let sector = kind.sector.number(payload)?;
        let bytes = u32::try_from(kind.sectors.number(payload)?.checked_mul(SECTOR_BYTES)?).ok()?;
        let (op, sync) = rwbs::op_and_sync(kind.rwbs.bytes(payload)?)?;
        let event = Event { time, sector, bytes, act: kind.act, op, sync };
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
        let pages = self.format.pages;
        pages.walk(page, |time, entry| match entry {
            Entry::Missed(_) => self.gap(time),
            Entry::Event(payload) => {
                if let Some((device, event)) = self.format.event(time, payload)
                    && self.devices.contains(&device)
                {
                    self.hold(event);
                }
            }
        })
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
