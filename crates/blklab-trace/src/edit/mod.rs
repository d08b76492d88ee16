//! Changes of recordings: a part of one, another speed, other places, several in one, no names.
//!
//! A changed recording is read like any other, I/O by I/O; its times count from the start of the
//! kept window. The steps of an I/O keep their distance from its queue time, at any speed: they are the
//! times of the recorded disk.

mod anonymous;
mod merge;
#[cfg(test)]
mod tests;

use std::ops::{Range, RangeInclusive};

use blklab_base::input_error::InputError;
use blklab_base::recorded::{Header, Io, Op, Tables, scaled};
use blklab_base::units::{Nanos, Sector};

use crate::Records;
use crate::notes::Notes;
use anonymous::Anonymous;
pub use anonymous::Secret;
pub use merge::Merged;

/// The longest time: 292 years.
const TIME_MAX: u64 = i64::MAX as u64;

/// What is kept of a recording, and what is changed.
#[derive(Clone, Debug)]
pub struct Edit {
    /// Queue times that are kept.
    pub window: Range<Nanos>,
    /// Names or numbers of processes that are kept; empty: all.
    pub processes: Vec<String>,
    /// Cgroups that are kept: their numbers, or their paths, with all below them; empty: all.
    pub cgroups: Vec<String>,
    /// Operations that are kept; empty: all.
    pub ops: Vec<Op>,
    /// An I/O is kept if all of it is there. Flushes have no place and are kept.
    pub sectors: Range<u64>,
    /// Lengths that are kept, in sectors. Flushes have no length and are kept.
    pub lengths: RangeInclusive<u32>,
    /// All times between arrivals are multiplied by this.
    pub stretch: f64,
    /// Places on a disk of the first size go to the same part of a disk of the second, in sectors.
    pub scale: Option<(u64, u64)>,
    /// Sectors by which all I/Os move towards the end.
    pub shift: u64,
    /// Names, numbers and places are replaced.
    pub secret: Option<Secret>,
}

impl Default for Edit {
    /// Everything is kept as it is.
    fn default() -> Edit {
        Edit {
            window: Nanos::ZERO..Nanos::NEVER,
            processes: Vec::new(),
            cgroups: Vec::new(),
            ops: Vec::new(),
            sectors: 0..u64::MAX,
            lengths: 0..=u32::MAX,
            stretch: 1.0,
            scale: None,
            shift: 0,
            secret: None,
        }
    }
}

impl Edit {
    fn keeps(&self, io: &Io, tables: &Tables) -> bool {
        let is_named =
            |wanted: &String| tables.processes.name(io.process) == wanted || wanted.parse() == Ok(io.pid);
        let is_within = |wanted: &String| {
            io.cgroup != 0
                && (wanted.parse() == Ok(io.cgroup) || is_below(tables.cgroups.path(io.cgroup), wanted))
        };
        self.window.contains(&io.queued)
            && (self.processes.is_empty() || self.processes.iter().any(is_named))
            && (self.cgroups.is_empty() || self.cgroups.iter().any(is_within))
            && (self.ops.is_empty() || self.ops.contains(&io.op))
            && (io.sectors == 0
                || (io.sector.0 >= self.sectors.start
                    && io.end().0 <= self.sectors.end
                    && self.lengths.contains(&io.sectors)))
    }

    fn moved(&self, io: &Io) -> Sector {
        if io.sectors == 0 {
            return io.sector;
        }
        let sector = match self.scale {
            Some((from, to)) => scaled(io.sector.0, from, to).min(to.saturating_sub(io.sectors.into())),
            None => io.sector.0,
        };
        Sector(sector.saturating_add(self.shift))
    }

    fn queued(&self, io: &Io) -> Nanos {
        let since = io.queued.saturating_sub(self.window.start);
        if self.stretch == 1.0 {
            return since;
        }
        // Rounding keeps the order.
        Nanos(((since.0 as f64 * self.stretch) as u64).min(TIME_MAX))
    }
}

/// Whether a cgroup's path is `above`, or lies below it.
fn is_below(path: &str, above: &str) -> bool {
    let rest = path.strip_prefix(above.trim_end_matches('/'));
    !path.is_empty() && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// A recording with changes.
pub struct Edited<R> {
    records: R,
    edit: Edit,
    header: Header,
    anonymous: Option<Anonymous>,
}

impl<R: Records> Edited<R> {
    /// Applies `edit` to each I/O of `records`. The header of `records` must be complete: it has read its first
    /// I/O.
    pub fn new(records: R, edit: Edit) -> Edited<R> {
        let old = records.header();
        let mut header = old.clone();
        header.begun_unix_ns =
            old.begun_unix_ns.and_then(|begun| begun.checked_add_unsigned(edit.window.start.0));
        if let Some((_, to)) = edit.scale {
            header.capacity = Some(Sector(to));
        }
        header.capacity = header.capacity.map(|capacity| Sector(capacity.0.saturating_add(edit.shift)));
        let anonymous = edit.secret.map(Anonymous::new);
        if anonymous.is_some() {
            (header.begun_unix_ns, header.machine) = (None, None);
        }
        Edited { records, edit, header, anonymous }
    }
}

impl<R: Records> Records for Edited<R> {
    fn next_io(&mut self) -> Result<Option<Io>, InputError> {
        let mut lost = 0_u32;
        loop {
            let Some(io) = self.records.next_io()? else { return Ok(None) };
            if io.queued >= self.edit.window.end {
                return Ok(None);
            }
            lost = lost.saturating_add(io.lost);
            if !self.edit.keeps(&io, self.records.tables()) {
                if io.queued < self.edit.window.start {
                    lost = 0;
                }
                continue;
            }
            let queued = self.edit.queued(&io);
            let later = |step: Nanos| Nanos((queued.0 + step.saturating_sub(io.queued).0).min(TIME_MAX));
            let changed = Io {
                queued,
                inserted: io.inserted.map(later),
                issued: io.issued.map(later),
                completed: io.completed.map(later),
                sector: self.edit.moved(&io),
                lost,
                ..io
            };
            return Ok(Some(match &mut self.anonymous {
                Some(anonymous) => {
                    let has_path = !self.records.tables().cgroups.path(changed.cgroup).is_empty();
                    anonymous.of(changed, has_path)
                }
                None => changed,
            }));
        }
    }

    fn header(&self) -> &Header {
        &self.header
    }

    fn tables(&self) -> &Tables {
        self.anonymous.as_ref().map_or_else(|| self.records.tables(), Anonymous::tables)
    }

    fn notes(&self) -> &Notes {
        self.records.notes()
    }
}
