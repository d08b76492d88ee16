//! The file system of a guest's disk: as an old one, which does nothing by itself while it is not used.

use std::fs;
use std::path::Path;

use rustix::mount::{UnmountFlags, unmount};
use serde::Serialize;

use crate::aged;
use crate::config::{FileSystem, FileSystemKind};
use crate::mounts;
use crate::program;

/// A mounted file system.
#[derive(Debug, Serialize)]
pub struct MountFound {
    /// Its type.
    pub kind: String,
    /// Its options.
    pub options: String,
}

/// The seed of the hashes decides about the block groups of directories: with one of our own, a program
/// that runs twice has its files in the same places.
const EXT4_OPTIONS: &str = "nodiscard,hash_seed=b1c1ab00-0000-4000-8000-000000000001";

/// Type, arguments of mkfs, and options of the mount. For a fast start no mkfs discards the whole disk
/// first.
fn own(kind: FileSystemKind) -> (&'static str, &'static [&'static str], &'static str) {
    match kind {
        // While the disk is used no inode tables are written and no block bitmaps read ahead: an old file
        // system has both.
        FileSystemKind::Ext4 => {
            ("ext4", &["-q", "-F", "-E", EXT4_OPTIONS], "noinit_itable,no_prefetch_block_bitmaps")
        }
        FileSystemKind::Xfs => ("xfs", &["-q", "-f", "-K"], ""),
        FileSystemKind::Btrfs => ("btrfs", &["-q", "-f", "-K"], ""),
        FileSystemKind::F2fs => ("f2fs", &["-q", "-f", "-t", "0"], ""),
    }
}

/// Makes the file system, and mounts it once: what the first mount of a new one does is done then, and an
/// old one gets its files.
///
/// # Errors
/// One line: mkfs cannot be started, or its last message; or the kernel cannot mount it.
pub fn make(directory: &Path, file_system: &FileSystem, device: &Path) -> Result<(), String> {
    let (kind, arguments, _) = own(file_system.kind);
    let mut words = vec![format!("mkfs.{kind}")];
    words.extend(arguments.iter().map(|word| (*word).to_owned()));
    words.extend(file_system.mkfs_options.iter().cloned());
    words.push(device.display().to_string());
    let ended = program::run("mkfs", &words, [], directory, directory)?;
    if !ended.is_good() {
        let text = fs::read_to_string(directory.join("mkfs.stderr")).unwrap_or_default();
        let line = text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("no message");
        return Err(format!("mkfs.{kind} failed: {line}"));
    }
    mount(file_system, device)?;
    let place = &file_system.mountpoint;
    if let Some(aged) = file_system.aged {
        aged::age(place, aged)?;
    }
    unmount(place, UnmountFlags::empty()).map_err(|error| format!("unmounting {}: {error}", place.display()))
}

/// Mounts one that was in use before.
///
/// # Errors
/// One line.
pub fn mount(file_system: &FileSystem, device: &Path) -> Result<MountFound, String> {
    let (kind, _, options) = own(file_system.kind);
    let options: Vec<_> =
        [options, &file_system.mount_options].into_iter().filter(|text| !text.is_empty()).collect();
    mounts::disk(device, &file_system.mountpoint, kind, &options.join(","))?;
    rustix::fs::sync();
    Ok(MountFound { kind: kind.to_owned(), options: mounts::options(&file_system.mountpoint) })
}
