//! The devices of the simulated machine: a list of disks, each with its own block layer, and the
//! [`Layout`] of files on them.
//!
//! A [`DeviceId`] names a device. The engine asks all devices for their next event and performs it.
//! Devices share nothing else, so a machine may have any number of them. A file is a list of
//! extents, which may lie on several devices; a [`FileStream`] is an I/O of a file on its way to
//! them.

mod hand_over;
mod layout;
mod stream;
mod waiters;

use crate::block::{Admission, BIO_SECTORS, BioStream, Block, Manner, Submitted};
use crate::containers::few::Few;
use crate::disk::{AnyDisk, Completion, Disk};
use crate::host::{Cpus, Driver, Lock};
use crate::owner::{Actor, Owner};
use crate::pagecache::{PAGE_BYTES, PageRange};
use crate::request::{Bio, ProcessId};
use crate::units::{Nanos, SECTOR_BYTES};

pub use layout::{Backing, Extent, Layout, Location, PlacedFile, Span, Volume};
pub use stream::FileStream;
use waiters::RequestWaiters;

/// A device's index in [`Devices`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeviceId(pub u16);

/// What to notify after commands have ended ([`Owner`]), in order: of each request first its owners,
/// then the sleepers that may have its tag (`bio_endio` comes before `blk_mq_put_tag`).
#[derive(Debug, Default)]
pub struct Ended(Vec<u64>);

impl Ended {
    /// A command has ended.
    #[inline]
    fn take(&mut self, block: &mut Block, waiters: &mut RequestWaiters, completion: Completion) {
        if block.complete(completion, &mut self.0) {
            return self.take_flush(block, waiters, completion.at);
        }
        self.wake_any(waiters, block);
    }

    /// The command was a flush, of bios that each have a tag.
    #[cold]
    fn take_flush(&mut self, block: &mut Block, waiters: &mut RequestWaiters, now: Nanos) {
        while block.end_next_of_flush(now, &mut self.0) {
            self.wake_any(waiters, block);
        }
    }

    /// Wakes sleepers for which there are tags now.
    #[inline]
    fn wake_any(&mut self, waiters: &mut RequestWaiters, block: &mut Block) {
        if !waiters.is_empty() && !block.is_single_queue() {
            self.wake(waiters, block);
        }
    }

    #[cold]
    fn wake(&mut self, waiters: &mut RequestWaiters, block: &mut Block) {
        let mut woken = Vec::new();
        waiters.wake(block, &mut woken);
        self.0.extend(woken.into_iter().map(|actor| Owner::Sleeper(actor).pack()));
    }

    /// Nothing is to be notified.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Everything in order; the list is empty afterwards.
    #[inline]
    pub fn drain(&mut self) -> impl Iterator<Item = u64> {
        self.0.drain(..)
    }
}

/// A disk with its block layer.
pub struct Device {
    /// The queue: plug, scheduler, tags.
    pub block: Block,
    /// The disk.
    pub disk: AnyDisk,
    /// The scheduler's lock.
    pub lock: Lock,
    driver: Driver,
    waiters: RequestWaiters,
    /// Those woken by the plug of a process that goes on: they run when it sleeps.
    woken: Vec<Actor>,
    /// The time of its next event, as of the latest [`Devices::next_event_to_happen`].
    due: Nanos,
    /// Reused between calls.
    completions: Vec<Completion>,
}

impl Device {
    /// An idle device.
    pub fn new(block: Block, disk: AnyDisk, lock: Lock, driver: Driver) -> Device {
        Device {
            waiters: RequestWaiters::new(&block),
            woken: Vec::new(),
            block,
            disk,
            lock,
            driver,
            due: Nanos::NEVER,
            completions: Vec::new(),
        }
    }

    /// The hardware queue of a CPU.
    #[inline]
    pub fn hw_queue(&self, cpu: u16) -> u16 {
        self.block.limits().hw_queue(cpu)
    }

