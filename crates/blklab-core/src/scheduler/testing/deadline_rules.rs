//! The rules of deadline and mq-deadline, and the effect of each of their tunables.

use super::{Rig, Submitted, bio, bio_of, limits};
use crate::kernel::Kernel;
use crate::request::Op::{Discard, Read, Write};
use crate::request::{Bio, PrioClass, ProcessId};
use crate::scheduler::journal::Decision;
use crate::scheduler::{Merge, QueueLimits};
use crate::units::{Nanos, Sector};

const BOTH: [&str; 2] = ["deadline", "mq-deadline"];

/// The sectors of the next `count` requests dispatched, each completed at once.
fn serve(rig: &mut Rig, count: usize) -> Vec<u64> {
    let mut sectors = Vec::new();
    for _ in 0..count {
        let Some(id) = rig.dispatch(0) else { break };
        sectors.push(rig.requests[id].sector.0);
        rig.complete(0);
    }
    sectors
}

#[test]
fn a_batch_goes_upwards_and_the_next_begins_at_the_oldest() {
    for name in BOTH {
        let mut rig = Rig::new(name, &[]);
        for sector in [500, 900, 100, 700, 300] {
            rig.submit(bio(Read, sector));
        }
        // mq-deadline begins at sector 0, deadline at the oldest request.
        let expected = if name == "deadline" { [500, 700, 900, 100, 300] } else { [100, 300, 500, 700, 900] };
        assert_eq!(serve(&mut rig, 5), expected, "{name}");
    }
}

#[test]
fn deadline_passes_over_a_late_arrival_that_mq_deadline_takes_along() {
    let late = |name| {
        let mut rig = Rig::new(name, &[]);
        rig.submit(bio(Read, 100));
        rig.submit(bio(Read, 900));
        serve(&mut rig, 1);
        rig.submit(bio(Read, 500));
        serve(&mut rig, 2)
    };
    assert_eq!(late("deadline"), [900, 500]);
    assert_eq!(late("mq-deadline"), [500, 900]);
}

#[test]
fn fifo_batch_is_the_number_of_requests_between_two_looks_at_the_deadlines() {
    for name in BOTH {
        for fifo_batch in [1, 4, 16] {
            let mut rig = Rig::new(name, &[("fifo_batch", fifo_batch), ("writes_starved", 1)]);
            for place in 0..40 {
                rig.submit(bio(Read, place * 100));
                rig.submit(bio(Write, place * 100));
            }
            let mut runs = vec![];
            let mut last = None;
            while let Some(id) = rig.dispatch(0) {
                let op = rig.requests[id].op;
                if last.replace(op) != Some(op) {
                    runs.push(0);
                }
                *runs.last_mut().expect("pushed above") += 1;
                rig.complete(0);
            }
            let full = &runs[1..runs.len() - 2];
            assert!(full.iter().all(|&run| run == fifo_batch), "{name}: {runs:?} of {fifo_batch}");
        }
    }
}

#[test]
fn read_expire_and_write_expire_say_when_the_sweep_is_left_for_the_oldest() {
    for (op, tunable) in [(Read, "read_expire"), (Write, "write_expire")] {
        let order_after_20_ms = |name, expire| {
            let mut rig = Rig::new(name, &[(tunable, expire), ("fifo_batch", 1)]);
            // A young request above 5000, an old one below it.
            rig.submit(bio(op, 5000));
            if name == "mq-deadline" {
                assert_eq!(serve(&mut rig, 1), [5000]);
            }
            rig.submit(bio(op, 1000));
            rig.submit(bio(op, 6000));
            if name == "deadline" {
                assert_eq!(serve(&mut rig, 1), [5000]);
            }
            rig.advance(Nanos::from_millis(20));
            serve(&mut rig, 2)
        };
        for name in BOTH {
            assert_eq!(order_after_20_ms(name, 21), [6000, 1000], "{name}:{tunable}");
            assert_eq!(order_after_20_ms(name, 20), [1000, 6000], "{name}:{tunable}");
        }
    }
}

#[test]
fn deadlines_and_ages_are_counted_in_ticks() {
    // Half a tick after the begin of one; the deadline is 20 ticks later, at the begin of one.
    let half = Nanos::from_micros(500);
    for name in BOTH {
        let first_after = |wait| {
            let mut rig = Rig::new(name, &[("read_expire", 20), ("fifo_batch", 1)]);
            rig.submit(bio(Read, 5000));
            serve(&mut rig, 1);
            rig.advance(half);
            rig.submit(bio(Read, 1000));
            rig.submit(bio(Read, 6000));
            rig.advance(wait);
            serve(&mut rig, 1)[0]
        };
        assert_eq!(first_after(Nanos::from_millis(20) - half), 1000, "{name}");
        if name == "mq-deadline" {
            assert_eq!(first_after(Nanos::from_millis(20) - half - Nanos(1)), 6000);
        }
    }
    let mut rig = Rig::new("mq-deadline", &[("prio_aging_expire", 20)]);
    rig.advance(half);
    rig.submit(bio_of(PrioClass::BestEffort, Read, 100));
    rig.submit(bio_of(PrioClass::RealTime, Read, 900));
    rig.advance(Nanos::from_millis(20) - half);
    assert_eq!(serve(&mut rig, 1), [100]);
}

