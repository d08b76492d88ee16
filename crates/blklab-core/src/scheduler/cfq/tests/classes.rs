//! Classes, workload types, and preemption.

use super::drive::{Drive, Process, limits};
use crate::request::Op::{Read, Write};
use crate::request::{Bio, PrioClass, ProcessId};
use crate::scheduler::journal::{Decision, EndReason, Workload};
use crate::scheduler::testing::{Rig, bio};
use crate::scheduler::{AnyScheduler, Scheduler};
use crate::units::Nanos;

const ALL: [PrioClass; 3] = [PrioClass::RealTime, PrioClass::BestEffort, PrioClass::Idle];

/// A rig with processes of these classes.
fn rig_of(classes: &[PrioClass]) -> Rig {
    let process = |&class| Process { class, ..Process::reader(0) };
    Drive::with(&[], classes.iter().map(process).collect(), &[], limits(true)).rig
}

/// A bio of that process; `sync`: a read, else an asynchronous write.
fn of(process: u32, sector: u64, sync: bool) -> Bio {
    let op = if sync { Read } else { Write };
    Bio { process: ProcessId(process), sync, ..bio(op, sector) }
}

/// The process of the next request, which is dispatched and completed.
fn next(rig: &mut Rig) -> Option<u32> {
    let id = rig.dispatch(0)?;
    let process = rig.requests[id].process.0;
    rig.complete(0);
    Some(process)
}

#[test]
fn real_time_goes_before_best_effort_and_the_idle_class_last() {
    let mut rig = rig_of(&[PrioClass::Idle, PrioClass::BestEffort, PrioClass::RealTime]);
    for process in 0..3 {
        rig.submit(of(process, 1_000_000 * u64::from(process), true));
    }
    let mut order = Vec::new();
    // The disk idles for each of the upper two for 8 ms.
    for _ in 0..30 {
        order.extend(next(&mut rig));
        rig.advance(Nanos::from_millis(1));
    }
    assert_eq!(order, [2, 1, 0]);
}

#[test]
fn a_request_takes_the_disk_from_a_lower_class_at_once_and_never_from_a_higher_one() {
    for (active, old) in ALL.into_iter().enumerate() {
        for (new, class) in ALL.into_iter().enumerate() {
            let mut rig = rig_of(&[old, class]);
            for place in 0..10 {
                rig.submit(of(0, 1_000_000 + place * 16, true));
            }
            assert_eq!(next(&mut rig), Some(0));
            rig.submit(of(1, 50_000_000, true));
            let expected = if new < active { 1 } else { 0 };
            // A turn of the idle class is one request long.
            let taken = next(&mut rig).expect("both have requests");
            assert!(taken == expected || old == PrioClass::Idle, "{class:?} against {old:?}: {taken}");
        }
    }
}

#[test]
fn a_sync_read_preempts_async_writes() {
    let mut rig = rig_of(&[PrioClass::BestEffort; 2]);
    for place in 0..10 {
        rig.submit(of(0, 1_000_000 + place * 16, false));
    }
    assert_eq!(next(&mut rig), Some(0));
    rig.submit(of(1, 50_000_000, true));
    assert_eq!(next(&mut rig), Some(1));
    // The disk idles for the reader; the writes wait until it ends.
    assert_eq!(next(&mut rig), None);
    rig.advance(Nanos::from_millis(8));
    assert_eq!(next(&mut rig), Some(0));
}

#[test]
fn no_sync_request_is_at_the_disk_beside_async_writes() {
    let mut rig = rig_of(&[PrioClass::BestEffort; 2]);
    rig.advance(Nanos::from_millis(10_000));
    rig.submit(of(0, 1_000_000, false));
    rig.dispatch(0).expect("it is alone");
    rig.submit(of(1, 50_000_000, true));
    assert_eq!(rig.dispatch(0), None, "the write is drained first");
    rig.complete(0);
    rig.dispatch(0).expect("the read");
    rig.submit(of(0, 2_000_000, false));
    assert_eq!(rig.dispatch(0), None, "the read is with the disk");
}

