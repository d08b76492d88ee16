//! The layout of files: the devices of each file and its sectors there.
//!
//! A file is a list of [`Extent`]s, most often one. Its extents may lie on several devices, as those
//! of a file on a volume of several disks do: one after the other (a concatenation, `dm-linear`) or
//! in turn (stripes, `dm-stripe`, RAID 0). All conversions from a byte of a file to a sector use a
//! [`Layout`].

use std::ops::Range;

use super::DeviceId;
use crate::pagecache::{FileId, PAGE_BYTES, PageRange};
use crate::units::{Bytes, SECTOR_BYTES, Sector};
use crate::workload::plan::{FileKind, FilePlan};

/// Files begin at multiples of this many sectors (1 MiB), as partitions do.
const ALIGN_SECTORS: u64 = 2048;

/// A part of a file that lies in one piece on one device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// The device.
    pub device: DeviceId,
    /// The first sector there.
    pub start: Sector,
    /// Its length in sectors.
    pub sectors: u64,
}

impl Extent {
    /// Its sectors on the device.
    pub fn range(&self) -> Range<u64> {
        self.start.0..self.start.0 + self.sectors
    }
}

/// A device to which pages of a file are written back, with the read-ahead for the file
/// (`struct backing_dev_info`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backing {
    /// A device.
    Device(DeviceId),
    /// A volume, by its number in [`Layout::volumes`].
    Volume(u16),
}

/// A volume: a block device of the kernel that maps its sectors to other devices. It has a flusher
/// and a read-ahead of its own, and no queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Volume {
    /// Its `read_ahead_kb`: 128 KiB, or twice a row of stripes if that is more.
    pub read_ahead: Bytes,
}

/// The place of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacedFile {
    /// Its first extent.
    first: Extent,
    /// The others, each with the sector of the file at which it begins.
    others: Vec<(u64, Extent)>,
    /// Its size.
    pub size: Bytes,
    /// The file is the device itself or a partition, not a file in a file system.
    pub is_device: bool,
    /// What its pages are written back to.
    pub backing: Backing,
}

impl PlacedFile {
    /// A file in one piece.
    pub fn new(device: DeviceId, start: Sector, size: Bytes) -> PlacedFile {
        let first = Extent { device, start, sectors: size.sectors() };
        PlacedFile { first, others: Vec::new(), size, is_device: false, backing: Backing::Device(device) }
    }

    /// A file on volume number `volume`, with these extents; the last may be longer than needed.
    ///
    /// # Panics
    /// If the extents are shorter than the file.
    pub fn on_volume(volume: u16, extents: impl IntoIterator<Item = Extent>, size: Bytes) -> PlacedFile {
        PlacedFile::in_pieces(Backing::Volume(volume), extents, size)
    }

    /// A file in a file system on `device`. It fills these ranges of sectors one after the other; the
    /// last range may be longer than needed.
    ///
    /// # Panics
    /// If the ranges are shorter than the file.
    pub fn in_ranges(device: DeviceId, ranges: &[Range<u64>], size: Bytes) -> PlacedFile {
        let extent = |range: &Range<u64>| Extent {
            device,
            start: Sector(range.start),
            sectors: range.end - range.start,
        };
        PlacedFile::in_pieces(Backing::Device(device), ranges.iter().map(extent), size)
    }

    fn in_pieces(backing: Backing, extents: impl IntoIterator<Item = Extent>, size: Bytes) -> PlacedFile {
        let mut begin = 0;
        let mut placed: Vec<_> = extents
            .into_iter()
            .map(|extent| {
                let begins = begin;
                begin += extent.sectors;
                (begins, extent)
            })
            .collect();
        assert!(begin >= size.sectors() && begin > 0, "{begin} sectors are too few for {size:?}");
        let (_, first) = placed.remove(0);
        PlacedFile { first, others: placed, size, is_device: false, backing }
    }

    /// Its first sector.
    pub fn start(&self) -> Sector {
        self.first.start
    }

