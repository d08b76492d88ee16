//! Direct I/O: from an I/O unit to bios.

use super::buffered::written;
use super::*;
use crate::block::Manner;
use crate::device::Device;

/// A submission of at most this many I/Os has no plug around it as a whole (`AIO_PLUG_THRESHOLD`,
/// and the same with io_uring).
const UNPLUGGED_MAX: usize = 2;

/// The largest read of a file that needs no plug: a block of its file system.
const FILE_BLOCK_BYTES: u32 = 4096;

impl Process {
    /// The CPU work of submitting a direct I/O.
    #[inline(always)]
    pub(super) fn submit_cost(&mut self, slot: u32, world: &mut World) -> Flow {
        self.state = State::Prepared(slot);
        let reads = READS_BEFORE_SUBMISSION - u64::from(self.spec.job.queueing.engine.is_queued());
        let clock = Nanos((std::mem::take(&mut self.reads) + reads) * world.host.clock.0);
        let cost = world.host.submit + clock;
        self.system += cost;
        let now = world.now();
        let unit = self.units.unit(slot);
        let device = world.layout.device_at(FileId(unit.file), unit.offset);
        let World { cpus, devices, .. } = world;
        // Of an I/O on several devices only the first one's lock is taken.
        Flow::At(cpus.submit(self.submitter.cpu, now, cost, &mut devices[device].lock))
    }

    /// Direct I/O to a range with cached pages: dirty pages are written to the disk first; a write
    /// or trim drops the range's pages (`kiocb_invalidate_pages`).
    pub(super) fn uncache(&mut self, slot: u32, world: &mut World) -> Flow {
        let IoUnit { direction, file, offset, len, .. } = *self.units.unit(slot);
        let (file, len) = (FileId(file), u64::from(len));
        if self.syncing.write_range(file, offset, len, self.submitter, world) == SyncProgress::Asleep {
            return Flow::Sleep;
        }
        if direction != Direction::Read {
            world.cache.invalidate(file, offset, len);
        }
        self.submit_cost(slot, world)
    }

    /// A durable write by a call that waits is followed by a flush: to a device always, although the write
    /// itself is durable (`generic_write_sync` of `blkdev_write_iter`), to a file if it is not
    /// (`IOMAP_DIO_NEED_SYNC`).
    #[cold]
    pub(super) fn sync_written(&mut self, world: &mut World) -> SyncProgress {
        match self.done.front().copied().filter(|&slot| self.syncs_in_call(slot, world)) {
            Some(slot) => {
                let unit = *self.units.unit(slot);
                if !self.syncing.is_running() {
                    let with_times = self.spec.job.durability.mode == SyncMode::Sync;
                    self.syncing.begin_sync(world.now(), with_times);
                }
                let dirty = if self.has_pages { written(&unit) } else { Dirty::None };
                self.syncing.run(&[unit.file], dirty, self.submitter, world)
            }
            None => SyncProgress::Done,
        }
    }

    /// The call that has written this syncs it before it returns.
    pub(super) fn syncs_in_call(&self, slot: u32, world: &World) -> bool {
        let unit = self.units.unit(slot);
        let device = world.layout.device_at(FileId(unit.file), unit.offset);
        !self.spec.job.queueing.engine.is_queued()
            && unit.direction == Direction::Write
            && (world.layout.file(FileId(unit.file)).is_device
                || !self.is_durable_itself(unit, &world.devices[device], world))
    }

    #[inline]
    pub(super) fn prepared(&mut self, slot: u32, world: &mut World) -> Flow {
        if world.host.clock > Nanos::ZERO {
            // The last reading of the clock was the start.
            self.units.restart(slot, world.now() - world.host.clock);
        }
        self.issuer.tally.depth(self.units.depth());
        if self.units.are_single() {
            return match self.hand_over(slot, world) {
                Ok(()) => self.committed(world),
                Err(asleep) => {
                    self.prepared.push_back(slot);
                    self.state = State::Commit;
                    asleep
                }
            };
        }
        self.prepared.push_back(slot);
        if self.units.is_batch(self.prepared.len()) { self.go(State::Commit) } else { self.go(State::Top) }
    }

