//! The event queue: small numbers ordered by due time, then by order of entry.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The due time of an empty queue.
const NEVER: u64 = u64::MAX;

/// A queue of `u32` payloads by due time. Time, entry number and payload share one integer, so that
/// ordering takes one comparison. The first entry is kept outside the heap of the others: a queue
/// with one entry at a time, such as the timers of a single process, needs no heap.
#[derive(Debug)]
pub struct EventQueue {
    /// Due time, and the rest of an entry: stored as two halves, as they are read.
    first: (u64, u64),
    rest: BinaryHeap<Reverse<u128>>,
    entries: u32,
}

/// A place among entries of one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn(u32);

impl Default for EventQueue {
    fn default() -> Self {
        EventQueue { first: (NEVER, 0), rest: BinaryHeap::new(), entries: 0 }
    }
}

impl EventQueue {
    /// Adds an entry that is due `at`, before [`u64::MAX`].
    #[inline]
    pub fn push(&mut self, at: u64, payload: u32) {
        let turn = self.turn();
        self.push_in_turn(at, turn, payload);
    }

    /// The place among entries of one time that the next one would have, for [`EventQueue::push_in_turn`].
    #[inline]
    pub fn turn(&mut self) -> Turn {
        self.entries = self.entries.wrapping_add(1);
        Turn(self.entries)
    }

    /// As [`EventQueue::push`], in the place of an earlier time.
    #[inline]
    pub fn push_in_turn(&mut self, at: u64, turn: Turn, payload: u32) {
        debug_assert!(at < NEVER);
        let entry = (at, u64::from(turn.0) << 32 | u64::from(payload));
        let later = if entry < self.first { std::mem::replace(&mut self.first, entry) } else { entry };
        if later.0 != NEVER {
            self.rest.push(Reverse(u128::from(later.0) << 64 | u128::from(later.1)));
        }
    }

    /// The due time of the first entry; `u64::MAX` when there is none.
    #[inline]
    pub fn next(&self) -> u64 {
        self.first.0
    }

    /// Removes the first entry.
    #[inline]
    pub fn pop(&mut self) -> Option<(u64, u32)> {
        let (at, order) = self.first;
        if at == NEVER {
            return None;
        }
        self.first = self.rest.pop().map_or((NEVER, 0), |Reverse(next)| ((next >> 64) as u64, next as u64));
        Some((at, order as u32))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_entry_in_an_earlier_turn_leaves_before_later_ones_of_its_time() {
        let mut queue = EventQueue::default();
        let turn = queue.turn();
        queue.push(5, 1);
        queue.push(4, 2);
        queue.push_in_turn(5, turn, 3);
        assert_eq!([queue.pop(), queue.pop(), queue.pop()], [Some((4, 2)), Some((5, 3)), Some((5, 1))]);
    }

    proptest! {
        #[test]
        fn entries_leave_by_time_then_by_order_of_entry(
            steps in prop::collection::vec(prop::option::weighted(0.6, 0u64..50), 1..300)
        ) {
            let mut queue = EventQueue::default();
            let mut model: Vec<(u64, u32)> = Vec::new();
            for (n, step) in steps.into_iter().enumerate() {
                match step {
                    Some(at) => {
                        queue.push(at, n as u32);
                        model.push((at, n as u32));
                    }
                    None => {
                        let first = model.iter().copied().min();
                        model.retain(|entry| Some(*entry) != first);
                        prop_assert_eq!(queue.pop(), first);
                    }
                }
                prop_assert_eq!(queue.next(), model.iter().map(|(at, _)| *at).min().unwrap_or(u64::MAX));
            }
        }
    }
}
