//! I/O of the page cache: ranges of pages in flight, and the actors that wait for them.

use super::owner::Owner;
use super::world::World;
use crate::block::BioStream;
use crate::device::{Device, DeviceId, Layout};
use crate::pagecache::{FileId, PageCache, PageRange};
use crate::request::{Actor, Bio, IoPrio, Op, ProcessId};
use crate::units::Nanos;

/// The event in the page cache that an actor waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Read or writeback of pages of this file.
    Pages(FileId),
    /// Read or writeback of any pages.
    AnyPages,
}

/// The submitter of page I/O.
#[derive(Clone, Copy, Debug)]
pub struct Submitter {
    /// The actor that submits the bios, and sleeps if there is no free request.
    pub actor: Actor,
    /// Its priority.
    pub prio: IoPrio,
    /// The CPU it runs on.
    pub cpu: u16,
    /// Synchronous writes (`WB_SYNC_ALL`).
    pub waits: bool,
}

impl Submitter {
    /// The process that the bios belong to.
    #[inline]
    pub fn process(&self) -> ProcessId {
        self.actor.process()
    }
}

/// The caller sleeps and will be called again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asleep;

/// A range of pages in flight.
#[derive(Clone, Copy, Debug)]
struct PageIo {
    range: PageRange,
    write: bool,
    bios_left: u32,
}

/// All ranges of pages in flight, and the actors that wait for them.
#[derive(Debug, Default)]
pub struct PageIos {
    ios: slab::Slab<PageIo>,
    waiters: Vec<(Actor, Wait)>,
}

impl PageIos {
    /// Starts the read or write of a range on `device`; returns the bio for it, to be cut.
    fn begin(
        &mut self,
        range: PageRange,
        write: bool,
        submitter: &Submitter,
        layout: &Layout,
        device: &Device,
    ) -> BioStream {
        let (place, sectors) = layout.locate_pages(range);
        let bios_left = device.bios_of(sectors);
        let index = self.ios.insert(PageIo { range, write, bios_left }) as u32;
        let whole = Bio {
            op: if write { Op::Write } else { Op::Read },
            sector: place.sector,
            sectors,
            sync: !write || submitter.waits,
            fua: false,
            idle: false,
            process: submitter.process(),
            prio: submitter.prio,
            cpu: submitter.cpu,
            hw_queue: device.hw_queue(submitter.cpu),
            owner: Owner::Pages(index).pack(),
        };
        BioStream::new(whole, device.block.limits().max_sectors)
    }

    /// A bio of page I/O `index` has completed. With the last bio its pages change state, and
    /// actors that wait for pages of the file are appended to `woken`.
    pub fn bio_ended(&mut self, index: u32, cache: &mut PageCache, now: Nanos, woken: &mut Vec<Actor>) {
        let io = &mut self.ios[index as usize];
        io.bios_left -= 1;
        if io.bios_left > 0 {
            return;
        }
        let PageIo { range, write, .. } = self.ios.remove(index as usize);
        if write {
            cache.write_done(range, now);
        } else {
            cache.read_done(range);
        }
        self.waiters.retain(|&(actor, wait)| {
            let over = wait == Wait::AnyPages || wait == Wait::Pages(range.file);
            if over {
                woken.push(actor);
            }
            !over
        });
    }

    /// Puts `actor` to sleep until the event may have come.
    pub fn sleep_until(&mut self, actor: Actor, wait: Wait) {
        self.waiters.push((actor, wait));
    }
}

/// Ranges of pages on their way to the block layer; continues where it had to stop.
#[derive(Debug, Default)]
pub struct PageWork {
    /// Ranges not started yet, in order. Filled by the page cache.
    pub ranges: Vec<PageRange>,
    next: usize,
    /// The rest of the range started last.
    stream: Option<(DeviceId, BioStream)>,
    write: bool,
}

impl PageWork {
    /// Sets the direction of all ranges: write or read (`write` false).
    pub fn begin(&mut self, write: bool) {
        debug_assert!(self.stream.is_none() && self.next == self.ranges.len());
        self.ranges.clear();
        self.next = 0;
        self.write = write;
    }

    /// Submits the rest, under a plug of its own. `Err`: asleep until there is a free request.
    pub fn hand_over(&mut self, world: &mut World, submitter: Submitter) -> Result<(), Asleep> {
        while self.hand_over_next(world, submitter)? {}
        world.unplug();
        world.pass_on_request();
        Ok(())
    }

    /// Submits the next range, under a plug that the caller flushes; false if none is left.
    pub fn hand_over_next(&mut self, world: &mut World, submitter: Submitter) -> Result<bool, Asleep> {
        let (id, mut stream) = match self.stream.take() {
            Some(begun) => begun,
            None => {
                let Some(&range) = self.ranges.get(self.next) else { return Ok(false) };
                self.next += 1;
                let id = world.layout.file(range.file).device;
                let World { page_ios, layout, devices, .. } = world;
                (id, page_ios.begin(range, self.write, &submitter, layout, &devices[id]))
            }
        };
        if !world.devices[id].hand_over(world.clock.now(), &mut stream, submitter.actor) {
            self.stream = Some((id, stream));
            return Err(Asleep);
        }
        Ok(true)
    }
}
