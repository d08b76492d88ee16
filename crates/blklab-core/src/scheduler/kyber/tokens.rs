//! A domain's pool of tokens and the hardware queues that wait for one.
//!
//! Follows Linux 7.3 (`sbitmap_queue`, `kyber_get_domain_token`): a queue that finds no token
//! waits. Waiting queues are not woken for each returned token, but all together for every eighth
//! of the pool (at most 8 tokens), in the order of the lists in which they wait.

use std::collections::VecDeque;

use crate::containers::tags::{Order, Tags, UNLIMITED};

/// A wake-up of the kernel's bitmap needs depth / 8 returned tokens.
const WAKE_SHARE: u32 = 8;
/// The largest number of returned tokens per wake-up (`SBQ_WAKE_BATCH`).
const WAKE_BATCH_MAX: u32 = 8;

/// Lists in which queues wait (`SBQ_WAIT_QUEUES`).
const LISTS: u8 = 8;

/// Tokens of one domain. They have numbers, and those beyond a depth that has become smaller do not count.
#[derive(Debug)]
pub(super) struct Tokens {
    tokens: Tags,
    in_use: u32,
    /// Tokens returned while queues waited, since the last wake-up.
    returned: u32,
    wake_batch: u32,
    /// By hardware queue, the list in which it waits, or has waited: each time the next one (`khd->wait_index`).
    lists: Vec<u8>,
    /// The latest first.
    waiting: Vec<u16>,
}

impl Tokens {
    /// That many, for a disk of that many CPUs.
    pub fn new(depth: u32, cpus: u16) -> Tokens {
        Tokens {
            tokens: Tags::new(depth, Order::Freed, cpus),
            in_use: 0,
            returned: 0,
            wake_batch: wake_batch(depth),
            lists: Vec::new(),
            waiting: Vec::new(),
        }
    }

    pub fn depth(&self) -> u32 {
        self.tokens.depth()
    }

    pub fn in_use(&self) -> u32 {
        self.in_use
    }

