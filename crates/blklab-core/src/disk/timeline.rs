//! What will end when: a heap of small numbers ordered by time, then by order of entry.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A queue of `u32` payloads by due time. Time, entry number and payload share one
/// integer, so that an order is one comparison.
#[derive(Debug, Default)]
pub(super) struct Timeline {
    heap: BinaryHeap<Reverse<u128>>,
    entries: u32,
}

impl Timeline {
    #[inline]
    pub fn push(&mut self, at: u64, payload: u32) {
        self.entries = self.entries.wrapping_add(1);
        let key = u128::from(at) << 64 | u128::from(self.entries) << 32 | u128::from(payload);
        self.heap.push(Reverse(key));
    }

    /// When the first is due; `u64::MAX` when there is none.
    #[inline]
    pub fn next(&self) -> u64 {
        self.heap.peek().map_or(u64::MAX, |Reverse(key)| (key >> 64) as u64)
    }

    /// Take the first.
    #[inline]
    pub fn pop(&mut self) -> Option<(u64, u32)> {
        self.heap.pop().map(|Reverse(key)| ((key >> 64) as u64, key as u32))
    }
}
