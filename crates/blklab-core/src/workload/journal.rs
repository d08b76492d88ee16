//! Where the journal of the files' file system lies, and how a run finds it.

use std::ops::Range;

use crate::units::{Bytes, SECTOR_BYTES, Sector};

/// The kinds of journals that are modelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JournalKind {
    /// ext4's, of blocks of 4 KiB (jbd2).
    Ext4,
    /// XFS's log.
    Xfs,
}

impl JournalKind {
    /// By the name of the file system.
    pub fn of(file_system: &str) -> Option<JournalKind> {
        match file_system {
            "ext4" => Some(JournalKind::Ext4),
            "xfs" => Some(JournalKind::Xfs),
            _ => None,
        }
    }
}

/// Where a journal lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JournalPlan {
    /// Its kind.
    pub kind: JournalKind,
    /// Its sectors on the disk, one range after the other.
    pub extents: Vec<Range<u64>>,
    /// The sector, counted from its begin, where the next transaction begins.
    pub head: u64,
    /// What is written has a multiple of so many sectors.
    pub unit: u32,
}

/// A block of ext4's journal.
pub const BLOCK_SECTORS: u32 = 8;
/// Inodes of 256 bytes in a block.
const INODES_PER_BLOCK: usize = 16;
/// Inodes before that of the first file (`EXT4_GOOD_OLD_FIRST_INO`, and `lost+found`).
const OTHER_INODES: usize = 11;
const SECTORS_MIN: u64 = 512;

impl JournalPlan {
    /// In the middle of a disk, where mke2fs and mkfs.xfs put it; the latter rounds records to `physical`
    /// blocks, if they are larger than a sector.
    pub fn in_the_middle(kind: JournalKind, capacity: Sector, physical: Bytes) -> JournalPlan {
        let aligned = |sectors: u64| sectors - sectors % u64::from(BLOCK_SECTORS);
        let begin = aligned(capacity.0 / 2);
        // `ext2fs_default_journal_size()`: 1 GiB from 128 GiB on. Only where it begins matters.
        let sectors = (capacity.0 / 128).clamp(SECTORS_MIN, Bytes::from_mib(1024).sectors());
        let end = begin + aligned(sectors.min(capacity.0 - begin));
        let (head, unit) = match kind {
            JournalKind::Ext4 => (BLOCK_SECTORS.into(), BLOCK_SECTORS),
            JournalKind::Xfs => (0, (physical.0 / SECTOR_BYTES).max(1) as u32),
        };
        let extents = std::iter::once(begin..end).collect();
        JournalPlan { kind, extents, head, unit }
    }

    /// The same at the begin of a run that has mounted the file system, in which the next transaction began at
    /// `head`, and changed the times of its `files`: that was one transaction. In ext4 it has the superblock, too.
    #[must_use]
    pub fn in_use(self, files: usize) -> JournalPlan {
        let written = match self.kind {
            JournalKind::Ext4 => {
                let blocks = JournalPlan::inode_block(files.max(1) - 1) + 1;
                u64::from((3 + blocks) * BLOCK_SECTORS)
            }
            JournalKind::Xfs => self.record_sectors(1, files as u64),
        };
        JournalPlan { head: self.head + written, ..self }
    }

    /// The number of ext4's block that has the inode of a file.
    pub const fn inode_block(file: usize) -> u32 {
        ((OTHER_INODES + file) / INODES_PER_BLOCK) as u32
    }

    /// The length of a record of XFS's log with so many checkpoints, of the times of so many inodes in all: a header, for each
    /// checkpoint the headers of its begin, of its transaction and of its end, and for each inode its format and
    /// its core, of 56 and 176 bytes, with headers of 12.
    pub const fn record_sectors(&self, checkpoints: u64, inodes: u64) -> u64 {
        let bytes = SECTOR_BYTES + checkpoints * (3 * 12 + 16) + inodes * (12 + 56 + 12 + 176);
        bytes.div_ceil(SECTOR_BYTES).next_multiple_of(self.unit as u64)
    }

