//! Properties that hold for any processes: shares, classes and waiting times.

use super::drive::{Drive, FAR, Process, limits};
use crate::request::{Op, PrioClass};
use crate::units::Nanos;
use proptest::prelude::*;

fn ms(span: u64) -> Nanos {
    Nanos::from_millis(span)
}

/// `cfq_prio_to_slice` with the default `slice_sync`, in milliseconds.
fn slice_ms(level: u8) -> f64 {
    100.0 + 20.0 * (4.0 - f64::from(level))
}

/// The slice under `low_latency`, if `processes` processes fit into 300 ms.
fn scaled_ms(level: u8, processes: usize) -> f64 {
    let expected = 100.0 * processes as f64;
    let slice = slice_ms(level);
    if expected <= 300.0 {
        return slice;
    }
    (slice * 300.0 / expected).max(slice.min(16.0 * slice / 100.0))
}

/// Sequential readers with these levels that always have requests.
fn backlogged(levels: &[u8], tunables: &[(&str, i64)], until: Nanos) -> Drive {
    let reader = |(place, &level): (usize, &u8)| Process { level, ..Process::reader(place as u64 + 1) };
    let mut drive = Drive::new(tunables, levels.iter().enumerate().map(reader).collect());
    drive.run(until);
    drive
}

/// A process of any class that reads or writes, sequentially or randomly, often or rarely.
fn any_process() -> impl Strategy<Value = Process> {
    let class = prop::sample::select(vec![PrioClass::RealTime, PrioClass::BestEffort, PrioClass::Idle]);
    let op =
        prop_oneof![3 => Just((Op::Read, true)), 1 => Just((Op::Write, true)), 1 => Just((Op::Write, false))];
    (class, 0u8..8, op, any::<bool>(), 1u32..5, 0u64..30).prop_map(
        |(class, level, (op, sync), random, depth, think)| {
            let stride = if random { 100_000 } else { 16 };
            Process { class, level, op, sync, stride, depth, think: ms(think), ..Process::reader(0) }
        },
    )
}

/// Each process in its own area of the disk.
fn apart(mut processes: Vec<Process>) -> Vec<Process> {
    for (place, process) in processes.iter_mut().enumerate() {
        process.next = (place as u64 + 1) * 100_000_000;
    }
    processes
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]

    /// Every turn is as long as the table says, within a request and a half.
    #[test]
    fn a_turn_is_as_long_as_the_slice_of_its_level(
        levels in prop::collection::vec(0u8..8, 2..7), low_latency in 0usize..2
    ) {
        let drive = backlogged(&levels, &[("low_latency", low_latency as i64)], ms(12_000));
        for (process, &level) in levels.iter().enumerate() {
            let slice = if low_latency == 1 { scaled_ms(level, levels.len()) } else { slice_ms(level) };
            // The mean number of queues needs some turns to rise.
            for turn in drive.whole_turns(process).iter().skip(1) {
                let whole = turn.requests as f64;
                let off = (turn.slice_ms() - slice).abs();
                prop_assert!(off <= 1.5, "level {}: {} ms of {}, {} requests", level, turn.slice_ms(), slice, whole);
            }
        }
    }

    /// Two processes get the disk for the length of their slices. With more, a higher level also
    /// gets more turns (`cfq_slice_offset`): its share is at least that large.
    #[test]
    fn time_is_shared_by_the_slices_of_the_levels(
        levels in prop::collection::vec(0u8..8, 2..7), low_latency in 0i64..2
    ) {
        let drive = backlogged(&levels, &[("low_latency", low_latency)], ms(20_000));
        let count = |process: usize| drive.count(process) as f64;
        for (a, &high) in levels.iter().enumerate() {
            for (b, &low) in levels.iter().enumerate().filter(|&(b, &low)| a != b && high <= low) {
                let ratio = count(a) / count(b) / (slice_ms(high) / slice_ms(low));
                prop_assert!(ratio > 0.9, "{:?}: level {} to {} is {} of its share", levels, high, low, ratio);
                let exact = levels.len() == 2 || high == low;
                prop_assert!(!exact || ratio < 1.1, "{:?}: level {} to {}: {}", levels, high, low, ratio);
            }
        }
    }

    /// The shares of three groups with one to three sequential readers each.
    #[test]
    fn cgroups_share_the_disk_by_weight(
        groups in prop::collection::vec((50u16..500, 1usize..4), 2..4)
    ) {
        let mut readers = Vec::new();
        for (group, &(_, count)) in groups.iter().enumerate() {
            for _ in 0..count {
                readers.push(Process { cgroup: group as u16 + 1, ..Process::reader(readers.len() as u64 + 1) });
            }
        }
        let weights: Vec<_> = groups.iter().map(|&(weight, _)| (0, weight)).collect();
        let mut drive = Drive::with(&[], readers, &weights, limits(true));
        drive.run(ms(30_000));
        let all: u32 = groups.iter().map(|&(weight, _)| u32::from(weight)).sum();
        for (group, &(weight, _)) in groups.iter().enumerate() {
            let of_group = |served: &&super::drive::Served| {
                usize::from(drive.processes[served.process].cgroup) == group + 1
            };
            let share = drive.served.iter().filter(of_group).count() as f64 / drive.served.len() as f64;
            let due = f64::from(weight) / f64::from(all);
            prop_assert!((share / due - 1.0).abs() < 0.12, "{:?}: {} instead of {}", groups, share, due);
        }
    }

    /// No process overtakes a higher class, and the idle class waits even while the disk idles for
    /// a process of another class whose slice is not over.
    #[test]
    fn a_class_is_served_only_when_no_higher_one_has_anything(
        processes in prop::collection::vec(any_process(), 2..8), depth in 1usize..9
    ) {
        let mut drive = Drive::new(&[], apart(processes));
        drive.depth = depth;
        drive.run(ms(3000));
        prop_assert!(drive.served.len() > 20, "{} requests", drive.served.len());
        prop_assert_eq!(drive.overtaken, 0);
    }

    /// For a process that stops, the disk idles for `slice_idle`, or for its group for
    /// `group_idle`.
    #[test]
    fn the_disk_is_not_kept_idle_for_longer_than_the_tunables_say(
        processes in prop::collection::vec((any_process(), 0u16..3, 1u64..200), 2..8),
        slice_idle in 0i64..20, group_idle in 0i64..20, depth in 1usize..9
    ) {
        let process = |(process, cgroup, left)| Process { cgroup, left, ..process };
        let processes = apart(processes.into_iter().map(process).collect());
        let tunables = [("slice_idle", slice_idle), ("group_idle", group_idle)];
        let mut drive = Drive::with(&tunables, processes, &[(0, 100), (0, 300)], limits(true));
        drive.depth = depth;
        drive.run(ms(20_000));
        let bound = slice_idle.max(group_idle) as u64;
        prop_assert!(drive.kept_idle_max <= ms(bound), "{} of {} ms", drive.kept_idle_max.0 as f64 / 1e6, bound);
    }

    /// On a disk that queues commands, a synchronous request completes within four seconds; of
    /// asynchronous requests, one completes every two seconds.
    #[test]
    fn no_process_starves(processes in prop::collection::vec(any_process(), 2..8)) {
        let best_effort = |process| Process { class: PrioClass::BestEffort, ..process };
        let processes = apart(processes.into_iter().map(best_effort).collect());
        let ahead: u64 = processes.iter().filter(|p| !p.sync).map(|p| u64::from(p.depth)).sum();
        let mut drive = Drive::new(&[], processes);
        drive.depth = 31;
        drive.run(ms(30_000));
        let now = drive.rig.now;
        let served = drive.served.iter().map(|served| (served.process, served.ended - served.asked));
        let waiting = drive.rig.waiting.keys().map(|&id| &drive.rig.requests[id]);
        let waiting = waiting.map(|request| (request.process.0 as usize, now - request.inserted));
        for (process, waited) in served.chain(waiting) {
            let process = &drive.processes[process];
            let bound = if process.sync { ms(4000) } else { ms(4000 + 2000 * ahead) };
            prop_assert!(waited < bound, "{:?} waited {} ms", process, waited.0 / 1_000_000);
        }
    }
}

