//! The cached pages of all files and their states: bitmaps.
//!
//! A *line* holds eight bits for each of 64 pages in one cache line of the CPU, a *chunk* 64 lines
//! (16 MiB of a file). Chunks exist only where pages are cached; emptied ones are reused. So the
//! bookkeeping takes at most a byte per page of the files, and at most a chunk per cached page.

use std::collections::VecDeque;

use super::lru::{Ages, Kind, Lru, Parts, Place};
use super::overhead::Overhead;
use super::reclaim::Counted;
use super::{BackingId, FileId, PAGE_BYTES, PageRange};

pub(super) const LINE_PAGES: u64 = 64;
pub(super) const LINES: usize = 64;
pub(super) const CHUNK_PAGES: u64 = LINE_PAGES * LINES as u64;
/// No chunk: nothing is cached there.
const NONE: u32 = u32::MAX;

/// The state of 64 pages. A page is cached if it is up to date or being read, never both.
#[derive(Clone, Copy, Default)]
#[repr(align(64))]
pub(super) struct Line {
    /// Holds the file's data.
    pub uptodate: u64,
    /// Waits for its read (locked).
    pub reading: u64,
    /// Changed since it was last written.
    pub dirty: u64,
    /// Being written.
    pub writeback: u64,
    /// Reaching it starts the next read-ahead (`PG_readahead`). Of a page that is dirty or written, the same bit asks
    /// for early reclaim (`PG_reclaim`).
    pub marker: u64,
    /// Read once since it became inactive (`PG_referenced`).
    pub referenced: u64,
    /// Read more than once (`PG_active`).
    pub active: u64,
    /// Where its pages are in the lists of reclaim.
    pub parts: Parts,
}

impl Line {
    /// Cached pages.
    #[inline]
    pub fn present(&self) -> u64 {
        self.uptodate | self.reading
    }

    /// Pages that may be dropped.
    pub fn clean(&self) -> u64 {
        self.uptodate & !self.dirty & !self.writeback
    }

    /// `folio_mark_accessed`: referenced the first time, active the second time. The pages to
    /// [activate](Pages::activate).
    #[inline]
    #[must_use]
    pub fn mark_accessed(&mut self, mask: u64) -> u64 {
        let promoted = self.referenced & mask & !self.active;
        self.referenced = (self.referenced | mask) & !promoted;
        promoted
    }
}

pub(super) struct Chunk {
    /// The file of the chunk; without meaning while `present` is zero.
    pub file: FileId,
    /// The part of the file.
    pub index: u32,
    /// Lines that have a cached page.
    pub present: u64,
    /// Lines with a dirty page.
    pub dirty: u64,
    /// Lines with a page under writeback.
    pub writeback: u64,
    /// Per line: dirty pages that were there when a sync began, and are not written yet
    /// (`PAGECACHE_TAG_TOWRITE`).
    pub to_write: [u64; LINES],
    /// Per line: pages that have buffer heads, if pages of these files have any.
    pub with_heads: [u64; LINES],
    pub lines: [Line; LINES],
}

pub(super) struct File {
    size_bytes: u64,
    backing: BackingId,
    pub chunks: Vec<u32>,
    /// A bit per chunk with dirty pages.
    pub dirty_chunks: Vec<u64>,
    /// A bit per chunk with pages under writeback.
    pub writeback_chunks: Vec<u64>,
    /// Per chunk: lines that have a node of the tree that finds pages, with pages or where some were reclaimed.
    with_node: Vec<u64>,
    cached: u64,
    pub dirty: u64,
    pub writeback: u64,
}

/// The pages of all files, and the number of each kind.
#[derive(Default)]
pub(super) struct Pages {
    pub files: Vec<File>,
    pub chunks: Vec<Chunk>,
    free: Vec<u32>,
    pub lru: Lru,
    pub ages: Ages,
    pub overhead: Overhead,
    pub cached: u64,
    pub dirty: u64,
    pub writeback: u64,
    /// Dirty pages that their writer has locked, and keeps locked while it sleeps.
    pub locked: Vec<(FileId, u64)>,
    /// Calls of reclaim that drop only what they have to, because an earlier one found no more.
    pub tired: usize,
    /// What the kernel's statistics say.
    pub counted: Counted,
    /// Pages that were dropped not long ago have come back, which the statistics do not say yet.
    pub come_back: bool,
    /// Lines that reclaim has emptied, by file and number, the oldest first. Some of these lines have pages again.
    pub emptied: VecDeque<(FileId, u64)>,
}

