//! The reads of read-ahead, derived from `mm/readahead.c` by hand.

use super::*;

/// A reader with a disk that takes no time: every range read, as (first page, pages).
struct Reader {
    cache: PageCache,
    file: FileId,
    ra: ReadAhead,
}

impl Reader {
    fn new(file_bytes: u64, max_sectors_kb: u64, advice: Advice) -> Reader {
        let mut cache = PageCache::new(&config(), &[disk(max_sectors_kb)]);
        let file = cache.add_file(file_bytes, BackingId(0));
        let ra = cache.open(file, advice);
        Reader { cache, file, ra }
    }

    /// The next step of a read, with all of its ranges.
    fn step(&mut self, offset: u64, bytes: u64, out: &mut Vec<PageRange>) -> Step {
        let mut windows = Windows::default();
        let step = self.cache.read(self.file, offset, bytes, &mut self.ra, &mut windows, out);
        while !windows.is_empty() {
            self.cache.read_on(self.file, &mut windows, out);
        }
        step
    }

    fn read(&mut self, mut offset: u64, mut bytes: u64) -> Vec<(u64, u32)> {
        let mut asked = Vec::new();
        loop {
            let mut out = Vec::new();
            let step = self.step(offset, bytes, &mut out);
            for range in out {
                self.cache.read_done(range);
                asked.push((range.first, range.pages));
            }
            (offset, bytes) = (offset + step.bytes, bytes - step.bytes);
            match step.wait {
                None => return asked,
                Some(Wait::Work) => {}
                Some(Wait::Page(page)) => assert_eq!(page, offset / PAGE_BYTES),
                Some(wait) => panic!("{wait:?} with free memory and no writer"),
            }
        }
    }

    /// Reads of `step` bytes from `from` to `to`, one after the other: the reads of the disk.
    fn sequence(&mut self, from: u64, to: u64, step: u64) -> Vec<(u64, u32)> {
        (from..to).step_by(step as usize).flat_map(|offset| self.read(offset, step)).collect()
    }
}

#[test]
fn small_sequential_reads_double_the_window_up_to_read_ahead_kb() {
    // 32-page window, reads of one page. Page 0: get_init_ra_size(1, 32) = 4, async_size
    // 4 - 1 = 3, marker on page 1. Page 1: get_next_ra_size(4) = 8 from page 4, all of it
    // async, so the marker is its first page; then 16, 32, and 32 for ever.
    let mut reader = Reader::new(MIB, 1280, Advice::Normal);
    assert_eq!(reader.read(0, 4 * KIB), [(0, 4)]);
    assert_eq!(reader.read(4 * KIB, 4 * KIB), [(4, 8)]);
    assert_eq!(reader.read(8 * KIB, 4 * KIB), []);
    assert_eq!(reader.sequence(12 * KIB, 92 * 4 * KIB, 4 * KIB), [(12, 16), (28, 32), (60, 32), (92, 32)]);
}

/// The windows of a reader of single pages from the file's beginning.
fn windows_from(config: &MemoryConfig) -> Vec<(u64, u32)> {
    let mut reader = Reader::new(64 * MIB, 1280, Advice::Normal);
    reader.cache = PageCache::new(config, &[disk(1280)]);
    reader.file = reader.cache.add_file(64 * MIB, BackingId(0));
    reader.ra = reader.cache.open(reader.file, Advice::Normal);
    reader.sequence(0, 124 * 4 * KIB, 4 * KIB)
}

#[test]
fn since_7_3_windows_end_at_multiples_of_folios_which_grow() {
    // Windows of 4, 8, 16 and then 32 pages, each from the end of the one before.
    let small = [(0, 4), (4, 8), (12, 16), (28, 32), (60, 32), (92, 32), (124, 32)];
    let before = MemoryConfig { kernel: Kernel::of(6012), large_folios: true, ..config() };
    assert_eq!(windows_from(&before), small, "6.12 aligns nothing");
    // Without large folios the order is 2 each time: all these ends are multiples of four pages.
    assert_eq!(windows_from(&config()), small);
    // With them it is 2, 4 and so on, but no larger than the window before allows (its logarithm) plus 2, and at
    // most 5, 32 pages: 28 goes back to 16, then 24 stays, since 16 would leave nothing, 40 goes back to 32, and
    // so on, until a window of 32 begins at a multiple of 32.
    let large =
        [(0, 4), (4, 8), (12, 4), (16, 8), (24, 8), (32, 16), (48, 16), (64, 32), (96, 32), (128, 32)];
    assert_eq!(windows_from(&MemoryConfig { large_folios: true, ..config() }), large);
}

