//! Buffered writes, and when their writers must pause.

use super::pages::{LINE_PAGES, Pages, line_end, line_mask, page_bit};
use super::throttle::Dirty;
use super::{Dirtier, FileId, PAGE_BYTES, PageCache, PageRange, Step, Wait, below, up_to};
use crate::units::Nanos;

impl PageCache {
    /// A buffered write of `bytes` bytes at `offset` at the time `now` (`generic_perform_write`).
    /// Pages become dirty; a write beyond the end extends the file. A partly written page that is
    /// not cached must be read first: appended to `out` as in [`read`](Self::read). When the step
    /// says to wait, call again afterwards with the rest.
    #[inline]
    pub fn write(
        &mut self,
        now: Nanos,
        file: FileId,
        offset: u64,
        bytes: u64,
        dirtier: &mut Dirtier,
        out: &mut Vec<PageRange>,
    ) -> Step {
        self.advance(now);
        let end = offset + bytes;
        let locked = self.pages.next_locked(file, offset / PAGE_BYTES, end.div_ceil(PAGE_BYTES));
        match locked {
            Some(page) => self.write_before(page, now, file, offset, dirtier, out),
            None => self.write_unlocked(now, file, offset, end, dirtier, out),
        }
    }

    /// The same up to a page that is locked.
    #[cold]
    fn write_before(
        &mut self,
        page: u64,
        now: Nanos,
        file: FileId,
        offset: u64,
        dirtier: &mut Dirtier,
        out: &mut Vec<PageRange>,
    ) -> Step {
        let end = page * PAGE_BYTES;
        let step = match end > offset {
            true => self.write_unlocked(now, file, offset, end, dirtier, out),
            false => Step::default(),
        };
        Step { wait: step.wait.or(Some(Wait::Lock(page))), ..step }
    }

    /// The same of pages without a lock.
    #[inline(always)]
    fn write_unlocked(
        &mut self,
        now: Nanos,
        file: FileId,
        offset: u64,
        end: u64,
        dirtier: &mut Dirtier,
        out: &mut Vec<PageRange>,
    ) -> Step {
        let at = self.backing_of(file);
        let room = self.room(at, dirtier);
        if room == 0 || end > self.pages.size_bytes(file) {
            return self.write_pages(now, file, offset, end, dirtier, out);
        }
        let (mut page, behind) = (offset / PAGE_BYTES, end.div_ceil(PAGE_BYTES));
        let whole = (offset | end).is_multiple_of(PAGE_BYTES);
        // One page, or whole pages of one line: the case of most writes.
        if behind - page == 1 || (whole && behind <= line_end(page)) {
            let (mask, memory) = (line_mask(page, behind), self.memory_pages);
            let adds = |pages: &Pages| whole && pages.have_room(LINE_PAGES, memory);
            let Some(newly) = self.pages.write(file, page, mask, behind - page, room, adds) else {
                return self.write_pages(now, file, offset, end, dirtier, out);
            };
            if newly > 0 {
                self.dirtied(at, now, file, dirtier, newly);
            }
            return Step { bytes: end - offset, ..Step::default() };
        }
        // Rewriting dirty pages changes no counts.
        while page < behind {
            let mask = line_mask(page, behind);
            match self.pages.line(file, page) {
                Some(line) if mask & !line.dirty == 0 => page = line_end(page).min(behind),
                _ => return self.write_pages(now, file, offset, end, dirtier, out),
            }
        }
        Step { bytes: end - offset, ..Step::default() }
    }

    /// The process checks the limits before it dirties the next page of the file.
    #[inline]
    pub fn checks_limits(&self, file: FileId, dirtier: &Dirtier) -> bool {
        self.room(self.backing_of(file), dirtier) == 0
    }

    fn write_pages(
        &mut self,
        now: Nanos,
        file: FileId,
        offset: u64,
        end: u64,
        dirtier: &mut Dirtier,
        out: &mut Vec<PageRange>,
    ) -> Step {
        let at = self.backing_of(file);
        let old_size = self.pages.size_bytes(file);
        let mut pos = offset;
        let stop = |pos: u64, wait| Step { bytes: pos - offset, uncopied: 0, wait: Some(wait) };
        while pos < end {
            if self.room(at, dirtier) == 0 {
                if pos > offset {
                    return stop(pos, Wait::Work);
                }
                if let Some(pause) = self.balance(at, now, dirtier) {
                    return stop(pos, Wait::Pause(pause));
                }
            }
            let page = pos / PAGE_BYTES;
            let next = (page + 1) * PAGE_BYTES;
            let whole = pos == page * PAGE_BYTES && next <= end;
            // Whole pages are handled as many at a time as the line has; a partly written page
            // alone.
            let mut mask = if whole { line_mask(page, end / PAGE_BYTES) } else { page_bit(page) };
            let mut line = self.pages.state(file, page);
            if mask & !line.present() != 0 {
                if !whole && page * PAGE_BYTES < old_size {
                    let wait = if self.read_one(file, page, out) { Wait::Page(page) } else { Wait::Memory };
                    return stop(pos, wait);
                }
                if !self.has_room(LINE_PAGES) {
                    self.make_room(u64::from((mask & !line.present()).count_ones()));
                    // This may have dropped pages that were cached here.
                    line = self.pages.state(file, page);
                    mask = up_to(mask, mask & !line.present(), self.free());
                    if mask == 0 {
                        return stop(pos, Wait::Memory);
                    }
                }
            }
            mask &= below(line.reading & mask);
            if mask == 0 {
                return stop(pos, Wait::Page(page));
            }
            // The writer checks the limits again after this many pages that were clean.
            mask = up_to(mask, mask & !line.dirty, self.room(at, dirtier).max(1));
            // They lie side by side.
            let count = u64::from((mask >> (page % LINE_PAGES)).trailing_ones());
            pos = if whole { pos + count * PAGE_BYTES } else { next.min(end) };
            self.pages.grow_file(file, pos);
            let newly = self.pages.dirty(file, page, mask, count);
            if newly > 0 {
                self.dirtied(at, now, file, dirtier, newly);
            }
        }
        Step { bytes: pos - offset, ..Step::default() }
    }

    /// Clean pages of the device that this process may dirty before it must check the limits.
    #[inline]
    fn room(&self, at: usize, dirtier: &Dirtier) -> u64 {
        self.backings[at].throttle.room(dirtier).min(self.check_pages.saturating_sub(self.unchecked))
    }

    /// The process has dirtied clean pages of the file.
    #[inline]
    fn dirtied(&mut self, at: usize, now: Nanos, file: FileId, dirtier: &mut Dirtier, pages: u64) {
        let backing = &mut self.backings[at];
        backing.throttle.dirtied(dirtier, pages, now);
        self.unchecked += pages;
        backing.flusher.file_dirtied(file, now);
    }

    /// The process checks the limits: its pause.
    fn balance(&mut self, at: usize, now: Nanos, dirtier: &mut Dirtier) -> Option<Nanos> {
        self.unchecked = 0;
        let (all, waiting) = (self.pages.dirty + self.pages.writeback, self.pages.dirty);
        let backing = &mut self.backings[at];
        let here = backing.throttle.dirty();
        let share = self.completions.share(&mut backing.completed, self.limit, all, now);
        let verdict = backing.throttle.balance(now, Dirty { all, waiting, here, share }, dirtier);
        if verdict.wake_flusher {
            backing.flusher.wake(now);
        }
        verdict.pause
    }
}