    /// See [`Block::submit`].
    #[inline]
    pub fn submit(&mut self, now: Nanos, bio: &Bio, manner: Manner) -> Submitted {
        self.block.submit(now, bio, manner, &mut self.disk)
    }

    /// The number of bios into which an I/O of that length is cut.
    #[inline]
    pub fn bios_of(&self, sectors: u32) -> u32 {
        BioStream::parts(sectors, self.block.limits().max_sectors)
    }

    /// Submits an I/O that fits one bio, if there is a free request. Otherwise returns the stream
    /// for [`Device::hand_over`]; most I/Os do not need it.
    #[inline(always)]
    pub fn begin(&mut self, now: Nanos, whole: Bio, manner: Manner) -> Option<BioStream> {
        let max_sectors = self.block.limits().max_sectors;
        let is_one = BioStream::parts(whole.sectors, max_sectors) == 1;
        let manner = match is_one.then(|| self.submit(now, &whole, manner)) {
            Some(Submitted::Taken) => return None,
            Some(Submitted::NoRequest(most)) => Manner { again: Some(most), ..manner },
            Some(Submitted::NoPlace) => Manner { place: Admission::Refused, ..manner },
            None => manner,
        };
        Some(BioStream::new(whole, max_sectors).of(manner))
    }

    /// The number of parts into which a bio of that length is split.
    pub fn parts_of_bio(&self, sectors: u32) -> u32 {
        sectors.div_ceil(self.block.limits().max_sectors).max(1)
    }

    /// As [`Device::begin`], but for one bio of any length.
    pub fn begin_bio(&mut self, now: Nanos, bio: Bio, manner: Manner) -> Option<BioStream> {
        match self.parts_of_bio(bio.sectors) {
            1 if bio.sectors <= BIO_SECTORS => self.begin(now, bio, manner),
            _ => Some(BioStream::one(bio, self.block.limits().max_sectors).of(manner)),
        }
    }

    /// Flushes the plug to the scheduler, and dispatches requests to the disk.
    #[inline]
    pub fn unplug(&mut self, now: Nanos) {
        self.block.unplug(now, &mut self.disk);
    }

    /// The time of the next event of the disk, the driver, the scheduler or the worker.
    #[inline]
    fn next_event(&self) -> Nanos {
        self.disk.next_event().min(self.block.next_timer()).min(self.driver.due())
    }

    /// Performs what is due at `now`; returns the time at which everything else goes on, which is
    /// `interrupt` later if commands have ended. Not inlined: most events are not the device's.
    #[inline(never)]
    fn happen(&mut self, now: Nanos, interrupt: Nanos, ended: &mut Ended, cpus: &mut Cpus) -> Nanos {
        let mut then = now;
        let mut have_ended = self.disk.next_event() <= now;
        if have_ended {
            self.disk.advance(now, &mut self.completions);
        }
        if self.driver.has_thread() {
            have_ended = self.pass_to_driver(now, cpus);
        }
        // What ends during the interrupt causes the next one, before anything else runs.
        while self.end_commands(then, ended) && interrupt > Nanos::ZERO && !self.driver.has_thread() {
            then += interrupt;
            self.disk.advance(then, &mut self.completions);
        }
        if have_ended {
            self.block.run(then, &mut self.disk);
        }
        if self.block.next_timer() <= then {
            self.block.timer(then);
            ended.0.extend(self.block.take_admitted());
            self.block.run(then, &mut self.disk);
        }
        then
    }

    /// An interrupt at `now` finds that commands have ended; false if none have.
    #[inline]
    fn end_commands(&mut self, now: Nanos, ended: &mut Ended) -> bool {
        let any = !self.completions.is_empty();
        for completion in self.completions.drain(..) {
            let at = completion.at.max(now);
            ended.take(&mut self.block, &mut self.waiters, Completion { at, ..completion });
        }
        self.block.start_kept_flush(now, &mut self.disk);
        any
    }

