//! Buffered I/O: a model of Linux's page cache, without a clock and without a disk.
//!
//! Follows Linux 7.3: `mm/filemap.c` (reads and writes), `mm/readahead.c`
//! ([`readahead`](self::ReadAhead)), `mm/page-writeback.c` (dirty limits and the pauses of
//! writers), `fs/fs-writeback.c` (the flusher). The caller owns time, processes and the block
//! layer; the cache reports what must be read or written and what a process must wait for, and the
//! caller reports completed reads and writes.
//!
//! Pages are 4 KiB. The cache handles them one bitmap word at a time, so that a hit costs a few
//! nanoseconds whatever its length.
//!
//! One cache serves all disks. Each disk, and each volume of several, is a *backing device*
//! (`struct backing_dev_info`) with its own flusher, read-ahead and share of the dirty limits.
//!
//! Left out: large folios (ext4 has them since 6.16), memory mappings, cgroups, metadata (inodes, journal), holes,
//! truncation, multi-generational LRU. A file may also be a whole disk.

mod batch;
mod config;
mod lru;
mod overhead;
mod pages;
mod readahead;
mod reclaim;
mod search;
mod shares;
mod sync;
mod throttle;
mod write;
mod writeback;

#[cfg(test)]
mod tests;

pub use batch::Room;
pub use config::{BackingConfig, MemoryConfig, TUNABLES};
pub use overhead::Kept;
pub use readahead::{Advice, ReadAhead, Windows};
pub use sync::{SyncCursor, SyncStep};
pub use throttle::Dirtier;
pub use writeback::WriteBack;

use crate::containers::few::Few;
use crate::kernel::Kernel;
use crate::ticks::Ticks;
use crate::units::Nanos;
use batch::Held;
use overhead::Overhead;
use pages::{LINE_PAGES, Pages, line_end, line_mask, page_bit};
use shares::{Completed, Completions};
use throttle::Throttle;
use writeback::Flusher;

/// Bytes in a page.
pub const PAGE_BYTES: u64 = 4096;

/// A file (or a whole disk) in the cache. Numbered from 0 in order of [`PageCache::add_file`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileId(pub u32);

impl FileId {
    /// As an index.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A backing device of the cache: a disk or a volume. Numbered from 0 in the order given to
/// [`PageCache::new`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BackingId(pub u16);

impl BackingId {
    const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Contiguous pages of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageRange {
    /// The file.
    pub file: FileId,
    /// Index of the first page.
    pub first: u64,
    /// Number of pages.
    pub pages: u32,
}

impl PageRange {
    /// The page after the last one.
    pub const fn end(&self) -> u64 {
        self.first + self.pages as u64
    }

    /// Length in bytes; the last page of a file counts in full.
    pub const fn bytes(&self) -> u64 {
        self.pages as u64 * PAGE_BYTES
    }
}

/// What a process must wait for before it calls again with the rest of its request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// This page's read; it has completed when [`PageCache::is_reading`] returns false.
    Page(u64),
    /// This page's lock, while another process is about to write it to the disk
    /// ([`PageCache::lock`]).
    Lock(u64),
    /// Any read or write: there is no free memory. The flusher has been woken.
    Memory,
    /// This long: the process dirties pages faster than the disk writes them.
    Pause(Nanos),
    /// Nothing but its own work until here: it copies and submits, and what comes next happens after
    /// that.
    Work,
}

/// The progress of a read or a write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Step {
    /// Bytes done from the front of the request.
    pub bytes: u64,
    /// Bytes at the end of these that the process copies later: after it has submitted the pages to read,
    /// and, before Linux 7, after it has waited.
    pub uncopied: u64,
    /// The reason to stop; `None` when the request is served, up to the end of the file.
    pub wait: Option<Wait>,
}

/// Cached pages are looked up, and then copied, so many at a time (`folio_batch`).
const BATCH_PAGES: u64 = 31;

/// The number of pages of each kind. A page may be dirty and under writeback at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// In the cache, including pages that wait for their read.
    pub cached: u64,
    /// Changed and not being written (`Dirty` in `/proc/meminfo`).
    pub dirty: u64,
    /// Being written (`Writeback`).
    pub writeback: u64,
}

