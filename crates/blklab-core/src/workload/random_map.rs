//! The blocks of a file that a pass has touched: bitmaps of bitmaps, 64 to one.
//!
//! A set bit on a level means that all 64 bits below it are set, so that a search for a free block
//! skips full ranges. It reads two words per level; a terabyte of 4 KiB blocks has five levels in
//! 32.5 MiB. (fio's `axmap` uses the same idea.)

/// Bits in a word, as a power of two.
const WORD_SHIFT: u32 = 6;
const WORD_MASK: u64 = 63;

/// Blocks that are taken. Allocated once.
#[derive(Clone, Debug)]
pub struct RandomMap {
    /// All levels in one vector, the lowest first.
    words: Vec<u64>,
    /// The start of each level in `words`; the last entry is the total length.
    levels: Vec<usize>,
    blocks: u64,
}

impl RandomMap {
    /// A map of `blocks` free blocks.
    pub fn new(blocks: u64) -> RandomMap {
        let mut levels = vec![0];
        let (mut total, mut count) = (0, blocks);
        loop {
            count = count.div_ceil(64).max(1);
            total += count as usize;
            levels.push(total);
            if count == 1 {
                break;
            }
        }
        let mut map = RandomMap { words: vec![0; total], levels, blocks };
        map.take_all_beyond_the_end();
        map
    }

    /// Frees every block.
    pub fn clear(&mut self) {
        self.words.fill(0);
        self.take_all_beyond_the_end();
    }

    /// Blocks in the map, free or not.
    pub fn len(&self) -> u64 {
        self.blocks
    }

    /// True if the map has no blocks.
    pub fn is_empty(&self) -> bool {
        self.blocks == 0
    }

    /// Bits after the last block, and words without a block below them, count as taken, so that no
    /// search finds them.
    fn take_all_beyond_the_end(&mut self) {
        let mut count = self.blocks;
        for level in 0..self.levels.len() - 1 {
            let (first, end) = (self.levels[level], self.levels[level + 1]);
            let full = (count >> WORD_SHIFT) as usize;
            let rest = count & WORD_MASK;
            if first + full < end {
                self.words[first + full] |= !0 << rest;
            }
            count = (end - first) as u64;
        }
        if self.blocks == 0 {
            self.words.fill(!0);
        }
    }

    /// True if the block is taken. Blocks beyond the end are.
    #[inline]
    pub fn is_taken(&self, block: u64) -> bool {
        block >= self.blocks || self.words[(block >> WORD_SHIFT) as usize] >> (block & WORD_MASK) & 1 == 1
    }

    /// Takes a block.
    #[inline]
    pub fn take(&mut self, block: u64) {
        let word = &mut self.words[(block >> WORD_SHIFT) as usize];
        *word |= 1 << (block & WORD_MASK);
        if *word == !0 {
            self.fill_above(block >> WORD_SHIFT);
        }
    }

    /// A word of the lowest level has become full: sets its bits above.
    #[inline(never)]
    fn fill_above(&mut self, word: u64) {
        let mut index = word;
        for level in 1..self.levels.len() - 1 {
            let word = &mut self.words[self.levels[level] + (index >> WORD_SHIFT) as usize];
            *word |= 1 << (index & WORD_MASK);
            if *word != !0 {
                return;
            }
            index >>= WORD_SHIFT;
        }
    }

    /// Takes up to `count` blocks from `block` on, until one is already taken or does not exist;
    /// returns how many it took.
    pub fn take_run(&mut self, block: u64, count: u64) -> u64 {
        let mut taken = 0;
        while taken < count && !self.is_taken(block + taken) {
            self.take(block + taken);
            taken += 1;
        }
        taken
    }

    /// The first free block at or after `block`, else the first free block of all; `None` when all
    /// are taken.
    #[inline]
    pub fn next_free(&self, block: u64) -> Option<u64> {
        // Usually the block's own word has one: no branch to mispredict.
        if block < self.blocks {
            let free = !self.words[(block >> WORD_SHIFT) as usize] & (!0 << (block & WORD_MASK));
            if free != 0 {
                return Some((block & !WORD_MASK) | u64::from(free.trailing_zeros()));
            }
        }
        self.first_free_from(block).or_else(|| self.first_free_from(0))
    }

    #[inline(never)]
    fn first_free_from(&self, block: u64) -> Option<u64> {
        // Up, until a word has a free bit at or after ours.
        let top = self.levels.len() - 2;
        let (mut level, mut index) = (0, block);
        loop {
            let at = self.levels[level] + (index >> WORD_SHIFT) as usize;
            if at < self.levels[level + 1] {
                let free = !self.words[at] & (!0 << (index & WORD_MASK));
                if free != 0 {
                    index = (index & !WORD_MASK) | u64::from(free.trailing_zeros());
                    break;
                }
            }
            if level == top {
                return None;
            }
            index = (index >> WORD_SHIFT) + 1;
            level += 1;
        }
        // Then down, along the first free bits.
        while level > 0 {
            level -= 1;
            let free = !self.words[self.levels[level] + index as usize];
            index = index << WORD_SHIFT | u64::from(free.trailing_zeros());
        }
        Some(index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn a_search_agrees_with_one_in_a_plain_set(
            blocks in 1_u64..20_000,
            steps in prop::collection::vec((any::<u64>(), 1_u64..200), 1..300),
        ) {
            let mut map = RandomMap::new(blocks);
            let mut free: BTreeSet<u64> = (0..blocks).collect();
            for (at, count) in steps {
                let at = at % blocks;
                let expected = free.range(at..).next().or_else(|| free.iter().next()).copied();
                prop_assert_eq!(map.next_free(at), expected);
                if let Some(block) = expected {
                    let run = (0..count).take_while(|i| free.contains(&(block + i))).count() as u64;
                    prop_assert_eq!(map.take_run(block, count), run);
                    for i in 0..run {
                        free.remove(&(block + i));
                    }
                }
            }
            map.clear();
            prop_assert_eq!(map.next_free(blocks - 1), Some(blocks - 1));
        }

        #[test]
        fn every_block_is_found_once_and_then_none(blocks in 0_u64..9_000, step in any::<u64>()) {
            let mut map = RandomMap::new(blocks);
            let mut at = 0_u64;
            for _ in 0..blocks {
                at = at.wrapping_add(step) % blocks;
                let block = map.next_free(at);
                prop_assert!(block.is_some_and(|b| b < blocks && !map.is_taken(b)));
                map.take(block.unwrap_or(0));
            }
            prop_assert_eq!(map.next_free(0), None);
        }
    }

    #[test]
    fn a_terabyte_of_4k_blocks_fits_in_33_mib() {
        let map = RandomMap::new((1 << 40) / 4096);
        assert!(map.words.len() * 8 <= 33 << 20, "{} bytes", map.words.len() * 8);
    }
}
