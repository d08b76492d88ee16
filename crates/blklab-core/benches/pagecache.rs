//! The time of buffered reads and writes; runs make tens of millions of them. Every iteration makes
//! [`CALLS`] calls: a median in microseconds is nanoseconds per call.

use std::hint::black_box;

use blklab_core::kernel::Kernel;
use blklab_core::pagecache::{
    Advice, BackingConfig, BackingId, Dirtier, FileId, MemoryConfig, PageCache, ReadAhead, SyncStep, Wait,
    Windows,
};
use blklab_core::ticks::Ticks;
use blklab_core::units::{Bytes, Nanos};
use divan::Bencher;

const KIB: u64 = 1024;
const MIB: u64 = 1024 * KIB;
const FILE_BYTES: u64 = 1024 * MIB;
const CALLS: u32 = 1000;
const DISK: BackingConfig = BackingConfig { read_ahead: Bytes::from_kib(128), max_io: Bytes::from_kib(1280) };

fn main() {
    divan::main();
}

fn config() -> MemoryConfig {
    MemoryConfig::new(&MemoryConfig::settings(), Ticks::per_second(1000), 4, Kernel::LATEST)
}

/// Writes `bytes` at `offset` by a process that uses no CPU time.
fn write(cache: &mut PageCache, file: FileId, offset: u64, bytes: u64, dirtier: &mut Dirtier) {
    let (mut done, mut out) = (0, Vec::new());
    while done < bytes {
        let step = cache.write(Nanos(1), file, offset + done, bytes - done, dirtier, &mut out);
        assert!(matches!(step.wait, None | Some(Wait::Work)));
        done += step.bytes;
    }
}

/// A fully cached file: dirty, and then written back if `clean`.
fn cached_file(clean: bool) -> (PageCache, FileId, ReadAhead, Dirtier) {
    let mut cache = PageCache::new(&config(), &[DISK]);
    let file = cache.add_file(FILE_BYTES, BackingId(0));
    let mut dirtier = cache.dirtier();
    write(&mut cache, file, 0, FILE_BYTES, &mut dirtier);
    if clean {
        let mut cursor = cache.sync_start(file);
        while let SyncStep::Write(range) = cache.sync_next(&mut cursor, 256, Nanos(1)) {
            cache.write_done(range, Nanos::ZERO);
        }
    }
    let ra = cache.open(file, Advice::Normal);
    (cache, file, ra, dirtier)
}

/// Offsets of blocks in a fixed, non-sequential order.
fn next_offset(offset: u64, block: u64) -> u64 {
    (offset + 611_953 * block) % FILE_BYTES
}

#[divan::bench(args = [4 * KIB, MIB])]
fn random_read_hit(bencher: Bencher, block: u64) {
    let (mut cache, file, mut ra, _) = cached_file(true);
    let (mut offset, mut out, mut windows) = (0, Vec::new(), Windows::default());
    bencher.bench_local(|| {
        for _ in 0..CALLS {
            offset = next_offset(offset, block);
            black_box(cache.read(file, black_box(offset), block, &mut ra, &mut windows, &mut out));
        }
    });
    assert!(out.is_empty());
}

#[divan::bench(args = [4 * KIB, MIB])]
fn random_overwrite_of_dirty(bencher: Bencher, block: u64) {
    let (mut cache, file, _, mut dirtier) = cached_file(false);
    let (mut offset, mut out) = (0, Vec::new());
    bencher.bench_local(|| {
        for _ in 0..CALLS {
            offset = next_offset(offset, block);
            black_box(cache.write(Nanos(1), file, black_box(offset), block, &mut dirtier, &mut out));
        }
    });
    assert!(out.is_empty());
}

/// Dirties 1 MiB of clean pages and writes it back.
#[divan::bench]
fn write_and_write_back_1_mib(bencher: Bencher) {
    let (mut cache, file, _, mut dirtier) = cached_file(true);
    let mut offset = 0;
    bencher.bench_local(|| {
        for _ in 0..CALLS {
            offset = next_offset(offset, MIB);
            write(&mut cache, file, black_box(offset), MIB, &mut dirtier);
            let mut cursor = cache.sync_start_range(file, offset, MIB);
            while let SyncStep::Write(range) = cache.sync_next(&mut cursor, 256, Nanos(1)) {
                cache.write_done(range, Nanos(1));
            }
        }
    });
}

/// A reader of 4 KiB blocks of a file larger than memory, on a disk that takes no time:
/// read-ahead, completion and reclaim.
fn read_through_full_memory(bencher: Bencher, next: impl Fn(u64) -> u64) {
    let mut config = config();
    config.memory = Bytes::from_mib(256);
    let mut cache = PageCache::new(&config, &[DISK]);
    let file = cache.add_file(FILE_BYTES, BackingId(0));
    let mut ra = cache.open(file, Advice::Normal);
    let (mut offset, mut out, mut windows) = (0, Vec::new(), Windows::default());
    bencher.bench_local(|| {
        for _ in 0..CALLS {
            loop {
                let step = cache.read(file, offset, 4 * KIB, &mut ra, &mut windows, &mut out);
                while !windows.is_empty() {
                    cache.read_on(file, &mut windows, &mut out);
                }
                for range in out.drain(..) {
                    cache.read_done(range);
                }
                if step.wait.is_none() {
                    break;
                }
            }
            offset = next(offset);
        }
    });
}

#[divan::bench]
fn sequential_read_through_full_memory(bencher: Bencher) {
    read_through_full_memory(bencher, |offset| (offset + 4 * KIB) % FILE_BYTES);
}

#[divan::bench]
fn random_read_through_full_memory(bencher: Bencher) {
    read_through_full_memory(bencher, |offset| next_offset(offset, 4 * KIB));
}
