//! A domain's pool of tokens and the hardware queues that wait for one.
//!
//! Follows Linux 7.3 (`sbitmap_queue`, `kyber_get_domain_token`): a queue that found no
//! token waits; waiters are woken not for each token that comes back but for every
//! eighth of the pool (at most 8), and then all together.

use std::collections::VecDeque;

/// Wait queues of the kernel's bitmap: a wake-up is worth depth / 8 tokens ...
const WAKE_SHARE: u32 = 8;
/// ... but at most so many (`SBQ_WAKE_BATCH`).
const WAKE_BATCH_MAX: u32 = 8;

/// Tokens of one domain.
#[derive(Debug)]
pub(super) struct Tokens {
    depth: u32,
    in_use: u32,
    /// Tokens that came back while somebody waited and that no wake-up was made for yet.
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

    /// Take a token, or wait for one. Whoever gets one waits no longer.
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

    /// Give a token back; append to `woken` whoever may now try again.
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

    /// Another depth. Tokens beyond it that are out stay out.
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
        // The next wake-up takes eight more.
        assert!((0..8).all(|_| pool.take(0)) && !pool.take(2));
        (0..7).for_each(|_| pool.give_back(&mut woken));
        assert_eq!(woken, [3, 1]);
        pool.give_back(&mut woken);
        assert_eq!(woken, [3, 1, 2]);
    }

    #[test]
    fn whoever_gets_a_token_waits_no_longer() {
        let mut pool = Tokens::new(1);
        let mut woken = VecDeque::new();
        assert!(pool.take(0) && !pool.take(1) && !pool.take(2));
        pool.resize(2);
        assert!(pool.take(1));
        pool.give_back(&mut woken);
        assert_eq!(woken, [2]);
    }

    #[test]
    fn after_shrinking_nobody_gets_a_token_until_enough_have_come_back() {
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
