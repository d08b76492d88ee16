//! The place of ext4's journal: the extents of its inode; and where it goes on.
//!
//! The format: `Documentation/filesystems/ext4` of Linux (superblock, group descriptors, inodes, extent
//! trees); all numbers are little-endian.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::{Extents, Journal};

const SUPERBLOCK: u64 = 1024;
const SUPERBLOCK_MAGIC: u16 = 0xef53;
const EXTENT_MAGIC: u16 = 0xf30a;
/// The first number of `struct journal_superblock_s`, whose numbers are big-endian.
const JOURNAL_MAGIC: u32 = 0xc03b_3998;
const HAS_JOURNAL: u32 = 4;
/// The journal is on another device.
const JOURNAL_DEVICE: u32 = 8;
const WIDE: u32 = 0x80;
const SECTOR_BYTES: u64 = 512;
/// Offset and length of an inode's own part of its extent tree.
const TREE: (usize, usize) = (40, 60);
/// A tree of more levels is damaged.
const DEPTH_MAX: u16 = 5;
/// An extent with more blocks is one that is not written yet, and has so many fewer.
const UNWRITTEN: u64 = 1 << 15;

/// The sectors of the journal; none if there is no journal.
///
/// # Errors
/// One line: the device cannot be read, or holds no ext4 with a journal in extents.
pub fn journal(device: &Path) -> Result<Extents, String> {
    let fail = |error: &dyn std::fmt::Display| format!("the journal of {}: {error}", device.display());
    let disk = File::open(device).map_err(|error| fail(&error))?;
    ranges(&disk).map(Extents::of).map_err(|error| fail(&error))
}

/// The journal of the file system on `device`, which is not mounted; `None` if it has none.
///
/// # Errors
/// As [`journal`]; or the journal's superblock is damaged.
pub fn at_rest(device: &Path) -> Result<Option<Journal>, String> {
    let fail = |error: &dyn std::fmt::Display| format!("the journal of {}: {error}", device.display());
    let disk = File::open(device).map_err(|error| fail(&error))?;
    rest(&disk).map_err(|error| fail(&error))
}

fn rest(disk: &dyn ReadAt) -> Result<Option<Journal>, String> {
    let ranges = ranges(disk)?;
    let Some(&(first, _)) = ranges.first() else { return Ok(None) };
    let superblock = disk.bytes(first * SECTOR_BYTES, 1024)?;
    let word = |at: usize| u32::from_be_bytes(superblock[at..at + 4].try_into().expect("four bytes"));
    if word(0) != JOURNAL_MAGIC {
        return Err("its superblock is damaged".to_owned());
    }
    let extents = ranges.iter().map(|&(begin, end)| (begin, end - begin)).collect();
    // `s_head`, which older versions left at 0: then it begins where the log does (`s_first`).
    let (block, head) = (word(12) / SECTOR_BYTES as u32, word(88).max(word(20)));
    Ok(Some(Journal { extents, head: u64::from(head) * u64::from(block), unit: block }))
}

fn ranges(disk: &dyn ReadAt) -> Result<Vec<(u64, u64)>, String> {
    let superblock = disk.bytes(SUPERBLOCK, 1024)?;
    let word = |at| u32_at(&superblock, at);
    if u16_at(&superblock, 56) != SUPERBLOCK_MAGIC {
        return Err("there is no ext4".to_owned());
    }
    let (compatible, incompatible) = (word(92), word(96));
    if compatible & HAS_JOURNAL == 0 || incompatible & JOURNAL_DEVICE != 0 {
        return Ok(Vec::new());
    }
    if word(24) > 6 || word(40) == 0 || word(224) == 0 {
        return Err("a damaged superblock".to_owned());
    }
    let block_bytes = 1024 << word(24);
    let inode_bytes = u64::from(u16_at(&superblock, 88));
    let is_wide = incompatible & WIDE != 0;
    let descriptor_bytes = if is_wide { u64::from(u16_at(&superblock, 254)) } else { 32 };
    let (group, within) = ((word(224) - 1) / word(40), (word(224) - 1) % word(40));
    // Descriptors begin in the block after the superblock's.
    let descriptors = (u64::from(word(20)) + 1) * block_bytes;
    let descriptor = disk.bytes(descriptors + u64::from(group) * descriptor_bytes, 64)?;
    let high = if is_wide { u64::from(u32_at(&descriptor, 40)) } else { 0 };
    let table = (high << 32 | u64::from(u32_at(&descriptor, 8))) * block_bytes;
    let inode = disk.bytes(table + u64::from(within) * inode_bytes, TREE.0 + TREE.1)?;
    let mut found = Vec::new();
    leaves(disk, &inode[TREE.0..], block_bytes, DEPTH_MAX, &mut found)?;
    Ok(found)
}

