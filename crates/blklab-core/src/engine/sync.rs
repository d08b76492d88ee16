//! fsync: write what is dirty, wait for it, flush the disk's cache.
//!
//! Follows `file_write_and_wait_range()` and `blkdev_issue_flush()`. Metadata are not
//! modelled: no journal is written, and fsync equals fdatasync.

use super::owner::Owner;
use super::page_io::{Asleep, PageWork, Submitter, Wait};
use super::world::World;
use crate::block::{Manner, Submitted};
use crate::device::Device;
use crate::pagecache::{FileId, SyncCursor, SyncStep};
use crate::request::{Bio, Op};
use crate::units::{Nanos, Sector};

/// Ranges that are put under write-back before they are handed over: twice a plug's
/// worth, so that neighbours meet in the plug.
const RANGES_AT_ONCE: usize = 64;

/// Pages in one range, at most: what one bio holds.
const RANGE_PAGES: u32 = 256;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
enum Phase {
    #[default]
    Idle,
    /// Working on file number `n` of those to be synced.
    File(usize),
    /// So many flushes are with block layers.
    Flushing(u16),
    /// All have ended.
    Flushed,
}

/// How far a call got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncProgress {
    /// The process sleeps; call again when it is woken.
    Asleep,
    /// Done.
    Done,
}

/// A process's fsync under way.
#[derive(Debug, Default)]
pub struct Syncing {
    phase: Phase,
    begun: Nanos,
    cursor: Option<SyncCursor>,
    pages: PageWork,
}

impl Syncing {
    /// A new fsync at `now`.
    pub fn begin(&mut self, now: Nanos) {
        debug_assert_eq!(self.phase, Phase::Idle);
        self.phase = Phase::File(0);
        self.begun = now;
    }

    /// When the latest one began.
    pub fn begun(&self) -> Nanos {
        self.begun
    }

    /// One is under way.
    pub fn is_running(&self) -> bool {
        self.phase != Phase::Idle
    }

    /// A disk has ended a flush; true if it was the last that this one waits for.
    pub fn flush_ended(&mut self) -> bool {
        let Phase::Flushing(left) = self.phase else { unreachable!("a flush ends once") };
        self.phase = if left == 1 { Phase::Flushed } else { Phase::Flushing(left - 1) };
        self.phase == Phase::Flushed
    }

    /// Go on with making `files` durable; `buffered`: they may have dirty pages.
    pub fn run(&mut self, files: &[u32], buffered: bool, who: Submitter, world: &mut World) -> SyncProgress {
        while let Phase::File(index) = self.phase {
            if !buffered || index == files.len() {
                return self.flush(files, who, world);
            }
            let file = FileId(files[index]);
            let cursor = self.cursor.get_or_insert_with(|| world.cache.sync_start(file));
            if write_pages(cursor, &mut self.pages, file, who, world) == SyncProgress::Asleep {
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

    /// Flush each device that has one of `files` and a volatile write cache.
    fn flush(&mut self, files: &[u32], who: Submitter, world: &mut World) -> SyncProgress {
        let now = world.now();
        let World { devices, layout, .. } = world;
        let mut flushes = 0;
        for (id, device) in devices.iter_mut() {
            let has_one = files.iter().any(|&file| layout.file(FileId(file)).device == id);
            if has_one && device.block.has_volatile_write_cache() {
                flush(device, &who, now);
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

    /// Write the dirty pages of these bytes and wait for them
    /// (`filemap_write_and_wait_range`).
    pub fn write_range(
        &mut self,
        file: FileId,
        offset: u64,
        bytes: u64,
        who: Submitter,
        world: &mut World,
    ) -> SyncProgress {
        let start = || world.cache.sync_start_range(file, offset, bytes);
        let cursor = self.cursor.get_or_insert_with(start);
        let progress = write_pages(cursor, &mut self.pages, file, who, world);
        self.end_if(progress)
    }

    /// Hand the dirty pages of one file to the disk, without waiting for them
    /// (`POSIX_FADV_DONTNEED`).
    pub fn write_out(&mut self, file: FileId, who: Submitter, world: &mut World) -> SyncProgress {
        let cursor = self.cursor.get_or_insert_with(|| world.cache.write_out_start(file));
        let who = Submitter { waits: false, ..who };
        let progress = write_pages(cursor, &mut self.pages, file, who, world);
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

/// Hand a flush to the block layer.
fn flush(device: &mut Device, who: &Submitter, now: Nanos) {
    let flush = Bio {
        op: Op::Flush,
        sector: Sector(0),
        sectors: 0,
        sync: true,
        fua: false,
        idle: false,
        process: who.process(),
        prio: who.prio,
        cpu: who.cpu,
        hw_queue: device.hw_queue(who.cpu),
        owner: Owner::Flush(who.process()).pack(),
    };
    let taken = device.submit(now, &flush, Manner::PLUGGED);
    debug_assert_eq!(taken, Submitted::Taken, "a flush needs no request of its own");
}

/// Everything that `cursor` finds goes to the disk, and what it says is waited for.
fn write_pages(
    cursor: &mut SyncCursor,
    pages: &mut PageWork,
    file: FileId,
    who: Submitter,
    world: &mut World,
) -> SyncProgress {
    loop {
        if pages.hand_over(world, who) == Err(Asleep) {
            return SyncProgress::Asleep;
        }
        pages.begin(true);
        while pages.ranges.len() < RANGES_AT_ONCE {
            match world.cache.sync_next(cursor, RANGE_PAGES, world.now()) {
                SyncStep::Write(range) => pages.ranges.push(range),
                _ if !pages.ranges.is_empty() => break,
                SyncStep::Wait(page) if world.cache.is_writeback(file, page) => {
                    world.sleep_until(who.actor, Wait::Pages(file));
                    return SyncProgress::Asleep;
                }
                SyncStep::Wait(_) => {}
                SyncStep::Done => return SyncProgress::Done,
            }
        }
    }
}