#[test]
fn writes_starved_is_the_number_of_read_batches_before_a_batch_of_writes() {
    for name in BOTH {
        for writes_starved in [0, 1, 3] {
            let mut rig = Rig::new(name, &[("fifo_batch", 1), ("writes_starved", writes_starved)]);
            // A read first: mq-deadline starts with the direction of writes.
            rig.submit(bio(Read, 0));
            serve(&mut rig, 1);
            for place in 1..30 {
                rig.submit(bio(Read, place * 100));
                rig.submit(bio(Write, 100_000 + place * 100));
            }
            let served = serve(&mut rig, 12);
            let is_write: Vec<_> = served.iter().map(|&sector| sector > 100_000).collect();
            // `writes_starved` batches of reads, then one of writes, and again.
            let expected = (0..12).map(|turn| turn % (writes_starved + 1) == writes_starved);
            assert_eq!(is_write, expected.collect::<Vec<_>>(), "{name}: {served:?}");
        }
        let mut rig = Rig::new(name, &[("fifo_batch", 1), ("writes_starved", -1)]);
        rig.submit(bio(Read, 0));
        serve(&mut rig, 1);
        rig.submit(bio(Write, 50));
        for place in 1..200 {
            rig.submit(bio(Read, place * 100));
        }
        assert_eq!(serve(&mut rig, 200).last(), Some(&50), "{name}: reads always go first");
    }
}

#[test]
fn front_merges_0_saves_the_search_but_not_the_cached_request() {
    for name in BOTH {
        let grow = |front_merges, bios: &[Bio], last: Bio| {
            let mut rig = Rig::new(name, &[("front_merges", front_merges)]);
            for bio in bios.iter() {
                rig.submit(*bio);
            }
            matches!(rig.submit(last), Submitted::Merged(Merge::Front(_)))
        };
        // The first request is the cached one.
        let waiting = [bio(Read, 900), bio(Read, 500)];
        assert!(grow(1, &waiting, bio(Read, 492)), "{name}");
        assert!(!grow(0, &waiting, bio(Read, 492)), "{name}");
        assert!(grow(0, &waiting, bio(Read, 892)), "{name}");
    }
}

#[test]
fn a_joined_request_keeps_the_earlier_deadline_and_place() {
    for name in BOTH {
        let mut rig = Rig::new(name, &[("fifo_batch", 1), ("read_expire", 100)]);
        rig.submit(bio(Read, 5000));
        rig.submit(bio(Read, 116));
        rig.advance(Nanos::from_millis(50));
        rig.submit(bio(Read, 6000));
        rig.submit(bio(Read, 100));
        // Fills the gap: 100 grows up to 116, which is older than 6000.
        rig.submit(bio(Read, 108));
        assert_eq!(rig.waiting.len(), 3, "{name}");
        rig.advance(Nanos::from_millis(60));
        // Without 116's place in the FIFO 6000 would be older; without its deadline 6000 would come
        // next in the sweep.
        assert_eq!(serve(&mut rig, 3), [5000, 100, 6000], "{name}");
    }
}

#[test]
fn discards_go_with_the_writes() {
    for name in BOTH {
        let mut rig = Rig::new(name, &[("writes_starved", 1), ("fifo_batch", 1)]);
        rig.submit(bio(Read, 0));
        serve(&mut rig, 1);
        for place in 1..4 {
            rig.submit(bio(Read, place * 100));
            rig.submit(bio(Discard, 10_000 + place * 100));
        }
        assert_eq!(serve(&mut rig, 4), [100, 10_100, 200, 10_200], "{name}");
    }
}

#[test]
fn mq_deadline_keeps_lower_classes_waiting_while_a_higher_one_is_with_the_disk() {
    let mut rig = Rig::new("mq-deadline", &[]);
    rig.submit(bio_of(PrioClass::Idle, Read, 100));
    rig.submit(bio_of(PrioClass::None, Read, 200));
    rig.submit(bio_of(PrioClass::RealTime, Read, 300));
    assert_eq!(rig.dispatch_all(), [300]);
    rig.complete(0);
    assert_eq!(rig.dispatch_all(), [200]);
    rig.complete(0);
    assert_eq!(rig.dispatch_all(), [100]);
}

#[test]
fn prio_aging_expire_lets_an_old_request_of_a_lower_class_go_first() {
    for class in [PrioClass::BestEffort, PrioClass::Idle] {
        let first_after = |wait| {
            let mut rig = Rig::new("mq-deadline", &[("prio_aging_expire", 1000)]);
            rig.submit(bio_of(class, Read, 100));
            rig.submit(bio_of(PrioClass::RealTime, Read, 900));
            rig.advance(wait);
            serve(&mut rig, 1)[0]
        };
        assert_eq!(first_after(Nanos::from_secs(1)), 100, "{class:?}");
        assert_eq!(first_after(Nanos(999_999_999)), 900, "{class:?}");
    }
}