    pub fn is_awaited(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Takes a token on that CPU, or starts waiting for one. A queue that gets a token no longer waits.
    #[inline]
    pub fn take(&mut self, hw_queue: u16, cpu: u16) -> Option<u32> {
        let token = self.tokens.take(UNLIMITED, cpu);
        if token.is_some() {
            self.in_use += 1;
            if !self.waiting.is_empty() {
                self.waiting.retain(|&waiter| waiter != hw_queue);
            }
        } else if !self.waiting.contains(&hw_queue) {
            self.wait(hw_queue);
        }
        token
    }

    /// The queue waits at the head of its next list (`sbq_wait_ptr`, `add_wait_queue`).
    fn wait(&mut self, hw_queue: u16) {
        let place = usize::from(hw_queue);
        if place >= self.lists.len() {
            self.lists.resize(place + 1, LISTS - 1);
        }
        self.lists[place] = (self.lists[place] + 1) % LISTS;
        self.waiting.insert(0, hw_queue);
    }

    /// Returns the token of a request of that CPU; appends to `woken` the queues that may try again.
    #[inline]
    pub fn give_back(&mut self, token: u32, cpu: u16, woken: &mut VecDeque<u16>) {
        self.in_use -= 1;
        self.tokens.put(token, cpu);
        if self.waiting.is_empty() {
            return;
        }
        self.returned += 1;
        if self.returned >= self.wake_batch {
            self.returned -= self.wake_batch;
            let lists = &self.lists;
            // Stable: within a list the latest stays first.
            self.waiting.sort_by_key(|&queue| lists[usize::from(queue)]);
            woken.extend(self.waiting.drain(..));
        }
    }

    /// Sets another depth. Tokens beyond it that are in use stay in use.
    pub fn resize(&mut self, depth: u32) {
        self.tokens.resize(depth);
        self.wake_batch = wake_batch(depth);
    }
}

fn wake_batch(depth: u32) -> u32 {
    (depth / WAKE_SHARE).clamp(1, WAKE_BATCH_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A pool of one CPU, and the tokens that are in use.
    struct Pool {
        tokens: Tokens,
        taken: Vec<u32>,
        woken: VecDeque<u16>,
    }

    impl Pool {
        /// A pool whose tokens are all in use.
        fn exhausted(depth: u32) -> Pool {
            let mut pool = Pool { tokens: Tokens::new(depth, 1), taken: Vec::new(), woken: VecDeque::new() };
            assert!((0..depth).all(|_| pool.take(0)));
            pool
        }

        fn take(&mut self, hw_queue: u16) -> bool {
            let token = self.tokens.take(hw_queue, 0);
            self.taken.extend(token);
            token.is_some()
        }

        /// Returns the token that was taken first.
        fn give_back(&mut self) {
            let token = self.taken.remove(0);
            self.tokens.give_back(token, 0, &mut self.woken);
        }
    }

    #[test]
    fn waiters_are_woken_all_together_after_an_eighth_of_the_pool_came_back() {
        let mut pool = Pool::exhausted(64);
        assert!(!pool.take(3) && !pool.take(1) && !pool.take(3));
        (0..7).for_each(|_| pool.give_back());
        assert!(pool.woken.is_empty());
        pool.give_back();
        assert_eq!(pool.woken, [1, 3], "of one list, the latest first");
        assert!(!pool.tokens.is_awaited());
        // The next wake-up needs eight more.
        assert!((0..8).all(|_| pool.take(0)) && !pool.take(2));
        (0..7).for_each(|_| pool.give_back());
        assert_eq!(pool.woken, [1, 3]);
        pool.give_back();
        assert_eq!(pool.woken, [1, 3, 2]);
    }

    #[test]
    fn a_queue_that_has_waited_less_often_is_woken_first() {
        let mut pool = Pool::exhausted(1);
        for often in 1..20 {
            assert!(!pool.take(1));
            if often % 8 == 3 {
                assert!(!pool.take(2) && !pool.take(3));
            }
            pool.woken.clear();
            pool.give_back();
            // Queue 1 waits in the third list then, the others in the first, in the second and in the third.
            let expected: &[u16] = if often % 8 == 3 { &[3, 2, 1] } else { &[1] };
            assert_eq!(pool.woken, expected, "{often}");
            assert!(pool.take(0));
        }
        // A ring of eight lists.
        for _ in 20..25 {
            assert!(!pool.take(1));
            pool.give_back();
            assert!(pool.take(0));
        }
        pool.woken.clear();
        assert!(!pool.take(1) && !pool.take(2));
        pool.give_back();
        assert_eq!(pool.woken, [1, 2], "the first has come to the first list again");
    }

    #[test]
    fn a_request_with_a_token_waits_no_longer() {
        let mut pool = Pool::exhausted(2);
        assert!(!pool.take(1) && !pool.take(2));
        pool.tokens.give_back(1, 0, &mut VecDeque::new());
        pool.woken.clear();
        pool.taken.retain(|&token| token != 1);
        assert!(pool.take(0) && !pool.take(1) && !pool.take(2));
        pool.tokens.waiting.retain(|&queue| queue == 2);
        pool.give_back();
        assert_eq!(pool.woken, [2]);
    }

    #[test]
    fn after_shrinking_the_low_tokens_are_free_as_soon_as_they_have_come_back() {
        let mut pool = Pool::exhausted(16);
        pool.tokens.resize(2);
        pool.taken.sort_unstable_by_key(|&token| (token != 1, token < 2));
        pool.give_back();
        assert!(pool.take(0) && !pool.take(0), "14 others are in use still");
        assert_eq!((pool.tokens.depth(), pool.tokens.in_use()), (2, 16));
        pool.give_back();
        assert!(!pool.take(0), "one beyond the depth does not count");
    }
}
