use proptest::prelude::*;

use super::super::testing::{Harness, SSD};
use super::super::validate::Rig;
use super::super::{AnyDisk, Command, Disk, DiskModel, Op, Tag};
use super::Mapping;
use super::mapping::{Step, Stream};
use blklab_base::units::{Nanos, Sector};

fn model(overrides: &[(&str, &str)]) -> DiskModel {
    let model = DiskModel::parse(SSD, "test").unwrap();
    overrides.iter().fold(model, |m, (key, value)| m.with_override(key, value).unwrap())
}

#[test]
fn one_random_reader_waits_for_controller_cell_channel_and_link() {
    let found = Rig::new(&model(&[("read_us", "50")])).random(Op::Read, 1, 10, 1_000).mean_us();
    let expected = 1.0 + 8.0 + 50.0 + 4_096.0 / 400.0 + 4_096.0 / 3_000.0;

    assert!((found - expected).abs() < 1.0, "{found} us, expected {expected} us");
}

#[test]
fn many_readers_are_bounded_by_the_controller_or_the_dies() {
    let bounded = |overrides: &[(&str, &str)]| {
        Rig::new(&model(overrides)).random(Op::Read, 256, 1_000, 20_000).per_second()
    };
    // Four dies of 50 us.
    let dies = bounded(&[("read_us", "50"), ("command_us", "0.1")]);
    assert!((70_000.0..=80_000.0).contains(&dies), "{dies}/s");
    let controller = bounded(&[("read_us", "5"), ("command_us", "10")]);
    assert!((99_000.0..=100_100.0).contains(&controller), "{controller}/s");
}

#[test]
fn a_buffered_write_ends_soon_and_survives_only_after_a_flush() {
    let mut harness = Harness::new(&model(&[]));
    harness.submit(Op::Write, 8_000, 8, false);
    assert!(harness.drain_one().at < Nanos::from_micros(20));
    assert!(!harness.disk.is_durable(Sector(8_000), 8));
    harness.submit(Op::Flush, 0, 0, false);
    let flushed = harness.drain_one();
    assert!(harness.disk.is_durable(Sector(8_000), 8));
    assert!(flushed.at > Nanos::from_micros(600), "a program and the flush's own work");
}

#[test]
fn capacitors_make_a_buffered_write_durable_and_a_flush_free() {
    let model = model(&[("power_loss_protection", "on")]);
    assert!(!model.limits().volatile_write_cache);
    let mut harness = Harness::new(&model);
    harness.submit(Op::Write, 8_000, 8, false);
    let written = harness.drain_one();
    assert!(harness.disk.is_durable(Sector(8_000), 8));
    harness.submit(Op::Flush, 0, 0, false);
    assert!(harness.drain_one().at - written.at < Nanos::from_micros(5));
}

#[test]
fn a_full_buffer_slows_writes_to_the_dies_pace() {
    let fast = Rig::new(&model(&[])).random(Op::Write, 1, 0, 100).mean_us();
    assert!(fast < 20.0, "{fast} us");
    let mut next = 0;
    let run = Rig::new(&model(&[("program_us", "400")])).drive(8, 200, 300, || {
        next += 64;
        (Op::Write, next - 64, 64)
    });
    // Four dies of 32 KiB every 400 us.
    let (found, expected) = (run.per_second() * 32_768.0, 4.0 * 32_768.0 / 400e-6);
    assert!((found / expected - 1.0).abs() < 0.06, "{found} B/s, expected {expected} B/s");
}

#[test]
fn a_write_larger_than_the_buffer_arrives_while_dies_program_it() {
    // Four dies of 32 KiB every 400 us, which is slower than the link.
    let model = model(&[("program_us", "400"), ("write_buffer_kib", "512")]);
    let dies = 4.0 * 32_768.0 / 400e-6;
    for sectors in [1_024, 1_280, 4_096, 8_192] {
        // Less than the empty disk has, so that it collects nothing.
        let (mut next, writes) = (0, 98_304 / sectors);
        let run = Rig::new(&model).drive(1, 2, writes.into(), || {
            next += u64::from(sectors);
            (Op::Write, next - u64::from(sectors), sectors)
        });
        let found = run.per_second() * f64::from(sectors) * 512.0;
        assert!((found / dies - 1.0).abs() < 0.06, "{sectors} sectors: {found} B/s, expected {dies} B/s");
    }
}

