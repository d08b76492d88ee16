//! The I/O that processes generate: order, sizes, mixes, passes and rates.

mod support;

use std::collections::{BTreeMap, BTreeSet};

use blklab_core::units::Nanos;
use blklab_core::workload::pattern::{IoUnit, Pattern};
use blklab_core::workload::plan::Plan;
use blklab_core::workload::rate::RateLimiter;
use blklab_core::workload::spec::Direction;
use proptest::prelude::*;
use support::plan;

fn pattern(plan: &Plan) -> Pattern {
    Pattern::new(&plan.processes[0], 42)
}

/// One pass of the first process of `text`, at most `most` I/Os.
fn pass(text: &str, most: usize) -> Vec<IoUnit> {
    let mut pattern = pattern(&plan(&format!("[a]\n{text}")));
    std::iter::from_fn(|| pattern.next()).take(most).collect()
}

fn share(units: &[IoUnit], is: impl Fn(&IoUnit) -> bool) -> f64 {
    units.iter().filter(|unit| is(unit)).count() as f64 / units.len() as f64
}

/// Five standard deviations of a share of `n` draws with probability `p`.
fn tolerance(n: usize, p: f64) -> f64 {
    5.0 * (p * (1.0 - p) / n as f64).sqrt()
}

const RW: [&str; 10] = [
    "read",
    "write",
    "trim",
    "randread",
    "randwrite",
    "randtrim",
    "rw",
    "randrw",
    "trimwrite",
    "randtrimwrite",
];