    /// All extents in order.
    pub fn extents(&self) -> impl Iterator<Item = Extent> {
        std::iter::once(self.first).chain(self.others.iter().map(|&(_, extent)| extent))
    }

    /// The device has a part of it.
    pub fn is_on(&self, device: DeviceId) -> bool {
        self.extents().any(|extent| extent.device == device)
    }

    /// The extent with that sector of the file, and the sectors of the extent before it. Past the
    /// end it is the last one.
    #[inline]
    fn at(&self, sector: u64) -> (&Extent, u64) {
        if self.others.is_empty() || sector < self.first.sectors {
            return (&self.first, sector);
        }
        self.at_later(sector)
    }

    #[cold]
    fn at_later(&self, sector: u64) -> (&Extent, u64) {
        let after = self.others.partition_point(|&(begin, _)| begin <= sector);
        let (begin, extent) = &self.others[after - 1];
        (extent, sector - begin)
    }
}

/// The place of a byte.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Location {
    /// The device.
    pub device: DeviceId,
    /// The sector on it.
    pub sector: Sector,
}

/// Contiguous sectors of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The file.
    pub file: FileId,
    /// Its sector at which they begin.
    pub first: u64,
    /// Their number.
    pub sectors: u32,
}

impl Span {
    /// No sectors.
    pub const EMPTY: Span = Span { file: FileId(0), first: 0, sectors: 0 };

    /// The sectors of `bytes` bytes at `offset`.
    #[inline]
    pub fn of_bytes(file: FileId, offset: u64, bytes: u32) -> Span {
        Span { file, first: Bytes(offset).to_sector().0, sectors: Bytes(bytes.into()).sectors() as u32 }
    }
}

/// The places of all files, by their numbers in the plan and the page cache.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    files: Vec<PlacedFile>,
    volumes: Vec<Volume>,
}

impl Layout {
    /// Files at the caller's places.
    pub fn new(files: Vec<PlacedFile>) -> Layout {
        Layout { files, volumes: Vec::new() }
    }

    /// The same with these volumes, which files name by their numbers.
    pub fn with_volumes(self, volumes: Vec<Volume>) -> Layout {
        Layout { volumes, ..self }
    }

    /// Regular files one after the other from the start of `device`, whose size is `capacity`, each
    /// in one piece and in the order of the job file; files that a file system has placed are at their
    /// places. A file that represents the device begins at sector 0.
    pub fn in_a_row(files: &[FilePlan], device: DeviceId, capacity: Sector) -> Layout {
        let mut next = 0_u64;
        let placed = |file: &FilePlan| {
            if !file.extents.is_empty() {
                return PlacedFile::in_ranges(device, &file.extents, file.size);
            }
            let is_device = file.kind == FileKind::Device;
            let sectors = file.size.sectors();
            // The plan has checked that the files fit. Alignment may leave too little room for the
            // last one, which then begins earlier.
            let start = if is_device { 0 } else { next.min(capacity.0.saturating_sub(sectors)) };
            if !is_device {
                next += sectors.next_multiple_of(ALIGN_SECTORS);
            }
            PlacedFile { is_device, ..PlacedFile::new(device, Sector(start), file.size) }
        };
        Layout::new(files.iter().map(placed).collect())
    }

    /// The same layout with each file as a partition: a device to the process that opens it.
    pub fn as_partitions(mut self) -> Layout {
        self.files.iter_mut().for_each(|file| file.is_device = true);
        self
    }

    /// All files in order.
    pub fn files(&self) -> &[PlacedFile] {
        &self.files
    }

    /// All volumes in order.
    pub fn volumes(&self) -> &[Volume] {
        &self.volumes
    }

    /// One file.
    #[inline]
    pub fn file(&self, file: FileId) -> &PlacedFile {
        &self.files[file.index()]
    }

    /// The place of the byte at `offset` of `file`.
    #[inline]
    pub fn locate(&self, file: FileId, offset: u64) -> Location {
        let (extent, before) = self.file(file).at(Bytes(offset).to_sector().0);
        Location { device: extent.device, sector: Sector(extent.start.0 + before) }
    }

