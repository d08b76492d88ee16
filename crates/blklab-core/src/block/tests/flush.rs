//! Flushes and durable writes: what they wait for, and what waits for them.

use super::*;

#[test]
fn a_flush_waits_for_the_worker() {
    let mut rig = Rig::new("none");
    let flush = Bio { op: Op::Flush, sectors: 0, ..read(0, FLUSHED) };
    rig.block.submit(rig.now, &flush, Manner::PLUGGED, &mut rig.disk);
    rig.block.unplug(rig.now, &mut rig.disk);
    assert_eq!((rig.block.flushes.queues[0].running.len(), rig.block.in_flight), (1, 0));
    rig.block.run_worker(rig.now, ProcessId(0), &mut rig.disk);
    assert_eq!(rig.block.in_flight, 1);
}

#[test]
fn a_flush_does_not_make_the_worker_forget_what_it_was_to_do_later() {
    let mut rig = Rig::with_depth("mq-deadline", true, 2);
    for (class, sector) in [(PrioClass::RealTime, 900), (PrioClass::Idle, 100)] {
        rig.block.submit(rig.now, &with_class(class, sector), WITHOUT_PLUG, &mut rig.disk);
    }
    rig.block.run_worker(rig.now, ProcessId(0), &mut rig.disk);
    assert_eq!(rig.end_one(), [900]);
    let flush = Bio { op: Op::Flush, sectors: 0, ..read(0, FLUSHED) };
    rig.block.submit(rig.now, &flush, Manner::PLUGGED, &mut rig.disk);
    rig.block.run_worker(rig.now, ProcessId(0), &mut rig.disk);
    assert_eq!(
        rig.end_all(),
        [vec![FLUSHED], vec![100]],
        "the flush, and what the idle class has waited for"
    );
}

/// libata lets no queued command be at the disk beside a flush.
#[test]
fn a_flush_of_a_sata_disk_waits_for_what_is_there_and_everything_else_for_the_flush() {
    for scheduler in ["none", "mq-deadline", "kyber", "bfq", "deadline"] {
        let mut rig = Rig::with_depth(scheduler, true, 8);
        rig.plug([900, 5_000]);
        let before = rig.block.in_flight;
        assert!(before > 0, "{scheduler}");
        rig.flush();
        rig.plug([100]);
        let ended = rig.end_all();
        let flush = ended.iter().position(|owners| owners == &[FLUSHED]).expect("it ends");
        assert_eq!(flush, before as usize, "{scheduler}: after what was at the disk: {ended:?}");
        assert_eq!(ended.last(), Some(&vec![100]), "{scheduler}: {ended:?}");
    }
}

#[test]
fn nothing_else_goes_to_a_sata_disk_that_has_a_flush() {
    for scheduler in ["none", "mq-deadline", "kyber", "bfq", "deadline"] {
        let mut rig = Rig::with_depth(scheduler, true, 8);
        rig.flush();
        rig.plug([100]);
        assert_eq!(rig.block.in_flight, 1, "{scheduler}: the flush");
        assert_eq!(rig.end_all(), [vec![FLUSHED], vec![100]], "{scheduler}");
    }
}

#[test]
fn before_linux_7_a_flush_is_sent_back_while_the_disk_has_other_commands_and_nothing_passes_it() {
    for scheduler in ["none", "mq-deadline", "kyber", "bfq"] {
        for (number, with_flush) in [(6012, 3), (7003, 4)] {
            let mut rig = Rig::on(linux(number), scheduler, 8);
            rig.plug([1000, 3000, 5000]);
            rig.flush();
            assert_eq!(rig.block.in_flight, with_flush, "{scheduler}: with the driver");
            rig.plug([100]);
            rig.submit_as(7000, WITHOUT_PLUG);
            rig.block.run_worker(rig.now, ProcessId(0), &mut rig.disk);
            assert_eq!(rig.block.in_flight, with_flush, "{scheduler}: nothing else");
            let ended = rig.end_all();
            assert_eq!(ended[3], [FLUSHED], "{scheduler}: {ended:?}");
            assert_eq!(ended.concat().len(), 6, "{scheduler}: all end");
        }
    }
}

#[test]
fn behind_other_transports_a_flush_is_at_the_disk_beside_others() {
    let mut rig = Rig::with_depth("mq-deadline", false, 8);
    rig.plug([900]);
    rig.flush();
    rig.plug([100]);
    assert_eq!(rig.block.in_flight, 3);
}

#[test]
fn one_flush_is_with_the_disk_and_those_that_come_meanwhile_share_the_next() {
    let mut rig = Rig::with_depth("mq-deadline", true, 8);
    (0..3).for_each(|_| rig.flush());
    assert_eq!(rig.block.in_flight, 1);
    assert_eq!(rig.end_all(), [vec![FLUSHED], vec![FLUSHED; 2]]);
    assert_eq!(rig.block.counters.flush_ios, 2);
}

