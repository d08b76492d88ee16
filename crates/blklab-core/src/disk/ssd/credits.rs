//! A link or bus that many share: time handed out in slices.
//!
//! Commands reserve their transfers when they are submitted, not in the order in which
//! their data are ready. A plain next-free time would let a transfer that is due late block
//! one that is due early; with credits per slice each takes what is left where it needs it.

const SLICE_BITS: u32 = 12;
const SLICE_NS: u64 = 1 << SLICE_BITS;
/// 33 ms of slices of 4 us; what is reserved further ahead than that is not kept apart.
const SLICES: usize = 8_192;

#[derive(Clone, Copy, Debug, Default)]
struct Slice {
    number: u32,
    used_ns: u32,
}

/// One shared link.
#[derive(Debug)]
pub(super) struct Credits {
    slices: Box<[Slice]>,
    /// Nanoseconds per sector, times 2^16.
    sector_fx: u64,
    pub busy_ns: u64,
}

impl Credits {
    pub fn new(sector_fx: u64) -> Credits {
        Credits { slices: vec![Slice::default(); SLICES].into_boxed_slice(), sector_fx, busy_ns: 0 }
    }

    /// Transfer `sectors` from `at` on; when the last byte is over.
    #[inline]
    pub fn transfer(&mut self, mut at: u64, sectors: u64) -> u64 {
        let mut left = (sectors * self.sector_fx) >> 16;
        self.busy_ns += left;
        loop {
            let number = at >> SLICE_BITS;
            let (start, end) = (number << SLICE_BITS, (number + 1) << SLICE_BITS);
            let slice = &mut self.slices[number as usize % SLICES];
            if slice.number != number as u32 {
                *slice = Slice { number: number as u32, used_ns: 0 };
            }
            let used = u64::from(slice.used_ns);
            let taken = left.min(SLICE_NS - used).min(end - at);
            slice.used_ns += taken as u32;
            left -= taken;
            if left == 0 {
                return (at + taken).max(start + used + taken);
            }
            at = end;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn no_more_is_carried_than_the_rate_allows(
            starts in prop::collection::vec((0u64..1_000_000, 1u64..64), 1..200)
        ) {
            // 100 ns per sector.
            let mut link = Credits::new(100 << 16);
            let ends: Vec<_> = starts.iter().map(|(at, n)| (*at, *n, link.transfer(*at, *n))).collect();
            for (at, n, end) in &ends {
                prop_assert!(*end >= at + n * 100);
            }
            let total: u64 = starts.iter().map(|(_, n)| n * 100).sum();
            let last = ends.iter().map(|(_, _, end)| *end).max().unwrap();
            let first = starts.iter().map(|(at, _)| *at).min().unwrap();
            prop_assert!(last + 2 * SLICE_NS >= first + total);
        }
    }

    #[test]
    fn a_transfer_due_late_does_not_block_one_due_early() {
        let mut link = Credits::new(100 << 16);
        assert_eq!(link.transfer(500_000, 8), 500_800);
        assert_eq!(link.transfer(10_000, 8), 10_800);
    }
}
