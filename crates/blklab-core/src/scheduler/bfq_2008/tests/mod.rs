//! The effect of each tunable, and what the header of the scheduler says.

mod promises;
mod turns;

use crate::request::Op::{Read, Write};
use crate::request::{Bio, IoPrio, PrioClass, ProcessId};
use crate::scheduler::journal::{Decision, EndReason, Note};
use crate::scheduler::testing::{Rig, Submitted, bio, limits};
use crate::scheduler::{Task, Tasks};
use crate::units::Nanos;

const NAME: &str = "bfq-2008";

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

/// Processes with these priorities and without cgroups.
fn with_prios(tunables: &[(&str, i64)], tasks: &[Task]) -> Rig {
    let root = Tasks::default().cgroups().to_vec();
    Rig::with_tasks(NAME, tunables, limits(), Tasks::new(tasks.to_vec(), root))
}

fn kept(rig: &mut Rig) -> Vec<Note> {
    rig.scheduler.journal().expect("it has one").take().0
}

fn keep(rig: &mut Rig) {
    rig.scheduler.journal().expect("it has one").keep(Nanos::ZERO, 10_000);
}

/// The reason and the sectors of each end of a process's turns.
fn ends(notes: &[Note], process: u32) -> Vec<(EndReason, u32)> {
    let of_it = notes.iter().filter(|note| note.process == ProcessId(process));
    of_it
        .filter_map(|note| match note.decision {
            Decision::SliceEnd { reason, service } => Some((reason, service)),
            _ => None,
        })
        .collect()
}

