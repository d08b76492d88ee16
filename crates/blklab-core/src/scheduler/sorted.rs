//! Requests in order of their first sector.
//!
//! A sorted vector: with the 1 to 256 requests that wait in a queue, shifting a few
//! cache lines beats the pointer chasing of the kernel's red-black tree.

use std::cell::Cell;

use crate::request::RequestId;
use crate::units::Sector;

/// Requests by sector; those of equal sector in order of arrival (`elv_rb_add`).
#[derive(Clone, Debug, Default)]
pub(super) struct Sorted {
    entries: Vec<(Sector, RequestId)>,
    /// Where the last search ended. A bio is looked up and then inserted at the same
    /// place, a request is found and then removed: every second search ends here again.
    hint: Cell<usize>,
}

impl Sorted {
    pub fn with_capacity(requests: usize) -> Sorted {
        Sorted { entries: Vec::with_capacity(requests), hint: Cell::new(0) }
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The lowest request of all.
    pub fn first(&self) -> Option<RequestId> {
        self.entries.first().map(|entry| entry.1)
    }

    /// Index of the first request at or above `sector`.
    #[inline]
    fn first_from(&self, sector: Sector) -> usize {
        let hint = self.hint.get();
        let below = hint.checked_sub(1).map(|below| self.entries.get(below));
        let behind_all_below = below.is_none_or(|entry| entry.is_some_and(|entry| entry.0 < sector));
        if behind_all_below && self.entries.get(hint).is_none_or(|entry| entry.0 >= sector) {
            return hint;
        }
        let found = self.entries.partition_point(|entry| entry.0 < sector);
        self.hint.set(found);
        found
    }

    fn position(&self, sector: Sector, id: RequestId) -> usize {
        let first = self.first_from(sector);
        let among_equals = self.entries[first..].iter().position(|entry| entry.1 == id);
        first + among_equals.expect("the request is where it was sorted in")
    }

    #[inline]
    pub fn insert(&mut self, sector: Sector, id: RequestId) {
        let behind_equals = self.first_from(sector.offset(1));
        self.entries.insert(behind_equals, (sector, id));
    }

    /// Take out `id`, which was inserted with this sector.
    #[inline]
    pub fn remove(&mut self, sector: Sector, id: RequestId) {
        self.entries.remove(self.position(sector, id));
    }

    /// A request that begins exactly at `sector`.
    #[inline]
    pub fn starting_at(&self, sector: Sector) -> Option<RequestId> {
        self.entries.get(self.first_from(sector)).filter(|entry| entry.0 == sector).map(|entry| entry.1)
    }

    /// The lowest request at or above `sector`.
    #[inline]
    pub fn at_or_above(&self, sector: Sector) -> Option<RequestId> {
        self.entries.get(self.first_from(sector)).map(|entry| entry.1)
    }

    /// The next request upwards of `id`, which was inserted with this sector.
    pub fn above(&self, sector: Sector, id: RequestId) -> Option<RequestId> {
        self.entries.get(self.position(sector, id) + 1).map(|entry| entry.1)
    }

    /// The next request downwards.
    pub fn below(&self, sector: Sector, id: RequestId) -> Option<RequestId> {
        self.position(sector, id).checked_sub(1).map(|below| self.entries[below].1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Interleaved, because every search leaves a hint for the next.
        #[test]
        fn lookups_agree_with_a_search_through_everything(
            steps in prop::collection::vec((0u8..6, 0u64..40), 1..200)
        ) {
            let mut sorted = Sorted::default();
            let mut model: Vec<(u64, u32)> = Vec::new();
            for (turn, &(step, sector)) in steps.iter().enumerate() {
                let first = |keep: &dyn Fn(u64) -> bool| {
                    model.iter().find(|entry| keep(entry.0)).map(|entry| RequestId(entry.1))
                };
                match step {
                    0..=2 => {
                        sorted.insert(Sector(sector), RequestId(turn as u32));
                        model.push((sector, turn as u32));
                        model.sort_unstable();
                    }
                    3 if !model.is_empty() => {
                        let (sector, id) = model.remove(sector as usize % model.len());
                        sorted.remove(Sector(sector), RequestId(id));
                    }
                    4 => prop_assert_eq!(sorted.at_or_above(Sector(sector)), first(&|s| s >= sector)),
                    5 => prop_assert_eq!(sorted.starting_at(Sector(sector)), first(&|s| s == sector)),
                    _ => {}
                }
            }
            for (place, &(sector, id)) in model.iter().enumerate() {
                let at = |i: usize| model.get(i).map(|entry| RequestId(entry.1));
                prop_assert_eq!(sorted.above(Sector(sector), RequestId(id)), at(place + 1));
                let below = place.checked_sub(1).and_then(at);
                prop_assert_eq!(sorted.below(Sector(sector), RequestId(id)), below);
            }
        }
    }
}
