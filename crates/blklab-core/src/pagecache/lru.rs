//! The order in which reclaim comes to pages: two lists, and what is known of pages that were dropped.
//!
//! Follows Linux 7.3 without multi-generational LRU and without swap (`struct lruvec`, `mm/folio.c`, `mm/workingset.c`):
//! a page begins at the end of the *inactive* list, moves to the end of the *active* one when it is read a second
//! time, and is dropped from the begin of the inactive list. A page that comes back so soon that it would still be
//! there if the active pages had not been is active at once.
//!
//! A list has *parts*: pages of one line that came to it one after another. So a window of read-ahead takes a part
//! for 64 pages, and a random read one for its page.
//!
//! Left out: what limits the memory for the places of dropped pages (`workingset_shadow_shrinker`).

use std::collections::{HashMap, VecDeque};

use super::FileId;
use crate::containers::lists::{Links, List};

/// A list of pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Inactive,
    Active,
}

/// A line, by its place in the table of chunks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Place {
    pub slot: u32,
    pub line: u8,
}

/// The first part of a line, as the line knows it; zero: none.
pub(super) type Parts = u32;

/// Pages of one line that came to a list one after another.
#[derive(Clone, Copy, Debug)]
struct Part {
    place: Place,
    kind: Kind,
    /// They came to the list's begin, the last one foremost.
    backwards: bool,
    pages: u64,
    /// The next part of the line, and the one before this.
    next: Parts,
    before: Parts,
}

/// Both lists; the first page of each is the one that reclaim looks at next.
#[derive(Default)]
pub(super) struct Lru {
    /// The part with number n is at n - 1.
    parts: Vec<Part>,
    /// Used again in the order in which they became free, so that parts that follow each other in a list are neighbours
    /// in memory.
    free: VecDeque<u32>,
    links: Links<u32>,
    lists: [List<u32>; 2],
    counts: [u64; 2],
}

impl Lru {
    /// The number of pages in the list.
    #[inline]
    pub fn count(&self, kind: Kind) -> u64 {
        self.counts[kind as usize]
    }

    /// These pages, `count` of them, which are in no list, come to the end of one.
    #[inline]
    pub fn push(&mut self, kind: Kind, place: Place, of: &mut Parts, pages: u64, count: u64) {
        debug_assert_eq!(
            u64::from(pages.count_ones()),
            count,
            "counting bits takes longer than all else here"
        );
        self.counts[kind as usize] += count;
        if let Some(last) = self.lists[kind as usize].last() {
            let last = &mut self.parts[last as usize];
            // What they come after is before them in the line.
            if last.place == place && !last.backwards && last.pages < pages & pages.wrapping_neg() {
                last.pages |= pages;
                return;
            }
        }
        let part = self.new_part((place, kind, false), pages, of);
        self.links.push_back(&mut self.lists[kind as usize], part);
    }

    /// These pages, which are in no list, come to the begin of the inactive one, one after another.
    pub fn push_front(&mut self, place: Place, of: &mut Parts, pages: u64) {
        let list = Kind::Inactive as usize;
        self.counts[list] += u64::from(pages.count_ones());
        if let Some(first) = self.lists[list].first() {
            let first = &mut self.parts[first as usize];
            if first.place == place && first.backwards && first.pages < pages & pages.wrapping_neg() {
                first.pages |= pages;
                return;
            }
        }
        let kind = Kind::Inactive;
        let part = self.new_part((place, kind, true), pages, of);
        self.links.push_front(&mut self.lists[list], part);
    }

    /// A part that becomes the first one of its line.
    #[inline]
    fn new_part(&mut self, (place, kind, backwards): (Place, Kind, bool), pages: u64, of: &mut Parts) -> u32 {
        let part = Part { place, kind, backwards, pages, next: *of, before: 0 };
        let at = match self.free.pop_front() {
            Some(at) => {
                self.parts[at as usize] = part;
                at
            }
            None => {
                self.parts.push(part);
                self.parts.len() as u32 - 1
            }
        };
        if *of != 0 {
            self.parts[*of as usize - 1].before = at + 1;
        }
        *of = at + 1;
        at
    }