#[test]
fn fua_is_asked_only_of_a_disk_with_a_volatile_cache() {
    for volatile in [true, false] {
        let mut rig = Rig::new("none");
        rig.block.volatile_write_cache = volatile;
        let write = Bio { op: Op::Write, fua: true, ..read(100, 100) };
        rig.block.submit(rig.now, &write, Manner::PLUGGED, &mut rig.disk);
        assert_eq!(rig.block.requests[rig.block.plug[0]].fua, volatile);
    }
}

/// Submits a flush and leaves it to the worker.
fn flush_later(rig: &mut Rig, owner: u64) -> Submitted {
    let flush = Bio { op: Op::Flush, sectors: 0, ..read(0, owner) };
    rig.block.submit(rig.now, &flush, Manner::PLUGGED, &mut rig.disk)
}

/// A durable write of eight sectors.
fn durable(sector: u64) -> Bio {
    Bio { op: Op::Write, fua: true, ..read(sector, sector) }
}

#[test]
fn a_flush_that_finds_the_disk_full_is_refused_and_nothing_passes_it() {
    for scheduler in ["none", "mq-deadline", "kyber", "bfq"] {
        let mut rig = Rig::with_depth(scheduler, true, 1);
        rig.plug([900]);
        rig.flush();
        assert_eq!(rig.block.in_flight, 1, "{scheduler}");
        assert!(rig.block.hw_queues[0].refused.is_busy(), "{scheduler}: it counts in dispatch_busy");
        rig.plug([100]);
        assert_eq!(rig.end_all(), [[900], [FLUSHED], [100]], "{scheduler}");
    }
}

#[test]
fn bios_that_come_after_a_flush_was_made_share_the_next_one_even_if_it_waits_for_the_disk() {
    let mut rig = Rig::with_depth("mq-deadline", true, 1);
    rig.plug([900]);
    (0..3).for_each(|_| rig.flush());
    assert_eq!(rig.end_all(), [vec![900], vec![FLUSHED], vec![FLUSHED; 2]]);
}

#[test]
fn of_the_next_flush_and_refused_requests_the_flush_goes_first_if_the_disk_was_out_of_budget() {
    let served = |runs_meanwhile: bool| {
        let mut rig = Rig::with_depth("mq-deadline", true, 8);
        rig.plug([100]);
        rig.flush();
        rig.plug([9_000]);
        rig.block.run_worker(rig.now, ProcessId(0), &mut rig.disk);
        // Out of budget until now: the end of a command makes SCSI ask the driver again.
        assert_eq!(rig.end_one(), [100]);
        flush_later(&mut rig, FLUSHED - 1);
        if runs_meanwhile {
            rig.plug([9_100]);
        }
        rig.end_all().concat()
    };
    assert_eq!(served(false), [FLUSHED, 9_000, FLUSHED - 1]);
    assert_eq!(served(true), [FLUSHED, FLUSHED - 1, 9_000, 9_100]);
}

#[test]
fn a_bio_that_flushes_has_a_tag_until_the_flush_has_ended_and_waits_for_one() {
    let mut rig = Rig::with_depth("mq-deadline:nr_requests=4", true, 1);
    rig.plug([100, 1_000, 2_000]);
    assert_eq!(flush_later(&mut rig, FLUSHED), Submitted::Taken);
    assert!(matches!(flush_later(&mut rig, FLUSHED), Submitted::NoRequest(_)));
    rig.block.run_worker(rig.now, ProcessId(0), &mut rig.disk);
    assert_eq!(rig.end_one(), [100]);
    assert_eq!(flush_later(&mut rig, FLUSHED), Submitted::Taken);
    assert!(matches!(rig.submit_as(3_000, Manner::PLUGGED), Submitted::NoRequest(_)));
    assert_eq!(rig.end_all().len(), 4);
    assert_eq!(rig.block.hw_queues[0].allocated, [0, 0]);
}

#[test]
fn no_flush_begins_while_the_data_of_a_durable_write_are_under_way() {
    let mut rig = Rig::with_depth("none", true, 8);
    rig.block.flush_after_fua = true;
    for sector in [100, 9_000_000] {
        rig.block.submit(rig.now, &durable(sector), WITHOUT_PLUG, &mut rig.disk);
    }
    assert_eq!(rig.block.in_flight, 2);
    let ended = rig.end_all();
    assert_eq!(ended.len(), 1, "both with one flush: {ended:?}");
    assert_eq!((rig.block.counters.write_ios, rig.block.counters.flush_ios), (2, 1));
    assert_eq!(rig.block.hw_queues[0].allocated, [0, 0]);
}

