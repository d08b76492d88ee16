//! On-demand read-ahead, as in Linux 7.3's `mm/readahead.c`.
//!
//! Every open file keeps the latest window that was read ahead: `size` pages from `start`, of which
//! the last `async_size` begin with a marked page. A read that misses starts a window
//! (`sync_readahead`); a read that reaches the marked page starts the next, so that the disk works
//! while the process consumes the pages (`async_readahead`). Windows double up to the maximum; a
//! single random read gets only the pages that it needs.

use std::collections::VecDeque;

use super::pages::{LINE_PAGES, line_mask, lines, page_bit};
use super::{FileId, PAGE_BYTES, PageCache, PageRange, first_bits};

/// The process's advice to the kernel about its use of the file (posix_fadvise(2)). fio's
/// `fadvise_hint`, on by default, gives `Random` or `Sequential`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Advice {
    /// No advice.
    #[default]
    Normal,
    /// Reads in order: the window may become twice as large.
    Sequential,
    /// Random reads: a miss reads only the requested pages.
    Random,
}

/// `MAX_PAGECACHE_ORDER`: a folio has at most 2 MiB.
const MAX_ORDER: u32 = 9;
/// `force_page_cache_ra` reads that many pages at a time, 2 MiB.
const FORCED_PAGES: u64 = 512;

/// What is left of a window: the missing ones of these pages are to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Window {
    next: u64,
    end: u64,
    /// This page is marked, if it is read.
    mark: Option<u64>,
}

/// Windows of a call that reads, as far as its next pages are not known yet: see [`PageCache::read_on`].
#[derive(Debug, Default)]
pub struct Windows(VecDeque<Window>);

impl Windows {
    /// Whether none is left.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Read-ahead state of one open file (`struct file_ra_state`), in pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadAhead {
    start: u64,
    size: u64,
    async_size: u64,
    /// The logarithm of the pages of the latest window's folios.
    order: u32,
    max: u64,
    /// The disk's largest request.
    io_pages: u64,
    random: bool,
    /// Where the previous read ended, in bytes; all ones before the first.
    pub(super) prev_pos: u64,
}

impl ReadAhead {
    /// A file just opened, on a disk whose window is `max` pages and largest request `io_pages`.
    pub(super) fn new(max: u64, io_pages: u64, advice: Advice) -> ReadAhead {
        ReadAhead {
            start: 0,
            size: 0,
            async_size: 0,
            order: 0,
            max: if advice == Advice::Sequential { max * 2 } else { max },
            io_pages,
            random: advice == Advice::Random,
            prev_pos: u64::MAX,
        }
    }

    /// `ractl_max_pages`: one read larger than the window may be read ahead up to the disk's
    /// largest request.
    fn max_window(&self, asked: u64) -> u64 {
        if asked > self.max && self.io_pages > self.max { asked.min(self.io_pages) } else { self.max }
    }

    /// The end of a window that is read ahead in time goes back to a multiple of its folios' pages, if
    /// something is left. Folios are four times as large as those of the window before, within the
    /// window (`page_cache_async_ra`, `page_cache_ra_order`). Before the first read-ahead the window has no
    /// pages, and a marked first page doubles it to none: nothing is read, and no window bounds the order.
    fn align(&mut self, max: u64, large_folios: bool) {
        let order = self.order + 2;
        let align = 1 << order.min(max.trailing_zeros());
        let end = (self.start + self.size) / align * align;
        if end > self.start {
            self.size = end - self.start;
        }
        self.order = if large_folios {
            order.min(MAX_ORDER).min(self.size.checked_ilog2().unwrap_or(MAX_ORDER))
        } else {
            0
        };
    }

    /// `get_next_ra_size`.
    fn next_size(size: u64, max: u64) -> u64 {
        if size < max / 16 {
            4 * size
        } else if size <= max / 2 {
            2 * size
        } else {
            max
        }
    }
}

/// `get_init_ra_size`.
fn initial_size(asked: u64, max: u64) -> u64 {
    let size = asked.next_power_of_two();
    if size <= max / 32 {
        size * 4
    } else if size <= max / 4 {
        size * 2
    } else {
        max
    }
}

impl PageCache {
    /// `page_cache_sync_ra`: page `index` is missing; the read wants `asked` pages from there.
    pub(super) fn sync_readahead(
        &mut self,
        file: FileId,
        index: u64,
        asked: u64,
        ra: &mut ReadAhead,
        windows: &mut Windows,
        out: &mut Vec<PageRange>,
    ) {
        if ra.max == 0 || ra.random {
            let pages = if ra.max == 0 { 1 } else { asked.min(ra.io_pages.max(ra.max)) };
            for done in (0..pages).step_by(FORCED_PAGES as usize) {
                self.start_read(file, index + done, FORCED_PAGES.min(pages - done), 0, windows, out);
            }
            return;
        }
        let max = ra.max_window(asked);
        let since_previous = index.wrapping_sub(ra.prev_pos / PAGE_BYTES);
        if index == 0 || asked > max || since_previous <= 1 {
            // The file's start, a read larger than any window, or the next page in order.
            ra.size = initial_size(asked, max);
            ra.async_size = if ra.size > asked { ra.size - asked } else { ra.size / 2 };
        } else {
            // Cached pages before it are the trace of a sequential stream (`page_cache_prev_miss`,
            // which checks `max` pages and, if all of them are cached, returns the last).
            let found = self.pages.run_before(file, index, index.saturating_sub(max));
            let history = found.min(max - 1);
            if history <= asked {
                return self.start_read(file, index, asked, 0, windows, out);
            }
            let from_the_start = found == index && found < max;
            let history = if from_the_start { history * 2 } else { history };
            ra.size = (history + asked).min(max);
            ra.async_size = 1;
        }
        ra.start = index;
        ra.order = 0;
        self.start_read(file, index, ra.size, ra.async_size, windows, out);
    }