/// A backing device (`struct bdi_writeback` of its root cgroup).
struct Backing {
    flusher: Flusher,
    throttle: Throttle,
    /// Its pages under writeback.
    writeback: u64,
    completed: Completed,
    ra_pages: u64,
    io_pages: u64,
}

impl Backing {
    /// The writing of one of its files begins (`do_writepages`).
    fn writing_begins(&mut self, now: Nanos) {
        self.throttle.writing_begins(self.writeback == 0, now);
    }
}

/// The page cache of a machine.
pub struct PageCache {
    pages: Pages,
    held: Held,
    backings: Few<Backing>,
    /// Pages of memory, of which cached ones take more than themselves ([`Pages::taken`]).
    memory_pages: u64,
    /// The background threshold, and the limit, of the dirty pages of all devices.
    background: u64,
    limit: u64,
    /// Pages dirtied by all writers until one must check the limits (`ratelimit_pages`).
    check_pages: u64,
    /// Pages dirtied by all writers since the last check.
    unchecked: u64,
    completions: Completions,
    /// Now, as far as reclaim knows.
    now: Nanos,
    /// When its thread looks again whether enough is free.
    looks_again: Nanos,
    /// When the kernel's statistics of pages are brought up to date.
    counts_again: Nanos,
    ticks: Ticks,
    kernel: Kernel,
    /// See [`MemoryConfig::large_folios`].
    large_folios: bool,
}

/// Pages that a sleeping reader holds; see [`PageCache::hold`].
#[derive(Debug)]
pub struct HeldPages(u32);

impl PageCache {
    /// An empty cache in front of these backing devices.
    pub fn new(config: &MemoryConfig, backings: &[BackingConfig]) -> PageCache {
        let (background, limit) = config.dirty_limits();
        let memory_pages = config.memory.0 / PAGE_BYTES;
        let backing = |of: &BackingConfig| Backing {
            flusher: Flusher::new(config),
            throttle: Throttle::new(background, limit, config.ticks, config.cpus),
            writeback: 0,
            completed: Completed::by_mount(config.written_by_mount),
            ra_pages: of.read_ahead.0 / PAGE_BYTES,
            io_pages: of.max_io.0 / PAGE_BYTES,
        };
        PageCache {
            pages: Pages::new(memory_pages, Overhead::new(config.kept)),
            held: Held::default(),
            backings: Few::new(backings.iter().map(backing)),
            memory_pages: memory_pages + overhead::tree_of(memory_pages),
            background,
            limit,
            check_pages: (limit / 32).max(16),
            unchecked: 0,
            completions: Completions::new(config.ticks, backings.len() as u64, config.written_by_mount),
            now: Nanos::ZERO,
            looks_again: Nanos::NEVER,
            counts_again: reclaim::first_count(config.ticks),
            ticks: config.ticks,
            kernel: config.kernel,
            large_folios: config.large_folios,
        }
    }

    /// The number of backing devices.
    pub fn backings(&self) -> usize {
        self.backings.iter().count()
    }

    /// The index of the file's backing device.
    #[inline]
    fn backing_of(&self, file: FileId) -> usize {
        if self.backings.is_one() { 0 } else { self.pages.backing_of(file).index() }
    }

    /// A file of that size with all data on the backing device; nothing is cached yet.
    pub fn add_file(&mut self, size_bytes: u64, backing: BackingId) -> FileId {
        self.backings.each(|_, backing| backing.flusher.add_file());
        self.pages.add_file(size_bytes, backing)
    }

    /// Read-ahead state for a process that opens a file: one per process and file.
    pub fn open(&self, file: FileId, advice: Advice) -> ReadAhead {
        let backing = &self.backings[self.backing_of(file)];
        ReadAhead::new(backing.ra_pages, backing.io_pages, advice)
    }

    /// State for a process that writes: one per process, for all its files.
    pub fn dirtier(&self) -> Dirtier {
        Dirtier::default()
    }

