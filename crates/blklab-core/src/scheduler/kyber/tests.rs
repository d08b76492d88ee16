//! Kyber's handling of requests; the tests of latencies are in `latency.rs`.

use super::super::AnyScheduler;
use super::super::journal::Decision;
use super::super::testing::{Rig, Submitted, bio, limits};
use super::super::{Merge, QueueLimits};
use crate::kernel::Kernel;
use crate::request::Op::{self, Discard, Read, Write};
use crate::request::{Bio, ProcessId};
use crate::units::Nanos;

fn on_cpu(cpu: u16, op: Op, sector: u64) -> Bio {
    Bio { cpu, hw_queue: cpu / 2, ..bio(op, sector) }
}

fn depth(rig: &Rig, op: Op) -> u32 {
    let AnyScheduler::Kyber(kyber) = &rig.scheduler else { panic!("not kyber") };
    kyber.tokens(op).0
}

fn fill(rig: &mut Rig, op: Op, count: u64) {
    for place in 0..count {
        rig.submit(bio(op, place * 100));
    }
}

/// `count` requests one after the other, each completed `in_disk` after its dispatch.
fn serve_slowly(rig: &mut Rig, op: Op, count: u64, in_disk: Nanos) {
    for place in 0..count {
        rig.submit(bio(op, place * 100));
        rig.dispatch(0).expect("nothing else is under way");
        rig.advance(in_disk);
        rig.complete(0);
    }
}

#[test]
fn domains_take_turns_in_batches_of_16_reads_8_writes_and_1_discard() {
    let mut rig = Rig::new("kyber", &[]);
    for op in [Read, Write, Discard] {
        fill(&mut rig, op, 40);
    }
    let ops: Vec<_> = (0..50)
        .map(|_| {
            let id = rig.dispatch(0).expect("tokens are left");
            rig.requests[id].op
        })
        .collect();
    let round = [vec![Read; 16], vec![Write; 8], vec![Discard; 1]].concat();
    assert_eq!(ops, [round.clone(), round].concat());
}

#[test]
fn a_domain_out_of_tokens_does_not_hold_up_the_others_and_is_woken_after_eight_came_back() {
    let mut rig = Rig::new("kyber", &[]);
    fill(&mut rig, Write, 130);
    assert_eq!(rig.dispatch_all().len(), 128);
    rig.submit(bio(Read, 77));
    assert_eq!(rig.dispatch_all(), [77]);
    rig.complete(128);
    (0..7).for_each(|_| drop(rig.complete(0)));
    assert!(rig.woken.is_empty());
    rig.complete(0);
    assert_eq!(rig.woken, [0]);
    assert_eq!(rig.dispatch_all().len(), 2);
}

#[test]
fn tokens_are_the_disks_and_a_queue_may_wake_for_another_queues_completion() {
    let mut rig = Rig::new("kyber", &[]);
    fill(&mut rig, Discard, 64);
    assert_eq!(rig.dispatch_all().len(), 64);
    rig.submit(on_cpu(2, Discard, 999_999));
    assert_eq!(rig.dispatch(1), None);
    (0..8).for_each(|_| drop(rig.complete(0)));
    assert_eq!(rig.woken, [1]);
    assert!(rig.dispatch(1).is_some());
}

#[test]
fn without_a_token_requests_stay_where_they_can_be_merged() {
    let merges = |in_disk: u64| {
        let mut rig = Rig::new("kyber", &[]);
        fill(&mut rig, Write, in_disk);
        rig.dispatch_all();
        rig.submit(bio(Write, 500_000));
        rig.submit(bio(Write, 600_000));
        rig.dispatch(0);
        matches!(rig.submit(bio(Write, 600_008)), Submitted::Merged(Merge::Back(_)))
    };
    assert!(merges(128));
    // With a token left, the first request is dispatched and moves the second to the hardware
    // queue, where no merges happen.
    assert!(!merges(127));
}

