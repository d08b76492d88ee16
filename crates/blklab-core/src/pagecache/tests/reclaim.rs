//! Full memory, sparse files, and direct I/O next to the cache.

use super::super::lru::Kind;
use super::*;

fn read(cache: &mut PageCache, file: FileId, page: u64) -> bool {
    let (mut ra, mut out) = (cache.open(file, Advice::Random), Vec::new());
    let hit = cache
        .read(file, page * PAGE_BYTES, PAGE_BYTES, &mut ra, &mut Windows::default(), &mut out)
        .wait
        .is_none();
    for range in out {
        cache.read_done(range);
    }
    if !hit {
        let again = cache.read(
            file,
            page * PAGE_BYTES,
            PAGE_BYTES,
            &mut ra,
            &mut Windows::default(),
            &mut Vec::new(),
        );
        assert_eq!(again.wait, None);
    }
    hit
}

fn cache_of(memory_pages: u64) -> PageCache {
    let mut config = config();
    config.memory = Bytes(memory_pages * PAGE_BYTES);
    PageCache::new(&config, &[disk(1280)])
}

#[test]
fn pages_read_twice_outlive_a_stream_read_once() {
    let mut cache = cache_of(1024);
    let file = cache.add_file(1 << 30, BackingId(0));
    for page in 0..256 {
        read(&mut cache, file, page);
        assert!(read(&mut cache, file, page));
    }
    for page in 10_000..11_400 {
        assert!(!read(&mut cache, file, page));
    }
    assert!((1024 - 3 * 64..=1024).contains(&cache.counts().cached));
    let survivors = (0..256).filter(|&page| read(&mut cache, file, page)).count();
    assert_eq!(survivors, 256);
}

#[test]
fn active_pages_become_inactive_where_they_are_more() {
    let mut cache = cache_of(1024);
    let file = cache.add_file(1 << 30, BackingId(0));
    for page in 0..700 {
        read(&mut cache, file, page);
        assert!(read(&mut cache, file, page));
    }
    for page in 10_000..14_000 {
        assert!(!read(&mut cache, file, page));
    }
    let survivors = (0..700).filter(|&page| cache.is_cached(file, page * PAGE_BYTES, PAGE_BYTES)).count();
    // As many as there are inactive ones.
    assert!((400..=512).contains(&survivors), "{survivors}");
}

#[test]
fn a_page_that_reclaim_has_found_dirty_is_the_next_to_be_dropped_when_it_is_written() {
    const ALL: u64 = 32 << 12;
    const DIRTY: u64 = 16;
    let (mut cache, now) = (cache_of(ALL), Nanos::from_secs(1));
    let file = cache.add_file(1 << 31, BackingId(0));
    let mut dirtier = cache.dirtier();
    write_on(&mut cache, now, file, 0, DIRTY * PAGE_BYTES, &mut dirtier);
    for page in 1000..1001 + ALL - DIRTY {
        read(&mut cache, file, page);
    }
    assert!(cache.is_cached(file, 0, PAGE_BYTES), "dirty pages stay");
    assert_eq!(cache.pages.lru.count(Kind::Active), DIRTY);
    let mut cursor = cache.sync_start(file);
    while let SyncStep::Write(range) = cache.sync_next(&mut cursor, 256, now) {
        cache.write_done(range, now);
    }
    assert_eq!(cache.pages.lru.count(Kind::Active), 0);
    let free = ALL - cache.counts().cached;
    let oldest_read = (1000..).find(|&page| cache.is_cached(file, page * PAGE_BYTES, PAGE_BYTES));
    for page in 300_000..300_001 + free {
        read(&mut cache, file, page);
    }
    assert!(!cache.is_cached(file, 0, DIRTY * PAGE_BYTES), "they were dropped");
    assert!(!cache.is_cached(file, oldest_read.unwrap_or(0) * PAGE_BYTES, PAGE_BYTES), "and then the oldest");
}

#[test]
fn a_full_memory_is_freed_up_to_the_next_watermark_in_rounds_that_double() {
    // 1 GiB, as in a guest: 4,224 pages between the watermarks.
    const ALL: u64 = 1 << 18;
    let mut cache = cache_of(ALL);
    let file = cache.add_file(1 << 40, BackingId(0));
    for page in 0..ALL {
        read(&mut cache, file, page);
    }
    assert_eq!(cache.counts().cached, ALL);
    read(&mut cache, file, ALL);
    // Rounds look at 1/4096 of the pages, 1/2048, …, until that is enough.
    let rounds: u64 = (6..=12).map(|priority| ALL >> priority).sum();
    let dropped = ALL + 1 - cache.counts().cached;
    assert!(4225 < rounds && dropped.abs_diff(rounds) < 200, "{dropped} pages");
    // The oldest are gone.
    assert!(read(&mut cache, file, dropped) && !read(&mut cache, file, dropped - 1));
}