    /// A buffered read of `bytes` bytes at `offset` (`filemap_read`). Appends to `out` the ranges
    /// to read from the disk now: the caller submits them and reports each with
    /// [`read_done`](Self::read_done), and then asks [`read_on`](Self::read_on) until `windows` is empty. When
    /// the step says to wait, call again afterwards with the rest; a read past the end of the file ends early.
    #[inline]
    pub fn read(
        &mut self,
        file: FileId,
        offset: u64,
        bytes: u64,
        ra: &mut ReadAhead,
        windows: &mut Windows,
        out: &mut Vec<PageRange>,
    ) -> Step {
        let end = (offset + bytes).min(self.pages.size_bytes(file));
        if offset >= end {
            return Step::default();
        }
        let mut page = offset / PAGE_BYTES;
        let (first, behind) = (page, end.div_ceil(PAGE_BYTES));
        // Continuing in the page where the previous read ended is not a second access.
        let same_page = page == ra.prev_pos.wrapping_sub(1) / PAGE_BYTES;
        let mut not_again = if same_page { page_bit(page) } else { 0 };
        while page < behind {
            let mask = line_mask(page, behind);
            if let Some(line) = self.pages.line_mut(file, page) {
                let missed = mask & (!line.uptodate | line.marker);
                let hit = mask & below(missed);
                let again = line.mark_accessed(hit & !not_again);
                if again != 0 {
                    self.pages.activate(file, page, again);
                }
                if missed == 0 {
                    page = line_end(page).min(behind);
                    not_again = 0;
                    continue;
                }
                // Those before the first one that is missed.
                page = page / LINE_PAGES * LINE_PAGES + u64::from(missed.trailing_zeros());
            }
            let is_cached = self.pages.state(file, page).present() & page_bit(page) != 0;
            let ranges = out.len();
            let wait = self.read_miss(file, page, behind - page, ra, windows, out);
            let (reached, reads) = (page, out.len() > ranges);
            page += u64::from(wait.is_none());
            if wait.is_none() && !reads {
                not_again = 0;
                continue;
            }
            if page == behind {
                ra.prev_pos = end;
            }
            // A missing page ends the batch before it, which is then copied at once.
            let batch = if is_cached { reached - (reached - first) % BATCH_PAGES } else { page };
            let bytes = (page * PAGE_BYTES).min(end).saturating_sub(offset);
            let uncopied = bytes - (batch * PAGE_BYTES).saturating_sub(offset).min(bytes);
            return match wait {
                None => Step { bytes, uncopied, wait: Some(Wait::Work) },
                Some(_) if self.kernel.copies_before_it_waits => match reads && uncopied > 0 {
                    true => Step { bytes, uncopied, wait: Some(Wait::Work) },
                    false => Step { bytes, uncopied: 0, wait },
                },
                Some(_) => Step { bytes, uncopied, wait },
            };
        }
        ra.prev_pos = end;
        Step { bytes: end - offset, ..Step::default() }
    }

    /// The pages that a [`read`](Self::read) at `offset` has looked up and not copied after that step, with the one
    /// that it waits for: [`drop_unheld`](Self::drop_unheld) leaves them until [`let_go`](Self::let_go).
    pub fn hold(&mut self, file: FileId, offset: u64, step: &Step) -> HeldPages {
        let behind = offset + step.bytes;
        let waits_for = match step.wait {
            Some(Wait::Page(page)) => page + 1,
            _ => 0,
        };
        let first = (behind - step.uncopied) / PAGE_BYTES;
        HeldPages(self.held.hold_range(file, first, behind.div_ceil(PAGE_BYTES).max(waits_for)))
    }

    /// Those pages are no longer held.
    pub fn let_go(&mut self, held: HeldPages) {
        self.held.give_back(held.0);
    }

    /// A read has reached a page that is missing, not up to date or marked (`filemap_get_pages`);
    /// it wants `asked` pages from there. `None`: the page can be copied.
    #[cold]
    fn read_miss(
        &mut self,
        file: FileId,
        page: u64,
        asked: u64,
        ra: &mut ReadAhead,
        windows: &mut Windows,
        out: &mut Vec<PageRange>,
    ) -> Option<Wait> {
        let bit = page_bit(page);
        if self.pages.state(file, page).present() & bit == 0 {
            self.sync_readahead(file, page, asked, ra, windows, out);
            if self.pages.state(file, page).present() & bit == 0 && !self.read_one(file, page, out) {
                return Some(Wait::Memory);
            }
        }
        let line = self.pages.line_mut(file, page).expect("present, or just inserted");
        let again = line.mark_accessed(line.uptodate & bit);
        let line = *line;
        if again != 0 {
            self.pages.activate(file, page, again);
        }
        if line.marker & bit != 0 {
            // Makes room for its pages, if needed by dropping even this page: the process already
            // holds it.
            self.async_readahead(file, page, asked, ra, windows, out);
        }
        (line.reading & bit != 0).then_some(Wait::Page(page))
    }

