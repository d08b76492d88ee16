//! Direct I/O: from an I/O unit to bios.

use super::*;

impl Process {
    /// The CPU work of submitting a direct I/O.
    #[inline]
    pub(super) fn submit_cost(&mut self, slot: u32, world: &mut World) -> Flow {
        self.state = State::Prepared(slot);
        let cost = world.host.submit;
        self.system += cost;
        Flow::At(world.cpus.submit(self.who.cpu, world.now, cost))
    }

    /// Direct I/O to a range of which pages are cached: dirty ones go to the disk first,
    /// and what is written or trimmed is dropped (`kiocb_invalidate_pages`).
    pub(super) fn uncache(&mut self, slot: u32, world: &mut World) -> Flow {
        let IoUnit { direction, file, offset, len, .. } = self.slots[slot as usize].unit;
        let (file, len) = (FileId(file), u64::from(len));
        if self.syncing.write_range(file, offset, len, self.who, world) == SyncProgress::Asleep {
            return Flow::Sleep;
        }
        if direction != Direction::Read {
            world.cache.invalidate(file, offset, len);
        }
        self.submit_cost(slot, world)
    }

    #[inline]
    pub(super) fn prepared(&mut self, slot: u32) -> Flow {
        self.prepared.push_back(slot);
        self.tally.depth(self.depth());
        let batch = self.spec.job.queueing.batch_submit;
        if self.prepared.len() as u32 >= batch || self.free.is_empty() {
            self.go(State::Commit)
        } else {
            self.go(State::Top)
        }
    }

    /// `io_submit()`: all that is prepared becomes bios.
    #[inline]
    pub(super) fn commit(&mut self, world: &mut World) -> Flow {
        while let Some(&slot) = self.prepared.front() {
            let mut stream = match self.stream.take() {
                Some(stream) => stream,
                None => self.bios(slot, world),
            };
            if stream.submit(world.now, &mut world.block, &mut world.disk) == Submitted::NoRequest {
                // A plug is flushed before its owner sleeps.
                world.unplug();
                if stream.submit(world.now, &mut world.block, &mut world.disk) == Submitted::NoRequest {
                    world.sleep_until(self.spec.id, Wait::Request(stream.needs()));
                    self.stream = Some(stream);
                    return Flow::Sleep;
                }
            }
            self.prepared.pop_front();
            self.in_flight += 1;
            self.handed_over += 1;
            if self.spec.job.queueing.engine.is_queued() {
                self.slots[slot as usize].issued = world.now;
            }
        }
        world.unplug();
        world.pass_on_request();
        self.tally.submit_levels[Tally::batch_level(self.handed_over)] += 1;
        self.handed_over = 0;
        self.queued()
    }

    /// The bios of a direct I/O.
    #[inline]
    fn bios(&mut self, slot: u32, world: &World) -> BioStream {
        let job = &self.spec.job;
        let io = &mut self.slots[slot as usize];
        let unit = io.unit;
        let file = &world.files[unit.file as usize];
        let sectors = Bytes(u64::from(unit.len)).sectors() as u32;
        let max_sectors = world.block.limits().max_sectors;
        io.bios_left = BioStream::parts(sectors, max_sectors);
        let prio = prio(&mut self.rng, &job.priorities, unit.direction);
        let whole = Bio {
            op: unit.direction.op(),
            sector: Sector(file.start.0 + Bytes(unit.offset).to_sector().0),
            sectors,
            sync: true,
            fua: unit.direction == Direction::Write && job.durability.mode != SyncMode::None,
            process: self.spec.id,
            prio,
            cpu: self.who.cpu,
            hw_queue: self.who.hw_queue,
            owner: Owner::Direct(self.spec.id, slot).pack(),
        };
        let stream = BioStream::new(whole, max_sectors);
        let waits = !job.queueing.engine.is_queued() && unit.direction != Direction::Trim;
        if file.is_device && waits && sectors <= BIO_SECTORS { stream.unplugged() } else { stream }
    }
}

/// The priority of one I/O (`cmdprio_percentage`).
#[inline]
fn prio(
    rng: &mut Xoshiro256PlusPlus,
    priorities: &crate::workload::spec::Priorities,
    direction: Direction,
) -> IoPrio {
    let percent = priorities.raised_percent[direction];
    if percent > 0 && random::chance(rng, percent) { priorities.raised[direction] } else { priorities.base }
}
