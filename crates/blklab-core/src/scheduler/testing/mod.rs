//! A mock block layer and driver that calls any scheduler through its trait and keeps its own
//! records: which requests wait, which bios each holds, what is in flight.

mod deadline_rules;
mod merge_rules;
mod properties;
pub(in crate::scheduler) mod world;

use std::collections::BTreeMap;

use crate::request::{Bio, BioChain, IoPrio, Op, PrioClass, ProcessId, Request, RequestId, RequestSlab};
use crate::scheduler::journal::Decision;
use crate::scheduler::{AnyScheduler, Merge, Queue, QueueLimits, Tasks, registry};
use crate::ticks::Ticks;
use crate::units::{Nanos, Sector};

/// Two hardware queues of two CPUs each; small requests, so that some reach the size limit.
pub(in crate::scheduler) fn limits() -> QueueLimits {
    QueueLimits {
        rotational: false,
        queue_depth: 32,
        hw_queues: 2,
        nr_requests: 64,
        max_sectors: 64,
        wbt_target: Nanos::ZERO,
        wbt_depth: 32,
        cpus: 4,
        ticks: Ticks::per_second(1000),
        merges_priorities: false,
        kernel: crate::kernel::Kernel::LATEST,
    }
}

/// A synchronous bio of eight sectors on CPU 0.
pub(in crate::scheduler) fn bio(op: Op, sector: u64) -> Bio {
    Bio {
        op,
        sector: Sector(sector),
        sectors: 8,
        sync: true,
        fua: false,
        idle: true,
        background: false,
        process: ProcessId(0),
        prio: IoPrio::default(),
        cpu: 0,
        thread: ProcessId(0),
        hw_queue: 0,
        owner: 0,
    }
}

/// The same with a priority class.
pub(in crate::scheduler) fn bio_of(class: PrioClass, op: Op, sector: u64) -> Bio {
    Bio { prio: IoPrio { class, level: 4 }, ..bio(op, sector) }
}

/// What happened to a bio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::scheduler) enum Submitted {
    /// It extended a waiting request.
    Merged(Merge),
    /// It became a request that was appended to a waiting one.
    Joined(RequestId),
    /// It became a request that waits.
    Waits(RequestId),
}

/// The mock.
pub(in crate::scheduler) struct Rig {
    pub scheduler: AnyScheduler,
    pub requests: RequestSlab,
    pub limits: QueueLimits,
    pub tasks: Tasks,
    pub now: Nanos,
    /// Requests in the scheduler, with the bios of each.
    pub waiting: BTreeMap<RequestId, Vec<Bio>>,
    /// Requests in flight, oldest first, with the bios of each.
    pub in_flight: Vec<(RequestId, Vec<Bio>)>,
    /// Requests dispatched so far.
    pub dispatched: u64,
    /// Bios submitted, and completed, so far.
    pub bios: (u64, u64),
    /// Hardware queues that the scheduler woke.
    pub woken: Vec<u16>,
}

macro_rules! queue {
    ($rig:expr) => {
        Queue {
            now: $rig.now,
            requests: &$rig.requests,
            in_flight: $rig.in_flight.len() as u32,
            limits: &$rig.limits,
            tasks: &$rig.tasks,
        }
    };
}

impl Rig {
    pub fn new(name: &str, tunables: &[(&str, i64)]) -> Rig {
        Rig::with_limits(name, tunables, limits())
    }

    pub fn with_limits(name: &str, tunables: &[(&str, i64)], limits: QueueLimits) -> Rig {
        Rig::with_tasks(name, tunables, limits, Tasks::default())
    }