    /// Moves dirty pages of the device to writeback.
    fn start_writeback(&mut self, at: usize, range: PageRange) {
        self.backings[at].writeback += u64::from(range.pages);
        self.pages.start_writeback(range);
    }

    /// A read that [`read`](Self::read) or [`write`](Self::write) requested is complete. Parts of a
    /// range may be reported separately.
    pub fn read_done(&mut self, range: PageRange) {
        self.pages.read_done(range);
    }

    /// A write that [`write_back`](Self::write_back) or [`sync_next`](Self::sync_next)
    /// requested is complete. Parts of a range may be reported separately.
    pub fn write_done(&mut self, range: PageRange, now: Nanos) {
        self.advance(now);
        self.pages.end_writeback(range);
        let (at, pages) = (self.backing_of(range.file), u64::from(range.pages));
        let backing = &mut self.backings[at];
        backing.writeback -= pages;
        backing.throttle.written(pages, self.pages.writeback_of(range.file) == 0, now);
        self.completions.add(&mut backing.completed, pages, now);
    }

    /// The writer of this page, which is under writeback, sleeps until there is a request for it: until
    /// [`unlock`](Self::unlock) no process may change the page, and others that write it wait.
    pub fn lock(&mut self, file: FileId, page: u64) {
        self.pages.lock(file, page);
    }

    /// The page is on its way.
    pub fn unlock(&mut self, file: FileId, page: u64) {
        self.pages.unlock(file, page);
    }

    /// Is this page locked?
    pub fn is_locked(&self, file: FileId, page: u64) -> bool {
        self.pages.is_locked(file, page)
    }

    /// Does this page still wait for its read?
    pub fn is_reading(&self, file: FileId, page: u64) -> bool {
        self.pages.line(file, page).is_some_and(|line| line.reading & page_bit(page) != 0)
    }

    /// Is this page under writeback?
    pub fn is_writeback(&self, file: FileId, page: u64) -> bool {
        self.pages.line(file, page).is_some_and(|line| line.writeback & page_bit(page) != 0)
    }

    /// The size of the file in bytes.
    pub fn size_bytes(&self, file: FileId) -> u64 {
        self.pages.size_bytes(file)
    }

    /// The number of pages of each kind.
    #[inline]
    pub fn counts(&self) -> Counts {
        Counts { cached: self.pages.cached, dirty: self.pages.dirty, writeback: self.pages.writeback }
    }
}

/// The bits below the lowest of `bits`; all if there are none.
#[inline]
fn below(bits: u64) -> u64 {
    bits.wrapping_sub(1) & !bits
}

/// The part of `mask` below the bit that would exceed `count` of `bits`.
fn up_to(mask: u64, bits: u64, count: u64) -> u64 {
    mask & below(bits & !first_bits(bits, count))
}

/// The lowest `count` of `bits`, or all if there are no more.
fn first_bits(bits: u64, count: u64) -> u64 {
    if count >= u64::from(u64::BITS) { bits } else { counted_bits(bits, count as u32).0 }
}

/// The same, and their number.
#[inline]
fn counted_bits(bits: u64, count: u32) -> (u64, u32) {
    if bits == 0 || count == 0 {
        return (0, 0);
    }
    // Most are neighbours.
    let first = bits.trailing_zeros();
    let run = (bits >> first).trailing_ones();
    let neighbours = u64::MAX >> (u64::BITS - count.min(run)) << first;
    if count <= run || neighbours == bits { (neighbours, count.min(run)) } else { first_of_many(bits, count) }
}

/// The same of any.
fn first_of_many(bits: u64, count: u32) -> (u64, u32) {
    let all = bits.count_ones();
    if count >= all {
        return (bits, all);
    }
    let rest = (0..count).fold(bits, |rest, _| rest & (rest - 1));
    (bits & !rest, count)
}
