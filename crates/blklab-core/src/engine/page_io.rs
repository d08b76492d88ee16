//! I/O of the page cache: ranges of pages in flight, and the actors that wait for them.

use super::world::World;
use crate::block::Manner;
use crate::device::{Devices, FileStream, Layout};
use crate::owner::{Actor, Owner};
use crate::pagecache::{FileId, PageCache, PageRange};
use crate::request::{Bio, IoPrio, Op, ProcessId};
use crate::units::{Nanos, Sector};

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
    /// Starts the read or write of a range; returns the bios for it.
    fn begin(
        &mut self,
        range: PageRange,
        write: bool,
        submitter: &Submitter,
        layout: &Layout,
        devices: &Devices,
    ) -> FileStream {
        let span = layout.span_of(range);
        let bios_left = FileStream::bios_of(span, layout, devices);
        let index = self.ios.insert(PageIo { range, write, bios_left }) as u32;
        let bio = Bio {
            op: if write { Op::Write } else { Op::Read },
            sector: Sector(0),
            sectors: 0,
            sync: !write || submitter.waits,
            fua: false,
            idle: false,
            process: submitter.process(),
            prio: submitter.prio,
            cpu: submitter.cpu,
            hw_queue: 0,
            owner: Owner::Pages(index).pack(),
        };
        FileStream::new(span, bio, Manner::PLUGGED, layout, devices)
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
    stream: Option<FileStream>,
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
        let World { page_ios, layout, devices, .. } = world;
        let mut stream = match self.stream.take() {
            Some(begun) => begun,
            None => {
                let Some(&range) = self.ranges.get(self.next) else { return Ok(false) };
                self.next += 1;
                page_ios.begin(range, self.write, &submitter, layout, devices)
            }
        };
        if !devices.hand_over(world.clock.now(), layout, &mut stream, submitter.actor) {
            self.stream = Some(stream);
            return Err(Asleep);
        }
        Ok(true)
    }
}
