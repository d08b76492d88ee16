//! The effect of each tunable, and what the header of the scheduler says.

mod promises;
mod turns;

use crate::request::Op::{Read, Write};
use crate::request::{Bio, IoPrio, PrioClass, ProcessId};
use crate::scheduler::journal::{Decision, EndReason, Note};
use crate::scheduler::testing::{Rig, Submitted, bio, limits};
use crate::scheduler::{QueueLimits, Task, Tasks};
use crate::units::Nanos;

const NAME: &str = "cfq-2008";

fn ms(ms: u64) -> Nanos {
    Nanos::from_millis(ms)
}

fn of(process: u32, bio: Bio) -> Bio {
    Bio { process: ProcessId(process), ..bio }
}

fn asynchronous(process: u32, sector: u64) -> Bio {
    Bio { sync: false, ..of(process, bio(Write, sector)) }
}

fn level(class: PrioClass, level: u8) -> Task {
    Task { prio: IoPrio { class, level }, ..Task::default() }
}

fn hard_disk() -> QueueLimits {
    QueueLimits { rotational: true, ..limits() }
}

/// On a hard disk.
fn rig(tunables: &[(&str, i64)]) -> Rig {
    with_prios(tunables, &[])
}

/// Processes with these priorities, on a hard disk.
fn with_prios(tunables: &[(&str, i64)], tasks: &[Task]) -> Rig {
    let root = Tasks::default().cgroups().to_vec();
    let mut rig = Rig::with_tasks(NAME, tunables, hard_disk(), Tasks::new(tasks.to_vec(), root));
    rig.scheduler.journal().expect("it has one").keep(Nanos::ZERO, 10_000);
    rig
}

fn notes(rig: &mut Rig) -> Vec<Note> {
    rig.scheduler.journal().expect("it has one").take().0
}

/// Why the turns of a process ended.
fn ends(notes: &[Note], process: u32) -> Vec<EndReason> {
    let of_it = notes.iter().filter(|note| note.process == ProcessId(process));
    of_it
        .filter_map(|note| match note.decision {
            Decision::SliceEnd { reason, .. } => Some(reason),
            _ => None,
        })
        .collect()
}

/// The slices of a process.
fn slices(notes: &[Note], process: u32) -> Vec<Nanos> {
    let of_it = notes.iter().filter(|note| note.process == ProcessId(process));
    of_it
        .filter_map(|note| match note.decision {
            Decision::SliceTimed { slice } => Some(slice),
            _ => None,
        })
        .collect()
}

/// The sectors of the next `count` requests, each completed after `service`.
fn serve(rig: &mut Rig, count: usize, service: Nanos) -> Vec<u64> {
    let mut sectors = Vec::new();
    for _ in 0..count {
        let Some(id) = rig.dispatch(0) else { break };
        sectors.push(rig.requests[id].sector.0);
        rig.advance(service);
        rig.complete(0);
    }
    sectors
}

/// Process `process` reads `count` times on from `sector`, each time at once: its window is known.
fn reads_on(rig: &mut Rig, process: u32, sector: u64, count: u64) -> u64 {
    for place in 0..count {
        rig.submit(of(process, bio(Read, sector + place * 8)));
        serve(rig, 1, Nanos(1000));
    }
    sector + count * 8
}

/// The first request of process 0 to be dispatched, with the head at 100,000. Another process is
/// busy too, so that one request is dispatched at a time: several together would be sorted again.
fn first(tunables: &[(&str, i64)], sectors: &[u64]) -> u64 {
    let mut rig = rig(&[tunables, &[("quantum", 1)]].concat());
    rig.submit(of(1, bio(Read, 100_000 - 8)));
    serve(&mut rig, 1, Nanos(1000));
    rig.advance(ms(100));
    for &sector in sectors {
        rig.submit(of(0, bio(Read, sector)));
    }
    rig.submit(of(2, bio(Read, 0)));
    serve(&mut rig, 1, Nanos(1000))[0]
}