    /// These pages of a line are in no list any more.
    #[inline]
    pub fn take(&mut self, of: &mut Parts, mut pages: u64) {
        let mut number = *of;
        // A page is in one part: most are in one of the latest.
        while number != 0 && pages != 0 {
            let Part { pages: here, next, .. } = self.parts[number as usize - 1];
            if here & pages != 0 {
                self.take_from(number - 1, of, here & pages);
                pages &= !here;
            }
            number = next;
        }
    }

    /// The first pages of the list, of one line and at most that many.
    pub fn first(&self, kind: Kind, most: u64) -> Option<(Place, u64)> {
        let part = &self.parts[self.lists[kind as usize].first()? as usize];
        let pages = match part.backwards {
            false => super::first_bits(part.pages, most),
            true => super::first_bits(part.pages.reverse_bits(), most).reverse_bits(),
        };
        Some((part.place, pages))
    }

    /// The lines of the first pages of the list, of at least that many if it has them; a line may be there twice.
    pub fn first_lines(&self, kind: Kind, mut pages: u64) -> impl Iterator<Item = Place> {
        let mut next = self.lists[kind as usize].first();
        std::iter::from_fn(move || {
            let at = next.filter(|_| pages > 0)?;
            next = self.links.after(at);
            let part = &self.parts[at as usize];
            pages = pages.saturating_sub(u64::from(part.pages.count_ones()));
            Some(part.place)
        })
    }

    /// These pages of those that are [first](Self::first) are in no list any more.
    #[inline]
    pub fn take_first(&mut self, kind: Kind, of: &mut Parts, pages: u64) {
        if let Some(part) = self.lists[kind as usize].first() {
            self.take_from(part, of, pages);
        }
    }

    #[inline]
    fn take_from(&mut self, at: u32, of: &mut Parts, pages: u64) {
        let part = &mut self.parts[at as usize];
        part.pages &= !pages;
        let Part { kind, next, before, pages: rest, .. } = *part;
        self.counts[kind as usize] -= u64::from(pages.count_ones());
        if rest != 0 {
            return;
        }
        match before {
            0 => *of = next,
            before => self.parts[before as usize - 1].next = next,
        }
        if next != 0 {
            self.parts[next as usize - 1].before = before;
        }
        self.links.remove(&mut self.lists[kind as usize], at);
        self.free.push_back(at);
    }
}

/// Pages of a line that were dropped together.
#[derive(Debug)]
struct Dropped {
    line: (FileId, u64),
    pages: u64,
    /// Those of them that have not come back.
    left: u64,
    /// The age when the first of them was dropped.
    age: u64,
    /// The one of the same line before this, by its number.
    before: Option<u64>,
}

/// What was dropped of a line.
#[derive(Debug, Default)]
struct DroppedOfLine {
    /// The number of the latest.
    latest: Option<u64>,
    /// All pages that have not come back.
    left: u64,
}

/// The pages that were dropped, by how much has happened since (`struct lruvec`'s `nonresident_age`).
#[derive(Debug, Default)]
pub(super) struct Ages {
    /// How many pages there can be.
    memory: u64,
    /// How many pages were dropped, or became active.
    age: u64,
    /// In the order in which they were dropped.
    dropped: VecDeque<Dropped>,
    /// The number of the first one.
    first: u64,
    lines: HashMap<(FileId, u64), DroppedOfLine>,
}

impl Ages {
    /// Nothing has been dropped yet, from a memory with that many pages.
    pub fn new(memory: u64) -> Ages {
        Ages { memory, ..Ages::default() }
    }

    /// That many pages have become active.
    #[inline]
    pub fn activated(&mut self, pages: u64) {
        self.age += pages;
    }

