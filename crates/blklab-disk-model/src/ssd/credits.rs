//! A link or bus that many commands share: its time is divided into slices.
//!
//! Commands reserve their transfers at submission, not in the order in which their data are ready. With a
//! single next-free time, a later transfer would block an earlier one; with credits per slice, each transfer
//! takes the remaining time of the slices that it needs.

use std::ops::Range;

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

/// The time of a slice that is in use, up to 32 bits of nanoseconds. In the upper 32 bits, for a full slice: all slices
/// from it up to this one are full; 0 if only it is. The lower 32 bits of the number.
#[derive(Clone, Copy, Debug, Default)]
struct Slice(u64);

impl Slice {
    /// All slices from a full one up to that one are full.
    fn full(slice_ns: u64, up_to: u64) -> Slice {
        Slice(slice_ns | up_to << 32)
    }

    #[inline]
    fn used_ns(self) -> u64 {
        u64::from(self.0 as u32)
    }

    /// The first slice behind this full one of that number that may have room. The two lie close together.
    #[inline]
    fn behind(self, number: u64) -> u64 {
        match (self.0 >> 32) as u32 {
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
    /// No slice from this number on is in use. At its maximum, that is not known.
    unused: u64,
    /// The run of full slices that a long transfer has left last: those that follow begin in it, mostly. Slices of it
    /// may be over.
    full: Range<u64>,
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
            unused: 0,
            full: 0..0,
            slice_bits: slice_ns.trailing_zeros(),
            sector_fx,
            busy_ns: 0,
        }
    }

    /// One with transfers that are short, or seldom follow one another: it does not know where none is reserved, so that
    /// [`Credits::transfer_short`] may be used as well.
    pub fn of_short_transfers(sector_fx: u64) -> Credits {
        Credits { unused: u64::MAX, ..Credits::new(sector_fx) }
    }

    #[inline]
    fn place(&self, number: u64) -> usize {
        number as usize & (self.ring.len() - 1)
    }

    /// The slices before `first` are over.
    #[inline(never)]
    fn pass(&mut self, first: u64) {
        let slices = self.ring.len();
        let over = first - self.first;
        if over <= STEP as u64 {
            for number in self.first..first {
                let place = self.place(number);
                self.ring[place] = Slice::default();
            }
        } else {
            let in_use = over.min(slices as u64).min(self.unused.saturating_sub(self.first)) as usize;
            let place = self.place(self.first);
            let up_to_end = in_use.min(slices - place);
            self.ring[place..place + up_to_end].fill(Slice::default());
            self.ring[..in_use - up_to_end].fill(Slice::default());
        }
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
        self.take_any::<true>(now, at, left)
    }

    /// [`Credits::transfer`] for a link [of short transfers](Credits::of_short_transfers).
    #[inline(always)]
    pub fn transfer_short(&mut self, now: u64, at: u64, sectors: u64) -> u64 {
        debug_assert_eq!(self.unused, u64::MAX);
        self.take_any::<false>(now, at, (sectors * self.sector_fx) >> 16)
    }

    #[inline(always)]
    fn take_any<const NOTES_USE: bool>(&mut self, now: u64, at: u64, left: u64) -> u64 {
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
        if NOTES_USE {
            self.unused = self.unused.max(number + 1);
        }
        let place = self.place(number);
        let slice = &mut self.ring[place];
        let end = into.max(slice.used_ns()) + left;
        // Most transfers fit into the slice that they begin in.
        if end <= slice_ns {
            slice.0 += left;
            return at - into + end;
        }
        if left > slice_ns { self.transfer_over_many(at, left) } else { self.transfer_on(at, left) }
    }

    /// The same for a transfer that does not fit into the slice in which it begins. Most fit into
    /// that and the next one.
    #[inline(never)]
    fn transfer_on(&mut self, at: u64, left: u64) -> u64 {
        let slice_ns = 1 << self.slice_bits;
        let (number, into) = (at >> self.slice_bits, at & (slice_ns - 1));
        let (place, following) = (self.place(number), self.place(number + 1));
        let taken = slice_ns - into.max(self.ring[place].used_ns());
        let next = self.ring[following].used_ns() + left - taken;
        if taken == 0 || next > slice_ns {
            return self.transfer_over_many(at, left);
        }
        self.ring[place].0 += taken;
        self.ring[following].0 += left - taken;
        self.unused = self.unused.max(number + 2);
        at - into + slice_ns + next
    }

    /// The same over any number of slices.
    #[inline]
    fn transfer_over_many(&mut self, at: u64, left: u64) -> u64 {
        if self.unused == u64::MAX { self.transfer_between(at, left) } else { self.transfer_far(at, left) }
    }

    /// The same of a link that knows where nothing is reserved.
    #[inline(never)]
    fn transfer_far(&mut self, at: u64, left: u64) -> u64 {
        let number = at >> self.slice_bits;
        let (from, at) = match self.full.contains(&number) {
            true => (self.full.end, self.full.end << self.slice_bits),
            false => (number, at),
        };
        if from + 1 >= self.unused && self.reaches(from + 2 + (left >> self.slice_bits)) {
            return self.transfer_behind(from, at, left);
        }
        self.transfer_between(at, left)
    }

