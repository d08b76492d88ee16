//! Bios in flight: direct I/O of processes, from submission to completion.

use std::collections::BTreeMap;

use super::{Act, Event};
use crate::units::{Nanos, SECTOR_BYTES};

/// Bios by their first sector, then by arrival.
#[derive(Debug, Default)]
pub struct Bios {
    under_way: BTreeMap<(u64, u64), Bio>,
    seen: u64,
    /// Length of the longest so far, in sectors.
    longest: u64,
}

#[derive(Debug)]
struct Bio {
    end: u64,
    /// Sectors that are not done.
    left: u64,
    since: Nanos,
    write: bool,
}

/// A completed bio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    /// It went to the disk.
    pub write: bool,
    /// Its first sector.
    pub sector: u64,
    /// Its length.
    pub bytes: u64,
    /// When it came.
    pub since: Nanos,
    /// From its arrival to its completion.
    pub latency: Nanos,
}

impl Bios {
    /// Takes an event at `now`. Calls `done` with each bio that it completes.
    pub fn take(&mut self, now: Nanos, event: &Event, done: impl FnMut(Done)) {
        let (start, sectors) = (event.sector, u64::from(event.bytes) / SECTOR_BYTES);
        // A flush transfers no data.
        if sectors == 0 {
            return;
        }
        match event.act {
            Act::Queue => {
                self.seen += 1;
                self.longest = self.longest.max(sectors);
                let bio = Bio { end: start + sectors, left: sectors, since: now, write: event.op.is_write() };
                self.under_way.insert((start, self.seen), bio);
            }
            Act::Complete => self.end(now, start, start + sectors, event.op.is_write(), done),
            _ => {}
        }
    }

    /// The sectors from `start` to `end` are complete: of one bio or of several, in part or in
    /// full.
    fn end(&mut self, now: Nanos, start: u64, end: u64, write: bool, mut done: impl FnMut(Done)) {
        let mut at = start;
        while at < end {
            let first = at.saturating_sub(self.longest);
            let holds = |bio: &Bio| bio.write == write && bio.end > at && bio.left > 0;
            let found = self.under_way.range_mut((first, 0)..=(at, u64::MAX)).find(|(_, bio)| holds(bio));
            let Some((&key, bio)) = found else { return };
            let until = bio.end.min(end);
            bio.left = bio.left.saturating_sub(until - at);
            at = until;
            if bio.left == 0 {
                let bio = self.under_way.remove(&key).expect("just found");
                let bytes = (bio.end - key.0) * SECTOR_BYTES;
                done(Done { write, sector: key.0, bytes, since: bio.since, latency: now - bio.since });
            }
        }
    }
}
