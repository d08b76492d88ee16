//! The kernel's flusher thread (`wb_workfn`): writes dirty pages back, asynchronously.

use super::world::{Asleep, PageWork, Submitter, World};
use crate::request::{IoPrio, ProcessId};

/// Ranges looked for at a time.
const RANGES_AT_ONCE: usize = 64;

/// Pages in one range, at most: what one bio holds.
const RANGE_PAGES: u32 = 256;

/// The flusher of the one disk there is.
#[derive(Debug, Default)]
pub struct Flusher {
    pages: PageWork,
}

impl Flusher {
    /// Run until there is nothing to write back or no request to be had.
    pub fn run(&mut self, world: &mut World) {
        world.begin(ProcessId::KERNEL);
        let who = Submitter {
            process: ProcessId::KERNEL,
            prio: IoPrio::default(),
            cpu: 0,
            hw_queue: 0,
            waits: false,
        };
        // One plug for all that it writes (`wb_writeback`).
        loop {
            match self.pages.hand_over_next(world, who) {
                Err(Asleep) => return,
                Ok(true) if world.others_run() => {
                    world.unplug();
                    return world.wake(ProcessId::KERNEL, world.now);
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

    /// Look for ranges to write back; false if there are none.
    fn find_more(&mut self, world: &mut World) -> bool {
        self.pages.begin(true);
        while self.pages.ranges.len() < RANGES_AT_ONCE {
            let Some(range) = world.cache.next_writeback(world.now, RANGE_PAGES) else { break };
            self.pages.ranges.push(range);
        }
        !self.pages.ranges.is_empty()
    }
}
