//! Direct I/O as if it were to files in a file system.
//!
//! The host's files lie in a file system (`partitions=0`), a guest's on the bare disk. All that the block layer
//! sees of the difference is that each direct I/O has a plug of its own, but for reads of a block in some file
//! systems, and how a write is made durable. A process does both itself: `io_submit()` has a plug
//! for a list of more than two. So a process that waits for each I/O submits it in that way, too.
//!
//! Not with io_uring: its plug takes requests for all entries of the list in advance.

use blklab_core::host::Host;
use blklab_core::workload::pattern::IoUnit;
use blklab_core::workload::plan::{FileKind, FilePlan};
use blklab_core::workload::spec::{Direction, Engine, Queueing, SyncMode};

/// A block of the file systems.
const BLOCK_BYTES: u32 = 4096;

/// What the file system and the disk do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AsFiles {
    /// A read of a block has no plug.
    reads_blocks_without_plug: bool,
    /// A write with FUA needs no flush after it.
    has_fua: bool,
}

/// How a write becomes durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Durable {
    /// The write itself is durable.
    pub itself: bool,
    /// A flush follows it.
    pub flushed: bool,
}

impl AsFiles {
    /// None if the host's files are partitions. `has_fua`: the disk has FUA, or no volatile write cache.
    pub fn of(host: &Host, has_fua: bool) -> Option<AsFiles> {
        let reads_blocks_without_plug = host.reads_blocks_without_plug();
        (!host.partitions).then_some(AsFiles { reads_blocks_without_plug, has_fua })
    }

    /// Whether a process with these options can do it: its I/O is direct, and not by io_uring.
    pub fn fits(queueing: &Queueing) -> bool {
        queueing.direct && queueing.engine != Engine::IoUring
    }

    /// The I/O has a plug of its own.
    pub fn plugs(self, unit: &IoUnit, file: &FilePlan) -> bool {
        let is_simple = unit.direction == Direction::Read && unit.len <= BLOCK_BYTES;
        file.kind == FileKind::Regular && !(is_simple && self.reads_blocks_without_plug)
    }

    /// A write by a call that waits. In a file O_DSYNC is a write with FUA where no flush would follow it,
    /// and O_SYNC never is; to a device a durable write is flushed after in any case.
    pub fn durable(self, mode: SyncMode, file: &FilePlan) -> Durable {
        let is_durable = mode != SyncMode::None;
        let is_device = file.kind == FileKind::Device;
        let itself = is_durable && (is_device || (mode == SyncMode::Dsync && self.has_fua));
        Durable { itself, flushed: is_durable && (is_device || !itself) }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::plan;
    use super::*;

    const FILE: AsFiles = AsFiles { reads_blocks_without_plug: true, has_fua: false };

    fn unit(direction: Direction, len: u32) -> IoUnit {
        IoUnit { direction, wrapped: false, file: 0, len, offset: 0 }
    }

    fn file(name: &str) -> FilePlan {
        plan(&format!("[a]\nrw=write\nsize=1m\nfilename={name}\n")).files.remove(0)
    }

    #[test]
    fn each_io_of_a_file_but_a_read_of_a_block_has_a_plug_and_none_of_a_device() {
        let (regular, device) = (file("f"), file("/dev/sdz"));
        assert!(!FILE.plugs(&unit(Direction::Read, 4096), &regular));
        assert!(FILE.plugs(&unit(Direction::Read, 8192), &regular));
        assert!(FILE.plugs(&unit(Direction::Write, 4096), &regular));
        assert!(!FILE.plugs(&unit(Direction::Write, 4096), &device));
        let before_7 = AsFiles { reads_blocks_without_plug: false, ..FILE };
        assert!(before_7.plugs(&unit(Direction::Read, 4096), &regular));
    }

    #[test]
    fn a_durable_write_is_flushed_or_has_fua_as_in_a_file_system() {
        let (regular, device) = (file("f"), file("/dev/sdz"));
        let fua = AsFiles { has_fua: true, ..FILE };
        let [neither, itself, flushed, both] = [(false, false), (true, false), (false, true), (true, true)]
            .map(|(itself, flushed)| Durable { itself, flushed });
        for (how, mode, file, expected) in [
            (FILE, SyncMode::None, &regular, neither),
            (FILE, SyncMode::None, &device, neither),
            (FILE, SyncMode::Dsync, &regular, flushed),
            (fua, SyncMode::Dsync, &regular, itself),
            (fua, SyncMode::Sync, &regular, flushed),
            (FILE, SyncMode::Dsync, &device, both),
        ] {
            assert_eq!(how.durable(mode, file), expected, "{how:?} {mode:?} {:?}", file.kind);
        }
    }

    #[test]
    fn a_host_of_partitions_has_no_such_files() {
        let mut settings = Host::settings();
        assert_eq!(AsFiles::of(&Host::new(&settings), false), Some(FILE));
        settings.set("kernel", "6012").expect("a version");
        let before_7 = AsFiles { reads_blocks_without_plug: false, has_fua: true };
        assert_eq!(AsFiles::of(&Host::new(&settings), true), Some(before_7));
        settings.set("partitions", "1").expect("a good value");
        assert_eq!(AsFiles::of(&Host::new(&settings), false), None);
    }
}
