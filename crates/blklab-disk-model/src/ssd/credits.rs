//! A link or bus that many commands share: its time is divided into slices.
//!
//! Commands reserve their transfers at submission, not in the order in which their data are ready. With a
//! single next-free time, a later transfer would block an earlier one; with credits per slice, each transfer
//! takes the remaining time of the slices that it needs.

/// The initial number of slices, which fits into a processor's L1 cache; it doubles whenever the place of a
/// needed slice is taken by another slice that is not over yet.
const SLICES_MIN: usize = 128;

/// The maximum number of slices: reservations further ahead are not distinguished. Enough for a request of
/// 128 MiB that is reserved at once.
const SLICES_MAX: usize = 65_536;

/// A slice is about as long as the transfer of this many sectors (4 KiB): shorter slices cost time without
/// more precision, longer ones would mix small transfers.
const SLICE_SECTORS: u64 = 8;

#[derive(Clone, Copy, Debug)]
struct Slice {
    number: u32,
    used_ns: u32,
    /// For a full slice: all slices from it up to this one are full.
    full_up_to: u32,
}

impl Slice {
    /// The slice of this number before its first transfer.
    #[inline]
    fn empty(number: u32) -> Slice {
        Slice { number, used_ns: 0, full_up_to: number.wrapping_add(1) }
    }

    /// It comes before slice `first`, or is empty: no transfer will use it.
    #[inline]
    fn is_over(self, first: u32) -> bool {
        // Numbers are 32 bits wide and lie close together.
        self.used_ns == 0 || (self.number.wrapping_sub(first) as i32) < 0
    }
}

/// One shared link.
#[derive(Debug)]
pub(super) struct Credits {
    /// A power of two of slices, each at its number modulo that.
    slices: Vec<Slice>,
    /// The time of the latest transfer: slices before it are over.
    now: u64,
    /// A slice lasts 2^this nanoseconds.
    slice_bits: u32,
    /// Nanoseconds per sector, times 2^16.
    sector_fx: u64,
    pub busy_ns: u64,
}

impl Credits {
    pub fn new(sector_fx: u64) -> Credits {
        let slice_ns = ((SLICE_SECTORS * sector_fx) >> 16).clamp(1, 1 << 24).next_power_of_two();
        Credits {
            slices: vec![Slice::empty(0); SLICES_MIN],
            now: 0,
            slice_bits: slice_ns.trailing_zeros(),
            sector_fx,
            busy_ns: 0,
        }
    }

    #[inline]
    fn place(&self, number: u64) -> usize {
        number as usize & (self.slices.len() - 1)
    }

    /// The number of the first slice that is not over.
    #[inline]
    fn first(&self) -> u32 {
        (self.now >> self.slice_bits) as u32
    }

    /// The free place for a missing slice; `None` if the slice exists, or if another slice still needs the
    /// place.
    #[inline]
    fn free_place(&self, number: u64) -> Option<usize> {
        let place = self.place(number);
        let there = self.slices[place];
        let is_free = there.is_over(self.first()) || self.slices.len() == SLICES_MAX;
        (there.number != number as u32 && is_free).then_some(place)
    }

    /// The place of the slice of that number; it is empty if it was not used yet. The returned place is valid
    /// until another slice is opened.
    #[inline]
    fn open(&mut self, number: u64) -> usize {
        let place = self.place(number);
        if self.slices[place].number == number as u32 { place } else { self.open_anew(number) }
    }

    /// The same for a slice that has no place yet.
    #[inline(never)]
    fn open_anew(&mut self, number: u64) -> usize {
        loop {
            if let Some(place) = self.free_place(number) {
                self.slices[place] = Slice::empty(number as u32);
                return place;
            }
            self.grow();
            let place = self.place(number);
            if self.slices[place].number == number as u32 {
                return place;
            }
        }
    }

    #[cold]
    fn grow(&mut self) {
        let more = vec![Slice::empty(0); self.slices.len() * 2];
        for slice in std::mem::replace(&mut self.slices, more) {
            if !slice.is_over(self.first()) {
                let place = self.place(u64::from(slice.number));
                self.slices[place] = slice;
            }
        }
    }

    /// Transfers `sectors` from `at` on; returns the time of the last byte. `at` is `now` or later, and later
    /// calls never ask for a time before `now`.
    #[inline]
    pub fn transfer(&mut self, now: u64, at: u64, sectors: u64) -> u64 {
        self.take(now, at, (sectors * self.sector_fx) >> 16)
    }

    /// The same for a duration.
    #[inline]
    pub fn take(&mut self, now: u64, at: u64, left: u64) -> u64 {
        self.now = now;
        self.busy_ns += left;
        let slice_ns = 1 << self.slice_bits;
        let into = at & (slice_ns - 1);
        let place = self.open(at >> self.slice_bits);
        let slice = &mut self.slices[place];
        let end = into.max(u64::from(slice.used_ns)) + left;
        // Most transfers fit into the slice that they begin in.
        if end <= slice_ns {
            slice.used_ns += left as u32;
            return at - into + end;
        }
        self.transfer_on(at, left)
    }

    /// The same for a transfer that does not fit into the slice in which it begins. Most fit into
    /// that and the next one.
    #[inline(never)]
    fn transfer_on(&mut self, at: u64, left: u64) -> u64 {
        let slice_ns = 1 << self.slice_bits;
        let number = at >> self.slice_bits;
        let into = at & (slice_ns - 1);
        let taken = slice_ns - into.max(u64::from(self.slices[self.place(number)].used_ns));
        if taken == 0 {
            return self.transfer_far(at, left);
        }
        let rest = left - taken;
        let following = self.open(number + 1);
        let next = u64::from(self.slices[following].used_ns) + rest;
        let place = self.place(number);
        // The growth of the table has left an empty slice.
        let is_there = self.slices[place].number == number as u32;
        if next > slice_ns || !is_there {
            return self.transfer_far(at, left);
        }
        self.slices[place].used_ns += taken as u32;
        self.slices[following].used_ns += rest as u32;
        at - into + slice_ns + next
    }

