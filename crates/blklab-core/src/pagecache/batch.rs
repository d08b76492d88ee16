//! Pages of a file that are looked up together (`struct folio_batch`).
//!
//! The kernel searches for dirty pages, and for those under writeback, 31 at a time, and then writes or
//! waits for one after the other. So a page that becomes dirty among them while their writer sleeps is
//! not one of them.

use super::FileId;
use super::PageRange;
use super::counted_bits;
use super::pages::{LINE_PAGES, Pages, lines};
use super::search::Tag;

/// Pages found at a time (`PAGEVEC_SIZE`).
const BATCH_PAGES: u32 = 31;

/// Pages of one line: its first page, and a bit for each of them.
type InLine = (u64, u64);

/// The pages with a tag from some page of a file on, in order. Those of the latest search are held until the next one
/// (`folio_batch_release`), also by a writer that sleeps.
#[derive(Debug)]
pub(super) struct Batch {
    file: FileId,
    tag: Tag,
    /// Those pages that are not passed yet, in their lines.
    found: Vec<InLine>,
    /// Their number in [`Held`].
    held: Option<u32>,
    /// All pages of so many lines are passed.
    passed: usize,
    /// Where the next search begins; `None` after the last page.
    from: Option<u64>,
    end: u64,
}

/// The pages that batches and sleeping readers hold.
#[derive(Debug, Default)]
pub(super) struct Held {
    found: Vec<(FileId, Vec<InLine>)>,
    /// Numbers that are not given out.
    free: Vec<u32>,
}

impl Held {
    /// The pages of the file that are held, in order; a page of several batches is there as often.
    pub fn of(&self, file: FileId) -> Vec<u64> {
        let of_file = self.found.iter().filter(|(of, _)| *of == file);
        let bits = |&(line, bits): &InLine| {
            (0..LINE_PAGES).filter(move |bit| bits >> bit & 1 != 0).map(move |bit| line + bit)
        };
        let mut pages: Vec<_> = of_file.flat_map(|(_, lines)| lines).flat_map(bits).collect();
        pages.sort_unstable();
        pages
    }

    /// These pages are held until the number is given back.
    fn hold(&mut self, file: FileId, pages: &[InLine]) -> u32 {
        let number = self.take(file);
        self.found[number as usize].1.extend_from_slice(pages);
        number
    }

    /// The pages `first..end` are held until the number is given back.
    pub fn hold_range(&mut self, file: FileId, first: u64, end: u64) -> u32 {
        let number = self.take(file);
        let in_lines = lines(first, end).map(|(page, mask)| (page / LINE_PAGES * LINE_PAGES, mask));
        self.found[number as usize].1.extend(in_lines);
        number
    }

    pub fn give_back(&mut self, number: u32) {
        self.found[number as usize].1.clear();
        self.free.push(number);
    }

