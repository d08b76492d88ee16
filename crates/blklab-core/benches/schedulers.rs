//! Nanoseconds per request through each scheduler, with a queue that stays equally full.
//!
//! One step is one request's life: look for a merge, insert, dispatch one, complete it.
//! Addresses are random, so that nothing merges and the sorted lists are searched and
//! shifted in earnest; three requests in four are reads.

use blklab_core::request::{Bio, BioChain, IoPrio, Op, ProcessId, Request, RequestSlab};
use blklab_core::scheduler::{AnyScheduler, InsertAt, Queue, QueueLimits, Tasks, registry};
use blklab_core::ticks::Ticks;
use blklab_core::units::{Nanos, Sector};
use divan::Bencher;
use divan::counter::ItemsCount;

fn main() {
    divan::main();
}

const STEPS: u64 = 10_000;

/// A queue that has been filled to a number of waiting requests.
struct Rig {
    scheduler: AnyScheduler,
    limits: QueueLimits,
    requests: RequestSlab,
    tasks: Tasks,
    random: u64,
    now: u64,
}

impl Rig {
    fn new(name: &str, waiting: u32) -> Rig {
        let limits = QueueLimits {
            rotational: false,
            queue_depth: 32,
            hw_queues: 1,
            nr_requests: 256,
            max_sectors: 2560,
            cpus: 4,
            ticks: Ticks::per_second(1000),
        };
        let info = registry::info(name).expect("the name comes from the registry");
        let scheduler =
            AnyScheduler::new(name, &info.settings(), &limits, &Tasks::default()).expect("as above");
        let requests = RequestSlab::default();
        let mut rig = Rig { scheduler, limits, requests, tasks: Tasks::default(), random: 1, now: 0 };
        (1..waiting).for_each(|_| rig.enter());
        rig
    }

    /// xorshift64*, so that the benchmark measures the scheduler and not a generator.
    fn random(&mut self) -> u64 {
        self.random ^= self.random >> 12;
        self.random ^= self.random << 25;
        self.random ^= self.random >> 27;
        self.random.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    fn enter(&mut self) {
        let random = self.random();
        let op = if random.is_multiple_of(4) { Op::Write } else { Op::Read };
        let (sector, cpu) = (Sector((random >> 34) * 16), (random % 4) as u16);
        let now = Nanos(self.now);
        let bio = Bio {
            op,
            sector,
            sectors: 8,
            sync: true,
            fua: false,
            process: ProcessId(0),
            prio: IoPrio::default(),
            cpu,
            hw_queue: 0,
            owner: 0,
        };
        let queue =
            Queue { now, requests: &self.requests, in_flight: 0, limits: &self.limits, tasks: &self.tasks };
        assert!(
            self.scheduler.find_merge(&queue, &bio).is_none(),
            "requests of 8 sectors every 16 do not adjoin"
        );
        let id = self.requests.insert(Request {
            op,
            sector,
            sectors: bio.sectors,
            sync: bio.sync,
            fua: bio.fua,
            process: bio.process,
            prio: bio.prio,
            cpu,
            hw_queue: 0,
            inserted: now,
            issued: now,
            owner: 0,
            rest: BioChain::default(),
        });
        let queue =
            Queue { now, requests: &self.requests, in_flight: 0, limits: &self.limits, tasks: &self.tasks };
        self.scheduler.insert(&queue, id, InsertAt::Sorted);
    }

    fn step(&mut self) {
        self.now += 10_000;
        self.enter();
        let queue = Queue {
            now: Nanos(self.now),
            requests: &self.requests,
            in_flight: 1,
            limits: &self.limits,
            tasks: &self.tasks,
        };
        let id = self.scheduler.dispatch(&queue, 0).expect("something waits and nothing is under way");
        self.scheduler.completed(&queue, id);
        self.requests.remove(id);
        if self.scheduler.next_timer() <= Nanos(self.now) {
            let queue = Queue {
                now: Nanos(self.now),
                requests: &self.requests,
                in_flight: 0,
                limits: &self.limits,
                tasks: &self.tasks,
            };
            self.scheduler.timer(&queue);
        }
    }
}

fn names() -> impl Iterator<Item = &'static str> {
    registry::ALL.iter().map(|info| info.name)
}

#[divan::bench(args = names(), consts = [1, 8, 64, 256], sample_count = 50, sample_size = 1)]
fn request<const WAITING: u32>(bencher: Bencher, name: &str) {
    let mut rig = Rig::new(name, WAITING);
    (0..STEPS).for_each(|_| rig.step());
    bencher.counter(ItemsCount::new(STEPS)).bench_local(|| (0..STEPS).for_each(|_| rig.step()));
}
