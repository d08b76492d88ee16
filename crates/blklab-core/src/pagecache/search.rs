//! Searches in the pages of a file: for the next one with a tag, for pages without a gap; and marks those that a sync
//! has found.

use super::FileId;
use super::pages::{CHUNK_PAGES, Chunk, File, LINE_PAGES, Line, Pages, line_end, line_index, line_mask};

/// A kind of page to search for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tag {
    Dirty,
    /// Dirty, and marked for a sync ([`Pages::mark_to_write`]).
    ToWrite,
    Writeback,
}

impl Pages {
    /// The pages at or after `from` that have the tag, of the first line with any: the line's first page,
    /// and a bit for each of them.
    pub fn next_tagged_in_line(&self, file: FileId, from: u64, tag: Tag) -> Option<(u64, u64)> {
        self.tagged(file, from, tag).next()
    }

    /// The same of all lines from there on, in order.
    #[inline]
    pub fn tagged(&self, file: FileId, from: u64, tag: Tag) -> Tagged<'_> {
        let of = &self.files[file.index()];
        let (count, marked) = match tag {
            Tag::Dirty | Tag::ToWrite => (of.dirty, &of.dirty_chunks),
            Tag::Writeback => (of.writeback, &of.writeback_chunks),
        };
        let marked = if count == 0 { &[] } else { &marked[..] };
        let chunk = from / CHUNK_PAGES;
        let word = (chunk / 64) as usize;
        let left = marked.get(word).map_or(0, |word| word & u64::MAX << (chunk % 64));
        Tagged { pages: self, of, tag, from, marked, word, left, slot: 0, start: 0, lines: 0 }
    }

    /// The number of pages from `first` on, before `end`, with the bit that `bits` selects, without
    /// a gap.
    #[inline]
    pub fn run(&self, file: FileId, first: u64, end: u64, bits: impl Fn(&Line) -> u64) -> u64 {
        let mut page = first;
        while page < end {
            let Some(line) = self.line(file, page) else { break };
            let mask = line_mask(page, end);
            let missing = mask & !bits(line);
            if missing != 0 {
                page = page / LINE_PAGES * LINE_PAGES + u64::from(missing.trailing_zeros());
                break;
            }
            page = line_end(page).min(end);
        }
        page - first
    }

    /// The number of pages before `end`, down to `stop`, that are cached without a gap.
    pub fn run_before(&self, file: FileId, end: u64, stop: u64) -> u64 {
        let mut page = end;
        while page > stop {
            let Some(line) = self.line(file, page - 1) else { break };
            let low = (page - 1) / LINE_PAGES * LINE_PAGES;
            let mask = line_mask(low.max(stop), page);
            let missing = mask & !line.present();
            if missing != 0 {
                page = low + LINE_PAGES - u64::from(missing.leading_zeros());
                break;
            }
            page = low.max(stop);
        }
        end - page
    }

    /// The first locked page of `first..end`.
    #[inline]
    pub fn next_locked(&self, file: FileId, first: u64, end: u64) -> Option<u64> {
        if self.locked.is_empty() { None } else { self.next_of_locked(file, first, end) }
    }

    fn next_of_locked(&self, file: FileId, first: u64, end: u64) -> Option<u64> {
        let inside = |&&(of, page): &&(FileId, u64)| of == file && first <= page && page < end;
        self.locked.iter().filter(inside).map(|&(_, page)| page).min()
    }

    /// Marks the dirty pages of `first..end` for a sync (`tag_pages_for_writeback`).
    pub fn mark_to_write(&mut self, file: FileId, first: u64, end: u64) {
        let of = &self.files[file.index()];
        let (from, words) = (first / CHUNK_PAGES, of.dirty_chunks.len() as u64);
        for word in from / 64..words {
            let keep = if word == from / 64 { u64::MAX << (from % 64) } else { u64::MAX };
            for chunk in ones(of.dirty_chunks[word as usize] & keep) {
                let index = word * 64 + chunk;
                if index * CHUNK_PAGES >= end {
                    return;
                }
                if let Some(chunk) = self.chunks.get_mut(of.chunks[index as usize] as usize) {
                    chunk.mark_to_write(first, end);
                }
            }
        }
    }
}

impl Chunk {
    /// The same in this part of the file.
    fn mark_to_write(&mut self, first: u64, end: u64) {
        let start = u64::from(self.index) * CHUNK_PAGES;
        for index in ones(self.dirty) {
            let line = start + index * LINE_PAGES;
            if line >= end {
                break;
            }
            if line + LINE_PAGES > first {
                let inside = line_mask(line.max(first), end);
                self.to_write[index as usize] |= self.lines[index as usize].dirty & inside;
            }
        }
    }
}

/// The places of the bits that are set, in order.
fn ones(mut bits: u64) -> impl Iterator<Item = u64> {
    std::iter::from_fn(move || {
        let lowest = (bits != 0).then(|| u64::from(bits.trailing_zeros()));
        bits &= bits.wrapping_sub(1);
        lowest
    })
}

/// The lines of a file that have pages with a tag: the first page of each, and a bit for each of these pages.
pub(super) struct Tagged<'a> {
    pages: &'a Pages,
    of: &'a File,
    tag: Tag,
    from: u64,
    /// A bit per chunk of the file that has some.
    marked: &'a [u64],
    /// The current word of these, and what is left of it.
    word: usize,
    left: u64,
    /// The current chunk, its first page, and what is left of its lines.
    slot: usize,
    start: u64,
    lines: u64,
}

impl Tagged<'_> {
    /// The next chunk that has some; false after the last one.
    fn next_chunk(&mut self) -> bool {
        while self.left == 0 {
            self.word += 1;
            let Some(&next) = self.marked.get(self.word) else { return false };
            self.left = next;
        }
        let index = self.word as u64 * 64 + u64::from(self.left.trailing_zeros());
        self.left &= self.left - 1;
        self.slot = self.of.chunks[index as usize] as usize;
        self.start = index * CHUNK_PAGES;
        let chunk = &self.pages.chunks[self.slot];
        self.lines = match self.tag {
            Tag::Dirty | Tag::ToWrite => chunk.dirty,
            Tag::Writeback => chunk.writeback,
        };
        if self.from > self.start {
            self.lines &= u64::MAX << line_index(self.from);
        }
        true
    }
}

impl Iterator for Tagged<'_> {
    type Item = (u64, u64);

    #[inline]
    fn next(&mut self) -> Option<(u64, u64)> {
        loop {
            // Of the lines with a dirty page some may have none that is marked for a sync.
            while self.lines != 0 {
                let index = self.lines.trailing_zeros() as usize;
                self.lines &= self.lines - 1;
                let chunk = &self.pages.chunks[self.slot];
                let bits = match self.tag {
                    Tag::Dirty => chunk.lines[index].dirty,
                    Tag::ToWrite => chunk.to_write[index],
                    Tag::Writeback => chunk.lines[index].writeback,
                };
                let line = self.start + index as u64 * LINE_PAGES;
                let before = self.from.saturating_sub(line);
                let bits = bits >> before << before;
                if bits != 0 {
                    return Some((line, bits));
                }
            }
            if !self.next_chunk() {
                return None;
            }
        }
    }
}
