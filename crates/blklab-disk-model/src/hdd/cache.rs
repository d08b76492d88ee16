//! The cache: segments of read data, extents of data to be written.

use std::collections::VecDeque;

use super::geometry::Location;

/// A range of sectors, end excluded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Span {
    pub start: u64,
    pub end: u64,
}

impl Span {
    pub fn new(start: u64, sectors: u32) -> Span {
        Span { start, end: start + u64::from(sectors) }
    }

    pub fn len(self) -> u64 {
        self.end - self.start
    }

    #[inline]
    pub fn overlaps(self, other: Span) -> bool {
        // Both sides are computed: a branch on either alone would be unpredictable.
        (self.start < other.end) & (other.start < self.end)
    }

    #[inline]
    pub fn covers(self, other: Span) -> bool {
        (self.start <= other.start) & (other.end <= self.end)
    }
}

/// Units of the disk are distinguished by this many of their lowest bits.
const UNIT_BITS: u32 = 10;

/// Segments of the read cache, each one run of sectors, reused in LRU order.
#[derive(Debug)]
pub(super) struct ReadCache {
    spans: Vec<Span>,
    /// The first requested sector of each segment; sectors before it only passed the head.
    requested_from: Vec<u64>,
    /// For units of 2^`unit_shift` sectors, at least the size of a segment: the number of segments that begin
    /// and end in a unit, or in another one with the same lowest bits.
    ends_in_units: Box<[u16; 1 << UNIT_BITS]>,
    unit_shift: u32,
    /// Segments, the least recently used first.
    order: Vec<usize>,
    segment_sectors: u64,
}

impl ReadCache {
    pub fn new(segments: usize, segment_sectors: u64) -> ReadCache {
        let mut ends_in_units = Box::new([0; 1 << UNIT_BITS]);
        ends_in_units[0] = 2 * segments as u16;
        ReadCache {
            spans: vec![Span::default(); segments],
            requested_from: vec![0; segments],
            ends_in_units,
            unit_shift: u64::BITS - segment_sectors.leading_zeros(),
            order: (0..segments).collect(),
            segment_sectors,
        }
    }

    /// The segment that holds all of `span`.
    #[inline]
    pub fn find(&mut self, span: Span) -> Option<usize> {
        if !self.may_hold(span.start) {
            return None;
        }
        let found = self.spans.iter().position(|s| s.covers(span))?;
        if self.order.last() != Some(&found) {
            self.order.retain(|segment| *segment != found);
            self.order.push(found);
        }
        Some(found)
    }

    /// Some segment may hold `sector` or end there: one begins or ends in its unit. This is rarely true,
    /// which saves the search through all segments.
    #[inline]
    fn may_hold(&self, sector: u64) -> bool {
        self.ends_in_units[self.unit(sector)] > 0
    }

    #[inline]
    fn unit(&self, sector: u64) -> usize {
        (sector >> self.unit_shift) as usize % (1 << UNIT_BITS)
    }

    /// The segment that contains `sector` or ends just before it.
    #[inline]
    pub fn continues(&self, sector: u64) -> Option<usize> {
        if !self.may_hold(sector) {
            return None;
        }
        self.spans.iter().position(|s| (s.start < sector) & (sector <= s.end))
    }

    /// Replaces the least recently used segment by `span`.
    #[inline(always)]
    pub fn replace(&mut self, span: Span) -> usize {
        self.order.rotate_left(1);
        let oldest = self.order[self.order.len() - 1];
        self.requested_from[oldest] = span.start;
        self.set(oldest, span);
        oldest
    }

    /// Adds the `passed` sectors before a segment, as far as there is room beside the data up to `limit`.
    pub fn add_passed(&mut self, segment: usize, passed: u64, limit: u64) {
        let span = self.spans[segment];
        let room = self.segment_sectors.saturating_sub(limit.max(span.end) - span.start);
        if passed.min(room) > 0 {
            self.set(segment, Span { start: span.start - passed.min(room), ..span });
        }
    }

    /// Empties the segments that `span` overlaps; returns whether `kept` is among them.
    pub fn forget(&mut self, span: Span, kept: Option<usize>) -> bool {
        let mut among = false;
        for segment in 0..self.spans.len() {
            if self.spans[segment].overlaps(span) {
                self.set(segment, Span::default());
                among |= kept == Some(segment);
            }
        }
        among
    }

    /// The segment has been extended to `end`; its oldest data are replaced.
    pub fn extend(&mut self, segment: usize, end: u64) {
        let span = self.spans[segment];
        if end > span.end {
            self.set(segment, Span { end, ..span });
        }
    }