#[test]
fn a_random_reader_asks_for_at_most_2_mib_at_a_time() {
    // Advised random, 3 MiB at once, the disk's largest request 4 MiB.
    let mut reader = Reader::new(64 * MIB, 4096, Advice::Random);
    assert_eq!(reader.read(8 * MIB, 3 * MIB), [(2048, 512), (2560, 256)]);
}

#[test]
fn posix_fadv_sequential_doubles_the_largest_window() {
    // 64-page window: get_init_ra_size(1, 64) = 4 (1 <= 64/32); get_next_ra_size doubles
    // from 4 on (4 is not below 64/16).
    let mut reader = Reader::new(4 * MIB, 1280, Advice::Sequential);
    let asked = reader.sequence(0, 200 * 4 * KIB, 4 * KIB);
    assert_eq!(asked, [(0, 4), (4, 8), (12, 16), (28, 32), (60, 64), (124, 64), (188, 64), (252, 64)]);
}

#[test]
fn reads_of_a_page_cross_the_end_of_the_file_by_nothing() {
    // 10 pages: 4, then 8 from page 4 on, cut to 6 (do_page_cache_ra). The cut window's
    // marker would be at page 6 - 8 < 0 from its start: there is none.
    let mut reader = Reader::new(10 * 4 * KIB - 100, 1280, Advice::Normal);
    assert_eq!(reader.sequence(0, 10 * 4 * KIB, 4 * KIB), [(0, 4), (4, 6)]);
}

#[test]
fn a_large_read_is_read_ahead_by_the_disks_largest_request() {
    // 1 MiB is 256 pages, above the window of 32; io_pages is 320, so the window may be
    // min(256, 320) = 256: get_init_ra_size(256, 256) = 256, not above the request, so
    // async_size = 128 and the marker is on page 128. There 128 pages are left to read:
    // get_next_ra_size(256, 128) = 128, but a window does not shrink: 256 from 256 on,
    // marker on 256, where the second MiB begins.
    let mut reader = Reader::new(8 * MIB, 1280, Advice::Normal);
    assert_eq!(reader.read(0, MIB), [(0, 256), (256, 256)]);
    assert_eq!(reader.read(MIB, MIB), [(512, 256)]);
    assert_eq!(reader.read(2 * MIB, MIB), [(768, 256)]);
}

#[test]
fn a_read_larger_than_the_disks_request_goes_in_such_requests() {
    // io_pages 128 < 256: the window is 128, async_size 64. Page 64: 192 are left, max
    // 128, next window 128 from 128 on, marker on 128; page 128: 128 left: [256, 384).
    let mut reader = Reader::new(8 * MIB, 512, Advice::Normal);
    assert_eq!(reader.read(0, MIB), [(0, 128), (128, 128), (256, 128)]);
    // Marker on 256 (192 behind it are beyond this window): 384, then at 384: 512.
    assert_eq!(reader.read(MIB, MIB), [(384, 128), (512, 128)]);
}

#[test]
fn lone_random_reads_ask_for_what_they_want_and_keep_the_window() {
    let mut reader = Reader::new(64 * MIB, 1280, Advice::Normal);
    assert_eq!(reader.read(40 * MIB, 4 * KIB), [(10240, 1)]);
    assert_eq!(reader.read(8 * MIB, 16 * KIB), [(2048, 4)]);
    // The page after a cached page is the next in order: prev_pos is in page 2051.
    // get_init_ra_size(1, 32) = 4.
    assert_eq!(reader.read(8 * MIB + 16 * KIB, 4 * KIB), [(2052, 4)]);
}

#[test]
fn an_unaligned_read_of_the_same_page_counts_as_sequential() {
    // Bytes 0..6000 of page 2560 on: index - prev_index <= 1 holds for 0, too.
    let mut reader = Reader::new(64 * MIB, 1280, Advice::Normal);
    assert_eq!(reader.read(10 * MIB, 2 * KIB), [(2560, 1)]);
    reader.cache.drop_caches();
    assert_eq!(reader.read(10 * MIB + 2 * KIB, 2 * KIB), [(2560, 4)]);
}

