//! The effect of each tunable.

use super::drive::{Drive, Process, limits};
use crate::request::Op::{Read, Write};
use crate::request::{Bio, ProcessId};
use crate::scheduler::testing::{Rig, bio};
use crate::units::Nanos;

fn ms(span: u64) -> Nanos {
    Nanos::from_millis(span)
}

/// The first sectors of requests, in the order of dispatch.
fn order(rig: &mut Rig, count: usize) -> Vec<u64> {
    let mut sectors = Vec::new();
    for _ in 0..count {
        let Some(id) = rig.dispatch(0) else { break };
        sectors.push(rig.requests[id].sector.0);
        rig.complete(0);
    }
    sectors
}

fn of(process: u32, sector: u64) -> Bio {
    Bio { process: ProcessId(process), ..bio(Read, sector) }
}

fn close(found: f64, expected: f64, tolerance: f64, what: &str) {
    assert!((found - expected).abs() <= tolerance, "{what}: {found}, not {expected}");
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let values: Vec<f64> = values.collect();
    assert!(!values.is_empty(), "nothing to take the mean of");
    values.iter().sum::<f64>() / values.len() as f64
}

/// A tunable in milliseconds and its other name in microseconds, both set to `ms`.
fn both(name: &'static str, us: &'static str, ms: i64) -> [(&'static str, i64); 2] {
    [(name, ms), (us, ms * 1000)]
}

#[test]
fn quantum_is_the_number_of_requests_that_a_process_has_with_the_disk() {
    for quantum in [1, 4, 8] {
        let mut rig = Rig::with_limits("cfq", &[("quantum", quantum)], limits(true));
        for place in 0..20 {
            rig.submit(of(0, 1_000_000 + place * 16));
            rig.submit(of(1, 9_000_000 + place * 16));
        }
        // Half of it until the first request completes; then all of it, unless the slice is almost
        // over.
        assert_eq!(rig.dispatch_all().len() as i64, (quantum / 2).max(1), "quantum {quantum}");
        rig.complete(0);
        rig.dispatch_all();
        assert_eq!(rig.in_flight.len() as i64, quantum, "quantum {quantum}");
        rig.advance(ms(95));
        rig.complete_all();
        assert_eq!(rig.dispatch_all().len() as i64, (quantum / 2).max(1), "quantum {quantum} late");
    }
}

#[test]
fn fifo_expire_sync_and_fifo_expire_async_say_when_the_oldest_goes_first() {
    for (name, op, sync) in [("fifo_expire_sync", Read, true), ("fifo_expire_async", Write, false)] {
        let after_20_ms = |expire| {
            let mut rig = Rig::with_limits("cfq", &[(name, expire)], limits(true));
            rig.submit(Bio { sync, ..bio(op, 500_000) });
            rig.advance(ms(20));
            // Nearer to the head.
            rig.submit(Bio { sync, ..bio(op, 1000) });
            order(&mut rig, 2)
        };
        assert_eq!(after_20_ms(21), [1000, 500_000], "{name}");
        assert_eq!(after_20_ms(20), [500_000, 1000], "{name}");
    }
}

/// The second request after one at sector 100,000, with one 1000 KiB behind it and one 5000 KiB
/// ahead.
fn second_of_back_and_front(tunables: &[(&str, i64)]) -> u64 {
    let mut rig = Rig::with_limits("cfq", tunables, limits(true));
    rig.submit(bio(Read, 100_000));
    order(&mut rig, 1);
    rig.submit(bio(Read, 100_008 - 2000));
    rig.submit(bio(Read, 100_008 + 10_000));
    order(&mut rig, 1)[0]
}

#[test]
fn back_seek_max_is_how_far_behind_a_request_may_be_to_be_next() {
    assert_eq!(second_of_back_and_front(&[("back_seek_max", 1000)]), 98_008);
    assert_eq!(second_of_back_and_front(&[("back_seek_max", 999)]), 110_008);
}

#[test]
fn back_seek_penalty_times_the_way_back_counts_as_the_way_ahead() {
    assert_eq!(second_of_back_and_front(&[("back_seek_penalty", 4)]), 98_008);
    // Equivalent distances: the upper request wins.
    assert_eq!(second_of_back_and_front(&[("back_seek_penalty", 5)]), 110_008);
    assert_eq!(second_of_back_and_front(&[("back_seek_penalty", 6)]), 110_008);
}

#[test]
fn slice_sync_is_the_time_of_a_readers_turn() {
    for length in [50, 100, 200] {
        for tunable in both("slice_sync", "slice_sync_us", length) {
            let readers = vec![Process::reader(1), Process::reader(2)];
            let mut drive = Drive::new(&[tunable, ("low_latency", 0)], readers);
            drive.run(ms(4000));
            for turn in drive.whole_turns(0) {
                close(turn.slice_ms(), length as f64, 1.5, tunable.0);
            }
        }
    }
}

#[test]
fn a_level_of_priority_is_a_fifth_of_slice_sync() {
    for level in 0..8 {
        let readers = vec![Process { level, ..Process::reader(1) }, Process::reader(2)];
        let mut drive = Drive::new(&[("slice_sync", 50), ("low_latency", 0)], readers);
        drive.run(ms(6000));
        let slice = 50.0 + 10.0 * (4.0 - f64::from(level));
        let found = mean(drive.whole_turns(0).iter().map(|turn| turn.slice_ms()));
        close(found, slice, 1.5, &format!("level {level}"));
    }
}

/// Two writers of different priority that always have requests.
fn writers(tunables: &[(&str, i64)], until: Nanos) -> Drive {
    let writers = vec![Process::writer(1), Process { level: 5, ..Process::writer(2) }];
    let mut drive = Drive::new(tunables, writers);
    drive.run(until);
    drive
}

#[test]
fn slice_async_is_the_time_of_a_turn_of_async_requests() {
    for length in [20, 40, 80] {
        for tunable in both("slice_async", "slice_async_us", length) {
            let drive = writers(&[tunable, ("slice_async_rq", 1000), ("low_latency", 0)], ms(4000));
            let found = mean(drive.whole_turns(0).iter().map(|turn| turn.slice_ms()));
            close(found, length as f64, 2.5, tunable.0);
        }
    }
}

#[test]
fn slice_async_rq_is_the_number_of_requests_of_such_a_turn_by_priority() {
    for requests in [1, 2, 4] {
        let tunables = [("slice_async_rq", requests), ("slice_async", 10_000), ("low_latency", 0)];
        let drive = writers(&tunables, ms(4000));
        for (process, level) in [(0, 4), (1, 5)] {
            for turn in drive.whole_turns(process) {
                assert_eq!(turn.requests as i64, 2 * requests * (8 - level), "slice_async_rq {requests}");
            }
        }
    }
}

/// How long the disk idles for process 0 while a request of process 1 waits.
fn kept_waiting(mut rig: Rig) -> Nanos {
    rig.submit(of(0, 1000));
    rig.submit(of(1, 9_000_000));
    assert_eq!(order(&mut rig, 1), [1000]);
    let since = rig.now;
    while rig.dispatch(0).is_none() {
        let due = rig.scheduler.next_timer();
        assert_ne!(due, Nanos::NEVER, "a timer is set");
        rig.advance(due.saturating_sub(rig.now));
    }
    rig.now.saturating_sub(since)
}

#[test]
fn slice_idle_is_how_long_the_disk_waits_for_the_next_request() {
    for length in [0, 4, 8, 20] {
        for tunable in both("slice_idle", "slice_idle_us", length) {
            let rig = Rig::with_limits("cfq", &[tunable, ("group_idle", 0)], limits(true));
            assert_eq!(kept_waiting(rig), ms(length as u64), "{}", tunable.0);
        }
    }
}

#[test]
fn without_slice_idle_distant_readers_take_turns_request_by_request() {
    let seeks = |idle| {
        let readers = vec![Process::reader(1), Process::reader(2)];
        let mut drive = Drive::new(&[("slice_idle", idle)], readers);
        drive.run(ms(4000));
        drive.turns().len()
    };
    assert!(seeks(8) < 60, "{} turns in four seconds", seeks(8));
    assert!(seeks(0) > 400, "{} turns in four seconds", seeks(0));
}

#[test]
fn group_idle_is_how_long_the_disk_waits_for_the_last_process_of_a_cgroup() {
    for length in [0, 4, 8, 20] {
        for tunable in both("group_idle", "group_idle_us", length) {
            let rig = |cgroups: [u16; 2]| {
                let process = |cgroup| Process { cgroup, ..Process::reader(1) };
                let processes = cgroups.map(process).to_vec();
                Drive::with(&[tunable, ("slice_idle", 0)], processes, &[(0, 100), (0, 100)], limits(true)).rig
            };
            assert_eq!(kept_waiting(rig([1, 2])), ms(length as u64), "{}", tunable.0);
            assert_eq!(kept_waiting(rig([1, 1])), Nanos::ZERO, "{}: its group has another", tunable.0);
        }
    }
}

/// Ten readers: the mean length of their turns in milliseconds, and the longest wait of a request.
fn ten_readers(tunables: &[(&str, i64)]) -> (f64, f64) {
    let mut drive = Drive::new(tunables, (1..11).map(Process::reader).collect());
    drive.run(ms(10_000));
    let turns = (0..10).flat_map(|process| drive.whole_turns(process));
    let waited = drive.served.iter().map(|served| served.began.saturating_sub(served.asked));
    (mean(turns.map(|turn| turn.slice_ms())), waited.max().expect("served").0 as f64 / 1e6)
}

#[test]
fn low_latency_shortens_slices_until_all_fit_into_target_latency() {
    let (short, soon) = ten_readers(&[("low_latency", 1)]);
    let (full, late) = ten_readers(&[("low_latency", 0)]);
    close(short, 30.0, 2.0, "300 ms for ten");
    close(full, 100.0, 2.0, "each its whole slice");
    // Each turn costs a seek of 8 ms as well, and keys lie a little ahead.
    assert!(soon < 450.0 && late > 900.0, "waited {soon} and {late} ms");
}

#[test]
fn low_latency_shortens_no_slice_below_twice_slice_idle() {
    let mut drive = Drive::new(&[("low_latency", 1)], (1..31).map(Process::reader).collect());
    drive.run(ms(3_000));
    let turns = (0..30).flat_map(|process| drive.whole_turns(process));
    close(mean(turns.map(|turn| turn.slice_ms())), 16.0, 1.5, "not the 10 ms that 300 ms for thirty are");
}

#[test]
fn low_latency_holds_back_async_requests_after_a_long_sync_wait() {
    let writes_at_once = |low_latency| {
        let mut rig = Rig::with_limits("cfq", &[("low_latency", low_latency)], limits(true));
        rig.advance(ms(5000));
        rig.submit(of(0, 1000));
        rig.dispatch(0).expect("nothing else waits");
        // Longer than fifo_expire_sync.
        rig.advance(ms(200));
        rig.complete(0);
        for place in 0..20 {
            rig.submit(Bio { sync: false, process: ProcessId(1), ..bio(Write, 500_000 + place * 16) });
        }
        rig.advance(ms(250));
        rig.dispatch_all().len()
    };
    // One more for each slice_sync without a late request.
    assert_eq!(writes_at_once(1), 2);
    assert_eq!(writes_at_once(0), 20);
}

#[test]
fn target_latency_is_the_sum_of_all_slices() {
    for target in [200, 300, 600] {
        for tunable in both("target_latency", "target_latency_us", target) {
            let (slice, _) = ten_readers(&[tunable]);
            close(slice, target as f64 / 10.0, 2.0, tunable.0);
        }
    }
    // No slice is shorter than twice slice_idle.
    close(ten_readers(&[("target_latency", 50)]).0, 16.0, 2.0, "the least");
}

#[test]
fn of_two_names_for_one_time_the_finer_counts() {
    let names = [("slice_idle", 2), ("slice_idle_us", 5000), ("group_idle", 0)];
    assert_eq!(kept_waiting(Rig::with_limits("cfq", &names, limits(true))), ms(5));
}