    pub fn with_tasks(name: &str, tunables: &[(&str, i64)], limits: QueueLimits, tasks: Tasks) -> Rig {
        let info = registry::info(name).expect("registered");
        let mut settings = info.settings();
        for (tunable, value) in tunables {
            settings.set(tunable, &value.to_string()).expect("within bounds");
        }
        Rig {
            scheduler: AnyScheduler::new(name, &settings, &limits, &tasks).expect("registered"),
            requests: RequestSlab::default(),
            limits,
            tasks,
            now: Nanos::ZERO,
            waiting: BTreeMap::new(),
            in_flight: Vec::new(),
            dispatched: 0,
            bios: (0, 0),
            woken: Vec::new(),
        }
    }

    /// Whether the request may take the bio; if it would be too large, it takes no more.
    fn has_room(&mut self, merge: Merge, bio: &Bio) -> bool {
        let (Merge::Back(id) | Merge::Front(id)) = merge;
        assert_eq!(crate::scheduler::adjoins(&queue!(self), id, bio), Some(merge), "for {bio:?}");
        let request = &mut self.requests[id];
        request.full = request.sectors + bio.sectors > self.limits.max_sectors;
        !request.full
    }

    pub fn submit(&mut self, bio: Bio) -> Submitted {
        self.bios.0 += 1;
        if let Some(merge) = self.scheduler.find_merge(&queue!(self), &bio)
            && self.has_room(merge, &bio)
        {
            let (Merge::Back(id) | Merge::Front(id)) = merge;
            self.waiting.get_mut(&id).expect("offered a request that waits").push(bio);
            let request = &mut self.requests[id];
            let old = request.sector;
            request.sector = old.min(bio.sector);
            request.sectors += bio.sectors;
            let after = matches!(merge, Merge::Back(_));
            let neighbour = self.scheduler.neighbour(&queue!(self), id, after);
            self.scheduler.bio_merged(&queue!(self), merge, old);
            if let Some(other) = neighbour {
                let (kept, gone) = if after { (id, other) } else { (other, id) };
                self.join(kept, gone);
            }
            self.check();
            return Submitted::Merged(merge);
        }
        self.enter(bio)
    }

    /// Inserts a bio that became a request in a plug, without a search for a bio merge.
    pub fn insert_from_plug(&mut self, bio: Bio) -> Submitted {
        self.bios.0 += 1;
        self.enter(bio)
    }

    fn enter(&mut self, bio: Bio) -> Submitted {
        let id = self.requests.insert(Request {
            op: bio.op,
            sector: bio.sector,
            sectors: bio.sectors,
            sync: bio.sync,
            fua: bio.fua,
            idle: bio.idle,
            process: bio.process,
            prio: bio.prio,
            cpu: bio.cpu,
            thread: bio.thread,
            hw_queue: bio.hw_queue,
            clock_stands: false,
            full: false,
            inserted: self.now,
            issued: Nanos::ZERO,
            owner: 0,
            rest: BioChain::default(),
        });
        let joined = self.scheduler.find_join(&queue!(self), id);
        self.waiting.insert(id, vec![bio]);
        if let Some(mut kept) = joined {
            self.join(kept, id);
            while let Some(further) = self.scheduler.find_join(&queue!(self), kept) {
                self.join(further, kept);
                kept = further;
            }
            self.check();
            return Submitted::Joined(kept);
        }
        self.scheduler.insert(&queue!(self), id);
        self.check();
        Submitted::Waits(id)
    }

    fn join(&mut self, kept: RequestId, gone: RequestId) {
        assert!(crate::scheduler::can_join(&queue!(self), kept, gone), "{kept:?} and {gone:?} do not fit");
        self.scheduler.requests_merged(&queue!(self), kept, gone);
        let bios = self.waiting.remove(&gone).expect("waits, or is about to");
        self.waiting.get_mut(&kept).expect("waits").extend(bios);
        let gone = self.requests.remove(gone);
        let kept = &mut self.requests[kept];
        kept.sectors += gone.sectors;
        kept.inserted = kept.inserted.min(gone.inserted);
    }

