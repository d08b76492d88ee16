//! Tags: the requests of a hardware queue that are in use, or the tokens of a scheduler.
//!
//! Follows `lib/sbitmap.c` of Linux 7.3. A process with a *shallow* depth limit does not count the
//! requests in use, but may take only the lowest tags of each word of the bitmap; whether these are
//! free depends on the tags that others have. A limit of all tags is shallow too: then the search begins
//! within a word and comes back to its lower tags. Freed tags of a word are used again when no other tag
//! of the word is left, so that tags are used in rounds. The search begins in the word of the tag
//! that was freed last (`sbitmap_update_cpu_hint`).
//!
//! libata wants them in strict rounds (`BLK_MQ_F_TAG_RR`, for a scheduler's tags as well): the search
//! begins after the tag that was taken last. Without a limit it does not go back to the lower tags of
//! the word in which it begins, so that it may miss a free one; the next search begins at 0.
//!
//! Each CPU has a search of its own. It starts in the word of a random tag in Linux, of a quarter of the tags here and in a
//! guest.

/// No tag.
pub(crate) const NO_TAG: u32 = u32::MAX;
/// No shallow limit.
pub(crate) const UNLIMITED: u32 = u32::MAX;

#[derive(Clone, Copy, Debug, Default)]
struct Word {
    /// In use, or free again but still in `freed`.
    taken: u64,
    freed: u64,
    /// Those that may be taken.
    whole: u64,
    /// Those that may be taken under the last shallow limit.
    share: u64,
}

/// The tags of one hardware queue, or the tokens of one kind.
#[derive(Clone, Debug)]
pub(crate) struct Tags {
    /// Empty where all tags are alike: they are only counted.
    words: Vec<Word>,
    /// A word has `1 << shift` tags.
    shift: u32,
    /// Words with tags that may be taken.
    count: u32,
    depth: u32,
    /// Tags that are free, or will be when there may be more.
    free: u32,
    /// Where each CPU's search for the next tag starts (`alloc_hint`).
    hints: Box<[u32]>,
    order: Order,
    /// The last shallow limit, of all tags.
    shares_of: u32,
    shared_words: u32,
    /// With this limit no tag was found, and none was freed since.
    refused: Option<u32>,
}

/// Where the search for a tag begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// In the word of the tag that was freed last.
    Freed,
    /// After the tag that was taken last (`BLK_MQ_F_TAG_RR`).
    Rounds,
}

/// The lowest `count` bits, at most all.
fn lowest(count: u32) -> u64 {
    if count == 0 { 0 } else { u64::MAX >> (u64::BITS - count) }
}

impl Word {
    /// A tag of those that are `allowed`, searched from `from` upwards, and from 0 if it `wraps`.
    #[inline]
    fn take(&mut self, allowed: u64, from: u32, wraps: bool) -> Option<u32> {
        let behind = u64::MAX << from;
        let allowed = if wraps { allowed } else { allowed & behind };
        let mut open = allowed & !self.taken;
        if open == 0 {
            self.taken &= !std::mem::take(&mut self.freed);
            open = allowed & !self.taken;
            if open == 0 {
                return None;
            }
        }
        let ahead = open & behind;
        let bit = if ahead == 0 { open } else { ahead }.trailing_zeros();
        self.taken |= 1 << bit;
        Some(bit)
    }
}

impl Tags {
    /// `depth` tags for that many CPUs, all free.
    pub fn new(depth: u32, order: Order, cpus: u16) -> Tags {
        let mut shift = 6;
        // Small depths are spread over at least four words (`sbitmap_calculate_shift`).
        while depth >= 4 && 4 << shift > depth {
            shift -= 1;
        }
        let count = depth.div_ceil(1 << shift);
        let words = vec![Word::default(); count as usize];
        let hints = vec![depth / 4; usize::from(cpus)].into();
        let (shares_of, shared_words, refused) = (0, 0, None);
        let mut tags =
            Tags { words, shift, count, depth, free: depth, hints, order, shares_of, shared_words, refused };
        tags.resize(depth);
        tags
    }