    /// `io_submit()`: all prepared I/Os become bios. A few have at most a plug each.
    pub(super) fn commit(&mut self, world: &mut World) -> Flow {
        let few = self.at_once() <= UNPLUGGED_MAX;
        while let Some(&slot) = self.prepared.front() {
            if let Err(asleep) = self.hand_over(slot, world) {
                return asleep;
            }
            self.prepared.pop_front();
            if few {
                world.unplug();
            }
        }
        self.committed(world)
    }

    /// All bios of a submission are in the block layer.
    #[inline(always)]
    fn committed(&mut self, world: &mut World) -> Flow {
        world.unplug();
        world.pass_on_request();
        self.issuer.submitted(self.handed_over);
        self.handed_over = 0;
        if self.spec.job.queueing.engine.is_queued() && world.host.clock > Nanos::ZERO {
            // The clock is read for the time of submission.
            let at = world.cpus.work(self.submitter.cpu, world.now(), world.host.clock);
            self.state = State::Submitted;
            return Flow::At(at);
        }
        self.queued(world)
    }

    /// Submits the bios of a slot to the block layer, as long as there are requests for them.
    #[inline(always)]
    fn hand_over(&mut self, slot: u32, world: &mut World) -> Result<(), Flow> {
        if self.stream.is_none() {
            let unit = *self.units.unit(slot);
            if self.shares_files && !self.lock(&unit, world) {
                world.unplug_asleep();
                return Err(Flow::Sleep);
            }
            if unit.direction == Direction::Write && !world.writes(FileId(unit.file), self.submitter.actor) {
                world.unplug_asleep();
                return Err(Flow::Sleep);
            }
            let span = Span::of_bytes(FileId(unit.file), unit.offset, unit.len);
            let (place, sectors) = world.layout.head_of(span);
            let bio = self.bio(slot, &unit, place, span.sectors, world);
            let manner = self.manner(&unit, &world.devices[place.device], world);
            let now = world.now();
            if sectors < span.sectors {
                let World { layout, devices, .. } = world;
                self.bios_left[slot as usize] = FileStream::bios_of(span, layout, devices);
                self.stream = Some(FileStream::new(span, bio, manner, layout, devices));
            } else if let Some(left) = world.devices[place.device].begin(now, bio, manner) {
                self.stream = Some(FileStream::on(place.device, left));
            }
        }
        if self.stream.is_some() {
            self.hand_over_stream(world)?;
        }
        self.handed_over += 1;
        if self.shares_files {
            self.direct_begun(slot, world);
        }
        if self.spec.job.queueing.engine.is_queued() {
            self.units.issued(slot, world.now());
        }
        Ok(())
    }

    /// Has the lock of a file for a direct I/O; false if the process sleeps until it tries again.
    #[cold]
    fn lock(&mut self, unit: &IoUnit, world: &mut World) -> bool {
        if self.locked.is_some() {
            return true;
        }
        let (file, actor) = (FileId(unit.file), self.submitter.actor);
        let is_write = unit.direction == Direction::Write;
        if !world.lock_inode(file, self.must_lock, actor) {
            return false;
        }
        if is_write && self.must_lock == Hold::Shared && world.is_first_write(file) {
            world.unlock_inode(file, Hold::Shared);
            self.must_lock = Hold::Alone;
            return self.lock(unit, world);
        }
        if is_write {
            world.write_begins(file);
        }
        self.locked = Some((file, std::mem::replace(&mut self.must_lock, Hold::Shared)));
        true
    }

    /// A direct I/O is in the block layer. A call that does not wait for it has no lock from then on.
    #[cold]
    fn direct_begun(&mut self, slot: u32, world: &mut World) {
        world.direct_begins(FileId(self.units.unit(slot).file));
        if self.spec.job.queueing.engine.is_queued() {
            self.unlock(world);
        }
    }