    /// `page_cache_async_ra`: the read has reached the marked page `index`. During writeback the
    /// mark stays (the kernel keeps another flag in the same bit).
    pub(super) fn async_readahead(
        &mut self,
        file: FileId,
        index: u64,
        asked: u64,
        ra: &mut ReadAhead,
        windows: &mut Windows,
        out: &mut Vec<PageRange>,
    ) {
        let line = self.pages.line_mut(file, index).expect("marked pages are cached");
        if ra.max == 0 || line.writeback & page_bit(index) != 0 {
            return;
        }
        line.marker &= !page_bit(index);
        let max = ra.max_window(asked);
        if index == (ra.start + ra.size).wrapping_sub(ra.async_size) {
            ra.start += ra.size;
            ra.size = ra.size.max(ReadAhead::next_size(ra.size, max));
        } else {
            // The mark of another open file, or of another stream on this file: the pages cached
            // after it were its window.
            let cached = self.pages.run(file, index + 1, index + 1 + max, |line| line.present());
            if cached == max {
                return;
            }
            ra.start = index + 1 + cached;
            ra.size = ReadAhead::next_size(1 + cached + asked, max);
        }
        if self.kernel.aligns_read_ahead {
            ra.align(max, self.large_folios);
        }
        ra.async_size = ra.size;
        self.start_read(file, ra.start, ra.size, ra.async_size, windows, out);
    }

    /// `do_page_cache_ra`: reads the missing pages of `pages` pages from `index` on, up to the end
    /// of the file and as far as there is memory, and marks the page that is `lookahead` pages
    /// before the end.
    fn start_read(
        &mut self,
        file: FileId,
        index: u64,
        pages: u64,
        lookahead: u64,
        windows: &mut Windows,
        out: &mut Vec<PageRange>,
    ) {
        let file_pages = self.pages.size_bytes(file).div_ceil(PAGE_BYTES);
        let to_the_end = file_pages.saturating_sub(index);
        let has_mark = !self.kernel.last_window_has_no_mark || pages < to_the_end;
        let pages = pages.min(to_the_end);
        let mark = pages.checked_sub(lookahead).filter(|_| has_mark).map(|offset| index + offset);
        let window = Window { next: index, end: index + pages, mark };
        let rest = if windows.is_empty() { self.read_run(file, window, out) } else { Some(window) };
        windows.0.extend(rest);
    }

    /// The call that has begun to read windows goes on, when the range before is submitted: appends the next
    /// contiguous pages that are missing now, if there are any. A page that is cached parts the pages of a window,
    /// each part is submitted before the next is looked for, and while the process sleeps for requests others may
    /// bring pages into the cache (`read_pages` in `page_cache_ra_unbounded`).
    pub fn read_on(&mut self, file: FileId, windows: &mut Windows, out: &mut Vec<PageRange>) {
        let before = out.len();
        while out.len() == before
            && let Some(window) = windows.0.pop_front()
            && let Some(rest) = self.read_run(file, window, out)
        {
            windows.0.push_front(rest);
        }
    }

    /// Reads the first contiguous missing pages of a window. The rest of it is what lies behind the cached page that
    /// ends them: whether those pages are cached, too, is asked when the read is submitted.
    fn read_run(&mut self, file: FileId, window: Window, out: &mut Vec<PageRange>) -> Option<Window> {
        let Window { next, end, mark } = window;
        let absent = |cache: &PageCache, first, wanted| wanted & !cache.pages.state(file, first).present();
        let needed = lines(next, end).map(|(first, wanted)| absent(self, first, wanted).count_ones());
        let needed = needed.map(u64::from).sum();
        // Cached pages may be dropped to make room: then they are read too, as far as there is
        // room.
        let mut room = self.make_room(needed);
        let fits = room == needed;
        let mut run = PageRange { file, first: 0, pages: 0 };
        for (first, wanted) in lines(next, end) {
            let missing = first_bits(absent(self, first, wanted), room);
            if missing == 0 {
                if run.pages > 0 {
                    break;
                }
                continue;
            }
            let low = missing.trailing_zeros();
            let from = first / LINE_PAGES * LINE_PAGES + u64::from(low);
            if run.pages > 0 && from != run.end() {
                break;
            }
            let pages = (missing >> low).trailing_ones();
            let taken = line_mask(from, from + u64::from(pages));
            room -= u64::from(pages);
            self.pages.insert_reading(file, first, taken);
            if let Some(mark) = mark.filter(|&page| page >= from && page < from + u64::from(pages)) {
                let line = self.pages.line_mut(file, first).expect("just inserted");
                line.marker |= page_bit(mark);
            }
            run = PageRange {
                first: if run.pages == 0 { from } else { run.first },
                pages: run.pages + pages,
                file,
            };
            if wanted >> low >> (pages - 1) > 1 {
                // The next page of the line is wanted and not taken.
                break;
            }
        }
        if run.pages == 0 {
            return None;
        }
        out.push(run);
        let behind = run.end() + 1;
        (behind < end && (fits || room > 0)).then_some(Window { next: behind, end, mark })
    }

    /// Reads one page, if there is memory for it (`filemap_create_folio`).
    pub(super) fn read_one(&mut self, file: FileId, page: u64, out: &mut Vec<PageRange>) -> bool {
        if self.make_room(1) == 0 {
            return false;
        }
        let bit = page_bit(page);
        self.pages.insert_reading(file, page, bit);
        out.push(PageRange { file, first: page, pages: 1 });
        true
    }
}