#[test]
fn after_a_flush_the_next_completion_runs_the_queue() {
    // A request of the idle class must wait while a real-time request is in flight.
    let mut rig = Rig::with_depth("mq-deadline", false, 8);
    rig.block.submit(rig.now, &with_class(PrioClass::RealTime, 900), WITHOUT_PLUG, &mut rig.disk);
    rig.block.run_worker(rig.now, ProcessId(0), &mut rig.disk);
    rig.block.submit(rig.now, &with_class(PrioClass::Idle, 100), WITHOUT_PLUG, &mut rig.disk);
    rig.flush();
    assert!(rig.block.hw_queues[0].restart, "the flush was in the list of the driver");
}

/// The worker runs the queue once for the flush and once because a request was refused. With the last
/// refusals some time ago, the second run takes everything out of the software queue.
#[test]
fn requests_behind_processes_that_sync_have_their_turn_once_the_queue_is_no_longer_busy() {
    let mut rig = Rig::new("none");
    let writers = [9_000, 90_000];
    let reads = [100, 200, 300];
    writers.iter().for_each(|&writer| rig.plug([writer]));
    for read in reads {
        rig.submit_as(read, WITHOUT_PLUG);
    }
    let mut served = Vec::new();
    for _ in 0..40 {
        for owner in rig.end_one() {
            // A writer syncs each write, and then writes the next one.
            if writers.contains(&owner) {
                flush_later(&mut rig, owner + 1);
            } else if writers.contains(&(owner - 1)) {
                rig.plug([owner - 1]);
            } else {
                served.push(owner);
            }
        }
        rig.block.run_worker(rig.now, ProcessId(0), &mut rig.disk);
    }
    assert_eq!(served, reads);
}

/// A run that the worker does after it has brought a flush is put off if the driver refuses a request in the first.
#[test]
fn a_refusal_beside_a_flush_puts_off_the_second_run() {
    let mut rig = Rig::with_depth("none", true, 8);
    rig.flush();
    rig.plug([9_000]);
    flush_later(&mut rig, FLUSHED - 1);
    let before = rig.block.hw_queues[0].refused.busy();
    assert_eq!(rig.end_one(), [FLUSHED]);
    let after = rig.block.hw_queues[0].refused.busy();
    assert_eq!(after, (before * 7 + 16) / 8, "one more refusal");
    assert_eq!(rig.end_all(), [[FLUSHED - 1], [9_000]]);
}

/// A write that goes to the disk after a flush, and is durable then.
fn committed(sector: u64) -> Bio {
    Bio { op: Op::Write, fua: true, ..read(0, sector) }
}

/// As a journal's record.
#[test]
fn a_write_after_a_flush_goes_to_the_disk_between_two_and_before_what_waits() {
    for scheduler in ["none", "mq-deadline", "kyber", "bfq", "deadline", "cfq", "noop"] {
        let mut rig = Rig::with_depth(scheduler, true, 1);
        rig.plug([100]);
        rig.block.submit(rig.now, &committed(900), Manner::AFTER_FLUSH, &mut rig.disk);
        rig.block.run_worker(rig.now, ProcessId(0), &mut rig.disk);
        assert_eq!(rig.end_one(), [100], "{scheduler}");
        rig.plug([5_000, 7_000]);
        let ended = rig.end_all();
        let place = |owner| ended.iter().position(|owners| owners == &[owner]).expect("it ends");
        // kyber has writes apart, and serves reads first.
        assert!(place(900) < place(7_000) || scheduler == "kyber", "{scheduler}: {ended:?}");
        let counters = rig.block.finish(rig.now).0;
        assert_eq!((counters.flush_ios, counters.write_ios), (2, 1), "{scheduler}");
    }
}

#[test]
fn without_a_volatile_cache_a_write_after_a_flush_is_a_write() {
    let mut rig = Rig::with_depth("mq-deadline", true, 1);
    rig.block.volatile_write_cache = false;
    rig.block.submit(rig.now, &committed(900), Manner::AFTER_FLUSH, &mut rig.disk);
    rig.block.run_worker(rig.now, ProcessId(0), &mut rig.disk);
    assert_eq!(rig.end_all(), [vec![900]]);
    let counters = rig.block.finish(rig.now).0;
    assert_eq!((counters.flush_ios, counters.write_ios), (0, 1));
}

#[test]
fn no_flush_begins_while_data_of_a_write_after_a_flush_are_under_way() {
    let mut rig = Rig::with_depth("mq-deadline", true, 4);
    rig.block.submit(rig.now, &committed(900), Manner::AFTER_FLUSH, &mut rig.disk);
    rig.block.run_worker(rig.now, ProcessId(0), &mut rig.disk);
    rig.flush();
    // The first flush ends; then come the data, and a flush that both share.
    assert_eq!(rig.end_all(), [vec![FLUSHED, 900]]);
}