/// On a disk without a queue processes do starve: each random reader that comes back preempts the
/// reader with the request in flight, and goes before all waiting requests (`cfq_should_preempt`).
#[test]
fn on_a_disk_that_takes_one_command_busy_random_readers_overtake_a_sequential_one() {
    let random = |place, think| Process { depth: 2, think: ms(think), ..Process::random_reader(place) };
    let sequential = Process { think: ms(14), depth: 4, ..Process::reader(3) };
    let answers = |depth| {
        let mut drive = Drive::new(&[], vec![random(1, 7), random(2, 14), sequential.clone()]);
        drive.depth = depth;
        drive.run(ms(30_000));
        drive.count(2)
    };
    let (alone, queued) = (answers(1), answers(31));
    assert!(alone * 20 < queued, "{alone} answers in 30 seconds, with a queue {queued}");
}

#[test]
fn weights_count_at_every_level_of_the_tree() {
    // Group 1 (weight 200) holds 2 (100) and 3 (300); 4 (100) is a sibling of 1.
    let groups = [(0, 200), (1, 100), (1, 300), (0, 100)];
    let readers = [2, 3, 4].map(|cgroup| Process { cgroup, ..Process::reader(cgroup.into()) });
    let mut drive = Drive::with(&[], readers.to_vec(), &groups, limits(true));
    drive.run(ms(60_000));
    for (process, due) in [1.0 / 6.0, 1.0 / 2.0, 1.0 / 3.0].into_iter().enumerate() {
        let share = drive.count(process) as f64 / drive.served.len() as f64;
        assert!((share / due - 1.0f64).abs() < 0.1, "{share} instead of {due}");
    }
}

#[test]
fn processes_of_the_root_count_as_a_group_of_weight_200() {
    let readers = [0, 1].map(|cgroup| Process { cgroup, ..Process::reader(u64::from(cgroup) + 1) });
    let mut drive = Drive::with(&[], readers.to_vec(), &[(0, 100)], limits(true));
    drive.run(ms(60_000));
    let share = drive.count(0) as f64 / drive.served.len() as f64;
    assert!((share - 2.0 / 3.0).abs() < 0.05, "the root had {share}");
}

#[test]
fn without_slice_idle_groups_share_requests_on_a_disk_that_queues() {
    let reader = |cgroup| Process { cgroup, depth: 8, ..Process::random_reader(u64::from(cgroup)) };
    let groups = [(0, 100), (0, 300)];
    let mut drive = Drive::with(&[("slice_idle", 0)], vec![reader(1), reader(2)], &groups, limits(false));
    drive.depth = 32;
    drive.run(ms(60_000));
    let ratio = drive.count(1) as f64 / drive.count(0) as f64;
    assert!((ratio / 3.0 - 1.0).abs() < 0.1, "{ratio} to one");
    let seeks = drive.served.iter().filter(|served| served.ended - served.began == FAR).count();
    assert!(seeks > 5000, "{seeks} requests far apart");
}