    /// The same over any number of slices, without the full ones.
    #[inline(never)]
    fn transfer_far(&mut self, mut at: u64, mut left: u64) -> u64 {
        let (bits, slice_ns) = (self.slice_bits, 1 << self.slice_bits);
        let mut number = at >> bits;
        // The first slice that is full. All later ones are full, up to the last.
        let mut first_full = None;
        let end = loop {
            if at == number << bits && left > slice_ns {
                let filled = self.fill(number, (left - 1) >> bits);
                if filled > 0 {
                    first_full.get_or_insert(number);
                    left -= filled << bits;
                    number += filled;
                    at = number << bits;
                }
            }
            let start = number << bits;
            let place = self.open(number);
            let slice = &mut self.slices[place];
            let used = u64::from(slice.used_ns);
            if used == slice_ns {
                first_full.get_or_insert(number);
                // Numbers are 32 bits wide and these two lie close together.
                number += u64::from(slice.full_up_to.wrapping_sub(number as u32));
                at = number << bits;
                continue;
            }
            let taken = left.min(slice_ns - used).min(start + slice_ns - at);
            slice.used_ns += taken as u32;
            left -= taken;
            if left == 0 {
                break (at + taken).max(start + used + taken);
            }
            if used + taken == slice_ns {
                first_full.get_or_insert(number);
            }
            number += 1;
            at = number << bits;
        };
        if let Some(first) = first_full {
            self.shorten(first, number);
        }
        end
    }

    /// Fills at most `count` slices from `number` on, up to one that is in use; returns how many. The caller
    /// continues until this many slices are taken, so that finally all `count` are full.
    #[inline]
    fn fill(&mut self, number: u64, count: u64) -> u64 {
        let full_up_to = (number + count) as u32;
        let used_ns = 1 << self.slice_bits;
        let (first, takes_any) = (self.first(), self.slices.len() == SLICES_MAX);
        let mut filled = 0;
        while filled < count {
            // A large transfer fills hundreds of slices, which are neighbours up to the table's end.
            let place = self.place(number + filled);
            for slice in self.slices[place..].iter_mut().take((count - filled) as usize) {
                let number = (number + filled) as u32;
                if slice.number == number || !(takes_any || slice.is_over(first)) {
                    return filled;
                }
                *slice = Slice { number, used_ns, full_up_to };
                filled += 1;
            }
        }
        count
    }

    /// All slices from `first` up to `to` are full: transfers that begin in one of them skip to `to`.
    #[inline]
    fn shorten(&mut self, first: u64, to: u64) {
        let mut number = first;
        while number < to {
            let place = self.place(number);
            let slice = &mut self.slices[place];
            if slice.number != number as u32 {
                return;
            }
            number += u64::from(slice.full_up_to.wrapping_sub(number as u32));
            slice.full_up_to = to as u32;
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
            let ends: Vec<_> = starts.iter().map(|(at, n)| (*at, *n, link.transfer(0, *at, *n))).collect();
            for (at, n, end) in &ends {
                prop_assert!(*end >= at + n * 100);
            }
            let total: u64 = starts.iter().map(|(_, n)| n * 100).sum();
            let last = ends.iter().map(|(_, _, end)| *end).max().unwrap();
            let first = starts.iter().map(|(at, _)| *at).min().unwrap();
            prop_assert!(last + (2 << link.slice_bits) >= first + total);
        }
    }

    proptest! {
        #[test]
        fn the_short_way_ends_where_the_long_way_does(
            transfers in prop::collection::vec((0u64..300_000, 1u64..200, 0u64..40_000), 1..300), runs: bool,
        ) {
            let mut link = Credits::new(100 << 16);
            let (bits, slice_ns) = (link.slice_bits, 1 << link.slice_bits);
            let mut used = std::collections::BTreeMap::new();
            let mut now = 0;
            for (ahead, sectors, passed) in transfers {
                // Time stands still, so that the table must grow, or advances, so that places are reused.
                now += if runs { passed } else { 0 };
                let at = now + ahead;
                let (mut from, mut left) = (at, sectors * 100);
                let end = loop {
                    let number = from >> bits;
                    let used: &mut u64 = used.entry(number).or_default();
                    let taken = left.min(slice_ns - *used).min(((number + 1) << bits) - from);
                    *used += taken;
                    left -= taken;
                    if left == 0 {
                        break (from + taken).max((number << bits) + *used);
                    }
                    from = (number + 1) << bits;
                };
                prop_assert_eq!(link.transfer(now, at, sectors), end);
            }
        }
    }

    #[test]
    fn a_request_of_128_mib_takes_as_long_as_the_rate_says() {
        // 2.2 GB/s, in commands of 1280 KiB and stripes of 32 KiB.
        let sector_fx = (512.0 * 1e3 / 2_200.0 * 65_536.0) as u64;
        let mut link = Credits::new(sector_fx);
        let ends = (0..4_096).map(|_| link.transfer(0, 50_000, 64)).max().unwrap();
        let expected = (4_096 * 64 * sector_fx) >> 16;
        assert!(ends >= expected, "{ends} ns of {expected}");
    }

    #[test]
    fn a_transfer_due_late_does_not_block_one_due_early() {
        let mut link = Credits::new(100 << 16);
        assert_eq!(link.transfer(0, 500_000, 8), 500_800);
        assert_eq!(link.transfer(0, 10_000, 8), 10_800);
    }
}
