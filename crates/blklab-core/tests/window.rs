//! The window of a run: its requests and decisions.

mod common;

use blklab_core::decisions::KINDS;
use blklab_core::engine::Followed;
use blklab_core::recorder::Window;
use blklab_core::scheduler::registry;
use blklab_core::units::Nanos;
use common::Experiment;

const READERS_AND_WRITER: &str = "[global]\nruntime=1\ntime_based\ndirect=1\nsize=1g\n\
    [reader]\nrw=randread\nnumjobs=2\n[writer]\nrw=write\nbs=128k\nioengine=libaio\niodepth=16\n\
    [aio]\nrw=randread\nioengine=posixaio\niodepth=4\nnrfiles=2\n";

fn window(from_ms: u64, until_ms: u64, requests: usize) -> Window {
    Window { from: Nanos::from_millis(from_ms), until: Nanos::from_millis(until_ms), requests }
}

fn names(kinds: &[i64]) -> Vec<&str> {
    kinds.iter().map(|&kind| KINDS[kind as usize]).collect()
}

#[test]
fn keeping_a_window_changes_nothing_else() {
    for scheduler in ["none", "noop", "deadline", "mq-deadline", "kyber"] {
        let experiment = Experiment::new(READERS_AND_WRITER, "wd10ezrx", scheduler);
        let (plain, kept) = (experiment.run(), experiment.run_and_keep(window(200, 400, 10_000)));
        assert_eq!(plain.disk, kept.disk, "{scheduler}");
        assert_eq!(plain.overview, kept.overview, "{scheduler}");
        assert!(plain.decisions.at_ns.is_empty(), "{scheduler}");
    }
}

#[test]
fn decisions_lie_in_the_window_and_name_processes_of_the_job_file() {
    let experiment =
        Experiment::new(READERS_AND_WRITER, "wd10ezrx:ncq=false", "mq-deadline:read_expire=20,fifo_batch=2");
    let result = experiment.run_and_keep(window(200, 400, 10_000));
    assert_eq!((result.decisions_left_out, result.detail_left_out), (Some(0), 0));
    let decisions = &result.decisions;
    assert!(decisions.at_ns.is_sorted());
    // States that had begun before the window come first.
    let before = decisions.at_ns.iter().take_while(|at| **at < 200_000_000).count();
    assert_eq!(names(&decisions.kind[..before]), ["batch-start"]);
    assert!(decisions.at_ns[before..].iter().all(|at| (200_000_000..=400_000_000).contains(at)));
    let jobs = result.jobs.len() as i64;
    assert!(
        decisions.process.iter().chain(&result.detail.process).all(|process| (-1..jobs).contains(process))
    );
    let of = |name: &str| {
        let kind = KINDS.iter().position(|kind| *kind == name).expect("a kind") as i64;
        decisions.kind.iter().filter(|&&k| k == kind).count()
    };
    assert!(of("batch-start") > 3 && of("expired") > 3);
    assert!(of("batch-start").abs_diff(of("batch-end")) <= 1);
    let trace = &result.detail;
    let within = |(queued, completed): (&i64, &i64)| *queued <= 400_000_000 && *completed >= 200_000_000;
    assert!(trace.queued_ns.iter().zip(&trace.completed_ns).all(within));
    assert!(trace.completed_ns.iter().any(|at| *at > 390_000_000));
}

#[test]
fn a_request_is_queued_then_issued_then_begun_then_ended_on_every_disk() {
    for disk in ["wd10ezrx", "wd10ezrx:write_cache=false", "su800-128gb", "optane-900p", "pm983-960gb"] {
        for scheduler in registry::ALL.iter().map(|info| info.name) {
            let experiment = Experiment::new(READERS_AND_WRITER, disk, scheduler);
            let trace = experiment.run_and_keep(window(100, 200, 5_000)).detail;
            let columns = [&trace.queued_ns, &trace.issued_ns, &trace.began_ns, &trace.completed_ns];
            assert!(!trace.sector.is_empty());
            for row in 0..trace.sector.len() {
                assert!(columns.map(|column| column[row]).is_sorted(), "{disk}, {scheduler}: row {row}");
            }
        }
    }
}

#[test]
fn commands_beyond_the_windows_limit_are_counted() {
    let experiment = Experiment::new(READERS_AND_WRITER, "wd10ezrx", "mq-deadline");
    let all = experiment.run_and_keep(window(0, 1000, 10_000));
    let few = experiment.run_and_keep(window(0, 1000, 5));
    assert_eq!(few.detail.sector.len(), 5);
    assert_eq!(few.detail_left_out as usize, all.detail.sector.len() - 5);
    assert_eq!(few.decisions.at_ns[..], all.decisions.at_ns[..few.decisions.at_ns.len()]);
    assert_eq!(
        few.decisions_left_out.expect("it decides") as usize,
        all.decisions.at_ns.len() - few.decisions.at_ns.len()
    );
}

#[test]
fn a_scheduler_without_decisions_records_none() {
    let result = Experiment::new(READERS_AND_WRITER, "su800-128gb", "none").run_and_keep(window(0, 100, 100));
    assert_eq!((result.decisions_left_out, result.decisions.at_ns.len()), (None, 0));
}

/// A run that is stopped is the beginning of the whole one: what has completed until then is the same.
#[test]
fn a_run_that_is_stopped_is_the_beginning_of_the_whole_one() {
    let mixed = "[global]\nsize=1g\n[page-cache]\nrw=write\nbs=64k\n[late]\nstartdelay=2\nrw=randread\nruntime=1\n\
                 [reader]\nrw=randread\ndirect=1\nruntime=3\ntime_based\n[after]\nstonewall\nrw=read\nsize=1m\n";
    let until = Nanos::from_millis(400);
    for job in [READERS_AND_WRITER, mixed] {
        for scheduler in registry::ALL.iter().map(|info| info.name) {
            let experiment = Experiment::new(job, "su800-128gb", scheduler);
            let all = window(0, 10_000, 100_000);
            let followed = Followed { window: Some(all), until: Some(until) };
            let (whole, part) = (experiment.run_and_keep(all), experiment.run_followed(followed));
            assert_eq!(part.duration_ns, until.0, "{scheduler}");
            let completed = |trace: &blklab_core::result::DiskTrace| {
                let rows = trace.completed_ns.iter().zip(&trace.sector).zip(&trace.issued_ns);
                let mut rows: Vec<_> =
                    rows.map(|((a, b), c)| (*a, *b, *c)).filter(|row| row.0 <= until.0 as i64).collect();
                rows.sort_unstable();
                rows
            };
            let rows = completed(&part.detail);
            assert!(rows.len() > 20, "{scheduler}: {} requests", rows.len());
            assert_eq!(rows, completed(&whole.detail), "{scheduler}");
            for job in &part.jobs {
                assert!(job.read.runtime_ns <= until.0 && job.write.runtime_ns <= until.0, "{}", job.name);
                assert!(job.end_ns >= job.start_ns, "{}", job.name);
            }
            let reads: u64 = part.jobs.iter().map(|job| job.read.ios).sum();
            assert!(reads > 0 && reads < whole.jobs.iter().map(|job| job.read.ios).sum::<u64>());
        }
    }
}