#[test]
fn cached_pages_in_front_of_a_miss_are_taken_for_a_stream() {
    // Context read-ahead: another open file has read pages 1000..1006 (in any order). This open
    // file, which was last elsewhere, misses page 1006: 6 pages of history > 1 asked, so ra.size =
    // 6 + 1, async_size = 1.
    let mut reader = Reader::new(64 * MIB, 1280, Advice::Normal);
    let other = Advice::Random;
    let mut ra = std::mem::replace(&mut reader.ra, reader.cache.open(reader.file, other));
    for page in (1000..1006).rev() {
        assert_eq!(reader.read(page * 4 * KIB, 4 * KIB), [(page, 1)]);
    }
    std::mem::swap(&mut ra, &mut reader.ra);
    assert_eq!(reader.read(1006 * 4 * KIB, 4 * KIB), [(1006, 7)]);
    // The marker is on the last page, 1012; the next window is get_next_ra_size(7, 32) = 14, and its end,
    // 1027, goes back to a multiple of four pages.
    assert_eq!(reader.sequence(1007 * 4 * KIB, 1012 * 4 * KIB, 4 * KIB), []);
    assert_eq!(reader.read(1012 * 4 * KIB, 4 * KIB), [(1013, 11)]);
}

#[test]
fn a_file_cached_from_its_beginning_doubles_the_history() {
    // Pages 0..6 cached, page 6 missed: page_cache_prev_miss wraps, history 6 * 2, + 1.
    let mut reader = Reader::new(64 * MIB, 1280, Advice::Random);
    reader.sequence(0, 6 * 4 * KIB, 4 * KIB);
    reader.ra = reader.cache.open(reader.file, Advice::Normal);
    assert_eq!(reader.read(6 * 4 * KIB, 4 * KIB), [(6, 13)]);
}

#[test]
fn interleaved_streams_on_one_open_file_keep_their_windows() {
    // Both streams change each other's `start`; their markers are found all the same, and the pages
    // cached after a marker show the size of the window.
    let mut reader = Reader::new(64 * MIB, 1280, Advice::Normal);
    let (a, b) = (0, 32 * MIB);
    assert_eq!(reader.read(a, 4 * KIB), [(0, 4)]);
    assert_eq!(reader.read(b, 4 * KIB), [(8192, 1)]);
    // Marker on 1, expected (start 0, size 4, async 3): the single read kept the state.
    assert_eq!(reader.read(a + 4 * KIB, 4 * KIB), [(4, 8)]);
    // b again: index 8193 - prev_index 1 is large; history 1 <= 1: a single read.
    assert_eq!(reader.read(b + 4 * KIB, 4 * KIB), [(8193, 1)]);
    assert_eq!(reader.read(a + 8 * KIB, 4 * KIB), []);
    // History 2 > 1: size 2 + 1, async_size 1, marker on 8196.
    assert_eq!(reader.read(b + 8 * KIB, 4 * KIB), [(8194, 3)]);
    // a's marker on 4 is not where b's window expects one: 7 pages after it are cached, so start =
    // 12, size = next(1 + 7 + 1) = 18, and the end, 30, goes back to 28.
    assert_eq!(reader.sequence(a + 12 * KIB, a + 20 * KIB, 4 * KIB), [(12, 16)]);
}

#[test]
fn posix_fadv_random_reads_just_the_request() {
    let mut reader = Reader::new(64 * MIB, 1280, Advice::Random);
    assert_eq!(reader.read(0, 4 * KIB), [(0, 1)]);
    assert_eq!(reader.read(4 * KIB, 64 * KIB), [(1, 16)]);
    // Up to io_pages = 320 at a time (force_page_cache_ra).
    assert_eq!(reader.read(8 * MIB, 2 * MIB), [(2048, 320), (2368, 192)]);
}

#[test]
fn without_a_window_pages_are_read_one_by_one() {
    let mut reader = Reader::new(MIB, 1280, Advice::Normal);
    reader.cache = PageCache::new(&config(), &[BackingConfig { read_ahead: Bytes(0), ..disk(1280) }]);
    reader.file = reader.cache.add_file(MIB, BackingId(0));
    reader.ra = reader.cache.open(reader.file, Advice::Normal);
    assert_eq!(reader.read(0, 12 * KIB), [(0, 1), (1, 1), (2, 1)]);
}

#[test]
fn a_window_omits_cached_pages() {
    let mut reader = Reader::new(MIB, 1280, Advice::Random);
    assert_eq!(reader.read(5 * 4 * KIB, 8 * KIB), [(5, 2)]);
    reader.ra = reader.cache.open(reader.file, Advice::Normal);
    // 4 pages, marker 1; then 8 from page 4 on, without 5 and 6.
    assert_eq!(reader.sequence(0, 8 * KIB, 4 * KIB), [(0, 4), (4, 1), (7, 5)]);
}