    fn take(&mut self, file: FileId) -> u32 {
        match self.free.pop() {
            Some(number) => {
                self.found[number as usize].0 = file;
                number
            }
            None => {
                self.found.push((file, Vec::new()));
                self.found.len() as u32 - 1
            }
        }
    }
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
        Batch { file, tag, found: Vec::new(), held: None, passed: 0, from: Some(first), end }
    }

    /// The pages of the next line that are not passed; they may have lost their tag meanwhile
    /// (`filemap_get_folios_tag`). After the last one it holds none.
    #[inline]
    fn front(&mut self, pages: &Pages, held: &mut Held) -> Option<InLine> {
        loop {
            while let Some(&(line, bits)) = self.found.get(self.passed) {
                if bits != 0 {
                    return Some((line, bits));
                }
                self.passed += 1;
            }
            if !self.look_up(pages, held) {
                return None;
            }
        }
    }

    /// Looks up the next pages, and holds them; false if there is none.
    #[inline(never)]
    fn look_up(&mut self, pages: &Pages, held: &mut Held) -> bool {
        self.release(held);
        if let Some(from) = self.from.take() {
            self.from = self.search(from, pages);
        }
        if !self.found.is_empty() {
            self.held = Some(held.hold(self.file, &self.found));
        }
        !self.found.is_empty()
    }

    /// Finds the next pages; where the next search begins.
    fn search(&mut self, from: u64, pages: &Pages) -> Option<u64> {
        let mut room = BATCH_PAGES;
        // Dirty pages are often neighbours: each step yields all of a line.
        for (line, bits) in pages.tagged(self.file, from, self.tag) {
            let inside = match self.end.saturating_sub(line) {
                LINE_PAGES.. => bits,
                pages => bits & ((1 << pages) - 1),
            };
            let (bits, count) = counted_bits(inside, room);
            if bits == 0 {
                break;
            }
            self.found.push((line, bits));
            room -= count;
            if room == 0 {
                return Some(line + LINE_PAGES - u64::from(bits.leading_zeros()));
            }
        }
        // One that finds fewer has come to the end.
        None
    }

    /// Goes on to the page after the next one.
    fn pass(&mut self) {
        let (_, bits) = &mut self.found[self.passed];
        *bits &= *bits - 1;
    }

    /// Holds no pages from now on; to be called when no more are asked for.
    pub fn release(&mut self, held: &mut Held) {
        if let Some(number) = self.held.take() {
            held.give_back(number);
        }
        self.found.clear();
        self.passed = 0;
    }

    /// The next page that is still under writeback; those before it are passed.
    pub fn next_written(&mut self, pages: &Pages, held: &mut Held) -> Option<u64> {
        while let Some((line, bits)) = self.front(pages, held) {
            let written = bits & pages.line(self.file, line).map_or(0, |line| line.writeback);
            let first = written & written.wrapping_neg();
            // All if there is none.
            self.found[self.passed].1 &= first.wrapping_neg();
            if written != 0 {
                return Some(line + u64::from(written.trailing_zeros()));
            }
        }
        None
    }

    /// The next pages to write (`writeback_get_folio`). Pages under writeback are passed, unless the
    /// writer `waits` for them.
    #[inline]
    pub fn next_to_write(&mut self, pages: &Pages, held: &mut Held, room: Room, waits: bool) -> Next {
        while let Some((line, bits)) = self.front(pages, held) {
            let (page, bit) = (line + u64::from(bits.trailing_zeros()), bits & bits.wrapping_neg());
            let locked = pages.locked_in_line(self.file, line);
            if locked & bit != 0 {
                return Next::Locked(page);
            }
            let (dirty, written) = dirty_and_written(pages, self.file, line);
            if dirty & !written & bit != 0 {
                let most = if page == room.at { room.there } else { room.anywhere };
                return Next::Write(self.take_neighbours(
                    pages,
                    page,
                    dirty & !written & !locked,
                    most.max(1),
                ));
            }
            if dirty & bit != 0 && waits {
                return Next::Wait(page);
            }
            self.pass();
        }
        Next::End
    }

    /// That page and those behind it, at most so many, of which those in the page's line are `to_write` now. Where one
    /// behind it is not to be written now, it is looked at in its turn, when those before it are submitted.
    #[inline]
    fn take_neighbours(&mut self, pages: &Pages, first: u64, mut to_write: u64, most: u32) -> PageRange {
        let mut range = PageRange { file: self.file, first, pages: 0 };
        let mut from = first % LINE_PAGES;
        while let Some((_, bits)) = self.found.get_mut(self.passed) {
            let count = ((*bits & to_write) >> from).trailing_ones().min(most - range.pages);
            range.pages += count;
            // They are the lowest that are left.
            *bits &= u64::MAX.checked_shl(from as u32 + count).unwrap_or(0);
            if *bits != 0 {
                break;
            }
            self.passed += 1;
            let Some(&(line, _)) = self.found.get(self.passed).filter(|(line, _)| *line == range.end())
            else {
                break;
            };
            let (dirty, written) = dirty_and_written(pages, self.file, line);
            (from, to_write) = (0, dirty & !written & !pages.locked_in_line(self.file, line));
        }
        range
    }
}

/// The pages of a line that are dirty, and those that are under writeback.
#[inline]
fn dirty_and_written(pages: &Pages, file: FileId, line: u64) -> (u64, u64) {
    pages.line(file, line).map_or((0, 0), |line| (line.dirty, line.writeback))
}
