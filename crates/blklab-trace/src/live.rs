//! Recording this machine's block layer, from the ring buffers of tracefs.
//!
//! [`Recorder::take`] decodes pages as they come, [`Recorder::advance`] follows the events up to a time by
//! which every CPU has been read, and writes the I/Os that are complete, in order of their queue times.

use std::collections::{HashMap, HashSet, VecDeque};
use std::io::{self, Write};

use blklab_base::input_error::InputError;
use blklab_base::recorded::{Flags, Header, NameId};
use blklab_base::ring_buffer::{Entry, Field, Pages, id_of};
use blklab_base::rwbs;
use blklab_base::units::{Nanos, Sector};

use crate::Records;
use crate::event::{Act, Event};
use crate::matching::{Events, Matched, Shared};
use crate::recording::Writer;

/// The tracepoints, in the folder `events/block`, and whether a recording needs them.
pub const TRACEPOINTS: [(&str, Act, bool); 8] = [
    ("block_bio_queue", Act::Queue, true),
    ("block_rq_insert", Act::Insert, true),
    ("block_rq_issue", Act::Issue, true),
    ("block_rq_requeue", Act::Requeue, true),
    ("block_rq_complete", Act::Complete, true),
    ("block_bio_complete", Act::Complete, false),
    ("block_plug", Act::Plug, false),
    ("block_unplug", Act::Unplug, false),
];

/// Events of one tracepoint.
#[derive(Clone, Copy, Debug)]
struct Kind {
    id: u64,
    act: Act,
    /// None of plugs, which are a process's.
    of_device: Option<OfDevice>,
    comm: Option<Field>,
    prio: Option<Field>,
    error: Option<Field>,
}

#[derive(Clone, Copy, Debug)]
struct OfDevice {
    device: Field,
    sector: Field,
    sectors: Field,
    rwbs: Field,
}

/// The layout of the running kernel's pages and events.
#[derive(Clone, Debug)]
pub struct Format {
    pages: Pages,
    id: Field,
    pid: Field,
    kinds: Vec<Kind>,
}

impl Format {
    /// From the texts of `header_page`, and of the tracepoints by name.
    ///
    /// # Errors
    /// One line: the text that lacks a required field.
    pub fn new(header_page: &str, formats: &[(String, String)]) -> Result<Format, String> {
        let mut kinds = Vec::new();
        let mut common = None;
        for (name, act, is_needed) in TRACEPOINTS {
            let Some((_, text)) = formats.iter().find(|(of, _)| of == name) else {
                if is_needed {
                    return Err(format!("tracefs: no tracepoint {name}"));
                }
                continue;
            };
            let field = |key| Field::needed(text, name, key);
            common = Some((field("common_type")?, field("common_pid")?));
            let of_device = match act {
                Act::Plug | Act::Unplug => None,
                _ => Some(OfDevice {
                    device: field("dev")?,
                    sector: field("sector")?,
                    sectors: field("nr_sector")?,
                    rwbs: field("rwbs")?,
                }),
            };
            kinds.push(Kind {
                id: id_of(text).ok_or_else(|| format!("tracefs: {name}: no 'ID: NUMBER'"))?,
                act,
                of_device,
                comm: Field::find(text, "comm"),
                prio: Field::find(text, "ioprio"),
                error: Field::find(text, "error"),
            });
        }
        let (id, pid) = common.ok_or("tracefs: no tracepoints")?;
        Ok(Format { pages: Pages::new(header_page)?, id, pid, kinds })
    }
}

/// Events that wait: those of another CPU may lie between.
#[derive(Default)]
struct Waiting {
    waiting: Vec<Event>,
    ready: VecDeque<Event>,
}

impl Events for Waiting {
    fn next_event(&mut self, _: &mut Shared) -> Result<Option<Event>, InputError> {
        Ok(self.ready.pop_front())
    }

