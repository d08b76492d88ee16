//! The state that all actors share: the clock, the run queue, the devices and the files on them,
//! the page cache and the CPUs. Time advances to the next event of any of them.

use super::clock::Clock;
use super::flusher::FlusherTimer;
use super::inode_lock::{Hold, InodeLocks};
use super::journal::{Journal, Taken};
use super::page_io::{PageIos, Wait};
use super::sync::Syncing;
use super::syncer::{self, Syncer};
use super::wakeups::Wakeups;
use crate::containers::few::Few;
use crate::device::{Backing, Devices, Ended, Layout};
use crate::host::{Cpus, Host};
use crate::owner::Actor;
use crate::pagecache::{BackingId, FileId, PageCache};
use crate::request::ProcessId;
use crate::units::Nanos;

/// Everything except the source of I/O.
pub struct World {
    /// The time.
    pub clock: Clock,
    /// The disks, each with its block layer.
    pub devices: Devices,
    /// Where files are, by their numbers in the plan and the page cache.
    pub layout: Layout,
    /// The page cache.
    pub cache: PageCache,
    /// The host's costs.
    pub host: Host,
    /// When each CPU is free.
    pub cpus: Cpus,
    pub(super) wakeups: Wakeups,
    pub(super) page_ios: PageIos,
    inode_locks: InodeLocks,
    pub(super) syncers: slab::Slab<Syncer>,
    /// The file system's, if it has one.
    pub(super) journal: Option<Box<Journal>>,
    /// Per backing device.
    flushers: Few<FlusherTimer>,
    /// Reused between calls.
    pub(super) woken: Vec<Actor>,
    /// Those that a worker of the journal wakes; see [`World::run_journals_worker`].
    woken_by_worker: Vec<Actor>,
}

impl World {
    /// At time zero, with `processes` processes, all asleep.
    pub fn new(devices: Devices, layout: Layout, cache: PageCache, host: Host, processes: usize) -> World {
        World {
            clock: Clock::default(),
            devices,
            layout,
            cpus: Cpus::new(&host),
            host,
            wakeups: Wakeups::new(processes, cache.backings()),
            page_ios: PageIos::default(),
            inode_locks: InodeLocks::default(),
            syncers: slab::Slab::new(),
            journal: None,
            flushers: Few::new((0..cache.backings()).map(|_| FlusherTimer::default())),
            woken: Vec::new(),
            woken_by_worker: Vec::new(),
            cache,
        }
    }

    /// The time.
    #[inline]
    pub fn now(&self) -> Nanos {
        self.clock.now()
    }

    /// Lets a sleeping actor run at `at`; no effect on an actor that will run anyway.
    #[inline(always)]
    pub fn wake(&mut self, actor: Actor, at: Nanos) {
        self.wakeups.wake(actor, at, self.clock.now());
    }

    /// Advances to `at` at once if no other event comes before; otherwise the caller must yield. A
    /// process that never has to wait still yields from time to time.
    #[inline]
    pub fn advance_to(&mut self, at: Nanos) -> bool {
        if !self.clock.step(at) {
            return false;
        }
        if at > self.clock.now() {
            if self.wakeups.any_ready() || self.next_event() <= at {
                return false;
            }
            self.clock.run_to(at);
        }
        true
    }

    /// True if no actor must run at or before `at`.
    #[inline]
    pub fn no_actor_runs_before(&self, at: Nanos) -> bool {
        !self.wakeups.any_ready() && self.wakeups.next_timer() > at
    }

    /// Other actors run at this instant, on CPUs of their own: work that costs CPU time takes turns
    /// with them. Where CPU work is free, and where no time passes in the kernel, whatever its processes' work
    /// costs, a CPU stays with its actor.
    pub fn others_run(&self) -> bool {
        !self.host.takes_no_time() && !self.host.clock_stands && self.wakeups.any_ready()
    }

    /// The time of the next event while all actors sleep.
    #[inline]
    pub fn next_event(&self) -> Nanos {
        self.next_event_but_the_devices().min(self.devices.next_event())
    }

    #[inline]
    fn next_event_but_the_devices(&self) -> Nanos {
        self.wakeups.next_timer().min(self.next_flusher())
    }

    /// When the next flusher must run.
    #[inline]
    fn next_flusher(&self) -> Nanos {
        self.flushers.least(|index, flusher| flusher.due(&self.cache, BackingId(index as u16)))
    }

    /// A flusher has nothing left to write.
    pub fn flusher_sleeps(&mut self, backing: BackingId) {
        self.flushers[usize::from(backing.0)].sleep();
    }

