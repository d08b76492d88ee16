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
    let survivors = |cache: &PageCache| {
        (0..700).filter(|&page| cache.is_cached(file, page * PAGE_BYTES, PAGE_BYTES)).count()
    };
    // The kernel has not counted them yet.
    assert_eq!(survivors(&cache), 700);
    for page in 14_000..18_000 {
        cache.advance(Nanos::from_millis(50 * (page - 14_000)));
        assert!(!read(&mut cache, file, page));
    }
    let survivors = (0..700).filter(|&page| cache.is_cached(file, page * PAGE_BYTES, PAGE_BYTES)).count();
    // As many as there are inactive ones.
    assert!((400..=512).contains(&survivors), "{survivors}");
}

#[test]
fn pages_that_come_back_count_when_the_kernel_has_summed_them_up() {
    const ALL: u64 = 1 << 15;
    let mut cache = cache_of(ALL);
    let file = cache.add_file(1 << 40, BackingId(0));
    for page in 0..ALL / 4 {
        read(&mut cache, file, page);
        assert!(read(&mut cache, file, page));
    }
    let mut page = ALL;
    for _ in 0..ALL / 2 {
        read(&mut cache, file, page);
        page += 1;
    }
    // At 784 ms.
    cache.advance(Nanos::from_millis(783));
    assert_eq!(cache.pages.counted.active, 0);
    cache.advance(Nanos::from_millis(784));
    assert_eq!(cache.pages.counted.active, ALL / 4);
    let mut reclaim = |cache: &mut PageCache| {
        loop {
            let is_full = cache.free() == 0;
            read(cache, file, page);
            page += 1;
            if is_full {
                break;
            }
        }
    };
    reclaim(&mut cache);
    // The first ones were dropped, and come back.
    let dropped = (ALL..).find(|&page| cache.is_cached(file, page * PAGE_BYTES, PAGE_BYTES)).unwrap_or(0);
    assert!(dropped > ALL + 100, "{dropped}");
    let active = cache.pages.lru.count(Kind::Active);
    for page in ALL..ALL + 100 {
        assert!(!read(&mut cache, file, page));
    }
    assert_eq!(cache.pages.lru.count(Kind::Active), active + 100);
    reclaim(&mut cache);
    assert_eq!(cache.pages.lru.count(Kind::Active), active + 100, "not summed up yet");
    cache.advance(Nanos::from_secs(3));
    reclaim(&mut cache);
    let after = cache.pages.lru.count(Kind::Active);
    assert!(after < active + 100, "{after}");
    reclaim(&mut cache);
    assert_eq!(cache.pages.lru.count(Kind::Active), after, "once");
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
    let mut read_until_free = |cache: &mut PageCache, pages: u64| {
        while cache.free() > pages {
            read_on(cache, 1);
        }
    };
    assert!(cache.free() > 4224);
    // Fewer are free than at the high watermark.
    read_until_free(&mut cache, 1000);
    cache.advance(Nanos::from_millis(1099));
    assert_eq!(cache.free(), 1000);
    // 100 ticks and one, up to a multiple of eight.
    cache.advance(Nanos::from_millis(1104));
    assert!(cache.free() > 4224, "{}", cache.free());
    // The next time enough is free, and the thread sleeps until memory is full.
    read_until_free(&mut cache, 4224);
    cache.advance(Nanos::from_millis(1300));
    assert_eq!(cache.free(), 4224);
    read_until_free(&mut cache, 0);
    cache.advance(Nanos::from_secs(9));
    assert_eq!(cache.free(), 0);
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
    // Each has a node of its own, and one of the next level: 512 pages are 399, and 114 of nodes.
    assert!((398 - 3 * 32..=398).contains(&cache.counts().cached), "{}", cache.counts().cached);
    // At most one chunk per page, and emptied ones are reused.
    assert!(cache.pages.chunks.len() <= 513, "{} chunks", cache.pages.chunks.len());
    cache.drop_caches();
    assert_eq!(cache.counts().cached, 0);
    assert!(!read(&mut cache, file, page));
}

