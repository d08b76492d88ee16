//! Syncs of one file by several processes.

use super::*;

fn write(cache: &mut PageCache, file: FileId, first: u64, pages: u64) {
    let (mut dirtier, bytes) = (cache.dirtier(), pages * PAGE_BYTES);
    let step = write_on(cache, Nanos::ZERO, file, first * PAGE_BYTES, bytes, &mut dirtier);
    assert_eq!(step, Step { bytes, ..Step::default() });
}

fn with_file() -> (PageCache, FileId) {
    let mut cache = PageCache::new(&config(), &[disk(1280)]);
    let file = cache.add_file(4 * MIB, BackingId(0));
    (cache, file)
}

/// The next step, with one page at a time; a range by its first page.
fn step(cache: &mut PageCache, cursor: &mut SyncCursor) -> SyncStep {
    cache.sync_next(cursor, 1, Nanos::ZERO)
}

fn of(file: FileId, first: u64) -> SyncStep {
    SyncStep::Write(PageRange { file, first, pages: 1 })
}

#[test]
fn a_sync_writes_the_pages_that_are_dirty_when_it_begins() {
    let (mut cache, file) = with_file();
    (10..=20).step_by(10).for_each(|page| write(&mut cache, file, page, 1));
    let mut cursor = cache.sync_start(file);
    assert_eq!(step(&mut cache, &mut cursor), of(file, 10));
    // While it sleeps, another process changes pages behind it and ahead of it.
    (5..=25).step_by(10).for_each(|page| write(&mut cache, file, page, 1));
    assert_eq!(step(&mut cache, &mut cursor), of(file, 20));
    assert_eq!(step(&mut cache, &mut cursor), SyncStep::Wait(10));
    assert_eq!(cache.counts().dirty, 3);
}

#[test]
fn a_sync_also_writes_what_another_has_found_dirty_beyond_the_31_pages_that_it_has_looked_up() {
    let (mut cache, file) = with_file();
    (0..40).for_each(|index| write(&mut cache, file, 2 * index, 1));
    let mut cursor = cache.sync_start(file);
    assert_eq!(step(&mut cache, &mut cursor), of(file, 0));
    // Pages 0 to 60 are looked up.
    (31..=71).step_by(40).for_each(|page| write(&mut cache, file, page, 1));
    let mut other = cache.sync_start(file);
    assert_eq!(step(&mut cache, &mut other), of(file, 2));
    let mut pages = Vec::new();
    while let SyncStep::Write(range) = step(&mut cache, &mut cursor) {
        pages.push(range.first);
    }
    let expected: Vec<_> = (4..=70).step_by(2).chain([71]).chain((72..80).step_by(2)).collect();
    assert_eq!(pages, expected);
    assert_eq!(step(&mut cache, &mut other), of(file, 31));
}

#[test]
fn a_sync_waits_for_the_pages_that_are_under_writeback_when_it_has_written() {
    let (mut cache, file) = with_file();
    (10..=20).step_by(10).for_each(|page| write(&mut cache, file, page, 1));
    let mut cursor = cache.sync_start(file);
    assert_eq!([10, 20].map(|page| step(&mut cache, &mut cursor) == of(file, page)), [true; 2]);
    assert_eq!(step(&mut cache, &mut cursor), SyncStep::Wait(10));
    write(&mut cache, file, 15, 1);
    let mut other = cache.sync_start(file);
    assert_eq!(step(&mut cache, &mut other), of(file, 15));
    cache.write_done(PageRange { file, first: 10, pages: 1 }, Nanos::ZERO);
    assert_eq!(step(&mut cache, &mut cursor), SyncStep::Wait(20));
    cache.write_done(PageRange { file, first: 20, pages: 1 }, Nanos::ZERO);
    assert_eq!(step(&mut cache, &mut cursor), SyncStep::Done, "page 15 is the other's");
}

#[test]
fn a_sync_locks_a_page_that_is_under_writeback_and_dirty_again() {
    let (mut cache, file) = with_file();
    write(&mut cache, file, 10, 1);
    let mut first = cache.sync_start(file);
    assert_eq!(step(&mut cache, &mut first), of(file, 10));
    write(&mut cache, file, 10, 2);
    let mut second = cache.sync_start(file);
    assert_eq!(step(&mut cache, &mut second), SyncStep::Wait(10));
    assert_eq!(second.locked(), Some(10));
    let mut third = cache.sync_start(file);
    assert_eq!(step(&mut cache, &mut third), SyncStep::Locked(10));
    cache.write_done(PageRange { file, first: 10, pages: 1 }, Nanos::ZERO);
    assert_eq!(step(&mut cache, &mut second), of(file, 10));
    assert_eq!((second.locked(), cache.is_locked(file, 10)), (None, false));
    assert_eq!(step(&mut cache, &mut third), of(file, 11));
}