    /// Wakes the flushers that the page cache needs now.
    #[inline]
    pub fn wake_flushers(&mut self) {
        let (cache, wakeups, now) = (&self.cache, &mut self.wakeups, self.clock.now());
        self.flushers.each(|index, flusher| {
            let backing = BackingId(index as u16);
            if flusher.due(cache, backing) <= now {
                flusher.begin();
                wakeups.wake(Actor::Flusher(backing), now, now);
            }
        });
    }

    /// Advances to the next event and performs everything that is due then; false if there is no
    /// event until `until`. Call [`World::pass_on_request`] and [`World::expire_timers`] after those in `ended` were
    /// notified.
    #[inline(always)]
    pub fn happen(&mut self, until: Nanos, ended: &mut Ended) -> bool {
        let at = self.next_event_but_the_devices().min(self.devices.next_event_to_happen());
        if at > until {
            return false;
        }
        self.clock.run_to(at);
        self.clock.interrupt();
        let then = self.devices.happen(self.clock.now(), self.host.interrupt, ended, &mut self.cpus);
        self.wakeups.expire(self.clock.now());
        self.clock.run_to(then);
        self.wake_flushers();
        true
    }

    /// The kernel needs time to handle the ends of commands. A timer that expires in that time wakes its actor here,
    /// after the actors that waited for these commands.
    #[inline]
    pub fn expire_timers(&mut self) {
        self.wakeups.expire(self.clock.now());
    }

    /// Wakes the first actor that waits for the lock of this page.
    pub fn page_unlocked(&mut self, file: FileId, page: u64) {
        self.page_ios.unlocked(file, page, &mut self.woken);
        self.wake_all_woken();
    }

    /// The actor has gone on after it was woken. If it had slept for a page's lock, wakes the next that waits
    /// for that lock.
    #[inline]
    pub fn pass_on_lock(&mut self, actor: Actor) {
        if !self.page_ios.passes_no_lock() {
            self.page_ios.pass_on_lock(actor, &self.cache, &mut self.woken);
        }
        if !self.woken.is_empty() {
            self.wake_all_woken();
        }
    }

    /// A process pauses, because too much of the page cache is dirty; it writes `file`.
    pub fn writer_pauses(&mut self, file: FileId) {
        let now = self.clock.now();
        if let Backing::Device(device) = self.layout.file(file).backing {
            self.devices[device].block.writer_pauses(now);
        }
    }

    /// Puts the actor to sleep until the event may have come.
    pub fn sleep_until(&mut self, actor: Actor, wait: Wait) {
        self.page_ios.sleep_until(actor, wait);
    }

    /// A bio of a page I/O has completed; with the last bio, actors that wait for pages of the file
    /// check again.
    pub fn page_bio_ended(&mut self, index: u32) {
        let now = self.clock.now();
        self.page_ios.bio_ended(index, &mut self.cache, now, &mut self.woken);
        if !self.woken.is_empty() {
            self.wake_all_woken();
        }
    }

    /// Gives the file system a journal.
    pub fn set_journal(&mut self, journal: Journal) {
        self.journal = Some(Box::new(journal));
    }

    /// A call begins to write the file: its times are those of now. False if `actor` sleeps until the journal
    /// takes them, and calls again.
    #[inline]
    pub fn writes(&mut self, file: FileId, actor: Actor) -> bool {
        self.journal.is_none() || self.layout.file(file).is_device || self.stamps(file, actor)
    }

    #[cold]
    fn stamps(&mut self, file: FileId, actor: Actor) -> bool {
        let (now, ticks) = (self.clock.now(), self.host.ticks);
        let taken = self.journal.as_mut().map(|journal| journal.writes(file, actor, now, ticks));
        self.takes(taken)
    }

    /// A process begins to sync a file with its times; see [`World::writes`].
    pub(super) fn syncs_times(&mut self, file: FileId, actor: Actor) -> bool {
        let (now, ticks) = (self.clock.now(), self.host.ticks);
        let taken = self.journal.as_mut().map(|journal| journal.take_times(file, actor, now, ticks));
        self.takes(taken)
    }

    /// The journal has taken times, or lets an actor wait.
    fn takes(&mut self, taken: Option<Taken>) -> bool {
        match taken {
            Some(Taken::Began { expires }) => self.wake(Actor::JournalTimer, expires),
            Some(Taken::Due) => self.wake(Actor::Journal, self.now()),
            _ => {}
        }
        taken != Some(Taken::Asleep)
    }