    /// These pages of a line are dropped for want of memory, while so many are active, or were when that was last
    /// counted (`workingset_eviction`).
    pub fn dropped(&mut self, line: (FileId, u64), pages: u64, active: u64) {
        let age = self.age;
        self.age += u64::from(pages.count_ones());
        if active == 0 {
            // All that are active when they come back will have become so after this, and each makes them as much older.
            if !self.dropped.is_empty() {
                self.forget_all();
            }
            return;
        }
        let number = self.first + self.dropped.len() as u64;
        let of_line = self.lines.entry(line).or_default();
        let before = of_line.latest.replace(number);
        of_line.left |= pages;
        self.dropped.push_back(Dropped { line, pages, left: pages, age, before });
        // No page comes back in time after so many others.
        while let Some(oldest) = self.dropped.front()
            && self.age - oldest.age > self.memory + u64::from(u64::BITS)
        {
            if let Some(of_line) = self.lines.get_mut(&oldest.line) {
                of_line.left &= !oldest.left;
                if of_line.latest == Some(self.first) {
                    self.lines.remove(&oldest.line);
                }
            }
            self.dropped.pop_front();
            self.first += 1;
        }
    }

    /// What was dropped of a line is not known any more.
    pub fn forget(&mut self, line: (FileId, u64)) {
        let Some(of_line) = self.lines.get_mut(&line) else { return };
        of_line.left = 0;
        let mut number = of_line.latest;
        while let Some(dropped) = number.and_then(|number| number.checked_sub(self.first))
            && let Some(dropped) = self.dropped.get_mut(dropped as usize)
        {
            dropped.left = 0;
            number = dropped.before;
        }
    }

    fn forget_all(&mut self) {
        self.first += self.dropped.len() as u64;
        self.dropped.clear();
        self.lines.clear();
    }

