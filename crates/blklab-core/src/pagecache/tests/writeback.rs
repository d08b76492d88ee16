//! Flusher and throttle with a clock and a disk that writes a fixed number of pages per second.

use std::collections::VecDeque;

use super::*;

const SECOND: u64 = 1_000_000_000;

fn write_all(cache: &mut PageCache, now: Nanos, file: FileId, offset: u64, bytes: u64) {
    let mut dirtier = cache.dirtier();
    let step = write_on(cache, now, file, offset, bytes, &mut dirtier);
    assert_eq!(step, Step { bytes, ..Step::default() });
}

fn flush(cache: &mut PageCache, now: Nanos) -> Vec<PageRange> {
    std::iter::from_fn(|| cache.next_writeback(BackingId(0), now, 256)).collect()
}

#[test]
fn a_file_is_written_back_thirty_seconds_after_it_became_dirty() {
    let mut cache = PageCache::new(&config(), &[disk(1280)]);
    let file = cache.add_file(MIB, BackingId(0));
    assert_eq!(cache.flusher_due(BackingId(0)), Nanos::NEVER);
    write_all(&mut cache, Nanos::from_secs(100), file, 0, 8 * KIB);
    // The flusher checks after five seconds, rounded up by its timer; a later write does not make the
    // file younger.
    let five_seconds = |from| config().ticks.timer(from, 5000);
    let mut due = five_seconds(Nanos::from_secs(100));
    while due < Nanos::from_secs(130) {
        assert_eq!(cache.flusher_due(BackingId(0)), due);
        assert_eq!(flush(&mut cache, due), []);
        write_all(&mut cache, due, file, 4 * KIB, 8 * KIB);
        due = five_seconds(due);
    }
    assert_eq!(flush(&mut cache, due), [PageRange { file, first: 0, pages: 3 }]);
    assert_eq!(cache.flusher_due(BackingId(0)), Nanos::NEVER);
}

#[test]
fn files_are_written_in_the_order_in_which_they_became_dirty() {
    let mut cache = PageCache::new(&config(), &[disk(1280)]);
    let files: Vec<_> = (0..3).map(|_| cache.add_file(MIB, BackingId(0))).collect();
    for (second, index) in [(1, 2), (2, 0), (3, 1)] {
        write_all(&mut cache, Nanos::from_secs(second), files[index], 0, 4 * KIB);
    }
    // At 32 s the first two are more than 30 s old.
    let order: Vec<_> = flush(&mut cache, Nanos::from_secs(32)).iter().map(|range| range.file).collect();
    assert_eq!(order, [files[2], files[0]]);
}

#[test]
fn background_writeback_leaves_as_many_pages_dirty_as_its_threshold_says() {
    let mut small = config();
    small.dirty_background = Bytes(1000 * PAGE_BYTES);
    let now = Nanos::from_secs(1);
    // Of the first device.
    let over_in = |kernel, devices: usize, dirty: u16, pages: u64| {
        let mut cache = PageCache::new(&MemoryConfig { kernel, ..small.clone() }, &vec![disk(1280); devices]);
        let file = cache.add_file(64 * MIB, BackingId(dirty));
        write_all(&mut cache, now, file, 0, pages * PAGE_BYTES);
        cache.over_background(0, now)
    };
    let over = |devices, dirty, pages| over_in(Kernel::LATEST, devices, dirty, pages);
    assert_eq!([1000, 1001].map(|pages| over(2, 1, pages)), [false, true], "of all devices together");
    // A device that has written nothing has an eighth of what is left: (1000 - 111) / 8.
    for devices in [1, 2] {
        assert_eq!([111, 112].map(|pages| over(devices, 0, pages)), [false, true]);
        // In 6.12 it has no share.
        assert!(over_in(Kernel::of(6012), devices, 0, 1));
    }
}