/// The budgets at the start of a process's turns.
fn budgets(notes: &[Note], process: u32) -> Vec<u32> {
    let of_it = notes.iter().filter(|note| note.process == ProcessId(process));
    of_it
        .filter_map(|note| match note.decision {
            Decision::SliceStart { budget, .. } => Some(budget),
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

/// Process 1 reads up to `sector` and pauses: the next turn is another process's.
fn head_at(rig: &mut Rig, sector: u64) {
    rig.submit(of(1, bio(Read, sector - 8)));
    assert_eq!(serve(rig, 1, Nanos(1000)), [sector - 8]);
    rig.advance(ms(100));
}

/// The first request of process 0 to be dispatched, with the head at 100,000. Another process is
/// busy too, so that one request is dispatched at a time: several together would be sorted again.
fn first(tunables: &[(&str, i64)], sectors: &[u64]) -> u64 {
    let mut rig = Rig::new(NAME, &[tunables, &[("quantum", 1)]].concat());
    head_at(&mut rig, 100_000);
    for &sector in sectors.iter() {
        rig.submit(of(0, bio(Read, sector)));
    }
    rig.submit(of(2, bio(Read, 0)));
    serve(&mut rig, 1, Nanos(1000))[0]
}

#[test]
fn quantum_is_how_many_requests_of_one_process_the_disk_has_and_alone_four_times_as_many() {
    for quantum in [1, 4, 7] {
        let out = |others: bool| {
            let mut rig = Rig::new(NAME, &[("quantum", quantum)]);
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
            let one = [("quantum", 1), ("max_budget_async_rq", 1)];
            let mut rig = Rig::new(NAME, &[&[(tunable, expire)], &one[..]].concat());
            head_at(&mut rig, 1000);
            let write = |sector| Bio { sync, ..of(0, bio(Write, sector)) };
            rig.submit(write(9000));
            rig.advance(ms(wait));
            rig.submit(write(2000));
            rig.submit(of(2, bio(Read, 0)));
            serve(&mut rig, 1, Nanos(1000))[0]
        };
        assert_eq!((first(50, 51), first(50, 49)), (9000, 2000), "{tunable}");
        assert_eq!((first(300, 301), first(300, 299)), (9000, 2000), "{tunable}");
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

#[test]
fn slice_idle_is_how_long_the_disk_waits_for_the_process_in_service() {
    for slice_idle in [0, 3, 8, 20] {
        let mut rig = Rig::new(NAME, &[("slice_idle", slice_idle)]);
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
fn a_process_that_sends_a_request_while_the_disk_idles_continues() {
    let mut rig = Rig::new(NAME, &[]);
    rig.submit(of(0, bio(Read, 0)));
    rig.submit(of(1, bio(Read, 1_000_000)));
    serve(&mut rig, 1, ms(5));
    rig.advance(ms(7));
    rig.submit(of(0, bio(Read, 8)));
    assert_eq!(serve(&mut rig, 1, ms(5)), [8]);
}

/// Two processes with many requests: reasons and sectors of the first process's turns.
fn turns_of_two(tunables: &[(&str, i64)]) -> Vec<(EndReason, u32)> {
    let mut rig = Rig::new(NAME, tunables);
    keep(&mut rig);
    for place in 0..100 {
        rig.submit(of(0, bio(Read, place * 16)));
        rig.submit(of(1, bio(Read, 1_000_000 + place * 16)));
    }
    serve(&mut rig, 200, Nanos(100_000));
    ends(&kept(&mut rig), 0)
}

#[test]
fn max_budget_is_the_most_sectors_of_a_turn() {
    for max_budget in [80, 160, 240] {
        let turns = turns_of_two(&[("max_budget", max_budget)]);
        // The first budget is three quarters, in whole requests of eight sectors.
        assert_eq!(turns[0], (EndReason::BudgetExhausted, max_budget as u32 * 3 / 4 / 8 * 8));
        assert_eq!(turns[1], (EndReason::BudgetExhausted, max_budget as u32));
    }
}

#[test]
fn max_budget_0_takes_the_budget_from_the_peak_rate() {
    let last_budget = |max_budget: i64, timeout: i64, sectors_per_ms: u64| {
        let tunables = [("max_budget", max_budget), ("timeout_sync", timeout), ("quantum", 1)];
        let mut rig = Rig::new(NAME, &tunables);
        keep(&mut rig);
        for place in 0..40_000 {
            let process = place % 2;
            let sector = u64::from(process) * 100_000_000 + u64::from(place) * 100;
            rig.submit(Bio { sectors: 16, ..of(process, bio(Read, sector)) });
            // Both always have a hundred more requests.
            if place > 200 {
                serve(&mut rig, 1, Nanos(16 * 1_000_000 / sectors_per_ms));
            }
        }
        *budgets(&kept(&mut rig), 0).last().expect("it had turns")
    };
    // What the disk moves in 3/4 of the time. A turn's first request counts without its time.
    for (timeout, rate, moves) in [(125, 100, 9375), (125, 50, 4687), (80, 100, 6000)] {
        let found = last_budget(0, timeout, rate);
        assert!((moves..moves + moves / 50).contains(&found), "{found} in {timeout} ms at {rate}");
    }
    assert_eq!(last_budget(5000, 125, 100), 5000);
}

#[test]
fn max_budget_async_rq_is_how_many_asynchronous_requests_go_in_one_turn() {
    for most in [1, 4, 9] {
        let tasks = [level(PrioClass::BestEffort, 4), level(PrioClass::BestEffort, 5)];
        let mut rig = with_prios(&[("max_budget_async_rq", most)], &tasks);
        keep(&mut rig);
        for place in 0..40 {
            rig.submit(asynchronous(0, place * 100));
            rig.submit(asynchronous(1, 1_000_000 + place * 100));
        }
        serve(&mut rig, 36, Nanos(1000));
        let turns = ends(&kept(&mut rig), 0);
        let all_alike = turns.iter().all(|turn| *turn == (EndReason::BudgetExhausted, most as u32 * 8));
        assert!(turns.len() > 1 && all_alike, "{turns:?}");
    }
}

/// The length of a process's first turn, with requests that take 10 ms each.
fn turn_of_slow_requests(tunables: &[(&str, i64)], bio: impl Fn(u64) -> Bio) -> Nanos {
    let mut rig = Rig::new(NAME, tunables);
    keep(&mut rig);
    (0..60).for_each(|place| {
        rig.submit(bio(place * 1000));
    });
    serve(&mut rig, 60, ms(10));
    let notes = kept(&mut rig);
    let over = EndReason::TimeOut;
    let ended = |note: &&Note| matches!(note.decision, Decision::SliceEnd { reason, .. } if reason == over);
    notes.iter().find(ended).expect("it took too long").at
}

#[test]
fn timeout_sync_and_timeout_async_end_a_turn_so_long_after_its_first_request() {
    for timeout in [20, 45, 125] {
        let expected = ms(10 + (timeout as u64).div_ceil(10) * 10);
        let read = |sector| of(0, bio(Read, sector));
        assert_eq!(turn_of_slow_requests(&[("timeout_sync", timeout)], read), expected);
        let write = |sector| asynchronous(0, sector);
        assert_eq!(turn_of_slow_requests(&[("timeout_async", timeout)], write), expected);
    }
}

#[test]
fn defaults_in_ticks_are_parts_of_a_second_and_what_is_set_is_rounded_up() {
    let idles_for = |hz, tunables: &[(&str, i64)]| {
        let ticks = crate::ticks::Ticks::per_second(hz);
        let limits = crate::scheduler::QueueLimits { ticks, ..limits() };
        let mut rig = Rig::with_limits(NAME, tunables, limits);
        rig.submit(of(0, bio(Read, 0)));
        serve(&mut rig, 1, ms(0));
        rig.scheduler.next_timer()
    };
    assert_eq!(idles_for(1000, &[]), ms(8));
    assert_eq!(idles_for(250, &[]), ms(8));
    assert_eq!(idles_for(100, &[]), ms(10), "HZ / 125, but a tick at least");
    assert_eq!(idles_for(250, &[("slice_idle", 9)]), ms(12));
}

#[test]
fn merges_depend_on_the_owners_of_the_requests() {
    let mut rig = Rig::new(NAME, &[]);
    rig.submit(of(0, bio(Write, 100)));
    assert!(matches!(rig.submit(of(1, bio(Write, 108))), Submitted::Waits(_)));
    assert!(matches!(rig.submit(of(0, bio(Write, 108))), Submitted::Merged(_)));
    // Asynchronous: all of one priority share a queue.
    rig.submit(asynchronous(0, 500));
    rig.submit(asynchronous(1, 900));
    assert!(matches!(rig.submit(asynchronous(1, 508)), Submitted::Merged(_)));
    assert_eq!(rig.waiting.values().map(Vec::len).sum::<usize>(), 6);
}
