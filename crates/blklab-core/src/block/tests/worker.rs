//! When kblockd's worker runs the queue.

use super::*;

#[test]
fn requests_without_a_plug_are_sorted_until_their_submitter_sleeps() {
    let served = |scheduler| {
        let mut rig = Rig::new(scheduler);
        for sector in [900, 100, 500] {
            rig.submit_as(sector, WITHOUT_PLUG);
        }
        rig.block.run_worker(rig.now, ProcessId(0), &mut rig.disk);
        rig.end_all().concat()
    };
    assert_eq!(served("mq-deadline"), [100, 500, 900], "a worker dispatches");
    // Without an elevator, and before blk-mq, the submitter itself dispatches.
    assert_eq!(served("none"), [900, 100, 500]);
    assert_eq!(served("deadline"), [900, 100, 500]);
}

#[test]
fn in_linux_6_12_a_request_without_a_plug_does_not_wait_for_the_worker() {
    for scheduler in ["mq-deadline", "kyber", "bfq"] {
        for (number, at_disk, after) in [(6012, 2, 2), (7003, 0, 1)] {
            let mut rig = Rig::on(linux(number), scheduler, 8);
            for sector in [900, 908] {
                rig.submit_as(sector, WITHOUT_PLUG);
            }
            assert_eq!(rig.block.in_flight, at_disk, "{scheduler}");
            rig.block.run_worker(rig.now, ProcessId(0), &mut rig.disk);
            assert_eq!(rig.block.in_flight, after, "{scheduler}: merged, or issued one by one");
        }
    }
}

#[test]
fn the_plug_of_a_process_that_sleeps_takes_the_place_of_a_planned_run() {
    for (asleep, due) in [(false, 4), (true, 6)] {
        let mut rig = Rig::on(Host { ticks: Ticks::per_second(1000), ..linux(7003) }, "mq-deadline", 8);
        for class in [PrioClass::RealTime, PrioClass::BestEffort] {
            let bio = with_class(class, 10_000 * (1 + class as u64));
            rig.block.submit(rig.now, &bio, Manner::PLUGGED, &mut rig.disk);
        }
        rig.block.unplug(rig.now, &mut rig.disk);
        // The lower class waits for the higher one: the queue is run again in 3 ms.
        assert_eq!((rig.block.in_flight, rig.block.worker_due), (1, Nanos::from_millis(4)));
        rig.now = Nanos::from_millis(2);
        rig.block.submit(rig.now, &with_class(PrioClass::BestEffort, 90_000), Manner::PLUGGED, &mut rig.disk);
        match asleep {
            true => rig.block.unplug_asleep(rig.now, &mut rig.disk),
            false => rig.block.unplug(rig.now, &mut rig.disk),
        }
        assert_eq!(rig.block.worker_due, Nanos::from_millis(due));
    }
}

#[test]
fn neighbours_that_come_without_a_plug_become_one_request_before_the_worker_runs() {
    let mut rig = Rig::new("mq-deadline");
    for sector in [100, 108, 116] {
        rig.submit_as(sector, WITHOUT_PLUG);
    }
    assert_eq!(rig.disk.next_event(), Nanos::NEVER, "nothing is with the disk");
    rig.block.run_worker(rig.now, ProcessId(0), &mut rig.disk);
    assert_eq!(rig.end_all(), [[100, 108, 116]]);
}

/// A bio of another CPU and thread.
fn read_on(cpu: u16, hw_queue: u16, sector: u64) -> Bio {
    Bio { cpu, thread: ProcessId(cpu.into()), hw_queue, ..read(sector, sector) }
}

