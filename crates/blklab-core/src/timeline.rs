//! What will end when: a heap of small numbers ordered by time, then by order of entry.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A queue of `u32` payloads by due time. Time, entry number and payload share one
/// integer, so that an order is one comparison.
#[derive(Debug)]
pub(crate) struct Timeline {
    heap: BinaryHeap<Reverse<u128>>,
    entries: u32,
    /// Asked for far more often than it changes.
    next: u64,
}

impl Default for Timeline {
    fn default() -> Self {
        Timeline { heap: BinaryHeap::new(), entries: 0, next: u64::MAX }
    }
}

impl Timeline {
    #[inline]
    pub fn push(&mut self, at: u64, payload: u32) {
        self.entries = self.entries.wrapping_add(1);
        let key = u128::from(at) << 64 | u128::from(self.entries) << 32 | u128::from(payload);
        self.heap.push(Reverse(key));
        self.next = self.next.min(at);
    }

    /// When the first is due; `u64::MAX` when there is none.
    #[inline]
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Take the first.
    #[inline]
    pub fn pop(&mut self) -> Option<(u64, u32)> {
        let time = |key: u128| (key >> 64) as u64;
        let Reverse(key) = self.heap.pop()?;
        self.next = self.heap.peek().map_or(u64::MAX, |Reverse(key)| time(*key));
        Some((time(key), key as u32))
    }
}