    /// The same from slice `number` on, behind which none is in use, and all are in the ring.
    #[inline]
    fn transfer_behind(&mut self, number: u64, at: u64, left: u64) -> u64 {
        let (bits, slice_ns) = (self.slice_bits, 1 << self.slice_bits);
        let (place, start) = (self.place(number), number << bits);
        let used = self.ring[place].used_ns();
        let room = (slice_ns - used).min(start + slice_ns - at);
        if left <= room {
            self.ring[place].0 += left;
            self.unused = self.unused.max(number + 1);
            return (at + left).max(start + used + left);
        }
        self.ring[place].0 += room;
        let whole = (left - room - 1) >> bits;
        let last = number + 1 + whole;
        self.fill_unused(number + 1, whole);
        let rest = left - room - (whole << bits);
        let place = self.place(last);
        self.ring[place].0 = rest;
        self.unused = last + 1;
        let first_full = if used + room == slice_ns { number } else { number + 1 };
        match first_full == self.full.end {
            true => self.full.end = last,
            false if first_full < last => self.full = first_full..last,
            false => {}
        }
        (last << bits) + rest
    }

    /// The same where later slices may be in use, without the full ones.
    #[inline(never)]
    fn transfer_between(&mut self, mut at: u64, mut left: u64) -> u64 {
        let (bits, slice_ns) = (self.slice_bits, 1 << self.slice_bits);
        let mut number = at >> bits;
        // The first slice that is full. All later ones are full, up to the last.
        let mut first_full = u64::MAX;
        let end = loop {
            if self.full.contains(&number) {
                first_full = first_full.min(number);
                number = self.full.end;
                at = number << bits;
            }
            if !self.reaches(number + 1) {
                break at + left;
            }
            let start = number << bits;
            let place = self.place(number);
            let slice = self.ring[place];
            let used = slice.used_ns();
            if used == slice_ns {
                first_full = first_full.min(number);
                number = slice.behind(number);
                at = number << bits;
                continue;
            }
            if used == 0 && at == start && left > slice_ns {
                let filled = self.fill(number, (left - 1) >> bits);
                first_full = first_full.min(number);
                left -= filled << bits;
                number += filled;
                at = number << bits;
                continue;
            }
            let taken = left.min(slice_ns - used).min(start + slice_ns - at);
            self.ring[place].0 += taken;
            left -= taken;
            if left == 0 {
                break (at + taken).max(start + used + taken);
            }
            if used + taken == slice_ns {
                first_full = first_full.min(number);
            }
            number += 1;
            at = number << bits;
        };
        self.unused = self.unused.max(number + 1);
        if first_full != u64::MAX {
            self.note_full(first_full, number);
        }
        end
    }

    /// All slices from `first` up to `to` are full.
    #[inline]
    fn note_full(&mut self, first: u64, to: u64) {
        if first <= self.full.end && self.full.start <= to {
            self.full = self.full.start.min(first)..self.full.end.max(to);
            return;
        }
        self.shorten(first, to);
        self.full = first..to;
    }

    /// Fills so many slices from `number` on, of which none is in use and all are in the ring.
    #[inline]
    fn fill_unused(&mut self, number: u64, count: u64) {
        let full = Slice::full(1 << self.slice_bits, number + count);
        let place = self.place(number);
        let up_to_end = (count as usize).min(self.ring.len() - place);
        self.ring[place..place + up_to_end].fill(full);
        self.ring[..count as usize - up_to_end].fill(full);
    }

    /// Fills at most `count` slices from `number` on, which is empty, up to one that is in use or the end of the ring;
    /// returns how many. The caller continues until this many slices are taken, so that finally all `count` are full.
    #[inline]
    fn fill(&mut self, number: u64, count: u64) -> u64 {
        let count = count.min(self.first + SLICES_MAX - number);
        let full = Slice::full(1 << self.slice_bits, number + count);
        self.reaches(number + count);
        let place = self.place(number);
        let end = (place + count as usize).min(self.ring.len());
        let mut filled = 0;
        let (steps, rest) = self.ring[place..end].as_chunks_mut::<STEP>();
        for step in steps {
            if step.iter().fold(0, |any, slice| any | slice.0) != 0 {
                return filled + fill_empty(step, full);
            }
            *step = [full; STEP];
            filled += STEP as u64;
        }
        filled + fill_empty(rest, full)
    }

    /// Transfers that begin in one of the full slices from `first` up to `to` skip to `to`.
    #[inline]
    fn shorten(&mut self, first: u64, to: u64) {
        let mut number = first;
        while number < to {
            let place = self.place(number);
            let slice = self.ring[place];
            self.ring[place] = Slice::full(slice.used_ns(), to);
            number = slice.behind(number);
        }
    }
}

/// Fills slices up to the first that is in use; returns how many.
#[inline]
fn fill_empty(slices: &mut [Slice], full: Slice) -> u64 {
    let mut filled = 0;
    for slice in slices.iter_mut().take_while(|slice| slice.0 == 0) {
        *slice = full;
        filled += 1;
    }
    filled
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
            transfers in prop::collection::vec((0u64..300_000, 1u64..200, 0u64..40_000), 1..300),
            runs: bool, in_a_row: bool, short: bool,
        ) {
            let mut link = if short { Credits::of_short_transfers(100 << 16) } else { Credits::new(100 << 16) };
            let (bits, slice_ns) = (link.slice_bits, 1 << link.slice_bits);
            let mut used = std::collections::BTreeMap::new();
            let mut now = 0;
            for (ahead, sectors, passed) in transfers {
                // Time stands still, so that the table must grow, or advances, so that places are reused.
                now += if runs { passed } else { 0 };
                // Most transfers over many slices begin where the last one has ended.
                let at = if in_a_row { now + ahead / 100 } else { now + ahead };
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
                let ended = match short {
                    true => link.transfer_short(now, at, sectors),
                    false => link.transfer(now, at, sectors),
                };
                prop_assert_eq!(ended, end);
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
