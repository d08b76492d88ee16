//! Properties of every scheduler, and of some schedulers, under random arrivals, completions and
//! times.

use proptest::prelude::*;

use super::{Rig, bio, limits};
use crate::request::{Bio, IoPrio, Op, PrioClass, ProcessId, Request, RequestId};
use crate::scheduler::{AnyScheduler, QueueLimits, Scheduler, registry};
use crate::units::{Nanos, Sector};

/// One event.
#[derive(Clone, Debug)]
enum Step {
    Submit(Bio),
    Dispatch(u16),
    Complete(prop::sample::Index),
    Wait(Nanos),
}

/// Few sectors and sizes, so that bios are often adjacent.
fn any_bio() -> impl Strategy<Value = Bio> {
    let op = prop_oneof![4 => Just(Op::Read), 4 => Just(Op::Write), 1 => Just(Op::Discard)];
    let class = prop_oneof![
        6 => Just(PrioClass::None),
        1 => Just(PrioClass::RealTime),
        1 => Just(PrioClass::BestEffort),
        1 => Just(PrioClass::Idle),
    ];
    (op, 0u64..32, 1u32..4, any::<bool>(), prop::bool::weighted(0.05), class, 0u16..4).prop_map(
        |(op, place, size, sync, fua, class, cpu)| Bio {
            op,
            sector: Sector(place * 8),
            sectors: size * 8,
            sync,
            fua,
            idle: cpu % 2 == 0,
            background: false,
            process: ProcessId(cpu.into()),
            prio: IoPrio { class, level: 0 },
            cpu,
            thread: ProcessId(0),
            hw_queue: cpu / 2,
            owner: 0,
        },
    )
}

fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => any_bio().prop_map(Step::Submit),
        5 => (0u16..2).prop_map(Step::Dispatch),
        4 => any::<prop::sample::Index>().prop_map(Step::Complete),
        1 => (0u64..1_000_000_000).prop_map(|ns| Step::Wait(Nanos(ns))),
    ]
}

/// Performs one step; the request, if the step dispatched one.
fn take(rig: &mut Rig, step: &Step) -> Option<RequestId> {
    match step {
        Step::Submit(bio) => {
            rig.submit(*bio);
        }
        Step::Dispatch(hw_queue) => return rig.dispatch(*hw_queue),
        Step::Complete(index) if !rig.in_flight.is_empty() => {
            rig.complete(index.index(rig.in_flight.len()));
        }
        Step::Wait(span) => {
            rig.advance(*span);
        }
        Step::Complete(_) => {}
    }
    None
}

fn level(request: &Request) -> usize {
    match request.prio.class {
        PrioClass::RealTime => 0,
        PrioClass::None | PrioClass::BestEffort => 1,
        PrioClass::Idle => 2,
    }
}

/// Whether the scheduler must return a request for this hardware queue now.
fn promises_one(rig: &Rig, hw_queue: u16) -> bool {
    let mut waiting = rig.waiting.keys().map(|&id| &rig.requests[id]);
    match &rig.scheduler {
        AnyScheduler::None(_) => waiting.any(|r| r.hw_queue == hw_queue),
        // A request of the highest waiting level, if no higher level is in flight.
        AnyScheduler::MqDeadline(_) => {
            let in_flight = rig.in_flight.iter().map(|(id, _)| level(&rig.requests[*id])).min();
            waiting.map(level).min().is_some_and(|best| in_flight.is_none_or(|busy| best <= busy))
        }
        AnyScheduler::Kyber(kyber) => waiting.any(|r| {
            let (depth, in_use) = kyber.tokens(r.op);
            r.hw_queue == hw_queue && in_use < depth
        }),
        // Unless it idles, or requests in flight must not be disturbed.
        AnyScheduler::Cfq(cfq) => {
            let busy = !rig.in_flight.is_empty() || cfq.next_timer() != Nanos::NEVER;
            !busy && waiting.next().is_some()
        }
        // The same.
        AnyScheduler::Bfq2008(bfq) => {
            let busy = !rig.in_flight.is_empty() || bfq.next_timer() != Nanos::NEVER;
            !busy && waiting.next().is_some()
        }
        AnyScheduler::Cfq2008(cfq) => {
            let busy = !rig.in_flight.is_empty() || cfq.next_timer() != Nanos::NEVER;
            !busy && waiting.next().is_some()
        }
        // The other schedulers never hold requests back.
        _ => waiting.next().is_some(),
    }
}

/// The disk idles for a process without requests.
fn keeps_the_disk(rig: &Rig) -> bool {
    matches!(&rig.scheduler, AnyScheduler::Bfq(bfq) if bfq.keeps_the_disk_idle())
}