    /// Frees the lock that it has for a direct I/O.
    #[cold]
    pub(super) fn unlock(&mut self, world: &mut World) {
        if let Some((file, hold)) = self.locked.take() {
            world.unlock_inode(file, hold);
        }
    }

    #[inline(never)]
    fn hand_over_stream(&mut self, world: &mut World) -> Result<(), Flow> {
        let now = world.now();
        let World { layout, devices, .. } = world;
        if let Some(stream) = &mut self.stream
            && !devices.hand_over(now, layout, stream, self.submitter.actor)
        {
            world.pass_on_request();
            return Err(Flow::Sleep);
        }
        self.stream = None;
        Ok(())
    }

    /// The bio of a durable write is durable itself (FUA). That to a file is not where a flush would follow
    /// each such bio, nor with O_SYNC, which is for the file's times too (`IOMAP_DIO_WRITE_THROUGH`): the
    /// call syncs after it, as fdatasync does. The same of a queued I/O is work of a kernel thread
    /// ([`Process::is_synced_by_kernel`]), instead of which the bio is durable where files have no journal.
    #[inline]
    fn is_durable_itself(&self, unit: &IoUnit, device: &Device, world: &World) -> bool {
        let waits = !self.spec.job.queueing.engine.is_queued();
        let is_in_a_file_system = !world.layout.file(FileId(unit.file)).is_device;
        let dsync = self.spec.job.durability.mode == SyncMode::Dsync;
        let is_synced = is_in_a_file_system && (waits || world.has_journal());
        !is_synced || (dsync && !device.block.flushes_after_fua())
    }

    /// A write that was queued is durable when a kernel thread has synced it.
    #[cold]
    pub(super) fn is_synced_by_kernel(&self, slot: u32, world: &World) -> bool {
        let unit = self.units.unit(slot);
        let device = world.layout.device_at(FileId(unit.file), unit.offset);
        self.spec.job.queueing.engine.is_queued()
            && unit.direction == Direction::Write
            && !self.is_durable_itself(unit, &world.devices[device], world)
    }

    /// A direct I/O that begins at `place` as one bio, to be cut.
    #[inline(always)]
    fn bio(&mut self, slot: u32, unit: &IoUnit, place: Location, sectors: u32, world: &World) -> Bio {
        let job = &self.spec.job;
        let device = &world.devices[place.device];
        self.bios_left[slot as usize] = device.bios_of(sectors);
        let prio = self.issuer.priority(unit.direction);
        Bio {
            op: unit.direction.op(),
            sector: place.sector,
            sectors,
            sync: true,
            fua: unit.direction == Direction::Write
                && job.durability.mode != SyncMode::None
                && self.is_durable_itself(unit, device, world),
            idle: true,
            background: false,
            process: self.spec.id,
            prio,
            cpu: self.submitter.cpu,
            thread: self.submitter.actor.thread(),
            hw_queue: device.hw_queue(self.submitter.cpu),
            owner: Owner::Process(self.spec.id, slot).pack(),
        }
    }

    /// The number of I/Os in the current submission.
    #[inline]
    fn at_once(&self) -> usize {
        self.handed_over as usize + self.prepared.len()
    }

    /// An I/O on a device that fits one bio has no plug, unless it is one of many; nor has a read of a file that
    /// fits one block.
    #[inline(always)]
    fn manner(&self, unit: &IoUnit, device: &Device, world: &World) -> Manner {
        let sectors = Bytes(u64::from(unit.len)).sectors() as u32;
        let few = self.at_once() <= UNPLUGGED_MAX;
        let is_simple_read = || {
            unit.direction == Direction::Read
                && unit.len <= FILE_BLOCK_BYTES
                && device.block.reads_blocks_without_plug()
        };
        let is_bare_device_io = || {
            let is_queued = self.spec.job.queueing.engine.is_queued();
            world.layout.file(FileId(unit.file)).is_device
                && !(is_queued && device.block.plugs_queued_device_io())
        };
        match few && (is_bare_device_io() || is_simple_read()) {
            true => Manner::on_a_device(unit.direction.op(), sectors),
            false => Manner::PLUGGED,
        }
    }
}