#[test]
fn background_writeback_starts_above_its_threshold_and_ends_below_it() {
    let mut small = config();
    small.dirty_background = Bytes::from_mib(16);
    let mut cache = PageCache::new(&small, &[disk(1280)]);
    let files = [cache.add_file(64 * MIB, BackingId(0)), cache.add_file(64 * MIB, BackingId(0))];
    let now = Nanos::from_secs(1);
    write_all(&mut cache, now, files[0], 0, 16 * MIB);
    assert_eq!(cache.flusher_due(BackingId(0)), config().ticks.timer(now, 5000));
    write_all(&mut cache, now, files[1], 0, 64 * KIB);
    write_all(&mut cache, now, files[0], 16 * MIB, 20 * MIB);
    // A writer has checked the limits and seen more than 4096 dirty pages.
    assert_eq!(cache.flusher_due(BackingId(0)), now);
    // A slice: half a second at the 25,600 pages/s assumed for an unknown disk, rounded up to 4
    // MiB: (12,800 + 1024) / 1024 * 1024 = 13,312 pages, more than either file has.
    let mut left = 9216 + 16;
    while let Some(range) = cache.next_writeback(BackingId(0), now, 256) {
        left -= range.pages;
    }
    assert_eq!(left, 0);
}

#[test]
fn a_slice_ends_a_visit_and_the_next_goes_on_behind_it() {
    let mut small = config();
    small.dirty_background = Bytes::from_mib(1);
    // limit / 8 = 1024 pages: slices of 2048.
    small.dirty = Bytes::from_mib(32);
    let mut cache = PageCache::new(&small, &[disk(1280)]);
    let files = [cache.add_file(64 * MIB, BackingId(0)), cache.add_file(64 * MIB, BackingId(0))];
    let now = Nanos::from_secs(1);
    write_all(&mut cache, now, files[0], 0, 10 * MIB);
    write_all(&mut cache, now, files[1], 0, 4 * MIB);
    let mut visits: Vec<(FileId, u64, u32)> = Vec::new();
    while let Some(range) = cache.next_writeback(BackingId(0), now, 256) {
        if visits.len() == 1 && range.file == files[1] {
            // Dirty again behind the first visit: not written before the end of the file is
            // reached.
            write_all(&mut cache, now, files[0], 0, 4 * KIB);
        }
        cache.write_done(range, now);
        match visits.last_mut() {
            Some((file, first, pages))
                if *file == range.file && *first + u64::from(*pages) == range.first =>
            {
                *pages += range.pages;
            }
            _ => visits.push((range.file, range.first, range.pages)),
        }
    }
    assert_eq!(visits, [(files[0], 0, 2048), (files[1], 0, 1024), (files[0], 2048, 512)]);
    assert_eq!(cache.counts().dirty, 1);
}

/// A disk that writes so many pages per second, and the file on it.
struct Disk {
    file: FileId,
    pages_per_second: u64,
    /// Ranges at the disk, each with its completion time.
    queue: VecDeque<(PageRange, Nanos)>,
    written: u64,
}

struct Writer {
    dirtier: Dirtier,
    ready: Nanos,
    offset: u64,
    disk: usize,
}

/// Writers that dirty pages at memory speed, flushers and disks, in virtual time.
struct Machine {
    cache: PageCache,
    writers: Vec<Writer>,
    disks: Vec<Disk>,
    now: Nanos,
    most_dirty: u64,
}

impl Machine {
    /// With disks of these rates, and so many writers to each.
    fn new(memory: Bytes, disks: &[(u64, u64)]) -> Machine {
        let mut config = config();
        config.memory = memory;
        let mut cache = PageCache::new(&config, &vec![disk(1280); disks.len()]);
        let mut all = Vec::new();
        let mut writers = Vec::new();
        for (index, &(count, pages_per_second)) in disks.iter().enumerate() {
            let file = cache.add_file(1 << 40, BackingId(index as u16));
            all.push(Disk { file, pages_per_second, queue: VecDeque::new(), written: 0 });
            let writer =
                |n| Writer { dirtier: cache.dirtier(), ready: Nanos::ZERO, offset: n << 36, disk: index };
            writers.extend((0..count).map(writer));
        }
        Machine { cache, writers, disks: all, now: Nanos::ZERO, most_dirty: 0 }
    }

