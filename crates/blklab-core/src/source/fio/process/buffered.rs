//! Buffered I/O, and the calls that sync or drop data.

use super::*;

impl Process {
    /// A flush of this process has completed.
    pub fn flush_ended(&mut self, world: &mut World) {
        world.flush_ended(&mut self.syncing, self.submitter.actor);
    }

    /// Begins a buffered I/O, once it has the file's lock.
    #[inline]
    pub(super) fn begin_buffered(&mut self, slot: u32, world: &mut World) -> Flow {
        if let Some((file, hold)) = self.buffered_lock(slot, world)
            && !world.lock_inode(file, hold, self.submitter.actor)
        {
            self.state = State::Locked(slot);
            return Flow::Sleep;
        }
        if self.units.unit(slot).direction == Direction::Write {
            return self.await_direct(slot, world);
        }
        self.owed = Owed { call: world.host.syscall, bytes: 0 };
        self.buffered(slot, 0, world)
    }

    /// The lock that a buffered I/O has to have, if others may have it.
    #[inline]
    fn buffered_lock(&self, slot: u32, world: &World) -> Option<(FileId, Hold)> {
        if !self.shares_files {
            return None;
        }
        let unit = self.units.unit(slot);
        match unit.direction {
            Direction::Write => Some((FileId(unit.file), Hold::Alone)),
            _ => world.host.files().buffered_reads_lock.then_some((FileId(unit.file), Hold::Shared)),
        }
    }

    /// A write that has the file's lock begins when no direct I/O is in flight.
    pub(super) fn await_direct(&mut self, slot: u32, world: &mut World) -> Flow {
        let file = FileId(self.units.unit(slot).file);
        if self.shares_files {
            if !world.has_no_direct_io(file, self.submitter.actor) {
                self.state = State::DirectAwaited(slot);
                return Flow::Sleep;
            }
            world.write_begins(file);
        }
        self.stamp(slot, world)
    }

    /// The file has the times of this write, and then its data.
    pub(super) fn stamp(&mut self, slot: u32, world: &mut World) -> Flow {
        let file = FileId(self.units.unit(slot).file);
        if !world.writes(file, self.submitter.actor) {
            self.state = State::Stamped(slot);
            return Flow::Sleep;
        }
        self.owed = Owed { call: world.host.syscall, bytes: 0 };
        self.buffered(slot, 0, world)
    }

    /// Continues a buffered read or write at byte `done`.
    #[inline]
    pub(super) fn buffered(&mut self, slot: u32, done: u64, world: &mut World) -> Flow {
        let unit = *self.units.unit(slot);
        let (offset, left) = (unit.offset + done, u64::from(unit.len) - done);
        let file = FileId(unit.file);
        let is_write = unit.direction == Direction::Write;
        if is_write && world.cache.checks_limits(file, &self.dirtier) {
            let at = self.work_off(world);
            if at > world.now() {
                self.state = State::Buffered { slot, done };
                return Flow::At(at);
            }
        }
        self.pages.begin(false);
        let step = if !is_write {
            let region = self.region(unit.file);
            let ra = &mut self.read_ahead[region as usize];
            world.cache.advance(world.now());
            let step = world.cache.read(file, offset, left, ra, &mut self.windows, &mut self.pages.ranges);
            if step.wait.is_some() {
                self.held = Some(world.cache.hold(file, offset, &step));
            }
            step
        } else {
            let (dirtier, out) = (&mut self.dirtier, &mut self.pages.ranges);
            let step = world.cache.write(world.now(), file, offset, left, dirtier, out);
            world.wake_flushers();
            step
        };
        world.pass_on_lock(self.submitter.actor);
        let done = done + step.bytes;
        self.owed.bytes += step.bytes - step.uncopied;
        let at = self.work_off(world);
        self.owed.bytes += step.uncopied;
        if self.pages.ranges.is_empty() && step.wait.is_none() {
            if world.advance_to(at) {
                return self.buffered_done(slot, world);
            }
            self.state = State::BufferedDone(slot);
            return Flow::Yield(at);
        }
        self.state = State::BufferedPages { slot, done, wait: step.wait };
        Flow::At(at)
    }

    /// Does the CPU work that the process owes: returns when it is done.
    #[inline]
    fn work_off(&mut self, world: &mut World) -> Nanos {
        let owed = std::mem::take(&mut self.owed);
        let cost = owed.call + world.host.copying(owed.bytes);
        if cost == Nanos::ZERO {
            return world.now();
        }
        self.system += cost;
        world.cpus.work(self.submitter.cpu, world.now(), cost)
    }

