//! The project's disk files, and the messages for broken ones.

use blklab_base::units::{Nanos, Sector};
use blklab_disk_model::{
    Absent, Command, Disk, DiskModel, Drawn, HDD_KEYS, Kept, Op, Role, SSD_KEYS, Tag, catalogue, draw,
    validate,
};
use proptest::prelude::*;

/// Every shipped disk.
fn names() -> Vec<&'static str> {
    let names: Vec<_> = catalogue::FILES.iter().map(|(name, _)| *name).collect();
    assert!(names.len() >= 8, "only {names:?}");
    names
}

fn text(name: &str) -> &'static str {
    catalogue::text(name).expect("a shipped disk")
}

fn model(name: &str) -> DiskModel {
    DiskModel::parse(text(name), &format!("{name}.toml")).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn every_disk_gives_its_published_figures_or_its_file_says_why_not() {
    for name in names() {
        let checks = validate(&model(name));
        assert!(checks.len() >= 3, "{name} is held against too little");
        for check in checks {
            assert_eq!(
                check.met,
                check.not_met.is_none(),
                "{name}: {} is {:.1} {}, published {} within {} % (excuse: {:?})",
                check.figure,
                check.model,
                check.unit,
                check.published,
                check.tolerance_percent,
                check.not_met,
            );
        }
    }
}

#[test]
fn every_number_of_every_disk_has_a_source() {
    for name in names() {
        let model = model(name);
        for parameter in model.parameters() {
            let named = ["kind", "name", "summary", "transport"].contains(&parameter.key);
            assert!(named || !parameter.source.is_empty(), "{name}: {} has no source", parameter.key);
        }
        for row in model.published() {
            assert!(!row.source.is_empty(), "{name}: {} has no source", row.figure.name);
        }
    }
}

#[test]
fn no_parameter_of_a_disk_was_chosen_from_a_figure_that_checks_it() {
    for name in names() {
        let model = model(name);
        for row in model.published().iter().filter(|row| row.role == Role::Checked) {
            assert_eq!(model.chosen_from(row), None, "{name}: {} checks nothing", row.figure.name);
        }
        println!("{name}: {}", model.validation().text);
    }
}

fn drawn(name: &str, overrides: &[(&str, &str)], seed: u64) -> (DiskModel, Drawn) {
    let model = overrides.iter().fold(model(name), |m, (key, value)| m.with_override(key, value).unwrap());
    let kept = Kept::of(&model);
    drawn_with(name, model, &kept, seed)
}

fn drawn_with(name: &str, model: DiskModel, kept: &Kept, seed: u64) -> (DiskModel, Drawn) {
    let drawn = draw(text(name), "drawn", &model, kept, seed).unwrap();
    assert_eq!(drawn.missed, None, "{name}: no disk meets the figures of the file");
    (model, drawn)
}

#[test]
fn a_drawn_disk_has_every_estimate_within_its_range_and_every_other_value_of_its_file() {
    for name in names() {
        let mut moved = std::collections::BTreeSet::new();
        let kept = Kept::of(&model(name));
        for seed in 0..40 {
            // Measuring figures takes time: later disks have to meet none.
            let kept = if seed < 12 { kept.clone() } else { Kept::default() };
            let (model, drawn) = drawn_with(name, model(name), &kept, seed);
            let made =
                DiskModel::parse(&drawn.text, "drawn").unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(made.limits(), model.limits(), "{name}");
            let values: std::collections::BTreeMap<_, _> = drawn.values.iter().copied().collect();
            for (old, new) in model.parameters().iter().zip(made.parameters()) {
                assert_eq!((old.key, values.contains_key(old.key)), (new.key, old.range.is_some()), "{name}");
                if let Some([low, high]) = old.range {
                    assert!((low..=high).contains(&values[old.key]), "{name}: {}", old.key);
                    assert!(
                        new.value == values[old.key].to_string() || new.value.starts_with('['),
                        "{name}: {new:?}"
                    );
                    if old.value != new.value {
                        moved.insert(old.key);
                    }
                } else {
                    assert_eq!((&old.value, &old.source), (&new.value, &new.source), "{name}: {}", old.key);
                }
            }
        }
        let ranged = model(name).parameters().iter().filter(|row| row.range.is_some()).count();
        assert_eq!(moved.len(), ranged, "{name}: some parameters with a range were not drawn: {moved:?}");
    }
}

#[test]
fn the_same_seed_draws_the_same_disk_and_overrides_are_not_drawn() {
    let first = drawn("wd10ezrx", &[], 7).1;
    assert_eq!(first, drawn("wd10ezrx", &[], 7).1);
    assert_ne!(first, drawn("wd10ezrx", &[], 8).1);
    let keys = |drawn: &Drawn| -> Vec<_> { drawn.values.iter().map(|(key, _)| *key).collect() };
    let (_, changed) = drawn("wd10ezrx", &[("seek_average_ms", "9")], 7);
    assert!(keys(&first).contains(&"seek_average_ms") && !keys(&changed).contains(&"seek_average_ms"));
    let other = |drawn: &Drawn| drawn.values.iter().find(|(key, _)| *key == "destage_percent").copied();
    assert_eq!(other(&first), other(&changed), "one key's draw depends on another's");
}

#[test]
fn ranges_that_hardly_ever_meet_the_figures_leave_the_files_own_values() {
    let ranges = "outer_sectors_per_track = [1800, 18000]\nread_hit_us = [0.5, 5000]";
    let text = format!("{}\n[ranges]\n{ranges}\n", text("wd10ezrx"));
    let model = DiskModel::parse(&text, "f.toml").unwrap();
    let drawn = draw(&text, "f.toml", &model, &Kept::of(&model), 3).unwrap();
    let missed = drawn.missed.expect("50 disks, of which not one in a hundred meets both figures");
    assert!(["seq_read_outer_mb_s", "seq_read_4k_mb_s"].contains(&missed.name), "{}", missed.name);
    assert_eq!(drawn.text, text);
    for (key, value) in &drawn.values {
        let row = model.parameters().into_iter().find(|row| row.key == *key).unwrap();
        assert!(row.value == value.to_string() || row.value.starts_with('['), "{row:?}");
    }
}

#[test]
fn a_file_s_own_range_counts_and_a_bad_one_is_refused() {
    let with =
        |ranges: &str| DiskModel::parse(&format!("{}\n[ranges]\n{ranges}\n", text("wd10ezrx")), "f.toml");
    let range = |model: &DiskModel, key: &str| {
        model.parameters().iter().find(|row| row.key == key).and_then(|row| row.range)
    };
    let model = with("ncq_plan = [2, 12]\nrpm = [5390, 5410]").unwrap();
    assert_eq!(range(&model, "ncq_plan"), Some([2.0, 12.0]));
    assert_eq!(range(&model, "rpm"), Some([5390.0, 5410.0]), "also of what is known");
    let refused = |ranges: &str| with(ranges).unwrap_err().to_string();
    assert!(
        refused("ncq_plan = [7, 12]")
            .contains("ncq_plan: found [7, 12]; expected [low, high] around its value, 6")
    );
    assert!(refused("ncq_plan = 7").contains("found 7; expected [low, high]"));
    assert!(refused("ncq_plam = [7, 12]").contains("unknown key in [ranges]; did you mean 'ncq_plan'?"));
    assert!(refused("ncq_policy = [7, 12]").contains("has no range"));
}

#[test]
fn a_bad_value_is_refused_with_file_line_key_value_and_range() {
    let broken = |from: &str, to: &str| {
        let text = text("wd10ezrx");
        let line = text.lines().position(|l| l.starts_with(from)).unwrap() + 1;
        let text: Vec<_> = text.lines().map(|l| if l.starts_with(from) { to } else { l }).collect();
        (line, DiskModel::parse(&text.join("\n"), "my.toml").unwrap_err().to_string())
    };
    let (line, message) = broken("rpm", "rpm = -5400");
    assert_eq!(
        message,
        format!("my.toml:{line}: rpm: found -5400; expected a whole number from 1000 to 30000 1/min")
    );
    let (line, message) = broken("rpm", "rmp = 5400");
    assert_eq!(message, format!("my.toml:{line}: rmp: unknown key; did you mean 'rpm'?"));
    let (_, message) = broken("rpm", "");
    assert_eq!(
        message,
        "my.toml:1: rpm: missing; expected a whole number from 1000 to 30000 1/min: revolutions per minute"
    );
    let (line, message) = broken("seek_average_ms", "seek_average_ms = 30");
    assert!(message.starts_with(&format!("my.toml:{line}: seek_average_ms: 1, 30 and 17.9 ms")), "{message}");
    let (line, message) = broken("heads", "heads = ");
    assert!(message.starts_with(&format!("my.toml:{line}: not TOML")), "{message}");
    let (line, message) = broken("[calibrated]", "[calibratd]");
    assert!(message.starts_with(&format!("my.toml:{line}: calibratd: unknown key; did you")), "{message}");
    let (line, message) = broken("rand_read_latency_us", "rand_read_latency_ms = { value = 1 }");
    assert!(
        message.starts_with(&format!("my.toml:{line}: rand_read_latency_ms: unknown figure")),
        "{message}"
    );
}

#[test]
fn an_error_is_also_a_value() {
    let refused = |from: &str, to: &str| {
        let text = text("wd10ezrx").replacen(from, to, 1);
        DiskModel::parse(&text, "my.toml").unwrap_err()
    };
    let error = refused("\nrpm = 5400", "\nrpm = -5400");
    assert_eq!((error.file.as_deref(), error.option.as_deref()), (Some("my.toml"), Some("rpm")));
    assert_eq!((error.found.as_deref(), error.column), (Some("-5400"), Some(7)));
    assert_eq!(error.expected.as_deref(), Some("a whole number from 1000 to 30000 1/min"));
    let error = refused("\nrpm = 5400", "\nrmp = 5400");
    assert_eq!((error.option.as_deref(), error.nearest.as_deref()), (Some("rmp"), Some("rpm")));
    assert_eq!((error.column, error.reason.as_str()), (Some(1), "rmp: unknown key; did you mean 'rpm'?"));
    let error = model("su800-128gb").with_override("channels", "0").unwrap_err();
    assert_eq!((error.line, error.found.as_deref()), (None, Some("0")));
    assert_eq!(error.expected.as_deref(), Some("a whole number from 1 to 64"));
}

#[test]
fn an_override_is_checked_as_the_file_is() {
    let model = model("su800-128gb");
    let changed = model.with_override("read_us", "40/50").unwrap().with_override("ncq", "off").unwrap();
    assert_eq!(changed.limits().queue_depth, 1);
    let row = changed.parameters().into_iter().find(|p| p.key == "read_us").unwrap();
    assert_eq!((row.value.as_str(), row.source.as_str()), ("[40, 50]", "override"));
    let refused = |key, value| model.with_override(key, value).unwrap_err().to_string();
    assert_eq!(
        refused("chanels", "4"),
        "su800-128gb.toml: chanels: in the override chanels=4: unknown key; did you mean 'channels'?"
    );
    assert_eq!(
        refused("channels", "0"),
        "su800-128gb.toml: channels: in the override channels=0: found '0'; expected a whole number from 1 to 64"
    );
    assert!(refused("queue_depth", "64").contains("SATA takes at most 32"));
    assert!(refused("kind", "hdd").contains("cannot be changed"));
}

#[test]
fn every_default_is_a_value_that_its_own_key_allows() {
    for table in [HDD_KEYS, SSD_KEYS] {
        for key in table {
            if let Absent::Default(default) = key.absent {
                let name = if std::ptr::eq(table, HDD_KEYS) { "wd10ezrx" } else { "pm983-960gb" };
                let changed = model(name).with_override(key.name, default);
                // A default may contradict the disk's other values, but must not be refused itself.
                let refused = changed.err().is_some_and(|error| error.found.is_some());
                assert!(!refused, "{}: default {default}", key.name);
            }
        }
    }
}

/// Quantum Atlas 10K with DiskSim's validated parameters, its zones on a straight line.
const ATLAS_10K: &str = r#"
kind = "hdd"
name = "Quantum Atlas 10K"
summary = "the disk of DiskSim's validation"
transport = "sas"
capacity_sectors = 16900000
link_mb_s = 80
rpm = 10025
heads = 6
zones = 24
outer_sectors_per_track = 334
inner_sectors_per_track = 229
seek_track_to_track_ms = 1.245
seek_average_ms = 5.5
seek_full_stroke_ms = 10.828
write_settle_ms = 0.487
head_switch_ms = 0.176
track_skew_ms = 1.13
cylinder_skew_ms = 2.03
cache_kib = 1870
cache_segments = 10
read_ahead_kib = 177
write_cache = false
write_cache_kib = 187
write_cache_extents = 1
ncq_ageing = 0
read_overhead_us = 345
read_hit_us = 184
write_overhead_us = 497
"#;

/// The host keeps 32 reads and dispatches one at a time, as DiskSim's host did; mean time per read.
fn host_ordered_ms(model: &DiskModel, elevator: bool) -> f64 {
    let mut disk = model.build(1);
    let blocks = model.limits().capacity.0 / 8;
    let mut state = 1u64;
    let mut draw = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 20) % blocks * 8
    };
    let mut waiting: Vec<u64> = (0..32).map(|_| draw()).collect();
    let (mut done, mut now, mut last) = (Vec::new(), Nanos::ZERO, 0);
    for _ in 0..5_000 {
        let next =
            if elevator { (0..32).min_by_key(|i| (waiting[*i] < last, waiting[*i])).unwrap() } else { 0 };
        last = waiting.remove(next);
        waiting.push(draw());
        let sector = Sector(last);
        disk.submit(now, Command { tag: Tag(0), op: Op::Read, sector, sectors: 8, fua: false });
        while done.is_empty() {
            now = disk.next_event();
            disk.advance(now, &mut done);
        }
        done.clear();
    }
    now.as_secs_f64() * 1e3 / 5_000.0
}

