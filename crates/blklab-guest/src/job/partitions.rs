//! The plan's files as partitions of the disk, each at its place in the simulator.

use std::path::Path;
use std::process::Command;

use blklab_core::device::{DeviceId, Layout, PlacedFile};
use blklab_core::units::Sector;
use blklab_core::workload::plan::{FileKind, Plan};

/// The maximum of partitions of a disk in Linux (`DISK_MAX_PARTS`).
const PARTITIONS_MAX: usize = 256;

/// Adds them to the kernel, without a partition table on the disk. Returns the path of each file:
/// its partition, or the disk where the job names a device.
///
/// # Errors
/// One line: too many files, or the kernel refused.
pub fn make(device: &Path, plan: &Plan, capacity: Sector) -> Result<Vec<String>, String> {
    let regular = plan.files.iter().filter(|file| file.kind == FileKind::Regular).count();
    if regular >= PARTITIONS_MAX {
        return Err(format!(
            "{regular} files: the kernel rig has at most {}, for each is a partition; the sim rig takes more",
            PARTITIONS_MAX - 1
        ));
    }
    let device = device.display().to_string();
    let mut number = 0;
    let mut paths = Vec::with_capacity(plan.files.len());
    let layout = Layout::in_a_row(&plan.files, DeviceId(0), capacity);
    for (file, placed) in plan.files.iter().zip(layout.files()) {
        match file.kind {
            FileKind::Device => paths.push(device.clone()),
            FileKind::Regular => {
                number += 1;
                add(&device, number, placed)?;
                paths.push(name(&device, number));
            }
        }
    }
    Ok(paths)
}

/// A partition's path: a number comes after a `p` (`disk_name()`).
fn name(device: &str, number: u32) -> String {
    let separator = if device.ends_with(|last: char| last.is_ascii_digit()) { "p" } else { "" };
    format!("{device}{separator}{number}")
}

fn add(device: &str, number: u32, file: &PlacedFile) -> Result<(), String> {
    let (start, sectors) = (file.start().0, file.size.sectors());
    let words = [number.to_string(), start.to_string(), sectors.to_string()];
    let output = Command::new("addpart")
        .arg(device)
        .args(words)
        .output()
        .map_err(|error| format!("addpart (of util-linux): {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&output.stderr);
    let text = text.trim();
    Err(format!("partition {number} of {sectors} sectors at sector {start} of {device}: {text}"))
}

#[cfg(test)]
mod tests {
    use super::name;

    #[test]
    fn a_partition_is_called_as_the_kernel_calls_it() {
        assert_eq!(name("/dev/ublkb0", 1), "/dev/ublkb0p1");
        assert_eq!(name("/dev/nvme0n1", 12), "/dev/nvme0n1p12");
        assert_eq!(name("/dev/sda", 3), "/dev/sda3");
    }
}
