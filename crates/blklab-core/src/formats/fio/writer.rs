//! The job file for real fio: one section per process, each file at its place on the rig.
//!
//! The simulator places files on the bare disk, one after the other. In a guest each file is a
//! partition at the same place, so that both rigs transfer the same sectors without a file system;
//! on a real disk they are files, or parts of the device. Values that depend on fio's numbering of
//! clones (file names, `offset_increment`, a `startdelay` drawn from a range) are written out for
//! each process.

use std::fmt::Write;

use crate::formats::fio::options;
use crate::workload::plan::{Plan, ProcessSpec};

/// The place of one of the plan's files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FioPath {
    /// The path that fio opens.
    pub path: String,
    /// The first byte of the file within the path, if other files share the path.
    pub piece_from: Option<u64>,
}

impl FioPath {
    /// Everything at `path`.
    pub fn whole(path: impl Into<String>) -> FioPath {
        FioPath { path: path.into(), piece_from: None }
    }
}

/// Options that name files, or that are written out below.
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
    "cgroup_nodelete",
];

/// Options for the used size of a file: written out where it is part of a device.
const SIZES: &[&str] = &["size", "filesize"];

/// Options of the first clone only: the others belong to its group.
const OF_THE_FIRST: &[&str] = &["stonewall", "new_group"];

/// Options by which a job itself decides whether its offsets repeat in every run.
const REPEATS: &[&str] = &["randrepeat", "allrandrepeat"];

/// fio's `OPT_LEN_MAX`: fio reads a longer line as two.
const LINE_BYTES_MAX: usize = 8192;

/// Options with a meaning that depends on the clone's number.
const OFFSETS: &[&str] = &["offset", "offset_increment", "offset_align"];

/// The job file. `places` has the place of each of the plan's files; `seed` is for jobs without a
/// seed of their own. The jobs' cgroups are inside the cgroup `within`, if given.
///
/// # Errors
/// One line: a process has several files that are parts of one device, and fio supports one offset
/// only.
pub fn job_file(plan: &Plan, places: &[FioPath], within: Option<&str>, seed: u64) -> Result<String, String> {
    let mut text = String::new();
    for process in &plan.processes {
        let path = plan.cgroups.path(process.cgroup);
        let cgroup = match within {
            Some(outer) if !path.is_empty() => format!("{outer}/{path}"),
            _ => path.to_owned(),
        };
        section(&mut text, process, &cgroup, places, seed)?;
    }
    Ok(text)
}

fn section(
    text: &mut String,
    process: &ProcessSpec,
    cgroup: &str,
    places: &[FioPath],
    seed: u64,
) -> Result<(), String> {
    let job = &process.job;
    let named = |name: &str| options::find(name).map_or_else(|| name.to_owned(), |row| row.name.to_owned());
    let given: Vec<_> = job.given.iter().map(|(name, value)| (named(name), value)).collect();
    let has = |wanted: &str| given.iter().any(|(name, _)| name == wanted);
    let offset_by_clone = has("offset_increment");
    let piece = piece(process, places)?;
    let start = text.len();
    let mut line = |name: &str, value: &str| {
        let _ = if value.is_empty() { writeln!(text, "{name}") } else { writeln!(text, "{name}={value}") };
    };
    if job.name.starts_with("global") {
        return Err(format!("job '{}': fio takes a section of that name for defaults", job.name));
    }
    line(&format!("[{}]", job.name), "");
    for (name, value) in &given {
        let name = name.as_str();
        let skip = WRITTEN_OUT.contains(&name)
            || (OF_THE_FIRST.contains(&name) && process.clone > 0)
            || (OFFSETS.contains(&name) && (offset_by_clone || piece.is_some()))
            || (SIZES.contains(&name) && piece.is_some());
        if !skip {
            line(name, value);
        }
    }
    let files: Vec<_> =
        process.regions.iter().map(|region| places[region.file as usize].path.replace(':', "\\:")).collect();
    line("filename", &files.join(":"));
    if let Some((offset, size)) = piece {
        line("offset", &offset.to_string());
        line("size", &size.to_string());
    } else if offset_by_clone {
        line("offset", &process.regions.first().map_or(0, |region| region.start).to_string());
    }
    if !cgroup.is_empty() {
        line("cgroup", cgroup);
        // The rig creates and removes it.
        line("cgroup_nodelete", "1");
    }
    if process.start.not_before.0 > 0 {
        line("startdelay", &format!("{}us", process.start.not_before.0 / 1_000));
    }
    if !has("randseed") {
        // fio multiplies it by the process's number: it must not be zero.
        line("randseed", &(seed & (u64::MAX >> 1)).max(1).to_string());
        if !REPEATS.iter().any(|option| has(option)) {
            // Otherwise fio uses the same offsets for every seed: no two repeats would differ.
            line("randrepeat", "0");
        }
    }
    check_lines(&text[start..], &job.name)
}

