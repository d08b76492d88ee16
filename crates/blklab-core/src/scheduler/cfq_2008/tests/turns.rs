//! Turns: which queue is next, what ends a turn, when the disk idles. Each test names the function of
//! `cfq-iosched.c` of Linux 2.6.28, or the documentation of that version, that it shows.

use super::*;
use crate::request::PrioClass::{BestEffort, Idle, RealTime};
use crate::scheduler::testing::world::{Reader, World};

/// The time that the disk idles for a process with requests `apart` sectors apart; `None` if it does not idle.
fn idles_for(rig: &mut Rig, apart: u64) -> Option<Nanos> {
    for place in 0..60 {
        rig.submit(of(0, bio(Read, place * apart)));
        serve(rig, 1, Nanos(1000));
    }
    let until = rig.scheduler.next_timer();
    (until != Nanos::NEVER).then(|| until.saturating_sub(rig.now))
}

/// So many requests of other processes wait, and each completion is a sample: the disk is found to take one
/// command at a time.
fn disk_without_queue(rig: &mut Rig) {
    for process in 10..17 {
        for place in 0..20 {
            rig.submit(of(process, bio(Read, u64::from(process) * 10_000_000 + place * 100)));
        }
    }
    while !rig.waiting.is_empty() {
        if serve(rig, 1, Nanos(1000)).is_empty() {
            rig.advance(ms(8));
        }
    }
    rig.advance(ms(300));
}

/// `cfq_arm_slice_timer`, `CFQ_MIN_TT`
#[test]
fn the_disk_idles_for_a_process_that_seeks_too_but_for_2_ms_at_most() {
    let mut near = rig(&[]);
    disk_without_queue(&mut near);
    // The last request completes within a tick.
    assert!(idles_for(&mut near, 16).is_some_and(|span| span > ms(7)));
    let mut far = rig(&[]);
    disk_without_queue(&mut far);
    assert!(idles_for(&mut far, 1_000_000).is_some_and(|span| span > ms(1) && span <= ms(2)));
}

/// `cfq_update_idle_window`
#[test]
fn on_a_disk_that_may_queue_commands_the_disk_does_not_idle_for_a_process_that_seeks() {
    assert_eq!(idles_for(&mut rig(&[]), 1_000_000), None);
    assert!(idles_for(&mut rig(&[]), 16).is_some());
}

/// `cfq_arm_slice_timer`
#[test]
fn on_flash_that_may_queue_commands_the_disk_idles_for_no_process() {
    let mut flash = Rig::new(NAME, &[]);
    assert_eq!(idles_for(&mut flash, 16), None);
    let mut simple = Rig::new(NAME, &[]);
    disk_without_queue(&mut simple);
    assert!(idles_for(&mut simple, 16).is_some());
}

/// `cfq_update_io_seektime` begins with `last_request_pos` at 0.
#[test]
fn a_process_far_inside_the_disk_counts_as_seeky_for_its_first_requests() {
    let waits_after = |start: u64, count: u64| {
        let mut rig = rig(&[]);
        reads_on(&mut rig, 0, start, count);
        rig.scheduler.next_timer() != Nanos::NEVER
    };
    assert!(waits_after(0, 3) && !waits_after(100_000_000, 3));
    assert!(waits_after(100_000_000, 60));
}

#[test]
fn random_readers_have_slices_of_their_own() {
    let reader =
        Reader { task: level(BestEffort, 4), sectors: 8, random: true, think: Nanos::ZERO, count: u32::MAX };
    let mut world = World::new(NAME, &[], &[reader; 10]);
    // First it is found out that the disk takes one command at a time.
    while world.step(Nanos::from_secs(4)).is_some() {}
    world.notes.clear();
    while world.step(Nanos::from_secs(12)).is_some() {}
    for process in 0..10 {
        let ends = ends(&world.notes, process);
        assert!(ends.len() >= 4 && ends.iter().all(|&end| end == EndReason::TimeOut), "{ends:?}");
    }
}

/// `Documentation/block/ioprio.txt`: processes of the idle class get time when no other needs the disk,
/// those of real time before all others.
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

/// `cfq_should_preempt` does not look at real time.
#[test]
fn real_time_does_not_preempt_but_goes_next() {
    let tasks = [level(BestEffort, 4), level(BestEffort, 4), level(RealTime, 0)];
    let mut rig = with_prios(&[("quantum", 1)], &tasks);
    for place in 0..30 {
        rig.submit(of(0, bio(Read, place * 100)));
        rig.submit(of(1, bio(Read, 50_000 + place * 100)));
    }
    serve(&mut rig, 1, ms(10));
    rig.submit(of(2, bio(Read, 20_000)));
    // The rest of the slice of 100 ms.
    let order = serve(&mut rig, 12, ms(10));
    assert_eq!(order.iter().position(|&sector| sector == 20_000), Some(10), "{order:?}");
}

