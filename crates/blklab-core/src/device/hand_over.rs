//! A process brings its bios to the block layer, and sleeps if there is no request for one.

use super::Device;
use super::waiters::WaitQueue;
use crate::block::{BioStream, Place, Submitted};
use crate::owner::{Actor, Owner};
use crate::units::Nanos;

impl Device {
    /// Submits the rest of `stream`; false if `actor` sleeps; it tries again when woken.
    #[inline]
    pub fn hand_over(&mut self, now: Nanos, stream: &mut BioStream, actor: Actor) -> bool {
        if stream.waits_for_place() && !self.has_place(now, stream, actor) {
            return false;
        }
        let hw_queue = stream.next().hw_queue;
        let refused = stream.was_just_refused();
        let place = if stream.awake() {
            Some(self.waiters.awake(hw_queue))
        } else {
            refused.then(|| self.waiters.place(hw_queue))
        };
        if self.block.is_single_queue() {
            return self.hand_over_single(now, stream, actor, refused);
        }
        let rest = stream.rest();
        match stream.submit(now, &mut self.block, &mut self.disk) {
            Submitted::Taken => true,
            Submitted::NoPlace => self.has_place(now, stream, actor),
            Submitted::NoRequest(_) => {
                let place = place.filter(|_| stream.rest() == rest);
                self.hand_over_or_sleep(now, stream, actor, place)
            }
        }
    }

    /// A bio has found no request: in vain its process looks once more, takes its place in a wait queue, looks for the
    /// last time, and sleeps; then its plug is flushed (`blk_mq_get_tag`). With a `place` only the last time is left.
    ///
    /// If requests of its plug are merged with others, so many are free, and the process may be one of those that they
    /// wake. Then it has not slept at all, and looks for one before the others run.
    #[cold]
    fn hand_over_or_sleep(
        &mut self,
        now: Nanos,
        stream: &mut BioStream,
        actor: Actor,
        mut place: Option<WaitQueue>,
    ) -> bool {
        loop {
            let is_last = place.is_some();
            let here = place.unwrap_or_else(|| self.waiters.place(stream.next().hw_queue));
            let rest = stream.rest();
            match stream.submit(now, &mut self.block, &mut self.disk) {
                Submitted::Taken => return true,
                Submitted::NoPlace => return self.has_place(now, stream, actor),
                Submitted::NoRequest(_) => {}
            }
            let is_same = stream.rest() == rest;
            if is_last && is_same {
                stream.sleep();
                self.waiters.sleep(actor, stream.next(), here, &mut self.block);
                return self.is_woken_by_its_plug(now, actor) && self.hand_over(now, stream, actor);
            }
            place = is_same.then_some(here);
        }
    }

    /// The plug of a process that sleeps is flushed.
    fn is_woken_by_its_plug(&mut self, now: Nanos, actor: Actor) -> bool {
        if self.block.has_no_plug() {
            return false;
        }
        self.block.unplug_asleep(now, &mut self.disk);
        self.waiters.wake(&mut self.block, &mut self.woken);
        let own = self.woken.iter().position(|&woken| woken == actor);
        own.map(|own| self.woken.remove(own)).is_some()
    }

    /// The same with the single queue: a plug is flushed before the process looks for the last time.
    #[cold]
    fn hand_over_single(&mut self, now: Nanos, stream: &mut BioStream, actor: Actor, refused: bool) -> bool {
        let mut in_vain = refused && self.block.has_no_plug();
        let mut is_last = false;
        loop {
            let rest = stream.rest();
            if !in_vain {
                match stream.submit(now, &mut self.block, &mut self.disk) {
                    Submitted::Taken => return true,
                    Submitted::NoPlace => return self.has_place(now, stream, actor),
                    Submitted::NoRequest(_) => {}
                }
            }
            if is_last && stream.rest() == rest {
                stream.sleep();
                let here = self.waiters.place(stream.next().hw_queue);
                self.waiters.sleep(actor, stream.next(), here, &mut self.block);
                return false;
            }
            is_last = true;
            in_vain = self.block.has_no_plug();
            self.block.unplug_asleep(now, &mut self.disk);
        }
    }

    /// Whether `actor` has a place in the throttle of writeback for what is next; otherwise it sleeps
    /// for one, and its plug is flushed.
    #[cold]
    fn has_place(&mut self, now: Nanos, stream: &mut BioStream, actor: Actor) -> bool {
        let sleeper = Owner::Sleeper(actor).pack();
        match self.block.place_of(now, sleeper) {
            Place::Taken => stream.admit(),
            Place::Awaited => return false,
            Place::Unasked => {
                self.block.sleep_for_place(sleeper, stream.next());
                self.block.unplug_asleep(now, &mut self.disk);
                return false;
            }
        }
        true
    }
}
