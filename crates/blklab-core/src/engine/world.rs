//! What all actors share: the clock, the run queue, the devices and the files on them, the page
//! cache and the CPUs. Here they meet: time runs to the next event of any of them.

use super::clock::{Clock, HORIZON};
use super::flusher::FlusherTimer;
use super::page_io::{PageIos, Wait};
use super::wakeups::Wakeups;
use crate::device::{Devices, Layout};
use crate::host::{Cpus, Host};
use crate::pagecache::PageCache;
use crate::request::{Actor, ProcessId};
use crate::units::Nanos;

/// Everything but the source of I/O.
pub struct World {
    /// The time.
    pub clock: Clock,
    /// The disks, each behind its block layer.
    pub devices: Devices,
    /// Where files lie, as the plan and the page cache number them.
    pub layout: Layout,
    /// The page cache.
    pub cache: PageCache,
    /// What things cost.
    pub host: Host,
    /// When CPUs are free.
    pub cpus: Cpus,
    pub(super) wakeups: Wakeups,
    pub(super) page_ios: PageIos,
    flusher: FlusherTimer,
    /// Reused between calls.
    woken: Vec<Actor>,
}

impl World {
    /// At time zero, with so many processes, all asleep.
    pub fn new(devices: Devices, layout: Layout, cache: PageCache, host: Host, processes: usize) -> World {
        World {
            clock: Clock::default(),
            devices,
            layout,
            cache,
            cpus: Cpus::new(&host),
            host,
            wakeups: Wakeups::new(processes),
            page_ios: PageIos::default(),
            flusher: FlusherTimer::default(),
            woken: Vec::new(),
        }
    }

    /// The time.
    #[inline]
    pub fn now(&self) -> Nanos {
        self.clock.now()
    }

    /// Let a sleeping actor go on at `at`; without effect on one that will run anyway.
    #[inline]
    pub fn wake(&mut self, actor: Actor, at: Nanos) {
        self.wakeups.wake(actor, at, self.clock.now());
    }

    /// Go on to `at` at once if nothing else happens before; otherwise the caller yields. A process
    /// that never has to wait yields now and then all the same.
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

    /// True if no actor is to run at or before `at`.
    #[inline]
    pub fn no_actor_runs_before(&self, at: Nanos) -> bool {
        !self.wakeups.any_ready() && self.wakeups.next_timer() > at
    }

    /// Other actors run at this instant, on CPUs of their own: what costs CPU time in a host takes
    /// turns with them. Where CPU work is free, the one CPU stays with the actor that has it.
    pub fn others_run(&self) -> bool {
        !self.host.takes_no_time() && self.wakeups.any_ready()
    }

    /// When something happens next while all actors sleep.
    #[inline]
    pub fn next_event(&self) -> Nanos {
        self.next_event_but_the_devices().min(self.devices.next_event())
    }

    #[inline]
    fn next_event_but_the_devices(&self) -> Nanos {
        self.wakeups.next_timer().min(self.flusher.due(&self.cache))
    }

    /// The flusher has written everything that it has a reason to write.
    pub fn flusher_sleeps(&mut self) {
        self.flusher.sleep();
    }

    /// Wake the flusher if the page cache wants it now.
    #[inline]
    pub fn wake_flusher(&mut self) {
        if self.flusher.due(&self.cache) <= self.clock.now() {
            self.flusher.begin();
            let now = self.clock.now();
            self.wake(Actor::Flusher, now);
        }
    }

    /// Let time run to the next event, and whatever is due happen. The owners of bios that have
    /// ended are appended to `owners`; once they are told, [`World::pass_on_request`] is due. False
    /// if nothing happens before [`HORIZON`].
    #[inline]
    pub fn happen(&mut self, owners: &mut Vec<u64>) -> bool {
        let at = self.next_event_but_the_devices().min(self.devices.next_event_to_happen());
        if at > HORIZON {
            return false;
        }
        self.clock.run_to(at);
        self.clock.interrupt();
        let now = self.clock.now();
        self.devices.happen(now, owners);
        self.wake_flusher();
        self.wakeups.expire(now);
        true
    }

    /// Sleep until what is waited for may have come.
    pub fn sleep_until(&mut self, actor: Actor, wait: Wait) {
        self.page_ios.sleep_until(actor, wait);
    }

    /// A bio of a page I/O has ended; with the last one, actors that wait for pages of the file look
    /// again.
    pub fn page_bio_ended(&mut self, index: u32) {
        let now = self.clock.now();
        self.page_ios.bio_ended(index, &mut self.cache, now, &mut self.woken);
        self.wake_all_woken();
    }

    /// Requests may have become free: let the sleepers go on whose turn it is.
    #[inline]
    pub fn pass_on_request(&mut self) {
        self.devices.wake_waiters(&mut self.woken);
        if !self.woken.is_empty() {
            self.wake_all_woken();
        }
    }

    fn wake_all_woken(&mut self) {
        let now = self.clock.now();
        for actor in self.woken.drain(..) {
            self.wakeups.wake(actor, now, now);
        }
    }

    /// A process has ended: the schedulers forget it.
    pub fn process_exited(&mut self, process: ProcessId) {
        let now = self.clock.now();
        self.devices.iter_mut().for_each(|(_, device)| device.block.process_exited(now, process));
    }

    /// Hand plugged requests to the schedulers, and to the disks what the schedulers dispatch.
    #[inline]
    pub fn unplug(&mut self) {
        self.devices.unplug(self.clock.now());
    }

    /// The actor on the CPU sleeps. Next is the worker of `kblockd`, if it has been woken: before
    /// all other processes, for its priority is high (`WQ_HIGHPRI`).
    #[inline]
    pub fn leave_cpu(&mut self) {
        self.devices.run_workers(self.clock.now());
    }
}