#[test]
fn random_reads_take_as_long_as_in_disksim_on_the_disk_it_was_validated_with() {
    // DiskSim on the Atlas 10K, 4 KiB random reads, 32 waiting in the host. The average seek above
    // is an estimate; the other values are DiskSim's.
    let model = DiskModel::parse(ATLAS_10K, "atlas10k").unwrap();
    let (found, published) = (host_ordered_ms(&model, false), 9.38);
    println!("atlas10k, FCFS in the host: {found:.2} ms a read, DiskSim {published}");
    assert!((found / published - 1.0).abs() < 0.05, "FCFS: {found} ms, DiskSim {published} ms");
    // In the drive, where overhead is hidden by other commands, each order uses more knowledge than
    // the previous one.
    let found = ["fcfs", "clook", "sstf", "sptf"]
        .map(|policy| per_read_ms(&model.with_override("ncq_policy", policy).unwrap()));
    println!("atlas10k, in the drive, fcfs clook sstf sptf: {found:.2?} ms a read");
    assert!(found[0] > found[1] && found[1] > 0.97 * found[2] && found[2] > found[3]);
}

/// A known defect, pinned at its present value: seeks in C-LOOK order are short, and there the
/// fitted seek curve is below DiskSim's measured table. When the model gets seek tables, this test
/// fails; then its band must be set around 0.
#[test]
fn c_look_is_known_to_be_12_percent_faster_than_in_disksim() {
    let model = DiskModel::parse(ATLAS_10K, "atlas10k").unwrap();
    let (found, published) = (host_ordered_ms(&model, true), 6.24);
    let off = found / published - 1.0;
    println!("atlas10k, C-LOOK in the host: {found:.2} ms a read, DiskSim {published}");
    assert!((-0.13..-0.11).contains(&off), "C-LOOK: {found} ms, DiskSim {published} ms: {off:+.3}");
}