/// The number of pages that fit if each is the only one of a part of so many.
fn fitting(every: u64) -> u64 {
    const ALL: u64 = 1 << 15;
    let mut cache = cache_of(ALL);
    let file = cache.add_file(1 << 40, BackingId(0));
    let mut page = 0;
    while cache.free() > 0 {
        read(&mut cache, file, page);
        page += every;
    }
    cache.counts().cached
}

#[test]
fn pages_that_lie_apart_take_memory_for_nodes_of_their_own() {
    assert_eq!(fitting(1), 1 << 15);
    // A page, and a seventh of one with the node.
    assert_eq!(fitting(64), 28_681);
    // Another node of the next level.
    assert_eq!(fitting(4096), 25_544);
}

#[test]
fn nodes_stay_where_pages_were_reclaimed_but_not_where_they_were_dropped() {
    const ALL: u64 = 1 << 15;
    let mut cache = cache_of(ALL);
    let file = cache.add_file(1 << 40, BackingId(0));
    let whole = cache.free();
    for page in 0..=ALL {
        read(&mut cache, file, page);
    }
    let reclaimed = (0..).find(|&page| cache.is_cached(file, page * PAGE_BYTES, PAGE_BYTES)).unwrap_or(0);
    // The first nodes are empty.
    let nodes = ALL / 64 + 1;
    assert_eq!(whole - cache.free(), ALL + 1 - reclaimed + (nodes + nodes / 64) / 7);
    cache.drop_caches();
    assert_eq!(whole - cache.free(), reclaimed / 64 / 7, "only those");
    // They are found again.
    for page in 0..64 {
        read(&mut cache, file, page);
    }
    assert_eq!(whole - cache.free(), 64 + reclaimed / 64 / 7);
}

#[test]
fn beyond_an_eighth_of_memory_empty_nodes_are_freed() {
    const ALL: u64 = 1 << 10;
    let mut cache = cache_of(ALL);
    let file = cache.add_file(1 << 40, BackingId(0));
    for page in 0..100 * ALL {
        read(&mut cache, file, page);
    }
    let (taken, row) = (cache.pages.taken(), cache.pages.emptied.len() as u64);
    cache.drop_caches();
    let empty = cache.pages.overhead.empty_nodes();
    assert!(empty <= taken / 8 && taken / 8 - empty < 4, "{empty} of {taken}");
    assert_eq!(ALL + ALL / 64 / 7 - cache.free(), (empty + empty / 64) / 7);
    // Those that were freed are not remembered.
    assert!((empty..2000).contains(&row), "{row}");
}

#[test]
fn pages_that_are_written_take_memory_for_buffer_heads_and_bios_where_there_are_any() {
    const PAGES: u64 = 4200;
    let taken = |heads: bool, bios: bool| {
        let config = MemoryConfig { kept: Kept { heads, bios }, ..config() };
        let mut cache = PageCache::new(&config, &[disk(1280)]);
        let file = cache.add_file(1 << 30, BackingId(0));
        let mut dirtier = cache.dirtier();
        let whole = cache.free();
        let mut taken = Vec::new();
        let mut note = |cache: &PageCache| taken.push(whole - cache.free() - PAGES - PAGES / 64 / 7);
        for _ in 0..2 {
            // The second time the same pages.
            write_on(&mut cache, Nanos::ZERO, file, 0, PAGES * PAGE_BYTES, &mut dirtier);
            let (mut cursor, mut written) = (cache.sync_start(file), Vec::new());
            while let SyncStep::Write(range) = cache.sync_next(&mut cursor, 1024, Nanos::ZERO) {
                written.push(range);
            }
            note(&cache);
            for range in written {
                cache.write_done(range, Nanos::ZERO);
            }
            note(&cache);
        }
        cache.invalidate(file, 0, PAGES * PAGE_BYTES);
        assert_eq!(cache.counts(), Counts::default());
        assert_eq!(cache.free(), whole);
        taken
    };
    assert_eq!(taken(false, false), [0; 4], "XFS");
    assert_eq!(taken(true, false), [100; 4], "ext4");
    assert_eq!(taken(true, true), [300, 100, 300, 100], "a bare disk");
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
