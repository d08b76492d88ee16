//! The guest's first mounts.

use std::ffi::{CStr, CString, OsString};
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use rustix::mount::{MountFlags, UnmountFlags, mount, mount_bind, mount_remount, unmount};

/// The file systems: type, place, and whether a run can do without.
const BASE: &[(&str, &str, bool)] = &[
    ("proc", "/proc", false),
    ("sysfs", "/sys", false),
    ("devtmpfs", "/dev", false),
    // POSIX shared memory, which servers use.
    ("tmpfs", "/dev/shm", false),
    ("tmpfs", "/tmp", false),
    ("tmpfs", "/run", false),
    ("debugfs", "/sys/kernel/debug", true),
    ("tracefs", "/sys/kernel/tracing", true),
];

/// Mounts the file systems that every Linux program expects.
///
/// # Errors
/// One line: the mount that failed, and the reason.
pub fn base() -> Result<(), String> {
    // Where a user namespace isolates the guest, files of root appear as owned by `nobody`:
    // mount(8) would change its user to `nobody`.
    let flags = MountFlags::BIND | MountFlags::RDONLY | MountFlags::NOSUID;
    mount_remount("/", flags, c"").map_err(|error| format!("mounting / without set-user-ID: {error}"))?;
    for (kind, place, optional) in BASE {
        // Among devices it is missing.
        if !Path::new(place).exists() {
            let _ = fs::create_dir(place);
        }
        match mount(*kind, *place, *kind, MountFlags::empty(), None) {
            // The kernel may have mounted devtmpfs itself.
            Ok(()) | Err(Errno::BUSY) => {}
            Err(Errno::NODEV | Errno::NOENT) if *optional => {}
            Err(error) => return Err(format!("mounting {kind} on {place}: {error}")),
        }
    }
    Ok(())
}

/// Makes a directory of the host visible at its own path, even if a mount hides it.
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
    let flags = flags | MountFlags::NOSUID;
    mount("none", directory, "hostfs", flags, Some(path.as_c_str())).map_err(|error| fail(&error))
}

/// Where the host's view is mounted while its files are made visible.
const VIEW: &str = "/run/blklab-view";

/// Makes files of the host visible at their own paths, even if a mount hides them.
///
/// # Errors
/// One line.
pub fn host_files(files: &[PathBuf]) -> Result<(), String> {
    if files.is_empty() {
        return Ok(());
    }
    let view = Path::new(VIEW);
    let fail = |path: &Path, error: &dyn std::fmt::Display| {
        format!("showing the host's {}: {error}", path.display())
    };
    fs::create_dir_all(view).map_err(|error| fail(view, &error))?;
    let flags = MountFlags::RDONLY | MountFlags::NOSUID;
    mount("none", view, "hostfs", flags, None).map_err(|error| fail(view, &error))?;
    for file in files {
        let show = || {
            let inside =
                file.strip_prefix("/").map_err(|_| std::io::Error::other("the path is not absolute"))?;
            fs::create_dir_all(file.parent().unwrap_or(Path::new("/")))?;
            fs::File::create(file)?;
            mount_bind(view.join(inside), file).map_err(std::io::Error::from)
        };
        show().map_err(|error| fail(file, &error))?;
    }
    unmount(view, UnmountFlags::DETACH).map_err(|error| fail(view, &error))
}

/// Options of mount(8) that are flags of mount(2), and no file system's.
const FLAGS: &[(&str, MountFlags)] = &[
    ("dirsync", MountFlags::DIRSYNC),
    ("lazytime", MountFlags::LAZYTIME),
    ("noatime", MountFlags::NOATIME),
    ("nodev", MountFlags::NODEV),
    ("nodiratime", MountFlags::NODIRATIME),
    ("noexec", MountFlags::NOEXEC),
    ("nosuid", MountFlags::NOSUID),
    ("relatime", MountFlags::RELATIME),
    ("strictatime", MountFlags::STRICTATIME),
    ("sync", MountFlags::SYNCHRONOUS),
];

/// Mounts the disk; `options` as of mount(8).
///
/// # Errors
/// One line, with the file system's own words if it has said some.
pub fn disk(device: &Path, place: &Path, kind: &str, options: &str) -> Result<(), String> {
    let fail = |error: &dyn std::fmt::Display| format!("mounting {kind} on {}: {error}", place.display());
    fs::create_dir_all(place).map_err(|error| fail(&error))?;
    let (flags, own) = flags_and_own(options);
    let own = CString::new(own).map_err(|error| fail(&error))?;
    let data: &CStr = own.as_c_str();
    let mounted = mount(device, place, kind, flags, Some(data));
    mounted.map_err(|error| fail(&words_of_kernel(kind).unwrap_or_else(|| error.to_string())))
}

/// The flags among options, and the others.
fn flags_and_own(options: &str) -> (MountFlags, String) {
    let (mut flags, mut own) = (MountFlags::empty(), Vec::new());
    for option in options.split(',').filter(|option| !option.is_empty()) {
        match FLAGS.iter().find(|(name, _)| *name == option) {
            Some((_, flag)) => flags |= *flag,
            None => own.push(option),
        }
    }
    (flags, own.join(","))
}

