//! The multi-queue layer of Linux 4.12, which takes requests out of the scheduler while the disk is full.

use super::*;

/// On a disk that takes one command at a time.
fn of_2017(scheduler: &str) -> Rig {
    Rig::on(linux(4_012), scheduler, 1)
}

/// Each I/O with a plug of its own, as asynchronous ones have.
fn submit_each(rig: &mut Rig, sectors: impl IntoIterator<Item = u64>) {
    sectors.into_iter().for_each(|sector| rig.plug([sector]));
}

#[test]
fn on_a_full_disk_the_latest_request_goes_first_whatever_the_scheduler_would_choose() {
    for scheduler in ["mq-deadline", "kyber"] {
        let mut rig = of_2017(scheduler);
        submit_each(&mut rig, [900, 500, 100, 300]);
        assert_eq!(rig.block.scheduler.waiting(), 0, "{scheduler}");
        assert_eq!(rig.end_all(), [[900], [300], [100], [500]], "{scheduler}");
    }
}

#[test]
fn a_scheduler_sorts_what_comes_under_one_plug_before_the_disk_is_full() {
    let mut rig = of_2017("mq-deadline");
    rig.plug([900, 500, 100, 300]);
    // The plug is sorted; one is at the disk, one was refused, and one more left the scheduler in the run of
    // the worker.
    assert_eq!(rig.end_one(), [100]);
    assert_eq!(rig.end_all().concat().len(), 3);
}

#[test]
fn without_a_scheduler_requests_go_in_order_of_arrival() {
    let mut rig = of_2017("none");
    submit_each(&mut rig, [900, 500, 100, 300]);
    assert_eq!(rig.end_all(), [[900], [500], [100], [300]]);
}

#[test]
fn neighbours_on_a_full_disk_are_not_merged_as_they_are_today() {
    for scheduler in ["none", "mq-deadline", "kyber"] {
        let requests = |number| {
            let mut rig = Rig::on(linux(number), scheduler, 1);
            submit_each(&mut rig, [900, 100, 108, 116]);
            rig.end_all().len()
        };
        assert_eq!(requests(4_012), 4, "{scheduler}");
        assert!(scheduler == "none" || requests(7_003) < 4, "{scheduler}");
    }
}

#[test]
fn a_flush_goes_before_all_that_was_refused() {
    let mut rig = of_2017("mq-deadline");
    submit_each(&mut rig, [900, 500, 100]);
    rig.block.submit(rig.now, &Bio { op: Op::Write, ..read(300, 300) }, Manner::PLUGGED, &mut rig.disk);
    rig.block.unplug(rig.now, &mut rig.disk);
    rig.flush();
    let order = rig.end_all().concat();
    assert_eq!(order[0], 900);
    assert!(order.contains(&FLUSHED) && order.len() == 5, "{order:?}");
    assert_eq!(order[1], FLUSHED, "{order:?}");
}

#[test]
fn a_scheduler_has_256_requests_whatever_the_disk_takes() {
    let limits = |number| {
        let disk = catalogue::model("wd10ezrx").expect("a shipped disk").build(1);
        let spec = SchedulerSpec::parse("mq-deadline").expect("a good scheduler");
        queue_limits(disk.limits(), spec.info, &linux(number), &spec.queue).nr_requests
    };
    assert_eq!([limits(4_012), limits(6_012)], [256, 64]);
}
