//! Files in a file system on the disk, laid out before a job runs in them, and their places on the disk.
//!
//! A file is allocated in one piece where the file system has one, and written once with zeros, so that
//! what overwrites or reads it later allocates nothing. The places are those that the file system
//! itself reports (FIEMAP); btrfs reports addresses of its own, which its chunks map to the disk's.

mod chunks;
mod fiemap;
pub mod log;

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use std::{io, iter};

use blklab_core::units::{Bytes, SECTOR_BYTES};
use rustix::fs::{FallocateFlags, OFlags, fallocate};

use crate::config::{FileSystem, FileSystemKind, Sectors};
use chunks::Chunks;

/// Written at once; direct I/O needs memory at a page's boundary.
const PIECE: usize = 4 << 20;
const PAGE: usize = 4096;

/// The path of a file in the file system.
pub fn path(file_system: &FileSystem, number: usize) -> PathBuf {
    file_system.mountpoint.join(format!("file{number}"))
}

/// Makes files of these sizes in the mounted file system, and returns their places.
///
/// # Errors
/// One line: the file system refuses, or a file has no places.
pub fn make(file_system: &FileSystem, sizes: &[u64]) -> Result<Vec<Sectors>, String> {
    for (number, &size) in sizes.iter().enumerate() {
        let path = path(file_system, number);
        write(&path, size).map_err(|error| format!("{}: {size} bytes: {error}", path.display()))?;
    }
    rustix::fs::sync();
    places(file_system, sizes.len())
}

fn write(path: &Path, size: u64) -> io::Result<()> {
    let flags = OFlags::DIRECT.bits().cast_signed();
    let file = OpenOptions::new().write(true).create_new(true).custom_flags(flags).open(path)?;
    fallocate(&file, FallocateFlags::empty(), 0, size)?;
    let room = vec![0; PIECE + PAGE];
    let aligned = room.as_ptr().align_offset(PAGE);
    let zeros = &room[aligned..aligned + PIECE];
    let whole = size - size % PAGE as u64;
    let mut at = 0;
    while at < whole {
        let count = (whole - at).min(PIECE as u64) as usize;
        file.write_all_at(&zeros[..count], at)?;
        at += count as u64;
    }
    if whole < size {
        let end = OpenOptions::new().write(true).open(path)?;
        end.write_all_at(&zeros[..(size - whole) as usize], whole)?;
        end.sync_all()?;
    }
    file.sync_all()
}

/// The places of the first `count` files. Afterwards the file system has them in memory, as one that has
/// been in use.
///
/// # Errors
/// One line: a file is not there, or has no places.
pub fn places(file_system: &FileSystem, count: usize) -> Result<Vec<Sectors>, String> {
    let chunks = match file_system.kind {
        FileSystemKind::Btrfs => {
            let told = |error: io::Error| format!("{}: chunks: {error}", file_system.mountpoint.display());
            Some(Chunks::of(&file_system.mountpoint).map_err(told)?)
        }
        FileSystemKind::Ext4 | FileSystemKind::Xfs | FileSystemKind::F2fs => None,
    };
    let place = |number| {
        let path = path(file_system, number);
        let failed = |what: &dyn std::fmt::Display| format!("{}: {what}", path.display());
        let file = File::open(&path).map_err(|error| failed(&error))?;
        of_file(&file, chunks.as_ref()).map_err(|error| failed(&error))
    };
    (0..count).map(place).collect()
}

/// Sets the file's time of modification to now, as a write does.
pub fn touch(path: &Path) -> io::Result<()> {
    File::open(path)?.set_modified(SystemTime::now())
}

fn of_file(file: &File, chunks: Option<&Chunks>) -> Result<Sectors, String> {
    let size = file.metadata().map_err(|error| error.to_string())?.len();
    let mut found: Sectors = Vec::new();
    let mut end = 0;
    for extent in fiemap::extents(file).map_err(|error| format!("FIEMAP: {error}"))? {
        if extent.logical != end {
            return Err(format!("a hole at byte {end}"));
        }
        if !extent.is_plain() {
            return Err(format!("an extent at byte {end} without a place, flags {:#x}", extent.flags));
        }
        end += extent.length;
        let pieces = match chunks {
            None => iter::once(extent.physical..extent.physical + extent.length).collect(),
            Some(chunks) => chunks.on_disk(extent.physical, extent.length)?,
        };
        for piece in pieces {
            let (first, sectors) = (piece.start / SECTOR_BYTES, (piece.end - piece.start) / SECTOR_BYTES);
            match found.last_mut() {
                Some((start, count)) if *start + *count == first => *count += sectors,
                _ => found.push((first, sectors)),
            }
        }
    }
    if end < Bytes(size).sectors() * SECTOR_BYTES {
        return Err(format!("places for {end} of {size} bytes"));
    }
    Ok(found)
}

/// The sectors of `after` that were not in the same place of their file in `before`.
pub fn moved(before: &[Sectors], after: &[Sectors]) -> u64 {
    let place_of = |file: &Sectors| {
        let mut begins = 0;
        let with_begin = |&(start, count): &(u64, u64)| {
            begins += count;
            (begins - count, start, count)
        };
        file.iter().map(with_begin).collect::<Vec<_>>()
    };
    let of_file = |(before, after): (&Sectors, &Sectors)| {
        let (before, after) = (place_of(before), place_of(after));
        let all: u64 = after.iter().map(|(_, _, count)| count).sum();
        let mut same = 0;
        let mut old = before.iter().peekable();
        let mut new = after.iter().peekable();
        while let (Some(&&(a, at, long)), Some(&&(b, to, wide))) = (old.peek(), new.peek()) {
            let (from, until) = (a.max(b), (a + long).min(b + wide));
            if from < until && at + (from - a) == to + (from - b) {
                same += until - from;
            }
            if a + long <= b + wide {
                old.next();
            } else {
                new.next();
            }
        }
        all - same
    };
    before.iter().zip(after).map(of_file).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moved_sectors_are_those_with_another_place_in_their_file() {
        let before = [vec![(100, 50), (300, 50)], vec![(1000, 8)]];
        assert_eq!(moved(&before, &before), 0);
        // Split without a move, then ten sectors elsewhere, then a file whose first half has moved.
        assert_eq!(moved(&before, &[vec![(100, 20), (120, 30), (300, 50)], vec![(1000, 8)]]), 0);
        assert_eq!(moved(&before, &[vec![(100, 20), (900, 10), (130, 20), (300, 50)], vec![(1000, 8)]]), 10);
        assert_eq!(moved(&before, &[vec![(700, 50), (300, 50)], vec![(996, 8)]]), 58);
    }
}
