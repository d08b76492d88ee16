//! An I/O of a file on its way to the devices.
//!
//! Left out: of an I/O on several devices the schedulers' locks but the first, and the CPU time that
//! a volume takes to map it.

use super::{DeviceId, Devices, Layout, Span};
use crate::block::{BioStream, Manner};
use crate::request::Bio;

/// The rest of an I/O of a file: bios for one device, and after them what lies on others.
///
/// As with the kernel's volumes, an I/O is cut where it passes from one extent to the next, and each
/// part is cut into bios by its device's limits.
#[derive(Clone, Copy, Debug)]
pub struct FileStream {
    /// The device that has the next sectors.
    pub(super) device: DeviceId,
    /// The rest of the extent there.
    pub(super) bios: BioStream,
    /// The sectors in later extents.
    rest: Span,
}

impl FileStream {
    /// All of `span`; `bio` has everything except its place, length and hardware queue.
    pub fn new(span: Span, bio: Bio, manner: Manner, layout: &Layout, devices: &Devices) -> FileStream {
        let mut rest = span;
        let (device, bio) = next_bio(&mut rest, bio, layout, devices).expect("an I/O has sectors");
        let max_sectors = devices[device].block.limits().max_sectors;
        FileStream { device, bios: BioStream::new(bio, max_sectors).of(manner), rest }
    }

    /// The same as one bio in each extent: of pages that are contiguous in memory.
    pub fn of_pages(span: Span, bio: Bio, manner: Manner, layout: &Layout, devices: &Devices) -> FileStream {
        let mut rest = span;
        let (device, bio) = next_bio(&mut rest, bio, layout, devices).expect("an I/O has sectors");
        let max_sectors = devices[device].block.limits().max_sectors;
        FileStream { device, bios: BioStream::one(bio, max_sectors).of(manner), rest }
    }

    /// What remains of an I/O in one extent on `device`.
    pub fn on(device: DeviceId, bios: BioStream) -> FileStream {
        FileStream { device, bios, rest: Span::EMPTY }
    }

    /// The number of bios of `span`.
    pub fn bios_of(mut span: Span, layout: &Layout, devices: &Devices) -> u32 {
        let mut bios = 0;
        while let Some((place, sectors)) = layout.next_of(&mut span) {
            bios += devices[place.device].bios_of(sectors);
        }
        bios
    }

    /// The number of bios of `span` of pages.
    pub fn bios_of_pages(mut span: Span, layout: &Layout, devices: &Devices) -> u32 {
        std::iter::from_fn(|| layout.next_of(&mut span))
            .map(|(place, sectors)| devices[place.device].parts_of_bio(sectors))
            .sum()
    }

    /// Goes on to the next extent; false if all sectors were submitted.
    #[inline]
    pub(super) fn goes_on(&mut self, layout: &Layout, devices: &Devices) -> bool {
        if self.rest.sectors == 0 {
            return false;
        }
        let Some((device, bio)) = next_bio(&mut self.rest, *self.bios.next(), layout, devices) else {
            return false;
        };
        self.device = device;
        self.bios = self.bios.continued(bio, devices[device].block.limits().max_sectors);
        true
    }
}

/// `bio` at the next extent of `span`, which loses those sectors.
fn next_bio(span: &mut Span, bio: Bio, layout: &Layout, devices: &Devices) -> Option<(DeviceId, Bio)> {
    let (place, sectors) = layout.next_of(span)?;
    let hw_queue = devices[place.device].hw_queue(bio.cpu);
    Some((place.device, Bio { sector: place.sector, sectors, hw_queue, ..bio }))
}
