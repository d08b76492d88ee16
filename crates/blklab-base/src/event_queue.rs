//! The event queue: small numbers ordered by due time, then by order of entry.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The due time of an empty queue.
const NEVER: u64 = u64::MAX;

/// The maximum of entries that are kept in order; a power of two.
const NEAR: usize = 64;

/// Due time, number of entry and payload in one integer, so that ordering takes one comparison.
type Entry = u128;

/// A queue of `u32` payloads by due time. The first entry has a field of its own, so that a queue with one entry at a
/// time, such as the timers of a single process, moves nothing. The next ones are a list in order, to which entries are
/// added from its end: most events are due after nearly all that wait already. The others, if there are any, are in a
/// heap, and all later.
#[derive(Debug)]
pub struct EventQueue {
    /// Due time, and the rest of an entry: stored as two halves, as they are read.
    first: (u64, u64),
    /// A ring.
    near: Box<[Entry; NEAR]>,
    /// The place of the ring's first entry, modulo its length, and the number of its entries.
    begin: usize,
    count: usize,
    far: BinaryHeap<Reverse<Entry>>,
    entries: u32,
}

/// A place among entries of one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn(u32);

impl Default for EventQueue {
    fn default() -> Self {
        let near = Box::new([0; NEAR]);
        EventQueue { first: (NEVER, 0), near, begin: 0, count: 0, far: BinaryHeap::new(), entries: 0 }
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
            self.put(Entry::from(later.0) << 64 | Entry::from(later.1));
        }
    }

    /// Adds an entry behind the first one.
    #[inline]
    fn put(&mut self, entry: Entry) {
        let mut place = self.begin + self.count;
        if self.count == NEAR {
            let last = self.near[(place - 1) % NEAR];
            if entry > last {
                return self.put_far(entry);
            }
            self.put_far(last);
            place -= 1;
        } else if !self.far.is_empty() && (self.count == 0 || entry > self.near[(place - 1) % NEAR]) {
            return self.put_far(entry);
        } else {
            self.count += 1;
        }
        while place > self.begin && entry < self.near[(place - 1) % NEAR] {
            self.near[place % NEAR] = self.near[(place - 1) % NEAR];
            place -= 1;
        }
        self.near[place % NEAR] = entry;
    }

    #[inline(never)]
    fn put_far(&mut self, entry: Entry) {
        self.far.push(Reverse(entry));
    }

    /// The list is empty: moves the first entries of the heap to it.
    #[cold]
    fn bring_near(&mut self) {
        self.begin = 0;
        while self.count < NEAR
            && let Some(Reverse(next)) = self.far.pop()
        {
            self.near[self.count] = next;
            self.count += 1;
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
        if self.count == 0 && !self.far.is_empty() {
            self.bring_near();
        }
        if self.count == 0 {
            self.first = (NEVER, 0);
        } else {
            let next = self.near[self.begin % NEAR];
            self.first = ((next >> 64) as u64, next as u64);
            self.begin += 1;
            self.count -= 1;
        }
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
            steps in prop::collection::vec(prop::option::weighted(0.6, 0u64..50), 1..1500)
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
