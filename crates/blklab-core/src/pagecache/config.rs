//! The page cache's settings: sysctls of `/proc/sys/vm`, the queues' read-ahead, the memory.

use super::{Kept, PAGE_BYTES};
use crate::kernel::Kernel;
use crate::ticks::Ticks;
use crate::tunable::{Settings, Tunable, Unit};
use crate::units::{Bytes, Nanos};

/// The page cache's settings.
pub const TUNABLES: &[Tunable] = &[
    Tunable {
        name: "memory_kb",
        unit: Unit::Kibibytes,
        default: 8 * 1024 * 1024,
        min: 16 * 1024,
        max: 16 * 1024 * 1024 * 1024,
        help: "memory that the page cache may fill (MemAvailable of an idle machine)",
    },
    Tunable {
        name: "dirty_background_ratio",
        unit: Unit::Percent,
        default: 10,
        min: 0,
        max: 100,
        help: "part of that memory that may be dirty before the flusher starts to write",
    },
    Tunable {
        name: "dirty_background_bytes",
        unit: Unit::Bytes,
        default: 0,
        min: 0,
        max: i64::MAX,
        help: "the same as a size; 0: use dirty_background_ratio",
    },
    Tunable {
        name: "dirty_ratio",
        unit: Unit::Percent,
        default: 20,
        min: 0,
        max: 100,
        help: "part of that memory that may be dirty or being written before writers are blocked",
    },
    Tunable {
        name: "dirty_bytes",
        unit: Unit::Bytes,
        default: 0,
        min: 0,
        max: i64::MAX,
        help: "the same as a size; 0: use dirty_ratio",
    },
    Tunable {
        name: "dirty_expire_centisecs",
        unit: Unit::Centiseconds,
        default: 3000,
        min: 0,
        max: i32::MAX as i64,
        help: "a file that has been dirty for longer is written back",
    },
    Tunable {
        name: "dirty_writeback_centisecs",
        unit: Unit::Centiseconds,
        default: 500,
        min: 0,
        max: i32::MAX as i64,
        help: "how often the flusher looks for such files; 0: never",
    },
];

/// The page cache's settings for memory and writeback.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryConfig {
    /// Memory that the page cache may fill.
    pub memory: Bytes,
    /// Percent of it that may be dirty before background writeback starts.
    pub dirty_background_ratio: u32,
    /// The same as a size, unless zero.
    pub dirty_background: Bytes,
    /// Percent of it that may be dirty or under writeback before writers are blocked.
    pub dirty_ratio: u32,
    /// The same as a size, unless zero.
    pub dirty: Bytes,
    /// A file that is dirty for longer is written back.
    pub dirty_expire: Nanos,
    /// How often the flusher looks for such files; zero for never.
    pub dirty_writeback: Nanos,
    /// The kernel's own clock, which sets writers' pauses.
    pub ticks: Ticks,
    /// CPUs, each of which counts some pages before all see them.
    pub cpus: u16,
    /// The cache of a file may have folios of several pages. Here they only set where read-ahead ends; all
    /// else is done page by page.
    pub large_folios: bool,
    /// Pages that each device's file system has written when it was mounted, of which it has a share of the
    /// limits from the start.
    pub written_by_mount: u64,
    /// What the kernel keeps for pages beside them.
    pub kept: Kept,
    /// What the host's version of Linux does.
    pub kernel: Kernel,
}

/// The page cache's settings for a backing device: a disk, or a volume of several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackingConfig {
    /// Largest read-ahead window (`bdi->ra_pages`).
    pub read_ahead: Bytes,
    /// The largest request; one large read may be read ahead up to this size (`bdi->io_pages`,
    /// from `max_sectors_kb`).
    pub max_io: Bytes,
}

impl MemoryConfig {
    /// The table at its defaults.
    pub fn settings() -> Settings {
        Settings::defaults("page cache", TUNABLES)
    }

    /// From settings of the table in [`TUNABLES`], and the ticks, CPUs and kernel of the host.
    pub fn new(settings: &Settings, ticks: Ticks, cpus: u16, kernel: Kernel) -> MemoryConfig {
        // The table's bounds keep every value non-negative.
        let get = |name| settings.get(name).unsigned_abs();
        let centiseconds = |name| Nanos::from_millis(get(name) * 10);
        MemoryConfig {
            memory: Bytes::from_kib(get("memory_kb")),
            dirty_background_ratio: get("dirty_background_ratio") as u32,
            dirty_background: Bytes(get("dirty_background_bytes")),
            dirty_ratio: get("dirty_ratio") as u32,
            dirty: Bytes(get("dirty_bytes")),
            dirty_expire: centiseconds("dirty_expire_centisecs"),
            dirty_writeback: centiseconds("dirty_writeback_centisecs"),
            ticks,
            cpus,
            large_folios: true,
            written_by_mount: 0,
            kept: Kept::default(),
            kernel,
        }
    }

    /// Background threshold and hard limit in pages (`domain_dirty_limits`). Dirty pages are part
    /// of the memory that is counted, so both are constant.
    pub(super) fn dirty_limits(&self) -> (u64, u64) {
        let available = self.memory.0 / PAGE_BYTES + 1;
        let limit = |size: Bytes, ratio: u32| match size.0 {
            0 => u64::from(ratio) * PAGE_BYTES / 100 * available / PAGE_BYTES,
            bytes => bytes.div_ceil(PAGE_BYTES),
        };
        let hard = limit(self.dirty, self.dirty_ratio).min(u64::from(u32::MAX));
        let background = limit(self.dirty_background, self.dirty_background_ratio);
        (if background >= hard { hard / 2 } else { background }, hard)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_the_kernels() {
        let config = MemoryConfig::new(&MemoryConfig::settings(), Ticks::per_second(1000), 4, Kernel::LATEST);
        assert_eq!(config.dirty_expire, Nanos::from_secs(30));
        assert_eq!(config.dirty_writeback, Nanos::from_secs(5));
        // 8 GiB are 2,097,152 pages (+ 1); 10 % are 409/4096 of them, 20 % 819/4096.
        assert_eq!(config.dirty_limits(), (209_408, 419_328));
    }

    #[test]
    fn sizes_replace_ratios_and_the_background_stays_below_the_limit() {
        let mut config =
            MemoryConfig::new(&MemoryConfig::settings(), Ticks::per_second(1000), 4, Kernel::LATEST);
        config.dirty = Bytes::from_mib(4);
        assert_eq!(config.dirty_limits(), (512, 1024));
        config.dirty_background = Bytes::from_mib(1);
        assert_eq!(config.dirty_limits(), (256, 1024));
    }
}