#[test]
fn a_stripe_that_is_not_yet_full_does_not_slow_large_writes() {
    // Eight dies of 32 KiB every 800 us, so that all of them together program half of the buffer.
    let model = model(&[
        ("pages_per_block", "2"),
        ("dies_per_channel", "4"),
        ("program_us", "800"),
        ("write_buffer_kib", "512"),
        ("link_mb_s", "800"),
    ]);
    let dies = 8.0 * 32_768.0 / 800e-6;
    for sectors in [480u32, 512, 576, 1_024, 2_048] {
        let mut harness = Harness::new(&model);
        harness.submit(Op::Write, 130_000, 8, false);
        harness.drain();
        let (began, writes) = (harness.now, 98_304 / sectors);
        for write in 0..writes {
            harness.submit(Op::Write, u64::from(write * sectors), sectors, false);
            harness.drain();
        }
        let rate = f64::from(writes * sectors) * 512.0 / (harness.now - began).as_secs_f64();
        assert!(
            (0.99..1.01).contains(&(rate / dies)),
            "{sectors} sectors: {} of the dies' rate",
            rate / dies
        );
    }
}

proptest! {
    #[test]
    fn writes_of_all_sizes_end_whatever_the_buffer_holds(
        writes in prop::collection::vec((0u64..100_000, 1u32..3_000, any::<bool>()), 1..60),
        buffer_kib in 64u32..300, flush_every in 2usize..9, paced: bool,
    ) {
        let paced = if paced { "on" } else { "off" };
        let mut harness = Harness::new(&model(&[("write_buffer_kib", &buffer_kib.to_string()), ("paced", paced)]));
        let mut submitted = 0;
        let mut done = 0;
        for (index, (sector, sectors, fua)) in writes.into_iter().enumerate() {
            harness.submit(Op::Write, sector, sectors, fua);
            submitted += 1;
            if index % flush_every == 0 {
                harness.submit(Op::Flush, 0, 0, false);
                submitted += 1;
            }
            if index % 7 == 6 {
                done += harness.drain().len();
            }
        }
        done += harness.drain().len();
        prop_assert_eq!(done, submitted);
        let AnyDisk::Ssd(ssd) = &harness.disk else { panic!("a flash disk") };
        prop_assert_eq!(ssd.on_the_way, 0);
        prop_assert!(ssd.buffer_used <= ssd.config.buffer_sectors);
        prop_assert!(ssd.waiting.is_empty() && ssd.arriving.is_empty());
    }
}

#[test]
fn slc_cache_makes_writing_fast_until_it_is_full_and_recovers_in_quiet_time() {
    let model = model(&[("slc_cache_mib", "24"), ("slc_program_us", "100"), ("slc_idle_ms", "1")]);
    let mut harness = Harness::new(&model);
    let write = |harness: &mut Harness, from: u64, mib: u64| {
        let began = harness.now;
        for i in 0..mib * 8 {
            harness.submit(Op::Write, from + i * 256, 256, false);
            if i % 8 == 7 {
                harness.drain();
            }
        }
        (harness.now - began).as_secs_f64() / mib as f64
    };
    let first = write(&mut harness, 0, 8);
    write(&mut harness, 16_384, 16);
    let full = write(&mut harness, 49_152, 8);
    assert!(full > 2.0 * first, "{first} then {full} s per MiB");
    harness.rest(Nanos::from_secs(5));
    let rested = write(&mut harness, 0, 4);
    assert!(rested < 1.5 * first, "{first}, after a rest {rested} s per MiB");
}

#[test]
fn overwriting_a_full_disk_costs_moves_and_spare_room_saves_them() {
    let amplification = |spare: &str| {
        let model = model(&[("fill_percent", "100"), ("overprovision_percent", spare)]);
        let mut harness = Harness::new(&model);
        let mut state = 1u64;
        for i in 0..60_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            harness.submit(Op::Write, (state >> 33) % 16_384 * 8, 8, false);
            if i % 32 == 31 {
                harness.drain();
            }
        }
        let AnyDisk::Ssd(ssd) = &harness.disk else { panic!("a flash disk") };
        ssd.mapping.check();
        let (host, moved) = ssd.units_written();
        (host + moved) as f64 / host as f64
    };
    let (little, much) = (amplification("16"), amplification("60"));
    // Greedy collection of uniform writes; both far from 1 and far from running out of room.
    assert!((2.0..6.0).contains(&little), "{little}");
    assert!((1.05..2.0).contains(&much), "{much}");
}

