//! The journals of file systems at rest: where they lie, and where they go on.
//!
//! XFS's formats: `xfs_format.h` and `xfs_log_format.h` of Linux (superblock, record headers); all numbers are
//! big-endian. ext4's are in [`crate::costs::ext4`].

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use blklab_core::units::SECTOR_BYTES;

use crate::config::FileSystemKind;
use crate::costs::{Journal, ext4};

const SUPERBLOCK_MAGIC: &[u8] = b"XFSB";
const RECORD_MAGIC: &[u8] = &[0xfe, 0xed, 0xba, 0xbe];

/// The journal of the file system of that kind on `device`, which is not mounted; `None` if it has none, or one that
/// the simulator does not model.
///
/// # Errors
/// One line: the device cannot be read, or holds no such file system.
pub fn at_rest(kind: FileSystemKind, device: &Path) -> Result<Option<Journal>, String> {
    match kind {
        FileSystemKind::Ext4 => ext4::at_rest(device),
        FileSystemKind::Xfs => {
            let found = File::open(device).map_err(|error| error.to_string()).and_then(|disk| xfs(&disk));
            found.map(Some).map_err(|error| format!("the log of {}: {error}", device.display()))
        }
        FileSystemKind::Btrfs | FileSystemKind::F2fs => Ok(None),
    }
}

fn xfs(disk: &File) -> Result<Journal, String> {
    let mut superblock = [0; 512];
    disk.read_exact_at(&mut superblock, 0).map_err(|error| error.to_string())?;
    if !superblock.starts_with(SUPERBLOCK_MAGIC) {
        return Err("there is no XFS".to_owned());
    }
    let number = |at: usize, length: usize| {
        superblock[at..at + length].iter().fold(0, |number, &byte| number << 8 | u64::from(byte))
    };
    let (block_bytes, start, group_blocks) = (number(4, 4), number(48, 8), number(84, 4));
    let (blocks, group_bits, unit) = (number(96, 4), superblock[124], number(196, 4));
    if block_bytes < SECTOR_BYTES || start == 0 || blocks == 0 || group_bits > 32 {
        return Err("a damaged superblock, or a log on another device".to_owned());
    }
    let block = (start >> group_bits) * group_blocks + (start & ((1 << group_bits) - 1));
    let (sector, sectors) = (block * block_bytes / SECTOR_BYTES, blocks * block_bytes / SECTOR_BYTES);
    // `l_iclog_roundoff`: a unit of 1 is that of a log without one.
    let unit = (unit / SECTOR_BYTES).max(1) as u32;
    Ok(Journal { extents: vec![(sector, sectors)], head: head(disk, sector, sectors)?, unit })
}

/// The end of the last of the records, which begin with the log and follow each other.
fn head(disk: &File, log: u64, sectors: u64) -> Result<u64, String> {
    let mut at = 0;
    while at < sectors {
        let mut header = [0; 512];
        disk.read_exact_at(&mut header, (log + at) * SECTOR_BYTES).map_err(|error| error.to_string())?;
        let number = |from: usize| u32::from_be_bytes(header[from..from + 4].try_into().expect("four bytes"));
        let (cycle, length, is_record) = (number(4), number(12), header.starts_with(RECORD_MAGIC));
        if !is_record || cycle != 1 || u64::from(number(20)) != at {
            break;
        }
        at += 1 + u64::from(length).div_ceil(SECTOR_BYTES);
    }
    Ok(at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::ask;

    /// The log as mkfs.xfs leaves it: the record of an unmount.
    #[test]
    fn the_log_lies_where_xfs_db_finds_it_and_begins_with_one_record() {
        for (unit, options) in [(1, &["-b", "size=4096"][..]), (8, &["-s", "size=4096"])] {
            let file = tempfile::NamedTempFile::new().expect("a file");
            file.as_file().set_len(512 << 20).expect("it has holes");
            let print = |words: &[&str]| ask("xfs_db", &[&["-r"], words].concat(), file.path());
            let start = ask("mkfs.xfs", &[&["-q", "-f"], options].concat(), file.path())
                .and_then(|_| print(&["-c", "sb 0", "-c", "print logstart"]));
            let Some(start) = start else { return };
            let found = xfs(file.as_file()).expect("an XFS");
            let block: u64 =
                start.trim().rsplit(' ').next().and_then(|word| word.parse().ok()).expect("a number");
            let convert = format!("convert fsblock {block} daddr");
            let sector = print(&["-c", &convert]).expect("it ran before");
            let sector = sector.split(['(', ')']).nth(1).and_then(|word| word.parse().ok());
            assert_eq!(sector, Some(found.extents[0].0));
            assert_eq!((found.unit, found.head > 0, found.head < 64), (unit, true, true));
        }
    }

    #[test]
    fn other_bytes_are_one_line() {
        let zeros = tempfile::NamedTempFile::new().expect("a file");
        zeros.as_file().set_len(1 << 20).expect("long");
        for kind in [FileSystemKind::Xfs, FileSystemKind::Ext4] {
            let error = at_rest(kind, zeros.path()).unwrap_err();
            assert!(error.contains("there is no") && error.lines().count() == 1, "{error}");
        }
        assert_eq!(at_rest(FileSystemKind::Btrfs, zeros.path()), Ok(None));
    }
}
