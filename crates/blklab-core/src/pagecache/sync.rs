//! Whoever wants data on the disk, or not in memory: fsync(2), direct I/O to cached pages,
//! dropping what is cached.

use super::pages::Tag;
use super::{FileId, PAGE_BYTES, PageCache, PageRange};
use crate::units::Nanos;

/// How far an fsync has come: first it writes what is dirty, then it waits for all
/// write-back (`file_write_and_wait_range`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SyncCursor {
    file: FileId,
    first: u64,
    next: u64,
    end: u64,
    waiting: bool,
    /// Only writes, and leaves alone what is under write-back (`WB_SYNC_NONE`).
    only_writes: bool,
}

/// What an fsync does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncStep {
    /// Submit this range, which is under write-back from now on, as a synchronous write,
    /// and report [`PageCache::write_done`].
    Write(PageRange),
    /// Wait until this page is no longer under write-back
    /// ([`PageCache::is_writeback`]), then ask again.
    Wait(u64),
    /// Everything that was dirty is written; what is left is the disk's own cache.
    Done,
}

impl PageCache {
    /// Start to write and wait for a whole file, as fsync and fdatasync do. (Their
    /// difference is metadata, which is not modelled.)
    pub fn sync_start(&self, file: FileId) -> SyncCursor {
        self.sync_start_range(file, 0, u64::MAX)
    }

    /// The same for the pages that hold `bytes` bytes at `offset`: what `O_SYNC` does after
    /// a write, and direct I/O before it goes to the disk.
    pub fn sync_start_range(&self, file: FileId, offset: u64, bytes: u64) -> SyncCursor {
        let first = offset / PAGE_BYTES;
        let end = offset.saturating_add(bytes).div_ceil(PAGE_BYTES);
        SyncCursor { file, first, next: first, end, waiting: false, only_writes: false }
    }

    /// Start to write a whole file without waiting for it, as `POSIX_FADV_DONTNEED` does.
    pub fn write_out_start(&self, file: FileId) -> SyncCursor {
        SyncCursor { only_writes: true, ..self.sync_start(file) }
    }

    /// The next step of a sync at the time `now`, of at most `max_pages` pages. Goes through the file once:
    /// pages dirtied meanwhile are written if they lie ahead (the kernel tags those dirty
    /// at the start and leaves the others).
    pub fn sync_next(&mut self, cursor: &mut SyncCursor, max_pages: u32, now: Nanos) -> SyncStep {
        let max_pages = self.request_pages.unwrap_or(max_pages);
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
                    .next_range(cursor.file, page, cursor.end, max_pages)
                    .expect("this page is dirty and not under write-back");
                self.throttle.writing(self.pages.writeback == 0, now);
                self.pages.start_writeback(range);
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

    /// Is any page of these bytes cached? If not, direct I/O to them needs neither a sync
    /// before nor [`invalidate`](Self::invalidate) after.
    pub fn is_cached(&self, file: FileId, offset: u64, bytes: u64) -> bool {
        self.pages.cached_of(file) > 0 && {
            let end = (offset + bytes).min(self.size_bytes(file)).div_ceil(PAGE_BYTES);
            super::pages::lines(offset / PAGE_BYTES, end)
                .any(|(page, mask)| self.pages.state(file, page).present() & mask != 0)
        }
    }

    /// Drop the clean pages that these bytes touch: after a direct write, or for
    /// `POSIX_FADV_DONTNEED` (fio's `invalidate=1`; that writes dirty pages first, see
    /// [`write_out_start`](Self::write_out_start)). Pages that are dirty or on their way from
    /// or to the disk stay.
    pub fn invalidate(&mut self, file: FileId, offset: u64, bytes: u64) {
        let end = offset.saturating_add(bytes).div_ceil(PAGE_BYTES);
        self.pages.drop_clean(file, offset / PAGE_BYTES, end);
    }

    /// Drop all clean pages (`/proc/sys/vm/drop_caches`).
    pub fn drop_caches(&mut self) {
        for file in self.pages.files() {
            self.pages.drop_clean(file, 0, u64::MAX);
        }
    }
}
