use proptest::prelude::*;

use super::super::replay::{TraceRequest, replay};
use super::super::testing::{HDD, Harness};
use super::super::validate::Rig;
use super::super::{Command, Disk, DiskModel, Op, Tag};
use blklab_base::units::{Nanos, Sector};

fn model(overrides: &[(&str, &str)]) -> DiskModel {
    let model = DiskModel::parse(HDD, "test").unwrap();
    overrides.iter().fold(model, |m, (key, value)| m.with_override(key, value).unwrap())
}

#[test]
fn one_random_reader_waits_for_seek_half_a_turn_transfer_and_overhead() {
    let model = model(&[("read_ahead", "off")]);
    let run = Rig::new(&model).random(Op::Read, 1, 100, 20_000);
    // Addresses are denser outside, so the mean seek is a little shorter than over cylinders.
    let geometry = &model.hdd().geometry;
    let places: Vec<_> = (0..1_000).map(|i| geometry.locate(i * 1_000)).collect();
    let seek = |a: &super::Location, b: &super::Location| {
        model.hdd().seek.ns(a.cylinder.abs_diff(b.cylinder)) as f64
    };
    let pairs = places.iter().flat_map(|a| places.iter().map(move |b| (a, b)));
    let seek_us = pairs.map(|(a, b)| seek(a, b)).sum::<f64>() / 1e6 / 1e3;
    let transfer_us = 8.0 * 8_333.0 / 400.0 + 512.0 / 300.0;
    let expected_us = seek_us + 8_333.0 / 2.0 + transfer_us + 100.0;
    let found_us = run.mean_us();
    assert!((found_us / expected_us - 1.0).abs() < 0.03, "{found_us} us, closed form {expected_us} us");
}

#[test]
fn sequential_reading_reaches_the_zones_rate() {
    // A track of 500 sectors passes in a turn, then a skew.
    let expected = 500.0 * 512.0 / (8_333.3 + 0.8e3);
    for depth in [1, 32] {
        let mut next = 0;
        let run = Rig::new(&model(&[])).drive(depth, 100, 500, || {
            next += 128;
            (Op::Read, next - 128, 128)
        });
        let found = run.per_second() * 128.0 * 512.0 / 1e6;
        assert!((found / expected - 1.0).abs() < 0.02, "depth {depth}: {found} MB/s, zone {expected} MB/s");
    }
}

#[test]
fn without_read_ahead_one_sequential_reader_loses_a_turn_per_command() {
    let mut next = 0;
    let run = Rig::new(&model(&[("read_ahead", "off")])).drive(1, 10, 100, || {
        next += 8;
        (Op::Read, next - 8, 8)
    });
    assert!((run.mean_us() / 8_333.0 - 1.0).abs() < 0.1, "{} us", run.mean_us());
}

#[test]
fn orders_that_know_more_of_the_disk_answer_sooner() {
    let mean = |policy| {
        let model = model(&[("ncq_policy", policy), ("read_ahead", "off")]);
        Rig::new(&model).random(Op::Read, 32, 2_000, 10_000).mean_us()
    };
    let [fcfs, clook, sstf, sptf] = ["fcfs", "clook", "sstf", "sptf"].map(mean);
    assert!(fcfs > clook && clook >= 0.98 * sstf && sstf > sptf, "{fcfs} {clook} {sstf} {sptf} us");
}

#[test]
fn clook_goes_upwards_from_the_head_and_then_on_from_the_lowest() {
    let mut disk = model(&[("ncq_policy", "clook"), ("read_ahead", "off")]).build(1);
    let read =
        |tag, sector| Command { tag: Tag(tag), op: Op::Read, sector: Sector(sector), sectors: 8, fua: false };
    disk.submit(Nanos::ZERO, read(0, 500_000));
    let (mut now, mut done) = (disk.next_event(), Vec::new());
    disk.advance(now, &mut done);
    for (tag, sector) in [(1, 400_000), (2, 900_000), (3, 100_000), (4, 600_000)] {
        disk.submit(now, read(tag, sector));
    }
    while done.len() < 5 {
        now = disk.next_event();
        disk.advance(now, &mut done);
    }
    let order: Vec<_> = done.iter().map(|completion| completion.tag.0).collect();
    assert_eq!(order, [0, 4, 2, 3, 1]);
}

#[test]
fn ncq_off_takes_one_command_at_a_time() {
    assert_eq!(model(&[("ncq", "off")]).limits().queue_depth, 1);
    assert_eq!(model(&[]).limits().queue_depth, 32);
}

