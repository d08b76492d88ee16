//! Several recordings as the load of one disk.

use std::collections::HashMap;

use blklab_base::input_error::InputError;
use blklab_base::recorded::{Header, Io, NameId, Names, Tables};
use blklab_base::units::Nanos;

use crate::Records;
use crate::notes::Notes;

/// The largest number of a process in Linux (`PID_MAX_LIMIT`): processes of the second recording have
/// numbers from here on, those of the third from twice as much.
const PID_LIMIT: u32 = 1 << 22;

/// Numbers of cgroups of the second recording differ from those of the first by this, of the third by twice as
/// much: machines count theirs from 1.
const CGROUP_LIMIT: u64 = 1 << 48;

/// A recording, and the numbers that its names have in the merged one.
struct Part {
    records: Box<dyn Records + Send>,
    next: Option<Io>,
    processes: HashMap<NameId, NameId>,
}

/// Recordings that begin at the same time, on one device: that of the first I/O.
pub struct Merged {
    parts: Vec<Part>,
    header: Header,
    tables: Tables,
    notes: Notes,
    device: NameId,
    number: u64,
}

impl Merged {
    /// Merges one recording or more, all of one level. Their headers must be complete: each has read its
    /// first I/O.
    ///
    /// # Errors
    /// The first I/O of one is wrong; there is none; or their levels differ.
    pub fn new(several: Vec<Box<dyn Records + Send>>) -> Result<Merged, InputError> {
        let headers: Vec<_> = several.iter().map(|records| records.header().clone()).collect();
        let Some(first) = headers.first() else { return Err(InputError::new("no recordings to merge")) };
        if let Some(other) = headers.iter().find(|header| header.level != first.level) {
            let (one, two) = (first.level, other.level);
            return Err(InputError::new(format!("recordings of two levels, {one} and {two}; expected one")));
        }
        let mut header = first.clone();
        if headers.len() > 1 {
            header.source = "merged".to_owned();
            (header.begun_unix_ns, header.machine) = (None, None);
            header.scheduler = header
                .scheduler
                .filter(|name| headers.iter().all(|one| one.scheduler.as_ref() == Some(name)));
            header.resolution = headers.iter().map(|one| one.resolution).max().unwrap_or(Nanos::ZERO);
            // One that does not know its disk may reach beyond the others'.
            let known: Option<Vec<_>> = headers.iter().map(|one| one.capacity).collect();
            header.capacity = known.and_then(|sizes| sizes.into_iter().max());
            header.spread = headers.iter().any(|one| one.spread);
        }
        let mut parts = Vec::with_capacity(several.len());
        for mut records in several {
            let next = records.next_io()?;
            parts.push(Part { records, next, processes: HashMap::new() });
        }
        let (mut tables, mut device) = (Tables::default(), NameId::NONE);
        let named =
            parts.iter().find_map(|part| part.next.map(|io| part.records.tables().devices.name(io.device)));
        if let Some(name) = named {
            device = tables.devices.id(name);
        }
        Ok(Merged { parts, header, tables, notes: Notes::default(), device, number: 0 })
    }
}

fn translated(known: &mut HashMap<NameId, NameId>, id: NameId, from: &Names, to: &mut Names) -> NameId {
    *known.entry(id).or_insert_with(|| to.id(from.name(id)))
}

impl Records for Merged {
    fn next_io(&mut self) -> Result<Option<Io>, InputError> {
        let due = self.parts.iter().enumerate().filter_map(|(index, part)| Some((part.next?.queued, index)));
        let Some((_, index)) = due.min() else { return Ok(None) };
        let part = &mut self.parts[index];
        let Some(io) = part.next.take() else { return Ok(None) };
        self.number += 1;
        let names = &part.records.tables().processes;
        let process = translated(&mut part.processes, io.process, names, &mut self.tables.processes);
        let pid = io.pid.wrapping_add((index as u32).wrapping_mul(PID_LIMIT));
        let cgroup = match io.cgroup {
            0 => 0,
            number => number.wrapping_add((index as u64).wrapping_mul(CGROUP_LIMIT)).max(1),
        };
        self.tables.cgroups.set(cgroup, part.records.tables().cgroups.path(io.cgroup));
        part.next = part.records.next_io()?;
        Ok(Some(Io { process, pid, cgroup, device: self.device, number: self.number, ..io }))
    }

    fn header(&self) -> &Header {
        &self.header
    }

    fn tables(&self) -> &Tables {
        &self.tables
    }

    fn notes(&self) -> &Notes {
        &self.notes
    }
}