/// Adds the extents of a node and of those below it.
fn leaves(
    disk: &dyn ReadAt,
    node: &[u8],
    block_bytes: u64,
    depth_max: u16,
    found: &mut Vec<(u64, u64)>,
) -> Result<(), String> {
    let (entries, depth) = (usize::from(u16_at(node, 2)), u16_at(node, 6));
    if u16_at(node, 0) != EXTENT_MAGIC || depth > depth_max || 12 * (entries + 1) > node.len() {
        return Err("its inode has no extents".to_owned());
    }
    for entry in node[12..].chunks_exact(12).take(entries) {
        if depth > 0 {
            let block = u64::from(u16_at(entry, 8)) << 32 | u64::from(u32_at(entry, 4));
            let below = disk.bytes(block * block_bytes, block_bytes as usize)?;
            leaves(disk, &below, block_bytes, depth - 1, found)?;
            continue;
        }
        let blocks = u64::from(u16_at(entry, 4));
        let blocks = if blocks > UNWRITTEN { blocks - UNWRITTEN } else { blocks };
        let first = u64::from(u16_at(entry, 6)) << 32 | u64::from(u32_at(entry, 8));
        let sectors = block_bytes / SECTOR_BYTES;
        found.push((first * sectors, (first + blocks) * sectors));
    }
    Ok(())
}

/// A device, or an image in a test.
trait ReadAt {
    fn bytes(&self, at: u64, length: usize) -> Result<Vec<u8>, String>;
}

impl ReadAt for File {
    fn bytes(&self, at: u64, length: usize) -> Result<Vec<u8>, String> {
        let mut bytes = vec![0; length];
        self.read_exact_at(&mut bytes, at).map_err(|error| error.to_string())?;
        Ok(bytes)
    }
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(bytes[at..at + 2].try_into().expect("two bytes"))
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::ask;

    /// An image of `mib` MiB, and its journal's sectors as debugfs(8) tells them. None without e2fsprogs.
    fn image(mib: u64, options: &[&str]) -> Option<(tempfile::NamedTempFile, Vec<(u64, u64)>)> {
        let file = tempfile::NamedTempFile::new().expect("a file");
        file.as_file().set_len(mib << 20).expect("it has holes");
        ask("mkfs.ext4", &[&["-q", "-F"], options].concat(), file.path())?;
        let text = ask("debugfs", &["-R", "stat <8>"], file.path())?;
        let bytes: u64 = ask("dumpe2fs", &["-h"], file.path())?
            .lines()
            .find_map(|line| line.strip_prefix("Block size:")?.trim().parse().ok())?;
        // `(0-32767):491520-524287, (ETB0):32770`: the latter is a block of the tree itself.
        let extents = text.split_once("EXTENTS:").map_or("", |(_, extents)| extents);
        let of_data = extents.split([',', '\n']).map(str::trim).filter(|extent| !extent.starts_with("(ETB"));
        let blocks = of_data.filter_map(|extent| {
            let place = extent.split_once("):")?.1;
            let (first, last) = place.split_once('-').unwrap_or((place, place));
            Some((first.parse::<u64>().ok()?, last.parse::<u64>().ok()?))
        });
        let found: Vec<_> =
            blocks.map(|(first, last)| (first * bytes / 512, (last + 1) * bytes / 512)).collect();
        Some((file, found))
    }

    fn joined(ranges: &[(u64, u64)]) -> Vec<(u64, u64)> {
        let mut found: Vec<(u64, u64)> = Vec::new();
        for &(begin, end) in ranges {
            match found.last_mut() {
                Some(last) if last.1 == begin => last.1 = end,
                _ => found.push((begin, end)),
            }
        }
        found
    }

    #[test]
    fn the_journal_lies_where_debugfs_finds_it() {
        // Small and large blocks, with and without 64 bits, and more extents than fit into an inode.
        for (mib, options) in [
            (64, [].as_slice()),
            (64, &["-b", "1024", "-J", "size=8"]),
            (256, &["-O", "^64bit,^flex_bg"]),
            (4096, &["-J", "size=1024"]),
            (600, &["-b", "1024", "-J", "size=100", "-O", "^flex_bg"]),
        ] {
            let Some((file, told)) = image(mib, options) else { return };
            let found = ranges(file.as_file()).expect("an ext4");
            assert!(!found.is_empty());
            assert_eq!(joined(&found), joined(&told), "{options:?}");
            let rest = rest(file.as_file()).expect("a journal").expect("there is one");
            assert_eq!(
                (rest.head, rest.extents[0].0),
                (rest.unit.into(), found[0].0),
                "nothing has been committed"
            );
        }
    }

    #[test]
    fn without_a_journal_there_is_none_and_other_bytes_are_one_line() {
        if let Some((file, _)) = image(64, &["-O", "^has_journal"]) {
            assert_eq!(journal(file.path()), Ok(Extents::default()));
            assert_eq!(at_rest(file.path()), Ok(None));
        }
        let zeros = tempfile::NamedTempFile::new().expect("a file");
        zeros.as_file().set_len(1 << 20).expect("long");
        let error = journal(zeros.path()).unwrap_err();
        assert!(error.ends_with("there is no ext4") && error.starts_with("the journal of /"), "{error}");
        zeros.as_file().set_len(100).expect("short");
        assert_eq!(journal(zeros.path()).unwrap_err().lines().count(), 1);
    }
}
