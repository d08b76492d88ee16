//! Random operations against a naive model: one record per page in a map.

use std::collections::HashMap;

use proptest::prelude::*;

use super::super::lru::Kind;
use super::*;

const FILES: usize = 3;
const FILE_PAGES: u64 = 5000;
const MEMORY_PAGES: u64 = 400;

#[derive(Clone, Copy, Debug, Default)]
struct Page {
    reading: bool,
    dirty: bool,
    /// The version that is being written to the disk.
    writing: Option<u64>,
    /// The number of writes to it, and the version on the medium.
    version: u64,
    medium: u64,
}

#[derive(Clone, Debug)]
enum Action {
    Read {
        process: usize,
        file: usize,
        offset: u64,
        bytes: u64,
    },
    /// Continues where that process stopped, so that read-ahead works.
    ReadOn {
        process: usize,
        file: usize,
        bytes: u64,
    },
    Write {
        process: usize,
        file: usize,
        offset: u64,
        bytes: u64,
    },
    Complete {
        which: usize,
    },
    Flush {
        max_pages: u32,
        ranges: usize,
    },
    Sync {
        file: usize,
    },
    WriteOut {
        file: usize,
    },
    Invalidate {
        file: usize,
        offset: u64,
        bytes: u64,
    },
    DropCaches,
    Wait {
        ms: u64,
    },
}

fn span() -> impl Strategy<Value = (u64, u64)> {
    // Two places 16 MiB apart, so that a span may cross from chunk to chunk.
    let place = prop_oneof![0..100u64, 4050..4150u64].prop_map(|page| page * PAGE_BYTES);
    let within = prop_oneof![3 => Just(0u64), 1 => 0..PAGE_BYTES];
    let bytes = prop_oneof![1..3 * PAGE_BYTES, (1..150u64).prop_map(|pages| pages * PAGE_BYTES)];
    (place, within, bytes).prop_map(|(place, within, bytes)| (place + within, bytes))
}

fn action() -> impl Strategy<Value = Action> {
    prop_oneof![
        6 => (0..2usize, 0..FILES, span())
            .prop_map(|(process, file, (offset, bytes))| Action::Read { process, file, offset, bytes }),
        6 => (0..2usize, 0..FILES, 1..8 * PAGE_BYTES)
            .prop_map(|(process, file, bytes)| Action::ReadOn { process, file, bytes }),
        8 => (0..2usize, 0..FILES, span())
            .prop_map(|(process, file, (offset, bytes))| Action::Write { process, file, offset, bytes }),
        6 => (0..20usize).prop_map(|which| Action::Complete { which }),
        4 => (1..100u32, 1..8usize).prop_map(|(max_pages, ranges)| Action::Flush { max_pages, ranges }),
        1 => (0..FILES).prop_map(|file| Action::Sync { file }),
        1 => (0..FILES).prop_map(|file| Action::WriteOut { file }),
        1 => (0..FILES, span()).prop_map(|(file, (offset, bytes))| Action::Invalidate { file, offset, bytes }),
        1 => Just(Action::DropCaches),
        3 => (1..8000u64).prop_map(|ms| Action::Wait { ms }),
    ]
}

/// The cache, the model, and the I/O between cache and disk.
struct Bench {
    cache: PageCache,
    model: Vec<HashMap<u64, Page>>,
    ras: Vec<Vec<ReadAhead>>,
    dirtiers: Vec<Dirtier>,
    in_flight: Vec<(PageRange, bool)>,
    now: Nanos,
}