    /// Gives what the disk has served to the driver's thread; leaves what the thread is done with, and
    /// returns whether it was due. Out of the way of devices without a thread.
    #[cold]
    fn pass_to_driver(&mut self, now: Nanos, cpus: &mut Cpus) -> bool {
        self.completions.drain(..).for_each(|served| self.driver.take(now, served, cpus, &mut self.lock));
        let is_due = self.driver.due() <= now;
        while let Some(done) = self.driver.finish(now, cpus, &mut self.lock) {
            self.completions.push(Completion { at: now, ..done });
        }
        is_due
    }

    /// Requests may have become free: appends to `woken` the sleepers that are next.
    #[cold]
    fn wake_waiters(&mut self, woken: &mut Vec<Actor>) {
        if self.block.is_single_queue() {
            woken.extend(self.waiters.wake_first(&self.block));
        } else {
            woken.append(&mut self.woken);
            self.waiters.wake(&mut self.block, woken);
        }
    }
}

/// All devices of a machine.
pub struct Devices(Few<Device>);

impl Devices {
    /// The devices, numbered in this order; at least one.
    pub fn new(all: Vec<Device>) -> Devices {
        Devices(Few::new(all))
    }

    /// All in order.
    pub fn iter(&self) -> impl Iterator<Item = &Device> {
        self.0.iter()
    }

    /// All in order, to be changed.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (DeviceId, &mut Device)> {
        (0..).map(DeviceId).zip(self.0.iter_mut())
    }

    /// All in order, taken apart.
    pub fn into_vec(self) -> Vec<Device> {
        self.0.into_vec()
    }

    /// The time of the next event at any device.
    #[inline]
    pub fn next_event(&self) -> Nanos {
        self.0.least(|_, device| device.next_event())
    }

    /// The same, before [`Devices::happen`]: each device is asked once for both.
    #[inline(always)]
    pub fn next_event_to_happen(&mut self) -> Nanos {
        let mut first = Nanos::NEVER;
        self.0.each(|_, device| {
            device.due = device.next_event();
            first = first.min(device.due);
        });
        first
    }

    /// Performs what is due at `now`; call [`Devices::next_event_to_happen`] first. Returns the
    /// time at which processes go on; see [`crate::host::Host::interrupt`]. Threads of drivers run on
    /// `cpus`.
    #[inline]
    pub fn happen(&mut self, now: Nanos, interrupt: Nanos, ended: &mut Ended, cpus: &mut Cpus) -> Nanos {
        let mut then = now;
        self.0.each(|_, device| {
            if device.due <= now {
                then = then.max(device.happen(now, interrupt, ended, cpus));
            }
        });
        then
    }

    /// Submits the rest of `stream` to the devices that have a part of it; false if `actor` sleeps; it
    /// tries again when woken. Before it sleeps, its plug is flushed, on all devices.
    #[inline]
    pub fn hand_over(&mut self, now: Nanos, layout: &Layout, stream: &mut FileStream, actor: Actor) -> bool {
        loop {
            if !self[stream.device].hand_over(now, &mut stream.bios, actor) {
                self.unplug_asleep(now);
                return false;
            }
            if !stream.goes_on(layout, self) {
                return true;
            }
        }
    }

    /// The part of pages to be written, with one bio each, that goes to one request; `bio` has everything except
    /// its place, length and hardware queue.
    pub fn pages_of_one_request(&mut self, now: Nanos, layout: &Layout, pages: PageRange, bio: Bio) -> u32 {
        let mut span = layout.span_of(pages);
        let Some((place, sectors)) = layout.next_of(&mut span) else { return pages.pages };
        let device = &mut self[place.device];
        let hw_queue = device.hw_queue(bio.cpu);
        let bio = Bio { sector: place.sector, sectors, hw_queue, ..bio };
        let found = device.block.sectors_for_one_request(now, &bio);
        u64::from(found).div_ceil(PAGE_BYTES / SECTOR_BYTES).clamp(1, u64::from(pages.pages)) as u32
    }

    /// A process flushes its plugs.
    #[inline]
    pub fn unplug(&mut self, now: Nanos) {
        self.0.each(|_, device| device.unplug(now));
    }

    /// The same because the process sleeps.
    pub fn unplug_asleep(&mut self, now: Nanos) {
        self.0.each(|_, device| device.block.unplug_asleep(now, &mut device.disk));
    }

    /// `thread` sleeps: the workers of the block layers run next that it has woken.
    #[inline(always)]
    pub fn run_workers(&mut self, now: Nanos, thread: ProcessId) {
        self.0.each(|_, device| device.block.run_worker(now, thread, &mut device.disk));
    }

    /// Requests may have become free: appends to `woken` the sleepers that are next.
    #[inline]
    pub fn wake_waiters(&mut self, woken: &mut Vec<Actor>) {
        self.0.each(|_, device| {
            if device.block.has_admitted() {
                woken.extend(device.block.take_admitted().filter_map(Actor::of_sleeper));
            }
            if !device.waiters.is_empty() {
                device.wake_waiters(woken);
            }
        });
    }
}

