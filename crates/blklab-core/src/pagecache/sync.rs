//! Syncing and dropping: fsync(2), direct I/O to cached pages, dropping cached pages.

use super::pages::Tag;
use super::{FileId, PAGE_BYTES, PageCache, PageRange};
use crate::units::Nanos;

/// The progress of an fsync: first it writes dirty pages, then it waits for all writeback
/// (`file_write_and_wait_range`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SyncCursor {
    file: FileId,
    first: u64,
    next: u64,
    end: u64,
    waiting: bool,
    /// Only writes, and skips pages under writeback (`WB_SYNC_NONE`).
    only_writes: bool,
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
        SyncCursor { file, first, next: first, end, waiting: false, only_writes: false }
    }

    /// Starts to write a whole file without waiting for it, as `POSIX_FADV_DONTNEED` does.
    pub fn write_out_start(&self, file: FileId) -> SyncCursor {
        SyncCursor { only_writes: true, ..self.sync_start(file) }
    }

    /// The next step of a sync at the time `now`, of at most `max_pages` pages. Passes the file
    /// once: pages dirtied meanwhile are written if they lie ahead (the kernel tags the pages that
    /// are dirty at the start and skips others).
    pub fn sync_next(&mut self, cursor: &mut SyncCursor, max_pages: u32, now: Nanos) -> SyncStep {
        let at = self.backing_of(cursor.file);
        let max_pages = self.backings[at].request_pages.unwrap_or(max_pages);
        if !cursor.waiting {
            while let Some(page) =
                self.pages.next_tagged(cursor.file, cursor.next, Tag::Dirty).filter(|&page| page < cursor.end)
            {
                cursor.next = page;
                if self.is_writeback(cursor.file, page) {
                    if cursor.only_writes {
                        cursor.next += 1;
                        continue;
                    }
                    return SyncStep::Wait(page);
                }
                let range = self
                    .next_range(at, cursor.file, page, cursor.end, max_pages)
                    .expect("this page is dirty and not under write-back");
                let backing = &mut self.backings[at];
                backing.throttle.writing(backing.writeback == 0, now);
                self.start_writeback(at, range);
                cursor.next = range.end();
                return SyncStep::Write(range);
            }
            if cursor.only_writes {
                return SyncStep::Done;
            }
            cursor.waiting = true;
            cursor.next = cursor.first;
        }
        let page = self.pages.next_tagged(cursor.file, cursor.next, Tag::Writeback);
        match page.filter(|&page| page < cursor.end) {
            Some(page) => {
                cursor.next = page;
                SyncStep::Wait(page)
            }
            None => SyncStep::Done,
        }
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

    /// Drops the clean pages of these bytes: after a direct write, or for `POSIX_FADV_DONTNEED`
    /// (fio's `invalidate=1`; that writes dirty pages first, see
    /// [`write_out_start`](Self::write_out_start)). Dirty pages and pages that are being read or
    /// written stay.
    pub fn invalidate(&mut self, file: FileId, offset: u64, bytes: u64) {
        let end = offset.saturating_add(bytes).div_ceil(PAGE_BYTES);
        self.pages.drop_clean(file, offset / PAGE_BYTES, end);
    }

    /// Drops all clean pages (`/proc/sys/vm/drop_caches`).
    pub fn drop_caches(&mut self) {
        for file in self.pages.files() {
            self.pages.drop_clean(file, 0, u64::MAX);
        }
    }
}
