//! A process moves to another cgroup. What BFQ has learnt of it goes with it: its think time, its seek
//! history, its budgets and its weight-raising belong to its queue, which moves, with the requests that
//! wait in it. A queue that it shares stays; the process gets a new one with its next request. So it
//! does for its asynchronous requests: their queues belong to the cgroups.
//!
//! Each bio has its cgroup, and a move takes effect at the first bio of the new one, before BFQ looks
//! for a request to merge it with.
//!
//! Follows `bfq_bic_update_cgroup` of Linux 7.3 and its callees: `__bfq_bic_change_cgroup`,
//! `bfq_sync_bfqq_move`, `bfq_bfqq_move`. As there, the groups' counts of allocated requests stay as they
//! are, and a queue that is empty when it moves out of service counts as one with requests until its next
//! one completes.

use super::Bfq;
use super::parts::QueueId;
use super::parts::tasks::TaskIndex;
use crate::scheduler::CgroupId;
use crate::scheduler::journal::EndReason;

impl Bfq {
    /// `__bfq_bic_change_cgroup`.
    #[cold]
    pub(super) fn change_cgroup(&mut self, task: TaskIndex, to: CgroupId) {
        self.settled = None;
        self.tasks.set_cgroup(task, to);
        if let Some(q) = self.tasks.queue(task, false)
            && self.wf2q.group(q) != to
        {
            self.set_task_queue(task, false, None);
            self.release_process_ref(q);
        }
        if let Some(q) = self.tasks.queue(task, true) {
            self.move_sync_queue(task, q, to);
        }
    }

    /// `bfq_sync_bfqq_move`.
    fn move_sync_queue(&mut self, task: TaskIndex, q: QueueId, to: CgroupId) {
        if self.sharing.target(q).is_none() && !self.sharing.is_shared(q) {
            self.move_queue(q, to);
            return;
        }
        let mut chain = std::iter::successors(Some(q), |&q| self.sharing.target(q));
        if chain.any(|q| self.wf2q.group(q) != to) {
            self.put_cooperators(q);
            self.set_task_queue(task, true, None);
            self.release_process_ref(q);
        }
    }

