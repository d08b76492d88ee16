//! A file system with a past: its free space is in pieces, and old files lie between them.
//!
//! It was filled with files of all sizes, of which some were removed at random, several times over. The
//! old files are allocated and never written, so that the disk's memory holds only their metadata.

use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use rustix::fs::{FallocateFlags, StatVfs, fallocate, statvfs};
use rustix::io::Errno;

use crate::config::Aged;

/// Directories at the top, which a file system puts far apart.
const DIRECTORIES: usize = 32;
/// How often it was filled, and partly emptied.
const ROUNDS: usize = 3;
/// It was never fuller than that: the last per cent are slow to find.
const FULL_PERMILLE: u64 = 950;
/// The smallest old file.
const SIZE_MIN: u64 = 16 << 10;
/// The largest one, as a part of the disk: with it a disk of any size has some ten thousand.
const SIZE_MAX_PART: u64 = 1000;
/// Files of a round, whatever their sizes.
const FILES_MAX: usize = 100_000;

/// Fills the mounted file system, until `aged.percent` of its space are in use.
///
/// # Errors
/// One line: a file cannot be made or removed.
pub fn age(mountpoint: &Path, aged: Aged) -> Result<(), String> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(aged.seed);
    let directories: Vec<_> =
        (0..DIRECTORIES).map(|number| mountpoint.join(format!("old-{number:02}"))).collect();
    for directory in &directories {
        fs::create_dir(directory).map_err(|error| format!("{}: {error}", directory.display()))?;
    }
    let mut files: Vec<(PathBuf, u64)> = Vec::new();
    for round in 0..ROUNDS {
        let space = Space::of(mountpoint)?;
        let mut left = space.until(FULL_PERMILLE);
        for number in 0..FILES_MAX {
            let size = size(&mut random, space.bytes);
            if left < size {
                break;
            }
            let directory = &directories[random.next_u64() as usize % DIRECTORIES];
            let path = directory.join(format!("{round}-{number}"));
            if !allocate(&path, size)? {
                break;
            }
            left -= size;
            files.push((path, size));
        }
        let mut excess = Space::of(mountpoint)?.beyond(u64::from(aged.percent) * 10);
        while excess > 0 && !files.is_empty() {
            let (path, size) = files.swap_remove(random.next_u64() as usize % files.len());
            fs::remove_file(&path).map_err(|error| format!("{}: {error}", path.display()))?;
            excess = excess.saturating_sub(size);
        }
        // What was removed is free only then, in some file systems.
        rustix::fs::sync();
    }
    Ok(())
}

/// Each doubling of sizes has as many files as the next.
fn size(random: &mut Xoshiro256PlusPlus, bytes: u64) -> u64 {
    let most = (bytes / SIZE_MAX_PART).max(SIZE_MIN);
    let share = (random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
    let size = SIZE_MIN as f64 * (most as f64 / SIZE_MIN as f64).powf(share);
    (size as u64).next_multiple_of(4096)
}

/// False if there is no space for it.
fn allocate(path: &Path, size: u64) -> Result<bool, String> {
    let failed = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let file = OpenOptions::new().write(true).create_new(true).open(path).map_err(|error| failed(&error))?;
    match fallocate(&file, FallocateFlags::empty(), 0, size) {
        Ok(()) => Ok(true),
        Err(Errno::NOSPC) => {
            fs::remove_file(path).map_err(|error| failed(&error))?;
            Ok(false)
        }
        Err(error) => Err(failed(&error)),
    }
}

/// The space of a file system.
#[derive(Clone, Copy, Debug)]
struct Space {
    bytes: u64,
    used: u64,
}

impl Space {
    fn of(mountpoint: &Path) -> Result<Space, String> {
        let StatVfs { f_frsize, f_blocks, f_bfree, .. } =
            statvfs(mountpoint).map_err(|error| format!("{}: {error}", mountpoint.display()))?;
        Ok(Space { bytes: f_blocks * f_frsize, used: (f_blocks - f_bfree) * f_frsize })
    }

    /// What may be allocated until so much of it is in use.
    fn until(self, permille: u64) -> u64 {
        (self.bytes / 1000 * permille).saturating_sub(self.used)
    }

    /// What has to be freed until no more than that is in use.
    fn beyond(self, permille: u64) -> u64 {
        self.used.saturating_sub(self.bytes / 1000 * permille)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_drawn_over_all_doublings_and_the_same_seed_draws_the_same() {
        let draw = |seed| {
            let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
            (0..10_000).map(|_| size(&mut random, 1 << 40)).collect::<Vec<_>>()
        };
        let sizes = draw(1);
        assert_eq!(sizes, draw(1));
        assert_ne!(sizes, draw(2));
        assert!(
            sizes.iter().all(|size| size % 4096 == 0 && (SIZE_MIN..=(1 << 40) / 1000 + 4096).contains(size))
        );
        // 16 KiB to 1.1 GB are 16 doublings.
        let below = |bound: u64| sizes.iter().filter(|&&size| size < bound).count() as f64 / 10_000.0;
        for doublings in [4, 8, 12] {
            let share = below(SIZE_MIN << doublings);
            assert!((share - f64::from(doublings) / 16.03).abs() < 0.02, "{doublings}: {share}");
        }
    }

    #[test]
    fn space_counts_what_is_left_and_what_is_too_much() {
        let space = Space { bytes: 1_000_000, used: 600_000 };
        assert_eq!((space.until(950), space.until(500)), (350_000, 0));
        assert_eq!((space.beyond(500), space.beyond(700)), (100_000, 0));
    }
}
