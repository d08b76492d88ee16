//! The job file that real fio is given: one section per process, with partitions of the
//! disk in the place of files.
//!
//! The simulator lays files on the bare disk, one behind the other. Here each is a
//! partition at the same place, so that both rigs move the same sectors and no file system
//! stands between. What depends on how fio counts clones (file names, `offset_increment`,
//! a `startdelay` drawn from a range) is written out for each process.

use std::fmt::Write;

use blklab_core::workload::options;
use blklab_core::workload::plan::{Plan, ProcessSpec};

/// Options that say which files there are, or that are written out below.
const WRITTEN_OUT: &[&str] = &[
    "filename",
    "directory",
    "filename_format",
    "unique_filename",
    "nrfiles",
    "name",
    "numjobs",
    "startdelay",
    "group_reporting",
    "cgroup",
    "cgroup_weight",
];

/// Options that hold for the first clone only: the others belong to its group.
const OF_THE_FIRST: &[&str] = &["stonewall", "new_group"];

/// Options by which a job says itself whether its offsets are those of every run.
const REPEATS: &[&str] = &["randrepeat", "allrandrepeat"];

/// Options that the clone's number changes the meaning of.
const OFFSETS: &[&str] = &["offset", "offset_increment", "offset_align"];

/// The job file. `devices` has the path of each of the plan's files; `seed` is for the jobs
/// that do not name their own.
pub fn write(plan: &Plan, devices: &[String], seed: u64) -> String {
    let mut text = String::new();
    for process in &plan.processes {
        let cgroup = &plan.cgroups[usize::from(process.cgroup.0)].path;
        section(&mut text, process, cgroup, devices, seed);
    }
    text
}

fn section(text: &mut String, process: &ProcessSpec, cgroup: &str, devices: &[String], seed: u64) {
    let job = &process.job;
    let named = |name: &str| options::find(name).map_or_else(|| name.to_owned(), |row| row.name.to_owned());
    let given: Vec<_> = job.given.iter().map(|(name, value)| (named(name), value)).collect();
    let has = |wanted: &str| given.iter().any(|(name, _)| name == wanted);
    let offset_by_clone = has("offset_increment");
    let mut line = |name: &str, value: &str| {
        let _ = if value.is_empty() { writeln!(text, "{name}") } else { writeln!(text, "{name}={value}") };
    };
    line(&format!("[{}]", job.name), "");
    for (name, value) in &given {
        let name = name.as_str();
        let skip = WRITTEN_OUT.contains(&name)
            || (OF_THE_FIRST.contains(&name) && process.clone > 0)
            || (OFFSETS.contains(&name) && offset_by_clone);
        if !skip {
            line(name, value);
        }
    }
    let files: Vec<_> = process.regions.iter().map(|region| devices[region.file as usize].as_str()).collect();
    line("filename", &files.join(":"));
    if offset_by_clone {
        line("offset", &process.regions.first().map_or(0, |region| region.start).to_string());
    }
    if !cgroup.is_empty() {
        line("cgroup", cgroup);
    }
    if process.start.not_before.0 > 0 {
        line("startdelay", &format!("{}us", process.start.not_before.0 / 1_000));
    }
    if !has("randseed") {
        // fio multiplies it with the process's number: never zero.
        line("randseed", &(seed & (u64::MAX >> 1)).max(1).to_string());
        if !REPEATS.iter().any(|option| has(option)) {
            // As it stands fio goes to the same offsets whatever the seed: no two repeats
            // would differ.
            line("randrepeat", "0");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::testing::plan;

    fn written(job: &str) -> String {
        let plan = plan(job);
        let devices: Vec<_> = (1..=plan.files.len()).map(|n| format!("/dev/ublkb0p{n}")).collect();
        write(&plan, &devices, 7)
    }

    #[test]
    fn a_job_with_a_file_of_its_own_gets_a_partition() {
        let text = written("[a]\nrw=randread\nbs=4k\nsize=8m\ntime_based\nruntime=1\n");
        assert_eq!(
            text,
            "[a]\nrw=randread\nbs=4k\nsize=8m\ntime_based\nruntime=1\nfilename=/dev/ublkb0p1\nrandseed=7\nrandrepeat=0\n"
        );
    }

    #[test]
    fn clones_become_sections_and_only_the_first_has_the_wall() {
        let text = written("[a]\nsize=8m\n[b]\nstonewall\nnumjobs=2\nnrfiles=2\nsize=8m\ngroup_reporting\n");
        assert_eq!(
            text,
            "[a]\nsize=8m\nfilename=/dev/ublkb0p1\nrandseed=7\nrandrepeat=0\n\
             [b]\nstonewall\nsize=8m\nfilename=/dev/ublkb0p2:/dev/ublkb0p3\nrandseed=7\nrandrepeat=0\n\
             [b]\nsize=8m\nfilename=/dev/ublkb0p4:/dev/ublkb0p5\nrandseed=7\nrandrepeat=0\n"
        );
    }

    #[test]
    fn a_cgroup_is_named_and_its_weight_left_to_us() {
        let text = written("[a]\ncgroup=/x/\ncgroup_weight=200\nsize=8m\n");
        let last = "filename=/dev/ublkb0p1\ncgroup=x\nrandseed=7\nrandrepeat=0\n";
        assert_eq!(text, format!("[a]\nsize=8m\n{last}"));
    }

    #[test]
    fn offsets_that_rise_with_the_clone_are_written_out() {
        let text = written("[a]\nfilename=x\nnumjobs=2\noffset_increment=1m\nsize=1m\nrandseed=9\n");
        assert_eq!(
            text,
            "[a]\nsize=1m\nrandseed=9\nfilename=/dev/ublkb0p1\noffset=0\n\
             [a]\nsize=1m\nrandseed=9\nfilename=/dev/ublkb0p1\noffset=1048576\n"
        );
    }

    #[test]
    fn a_job_that_wants_the_same_offsets_in_every_run_gets_them() {
        let text = written("[a]\nrw=randread\nsize=8m\nrandrepeat=1\n");
        assert!(text.contains("randrepeat=1\n") && !text.contains("randrepeat=0"), "{text}");
    }

    #[test]
    fn a_delay_drawn_from_a_range_is_written_out() {
        let text = written("[a]\nsize=1m\nstartdelay=2-4\n");
        let delay = text.lines().find_map(|line| line.strip_prefix("startdelay=")?.strip_suffix("us"));
        let us: u64 = delay.expect("a delay").parse().expect("a number");
        assert!((2_000_000..=4_000_000).contains(&us), "{text}");
    }
}
