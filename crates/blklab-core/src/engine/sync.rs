//! fsync: writes dirty pages, waits for them, flushes the disk's cache.
//!
//! Follows `file_write_and_wait_range()` and `blkdev_issue_flush()`; with a journal `ext4_sync_file()`. Without one
//! fsync equals fdatasync.

use super::journal::{self, Forced, Forcing};
use super::page_io::{Asleep, PageWork, Submitter, Wait};
use super::wakeups::Wakeups;
use super::world::World;
use crate::block::{BioStream, Manner};
use crate::device::Device;
use crate::owner::{Actor, Owner};
use crate::pagecache::{FileId, PageCache, SyncCursor, SyncStep};
use crate::request::{Bio, Op};
use crate::units::{Nanos, Sector};
use blklab_base::event_queue::Turn;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
enum Phase {
    #[default]
    Idle,
    /// The times of file number `n` of the files to sync go to the journal (`sync_lazytime`).
    Times(usize),
    /// Writing the pages of file number `n`.
    File(usize),
    /// Committing file number `n`.
    Committing(usize),
    /// Its process has work to do before the call returns.
    Returning(usize),
    /// This many flushes have not completed. `next`: the first device that it has not asked for one. With a journal
    /// they are those of file number `of`.
    Flushing { next: u16, left: u16, of: usize },
}

/// The progress of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncProgress {
    /// The process sleeps; call again when it is woken.
    Asleep,
    /// Done.
    Done,
}

/// The pages that a sync writes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dirty {
    /// There are none.
    None,
    /// All of the files: fsync and fdatasync.
    All,
    /// Those of these bytes, which a durable write has written (`generic_write_sync`).
    Bytes {
        /// The first one.
        offset: u64,
        /// Their number.
        bytes: u64,
    },
}

/// A process's fsync.
#[derive(Debug, Default)]
pub struct Syncing {
    phase: Phase,
    begun: Nanos,
    /// fsync, not fdatasync.
    with_times: bool,
    /// After what it waits for the call has other files to sync.
    goes_on: bool,
    cursor: Option<SyncCursor>,
    pages: PageWork,
    /// A flush for which there was no request yet.
    flush: Option<BioStream>,
    /// That in which its process was woken last.
    turn: Option<Turn>,
    forcing: Forcing,
}

impl Syncing {
    /// Starts a new fsync at `now`, or another call that writes what is dirty.
    pub fn begin(&mut self, now: Nanos) {
        debug_assert_eq!(self.phase, Phase::Idle);
        self.phase = Phase::Times(0);
        self.begun = now;
        self.with_times = false;
    }

    /// The same; `with_times`: fsync, not fdatasync.
    pub fn begin_sync(&mut self, now: Nanos, with_times: bool) {
        self.begin(now);
        self.with_times = with_times;
    }

    /// When the latest one started.
    pub fn begun(&self) -> Nanos {
        self.begun
    }

    /// One is running.
    pub fn is_running(&self) -> bool {
        self.phase != Phase::Idle
    }

    /// The call has not synced all yet; after that its process only works.
    pub fn needs_lock(&self) -> bool {
        !matches!(self.phase, Phase::Idle | Phase::Returning(_))
    }

    /// A disk has completed a flush: wakes the actor if it was the last one that the call waits for now.
    pub fn flush_ended(&mut self, actor: Actor, wakeups: &mut Wakeups, now: Nanos) {
        let Phase::Flushing { left, .. } = &mut self.phase else { unreachable!("a flush ends once") };
        *left -= 1;
        if *left == 0 && self.flush.is_none() {
            wakeups.wake_in_turn(actor, now);
        }
    }

    /// Continues to make these pages of `files` durable.
    pub fn run(
        &mut self,
        files: &[u32],
        dirty: Dirty,
        submitter: Submitter,
        world: &mut World,
    ) -> SyncProgress {
        self.turn = world.wakeups.take_turn(submitter.actor);
        loop {
            let progress = match self.phase {
                Phase::Idle => return SyncProgress::Done,
                Phase::Times(at) => self.take_times(files, at, submitter, world),
                Phase::File(at) if at >= files.len() => {
                    self.phase = Phase::Flushing { next: 0, left: 0, of: 0 };
                    SyncProgress::Done
                }
                Phase::File(at) => self.write_file(FileId(files[at]), at, dirty, submitter, world),
                Phase::Committing(at) => self.commit(FileId(files[at]), at, submitter, world),
                Phase::Returning(at) => {
                    self.phase = if world.journal.is_some() { Phase::Times(at + 1) } else { Phase::Idle };
                    SyncProgress::Done
                }
                Phase::Flushing { of, .. } => {
                    let files = if world.journal.is_some() { &files[of..=of] } else { files };
                    self.flush(files, submitter, world)
                }
            };
            if progress == SyncProgress::Asleep {
                return progress;
            }
        }
    }