/// Bits of the pages `first..end` that are in `first`'s line.
#[inline]
pub(super) fn line_mask(first: u64, end: u64) -> u64 {
    let low = first % LINE_PAGES;
    let pages = (end - first).min(LINE_PAGES - low);
    (u64::MAX >> (LINE_PAGES - pages)) << low
}

/// First page after `page`'s line.
#[inline]
pub(super) fn line_end(page: u64) -> u64 {
    (page | (LINE_PAGES - 1)) + 1
}

/// The bit of one page in its line.
#[inline]
pub(super) fn page_bit(page: u64) -> u64 {
    1 << (page % LINE_PAGES)
}

#[inline]
pub(super) fn line_index(page: u64) -> usize {
    (page / LINE_PAGES) as usize % LINES
}

/// The parts of `first..end` that are in one line each: first page and mask.
pub(super) fn lines(first: u64, end: u64) -> impl Iterator<Item = (u64, u64)> {
    let mut page = first;
    std::iter::from_fn(move || {
        if page >= end {
            return None;
        }
        let part = (page, line_mask(page, end));
        page = line_end(page);
        Some(part)
    })
}

fn set_bit(bits: &mut [u64], index: usize, on: bool) {
    let bit = 1 << (index % 64);
    if on {
        bits[index / 64] |= bit;
    } else {
        bits[index / 64] &= !bit;
    }
}

/// How many bits are set: mostly one. Counting more takes a dozen instructions on the oldest 64-bit processors.
#[inline]
fn count_few(bits: u64) -> u64 {
    if bits.is_power_of_two() { 1 } else { count_many(bits) }
}

#[cold]
fn count_many(bits: u64) -> u64 {
    u64::from(bits.count_ones())
}

impl Pages {
    /// No files yet, in a memory with room for that many pages.
    pub fn new(memory_pages: u64, overhead: Overhead) -> Pages {
        Pages { ages: Ages::new(memory_pages), overhead, ..Pages::default() }
    }

    /// Pages of memory that the cached ones take, with all that the kernel keeps for them.
    #[inline]
    pub fn taken(&self) -> u64 {
        // A chunk has the pages of a node of the second level.
        let chunks = self.chunks.len() - self.free.len();
        self.cached + self.overhead.pages(self.writeback, chunks as u64)
    }

    /// A number that is not less, found without a division.
    #[inline]
    pub fn taken_at_most(&self) -> u64 {
        2 * (self.cached + self.overhead.empty_nodes())
    }

    pub fn add_file(&mut self, size_bytes: u64, backing: BackingId) -> FileId {
        let mut file = File {
            size_bytes: 0,
            backing,
            chunks: Vec::new(),
            dirty_chunks: Vec::new(),
            writeback_chunks: Vec::new(),
            with_node: Vec::new(),
            cached: 0,
            dirty: 0,
            writeback: 0,
        };
        file.grow(size_bytes);
        self.files.push(file);
        FileId(self.files.len() as u32 - 1)
    }

    pub fn files(&self) -> impl Iterator<Item = FileId> + use<> {
        (0..self.files.len() as u32).map(FileId)
    }

    #[inline]
    pub fn size_bytes(&self, file: FileId) -> u64 {
        self.files[file.index()].size_bytes
    }

    pub fn backing_of(&self, file: FileId) -> BackingId {
        self.files[file.index()].backing
    }

    pub fn cached_of(&self, file: FileId) -> u64 {
        self.files[file.index()].cached
    }

    pub fn dirty_of(&self, file: FileId) -> u64 {
        self.files[file.index()].dirty
    }

    pub fn writeback_of(&self, file: FileId) -> u64 {
        self.files[file.index()].writeback
    }

    /// Extends the file to at least `size_bytes`.
    #[inline]
    pub fn grow_file(&mut self, file: FileId, size_bytes: u64) {
        let file = &mut self.files[file.index()];
        if size_bytes > file.size_bytes {
            file.grow(size_bytes);
        }
    }

    #[inline]
    pub fn slot(&self, file: FileId, page: u64) -> u32 {
        let index = (page / CHUNK_PAGES) as usize;
        self.files[file.index()].chunks.get(index).copied().unwrap_or(NONE)
    }

    /// The line of `page`, if any page of its chunk is cached.
    #[inline]
    pub fn line(&self, file: FileId, page: u64) -> Option<&Line> {
        self.chunks.get(self.slot(file, page) as usize).map(|chunk| &chunk.lines[line_index(page)])
    }