    /// Its length in sectors.
    pub fn sectors(&self) -> u64 {
        self.extents.iter().map(|range| range.end - range.start).sum()
    }

    /// Checks that it lies on a disk of `capacity`, in whole blocks, and has room for transactions.
    ///
    /// # Errors
    /// One line.
    pub fn check(&self, capacity: Bytes) -> Result<(), String> {
        let unit = u64::from(self.unit);
        let is_bad = |range: &Range<u64>| {
            range.is_empty()
                || range.end > capacity.sectors()
                || unit == 0
                || !(range.end - range.start).is_multiple_of(unit)
        };
        if let Some(bad) = self.extents.iter().find(|range| is_bad(range)) {
            return Err(format!(
                "the journal: sectors {} to {} are no blocks of the disk",
                bad.start, bad.end
            ));
        }
        let (head, sectors) = (self.head, self.sectors());
        let is_superblock = self.kind == JournalKind::Ext4 && head < BLOCK_SECTORS.into();
        if sectors < SECTORS_MIN || head >= sectors || head % unit > 0 || is_superblock {
            return Err(format!("the journal: sector {head} of {sectors} is not where a transaction begins"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CAPACITY: Bytes = Bytes::from_mib(64);

    fn plan(kind: JournalKind) -> JournalPlan {
        JournalPlan::in_the_middle(kind, Sector(CAPACITY.sectors()), Bytes(4096))
    }

    #[test]
    fn a_journal_lies_in_the_middle_and_begins_behind_its_superblock() {
        for (kind, head) in [(JournalKind::Ext4, 8), (JournalKind::Xfs, 0)] {
            let plan = plan(kind);
            assert_eq!((plan.extents[0].start, plan.head, plan.unit), (65_536, head, 8));
            assert_eq!((plan.check(CAPACITY), plan.sectors()), (Ok(()), 1024));
        }
    }

    #[test]
    fn a_record_of_the_log_has_a_header_and_each_inode() {
        let plan = JournalPlan { unit: 1, ..plan(JournalKind::Xfs) };
        // As in guests of Linux 7.3.
        assert_eq!([1, 2, 3, 5].map(|inodes| plan.record_sectors(1, inodes)), [2, 3, 3, 4]);
        assert_eq!(JournalPlan { unit: 8, ..plan }.record_sectors(1, 5), 8);
    }

    #[test]
    fn the_begin_of_a_run_writes_behind_the_head() {
        let head = |kind, files| plan(kind).in_use(files).head;
        // Descriptor, superblock, one or two blocks of inodes, record.
        assert_eq!([1, 5, 6].map(|files| head(JournalKind::Ext4, files)), [5, 5, 6].map(|blocks| 8 * blocks));
        assert_eq!(head(JournalKind::Xfs, 5), 8);
    }

    #[test]
    fn a_journal_outside_the_disk_or_without_room_is_one_line() {
        let good = plan(JournalKind::Ext4);
        let extents =
            |begin, end| JournalPlan { extents: std::iter::once(begin..end).collect(), ..good.clone() };
        for (bad, told) in [
            (extents(131_000, 131_080), "sectors 131000 to 131080 are no blocks of the disk"),
            (extents(8, 1001), "sectors 8 to 1001 are no blocks"),
            (extents(8, 16), "sector 8 of 8 is not where"),
            (JournalPlan { head: 0, ..good.clone() }, "sector 0 of 1024 is not where"),
            (JournalPlan { head: 12, ..good.clone() }, "sector 12 of 1024 is not where"),
            (JournalPlan { head: 1024, ..good.clone() }, "sector 1024 of 1024 is not where"),
        ] {
            let error = bad.check(CAPACITY).expect_err(told);
            assert!(error.contains(told), "{error}");
        }
    }
}
