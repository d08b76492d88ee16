//! fsync: writes dirty pages, waits for them, flushes the disk's cache.
//!
//! Follows `file_write_and_wait_range()` and `blkdev_issue_flush()`. Metadata are not modelled: no
//! journal is written, and fsync equals fdatasync.

use super::page_io::{Asleep, PageWork, Submitter, Wait};
use super::world::World;
use crate::block::{Manner, Submitted};
use crate::device::Device;
use crate::owner::Owner;
use crate::pagecache::{FileId, SyncCursor, SyncStep};
use crate::request::{Bio, Op};
use crate::units::{Nanos, Sector};

/// Ranges that are marked as under writeback before they are submitted: twice a plug's capacity, so
/// that neighbours meet in the plug.
const RANGES_AT_ONCE: usize = 64;

/// Pages in one range, at most: what one bio holds.
const RANGE_PAGES: u32 = 256;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
enum Phase {
    #[default]
    Idle,
    /// Working on file number `n` of the files to sync.
    File(usize),
    /// This many flushes have not completed.
    Flushing(u16),
    /// All flushes have completed.
    Flushed,
}

/// The progress of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncProgress {
    /// The process sleeps; call again when it is woken.
    Asleep,
    /// Done.
    Done,
}

/// A process's fsync.
#[derive(Debug, Default)]
pub struct Syncing {
    phase: Phase,
    begun: Nanos,
    cursor: Option<SyncCursor>,
    pages: PageWork,
}

impl Syncing {
    /// Starts a new fsync at `now`.
    pub fn begin(&mut self, now: Nanos) {
        debug_assert_eq!(self.phase, Phase::Idle);
        self.phase = Phase::File(0);
        self.begun = now;
    }

    /// When the latest one started.
    pub fn begun(&self) -> Nanos {
        self.begun
    }

    /// One is running.
    pub fn is_running(&self) -> bool {
        self.phase != Phase::Idle
    }

    /// A disk has completed a flush; true if it was the last one of this fsync.
    pub fn flush_ended(&mut self) -> bool {
        let Phase::Flushing(left) = self.phase else { unreachable!("a flush ends once") };
        self.phase = if left == 1 { Phase::Flushed } else { Phase::Flushing(left - 1) };
        self.phase == Phase::Flushed
    }

    /// Continues to make `files` durable; `buffered`: they may have dirty pages.
    pub fn run(
        &mut self,
        files: &[u32],
        buffered: bool,
        submitter: Submitter,
        world: &mut World,
    ) -> SyncProgress {
        while let Phase::File(index) = self.phase {
            if !buffered || index == files.len() {
                return self.flush(files, submitter, world);
            }
            let file = FileId(files[index]);
            let cursor = self.cursor.get_or_insert_with(|| world.cache.sync_start(file));
            if write_pages(cursor, &mut self.pages, file, submitter, world) == SyncProgress::Asleep {
                return SyncProgress::Asleep;
            }
            self.cursor = None;
            self.phase = Phase::File(index + 1);
        }
        if self.phase == Phase::Flushed {
            self.phase = Phase::Idle;
            return SyncProgress::Done;
        }
        SyncProgress::Asleep
    }

    /// Flushes each device that has one of `files` and a volatile write cache.
    fn flush(&mut self, files: &[u32], submitter: Submitter, world: &mut World) -> SyncProgress {
        let now = world.now();
        let World { devices, layout, .. } = world;
        let mut flushes = 0;
        for (id, device) in devices.iter_mut() {
            let has_one = files.iter().any(|&file| layout.file(FileId(file)).is_on(id));
            if has_one && device.block.has_volatile_write_cache() {
                flush(device, &submitter, now);
                flushes += 1;
            }
        }
        if flushes == 0 {
            self.phase = Phase::Idle;
            return SyncProgress::Done;
        }
        self.phase = Phase::Flushing(flushes);
        SyncProgress::Asleep
    }

    /// Writes the dirty pages of these bytes and waits for them (`filemap_write_and_wait_range`).
    pub fn write_range(
        &mut self,
        file: FileId,
        offset: u64,
        bytes: u64,
        submitter: Submitter,
        world: &mut World,
    ) -> SyncProgress {
        let start = || world.cache.sync_start_range(file, offset, bytes);
        let cursor = self.cursor.get_or_insert_with(start);
        let progress = write_pages(cursor, &mut self.pages, file, submitter, world);
        self.end_if(progress)
    }

    /// Submits the dirty pages of one file, without waiting for them (`POSIX_FADV_DONTNEED`).
    pub fn write_out(&mut self, file: FileId, submitter: Submitter, world: &mut World) -> SyncProgress {
        let cursor = self.cursor.get_or_insert_with(|| world.cache.write_out_start(file));
        let submitter = Submitter { waits: false, ..submitter };
        let progress = write_pages(cursor, &mut self.pages, file, submitter, world);
        self.end_if(progress)
    }

    fn end_if(&mut self, progress: SyncProgress) -> SyncProgress {
        if progress == SyncProgress::Done {
            self.cursor = None;
            self.phase = Phase::Idle;
        }
        progress
    }
}

/// Submits a flush to the block layer.
fn flush(device: &mut Device, submitter: &Submitter, now: Nanos) {
    let flush = Bio {
        op: Op::Flush,
        sector: Sector(0),
        sectors: 0,
        sync: true,
        fua: false,
        idle: false,
        process: submitter.process(),
        prio: submitter.prio,
        cpu: submitter.cpu,
        hw_queue: device.hw_queue(submitter.cpu),
        owner: Owner::Flush(submitter.process()).pack(),
    };
    let taken = device.submit(now, &flush, Manner::PLUGGED);
    debug_assert_eq!(taken, Submitted::Taken, "a flush needs no request of its own");
}

/// Submits everything that `cursor` finds, and waits for the events that it names.
fn write_pages(
    cursor: &mut SyncCursor,
    pages: &mut PageWork,
    file: FileId,
    submitter: Submitter,
    world: &mut World,
) -> SyncProgress {
    loop {
        if pages.hand_over(world, submitter) == Err(Asleep) {
            return SyncProgress::Asleep;
        }
        pages.begin(true);
        while pages.ranges.len() < RANGES_AT_ONCE {
            match world.cache.sync_next(cursor, RANGE_PAGES, world.now()) {
                SyncStep::Write(range) => pages.ranges.push(range),
                _ if !pages.ranges.is_empty() => break,
                SyncStep::Wait(page) if world.cache.is_writeback(file, page) => {
                    world.sleep_until(submitter.actor, Wait::Pages(file));
                    return SyncProgress::Asleep;
                }
                SyncStep::Wait(_) => {}
                SyncStep::Done => return SyncProgress::Done,
            }
        }
    }
}