    /// The line of `page`, for changing bits that are not counted (marker, accessed).
    #[inline]
    pub fn line_mut(&mut self, file: FileId, page: u64) -> Option<&mut Line> {
        let slot = self.slot(file, page) as usize;
        self.chunks.get_mut(slot).map(|chunk| &mut chunk.lines[line_index(page)])
    }

    /// A copy of the line of `page`: all zero if nothing is cached there.
    pub fn state(&self, file: FileId, page: u64) -> Line {
        self.line(file, page).copied().unwrap_or_default()
    }

    fn chunk_for(&mut self, file: FileId, page: u64) -> u32 {
        let slot = self.slot(file, page);
        if slot != NONE {
            return slot;
        }
        let index = (page / CHUNK_PAGES) as u32;
        let slot = match self.free.pop() {
            Some(slot) => {
                let chunk = &mut self.chunks[slot as usize];
                (chunk.file, chunk.index) = (file, index);
                slot
            }
            None => {
                self.chunks.push(Chunk {
                    file,
                    index,
                    present: 0,
                    dirty: 0,
                    writeback: 0,
                    to_write: [0; LINES],
                    with_heads: [0; LINES],
                    lines: [Line::default(); LINES],
                });
                self.chunks.len() as u32 - 1
            }
        };
        self.files[file.index()].chunks[index as usize] = slot;
        slot
    }

    /// Adds the pages of `mask` in the line of `page`, none of which is cached, to the cache; they
    /// wait for their read.
    pub fn insert_reading(&mut self, file: FileId, page: u64, mask: u64) {
        let slot = self.chunk_for(file, page);
        self.insert(slot, page, mask, u64::from(mask.count_ones()), true);
    }

    /// Adds the pages of `mask`, `added` of them, in the line of `page` in this chunk: they are `read`, or up to date.
    #[inline(always)]
    fn insert(&mut self, slot: u32, page: u64, mask: u64, added: u64, read: bool) {
        let chunk = &mut self.chunks[slot as usize];
        let of = &mut self.files[chunk.file.index()];
        self.cached += added;
        of.cached += added;
        let index = line_index(page);
        if chunk.present & 1 << index == 0 {
            chunk.present |= 1 << index;
            let nodes = &mut of.with_node[chunk.index as usize];
            self.overhead.line_begins(*nodes & 1 << index != 0);
            *nodes |= 1 << index;
        }
        let line = &mut chunk.lines[index];
        debug_assert_eq!(line.present() & mask, 0, "page cached twice");
        let bits = if read { &mut line.reading } else { &mut line.uptodate };
        *bits |= mask;
        let place = Place { slot, line: index as u8 };
        if self.ages.is_empty() {
            self.lru.push(Kind::Inactive, place, &mut line.parts, mask, added);
        } else {
            self.put_dropped(place, mask, added, read);
        }
    }

    /// Pages that have come to the cache come to a list; some of them may have been dropped before.
    #[cold]
    fn put_dropped(&mut self, place: Place, mask: u64, added: u64, read: bool) {
        let chunk = &mut self.chunks[place.slot as usize];
        let line = &mut chunk.lines[place.line as usize];
        let number = u64::from(chunk.index) * LINES as u64 + u64::from(place.line);
        let active = self.ages.comes_back((chunk.file, number), mask, self.counted.active, read);
        let soon = u64::from(active.count_ones());
        if mask != active {
            self.lru.push(Kind::Inactive, place, &mut line.parts, mask & !active, added - soon);
        }
        if active != 0 {
            self.lru.push(Kind::Active, place, &mut line.parts, active, soon);
            line.active |= active;
            self.come_back = true;
        }
    }

    /// A read has completed: its pages are up to date.
    pub fn read_done(&mut self, range: PageRange) {
        for (page, mask) in lines(range.first, range.end()) {
            let line = self.line_mut(range.file, page).expect("pages being read stay cached");
            debug_assert_eq!(line.reading & mask, mask, "read_done for a page that is not being read");
            line.reading &= !mask;
            line.uptodate |= mask;
        }
    }