#[test]
fn a_waiting_command_far_away_is_served_in_the_end() {
    // Reads near the disk's start come without end; one waits at its other end.
    let mut disk = model(&[("read_ahead", "off")]).build(3);
    let read =
        |tag, sector| Command { tag: Tag(tag), op: Op::Read, sector: Sector(sector), sectors: 8, fua: false };
    disk.submit(Nanos::ZERO, read(31, 990_000));
    for tag in 0..31 {
        disk.submit(Nanos::ZERO, read(tag, u64::from(tag) * 1_000));
    }
    let (mut done, mut state) = (Vec::new(), 1u64);
    loop {
        let now = disk.next_event();
        assert!(now < Nanos::from_secs(2), "starved");
        disk.advance(now, &mut done);
        for completion in done.drain(..) {
            if completion.tag == Tag(31) {
                return;
            }
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            disk.submit(now, read(completion.tag.0, (state >> 33) % 40_000));
        }
    }
}

#[test]
fn a_write_in_the_cache_ends_soon_and_survives_only_after_a_flush() {
    let mut harness = Harness::new(&model(&[]));
    harness.submit(Op::Write, 8_000, 8, false);
    let ended = harness.drain_one();
    assert!(ended.at < Nanos::from_millis(1));
    assert!(!harness.disk.is_durable(Sector(8_000), 8));
    assert!(harness.disk.is_durable(Sector(8_008), 8));
    harness.submit(Op::Flush, 0, 0, false);
    harness.drain_one();
    assert!(harness.disk.is_durable(Sector(8_000), 8));
}

#[test]
fn a_flush_ends_when_all_that_was_written_before_it_is_on_the_medium() {
    let mut harness = Harness::new(&model(&[]));
    for i in 0..20 {
        harness.submit(Op::Write, i * 40_000, 8, false);
        harness.drain_one();
    }
    harness.submit(Op::Flush, 0, 0, false);
    harness.drain_one();
    assert!((0..20).all(|i| harness.disk.is_durable(Sector(i * 40_000), 8)));
}

#[test]
fn a_quiet_disk_writes_its_cache_to_the_medium() {
    let mut harness = Harness::new(&model(&[]));
    for i in 0..30 {
        harness.submit(Op::Write, i * 10_000, 8, false);
    }
    harness.drain();
    assert!((0..30).any(|i| !harness.disk.is_durable(Sector(i * 10_000), 8)));
    harness.rest(Nanos::from_secs(1));
    assert!((0..30).all(|i| harness.disk.is_durable(Sector(i * 10_000), 8)));
}

#[test]
fn a_full_write_cache_slows_writes_to_the_mediums_pace() {
    let fast = Rig::new(&model(&[])).random(Op::Write, 1, 0, 30).mean_us();
    let slow = Rig::new(&model(&[])).random(Op::Write, 1, 500, 500).mean_us();
    let through = Rig::new(&model(&[("write_cache", "off")])).random(Op::Write, 1, 100, 500).mean_us();
    assert!(fast < 100.0, "{fast} us");
    assert!(slow > 1_000.0 && slow < through, "{slow} us, without cache {through} us");
}

#[test]
fn a_write_of_part_of_a_physical_sector_costs_a_turn_more() {
    let mean = |sector: u64| {
        let model = model(&[("write_cache", "off"), ("physical_block_bytes", "4096")]);
        let mut state = 1u64;
        let step = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (Op::Write, (state >> 33) % 100_000 * 8 + sector, 8)
        };
        Rig::new(&model).drive(1, 10, 2_000, step).mean_us()
    };
    let (aligned, crooked) = (mean(0), mean(1));
    assert!((crooked - aligned - 8_333.0).abs() < 300.0, "{aligned} and {crooked} us");
}

#[test]
fn the_same_seed_gives_the_same_times_and_another_seed_others() {
    let times = |seed| {
        let mut harness = Harness::with(model(&[]).build(seed));
        (0..200).for_each(|i| {
            harness.submit(Op::Read, i * 7_919 % 900_000, 8, false);
            harness.drain();
        });
        harness.now
    };
    assert_eq!(times(1), times(1));
    assert_ne!(times(1), times(2));
}

