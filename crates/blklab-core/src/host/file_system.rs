//! What differs between the file systems that files can lie in (`file_system` of the host), below their
//! journals, which are not modelled.

use crate::units::Bytes;
use crate::workload::journal::JournalKind;

/// The known ones, and their numbers.
pub const FILE_SYSTEMS: &[(&str, i64)] = &[("xfs", 0), ("ext4", 1), ("btrfs", 2), ("f2fs", 3)];

/// What a file system does where they differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileSystem {
    /// A direct read of at most a block has a plug. In ext4 and XFS it has none since Linux 7
    /// (`iomap_dio_read_simple`).
    pub plugs_small_reads: bool,
    /// Bios of writeback say whether it is in the background (`wbc_to_write_flags`), so that
    /// its throttling leaves them fewer requests. Those of ext4 do not (`ext4_io_submit`).
    pub marks_background: bool,
    /// What a process writes that syncs a file comes under a plug (`ext4_do_writepages`); in XFS only the flusher has one.
    pub plugs_syncs: bool,
    /// How far it reads ahead, if not as far as its disk.
    pub read_ahead: Option<Bytes>,
    /// Pages that it writes when it is mounted, through the page cache: as counted in guests of Linux 7.3.
    pub written_by_mount: u64,
    /// The first direct write of a file since it was read from the disk has its lock alone
    /// (`IS_NOSEC` in `ext4_dio_write_checks`); XFS finds that out before (`xfs_setup_inode`).
    pub first_write_is_alone: bool,
    /// A read through the page cache shares the file's lock (`xfs_file_buffered_read`).
    pub buffered_reads_lock: bool,
    /// A write through the page cache waits until no direct I/O of the file is in flight
    /// (`ext4_buffered_write_iter`).
    pub buffered_writes_await_direct: bool,
    /// The most folios of a bio of writeback (`IOEND_BATCH_SIZE` of iomap, for XFS).
    pub bio_folios: u32,
    /// The most pages of a bio of writeback; btrfs has a limit of its own.
    pub bio_pages: u32,
    /// A page that is written has a buffer head, which XFS's iomap does without.
    pub has_buffer_heads: bool,
}

impl FileSystem {
    /// XFS.
    pub const DEFAULT: FileSystem = FileSystem {
        plugs_small_reads: false,
        marks_background: true,
        plugs_syncs: false,
        read_ahead: None,
        written_by_mount: 0,
        first_write_is_alone: false,
        buffered_reads_lock: true,
        buffered_writes_await_direct: false,
        bio_folios: IOEND_FOLIOS,
        bio_pages: u32::MAX,
        has_buffer_heads: false,
    };

    /// The file system of that number in [`FILE_SYSTEMS`].
    pub fn of(number: i64) -> FileSystem {
        let name = FILE_SYSTEMS.iter().find(|(_, known)| *known == number).map(|(name, _)| *name);
        let without_iomap = FileSystem {
            bio_folios: u32::MAX,
            plugs_syncs: true,
            buffered_reads_lock: false,
            ..FileSystem::DEFAULT
        };
        match name {
            Some("ext4") => FileSystem {
                marks_background: false,
                written_by_mount: 2,
                first_write_is_alone: true,
                buffered_writes_await_direct: true,
                has_buffer_heads: true,
                ..without_iomap
            },
            Some("btrfs") => FileSystem {
                plugs_small_reads: true,
                // `open_ctree`, for one device.
                read_ahead: Some(Bytes::from_mib(4)),
                written_by_mount: 16,
                bio_pages: BTRFS_BIO_PAGES,
                ..without_iomap
            },
            Some("f2fs") => FileSystem { plugs_small_reads: true, written_by_mount: 4, ..without_iomap },
            _ => FileSystem::DEFAULT,
        }
    }
}

/// The journal of the file system of that number in [`FILE_SYSTEMS`], if it is modelled.
pub fn journal_of(number: i64) -> Option<JournalKind> {
    FILE_SYSTEMS.iter().find(|(_, known)| *known == number).and_then(|(name, _)| JournalKind::of(name))
}

const IOEND_FOLIOS: u32 = 4096;
/// 4 MiB, as seen in guests of Linux 7.3.
const BTRFS_BIO_PAGES: u32 = 1024;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::Host;

    fn host(file_system: &str) -> Host {
        let mut settings = Host::settings();
        settings.set("file_system", file_system).expect("a file system");
        Host::new(&settings)
    }

    #[test]
    fn each_file_system_is_a_word_and_the_default_is_xfs() {
        for (name, number) in FILE_SYSTEMS {
            assert_eq!(host(name).file_system, FileSystem::of(*number));
        }
        assert_eq!(Host::new(&Host::settings()).file_system, host("xfs").file_system);
        let told = Host::settings().set("file_system", "ntfs").expect_err("not known").to_string();
        assert!(told.contains("expected xfs, ext4, btrfs or f2fs, found 'ntfs'"), "{told}");
    }

    #[test]
    fn bios_of_writeback_are_as_long_as_folios_and_the_file_system_allow() {
        let small = |name| Host { large_folios: false, ..host(name) };
        let pages = ["xfs", "ext4", "btrfs"].map(|name| small(name).writeback_bio_pages());
        assert_eq!(pages, [4096, u32::MAX, 1024]);
        assert_eq!(host("xfs").writeback_bio_pages(), u32::MAX, "folios of many pages");
        assert_eq!(host("btrfs").writeback_bio_pages(), 1024);
    }

    #[test]
    fn only_the_writeback_of_ext4_is_not_marked_as_background() {
        let marks = ["xfs", "ext4", "btrfs", "f2fs"].map(|name| host(name).files().marks_background);
        assert_eq!(marks, [true, false, true, true]);
        assert!(Host { partitions: true, ..host("ext4") }.files().marks_background, "a device's is");
    }
}
