//! Idling.

use super::drive::{Drive, Process, limits};
use crate::request::Op::{Read, Write};
use crate::request::{Bio, ProcessId};
use crate::scheduler::journal::{Decision, IdleEnd};
use crate::scheduler::testing::{Rig, bio};
use crate::units::Nanos;

fn ms(span: u64) -> Nanos {
    Nanos::from_millis(span)
}

fn idled(decision: &Decision) -> bool {
    matches!(decision, Decision::IdleStart { .. })
}

fn in_vain(decision: &Decision) -> bool {
    matches!(decision, Decision::IdleEnd { why: IdleEnd::TimeOut | IdleEnd::GivenUp })
}

#[test]
fn the_disk_soon_stops_idling_for_think_times_beyond_slice_idle() {
    let thinks = |think| {
        let slow = Process { think, ..Process::reader(1) };
        let mut drive = Drive::new(&[], vec![slow, Process::reader(2), Process::reader(3)]);
        drive.run(ms(2000));
        drive.notes();
        drive.run(ms(10_000));
        drive.noted(in_vain)
    };
    // A hundred turns and more in that time.
    assert!(thinks(ms(2)) < 5, "{} times in vain", thinks(ms(2)));
    assert!(thinks(ms(30)) < 5, "{} times in vain", thinks(ms(30)));
}

#[test]
fn random_readers_are_served_one_after_the_other_with_one_wait_for_all() {
    let run = |process: fn(u64) -> Process| {
        let mut drive = Drive::new(&[], (1..9).map(process).collect());
        drive.run(ms(10_000));
        (drive.turns().len(), drive.served.len())
    };
    let (turns, requests) = run(Process::random_reader);
    assert!(turns * 10 > requests * 9, "{turns} turns of {requests} requests");
    let (turns, requests) = run(Process::reader);
    assert!(turns * 10 < requests, "{turns} turns of {requests} requests");
}

#[test]
fn the_last_of_the_random_readers_is_idled_for() {
    // One sequential, one random reader: the random one is alone in its tree.
    let mut drive = Drive::new(&[], vec![Process::reader(1), Process::random_reader(2)]);
    drive.run(ms(10_000));
    let turns = drive.whole_turns(1);
    let longest = turns.iter().map(|turn| turn.requests).max().expect("it had turns");
    assert!(longest > 5, "a turn of {longest} requests at most");
}

#[test]
fn flash_with_a_command_queue_is_never_idled() {
    for (rotational, tunables) in [(false, &[][..]), (false, &[("slice_idle", 8)]), (true, &[])] {
        let processes = vec![Process::reader(1), Process::reader(2)];
        let mut drive = Drive::with(tunables, processes, &[], limits(rotational));
        drive.run(ms(3000));
        let times = drive.noted(idled);
        assert_eq!(times > 0, rotational, "{tunables:?}: {times} times");
    }
}

#[test]
fn a_disk_that_never_has_five_requests_at_once_takes_none_in_a_queue() {
    let queues_commands = |depth| {
        let readers = (1..4).map(|place| Process { depth: 16, ..Process::random_reader(place) });
        let mut drive = Drive::with(&[], readers.collect(), &[], limits(false));
        drive.depth = depth;
        drive.run(ms(3000));
        drive.hw_tag()
    };
    assert_eq!(queues_commands(1), Some(false));
    // The driver holds one more.
    assert_eq!(queues_commands(3), Some(false));
    assert_eq!(queues_commands(4), Some(true));
    assert_eq!(queues_commands(32), Some(true));
}

#[test]
fn writes_of_fsync_are_not_idled_for_one_by_one_and_direct_ones_are() {
    for idle in [false, true] {
        let mut rig = Rig::with_limits("cfq", &[], limits(true));
        for process in 0..2 {
            let place = 1000 + 50_000_000 * u64::from(process);
            rig.submit(Bio { process: ProcessId(process), idle, ..bio(Write, place) });
        }
        rig.dispatch(0).expect("two wait");
        rig.complete(0);
        assert_eq!(rig.dispatch(0).is_none(), idle);
        // After the last of them the disk idles for all together.
        rig.complete_all();
        assert_eq!(rig.scheduler.next_timer(), ms(8));
    }
}

/// A reader that has the disk alone and whose request has completed, with or without a waiting
/// request of another process. Returns how its next request, of that size, is served.
fn comes_back(others: bool, sectors: u32) -> (usize, bool) {
    let mut rig = Rig::with_limits("cfq", &[], limits(true));
    rig.submit(bio(Read, 1000));
    rig.dispatch(0).expect("it is alone");
    rig.complete(0);
    if others {
        rig.submit(Bio { process: ProcessId(1), ..bio(Read, 50_000_000) });
        assert_eq!(rig.dispatch(0), None, "the disk idles");
    }
    let idles_until = rig.scheduler.next_timer();
    assert_eq!(idles_until, ms(8));
    rig.advance(ms(1));
    rig.submit(Bio { sectors, ..bio(Read, 1008) });
    (rig.dispatch_all().len(), rig.scheduler.next_timer() == idles_until)
}

#[test]
fn the_wait_ends_with_the_request_that_was_waited_for() {
    // The page-sized request of the only process may still grow by merges: the timer runs on.
    assert_eq!(comes_back(false, 8), (1, true));
    assert_eq!(comes_back(false, 16), (1, false));
    assert_eq!(comes_back(true, 8), (1, false));
}

#[test]
fn another_process_that_continues_at_the_head_does_not_wait_for_the_timer() {
    for (distance, preempts) in [(8 * 1024, true), (8 * 1024 + 1, false)] {
        let mut rig = Rig::with_limits("cfq", &[], limits(true));
        rig.submit(bio(Read, 1_000_000));
        rig.dispatch(0).expect("it is alone");
        rig.complete(0);
        let mut other = bio(Read, 1_000_008 + distance);
        other.process = ProcessId(1);
        rig.submit(other);
        assert_eq!(rig.dispatch(0).is_some(), preempts, "{distance} sectors on");
    }
}