    /// The segment now holds the last sectors of `span`, as many as fit.
    #[inline(always)]
    fn set(&mut self, segment: usize, mut span: Span) {
        span.start = span.start.max(span.end.saturating_sub(self.segment_sectors));
        let old = std::mem::replace(&mut self.spans[segment], span);
        for end in [old.start, old.end].map(|sector| self.unit(sector)) {
            self.ends_in_units[end] -= 1;
        }
        for end in [span.start, span.end].map(|sector| self.unit(sector)) {
            self.ends_in_units[end] += 1;
        }
    }

    pub fn span(&self, segment: usize) -> Span {
        self.spans[segment]
    }

    /// The first sector of a segment that was requested and is still there.
    pub fn requested_from(&self, segment: usize) -> u64 {
        self.requested_from[segment].max(self.spans[segment].start)
    }

    pub fn segment_sectors(&self) -> u64 {
        self.segment_sectors
    }
}

/// Data in the write cache that are not on the medium yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Dirty {
    pub span: Span,
    /// Number of the oldest write in it: a flush waits for earlier writes.
    pub order: u64,
    pub place: Location,
}

/// A write that waits for room.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting {
    /// The number of its transfer.
    pub key: u32,
    pub arrived: u64,
    pub order: u64,
}

/// The write cache: extents that do not overlap, reserved room, and writes that wait for room.
#[derive(Debug)]
pub(super) struct WriteCache {
    pub extents: Vec<Dirty>,
    /// The data that are being written to the medium now.
    pub under_way: Option<(Span, u64)>,
    /// Writes without room yet.
    pub waiting: VecDeque<Waiting>,
    /// Data that are on the medium and still here, the oldest first.
    written: VecDeque<Span>,
    keeps: bool,
    promised_sectors: u64,
    promised_extents: usize,
    sectors: u64,
    room_sectors: u64,
    room_extents: usize,
    /// Above this fill, destaging competes with reads.
    pressing_sectors: u64,
    pressing_extents: usize,
    /// The largest extent.
    extent_sectors: u64,
}

impl WriteCache {
    pub fn new(room_sectors: u64, room_extents: usize, percent: f64, keeps: bool) -> WriteCache {
        WriteCache {
            extents: Vec::with_capacity(room_extents + 2),
            under_way: None,
            waiting: VecDeque::new(),
            written: VecDeque::new(),
            keeps,
            promised_sectors: 0,
            promised_extents: 0,
            sectors: 0,
            room_sectors,
            room_extents,
            pressing_sectors: (room_sectors as f64 * percent / 100.0) as u64,
            pressing_extents: (room_extents as f64 * percent / 100.0) as usize,
            extent_sectors: (room_sectors / 4).max(1),
        }
    }

    /// Whether the cache can ever hold this much.
    pub fn fits(&self, sectors: u32) -> bool {
        u64::from(sectors) <= self.room_sectors
    }

    /// Reserves room for a write, if there is any.
    pub fn promise(&mut self, sectors: u32) -> bool {
        let under_way = self.under_way.map_or(0, |(span, _)| span.len());
        let sectors = u64::from(sectors);
        let room = self.sectors + under_way + self.promised_sectors + sectors <= self.room_sectors
            && self.extents.len() + self.promised_extents < self.room_extents;
        if room {
            self.promised_sectors += sectors;
            self.promised_extents += 1;
        }
        room
    }

    /// True when the cache is so full that reads must wait.
    pub fn presses(&self) -> bool {
        !self.waiting.is_empty()
            || self.sectors > self.pressing_sectors
            || self.extents.len() > self.pressing_extents
    }

    /// True when newer writes have cut extents into more pieces than the cache can hold.
    pub fn overfull(&self) -> bool {
        self.extents.len() > self.room_extents
    }

    /// The data of a write with reserved room have arrived. They join the extent that they continue, unless a
    /// flush waits for it (`flush_order`), because that flush might never end.
    pub fn insert(&mut self, span: Span, order: u64, flush_order: u64, locate: impl Fn(u64) -> Location) {
        self.promised_sectors -= span.len();
        self.promised_extents -= 1;
        if self.extents.iter().any(|e| e.span.covers(span)) {
            return;
        }
        self.remove(span, u64::MAX, &locate);
        self.sectors += span.len();
        let joins = |e: &&mut Dirty| {
            e.span.end == span.start
                && e.order > flush_order
                && e.span.len() + span.len() <= self.extent_sectors
        };
        match self.extents.iter_mut().find(joins) {
            Some(extent) => extent.span.end = span.end,
            None => self.extents.push(Dirty { span, order, place: locate(span.start) }),
        }
        self.drop_written();
    }

