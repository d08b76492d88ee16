//! Turns: their order, their ends, their charges.

use super::*;
use crate::request::PrioClass::{BestEffort, Idle, RealTime};

#[test]
fn a_budget_grows_by_1024_when_used_up_to_the_largest() {
    let mut rig = Rig::new(NAME, &[]);
    keep(&mut rig);
    for place in 0..4000 {
        for process in 0..2 {
            let sector = u64::from(process) * 100_000_000 + place * 100;
            rig.submit(Bio { sectors: 64, ..of(process, bio(Read, sector)) });
        }
    }
    // Fast enough to finish before the timeout, and too short to be measured.
    serve(&mut rig, 8000, Nanos(50_000));
    let budgets = budgets(&kept(&mut rig), 0);
    assert_eq!(budgets[..6], [12_288, 13_312, 14_336, 15_360, 16_384, 16_384]);
}

#[test]
fn the_budget_of_an_idle_process_shrinks_by_128_down_to_half_of_the_largest() {
    let mut rig = Rig::new(NAME, &[("max_budget", 1000)]);
    keep(&mut rig);
    for turn in 0..8 {
        rig.submit(of(0, bio(Read, turn * 8)));
        serve(&mut rig, 1, Nanos(50_000));
        // The next request comes a little late, but the think time still allows idling.
        rig.advance(ms(8));
    }
    let notes = kept(&mut rig);
    assert_eq!(budgets(&notes, 0), [750, 622, 500, 500, 500, 500, 500, 500]);
    assert!(ends(&notes, 0).iter().all(|end| *end == (EndReason::TooIdle, 8)));
}

#[test]
fn a_turn_that_times_out_costs_the_whole_budget() {
    // With the same weight, one process reads 8 sectors in 10 ms, the other 64 in 100 us.
    let mut rig = Rig::new(NAME, &[("max_budget", 4096), ("quantum", 1)]);
    keep(&mut rig);
    for place in 0..3000 {
        rig.submit(of(0, bio(Read, place * 1_000_000)));
        rig.submit(Bio { sectors: 64, ..of(1, bio(Read, 10_000_000_000 + place * 100)) });
    }
    for _ in 0..1500 {
        let id = rig.dispatch(0).expect("both have more");
        let seeky = rig.requests[id].process == ProcessId(0);
        rig.advance(if seeky { ms(10) } else { Nanos(100_000) });
        rig.complete(0);
    }
    let notes = kept(&mut rig);
    let (seeky, fast) = (ends(&notes, 0), ends(&notes, 1));
    assert!(seeky.len() > 5 && seeky.iter().all(|end| *end == (EndReason::TimeOut, 14 * 8)), "{seeky:?}");
    // Each turn of the seeky process is charged 3/4 of a budget: three turns for four of the
    // other's.
    let expected = fast.len() * 4 / 3;
    assert!(seeky.len().abs_diff(expected) <= 2, "{} for {}", seeky.len(), fast.len());
}

#[test]
fn weights_are_8_less_the_level() {
    for (high, low, ratio) in [(4, 6, 2.0), (0, 7, 8.0), (3, 4, 1.25)] {
        let tasks = [level(BestEffort, high), level(BestEffort, low)];
        let mut rig = with_prios(&[("max_budget", 64)], &tasks);
        for place in 0..3000 {
            rig.submit(of(0, bio(Read, place * 16)));
            rig.submit(of(1, bio(Read, 1_000_000_000 + place * 16)));
        }
        let order = serve(&mut rig, 3000, Nanos(10_000));
        let first = order.iter().filter(|&&sector| sector < 1_000_000_000).count() as f64;
        let found = first / (3000.0 - first);
        assert!((found / ratio - 1.0).abs() < 0.05, "levels {high} and {low}: {found}");
    }
}

#[test]
fn real_time_goes_before_best_effort_and_the_idle_class_last() {
    let tasks = [level(Idle, 0), level(BestEffort, 0), level(RealTime, 7)];
    let mut rig = with_prios(&[], &tasks);
    for place in 0..3 {
        for process in 0..3 {
            rig.submit(of(process, bio(Read, u64::from(process) * 10_000 + place * 100)));
        }
    }
    let mut order = Vec::new();
    while order.len() < 9 {
        // The disk idles for the queue that is empty.
        order.extend(serve(&mut rig, 9, Nanos(1000)));
        rig.advance(ms(8));
    }
    assert_eq!(order.iter().map(|sector| sector / 10_000).collect::<Vec<_>>(), [2, 2, 2, 1, 1, 1, 0, 0, 0]);
}