#[test]
fn quantum_is_how_many_requests_of_one_process_the_disk_has_and_alone_four_times_as_many() {
    for quantum in [1, 4, 7] {
        let out = |others: bool| {
            let mut rig = rig(&[("quantum", quantum)]);
            (0..40).for_each(|place| {
                rig.submit(of(0, bio(Read, place * 100)));
            });
            if others {
                rig.submit(of(1, bio(Read, 1_000_000)));
            }
            rig.dispatch_all().len() as i64
        };
        assert_eq!((out(true), out(false)), (quantum, 4 * quantum));
    }
}

#[test]
fn fifo_expire_sync_and_async_say_when_a_turn_begins_with_the_oldest() {
    for (tunable, sync) in [("fifo_expire_sync", true), ("fifo_expire_async", false)] {
        let first = |expire: i64, wait: u64| {
            // Another process is busy too, so that one request is dispatched at a time.
            let tasks = [level(PrioClass::BestEffort, 4), level(PrioClass::BestEffort, 5)];
            let mut rig = with_prios(&[(tunable, expire), ("quantum", 1)], &tasks);
            let write = |process, sector| Bio { sync, ..of(process, bio(Write, sector)) };
            rig.submit(write(0, 9000));
            rig.advance(ms(wait));
            rig.submit(write(0, 2000));
            rig.submit(write(1, 500_000));
            serve(&mut rig, 1, Nanos(1000))[0]
        };
        assert_eq!((first(50, 50), first(50, 49)), (9000, 2000), "{tunable}");
        assert_eq!((first(300, 300), first(300, 299)), (9000, 2000), "{tunable}");
    }
}

#[test]
fn back_seek_max_is_how_far_below_the_head_a_request_still_competes() {
    let sectors = [200_000, 99_000];
    assert_eq!(first(&[("back_seek_max", 600)], &sectors), 99_000);
    assert_eq!(first(&[("back_seek_max", 400)], &sectors), 200_000);
}

#[test]
fn back_seek_penalty_is_how_much_more_a_way_down_counts() {
    let sectors = [101_500, 99_000];
    assert_eq!(first(&[("back_seek_penalty", 1)], &sectors), 99_000);
    assert_eq!(first(&[("back_seek_penalty", 2)], &sectors), 101_500);
}

/// The length of the first slice of a process that always has requests, and the time from its first
/// completion to the end of its turn. Each request takes 10 ms.
fn first_turn(tunables: &[(&str, i64)], task: Task, bio: impl Fn(u64) -> Bio) -> (Nanos, Nanos) {
    let mut rig = with_prios(&[tunables, &[("quantum", 1)]].concat(), &[task]);
    (0..60).for_each(|place| {
        rig.submit(bio(place * 1000));
    });
    serve(&mut rig, 60, ms(10));
    let notes = notes(&mut rig);
    let ended = |note: &&Note| matches!(note.decision, Decision::SliceEnd { .. });
    let timed = |note: &&Note| matches!(note.decision, Decision::SliceTimed { .. });
    let (began, over) = (notes.iter().find(timed).expect("it has one"), notes.iter().find(ended));
    (slices(&notes, 0)[0], over.expect("it ends").at - began.at)
}

#[test]
fn slice_sync_and_slice_async_are_the_time_of_a_turn_from_its_first_completion() {
    let normal = level(PrioClass::BestEffort, 4);
    for span in [20_u64, 45, 130] {
        let whole = ms(span.div_ceil(10) * 10);
        let read = first_turn(&[("slice_sync", span as i64)], normal, |sector| of(0, bio(Read, sector)));
        assert_eq!(read, (ms(span), whole));
        let write = first_turn(&[("slice_async", span as i64)], normal, |sector| asynchronous(0, sector));
        assert_eq!(write, (ms(span), whole));
    }
}