    /// The oldest data that are on the medium give up their room to data that are not.
    fn drop_written(&mut self) {
        let mut sectors = self.sectors + self.written.iter().map(|written| written.len()).sum::<u64>();
        while sectors > self.room_sectors || self.extents.len() + self.written.len() > self.room_extents {
            let Some(oldest) = self.written.pop_front() else { return };
            sectors -= oldest.len();
        }
    }

    /// The data under way are on the medium.
    pub fn end_writing(&mut self) {
        let Some((span, _)) = self.under_way.take() else { return };
        // Newer data may have come meanwhile.
        if self.keeps && !self.extents.iter().any(|extent| extent.span.overlaps(span)) {
            self.written.retain(|older| !older.overlaps(span));
            self.written.push_back(span);
            self.drop_written();
        }
    }

    /// Drops data in `span` that were written before `order`: newer data replace them.
    pub fn remove(&mut self, span: Span, order: u64, locate: impl Fn(u64) -> Location) {
        self.written.retain(|written| !written.overlaps(span));
        let mut index = 0;
        while index < self.extents.len() {
            let old = self.extents[index];
            if !old.span.overlaps(span) || old.order >= order {
                index += 1;
                continue;
            }
            self.extents.swap_remove(index);
            self.sectors -= old.span.len();
            let before = Span { start: old.span.start, end: span.start.max(old.span.start) };
            let behind = Span { start: span.end.min(old.span.end), end: old.span.end };
            for rest in [before, behind] {
                if rest.len() > 0 {
                    self.sectors += rest.len();
                    // Appended: it does not overlap `span`, so the loop skips it.
                    self.extents.push(Dirty { span: rest, order: old.order, place: locate(rest.start) });
                }
            }
        }
    }

    /// Takes up to `sectors` from the front of an extent to write them now.
    pub fn take(&mut self, index: usize, sectors: u64, locate: impl Fn(u64) -> Location) -> Dirty {
        let mut taken = self.extents[index];
        if taken.span.len() > sectors {
            taken.span.end = taken.span.start + sectors;
            self.extents[index].span.start = taken.span.end;
            self.extents[index].place = locate(taken.span.end);
        } else {
            self.extents.swap_remove(index);
        }
        self.sectors -= taken.span.len();
        self.under_way = Some((taken.span, taken.order));
        taken
    }

    /// True when one extent holds all of `span`, or data that are on the medium and still here.
    pub fn holds(&self, span: Span) -> bool {
        self.extents.iter().any(|e| e.span.covers(span))
            || (!self.written.is_empty() && self.written.iter().any(|written| written.covers(span)))
    }

    /// True when any of `span` is not on the medium.
    pub fn overlaps(&self, span: Span) -> bool {
        self.extents.iter().any(|e| e.span.overlaps(span))
            || self.under_way.is_some_and(|(s, _)| s.overlaps(span))
    }

    /// True when data of a write before `order` are not on the medium.
    pub fn older_than(&self, order: u64) -> bool {
        self.extents.iter().any(|e| e.order < order) || self.under_way.is_some_and(|(_, o)| o < order)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_span_covers_nothing_beyond_its_ends() {
        let span = Span::new(10, 5);
        assert!(span.covers(span) && span.covers(Span::new(11, 3)));
        assert!(!span.covers(Span::new(10, 6)) && !span.covers(Span::new(9, 5)));
    }

    proptest! {
        #[test]
        fn the_segment_found_is_one_that_holds_the_span_and_stays_longest(
            spans in prop::collection::vec((0u64..6_000, 1u32..600), 1..60), asked in (0u64..6_000, 1u32..300)
        ) {
            let mut cache = ReadCache::new(8, 512);
            for (start, sectors) in spans {
                let end = start + u64::from(sectors);
                cache.replace(Span { start, end: start });
                cache.extend(cache.order[7], end);
            }
            let asked = Span::new(asked.0, asked.1);
            for sector in [asked.start, cache.spans[0].end, cache.spans[7].end] {
                let continued = cache.spans.iter().position(|s| (s.start + 1..=s.end).contains(&sector));
                prop_assert_eq!(cache.continues(sector), continued);
            }
            let holder = cache.spans.iter().position(|span| span.covers(asked));
            prop_assert_eq!(cache.find(asked), holder);
            if let Some(holder) = holder {
                let given_up: Vec<_> = (0..8).map(|n| cache.replace(Span::new(10_000 + n, 1))).collect();
                prop_assert_eq!(given_up[7], holder);
            }
        }
    }
}