#[test]
fn orders_of_the_queue_rank_the_same_on_the_sas_disk() {
    let found = ["fcfs", "clook", "sstf", "sptf"]
        .map(|policy| per_read_ms(&model("sas-10k").with_override("ncq_policy", policy).unwrap()));
    println!("sas-10k, ms per read: {found:.2?}");
    assert!(found[0] > found[1] && found[1] > 0.97 * found[2] && found[2] > found[3]);
}

/// Mean time per random 4 KiB read with 32 in flight.
fn per_read_ms(model: &DiskModel) -> f64 {
    let mut disk = model.build(1);
    let blocks = model.limits().capacity.0 / 8;
    let mut state = 1u64;
    let mut read = |tag| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let sector = Sector((state >> 20) % blocks * 8);
        Command { tag, op: Op::Read, sector, sectors: 8, fua: false }
    };
    (0..32).for_each(|tag| disk.submit(Nanos::ZERO, read(Tag(tag))));
    let (mut done, mut ended, mut now) = (Vec::new(), 0u32, Nanos::ZERO);
    while ended < 5_000 {
        now = disk.next_event();
        disk.advance(now, &mut done);
        for completion in done.drain(..) {
            ended += 1;
            disk.submit(now, read(completion.tag));
        }
    }
    now.as_secs_f64() * 1e3 / f64::from(ended)
}