    /// As soft as the kernel's limit: exceeded by the pages that all writers dirty between two
    /// checks.
    fn assert_limit(&self, limit: u64) {
        let most = limit + limit / 32 + 32 * self.writers.len() as u64;
        assert!(self.most_dirty <= most, "{} dirty, {limit} allowed", self.most_dirty);
    }

    /// When the flusher of that disk or the disk itself is next.
    fn disk_due(&self, index: usize) -> (Nanos, Nanos) {
        let queue = &self.disks[index].queue;
        let done = queue.front().map_or(Nanos::NEVER, |write| write.1);
        let due = self.cache.flusher_due(BackingId(index as u16));
        (done, if queue.len() < 64 { due } else { Nanos::NEVER })
    }

    fn run(&mut self, until: Nanos) {
        while self.now < until {
            let writer = self.writers.iter().map(|writer| writer.ready).min().unwrap_or(Nanos::NEVER);
            let dues: Vec<_> = (0..self.disks.len()).map(|index| self.disk_due(index)).collect();
            let first = dues.iter().map(|&(done, flusher)| done.min(flusher)).min().expect("there are disks");
            self.now = self.now.max(writer.min(first));
            let now = self.now;
            if let Some(index) = dues.iter().position(|&(done, _)| done <= now) {
                let disk = &mut self.disks[index];
                let (range, _) = disk.queue.pop_front().expect("its time was looked at");
                self.cache.write_done(range, now);
                disk.written += u64::from(range.pages);
            } else if let Some(index) = dues.iter().position(|&(_, flusher)| flusher <= now) {
                if let Some(range) = self.cache.next_writeback(BackingId(index as u16), now, 256) {
                    let disk = &mut self.disks[index];
                    let start = disk.queue.back().map_or(now, |write| write.1);
                    let busy = u64::from(range.pages) * SECOND / disk.pages_per_second;
                    disk.queue.push_back((range, start + Nanos(busy)));
                }
            } else {
                let Writer { dirtier, ready, offset, disk } =
                    self.writers.iter_mut().min_by_key(|writer| writer.ready).expect("there are writers");
                let file = self.disks[*disk].file;
                let step = write_on(&mut self.cache, now, file, *offset, 64 * KIB, dirtier);
                *offset += step.bytes;
                *ready = now
                    + match step.wait {
                        Some(Wait::Pause(span)) => span,
                        Some(wait) => panic!("{wait:?} with most of the memory clean"),
                        None => Nanos(20_000),
                    };
            }
            let counts = self.cache.counts();
            self.most_dirty = self.most_dirty.max(counts.dirty + counts.writeback);
        }
    }
}

#[test]
fn writers_are_held_near_the_set_point_at_the_disks_bandwidth() {
    // 1 GiB: limit 52,416 pages, background 26,176, free-run ceiling 39,296, set point 45,856.
    for (writers, mib_per_second) in [(1, 30), (1, 300), (4, 30), (4, 300), (16, 100), (1, 2000)] {
        let rate = mib_per_second * 256;
        let mut machine = Machine::new(Bytes::from_mib(1024), &[(writers, rate)]);
        machine.run(Nanos::from_secs(60));
        let at_start = machine.disks[0].written;
        let mut sum = 0;
        for second in 61..=80 {
            machine.run(Nanos::from_secs(second));
            let counts = machine.cache.counts();
            sum += counts.dirty + counts.writeback;
        }
        let (mean, per_second) = (sum / 20, (machine.disks[0].written - at_start) / 20);
        assert!(per_second > rate * 95 / 100, "the disk ran dry: {per_second} of {rate} pages/s");
        let off = mean.abs_diff(45_856);
        assert!(off < 45_856 / 12, "{mean} dirty pages, {writers} writers, {mib_per_second} MiB/s");
        machine.assert_limit(52_416);
    }
}

#[test]
fn a_disk_that_hardly_moves_blocks_its_writers_at_the_limit() {
    let mut machine = Machine::new(Bytes::from_mib(256), &[(16, 20)]);
    machine.run(Nanos::from_secs(200));
    // 65,537 pages, 819/4096 of them.
    assert!(machine.most_dirty >= 13_000);
    machine.assert_limit(13_104);
}