    fn lane(&self, _: &Event) -> usize {
        0
    }
}

/// No disk is larger: a sector beyond this is not an I/O's (the kernel gives -1 for none).
const SECTORS_MAX: u64 = 1 << 54;

/// The last time: 292 years.
const LAST_TIME: u64 = i64::MAX as u64;

/// A recording in progress.
pub struct Recorder<W: Write> {
    format: Format,
    /// Disks by the numbers of themselves and of their partitions.
    devices: HashMap<u64, NameId>,
    matched: Matched<Waiting>,
    writer: Writer<W>,
    events: u64,
    lost: u64,
    /// Events that were lost before the next one.
    lost_before: u32,
    /// Threads that have queued I/O and whose cgroups were not asked for.
    queueing: HashSet<u32>,
    /// The cgroups of threads.
    cgroups: HashMap<u32, u64>,
}

/// Threads whose cgroups are known at once: as many as Linux has numbers by default.
const THREADS_MAX: usize = 1 << 16;

impl<W: Write> Recorder<W> {
    /// A recording of `devices`, each with the kernel's numbers that are its own, from `epoch` on, in ns
    /// of the tracer's clock. Writes the header.
    ///
    /// # Errors
    /// The system's, of writing.
    pub fn new(
        out: W,
        format: Format,
        devices: &[(String, Vec<u64>)],
        header: &Header,
        epoch: Nanos,
    ) -> io::Result<Recorder<W>> {
        let mut shared = Shared { header: header.clone(), ..Shared::default() };
        let mut numbers = HashMap::new();
        for (name, own) in devices {
            let id = shared.tables.devices.id(name);
            numbers.extend(own.iter().map(|number| (*number, id)));
        }
        let matched = Matched::live(Waiting::default(), shared, epoch.0);
        let has_plugs =
            [Act::Plug, Act::Unplug].iter().all(|act| format.kinds.iter().any(|kind| kind.act == *act));
        Ok(Recorder {
            format,
            devices: numbers,
            matched: if has_plugs { matched.with_plugs() } else { matched },
            writer: Writer::new(out, header)?,
            events: 0,
            lost: 0,
            lost_before: 0,
            queueing: HashSet::new(),
            cgroups: HashMap::new(),
        })
    }

    /// Takes a page of this CPU's buffer. Damaged pages count as a lost event.
    pub fn take(&mut self, cpu: u16, page: &[u8]) {
        let Recorder { format, devices, matched, events, lost, lost_before, queueing, .. } = self;
        let mut found = Vec::new();
        let whole = format.pages.walk(page, |time, entry| match entry {
            Entry::Missed(count) => {
                *lost = lost.saturating_add(count.unwrap_or(1));
                *lost_before = lost_before.saturating_add(count.unwrap_or(1).try_into().unwrap_or(u32::MAX));
            }
            Entry::Event(_) if time > LAST_TIME => {}
            Entry::Event(bytes) => {
                if let Some(event) = decoded(format, devices, matched, bytes) {
                    *events += 1;
                    if event.act == Act::Queue && queueing.len() < THREADS_MAX {
                        queueing.insert(event.pid);
                    }
                    found.push(Event {
                        time,
                        cpu,
                        lost: std::mem::take(lost_before),
                        number: *events,
                        ..event
                    });
                }
            }
        });
        if whole.is_none() {
            self.lost = self.lost.saturating_add(1);
            self.lost_before = self.lost_before.saturating_add(1);
        }
        self.matched.more().waiting.append(&mut found);
    }

    /// The threads that have queued I/O since this was called last.
    pub fn queueing(&mut self) -> Vec<u32> {
        self.queueing.drain().collect()
    }

    /// The thread is in this cgroup, with this path; 0 if that is not known. The events that
    /// [`Recorder::advance`] has not followed yet are in it, too.
    pub fn set_cgroup(&mut self, thread: u32, number: u64, path: &str) {
        if self.cgroups.len() >= THREADS_MAX {
            self.cgroups.clear();
        }
        self.cgroups.insert(thread, number);
        self.matched.tables_mut().cgroups.set(number, path);
    }

