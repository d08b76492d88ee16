//! A domain's pool of tokens and the hardware queues that wait for one.
//!
//! Follows Linux 7.3 (`sbitmap_queue`, `kyber_get_domain_token`): a queue that finds no token
//! waits. Waiting queues are not woken for each returned token, but all together for every eighth
//! of the pool (at most 8 tokens).

use std::collections::VecDeque;

/// A wake-up of the kernel's bitmap needs depth / 8 returned tokens.
const WAKE_SHARE: u32 = 8;
/// The largest number of returned tokens per wake-up (`SBQ_WAKE_BATCH`).
const WAKE_BATCH_MAX: u32 = 8;

/// Tokens of one domain.
#[derive(Debug)]
pub(super) struct Tokens {
    depth: u32,
    in_use: u32,
    /// Tokens returned while queues waited, since the last wake-up.
    returned: u32,
    wake_batch: u32,
    waiting: Vec<u16>,
}

impl Tokens {
    pub fn new(depth: u32) -> Tokens {
        let mut tokens = Tokens { depth, in_use: 0, returned: 0, wake_batch: 1, waiting: Vec::new() };
        tokens.resize(depth);
        tokens
    }

    pub fn depth(&self) -> u32 {
        self.depth
    }

    pub fn in_use(&self) -> u32 {
        self.in_use
    }

    pub fn is_awaited(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Takes a token, or starts waiting for one. A queue that gets a token no longer waits.
    #[inline]
    pub fn take(&mut self, hw_queue: u16) -> bool {
        if self.in_use < self.depth {
            self.in_use += 1;
            if !self.waiting.is_empty() {
                self.waiting.retain(|&waiter| waiter != hw_queue);
            }
            return true;
        }
        if !self.waiting.contains(&hw_queue) {
            self.waiting.push(hw_queue);
        }
        false
    }

    /// Returns a token; appends to `woken` the queues that may try again.
    #[inline]
    pub fn give_back(&mut self, woken: &mut VecDeque<u16>) {
        self.in_use -= 1;
        if self.waiting.is_empty() {
            return;
        }
        self.returned += 1;
        if self.returned >= self.wake_batch {
            self.returned -= self.wake_batch;
            woken.extend(self.waiting.drain(..));
        }
    }

    /// Sets another depth. Tokens beyond it that are in use stay in use.
    pub fn resize(&mut self, depth: u32) {
        self.depth = depth;
        self.wake_batch = (depth / WAKE_SHARE).clamp(1, WAKE_BATCH_MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiters_are_woken_all_together_after_an_eighth_of_the_pool_came_back() {
        let mut pool = Tokens::new(64);
        let mut woken = VecDeque::new();
        assert!((0..64).all(|_| pool.take(0)));
        assert!(!pool.take(3) && !pool.take(1) && !pool.take(3));
        (0..7).for_each(|_| pool.give_back(&mut woken));
        assert!(woken.is_empty());
        pool.give_back(&mut woken);
        assert_eq!(woken, [3, 1]);
        assert!(!pool.is_awaited());
        // The next wake-up needs eight more.
        assert!((0..8).all(|_| pool.take(0)) && !pool.take(2));
        (0..7).for_each(|_| pool.give_back(&mut woken));
        assert_eq!(woken, [3, 1]);
        pool.give_back(&mut woken);
        assert_eq!(woken, [3, 1, 2]);
    }

    #[test]
    fn a_request_with_a_token_waits_no_longer() {
        let mut pool = Tokens::new(1);
        let mut woken = VecDeque::new();
        assert!(pool.take(0) && !pool.take(1) && !pool.take(2));
        pool.resize(2);
        assert!(pool.take(1));
        pool.give_back(&mut woken);
        assert_eq!(woken, [2]);
    }

    #[test]
    fn after_shrinking_no_request_gets_a_token_until_enough_have_come_back() {
        let mut pool = Tokens::new(16);
        let mut woken = VecDeque::new();
        assert!((0..16).all(|_| pool.take(0)));
        pool.resize(2);
        (0..14).for_each(|_| pool.give_back(&mut woken));
        assert!(!pool.take(0));
        pool.give_back(&mut woken);
        assert!(pool.take(0));
    }
}