#[test]
fn two_disks_share_the_limit_by_their_speeds_and_neither_runs_dry() {
    let rates = [30 * 256, 300 * 256];
    let mut machine = Machine::new(Bytes::from_mib(1024), &rates.map(|rate| (2, rate)));
    machine.run(Nanos::from_secs(60));
    let at_start = [0, 1].map(|index| machine.disks[index].written);
    let mut dirty = [0; 2];
    for second in 61..=80 {
        machine.run(Nanos::from_secs(second));
        for (index, dirty) in dirty.iter_mut().enumerate() {
            *dirty += machine.cache.backings[index].throttle.dirty() / 20;
        }
    }
    let per_second = [0, 1].map(|index| (machine.disks[index].written - at_start[index]) / 20);
    for (per_second, rate) in per_second.into_iter().zip(rates) {
        assert!(per_second > rate * 95 / 100, "a disk ran dry: {per_second} of {rate} pages/s");
    }
    // The slow disk's share is a tenth, and its writers fill it and a reserve besides.
    assert!(dirty[1] > 2 * dirty[0], "{dirty:?}");
    assert!((dirty[0] + dirty[1]).abs_diff(45_856) < 45_856 / 8, "{dirty:?}");
    machine.assert_limit(52_416);
}

#[test]
fn writers_to_a_disk_without_dirty_pages_go_on_while_another_disk_is_stuck_at_the_limit() {
    // The first disk writes a page every ten seconds.
    let rates = [(8, 1), (1, 300 * 256)];
    let mut machine = Machine::new(Bytes::from_mib(1024), &rates);
    machine.run(Nanos::from_secs(100));
    let at_start = machine.disks[1].written;
    machine.run(Nanos::from_secs(200));
    // A page for each shortest pause: a tick, and one because timers are never early.
    assert_eq!((machine.disks[1].written - at_start) / 100, 500);
    machine.assert_limit(52_416);
}

#[test]
fn time_without_writes_does_not_make_the_disk_look_slow() {
    // wb_bandwidth_estimate_start: after a second's rest the measurement starts again. It ends 208 ms
    // after the last page was written, by a timer, so that of a minute between two syncs only these count.
    let mut cache = PageCache::new(&config(), &[disk(1280)]);
    let file = cache.add_file(MIB, BackingId(0));
    assert_eq!(cache.backings[0].throttle.chunk_pages(u64::MAX), 13_312);
    for minute in 1..10 {
        let now = Nanos::from_secs(60 * minute);
        write_all(&mut cache, now, file, 0, 64 * KIB);
        let mut cursor = cache.sync_start(file);
        while let SyncStep::Write(range) = cache.sync_next(&mut cursor, 256, now) {
            cache.write_done(range, now + Nanos::from_millis(1));
        }
    }
    // Each time 3888/4096 of the bandwidth are left, and its average follows by an eighth.
    assert_eq!(cache.backings[0].throttle.chunk_pages(u64::MAX), 11_264);
}

#[test]
fn no_writer_waits_below_the_free_run_ceiling() {
    let mut cache = PageCache::new(&config(), &[disk(1280)]);
    let file = cache.add_file(4 << 30, BackingId(0));
    let mut dirtier = cache.dirtier();
    // 8 GiB: the ceiling is (209,408 + 419,328) / 2 = 314,368 pages. Below it there are no pauses;
    // above it they start soon.
    let bytes = 314_368 * PAGE_BYTES;
    let step = write_on(&mut cache, Nanos::ZERO, file, 0, bytes, &mut dirtier);
    assert_eq!(step, Step { bytes, ..Step::default() });
    let step = write_on(&mut cache, Nanos::ZERO, file, bytes, bytes / 3, &mut dirtier);
    assert!(matches!(step.wait, Some(Wait::Pause(_))) && step.bytes < 4 * MIB, "{step:?}");
}