    /// `depth` free tags without shallow limits: all tags are equal.
    pub fn alike(depth: u32) -> Tags {
        Tags { words: Vec::new(), ..Tags::new(depth, Order::Freed, 1) }
    }

    /// A tag for a bio of that CPU, under a limit of `most` tags (`sbitmap_queue_get_shallow`); `u32::MAX`: without one
    /// (`__sbitmap_queue_get`).
    #[inline(always)]
    pub fn take(&mut self, most: u32, cpu: u16) -> Option<u32> {
        if self.words.is_empty() {
            self.free = self.free.checked_sub(1)?;
            return Some(0);
        }
        if self.free == 0 || self.refused == Some(most) {
            self.hints[usize::from(cpu)] = 0;
            return None;
        }
        self.take_numbered(most, cpu)
    }

    #[inline]
    fn take_numbered(&mut self, most: u32, cpu: u16) -> Option<u32> {
        let hint = self.hint(cpu);
        let shallow = most != UNLIMITED;
        if shallow && most != self.shares_of {
            self.share_out(most);
        }
        // The words after these hold no tags under the limit.
        let count = if shallow { self.shared_words } else { self.count };
        let mut next = hint >> self.shift;
        let goes_on = shallow || self.order == Order::Rounds;
        let mut from = if goes_on { hint & ((1 << self.shift) - 1) } else { 0 };
        if next >= count {
            (next, from) = (0, 0);
        }
        let misses_some = !shallow && from > 0;
        for _ in 0..count {
            let index = next;
            next = if next + 1 == count { 0 } else { next + 1 };
            let word = &mut self.words[index as usize];
            let allowed = if shallow { word.share } else { word.whole };
            if allowed != 0
                && let Some(bit) = word.take(allowed, from, shallow)
            {
                self.free -= 1;
                let tag = (index << self.shift) + bit;
                if tag == hint || self.order == Order::Rounds {
                    self.hints[usize::from(cpu)] = if tag + 2 >= self.depth { 0 } else { tag + 1 };
                }
                return Some(tag);
            }
            from = 0;
        }
        self.hints[usize::from(cpu)] = 0;
        self.refused = (!misses_some).then_some(most);
        None
    }

    /// The tag of a request of that CPU is free again.
    #[inline]
    pub fn put(&mut self, tag: u32, cpu: u16) {
        self.free += 1;
        self.refused = None;
        if let Some(word) = self.words.get_mut((tag >> self.shift) as usize) {
            if self.order == Order::Freed && tag < self.depth {
                self.hints[usize::from(cpu)] = tag;
            }
            word.freed |= 1 << (tag & ((1 << self.shift) - 1));
        }
    }

    /// The tag at which the CPU's search begins (`update_alloc_hint_before_get`).
    #[inline]
    fn hint(&mut self, cpu: u16) -> u32 {
        let hint = &mut self.hints[usize::from(cpu)];
        if *hint >= self.depth {
            *hint = self.depth / 4;
        }
        *hint
    }

    /// From now on only the lowest `depth` tags may be taken, at most as many as there were at first. Higher ones that
    /// are in use stay so, and count for nothing (`sbitmap_resize`).
    pub fn resize(&mut self, depth: u32) {
        for word in &mut self.words[..self.count as usize] {
            word.taken &= !std::mem::take(&mut word.freed);
        }
        self.depth = depth;
        self.count = depth.div_ceil(1 << self.shift);
        for index in 0..self.count {
            self.words[index as usize].whole = lowest(self.size_of_word(index));
        }
        (self.refused, self.shares_of) = (None, 0);
    }

    /// The number of tags that may be in use.
    #[inline]
    pub fn depth(&self) -> u32 {
        self.depth
    }

    #[inline]
    fn size_of_word(&self, index: u32) -> u32 {
        (self.depth - (index << self.shift)).min(1 << self.shift)
    }

