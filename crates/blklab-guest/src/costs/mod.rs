//! What a program's work costs the disk: bytes of data, of the journal and of other metadata,
//! flushes, and commits, from the block layer's events.
//!
//! A request is counted when it completes, after all merges, as the kernel's own counters do. (A request
//! that the disk cannot take yet is issued several times: on a SATA disk those beside a flush.) A flush has
//! several events of completion, one for each request that waits for it, and is counted when it is
//! issued and not requeued. The file system marks metadata
//! (`REQ_META`); of these, a write that begins in the journal's extents is the journal's. So names of files,
//! inodes and maps of free blocks count twice: when the journal gets them, and when they are written
//! to their own places. Unmarked writes are data.

mod asked;
pub mod ext4;

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use blklab_core::formats::tracefs::Act;
use blklab_core::units::Nanos;
use serde::Serialize;

use crate::config::{FileSystem, FileSystemKind, Sectors};
use crate::trace::record::{Kind, Record};

pub use asked::written_by_calls;

/// The journal of a file system that is not mounted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Journal {
    /// The first sector and the number of sectors of each extent.
    pub extents: Sectors,
    /// The sector in it where the first transaction after the next mount begins.
    pub head: u64,
    /// What is written there has a multiple of so many sectors.
    pub unit: u32,
}

/// Requests of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Requests {
    /// Their number.
    pub count: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl Requests {
    fn add(&mut self, record: &Record) {
        self.count += 1;
        self.bytes += u64::from(record.bytes);
    }
}

/// All requests of a stretch of time, by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Moved {
    /// Reads.
    pub read: Requests,
    /// Writes of files' contents.
    pub data: Requests,
    /// Writes to the journal.
    pub journal: Requests,
    /// Other writes that the file system marks as metadata.
    pub metadata: Requests,
    /// Flushes of the disk's cache.
    pub flushes: u64,
    /// Writes with FUA, counted above too.
    pub fua: u64,
}

/// The costs of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Costs {
    /// While the program ran.
    pub during: Moved,
    /// What it left in the page cache, written by a sync after its end.
    pub after: Moved,
    /// Commits of the journal while it ran; None if the file system does not count them.
    pub commits: Option<u64>,
    /// Bytes that the program and its processes gave to write calls; None if the kernel does not
    /// count them.
    pub asked_bytes: Option<u64>,
}

/// Counts the requests of a disk while a program runs, and afterwards.
#[derive(Debug)]
pub struct Counter {
    journal: Extents,
    end: End,
    during: Moved,
    after: Moved,
}

/// The time at which the program ended, for the thread that reads the events.
#[derive(Clone, Debug)]
pub struct End(Arc<AtomicU64>);

impl End {
    /// Not known yet.
    fn open() -> End {
        End(Arc::new(AtomicU64::new(u64::MAX)))
    }

    /// Events after `now` come after the end.
    pub fn set(&self, now: Nanos) {
        self.0.store(now.0, Ordering::Release);
    }

    fn is_before(&self, time: u64) -> bool {
        time > self.0.load(Ordering::Acquire)
    }
}

/// Sectors of the disk, in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Extents(Vec<(u64, u64)>);

impl Extents {
    /// The extents of ranges, each from its first sector to the one after its last.
    pub fn of(mut ranges: Vec<(u64, u64)>) -> Extents {
        ranges.sort_unstable();
        Extents(ranges)
    }

    fn contain(&self, sector: u64) -> bool {
        let behind = self.0.partition_point(|(begin, _)| *begin <= sector);
        behind > 0 && sector < self.0[behind - 1].1
    }
}

impl Counter {
    /// With the extents of the journal.
    pub fn new(journal: Extents) -> Counter {
        Counter { journal, end: End::open(), during: Moved::default(), after: Moved::default() }
    }

    /// Where the end of the program is to be told.
    pub fn end(&self) -> End {
        self.end.clone()
    }

    /// Takes the next event.
    pub fn take(&mut self, record: &Record) {
        let Some(act) = record.act.filter(|_| !record.is_passthrough()) else { return };
        let moved = if self.has_ended(record.time) { &mut self.after } else { &mut self.during };
        match (act, record.kind()) {
            (Act::Issue, Kind::Flush) => moved.flushes += 1,
            (Act::Requeue, Kind::Flush) => moved.flushes = moved.flushes.saturating_sub(1),
            // The end of a write's flushes is another completion, without data.
            (Act::Complete, _) if record.bytes == 0 => {}
            (Act::Complete, Kind::Read) => moved.read.add(record),
            (Act::Complete, Kind::Write { is_metadata, is_fua }) => {
                moved.fua += u64::from(is_fua);
                let part = match is_metadata {
                    false => &mut moved.data,
                    true if self.journal.contain(record.sector) => &mut moved.journal,
                    true => &mut moved.metadata,
                };
                part.add(record);
            }
            _ => {}
        }
    }