impl std::ops::Index<DeviceId> for Devices {
    type Output = Device;

    #[inline]
    fn index(&self, id: DeviceId) -> &Device {
        &self.0[usize::from(id.0)]
    }
}

impl std::ops::IndexMut<DeviceId> for Devices {
    #[inline]
    fn index_mut(&mut self, id: DeviceId) -> &mut Device {
        &mut self.0[usize::from(id.0)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::queue_limits;
    use crate::disk::catalogue;
    use crate::host::{DriverCosts, Host};
    use crate::request::{Op, ProcessId};
    use crate::scheduler::spec::SchedulerSpec;
    use crate::scheduler::{AnyScheduler, Tasks};
    use crate::units::Sector;

    /// A device with two tags, on which all commands take the same time.
    fn device() -> Device {
        device_of("none", 2, 2)
    }

    fn device_of(scheduler: &str, queue_depth: u32, nr_requests: u32) -> Device {
        let spec = SchedulerSpec::parse(scheduler).expect("a scheduler");
        let disk = catalogue::model("constant").expect("a shipped disk").build(1);
        let limits = queue_limits(disk.limits(), spec.info, &Host::FREE, &spec.queue);
        let limits = crate::scheduler::QueueLimits { queue_depth, nr_requests, ..limits };
        let tasks = Tasks::default();
        let elevator = AnyScheduler::new(scheduler, &spec.settings, &limits, &tasks).expect("registered");
        let block = Block::new(&disk, limits, elevator, tasks, &Host::FREE);
        Device::new(block, disk, Lock::new(Nanos::ZERO), Driver::new(DriverCosts::default()))
    }

    /// Submits a read; true if the process sleeps.
    fn read(device: &mut Device, process: u32, sector: u64) -> bool {
        read_at(device, Nanos::ZERO, process, sector)
    }

    fn read_at(device: &mut Device, now: Nanos, process: u32, sector: u64) -> bool {
        let Some(mut rest) = begin(device, now, process, sector) else { return false };
        !device.hand_over(now, &mut rest, Actor::Process(ProcessId(process)))
    }

    /// The first try to submit a read; what remains of it, if there is no request.
    fn begin(device: &mut Device, now: Nanos, process: u32, sector: u64) -> Option<BioStream> {
        begin_as(device, now, process, sector, Manner::BARE)
    }

    fn begin_as(
        device: &mut Device,
        now: Nanos,
        process: u32,
        sector: u64,
        manner: Manner,
    ) -> Option<BioStream> {
        let process = ProcessId(process);
        let bio = Bio {
            op: Op::Read,
            sector: Sector(sector),
            sectors: 8,
            sync: true,
            fua: false,
            idle: true,
            background: false,
            process,
            prio: Default::default(),
            cpu: 0,
            thread: ProcessId(0),
            hw_queue: 0,
            owner: Owner::Process(process, 0).pack(),
        };
        device.begin(now, bio, manner)
    }

    #[test]
    fn freed_tags_count_for_the_next_sleepers_until_those_that_were_woken_have_run() {
        // Two tags and a batch of one: a wake-up for each.
        let mut device = device();
        assert_eq!([0, 1, 2].map(|n| read(&mut device, n, 1000 * u64::from(n))), [false, false, true]);
        let mut ended = Ended::default();
        let at = device.next_event();
        device.happen(at, Nanos::ZERO, &mut ended, &mut Cpus::new(&Host::FREE));
        assert!(!device.waiters.is_empty(), "it has not run yet");
        assert_eq!(ended.drain().count(), 3);
    }

    #[test]
    fn a_process_that_the_merges_of_its_own_plug_wake_does_not_sleep() {
        for (third, has_request) in [(1008, true), (4000, false)] {
            let mut device = device_of("mq-deadline", 1, 3);
            let begin =
                |device: &mut Device, sector| begin_as(device, Nanos::ZERO, 1, sector, Manner::PLUGGED);
            for sector in [1000, 3000, third] {
                assert!(
                    begin(&mut device, sector).is_none(),
                    "it is in the plug, behind another that it does not adjoin"
                );
            }
            let mut rest = begin(&mut device, 5000).expect("there are three tags");
            let actor = Actor::Process(ProcessId(1));
            assert_eq!(device.hand_over(Nanos::ZERO, &mut rest, actor), has_request, "{third}");
        }
    }

    /// As it is on SATA disks, where a search may miss a free tag once.
    #[test]
    fn a_bio_that_gets_a_request_at_its_second_try_has_taken_a_wait_queue() {
        let mut device = device();
        let first = RequestWaiters::new(&device.block).place(0);
        assert_eq!([0, 1].map(|n| read(&mut device, n, 1000 * u64::from(n))), [false, false]);
        let mut rest = begin(&mut device, Nanos::ZERO, 2, 2000).expect("there are two tags");
        let at = device.next_event();
        device.happen(at, Nanos::ZERO, &mut Ended::default(), &mut Cpus::new(&Host::FREE));
        assert!(device.hand_over(at, &mut rest, Actor::Process(ProcessId(2))));
        assert!(device.waiters.is_empty());
        assert_ne!(device.waiters.place(0), first);
    }

    #[test]
    fn a_command_that_ends_during_an_interrupt_causes_another_one_before_processes_go_on() {
        let nanosecond = Nanos(1);
        for (gap, interrupts) in [(0, 1), (1, 2), (2, 1)] {
            let mut device = device();
            read_at(&mut device, Nanos::ZERO, 0, 0);
            read_at(&mut device, Nanos(gap), 1, 1_000);
            let (mut ended, at) = (Ended::default(), device.next_event());
            let then = device.happen(at, nanosecond, &mut ended, &mut Cpus::new(&Host::FREE));
            assert_eq!(then, at + Nanos(interrupts), "{gap} ns apart");
            assert_eq!(ended.drain().count(), if gap > 1 { 1 } else { 2 }, "{gap} ns apart");
        }
    }

    #[test]
    fn sleepers_are_notified_after_the_owners_of_the_request_whose_tag_is_free() {
        let mut device = device();
        let asleep: Vec<_> = (0..4).map(|n| read(&mut device, n, 1000 * u64::from(n))).collect();
        assert_eq!(asleep, [false, false, true, true], "there are two tags");
        let mut ended = Ended::default();
        let at = device.next_event();
        device.happen(at, Nanos::ZERO, &mut ended, &mut Cpus::new(&Host::FREE));
        let order: Vec<_> = ended.drain().map(Owner::unpack).collect();
        let ended_of = |process| Owner::Process(ProcessId(process), 0);
        let woken = |process| Owner::Sleeper(Actor::Process(ProcessId(process)));
        assert_eq!(order, [ended_of(0), woken(2), ended_of(1), woken(3)]);
        assert!(ended.is_empty());
    }
}
