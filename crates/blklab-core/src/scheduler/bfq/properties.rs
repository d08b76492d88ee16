//! BFQ's guarantees, under random arrivals, completions and times.

use proptest::prelude::*;

use super::super::testing::{Rig, bio, limits};
use super::super::{AnyScheduler, QueueLimits, Task, Tasks};
use super::Bfq;
use crate::request::{Bio, IoPrio, Op, PrioClass, ProcessId};
use crate::scheduler::journal::Decision;
use crate::units::Nanos;

const CLASSES: [PrioClass; 3] = [PrioClass::RealTime, PrioClass::BestEffort, PrioClass::Idle];
/// The idle class gets a turn after this long without one.
const IDLE_CLASS_NS: u64 = 200_000_000;

fn machine(rotational: bool) -> QueueLimits {
    QueueLimits { rotational, hw_queues: 1, cpus: 1, nr_requests: 256, ..limits() }
}

fn rig(classes: &[PrioClass], rotational: bool, tunables: &[(&str, i64)]) -> Rig {
    let task = |&class| Task { prio: IoPrio { class, level: 4 }, ..Task::default() };
    let tasks = Tasks::new(classes.iter().map(task).collect(), Tasks::default().cgroups().to_vec());
    let mut rig = Rig::with_tasks("bfq", tunables, machine(rotational), tasks);
    rig.scheduler.journal().expect("bfq has one").keep(Nanos::ZERO, 100_000);
    rig
}

fn bfq(rig: &Rig) -> &Bfq {
    let AnyScheduler::Bfq(bfq) = &rig.scheduler else { unreachable!() };
    bfq
}

fn read(process: usize, sector: u64) -> Bio {
    Bio { process: ProcessId(process as u32), ..bio(Op::Read, sector) }
}

#[derive(Clone, Debug)]
enum Step {
    Read { process: usize, place: u64 },
    Dispatch,
    Complete(prop::sample::Index),
    Wait(u64),
}

fn any_step(processes: usize) -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0..processes, 0u64..1000).prop_map(|(process, place)| Step::Read { process, place }),
        5 => Just(Step::Dispatch),
        4 => any::<prop::sample::Index>().prop_map(Step::Complete),
        2 => (0u64..30_000).prop_map(Step::Wait),
    ]
}

/// The class in service, and whether processes of each class wait; as indices of [`CLASSES`].
fn in_service(rig: &Rig) -> Option<u8> {
    let bfq = bfq(rig);
    bfq.in_service.map(|q| bfq.queues[q.index()].kind.class)
}

fn take(rig: &mut Rig, step: &Step) {
    match step {
        // Far from each other, so that no requests merge.
        &Step::Read { process, place } => {
            rig.submit(read(process, (process as u64 * 2000 + place) * 100_000));
        }
        Step::Dispatch => drop(rig.dispatch(0)),
        Step::Complete(index) if !rig.in_flight.is_empty() => {
            rig.complete(index.index(rig.in_flight.len()));
        }
        Step::Complete(_) => {}
        &Step::Wait(us) => {
            rig.advance(Nanos::from_micros(us));
        }
    }
}