    /// The device of the byte at `offset` of `file`.
    #[inline]
    pub fn device_at(&self, file: FileId, offset: u64) -> DeviceId {
        let placed = self.file(file);
        if placed.others.is_empty() { placed.first.device } else { self.locate(file, offset).device }
    }

    /// The place of the first sectors of `span`, and the number of them that lie in one extent.
    #[inline]
    pub fn head_of(&self, span: Span) -> (Location, u32) {
        let file = self.file(span.file);
        let (extent, before) = file.at(span.first);
        let place = Location { device: extent.device, sector: Sector(extent.start.0 + before) };
        if file.others.is_empty() {
            return (place, span.sectors);
        }
        // The last extent goes on past its end.
        let left = extent.sectors.saturating_sub(before).max(1);
        (place, left.min(span.sectors.into()) as u32)
    }

    /// The same; `span` loses these sectors. `None` if it has none.
    #[inline]
    pub fn next_of(&self, span: &mut Span) -> Option<(Location, u32)> {
        if span.sectors == 0 {
            return None;
        }
        let (place, sectors) = self.head_of(*span);
        span.first += u64::from(sectors);
        span.sectors -= sectors;
        Some((place, sectors))
    }

    /// How many of the first pages of `range` lie in one extent; at least one. A volume takes all of
    /// them as one bio, and splits it for its devices.
    pub fn pages_together(&self, range: PageRange) -> u32 {
        const PAGE_SECTORS: u32 = (PAGE_BYTES / SECTOR_BYTES) as u32;
        match self.file(range.file).backing {
            Backing::Volume(_) => range.pages,
            Backing::Device(_) => {
                let (_, sectors) = self.head_of(self.span_of(range));
                sectors.div_ceil(PAGE_SECTORS).clamp(1, range.pages)
            }
        }
    }