#[test]
fn the_batch_that_reaches_a_mark_is_copied_after_the_next_window_is_submitted() {
    // Windows of 4, 8, 16 and twice 32 pages; the last one, from 60 on, is asked for at the mark on 28 and
    // has its own mark on 60. Of 40 pages from page 24 on the first batch of 31 ends with page 54, the
    // second with page 60: its six pages are copied later.
    let mut reader = Reader::new(4 * MIB, 1280, Advice::Normal);
    reader.sequence(0, 29 * 4 * KIB, 4 * KIB);
    let mut out = Vec::new();
    let start = 24 * PAGE_BYTES + 100;
    let step = reader.step(start, 40 * PAGE_BYTES, &mut out);
    let bytes = 61 * PAGE_BYTES - start;
    assert_eq!(step, Step { bytes, uncopied: 6 * PAGE_BYTES, wait: Some(Wait::Work) });
    assert_eq!(out, [PageRange { file: reader.file, first: 92, pages: 32 }]);
    let (offset, rest) = (start + bytes, 40 * PAGE_BYTES - bytes);
    let step = reader.step(offset, rest, &mut out);
    assert_eq!(step, Step { bytes: rest, ..Step::default() });
}

#[test]
fn a_mark_on_a_page_that_is_being_read_is_no_reason_to_wait_before_the_copy_but_in_old_kernels() {
    for (kernel, waits_first) in [(7003, false), (6012, true)] {
        let config = MemoryConfig { kernel: Kernel::of(kernel), ..config() };
        let mut reader = Reader::new(4 * MIB, 1280, Advice::Normal);
        reader.cache = PageCache::new(&config, &[disk(1280)]);
        reader.file = reader.cache.add_file(4 * MIB, BackingId(0));
        reader.sequence(0, 4 * 4 * KIB, 4 * KIB);
        // Page 4 on is cached; the window after it, from 12 on, is under way.
        let mut out = Vec::new();
        let step = reader.step(4 * PAGE_BYTES, PAGE_BYTES, &mut out);
        assert_eq!(step, Step { bytes: PAGE_BYTES, uncopied: PAGE_BYTES, wait: Some(Wait::Work) });
        assert_eq!(out, [PageRange { file: reader.file, first: 12, pages: 16 }]);
        out.clear();
        let step = reader.step(5 * PAGE_BYTES, 20 * PAGE_BYTES, &mut out);
        let (bytes, uncopied) = (7 * PAGE_BYTES, 7 * PAGE_BYTES);
        assert_eq!(out, [PageRange { file: reader.file, first: 28, pages: 32 }]);
        if waits_first {
            assert_eq!(step, Step { bytes, uncopied, wait: Some(Wait::Page(12)) });
            continue;
        }
        assert_eq!(step, Step { bytes, uncopied, wait: Some(Wait::Work) });
        let step = reader.step(12 * PAGE_BYTES, 13 * PAGE_BYTES, &mut out);
        assert_eq!(step, Step { bytes: 0, uncopied: 0, wait: Some(Wait::Page(12)) });
    }
}

#[test]
fn a_read_ends_at_the_end_of_the_file() {
    let mut reader = Reader::new(10_000, 1280, Advice::Normal);
    let mut out = Vec::new();
    let step = reader.step(10_000, 4096, &mut out);
    assert_eq!((step, out.len()), (Step { bytes: 0, ..Step::default() }, 0));
    reader.read(8192, 1000);
    let step = reader.step(8192, 4096, &mut out);
    assert_eq!(step, Step { bytes: 10_000 - 8192, ..Step::default() });
}

#[test]
fn a_marked_page_under_write_back_starts_nothing() {
    // PG_readahead and PG_reclaim are one bit: page_cache_async_ra does nothing during writeback, and the end of
    // writeback (folio_end_writeback) clears the bit.
    let mut reader = Reader::new(MIB, 1280, Advice::Normal);
    assert_eq!(reader.read(0, 4 * KIB), [(0, 4)]);
    let (mut dirtier, mut out) = (reader.cache.dirtier(), Vec::new());
    reader.cache.write(Nanos::ZERO, reader.file, 4 * KIB, 4 * KIB, &mut dirtier, &mut out);
    let mut cursor = reader.cache.sync_start(reader.file);
    let range = PageRange { file: reader.file, first: 1, pages: 1 };
    assert_eq!(reader.cache.sync_next(&mut cursor, 1, Nanos::ZERO), SyncStep::Write(range));
    assert_eq!(reader.read(4 * KIB, 4 * KIB), []);
    reader.cache.write_done(range, Nanos::ZERO);
    assert_eq!(reader.read(4 * KIB, 4 * KIB), []);
}