proptest! {
    #[test]
    fn no_lower_class_has_the_disk_while_a_real_time_process_waits(
        steps in prop::collection::vec(any_step(6), 1..400), low_latency in 0i64..2, rotational: bool
    ) {
        let classes: Vec<_> = (0..6).map(|process| CLASSES[process % 3]).collect();
        let mut rig = rig(&classes, rotational, &[("low_latency", low_latency)]);
        for step in &steps {
            take(&mut rig, step);
            let waits = rig.waiting.keys().any(|&id| rig.requests[id].process.0.is_multiple_of(3));
            // The idle class may have a request in between.
            prop_assert!(!(waits && in_service(&rig) == Some(1)), "after {:?} at {}", step, rig.now);
        }
    }

    #[test]
    fn the_idle_class_has_the_disk_only_when_no_other_process_waits_or_after_a_fifth_of_a_second(
        steps in prop::collection::vec(any_step(6), 1..400), low_latency in 0i64..2
    ) {
        let classes: Vec<_> = (0..6).map(|process| CLASSES[1 + process % 2]).collect();
        let is_idle = |process: ProcessId| process.0 % 2 == 1;
        let mut rig = rig(&classes, true, &[("low_latency", low_latency)]);
        let (mut first, mut turns) = (Nanos::NEVER, 0);
        for step in &steps {
            let others_wait = rig.waiting.keys().any(|&id| !is_idle(rig.requests[id].process));
            take(&mut rig, step);
            let (notes, _) = rig.scheduler.journal().expect("kept").take();
            for note in notes {
                let begins = matches!(note.decision, Decision::SliceStart { .. });
                if begins && is_idle(note.process) && others_wait {
                    first = first.min(rig.now);
                    turns += 1;
                    // The next queue may have been chosen some time before.
                    let most = 2 + (rig.now - first).0 / IDLE_CLASS_NS;
                    prop_assert!(turns <= most, "{} turns from {} to {}", turns, first, rig.now);
                }
            }
        }
    }

    /// Also after the process was sequential for long, and after any think times.
    #[test]
    fn a_process_that_stops_asking_holds_the_disk_no_longer_than_slice_idle(
        steps in prop::collection::vec(any_step(4), 1..300), slice_idle_ms in 0i64..15, rotational: bool
    ) {
        let tunables = [("low_latency", 0), ("slice_idle", slice_idle_ms)];
        let mut rig = rig(&[PrioClass::BestEffort; 4], rotational, &tunables);
        for step in &steps {
            take(&mut rig, step);
        }
        rig.complete_all();
        while !rig.waiting.is_empty() {
            if rig.dispatch(0).is_none() {
                let begun = rig.now;
                rig.advance(Nanos::from_millis(slice_idle_ms as u64));
                prop_assert!(rig.dispatch(0).is_some(), "idle from {} to {}", begun, rig.now);
            }
            rig.complete_all();
        }
    }

    /// With equal weights each queue gets a turn after all others have used a budget's sectors, one
    /// of them perhaps twice. This holds for queues: processes that start together may share one
    /// queue, and there a process with read-ahead starves the others.
    #[test]
    fn no_process_starves(
        service_ms in prop::collection::vec(1u64..5, 2..6), sequential in prop::collection::vec(any::<bool>(), 7),
        idle in prop::option::of(0usize..5), rotational: bool
    ) {
        let processes = service_ms.len();
        let mut classes = vec![PrioClass::BestEffort; processes];
        let idle = idle.filter(|&idle| idle < processes);
        idle.iter().for_each(|&idle| classes[idle] = PrioClass::Idle);
        let mut rig = rig(&classes, rotational, &[("low_latency", 0)]);
        let mut places = vec![0u64; processes];
        let mut ask = |rig: &mut Rig, process: usize| {
            let step = if sequential[process] { 64 } else { 50_000 };
            places[process] += step;
            let sector = process as u64 * 200_000_000 + places[process] % 100_000_000;
            rig.submit(Bio { sectors: 64, ..read(process, sector) });
        };
        let begin = |process: usize| Nanos::from_millis(700 * process as u64);
        let mut served: Vec<_> = (0..processes).map(begin).collect();
        let mut begun = 0;
        let turn_requests = 16 * 1024 / 64;
        let longest = Nanos::from_millis(1000 + 2 * turn_requests * service_ms.iter().sum::<u64>());
        while rig.now < Nanos::from_secs(60) {
            while begun < processes && begin(begun) <= rig.now {
                ask(&mut rig, begun);
                begun += 1;
            }
            let Some(id) = rig.dispatch(0) else {
                rig.advance(Nanos::from_millis(1));
                continue;
            };
            let process = rig.requests[id].process.0 as usize;
            served[process] = rig.now;
            rig.advance(Nanos::from_millis(service_ms[process]));
            rig.complete(0);
            ask(&mut rig, process);
            for (process, &last) in served.iter().enumerate() {
                let waited = rig.now.saturating_sub(last);
                prop_assert!(waited <= longest, "process {} has waited {}", process, waited);
            }
        }
    }
}
