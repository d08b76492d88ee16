//! POSIX AIO: the process hands an I/O to a thread; the thread is a process of its own.

use super::super::aio::{AioRequest, Pool};
use super::*;
use crate::workload::spec::{Access, Distribution, Engine, JobSpec, Queueing, Rate};

/// What a thread of POSIX AIO works for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Serving {
    process: ProcessId,
    /// What it is at; nothing before its first request.
    request: Option<AioRequest>,
}

impl Process {
    /// The thread `id` of the process that `owner` describes: one that waits for each I/O and
    /// takes the next from the process's [`Pool`].
    pub fn aio_thread(owner: &ProcessSpec, id: ProcessId, seed: u64, world: &World) -> Process {
        let job = &owner.job;
        let queueing = Queueing {
            engine: Engine::Psync,
            iodepth: 1,
            batch_submit: 1,
            batch_complete_min: 1,
            batch_complete_max: 1,
            low: 1,
            ..job.queueing
        };
        // What the process asks for decides the order; a thread needs none of its own.
        let access = Access { distribution: Distribution::Random, random_map: false, ..job.access.clone() };
        let rate = Rate::default();
        let job = JobSpec { queueing, access, rate, drop_caches: false, ..JobSpec::clone(job) };
        let spec = ProcessSpec { id, job: job.into(), ..owner.clone() };
        let serving = Some(Serving { process: owner.id, request: None });
        Process { serving, ..Process::new(&spec, seed, world) }
    }

    /// The process whose requests it serves, if it is a thread of POSIX AIO.
    pub fn serves(&self) -> Option<ProcessId> {
        self.serving.map(|serving| serving.process)
    }

    /// It leaves its I/O to threads.
    #[inline]
    pub(super) fn has_threads(&self) -> bool {
        self.spec.job.queueing.engine == Engine::Posixaio
    }

    /// The requests of this process.
    pub fn aio_pool(&self, threads: Vec<ProcessId>) -> Pool {
        Pool::new(self.spec.id, &self.read_ahead, threads)
    }

    /// `aio_read()`, `aio_write()`: a thread will do it.
    pub(super) fn hand_to_thread(&mut self, slot: u32, world: &mut World) -> Flow {
        self.tally.depth(self.depth());
        self.tally.submit_levels[1] += 1;
        let unit = self.slots[slot as usize].unit;
        let request = AioRequest { slot, unit, region: self.region(unit.file) };
        if let Some(thread) = world.aio[self.spec.id.0 as usize].submit(request) {
            let now = world.now;
            world.wake(thread, now);
        }
        self.queued(world)
    }

    /// A thread looks for work.
    pub(super) fn serve(&mut self, world: &mut World) -> Flow {
        let Some(serving) = &mut self.serving else { return Flow::Sleep };
        let next = world.aio[serving.process.0 as usize].next(self.spec.id);
        let Some((request, read_ahead)) = next else { return Flow::Sleep };
        serving.request = Some(request);
        self.read_ahead[request.region as usize] = read_ahead;
        self.begin_io(request.unit, world)
    }

    /// A thread has done what it was at.
    pub(super) fn served(&mut self, serving: Serving, world: &mut World) {
        let Some(request) = serving.request else { return };
        let read_ahead = self.read_ahead[request.region as usize];
        if let Some(owner) = world.aio[serving.process.0 as usize].finish(request, read_ahead) {
            let now = world.now;
            world.wake(owner, now);
        }
    }

    /// CPU time in the kernel, and how often it slept.
    pub fn usage(&self) -> (Nanos, u64) {
        (self.system, self.sleeps)
    }
}
