//! CPU work of programs that takes time: see `cpu.patch` of the kernel.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::program;

/// The parameters of a kernel that can do it.
const PARAMETERS: &str = "/sys/module/time/parameters";
/// The one that switches it on.
const SWITCH: &str = "cpu_permille";

/// Time that CPU work of programs took, ns of the guest's clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Charged {
    /// In user mode.
    pub user_ns: u64,
    /// In the kernel, for their system calls and page faults.
    pub kernel_ns: u64,
}

/// The first argument of this program for [`calibrate`].
pub const CALIBRATE: &str = "calibrate-cpu";

/// System calls, or page faults, of a calibration, and the number of calibrations, of which the median
/// counts.
const CALLS: u64 = 1000;
const PAGE_BYTES: usize = 4096;
const ROUNDS: usize = 5;

/// CPU work takes time until this ends.
#[derive(Debug)]
pub struct Charging {
    directory: PathBuf,
    before: Charged,
}

/// Prepares the kernel for [`begin`]: measures in a process what a system call takes that does nothing,
/// and what a page fault takes of the process's time, which is not charged later. Nothing if CPU work is to take no time, or if the kernel cannot do it.
///
/// # Errors
/// One line.
pub fn prepare(permille: u32, directory: &Path) -> Result<(), String> {
    let parameters = Path::new(PARAMETERS);
    if permille == 0 || !can(parameters) {
        return Ok(());
    }
    write(parameters, SWITCH, 1000)?;
    let words = ["/proc/self/exe", CALIBRATE].map(str::to_owned);
    let ended = program::run(CALIBRATE, &words, [], Path::new("/"), directory);
    write(parameters, SWITCH, 0)?;
    match ended? {
        ended if ended.is_good() => Ok(()),
        _ => Err(format!("{CALIBRATE}: failed")),
    }
}

/// What [`prepare`] runs: tells the kernel what a system call and a page fault take of a process's CPU
/// time and a system call of the kernel's, which is not charged.
///
/// # Errors
/// One line.
pub fn calibrate() -> Result<(), String> {
    let directory = Path::new(PARAMETERS);
    let call = || {
        for _ in 0..CALLS {
            std::hint::black_box(rustix::process::getppid());
        }
    };
    let (user_ns, kernel_ns) = of_a_stay(directory, call)?;
    write(directory, "cpu_less_user_ns", user_ns)?;
    write(directory, "cpu_less_kernel_ns", kernel_ns)?;
    // Freed memory would be used again, without faults.
    let mut kept = Vec::with_capacity(ROUNDS);
    let fault = || {
        let mut pages = vec![0_u8; CALLS as usize * PAGE_BYTES];
        for page in pages.chunks_mut(PAGE_BYTES) {
            std::hint::black_box(page)[0] = 1;
        }
        kept.push(pages);
    };
    write(directory, "cpu_less_mapped_ns", of_a_stay(directory, fault)?.0)
}

/// The medians over the rounds of what a stay in user mode is charged there and in the kernel, ns.
fn of_a_stay(directory: &Path, mut work: impl FnMut()) -> Result<(u32, u32), String> {
    let mut rounds = Vec::with_capacity(ROUNDS);
    for _ in 0..ROUNDS {
        let (before, stays) = (charged(directory)?, read(directory, "cpu_stays")?);
        work();
        let (after, stays) = (charged(directory)?, read(directory, "cpu_stays")? - stays);
        let of_stay = |after: u64, before: u64| (after - before) / stays.max(1);
        rounds.push((of_stay(after.user_ns, before.user_ns), of_stay(after.kernel_ns, before.kernel_ns)));
    }
    let median = |mut values: Vec<u64>| {
        values.sort_unstable();
        u32::try_from(values[ROUNDS / 2]).unwrap_or(u32::MAX)
    };
    let user = rounds.iter().map(|(user, _)| *user).collect();
    Ok((median(user), median(rounds.iter().map(|(_, kernel)| *kernel).collect())))
}

/// From now on CPU work takes the time of the host's CPU, times so many thousandths. None if it is to
/// take no time, or if the kernel cannot do it.
///
/// # Errors
/// One line: the kernel refuses.
pub fn begin(permille: u32) -> Result<Option<Charging>, String> {
    begin_in(Path::new(PARAMETERS), permille)
}

fn begin_in(directory: &Path, permille: u32) -> Result<Option<Charging>, String> {
    if permille == 0 || !can(directory) {
        return Ok(None);
    }
    let charging = Charging { before: charged(directory)?, directory: directory.to_owned() };
    write(directory, SWITCH, permille)?;
    Ok(Some(charging))
}

fn can(directory: &Path) -> bool {
    directory.join(SWITCH).exists()
}

impl Charging {
    /// CPU work takes no time again. Returns what was charged.
    ///
    /// # Errors
    /// One line: the kernel refuses.
    pub fn end(self) -> Result<Charged, String> {
        write(&self.directory, SWITCH, 0)?;
        let after = charged(&self.directory)?;
        Ok(Charged {
            user_ns: after.user_ns.saturating_sub(self.before.user_ns),
            kernel_ns: after.kernel_ns.saturating_sub(self.before.kernel_ns),
        })
    }
}

fn charged(directory: &Path) -> Result<Charged, String> {
    Ok(Charged { user_ns: read(directory, "cpu_user_ns")?, kernel_ns: read(directory, "cpu_kernel_ns")? })
}

fn read(directory: &Path, name: &str) -> Result<u64, String> {
    let path = directory.join(name);
    let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    text.trim().parse().map_err(|_| format!("{}: found '{}', no number", path.display(), text.trim()))
}

fn write(directory: &Path, name: &str, value: u32) -> Result<(), String> {
    let path = directory.join(name);
    fs::write(&path, value.to_string()).map_err(|error| format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_charged_between_beginning_and_end_where_the_kernel_can() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = |name: &str| folder.path().join(name);
        assert!(begin_in(folder.path(), 1000).expect("it cannot").is_none());
        fs::write(file("cpu_permille"), "0\n").expect("written");
        fs::write(file("cpu_user_ns"), "100\n").expect("written");
        let error = begin_in(folder.path(), 1000).unwrap_err();
        assert!(error.contains("cpu_kernel_ns: "), "{error}");
        fs::write(file("cpu_kernel_ns"), "7\n").expect("written");
        assert!(begin_in(folder.path(), 0).expect("not asked").is_none());
        let charging = begin_in(folder.path(), 1500).expect("it can").expect("asked");
        assert_eq!(fs::read_to_string(file("cpu_permille")).expect("there"), "1500");
        fs::write(file("cpu_user_ns"), "400\n").expect("written");
        assert_eq!(charging.end(), Ok(Charged { user_ns: 300, kernel_ns: 0 }));
        assert_eq!(fs::read_to_string(file("cpu_permille")).expect("there"), "0");
    }
}
