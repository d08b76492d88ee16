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

#[test]
fn advice_to_drop_a_file_leaves_the_31_pages_that_a_sync_has_looked_up() {
    let (mut cache, file) = with_file();
    (0..40).for_each(|index| write(&mut cache, file, 2 * index, 1));
    let mut cursor = cache.sync_start(file);
    while let SyncStep::Write(_) = step(&mut cache, &mut cursor) {}
    // It waits for page 0, and holds pages 0 to 60. All but page 10 are written.
    (0..40).filter(|index| *index != 5).for_each(|index| {
        cache.write_done(PageRange { file, first: 2 * index, pages: 1 }, Nanos::ZERO);
    });
    assert_eq!(step(&mut cache, &mut cursor), SyncStep::Wait(10));
    cache.drop_unheld(file);
    assert_eq!(cache.counts().cached, 31);
    // A direct write has no regard for that.
    cache.invalidate(file, 0, 4 * PAGE_BYTES);
    assert_eq!(cache.counts().cached, 29);
    cache.write_done(PageRange { file, first: 10, pages: 1 }, Nanos::ZERO);
    assert_eq!(step(&mut cache, &mut cursor), SyncStep::Done);
    cache.drop_unheld(file);
    assert_eq!(cache.counts().cached, 0);
}

#[test]
fn the_flusher_holds_the_pages_that_it_has_looked_up_until_its_visit_ends() {
    let (mut cache, file) = with_file();
    (0..40).for_each(|index| write(&mut cache, file, 2 * index, 1));
    let (mut at, mut written) = (Nanos::ZERO, 0);
    while written < 35 {
        match cache.write_back(BackingId(0), at, 1) {
            WriteBack::Range(range) => {
                written += range.pages;
                cache.write_done(range, at);
            }
            WriteBack::EndOfFile => panic!("pages are left"),
            WriteBack::Nothing => at = cache.flusher_due(BackingId(0)),
        }
    }
    // Nine were looked up after the first 31; five of them are dirty.
    cache.drop_unheld(file);
    assert_eq!(cache.counts().cached, 9);
    while let WriteBack::Range(range) = cache.write_back(BackingId(0), at, 1) {
        cache.write_done(range, at);
    }
    cache.drop_unheld(file);
    assert_eq!(cache.counts().cached, 0);
}

#[test]
fn a_page_under_writeback_is_looked_at_when_those_before_it_are_submitted() {
    let (mut cache, file) = with_file();
    write(&mut cache, file, 1, 1);
    let mut other = cache.sync_start(file);
    assert_eq!(step(&mut cache, &mut other), of(file, 1));
    write(&mut cache, file, 0, 3);
    let mut cursor = cache.write_out_start(file);
    assert_eq!(cache.sync_next(&mut cursor, 64, Nanos::ZERO), of(file, 0));
    // While it sleeps for a request, the writeback of the next page ends.
    cache.write_done(PageRange { file, first: 1, pages: 1 }, Nanos::ZERO);
    let rest = PageRange { file, first: 1, pages: 2 };
    assert_eq!(cache.sync_next(&mut cursor, 64, Nanos::ZERO), SyncStep::Write(rest));
}

#[test]
fn the_next_31_pages_are_looked_up_when_those_before_are_submitted() {
    let (mut cache, file) = with_file();
    write(&mut cache, file, 0, 40);
    let mut cursor = cache.write_out_start(file);
    let all = PageRange { file, first: 0, pages: 31 };
    assert_eq!(cache.sync_next(&mut cursor, 64, Nanos::ZERO), SyncStep::Write(all));
    // While it sleeps for a request, another process changes pages beyond them.
    write(&mut cache, file, 40, 2);
    let rest = PageRange { file, first: 31, pages: 11 };
    assert_eq!(cache.sync_next(&mut cursor, 64, Nanos::ZERO), SyncStep::Write(rest));
}

#[test]
fn direct_io_beside_dirty_pages_measures_the_bandwidth_of_a_disk_that_writes_nothing() {
    let (mut cache, file) = with_file();
    // What the disk is believed to write in half a second.
    let chunk = |cache: &PageCache| cache.backings[0].throttle.chunk_pages(u64::MAX);
    let before = chunk(&cache);
    write(&mut cache, file, 0, 2);
    let mut cursor = cache.sync_start(file);
    assert_eq!(step(&mut cache, &mut cursor), of(file, 0));
    let direct = |cache: &mut PageCache| {
        (1..50).for_each(|fifth| cache.pass(file, Nanos::from_millis(201 * fifth)));
    };
    // The first page is under writeback all the time, the second one dirty.
    direct(&mut cache);
    let after = chunk(&cache);
    assert!(after < before / 2, "{after} of {before}");
    assert_eq!(step(&mut cache, &mut cursor), of(file, 1));
    direct(&mut cache);
    assert_eq!(chunk(&cache), after, "nothing is dirty: the kernel does not come to the measurement");
}
