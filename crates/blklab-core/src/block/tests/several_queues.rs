//! Several hardware queues, one for each CPU. On a disk that takes one command after the other, so that
//! requests complete in the order in which the driver gets them.

use super::super::worker::Restart;
use super::*;

const QUEUES: u16 = 2;

fn rig(scheduler: &str) -> Rig {
    with_depth(scheduler, 32)
}

fn with_depth(scheduler: &str, queue_depth: u32) -> Rig {
    let spec = SchedulerSpec::parse(scheduler).expect("a good scheduler");
    let disk = catalogue::model("constant").expect("a shipped disk").build(1);
    let host = Host { budget: Some(false), kernel_cpus: QUEUES, ..Host::FREE };
    let limits = queue_limits(disk.limits(), spec.info, &host, &spec.queue);
    let limits = QueueLimits { queue_depth, hw_queues: QUEUES, wbt_target: Nanos::ZERO, ..limits };
    let tasks = Tasks::default();
    let elevator = AnyScheduler::new(spec.info.name, &spec.settings, &limits, &tasks).expect("registered");
    Rig { block: Block::new(&disk, limits, elevator, tasks, &host), disk, now: Nanos::ZERO }
}

/// A bio from that CPU.
fn from(cpu: u16, bio: Bio) -> Bio {
    Bio { cpu, hw_queue: cpu, ..bio }
}

fn submit(rig: &mut Rig, cpu: u16, sector: u64) {
    rig.block.submit(rig.now, &from(cpu, read(sector, sector)), WITHOUT_PLUG, &mut rig.disk);
}

#[test]
fn each_has_a_flush_of_its_own() {
    for (cpus, flushes) in [([0, 1], 2), ([0, 0], 1)] {
        let mut rig = rig("none");
        for cpu in cpus {
            let flush = from(cpu, Bio { op: Op::Flush, sectors: 0, ..read(0, FLUSHED) });
            rig.block.volatile_write_cache = true;
            rig.block.submit(rig.now, &flush, Manner::PLUGGED, &mut rig.disk);
            rig.block.run_worker(rig.now, ProcessId(0), &mut rig.disk);
        }
        assert_eq!(rig.block.in_flight, flushes, "from {cpus:?}");
        assert_eq!(rig.end_all().concat(), [FLUSHED; 2], "from {cpus:?}");
    }
}

#[test]
fn requests_of_a_run_go_to_one_queue_after_the_other() {
    let mut rig = rig("mq-deadline");
    for (cpu, sector) in [(1, 100), (0, 200), (1, 300), (0, 400)] {
        submit(&mut rig, cpu, sector);
    }
    rig.block.run_worker(rig.now, ProcessId(0), &mut rig.disk);
    assert_eq!(rig.end_all().concat(), [200, 400, 100, 300]);
}

#[test]
fn of_a_scheduler_for_all_queues_only_that_of_the_running_cpu_is_run() {
    for (scheduler, run) in [("mq-deadline", vec![1]), ("bfq", vec![1]), ("kyber", vec![0, 1])] {
        let mut rig = rig(scheduler);
        rig.block.mark_all(1);
        assert_eq!(rig.block.to_run, run, "{scheduler}");
    }
}

#[test]
fn a_run_that_is_planned_for_one_queue_does_not_come_earlier_with_that_of_another() {
    let mut rig = rig("mq-deadline");
    rig.block.plan_run(1, Nanos::from_millis(4));
    rig.block.not_later(0);
    assert_eq!(rig.block.worker_due, Nanos::from_millis(4));
    rig.block.not_later(1);
    assert_eq!(rig.block.worker_due, Nanos::NEVER);
}

#[test]
fn a_completion_that_leaves_nothing_to_dispatch_leaves_a_planned_run_where_it_is() {
    let due = Nanos::from_millis(4);
    for (waits, then) in [(false, due), (true, Nanos::NEVER)] {
        let mut rig = rig("mq-deadline");
        if waits {
            rig.block.submit(rig.now, &from(0, read(8, 8)), WITHOUT_PLUG, &mut rig.disk);
        }
        rig.block.hw_queues[0].restart = true;
        rig.block.plan_run(0, due);
        rig.block.restart(0, Restart::RefusedOrFull);
        assert_eq!(rig.block.worker_due, then, "a request waits: {waits}");
    }
}

#[test]
fn each_queue_has_a_planned_run_of_its_own() {
    let mut rig = rig("mq-deadline");
    for (hw_queue, due_ms) in [(1, 4), (0, 6)] {
        rig.block.plan_run(hw_queue, Nanos::from_millis(due_ms));
    }
    for (due_ms, runs, next) in [(4, 1, Nanos::from_millis(6)), (6, 0, Nanos::NEVER)] {
        rig.block.to_run.clear();
        rig.block.timer(Nanos::from_millis(due_ms));
        assert_eq!((&rig.block.to_run, rig.block.worker_due), (&vec![runs], next));
    }
}

/// On a disk without FUA.
#[test]
fn a_flush_waits_for_durable_writes_of_its_own_queue_only() {
    for (cpu, flushes) in [(0, 0), (1, 1)] {
        let mut rig = rig("none");
        (rig.block.volatile_write_cache, rig.block.flush_after_fua) = (true, true);
        let durable = from(0, Bio { op: Op::Write, fua: true, ..read(100, 100) });
        rig.block.submit(rig.now, &durable, WITHOUT_PLUG, &mut rig.disk);
        assert_eq!(rig.block.in_flight, 1);
        let flush = from(cpu, Bio { op: Op::Flush, sectors: 0, ..read(0, FLUSHED) });
        rig.block.submit(rig.now, &flush, Manner::PLUGGED, &mut rig.disk);
        rig.block.run_worker(rig.now, ProcessId(0), &mut rig.disk);
        assert_eq!(rig.block.in_flight, 1 + flushes, "from {cpu}");
    }
}

#[test]
fn requests_for_which_their_queue_has_no_tag_wait_there_whichever_queue_has_run() {
    for scheduler in ["mq-deadline", "bfq", "kyber", "none"] {
        let mut rig = with_depth(scheduler, 2);
        let sectors: Vec<u64> = (1..=12).map(|n| 100 * n).collect();
        for (n, &sector) in sectors.iter().enumerate() {
            // Three of four requests belong to the first queue, which has no free tag when the second one runs.
            submit(&mut rig, u16::from(n % 4 == 3), sector);
            rig.block.run_worker(rig.now, ProcessId(0), &mut rig.disk);
        }
        let mut ended = rig.end_all().concat();
        ended.sort_unstable();
        assert_eq!(ended, sectors, "{scheduler}");
    }
}
