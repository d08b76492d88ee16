//! One fio process: the loop of `do_io()` in fio's backend, as a state machine around an
//! [`Issuer`], which decides the next step.
//!
//! A process runs until it must wait: for its own CPU work, for a pause, for a free request, for
//! pages or for completions. Everything that takes CPU time advances its clock first and takes
//! effect at the end of that time.

mod buffered;
mod direct;
mod reap;
mod thread;

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use super::issuer::{Issuer, Step, Then};
use super::pool::{AioRequest, Pool};
use super::tally::IoTimes;
use super::units::{Started, Units};
use crate::device::{FileStream, Location, Span};
use crate::engine::{Asleep, Dirty, Hold, PageWork, Ran, Submitter, SyncProgress, Syncing, Wait, World};
use crate::owner::{Actor, Owner};
use crate::pagecache::{self, Advice, Dirtier, FileId, HeldPages, ReadAhead, Windows};
use crate::request::{Bio, ProcessId};
use crate::result::JobResult;
use crate::units::{Bytes, Nanos};
use crate::workload::machine;
use crate::workload::pattern::IoUnit;
use crate::workload::plan::{ProcessSpec, Region};
use crate::workload::spec::{AdviceHint, Direction, Engine, SyncMode};

// How often fio 3.33 reads the clock ([`crate::host::Host::clock`]), as seen between its requests in
// user-mode Linux, where a reading takes 256 ns: 1,280 ns from a completion to the next submission
// with psync, 1,024 ns with libaio, and 1,280 ns from one I/O of libaio to the next.

/// When a process starts.
const READS_AT_START: u64 = 2;
/// Before an I/O of an engine that blocks; one fewer before a queued one, which has one after.
const READS_BEFORE_SUBMISSION: u64 = 4;
/// After a completion, or several that are reaped at once.
const READS_AFTER_COMPLETION: u64 = 1;
/// Before a pause (`thinktime`).
const READS_BEFORE_A_PAUSE: u64 = 2;
/// The end of a pause, which fio does not sleep but reads the clock (`usec_spin()`).
const SPINS: Nanos = Nanos::from_micros(1);

/// The step after everything in flight has been reaped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    /// fsync of what threads have written (`aio_fsync`, after the earlier requests).
    Sync,
    /// The issuer's step.
    Step(Then),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Emptying the page cache before the first I/O.
    DropCaches,
    /// Choosing the next step.
    Top,
    /// Syncing or dropping the cached pages of this slot's range.
    Uncache(u32),
    /// The CPU work for the submission of this slot is done.
    Prepared(u32),
    /// Submitting what is prepared.
    Commit,
    /// The CPU work after a submission is done.
    Submitted,
    /// A pause begins.
    FallAsleep,
    /// Reading the clock until the end of a pause.
    Awake,
    /// All slots are in use: waiting for completions.
    Reap,
    /// Reaping everything, then continuing with this.
    Drain(Next),
    /// Waiting for the lock of the file that this slot reads or writes through the page cache.
    Locked(u32),
    /// Waiting until no direct I/O of the file that this slot writes is in flight.
    DirectAwaited(u32),
    /// Waiting for the journal of its times.
    Stamped(u32),
    /// A buffered I/O, with this many bytes done.
    Buffered {
        slot: u32,
        done: u64,
    },
    /// Submitting the buffered I/O's pages, then waiting for this.
    BufferedPages {
        slot: u32,
        done: u64,
        wait: Option<pagecache::Wait>,
    },
    /// The buffered I/O is done; O_SYNC may follow.
    BufferedDone(u32),
    /// Syncing a write of this slot.
    SyncWrite(u32),
    /// fsync, then `Top`.
    Sync,
    /// Dropping the cached pages of these regions' files.
    Invalidate(u32, u32),
    /// fsync of every file at the end of a pass; `last`: there may be no other pass.
    PassSync {
        last: bool,
    },
    Ended,
}

/// How a step of the state machine ended.
enum Flow {
    /// Continue in the new state.
    Go,
    /// Continue at that time.
    At(Nanos),
    /// The same, after [`World::advance_to`] has returned false.
    Yield(Nanos),
    /// Another event wakes the process.
    Sleep,
}

/// CPU work of a buffered call that has not been done yet. The process does it before its call has an effect on
/// others: before it submits reads, waits, checks the limits of dirty pages, or returns.
#[derive(Clone, Copy, Debug, Default)]
struct Owed {
    /// The call itself.
    call: Nanos,
    /// Bytes to copy.
    bytes: u64,
}

/// The role of a process.
#[derive(Clone, Copy, Debug)]
enum Role {
    /// It issues the I/Os of its job.
    Issuer,
    /// It is a thread of POSIX AIO and performs the requests of another process: this request, once
    /// it has had one.
    Thread(Option<AioRequest>),
}