#[test]
fn a_short_time_after_pages_were_dropped_more_are_if_memory_has_been_filled_again() {
    const ALL: u64 = 1 << 18;
    let mut cache = cache_of(ALL);
    let file = cache.add_file(1 << 40, BackingId(0));
    let mut page = 0;
    let mut read_on = |cache: &mut PageCache, pages: u64| {
        for _ in 0..pages {
            read(cache, file, page);
            page += 1;
        }
    };
    cache.advance(Nanos::from_secs(1));
    read_on(&mut cache, ALL + 1);
    let free = |cache: &PageCache| ALL - cache.counts().cached;
    let dropped = free(&cache);
    assert!(dropped > 4224);
    // Fewer are free than at the high watermark.
    read_on(&mut cache, dropped - 1000);
    cache.advance(Nanos::from_millis(1099));
    assert_eq!(free(&cache), 1000);
    // 100 ticks and one, up to a multiple of eight.
    cache.advance(Nanos::from_millis(1104));
    assert!(free(&cache) > 4224, "{}", free(&cache));
    // The next time enough is free, and the thread sleeps until memory is full.
    let left = free(&cache) - 4224;
    read_on(&mut cache, left);
    cache.advance(Nanos::from_millis(1300));
    assert_eq!(free(&cache), 4224);
    read_on(&mut cache, 4224);
    cache.advance(Nanos::from_secs(9));
    assert_eq!(free(&cache), 0);
}

#[test]
fn the_oldest_pages_of_a_stream_are_dropped_again_and_again() {
    const ALL: u64 = 1 << 18;
    let mut cache = cache_of(ALL);
    let file = cache.add_file(1 << 40, BackingId(0));
    let mut dropped = 0;
    // Two chunks of 4,096 pages are dropped at a time, and filled again.
    for page in 0..4 * ALL {
        read(&mut cache, file, page);
        let now = page + 1 - cache.counts().cached;
        if now > dropped {
            dropped = now;
            assert!(!cache.is_cached(file, 0, dropped * PAGE_BYTES), "page {page}");
        }
    }
    assert!(dropped > 3 * ALL);
}

#[test]
fn where_hardly_a_page_is_clean_reclaim_does_not_look_for_more_each_time() {
    let mut config = config();
    (config.memory, config.dirty_ratio) = (Bytes(1024 * PAGE_BYTES), 100);
    let mut cache = PageCache::new(&config, &[disk(1280)]);
    let file = cache.add_file(1 << 30, BackingId(0));
    let (mut dirtier, now) = (cache.dirtier(), Nanos::from_secs(1));
    let mut offset = 0;
    while cache.counts().dirty < 1020 {
        // Ignores all pauses.
        offset +=
            cache.write(now, file, offset, 1020 * PAGE_BYTES - offset, &mut dirtier, &mut Vec::new()).bytes;
    }
    for page in 10_000..10_004 {
        read(&mut cache, file, page);
    }
    assert_eq!((cache.counts().cached, cache.pages.tired), (1024, 0));
    read(&mut cache, file, 20_000);
    let tired = cache.pages.tired;
    assert!(tired > 0 && cache.counts().dirty == 1020);
    for page in 20_001..20_001 + tired as u64 {
        read(&mut cache, file, page);
        assert!(cache.counts().cached <= 1024);
    }
}

#[test]
fn a_loop_through_more_than_memory_reads_everything_again_but_one_within_it_nothing() {
    let mut cache = cache_of(1000);
    let file = cache.add_file(1 << 30, BackingId(0));
    for round in 0..5 {
        let hits = (0..1000).filter(|&page| read(&mut cache, file, page)).count();
        assert_eq!(hits, if round == 0 { 0 } else { 1000 });
    }
}

#[test]
fn a_sparse_terabyte_takes_memory_for_cached_pages_only() {
    let mut cache = cache_of(512);
    let file = cache.add_file(1 << 40, BackingId(0));
    let mut page = 0;
    for _ in 0..20_000 {
        page = (page + 98_765_431) % (1 << 28);
        read(&mut cache, file, page);
    }
    assert!((512 - 3 * 32..=512).contains(&cache.counts().cached));
    // At most one chunk per page, and emptied ones are reused.
    assert!(cache.pages.chunks.len() <= 513, "{} chunks", cache.pages.chunks.len());
    cache.drop_caches();
    assert_eq!(cache.counts().cached, 0);
    assert!(!read(&mut cache, file, page));
}

