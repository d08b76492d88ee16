//! The kernel's flusher thread (`wb_workfn`): writes dirty pages back, asynchronously.

use super::page_io::{Asleep, PageWork, Submitter};
use super::world::World;
use crate::pagecache::PageCache;
use crate::request::{Actor, IoPrio};
use crate::units::Nanos;

/// Ranges looked for at a time.
const RANGES_AT_ONCE: usize = 64;

/// Pages in one range, at most: what one bio holds.
const RANGE_PAGES: u32 = 256;

/// When the page cache needs the flusher next.
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
    pub fn due(&self, cache: &PageCache) -> Nanos {
        if self.waits { cache.flusher_due() } else { Nanos::NEVER }
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

/// The flusher. One serves all devices; the kernel has one for each.
#[derive(Debug, Default)]
pub struct Flusher {
    pages: PageWork,
}

impl Flusher {
    /// Runs until there is nothing to write back or no free request.
    pub fn run(&mut self, world: &mut World) {
        let submitter = Submitter { actor: Actor::Flusher, prio: IoPrio::default(), cpu: 0, waits: false };
        // One plug for everything that it writes (`wb_writeback`).
        loop {
            match self.pages.hand_over_next(world, submitter) {
                Err(Asleep) => return,
                Ok(true) if world.others_run() => {
                    world.unplug();
                    return world.wake(Actor::Flusher, world.now());
                }
                Ok(true) => {}
                Ok(false) if self.find_more(world) => {}
                Ok(false) => {
                    world.unplug();
                    world.pass_on_request();
                    return world.flusher_sleeps();
                }
            }
        }
    }

    /// Looks for ranges to write back; false if there are none.
    fn find_more(&mut self, world: &mut World) -> bool {
        self.pages.begin(true);
        while self.pages.ranges.len() < RANGES_AT_ONCE {
            let Some(range) = world.cache.next_writeback(world.now(), RANGE_PAGES) else { break };
            self.pages.ranges.push(range);
        }
        !self.pages.ranges.is_empty()
    }
}