    /// Submits the pages, then waits for the event that the cache named.
    pub(super) fn buffered_pages(
        &mut self,
        slot: u32,
        done: u64,
        wait: Option<pagecache::Wait>,
        world: &mut World,
    ) -> Flow {
        let file = FileId(self.units.unit(slot).file);
        loop {
            if self.pages.hand_over(world, self.submitter) == Err(Asleep) {
                return Flow::Sleep;
            }
            if self.windows.is_empty() {
                break;
            }
            self.pages.begin(false);
            world.cache.advance(world.now());
            world.cache.read_on(file, &mut self.windows, &mut self.pages.ranges);
        }
        if let Some(pagecache::Wait::Page(page)) = wait
            && world.cache.is_reading(file, page)
        {
            world.sleep_until(self.submitter.actor, Wait::Page(file, page));
            return Flow::Sleep;
        }
        if let Some(held) = self.held.take() {
            world.cache.let_go(held);
        }
        match wait {
            None => self.go(State::BufferedDone(slot)),
            Some(pagecache::Wait::Lock(page)) if world.cache.is_locked(file, page) => {
                self.state = State::Buffered { slot, done };
                world.sleep_until(self.submitter.actor, Wait::Lock(file, page));
                Flow::Sleep
            }
            Some(pagecache::Wait::Page(_) | pagecache::Wait::Lock(_) | pagecache::Wait::Work) => {
                self.go(State::Buffered { slot, done })
            }
            Some(pagecache::Wait::Memory) => {
                world.sleep_until(self.submitter.actor, Wait::AnyPages);
                self.state = State::Buffered { slot, done };
                Flow::Sleep
            }
            Some(pagecache::Wait::Pause(pause)) => {
                self.state = if done == u64::from(self.units.unit(slot).len) {
                    State::BufferedDone(slot)
                } else {
                    State::Buffered { slot, done }
                };
                self.sleeps += 1;
                world.writer_pauses(file);
                self.pause(world.now() + pause, world)
            }
        }
    }

    #[inline]
    pub(super) fn buffered_done(&mut self, slot: u32, world: &mut World) -> Flow {
        let durable = self.spec.job.durability.mode != SyncMode::None;
        let is_write = self.units.unit(slot).direction == Direction::Write;
        if let Some((file, hold)) = self.buffered_lock(slot, world) {
            world.unlock_inode(file, hold);
        }
        if durable && is_write {
            let with_times = self.spec.job.durability.mode == SyncMode::Sync;
            self.syncing.begin_sync(world.now(), with_times);
            return self.go(State::SyncWrite(slot));
        }
        self.blocking_done(slot, world)
    }

    pub(super) fn sync_write(&mut self, slot: u32, world: &mut World) -> Flow {
        let unit = *self.units.unit(slot);
        match self.syncing.run(&[unit.file], written(&unit), self.submitter, world) {
            SyncProgress::Asleep => Flow::Sleep,
            SyncProgress::Done => self.blocking_done(slot, world),
        }
    }

    fn sync_files(&mut self, world: &mut World) -> SyncProgress {
        let dirty = if self.has_pages { Dirty::All } else { Dirty::None };
        // Most have one file.
        if let [only] = &self.spec.regions[..] {
            return self.syncing.run(&[only.file], dirty, self.submitter, world);
        }
        let files = self.spec.regions.iter().map(|region| region.file).collect::<Vec<_>>();
        self.syncing.run(&files, dirty, self.submitter, world)
    }

    pub(super) fn sync(&mut self, world: &mut World) -> Flow {
        match self.sync_files(world) {
            SyncProgress::Asleep => Flow::Sleep,
            SyncProgress::Done => {
                self.issuer.synced(world.now() - self.syncing.begun());
                self.go(State::Top)
            }
        }
    }

    pub(super) fn pass_sync(&mut self, last: bool, world: &mut World) -> Flow {
        if self.issuer.owes_sync() {
            if !self.syncing.is_running() {
                self.syncing.begin_sync(world.now(), true);
            }
            if self.sync_files(world) == SyncProgress::Asleep {
                return Flow::Sleep;
            }
            self.issuer.synced_at_end();
        }
        if !last && self.issuer.begin_pass() {
            let regions = if self.issuer.drops_pages() { self.spec.regions.len() as u32 } else { 0 };
            return self.go(State::Invalidate(0, regions));
        }
        self.state = State::Ended;
        self.ended = world.now();
        Flow::Go
    }

    /// The process's region in that file.
    #[inline]
    pub(super) fn region(&self, file: u32) -> u32 {
        let regions = &self.spec.regions;
        // A process's files usually have consecutive numbers.
        let guess = file.wrapping_sub(regions[0].file) as usize;
        if regions.get(guess).is_some_and(|region| region.file == file) {
            return guess as u32;
        }
        regions.iter().position(|region| region.file == file).expect("the pattern keeps to the regions")
            as u32
    }

    /// `posix_fadvise(POSIX_FADV_DONTNEED)`: submits dirty pages to the disk and drops clean ones.
    pub(super) fn invalidate(&mut self, region: u32, end: u32, world: &mut World) -> Flow {
        if region == end {
            return self.go(State::Top);
        }
        let file = FileId(self.spec.regions[region as usize].file);
        if !self.syncing.is_running() {
            self.syncing.begin(world.now());
        }
        if self.syncing.write_out(file, self.submitter, world) == SyncProgress::Asleep {
            return Flow::Sleep;
        }
        world.cache.drop_unheld(file);
        // It waits for nothing. The worker has a high priority and takes the CPU from it.
        world.leave_cpu(self.submitter.actor);
        self.go(State::Invalidate(region + 1, end))
    }
}

/// The pages that a durable write has written, which it syncs.
pub(super) fn written(unit: &IoUnit) -> Dirty {
    Dirty::Bytes { offset: unit.offset, bytes: u64::from(unit.len) }
}