#[test]
fn discarded_data_are_not_moved() {
    let mut harness = Harness::new(&model(&[("fill_percent", "100")]));
    harness.submit(Op::Discard, 0, 131_072, false);
    harness.drain();
    for i in 0..20_000u64 {
        harness.submit(Op::Write, i * 7_919 % 2_048 * 8, 8, false);
        if i % 32 == 31 {
            harness.drain();
        }
    }
    let AnyDisk::Ssd(ssd) = &harness.disk else { panic!("a flash disk") };
    ssd.mapping.check();
    let (host, moved) = ssd.units_written();
    assert!(moved < host / 20, "{moved} moved for {host}");
}

#[test]
fn sequential_reads_are_found_read_ahead() {
    let mean = |ahead: &str| {
        let mut next = 0;
        let step = || {
            next += 8;
            (Op::Read, next - 8, 8)
        };
        Rig::new(&model(&[("read_ahead_kib", ahead)])).drive(1, 100, 2_000, step).mean_us()
    };
    let (without, with) = (mean("0"), mean("512"));
    assert!(without > 60.0 && with < 15.0, "{without} and {with} us");
}

#[test]
fn a_request_that_continues_a_stream_has_the_rate_of_streams() {
    let paced = model(&[
        ("read_ahead_kib", "512"),
        ("stream_read_us", "40"),
        ("stream_read_mb_s", "500"),
        ("stream_write_us", "80"),
    ]);
    let per_second = |op, sectors: u32, random: bool| {
        let mut next = 0;
        let places = 131_072 / u64::from(sectors);
        let step = || {
            next += if random { 7 } else { 1 };
            (op, next % places * u64::from(sectors), sectors)
        };
        Rig::new(&paced).drive(8, 200, 1_000, step).per_second()
    };
    let near = |found: f64, expected: f64| {
        assert!((found / expected - 1.0).abs() < 0.03, "{found}, expected {expected}");
    };
    near(per_second(Op::Read, 8, false), 25_000.0);
    near(per_second(Op::Read, 256, false) * 126_976.0, 500e6);
    near(per_second(Op::Write, 8, false), 12_500.0);
    assert!(per_second(Op::Read, 8, true) > 40_000.0, "random reads do not");
    assert!(per_second(Op::Write, 8, true) > 25_000.0, "nor do random writes");
}

#[test]
fn frames_of_a_command_take_time_of_the_link() {
    let bounded = |us| {
        let overrides =
            [("read_us", "1"), ("command_us", "0.1"), ("link_mb_s", "300"), ("link_command_us", us)];
        Rig::new(&model(&overrides)).random(Op::Read, 32, 1_000, 5_000).per_second()
    };
    let link_us = 4_096.0 / 300.0;
    for (us, frames) in [("0", 0.0), ("5", 5.0)] {
        let expected = 1e6 / (link_us + frames);
        assert!((bounded(us) / expected - 1.0).abs() < 0.02, "{}, expected {expected}", bounded(us));
    }
}

/// Times of random writes to a full disk in its steady state, two in flight, rising; over the mean.
fn steady_writes(overrides: &[(&str, &str)]) -> Vec<f64> {
    let base = [("capacity_sectors", "524288"), ("pages_per_block", "16"), ("fill_percent", "100")];
    let all: Vec<_> = base.iter().chain(overrides).copied().collect();
    let mut disk = model(&all).build(1);
    let (mut state, mut now, mut done) = (1u64, Nanos::ZERO, Vec::new());
    let (mut submitted, mut free) = ([Nanos::ZERO; 2], vec![0, 1]);
    let mut times = Vec::new();
    while times.len() < 150_000 {
        for tag in free.drain(..) {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let sector = Sector((state >> 33) % 65_536 * 8);
            submitted[tag as usize] = now;
            disk.submit(now, Command { tag: Tag(tag), op: Op::Write, sector, sectors: 8, fua: false });
        }
        now = disk.next_event();
        disk.advance(now, &mut done);
        for completion in done.drain(..) {
            times.push((now - submitted[completion.tag.0 as usize]).0 as f64);
            free.push(completion.tag.0);
        }
    }
    let mut late = times.split_off(100_000);
    let mean = late.iter().sum::<f64>() / late.len() as f64;
    late.iter_mut().for_each(|time| *time /= mean);
    late.sort_by(f64::total_cmp);
    late
}

