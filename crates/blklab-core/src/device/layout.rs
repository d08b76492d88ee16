//! The layout of files: the device of each file and its sectors there.
//!
//! Each file is on one device, in one piece. All conversions from a byte of a file to a sector use
//! a [`Layout`].

use super::DeviceId;
use crate::pagecache::{FileId, PAGE_BYTES, PageRange};
use crate::units::{Bytes, SECTOR_BYTES, Sector};
use crate::workload::plan::{FileKind, FilePlan};

/// Files begin at multiples of this many sectors (1 MiB), as partitions do.
const ALIGN_SECTORS: u64 = 2048;

/// The place of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlacedFile {
    /// The device of the file.
    pub device: DeviceId,
    /// Its first sector there.
    pub start: Sector,
    /// Its size.
    pub size: Bytes,
    /// The file is the device itself or a partition, not a file in a file system.
    pub is_device: bool,
}

impl PlacedFile {
    /// Its sectors on the device.
    pub fn sectors(&self) -> std::ops::Range<u64> {
        self.start.0..self.start.0 + self.size.sectors()
    }
}

/// The place of a byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Location {
    /// The device.
    pub device: DeviceId,
    /// The sector on it.
    pub sector: Sector,
}

/// The places of all files, by their numbers in the plan and the page cache.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    files: Vec<PlacedFile>,
}

impl Layout {
    /// Files at the caller's places.
    pub fn new(files: Vec<PlacedFile>) -> Layout {
        Layout { files }
    }

    /// Regular files one after the other from the start of `device`, whose size is `capacity`, each
    /// in one piece and in the order of the job file. A file that represents the device begins at
    /// sector 0.
    pub fn in_a_row(files: &[FilePlan], device: DeviceId, capacity: Sector) -> Layout {
        let mut next = 0_u64;
        let placed = |file: &FilePlan| {
            let is_device = file.kind == FileKind::Device;
            let sectors = file.size.sectors();
            // The plan has checked that the files fit. Alignment may leave too little room for the
            // last one, which then begins earlier.
            let start = if is_device { 0 } else { next.min(capacity.0.saturating_sub(sectors)) };
            if !is_device {
                next += sectors.next_multiple_of(ALIGN_SECTORS);
            }
            PlacedFile { device, start: Sector(start), size: file.size, is_device }
        };
        Layout { files: files.iter().map(placed).collect() }
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

    /// One file.
    #[inline]
    pub fn file(&self, file: FileId) -> &PlacedFile {
        &self.files[file.index()]
    }

    /// The place of the byte at `offset` of `file`.
    #[inline]
    pub fn locate(&self, file: FileId, offset: u64) -> Location {
        let PlacedFile { device, start, .. } = *self.file(file);
        Location { device, sector: Sector(start.0 + Bytes(offset).to_sector().0) }
    }

    /// The place of pages and their length in sectors; the last page of a file may be shorter.
    #[inline]
    pub fn locate_pages(&self, range: PageRange) -> (Location, u32) {
        const PAGE_SECTORS: u64 = PAGE_BYTES / SECTOR_BYTES;
        let left = self.file(range.file).size.sectors() - range.first * PAGE_SECTORS;
        let sectors = u64::from(range.pages) * PAGE_SECTORS;
        (self.locate(range.file, range.first * PAGE_BYTES), sectors.min(left) as u32)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn file(kind: FileKind, bytes: u64) -> FilePlan {
        FilePlan { path: String::new(), kind, size: Bytes(bytes) }
    }

    proptest! {
        #[test]
        fn files_in_a_row_are_aligned_and_apart_and_within_the_device(
            sizes in prop::collection::vec(1..10_000_000_u64, 1..20)
        ) {
            let files: Vec<_> = sizes.iter().map(|&bytes| file(FileKind::Regular, bytes)).collect();
            let capacity = Sector(sizes.iter().map(|bytes| bytes.div_ceil(1 << 20) * ALIGN_SECTORS).sum());
            let layout = Layout::in_a_row(&files, DeviceId(3), capacity);
            for (index, placed) in layout.files().iter().enumerate() {
                prop_assert_eq!(placed.start.0 % ALIGN_SECTORS, 0);
                prop_assert!(placed.sectors().end <= capacity.0);
                prop_assert_eq!(placed.device, DeviceId(3));
                prop_assert!(layout.files()[..index].iter().all(|before| before.sectors().end <= placed.start.0));
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
            let (place, sectors) = layout.locate_pages(range);
            prop_assert_eq!(place, layout.locate(FileId(1), first * PAGE_BYTES));
            let end = place.sector.0 + u64::from(sectors);
            let file_end = layout.file(FileId(1)).sectors().end;
            prop_assert_eq!(end, file_end.min(place.sector.0 + range.bytes() / SECTOR_BYTES));
        }
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
