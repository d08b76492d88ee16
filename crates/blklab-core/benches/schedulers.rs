//! Nanoseconds per request in each scheduler, with a queue of constant length.
//!
//! One step is one request's life: look for a merge, insert, dispatch one, complete it. Sectors are
//! random, so that no requests merge and the sorted lists are really searched and shifted.

use blklab_core::kernel::Kernel;
use blklab_core::request::{Bio, BioChain, IoPrio, Op, ProcessId, Request, RequestId, RequestSlab};
use blklab_core::scheduler::{AnyScheduler, Queue, QueueLimits, Tasks, registry};
use blklab_core::ticks::Ticks;
use blklab_core::units::{Nanos, Sector};
use divan::Bencher;
use divan::counter::ItemsCount;

fn main() {
    divan::main();
}

const STEPS: u64 = 10_000;

/// The time from one step to the next: the disk's time for a request.
const SERVICE_NS: u64 = 10_000;

/// When a scheduler that holds all requests back is asked again (`BLK_MQ_BUDGET_DELAY`).
const ASK_AGAIN_NS: u64 = 3_000_000;

/// A queue with waiting requests.
struct Rig {
    scheduler: AnyScheduler,
    limits: QueueLimits,
    requests: RequestSlab,
    tasks: Tasks,
    random: u64,
    now: u64,
}

macro_rules! queue {
    ($rig:expr) => {
        Queue {
            now: Nanos($rig.now),
            requests: &$rig.requests,
            in_flight: 0,
            limits: &$rig.limits,
            tasks: &$rig.tasks,
        }
    };
}

impl Rig {
    fn new(name: &str, rotational: bool) -> Rig {
        let limits = QueueLimits {
            rotational,
            queue_depth: 32,
            hw_queues: 1,
            nr_requests: 8192,
            max_sectors: 2560,
            wbt_target: Nanos::ZERO,
            wbt_depth: 32,
            cpus: 4,
            ticks: Ticks::per_second(1000),
            merges_priorities: false,
            kernel: Kernel::LATEST,
        };
        let info = registry::info(name).expect("the name comes from the registry");
        let tasks = Tasks::default();
        let scheduler = AnyScheduler::new(name, &info.settings(), &limits, &tasks).expect("as above");
        Rig { scheduler, limits, requests: RequestSlab::default(), tasks, random: 1, now: 0 }
    }

    /// xorshift64*, so that the benchmark measures the scheduler and not a generator.
    fn random(&mut self) -> u64 {
        self.random ^= self.random >> 12;
        self.random ^= self.random << 25;
        self.random ^= self.random >> 27;
        self.random.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    fn enter(&mut self, process: ProcessId, op: Op) {
        let random = self.random();
        let bio = Bio {
            op,
            sector: Sector((random >> 34) * 16),
            sectors: 8,
            sync: true,
            fua: false,
            idle: true,
            background: false,
            process,
            prio: IoPrio::default(),
            cpu: (random % 4) as u16,
            thread: ProcessId(0),
            hw_queue: 0,
            owner: 0,
        };
        assert!(
            self.scheduler.find_merge(&queue!(self), &bio).is_none(),
            "requests of 8 sectors every 16 do not adjoin"
        );
        let id = self.requests.insert(Request {
            op,
            sector: bio.sector,
            sectors: bio.sectors,
            sync: bio.sync,
            fua: bio.fua,
            idle: bio.idle,
            process,
            prio: bio.prio,
            cpu: bio.cpu,
            thread: bio.thread,
            hw_queue: 0,
            clock_stands: false,
            full: false,
            inserted: Nanos(self.now),
            issued: Nanos(self.now),
            owner: 0,
            rest: BioChain::default(),
        });
        self.scheduler.insert(&queue!(self), id);
    }

    /// The next request; advances the time while the scheduler holds all requests back.
    fn dispatch(&mut self) -> RequestId {
        loop {
            if let Some(id) = self.scheduler.dispatch(&queue!(self), 0) {
                return id;
            }
            let timer = self.scheduler.next_timer();
            self.now = timer.0.clamp(self.now, self.now + ASK_AGAIN_NS);
            if timer.0 <= self.now {
                self.scheduler.timer(&queue!(self));
            }
        }
    }

    /// Serves one request; returns its process.
    fn serve(&mut self) -> ProcessId {
        let id = self.dispatch();
        self.now += SERVICE_NS;
        self.scheduler.completed(&queue!(self), id);
        while self.scheduler.woken().is_some() {}
        if self.scheduler.next_timer() <= Nanos(self.now) {
            self.scheduler.timer(&queue!(self));
        }
        self.requests.remove(id).process
    }

    /// Adds one request and serves one; three in four are reads.
    fn step(&mut self) {
        let op = if self.random().is_multiple_of(4) { Op::Write } else { Op::Read };
        self.enter(ProcessId(0), op);
        self.serve();
    }
}

fn names() -> impl Iterator<Item = &'static str> {
    registry::ALL.iter().map(|info| info.name)
}

/// One process, by the number of its waiting requests.
#[divan::bench(args = names(), consts = [1, 8, 64, 256], sample_count = 50, sample_size = 1)]
fn request<const WAITING: u32>(bencher: Bencher, name: &str) {
    let mut rig = Rig::new(name, false);
    (1..WAITING).for_each(|_| rig.enter(ProcessId(0), Op::Read));
    (0..STEPS).for_each(|_| rig.step());
    bencher.counter(ItemsCount::new(STEPS)).bench_local(|| (0..STEPS).for_each(|_| rig.step()));
}

/// By the number of processes; each waits for its read before it sends the next.
#[divan::bench(args = names(), consts = [8, 64, 512, 4096], sample_count = 50, sample_size = 1)]
fn readers<const PROCESSES: u32>(bencher: Bencher, name: &str) {
    let mut rig = Rig::new(name, true);
    (0..PROCESSES).for_each(|process| rig.enter(ProcessId(process), Op::Read));
    let mut steps = move || {
        for _ in 0..STEPS {
            let process = rig.serve();
            rig.enter(process, Op::Read);
        }
    };
    steps();
    bencher.counter(ItemsCount::new(STEPS)).bench_local(steps);
}
