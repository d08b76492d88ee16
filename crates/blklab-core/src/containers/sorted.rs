//! Requests in order of a sector.
//!
//! A sorted vector while it is short, because shifting a few cache lines is faster than following
//! the pointers of the kernel's red-black tree. A longer one is kept in pieces of bounded length:
//! thousands of entries cost one more search instead of a shift of all of them. A full piece is cut
//! in half, an empty one is kept for the next cut: once the vector has had its largest size,
//! nothing is allocated.

use std::cell::Cell;

use crate::request::RequestId;
use crate::units::Sector;

/// The largest number of entries in a piece: 1 KiB.
const PIECE: usize = 64;

type Entry = (Sector, RequestId);

/// Consecutive entries.
#[derive(Clone, Debug)]
struct Piece {
    entries: Vec<Entry>,
    /// The sector of the first entry, kept where there are several pieces.
    low: Sector,
    /// The result of the last search. A bio is looked up and then inserted at the same sector, a
    /// request is found and then removed: every second search has this result again.
    hint: Cell<usize>,
}

impl Piece {
    fn with_capacity(entries: usize) -> Piece {
        Piece { entries: Vec::with_capacity(entries), low: Sector(0), hint: Cell::new(0) }
    }

    #[inline]
    fn get(&self, index: usize) -> Option<RequestId> {
        self.entries.get(index).map(|entry| entry.1)
    }

    #[inline]
    fn last(&self) -> Option<RequestId> {
        self.entries.last().map(|entry| entry.1)
    }

    /// Index of the first entry at or above `sector`.
    #[inline]
    fn first_from(&self, sector: Sector) -> usize {
        let hint = self.hint.get();
        let is_below = |index: usize| self.entries.get(index).is_some_and(|entry| entry.0 < sector);
        // Both sides are computed: a branch on either alone would be unpredictable.
        if (hint == 0 || is_below(hint - 1)) & !is_below(hint) {
            return hint;
        }
        let found = self.entries.partition_point(|entry| entry.0 < sector);
        self.hint.set(found);
        found
    }

    #[inline]
    fn position(&self, sector: Sector, id: RequestId) -> Option<usize> {
        let first = self.first_from(sector);
        let among_equals = self.entries[first..].iter().position(|entry| entry.1 == id);
        among_equals.map(|place| first + place)
    }

    /// Returns whether an entry before it has the same sector.
    #[inline]
    fn insert(&mut self, sector: Sector, id: RequestId) -> bool {
        let behind_equals = self.first_from(sector.offset(1));
        self.entries.insert(behind_equals, (sector, id));
        behind_equals > 0 && self.entries[behind_equals - 1].0 == sector
    }

    #[inline]
    fn starting_at(&self, sector: Sector) -> Option<RequestId> {
        self.entries.get(self.first_from(sector)).filter(|entry| entry.0 == sector).map(|entry| entry.1)
    }
}

/// Requests by sector; those with equal sectors in order of arrival (`elv_rb_add`).
#[derive(Clone, Debug)]
pub(crate) struct Sorted {
    /// The lowest entries; all entries if `pieces` is 0.
    first: Piece,
    /// The next `pieces` pieces, none of them empty, followed by empty ones.
    more: Vec<Piece>,
    pieces: usize,
    /// Entries in `more`.
    len_of_more: usize,
}

impl Default for Sorted {
    fn default() -> Sorted {
        Sorted::with_capacity(0)
    }
}

/// Why a search for an entry cannot fail.
const SORTED_IN: &str = "the entry is where it was sorted in";

impl Sorted {
    /// With room for some entries at once.
    pub fn with_capacity(entries: usize) -> Sorted {
        let first = Piece::with_capacity(entries.min(PIECE));
        Sorted { first, more: Vec::new(), pieces: 0, len_of_more: 0 }
    }

    #[inline]
    pub fn len(&self) -> usize {
        self.first.entries.len() + self.len_of_more
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.first.entries.is_empty()
    }

    /// Returns whether there is an entry at that sector already.
    #[inline]
    pub fn insert(&mut self, sector: Sector, id: RequestId) -> bool {
        if self.pieces == 0 && self.first.entries.len() < PIECE {
            return self.first.insert(sector, id);
        }
        self.insert_in_pieces(sector, id)
    }

    /// Removes `id`, which was inserted with this sector. Returns its neighbours, as
    /// [`Sorted::beside`].
    #[inline]
    pub fn remove(&mut self, sector: Sector, id: RequestId) -> (Option<RequestId>, Option<RequestId>) {
        if self.pieces > 0 {
            let beside = self.beside(sector, id);
            self.remove_in_pieces(sector, id);
            return beside;
        }
        let index = self.first.position(sector, id).expect(SORTED_IN);
        self.first.entries.remove(index);
        (self.before(0, index), self.first.get(index).or_else(|| self.first()))
    }