/// A fio process and its state.
pub struct Process {
    spec: ProcessSpec,
    submitter: Submitter,
    state: State,
    issuer: Issuer,
    /// One per region of the specification.
    read_ahead: Vec<ReadAhead>,
    /// What a buffered read has not read ahead yet.
    windows: Windows,
    /// The pages of one that sleeps.
    held: Option<HeldPages>,
    dirtier: Dirtier,
    /// Others use its files, too, so that it may have to wait for their locks.
    shares_files: bool,
    /// They may have dirty pages: a process writes them through the page cache.
    has_pages: bool,
    /// The lock of a file that it has for a direct I/O; and how it must have it in the call that it is in.
    locked: Option<(FileId, Hold)>,
    must_lock: Hold,
    owed: Owed,
    pages: PageWork,
    syncing: Syncing,
    units: Units,
    /// By slot: bios that have not completed.
    bios_left: Vec<u32>,
    /// Started, not submitted.
    prepared: VecDeque<u32>,
    /// The rest of the first prepared I/O.
    stream: Option<FileStream>,
    /// Slots submitted by the current commit.
    handed_over: u32,
    /// Slots that kernel threads sync.
    synced: Vec<u32>,
    /// Completed, not reaped.
    done: VecDeque<u32>,
    /// The number of completions for which the process sleeps; 0 if it sleeps for another reason.
    wake_at_done: usize,
    ended: Nanos,
    /// Readings of the clock since the last submission.
    reads: u64,
    system: Nanos,
    user: Nanos,
    sleeps: u64,
    /// The threads of POSIX AIO that do its I/O; or, for a thread, those that it belongs to.
    pool: Option<Rc<RefCell<Pool>>>,
    role: Role,
}

impl Process {
    /// A process that has not started.
    pub fn new(spec: &ProcessSpec, seed: u64, world: &World) -> Process {
        let job = &spec.job;
        let depth = job.queueing.depth();
        let cpu = machine::cpu_of(job, spec.id.0, spec.clone, world.host.cpus);
        let actor = Actor::Process(spec.id);
        let submitter = Submitter { actor, prio: job.priorities.base, cpu, waits: true, background: false };
        // fio's advice to the kernel (`fadvise_hint`).
        let advice = match job.advice {
            AdviceHint::Off => Advice::Normal,
            AdviceHint::AsRw if job.access.rw.is_random() => Advice::Random,
            AdviceHint::Random => Advice::Random,
            AdviceHint::AsRw | AdviceHint::Sequential => Advice::Sequential,
        };
        let open = |region: &Region| world.cache.open(FileId(region.file), advice);
        Process {
            submitter,
            state: if job.drop_caches { State::DropCaches } else { State::Top },
            issuer: Issuer::new(spec, seed),
            read_ahead: spec.regions.iter().map(open).collect(),
            windows: Windows::default(),
            held: None,
            dirtier: world.cache.dirtier(),
            shares_files: false,
            has_pages: false,
            locked: None,
            must_lock: Hold::Shared,
            owed: Owed::default(),
            pages: PageWork::default(),
            syncing: Syncing::default(),
            units: Units::new(&job.queueing),
            bios_left: vec![0; depth as usize],
            prepared: VecDeque::with_capacity(depth as usize),
            stream: None,
            handed_over: 0,
            synced: Vec::new(),
            done: VecDeque::with_capacity(depth as usize),
            wake_at_done: 0,
            ended: Nanos::ZERO,
            reads: READS_AT_START,
            system: Nanos::ZERO,
            user: Nanos::ZERO,
            sleeps: 0,
            spec: spec.clone(),
            pool: None,
            role: Role::Issuer,
        }
    }

    /// Its number.
    pub fn id(&self) -> ProcessId {
        self.spec.id
    }

    /// Its specification.
    pub fn spec(&self) -> &ProcessSpec {
        &self.spec
    }

    /// Others use its files, too.
    pub fn share_files(&mut self) {
        self.shares_files = true;
    }

    /// Its files may have dirty pages.
    pub fn share_pages(&mut self) {
        self.has_pages = true;
    }

    /// It has ended.
    pub fn has_ended(&self) -> bool {
        matches!(self.state, State::Ended)
    }

    /// Starts at `now`.
    pub fn start(&mut self, now: Nanos) {
        self.issuer.start(now);
    }

    /// The run ends now. If the process has not ended, it was measured until now.
    pub fn stop(&mut self, now: Nanos) {
        if !self.has_ended() {
            self.ended = now.max(self.issuer.started());
        }
    }

    /// Ends at the next opportunity (`exitall`).
    pub fn tell_to_end(&mut self) {
        self.issuer.tell_to_end();
    }

