//! Flusher and throttle with a clock and a disk that writes a fixed number of pages per second.

use std::collections::VecDeque;

use super::*;

const SECOND: u64 = 1_000_000_000;

fn write_all(cache: &mut PageCache, now: Nanos, file: FileId, offset: u64, bytes: u64) {
    let (mut dirtier, mut out) = (cache.dirtier(), Vec::new());
    let step = cache.write(now, file, offset, bytes, &mut dirtier, &mut out);
    assert_eq!(step, Step { bytes, wait: None });
}

fn flush(cache: &mut PageCache, now: Nanos) -> Vec<PageRange> {
    std::iter::from_fn(|| cache.next_writeback(now, 256)).collect()
}

#[test]
fn a_file_is_written_back_thirty_seconds_after_it_became_dirty() {
    let mut cache = PageCache::new(&config(1280));
    let file = cache.add_file(MIB);
    assert_eq!(cache.flusher_due(), Nanos::NEVER);
    write_all(&mut cache, Nanos::from_secs(100), file, 0, 8 * KIB);
    // The flusher checks every five seconds; a later write does not make the file younger.
    let mut due = Nanos::from_secs(105);
    while due < Nanos::from_secs(130) {
        assert_eq!(cache.flusher_due(), due);
        assert_eq!(flush(&mut cache, due), []);
        write_all(&mut cache, due, file, 4 * KIB, 8 * KIB);
        due += Nanos::from_secs(5);
    }
    assert_eq!(flush(&mut cache, due), [PageRange { file, first: 0, pages: 3 }]);
    assert_eq!(cache.flusher_due(), Nanos::NEVER);
}

#[test]
fn files_are_written_in_the_order_in_which_they_became_dirty() {
    let mut cache = PageCache::new(&config(1280));
    let files: Vec<_> = (0..3).map(|_| cache.add_file(MIB)).collect();
    for (second, index) in [(1, 2), (2, 0), (3, 1)] {
        write_all(&mut cache, Nanos::from_secs(second), files[index], 0, 4 * KIB);
    }
    // At 32 s the first two are more than 30 s old.
    let order: Vec<_> = flush(&mut cache, Nanos::from_secs(32)).iter().map(|range| range.file).collect();
    assert_eq!(order, [files[2], files[0]]);
}

#[test]
fn background_writeback_starts_above_its_threshold_and_ends_below_it() {
    let mut small = config(1280);
    small.dirty_background = Bytes::from_mib(16);
    let mut cache = PageCache::new(&small);
    let files = [cache.add_file(64 * MIB), cache.add_file(64 * MIB)];
    let now = Nanos::from_secs(1);
    write_all(&mut cache, now, files[0], 0, 16 * MIB);
    assert_eq!(cache.flusher_due(), Nanos::from_secs(6));
    write_all(&mut cache, now, files[1], 0, 64 * KIB);
    write_all(&mut cache, now, files[0], 16 * MIB, 20 * MIB);
    // A writer has checked the limits and seen more than 4096 dirty pages.
    assert_eq!(cache.flusher_due(), now);
    // A slice: half a second at the 25,600 pages/s assumed for an unknown disk, rounded up to 4
    // MiB: (12,800 + 1024) / 1024 * 1024 = 13,312 pages, more than either file has.
    let mut left = 9216 + 16;
    while let Some(range) = cache.next_writeback(now, 256) {
        left -= range.pages;
    }
    assert_eq!(left, 0);
}