/// `cfq_dispatch_requests`, `__cfq_dispatch_requests`
#[test]
fn the_idle_class_has_one_request_a_turn_and_takes_turns_among_itself() {
    let mut rig = with_prios(&[], &[level(Idle, 0), level(Idle, 7)]);
    for place in 0..4 {
        rig.submit(of(0, bio(Read, place * 100)));
        rig.submit(of(1, bio(Read, 1_000_000 + place * 100)));
    }
    let order = serve(&mut rig, 8, Nanos(1000));
    // One of each is dispatched together, sorted by sector.
    for pair in order.chunks(2) {
        assert_ne!(pair[0] / 1_000_000, pair[1] / 1_000_000, "{order:?}");
    }
}

/// `cfq_should_preempt`
#[test]
fn a_synchronous_request_preempts_asynchronous_ones_and_an_idle_class_one() {
    let mut async_first = rig(&[("quantum", 1)]);
    (0..40).for_each(|place| {
        async_first.submit(asynchronous(0, place * 100));
    });
    serve(&mut async_first, 1, Nanos(1000));
    async_first.submit(of(1, bio(Read, 1_000_000)));
    // Four requests of one process went to the dispatch list together.
    assert_eq!(serve(&mut async_first, 4, Nanos(1000)), [100, 200, 300, 1_000_000]);
    let mut idle_first = with_prios(&[], &[level(Idle, 0), level(BestEffort, 7)]);
    (0..8).for_each(|place| {
        idle_first.submit(of(0, bio(Read, place * 100)));
    });
    // Alone, it may have four requests at the disk, and its turn goes on.
    assert_eq!(idle_first.dispatch_all(), [0, 100, 200, 300]);
    idle_first.submit(of(1, bio(Read, 1_000_000)));
    let preempts = |note: &Note| matches!(note.decision, Decision::Preempts { process: ProcessId(0) });
    assert!(notes(&mut idle_first).iter().any(preempts));
}

/// `cfq_rq_close`
#[test]
fn a_request_near_the_head_preempts_while_the_disk_idles_for_another_process() {
    let taken = |sector: u64| {
        let mut rig = rig(&[]);
        let end = reads_on(&mut rig, 0, 0, 60);
        assert!(rig.scheduler.next_timer() != Nanos::NEVER, "the disk idles");
        rig.submit(of(1, bio(Read, end + sector)));
        rig.dispatch(0).is_some()
    };
    assert!(taken(0) && !taken(100_000));
    // Not while the active queue has requests.
    let mut rig = rig(&[("quantum", 1)]);
    let end = reads_on(&mut rig, 0, 0, 60);
    rig.submit(of(0, bio(Read, 5_000_000)));
    rig.dispatch(0);
    rig.submit(of(1, bio(Read, end)));
    assert!(!notes(&mut rig).iter().any(|note| matches!(note.decision, Decision::Preempts { .. })));
}

/// `cfq_dispatch_requests`
#[test]
fn asynchronous_requests_wait_for_the_synchronous_ones_that_are_out_and_no_longer() {
    let mut rig = rig(&[("slice_idle", 0)]);
    rig.submit(of(0, bio(Read, 0)));
    rig.submit(asynchronous(1, 1_000_000));
    assert_eq!(rig.dispatch_all(), [0]);
    rig.complete_all();
    assert_eq!(rig.dispatch_all(), [1_000_000]);
}

/// `cfq_service_tree_add` adds `slice_resid`.
#[test]
fn a_preempted_queue_is_due_later_by_the_rest_of_its_slice() {
    // Both are of the same level, and the other becomes busy a while after the preempted one.
    let next = |busy_after: u64| {
        let mut rig = rig(&[]);
        reads_on(&mut rig, 0, 0, 60);
        let now = rig.now;
        let left = now + ms(100);
        // A near request preempts; its turn ends when it stays away.
        rig.submit(of(1, bio(Read, 480)));
        rig.dispatch(0);
        rig.submit(of(0, bio(Read, 1_000_000)));
        rig.advance(ms(busy_after));
        rig.submit(of(2, bio(Read, 2_000_000)));
        rig.complete(0);
        rig.advance(ms(20));
        assert!(left > rig.now, "the slice would not be over");
        notes(&mut rig);
        rig.dispatch(0);
        let begins = |note: &&Note| matches!(note.decision, Decision::SliceStart { .. });
        notes(&mut rig).iter().find(begins).map(|note| note.process.0)
    };
    // 100 ms of the slice were left; a process of its level beside one other is due after 80 ms.
    assert_eq!((next(10), next(30)), (Some(2), Some(0)));
}

