//! blklab's own deadline as a plug-in.

use std::collections::{BTreeSet, HashMap};

use blklab_plugin::{
    Bio, Generation, Info, Limits, Merges, Nanos, Op, Queue, RequestId, Scheduler, Sector, Settings, Tunable,
    Unit,
};

const READ: usize = 0;
const WRITE: usize = 1;

const fn tunable(name: &'static str, unit: Unit, default: i64, max: i64) -> Tunable {
    Tunable { name, unit, default, min: 0, max, help: "as deadline's" }
}

/// By sector, those of one sector by arrival.
type Key = (Sector, u64);

struct Waiting {
    key: Key,
    direction: usize,
    expires: u64,
}

#[derive(Default)]
struct Lane {
    sorted: BTreeSet<(Key, RequestId)>,
    fifo: Vec<RequestId>,
}

struct Deadline {
    expire: [u64; 2],
    writes_starved: i64,
    front_merges: bool,
    fifo_batch: i64,
    tick: u64,
    lanes: [Lane; 2],
    waiting: HashMap<RequestId, Waiting>,
    arrived: u64,
    next: Option<RequestId>,
    next_direction: usize,
    batching: i64,
    starved: i64,
}

impl Deadline {
    fn remove(&mut self, id: RequestId) {
        if self.next == Some(id) {
            self.next = self.beside(id, true);
        }
        let Waiting { key, direction, .. } = self.waiting.remove(&id).expect("it waits");
        self.lanes[direction].sorted.remove(&(key, id));
        self.lanes[direction].fifo.retain(|&one| one != id);
    }

    fn beside(&self, id: RequestId, after: bool) -> Option<RequestId> {
        let Waiting { key, direction, .. } = self.waiting[&id];
        let sorted = &self.lanes[direction].sorted;
        let found = match after {
            true => sorted.range((key, RequestId(u32::MAX))..).next(),
            false => sorted.range(..(key, RequestId(0))).next_back(),
        };
        found.map(|&(_, id)| id)
    }

    fn sort(&mut self, id: RequestId, sector: Sector) {
        self.arrived += 1;
        let waiting = self.waiting.get_mut(&id).expect("it waits");
        let sorted = &mut self.lanes[waiting.direction].sorted;
        sorted.remove(&(waiting.key, id));
        waiting.key = (sector, self.arrived);
        sorted.insert((waiting.key, id));
    }
}

fn direction(op: Op) -> usize {
    if op == Op::Read { READ } else { WRITE }
}

impl Scheduler for Deadline {
    const INFO: Info = Info {
        name: "plugin-deadline",
        generation: Generation::SingleQueue,
        summary: "batches in sector order, reads before writes, a deadline for each (single queue)",
        follows: "Linux 4.12, deadline-iosched.c",
        lock_ns: 700,
        merges: Merges::Indexed,
        tunables: &[
            tunable("read_expire", Unit::Milliseconds, 500, 1 << 30),
            tunable("write_expire", Unit::Milliseconds, 5000, 1 << 30),
            tunable("writes_starved", Unit::Count, 2, 1 << 30),
            tunable("front_merges", Unit::Flag, 1, 1),
            tunable("fifo_batch", Unit::Count, 16, 1 << 30),
        ],
    };

    fn new(settings: &Settings, limits: &Limits) -> Self {
        let tick = 1_000_000_000 / u64::from(limits.hz);
        let ticks = |name| Nanos::from_millis(settings.get(name) as u64).0.div_ceil(tick);
        Deadline {
            expire: [ticks("read_expire"), ticks("write_expire")],
            writes_starved: settings.get("writes_starved"),
            front_merges: settings.get("front_merges") == 1,
            fifo_batch: settings.get("fifo_batch"),
            tick,
            lanes: Default::default(),
            waiting: HashMap::new(),
            arrived: 0,
            next: None,
            next_direction: READ,
            batching: 0,
            starved: 0,
        }
    }

    fn insert(&mut self, queue: &Queue<'_>, id: RequestId) {
        let request = &queue.requests[id];
        let direction = direction(request.op);
        let expires = (queue.now.0 / self.tick + self.expire[direction]) * self.tick;
        self.waiting.insert(id, Waiting { key: (request.sector, 0), direction, expires });
        self.lanes[direction].fifo.push(id);
        self.sort(id, request.sector);
    }

    fn dispatch(&mut self, queue: &Queue<'_>, _: u16) -> Option<RequestId> {
        let id = match self.next.filter(|_| self.batching < self.fifo_batch) {
            Some(next) => next,
            None => {
                let there = |direction: usize| !self.lanes[direction].fifo.is_empty();
                let direction = match (there(READ), there(WRITE)) {
                    (false, false) => return None,
                    (true, false) => READ,
                    (false, true) => WRITE,
                    (true, true) if self.starved >= self.writes_starved => WRITE,
                    (true, true) => {
                        self.starved += 1;
                        READ
                    }
                };
                if direction == WRITE {
                    self.starved = 0;
                }
                let oldest = *self.lanes[direction].fifo.first()?;
                let expired = self.waiting[&oldest].expires <= queue.now.0;
                self.batching = 0;
                let goes_on = self.next.filter(|_| self.next_direction == direction && !expired);
                goes_on.unwrap_or(oldest)
            }
        };
        self.batching += 1;
        self.next = Some(id);
        self.next_direction = self.waiting[&id].direction;
        self.remove(id);
        Some(id)
    }

    fn requests_merged(&mut self, _: &Queue<'_>, kept: RequestId, gone: RequestId) {
        let expires = self.waiting[&gone].expires;
        let of_kept = self.waiting.get_mut(&kept).expect("it waits");
        if expires < of_kept.expires {
            of_kept.expires = expires;
            let fifo = &mut self.lanes[of_kept.direction].fifo;
            fifo.retain(|&one| one != kept);
            let place = fifo.iter().position(|&one| one == gone).expect("it waits");
            fifo.insert(place + 1, kept);
        }
        self.remove(gone);
    }

    fn bio_merged(&mut self, queue: &Queue<'_>, id: RequestId, old_sector: Sector) {
        let sector = queue.requests[id].sector;
        if sector != old_sector {
            self.sort(id, sector);
        }
    }

    fn front(&mut self, _: &Queue<'_>, bio: &Bio) -> Option<RequestId> {
        let from = ((bio.end(), 0), RequestId(0));
        let lane = &self.lanes[direction(bio.op)];
        let (key, id) = lane.sorted.range(from..).next().filter(|_| self.front_merges)?;
        (key.0 == bio.end()).then_some(*id)
    }

    fn neighbour(&mut self, _: &Queue<'_>, id: RequestId, after: bool) -> Option<RequestId> {
        self.beside(id, after)
    }
}

blklab_plugin::plugin!(Deadline);