#[test]
fn the_worker_runs_when_the_thread_sleeps_that_woke_it_last() {
    let mut rig = Rig::with_depth("mq-deadline", true, 8);
    rig.block.submit(rig.now, &read_on(1, 0, 900), WITHOUT_PLUG, &mut rig.disk);
    rig.block.run_worker(rig.now, ProcessId(0), &mut rig.disk);
    assert_eq!(rig.block.in_flight, 0, "thread 1 computes");
    rig.block.submit(rig.now, &read_on(2, 0, 100), WITHOUT_PLUG, &mut rig.disk);
    rig.block.run_worker(rig.now, ProcessId(1), &mut rig.disk);
    assert_eq!(rig.block.in_flight, 0, "the worker has gone to the CPU of thread 2");
    rig.block.run_worker(rig.now, ProcessId(2), &mut rig.disk);
    assert_eq!(rig.end_all().concat(), [100, 900]);
    rig.block.run_worker(rig.now, ProcessId(2), &mut rig.disk);
    assert!(!rig.block.worker_woken);
}

#[test]
fn the_worker_does_not_run_when_another_thread_sleeps_on_its_cpu() {
    let mut rig = Rig::with_depth("mq-deadline", true, 8);
    let bio = |thread, sector| Bio { thread: ProcessId(thread), ..read(sector, sector) };
    for sector in [900, 908] {
        rig.block.submit(rig.now, &bio(5, sector), WITHOUT_PLUG, &mut rig.disk);
        rig.block.run_worker(rig.now, ProcessId(1), &mut rig.disk);
        assert_eq!(rig.block.in_flight, 0, "thread 5 computes there");
    }
    rig.block.run_worker(rig.now, ProcessId(5), &mut rig.disk);
    assert_eq!(rig.end_all(), [[900, 908]]);
}

#[test]
fn a_completion_runs_the_queue_while_the_worker_waits_for_its_thread() {
    let mut rig = Rig::with_depth("mq-deadline", true, 1);
    rig.plug([100, 500]);
    rig.block.submit(rig.now, &read_on(1, 0, 900), WITHOUT_PLUG, &mut rig.disk);
    assert_eq!(rig.end_one(), [100]);
    assert_eq!(rig.end_one(), [500]);
    assert_eq!(rig.end_one(), [900], "the disk was full, so each completion runs the queue");
}

#[test]
fn a_completion_leaves_a_queue_that_was_not_full_to_the_worker() {
    let mut rig = Rig::with_depth("mq-deadline", true, 8);
    rig.plug([100]);
    rig.block.submit(rig.now, &read_on(1, 0, 900), WITHOUT_PLUG, &mut rig.disk);
    assert_eq!(rig.end_one(), [100]);
    assert_eq!(rig.block.in_flight, 0);
    rig.block.run_worker(rig.now, ProcessId(1), &mut rig.disk);
    assert_eq!(rig.end_one(), [900]);
}

#[test]
fn a_flush_of_a_plug_dispatches_the_requests_of_the_woken_worker() {
    let mut rig = Rig::new("mq-deadline");
    rig.submit_as(900, WITHOUT_PLUG);
    rig.plug([100]);
    assert!(rig.disk.next_event() < Nanos::NEVER);
    assert_eq!(rig.end_all().concat(), [100, 900]);
}

#[test]
fn a_process_that_moves_to_another_cgroup_lets_the_worker_dispatch_for_others() {
    let group = |parent| Cgroup { parent, weight: Cgroup::DEFAULT_WEIGHT };
    let task = |cgroup, mover: Option<u32>| Task {
        cgroup: CgroupId(cgroup),
        mover: mover.map(ProcessId),
        ..Task::default()
    };
    // The last one is the first after its move.
    let tasks = Tasks::new(
        vec![task(1, None), task(2, None), task(2, Some(0))],
        vec![group(None), group(Some(CgroupId::ROOT)), group(Some(CgroupId::ROOT))],
    );
    let by = |process, sector| Bio { process: ProcessId(process), ..read(sector, sector) };
    let host = Host { budget: Some(true), ..Host::FREE };
    let mut rig = Rig::with_tasks(host, "bfq:low_latency=0", 8, &tasks);
    rig.block.submit(rig.now, &by(0, 100), WITHOUT_PLUG, &mut rig.disk);
    rig.block.run_worker(rig.now, ProcessId(0), &mut rig.disk);
    assert_eq!(rig.end_one(), [100]);
    rig.block.submit(rig.now, &by(1, 1_000_000), WITHOUT_PLUG, &mut rig.disk);
    rig.block.run_worker(rig.now, ProcessId(0), &mut rig.disk);
    assert_eq!(rig.block.in_flight, 0, "the disk idles for the first process");
    // It is still in its plug when the queue is run.
    rig.block.submit(rig.now, &by(2, 500), Manner::PLUGGED, &mut rig.disk);
    rig.block.run_worker(rig.now, ProcessId(0), &mut rig.disk);
    assert_eq!(rig.end_one(), [1_000_000]);
}