#[test]
fn collection_in_one_go_stalls_few_writes_for_long() {
    // Of 64 writes between two stalls two are caught: a Crucial MX200 has p99 at 28 times the mean.
    let slow = |times: &[f64]| times.iter().filter(|time| **time > 5.0).count() as f64 / times.len() as f64;
    let (each, batch) = (steady_writes(&[]), steady_writes(&[("collect_kib", "256")]));
    let p99 = |times: &[f64]| times[times.len() * 99 / 100];
    assert!(p99(&batch) > 1.3 * p99(&each), "{} and {}", p99(&batch), p99(&each));
    assert!((0.01..0.06).contains(&slow(&batch)), "{}", slow(&batch));
}

#[test]
fn a_paced_disk_lets_all_writes_take_about_as_long() {
    let times = steady_writes(&[("paced", "on")]);
    let (p1, p999) = (times[times.len() / 100], times[times.len() * 999 / 1_000]);
    // Intel S4610 with two in flight: 0.6 and 2.
    assert!(p1 > 0.5 && p999 < 2.0, "{p1} and {p999} of the mean");
}

#[test]
fn collection_in_one_go_is_no_more_than_a_superblock() {
    let with = |kib: &str| DiskModel::parse(SSD, "test").unwrap().with_override("collect_kib", kib);
    assert!(with("1024").is_ok());
    let refused = with("1028").unwrap_err();
    assert!(refused.to_string().ends_with("collect_kib: found 1028; more than a superblock, 1024 KiB"));
}

#[test]
fn three_d_xpoint_writes_in_place_and_is_durable_at_once() {
    let model = model(&[("medium", "3dxpoint"), ("write_buffer_kib", "0")]);
    let mut harness = Harness::new(&model);
    harness.submit(Op::Write, 8_000, 8, false);
    harness.drain();
    assert!(harness.disk.is_durable(Sector(8_000), 8));
    assert!(!model.limits().volatile_write_cache);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn every_command_ends_once_in_order_and_after_it_was_submitted(
        steps in prop::collection::vec((0u8..8, 0u64..120_000, 1u32..600, any::<bool>(), 0u64..500_000), 1..200),
        write_cache: bool, protected: bool, suspend in 0u8..2, ahead: bool, fill in 0u8..=100,
    ) {
        let flag = |on| if on { "on" } else { "off" };
        let model = model(&[
            ("write_cache", flag(write_cache)),
            ("power_loss_protection", flag(protected)),
            ("suspend_us", &(suspend * 20).to_string()),
            ("read_ahead_kib", if ahead { "256" } else { "0" }),
            ("fill_percent", &fill.to_string()),
        ]);
        let mut harness = Harness::new(&model);
        harness.run(&steps)?;
        if let AnyDisk::Ssd(ssd) = &harness.disk {
            ssd.mapping.check();
        }
    }

    #[test]
    fn garbage_collection_keeps_every_unit_in_one_place(
        writes in prop::collection::vec((0u32..1_000, 1u32..9), 1..6_000), filled in 0u32..=1_000,
    ) {
        // 75 superblocks of 16 units, 12 of them spare, so that collection is needed.
        let mut mapping = Mapping::new(1_000, filled, 16, 75);
        let append = |mapping: &mut Mapping, stream, unit, most| {
            loop {
                match mapping.append(stream, unit, most) {
                    Some((_, units)) => break assert!((1..=most).contains(&units)),
                    None => mapping.open(stream),
                }
            }
        };
        for (unit, most) in writes {
            if unit % 13 == 0 {
                mapping.discard(unit);
                continue;
            }
            let one = mapping.is_short() || mapping.next(Stream::Host).is_none();
            append(&mut mapping, Stream::Host, unit, if one { 1 } else { most.min(1_000 - unit) });
            while mapping.is_short() {
                match mapping.collect() {
                    Step::Passed => break,
                    Step::Move { unit, .. } => append(&mut mapping, Stream::Collector, unit, 1),
                    Step::Erased => {}
                }
            }
        }
        mapping.check();
    }
}
