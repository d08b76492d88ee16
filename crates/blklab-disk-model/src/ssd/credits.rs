//! A link or bus that many commands share: its time is divided into slices.
//!
//! Commands reserve their transfers at submission, not in the order in which their data are ready. With a
//! single next-free time, a later transfer would block an earlier one; with credits per slice, each transfer
//! takes the remaining time of the slices that it needs.

/// The initial number of slices in the ring, which fits into a processor's L1 cache; it doubles whenever a
/// transfer reaches further ahead.
const SLICES_MIN: usize = 128;

/// The maximum number of slices: further ahead nothing is reserved. Enough for requests of 256 MiB that are
/// reserved at once.
const SLICES_MAX: u64 = 65_536;

/// A slice is about as long as the transfer of this many sectors (4 KiB): shorter slices cost time without
/// more precision, longer ones would mix small transfers.
const SLICE_SECTORS: u64 = 8;

/// So many slices are looked at together where many are to be filled, and emptied one by one.
const STEP: usize = 8;

#[derive(Clone, Copy, Debug, Default)]
struct Slice {
    used_ns: u32,
    /// For a full slice: all slices from it up to this one are full; 0 if only it is. 32 bits of the number.
    full_up_to: u32,
}

impl Slice {
    /// The first slice behind this full one of that number that may have room. Only 32 bits of its number are kept:
    /// the two lie close together.
    #[inline]
    fn behind(self, number: u64) -> u64 {
        match self.full_up_to {
            0 => number + 1,
            to => number + u64::from(to.wrapping_sub(number as u32)),
        }
    }
}

