//! Requests that the driver has refused.

use super::*;

#[test]
fn without_a_scheduler_a_refused_request_of_a_plug_takes_no_merges_and_the_rest_of_the_plug_does() {
    let mut rig = Rig::new("none");
    rig.plug([9000]);
    rig.plug([100]);
    rig.plug([108]);
    rig.plug([2000, 3000]);
    rig.plug([2008, 3008]);
    let expected = [vec![9000], vec![100], vec![108], vec![2000], vec![2008], vec![3000, 3008]];
    assert_eq!(rig.end_all(), expected, "the refused ones in order, then the others");
}

#[test]
fn requests_without_a_plug_are_refused_together_and_later_ones_merge_while_the_queue_is_busy() {
    let mut rig = Rig::new("none");
    for sector in [9000, 100, 108, 116] {
        rig.submit_as(sector, WITHOUT_PLUG);
    }
    assert_eq!(rig.end_one(), [9000]);
    assert_eq!(rig.end_one(), [100], "refused: the others did not merge with it");
    assert_eq!(rig.end_all(), [vec![108, 116]]);
    // A refusal, and the worker's second try, which the submitter's sleep would have begun earlier.
    for sector in [9000, 100] {
        rig.submit_as(sector, WITHOUT_PLUG);
    }
    assert!(rig.block.hw_queues[0].refused.is_busy());
    for _ in 0..4 {
        rig.end_all();
        rig.submit_as(9000, WITHOUT_PLUG);
        rig.block.run_worker(rig.now, ProcessId(0), &mut rig.disk);
    }
    assert!(!rig.block.hw_queues[0].refused.is_busy(), "nothing was refused for some time");
}

#[test]
fn a_plug_that_is_flushed_because_its_owner_sleeps_is_not_refused() {
    let mut rig = Rig::new("none");
    rig.plug([9000]);
    for sector in [100, 200] {
        rig.submit_as(sector, Manner::PLUGGED);
    }
    // Busy, so that the run leaves the requests in the software queue.
    rig.plug([5000]);
    rig.submit_as(300, Manner::PLUGGED);
    rig.block.unplug_asleep(rig.now, &mut rig.disk);
    rig.submit_as(308, WITHOUT_PLUG);
    let expected = [vec![9000], vec![100], vec![200], vec![5000], vec![300, 308]];
    assert_eq!(rig.end_all(), expected);
}

#[test]
fn a_refused_request_is_tried_again_after_three_milliseconds() {
    let mut rig = Rig::new("none");
    rig.plug([9000]);
    assert_eq!(rig.block.next_timer(), Nanos::NEVER);
    rig.plug([100]);
    // A tick is a millisecond, and timers are never early.
    assert_eq!(rig.block.next_timer(), Nanos::from_millis(4));
    rig.block.timer(Nanos::from_millis(4));
    rig.block.run(Nanos::from_millis(4), &mut rig.disk);
    assert_eq!(rig.block.next_timer(), Nanos::from_millis(8), "the disk is still full");
    assert_eq!(rig.end_all(), [[9000], [100]]);
}

#[test]
fn a_driver_that_refuses_nothing_leaves_no_request_in_its_list() {
    for scheduler in ["mq-deadline", "kyber", "bfq"] {
        let mut rig = Rig::new(scheduler);
        rig.plug([9000]);
        rig.plug([100, 300]);
        rig.plug([108]);
        assert!(rig.block.hw_queues[0].refused.is_empty(), "{scheduler}");
        assert!(rig.end_all().contains(&vec![100, 108]), "{scheduler}");
    }
}

#[test]
fn a_queue_that_refuses_nothing_any_more_is_not_busy_for_long_under_a_scheduler_either() {
    let mut rig = Rig::with_depth("mq-deadline", true, 8);
    rig.flush();
    rig.plug([100]);
    rig.block.run_worker(rig.now, ProcessId(0), &mut rig.disk);
    assert!(rig.block.hw_queues[0].refused.is_busy());
    assert_eq!(rig.end_one(), [FLUSHED]);
    for sector in 1..10 {
        rig.plug([sector * 1_000]);
    }
    assert!(!rig.block.hw_queues[0].refused.is_busy());
}

/// Half full, and busy: of a disk that takes two commands.
fn busy() -> Rig {
    let mut rig = Rig::with_depth("none", true, 2);
    rig.plug([9_000]);
    rig.plug([50_000]);
    rig.plug([100]);
    rig.end_one();
    rig.end_one();
    assert!(rig.block.hw_queues[0].refused.is_busy());
    rig
}

#[test]
fn a_plug_goes_to_the_driver_before_what_a_busy_queue_has_left_to_the_worker() {
    let mut rig = busy();
    rig.submit_as(300, WITHOUT_PLUG);
    rig.plug([70_000]);
    assert_eq!((rig.block.in_flight, rig.block.scheduler.waiting()), (2, 1));
    rig.submit_as(308, WITHOUT_PLUG);
    assert_eq!(rig.block.counters.read_merges, 1, "300 is the one that waits");
    rig.block.run_worker(rig.now, ProcessId(0), &mut rig.disk);
    assert!(rig.end_all().concat().contains(&300));
}

#[test]
fn a_refusal_puts_off_what_the_worker_was_asked_for() {
    let mut rig = busy();
    rig.plug([70_000]);
    rig.submit_as(300, WITHOUT_PLUG);
    rig.plug([80_000]);
    let busy = rig.block.hw_queues[0].refused.busy();
    let later = rig.block.next_timer();
    assert!(later > rig.now && later != Nanos::NEVER);
    rig.block.run_worker(rig.now, ProcessId(0), &mut rig.disk);
    assert_eq!(rig.block.hw_queues[0].refused.busy(), busy, "it did not run");
    assert_eq!(rig.end_all().concat().len(), 4);
}

#[test]
fn two_requests_that_become_one_run_the_queue_if_a_request_was_refused() {
    for (refused, worker) in [(false, Worker::Asleep), (true, Worker::After(ProcessId(0)))] {
        let mut rig = Rig::new("mq-deadline");
        if refused {
            rig.flush();
        }
        for sector in [9_000, 100, 116] {
            rig.plug([sector]);
        }
        rig.block.hw_queues[0].worker = Worker::Asleep;
        rig.plug([108]);
        assert_eq!(rig.block.counters.read_merges, 2);
        assert_eq!(rig.block.hw_queues[0].worker, worker, "refused: {refused}");
    }
}
