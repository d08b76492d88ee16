//! What the guest mounts before anything else.

use std::ffi::{CStr, CString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use rustix::mount::{MountFlags, mount};

/// Where each file system goes: type, place, and whether a run can do without.
const BASE: &[(&str, &str, bool)] = &[
    ("proc", "/proc", false),
    ("sysfs", "/sys", false),
    ("devtmpfs", "/dev", false),
    ("tmpfs", "/tmp", false),
    ("tmpfs", "/run", false),
    ("debugfs", "/sys/kernel/debug", true),
    ("tracefs", "/sys/kernel/tracing", true),
];

/// Mount what every Linux program expects.
///
/// # Errors
/// One line: what could not be mounted, and why.
pub fn base() -> Result<(), String> {
    for (kind, place, optional) in BASE {
        match mount(*kind, *place, *kind, MountFlags::empty(), None) {
            // The kernel may have mounted devtmpfs itself.
            Ok(()) | Err(Errno::BUSY) => {}
            Err(Errno::NODEV | Errno::NOENT) if *optional => {}
            Err(error) => return Err(format!("mounting {kind} on {place}: {error}")),
        }
    }
    Ok(())
}

/// Make a directory of the host visible at its own path, whatever hides it.
///
/// # Errors
/// One line.
pub fn host_directory(directory: &Path, writable: bool) -> Result<(), String> {
    let fail =
        |error: &dyn std::fmt::Display| format!("mounting the host's {}: {error}", directory.display());
    if !directory.is_absolute() {
        return Err(fail(&"the path is not absolute"));
    }
    if !directory.is_dir() {
        fs::create_dir_all(directory).map_err(|error| fail(&error))?;
    }
    let path = CString::new(directory.as_os_str().as_bytes()).map_err(|error| fail(&error))?;
    let flags = if writable { MountFlags::empty() } else { MountFlags::RDONLY };
    mount("none", directory, "hostfs", flags, Some(path.as_c_str())).map_err(|error| fail(&error))
}

/// Mount the disk.
///
/// # Errors
/// One line.
pub fn disk(device: &Path, place: &Path, kind: &str, options: &str) -> Result<(), String> {
    let fail = |error: &dyn std::fmt::Display| format!("mounting {kind} on {}: {error}", place.display());
    fs::create_dir_all(place).map_err(|error| fail(&error))?;
    let options = CString::new(options).map_err(|error| fail(&error))?;
    let data: &CStr = options.as_c_str();
    mount(device, place, kind, MountFlags::empty(), Some(data)).map_err(|error| fail(&error))
}

/// The run directory, from the kernel's command line.
///
/// # Errors
/// One line: there is none.
pub fn run_directory() -> Result<PathBuf, String> {
    let line = fs::read_to_string("/proc/cmdline").map_err(|error| format!("/proc/cmdline: {error}"))?;
    let found = line.split_whitespace().find_map(|word| word.strip_prefix("blklab.run="));
    found.map(PathBuf::from).ok_or_else(|| "the kernel's command line has no blklab.run=DIRECTORY".to_owned())
}