/// `cfq_slice_offset`
#[test]
fn low_levels_are_due_later_and_get_fewer_turns() {
    let reader = |at: u8| Reader {
        task: level(BestEffort, at),
        sectors: 64,
        random: false,
        think: Nanos::ZERO,
        count: u32::MAX,
    };
    let mut world = World::new(NAME, &[], &[reader(0), reader(7), reader(7), reader(7)]);
    // First those far inside the disk count as seeky.
    while world.step(Nanos::from_secs(30)).is_some() {}
    world.notes.clear();
    while world.step(Nanos::from_secs(60)).is_some() {}
    let turns = |process| slices(&world.notes, process).len();
    assert!(turns(0) * 2 > turns(1) * 3, "{} and {} turns", turns(0), turns(1));
    assert!(turns(1) > 5 && turns(1).abs_diff(turns(3)) <= 2);
}

/// `cfq_update_io_thinktime`, `cfq_update_idle_window`
#[test]
fn the_disk_does_not_idle_for_think_times_beyond_slice_idle() {
    let mut rig = rig(&[]);
    for turn in 0..4 {
        rig.submit(of(0, bio(Read, turn * 8)));
        rig.submit(of(1, bio(Read, 1000 + turn * 8)));
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

/// `cfq_idle_slice_timer`
#[test]
fn idling_in_vain_ends_the_turn_only_if_another_queue_is_busy() {
    let mut rig = rig(&[]);
    rig.submit(of(0, bio(Read, 0)));
    serve(&mut rig, 1, ms(1));
    assert!(!rig.advance(ms(20)), "nothing to dispatch");
    assert!(ends(&notes(&mut rig), 0).is_empty());
    rig.submit(of(0, bio(Read, 8)));
    serve(&mut rig, 1, ms(1));
    rig.submit(of(1, bio(Read, 1_000_000)));
    assert!(rig.advance(ms(8)));
    assert_eq!(ends(&notes(&mut rig), 0), [EndReason::NoMoreRequests]);
}

/// `cfq_exit_cfqq`
#[test]
fn a_process_that_ends_gives_the_disk_back_at_once() {
    let mut rig = rig(&[]);
    rig.submit(of(0, bio(Read, 0)));
    rig.submit(of(1, bio(Read, 1_000_000)));
    serve(&mut rig, 1, ms(1));
    assert_eq!(rig.dispatch(0), None);
    rig.exit(ProcessId(0));
    assert!(rig.advance(Nanos::ZERO), "the timer says so");
    assert_eq!(serve(&mut rig, 1, ms(1)), [1_000_000]);
}

/// `cfq_arm_slice_timer`
#[test]
fn the_disk_does_not_idle_for_a_process_that_ended_before_its_last_request_was_served() {
    let mut rig = rig(&[]);
    rig.submit(of(0, bio(Read, 0)));
    rig.exit(ProcessId(0));
    rig.submit(of(1, bio(Read, 1_000_000)));
    assert_eq!(serve(&mut rig, 2, ms(1)), [0, 1_000_000]);
}

/// `elv_dispatch_sort`
#[test]
fn requests_dispatched_together_ascend_from_the_head() {
    let mut rig = rig(&[("quantum", 8)]);
    rig.submit(of(1, bio(Read, 100_000 - 8)));
    serve(&mut rig, 1, Nanos(1000));
    rig.advance(ms(100));
    // The oldest has expired and is chosen first; the dispatch list sorts it by sector.
    rig.submit(of(0, bio(Read, 130_000)));
    rig.advance(ms(200));
    for sector in [120_000, 50_000, 110_000, 40_000, 140_000] {
        rig.submit(of(0, bio(Read, sector)));
    }
    assert_eq!(rig.dispatch_all(), [110_000, 120_000, 130_000, 140_000, 40_000, 50_000]);
}

/// `cfq_add_rq_rb`
#[test]
fn a_second_request_at_one_sector_sends_the_first_one_on() {
    let mut rig = rig(&[]);
    rig.submit(of(0, bio(Read, 0)));
    rig.submit(of(1, bio(Read, 1_000_000)));
    serve(&mut rig, 1, ms(1));
    assert_eq!(rig.dispatch(0), None, "the disk idles for process 0");
    rig.submit(of(1, bio(Read, 1_000_000)));
    assert_eq!(rig.dispatch_all(), [1_000_000], "before its turn");
}