impl Bench {
    fn new(dirty_ratio: u32) -> Bench {
        let mut config = config();
        config.memory = Bytes(MEMORY_PAGES * PAGE_BYTES);
        config.dirty_ratio = dirty_ratio;
        config.dirty_background_ratio = 20;
        let mut cache = PageCache::new(&config, &[disk(1280)]);
        for _ in 0..FILES {
            cache.add_file(FILE_PAGES * PAGE_BYTES - 1000, BackingId(0));
        }
        let advices = [Advice::Normal, Advice::Sequential, Advice::Random];
        let ras = (0..2).map(|_| advices.map(|advice| cache.open(FileId(0), advice)).to_vec()).collect();
        Bench {
            model: vec![HashMap::new(); FILES],
            ras,
            dirtiers: vec![cache.dirtier(); 2],
            in_flight: Vec::new(),
            now: Nanos::ZERO,
            cache,
        }
    }

    fn page(&mut self, file: usize, page: u64) -> &mut Page {
        self.model[file].entry(page).or_default()
    }

    fn uptodate(&self, file: usize, page: u64) -> bool {
        self.cache.pages.state(FileId(file as u32), page).uptodate & page_bit(page) != 0
    }

    fn submit_reads(&mut self, out: Vec<PageRange>) {
        for range in out {
            assert!(
                range.end() <= self.cache.size_bytes(range.file).div_ceil(PAGE_BYTES),
                "read behind the end"
            );
            for page in range.first..range.end() {
                let page = self.page(range.file.index(), page);
                assert!(!page.reading && !page.dirty && page.writing.is_none(), "read over data: {page:?}");
                page.reading = true;
            }
            self.in_flight.push((range, false));
        }
    }

    fn submit_write(&mut self, range: PageRange) {
        for page in range.first..range.end() {
            let page = self.page(range.file.index(), page);
            assert!(page.dirty && page.writing.is_none(), "written without need or twice: {page:?}");
            (page.dirty, page.writing) = (false, Some(page.version));
        }
        self.in_flight.push((range, true));
    }

    fn complete(&mut self, which: usize) {
        let (range, write) = self.in_flight.remove(which);
        for index in range.first..range.end() {
            let page = self.page(range.file.index(), index);
            if write {
                page.medium = page.writing.take().expect("was under write-back");
            } else {
                page.reading = false;
            }
        }
        if write {
            self.cache.write_done(range, self.now);
        } else {
            self.cache.read_done(range);
        }
    }

    fn complete_page(&mut self, file: usize, page: u64, write: bool) {
        let holds = |(range, is_write): &(PageRange, bool)| {
            *is_write == write && range.file.index() == file && range.first <= page && page < range.end()
        };
        let which = self.in_flight.iter().position(holds).expect("a page waited for is in flight");
        self.complete(which);
    }

    fn flush(&mut self, max_pages: u32, ranges: usize) {
        for _ in 0..ranges {
            let Some(range) = self.cache.next_writeback(BackingId(0), self.now, max_pages) else { break };
            assert!(range.pages <= max_pages);
            self.submit_write(range);
        }
    }

    /// Performs a process's wait.
    fn wait(&mut self, file: usize, wait: Wait) {
        match wait {
            Wait::Page(page) => self.complete_page(file, page, false),
            Wait::Lock(page) => panic!("page {page} is locked, but no sync is under way"),
            Wait::Pause(span) => self.now += span,
            Wait::Work => {}
            Wait::Memory => assert!(self.cache.flusher_due(BackingId(0)) <= self.now, "the flusher is awake"),
        }
        if self.cache.flusher_due(BackingId(0)) <= self.now {
            self.flush(64, 4);
        }
        // The disk works while a writer pauses.
        if !matches!(wait, Wait::Page(_)) && !self.in_flight.is_empty() {
            self.complete(0);
        }
    }

