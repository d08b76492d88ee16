//! The shipped hard disks beside what two real drives did with the same commands.
//!
//! Measured: WD Raptor, 73 GB, 10,000 rpm, and Samsung SpinPoint F1, 1 TB, 7,200 rpm; fio, direct, 4
//! KiB at random over the whole drive, a minute for each point (github.com/louwrentius/fio-plot, its
//! history before commits 7fbc5656 and 7b1576b4). `ncq_plan`, `ncq_look_ahead_percent` and `ncq_deadline_ms`
//! were chosen amid the gains and tails of the sweep over `iodepth`, the full stroke from the spread of
//! single reads. The shapes of the distributions, the runs with as many jobs instead, and the writes had
//! no part in that.

use blklab_base::units::{Nanos, Sector};
use blklab_disk_model::{Command, Disk, DiskModel, Op, Tag, catalogue};

fn model(name: &str) -> DiskModel {
    catalogue::model(name).expect("a shipped disk")
}

/// Hard disks by transport, without the one that was measured: its figures are in its file.
fn shipped(transport: &str) -> Vec<(&'static str, DiskModel)> {
    let names = ["desktop-5900rpm", "sas-10k", "st3320620as", "wd10ezrx"];
    let all = names.map(|name| (name, model(name)));
    let found: Vec<_> = all.into_iter().filter(|(_, model)| model.transport() == transport).collect();
    assert!(!found.is_empty(), "no {transport} disk");
    found
}

/// One minute of a drive is compared with several of a model, since p99 and the longest wait of a minute
/// differ from those of the next one.
const MINUTES: usize = 15;

/// What some minutes of random commands came to; times over the mean.
struct Found {
    per_second: f64,
    mean_ms: f64,
    sd: f64,
    /// Rising.
    times: Vec<f64>,
    /// The longest of each minute, rising.
    longest: Vec<f64>,
}

impl Found {
    fn percentile(&self, percent: f64) -> f64 {
        self.times[((self.times.len() as f64 * percent / 100.0) as usize).min(self.times.len() - 1)]
    }

    /// The longest of a typical minute.
    fn longest(&self) -> f64 {
        self.longest[MINUTES / 2]
    }
}

/// Random commands of 4 KiB over the whole disk, always `depth` in flight; the ten seconds before the first
/// minute do not count.
fn found(model: &DiskModel, op: Op, depth: u32) -> Found {
    let mut disk = model.build(1);
    let blocks = model.limits().capacity.0 / 8;
    let mut state = 1u64;
    let mut submitted = vec![Nanos::ZERO; depth as usize];
    let mut free: Vec<u32> = (0..depth).collect();
    let (mut done, mut now, mut times) = (Vec::new(), Nanos::ZERO, Vec::new());
    let mut longest = vec![0f64; MINUTES];
    let start = Nanos::from_secs(10);
    let end = start + Nanos::from_secs(60 * MINUTES as u64);
    loop {
        for tag in free.drain(..) {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let sector = Sector((state >> 20) % blocks * 8);
            submitted[tag as usize] = now;
            disk.submit(now, Command { tag: Tag(tag), op, sector, sectors: 8, fua: false });
        }
        now = disk.next_event();
        if now >= end {
            break;
        }
        disk.advance(now, &mut done);
        for completion in done.drain(..) {
            if now >= start {
                let ms = (now - submitted[completion.tag.0 as usize]).as_secs_f64() * 1e3;
                let minute = ((now - start).as_secs_f64() / 60.0) as usize;
                longest[minute] = longest[minute].max(ms);
                times.push(ms);
            }
            free.push(completion.tag.0);
        }
    }
    times.sort_by(f64::total_cmp);
    longest.sort_by(f64::total_cmp);
    let count = times.len() as f64;
    let mean_ms = times.iter().sum::<f64>() / count;
    let over_mean = |all: Vec<f64>| -> Vec<f64> { all.into_iter().map(|ms| ms / mean_ms).collect() };
    let [times, longest] = [times, longest].map(over_mean);
    let sd = (times.iter().map(|time| (time - 1.0).powi(2)).sum::<f64>() / count).sqrt();
    Found { per_second: count / (60 * MINUTES) as f64, mean_ms, sd, times, longest }
}

/// A model may lie this far outside what the drives span: two sweeps of one drive differ as much.
const BEYOND: f64 = 0.02;
/// The same for the shape of a distribution, which no parameter was chosen from.
const SHAPE_BEYOND: f64 = 0.08;
/// The same for the longest of a typical minute, which [`MINUTES`] of them do not tell better.
const LONGEST_BEYOND: f64 = 0.05;

fn assert_within(what: &str, found: f64, (low, high): (f64, f64), beyond: f64) {
    let range = low * (1.0 - beyond)..=high * (1.0 + beyond);
    assert!(range.contains(&found), "{what}: {found:.2}, drives {low} to {high}");
}