    /// The lowest entry.
    #[inline]
    pub fn first(&self) -> Option<RequestId> {
        self.first.get(0)
    }

    /// An entry exactly at `sector`.
    #[inline]
    pub fn starting_at(&self, sector: Sector) -> Option<RequestId> {
        if self.pieces == 0 {
            return self.first.starting_at(sector);
        }
        let piece = self.piece_of(sector);
        let next = || self.more[..self.pieces].get(piece).and_then(|next| next.starting_at(sector));
        self.piece(piece).starting_at(sector).or_else(next)
    }

    /// The lowest entry at or above `sector`.
    #[inline]
    pub fn at_or_above(&self, sector: Sector) -> Option<RequestId> {
        let piece = self.piece_of(sector);
        let entries = self.piece(piece);
        entries.get(entries.first_from(sector)).or_else(|| self.first_behind(piece))
    }

    /// The next entry above `id`, which was inserted with this sector.
    #[inline]
    pub fn above(&self, sector: Sector, id: RequestId) -> Option<RequestId> {
        let (piece, index) = self.position(sector, id);
        self.piece(piece).get(index + 1).or_else(|| self.first_behind(piece))
    }

    /// The next entry below.
    #[inline]
    pub fn below(&self, sector: Sector, id: RequestId) -> Option<RequestId> {
        let (piece, index) = self.position(sector, id);
        self.before(piece, index)
    }

    /// The next entry below; and the next above, which is the lowest of all for the highest.
    #[inline]
    pub fn beside(&self, sector: Sector, id: RequestId) -> (Option<RequestId>, Option<RequestId>) {
        let (piece, index) = self.position(sector, id);
        let above = self.piece(piece).get(index + 1).or_else(|| self.first_behind(piece));
        (self.before(piece, index), above.or_else(|| self.first().filter(|&lowest| lowest != id)))
    }

    /// The last piece that begins below `sector`, or the first piece.
    #[inline]
    fn piece_of(&self, sector: Sector) -> usize {
        if self.pieces == 0 {
            return 0;
        }
        self.more[..self.pieces].partition_point(|piece| piece.low < sector)
    }

    #[inline]
    fn piece(&self, number: usize) -> &Piece {
        if number == 0 { &self.first } else { &self.more[number - 1] }
    }

    #[inline]
    fn piece_mut(&mut self, number: usize) -> &mut Piece {
        if number == 0 { &mut self.first } else { &mut self.more[number - 1] }
    }

    /// The first entry of the next piece.
    #[inline]
    fn first_behind(&self, piece: usize) -> Option<RequestId> {
        if piece < self.pieces { self.more[piece].get(0) } else { None }
    }

    /// The entry before the one with this index in the piece.
    #[inline]
    fn before(&self, piece: usize, index: usize) -> Option<RequestId> {
        match (piece, index) {
            (0, 0) => None,
            (_, 0) => self.piece(piece - 1).last(),
            _ => self.piece(piece).get(index - 1),
        }
    }

    /// The piece of `id`, and its index there.
    #[inline]
    fn position(&self, sector: Sector, id: RequestId) -> (usize, usize) {
        if self.pieces == 0 {
            return (0, self.first.position(sector, id).expect(SORTED_IN));
        }
        // Entries with equal sectors may span several pieces.
        let found = (self.piece_of(sector)..=self.pieces)
            .find_map(|piece| Some((piece, self.piece(piece).position(sector, id)?)));
        found.expect(SORTED_IN)
    }

    /// The last entry at that sector is in the piece into which the new one goes, as it is not above the sector.
    fn insert_in_pieces(&mut self, sector: Sector, id: RequestId) -> bool {
        let mut piece = self.piece_of(sector.offset(1));
        if self.piece(piece).entries.len() == PIECE {
            self.cut(piece);
            piece = self.piece_of(sector.offset(1));
        }
        let to = self.piece_mut(piece);
        let beside = to.insert(sector, id);
        to.low = to.entries[0].0;
        self.len_of_more += usize::from(piece > 0);
        beside
    }

    /// The upper half of a full piece becomes the next piece.
    fn cut(&mut self, piece: usize) {
        if self.pieces == self.more.len() {
            self.more.push(Piece::with_capacity(PIECE));
        }
        self.more[piece..=self.pieces].rotate_right(1);
        self.pieces += 1;
        let mut upper = std::mem::take(&mut self.more[piece].entries);
        upper.extend(self.piece_mut(piece).entries.drain(PIECE / 2..));
        self.len_of_more += if piece == 0 { upper.len() } else { 0 };
        self.more[piece].low = upper[0].0;
        self.more[piece].entries = upper;
    }

