//! Syncing and dropping: fsync(2), direct I/O to cached pages, dropping cached pages.

use super::batch::{Batch, Next, Room};
use super::search::Tag;
use super::{FileId, PAGE_BYTES, PageCache, PageRange};
use crate::units::Nanos;

/// The progress of an fsync: first it writes the pages that are dirty when it begins, then it waits
/// for the pages that are under writeback when it has (`file_write_and_wait_range`).
#[derive(Debug)]
pub struct SyncCursor {
    file: FileId,
    first: u64,
    end: u64,
    phase: Phase,
    /// The page that it has locked while it waits for the page's writeback.
    locked: Option<u64>,
    /// Only writes, and skips pages under writeback (`WB_SYNC_NONE`).
    only_writes: bool,
}

#[derive(Debug)]
enum Phase {
    NotBegun,
    Writing(Batch),
    Waiting(Batch),
}

impl SyncCursor {
    /// The page that the sync has locked until its next step.
    pub fn locked(&self) -> Option<u64> {
        self.locked
    }
}

/// The next step of an fsync.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncStep {
    /// Submit this range, which is now under writeback, as a synchronous write, and report
    /// [`PageCache::write_done`].
    Write(PageRange),
    /// Wait until this page is no longer under writeback ([`PageCache::is_writeback`]), then ask
    /// again.
    Wait(u64),
    /// Wait until this page is no longer locked ([`PageCache::unlock`]), then ask again.
    Locked(u64),
    /// Everything that was dirty is written; only the disk's own cache is left.
    Done,
}

impl PageCache {
    /// Starts to write and wait for a whole file, as fsync and fdatasync do. (They differ in
    /// metadata, which are not modelled.)
    pub fn sync_start(&self, file: FileId) -> SyncCursor {
        self.sync_start_range(file, 0, u64::MAX)
    }

    /// The same for the pages of `bytes` bytes at `offset`: for `O_SYNC` after a write, and for
    /// direct I/O before it goes to the disk.
    pub fn sync_start_range(&self, file: FileId, offset: u64, bytes: u64) -> SyncCursor {
        let first = offset / PAGE_BYTES;
        let end = offset.saturating_add(bytes).div_ceil(PAGE_BYTES);
        SyncCursor { file, first, end, phase: Phase::NotBegun, locked: None, only_writes: false }
    }

    /// Starts to write a whole file without waiting for it, as `POSIX_FADV_DONTNEED` does.
    pub fn write_out_start(&self, file: FileId) -> SyncCursor {
        SyncCursor { only_writes: true, ..self.sync_start(file) }
    }

    /// The next step of a sync at the time `now`, of at most so many pages. It writes the pages that are
    /// dirty at its first step (`tag_pages_for_writeback`), and those that another sync of the file has found
    /// dirty ahead of it meanwhile.
    ///
    /// While it waits in this part for a page's writeback, the page is locked: whatever waits for that must
    /// ask again after this call, too.
    pub fn sync_next(&mut self, cursor: &mut SyncCursor, max_pages: impl Into<Room>, now: Nanos) -> SyncStep {
        let at = self.backing_of(cursor.file);
        let room = max_pages.into();
        if let Some(page) = cursor.locked.take() {
            self.pages.unlock(cursor.file, page);
        }
        loop {
            cursor.phase = match &mut cursor.phase {
                Phase::NotBegun if self.pages.dirty_of(cursor.file) == 0 => self.begin_waiting(cursor),
                Phase::NotBegun => {
                    self.backings[at].writing_begins(now);
                    let tag = if cursor.only_writes { Tag::Dirty } else { Tag::ToWrite };
                    if tag == Tag::ToWrite {
                        self.pages.mark_to_write(cursor.file, cursor.first, cursor.end);
                    }
                    Phase::Writing(Batch::new(cursor.file, tag, cursor.first, cursor.end))
                }
                Phase::Writing(batch) => {
                    match batch.next_to_write(&self.pages, &mut self.held, room, !cursor.only_writes) {
                        Next::Write(range) => {
                            self.start_writeback(at, range);
                            return SyncStep::Write(range);
                        }
                        Next::Wait(page) => {
                            cursor.locked = Some(page);
                            self.pages.lock(cursor.file, page);
                            return SyncStep::Wait(page);
                        }
                        Next::Locked(page) => return SyncStep::Locked(page),
                        Next::End => {
                            self.backings[at].throttle.writing_ends(now);
                            self.begin_waiting(cursor)
                        }
                    }
                }
                Phase::Waiting(batch) => {
                    let page = batch.next_written(&self.pages, &mut self.held);
                    return page.map_or(SyncStep::Done, SyncStep::Wait);
                }
            };
        }
    }

    fn begin_waiting(&self, cursor: &SyncCursor) -> Phase {
        let end = if cursor.only_writes { cursor.first } else { cursor.end };
        Phase::Waiting(Batch::new(cursor.file, Tag::Writeback, cursor.first, end))
    }

    /// Is any page of these bytes cached? If not, direct I/O to them needs neither a sync before
    /// nor [`invalidate`](Self::invalidate) after it.
    #[inline]
    pub fn is_cached(&self, file: FileId, offset: u64, bytes: u64) -> bool {
        self.pages.cached_of(file) > 0 && {
            let end = (offset + bytes).min(self.size_bytes(file)).div_ceil(PAGE_BYTES);
            super::pages::lines(offset / PAGE_BYTES, end)
                .any(|(page, mask)| self.pages.state(file, page).present() & mask != 0)
        }
    }

    /// A process writes nothing of a file before direct I/O to bytes that are not cached. If other bytes are
    /// dirty, it measures the bandwidth all the same (`do_writepages`, of a range without pages).
    #[inline(always)]
    pub fn pass(&mut self, file: FileId, now: Nanos) {
        if self.pages.dirty_of(file) > 0 {
            let at = self.backing_of(file);
            self.backings[at].writing_begins(now);
            self.backings[at].throttle.writing_ends(now);
        }
    }

    /// Drops the clean pages of these bytes, after a direct write (`invalidate_inode_pages2_range`). Dirty pages
    /// and pages that are being read or written stay.
    pub fn invalidate(&mut self, file: FileId, offset: u64, bytes: u64) {
        let end = offset.saturating_add(bytes).div_ceil(PAGE_BYTES);
        self.pages.drop_clean(file, offset / PAGE_BYTES, end, &[]);
    }

    /// The same for a whole file, as `POSIX_FADV_DONTNEED` does (fio's `invalidate=1`) when it has written
    /// what is dirty ([`write_out_start`](Self::write_out_start)). Pages that a sync or the flusher has looked
    /// up stay too, until it looks up others (`mapping_evict_folio` counts references). Those that stay because they
    /// are dirty or written are to be reclaimed early, with a mark that reads take for one of read-ahead.
    pub fn drop_unheld(&mut self, file: FileId) {
        self.pages.drop_clean(file, 0, u64::MAX, &self.held.of(file));
        self.pages.mark_for_reclaim(file);
    }

    /// The same for all files (`/proc/sys/vm/drop_caches`).
    pub fn drop_caches(&mut self) {
        for file in self.pages.files() {
            self.drop_unheld(file);
        }
    }
}