    /// No page was dropped.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.dropped.is_empty()
    }

    /// These pages of a line are cached again, and so many were active when that was last counted. Returns those of them
    /// that become active at once, as far as they are `read` and not written (`workingset_refault`).
    pub fn comes_back(&mut self, line: (FileId, u64), pages: u64, active: u64, read: bool) -> u64 {
        if self.dropped.is_empty() {
            return 0;
        }
        let Some(of_line) = self.lines.get_mut(&line) else { return 0 };
        let mut missing = of_line.left & pages;
        if missing == 0 {
            return 0;
        }
        of_line.left &= !missing;
        let mut number = of_line.latest;
        let (mut back, mut ages) = (0, [0; u64::BITS as usize]);
        // Each of them was dropped once since it was cached last.
        while missing != 0
            && let Some(dropped) = number.and_then(|number| number.checked_sub(self.first))
            && let Some(dropped) = self.dropped.get_mut(dropped as usize)
        {
            let mut of_it = dropped.left & missing;
            dropped.left &= !of_it;
            missing &= !of_it;
            back |= of_it;
            while of_it != 0 {
                let page = of_it.trailing_zeros();
                of_it &= of_it - 1;
                let earlier = dropped.pages & ((1 << page) - 1);
                ages[page as usize] = dropped.age + u64::from(earlier.count_ones());
            }
            number = dropped.before;
        }
        let mut soon = 0;
        while read && back != 0 {
            let page = back.trailing_zeros();
            back &= back - 1;
            if self.age - ages[page as usize] <= active {
                soon |= 1 << page;
                self.age += 1;
            }
        }
        soon
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The lists as rows of single pages.
    #[derive(Default)]
    struct Model([VecDeque<(Place, u32)>; 2]);

    impl Model {
        fn take(&mut self, place: Place, pages: u64) {
            for list in &mut self.0 {
                list.retain(|&(of, page)| of != place || pages >> page & 1 == 0);
            }
        }

        fn has(&self, place: Place) -> u64 {
            let here = self.0.iter().flatten().filter(|(of, _)| *of == place);
            here.fold(0, |bits, (_, page)| bits | 1 << page)
        }
    }

    fn bits(pages: u64) -> impl Iterator<Item = u32> {
        (0..u64::BITS).filter(move |page| pages >> page & 1 != 0)
    }

    proptest! {
        #[test]
        fn pages_leave_the_lists_in_the_order_of_a_row_of_pages(
            steps in prop::collection::vec((0u8..5, 0u32..3, 0u8..2, any::<u64>(), 0u32..64, 1u64..80), 1..200)
        ) {
            let (mut lru, mut model) = (Lru::default(), Model::default());
            let mut parts = [[0; 2]; 3];
            for (step, slot, line, pages, width, most) in steps {
                let place = Place { slot, line };
                let kind = if most % 2 == 0 { Kind::Inactive } else { Kind::Active };
                let absent = (pages >> width << width) & !model.has(place);
                let of = &mut parts[slot as usize][line as usize];
                match step {
                    0 | 1 if absent != 0 => {
                        lru.push(kind, place, of, absent, u64::from(absent.count_ones()));
                        model.0[kind as usize].extend(bits(absent).map(|page| (place, page)));
                    }
                    2 if absent != 0 => {
                        lru.push_front(place, of, absent);
                        for page in bits(absent) {
                            model.0[0].push_front((place, page));
                        }
                    }
                    3 => {
                        lru.take(of, pages);
                        model.take(place, pages);
                    }
                    _ => if let Some((place, first)) = lru.first(kind, most) {
                        prop_assert!(u64::from(first.count_ones()) <= most);
                        let expected: Vec<_> =
                            model.0[kind as usize].iter().take(first.count_ones() as usize).copied().collect();
                        prop_assert!(expected.iter().all(|&(of, page)| of == place && first >> page & 1 != 0));
                        let of = &mut parts[place.slot as usize][place.line as usize];
                        if pages % 2 == 0 { lru.take(of, first) } else { lru.take_first(kind, of, first) }
                        model.take(place, first);
                    }
                }
                for kind in [Kind::Inactive, Kind::Active] {
                    prop_assert_eq!(lru.count(kind), model.0[kind as usize].len() as u64);
                    let first = lru.first(kind, 1).map(|(place, page)| (place, page.trailing_zeros()));
                    prop_assert_eq!(first, model.0[kind as usize].front().copied());
                }
            }
        }

        /// The kernel stores the age in the place of each dropped page.
        #[test]
        fn a_page_comes_back_soon_if_fewer_pages_than_are_active_have_gone_since(
            steps in prop::collection::vec((any::<bool>(), 0u64..4, any::<u64>(), 0u64..600), 1..100)
        ) {
            let mut ages = Ages::new(600);
            let (mut age, mut stored) = (0, HashMap::new());
            for (back, line, pages, active) in steps {
                let (id, cached) = ((FileId(1), line), pages);
                if back {
                    let expected = bits(cached).filter(|&page| {
                        let soon = stored.remove(&(line, page)).is_some_and(|then| age - then <= active);
                        age += u64::from(soon);
                        soon
                    });
                    let expected = expected.fold(0, |bits, page| bits | 1 << page);
                    prop_assert_eq!(ages.comes_back(id, cached, active, true), expected);
                } else {
                    let gone = bits(u64::MAX).filter(|&page| stored.contains_key(&(line, page)));
                    let absent = cached & !gone.fold(0, |bits, page| bits | 1 << page);
                    if absent != 0 {
                        ages.dropped(id, absent, active.max(1));
                        for page in bits(absent) {
                            stored.insert((line, page), age);
                            age += 1;
                        }
                    }
                }
                prop_assert_eq!(ages.age, age);
            }
        }
    }

    #[test]
    fn pages_that_were_dropped_long_ago_are_forgotten() {
        let mut ages = Ages::new(6400);
        for line in 0..1000 {
            ages.dropped((FileId(0), line % 700), u64::MAX, 1);
        }
        assert!(ages.dropped.len() <= 102 && ages.lines.len() <= 102, "{}", ages.dropped.len());
        assert_eq!(ages.comes_back((FileId(0), 299), 1, 6400, true), 1);
        assert_eq!(ages.comes_back((FileId(0), 5), 1, 6400, true), 0);
    }

    #[test]
    fn no_page_comes_back_soon_that_was_dropped_while_none_was_active() {
        let mut ages = Ages::new(6400);
        ages.dropped((FileId(0), 1), 1, 1);
        ages.dropped((FileId(0), 2), 1, 0);
        // Two pages have become active since, and the two that were dropped make it older as well.
        ages.activated(2);
        assert_eq!(ages.comes_back((FileId(0), 1), 1, 2, true), 0);
        assert_eq!(ages.comes_back((FileId(0), 2), 1, 2, true), 0);
        assert!(ages.dropped.is_empty());
    }
}