    /// Computes the share of each word's tags under a limit of `most` of all
    /// (`__map_depth_with_shallow`).
    fn share_out(&mut self, most: u32) {
        let all = u64::from(self.depth);
        for index in 0..self.count {
            let size = self.size_of_word(index);
            let product = u64::from(size) * u64::from(most.min(self.depth));
            let (share, rest) = (product / all, product % all);
            let share = share + u64::from(rest >= u64::from((index + 1) * size));
            self.words[index as usize].share = lowest(share as u32);
        }
        let last = self.words[..self.count as usize].iter().rposition(|word| word.share != 0);
        self.shared_words = last.map_or(0, |last| last as u32 + 1);
        self.shares_of = most;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn tags_go_round_in_their_word_and_a_freed_one_is_not_the_next() {
        let mut tags = Tags::new(64, Order::Freed, 1);
        let mut seen = Vec::new();
        for _ in 0..40 {
            let tag = tags.take(UNLIMITED, 0).expect("one is in use at a time");
            tags.put(tag, 0);
            seen.push(tag);
        }
        let round: Vec<u32> = (16..32).collect();
        assert_eq!((&seen[..16], &seen[16..32]), (&round[..], &round[..]));
    }

    #[test]
    fn the_search_begins_in_the_word_of_the_tag_that_was_freed_last_or_after_a_failure_in_the_first() {
        let mut tags = Tags::new(64, Order::Freed, 1);
        let held = [tags.take(UNLIMITED, 0), tags.take(1, 0), tags.take(1, 0)];
        assert_eq!(held, [Some(16), Some(0), None]);
        assert_eq!(tags.take(UNLIMITED, 0), Some(1), "after a failure");
        tags.put(16, 0);
        assert_eq!(tags.take(UNLIMITED, 0), Some(17));
        tags.put(0, 0);
        assert_eq!(tags.take(UNLIMITED, 0), Some(2));
    }

    #[test]
    fn each_cpu_has_a_search_of_its_own() {
        let mut tags = Tags::new(64, Order::Freed, 2);
        assert_eq!([0, 1, 0].map(|cpu| tags.take(UNLIMITED, cpu)), [16, 17, 18].map(Some));
        let low = tags.take(1, 1);
        assert_eq!(low, Some(0), "it is in the first word");
        tags.put(0, 1);
        assert_eq!([0, 1].map(|cpu| tags.take(UNLIMITED, cpu)), [19, 1].map(Some));
    }

    #[test]
    fn a_limit_of_one_allows_only_tag_0() {
        let mut tags = Tags::new(64, Order::Freed, 1);
        assert_eq!((tags.take(1, 0), tags.take(1, 0)), (Some(0), None));
        assert!(tags.take(UNLIMITED, 0).is_some_and(|tag| tag > 0));
        tags.put(0, 0);
        assert_eq!(tags.take(1, 0), Some(0));
    }

    /// As a guest's kernel had it, with the tags in messages of its own.
    #[test]
    fn strict_rounds_go_on_after_the_tag_that_was_taken_last() {
        let mut tags = Tags::new(64, Order::Rounds, 1);
        let held: Vec<_> = std::iter::from_fn(|| tags.take(UNLIMITED, 0)).take(9).collect();
        assert_eq!(held, (16..25).collect::<Vec<_>>());
        assert_eq!(tags.take(32, 0), Some(32), "a limit of 32 allows half of each word");
        tags.put(22, 0);
        assert_eq!(tags.take(UNLIMITED, 0), Some(33));
        assert!((34..48).all(|tag| tags.take(UNLIMITED, 0) == Some(tag)));
        assert_eq!(tags.take(1, 0), Some(0));
        assert_eq!(tags.take(32, 0), Some(1));
    }

    #[test]
    fn strict_rounds_miss_a_free_tag_behind_the_last_one_and_begin_again_at_0() {
        let mut tags = Tags::new(8, Order::Rounds, 1);
        let held: Vec<_> = std::iter::from_fn(|| tags.take(UNLIMITED, 0)).collect();
        assert_eq!(held, [2, 3, 4, 5, 6, 0, 1, 7], "in words of two");
        tags.put(2, 0);
        assert_eq!(tags.take(UNLIMITED, 0), Some(2), "the search began at 0");
        tags.put(2, 0);
        assert_eq!(tags.take(UNLIMITED, 0), None, "it began at 3, in the same word");
        assert_eq!(tags.take(UNLIMITED, 0), Some(2));
    }

    #[test]
    fn under_a_limit_of_all_tags_the_search_comes_back_to_the_lower_tags_of_its_word() {
        let after_2 = |limit| {
            let mut tags = Tags::new(8, Order::Rounds, 1);
            let held: Vec<_> = std::iter::from_fn(|| tags.take(UNLIMITED, 0)).collect();
            assert_eq!(held.len(), 8);
            tags.put(2, 0);
            assert_eq!(tags.take(UNLIMITED, 0), Some(2));
            tags.put(2, 0);
            tags.take(limit, 0)
        };
        assert_eq!([UNLIMITED, 8, 9].map(after_2), [None, Some(2), Some(2)]);
    }

    #[test]
    fn alike_ones_are_as_many() {
        let mut tags = Tags::alike(2);
        let held: Vec<_> = std::iter::from_fn(|| tags.take(UNLIMITED, 0)).collect();
        assert_eq!(held.len(), 2);
        tags.put(held[0], 0);
        assert!(tags.take(UNLIMITED, 0).is_some() && tags.take(UNLIMITED, 0).is_none());
    }

    #[test]
    fn of_fewer_tags_the_low_ones_are_free_while_high_ones_are_in_use() {
        let mut tags = Tags::new(64, Order::Freed, 1);
        let held: Vec<_> = std::iter::from_fn(|| tags.take(UNLIMITED, 0)).collect();
        assert_eq!(held.len(), 64);
        tags.resize(2);
        assert_eq!(tags.take(UNLIMITED, 0), None);
        tags.put(40, 0);
        assert_eq!(tags.take(UNLIMITED, 0), None, "a high one does not count");
        tags.put(1, 0);
        assert_eq!(tags.take(UNLIMITED, 0), Some(1));
        tags.resize(64);
        assert_eq!((tags.take(UNLIMITED, 0), tags.take(UNLIMITED, 0)), (Some(40), None));
    }

    #[test]
    fn a_search_that_would_begin_at_a_tag_that_is_gone_begins_at_a_quarter() {
        let mut tags = Tags::new(64, Order::Freed, 1);
        assert_eq!(tags.take(UNLIMITED, 0), Some(16));
        tags.resize(8);
        assert_eq!(tags.take(UNLIMITED, 0), Some(0), "its word begins with 0");
        tags.put(16, 0);
        assert_eq!(tags.hints[0], 2, "one that is gone is not where the next search begins");
    }

    proptest! {
        #[test]
        fn no_tag_is_taken_twice_and_no_limit_is_exceeded(
            in_rounds: bool, depth in 1u32..600, most in 1u32..600, steps in prop::collection::vec(any::<(bool, bool, prop::sample::Index)>(), 1..400)
        ) {
            let mut tags = Tags::new(depth, if in_rounds { Order::Rounds } else { Order::Freed }, 1);
            let mut held: Vec<(u32, bool)> = Vec::new();
            for (take, limited, which) in steps {
                if take {
                    let limit = if limited { most } else { UNLIMITED };
                    // Strict rounds may miss a free tag once.
                    let got = tags.take(limit, 0).or_else(|| tags.take(limit, 0));
                    if let Some(tag) = got {
                        prop_assert!(tag < depth && held.iter().all(|other| other.0 != tag));
                        held.push((tag, limited));
                    } else if !limited {
                        prop_assert_eq!(held.len() as u32, depth);
                    } else {
                        prop_assert!(held.len() as u32 >= most.min(depth));
                    }
                    let count = held.iter().filter(|tag| tag.1).count();
                    prop_assert!(count as u32 <= most.max(1), "{} of {}", count, most);
                } else if !held.is_empty() {
                    let tag = held.swap_remove(which.index(held.len())).0;
                    tags.put(tag, 0);
                }
            }
        }
    }
}