#[test]
fn a_cached_page_parts_a_window_and_the_next_part_is_looked_for_when_the_one_before_is_submitted() {
    let mut reader = Reader::new(64 * MIB, 1280, Advice::Normal);
    assert_eq!(reader.read(10 * 4 * KIB, 4 * KIB), [(10, 1)]);
    let Reader { cache, file, ra } = &mut reader;
    let (mut out, mut windows) = (Vec::new(), Windows::default());
    // 32 pages from 0 on, of which page 10 is there.
    cache.read(*file, 0, 128 * KIB, ra, &mut windows, &mut out);
    let of = |first, pages| PageRange { file: *file, first, pages };
    assert_eq!(out, [of(0, 10)]);
    assert!(!windows.is_empty());
    // While the process sleeps, pages 20 and 21 are written by another one.
    let mut dirtier = cache.dirtier();
    cache.write(Nanos::ZERO, *file, 20 * 4 * KIB, 8 * KIB, &mut dirtier, &mut Vec::new());
    let mut others = Vec::new();
    while !windows.is_empty() {
        cache.read_on(*file, &mut windows, &mut others);
    }
    assert_eq!(others, [of(11, 9), of(22, 10)]);
}

#[test]
fn cached_pages_of_a_window_that_are_dropped_while_its_reader_sleeps_are_read_but_the_first() {
    let mut reader = Reader::new(64 * MIB, 1280, Advice::Normal);
    // All of 32 pages from 10 on are there.
    assert_eq!(reader.read(10 * 4 * KIB, 128 * KIB), [(10, 32)]);
    let Reader { cache, file, ra } = &mut reader;
    let (mut out, mut windows) = (Vec::new(), Windows::default());
    cache.read(*file, 0, 128 * KIB, ra, &mut windows, &mut out);
    let of = |first, pages| PageRange { file: *file, first, pages };
    assert_eq!(out, [of(0, 10)]);
    // While the process sleeps for a request, another one drops the file. Page 10 was seen before.
    cache.drop_unheld(*file);
    let mut later = Vec::new();
    cache.read_on(*file, &mut windows, &mut later);
    assert_eq!(later, [of(11, 21)]);
    assert!(windows.is_empty());
}

#[test]
fn dirty_pages_that_advice_to_drop_leaves_are_marked_until_they_are_written() {
    for is_written in [false, true] {
        let mut reader = Reader::new(MIB, 1280, Advice::Normal);
        let (file, mut dirtier) = (reader.file, reader.cache.dirtier());
        write_on(&mut reader.cache, Nanos::ZERO, file, 0, 4 * PAGE_BYTES, &mut dirtier);
        reader.cache.drop_unheld(file);
        assert_eq!(reader.cache.counts().cached, 4);
        if is_written {
            let mut cursor = reader.cache.sync_start(file);
            let all = PageRange { file, first: 0, pages: 4 };
            assert_eq!(reader.cache.sync_next(&mut cursor, 64, Nanos::ZERO), SyncStep::Write(all));
            reader.cache.write_done(all, Nanos::ZERO);
        }
        let asked = reader.read(0, 4 * PAGE_BYTES);
        // Two marked pages ask for a window each; for the others all pages up to the largest window are there.
        let windows: &[(u64, u32)] = if is_written { &[] } else { &[(4, 12), (16, 32)] };
        assert_eq!(asked, windows, "written: {is_written}");
    }
}

#[test]
fn a_mark_on_the_first_page_of_a_file_that_is_opened_anew_starts_nothing() {
    // The window has no pages, and none before it: twice nothing is nothing, whatever folios there are.
    for large_folios in [false, true] {
        let mut reader = Reader::new(MIB, 1280, Advice::Normal);
        reader.cache = PageCache::new(&MemoryConfig { large_folios, ..config() }, &[disk(1280)]);
        reader.file = reader.cache.add_file(MIB, BackingId(0));
        let mut dirtier = reader.cache.dirtier();
        write_on(&mut reader.cache, Nanos::ZERO, reader.file, 0, PAGE_BYTES, &mut dirtier);
        reader.cache.drop_unheld(reader.file);
        reader.ra = reader.cache.open(reader.file, Advice::Normal);
        assert_eq!(reader.read(0, PAGE_BYTES), []);
        // The next page is missing, and in order.
        assert_eq!(reader.read(PAGE_BYTES, PAGE_BYTES), [(1, 4)]);
    }
}
