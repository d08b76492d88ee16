//! Searches in the pages of a file: for the next one with a tag, for pages without a gap; and marks those that a sync
//! has found.

use super::FileId;
use super::pages::{CHUNK_PAGES, LINE_PAGES, Line, Pages, line_end, line_index, line_mask};

/// A kind of page to search for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tag {
    Dirty,
    /// Dirty, and marked for a sync ([`Pages::mark_to_write`]).
    ToWrite,
    Writeback,
}

impl Pages {
    /// The first page at or after `from` that has the tag.
    pub fn next_tagged(&self, file: FileId, from: u64, tag: Tag) -> Option<u64> {
        let (line, bits) = self.next_tagged_in_line(file, from, tag)?;
        Some(line + u64::from(bits.trailing_zeros()))
    }

    /// The pages at or after `from` that have the tag, of the first line with any: the line's first page,
    /// and a bit for each of them.
    pub fn next_tagged_in_line(&self, file: FileId, from: u64, tag: Tag) -> Option<(u64, u64)> {
        let of = &self.files[file.index()];
        let (count, tagged_chunks) = match tag {
            Tag::Dirty | Tag::ToWrite => (of.dirty, &of.dirty_chunks),
            Tag::Writeback => (of.writeback, &of.writeback_chunks),
        };
        if count == 0 {
            return None;
        }
        let in_chunk = |page: u64| {
            let chunk = self.chunks.get(self.slot(file, page) as usize)?;
            let (first, index) = (page % LINE_PAGES, line_index(page));
            let bits = |index: usize| match tag {
                Tag::Dirty => chunk.lines[index].dirty,
                Tag::ToWrite => chunk.to_write[index],
                Tag::Writeback => chunk.lines[index].writeback,
            };
            let summary = match tag {
                Tag::Dirty | Tag::ToWrite => chunk.dirty,
                Tag::Writeback => chunk.writeback,
            };
            let start = page / CHUNK_PAGES * CHUNK_PAGES;
            let mut here = bits(index) >> first << first;
            let mut index = index;
            let mut later = summary & (u64::MAX << index) & !(1 << index);
            // Of the lines with a dirty page some may have none that is marked for a sync.
            while here == 0 && later != 0 {
                index = later.trailing_zeros() as usize;
                later &= later - 1;
                here = bits(index);
            }
            (here != 0).then(|| (start + index as u64 * LINE_PAGES, here))
        };
        if let Some(found) = in_chunk(from) {
            return Some(found);
        }
        let next = (from / CHUNK_PAGES + 1) as usize;
        let mut keep = u64::MAX << (next % 64);
        for (word, bits) in tagged_chunks.iter().enumerate().skip(next / 64) {
            let mut bits = bits & keep;
            keep = u64::MAX;
            while bits != 0 {
                let chunk = word as u64 * 64 + u64::from(bits.trailing_zeros());
                bits &= bits - 1;
                if let Some(found) = in_chunk(chunk * CHUNK_PAGES) {
                    return Some(found);
                }
            }
        }
        None
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
        let inside = |&&(of, page): &&(FileId, u64)| of == file && first <= page && page < end;
        self.locked.iter().filter(inside).map(|&(_, page)| page).min()
    }

    /// Marks the dirty pages of `first..end` for a sync (`tag_pages_for_writeback`).
    pub fn mark_to_write(&mut self, file: FileId, first: u64, end: u64) {
        let mut next = self.next_tagged(file, first, Tag::Dirty);
        while let Some(page) = next.filter(|&page| page < end) {
            let slot = self.slot(file, page) as usize;
            let index = line_index(page);
            let chunk = &mut self.chunks[slot];
            chunk.to_write[index] |= chunk.lines[index].dirty & line_mask(page, end);
            next = self.next_tagged(file, line_end(page), Tag::Dirty);
        }
    }
}
