//! fsync: writes dirty pages, waits for them, flushes the disk's cache.
//!
//! Follows `file_write_and_wait_range()` and `blkdev_issue_flush()`. Metadata are not modelled: no
//! journal is written, and fsync equals fdatasync.

use super::page_io::{Asleep, PageWork, Submitter, Wait};
use super::world::World;
use crate::block::{BioStream, Manner};
use crate::device::Device;
use crate::owner::Owner;
use crate::pagecache::{FileId, SyncCursor, SyncStep};
use crate::request::{Bio, Op};
use crate::units::{Nanos, Sector};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
enum Phase {
    #[default]
    Idle,
    /// Working on file number `n` of the files to sync.
    File(usize),
    /// This many flushes have not completed. `next`: the first device that it has not asked for one.
    Flushing { next: u16, left: u16 },
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
    /// A flush for which there was no request yet.
    flush: Option<BioStream>,
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
        let Phase::Flushing { left, .. } = &mut self.phase else { unreachable!("a flush ends once") };
        *left -= 1;
        *left == 0 && self.flush.is_none()
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
                self.phase = Phase::Flushing { next: 0, left: 0 };
                break;
            }
            let file = FileId(files[index]);
            let cursor = self.cursor.get_or_insert_with(|| world.cache.sync_start(file));
            if write_pages(cursor, &mut self.pages, file, submitter, world) == SyncProgress::Asleep {
                return SyncProgress::Asleep;
            }
            self.cursor = None;
            self.phase = Phase::File(index + 1);
        }
        self.flush(files, submitter, world)
    }

    /// Flushes each device that has one of `files` and a volatile write cache.
    fn flush(&mut self, files: &[u32], submitter: Submitter, world: &mut World) -> SyncProgress {
        let Phase::Flushing { next, left } = &mut self.phase else { return SyncProgress::Asleep };
        let now = world.now();
        let World { devices, layout, .. } = world;
        for (id, device) in devices.iter_mut().skip(usize::from(*next)) {
            if self.flush.is_none() {
                let has_one = files.iter().any(|&file| layout.file(FileId(file)).is_on(id));
                if !has_one || !device.block.has_volatile_write_cache() {
                    continue;
                }
                *left += 1;
                self.flush = device.begin(now, flush(device, &submitter), Manner::PLUGGED);
            }
            if let Some(stream) = &mut self.flush
                && !device.hand_over(now, stream, submitter.actor)
            {
                *next = id.0;
                return SyncProgress::Asleep;
            }
            self.flush = None;
            *next = id.0 + 1;
        }
        *next = u16::MAX;
        if *left > 0 {
            return SyncProgress::Asleep;
        }
        self.phase = Phase::Idle;
        SyncProgress::Done
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

/// A flush of the device.
fn flush(device: &Device, submitter: &Submitter) -> Bio {
    Bio {
        op: Op::Flush,
        sector: Sector(0),
        sectors: 0,
        sync: true,
        fua: false,
        idle: false,
        background: false,
        process: submitter.process(),
        prio: submitter.prio,
        cpu: submitter.cpu,
        hw_queue: device.hw_queue(submitter.cpu),
        owner: Owner::Flush(submitter.process()).pack(),
    }
}

/// Submits everything that `cursor` finds, and waits for the events that it names.
fn write_pages(
    cursor: &mut SyncCursor,
    pages: &mut PageWork,
    file: FileId,
    submitter: Submitter,
    world: &mut World,
) -> SyncProgress {
    let mut has_unplugged = false;
    loop {
        match pages.hand_over_next(world, submitter) {
            Err(Asleep) => return SyncProgress::Asleep,
            Ok(true) => continue,
            Ok(false) => {}
        }
        let most = world.pages_at_once(pages.end());
        let had_lock = cursor.locked();
        let step = world.cache.sync_next(cursor, most, world.now());
        if let Some(page) = had_lock.filter(|&page| !world.cache.is_locked(file, page)) {
            world.page_unlocked(file, page);
        }
        world.pass_on_lock(submitter.actor);
        match step {
            SyncStep::Write(range) => {
                pages.begin(true);
                pages.ranges.push(range);
                has_unplugged = false;
            }
            // The plug is flushed when all is written, or before a sleep meanwhile. Then it asks again.
            _ if !has_unplugged => {
                match cursor.locked().is_some() || matches!(step, SyncStep::Locked(_)) {
                    true => world.unplug_asleep(),
                    false => world.unplug(),
                }
                world.pass_on_request();
                has_unplugged = true;
            }
            SyncStep::Wait(page) => {
                world.sleep_until(submitter.actor, Wait::Page(file, page));
                return SyncProgress::Asleep;
            }
            SyncStep::Locked(page) => {
                world.sleep_until(submitter.actor, Wait::Lock(file, page));
                return SyncProgress::Asleep;
            }
            SyncStep::Done => return SyncProgress::Done,
        }
    }
}