fn each_scheduler(
    mut test: impl FnMut(&'static str) -> Result<(), TestCaseError>,
) -> Result<(), TestCaseError> {
    registry::ALL.iter().try_for_each(|info| test(info.name))
}

proptest! {
    #[test]
    fn no_request_is_lost_or_served_twice_and_merging_keeps_every_sector(
        steps in prop::collection::vec(any_step(), 1..300)
    ) {
        each_scheduler(|name| {
            let mut rig = Rig::new(name, &[]);
            for step in &steps {
                // The rig checks that only waiting requests are dispatched.
                if let Some(id) = take(&mut rig, step) {
                    let bios = &rig.in_flight.last().expect("just dispatched").1;
                    prop_assert!(rig.covers_its_bios(id, bios), "{name}: {:?} of {bios:?}", rig.requests[id]);
                }
            }
            while !rig.waiting.is_empty() || !rig.in_flight.is_empty() {
                let before = (rig.waiting.len(), rig.in_flight.len());
                rig.dispatch_all();
                rig.complete_all();
                // A scheduler that holds requests back sets a timer.
                let due = rig.scheduler.next_timer();
                if (rig.waiting.len(), rig.in_flight.len()) == before {
                    prop_assert_ne!(due, Nanos::NEVER, "{} is stuck", name);
                    rig.advance(due.saturating_sub(rig.now));
                }
            }
            prop_assert_eq!(rig.bios.0, rig.bios.1, "{}", name);
            prop_assert!(rig.requests.is_empty());
            Ok(())
        })?;
    }

    #[test]
    fn a_request_that_may_go_is_never_held_back(steps in prop::collection::vec(any_step(), 1..300)) {
        each_scheduler(|name| {
            let mut rig = Rig::new(name, &[]);
            for step in &steps {
                let promised = matches!(step, Step::Dispatch(queue) if promises_one(&rig, *queue));
                let got = take(&mut rig, step).is_some();
                prop_assert!(got || !promised || keeps_the_disk(&rig), "{name} held back");
            }
            Ok(())
        })?;
    }

    #[test]
    fn none_and_noop_keep_the_order_of_arrival(bios in prop::collection::vec(any_bio(), 1..100)) {
        for name in ["none", "noop"] {
            let mut rig = Rig::new(name, &[]);
            for (place, bio) in bios.iter().enumerate() {
                // Far apart: no merges, and the sector gives the order of arrival.
                rig.submit(Bio { sector: Sector(place as u64 * 100), ..*bio });
            }
            for hw_queue in 0..2 {
                let mut order = Vec::new();
                while let Some(id) = rig.dispatch(hw_queue) {
                    // `none` has a queue for each CPU, and empties them one by one.
                    let cpu = if name == "none" { rig.requests[id].cpu } else { 0 };
                    order.push((cpu, rig.requests[id].sector));
                }
                prop_assert!(order.is_sorted(), "{name}: {order:?}");
            }
            prop_assert!(rig.waiting.is_empty());
        }
    }

    /// Once it has expired, the head of the FIFO opens the next batch of its direction. So a
    /// request behind `older` ones waits for at most that many batches, and the other direction's
    /// batches between them.
    #[test]
    fn an_expired_request_waits_no_longer_than_the_batches_allow(
        steps in prop::collection::vec((any::<bool>(), 0u64..1_000_000, 0u64..20, 0u8..3), 1..300),
        fifo_batch in 0u64..6, writes_starved in 1u64..4,
    ) {
        for name in ["deadline", "mq-deadline"] {
            let tunables = [
                ("fifo_batch", fifo_batch as i64), ("writes_starved", writes_starved as i64),
                ("read_expire", 40), ("write_expire", 90),
            ];
            let mut rig = Rig::new(name, &tunables);
            let mut latest: std::collections::BTreeMap<RequestId, u64> = Default::default();
            for &(write, place, wait_ms, dispatches) in &steps {
                rig.submit(bio(if write { Op::Write } else { Op::Read }, place * 16));
                rig.advance(Nanos::from_millis(wait_ms));
                for _ in 0..dispatches {
                    for &id in rig.waiting.keys() {
                        let request = &rig.requests[id];
                        let expire = if request.op.is_write() { 90 } else { 40 };
                        if latest.contains_key(&id) || rig.now < request.inserted + Nanos::from_millis(expire) {
                            continue;
                        }
                        let older = rig.waiting.keys().map(|&other| &rig.requests[other])
                            .filter(|other| other.op == request.op && other.inserted <= request.inserted)
                            .count() as u64;
                        let others = if request.op.is_write() {
                            older * writes_starved
                        } else {
                            older / writes_starved + 1
                        };
                        // The current batch, those before the request's batch, and then its own,
                        // which it opens.
                        let batches = 1 + (older - 1) + others;
                        latest.insert(id, rig.dispatched + fifo_batch.max(1) * batches);
                    }
                    if let Some(id) = rig.dispatch(0) {
                        let now = rig.dispatched - 1;
                        if let Some(allowed) = latest.remove(&id) {
                            prop_assert!(now <= allowed, "{}: dispatch {} of at most {}", name, now, allowed);
                        }
                        rig.complete(0);
                    }
                    let overdue = latest.iter().find(|&(_, &allowed)| rig.dispatched > allowed);
                    prop_assert!(overdue.is_none(), "{}: {:?} at {}", name, overdue, rig.dispatched);
                }
            }
        }
    }

    #[test]
    fn writes_wait_for_at_most_writes_starved_batches_of_reads(
        places in prop::collection::btree_set(0u64..100_000, 40..120), fifo_batch in 1usize..8, writes_starved in 0usize..5
    ) {
        for name in ["deadline", "mq-deadline"] {
            let tunables = [("fifo_batch", fifo_batch as i64), ("writes_starved", writes_starved as i64)];
            let mut rig = Rig::new(name, &tunables);
            for (turn, place) in places.iter().enumerate() {
                rig.submit(bio(if turn % 2 == 0 { Op::Read } else { Op::Write }, place * 16));
            }
            let mut reads_in_a_row = 0;
            let writes_wait = |rig: &Rig| rig.waiting.keys().any(|&id| rig.requests[id].op == Op::Write);
            while writes_wait(&rig) {
                let id = rig.dispatch(0).expect("writes wait");
                reads_in_a_row = if rig.requests[id].op == Op::Read { reads_in_a_row + 1 } else { 0 };
                prop_assert!(reads_in_a_row <= fifo_batch * writes_starved, "{}: {} reads", name, reads_in_a_row);
            }
        }
    }

    #[test]
    fn mq_deadline_serves_no_lower_class_before_a_higher_one_unless_it_has_aged(
        steps in prop::collection::vec(any_step(), 1..300), aging_ms in 0u64..2000
    ) {
        let mut rig = Rig::new("mq-deadline", &[("prio_aging_expire", aging_ms as i64)]);
        for step in &steps {
            let levels = rig.waiting.keys().chain(rig.in_flight.iter().map(|(id, _)| id));
            let highest = levels.map(|&id| level(&rig.requests[id])).min();
            if let Some(id) = take(&mut rig, step) {
                let request = &rig.requests[id];
                let ticks = super::limits().ticks;
                let age = ticks.at(rig.now) - ticks.at(request.inserted);
                let aged = age >= ticks.span(Nanos::from_millis(aging_ms));
                let highest = highest.expect("one was waiting");
                prop_assert!(aged || highest == level(request), "{:?} at {}", request, rig.now);
            }
        }
    }

    #[test]
    fn kyber_never_hands_out_more_tokens_than_a_domain_has(
        steps in prop::collection::vec(any_step(), 100..600)
    ) {
        // With targets of zero every latency is too high: depths change all the time.
        let mut rig = Rig::new("kyber", &[("read_lat_nsec", 0), ("write_lat_nsec", 100_000_000)]);
        for step in &steps {
            let AnyScheduler::Kyber(kyber) = &rig.scheduler else { unreachable!() };
            let before = [Op::Read, Op::Write, Op::Discard].map(|op| (op, kyber.tokens(op)));
            let dispatched = take(&mut rig, step);
            let AnyScheduler::Kyber(kyber) = &rig.scheduler else { unreachable!() };
            for (op, (depth, in_use)) in before {
                let held = rig.in_flight.iter().filter(|(id, _)| rig.requests[*id].op == op).count();
                prop_assert_eq!(kyber.tokens(op).1 as usize, held);
                if dispatched.is_some_and(|id| rig.requests[id].op == op) {
                    prop_assert!(in_use < depth, "a {op:?} beyond {depth}");
                }
            }
        }
    }
}

#[test]
fn every_default_is_within_its_bounds_and_every_table_builds_its_scheduler() {
    for info in registry::ALL {
        for tunable in info.tunables {
            assert!((tunable.min..=tunable.max).contains(&tunable.default), "{}:{}", info.name, tunable.name);
        }
        let limits = QueueLimits { hw_queues: 1, cpus: 1, ..limits() };
        assert_eq!(Rig::with_limits(info.name, &[], limits).scheduler.waiting(), 0);
    }
}