/// One shared link.
#[derive(Debug)]
pub(super) struct Credits {
    /// The slices from `first` on: a power of two of them, each at its number modulo that.
    ring: Vec<Slice>,
    /// The number of the first slice that is not over.
    first: u64,
    /// The number of the first one behind the ring.
    end: u64,
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
            ring: vec![Slice::default(); SLICES_MIN],
            first: 0,
            end: SLICES_MIN as u64,
            slice_bits: slice_ns.trailing_zeros(),
            sector_fx,
            busy_ns: 0,
        }
    }

    #[inline]
    fn place(&self, number: u64) -> usize {
        number as usize & (self.ring.len() - 1)
    }

    /// The slices before `first` are over.
    #[inline(never)]
    fn pass(&mut self, first: u64) {
        let slices = self.ring.len();
        if first - self.first <= STEP as u64 {
            for number in self.first..first {
                let place = self.place(number);
                self.ring[place] = Slice::default();
            }
            (self.first, self.end) = (first, first + slices as u64);
            return;
        }
        let over = (first - self.first).min(slices as u64) as usize;
        let place = self.place(self.first);
        let up_to_end = over.min(slices - place);
        self.ring[place..place + up_to_end].fill(Slice::default());
        self.ring[..over - up_to_end].fill(Slice::default());
        (self.first, self.end) = (first, first + slices as u64);
    }

    /// Whether the ring has all slices before `end`; it grows up to the maximum.
    #[inline]
    fn reaches(&mut self, end: u64) -> bool {
        end <= self.end || self.grow(end)
    }

    #[cold]
    fn grow(&mut self, end: u64) -> bool {
        let wanted = end - self.first;
        if wanted > SLICES_MAX {
            return false;
        }
        let fewer = std::mem::take(&mut self.ring);
        self.ring = vec![Slice::default(); wanted.next_power_of_two() as usize];
        for number in self.first..self.end {
            let place = self.place(number);
            self.ring[place] = fewer[number as usize & (fewer.len() - 1)];
        }
        self.end = self.first + self.ring.len() as u64;
        true
    }

    /// Transfers `sectors` from `at` on; returns the time of the last byte. `at` is `now` or later, and later
    /// calls never ask for a time before `now`.
    #[inline(always)]
    pub fn transfer(&mut self, now: u64, at: u64, sectors: u64) -> u64 {
        self.take(now, at, (sectors * self.sector_fx) >> 16)
    }

    /// The same for a duration.
    #[inline(always)]
    pub fn take(&mut self, now: u64, at: u64, left: u64) -> u64 {
        self.busy_ns += left;
        let first = now >> self.slice_bits;
        if first > self.first {
            self.pass(first);
        }
        let slice_ns = 1 << self.slice_bits;
        let (number, into) = (at >> self.slice_bits, at & (slice_ns - 1));
        if !self.reaches(number + 2) {
            return at + left;
        }
        let place = self.place(number);
        let slice = &mut self.ring[place];
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
        let (number, into) = (at >> self.slice_bits, at & (slice_ns - 1));
        let (place, following) = (self.place(number), self.place(number + 1));
        let taken = slice_ns - into.max(u64::from(self.ring[place].used_ns));
        let next = u64::from(self.ring[following].used_ns) + left - taken;
        if taken == 0 || next > slice_ns {
            return self.transfer_far(at, left);
        }
        self.ring[place].used_ns += taken as u32;
        self.ring[following].used_ns = next as u32;
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
            if !self.reaches(number + 1) {
                break at + left;
            }
            let start = number << bits;
            let place = self.place(number);
            let slice = self.ring[place];
            let used = u64::from(slice.used_ns);
            if used == slice_ns {
                first_full.get_or_insert(number);
                number = slice.behind(number);
                at = number << bits;
                continue;
            }
            if used == 0 && at == start && left > slice_ns {
                let filled = self.fill(number, (left - 1) >> bits);
                first_full.get_or_insert(number);
                left -= filled << bits;
                number += filled;
                at = number << bits;
                continue;
            }
            let taken = left.min(slice_ns - used).min(start + slice_ns - at);
            self.ring[place].used_ns += taken as u32;
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

    /// Fills at most `count` slices from `number` on, which is empty, up to one that is in use or the end of the ring;
    /// returns how many. The caller continues until this many slices are taken, so that finally all `count` are full.
    #[inline]
    fn fill(&mut self, number: u64, count: u64) -> u64 {
        let count = count.min(self.first + SLICES_MAX - number);
        let full = Slice { used_ns: 1 << self.slice_bits, full_up_to: (number + count) as u32 };
        self.reaches(number + count);
        let place = self.place(number);
        let end = (place + count as usize).min(self.ring.len());
        let mut filled = 0;
        for step in self.ring[place..end].chunks_mut(STEP) {
            let any = step.iter().fold(0, |any, slice| any | slice.used_ns);
            let empty =
                if any == 0 { step.len() } else { step.iter().take_while(|s| s.used_ns == 0).count() };
            step[..empty].fill(full);
            filled += empty as u64;
            if any != 0 {
                break;
            }
        }
        filled
    }

    /// All slices from `first` up to `to` are full: transfers that begin in one of them skip to `to`.
    #[inline]
    fn shorten(&mut self, first: u64, to: u64) {
        let mut number = first;
        while number < to {
            let place = self.place(number);
            number = self.ring[place].behind(number);
            self.ring[place].full_up_to = to as u32;
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
    fn nothing_is_reserved_too_far_ahead() {
        let mut link = Credits::new(100 << 16);
        let far = SLICES_MAX << link.slice_bits;
        assert_eq!([far, far].map(|at| link.transfer(0, at, 8)), [far + 800; 2]);
        // A transfer that begins before the maximum and ends behind it.
        assert_eq!(link.transfer(0, far - 2_000, 80), far + 6_000);
        assert_eq!(link.transfer(far, far, 8), far + 800, "the slices behind it are empty");
    }

    #[test]
    fn a_transfer_due_late_does_not_block_one_due_early() {
        let mut link = Credits::new(100 << 16);
        assert_eq!(link.transfer(0, 500_000, 8), 500_800);
        assert_eq!(link.transfer(0, 10_000, 8), 10_800);
    }
}
