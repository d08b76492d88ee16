//! The cgroups of a load in the kernel: of a job file, and of recorded I/O.
//!
//! They are in the hierarchy of version 1. There a single thread can be in a cgroup, as the native
//! driver's processes need, and processes may be in a cgroup that has child cgroups, as fio's may.
//! fio 3.33 supports it too; in version 2 it refuses a weight. Since Linux 5.0 fio cannot write a
//! weight in version 1 either (it writes `blkio.weight`, which was CFQ's), so the weights of both
//! drivers are written here.

use std::fs::{self, DirBuilder};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use blklab_core::workload::cgroups::Cgroups;
use rustix::mount::{MountFlags, mount};

/// The mountpoint of the hierarchy: short, because fio keeps a cgroup's path in 64 bytes.
const PLACE: &str = "/run/cgroup";

/// The files from which a scheduler reads a weight: bfq's, and that of a scheduler in the place of
/// CFQ.
const WEIGHTS: &[&str] = &["blkio.bfq.weight", "blkio.weight"];

/// Mounts the hierarchy and creates these cgroups; nothing if all processes are in the root. Returns the
/// kernel's number of each with its path, which begins with a slash.
///
/// # Errors
/// One line.
pub fn make(cgroups: &Cgroups) -> Result<Vec<(u64, String)>, String> {
    if !cgroups.has_any() {
        return Ok(Vec::new());
    }
    let mounted = fs::create_dir_all(PLACE).and_then(|()| {
        mount("cgroup", PLACE, "cgroup", MountFlags::empty(), Some(c"blkio")).map_err(Into::into)
    });
    mounted
        .map_err(|error: io::Error| format!("mounting the cgroups' blkio hierarchy on {PLACE}: {error}"))?;
    let mut numbers = Vec::new();
    for cgroup in cgroups.all() {
        let create = || -> io::Result<u64> {
            if !cgroup.path.is_empty() {
                DirBuilder::new().mode(0o755).create(place(&cgroup.path))?;
                weigh(&cgroup.path, cgroup.group.weight)?;
            }
            // The kernel's number of a cgroup is that of its directory.
            Ok(fs::metadata(place(&cgroup.path))?.ino())
        };
        let number = create().map_err(|error| format!("cgroup {}: {error}", cgroup.path))?;
        numbers.push((number, format!("/{}", cgroup.path)));
    }
    Ok(numbers)
}

/// Moves the calling thread, which is in the root or was moved before, into the cgroup of that path.
pub fn enter(path: &str) -> io::Result<()> {
    write(&place(path).join("tasks"), "0")
}

fn place(path: &str) -> PathBuf {
    Path::new(PLACE).join(path)
}

fn weigh(path: &str, weight: u16) -> io::Result<()> {
    for name in WEIGHTS {
        match write(&place(path).join(name), &weight.to_string()) {
            // No scheduler of this kernel reads it.
            Err(error) if matches!(error.kind(), ErrorKind::NotFound) => {}
            result => result?,
        }
    }
    Ok(())
}

/// Writes to an existing file: the kernel does not allow new ones.
fn write(path: &Path, text: &str) -> io::Result<()> {
    use io::Write;
    fs::OpenOptions::new().write(true).open(path)?.write_all(text.as_bytes())
}