    /// The times of a file go to the running transaction.
    fn take_times(
        &mut self,
        files: &[u32],
        at: usize,
        submitter: Submitter,
        world: &mut World,
    ) -> SyncProgress {
        self.goes_on = false;
        self.phase = Phase::File(at);
        if world.journal.is_some() {
            let Some(&file) = files.get(at) else {
                self.phase = Phase::Idle;
                return SyncProgress::Done;
            };
            self.goes_on = at + 1 < files.len();
            if self.with_times && !world.syncs_times(FileId(file), submitter.actor) {
                self.phase = Phase::Times(at);
                return SyncProgress::Asleep;
            }
        }
        SyncProgress::Done
    }

    /// Writes the pages of a file.
    fn write_file(
        &mut self,
        file: FileId,
        at: usize,
        dirty: Dirty,
        submitter: Submitter,
        world: &mut World,
    ) -> SyncProgress {
        let start = |cache: &PageCache| match dirty {
            Dirty::None => None,
            Dirty::All => Some(cache.sync_start(file)),
            Dirty::Bytes { offset, bytes } => Some(cache.sync_start_range(file, offset, bytes)),
        };
        if self.cursor.is_none() {
            self.cursor = start(&world.cache);
        }
        if let Some(cursor) = &mut self.cursor {
            if write_pages(cursor, &mut self.pages, file, submitter, world) == SyncProgress::Asleep {
                return SyncProgress::Asleep;
            }
            self.cursor = None;
        }
        self.phase = match world.journal.is_some() {
            true => Phase::Committing(at),
            // The other files have no pages either.
            false if dirty == Dirty::None => Phase::File(usize::MAX),
            false => Phase::File(at + 1),
        };
        SyncProgress::Done
    }

    /// Commits a file's times, or flushes the disk's cache.
    fn commit(&mut self, file: FileId, at: usize, submitter: Submitter, world: &mut World) -> SyncProgress {
        match journal::force(&mut self.forcing, file, self.with_times, submitter, world) {
            Forced::Asleep => return SyncProgress::Asleep,
            Forced::Flush => {
                self.phase = Phase::Flushing { next: 0, left: 0, of: at };
                return SyncProgress::Done;
            }
            Forced::Done => {}
        }
        let ends_with_flush = world.devices.iter().any(|device| device.block.has_volatile_write_cache());
        self.work_and_return(at, ends_with_flush, submitter, world)
    }

    /// The call has what it waited for. If it ends now, its process works when it runs, after what the ends of other
    /// I/Os on its CPU cost.
    fn work_and_return(
        &mut self,
        at: usize,
        works: bool,
        submitter: Submitter,
        world: &mut World,
    ) -> SyncProgress {
        self.phase = Phase::Returning(at);
        if !works || self.goes_on || submitter.actor.is_kernels() {
            return SyncProgress::Done;
        }
        let now = world.now();
        let until = world.cpus.work_woken(submitter.cpu, now, world.host.complete);
        if until > now {
            world.wakeups.sleep_in_turn(submitter.actor, until, self.turn);
            return SyncProgress::Asleep;
        }
        SyncProgress::Done
    }

    /// Flushes each device that has one of `files` and a volatile write cache.
    fn flush(&mut self, files: &[u32], submitter: Submitter, world: &mut World) -> SyncProgress {
        let Phase::Flushing { next, left, of } = &mut self.phase else { return SyncProgress::Asleep };
        let has_slept = *next == u16::MAX;
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
        let of = *of;
        self.work_and_return(of, has_slept, submitter, world)
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
        thread: submitter.actor.thread(),
        hw_queue: device.hw_queue(submitter.cpu),
        owner: match submitter.actor {
            Actor::Syncer(number) => Owner::SyncersFlush(number).pack(),
            _ => Owner::Flush(submitter.process()).pack(),
        },
    }
}

/// The sync waits before it has found all pages.
fn is_in_between(cursor: &SyncCursor, step: SyncStep) -> bool {
    cursor.locked().is_some() || matches!(step, SyncStep::Locked(_))
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
        let room = pages.room(world);
        let had_lock = cursor.locked();
        let step = world.cache.sync_next(cursor, room, world.now());
        if let (Some(page), SyncStep::Write(range)) = (had_lock, step)
            && range.first == page
        {
            pages.keep_lock(file, page, world);
        }
        if let Some(page) = had_lock.filter(|&page| !world.cache.is_locked(file, page)) {
            world.page_unlocked(file, page);
        }
        world.pass_on_lock(submitter.actor);
        match step {
            SyncStep::Write(range) => {
                pages.found(range, world);
                has_unplugged = false;
            }
            // It has found all: it waits for pages that it has not locked.
            _ if !is_in_between(cursor, step) && pages.ends() => has_unplugged = false,
            // The plug is flushed when all is written, or before a sleep meanwhile. Then it asks again.
            _ if !has_unplugged => {
                match is_in_between(cursor, step) {
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
