//! Pages of a file that are looked up together (`struct folio_batch`).
//!
//! The kernel searches for dirty pages, and for those under writeback, 31 at a time, and then writes or
//! waits for one after the other. So a page that becomes dirty among them while their writer sleeps is
//! not one of them.

use super::FileId;
use super::PageRange;
use super::pages::{Pages, Tag, page_bit};

/// Pages found at a time (`PAGEVEC_SIZE`).
const BATCH_PAGES: usize = 31;

/// The pages with a tag from some page of a file on, in order.
#[derive(Clone, Debug)]
pub(super) struct Batch {
    file: FileId,
    tag: Tag,
    /// Found, the next one last.
    found: Vec<u64>,
    /// Where the next search begins; `None` after the last page.
    from: Option<u64>,
    end: u64,
}

/// How many contiguous pages may be put under writeback at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Wherever they begin.
    pub anywhere: u32,
    /// At this page of the file.
    pub at: u64,
    /// So many.
    pub there: u32,
}

impl From<u32> for Room {
    fn from(anywhere: u32) -> Room {
        Room { anywhere, at: u64::MAX, there: anywhere }
    }
}

impl Room {
    /// At most that many.
    pub(super) fn min(self, most: u64) -> Room {
        let least = |pages: u32| most.min(u64::from(pages)) as u32;
        Room { anywhere: least(self.anywhere), there: least(self.there), ..self }
    }
}

/// What the next pages of a batch are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Contiguous dirty pages, which are to be written now.
    Write(PageRange),
    /// This page is under writeback: its writer locks it and waits.
    Wait(u64),
    /// Another process has locked this page.
    Locked(u64),
    /// None is left.
    End,
}

impl Batch {
    /// The pages of `first..end` with the tag; none is looked up yet.
    pub fn new(file: FileId, tag: Tag, first: u64, end: u64) -> Batch {
        Batch { file, tag, found: Vec::new(), from: Some(first), end }
    }

    /// The next page, which may have lost its tag meanwhile (`filemap_get_folios_tag`).
    pub fn peek(&mut self, pages: &Pages) -> Option<u64> {
        if self.found.is_empty()
            && let Some(mut from) = self.from.take()
        {
            // Dirty pages are often neighbours: each search yields all of a line.
            'search: while self.found.len() < BATCH_PAGES
                && let Some((line, mut bits)) = pages.next_tagged_in_line(self.file, from, self.tag)
            {
                while bits != 0 && self.found.len() < BATCH_PAGES {
                    let page = line + u64::from(bits.trailing_zeros());
                    if page >= self.end {
                        break 'search;
                    }
                    self.found.push(page);
                    from = page + 1;
                    bits &= bits - 1;
                }
            }
            // A search that finds fewer has come to the end.
            if self.found.len() == BATCH_PAGES {
                self.from = Some(from);
            }
            self.found.reverse();
        }
        self.found.last().copied()
    }

    /// Goes on to the page after the next one.
    pub fn pass(&mut self) {
        self.found.pop();
    }

    /// The next pages to write (`writeback_get_folio`). Pages under writeback are passed, unless the
    /// writer `waits` for them.
    pub fn next_to_write(&mut self, pages: &Pages, room: Room, waits: bool) -> Next {
        let mut range = PageRange { file: self.file, first: 0, pages: 0 };
        let mut most = room.anywhere;
        while let Some(page) = self.peek(pages) {
            let (line, bit) = (pages.state(self.file, page), page_bit(page));
            let begun = range.pages > 0;
            if pages.is_locked(self.file, page) {
                if begun {
                    break;
                }
                return Next::Locked(page);
            }
            if line.dirty & bit == 0 {
                self.pass();
                continue;
            }
            if line.writeback & bit != 0 {
                match (waits, begun) {
                    (true, true) => break,
                    (true, false) => return Next::Wait(page),
                    (false, _) => self.pass(),
                }
                continue;
            }
            if !begun {
                range.first = page;
                most = if page == room.at { room.there } else { room.anywhere };
            } else if page != range.end() || range.pages == most {
                break;
            }
            range.pages += 1;
            self.pass();
        }
        if range.pages > 0 { Next::Write(range) } else { Next::End }
    }
}