    /// Runs until it must wait or has ended.
    #[inline]
    pub fn run(&mut self, world: &mut World) -> Ran {
        loop {
            let flow = match self.state {
                State::DropCaches => {
                    // A sync(1) before this would change nothing: either no process has written
                    // yet, or dirty pages stay, as they do in the kernel.
                    world.cache.drop_caches();
                    self.go(State::Top)
                }
                State::Top => self.top(world),
                State::Uncache(slot) => self.uncache(slot, world),
                State::Prepared(slot) => self.prepared(slot, world),
                State::Commit => self.commit(world),
                State::Submitted => self.queued(world),
                State::FallAsleep => self.think(world),
                State::Awake => {
                    self.state = State::Top;
                    // The end of the pause, and one more.
                    self.read_clock(SPINS.0.div_ceil(world.host.clock.0) + 1, world)
                }
                State::Reap => self.reap(world),
                State::Drain(next) => self.drain(next, world),
                State::Locked(slot) => self.begin_buffered(slot, world),
                State::DirectAwaited(slot) => self.await_direct(slot, world),
                State::Stamped(slot) => self.stamp(slot, world),
                State::Buffered { slot, done } => self.buffered(slot, done, world),
                State::BufferedPages { slot, done, wait } => self.buffered_pages(slot, done, wait, world),
                State::BufferedDone(slot) => self.buffered_done(slot, world),
                State::SyncWrite(slot) => self.sync_write(slot, world),
                State::Sync => self.sync(world),
                State::Invalidate(region, end) => self.invalidate(region, end, world),
                State::PassSync { last } => self.pass_sync(last, world),
                State::Ended => return Ran::Asleep,
            };
            match flow {
                Flow::Go => {}
                Flow::At(at) => {
                    if !world.advance_to(at) {
                        return Ran::Until(at);
                    }
                }
                Flow::Yield(at) => return Ran::Until(at),
                Flow::Sleep => {
                    self.sleeps += 1;
                    return Ran::Asleep;
                }
            }
        }
    }

    #[inline]
    fn top(&mut self, world: &mut World) -> Flow {
        if self.is_thread() {
            return self.serve(world);
        }
        let now = world.now();
        match self.issuer.next(now) {
            Step::Begin(unit) => self.begin_io(unit, world),
            Step::Drain(then) => self.go(State::Drain(Next::Step(then))),
            Step::Sync if self.has_threads() => self.go(State::Drain(Next::Sync)),
            Step::Sync if !self.prepared.is_empty() => self.go(State::Commit),
            Step::Sync => {
                self.syncing.begin_sync(now, self.issuer.syncs_times());
                self.go(State::Sync)
            }
        }
    }

    #[inline(always)]
    fn begin_io(&mut self, unit: IoUnit, world: &mut World) -> Flow {
        let slot = self.units.start(unit, world.now());
        let job = &self.spec.job;
        self.issuer.begun(unit.direction);
        if self.has_threads() {
            return self.hand_to_thread(slot, world);
        }
        if !job.queueing.direct && unit.direction != Direction::Trim {
            return self.begin_buffered(slot, world);
        }
        if world.cache.is_cached(FileId(unit.file), unit.offset, u64::from(unit.len)) {
            self.syncing.begin(world.now());
            return self.go(State::Uncache(slot));
        }
        // io_uring only asks whether these bytes have to be written first (`IOCB_NOWAIT`).
        if job.queueing.engine != Engine::IoUring && unit.direction != Direction::Trim {
            world.cache.pass(FileId(unit.file), world.now());
        }
        self.submit_cost(slot, world)
    }

    fn go(&mut self, state: State) -> Flow {
        self.state = state;
        Flow::Go
    }

    /// Continues the loop once an I/O has been queued.
    #[inline]
    fn queued(&mut self, world: &mut World) -> Flow {
        if self.units.all_in_use() {
            self.state = State::Reap;
            return self.reap(world);
        }
        self.go(State::Top)
    }

    /// Spends the time of `times` clock reads and of the pending ones.
    fn read_clock(&mut self, times: u64, world: &mut World) -> Flow {
        let span = Nanos((std::mem::take(&mut self.reads) + times) * world.host.clock.0);
        self.user += span;
        Flow::At(world.cpus.work(self.submitter.cpu, world.now(), span))
    }

    fn think(&mut self, world: &mut World) -> Flow {
        if world.host.clock > Nanos::ZERO && self.state != State::FallAsleep {
            self.state = State::FallAsleep;
            return self.read_clock(READS_BEFORE_A_PAUSE, world);
        }
        let think = self.spec.job.think;
        let spin = think.spin.min(think.time);
        let spun = world.cpus.work(self.submitter.cpu, world.now(), spin);
        self.user += spin;
        self.state = State::Top;
        let end = self.issuer.think(world.now(), spun);
        if world.host.clock == Nanos::ZERO {
            return self.pause(end, world);
        }
        self.state = State::Awake;
        self.pause(end.saturating_sub(SPINS).max(world.now()), world)
    }

    /// Sleeps until that time: the workers that it has woken run meanwhile.
    fn pause(&self, until: Nanos, world: &mut World) -> Flow {
        world.leave_cpu(self.submitter.actor);
        Flow::At(until)
    }

    /// Its measurements.
    pub fn result(&mut self) -> JobResult {
        JobResult {
            user_ns: self.user.0,
            system_ns: self.system.0,
            context_switches: self.sleeps,
            ..self.issuer.result(self.ended)
        }
    }
}