/// Beside 512 KiB reads in order, two at a time, one random 4 KiB read at a time; how many of those
/// end in 30 s, and the longest.
fn beside_a_stream(model: &DiskModel) -> (u64, Nanos) {
    let mut disk = model.build(1);
    let half = model.limits().capacity.0 / 2;
    let mut state = 1u64;
    let (mut next, mut reads, mut longest) = (0, 0, Nanos::ZERO);
    let (mut done, mut now, mut since) = (Vec::new(), Nanos::ZERO, Nanos::ZERO);
    let mut free = vec![0, 1, 2];
    while now < Nanos::from_secs(30) {
        for tag in free.drain(..) {
            let (sector, sectors) = if tag < 2 {
                next += 1_024;
                (next - 1_024, 1_024)
            } else {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                since = now;
                (half + (state >> 20) % (half / 8) * 8, 8)
            };
            let sector = Sector(sector);
            disk.submit(now, Command { tag: Tag(tag), op: Op::Read, sector, sectors, fua: false });
        }
        now = disk.next_event();
        disk.advance(now, &mut done);
        for completion in done.drain(..) {
            if completion.tag == Tag(2) {
                reads += 1;
                longest = longest.max(now - since);
            }
            free.push(completion.tag.0);
        }
    }
    (reads, longest)
}