/// The last message of that file system in the kernel's log.
fn words_of_kernel(kind: &str) -> Option<String> {
    use std::io::Read;
    use std::os::unix::fs::OpenOptionsExt;
    let flags = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let mut log = fs::File::options().read(true).custom_flags(flags).open("/dev/kmsg").ok()?;
    let (mut record, mut last) = (vec![0; 8192], None);
    loop {
        match log.read(&mut record) {
            Ok(0) | Err(_) => return last,
            Ok(length) => last = said(&String::from_utf8_lossy(&record[..length]), kind).or(last),
        }
    }
}

/// The text of a record of `/dev/kmsg` (`priority,number,time,flags;TEXT`) if it is that file system's.
fn said(record: &str, kind: &str) -> Option<String> {
    let text = record.split_once(';')?.1.lines().next()?;
    let is_ours = text.get(..kind.len()).is_some_and(|head| head.eq_ignore_ascii_case(kind));
    is_ours.then(|| text.trim().to_owned())
}

/// The mountpoints of the disk and its partitions, the latest first.
pub fn of_disk(device: &Path) -> Vec<PathBuf> {
    places(&fs::read("/proc/self/mounts").unwrap_or_default(), device.as_os_str().as_bytes())
}

/// The options of the mount at `place`, as the kernel tells them; empty if there is none.
pub fn options(place: &Path) -> String {
    let table = fs::read("/proc/self/mounts").unwrap_or_default();
    let of = |line: &[u8]| {
        let words: Vec<_> = line.split(|byte| *byte == b' ').collect();
        let [_, at, _, options, ..] = words[..] else { return None };
        (unescaped(at) == place.as_os_str().as_bytes()).then(|| String::from_utf8_lossy(options).into_owned())
    };
    table.split(|byte| *byte == b'\n').rev().find_map(of).unwrap_or_default()
}

fn places(mounts: &[u8], device: &[u8]) -> Vec<PathBuf> {
    let place = |line: &[u8]| {
        let mut words = line.split(|byte| *byte == b' ');
        let ours = words.next()?.starts_with(device);
        ours.then(|| PathBuf::from(OsString::from_vec(unescaped(words.next().unwrap_or_default()))))
    };
    mounts.split(|byte| *byte == b'\n').rev().filter_map(place).collect()
}

/// Decodes escapes: a table of mounts writes a blank as `\040`.
fn unescaped(text: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&first, others)) = rest.split_first() {
        let digits = others.get(..3).and_then(|digits| std::str::from_utf8(digits).ok());
        let code = digits.and_then(|digits| u8::from_str_radix(digits, 8).ok());
        match code {
            Some(code) if first == b'\\' => {
                plain.push(code);
                rest = &others[3..];
            }
            _ => {
                plain.push(first);
                rest = others;
            }
        }
    }
    plain
}

/// The kernel's command line.
///
/// # Errors
/// One line: it cannot be read.
pub fn command_line() -> Result<String, String> {
    fs::read_to_string("/proc/cmdline").map_err(|error| format!("/proc/cmdline: {error}"))
}

/// The run directory, from the kernel's command line.
///
/// # Errors
/// One line: there is none.
pub fn run_directory() -> Result<PathBuf, String> {
    let line = command_line()?;
    let found = line.split_whitespace().find_map(|word| word.strip_prefix("blklab.run="));
    found.map(PathBuf::from).ok_or_else(|| "the kernel's command line has no blklab.run=DIRECTORY".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_all_file_systems_are_flags() {
        let (flags, own) = flags_and_own("noatime,data=journal,,sync,barrier=0");
        assert_eq!(flags, MountFlags::NOATIME | MountFlags::SYNCHRONOUS);
        assert_eq!(own, "data=journal,barrier=0");
        assert_eq!(flags_and_own(""), (MountFlags::empty(), String::new()));
    }

    #[test]
    fn a_file_systems_own_words_are_found_in_the_log() {
        let record = "3,104,5,-;EXT4-fs (sda): Unrecognized mount option \"x\"\n SUBSYSTEM=block\n";
        assert_eq!(said(record, "ext4").as_deref(), Some("EXT4-fs (sda): Unrecognized mount option \"x\""));
        assert_eq!(said(record, "xfs"), None);
        assert_eq!(said("6,1,2,-;ab", "ext4"), None);
    }

    #[test]
    fn a_disks_mounts_are_found_the_latest_first() {
        let table = b"proc /proc proc rw 0 0\n/dev/ublkb0 /mnt ext4 rw 0 0\n\
            /dev/ublkb0p1 /a\\040b\\134 xfs rw 0 0\nublkb0 /c tmpfs rw 0 0\n";
        let found = places(table, b"/dev/ublkb0");
        assert_eq!(found, [Path::new("/a b\\"), Path::new("/mnt")]);
    }
}
