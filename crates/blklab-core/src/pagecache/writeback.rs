//! The flusher of a backing device: writeback of dirty pages without a sync.
//!
//! After Linux 7.3's `fs/fs-writeback.c` and `writeback_iter`. Files with dirty pages are in a
//! queue, in the order in which they became dirty. The flusher runs *in the background* over all
//! files, while more pages than the background threshold are dirty, or more than the device's share of
//! it; *periodically* over files that
//! have been dirty for longer than `dirty_expire_centisecs`; and over everything when memory is
//! short. It gives every file a slice (`writeback_chunk_size`), continues in a file where it
//! stopped, and checks its reason to run after each batch of files or after 100 ms. A file counts
//! as dirty since its first page became dirty after the flusher's last visit; fsync does not change
//! that, as in the kernel.

use std::collections::VecDeque;

use super::batch::{Batch, Next, Room};
use super::search::Tag;
use super::{BackingId, FileId, MemoryConfig, PageCache, PageRange};
use crate::ticks::{BEGINS, Ticks};
use crate::units::Nanos;

/// The flusher runs for a tenth of a second before it checks the thresholds again.
const BATCHES_PER_SECOND: u64 = 10;

#[derive(Clone, Copy, Debug)]
struct Inode {
    /// In `dirty`, `io` or `more_io`, or being written.
    queued: bool,
    /// In ticks.
    dirtied_when: u64,
    /// Where the next visit starts (`writeback_index`).
    next_page: u64,
}

/// Why the flusher runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reason {
    /// Memory is short (`WB_start_all`).
    Everything,
    /// Files that have been dirty for too long (`for_kupdate`).
    Periodic,
    /// More is dirty than the background threshold (`for_background`).
    Background,
}

/// One `wb_writeback`.
#[derive(Clone, Copy, Debug)]
struct Work {
    reason: Reason,
    /// Pages still to be written.
    pages: u64,
    /// Files dirtied after this tick are left for later; `None` if none is old enough.
    dirtied_before: Option<u64>,
    /// The same when the batch began: such a file is not visited again in this work.
    batch_before: Option<u64>,
    /// In ticks.
    batch_started: u64,
    /// Pages or files were cleaned in this batch.
    progress: bool,
    /// The queue of dirty files was checked.
    queued: bool,
}

/// The file that is being written.
#[derive(Debug)]
struct Visit {
    file: FileId,
    pages: Batch,
    /// The page after the latest one.
    next_page: u64,
    /// Pages left of its slice.
    left: u64,
    /// All is found; the visit ends when it has been handed over, for which the flusher may have to sleep.
    is_over: bool,
}

#[derive(Debug)]
pub(super) struct Flusher {
    ticks: Ticks,
    /// In ticks, as `interval`.
    expire: u64,
    interval: u64,
    /// By file; those of other devices are never queued.
    inodes: Vec<Inode>,
    /// Dirty files, oldest first (`b_dirty`).
    dirty: VecDeque<FileId>,
    /// Files that are next (`b_io`).
    io: VecDeque<FileId>,
    /// Files that have used up their slice (`b_more_io`).
    more_io: VecDeque<FileId>,
    work: Option<Work>,
    visit: Option<Visit>,
    /// It waits for the lock of this page.
    waits_for: Option<(FileId, u64)>,
    /// The next reason to check in this run, in the kernel's order.
    next_reason: Option<Reason>,
    everything: bool,
    /// In ticks.
    last_periodic: u64,
    /// When it runs next; never if there is nothing to check.
    due: Nanos,
}

impl Flusher {
    pub fn new(config: &MemoryConfig) -> Flusher {
        let ticks = config.ticks;
        Flusher {
            ticks,
            expire: ticks.span(config.dirty_expire),
            interval: ticks.span(config.dirty_writeback),
            inodes: Vec::new(),
            dirty: VecDeque::new(),
            io: VecDeque::new(),
            more_io: VecDeque::new(),
            work: None,
            visit: None,
            waits_for: None,
            next_reason: Some(Reason::Everything),
            everything: false,
            last_periodic: 0,
            due: Nanos::NEVER,
        }
    }

    pub fn add_file(&mut self) {
        self.inodes.push(Inode { queued: false, dirtied_when: 0, next_page: 0 });
    }

    /// A clean page of the file has become dirty (`__mark_inode_dirty`).
    #[inline]
    pub fn file_dirtied(&mut self, file: FileId, now: Nanos) {
        if !self.inodes[file.index()].queued {
            self.queue_dirty(file, now);
        }
    }

    #[cold]
    fn queue_dirty(&mut self, file: FileId, now: Nanos) {
        let tick = self.tick(now);
        let inode = &mut self.inodes[file.index()];
        inode.queued = true;
        inode.dirtied_when = tick;
        self.dirty.push_back(file);
        if self.interval > 0 {
            self.due = self.due.min(self.ticks.timer(now, self.interval));
        }
    }

    /// Runs now.
    pub fn wake(&mut self, now: Nanos) {
        self.due = self.due.min(now);
    }