    fn read(&mut self, process: usize, file: usize, mut offset: u64, mut bytes: u64) {
        let wanted = (offset + bytes).min(self.cache.size_bytes(FileId(file as u32)));
        for _ in 0..2000 {
            let first = offset / PAGE_BYTES;
            let last = (offset + bytes).div_ceil(PAGE_BYTES);
            let before: Vec<bool> = (first..last).map(|page| self.uptodate(file, page)).collect();
            let (mut out, mut windows) = (Vec::new(), Windows::default());
            let id = FileId(file as u32);
            let ra = &mut self.ras[process][file];
            let step = self.cache.read(id, offset, bytes, ra, &mut windows, &mut out);
            let copied = (offset + step.bytes).div_ceil(PAGE_BYTES) - first;
            if step.bytes > 0 {
                assert!(
                    before[..copied as usize].iter().all(|&uptodate| uptodate),
                    "copied what was not there"
                );
            }
            self.submit_reads(out);
            while !windows.is_empty() {
                let mut out = Vec::new();
                self.cache.read_on(id, &mut windows, &mut out);
                self.submit_reads(out);
                self.check();
            }
            self.check();
            (offset, bytes) = (offset + step.bytes, bytes - step.bytes);
            match step.wait {
                None => return assert!(offset >= wanted, "ended early at {offset} of {wanted}"),
                Some(wait) => self.wait(file, wait),
            }
        }
        panic!("the read never ended");
    }

    fn write(&mut self, process: usize, file: usize, mut offset: u64, mut bytes: u64) {
        for _ in 0..2000 {
            let (first, size) = (offset / PAGE_BYTES, self.cache.size_bytes(FileId(file as u32)));
            let last = (offset + bytes).div_ceil(PAGE_BYTES);
            let before: Vec<bool> = (first..last).map(|page| self.uptodate(file, page)).collect();
            let mut out = Vec::new();
            let id = FileId(file as u32);
            let step = self.cache.write(self.now, id, offset, bytes, &mut self.dirtiers[process], &mut out);
            self.submit_reads(out);
            let end = offset + step.bytes;
            for index in first..end.div_ceil(PAGE_BYTES) {
                let start = index * PAGE_BYTES;
                let part = start < offset || end < start + PAGE_BYTES;
                let there = before[(index - first) as usize];
                assert!(
                    !part || there || start >= size || step.bytes == 0,
                    "part of a page without the rest"
                );
                if step.bytes > 0 {
                    let page = self.page(file, index);
                    assert!(!page.reading, "written under a read");
                    page.dirty = true;
                    page.version += 1;
                }
            }
            self.check();
            (offset, bytes) = (end, bytes - step.bytes);
            match step.wait {
                None => return assert_eq!(bytes, 0),
                Some(wait) => self.wait(file, wait),
            }
        }
        panic!("the write never ended");
    }

    fn sync(&mut self, file: usize) {
        let versions: Vec<(u64, u64)> = self.model[file].iter().map(|(&page, p)| (page, p.version)).collect();
        let mut cursor = self.cache.sync_start(FileId(file as u32));
        loop {
            match self.cache.sync_next(&mut cursor, 50, self.now) {
                SyncStep::Write(range) => self.submit_write(range),
                SyncStep::Wait(page) => self.complete_page(file, page, true),
                SyncStep::Locked(page) => panic!("page {page} is locked by another sync"),
                SyncStep::Done => break,
            }
            self.check();
        }
        for (page, version) in versions {
            assert!(
                self.model[file][&page].medium >= version,
                "page {page} was synced but is not on the medium"
            );
        }
        let (id, pages) = (FileId(file as u32), &self.cache.pages);
        assert_eq!((pages.dirty_of(id), pages.writeback_of(id)), (0, 0));
    }

    fn write_out(&mut self, file: usize) {
        let mut cursor = self.cache.write_out_start(FileId(file as u32));
        while let SyncStep::Write(range) = self.cache.sync_next(&mut cursor, 50, self.now) {
            self.submit_write(range);
        }
        assert_eq!(self.cache.sync_next(&mut cursor, 50, self.now), SyncStep::Done, "it waits for nothing");
        let left = self.model[file].values().filter(|page| page.dirty && page.writing.is_none());
        assert_eq!(left.count(), 0);
    }

