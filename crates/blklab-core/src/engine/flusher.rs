//! The kernel's flusher threads (`wb_workfn`), one for each backing device: they write dirty pages
//! back, asynchronously.

use super::page_io::{Asleep, PageWork, Submitter, Wait};
use super::world::World;
use crate::owner::Actor;
use crate::pagecache::{BackingId, PageCache, WriteBack};
use crate::request::{IoPrio, KERNEL_CPU};
use crate::units::Nanos;

/// When the page cache needs a flusher next.
#[derive(Debug)]
pub struct FlusherTimer {
    waits: bool,
}

impl Default for FlusherTimer {
    fn default() -> Self {
        FlusherTimer { waits: true }
    }
}

impl FlusherTimer {
    /// When the flusher must run next, unless it is running.
    #[inline]
    pub fn due(&self, cache: &PageCache, backing: BackingId) -> Nanos {
        if self.waits { cache.flusher_due(backing) } else { Nanos::NEVER }
    }

    /// The flusher is woken.
    pub fn begin(&mut self) {
        self.waits = false;
    }

    /// The flusher has nothing to write.
    pub fn sleep(&mut self) {
        self.waits = true;
    }
}

/// The flusher of a backing device.
#[derive(Debug)]
pub struct Flusher {
    backing: BackingId,
    pages: PageWork,
}

impl Flusher {
    /// With nothing to write.
    pub fn new(backing: BackingId) -> Flusher {
        Flusher { backing, pages: PageWork::default() }
    }

    /// Runs until there is nothing to write back or no free request.
    pub fn run(&mut self, world: &mut World) {
        let actor = Actor::Flusher(self.backing);
        // One plug for everything that it writes (`wb_writeback`).
        loop {
            let background =
                world.cache.writes_in_background(self.backing) && world.host.files().marks_background;
            let submitter =
                Submitter { actor, prio: IoPrio::default(), cpu: KERNEL_CPU, waits: false, background };
            match self.pages.hand_over_next(world, submitter) {
                Err(Asleep) => return,
                Ok(true) if world.others_run() => {
                    world.unplug();
                    return world.wake(actor, world.now());
                }
                Ok(true) => {}
                Ok(false) if self.find_more(world) => {}
                Ok(false) => {
                    let lock = world.cache.flusher_waits_for(self.backing);
                    match lock.is_some() {
                        true => world.unplug_asleep(),
                        false => world.unplug(),
                    }
                    world.pass_on_request();
                    return match lock {
                        Some((file, page)) => world.sleep_until(actor, Wait::Lock(file, page)),
                        None => world.flusher_sleeps(self.backing),
                    };
                }
            }
        }
    }

    /// Looks for a range to write back; false if there is none for now. Only when it is handed over, which may have
    /// to wait for a request, is it time to look for the next.
    fn find_more(&mut self, world: &mut World) -> bool {
        let room = self.pages.room(world);
        let step = world.cache.write_back(self.backing, world.now(), room);
        world.pass_on_lock(Actor::Flusher(self.backing));
        match step {
            WriteBack::Range(range) => self.pages.found(range, world),
            WriteBack::EndOfFile => {
                self.pages.ends();
            }
            WriteBack::Nothing => return false,
        }
        true
    }
}