proptest! {
    #[test]
    fn with_a_random_map_a_pass_visits_each_block_once(
        blocks in 1_u64..5_000, block_k in prop::sample::select(vec![1_u64, 3, 4, 16]),
        rw in prop::sample::select(vec!["randread", "randwrite", "randtrim", "randrw"]), seed in any::<u64>(),
    ) {
        let text = format!("[a]\nrw={rw}\nbs={block_k}k\nsize={}k\n", blocks * block_k);
        let mut pattern = Pattern::new(&plan(&text).processes[0], seed);
        let visited: Vec<u64> = std::iter::from_fn(|| pattern.next()).map(|u| u.offset / (block_k * 1024)).collect();
        let distinct: BTreeSet<u64> = visited.iter().copied().collect();
        prop_assert_eq!(visited.len() as u64, blocks);
        prop_assert_eq!(distinct.len() as u64, blocks);
    }

    #[test]
    fn with_a_map_and_mixed_sizes_no_byte_is_visited_twice_in_a_pass(
        kib in 16_u64..2_000, sizes in prop::sample::select(vec![
            "bsrange=1k-16k", "bssplit=2k/50:4k/30:16k/20", "bsrange=4k-10k\nbs_unaligned"]),
        seed in any::<u64>(),
    ) {
        let text = format!("[a]\nrw=randread\n{sizes}\nsize={kib}k\n");
        let mut pattern = Pattern::new(&plan(&text).processes[0], seed);
        let mut taken: BTreeMap<u64, u64> = BTreeMap::new();
        while let Some(unit) = pattern.next() {
            let before = taken.range(..=unit.offset).next_back().map_or(0, |(_, end)| *end);
            let after = taken.range(unit.offset..).next().map_or(u64::MAX, |(start, _)| *start);
            prop_assert!(before <= unit.offset && unit.offset + u64::from(unit.len) <= after);
            taken.insert(unit.offset, unit.offset + u64::from(unit.len));
        }
        prop_assert!(!taken.is_empty());
    }

    #[test]
    fn every_io_lies_inside_its_file_and_is_aligned(
        rw in prop::sample::select(RW.to_vec()), kib in 64_u64..4_000, offset_k in 0_u64..64,
        files in 1_u32..4, percent in 0_u32..=100, modifier in prop::sample::select(vec!["", ":4", ":8k", ":-8k"]),
        extra in prop::sample::select(vec![
            "", "norandommap\n", "random_distribution=zipf:1.3\n", "random_distribution=pareto:0.3\n",
            "random_distribution=normal:20\n", "random_distribution=zoned:50/5:30/15:20/\n",
            "random_distribution=zoned:50/5:50/95\n", "random_distribution=zoned_abs:50/16k:50/1g\n",
            "time_based\nruntime=9\n", "bs=4k,8k,16k\n", "bs=4k,8k\nbs_is_seq_rand=1\n", "loops=2\n", "io_size=10m\n",
            "file_service_type=random:3\n", "file_service_type=zipf\n", "file_service_type=sequential\n"]),
        seed in any::<u64>(),
    ) {
        let random = rw.starts_with("rand");
        // After a sequential rw the number counts bytes, after a random one I/Os.
        let modifier = if random == modifier.contains('k') { "" } else { modifier };
        let text = format!("[a]\nrw={rw}{modifier}\nsize={kib}k\noffset={offset_k}k\nnrfiles={files}\n\
                            percentage_random={percent}\n{extra}");
        let Ok(file) = support::parse(&text) else { return Ok(()) };
        let Ok(plan) = blklab_core::workload::plan::plan(&file, blklab_core::units::Bytes(1 << 40), 1)
        else { return Ok(()) };
        let process = &plan.processes[0];
        let mut pattern = Pattern::new(process, seed);
        for _ in 0..3_000 {
            let Some(unit) = pattern.next() else {
                if pattern.begin_pass() { continue } else { break }
            };
            let region = process.regions.iter().find(|r| r.file == unit.file).expect("one of its files");
            prop_assert!(unit.len > 0 && unit.offset >= region.start);
            prop_assert!(unit.offset + u64::from(unit.len) <= region.start + region.length);
            prop_assert_eq!(unit.offset % 1024, 0);
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_io_and_another_seed_other_io(seed in any::<u64>()) {
        let plan = plan("[a]\nrw=randrw\nsize=64m\nbsrange=4k-64k\nnumjobs=2\n");
        let take = |process: usize, seed| {
            let mut pattern = Pattern::new(&plan.processes[process], seed);
            std::iter::from_fn(|| pattern.next()).take(100).collect::<Vec<_>>()
        };
        let offsets = |units: Vec<IoUnit>| units.iter().map(|u| u.offset).collect::<Vec<_>>();
        prop_assert_eq!(take(0, seed), take(0, seed));
        prop_assert_ne!(take(0, seed), take(0, seed ^ 1));
        prop_assert_ne!(offsets(take(0, seed)), offsets(take(1, seed)));
    }
}

#[test]
fn sequential_io_goes_on_where_the_last_ended() {
    let units = pass("rw=write\nsize=1m\nbs=64k\noffset=1m\n", 1000);
    let offsets: Vec<_> = units.iter().map(|u| u.offset >> 10).collect();
    assert_eq!(offsets, (0..16).map(|i| 1024 + i * 64).collect::<Vec<_>>());
}

#[test]
fn sequential_io_with_a_modifier_leaves_holes_or_goes_backwards() {
    let offsets = |text: &str| pass(text, 5).iter().map(|u| u.offset >> 10).collect::<Vec<_>>();
    assert_eq!(offsets("rw=read:4k\nsize=1m\n"), [0, 8, 16, 24, 32]);
    assert_eq!(offsets("rw=read:-8k\nsize=64k\n"), [0, 56, 52, 48, 44]);
}

#[test]
fn a_random_offset_is_kept_for_as_many_ios_as_the_modifier_says() {
    let sequential = pass("rw=randread:4\nsize=1g\nnorandommap\n", 400);
    for group in sequential.chunks(4) {
        assert!(group.windows(2).all(|pair| pair[1].offset == pair[0].offset + 4096), "{group:?}");
    }
    let identical = pass("rw=randread:4\nrw_sequencer=identical\nsize=1g\nnorandommap\n", 400);
    for group in identical.chunks(4) {
        assert!(group.iter().all(|unit| unit.offset == group[0].offset), "{group:?}");
    }
    let starts: BTreeSet<_> = identical.chunks(4).map(|group| group[0].offset).collect();
    assert!(starts.len() > 90);
}

#[test]
fn reads_and_writes_are_mixed_in_the_ratio_asked_for() {
    for percent in [0, 1, 30, 70, 100] {
        let units = pass(&format!("rw=randrw\nsize=1g\nrwmixread={percent}\n"), 50_000);
        let expected = f64::from(percent) / 100.0;
        let found = share(&units, |u| u.direction == Direction::Read);
        assert!((found - expected).abs() <= tolerance(units.len(), expected), "{found}, {expected} expected");
    }
}

#[test]
fn block_sizes_have_the_shares_asked_for() {
    let units = pass("rw=write\nsize=8g\nbssplit=4k/50:1k/:32k/\n", 50_000);
    for (bytes, expected) in [(4096, 0.5), (1024, 0.25), (32768, 0.25)] {
        let found = share(&units, |u| u.len == bytes);
        assert!((found - expected).abs() <= tolerance(units.len(), expected), "{bytes}: {found}");
    }
    let units = pass("rw=write\nsize=8g\nbssplit=4k/20:8k/30\n", 50_000);
    let found = share(&units, |u| u.len == 8192);
    assert!((found - 0.8).abs() <= tolerance(units.len(), 0.8), "the largest share gets the rest: {found}");
    let units = pass("rw=read\nsize=8g\nbsrange=4k-16k\n", 40_000);
    for bytes in [4096, 8192, 12288, 16384] {
        let found = share(&units, |u| u.len == bytes);
        assert!((found - 0.25).abs() <= tolerance(units.len(), 0.25), "{bytes}: {found}");
    }
}

#[test]
fn as_many_ios_are_random_as_percentage_random_says() {
    for percent in [0, 25, 80] {
        let text = format!("rw=randread\nsize=64g\nnorandommap\npercentage_random={percent}\n");
        let units = pass(&text, 40_000);
        let jumps = units.windows(2).filter(|pair| pair[1].offset != pair[0].offset + 4096).count();
        let expected = f64::from(percent) / 100.0;
        let found = jumps as f64 / (units.len() - 1) as f64;
        assert!((found - expected).abs() <= tolerance(units.len(), expected) + 1e-3, "{found}, {expected}");
    }
}

#[test]
fn zones_get_their_shares_of_the_accesses() {
    let mib = |u: &IoUnit| u.offset >> 20;
    let units = pass("rw=randread\nsize=1000m\nrandom_distribution=zoned:60/10:30/20:10/70\n", 50_000);
    for (zone, expected) in [(0..100, 0.6), (100..300, 0.3), (300..1000, 0.1)] {
        let found = share(&units, |u| zone.contains(&mib(u)));
        assert!((found - expected).abs() <= tolerance(units.len(), expected), "{zone:?}: {found}");
    }
    let units = pass("rw=randread\nsize=1000m\nrandom_distribution=zoned_abs:90/10m:10/20m\n", 20_000);
    assert!(units.iter().all(|u| mib(u) < 30));
    let found = share(&units, |u| mib(u) < 10);
    assert!((found - 0.9).abs() <= tolerance(units.len(), 0.9), "{found}");
}

#[test]
fn uniform_offsets_are_spread_evenly() {
    let units = pass("rw=randread\nsize=1g\nnorandommap\n", 100_000);
    let mut counts = [0_f64; 64];
    for unit in &units {
        counts[(unit.offset >> 24) as usize] += 1.0;
    }
    let expected = units.len() as f64 / 64.0;
    let chi_square: f64 = counts.iter().map(|c| (c - expected) * (c - expected) / expected).sum();
    // 63 degrees of freedom: mean 63, standard deviation 11.2.
    assert!((20.0..120.0).contains(&chi_square), "{chi_square}");
}

#[test]
fn a_trimmed_block_is_written_next() {
    for rw in ["trimwrite", "randtrimwrite"] {
        let units = pass(&format!("rw={rw}\nsize=1m\nbsrange=4k-16k\n"), 10_000);
        assert!(units.len() > 50);
        for pair in units.chunks(2) {
            assert_eq!(pair[0].direction, Direction::Trim);
            assert_eq!(pair[1].direction, Direction::Write);
            assert_eq!((pair[0].offset, pair[0].len), (pair[1].offset, pair[1].len));
        }
    }
}

#[test]
fn passes_are_repeated_as_loops_and_io_size_ask() {
    let run = |text: &str| {
        let mut pattern = pattern(&plan(&format!("[a]\n{text}")));
        let mut passes = vec![];
        loop {
            passes.push(std::iter::from_fn(|| pattern.next()).map(|u| u.offset).collect::<Vec<_>>());
            if !pattern.begin_pass() {
                return passes;
            }
        }
    };
    let lengths = |text: &str| run(text).iter().map(Vec::len).collect::<Vec<_>>();
    assert_eq!(lengths("size=1m\n"), [256]);
    assert_eq!(lengths("size=1m\nloops=3\n"), [256; 3]);
    assert_eq!(lengths("size=1m\nio_size=2560k\n"), [256, 256, 128]);
    assert_eq!(lengths("size=1m\nio_size=512k\n"), [128]);
    assert_eq!(lengths("size=1m\nnumber_ios=10\n"), [10]);
    assert_eq!(lengths("size=10k\n"), [2], "half a block is not read");
    let repeated = run("rw=randread\nsize=1m\nloops=2\n");
    assert_eq!(repeated[0], repeated[1], "randrepeat is on");
    let fresh = run("rw=randread\nsize=1m\nloops=2\nrandrepeat=0\n");
    assert_ne!(fresh[0], fresh[1]);
}

#[test]
fn a_time_based_job_begins_anew_and_says_so() {
    for rw in ["read", "randread"] {
        let units = pass(&format!("rw={rw}\nsize=1m\ntime_based\nruntime=10\n"), 256 * 5);
        assert_eq!(units.len(), 256 * 5);
        let wraps: Vec<_> = (0..units.len()).filter(|i| units[*i].wrapped).collect();
        assert_eq!(wraps, [256, 512, 768, 1024]);
    }
}

#[test]
fn files_are_served_in_the_order_asked_for() {
    let files = |text: &str| {
        pass(&format!("size=32k\nnrfiles=4\n{text}"), 100).iter().map(|u| u.file).collect::<Vec<_>>()
    };
    assert_eq!(files(""), [0, 1, 2, 3, 0, 1, 2, 3]);
    assert_eq!(files("file_service_type=roundrobin:2\n"), [0, 0, 1, 1, 2, 2, 3, 3]);
    assert_eq!(files("file_service_type=sequential\n"), [0, 0, 1, 1, 2, 2, 3, 3]);
    let mut random = files("file_service_type=random\n");
    random.sort_unstable();
    assert_eq!(random, [0, 0, 1, 1, 2, 2, 3, 3]);
}

#[test]
fn a_linear_rate_spaces_io_evenly() {
    let plan = plan("[a]\nsize=1m\nrate=,4m\nrw=rw\n[b]\nsize=1m\nrate_iops=1000\nbs=8k\n[c]\nsize=1m\n");
    let mut limiter = RateLimiter::new(&plan.processes[0], 1).expect("it has a limit");
    assert_eq!(limiter.due(Direction::Write), Nanos::ZERO);
    for i in 1..=1024 {
        limiter.issued(Direction::Write, 4096);
        limiter.issued(Direction::Read, 4096);
        assert_eq!(limiter.due(Direction::Write), Nanos(i * 1_000_000_000 / 1024));
    }
    assert_eq!(limiter.due(Direction::Read), Nanos::ZERO);
    let mut limiter = RateLimiter::new(&plan.processes[1], 1).expect("it has a limit");
    limiter.issued(Direction::Read, 8192);
    assert_eq!(limiter.due(Direction::Read), Nanos::from_millis(1));
    assert!(RateLimiter::new(&plan.processes[2], 1).is_none());
}

#[test]
fn a_poisson_process_has_exponential_gaps() {
    let plan = plan("[a]\nsize=1m\nrate_iops=1000\nrate_process=poisson\n");
    let mut limiter = RateLimiter::new(&plan.processes[0], 1).expect("it has a limit");
    let (mut gaps, mut last) = (Vec::new(), 0);
    for _ in 0..100_000 {
        limiter.issued(Direction::Read, 4096);
        let due = limiter.due(Direction::Read).0;
        gaps.push((due - last) as f64 / 1e6);
        last = due;
    }
    let n = gaps.len() as f64;
    let mean = gaps.iter().sum::<f64>() / n;
    let variance = gaps.iter().map(|g| (g - mean) * (g - mean)).sum::<f64>() / n;
    assert!((mean - 1.0).abs() < 0.02, "mean {mean} ms");
    assert!((variance - 1.0).abs() < 0.05, "variance {variance}");
    let long = gaps.iter().filter(|g| **g > 1.0).count() as f64 / n;
    assert!((long - (-1_f64).exp()).abs() < 0.01, "{long} above the mean");
}

#[test]
fn after_a_pause_a_rate_limited_job_catches_up_unless_told_not_to() {
    for (text, expected_ms) in [("", 1), ("rate_ignore_thinktime=1\n", 500)] {
        let plan = plan(&format!("[a]\nsize=1m\nthinktime=1s\nrate_iops=1000\n{text}"));
        let mut limiter = RateLimiter::new(&plan.processes[0], 1).expect("it has a limit");
        limiter.issued(Direction::Read, 4096);
        limiter.paused(Direction::Read, Nanos::from_millis(500));
        assert_eq!(limiter.due(Direction::Read), Nanos::from_millis(expected_ms));
    }
}