#[test]
fn of_the_idle_class_one_request_at_a_time_is_with_the_disk() {
    let mut rig = rig_of(&[PrioClass::Idle]);
    for place in 0..10 {
        rig.submit(of(0, 1_000_000 + place * 16, true));
    }
    assert_eq!(rig.dispatch_all().len(), 1);
    // A process of another class, if it is alone, has no such limit.
    let mut rig = rig_of(&[PrioClass::BestEffort]);
    for place in 0..10 {
        rig.submit(of(0, 1_000_000 + place * 16, true));
    }
    assert_eq!(rig.dispatch_all().len(), 10);
}

#[test]
fn only_requests_of_one_process_are_merged() {
    let mut rig = rig_of(&[PrioClass::BestEffort; 2]);
    rig.submit(of(0, 1000, true));
    rig.submit(of(1, 1008, true));
    assert_eq!(rig.waiting.len(), 2);
    rig.submit(of(0, 1008, true));
    assert_eq!(rig.waiting.len(), 2);
    // Asynchronous requests share a queue.
    rig.submit(of(0, 5000, false));
    rig.submit(of(1, 5008, false));
    assert_eq!(rig.waiting.len(), 3);
}

#[test]
fn async_writes_share_a_queue_by_priority() {
    let level = |level| Process { level, ..Process::writer(1) };
    let mut rig = Drive::new(&[], vec![level(4), level(4), level(6)]).rig;
    for process in 0..3 {
        rig.submit(of(process, 1000 + 8 * u64::from(process), false));
        rig.submit(of(process, 9000 + 8 * u64::from(process), false));
    }
    // Two and two were merged, the third has its own queue.
    assert_eq!(rig.waiting.len(), 4);
}

/// The fraction of 20 seconds that the disk worked for each process.
fn shares(drive: &Drive) -> Vec<f64> {
    let mut shares = vec![0.0; drive.processes.len()];
    for served in &drive.served {
        shares[served.process] += (served.ended - served.began).0 as f64 / 20e9;
    }
    shares
}

#[test]
fn a_sequential_and_a_random_reader_take_turns_of_one_length() {
    let mut drive = Drive::new(&[], vec![Process::reader(1), Process::random_reader(2)]);
    drive.run(Nanos::from_millis(20_000));
    let [sequential, random] = shares(&drive)[..] else { unreachable!("two processes") };
    assert!((0.4..0.6).contains(&sequential), "the sequential one had {sequential}, the other {random}");
    let notes = drive.notes();
    for wanted in [Workload::Sync, Workload::SyncNoIdle] {
        let chosen = |decision: &Decision| matches!(decision, Decision::WorkloadChosen { workload, .. } if *workload == wanted);
        let times = notes.iter().filter(|note| chosen(&note.decision)).count();
        assert!(times > 50, "{wanted:?} was chosen {times} times");
    }
}

/// While a random reader's request is in flight and the disk would not idle for that reader, any
/// process of its class may preempt it. The sequential reader, whose slice has just ended, does so
/// with its next request (`cfq_should_preempt`).
#[test]
fn of_many_random_readers_each_loses_its_turn_to_a_sequential_one_that_comes_back() {
    let random = (2..5).map(Process::random_reader);
    let mut drive = Drive::new(&[], [Process::reader(1)].into_iter().chain(random).collect());
    drive.run(Nanos::from_millis(20_000));
    let sequential = shares(&drive)[0];
    assert!(sequential > 0.8, "it had {sequential} of the time");
    let others = (1..4).map(|process| drive.count(process));
    assert!(others.clone().min() > Some(20), "{:?} requests", others.collect::<Vec<_>>());
}

