//! NFS within a guest: the kernel's server exports the disk's file system, and the kernel's client mounts it
//! over the loopback device.
//!
//! The nfs-utils are not needed. `rpc.nfsd` and `exportfs` write to files of `/proc`, as here. `rpc.mountd`
//! answers the kernel's questions which client may mount what; the answers for the only client and the only
//! export are written before they are asked. `mount.nfs` looks up names; here is a number.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};

use crate::config::NfsConfig;

/// The server's settings.
const SERVER: &str = "/proc/fs/nfsd";
/// The answers of `rpc.mountd`, by question.
const ANSWERS: &str = "/proc/net/rpc";
const CLIENT: &str = "127.0.0.1";
/// The name of the client in the other answers.
const DOMAIN: &str = "blklab";
/// An answer's end, in seconds of the wall clock; that of a guest begins in 2001.
const NEVER: u32 = i32::MAX.unsigned_abs();
/// By default an export waits for neighbouring synchronous writes (`wdelay`), and root is another user.
/// `include/uapi/linux/nfsd/export.h`: `NFSEXP_GATHERED_WRITES`, `NFSEXP_NOSUBTREECHECK`, `NFSEXP_FSID`.
const FLAGS: u32 = 0x20 | 0x400 | 0x2000;
/// A user without rights, for clients without an identity.
const NOBODY: u32 = 65534;
/// A new server first lets clients claim what they had open, and opens nothing else. The kernel takes no shorter
/// time.
const GRACE_S: u64 = 10;
const GRACE_LOOKS_MAX: u32 = 100;
/// The client would choose the same.
const OPTIONS: &std::ffi::CStr = c"vers=4.1,proto=tcp,addr=127.0.0.1,clientaddr=127.0.0.1";

/// A mounted export. It is unmounted, and its server ended, when it is dropped: the file system is busy till
/// then.
pub struct Mounted {
    mountpoint: PathBuf,
}

/// Exports the file system at `exported`, and mounts it at the place in `config`.
///
/// # Errors
/// One line: the file that could not be written, or the mount that failed, and the reason.
pub fn share(exported: &Path, config: &NfsConfig) -> Result<Mounted, String> {
    mount("nfsd", SERVER, "nfsd", MountFlags::empty(), None)
        .map_err(|error| format!("mounting nfsd on {SERVER}: {error}"))?;
    let mounted = Mounted { mountpoint: config.mountpoint.clone() };
    let server = Path::new(SERVER);
    // Version 3 would need a server of its MOUNT protocol.
    tell(&server.join("versions"), b"-3\n")?;
    tell(&server.join("nfsv4gracetime"), format!("{GRACE_S}\n").as_bytes())?;
    tell(&server.join("portlist"), b"tcp 2049\n")?;
    for (question, answer) in answers(exported) {
        tell(&Path::new(ANSWERS).join(question).join("channel"), &answer)?;
    }
    tell(&server.join("threads"), format!("{}\n", config.threads).as_bytes())?;
    wait_for_grace(&server.join("v4_end_grace"))?;
    let place = &config.mountpoint;
    let failed = |error: &dyn std::fmt::Display| format!("mounting NFS on {}: {error}", place.display());
    fs::create_dir_all(place).map_err(|error| failed(&error))?;
    mount(format!("{CLIENT}:/"), place, "nfs4", MountFlags::empty(), Some(OPTIONS))
        .map_err(|error| failed(&error))?;
    Ok(mounted)
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // Without a mount there is nothing to unmount, and without a server none to end.
        if unmount(&self.mountpoint, UnmountFlags::empty()).is_err() {
            let _ = unmount(&self.mountpoint, UnmountFlags::DETACH);
        }
        let _ = tell(&Path::new(SERVER).join("threads"), b"0\n");
        for (question, _) in answers(Path::new("/")) {
            let _ = tell(&Path::new(ANSWERS).join(question).join("flush"), b"1\n");
        }
        let _ = unmount(SERVER, UnmountFlags::DETACH);
    }
}

/// Each question, and the answer. The first makes the domain known, which the others need.
fn answers(exported: &Path) -> [(&'static str, Vec<u8>); 3] {
    let path = quoted(exported);
    let with_path = |before: String, after: String| [before.as_bytes(), &path, after.as_bytes()].concat();
    [
        ("auth.unix.ip", format!("nfsd {CLIENT} {NEVER} {DOMAIN}\n").into_bytes()),
        ("nfsd.export", with_path(format!("{DOMAIN} "), format!(" {NEVER} {FLAGS} {NOBODY} {NOBODY} 0\n"))),
        // The root of all exports is the file system with the number 0 (`FSID_NUM`).
        ("nfsd.fh", with_path(format!("{DOMAIN} 1 \\x00000000 {NEVER} "), "\n".to_owned())),
    ]
}

/// A path as one word, as the kernel reads it (`qword_get`).
fn quoted(path: &Path) -> Vec<u8> {
    let mut word = Vec::new();
    for byte in path.as_os_str().as_bytes() {
        match byte {
            b' ' | b'\t' | b'\n' | b'\\' => word.extend(format!("\\{byte:03o}").bytes()),
            _ => word.push(*byte),
        }
    }
    word
}

/// Writes the whole text in one call, which the kernel's files need.
fn tell(path: &Path, text: &[u8]) -> Result<(), String> {
    let told = File::options().write(true).open(path).and_then(|mut file| file.write_all(text));
    told.map_err(|error| format!("{}: {error}", path.display()))
}

/// Waits until the server opens files for new clients.
fn wait_for_grace(file: &Path) -> Result<(), String> {
    for _ in 0..GRACE_LOOKS_MAX {
        let said = fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
        if said.starts_with('Y') {
            return Ok(());
        }
        std::thread::sleep(Duration::from_secs(1));
    }
    Err(format!("{}: the server's grace period does not end", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_is_told_one_client_and_one_export() {
        let texts = answers(Path::new("/mnt"))
            .map(|(question, answer)| (question, String::from_utf8(answer).expect("plain text")));
        assert_eq!(
            texts,
            [
                ("auth.unix.ip", "nfsd 127.0.0.1 2147483647 blklab\n".to_owned()),
                ("nfsd.export", "blklab /mnt 2147483647 9248 65534 65534 0\n".to_owned()),
                ("nfsd.fh", "blklab 1 \\x00000000 2147483647 /mnt\n".to_owned()),
            ]
        );
    }

    #[test]
    fn a_path_with_blanks_is_one_word() {
        let found = quoted(Path::new("/a b\\c\td"));
        assert_eq!(String::from_utf8_lossy(&found), "/a\\040b\\134c\\011d");
        assert_eq!(quoted(Path::new("/mnt")), b"/mnt");
    }

    #[test]
    fn a_kernel_without_a_server_is_one_line() {
        let folder = tempfile::tempdir().expect("a folder");
        let absent = folder.path().join("threads");
        let line = tell(&absent, b"8\n").unwrap_err();
        assert_eq!(line, format!("{}: No such file or directory (os error 2)", absent.display()));
        let line = wait_for_grace(&absent).unwrap_err();
        assert!(line.starts_with(&format!("{}: No such", absent.display())), "{line}");
    }

    #[test]
    fn a_server_whose_grace_has_ended_is_not_waited_for() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("v4_end_grace");
        fs::write(&file, "Y\n").expect("written");
        assert_eq!(wait_for_grace(&file), Ok(()));
    }
}