    /// The pages of `mask`, `count` of them, get new data if at most `most` are clean, and all are up to date, or not
    /// cached if it `adds` pages. Returns how many were clean. `None`: nothing was done.
    #[inline]
    pub fn write(
        &mut self,
        file: FileId,
        page: u64,
        mask: u64,
        count: u64,
        most: u64,
        adds: impl FnOnce(&Pages) -> bool,
    ) -> Option<u64> {
        let (mut slot, index) = (self.slot(file, page), line_index(page));
        let (uptodate, reading, dirty) = match self.chunks.get(slot as usize) {
            Some(Chunk { lines, .. }) => (lines[index].uptodate, lines[index].reading, lines[index].dirty),
            None => (0, 0, 0),
        };
        let clean = mask & !dirty;
        // Dirty pages are up to date.
        if clean == 0 {
            return Some(0);
        }
        let newly = if clean == mask { count } else { count_few(clean) };
        let absent = clean & !uptodate;
        if newly > most || (absent != 0 && (absent & reading != 0 || !adds(self))) {
            return None;
        }
        if absent != 0 {
            let added = if absent == mask { count } else { count_few(absent) };
            if slot == NONE {
                slot = self.chunk_for(file, page);
            }
            self.insert(slot, page, absent, added, false);
        }
        self.make_dirty(slot, page, clean, newly);
        Some(newly)
    }

    /// These pages of the line of `page` in this chunk, `newly` of them, become dirty.
    #[inline(always)]
    fn make_dirty(&mut self, slot: u32, page: u64, clean: u64, newly: u64) {
        let (chunk, index) = (&mut self.chunks[slot as usize], line_index(page));
        let of = &mut self.files[chunk.file.index()];
        chunk.lines[index].dirty |= clean;
        chunk.dirty |= 1 << index;
        self.overhead.written(&mut chunk.with_heads[index], clean);
        self.dirty += newly;
        of.dirty += newly;
        set_bit(&mut of.dirty_chunks, chunk.index as usize, true);
    }

    /// The pages of `mask`, `count` of them, get new data; those not cached are added. Returns how many were clean.
    pub fn dirty(&mut self, file: FileId, page: u64, mask: u64, count: u64) -> u64 {
        let of_part = |part: u64| if part == mask { count } else { u64::from(part.count_ones()) };
        let slot = self.chunk_for(file, page);
        let line = self.state(file, page);
        let absent = mask & !line.present();
        if absent != 0 {
            self.insert(slot, page, absent, of_part(absent), false);
        }
        let clean = mask & !line.dirty;
        let newly = of_part(clean);
        if newly > 0 {
            self.make_dirty(slot, page, clean, newly);
        }
        newly
    }

    /// Moves dirty pages to writeback.
    pub fn start_writeback(&mut self, range: PageRange) {
        let of = &mut self.files[range.file.index()];
        for (page, mask) in lines(range.first, range.end()) {
            let (at, index) = ((page / CHUNK_PAGES) as usize, line_index(page));
            let chunk = &mut self.chunks[of.chunks[at] as usize];
            let line = &mut chunk.lines[index];
            debug_assert_eq!(line.dirty & !line.writeback & mask, mask, "only dirty pages are written");
            line.dirty &= !mask;
            line.writeback |= mask;
            chunk.to_write[index] &= !mask;
            if line.dirty == 0 {
                chunk.dirty &= !(1 << index);
            }
            chunk.writeback |= 1 << index;
            set_bit(&mut of.writeback_chunks, at, true);
            if chunk.dirty == 0 {
                set_bit(&mut of.dirty_chunks, at, false);
            }
        }
        let pages = u64::from(range.pages);
        of.dirty -= pages;
        of.writeback += pages;
        self.dirty -= pages;
        self.writeback += pages;
    }

    /// A process that writes this page sleeps: nothing else may write or change it.
    pub fn lock(&mut self, file: FileId, page: u64) {
        debug_assert!(!self.is_locked(file, page), "a lock has one owner");
        self.locked.push((file, page));
    }

    pub fn unlock(&mut self, file: FileId, page: u64) {
        self.locked.retain(|&locked| locked != (file, page));
    }

    pub fn is_locked(&self, file: FileId, page: u64) -> bool {
        self.locked.contains(&(file, page))
    }

    /// The locked pages of the line that begins there.
    #[inline]
    pub fn locked_in_line(&self, file: FileId, line: u64) -> u64 {
        let here =
            self.locked.iter().filter(|(of, page)| *of == file && page / LINE_PAGES * LINE_PAGES == line);
        here.fold(0, |bits, &(_, page)| bits | page_bit(page))
    }