#[test]
fn a_slice_ends_a_visit_and_the_next_goes_on_behind_it() {
    let mut small = config(1280);
    small.dirty_background = Bytes::from_mib(1);
    // limit / 8 = 1024 pages: slices of 2048.
    small.dirty = Bytes::from_mib(32);
    let mut cache = PageCache::new(&small);
    let files = [cache.add_file(64 * MIB), cache.add_file(64 * MIB)];
    let now = Nanos::from_secs(1);
    write_all(&mut cache, now, files[0], 0, 10 * MIB);
    write_all(&mut cache, now, files[1], 0, 4 * MIB);
    let mut visits: Vec<(FileId, u64, u32)> = Vec::new();
    while let Some(range) = cache.next_writeback(now, 256) {
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

/// Writers that dirty pages at memory speed, a flusher and a disk, in virtual time.
struct Machine {
    cache: PageCache,
    file: FileId,
    writers: Vec<(Dirtier, Nanos, u64)>,
    /// Ranges at the disk, each with its completion time.
    disk: VecDeque<(PageRange, Nanos)>,
    pages_per_second: u64,
    now: Nanos,
    written: u64,
    most_dirty: u64,
}

impl Machine {
    fn new(memory: Bytes, writers: usize, pages_per_second: u64) -> Machine {
        let mut config = config(1280);
        config.memory = memory;
        let mut cache = PageCache::new(&config);
        let file = cache.add_file(1 << 40);
        let writers = (0..writers as u64).map(|n| (cache.dirtier(), Nanos::ZERO, n << 36)).collect();
        Machine {
            cache,
            file,
            writers,
            disk: VecDeque::new(),
            pages_per_second,
            now: Nanos::ZERO,
            written: 0,
            most_dirty: 0,
        }
    }

    /// As soft as the kernel's limit: exceeded by the pages that all writers dirty between two
    /// checks.
    fn assert_limit(&self, limit: u64) {
        let most = limit + limit / 32 + 32 * self.writers.len() as u64;
        assert!(self.most_dirty <= most, "{} dirty, {limit} allowed", self.most_dirty);
    }

    fn run(&mut self, until: Nanos) {
        while self.now < until {
            let writer = self.writers.iter().map(|w| w.1).min().unwrap_or(Nanos::NEVER);
            let done = self.disk.front().map_or(Nanos::NEVER, |d| d.1);
            let flusher = if self.disk.len() < 64 { self.cache.flusher_due() } else { Nanos::NEVER };
            self.now = self.now.max(writer.min(done).min(flusher));
            if done <= self.now {
                let (range, _) = self.disk.pop_front().expect("its time was looked at");
                self.cache.write_done(range, self.now);
                self.written += u64::from(range.pages);
            } else if flusher <= self.now {
                if let Some(range) = self.cache.next_writeback(self.now, 256) {
                    let start = self.disk.back().map_or(self.now, |d| d.1);
                    let busy = u64::from(range.pages) * SECOND / self.pages_per_second;
                    self.disk.push_back((range, start + Nanos(busy)));
                }
            } else {
                let (cache, file, now) = (&mut self.cache, self.file, self.now);
                let (dirtier, ready, offset) =
                    self.writers.iter_mut().min_by_key(|w| w.1).expect("there are writers");
                let step = cache.write(now, file, *offset, 64 * KIB, dirtier, &mut Vec::new());
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
        let mut machine = Machine::new(Bytes::from_mib(1024), writers, rate);
        machine.run(Nanos::from_secs(60));
        let at_start = machine.written;
        let mut sum = 0;
        for second in 61..=80 {
            machine.run(Nanos::from_secs(second));
            let counts = machine.cache.counts();
            sum += counts.dirty + counts.writeback;
        }
        let (mean, per_second) = (sum / 20, (machine.written - at_start) / 20);
        assert!(per_second > rate * 95 / 100, "the disk ran dry: {per_second} of {rate} pages/s");
        let off = mean.abs_diff(45_856);
        assert!(off < 45_856 / 12, "{mean} dirty pages, {writers} writers, {mib_per_second} MiB/s");
        machine.assert_limit(52_416);
    }
}

#[test]
fn a_disk_that_hardly_moves_blocks_its_writers_at_the_limit() {
    let mut machine = Machine::new(Bytes::from_mib(256), 16, 20);
    machine.run(Nanos::from_secs(200));
    // 65,537 pages, 819/4096 of them.
    assert!(machine.most_dirty >= 13_000);
    machine.assert_limit(13_104);
}

#[test]
fn time_without_writes_does_not_make_the_disk_look_slow() {
    // wb_bandwidth_estimate_start: after a second's rest the measurement starts again, so that an
    // fsync a minute does not measure the disk.
    let mut cache = PageCache::new(&config(1280));
    let file = cache.add_file(MIB);
    let before = cache.throttle.chunk_pages(u64::MAX);
    for minute in 1..10 {
        let now = Nanos::from_secs(60 * minute);
        write_all(&mut cache, now, file, 0, 64 * KIB);
        let mut cursor = cache.sync_start(file);
        while let SyncStep::Write(range) = cache.sync_next(&mut cursor, 256, now) {
            cache.write_done(range, now + Nanos::from_millis(1));
        }
    }
    assert_eq!(cache.throttle.chunk_pages(u64::MAX), before);
}

#[test]
fn no_writer_waits_below_the_free_run_ceiling() {
    let mut cache = PageCache::new(&config(1280));
    let file = cache.add_file(4 << 30);
    let (mut dirtier, mut out) = (cache.dirtier(), Vec::new());
    // 8 GiB: the ceiling is (209,408 + 419,328) / 2 = 314,368 pages. Below it there are no pauses;
    // above it they start soon.
    let bytes = 314_368 * PAGE_BYTES;
    let step = cache.write(Nanos::ZERO, file, 0, bytes, &mut dirtier, &mut out);
    assert_eq!(step, Step { bytes, wait: None });
    let step = cache.write(Nanos::ZERO, file, bytes, bytes / 3, &mut dirtier, &mut out);
    assert!(matches!(step.wait, Some(Wait::Pause(_))) && step.bytes < 4 * MIB, "{step:?}");
}

#[test]
fn write_back_of_a_partition_is_cut_where_requests_are_full() {
    let mut cache = PageCache::new(&MemoryConfig { request_pages: Some(320), ..config(1280) });
    let file = cache.add_file(4 * MIB);
    let range = |first, pages| PageRange { file, first, pages };
    write_all(&mut cache, Nanos::ZERO, file, 100 * 4 * KIB, 900 * 4 * KIB);
    let expected = [range(100, 220), range(320, 320), range(640, 320), range(960, 40)];
    assert_eq!(flush(&mut cache, Nanos::from_secs(40)), expected);
    for range in expected {
        cache.write_done(range, Nanos::from_secs(40));
    }
    write_all(&mut cache, Nanos::from_secs(40), file, 300 * 4 * KIB, 40 * 4 * KIB);
    let mut cursor = cache.sync_start(file);
    let first = cache.sync_next(&mut cursor, 256, Nanos::from_secs(41));
    assert_eq!(first, SyncStep::Write(range(300, 20)));
}