    /// Memory is short: runs at once and writes everything.
    pub fn write_everything(&mut self) {
        self.everything = true;
        self.due = Nanos::ZERO;
    }

    fn has_dirty_files(&self) -> bool {
        !(self.dirty.is_empty() && self.io.is_empty() && self.more_io.is_empty())
    }

    /// The kernel's time in ticks.
    fn tick(&self, now: Nanos) -> u64 {
        self.ticks.at(now + BEGINS)
    }

    /// The work at that tick is for files dirtied up to this one; `None` if none is old enough.
    fn dirtied_before(&self, reason: Reason, tick: u64) -> Option<u64> {
        match reason {
            Reason::Periodic => tick.checked_sub(self.expire),
            Reason::Everything | Reason::Background => Some(tick),
        }
    }

    /// `queue_io`: next are the files that used up a slice, then all that are old enough.
    fn queue_io(&mut self, dirtied_before: Option<u64>) {
        self.io.append(&mut self.more_io);
        let Some(before) = dirtied_before else { return };
        while let Some(&file) = self.dirty.front() {
            if self.inodes[file.index()].dirtied_when > before {
                break;
            }
            self.dirty.pop_front();
            self.io.push_back(file);
        }
    }

    /// `redirty_tail`: moves the file to the young end of the queue, and makes it that young if
    /// needed.
    fn redirty_tail(&mut self, file: FileId, now: Nanos) {
        let when = self.inodes[file.index()].dirtied_when;
        if self.dirty.back().is_some_and(|youngest| when < self.inodes[youngest.index()].dirtied_when) {
            self.inodes[file.index()].dirtied_when = self.tick(now);
        }
        self.dirty.push_back(file);
    }
}

/// A step of the flusher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteBack {
    /// Pages that are under writeback now: the caller submits them and reports
    /// [`write_done`](PageCache::write_done).
    Range(PageRange),
    /// No more of this file, or of its slice: the next step begins when all of it has been submitted.
    EndOfFile,
    /// The flusher sleeps until [`flusher_due`](PageCache::flusher_due), or waits for a page
    /// ([`flusher_waits_for`](PageCache::flusher_waits_for)).
    Nothing,
}

impl PageCache {
    /// When the device's flusher must run: then call [`write_back`](Self::write_back) until it
    /// has nothing to write (later if the disk's queue is full). Any read or write may make this time
    /// earlier; a time in the past means now.
    #[inline]
    pub fn flusher_due(&self, backing: BackingId) -> Nanos {
        self.backings[backing.index()].flusher.due
    }

    /// The next step of the flusher, which writes at most so many pages at once.
    pub fn write_back(&mut self, backing: BackingId, now: Nanos, max_pages: impl Into<Room>) -> WriteBack {
        let at = backing.index();
        let room = max_pages.into();
        self.backings[at].flusher.waits_for = None;
        loop {
            match self.backings[at].flusher.visit.as_ref().map(|visit| visit.is_over) {
                Some(true) => self.end_visit(at, now),
                Some(false) => match self.visit_next(at, room) {
                    Next::Write(range) => return WriteBack::Range(range),
                    Next::Wait(_) | Next::Locked(_) => return WriteBack::Nothing,
                    Next::End => return WriteBack::EndOfFile,
                },
                None => {}
            }
            if let Some(work) = self.backings[at].flusher.work {
                self.next_file(at, work, now);
            } else if !self.next_work(at, now) {
                let flusher = &mut self.backings[at].flusher;
                let sleeps = flusher.has_dirty_files() && flusher.interval > 0;
                flusher.due = if sleeps { flusher.ticks.timer(now, flusher.interval) } else { Nanos::NEVER };
                return WriteBack::Nothing;
            }
        }
    }

    /// The flusher's current work is not urgent.
    pub fn writes_in_background(&self, backing: BackingId) -> bool {
        let work = self.backings[backing.index()].flusher.work;
        work.is_some_and(|work| work.reason != Reason::Everything)
    }

    /// The flusher sleeps until this page is no longer locked.
    pub fn flusher_waits_for(&self, backing: BackingId) -> Option<(FileId, u64)> {
        self.backings[backing.index()].flusher.waits_for
    }

    /// The next range of the current file; none at the end of the slice or of the file.
    fn visit_next(&mut self, at: usize, room: Room) -> Next {
        let flusher = &mut self.backings[at].flusher;
        let Some(visit) = flusher.visit.as_mut() else { return Next::End };
        let inode = &mut flusher.inodes[visit.file.index()];
        if visit.left == 0 {
            inode.next_page = visit.next_page;
            visit.is_over = true;
            return Next::End;
        }
        let next = visit.pages.next_to_write(&self.pages, &mut self.held, room.min(visit.left), false);
        let Next::Write(range) = next else {
            match next {
                Next::Locked(page) => flusher.waits_for = Some((visit.file, page)),
                // After the end of the file the next visit starts at its beginning.
                _ => (inode.next_page, visit.is_over) = (0, next == Next::End),
            }
            return next;
        };
        visit.left -= u64::from(range.pages);
        visit.next_page = range.end();
        if let Some(work) = &mut flusher.work {
            work.pages = work.pages.saturating_sub(u64::from(range.pages));
            work.progress = true;
        }
        self.start_writeback(at, range);
        next
    }

