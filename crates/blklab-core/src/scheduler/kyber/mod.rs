//! `kyber`: keeps latencies at a target by admitting fewer requests.
//!
//! Follows Linux 7.3 (`block/kyber-iosched.c`).
//!
//! Fast flash disks need no sorting. Their problem is a queue inside the disk so full of writes
//! that a read waits behind all of them. Kyber therefore does not order requests, it *admits* them:
//!
//! * Requests fall into **domains**: reads, writes, discards, others. Each has a pool of tokens for
//!   the whole disk (256, 128, 64, 16 at first); a request is dispatched with a token of its domain
//!   and returns it at completion. See `tokens.rs`.
//! * Each hardware queue serves the domains in turn, in **batches** of at most 16 reads, 8 writes,
//!   1 discard, 1 other, and moves on when the domain has no requests or tokens left.
//! * Requests wait in per-CPU lists, where bios may still merge into the latest eight, until a
//!   dispatch finds a token and moves all CPUs' requests of that domain to the hardware queue, CPU
//!   by CPU.
//! * Every 100 ms in which a request completed, kyber compares **latencies** with `read_lat_nsec`
//!   and `write_lat_nsec`: if some domain's time in the disk was too long (p90), domains with low
//!   latency get fewer tokens; a domain whose total time is too long (p99) gets more. See
//!   `latency.rs`.
//! * All but synchronous reads may use three quarters of a hardware queue's requests; before 7.0 that
//!   was so for asynchronous requests only.
//!
//! A hardware queue that found no token runs again when tokens come back, several at a time
//! ([`Scheduler::woken`]); until then requests collect in the per-CPU lists.
//!
//! Left out: the number of a request's token. In the kernel, after a pool has shrunk, requests with
//! a token of a high number do not count against the new depth, so that for the time of one I/O
//! more may be in flight than the depth allows; here never. The kernel keeps histograms per CPU and
//! sums them before use; the model keeps the sum.

mod latency;
mod tokens;

use std::collections::VecDeque;

use super::journal::{Decision, Journal};
use super::shared::merge::find_in_list;
use super::{Generation, Info, Merge, Queue, QueueLimits, Scheduler, Settings, Tasks, Tunable, Unit};
use crate::containers::lists::{Links, List};
use crate::containers::tags::NO_TAG;
use crate::request::{Bio, Op, ProcessId, RequestId};
use crate::units::{Nanos, Sector};
use latency::{Judge, MEASURED};
use tokens::Tokens;

/// Domains: reads, writes, discards, others.
const DOMAINS: usize = 4;

/// Their operations.
const OPS: [Op; DOMAINS] = [Op::Read, Op::Write, Op::Discard, Op::Flush];

/// The largest number of tokens of each domain.
const DEPTHS: [u32; DOMAINS] = [256, 128, 64, 16];

/// Requests of each domain that a hardware queue dispatches in a row.
const BATCHES: [u32; DOMAINS] = [16, 8, 1, 1];

/// Latency target for discards; the others are tunable.
const DISCARD_TARGET: Nanos = Nanos::from_secs(5);

/// The time from a completion to the check of latencies (`HZ / 10`), before the kernel's timer rounds it up.
const PERIOD: Nanos = Nanos::from_millis(100);

/// The part of a queue's requests that is not only for synchronous reads, in percent.
const ASYNC_PERCENT: u64 = 75;

const fn domain(op: Op) -> usize {
    match op {
        Op::Read => 0,
        Op::Write => 1,
        Op::Discard => 2,
        Op::Flush => 3,
    }
}

/// One hardware queue's turn through the domains.
#[derive(Debug)]
struct HwQueue {
    /// Moved here from the CPUs' lists; no longer merged.
    flushed: [List; DOMAINS],
    /// CPUs whose list of a domain holds requests: one bit each.
    busy: Vec<[u64; DOMAINS]>,
    current: usize,
    batching: u32,
}

impl HwQueue {
    fn new(cpus: usize) -> HwQueue {
        let busy = vec![[0; DOMAINS]; cpus.div_ceil(64).max(1)];
        HwQueue { flushed: [List::EMPTY; DOMAINS], busy, current: 0, batching: 0 }
    }

    #[inline]
    fn has(&self, domain: usize) -> bool {
        !self.flushed[domain].is_empty() || self.busy.iter().any(|word| word[domain] != 0)
    }
}

/// The state of kyber.
pub struct Kyber {
    async_depth: u32,
    /// Synchronous writes are limited too.
    limits_sync_writes: bool,
    links: Links,
    /// Per CPU and domain, in order of arrival.
    cpus: Vec<[List; DOMAINS]>,
    hw_queues: Vec<HwQueue>,
    pools: [Tokens; DOMAINS],
    /// By id, the token of its domain that the request holds.
    tokens: Vec<u32>,
    /// Hardware queues to run again, in the order in which they began to wait.
    woken: VecDeque<u16>,
    judge: Judge,
    timer: Nanos,
    waiting: usize,
    journal: Journal,
    /// For the journal: domains that are held back.
    held_back: [bool; DOMAINS],
}

