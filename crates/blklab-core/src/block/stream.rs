//! Cuts a range of sectors into bios.

use super::{Admission, Block, Manner, Submitted};
use crate::disk::AnyDisk;
use crate::request::Bio;
use crate::units::Nanos;

/// One contiguous I/O of a process or of the page cache, cut into bios at [`BIO_SECTORS`] and at
/// the queue's `max_sectors`; or one bio of any length, cut at the latter.
#[derive(Clone, Copy, Debug)]
pub struct BioStream {
    /// The next bio to submit.
    next: Bio,
    /// Sectors after it that belong to the submitter's bio before the split.
    in_bio: u32,
    /// All sectors after it.
    rest: u32,
    /// The length of a bio of its submitter.
    bio_sectors: u32,
    manner: Manner,
    /// Its submitter has slept, waiting for a request.
    slept: bool,
}

/// A bio holds 256 pages (`BIO_MAX_VECS`).
pub const BIO_SECTORS: u32 = 256 * 4096 / 512;

impl BioStream {
    /// All of `whole`.
    #[inline]
    pub fn new(whole: Bio, max_sectors: u32) -> BioStream {
        BioStream::in_bios(whole, max_sectors, BIO_SECTORS)
    }

    /// One bio, which may be larger: of pages that are contiguous in memory.
    pub fn one(whole: Bio, max_sectors: u32) -> BioStream {
        BioStream::in_bios(whole, max_sectors, u32::MAX)
    }

    #[inline]
    fn in_bios(whole: Bio, max_sectors: u32, bio_sectors: u32) -> BioStream {
        let in_bio = whole.sectors.min(bio_sectors);
        let sectors = in_bio.min(max_sectors);
        BioStream {
            next: Bio { sectors, ..whole },
            in_bio: in_bio - sectors,
            rest: whole.sectors - sectors,
            bio_sectors,
            manner: Manner::PLUGGED,
            slept: false,
        }
    }

    /// The same, submitted in this manner.
    #[inline]
    pub fn of(mut self, manner: Manner) -> BioStream {
        self.manner = manner;
        self
    }

    /// All of `whole`, cut and submitted in the manner of this one.
    pub fn continued(&self, whole: Bio, max_sectors: u32) -> BioStream {
        BioStream::in_bios(whole, max_sectors, self.bio_sectors).of(self.manner)
    }

    /// The number of bios into which it is cut.
    #[inline]
    pub fn parts(whole_sectors: u32, max_sectors: u32) -> u32 {
        if whole_sectors <= max_sectors.min(BIO_SECTORS) {
            return 1;
        }
        let full = whole_sectors / BIO_SECTORS;
        let tail = whole_sectors % BIO_SECTORS;
        full * BIO_SECTORS.div_ceil(max_sectors) + tail.div_ceil(max_sectors)
    }

    /// Submits the rest; after `NoRequest` or `NoPlace`, call it again for what remains.
    #[inline]
    pub fn submit(&mut self, now: Nanos, block: &mut Block, disk: &mut AnyDisk) -> Submitted {
        loop {
            let submitted = block.submit(now, &self.next, self.manner, disk);
            match submitted {
                Submitted::NoRequest(most) => {
                    self.manner = Manner { again: Some(most), woken: false, ..self.manner };
                    return submitted;
                }
                Submitted::NoPlace => {
                    self.manner.place = Admission::Refused;
                    return submitted;
                }
                Submitted::Taken => {}
            }
            self.manner = Manner { again: None, woken: false, place: Admission::Unasked, ..self.manner };
            if self.rest == 0 {
                return Submitted::Taken;
            }
            if self.in_bio == 0 {
                self.in_bio = self.rest.min(self.bio_sectors);
            }
            self.next.sector = self.next.sector.offset(self.next.sectors);
            self.next.sectors = self.in_bio.min(block.limits().max_sectors);
            self.in_bio -= self.next.sectors;
            self.rest -= self.next.sectors;
        }
    }

    /// Its submitter sleeps until there may be a free request.
    pub fn sleep(&mut self) {
        self.slept = true;
    }

    /// Its submitter runs; true if it has slept.
    #[inline]
    pub fn awake(&mut self) -> bool {
        self.manner.woken |= self.slept;
        std::mem::take(&mut self.slept)
    }

    /// It was refused a request, and its submitter has not slept since.
    #[inline]
    pub fn was_just_refused(&self) -> bool {
        self.manner.again.is_some() && !self.slept
    }

    /// It waits for a place in the writeback throttle.
    #[inline]
    pub fn waits_for_place(&self) -> bool {
        self.manner.place == Admission::Refused
    }

    /// It has one.
    pub fn admit(&mut self) {
        self.manner.place = Admission::Given;
    }

    /// Sectors after the next bio; the number differs for each bio.
    #[inline]
    pub fn rest(&self) -> u32 {
        self.rest
    }

    /// The next bio.
    pub fn next(&self) -> &Bio {
        &self.next
    }
}