    fn remove_in_pieces(&mut self, sector: Sector, id: RequestId) {
        let (piece, index) = self.position(sector, id);
        let from = self.piece_mut(piece);
        from.entries.remove(index);
        let lowest = from.entries.first().map(|entry| entry.0);
        from.low = lowest.unwrap_or_default();
        self.len_of_more -= usize::from(piece > 0);
        if lowest.is_none() {
            if piece == 0 {
                std::mem::swap(&mut self.first, &mut self.more[0]);
                self.len_of_more -= self.first.entries.len();
            }
            self.more[piece.max(1) - 1..self.pieces].rotate_left(1);
            self.pieces -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    impl Sorted {
        /// Invariants of the pieces between any two calls.
        fn check_pieces(&self) {
            assert!(self.first.entries.is_empty() <= (self.pieces == 0), "{self:?}");
            let (used, vacant) = self.more.split_at(self.pieces);
            let lengths = used.iter().map(|piece| piece.entries.len());
            assert!(lengths.clone().all(|len| 0 < len && len <= PIECE), "{self:?}");
            assert_eq!(lengths.sum::<usize>(), self.len_of_more);
            assert!(used.iter().all(|piece| piece.low == piece.entries[0].0), "{self:?}");
            assert!(vacant.iter().all(|piece| piece.entries.is_empty()) && self.first.entries.len() <= PIECE);
        }
    }

    /// Steps among few sectors and among many, to get equal sectors and several pieces.
    fn steps() -> impl Strategy<Value = Vec<(u8, u64)>> {
        prop_oneof![
            prop::collection::vec((0u8..6, 0u64..40), 1..200),
            prop::collection::vec((0u8..6, 0u64..3), 500..1000),
            (0u8..6).prop_flat_map(|most| prop::collection::vec((0..=most, 0u64..2000), 500..1500)),
        ]
    }

    proptest! {
        /// Interleaved, because every search leaves a hint for the next; at the end all entries are
        /// removed, from any position on.
        #[test]
        fn lookups_agree_with_a_search_through_everything(steps in steps(), end in any::<prop::sample::Index>()) {
            let mut sorted = Sorted::default();
            let mut model: Vec<(u64, u32)> = Vec::new();
            for (turn, &(step, sector)) in steps.iter().enumerate() {
                let first = |keep: &dyn Fn(u64) -> bool| {
                    model.iter().find(|entry| keep(entry.0)).map(|entry| RequestId(entry.1))
                };
                match step {
                    0..=2 => {
                        let beside = sorted.insert(Sector(sector), RequestId(turn as u32));
                        prop_assert_eq!(beside, first(&|s| s == sector).is_some());
                        let behind_equals = model.partition_point(|entry| entry.0 <= sector);
                        model.insert(behind_equals, (sector, turn as u32));
                    }
                    3 if !model.is_empty() => {
                        let (sector, id) = model.remove(sector as usize % model.len());
                        let beside = sorted.beside(Sector(sector), RequestId(id));
                        prop_assert_eq!(sorted.remove(Sector(sector), RequestId(id)), beside);
                    }
                    4 => {
                        prop_assert_eq!(sorted.at_or_above(Sector(sector)), first(&|s| s >= sector));
                    }
                    5 => prop_assert_eq!(sorted.starting_at(Sector(sector)), first(&|s| s == sector)),
                    _ => {}
                }
                sorted.check_pieces();
                prop_assert_eq!(sorted.first(), model.first().map(|entry| RequestId(entry.1)));
            }
            prop_assert_eq!(sorted.len(), model.len());
            for (place, &(sector, id)) in model.iter().enumerate() {
                let at = |i: usize| model.get(i).map(|entry| RequestId(entry.1));
                let (below, above) = (place.checked_sub(1).and_then(at), at(place + 1));
                prop_assert_eq!(sorted.above(Sector(sector), RequestId(id)), above);
                prop_assert_eq!(sorted.below(Sector(sector), RequestId(id)), below);
                let around = above.or_else(|| at(0).filter(|_| model.len() > 1));
                prop_assert_eq!(sorted.beside(Sector(sector), RequestId(id)), (below, around));
            }
            while !model.is_empty() {
                let (sector, id) = model.remove(end.index(model.len()));
                sorted.remove(Sector(sector), RequestId(id));
                sorted.check_pieces();
            }
            prop_assert!(sorted.is_empty() && sorted.first().is_none());
        }
    }

    #[test]
    fn thousands_of_entries_are_in_short_pieces_whose_memory_is_reused() {
        let mut sorted = Sorted::default();
        for round in 0..4u64 {
            for number in 0..4096u64 {
                // All residues once, in a different order in each round.
                let sector = number * (2 * round + 1) % 4096;
                sorted.insert(Sector(sector), RequestId(sector as u32));
            }
            sorted.check_pieces();
            assert!(sorted.pieces >= 4096 / PIECE - 1);
            for sector in 0..4096u32 {
                sorted.remove(Sector(sector.into()), RequestId(sector));
            }
            assert_eq!((sorted.pieces, sorted.len()), (0, 0));
        }
        assert!(sorted.more.len() <= 2 * 4096 / PIECE, "{}", sorted.more.len());
    }
}