#[test]
fn of_two_aged_classes_best_effort_goes_before_idle() {
    let mut rig = Rig::new("mq-deadline", &[("prio_aging_expire", 0)]);
    rig.submit(bio_of(PrioClass::Idle, Read, 100));
    rig.submit(bio_of(PrioClass::BestEffort, Read, 200));
    rig.submit(bio_of(PrioClass::RealTime, Read, 300));
    assert_eq!(serve(&mut rig, 3), [200, 100, 300]);
}

#[test]
fn async_depth_limits_all_but_synchronous_reads() {
    let depth = |async_depth| Rig::new("mq-deadline", &[("async_depth", async_depth)]);
    let limited = depth(7);
    assert_eq!(limited.depth_limit(ProcessId(0), Read, true), u32::MAX);
    for (op, sync) in [(Read, false), (Write, true), (Write, false)] {
        assert_eq!(limited.depth_limit(ProcessId(0), op, sync), 7);
        assert_eq!(depth(0).depth_limit(ProcessId(0), op, sync), limits().nr_requests);
    }
    assert_eq!([limited, depth(0)].map(|rig| rig.scheduler.least_depth()), [7, limits().nr_requests]);
}

#[test]
fn before_linux_7_mq_deadline_told_the_tags_a_least_depth_of_one() {
    let older = QueueLimits { kernel: Kernel::of(6012), ..limits() };
    let rig = Rig::with_limits("mq-deadline", &[], older);
    assert_eq!(
        (rig.scheduler.least_depth(), rig.depth_limit(ProcessId(0), Write, true)),
        (1, limits().nr_requests)
    );
}

#[test]
fn all_hardware_queues_draw_from_one_state() {
    for name in BOTH {
        let mut rig = Rig::with_limits(name, &[], QueueLimits { hw_queues: 2, ..limits() });
        rig.submit(Bio { cpu: 3, hw_queue: 1, ..bio(Read, 10) });
        let id = rig.dispatch(0).expect("whatever queue it is bound to");
        assert_eq!((rig.requests[id].sector, rig.requests[id].hw_queue), (Sector(10), 1), "{name}");
    }
}

#[test]
fn batches_starved_writes_and_expired_requests_are_noted() {
    const QUEUE: ProcessId = ProcessId::KERNEL;
    for name in BOTH {
        let mut rig = Rig::new(name, &[("fifo_batch", 1), ("writes_starved", 1), ("read_expire", 10)]);
        rig.keep_journal();
        rig.submit(bio(Read, 50));
        serve(&mut rig, 1);
        assert_eq!(rig.decisions(), [(QUEUE, Decision::BatchStart { op: Read, starved: false })], "{name}");
        for sector in [100, 200] {
            rig.submit(Bio { process: ProcessId(3), ..bio(Read, sector) });
        }
        rig.submit(bio(Write, 900));
        rig.advance(Nanos::from_millis(20));
        serve(&mut rig, 3);
        let batch = |op, starved| {
            let end = (QUEUE, Decision::BatchEnd { requests: 1 });
            [end, (QUEUE, Decision::BatchStart { op, starved })]
        };
        let expired = [(ProcessId(3), Decision::Expired)];
        let expected =
            [&batch(Read, false)[..], &expired, &batch(Write, true), &batch(Read, false), &expired].concat();
        assert_eq!(rig.decisions(), expected, "{name}");
    }
}

#[test]
fn a_request_that_goes_because_of_its_age_is_noted() {
    let mut rig = Rig::new("mq-deadline", &[("prio_aging_expire", 1000)]);
    rig.keep_journal();
    rig.submit(Bio { process: ProcessId(4), ..bio_of(PrioClass::Idle, Read, 100) });
    rig.submit(bio_of(PrioClass::RealTime, Read, 900));
    rig.advance(Nanos::from_secs(1));
    serve(&mut rig, 2);
    let aged: Vec<_> = rig.decisions().into_iter().filter(|(_, what)| *what == Decision::Aged).collect();
    assert_eq!(aged, [(ProcessId(4), Decision::Aged)]);
}

/// As processes that read the same data have them. The first one is above a request at 5000 in the kernel's tree until
/// the second turns it round that, and is the root from then on.
#[test]
fn of_requests_at_one_sector_a_bio_goes_in_front_of_that_at_which_the_kernels_search_ends() {
    for name in BOTH {
        for (beside, found) in [(1, 0), (2, 1), (3, 1), (4, 1)] {
            let mut rig = Rig::new(name, &[]);
            // So the cache of one request has another one.
            rig.submit(bio(Read, 5000));
            let waits = |submitted| if let Submitted::Waits(id) = submitted { id } else { panic!("{name}") };
            let ids: Vec<_> = (0..beside).map(|_| waits(rig.submit(bio(Read, 100)))).collect();
            let Submitted::Merged(Merge::Front(front)) = rig.submit(bio(Read, 92)) else { panic!("{name}") };
            assert_eq!(front, ids[found], "{name}: of {beside}");
        }
    }
}