    /// `bfq_bfqq_move`.
    fn move_queue(&mut self, q: QueueId, to: CgroupId) {
        if self.wf2q.group(q) == to {
            return;
        }
        let is_pending = self.wf2q.uncount_pending(q);
        if self.in_service == Some(q) {
            self.expire(q, false, EndReason::Preempted);
        }
        self.wf2q.leave_group(q, self.clock.run);
        self.replace_last_created(q, None);
        self.positions.leave(q, self.group(q) as usize);
        self.wf2q.enter_group(q, to);
        if is_pending {
            self.wf2q.count_pending(q);
        }
        if self.wf2q.is_busy(q) {
            if !self.queueing.is_flash_with_queueing() {
                self.move_in_positions(q);
            }
            let was_expected = self.queues[q.index()].turn.take_expected();
            self.wf2q.activate(q, was_expected, self.clock.run);
        }
        if self.in_service.is_none() && self.counts.in_driver() == 0 {
            self.counts.run_hw_queues();
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::request::Op::{Read, Write};
    use crate::request::{Bio, ProcessId};
    use crate::scheduler::journal::Decision;
    use crate::scheduler::tasks::Cgroup;
    use crate::scheduler::testing::{Rig, bio, limits};
    use crate::scheduler::{AnyScheduler, QueueLimits, Task, Tasks};
    use crate::units::Nanos;

    const PROCESSES: u32 = 3;
    const FAR: u64 = 500_000_000;

    /// Three processes, A, B and C, that begin in the first group; and their numbers in the second and
    /// in the root. The second group has five times the weight of the first.
    fn rig(rotational: bool, tunables: &[(&str, i64)]) -> Rig {
        let group = |weight| Cgroup { parent: Some(CgroupId::ROOT), weight };
        let root = Cgroup { parent: None, weight: Cgroup::DEFAULT_WEIGHT };
        let task = |number: u32| Task {
            cgroup: [CgroupId(1), CgroupId(2), CgroupId::ROOT][(number / PROCESSES) as usize],
            mover: (number >= PROCESSES).then_some(ProcessId(number % PROCESSES)),
            ..Task::default()
        };
        let tasks = Tasks::new((0..3 * PROCESSES).map(task).collect(), vec![root, group(100), group(500)]);
        let machine = QueueLimits { rotational, hw_queues: 1, cpus: 1, nr_requests: 256, ..limits() };
        let mut rig = Rig::with_tasks("bfq", tunables, machine, tasks);
        rig.keep_journal();
        rig
    }

    const A: u32 = 0;
    const C: u32 = 2;

    /// The number of a process in the second group.
    fn moved(process: u32) -> u32 {
        process + PROCESSES
    }

    fn of(number: u32, sector: u64) -> Bio {
        Bio { process: ProcessId(number), ..bio(Read, sector) }
    }

    fn bfq(rig: &Rig) -> &Bfq {
        let AnyScheduler::Bfq(bfq) = &rig.scheduler else { unreachable!() };
        bfq
    }

    fn queue(rig: &Rig, process: u32, sync: bool) -> Option<QueueId> {
        bfq(rig).tasks.queue(TaskIndex::of(ProcessId(process)), sync)
    }

    fn group(rig: &Rig, q: QueueId) -> CgroupId {
        bfq(rig).wf2q.group(q)
    }

    /// Serves the next request.
    fn serve(rig: &mut Rig) -> Option<u64> {
        let id = rig.dispatch(0)?;
        let sector = rig.requests[id].sector.0;
        rig.advance(Nanos::from_millis(1));
        rig.complete(0);
        Some(sector)
    }

    #[test]
    fn a_process_that_moves_keeps_its_queue_and_what_was_learnt_of_it() {
        let mut rig = rig(true, &[]);
        for place in 0..50 {
            rig.submit(of(A, place * 8));
            serve(&mut rig).expect("it is alone");
            // It thinks for longer than the disk would idle.
            rig.advance(Nanos::from_millis(20));
        }
        let q = queue(&rig, A, true).expect("it has read");
        let state = |rig: &Rig| {
            let queue = &bfq(rig).queues[q.index()];
            (queue.raising.coefficient(), queue.learnt.has_short_ttime(), queue.turn.max_budget())
        };
        let before = state(&rig);
        assert!(before.0 > 1 && !before.1, "{before:?}");
        rig.submit(of(moved(A), FAR));
        assert_eq!((queue(&rig, A, true), group(&rig, q)), (Some(q), CgroupId(2)));
        assert_eq!(state(&rig), before);
        assert_eq!(queue(&rig, moved(A), true), None, "it is one process");
        assert_eq!(serve(&mut rig), Some(FAR));
    }

    #[test]
    fn its_waiting_requests_move_with_it_and_share_as_its_new_group_does() {
        // A's part of the first requests. A first turn has 170 of them.
        let share = |moves: bool| {
            let mut rig = rig(true, &[("low_latency", 0), ("max_budget", 64)]);
            for place in 0..1200 {
                rig.submit(Bio { sectors: 64, ..of(A, place * 1000) });
                rig.submit(Bio { sectors: 64, ..of(C, FAR + place * 1000) });
            }
            if moves {
                rig.submit(of(moved(A), 1_200_000));
            }
            let served: Vec<_> = (0..1400).filter_map(|_| serve(&mut rig)).collect();
            served.iter().filter(|&&sector| sector < FAR).count() as f64 / served.len() as f64
        };
        let (with, without) = (share(true), share(false));
        assert!((without - 0.5).abs() < 0.08, "{without}");
        assert!((with - 5.0 / 6.0).abs() < 0.08, "{with}");
    }

    #[test]
    fn the_disk_does_not_idle_for_it_any_more() {
        let mut rig = rig(true, &[("low_latency", 0)]);
        rig.submit(of(A, 0));
        serve(&mut rig).expect("it is alone");
        assert!(bfq(&rig).keeps_the_disk_idle());
        let q = queue(&rig, A, true).expect("it has read");
        rig.submit(of(C, 2 * FAR));
        rig.decisions();
        assert_eq!(rig.scheduler.woken(), None);
        rig.submit(of(moved(A), FAR));
        assert_eq!(rig.scheduler.woken(), Some(0), "another request may go");
        let ends = |(_, decision): &(_, Decision)| {
            matches!(decision, Decision::SliceEnd { reason: EndReason::Preempted, .. })
        };
        assert!(rig.decisions().iter().any(ends));
        assert_eq!((bfq(&rig).in_service, group(&rig, q)), (None, CgroupId(2)));
        assert!(serve(&mut rig).is_some());
    }

    #[test]
    fn its_asynchronous_writes_go_to_the_queue_of_the_new_group() {
        let mut rig = rig(true, &[]);
        let write = |number, sector| Bio { op: Write, sync: false, ..of(number, sector) };
        rig.submit(write(A, 0));
        let old = queue(&rig, A, false).expect("it has written");
        rig.submit(write(moved(A), FAR));
        let new = queue(&rig, A, false).expect("it has written");
        assert_eq!((group(&rig, old), group(&rig, new)), (CgroupId(1), CgroupId(2)));
        rig.submit(write(C, 1000));
        assert_eq!(queue(&rig, C, false), Some(old), "the old group still has it");
        rig.submit(write(A, 2000));
        assert_eq!(queue(&rig, A, false), Some(old), "and the process is back");
    }

    #[test]
    fn a_process_that_shares_a_queue_leaves_it_and_the_other_one_stays() {
        // On flash that queues commands, queues that are created together become one.
        let mut rig = rig(false, &[]);
        rig.submit(of(A, 0));
        rig.submit(of(C, FAR));
        let shared = queue(&rig, C, true).expect("it has read");
        assert_eq!(queue(&rig, A, true), Some(shared));
        rig.submit(of(moved(A), 2 * FAR));
        let own = queue(&rig, A, true).expect("it has read");
        assert_eq!((group(&rig, shared), group(&rig, own)), (CgroupId(1), CgroupId(2)));
        assert_eq!(queue(&rig, C, true), Some(shared));
        while !rig.waiting.is_empty() {
            if serve(&mut rig).is_none() {
                rig.advance(Nanos::from_millis(1));
            }
        }
    }

    #[derive(Clone, Debug)]
    enum Step {
        Submit { number: u32, place: u64, sync: bool },
        Dispatch,
        Complete(prop::sample::Index),
        Wait(u64),
        Exit(u32),
    }

    fn any_step() -> impl Strategy<Value = Step> {
        prop_oneof![
            8 => (0..3 * PROCESSES, 0u64..4000, prop::bool::weighted(0.7))
                .prop_map(|(number, place, sync)| Step::Submit { number, place, sync }),
            6 => Just(Step::Dispatch),
            5 => any::<prop::sample::Index>().prop_map(Step::Complete),
            3 => (0u64..30_000).prop_map(Step::Wait),
            1 => (0..3 * PROCESSES).prop_map(Step::Exit),
        ]
    }

    proptest! {
        /// The mock checks that no request is lost or served twice.
        #[test]
        fn with_any_moves_the_sums_of_weights_are_right_and_every_request_is_served(
            steps in prop::collection::vec(any_step(), 1..300), rotational: bool, low_latency in 0i64..2
        ) {
            let mut rig = rig(rotational, &[("low_latency", low_latency)]);
            for step in steps {
                match step {
                    Step::Submit { number, place, sync } => {
                        let op = if sync { Read } else { Write };
                        rig.submit(Bio { op, sync, ..of(number, place * 8) });
                    }
                    Step::Dispatch => drop(rig.dispatch(0)),
                    Step::Complete(_) if rig.in_flight.is_empty() => {}
                    Step::Complete(index) => drop(rig.complete(index.index(rig.in_flight.len()))),
                    Step::Wait(us) => drop(rig.advance(Nanos::from_micros(us))),
                    Step::Exit(number) => rig.exit(ProcessId(number)),
                }
                bfq(&rig).wf2q.check_sums();
            }
            rig.complete_all();
            let mut idle_ms = 0;
            while !rig.waiting.is_empty() {
                if serve(&mut rig).is_some() {
                    idle_ms = 0;
                    continue;
                }
                rig.advance(Nanos::from_millis(1));
                idle_ms += 1;
                prop_assert!(idle_ms <= 300, "{} wait", rig.waiting.len());
            }
            bfq(&rig).wf2q.check_sums();
        }
    }
}