    /// Files are in a file system with a journal, which does all that a real one does.
    pub fn has_journal(&self) -> bool {
        self.journal.is_some()
    }

    /// A kernel thread syncs what a process has written to a file, and then the process's bio ends once more.
    pub fn sync_for(&mut self, process: ProcessId, io: u32, file: FileId, with_times: bool) {
        syncer::begin(process, io, file, with_times, self);
    }

    /// Takes the lock of a file that several processes use; false if `actor` sleeps until it tries again.
    pub fn lock_inode(&mut self, file: FileId, hold: Hold, actor: Actor) -> bool {
        let time = (self.clock.now(), self.host.ticks);
        let taken = self.inode_locks.take(file, hold, actor, time, &mut self.woken);
        self.wake_all_woken();
        taken
    }

    /// Frees it.
    pub fn unlock_inode(&mut self, file: FileId, hold: Hold) {
        self.inode_locks.free(file, hold, &mut self.woken);
        self.wake_all_woken();
    }

    /// A direct write of this file has to have its lock alone.
    pub fn is_first_write(&self, file: FileId) -> bool {
        self.host.files().first_write_is_alone && !self.inode_locks.is_written(file)
    }

    /// A write of this file has its lock.
    pub fn write_begins(&mut self, file: FileId) {
        self.inode_locks.write(file);
    }

    /// A direct I/O begins. Its process has the file's lock.
    pub fn direct_begins(&mut self, file: FileId) {
        self.inode_locks.direct_begins(file);
    }

    /// A direct I/O has ended.
    pub fn direct_ends(&mut self, file: FileId) {
        self.inode_locks.direct_ends(file, &mut self.woken);
        self.wake_all_woken();
    }

    /// A write through the page cache has the lock of this file; false if `actor` sleeps until no direct I/O of it
    /// is in flight.
    pub fn has_no_direct_io(&mut self, file: FileId, actor: Actor) -> bool {
        !self.host.files().buffered_writes_await_direct || self.inode_locks.await_direct(file, actor)
    }

    /// A bio of the journal's thread has completed.
    pub fn journal_bio_ended(&mut self, block: u32) {
        let Some(journal) = &mut self.journal else { return };
        if journal.has_worker() {
            return journal.bio_ended(block, &mut self.woken_by_worker);
        }
        journal.bio_ended(block, &mut self.woken);
        self.wake_all_woken();
    }

    /// A worker of the journal, which has been woken by the end of commands, wakes those that wait for a record: after
    /// all that the interrupt wakes.
    #[inline(always)]
    pub fn run_journals_worker(&mut self) {
        if !self.woken_by_worker.is_empty() {
            self.pass_on_request();
            let now = self.clock.now();
            self.woken_by_worker.drain(..).for_each(|actor| self.wakeups.wake_in_turn(actor, now));
        }
    }

    /// A flush of a process has ended.
    pub fn flush_ended(&mut self, syncing: &mut Syncing, process: Actor) {
        syncing.flush_ended(process, &mut self.wakeups, self.clock.now());
    }

    /// Requests may have become free: wakes the sleepers that are next.
    #[inline]
    pub fn pass_on_request(&mut self) {
        self.devices.wake_waiters(&mut self.woken);
        if !self.woken.is_empty() {
            self.wake_all_woken();
        }
    }

    pub(super) fn wake_all_woken(&mut self) {
        let now = self.clock.now();
        for actor in self.woken.drain(..) {
            self.wakeups.wake(actor, now, now);
        }
    }

    /// A process has exited, when this thread last ran, on that CPU: tells the schedulers.
    pub fn process_exited(&mut self, process: ProcessId, thread: ProcessId, cpu: u16) {
        let now = self.clock.now();
        for (_, device) in self.devices.iter_mut() {
            device.block.process_exited(now, process, thread, cpu);
        }
    }

    /// Flushes the plugs to the schedulers, and dispatches requests to the disks.
    #[inline]
    pub fn unplug(&mut self) {
        self.devices.unplug(self.clock.now());
    }

    /// The same because their owner sleeps: without a scheduler, no request goes straight to the driver.
    pub fn unplug_asleep(&mut self) {
        self.devices.unplug_asleep(self.clock.now());
    }

    /// `actor` sleeps. If it has woken one, a worker of `kblockd` runs next, before all other processes,
    /// because of its high priority (`WQ_HIGHPRI`).
    #[inline(always)]
    pub fn leave_cpu(&mut self, actor: Actor) {
        self.devices.run_workers(self.clock.now(), actor.thread());
    }
}