    /// A write has completed.
    pub fn end_writeback(&mut self, range: PageRange) {
        for (page, mask) in lines(range.first, range.end()) {
            let slot = self.slot(range.file, page) as usize;
            let index = line_index(page);
            let chunk = &mut self.chunks[slot];
            let line = &mut chunk.lines[index];
            debug_assert_eq!(line.writeback & mask, mask, "write_done for a page that is not being written");
            line.writeback &= !mask;
            let early = line.marker & !line.dirty & mask;
            line.marker &= !mask;
            if line.writeback == 0 {
                chunk.writeback &= !(1 << index);
                if chunk.writeback == 0 {
                    let of = &mut self.files[range.file.index()];
                    set_bit(&mut of.writeback_chunks, (page / CHUNK_PAGES) as usize, false);
                }
            }
            if early != 0 {
                self.put_first(Place { slot: slot as u32, line: index as u8 }, early);
            }
        }
        let pages = u64::from(range.pages);
        self.files[range.file.index()].writeback -= pages;
        self.writeback -= pages;
    }

    /// Drops the pages of `mask` in a line of a chunk, of which the kernel remembers nothing; frees the chunk when it is
    /// empty.
    pub fn remove(&mut self, slot: usize, index: usize, mask: u64) {
        let chunk = &mut self.chunks[slot];
        let line = &mut chunk.lines[index];
        debug_assert_eq!(line.clean() & mask, mask, "only clean pages are dropped");
        self.lru.take(&mut line.parts, mask);
        if self.forget(slot, index, mask) {
            let chunk = &self.chunks[slot];
            self.free_node(chunk.file, u64::from(chunk.index) * LINES as u64 + index as u64);
        }
    }

    /// Drops pages that are in no list any more. Returns whether the line has no pages left; its node stays.
    pub fn forget(&mut self, slot: usize, index: usize, mask: u64) -> bool {
        let chunk = &mut self.chunks[slot];
        let line = &mut chunk.lines[index];
        let dropped = u64::from(mask.count_ones());
        for bits in [&mut line.uptodate, &mut line.marker, &mut line.referenced, &mut line.active] {
            *bits &= !mask;
        }
        let of = &mut self.files[chunk.file.index()];
        self.cached -= dropped;
        of.cached -= dropped;
        self.overhead.dropped(&mut chunk.with_heads[index], mask);
        let is_empty = line.present() == 0;
        if is_empty {
            self.overhead.line_ends();
            chunk.present &= !(1 << index);
            if chunk.present == 0 {
                of.chunks[chunk.index as usize] = NONE;
                self.free.push(slot as u32);
            }
        }
        is_empty
    }

    /// Frees the node of a line of a file, if it has no pages.
    pub fn free_node(&mut self, file: FileId, line: u64) {
        let (chunk, bit) = (line as usize / LINES, 1 << (line % LINES as u64));
        let of = &mut self.files[file.index()];
        let has_pages = self.chunks.get(of.chunks[chunk] as usize).is_some_and(|of| of.present & bit != 0);
        if !has_pages && of.with_node[chunk] & bit != 0 {
            of.with_node[chunk] &= !bit;
            self.overhead.node_goes();
        }
    }

    /// Drops the clean pages of `first..end` without those of `kept`, which is in order.
    pub fn drop_clean(&mut self, file: FileId, first: u64, end: u64, kept: &[u64]) {
        let end = end.min(self.files[file.index()].chunks.len() as u64 * CHUNK_PAGES);
        let mut page = first;
        while page < end && self.files[file.index()].cached > 0 {
            let slot = self.slot(file, page);
            if slot == NONE {
                page = (page / CHUNK_PAGES + 1) * CHUNK_PAGES;
                continue;
            }
            let index = line_index(page);
            let next = line_end(page);
            let mut clean = self.chunks[slot as usize].lines[index].clean() & line_mask(page, end);
            let of_line =
                kept.partition_point(|&kept| kept < page)..kept.partition_point(|&kept| kept < next);
            clean &= !kept[of_line].iter().fold(0, |bits, &kept| bits | page_bit(kept));
            if clean != 0 {
                self.remove(slot as usize, index, clean);
            }
            page = next;
        }
    }
}

impl File {
    fn grow(&mut self, size_bytes: u64) {
        self.size_bytes = size_bytes;
        let chunks = size_bytes.div_ceil(CHUNK_PAGES * PAGE_BYTES) as usize;
        self.chunks.resize(chunks, NONE);
        self.with_node.resize(chunks, 0);
        self.dirty_chunks.resize(chunks.div_ceil(64), 0);
        self.writeback_chunks.resize(chunks.div_ceil(64), 0);
    }
}
