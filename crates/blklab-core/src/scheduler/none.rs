//! `none`: requests are dispatched in the order of arrival.
//!
//! Follows Linux 7.3 (`blk-mq.c` with no elevator). There is hardly anything to schedule: without
//! an elevator a request is created only when it gets one of the disk's own tags, so it goes
//! straight to the driver; a process that finds no tag sleeps until one is free. The order of those
//! sleepers, and the merges that matter (in the submitter's plug), belong to the block layer. What
//! remains are the software queues, one for each CPU, for requests that the driver could not take at once.
//! A bio may still merge into one of the latest eight that wait on its CPU (`blk_bio_list_merge`). A run of the
//! hardware queue takes all of them, CPU by CPU, or where the driver has lately refused requests one from each CPU
//! in turn. Requests that the driver has refused are in a list of the block layer ([`crate::block`]).

use std::collections::VecDeque;
use std::ops::Range;

use super::shared::merge::find_in_list;
use super::{Generation, Info, Merge, Queue, QueueLimits, Scheduler, Settings, Tasks};
use crate::request::{Bio, RequestId};
use crate::units::Sector;

/// The state of `none`.
pub struct NoScheduler {
    /// The software queue of each CPU.
    fifos: Vec<VecDeque<RequestId>>,
    hw_queues: Vec<HwQueue>,
    waiting: usize,
}

/// The software queues of one hardware queue.
struct HwQueue {
    /// The CPUs that use it, which have neighbouring numbers.
    cpus: Range<usize>,
    waiting: usize,
    /// Where one request is taken from each CPU in turn, the next one comes from this CPU (`dispatch_from`).
    next: usize,
}

impl NoScheduler {
    /// A request that waits for the hardware queue, where one is taken from each CPU in turn.
    pub fn dispatch_in_turn(&mut self, hw_queue: u16) -> Option<RequestId> {
        let HwQueue { cpus, next, .. } = &self.hw_queues[usize::from(hw_queue)];
        let cpu = self.first_busy(*next..cpus.end).or_else(|| self.first_busy(cpus.start..*next))?;
        let queue = &mut self.hw_queues[usize::from(hw_queue)];
        queue.next = if cpu + 1 == queue.cpus.end { queue.cpus.start } else { cpu + 1 };
        self.take(hw_queue, cpu)
    }

    #[inline]
    fn first_busy(&self, mut cpus: Range<usize>) -> Option<usize> {
        cpus.find(|&cpu| !self.fifos[cpu].is_empty())
    }

    #[inline]
    fn take(&mut self, hw_queue: u16, cpu: usize) -> Option<RequestId> {
        self.hw_queues[usize::from(hw_queue)].waiting -= 1;
        self.waiting -= 1;
        self.fifos[cpu].pop_front()
    }

    /// The queue of a request that comes.
    #[inline]
    fn come(&mut self, queue: &Queue<'_>, id: RequestId) -> &mut VecDeque<RequestId> {
        let request = &queue.requests[id];
        self.hw_queues[usize::from(request.hw_queue)].waiting += 1;
        self.waiting += 1;
        &mut self.fifos[usize::from(queue.limits.software_queue(request.cpu))]
    }
}

impl Scheduler for NoScheduler {
    const INFO: Info = Info {
        name: "none",
        generation: Generation::MultiQueue,
        summary: "no scheduling: requests go to the disk in order of arrival (multi-queue)",
        follows: "Linux 7.3, blk-mq without an elevator",
        // No shared lock: each software queue belongs to one CPU.
        lock_ns: 0,
        tunables: &[],
    };

    fn new(_: &Settings, limits: &QueueLimits, _: &Tasks) -> Self {
        let of = |hw_queue: u16| {
            let first = limits.first_cpu(hw_queue);
            let count = (first..limits.cpus).take_while(|&cpu| limits.hw_queue(cpu) == hw_queue).count();
            let first = usize::from(first);
            HwQueue { cpus: first..first + count, waiting: 0, next: first }
        };
        NoScheduler {
            fifos: vec![VecDeque::new(); usize::from(limits.cpus)],
            hw_queues: (0..limits.hw_queues).map(of).collect(),
            waiting: 0,
        }
    }

    fn find_merge(&mut self, queue: &Queue<'_>, bio: &Bio) -> Option<Merge> {
        let cpu = usize::from(queue.limits.software_queue(bio.cpu));
        let newest_first = self.fifos[cpu].iter().rev().copied();
        find_in_list(queue, bio, newest_first)
    }

    fn bio_merged(&mut self, _: &Queue<'_>, _: Merge, _: Sector) {}

    fn neighbour(&self, _: &Queue<'_>, _: RequestId, _: bool) -> Option<RequestId> {
        None
    }

    fn requests_merged(&mut self, _: &Queue<'_>, _: RequestId, _: RequestId) {
        unreachable!("neighbour() offers nothing");
    }

    #[inline]
    fn insert(&mut self, queue: &Queue<'_>, id: RequestId) {
        self.come(queue, id).push_back(id);
    }

    fn insert_first(&mut self, queue: &Queue<'_>, id: RequestId) -> bool {
        self.come(queue, id).push_front(id);
        true
    }

    #[inline]
    fn dispatch(&mut self, _: &Queue<'_>, hw_queue: u16) -> Option<RequestId> {
        let queue = &self.hw_queues[usize::from(hw_queue)];
        if queue.waiting == 0 {
            return None;
        }
        let cpu = self.first_busy(queue.cpus.clone())?;
        self.take(hw_queue, cpu)
    }

    fn completed(&mut self, _: &Queue<'_>, _: RequestId) {}

    #[inline]
    fn has_work(&self, hw_queue: u16) -> bool {
        self.hw_queues[usize::from(hw_queue)].waiting > 0
    }

    #[inline]
    fn waiting(&self) -> usize {
        self.waiting
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::Op;
    use crate::scheduler::AnyScheduler;
    use crate::scheduler::testing::{Rig, Submitted, bio};

    fn filled() -> Rig {
        let mut rig = Rig::new("none", &[]);
        for (cpu, sector) in [(1, 100), (0, 200), (0, 300), (1, 400), (1, 500)] {
            rig.submit(Bio { cpu, hw_queue: 0, ..bio(Op::Read, sector) });
        }
        rig
    }

    #[test]
    fn a_run_takes_all_that_waits_cpu_by_cpu() {
        assert_eq!(filled().dispatch_all(), [200, 300, 100, 400, 500]);
    }

    #[test]
    fn one_by_one_each_cpu_has_its_turn() {
        let mut rig = filled();
        let AnyScheduler::None(none) = &mut rig.scheduler else { unreachable!("it was made as `none`") };
        let order: Vec<_> = std::iter::from_fn(|| none.dispatch_in_turn(0)).collect();
        assert_eq!(none.waiting(), 0);
        let sectors: Vec<_> = order.iter().map(|&id| rig.requests[id].sector.0).collect();
        assert_eq!(sectors, [200, 100, 300, 400, 500]);
    }

    #[test]
    fn a_bio_merges_with_requests_of_its_own_cpu_only() {
        let merges = |cpu| {
            let submitted = filled().submit(Bio { cpu, hw_queue: 0, ..bio(Op::Read, 308) });
            matches!(submitted, Submitted::Merged(_))
        };
        assert_eq!([0, 1].map(merges), [true, false]);
    }
}