    /// Every CPU has been read up to this time of the clock: writes what is complete.
    ///
    /// # Errors
    /// The system's, of writing.
    pub fn advance(&mut self, until: Nanos) -> io::Result<()> {
        let events = self.matched.more();
        events.waiting.sort_by_key(|event| event.time);
        let ready = events.waiting.partition_point(|event| event.time <= until.0);
        let cgroup = |event: &Event| match event.act {
            Act::Queue => self.cgroups.get(&event.pid).copied().unwrap_or_default(),
            _ => 0,
        };
        let ready = events.waiting.drain(..ready).map(|event| Event { cgroup: cgroup(&event), ..event });
        events.ready.extend(ready);
        while let Some(io) = self.matched.next_finished().map_err(io::Error::other)? {
            self.writer.push(&io, self.matched.tables())?;
        }
        Ok(())
    }

    /// Writes all I/Os so far to the file.
    ///
    /// # Errors
    /// The system's, of writing.
    pub fn flush(&mut self) -> io::Result<()> {
        self.writer.flush(self.matched.tables())
    }

    /// The number of lost events.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Writes the rest, with the I/Os that have not completed, and the end of the file; the number of I/Os.
    ///
    /// # Errors
    /// The system's, of writing.
    pub fn finish(mut self) -> io::Result<u64> {
        self.advance(Nanos(u64::MAX))?;
        while let Some(io) = self.matched.next_io().map_err(io::Error::other)? {
            self.writer.push(&io, self.matched.tables())?;
        }
        let (mut out, written) = self.writer.finish(self.matched.tables())?;
        out.flush()?;
        Ok(written)
    }
}

/// The event, without time, CPU and number; `None` if it is of another device.
fn decoded(
    format: &Format,
    devices: &HashMap<u64, NameId>,
    matched: &mut Matched<Waiting>,
    bytes: &[u8],
) -> Option<Event> {
    let id = format.id.number(bytes)?;
    let kind = format.kinds.iter().find(|kind| kind.id == id)?;
    let mut event = Event { act: kind.act, pid: format.pid.number(bytes)? as u32, ..Event::default() };
    let Some(of) = kind.of_device else { return Some(event) };
    event.device = *devices.get(&of.device.number(bytes)?)?;
    let (op, flags) = rwbs::parse(of.rwbs.text(bytes)?)?;
    let (sector, sectors) = (of.sector.number(bytes)?, of.sectors.number(bytes)?);
    event.sectors = sectors.try_into().ok()?;
    if sectors > 0 && sector >= SECTORS_MAX {
        return None;
    }
    event.sector = if sectors == 0 && sector >= SECTORS_MAX { 0 } else { sector };
    let failed = kind.error.and_then(|error| error.number(bytes)).is_some_and(|error| error != 0);
    (event.op, event.flags) = (op, flags.with_if(failed, Flags::FAILED));
    if kind.act == Act::Queue {
        let name = kind.comm.and_then(|comm| comm.text(bytes)).unwrap_or_default();
        event.process = matched.tables_mut().processes.id_of_bytes(name);
    }
    event.prio = kind.prio.and_then(|prio| prio.number(bytes)).map(|prio| prio as u16);
    Some(event)
}

/// The header of a recording of this machine.
pub fn header(
    machine: &str,
    capacity: Option<Sector>,
    scheduler: Option<&str>,
    begun_unix_ns: i64,
) -> Header {
    Header {
        source: "tracefs".to_owned(),
        resolution: Nanos(1),
        begun_unix_ns: Some(begun_unix_ns),
        machine: Some(machine.to_owned()),
        capacity,
        scheduler: scheduler.map(str::to_owned),
        ..Header::default()
    }
}