/// Checks that fio reads each line as one line and to its end.
fn check_lines(text: &str, job: &str) -> Result<(), String> {
    for line in text.lines() {
        if line.len() >= LINE_BYTES_MAX {
            let (found, max) = (line.len(), LINE_BYTES_MAX);
            return Err(format!(
                "job '{job}': a line of {found} bytes for fio, which reads {max}: fewer files"
            ));
        }
        if line.contains(|c: char| c.is_control() || c == ';' || c == '#') {
            return Err(format!("job '{job}': ';', '#' or a control character in {line:?}"));
        }
    }
    Ok(())
}

/// Offset and size of the process's part of a device, in bytes; `None` if it has files of its own.
fn piece(process: &ProcessSpec, places: &[FioPath]) -> Result<Option<(u64, u64)>, String> {
    let from = |file: u32| places[file as usize].piece_from;
    match process.regions.as_slice() {
        [region] => Ok(from(region.file).map(|from| (from + region.start, region.length))),
        regions if regions.iter().all(|region| from(region.file).is_none()) => Ok(None),
        regions => {
            let (name, count) = (&process.job.name, regions.len());
            Err(format!("job '{name}' has {count} files; on a device it can have one"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::{DeviceId, Layout, PlacedFile};
    use crate::formats::fio::testing::plan;
    use crate::units::Sector;

    fn written(job: &str) -> String {
        let plan = plan(job);
        let places: Vec<_> =
            (1..=plan.files.len()).map(|n| FioPath::whole(format!("/dev/ublkb0p{n}"))).collect();
        job_file(&plan, &places, None, 7).expect("every file is whole")
    }

    /// With the plan's files placed on one device, from `from` bytes on.
    fn on_device(job: &str, from: u64) -> Result<String, String> {
        let plan = plan(job);
        let layout = Layout::in_a_row(&plan.files, DeviceId(0), Sector(1 << 21));
        let place = |file: &PlacedFile| FioPath {
            path: "/dev/sdx".to_owned(),
            piece_from: Some(from + file.start().to_bytes().0),
        };
        let places: Vec<_> = layout.files().iter().map(place).collect();
        job_file(&plan, &places, None, 7)
    }

    #[test]
    fn pieces_of_one_device_get_their_offsets_and_sizes_in_bytes() {
        let text = on_device("[a]\nrw=randread\nsize=8m\n[b]\nsize=4m\noffset=1m\n", 0).expect("a file each");
        assert_eq!(
            text,
            "[a]\nrw=randread\nfilename=/dev/sdx\noffset=0\nsize=8388608\nrandseed=7\nrandrepeat=0\n\
             [b]\nfilename=/dev/sdx\noffset=9437184\nsize=4194304\nrandseed=7\nrandrepeat=0\n"
        );
    }

    #[test]
    fn several_files_of_one_process_cannot_be_pieces_of_a_device() {
        let error = on_device("[a]\nnrfiles=3\nsize=9m\n", 0).expect_err("three offsets");
        assert_eq!(error, "job 'a' has 3 files; on a device it can have one");
    }

    #[test]
    fn a_colon_in_a_path_is_told_apart_from_the_next_file() {
        let plan = plan("[a]\nsize=1m\n");
        let text = job_file(&plan, &[FioPath::whole("/mnt/a:b/0")], None, 7).expect("one file");
        assert!(text.contains("filename=/mnt/a\\:b/0\n"), "{text}");
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
    fn a_cgroup_is_named_and_its_weight_set_by_the_rig() {
        let text = written("[a]\ncgroup=/x/\ncgroup_weight=200\nsize=8m\n");
        let last = "filename=/dev/ublkb0p1\ncgroup=x\ncgroup_nodelete=1\nrandseed=7\nrandrepeat=0\n";
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