impl Kyber {
    /// A request comes to the queue of this CPU and this domain.
    #[inline]
    fn come(&mut self, queue: &Queue<'_>, id: RequestId) -> (usize, usize) {
        let request = &queue.requests[id];
        let domain = domain(request.op);
        if id.index() >= self.tokens.len() {
            self.tokens.resize(id.index() + 1, NO_TAG);
        }
        let cpu = usize::from(queue.limits.software_queue(request.cpu));
        self.hw_queues[usize::from(request.hw_queue)].busy[cpu / 64][domain] |= 1 << (cpu % 64);
        self.waiting += 1;
        (cpu, domain)
    }

    /// Keeps the latencies of an I/O that ends now until they are checked. A timer that is set fires before one that
    /// would be set now (`timer_reduce`).
    #[inline]
    fn record(&mut self, queue: &Queue<'_>, domain: usize, total: Nanos, in_disk: Nanos) {
        self.judge.record(domain, total, in_disk);
        if self.timer == Nanos::NEVER {
            let ticks = queue.limits.ticks;
            self.timer = ticks.timer(queue.now, ticks.span(PERIOD));
        }
    }

    /// The tokens of the operation's domain, and how many are in use (`*_tokens` in debugfs).
    pub fn tokens(&self, op: Op) -> (u32, u32) {
        let pool = &self.pools[domain(op)];
        (pool.depth(), pool.in_use())
    }

    /// A request of the hardware queue's current domain, if there is a request and a token.
    #[inline]
    fn dispatch_current(&mut self, context: &Queue<'_>, hw_queue: u16) -> Option<RequestId> {
        let queue = &mut self.hw_queues[usize::from(hw_queue)];
        let domain = queue.current;
        if !queue.has(domain) {
            return None;
        }
        let token = self.pools[domain].take(hw_queue, context.limits.first_cpu(hw_queue));
        let may_go = token.is_some();
        if self.journal.is_kept() && std::mem::replace(&mut self.held_back[domain], !may_go) == may_go {
            let (op, depth) = (OPS[domain], self.pools[domain].depth());
            let decision = if may_go { Decision::LetGo { op } } else { Decision::HeldBack { op, depth } };
            self.journal.note(context.now, ProcessId::KERNEL, decision);
        }
        let token = token?;
        let flushed = &mut queue.flushed[domain];
        if flushed.is_empty() {
            for (word, busy) in queue.busy.iter_mut().enumerate() {
                let mut bits = std::mem::take(&mut busy[domain]);
                while bits != 0 {
                    let cpu = 64 * word + bits.trailing_zeros() as usize;
                    self.links.append(flushed, &mut self.cpus[cpu][domain]);
                    bits &= bits - 1;
                }
            }
        }
        let id = self.links.pop_front(flushed)?;
        queue.batching += 1;
        self.tokens[id.index()] = token;
        self.waiting -= 1;
        Some(id)
    }

    fn return_token(&mut self, id: RequestId, domain: usize, cpu: u16) {
        let token = std::mem::replace(&mut self.tokens[id.index()], NO_TAG);
        if token != NO_TAG {
            self.pools[domain].give_back(token, cpu, &mut self.woken);
        }
    }
}

impl Scheduler for Kyber {
    const INFO: Info = Info {
        name: "kyber",
        generation: Generation::MultiQueue,
        summary: "admits fewer writes or reads to the disk when latencies miss their targets",
        follows: "Linux 7.3, kyber-iosched.c",
        // fio with libaio on a loop device, Linux 6.18: 310k IOPS against 423k under none.
        lock_ns: 860,
        tunables: &[
            Tunable {
                name: "read_lat_nsec",
                unit: Unit::Nanoseconds,
                default: 2_000_000,
                min: 0,
                max: i64::MAX,
                help: "target latency of reads",
            },
            Tunable {
                name: "write_lat_nsec",
                unit: Unit::Nanoseconds,
                default: 10_000_000,
                min: 0,
                max: i64::MAX,
                help: "target latency of writes",
            },
        ],
    };

    fn new(settings: &Settings, limits: &QueueLimits, _: &Tasks) -> Self {
        let cpus = usize::from(limits.cpus.max(1));
        let target = |name| Nanos(settings.get(name) as u64);
        Kyber {
            async_depth: (u64::from(limits.nr_requests) * ASYNC_PERCENT / 100) as u32,
            limits_sync_writes: limits.kernel.kyber_limits_sync_writes,
            links: Links::with_capacity(limits.nr_requests as usize),
            cpus: vec![[List::EMPTY; DOMAINS]; cpus],
            hw_queues: (0..limits.hw_queues).map(|_| HwQueue::new(cpus)).collect(),
            pools: DEPTHS.map(|depth| Tokens::new(depth, limits.cpus.max(1))),
            tokens: Vec::with_capacity(limits.nr_requests as usize),
            woken: VecDeque::new(),
            judge: Judge::new([target("read_lat_nsec"), target("write_lat_nsec"), DISCARD_TARGET]),
            timer: Nanos::NEVER,
            waiting: 0,
            journal: Journal::default(),
            held_back: [false; DOMAINS],
        }
    }