#[test]
fn the_idle_class_waits_however_long_others_take() {
    let mut rig = with_prios(&[], &[level(Idle, 0), level(BestEffort, 7)]);
    rig.submit(of(0, bio(Read, 500_000)));
    for place in 0..200 {
        rig.submit(of(1, bio(Read, place * 100)));
    }
    let order = serve(&mut rig, 200, ms(10));
    assert!(order.iter().all(|&sector| sector < 500_000), "two seconds without it");
    rig.advance(ms(10));
    assert_eq!(serve(&mut rig, 1, ms(10)), [500_000]);
}

#[test]
fn the_disk_does_not_idle_for_think_times_beyond_slice_idle() {
    let mut rig = Rig::new(NAME, &[]);
    for turn in 0..4 {
        rig.submit(of(0, bio(Read, turn * 8)));
        rig.submit(of(1, bio(Read, 1_000_000 + turn * 8)));
        while rig.dispatch(0).is_some() {
            rig.complete(0);
        }
        let waits = rig.scheduler.next_timer() != Nanos::NEVER;
        // After three requests its think time is known.
        assert_eq!(waits, turn < 2, "turn {turn}");
        rig.advance(ms(50));
        while rig.dispatch(0).is_some() {
            rig.complete(0);
        }
        rig.advance(ms(50));
    }
}

#[test]
fn a_process_that_ends_gives_the_disk_back_at_once() {
    let mut rig = Rig::new(NAME, &[]);
    rig.submit(of(0, bio(Read, 0)));
    rig.submit(of(1, bio(Read, 1_000_000)));
    serve(&mut rig, 1, ms(1));
    assert_eq!(rig.dispatch(0), None);
    rig.exit(ProcessId(0));
    assert!(rig.advance(Nanos::ZERO), "the timer says so");
    assert_eq!(serve(&mut rig, 1, ms(1)), [1_000_000]);
}

#[test]
fn the_disk_does_not_idle_for_a_process_that_ended_before_its_last_request_was_served() {
    let mut rig = Rig::new(NAME, &[]);
    rig.submit(of(0, bio(Read, 0)));
    rig.exit(ProcessId(0));
    rig.submit(of(1, bio(Read, 1_000_000)));
    assert_eq!(serve(&mut rig, 2, ms(1)), [0, 1_000_000]);
}

#[test]
fn asynchronous_requests_wait_for_the_synchronous_ones_that_are_out_and_no_longer() {
    let mut rig = Rig::new(NAME, &[("slice_idle", 0)]);
    rig.submit(of(0, bio(Read, 0)));
    rig.submit(asynchronous(1, 1_000_000));
    assert_eq!(rig.dispatch_all(), [0]);
    rig.complete_all();
    assert_eq!(rig.dispatch_all(), [1_000_000]);
}

#[test]
fn requests_dispatched_together_ascend_from_the_head() {
    let mut rig = Rig::new(NAME, &[("quantum", 8)]);
    head_at(&mut rig, 100_000);
    // The oldest has expired and is chosen first; the dispatch list sorts it by sector.
    rig.submit(of(0, bio(Read, 130_000)));
    rig.advance(ms(200));
    for sector in [120_000, 50_000, 110_000, 40_000, 140_000] {
        rig.submit(of(0, bio(Read, sector)));
    }
    assert_eq!(rig.dispatch_all(), [110_000, 120_000, 130_000, 140_000, 40_000, 50_000]);
}

#[test]
fn a_fast_reader_that_pauses_pays_for_its_whole_budget_and_a_slow_one_does_not() {
    // As in the patch; see the header.
    let others_until_it_is_back = |service: Nanos| {
        let tasks = [level(BestEffort, 7), level(BestEffort, 0)];
        let mut rig = with_prios(&[("max_budget", 2000)], &tasks);
        keep(&mut rig);
        let request = |process, sector| Bio { sectors: 64, ..of(process, bio(Read, sector)) };
        (0..5).for_each(|place| {
            rig.submit(request(0, place * 100));
        });
        assert_eq!(serve(&mut rig, 1, service), [0]);
        (0..400).for_each(|place| {
            rig.submit(request(1, 1_000_000 + place * 100));
        });
        serve(&mut rig, 4, service);
        rig.advance(ms(8));
        assert_eq!(ends(&kept(&mut rig), 0), [(EndReason::TooIdle, 5 * 64)]);
        rig.submit(request(0, 10_000));
        let order = serve(&mut rig, 400, Nanos(10_000));
        order.iter().position(|&sector| sector == 10_000).expect("it is served") * 64
    };
    // The other process is due eight of nine sectors. The budget is 1500, 320 sectors are served;
    // the other's turns have at most 2000.
    let fast = others_until_it_is_back(ms(1));
    assert!(fast.abs_diff(8 * 1500) <= 2000, "{fast}");
    let slow = others_until_it_is_back(ms(30));
    assert!(slow.abs_diff(8 * 320) <= 2000, "{slow}");
}