#[test]
fn cpus_are_emptied_one_after_the_other_and_merge_only_their_own() {
    let mut rig = Rig::new("kyber", &[]);
    for (cpu, sector) in [(1, 300), (0, 100), (1, 400), (0, 200)] {
        rig.submit(on_cpu(cpu, Read, sector));
    }
    assert!(matches!(rig.submit(on_cpu(0, Read, 308)), Submitted::Waits(_)));
    assert_eq!(rig.dispatch_all(), [100, 200, 308, 300, 400]);
}

#[test]
fn hosts_with_more_than_64_cpus_lose_none() {
    let mut rig = Rig::with_limits("kyber", &[], QueueLimits { cpus: 200, hw_queues: 1, ..limits() });
    for cpu in [199, 64, 63, 0] {
        rig.submit(Bio { cpu, ..bio(Read, u64::from(cpu) * 100) });
    }
    assert_eq!(rig.dispatch_all(), [0, 6_300, 6_400, 19_900]);
}

#[test]
fn read_lat_nsec_decides_whether_slow_reads_throttle_writes() {
    let write_depth = |read_lat_nsec| {
        let mut rig = Rig::new("kyber", &[("read_lat_nsec", read_lat_nsec)]);
        serve_slowly(&mut rig, Write, 500, Nanos::from_micros(100));
        serve_slowly(&mut rig, Read, 500, Nanos::from_millis(5));
        rig.advance(Nanos::from_millis(200));
        depth(&rig, Write)
    };
    assert!(write_depth(2_000_000) < 128);
    assert_eq!(write_depth(10_000_000), 128);
}

#[test]
fn write_lat_nsec_decides_whether_slow_writes_throttle_reads() {
    let read_depth = |write_lat_nsec| {
        let mut rig = Rig::new("kyber", &[("write_lat_nsec", write_lat_nsec)]);
        serve_slowly(&mut rig, Read, 500, Nanos::from_micros(100));
        serve_slowly(&mut rig, Write, 500, Nanos::from_millis(20));
        rig.advance(Nanos::from_millis(200));
        depth(&rig, Read)
    };
    assert!(read_depth(10_000_000) < 256);
    assert_eq!(read_depth(40_000_000), 256);
}

#[test]
fn a_throttled_domain_gets_its_depth_back_when_its_requests_wait_too_long() {
    let mut rig = Rig::new("kyber", &[]);
    // Fast writes and slow reads: writes are throttled.
    serve_slowly(&mut rig, Write, 500, Nanos::from_micros(100));
    serve_slowly(&mut rig, Read, 500, Nanos::from_millis(5));
    rig.advance(Nanos::from_millis(200));
    let throttled = depth(&rig, Write);
    assert!(throttled <= 32, "{throttled}");
    // Without reads, writes wait 30 ms for a token and are then served quickly.
    for _ in 0..40 {
        fill(&mut rig, Write, 40);
        rig.advance(Nanos::from_millis(30));
        while !rig.waiting.is_empty() {
            rig.dispatch_all();
            rig.complete_all();
        }
    }
    rig.advance(Nanos::from_millis(200));
    assert!(depth(&rig, Write) > throttled, "{}", depth(&rig, Write));
}

#[test]
fn no_domain_loses_its_last_token_or_gets_more_than_it_began_with() {
    let mut rig = Rig::new("kyber", &[]);
    for _ in 0..6 {
        serve_slowly(&mut rig, Write, 500, Nanos::from_micros(100));
        serve_slowly(&mut rig, Read, 500, Nanos::from_millis(5));
    }
    assert_eq!((depth(&rig, Write), depth(&rig, Read)), (1, 256));
}

#[test]
fn the_timer_says_so_when_a_pool_that_is_waited_for_has_grown() {
    let mut rig = Rig::new("kyber", &[]);
    for _ in 0..6 {
        serve_slowly(&mut rig, Write, 500, Nanos::from_micros(100));
        serve_slowly(&mut rig, Read, 500, Nanos::from_millis(5));
    }
    let mut depths = vec![depth(&rig, Write)];
    fill(&mut rig, Write, 2000);
    rig.dispatch_all();
    // One request at a time: the total latency is checked after 500 of them.
    for _ in 0..600 {
        let more = rig.advance(Nanos::from_millis(50));
        depths.push(depth(&rig, Write));
        assert_eq!(more, !depths.is_sorted_by(|before, after| before == after), "{depths:?}");
        depths.remove(0);
        rig.complete_all();
        rig.dispatch_all();
    }
    assert!(depths[0] > 1);
}

