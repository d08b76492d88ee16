//! The plan's cgroups in the kernel.
//!
//! They are in the hierarchy of version 1. There a single thread can be in a cgroup, as the native
//! driver's processes need, and processes may be in a cgroup that has child cgroups, as fio's may.
//! fio 3.33 supports it too; in version 2 it refuses a weight. Since Linux 5.0 fio cannot write a
//! weight in version 1 either (it writes `blkio.weight`, which was CFQ's), so the weights of both
//! drivers are written here.

use std::fs::{self, DirBuilder};
use std::io::{self, ErrorKind};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use blklab_core::workload::plan::{Plan, ProcessSpec};
use rustix::mount::{MountFlags, mount};

/// The mountpoint of the hierarchy: short, because fio keeps a cgroup's path in 64 bytes.
const PLACE: &str = "/run/cgroup";

/// The files from which a scheduler reads a weight: bfq's, and that of a scheduler in the place of
/// CFQ.
const WEIGHTS: &[&str] = &["blkio.bfq.weight", "blkio.weight"];

/// Mounts the hierarchy and creates the plan's cgroups; nothing if all processes are in the root.
///
/// # Errors
/// One line.
pub fn make(plan: &Plan) -> Result<(), String> {
    if plan.cgroups.len() < 2 {
        return Ok(());
    }
    let mounted = fs::create_dir_all(PLACE).and_then(|()| {
        mount("cgroup", PLACE, "cgroup", MountFlags::empty(), Some(c"blkio")).map_err(Into::into)
    });
    mounted
        .map_err(|error: io::Error| format!("mounting the cgroups' blkio hierarchy on {PLACE}: {error}"))?;
    for cgroup in plan.cgroups.iter().filter(|cgroup| !cgroup.path.is_empty()) {
        let made = DirBuilder::new().mode(0o755).create(place(&cgroup.path));
        made.and_then(|()| weigh(&cgroup.path, cgroup.group.weight))
            .map_err(|error| format!("cgroup {}: {error}", cgroup.path))?;
    }
    Ok(())
}

/// Moves the calling thread into the cgroup of `spec`.
pub fn enter(plan: &Plan, spec: &ProcessSpec) -> io::Result<()> {
    let path = &plan.cgroups[usize::from(spec.cgroup.0)].path;
    if path.is_empty() { Ok(()) } else { write(&place(path).join("tasks"), "0") }
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
