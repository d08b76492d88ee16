//! Resources that jobs take besides the disk: CPUs to run on, memory that they lock.
//!
//! `cpus_allowed`, `cpumask`: a process of the simulator stays on one CPU; of several allowed CPUs
//! it gets the one of its number. Linux would let it move among them. `lockmem`: the page cache
//! lacks the memory of each process from the start of the run to its end, even if the job starts
//! later.

use super::error::{JobError, Problem};
use super::spec::{JobFile, JobSpec};
use crate::units::Bytes;

/// The page cache keeps at least this much (the minimum of `memory_kb`).
pub const MEMORY_LEFT: Bytes = Bytes(16 << 20);

/// CPU numbers in ascending order, each once: `0-3,5`.
pub fn cpu_list(text: &str) -> Option<Vec<u16>> {
    let mut found = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u16, u16) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        if first > last || last > CPU_MAX {
            return None;
        }
        found.extend(first..=last);
    }
    found.sort_unstable();
    found.dedup();
    Some(found)
}

/// The highest CPU number that is accepted.
pub const CPU_MAX: u16 = 1023;

/// The CPUs whose bits are set.
pub fn cpu_mask(mask: u64) -> Vec<u16> {
    (0..64).filter(|cpu| mask >> cpu & 1 == 1).collect()
}

/// The CPU of a process: `number` in the whole job file, and `clone` within its job.
pub fn cpu_of(job: &JobSpec, number: u32, clone: u32, cpus: u16) -> u16 {
    let (allowed, turn) = (&job.cpus, if job.cpus_split { clone } else { number });
    match allowed.len() as u32 {
        0 => (number % u32::from(cpus)) as u16,
        count => allowed[(turn % count) as usize],
    }
}

/// Memory that all processes lock together.
pub fn locked(file: &JobFile) -> Bytes {
    let of = |job: &JobSpec| job.lock_memory.0.saturating_mul(job.clones.into());
    Bytes(file.jobs.iter().fold(0, |sum, job| sum.saturating_add(of(job))))
}

/// Whether a host with `cpus` CPUs and `memory` has the resources of the jobs.
///
/// # Errors
/// The section that needs more.
pub fn check(file: &JobFile, cpus: u16, memory: Bytes) -> Result<(), JobError> {
    let refuse = |job: &JobSpec, what| {
        let problem = Problem::Job { job: job.name.clone(), what };
        Err(JobError { path: file.path.clone(), line: job.line, problem })
    };
    for job in &file.jobs {
        if let Some(cpu) = job.cpus.iter().find(|cpu| **cpu >= cpus) {
            let last = cpus - 1;
            return refuse(
                job,
                format!("CPU {cpu} of cpus_allowed: the host has 0 to {last}; --host cpus=N"),
            );
        }
    }
    let locked = locked(file);
    if let Some(job) = file.jobs.iter().find(|job| job.lock_memory.0 > 0)
        && locked.0.saturating_add(MEMORY_LEFT.0) > memory.0
    {
        let (locked, all, left) = (locked.0 >> 20, memory.0 >> 20, MEMORY_LEFT.0 >> 20);
        return refuse(
            job,
            format!(
                "lockmem: all processes pin {locked} MiB of {all}, at least {left} have to be left; \
                 --host memory_kb=N"
            ),
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_masks_name_cpus_and_nonsense_names_none() {
        assert_eq!(cpu_list("5,0-2,1"), Some(vec![0, 1, 2, 5]));
        assert_eq!(cpu_mask(0b1001), [0, 3]);
        for wrong in ["", "a", "3-1", "0,,1", "1024", "0-70000"] {
            assert_eq!(cpu_list(wrong), None, "{wrong}");
        }
    }
}
