//! Processes that sleep until they get a request.
//!
//! With blk-mq a request is a tag, and the order of wake-ups follows `lib/sbitmap.c` of Linux 7.3:
//! eight wait queues, filled in turn and emptied in turn, each first come, first served. Filling
//! and emptying need not start at the same queue, so a later sleeper may be woken before an earlier
//! one. Sleepers are woken in batches, when a batch of requests is free again. No tag is reserved
//! for them: they sleep again if other processes were faster.
//!
//! Before blk-mq there was one queue: it wakes the first sleeper that would get a request.
//! Synchronous and asynchronous I/O have separate requests, and so separate lists of sleepers: a
//! list whose kind has no free request need not be searched.

use std::collections::VecDeque;

use crate::block::Block;
use crate::owner::Actor;
use crate::request::Bio;

/// Wait queues of the tags of a hardware queue (`SBQ_WAIT_QUEUES`).
const QUEUES: usize = 8;

/// The most sleepers woken at a time (`SBQ_WAKE_BATCH`).
const BATCH_MAX: u32 = 8;

/// A wait queue to sleep on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitQueue(usize);

/// Sleepers that wait for tags of one hardware queue.
#[derive(Debug, Default)]
struct TagQueue {
    sleepers: [VecDeque<Actor>; QUEUES],
    /// Sleepers, and those woken that have not run yet: as long as there are any, freed tags count
    /// (`ws_active`).
    active: usize,
    /// The queue of the next sleeper.
    wait_index: usize,
    /// The next queue to wake.
    wake_index: usize,
    /// Freed tags that no batch has counted yet.
    freed: u32,
}

impl TagQueue {
    /// Moves up to `batch` sleepers to `woken` (`__sbitmap_queue_wake_up`).
    fn wake(&mut self, batch: u32, woken: &mut Vec<Actor>) {
        let mut left = batch as usize;
        for _ in 0..QUEUES {
            let sleepers = &mut self.sleepers[self.wake_index];
            self.wake_index = (self.wake_index + 1) % QUEUES;
            let count = left.min(sleepers.len());
            woken.extend(sleepers.drain(..count));
            left -= count;
            if left == 0 {
                return;
            }
        }
    }
}

/// Sleepers that wait for requests of the single queue.
#[derive(Debug, Default)]
struct SingleQueue {
    /// Sleepers for asynchronous and for synchronous requests, with their numbers in order of
    /// arrival.
    sleepers: [VecDeque<(u64, Actor)>; 2],
    turns: u64,
}

impl SingleQueue {
    fn sleep(&mut self, actor: Actor, sync: bool) {
        self.turns += 1;
        self.sleepers[usize::from(sync)].push_back((self.turns, actor));
    }

    /// The first sleeper that would get a request.
    #[inline]
    fn wake(&mut self, may_allocate: impl Fn(bool) -> bool) -> Option<Actor> {
        let first = |sync: bool| {
            let (turn, _) = self.sleepers[usize::from(sync)].front()?;
            may_allocate(sync).then_some((*turn, sync))
        };
        let (_, sync) = [false, true].into_iter().filter_map(first).min()?;
        self.sleepers[usize::from(sync)].pop_front().map(|(_, actor)| actor)
    }
}

/// All sleepers of a block layer.
#[derive(Debug)]
pub struct RequestWaiters {
    tags: Vec<TagQueue>,
    /// The number of sleepers woken at a time.
    batch: u32,
    single_queue: Option<SingleQueue>,
    /// The same of all queues together.
    active: usize,
}

impl RequestWaiters {
    /// No sleepers at `block`.
    pub fn new(block: &Block) -> RequestWaiters {
        let hw_queues = usize::from(block.limits().hw_queues);
        RequestWaiters {
            tags: std::iter::repeat_with(TagQueue::default).take(hw_queues).collect(),
            batch: (block.least_depth() / QUEUES as u32).clamp(1, BATCH_MAX),
            single_queue: block.is_single_queue().then(SingleQueue::default),
            active: 0,
        }
    }