    /// Dispatches the scheduler's next request for the hardware queue.
    pub fn dispatch(&mut self, hw_queue: u16) -> Option<RequestId> {
        let id = self.scheduler.dispatch(&queue!(self), hw_queue)?;
        let bios = self.waiting.remove(&id).expect("dispatched requests were waiting");
        self.requests[id].issued = self.now;
        self.in_flight.push((id, bios));
        self.dispatched += 1;
        self.check();
        Some(id)
    }

    /// Dispatches for all hardware queues until no request comes; the sectors in order.
    pub fn dispatch_all(&mut self) -> Vec<u64> {
        let mut sectors = Vec::new();
        while let Some(id) = (0..self.limits.hw_queues).find_map(|queue| self.dispatch(queue)) {
            sectors.push(self.requests[id].sector.0);
        }
        sectors
    }

    /// A bio that flushes and was submitted at `since` has ended.
    pub fn end_flush(&mut self, since: Nanos) {
        self.scheduler.flush_ended(&queue!(self), since);
    }

    /// Completes the `index`-th request in flight; its bios.
    pub fn complete(&mut self, index: usize) -> Vec<Bio> {
        let (id, bios) = self.in_flight.remove(index);
        self.scheduler.completed(&queue!(self), id);
        while let Some(hw_queue) = self.scheduler.woken() {
            self.woken.push(hw_queue);
        }
        self.requests.remove(id);
        self.bios.1 += bios.len() as u64;
        self.check();
        bios
    }

    pub fn complete_all(&mut self) {
        while !self.in_flight.is_empty() {
            self.complete(0);
        }
    }

    /// Advances the time and fires timers that are due. True if one of them reports more to
    /// dispatch.
    pub fn advance(&mut self, span: Nanos) -> bool {
        let until = self.now + span;
        let mut more = false;
        while self.scheduler.next_timer() <= until {
            self.now = self.now.max(self.scheduler.next_timer());
            more |= self.scheduler.timer(&queue!(self));
        }
        self.now = until;
        more
    }

    /// How many requests may be in use before `process` gets another one.
    pub fn depth_limit(&self, process: ProcessId, op: Op, sync: bool) -> u32 {
        self.scheduler.depth_limit(&queue!(self), process, op, sync)
    }

    /// The process exits.
    pub fn exit(&mut self, process: ProcessId) {
        self.scheduler.process_exited(&queue!(self), process);
    }

    /// Starts the journal.
    pub fn keep_journal(&mut self) {
        self.scheduler.journal().expect("it decides something").keep(self.now, 10_000);
    }

    /// The decisions since the last call, with their processes.
    pub fn decisions(&mut self) -> Vec<(ProcessId, Decision)> {
        let (notes, left_out) = self.scheduler.journal().expect("it decides something").take();
        assert_eq!(left_out, 0, "the journal was too small");
        notes.into_iter().map(|note| (note.process, note.decision)).collect()
    }

    fn check(&self) {
        assert_eq!(self.scheduler.waiting(), self.waiting.len(), "requests waiting");
        let any = (0..self.limits.hw_queues).any(|queue| self.scheduler.has_work(queue));
        assert_eq!(any, !self.waiting.is_empty(), "has_work");
    }

    /// The request covers every sector of every bio once, and no other sectors.
    pub fn covers_its_bios(&self, id: RequestId, bios: &[Bio]) -> bool {
        let request = &self.requests[id];
        let mut pieces: Vec<_> = bios.iter().map(|bio| (bio.sector, bio.sectors)).collect();
        pieces.sort_unstable();
        let mut end = request.sector;
        let adjoin = pieces.iter().all(|&(sector, sectors)| {
            let adjoins = sector == end;
            end = sector.offset(sectors);
            adjoins
        });
        let of_a_kind = bios.iter().all(|bio| bio.op == request.op && bio.prio == request.prio);
        adjoin && end == request.end() && of_a_kind && request.sectors <= self.limits.max_sectors
    }
}