#[test]
fn all_but_synchronous_reads_may_use_three_quarters() {
    let rig = Rig::with_limits("kyber", &[], QueueLimits { nr_requests: 64, ..limits() });
    assert_eq!(rig.depth_limit(ProcessId(0), Write, false), 48);
    assert_eq!(rig.depth_limit(ProcessId(0), Read, false), 48);
    assert_eq!(rig.depth_limit(ProcessId(0), Write, true), 48);
    assert_eq!(rig.depth_limit(ProcessId(0), Read, true), u32::MAX);
    assert_eq!(rig.scheduler.least_depth(), 48);
}

#[test]
fn the_timer_runs_100_ms_after_a_completion_and_not_before_the_next() {
    let mut rig = Rig::new("kyber", &[]);
    assert_eq!(rig.scheduler.next_timer(), Nanos::NEVER);
    serve_slowly(&mut rig, Read, 1, Nanos::from_millis(1));
    // The kernel's timers of 63 ticks and more fire at multiples of 8.
    assert_eq!(rig.scheduler.next_timer(), Nanos::from_millis(104));
    serve_slowly(&mut rig, Read, 1, Nanos::from_millis(50));
    assert_eq!(rig.scheduler.next_timer(), Nanos::from_millis(104));
    rig.advance(Nanos::from_millis(60));
    assert_eq!(rig.scheduler.next_timer(), Nanos::NEVER);
}

#[test]
fn holds_releases_and_depth_changes_are_recorded() {
    let mut rig = Rig::new("kyber", &[]);
    rig.keep_journal();
    let decided = |rig: &mut Rig| rig.decisions().into_iter().map(|(_, what)| what).collect::<Vec<_>>();
    fill(&mut rig, Write, 130);
    rig.dispatch_all();
    rig.dispatch_all();
    assert_eq!(decided(&mut rig), [Decision::HeldBack { op: Write, depth: 128 }]);
    (0..8).for_each(|_| drop(rig.complete(0)));
    rig.dispatch_all();
    assert_eq!(decided(&mut rig), [Decision::LetGo { op: Write }]);
    rig.complete_all();
    serve_slowly(&mut rig, Write, 500, Nanos::from_micros(100));
    serve_slowly(&mut rig, Read, 500, Nanos::from_millis(5));
    rig.advance(Nanos::from_millis(200));
    let last = decided(&mut rig).pop();
    assert_eq!(last, Some(Decision::DepthChanged { op: Write, depth: depth(&rig, Write) }));
    assert!(depth(&rig, Write) < 128);
}

#[test]
fn a_bio_that_flushes_counts_as_a_write_that_was_very_long_in_the_disk() {
    let read_depth = |flushes: u64| {
        let mut rig = Rig::new("kyber", &[]);
        serve_slowly(&mut rig, Read, 500, Nanos::from_micros(100));
        serve_slowly(&mut rig, Write, 500, Nanos::from_micros(100));
        (0..flushes).for_each(|_| rig.end_flush(rig.now));
        rig.advance(Nanos::from_millis(200));
        depth(&rig, Read)
    };
    assert_eq!(read_depth(0), 256);
    assert!(read_depth(100) < 256, "a tenth of the writes is slow, and reads are fast");
}

#[test]
fn before_linux_7_only_asynchronous_requests_are_limited() {
    let limits_of = |number| {
        let limits = QueueLimits { kernel: Kernel::of(number), ..limits() };
        let rig = Rig::with_limits("kyber", &[], limits);
        [(Op::Read, true), (Op::Write, true), (Op::Read, false), (Op::Write, false)]
            .map(|(op, sync)| rig.depth_limit(ProcessId(0), op, sync))
    };
    let all = u32::MAX;
    assert_eq!(limits_of(6012), [all, all, 48, 48]);
    assert_eq!(limits_of(7003), [all, 48, 48, 48]);
}