    /// True without sleepers, also among those that were woken and have not run yet.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.active == 0
    }

    /// An actor that was woken runs; its next place.
    pub fn awake(&mut self, hw_queue: u16) -> WaitQueue {
        self.active -= 1;
        self.tags[usize::from(hw_queue)].active -= 1;
        self.place(hw_queue)
    }

    /// The next wait queue. Taken when no request is found and after each wake-up, even if the
    /// actor then does not sleep (`bt_wait_ptr`).
    pub fn place(&mut self, hw_queue: u16) -> WaitQueue {
        let queue = &mut self.tags[usize::from(hw_queue)];
        let index = queue.wait_index;
        queue.wait_index = (index + 1) % QUEUES;
        WaitQueue(index)
    }

    /// `actor` sleeps at its place, because `bio` got no request.
    pub fn sleep(&mut self, actor: Actor, bio: &Bio, place: WaitQueue, block: &mut Block) {
        self.active += 1;
        let hw_queue = bio.hw_queue;
        let queue = &mut self.tags[usize::from(hw_queue)];
        queue.active += 1;
        if let Some(queue) = &mut self.single_queue {
            return queue.sleep(actor, bio.sync);
        }
        if queue.active == 1 {
            // Requests that became free before the first sleeper must not cause wake-ups later.
            block.take_freed(hw_queue);
        }
        queue.sleepers[place.0].push_back(actor);
    }

    /// Requests of the single queue `block` may have become free: the actor to wake.
    #[inline]
    pub fn wake_first(&mut self, block: &Block) -> Option<Actor> {
        self.single_queue.as_mut()?.wake(|sync| block.may_allocate(0, sync))
    }

    /// Requests of `block`, which has tags, may have become free: appends the actors to wake to
    /// `woken`.
    pub fn wake(&mut self, block: &mut Block, woken: &mut Vec<Actor>) {
        for (hw_queue, queue) in self.tags.iter_mut().enumerate().filter(|(_, queue)| queue.active > 0) {
            queue.freed += block.take_freed(hw_queue as u16);
            while queue.freed >= self.batch {
                queue.freed -= self.batch;
                queue.wake(self.batch, woken);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::ProcessId;

    fn asleep(at: &[(u32, usize)], wake_index: usize) -> TagQueue {
        let mut queue = TagQueue { wake_index, ..TagQueue::default() };
        for &(process, place) in at {
            queue.sleepers[place].push_back(Actor::Process(ProcessId(process)));
        }
        queue
    }

    fn woken(queue: &mut TagQueue, batch: u32) -> Vec<u32> {
        let mut woken = Vec::new();
        queue.wake(batch, &mut woken);
        woken.into_iter().map(|actor| actor.process().0).collect()
    }

    #[test]
    fn queues_are_woken_in_turn_from_the_next_one_on() {
        let mut queue = asleep(&[(1, 0), (2, 1), (3, 5), (4, 1)], 1);
        assert_eq!(
            [1, 1, 1, 1, 1].map(|batch| woken(&mut queue, batch)),
            [vec![2], vec![3], vec![1], vec![4], vec![],]
        );
        assert_eq!((queue.wake_index, queue.sleepers.iter().all(VecDeque::is_empty)), (2, true));
    }

    #[test]
    fn the_single_queue_wakes_the_first_sleeper_that_would_get_a_request() {
        let mut queue = SingleQueue::default();
        for (process, sync) in [(1, true), (2, false), (3, true), (4, false)] {
            queue.sleep(Actor::Process(ProcessId(process)), sync);
        }
        let mut woken =
            |free: [bool; 2]| queue.wake(|sync| free[usize::from(sync)]).map(|actor| actor.process().0);
        assert_eq!(woken([false, false]), None);
        assert_eq!(woken([true, false]), Some(2));
        assert_eq!(
            [woken([true, true]), woken([true, true]), woken([true, true])],
            [Some(1), Some(3), Some(4)]
        );
        assert_eq!(woken([true, true]), None);
    }

    #[test]
    fn a_batch_is_taken_from_one_queue_as_far_as_it_goes() {
        let mut queue = asleep(&[(1, 3), (2, 3), (3, 3), (4, 6), (5, 6)], 0);
        assert_eq!(woken(&mut queue, 2), [1, 2]);
        assert_eq!(woken(&mut queue, 2), [4, 5]);
        assert_eq!(woken(&mut queue, 2), [3]);
    }
}