#[test]
fn a_random_reader_beside_a_stream_waits_as_long_as_on_real_drives_and_no_longer() {
    for name in names() {
        let model = model(name);
        let Some(bound) = model.longest_wait(3, 1_024) else { continue };
        let (reads, longest) = beside_a_stream(&model);
        println!("{name}: {reads} random reads in 30 s, the longest {longest:?}, bound {:?}", bound.reads);
        assert!(longest <= bound.reads, "{name}: {longest:?} of {:?}", bound.reads);
        assert!(reads >= 100, "{name}: {reads} reads in 30 s");
        // A drive that takes batches has the read in the next one; an old WD Green let no read wait either
        // (OpenZFS issue 10253).
        if model.parameters().iter().any(|row| row.key == "ncq_batch" && row.value != "1") {
            continue;
        }
        // OpenZFS commit 6f5aac3c: 1 to 4 s by model, some fifteen reads after each.
        assert!((1.0..4.0).contains(&longest.as_secs_f64()), "{name}: {longest:?}");
    }
}

fn located(text: &str) -> Result<(), TestCaseError> {
    if let Err(error) = DiskModel::parse(text, "f.toml") {
        let line = error.line.expect("an error of a file has a line");
        prop_assert!(line >= 1 && line <= text.lines().count() + 1, "line {line}");
        prop_assert!(!error.to_string().contains('\n'), "{error}");
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_are_read_or_refused_with_a_line(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        located(&String::from_utf8_lossy(&bytes))?;
    }

    #[test]
    fn any_mutation_of_a_disk_file_is_read_or_refused_with_a_line(
        file in 0usize..8,
        changes in prop::collection::vec((any::<prop::sample::Index>(), "[ -~\n]{0,3}"), 1..4),
    ) {
        let mut text: Vec<char> = text(names()[file % names().len()]).chars().collect();
        for (place, new) in changes {
            let at = place.index(text.len());
            text.splice(at..=at, new.chars());
        }
        located(&text.into_iter().collect::<String>())?;
    }

    #[test]
    fn any_numbers_are_read_or_refused_with_a_line(
        file in 0usize..8,
        changes in prop::collection::vec(
            (any::<prop::sample::Index>(), prop_oneof![Just(0.0), Just(1.0), -1e3..1e3, -1e15..1e15f64]), 1..5),
    ) {
        let mut lines: Vec<String> = text(names()[file % names().len()]).lines().map(str::to_owned).collect();
        for (place, number) in changes {
            let at = place.index(lines.len());
            if let Some((key, _)) = lines[at].clone().split_once(" = ") {
                let whole = number.fract() == 0.0 || number.abs() > 100.0;
                lines[at] = if whole { format!("{key} = {}", number as i64) } else { format!("{key} = {number}") };
            }
        }
        located(&lines.join("\n"))?;
    }
}