/// `Documentation/block/ioprio.txt` of Linux 2.6.28: within a class the levels determine the time that a
/// process has the disk for on each service.
#[test]
fn a_level_of_priority_is_a_fifth_of_a_slice() {
    for class in [PrioClass::BestEffort, PrioClass::RealTime] {
        for at in 0..8_u8 {
            let expected = ms(100 + 20 * 4 - 20 * u64::from(at));
            let read = |sector| of(0, bio(Read, sector));
            assert_eq!(first_turn(&[], level(class, at), read), (expected, expected), "{class:?} {at}");
        }
    }
}

#[test]
fn slice_async_rq_ends_a_turn_only_where_quantum_allows_as_many_requests() {
    // Twice slice_async_rq for each level from 7 up.
    for (rq, at, quantum, ends_so) in
        [(2, 7, 4, true), (2, 7, 3, false), (2, 4, 4, false), (2, 4, 16, true), (1, 6, 4, true)]
    {
        let tunables = [("slice_async_rq", rq), ("quantum", quantum)];
        let tasks = [level(PrioClass::BestEffort, at), level(PrioClass::BestEffort, at.min(6) - 1)];
        let mut rig = with_prios(&tunables, &tasks);
        for place in 0..100 {
            rig.submit(asynchronous(0, place * 100));
            rig.submit(asynchronous(1, 1_000_000 + place * 100));
        }
        serve(&mut rig, 60, Nanos(1000));
        let ends = ends(&notes(&mut rig), 0);
        let by_count = ends.iter().filter(|&&end| end == EndReason::BudgetExhausted).count();
        assert_eq!(by_count > 0, ends_so, "{rq} at level {at}, quantum {quantum}: {ends:?}");
    }
}

#[test]
fn slice_idle_is_how_long_the_disk_waits_for_the_active_process() {
    for slice_idle in [0, 3, 8, 20] {
        let mut rig = rig(&[("slice_idle", slice_idle)]);
        rig.submit(of(0, bio(Read, 0)));
        rig.submit(of(1, bio(Read, 1_000_000)));
        serve(&mut rig, 1, ms(5));
        let waits_until = rig.now + ms(slice_idle as u64);
        if slice_idle > 0 {
            assert_eq!(rig.dispatch(0), None, "it waits");
            assert_eq!(rig.scheduler.next_timer(), waits_until);
            assert!(rig.advance(ms(slice_idle as u64)), "then there is more to dispatch");
        }
        assert_eq!(serve(&mut rig, 1, ms(5)), [1_000_000]);
    }
}

#[test]
fn defaults_in_ticks_are_parts_of_a_second_and_what_is_set_is_rounded_up() {
    let idles_for = |hz, tunables: &[(&str, i64)]| {
        let ticks = crate::ticks::Ticks::per_second(hz);
        let mut rig = Rig::with_limits(NAME, tunables, QueueLimits { ticks, ..hard_disk() });
        rig.submit(of(0, bio(Read, 0)));
        serve(&mut rig, 1, ms(0));
        rig.scheduler.next_timer()
    };
    assert_eq!(idles_for(1000, &[]), ms(8));
    assert_eq!(idles_for(100, &[]), ms(10), "HZ / 125, but a tick at least");
    assert_eq!(idles_for(250, &[("slice_idle", 9)]), ms(12));
}

#[test]
fn merges_depend_on_the_owners_of_the_requests() {
    let mut rig = rig(&[]);
    rig.submit(of(0, bio(Write, 100)));
    assert!(matches!(rig.submit(of(1, bio(Write, 108))), Submitted::Waits(_)));
    assert!(matches!(rig.submit(of(0, bio(Write, 108))), Submitted::Merged(_)));
    // Asynchronous: all of one priority share a queue.
    rig.submit(asynchronous(0, 500));
    rig.submit(asynchronous(1, 900));
    assert!(matches!(rig.submit(asynchronous(1, 508)), Submitted::Merged(_)));
    assert_eq!(rig.waiting.values().map(Vec::len).sum::<usize>(), 6);
}