    /// The sectors of pages; the last page of a file may be shorter.
    #[inline]
    pub fn span_of(&self, range: PageRange) -> Span {
        const PAGE_SECTORS: u64 = PAGE_BYTES / SECTOR_BYTES;
        let first = range.first * PAGE_SECTORS;
        let left = self.file(range.file).size.sectors() - first;
        let sectors = u64::from(range.pages) * PAGE_SECTORS;
        Span { file: range.file, first, sectors: sectors.min(left) as u32 }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn file(kind: FileKind, bytes: u64) -> FilePlan {
        FilePlan { path: String::new(), kind, size: Bytes(bytes), extents: Vec::new() }
    }

    proptest! {
        #[test]
        fn files_in_a_row_are_aligned_and_apart_and_within_the_device(
            sizes in prop::collection::vec(1..10_000_000_u64, 1..20)
        ) {
            let files: Vec<_> = sizes.iter().map(|&bytes| file(FileKind::Regular, bytes)).collect();
            let capacity = Sector(sizes.iter().map(|bytes| bytes.div_ceil(1 << 20) * ALIGN_SECTORS).sum());
            let layout = Layout::in_a_row(&files, DeviceId(3), capacity);
            let mut end = 0;
            for placed in layout.files() {
                let extents: Vec<_> = placed.extents().collect();
                let [extent] = extents[..] else { panic!("one piece") };
                prop_assert_eq!((extent.start.0 % ALIGN_SECTORS, extent.device), (0, DeviceId(3)));
                prop_assert!(extent.start.0 >= end);
                end = extent.range().end;
                prop_assert!(end <= capacity.0);
            }
        }

        #[test]
        fn pages_lie_where_their_bytes_lie_and_end_with_the_file(
            bytes in 1..1_000_000_u64, first in 0..200_u64, pages in 1..300_u32
        ) {
            let first = first.min((bytes - 1) / PAGE_BYTES);
            let files = [file(FileKind::Regular, 1 << 20), file(FileKind::Regular, bytes)];
            let layout = Layout::in_a_row(&files, DeviceId(0), Sector(1 << 20));
            let range = PageRange { file: FileId(1), first, pages };
            let (place, sectors) = layout.head_of(layout.span_of(range));
            prop_assert_eq!(place, layout.locate(FileId(1), first * PAGE_BYTES));
            let end = place.sector.0 + u64::from(sectors);
            let file_end = layout.file(FileId(1)).start().0 + Bytes(bytes).sectors();
            prop_assert_eq!(end, file_end.min(place.sector.0 + range.bytes() / SECTOR_BYTES));
        }

        #[test]
        fn a_span_of_a_spread_file_lies_where_each_of_its_sectors_lies(
            extents in prop::collection::vec((0..3_u16, 0..1000_u64, 1..50_u64), 1..20),
            first in 0..500_u64, sectors in 1..500_u32,
        ) {
            let extents: Vec<_> = extents
                .into_iter()
                .map(|(device, start, sectors)| Extent { device: DeviceId(device), start: Sector(start), sectors })
                .collect();
            let size: u64 = extents.iter().map(|extent| extent.sectors).sum();
            let (first, sectors) = (first % size, sectors.min((size - first % size) as u32));
            // Naive: the place of each sector of the file.
            let places: Vec<_> = extents
                .iter()
                .flat_map(|extent| {
                    (0..extent.sectors).map(|n| Location { device: extent.device, sector: Sector(extent.start.0 + n) })
                })
                .collect();
            let layout = Layout::new(vec![PlacedFile::on_volume(0, extents, Sector(size).to_bytes())]);
            let mut span = Span { file: FileId(0), first, sectors };
            let mut found = Vec::new();
            while let Some((place, sectors)) = layout.next_of(&mut span) {
                found.extend((0..sectors).map(|n| Location { sector: place.sector.offset(n), ..place }));
            }
            prop_assert_eq!(&found[..], &places[first as usize..first as usize + sectors as usize]);
            prop_assert_eq!(layout.locate(FileId(0), first * SECTOR_BYTES), places[first as usize]);
        }
    }

    #[test]
    fn files_of_a_file_system_lie_in_its_extents_and_the_others_in_a_row() {
        let mut files = [file(FileKind::Regular, 1 << 20), file(FileKind::Regular, 1 << 20)];
        files[0].extents = vec![5000..6000, 8000..9048];
        let layout = Layout::in_a_row(&files, DeviceId(2), Sector(1 << 21));
        let at = |offset| layout.locate(FileId(0), offset).sector.0;
        assert_eq!([at(0), at(999 * 512), at(1000 * 512), at((1 << 20) - 1)], [5000, 5999, 8000, 9047]);
        let mut all = Span { file: FileId(0), first: 0, sectors: 2048 };
        let lengths: Vec<_> =
            std::iter::from_fn(|| layout.next_of(&mut all)).map(|(_, count)| count).collect();
        assert_eq!(lengths, [1000, 1048]);
        let together = |first, pages| layout.pages_together(PageRange { file: FileId(0), first, pages });
        assert_eq!(
            [together(0, 3), together(120, 100), together(125, 100), together(255, 1)],
            [3, 5, 100, 1]
        );
        assert_eq!(layout.file(FileId(0)).backing, Backing::Device(DeviceId(2)));
        assert_eq!(layout.locate(FileId(1), 0), Location { device: DeviceId(2), sector: Sector(0) });
    }

    #[test]
    fn a_file_that_stands_for_the_device_begins_where_the_device_begins() {
        let files = [file(FileKind::Regular, 5 << 20), file(FileKind::Device, 1 << 30)];
        let layout = Layout::in_a_row(&files, DeviceId(0), Sector(1 << 21));
        assert_eq!(layout.locate(FileId(1), 4096), Location { device: DeviceId(0), sector: Sector(8) });
        assert_eq!(layout.files().iter().map(|file| file.is_device).collect::<Vec<_>>(), [false, true]);
        assert!(layout.as_partitions().files().iter().all(|file| file.is_device));
    }
}