    /// Whether an event at that time came after the end.
    pub fn has_ended(&self, time: u64) -> bool {
        self.end.is_before(time)
    }

    /// Requests until the end, and after it.
    pub fn moved(&self) -> (Moved, Moved) {
        (self.during, self.after)
    }
}

/// Where the journal of a new file system lies.
///
/// # Errors
/// One line: it cannot be read.
pub fn journal(file_system: &FileSystem, device: &Path) -> Result<Extents, String> {
    match file_system.kind {
        FileSystemKind::Ext4 => ext4::journal(device),
        // Their logs are marked as metadata too, and are counted with it.
        FileSystemKind::Xfs | FileSystemKind::Btrfs | FileSystemKind::F2fs => Ok(Extents::default()),
    }
}

/// Commits of ext4's journals since they were mounted: `N transactions (...)`, and with fast commits
/// `num_commits`. None for other file systems.
pub fn commits(device: &Path) -> Option<u64> {
    let disk = device.file_name()?.to_string_lossy();
    let journals = fs::read_dir("/proc/fs/jbd2").ok()?;
    let ours = journals.filter_map(Result::ok).find(|entry| {
        // The journal's name is that of its disk and its inode.
        entry.file_name().to_string_lossy().strip_prefix(&*disk).is_some_and(|rest| rest.starts_with('-'))
    })?;
    let text = fs::read_to_string(ours.path().join("info")).ok()?;
    let full: u64 = text.split_whitespace().next()?.parse().ok()?;
    let fast = fs::read_to_string(Path::new("/proc/fs/ext4").join(&*disk).join("fc_info"));
    Some(full + fast.ok().as_deref().and_then(fast_commits).unwrap_or(0))
}

fn fast_commits(text: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.contains("commits"))?;
    line.split_whitespace().find_map(|word| word.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::record::Records;
    use crate::trace::record::testing::written;

    fn counted(events: &[(u64, char, &str, u64, u32)], end: u64) -> (Moved, Moved) {
        let mut counter = Counter::new(Extents::of(vec![(2048, 4096), (800, 1600)]));
        counter.end().set(Nanos(end));
        let mut records = Records::default();
        for &(time, letter, what, sector, sectors) in events {
            records
                .take(&written(time, letter, what, sector, sectors), |record| counter.take(record))
                .expect("records");
        }
        counter.moved()
    }

    #[test]
    fn a_commit_is_data_its_journal_and_two_flushes_and_each_request_counts_once() {
        let (during, after) = counted(
            &[
                (1, 'Q', "W", 9000, 8),
                (1, 'D', "W", 9000, 8),
                // The disk could not take it yet.
                (1, 'R', "W", 9000, 8),
                (1, 'D', "W", 9000, 8),
                (2, 'C', "W", 9000, 8),
                (2, 'C', "WM", 800, 24),
                (3, 'D', "F", 0, 0),
                (3, 'R', "F", 0, 0),
                (3, 'D', "F", 0, 0),
                (4, 'C', "F", 0, 0),
                (4, 'C', "WMA", 1592, 8),
                (5, 'D', "F", 0, 0),
                (5, 'C', "F", 0, 0),
                (5, 'C', "WM", 1592, 0),
                (6, 'C', "R", 16, 8),
                (6, 'C', "RP", 0, 1),
                (7, 'C', "WM", 1600, 16),
                (8, 'C', "WM", 2047, 8),
            ],
            6,
        );
        let requests = |count, bytes| Requests { count, bytes };
        assert_eq!(during.data, requests(1, 4096));
        assert_eq!(during.journal, requests(2, 16384));
        assert_eq!((during.metadata, during.read), (requests(0, 0), requests(1, 4096)));
        assert_eq!((during.flushes, during.fua), (2, 1));
        // Both begin outside of the journal, which ends before 1600 and begins again at 2048.
        assert_eq!(after, Moved { metadata: requests(2, 12288), ..Moved::default() });
    }

    #[test]
    fn an_extent_holds_its_first_sector_and_not_the_one_after_its_last() {
        let extents = Extents::of(vec![(20, 30), (5, 10)]);
        let found: Vec<_> = (0..35).filter(|sector| extents.contain(*sector)).collect();
        assert_eq!(found, (5..10).chain(20..30).collect::<Vec<_>>());
        assert!(!Extents::default().contain(0));
    }

    #[test]
    fn fast_commits_are_counted_from_their_line() {
        assert_eq!(fast_commits("fc stats:\n17 commits\n2 ineligible\n80 numblks\n"), Some(17));
        assert_eq!(fast_commits("nothing"), None);
    }
}