#[test]
fn a_preempted_reader_keeps_the_rest_of_its_slice() {
    let real_time =
        Process { class: PrioClass::RealTime, think: Nanos::from_millis(500), ..Process::reader(3) };
    let mut drive = Drive::new(&[], vec![Process::reader(1), Process::reader(2), real_time]);
    drive.run(Nanos::from_millis(10_000));
    let notes = drive.notes();
    let ends = |why| {
        let ended =
            |decision: &Decision| matches!(decision, Decision::SliceEnd { reason, .. } if *reason == why);
        notes.iter().filter(|note| ended(&note.decision)).count()
    };
    let preempted = ends(EndReason::Preempted);
    assert!((15..=20).contains(&preempted), "{preempted} times in ten seconds");
    let (first, second) = (drive.count(0) as f64, drive.count(1) as f64);
    assert!((0.93..1.07).contains(&(first / second)), "{first} and {second} requests");
}

#[test]
fn a_preempted_reader_goes_on_before_one_that_has_waited_for_longer() {
    // Level 0: its turns do not become due later with more queues.
    let of_class = |class| Process { class, level: 0, ..Process::reader(0) };
    let classes = [PrioClass::BestEffort, PrioClass::BestEffort, PrioClass::RealTime];
    let mut rig = Drive::new(&[], classes.map(of_class).to_vec()).rig;
    for place in 0..20 {
        rig.submit(of(0, 1_000_000 + place * 16, true));
        rig.submit(of(1, 90_000_000 + place * 16, true));
    }
    let mut order = Vec::new();
    for ms in 0..20 {
        if ms == 5 {
            rig.submit(of(2, 50_000_000, true));
        }
        order.extend(next(&mut rig));
        rig.advance(Nanos::from_millis(1));
    }
    // 5 of some 150 ms were used; then the disk idles 8 ms for the process of real time.
    assert_eq!(order, [vec![0; 5], vec![2], vec![0; 7]].concat());
}

#[test]
fn a_process_that_has_ended_is_not_waited_for() {
    let mut rig = rig_of(&[PrioClass::BestEffort; 2]);
    rig.submit(of(0, 1000, true));
    rig.submit(of(1, 50_000_000, true));
    assert_eq!(next(&mut rig), Some(0));
    assert_eq!(next(&mut rig), None, "the disk idles for it");
    rig.exit(ProcessId(0));
    assert!(rig.scheduler.next_timer() <= rig.now, "the block layer is to ask at once");
    rig.advance(Nanos::ZERO);
    assert_eq!(next(&mut rig), Some(1));
}

#[test]
fn ended_processes_leave_nothing_behind() {
    let mut rig = rig_of(&[PrioClass::BestEffort; 50]);
    for round in 0..20 {
        for process in 0..50 {
            rig.submit(of(process, 1_000_000 * u64::from(process) + round * 16, true));
        }
        while !rig.waiting.is_empty() {
            if rig.dispatch_all().is_empty() {
                rig.advance(Nanos::from_millis(1));
            }
            rig.complete_all();
        }
        (0..50).for_each(|process| rig.exit(ProcessId(process)));
        let AnyScheduler::Cfq(cfq) = &rig.scheduler else { unreachable!() };
        assert_eq!(cfq.queues.len(), 0);
        assert_eq!((cfq.counts.busy(), cfq.waiting()), (0, 0));
    }
}

#[test]
fn the_idle_class_gets_a_request_in_between_two_slices_of_others() {
    let idle = Process { class: PrioClass::Idle, ..Process::reader(2) };
    let mut drive = Drive::new(&[], vec![Process::reader(1), idle]);
    drive.run(Nanos::from_millis(5_000));
    let turns = drive.whole_turns(1);
    assert!(turns.len() > 30 && turns.iter().all(|turn| turn.requests == 1), "{turns:?}");
    let others = drive.whole_turns(0);
    assert!(others.iter().all(|turn| turn.slice_ms() >= 99.0), "{others:?}");
}