#[test]
fn sata_disks_gain_by_queueing_and_spread_waits_as_measured_drives_do() {
    // In flight: gain in reads per second, p99 over mean, longest over mean.
    let measured = [
        (2, (1.0, 1.02), (1.48, 1.55), (1.6, 2.2)),
        (4, (0.99, 1.05), (1.32, 1.38), (1.4, 1.8)),
        (8, (1.14, 1.20), (1.21, 2.37), (1.3, 3.7)),
        (16, (1.31, 1.54), (2.77, 3.13), (5.4, 6.4)),
        (32, (1.46, 1.82), (3.11, 3.59), (4.1, 4.7)),
    ];
    for (name, model) in shipped("sata") {
        let alone = found(&model, Op::Read, 1);
        for (depth, gain, p99, longest) in measured {
            let found = found(&model, Op::Read, depth);
            let at = format!("{name}, {depth} in flight");
            println!(
                "{at}: gain {:.2}, p99 {:.2}, longest {:.2} of the mean, {:.0} ms",
                found.per_second / alone.per_second,
                found.percentile(99.0),
                found.longest(),
                found.longest() * found.mean_ms
            );
            assert_within(&format!("{at}: gain"), found.per_second / alone.per_second, gain, BEYOND);
            assert_within(&format!("{at}: p99 over mean"), found.percentile(99.0), p99, BEYOND);
            assert_within(&format!("{at}: longest over mean"), found.longest(), longest, LONGEST_BEYOND);
        }
    }
}

/// From the runs of as many jobs with one read each.
#[test]
fn the_shape_of_the_waits_is_that_of_measured_drives() {
    // In flight: standard deviation, p10, p50, p90, p95 over mean.
    let measured = [
        (1, (0.28, 0.30), (0.61, 0.62), (0.99, 1.0), (1.37, 1.39), (1.47, 1.50)),
        (2, (0.21, 0.22), (0.72, 0.73), (0.99, 1.0), (1.27, 1.29), (1.36, 1.39)),
        (4, (0.14, 0.16), (0.80, 0.82), (0.99, 0.99), (1.18, 1.20), (1.25, 1.27)),
        (8, (0.09, 0.42), (0.52, 0.88), (0.94, 1.0), (1.11, 1.53), (1.14, 1.74)),
        (16, (0.49, 0.58), (0.35, 0.63), (0.73, 0.94), (1.48, 1.63), (1.91, 2.02)),
        (32, (0.65, 0.71), (0.26, 0.33), (0.73, 0.91), (1.77, 1.98), (2.22, 2.42)),
    ];
    for (name, model) in shipped("sata") {
        for (depth, sd, p10, p50, p90, p95) in measured {
            let found = found(&model, Op::Read, depth);
            let at = format!("{name}, {depth} in flight");
            assert_within(&format!("{at}: sd over mean"), found.sd, sd, SHAPE_BEYOND);
            for (percent, range) in [(10.0, p10), (50.0, p50), (90.0, p90), (95.0, p95)] {
                let what = format!("{at}: p{percent} over mean");
                assert_within(&what, found.percentile(percent), range, SHAPE_BEYOND);
            }
        }
    }
}

#[test]
fn cached_random_writes_keep_the_pace_of_the_medium_whatever_the_depth() {
    for transport in ["sata", "sas"] {
        for (name, model) in shipped(transport) {
            let model = model.with_override("write_cache", "on").unwrap();
            let reads = found(&model, Op::Read, 1).per_second;
            let found = [1, 4, 32].map(|depth| found(&model, Op::Write, depth).per_second);
            println!("{name}: {reads:.1} reads/s, writes with 1, 4, 32 in flight {found:.1?}");
            for writes in found {
                // F1 2.05, Raptor 1.37, others down to 0.75 times their reads at depth 1.
                let ratio = writes / reads;
                assert!((0.75..2.05).contains(&ratio), "{name}: {ratio:.2} times its reads");
                // F1 1.02, Raptor 1.03 from depth 1 to 32.
                assert!((writes / found[0] - 1.0).abs() < 0.05, "{name}: {found:.1?}");
            }
        }
    }
}

#[test]
fn the_sas_disk_knows_the_angle_and_gains_more_without_starving_a_read() {
    for (name, model) in shipped("sas") {
        let alone = found(&model, Op::Read, 1).per_second;
        let mut last = 0.0;
        for depth in [4, 8, 16, 32, 64] {
            let found = found(&model, Op::Read, depth);
            let gain = found.per_second / alone;
            println!("{name}, {depth}: gain {gain:.2}, p99 {:.2}", found.percentile(99.0));
            assert!(gain > last, "{name}: {gain:.2} with {depth} in flight");
            last = gain;
            let deadline_ms = 1e3 * model.longest_wait(depth, 8).unwrap().reads.as_secs_f64();
            assert!(found.longest() * found.mean_ms < deadline_ms);
        }
        // No measured sweep of a SAS drive is at hand: better than by cylinder alone, not perfect.
        assert!((1.8..2.6).contains(&last), "{name}: {last:.2}");
    }
}