#[test]
fn the_flusher_writes_another_slice_of_a_file_when_it_looks_for_old_data() {
    // The periodic work first takes the files that have used up a slice (`queue_io`), whatever their age.
    // It is due five seconds after the disk came: 1.4 s after the run began.
    let mut small = config();
    small.dirty_background = Bytes::from_mib(16);
    small.dirty = Bytes::from_mib(32);
    let mut cache = PageCache::new(&small, &[disk(1280)]);
    let file = cache.add_file(64 * MIB, BackingId(0));
    write_all(&mut cache, Nanos::from_secs(1), file, 0, 20 * MIB);
    let written = |ms| {
        let (now, mut pages) = (Nanos::from_millis(ms), 0);
        while let Some(range) = cache.next_writeback(BackingId(0), now, 256) {
            cache.write_done(range, now);
            pages += range.pages;
        }
        pages
    };
    // limit / 8 = 1024 pages: slices of 2048, after the first of which less than the threshold is dirty.
    assert_eq!([1000, 1399, 1400, 1500].map(written), [2048, 0, 2048, 0]);
}

#[test]
fn the_flusher_and_writers_wait_for_a_page_whose_writer_sleeps() {
    let mut small = config();
    small.dirty_background = Bytes(PAGE_BYTES);
    let mut cache = PageCache::new(&small, &[disk(1280)]);
    let file = cache.add_file(MIB, BackingId(0));
    let now = Nanos::from_secs(1);
    write_all(&mut cache, now, file, 0, 16 * KIB);
    cache.lock(file, 2);
    let first = cache.next_writeback(BackingId(0), now, 256);
    assert_eq!(first, Some(PageRange { file, first: 0, pages: 2 }));
    assert_eq!(cache.next_writeback(BackingId(0), now, 256), None);
    assert_eq!(cache.flusher_waits_for(BackingId(0)), Some((file, 2)));
    let (mut dirtier, mut out) = (cache.dirtier(), Vec::new());
    let step = cache.write(now, file, 4 * KIB, 12 * KIB, &mut dirtier, &mut out);
    assert_eq!(step, Step { bytes: 4 * KIB, uncopied: 0, wait: Some(Wait::Lock(2)) });
    cache.unlock(file, 2);
    let rest = cache.next_writeback(BackingId(0), now, 256);
    assert_eq!(rest, Some(PageRange { file, first: 2, pages: 2 }));
    assert_eq!(cache.flusher_waits_for(BackingId(0)), None);
}

#[test]
fn pages_that_do_not_follow_the_last_ones_are_put_under_writeback_one_by_one() {
    let mut small = config();
    small.dirty_background = Bytes(PAGE_BYTES);
    let mut cache = PageCache::new(&small, &[disk(1280)]);
    let file = cache.add_file(MIB, BackingId(0));
    let now = Nanos::from_secs(1);
    write_all(&mut cache, now, file, 40 * KIB, 60 * KIB);
    let mut next = |at| {
        let room = Room { anywhere: 1, at, there: 5 };
        cache.next_writeback(BackingId(0), now, room).map(|range| (range.first, range.pages))
    };
    assert_eq!([next(0), next(11), next(0)], [Some((10, 1)), Some((11, 5)), Some((16, 1))]);
}

#[test]
fn a_slice_ends_when_all_of_it_has_been_submitted() {
    let mut cache = PageCache::new(&config(), &[disk(1280)]);
    let file = cache.add_file(MIB, BackingId(0));
    let mut dirtier = cache.dirtier();
    write_on(&mut cache, Nanos::ZERO, file, 0, 64 * KIB, &mut dirtier);
    let (due, room) = (Nanos::from_secs(31), Room::from(256));
    assert!(matches!(cache.write_back(BackingId(0), due, room), WriteBack::Range(_)));
    assert_eq!(cache.write_back(BackingId(0), due, room), WriteBack::EndOfFile);
    let slice = |cache: &PageCache| cache.backings[BackingId(0).index()].throttle.chunk_pages(u64::MAX);
    let before = slice(&cache);
    // The flusher sleeps for a request for five seconds, in which the disk writes nothing.
    cache.write_back(BackingId(0), due + Nanos::from_secs(5), room);
    assert!(slice(&cache) == 1024 && before > 4096, "{before} pages");
}