#[test]
fn a_scheduler_that_holds_requests_back_is_asked_by_a_timer_and_not_by_completions() {
    // A request of the idle class must wait while a real-time request is in flight.
    let mut rig = Rig::with_depth("mq-deadline", true, 2);
    for (class, sector) in [(PrioClass::RealTime, 900), (PrioClass::Idle, 100)] {
        rig.block.submit(rig.now, &with_class(class, sector), WITHOUT_PLUG, &mut rig.disk);
    }
    rig.block.run_worker(rig.now, ProcessId(0), &mut rig.disk);
    assert_eq!(rig.block.in_flight, 1);
    assert_eq!(rig.block.next_timer(), Nanos::from_millis(4), "3 ms, on the next tick");
    assert_eq!(rig.end_one(), [900]);
    assert_eq!(rig.block.in_flight, 0, "the disk was not full: the queue is not run again");
    // One command at a time: its order is that of dispatch.
    rig.block.limits.queue_depth = 1;
    rig.now = rig.now.max(rig.block.next_timer());
    rig.block.timer(rig.now);
    rig.block.run(rig.now, &mut rig.disk);
    assert_eq!(rig.end_one(), [100]);
    assert_eq!(rig.block.next_timer(), Nanos::NEVER);
}

/// Linux queues a work once: a process that wakes the worker takes it from its timer to its own CPU.
#[test]
fn a_thread_that_wakes_the_worker_moves_what_it_was_to_do_later_to_its_own_sleep() {
    let mut rig = Rig::with_depth("mq-deadline", true, 2);
    for (class, sector) in [(PrioClass::RealTime, 900), (PrioClass::Idle, 100)] {
        rig.block.submit(rig.now, &with_class(class, sector), WITHOUT_PLUG, &mut rig.disk);
    }
    rig.block.run_worker(rig.now, ProcessId(0), &mut rig.disk);
    assert_ne!(rig.block.next_timer(), Nanos::NEVER, "the idle class waits");
    assert_eq!(rig.end_one(), [900]);
    rig.block.submit(rig.now, &read_on(1, 0, 500), WITHOUT_PLUG, &mut rig.disk);
    assert_eq!(rig.block.next_timer(), Nanos::NEVER);
    rig.block.run_worker(rig.now, ProcessId(1), &mut rig.disk);
    assert_ne!(rig.block.next_timer(), Nanos::NEVER, "the idle class waits for this one, too");
    assert_eq!(rig.end_one(), [500]);
}

#[test]
fn a_completion_runs_the_queue_of_a_disk_that_was_full() {
    for (scheduler, budget) in
        [("mq-deadline", true), ("mq-deadline", false), ("none", true), ("kyber", true)]
    {
        let mut rig = Rig::with_budget(scheduler, budget);
        rig.plug([100, 500]);
        assert_eq!(rig.block.in_flight, 1, "{scheduler}, budget {budget}: the disk takes one");
        assert_eq!(rig.end_one(), [100]);
        assert_eq!(rig.block.in_flight, 1, "{scheduler}, budget {budget}: the next one");
    }
}
