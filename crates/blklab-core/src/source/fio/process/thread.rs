//! POSIX AIO: the process hands an I/O to a thread; the thread is a process of its own.

use std::cell::RefMut;

use super::*;
use crate::workload::spec::{Access, Distribution, Engine, JobSpec, Queueing, Rate};

impl Process {
    /// The thread `id` of the process that `owner` describes: it takes a request from `pool`, does
    /// it, waits until it is done, and takes the next.
    pub fn aio_thread(
        owner: &ProcessSpec,
        id: ProcessId,
        seed: u64,
        world: &World,
        pool: Rc<RefCell<Pool>>,
    ) -> Process {
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
        Process { pool: Some(pool), role: Role::Thread(None), ..Process::new(&spec, seed, world) }
    }

    /// It is a thread of POSIX AIO.
    #[inline]
    pub(super) fn is_thread(&self) -> bool {
        matches!(self.role, Role::Thread(_))
    }

    /// It leaves its I/O to threads.
    #[inline]
    pub(super) fn has_threads(&self) -> bool {
        self.spec.job.queueing.engine == Engine::Posixaio
    }

    /// It leaves its I/O to `threads` from now on; their pool.
    pub fn use_threads(&mut self, threads: Vec<ProcessId>) -> Rc<RefCell<Pool>> {
        let pool = Rc::new(RefCell::new(Pool::new(self.spec.id, &self.read_ahead, threads)));
        self.pool = Some(Rc::clone(&pool));
        pool
    }

    /// The schedulers learn that the process has ended, and its threads with it.
    pub fn exit(&self, world: &mut World) {
        if let Some(pool) = &self.pool {
            pool.borrow().threads().iter().for_each(|&thread| world.process_exited(thread));
        }
        world.process_exited(self.spec.id);
    }

    fn pool(&self) -> RefMut<'_, Pool> {
        self.pool.as_ref().expect("a process of POSIX AIO has a pool, and so have its threads").borrow_mut()
    }

    /// `aio_read()`, `aio_write()`: a thread will do it.
    pub(super) fn hand_to_thread(&mut self, slot: u32, world: &mut World) -> Flow {
        self.issuer.tally.depth(self.depth());
        self.issuer.tally.submit_levels[1] += 1;
        let unit = self.slots[slot as usize].unit;
        let request = AioRequest { slot, unit, region: self.region(unit.file) };
        let thread = self.pool().submit(request);
        if let Some(thread) = thread {
            let now = world.now();
            world.wake(Actor::Process(thread), now);
        }
        self.queued(world)
    }

    /// A thread looks for work.
    pub(super) fn serve(&mut self, world: &mut World) -> Flow {
        let next = self.pool().next(self.spec.id);
        let Some((request, read_ahead)) = next else { return Flow::Sleep };
        self.role = Role::Thread(Some(request));
        self.read_ahead[request.region as usize] = read_ahead;
        self.begin_io(request.unit, world)
    }

    /// A thread has done what it was asked for.
    pub(super) fn served(&mut self, world: &mut World) {
        let Role::Thread(Some(request)) = self.role else { return };
        let read_ahead = self.read_ahead[request.region as usize];
        let owner = self.pool().finish(request, read_ahead);
        if let Some(owner) = owner {
            let now = world.now();
            world.wake(Actor::Process(owner), now);
        }
    }

    /// CPU time in the kernel, and how often it slept.
    pub fn usage(&self) -> (Nanos, u64) {
        (self.system, self.sleeps)
    }
}
