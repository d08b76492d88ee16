//! Completions: waiting for them, reaping them, draining.

use super::*;

impl Process {
    /// A bio of direct I/O has completed: adds its CPU work, and wakes the process if it waited for
    /// this.
    #[inline(always)]
    pub fn bio_ended(&mut self, slot: u32, world: &mut World) {
        let bios_left = &mut self.bios_left[slot as usize];
        *bios_left -= 1;
        if *bios_left > 0 {
            return;
        }
        if self.shares_files {
            self.direct_ended(slot, world);
        }
        if self.spec.job.durability.mode != SyncMode::None && self.is_left_to_the_kernel(slot, world) {
            return;
        }
        self.done.push_back(slot);
        if self.spec.job.durability.mode != SyncMode::None
            && world.has_journal()
            && self.syncs_in_call(slot, world)
        {
            // It works when its call returns, after the sync.
            if std::mem::take(&mut self.wake_at_done) > 0 {
                world.wake(self.submitter.actor, world.now());
            }
            return;
        }
        let (cpu, now, cost) = (self.submitter.cpu, world.now(), world.host.complete);
        self.system += cost;
        if self.wake_at_done > 0 && self.done.len() >= self.wake_at_done {
            self.wake_at_done = 0;
            let at = world.cpus.work_woken(cpu, now, cost);
            world.wake(self.submitter.actor, at);
        } else {
            world.cpus.work(cpu, now, cost);
        }
    }

    /// The data of a direct I/O of a shared file are on the disk. Its call has the file's lock no longer, before the
    /// process has done the work of its completion, unless it syncs what it has written.
    #[cold]
    fn direct_ended(&mut self, slot: u32, world: &mut World) {
        if !self.synced.contains(&slot) {
            world.direct_ends(FileId(self.units.unit(slot).file));
        }
        if self.spec.job.durability.mode == SyncMode::None || !self.syncs_in_call(slot, world) {
            self.unlock(world);
        }
    }

    /// The data of a durable write are on the disk: true if a kernel thread syncs it now.
    #[cold]
    fn is_left_to_the_kernel(&mut self, slot: u32, world: &mut World) -> bool {
        if let Some(place) = self.synced.iter().position(|&synced| synced == slot) {
            self.synced.swap_remove(place);
            return false;
        }
        let is_left = self.is_synced_by_kernel(slot, world);
        if is_left {
            self.synced.push(slot);
            self.bios_left[slot as usize] = 1;
            let with_times = self.spec.job.durability.mode == SyncMode::Sync;
            world.sync_for(self.spec.id, slot, FileId(self.units.unit(slot).file), with_times);
        }
        is_left
    }

    /// Waits until `least` I/Os are done; true if they are.
    #[inline(always)]
    fn await_done(&mut self, least: usize) -> bool {
        if self.has_threads()
            && let Some(pool) = &self.pool
        {
            pool.borrow_mut().collect(&mut self.done, least);
        }
        self.wake_at_done = if self.done.len() >= least { 0 } else { least };
        self.wake_at_done == 0
    }

    #[inline]
    pub(super) fn reap(&mut self, world: &mut World) -> Flow {
        if !self.prepared.is_empty() {
            return self.go(State::Commit);
        }
        let (least, most) = self.units.to_reap();
        if !self.await_done(least as usize) {
            return Flow::Sleep;
        }
        let durable = self.spec.job.durability.mode != SyncMode::None;
        let progress = if durable { self.sync_written(world) } else { SyncProgress::Done };
        if self.shares_files && !self.syncing.needs_lock() {
            self.unlock(world);
        }
        if progress == SyncProgress::Asleep {
            return Flow::Sleep;
        }
        self.reap_done(most, world.now(), world);
        if !self.units.is_low() {
            return Flow::Go;
        }
        self.state = State::Top;
        self.top(world)
    }

    #[inline]
    fn reap_done(&mut self, most: u32, now: Nanos, world: &mut World) {
        self.reads += READS_AFTER_COMPLETION;
        let count = (self.done.len() as u32).min(most);
        for _ in 0..count {
            let Some(slot) = self.done.pop_front() else { break };
            self.reaped(slot, now, world);
        }
        self.issuer.collected(count);
    }

    #[inline]
    fn reaped(&mut self, slot: u32, now: Nanos, world: &mut World) {
        let Started { unit, start, issued } = self.units.reaped(slot);
        if self.is_thread() {
            return self.served(world);
        }
        self.issuer.reaped(&unit, IoTimes { start, issued, reaped: now });
        let write = unit.direction != Direction::Read;
        let device = world.layout.device_at(FileId(unit.file), unit.offset);
        let series = &mut world.devices[device].block.series;
        series.completed(now, write, unit.len.into(), now.saturating_sub(issued));
    }

    pub(super) fn drain(&mut self, next: Next, world: &mut World) -> Flow {
        if !self.prepared.is_empty() {
            // Commit ends in Top or Reap, and both return here.
            return self.go(State::Commit);
        }
        // `io_u_queued_complete()` at the end of `do_io()` waits for all, `io_u_quiesce()` for one.
        let ends = matches!(next, Next::Step(Then::Finish | Then::EndPass));
        let at_once = ends && world.host.drain_at_once;
        while self.units.depth() > 0 {
            let least = if at_once { self.units.depth() as usize } else { 1 };
            if !self.await_done(least) {
                return Flow::Sleep;
            }
            self.reap_done(u32::MAX, world.now(), world);
        }
        match next {
            Next::Sync => {
                self.syncing.begin_sync(world.now(), self.issuer.syncs_times());
                self.go(State::Sync)
            }
            Next::Step(Then::Finish) => self.go(State::PassSync { last: true }),
            Next::Step(Then::EndPass) => self.go(State::PassSync { last: false }),
            Next::Step(Then::Think) => self.think(world),
            Next::Step(Then::Pace(until)) => {
                self.state = State::Top;
                self.pause(until, world)
            }
            Next::Step(Then::Drop(file)) => {
                let region = self.region(file);
                self.go(State::Invalidate(region, region + 1))
            }
        }
    }

    /// An I/O that blocked its caller is done: a blocking engine reaps it at once, a queued one
    /// like any other.
    #[inline]
    pub(super) fn blocking_done(&mut self, slot: u32, world: &mut World) -> Flow {
        self.issuer.tally.depth(self.units.depth());
        self.issuer.submitted(1);
        if self.spec.job.queueing.engine.is_queued() {
            self.units.issued(slot, world.now());
            self.done.push_back(slot);
            return self.go(if self.units.all_in_use() { State::Reap } else { State::Top });
        }
        self.issuer.collected(1);
        self.reaped(slot, world.now(), world);
        self.go(State::Top)
    }
}