    #[inline]
    fn find_merge(&mut self, queue: &Queue<'_>, bio: &Bio) -> Option<Merge> {
        let cpu = usize::from(queue.limits.software_queue(bio.cpu));
        let list = &self.cpus[cpu][domain(bio.op)];
        find_in_list(queue, bio, self.links.newest_first(list))
    }

    fn bio_merged(&mut self, _: &Queue<'_>, _: Merge, _: Sector) {}

    fn neighbour(&self, _: &Queue<'_>, _: RequestId, _: bool) -> Option<RequestId> {
        None
    }

    fn requests_merged(&mut self, _: &Queue<'_>, _: RequestId, _: RequestId) {
        unreachable!("neighbour() and find_join() offer nothing");
    }

    #[inline]
    fn insert(&mut self, queue: &Queue<'_>, id: RequestId) {
        let (cpu, domain) = self.come(queue, id);
        self.links.push_back(&mut self.cpus[cpu][domain], id);
    }

    fn insert_first(&mut self, queue: &Queue<'_>, id: RequestId) -> bool {
        let (cpu, domain) = self.come(queue, id);
        self.links.push_front(&mut self.cpus[cpu][domain], id);
        true
    }

    #[inline]
    fn dispatch(&mut self, queue: &Queue<'_>, hw_queue: u16) -> Option<RequestId> {
        let round = &self.hw_queues[usize::from(hw_queue)];
        if round.batching < BATCHES[round.current]
            && let Some(id) = self.dispatch_current(queue, hw_queue)
        {
            return Some(id);
        }
        // A new batch: of the next domain with requests and tokens; the same domain comes last.
        self.hw_queues[usize::from(hw_queue)].batching = 0;
        (0..DOMAINS).find_map(|_| {
            let round = &mut self.hw_queues[usize::from(hw_queue)];
            round.current = (round.current + 1) % DOMAINS;
            self.dispatch_current(queue, hw_queue)
        })
    }

    #[inline]
    fn completed(&mut self, queue: &Queue<'_>, id: RequestId) {
        let request = &queue.requests[id];
        let domain = domain(request.op);
        if domain < MEASURED {
            let total = queue.now.saturating_sub(request.inserted);
            let in_disk = queue.now.saturating_sub(request.issued);
            self.record(queue, domain, total, in_disk);
        }
        self.return_token(id, domain, queue.limits.software_queue(request.cpu));
    }

    /// It counts as a write. That it never went to the disk makes its time there the time since boot, far
    /// above the target (`io_start_time_ns` is zero in `kyber_completed_request`).
    fn flush_ended(&mut self, queue: &Queue<'_>, since: Nanos) {
        self.record(queue, domain(Op::Write), queue.now.saturating_sub(since), Nanos::NEVER);
    }

    fn woken(&mut self) -> Option<u16> {
        self.woken.pop_front()
    }

    fn depth_limit(&self, _: &Queue<'_>, _: ProcessId, op: Op, sync: bool) -> u32 {
        let is_free = sync && !(op.is_write() && self.limits_sync_writes);
        if is_free { u32::MAX } else { self.async_depth }
    }

    fn least_depth(&self) -> u32 {
        self.async_depth
    }

    fn next_timer(&self) -> Nanos {
        self.timer
    }

    /// Resizes the pools. The kernel runs no queue for a pool that has grown, but polls idle queues
    /// every few milliseconds; the model reports this at once.
    fn timer(&mut self, queue: &Queue<'_>) -> bool {
        self.timer = Nanos::NEVER;
        let depths = std::array::from_fn(|domain| self.pools[domain].depth());
        let wanted = self.judge.depths(queue.now, depths);
        let mut more = false;
        for (domain, (pool, depth)) in self.pools.iter_mut().zip(wanted).enumerate() {
            let depth = depth.clamp(1, DEPTHS[domain]);
            more |= depth > pool.depth() && pool.is_awaited();
            if depth != pool.depth() {
                let decision = Decision::DepthChanged { op: OPS[domain], depth };
                self.journal.note(queue.now, ProcessId::KERNEL, decision);
                pool.resize(depth);
            }
        }
        more
    }

    #[inline]
    fn has_work(&self, hw_queue: u16) -> bool {
        (0..DOMAINS).any(|domain| self.hw_queues[usize::from(hw_queue)].has(domain))
    }

    fn journal(&mut self) -> Option<&mut Journal> {
        Some(&mut self.journal)
    }

    #[inline]
    fn waiting(&self) -> usize {
        self.waiting
    }
}

#[cfg(test)]
mod tests;
