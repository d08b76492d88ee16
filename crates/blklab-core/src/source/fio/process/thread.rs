//! POSIX AIO: the process passes an I/O to a thread; the thread is a process of its own.

use std::cell::RefMut;

use super::*;
use crate::workload::spec::{Access, Distribution, Engine, JobSpec, Queueing, Rate};

impl Process {
    /// The thread `id` of the process that `owner` describes: it takes a request from `pool`,
    /// performs it, waits for its completion, and takes the next.
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
        // The requests of the process set the order; a thread needs none of its own.
        let access = Access { distribution: Distribution::Random, random_map: false, ..job.access.clone() };
        let rate = Rate::default();
        let job = JobSpec { queueing, access, rate, drop_caches: false, ..JobSpec::clone(job) };
        let spec = ProcessSpec { id, job: job.into(), ..owner.clone() };
        Process { pool: Some(pool), role: Role::Thread(None), ..Process::new(&spec, seed, world) }
    }

    /// The process is a thread of POSIX AIO.
    #[inline]
    pub(super) fn is_thread(&self) -> bool {
        matches!(self.role, Role::Thread(_))
    }

    /// Threads do its I/O.
    #[inline]
    pub(super) fn has_threads(&self) -> bool {
        self.spec.job.queueing.engine == Engine::Posixaio
    }

    /// From now on `threads` do its I/O; returns their pool.
    pub fn use_threads(&mut self, threads: Vec<ProcessId>) -> Rc<RefCell<Pool>> {
        let pool = Rc::new(RefCell::new(Pool::new(self.spec.id, &self.read_ahead, threads)));
        self.pool = Some(Rc::clone(&pool));
        pool
    }

    /// Reports the exits of the process and of its threads to the schedulers.
    pub fn exit(&self, world: &mut World) {
        if let Some(pool) = &self.pool {
            let exited = |&thread: &ProcessId| world.process_exited(thread, self.spec.id, self.submitter.cpu);
            pool.borrow().threads().iter().for_each(exited);
        }
        world.process_exited(self.spec.id, self.spec.id, self.submitter.cpu);
    }

    fn pool(&self) -> RefMut<'_, Pool> {
        self.pool.as_ref().expect("a process of POSIX AIO has a pool, and so have its threads").borrow_mut()
    }

    /// `aio_read()`, `aio_write()`: passes the I/O to a thread.
    pub(super) fn hand_to_thread(&mut self, slot: u32, world: &mut World) -> Flow {
        self.issuer.tally.depth(self.units.depth());
        self.issuer.submitted(1);
        let unit = *self.units.unit(slot);
        let request = AioRequest { slot, unit, region: self.region(unit.file) };
        let thread = self.pool().submit(request);
        if let Some(thread) = thread {
            let now = world.now();
            world.wake(Actor::Process(thread), now);
        }
        self.queued(world)
    }

    /// A thread takes its next request.
    pub(super) fn serve(&mut self, world: &mut World) -> Flow {
        let next = self.pool().next(self.spec.id);
        let Some((request, read_ahead)) = next else { return Flow::Sleep };
        self.role = Role::Thread(Some(request));
        self.read_ahead[request.region as usize] = read_ahead;
        self.begin_io(request.unit, world)
    }

    /// A thread has performed its request.
    pub(super) fn served(&mut self, world: &mut World) {
        let Role::Thread(Some(request)) = self.role else { return };
        let read_ahead = self.read_ahead[request.region as usize];
        let owner = self.pool().finish(request, read_ahead);
        if let Some(owner) = owner {
            let now = world.now();
            world.wake(Actor::Process(owner), now);
        }
    }

    /// CPU time in the kernel, and the number of sleeps.
    pub fn usage(&self) -> (Nanos, u64) {
        (self.system, self.sleeps)
    }
}