    /// Cache and model agree on every page and every count.
    fn check(&self) {
        let (mut total, mut expected, mut active) = (Counts::default(), Counts::default(), 0);
        for (file, model) in self.model.iter().enumerate() {
            let id = FileId(file as u32);
            for (&index, page) in model {
                let (line, bit) = (self.cache.pages.state(id, index), page_bit(index));
                let state = (line.reading & bit != 0, line.dirty & bit != 0, line.writeback & bit != 0);
                assert_eq!(
                    state,
                    (page.reading, page.dirty, page.writing.is_some()),
                    "file {file} page {index}"
                );
                expected.dirty += u64::from(page.dirty);
                expected.writeback += u64::from(page.writing.is_some());
                expected.cached += u64::from(line.present() & bit != 0);
                active += u64::from(line.active & bit != 0);
            }
            total.cached += self.cache.pages.cached_of(id);
            total.dirty += self.cache.pages.dirty_of(id);
            total.writeback += self.cache.pages.writeback_of(id);
        }
        assert_eq!(total, expected);
        assert_eq!(self.cache.counts(), expected);
        assert!(expected.cached <= MEMORY_PAGES);
        let lists = [Kind::Inactive, Kind::Active].map(|kind| self.cache.pages.lru.count(kind));
        assert_eq!(lists, [expected.cached - active, active], "each cached page is in the list of its kind");
    }

    fn run(&mut self, action: Action) {
        match action {
            Action::Read { process, file, offset, bytes } => self.read(process, file, offset, bytes),
            Action::ReadOn { process, file, bytes } => {
                let stopped = self.ras[process][file].prev_pos;
                self.read(process, file, if stopped == u64::MAX { 0 } else { stopped }, bytes);
            }
            Action::Write { process, file, offset, bytes } => self.write(process, file, offset, bytes),
            Action::Complete { which } if self.in_flight.is_empty() => assert!(which < 20),
            Action::Complete { which } => self.complete(which % self.in_flight.len()),
            Action::Flush { max_pages, ranges } => self.flush(max_pages, ranges),
            Action::Sync { file } => self.sync(file),
            Action::WriteOut { file } => self.write_out(file),
            Action::Invalidate { file, offset, bytes } => {
                self.cache.invalidate(FileId(file as u32), offset, bytes);
                for page in offset / PAGE_BYTES..(offset + bytes).div_ceil(PAGE_BYTES) {
                    let p = *self.page(file, page);
                    let stays = p.reading || p.dirty || p.writing.is_some();
                    let line = self.cache.pages.state(FileId(file as u32), page);
                    assert_eq!(line.present() & page_bit(page) != 0, stays);
                }
            }
            Action::DropCaches => {
                let mut left = 0;
                for (file, pages) in (0..).map(FileId).zip(&self.model) {
                    let held = self.cache.held.of(file);
                    let stays = |page, p: &Page| {
                        let is_cached = self.cache.pages.state(file, page).present() & page_bit(page) != 0;
                        p.reading || p.dirty || p.writing.is_some() || is_cached && held.contains(&page)
                    };
                    left += pages.iter().filter(|&(&page, p)| stays(page, p)).count();
                }
                self.cache.drop_caches();
                assert_eq!(self.cache.counts().cached, left as u64);
            }
            Action::Wait { ms } => {
                self.now += Nanos::from_millis(ms);
                if self.cache.flusher_due(BackingId(0)) <= self.now {
                    self.flush(64, 100);
                }
            }
        }
        self.check();
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn nothing_is_lost_read_twice_or_miscounted_and_synced_data_are_on_the_medium(
        dirty_ratio in prop::sample::select(vec![0, 1, 60, 100]),
        actions in prop::collection::vec(action(), 1..60),
    ) {
        let mut bench = Bench::new(dirty_ratio);
        for action in actions {
            bench.run(action);
        }
        while !bench.in_flight.is_empty() {
            bench.complete(0);
        }
        for file in 0..FILES {
            bench.sync(file);
        }
        prop_assert!(bench.model.iter().flat_map(HashMap::values).all(|page| page.medium == page.version));
    }
}