#[test]
fn dirty_pages_are_written_before_direct_io_and_gone_after_a_direct_write() {
    let mut cache = cache_of(10_000);
    let file = cache.add_file(MIB, BackingId(0));
    let (mut dirtier, mut out) = (cache.dirtier(), Vec::new());
    assert!(!cache.is_cached(file, 0, MIB));
    cache.write(Nanos::ZERO, file, 8 * KIB, 16 * KIB, &mut dirtier, &mut out);
    assert!(cache.is_cached(file, 0, 12 * KIB) && !cache.is_cached(file, 0, 8 * KIB));

    let mut cursor = cache.sync_start_range(file, 0, 12 * KIB);
    let first = PageRange { file, first: 2, pages: 1 };
    assert_eq!(cache.sync_next(&mut cursor, 256, Nanos::ZERO), SyncStep::Write(first));
    assert_eq!(cache.sync_next(&mut cursor, 256, Nanos::ZERO), SyncStep::Wait(2));
    cache.invalidate(file, 0, 12 * KIB);
    assert!(cache.is_cached(file, 0, 12 * KIB), "a page under write-back stays");
    cache.write_done(first, Nanos::ZERO);
    assert_eq!(cache.sync_next(&mut cursor, 256, Nanos::ZERO), SyncStep::Done);
    cache.invalidate(file, 0, 12 * KIB);
    assert!(!cache.is_cached(file, 0, 12 * KIB));
    assert_eq!(cache.counts(), Counts { cached: 3, dirty: 3, writeback: 0 });
}

#[test]
fn a_sync_of_some_bytes_writes_every_page_that_they_touch() {
    let mut cache = cache_of(10_000);
    let file = cache.add_file(MIB, BackingId(0));
    let (mut dirtier, mut out) = (cache.dirtier(), Vec::new());
    cache.write(Nanos::ZERO, file, 0, 16 * KIB, &mut dirtier, &mut out);
    // The last byte of the first page, and the first one of the second.
    let mut cursor = cache.sync_start_range(file, 4 * KIB - 1, 2);
    let both = PageRange { file, first: 0, pages: 2 };
    assert_eq!(cache.sync_next(&mut cursor, 256, Nanos::ZERO), SyncStep::Write(both));
}

#[test]
fn a_reader_without_memory_waits_and_the_flusher_is_woken() {
    let mut config = config();
    (config.memory, config.dirty_ratio) = (Bytes(64 * PAGE_BYTES), 100);
    let mut cache = PageCache::new(&config, &[disk(1280)]);
    let file = cache.add_file(MIB, BackingId(0));
    let (mut dirtier, mut out) = (cache.dirtier(), Vec::new());
    let mut ra = cache.open(file, Advice::Random);
    let now = Nanos::from_secs(1);
    let mut offset = 0;
    while cache.counts().dirty < 64 {
        // Ignores all pauses: the limit is soft, memory is not.
        offset += cache.write(now, file, offset, 64 * PAGE_BYTES - offset, &mut dirtier, &mut out).bytes;
    }
    let step = cache.read(file, 100 * PAGE_BYTES, PAGE_BYTES, &mut ra, &mut Windows::default(), &mut out);
    assert_eq!(step, Step { bytes: 0, uncopied: 0, wait: Some(Wait::Memory) });
    assert!(out.is_empty() && cache.flusher_due(BackingId(0)) <= now);
    let range = cache.next_writeback(BackingId(0), now, 64).expect("everything is dirty");
    cache.write_done(range, now);
    let step = cache.read(file, 100 * PAGE_BYTES, PAGE_BYTES, &mut ra, &mut Windows::default(), &mut out);
    assert_eq!(step.wait, Some(Wait::Page(100)));
}

#[test]
fn where_the_oldest_pages_are_all_dirty_the_flusher_writes_everything() {
    for dirty in [16, 40] {
        // The first round looks at 32 pages.
        const ALL: u64 = 32 << 12;
        let mut cache = cache_of(ALL);
        let file = cache.add_file(1 << 30, BackingId(0));
        let mut dirtier = cache.dirtier();
        // Far below the background threshold: periodic writeback is due after five seconds.
        write_on(&mut cache, Nanos::ZERO, file, 0, dirty * PAGE_BYTES, &mut dirtier);
        let due = cache.flusher_due(BackingId(0));
        assert!(due >= Nanos::from_secs(5));
        for page in 1000..1000 + ALL - dirty {
            read(&mut cache, file, page);
        }
        assert_eq!(
            (cache.counts().cached, cache.flusher_due(BackingId(0))),
            (ALL, due),
            "nothing is dropped yet"
        );
        read(&mut cache, file, 2 * ALL - 1000);
        let woken = cache.flusher_due(BackingId(0)) < due;
        assert_eq!(woken, dirty >= 32, "{dirty} pages, of which the kernel looks at 32 together");
        if woken {
            // Searched 31 at a time.
            let first = PageRange { file, first: 0, pages: 31 };
            assert_eq!(cache.next_writeback(BackingId(0), Nanos::from_secs(1), 64), Some(first));
        }
    }
}