    /// `requeue_inode`, and whether the batch continues.
    fn end_visit(&mut self, at: usize, now: Nanos) {
        let backing = &mut self.backings[at];
        let flusher = &mut backing.flusher;
        let (Some(mut visit), Some(mut work)) = (flusher.visit.take(), flusher.work) else {
            unreachable!("a visit is part of a work");
        };
        backing.throttle.writing_ends(now);
        visit.pages.release(&mut self.held);
        let file = visit.file;
        let too_young =
            work.batch_before.is_none_or(|before| flusher.inodes[file.index()].dirtied_when > before);
        if self.pages.dirty_of(file) == 0 {
            flusher.inodes[file.index()].queued = false;
            work.progress = true;
        } else if visit.left == 0 && !too_young {
            flusher.more_io.push_back(file);
        } else {
            flusher.redirty_tail(file, now);
        }
        flusher.work = Some(work);
    }

    /// Starts the next file of the current work, or ends the work (`wb_writeback`).
    fn next_file(&mut self, at: usize, mut work: Work, now: Nanos) {
        let flusher = &self.backings[at].flusher;
        let tick = flusher.tick(now);
        let batch_over = flusher.io.is_empty()
            || work.pages == 0
            || (work.progress && tick > work.batch_started + flusher.ticks.hz() / BATCHES_PER_SECOND);
        if batch_over {
            let satisfied = work.pages == 0
                || (work.reason == Reason::Background && !self.over_background(at, now))
                || (work.queued && !work.progress);
            let flusher = &mut self.backings[at].flusher;
            if satisfied {
                flusher.work = None;
                return;
            }
            if flusher.io.is_empty() {
                if work.reason != Reason::Everything {
                    work.dirtied_before = flusher.dirtied_before(work.reason, tick);
                }
                flusher.queue_io(work.dirtied_before);
                work.queued = true;
            }
            work.progress = false;
            work.batch_started = tick;
            work.batch_before = flusher.dirtied_before(work.reason, tick);
        }
        let backing = &mut self.backings[at];
        if let Some(file) = backing.flusher.io.pop_front() {
            let left = backing.throttle.chunk_pages(work.pages);
            backing.writing_begins(now);
            let page = backing.flusher.inodes[file.index()].next_page;
            let pages = Batch::new(file, Tag::Dirty, page, u64::MAX);
            backing.flusher.visit = Some(Visit { file, pages, next_page: page, left, is_over: false });
        }
        backing.flusher.work = Some(work);
    }

    /// The next reason to write (`wb_do_writeback`); false if there is none.
    fn next_work(&mut self, at: usize, now: Nanos) -> bool {
        while let Some(reason) = self.backings[at].flusher.next_reason {
            let over_background = reason == Reason::Background && self.over_background(at, now);
            let flusher = &mut self.backings[at].flusher;
            let (next, pages) = match reason {
                Reason::Everything => {
                    let wanted = std::mem::take(&mut flusher.everything);
                    (Some(Reason::Periodic), if wanted { self.pages.dirty } else { 0 })
                }
                Reason::Periodic => {
                    let tick = flusher.tick(now);
                    let due = flusher.last_periodic + flusher.interval <= tick;
                    let wanted = due && flusher.interval > 0;
                    if wanted {
                        flusher.last_periodic = tick;
                    }
                    (Some(Reason::Background), if wanted { self.pages.dirty } else { 0 })
                }
                Reason::Background => (None, if over_background { u64::MAX } else { 0 }),
            };
            flusher.next_reason = next;
            if pages > 0 {
                let tick = flusher.tick(now);
                let dirtied_before = flusher.dirtied_before(reason, tick);
                flusher.work = Some(Work {
                    reason,
                    pages,
                    dirtied_before,
                    batch_before: dirtied_before,
                    batch_started: tick,
                    progress: false,
                    queued: false,
                });
                return true;
            }
        }
        let flusher = &mut self.backings[at].flusher;
        flusher.next_reason = Some(Reason::Everything);
        // Memory may have become short since this run began.
        flusher.everything && self.pages.dirty > 0
    }

    /// More is dirty than the background threshold, or than the device's share of it
    /// (`wb_over_bg_thresh`).
    pub(super) fn over_background(&mut self, at: usize, now: Nanos) -> bool {
        let dirty = self.pages.dirty;
        let backing = &mut self.backings[at];
        dirty > self.background || {
            let completed = &mut backing.completed;
            let share = if self.kernel.background_share_has_floor {
                self.completions.share(completed, self.background, dirty, now)
            } else {
                self.completions.of_written(completed, self.background, now)
            };
            backing.throttle.dirty() - backing.writeback > share
        }
    }
}