/// Response times of requests, each one 20 ms after the end of the one before.
fn responses(overrides: &[(&str, &str)], requests: &[(Op, u64, u32)]) -> Vec<u64> {
    let trace: Vec<_> = requests
        .iter()
        .map(|&(op, sector, sectors)| TraceRequest {
            gap: Nanos::from_millis(20),
            op,
            sector: Sector(sector),
            sectors,
        })
        .collect();
    replay(&model(overrides), 1, &trace).unwrap().into_iter().map(|time| time.0 / 1_000).collect()
}

#[test]
fn sectors_that_passed_before_a_read_are_in_the_cache_as_far_as_its_read_ahead_leaves_room() {
    // The second read is before the first one on its track.
    let reads: Vec<_> =
        (0..40).flat_map(|n| [100_400, 100_300].map(|at| (Op::Read, at + 20_000 * n, 8))).collect();
    let hits = |overrides: &[(&str, &str)]| {
        let times = responses(&[&[("read_ahead_to", "track")], overrides].concat(), &reads);
        times.chunks(2).filter(|pair| pair[1] < 100).count()
    };
    assert_eq!(hits(&[]), 0);
    let kept = hits(&[("read_keeps_passed", "on")]);
    // The head reaches a place up to a turn before the sector: somewhat less than half of the times so early.
    assert!((8..32).contains(&kept), "{kept} of 40");
    // A segment of 16 sectors has no room beside a read and its read-ahead, not even before that begins.
    let small = [
        ("read_ahead_sectors", "16"),
        ("cache_segment_sectors", "16"),
        ("read_ahead_to", "segment"),
        ("read_keeps_passed", "on"),
    ];
    for n in 0..40 {
        let mut harness = Harness::new(&model(&small));
        harness.rest(Nanos::from_millis(20 + n));
        harness.submit(Op::Read, 100_400, 8, false);
        harness.drain();
        let asked = harness.now;
        harness.submit(Op::Read, 100_396, 4, false);
        assert!(harness.drain_one().at - asked > Nanos(100_000));
    }
}

#[test]
fn a_hit_lets_the_head_read_on_only_if_the_disk_s_file_says_so() {
    // The last read begins where the read-ahead after the first one ended.
    let reads = [(Op::Read, 100_000, 8), (Op::Read, 100_032, 8), (Op::Read, 100_072, 8)];
    let last = |after_hit| {
        let ahead =
            [("read_ahead_to", "segment"), ("read_ahead_sectors", "64"), ("read_ahead_after_hit", after_hit)];
        responses(&ahead, &reads)[2]
    };
    assert!(last("off") > 1_000 && last("on") < 100, "{} and {} us", last("off"), last("on"));
    // The head has left the segment meanwhile, and comes back.
    let far = [reads[0], (Op::Read, 900_000, 8), reads[1], reads[2]];
    let ahead = [("read_ahead_to", "segment"), ("read_ahead_sectors", "64"), ("read_ahead_after_hit", "on")];
    assert!(responses(&ahead, &far)[3] < 100);
}

#[test]
fn the_head_leaves_a_stream_at_once_or_at_a_sector_s_end() {
    let leaves = |ends_sector, after: u64, limit| {
        let model = model(&[("read_ahead_ends_sector", ends_sector)]);
        let mut hdd = super::Hdd::new(model.hdd().clone(), model.limits().clone(), 1);
        hdd.head = hdd.config.geometry.locate(600);
        hdd.read_cache.replace(super::Span::new(592, 8));
        hdd.stream = Some(super::Stream { segment: 0, at: 600, time: 1_000_000, limit });
        hdd.leave_stream(1_000_000 + after) - 1_000_000
    };
    // 500 sectors pass in a turn of 8.33 ms.
    assert_eq!([leaves("off", 5_000, 700), leaves("on", 5_000, 700)], [5_000, 16_666]);
    // Between two sectors, and at its limit, it waits for none.
    assert_eq!([leaves("on", 0, 700), leaves("on", 5_000, 600)], [0, 5_000]);
}

#[test]
fn data_on_the_medium_serve_reads_until_newer_writes_need_their_room() {
    let keeps = |extents| {
        let cache = [("write_cache_keeps", "on"), ("write_cache_extents", extents), ("destage_idle_ms", "0")];
        let requests = [(Op::Write, 500_000, 8), (Op::Write, 8_000, 8), (Op::Read, 500_000, 8)];
        responses(&cache, &requests)[2] < 100
    };
    assert!(keeps("2") && !keeps("1"));
    assert!(
        responses(&[("destage_idle_ms", "0")], &[(Op::Write, 500_000, 8), (Op::Read, 500_000, 8)])[1] > 100
    );
}

#[test]
fn a_write_through_ends_later_by_the_reselection_of_the_host() {
    let writes = [(Op::Write, 1_000, 8)];
    let time = |us| responses(&[("write_cache", "off"), ("write_reselect_us", us)], &writes)[0];
    assert_eq!(time("130") - time("0"), 130);
}

#[test]
fn a_held_link_lets_no_hit_through_while_a_read_comes_from_the_medium() {
    let hit_ends = |held| {
        let mut harness = Harness::new(&model(&[("link_held", held)]));
        harness.submit(Op::Read, 0, 8, false);
        harness.drain();
        // Four tracks pass in 36 ms, at most a seek and a turn later.
        harness.submit(Op::Read, 500_000, 1_600, false);
        harness.rest(Nanos::from_millis(25));
        let asked = harness.now;
        harness.submit(Op::Read, 0, 8, false);
        let first = harness.drain_one();
        (first.at - asked, harness.now)
    };
    assert!(hit_ends("off").0 < Nanos::from_millis(1));
    assert!(hit_ends("on").0 > Nanos::from_millis(1));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn every_command_ends_once_in_order_and_after_it_was_submitted(
        steps in prop::collection::vec((0u8..8, 0u64..120_000, 1u32..600, any::<bool>(), 0u64..20_000_000), 1..120),
        write_cache: bool, policy in 0usize..4, ahead in 0usize..4, facts: bool, seed: u64,
    ) {
        let on = |flag| if flag { "on" } else { "off" };
        let model = model(&[
            ("write_cache", on(write_cache)),
            ("ncq_policy", ["fcfs", "clook", "sstf", "sptf"][policy]),
            ("read_ahead_to", ["distance", "segment", "track", "next_track"][ahead]),
            ("read_keeps_passed", on(facts)),
            ("read_ahead_after_hit", on(facts)),
            ("read_ahead_ends_sector", on(facts)),
            ("write_cache_keeps", on(facts)),
            ("link_held", on(facts)),
        ]);
        let mut harness = Harness::with(model.build(seed));
        harness.run(&steps)?;
    }
}

proptest! {
    /// The search looks closely only at commands that may win.
    #[test]
    fn the_next_command_is_the_one_that_each_by_itself_would_be(
        commands in prop::collection::vec((0u64..5_000, 0u64..3_000_000, any::<bool>()), 1..80),
        same_track: bool, reads_only: bool, now in 0u64..100_000_000, percent in 10usize..100, turns in 0..3
    ) {
        let mut hdd = super::Hdd::new(model(&[]).hdd().clone(), model(&[]).limits().clone(), 1);
        for (n, (sector, ready, write)) in commands.into_iter().enumerate() {
            let (write, ready) = (write && !reads_only, if reads_only { 0 } else { ready });
            let sector = if same_track { sector % 100 } else { sector * 1_000 % 1_000_000 };
            let op = if write { Op::Write } else { Op::Read };
            let command =
                Command { tag: Tag(n as u32), op, sector: Sector(sector), sectors: 1, fua: true };
            hdd.enqueue(now / 2, now + ready, super::Span::new(sector, 1), &command);
        }
        let stands = (now + hdd.phase_ns) % hdd.config.geometry.turn_ns;
        for _ in 0..turns {
            hdd.queue.part(percent);
        }
        let part = hdd.queue.part(percent);
        let alone = part.indices().map(|index| {
            let queued = &hdd.queue.commands[index];
            let moved = hdd.move_ns(&hdd.head, &queued.place, queued.write);
            let least = queued.ready.saturating_sub(now) + moved;
            let wait = hdd.wait_ns(stands, queued.place.angle_ns, least) as i64;
            (wait + queued.handicap - ((now * hdd.config.ageing) >> 10) as i64, index)
        });
        let alone = alone.min().unwrap();
        prop_assert_eq!(hdd.soonest_reached(&{ hdd.head }, now, &part), alone);
    }
}

#[test]
fn a_seek_longer_than_a_second_is_refused() {
    let table = HDD.lines().filter(|line| !line.starts_with("seek_")).collect::<Vec<_>>().join("\n");
    let with = |ms| DiskModel::parse(&format!("{table}\nseek_table = [[1, 1.0], [1000, {ms}]]\n"), "t");
    assert!(with("1000.0").is_ok());
    let error = with("1000.5").unwrap_err().to_string();
    assert!(
        error.contains("seek_table") && error.contains("found 1000.5 ms; expected at most 1000"),
        "{error}"
    );
}
