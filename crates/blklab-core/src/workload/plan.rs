//! The plan of a job file on a disk: clones, files with their sizes, the start of each process.
//!
//! Sizes follow fio's `setup_files()`: `size` is split over the files, `filesize` overrides it,
//! percentages refer to the existing file or device, and a file is as large as the largest region
//! that any job uses of it. Any path under `/dev/` is the modelled disk itself.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use rand_core::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

use super::cgroups::Cgroups;
use super::error::{JobError, Problem};
use super::journal::JournalPlan;
use super::random;
use super::spec::{BlockSizes, Direction, ExitWhat, Extent, FileSet, JobFile, JobSpec};
use crate::request::ProcessId;
use crate::scheduler::CgroupId;
use crate::units::{Bytes, Nanos};

/// The maximum of processes in one job file: fio's `REAL_MAX_JOBS`.
pub const PROCESSES_MAX: u64 = 4096;

/// The maximum of files in one job file: the page cache keeps about 4 KiB for each file that is
/// read.
pub const FILES_MAX: u64 = 1 << 17;

/// The maximum of I/Os in flight in one job file: each takes some hundred bytes.
pub const DEPTH_TOTAL_MAX: u64 = 1 << 20;

/// The maximum of blocks in the random maps of all processes: one bit each, 2 GiB in all.
pub const MAPPED_BLOCKS_MAX: u64 = 1 << 34;

/// What a path names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// A file that gets room on the disk.
    Regular,
    /// The disk from its first byte to its last.
    Device,
}

/// A file that at least one process uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilePlan {
    /// Its path, which identifies it.
    pub path: String,
    /// File or disk.
    pub kind: FileKind,
    /// Its size.
    pub size: Bytes,
    /// Its sectors on the disk, one range after the other, where a file system has placed it. Empty: it
    /// gets room on the bare disk.
    pub extents: Vec<Range<u64>>,
}

/// The part of a file that one process uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// Index into [`Plan::files`].
    pub file: u32,
    /// First byte (fio's `file_offset`).
    pub start: u64,
    /// Length in bytes (fio's `io_size`).
    pub length: u64,
}

/// The conditions for a process's start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Start {
    /// `startdelay`: this much of the run has passed.
    pub not_before: Nanos,
    /// `stonewall`: every process with an id below this has ended.
    pub barrier: u32,
    /// `wait_for`: these processes have ended.
    pub wait_for: Option<Range<u32>>,
}

impl Start {
    /// All conditions are met; `ended` returns whether a process has ended.
    pub fn is_met(&self, ended: impl Fn(u32) -> bool) -> bool {
        (0..self.barrier).all(&ended) && self.wait_for.clone().is_none_or(|mut range| range.all(&ended))
    }
}

/// One process: a clone of a job.
#[derive(Clone, Debug, PartialEq)]
pub struct ProcessSpec {
    /// Number in the order of the job file.
    pub id: ProcessId,
    /// Its job.
    pub job: Arc<JobSpec>,
    /// Number among the clones, from 0.
    pub clone: u32,
    /// Its cgroup in [`Plan::cgroups`].
    pub cgroup: CgroupId,
    /// When it starts.
    pub start: Start,
    /// Its files, in the order of the options.
    pub regions: Vec<Region>,
    /// Bytes in one pass over the workload.
    pub pass_bytes: u64,
    /// `io_size`: bytes in all, if not a number of passes.
    pub io_bytes: Option<u64>,
}

impl ProcessSpec {
    /// The end of this process ends others (`exitall`).
    pub fn ends_others(&self) -> bool {
        self.job.timing.exit.is_some()
    }

    /// Whether the end of this process ends `other` (`exitall`, `exit_what`), which has `started`
    /// or not.
    pub fn ends(&self, other: &ProcessSpec, started: bool) -> bool {
        match self.job.timing.exit {
            None => false,
            Some(ExitWhat::Group) => other.job.group == self.job.group,
            Some(ExitWhat::Stonewall) => started,
            Some(ExitWhat::All) => true,
        }
    }
}

/// All processes, files and cgroups of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// Files, in order of first use.
    pub files: Vec<FilePlan>,
    /// Processes, in the order of the job file.
    pub processes: Vec<ProcessSpec>,
    /// Their cgroups.
    pub cgroups: Cgroups,
    /// The journal of the file system that has placed the files, if that is known.
    pub journal: Option<JournalPlan>,
}

impl Plan {
    /// The latest time at which all runtimes end, without the draining; `None` if a process has no
    /// runtime.
    pub fn ends_by(&self) -> Option<Nanos> {
        // For each process: the latest end of the processes before it.
        let mut before = vec![Nanos::ZERO];
        let mut ends = Vec::with_capacity(self.processes.len());
        for process in &self.processes {
            let (start, timing) = (&process.start, &process.job.timing);
            let waited_for =
                start.wait_for.iter().flat_map(|range| &ends[range.start as usize..range.end as usize]);
            let begin = waited_for.copied().fold(start.not_before, Nanos::max);
            let begin = begin.max(before[start.barrier as usize]);
            let end = begin.saturating_add(timing.ramp_time).saturating_add(timing.runtime?);
            before.push(end.max(before[ends.len()]));
            ends.push(end);
        }
        before.pop()
    }

    /// Places the regular files where a file system has them: `extents` has the sectors of each, in
    /// their order, on a disk of `capacity`.
    ///
    /// # Errors
    /// One line: another number of files, an extent outside the disk, or one that is shorter than its
    /// file.
    pub fn place(&mut self, extents: &[Vec<Range<u64>>], capacity: Bytes) -> Result<(), String> {
        let regular: Vec<_> = self.files.iter_mut().filter(|file| file.kind == FileKind::Regular).collect();
        if regular.len() != extents.len() {
            return Err(format!("{} files, and places for {}", regular.len(), extents.len()));
        }
        for (file, extents) in regular.into_iter().zip(extents) {
            let is_bad = |range: &Range<u64>| range.is_empty() || range.end > capacity.sectors();
            if let Some(bad) = extents.iter().find(|range| is_bad(range)) {
                return Err(format!(
                    "{}: sectors {} to {} are not on the disk",
                    file.path, bad.start, bad.end
                ));
            }
            let (placed, size) =
                (extents.iter().map(|range| range.end - range.start).sum(), file.size.sectors());
            if size > placed {
                return Err(format!("{}: {size} sectors, and places for {placed}", file.path));
            }
            file.extents.clone_from(extents);
        }
        Ok(())
    }

    /// Places the journal of the file system that has the files, on a disk of `capacity`.
    ///
    /// # Errors
    /// One line: an extent outside the disk, or no room.
    pub fn place_journal(&mut self, journal: JournalPlan, capacity: Bytes) -> Result<(), String> {
        journal.check(capacity)?;
        self.journal = Some(journal);
        Ok(())
    }

    /// The part of a file that processes use, from its beginning; all of it, if a size was given in
    /// percent.
    pub fn used(&self, file: u32) -> Bytes {
        let all = self.files[file as usize].size;
        let regions = self.processes.iter().flat_map(|process| {
            let of = move |region: &&Region| region.file == file;
            process.regions.iter().filter(of).map(move |region| (process, region))
        });
        let ends =
            regions.map(
                |(process, region)| {
                    if process.job.files.has_shares() { all.0 } else { region.start + region.length }
                },
            );
        Bytes(ends.max().unwrap_or(all.0).min(all.0))
    }
}

/// Plans the jobs of `file` on a disk of `capacity`. `seed` decides values that the job file leaves
/// open (`startdelay` and `filesize` given as ranges).
///
/// # Errors
/// A job without a size, a region outside its file, files that do not fit the disk, more than
/// [`PROCESSES_MAX`], [`FILES_MAX`], [`DEPTH_TOTAL_MAX`] or [`MAPPED_BLOCKS_MAX`].
pub fn plan(file: &JobFile, capacity: Bytes, seed: u64) -> Result<Plan, JobError> {
    let mut planner = Planner {
        path: &file.path,
        capacity: capacity.0,
        seed,
        plan: Plan::default(),
        by_path: BTreeMap::new(),
        regular_bytes: 0,
        depth_total: 0,
        mapped_blocks: 0,
        barrier: 0,
        by_name: BTreeMap::new(),
    };
    for job in &file.jobs {
        planner.add(job)?;
    }
    Ok(planner.plan)
}

struct Planner<'a> {
    path: &'a str,
    capacity: u64,
    seed: u64,
    plan: Plan,
    by_path: BTreeMap<String, u32>,
    regular_bytes: u64,
    depth_total: u64,
    mapped_blocks: u64,
    barrier: u32,
    by_name: BTreeMap<String, Range<u32>>,
}

impl Planner<'_> {
    fn fail<T>(&self, job: &JobSpec, problem: Problem) -> Result<T, JobError> {
        Err(JobError { path: self.path.to_owned(), line: job.line, problem })
    }

    fn refuse<T>(&self, job: &JobSpec, what: impl Into<String>) -> Result<T, JobError> {
        self.fail(job, Problem::Job { job: job.name.clone(), what: what.into() })
    }

    fn bound(&self, job: &JobSpec, what: &'static str, found: u64, max: u64) -> Result<(), JobError> {
        if found <= max {
            return Ok(());
        }
        self.fail(job, Problem::TooMany { what, found, max })
    }

    fn add(&mut self, job: &Arc<JobSpec>) -> Result<(), JobError> {
        let first = self.plan.processes.len() as u32;
        self.bound(job, "processes", u64::from(first) + u64::from(job.clones), PROCESSES_MAX)?;
        self.depth_total += u64::from(job.queueing.depth()) * u64::from(job.clones);
        self.bound(job, "I/Os under way (numjobs x iodepth)", self.depth_total, DEPTH_TOTAL_MAX)?;
        if job.timing.stonewall {
            self.barrier = first;
        }
        let wait_for = match &job.timing.wait_for {
            None => None,
            Some(name) => match self.by_name.get(name) {
                Some(range) => Some(range.clone()),
                None => return self.refuse(job, format!("wait_for={name}: no job before it has that name")),
            },
        };
        let cgroup = match self.plan.cgroups.enter(job) {
            Ok(cgroup) => cgroup,
            Err(what) => return self.refuse(job, what),
        };
        for clone in 0..job.clones {
            let id = ProcessId(first + clone);
            let mut rng = Xoshiro256PlusPlus::seed_from_u64(random::stream_seed(
                job.access.randseed.unwrap_or(self.seed),
                id,
                random::Stream::Plan,
            ));
            let (low, high) = job.timing.start_delay;
            let not_before = Nanos(random::between(&mut rng, low.0, high.0));
            let start = Start { not_before, barrier: self.barrier, wait_for: wait_for.clone() };
            let (regions, total_bytes) = self.regions(job, clone, &mut rng)?;
            let pass_bytes = match job.files.size {
                Some(Extent::Bytes(size)) => size.0.min(total_bytes),
                _ => total_bytes,
            };
            let smallest = Direction::ALL.map(|d| job.access.block_sizes[d].min()).into_iter().min();
            if pass_bytes < u64::from(smallest.unwrap_or(1)) {
                return self
                    .refuse(job, format!("one block is larger than the {pass_bytes} bytes to be used"));
            }
            let io_bytes = match job.files.io_size {
                Some(Extent::Bytes(bytes)) => Some(bytes.0),
                _ => None,
            };
            let job = Arc::clone(job);
            self.plan.processes.push(ProcessSpec {
                id,
                job,
                clone,
                cgroup,
                start,
                regions,
                pass_bytes,
                io_bytes,
            });
        }
        self.by_name.insert(job.name.clone(), first..first + job.clones);
        Ok(())
    }

    /// The regions of one clone, and the bytes of a pass over them.
    fn regions(
        &mut self,
        job: &JobSpec,
        clone: u32,
        rng: &mut Xoshiro256PlusPlus,
    ) -> Result<(Vec<Region>, u64), JobError> {
        let set = &job.files;
        let paths = paths(&job.name, set, clone);
        let (block, count) = (smallest_block(job), paths.len() as u64);
        self.bound(job, "files", self.plan.files.len() as u64 + count, FILES_MAX)?;
        let size = match set.size {
            Some(Extent::Bytes(size)) => size.0,
            _ => 0,
        };
        let share = size / count;
        let mut first_files_extra = (size - share * count) / block;
        let mut regions = Vec::with_capacity(paths.len());
        let mut total = 0_u64;
        for path in paths {
            let file = self.file(path);
            let FilePlan { kind, size: real, .. } = self.plan.files[file as usize];
            let real = real.0;
            let start = start_offset(job, clone, real);
            let mut length = match set.file_size {
                Some((low, high)) => {
                    if real >= low.0 && real <= high.0 {
                        real.saturating_sub(start)
                    } else {
                        random::between(rng, low.0, high.0).saturating_sub(start)
                    }
                }
                None if share > 0 => {
                    let extra = first_files_extra.min(1);
                    first_files_extra -= extra;
                    share + extra * block
                }
                None => real.saturating_sub(start),
            };
            if length == 0 && real == 0 {
                return self.refuse(
                    job,
                    "no size: give size=, or name a device or a file that a job before it writes",
                );
            }
            if let Some(Extent::Percent(percent)) = set.size
                && percent != 100
            {
                let whole = length + start;
                length = percent_of(whole, percent).min(length);
                length -= length % block;
            }
            if kind == FileKind::Device {
                length = length.min(self.capacity.saturating_sub(start));
            }
            if length == 0 {
                let path = &self.plan.files[file as usize].path;
                return self.refuse(job, format!("offset {start} lies behind the {real} bytes of {path}"));
            }
            let Some(end) = start.checked_add(length) else {
                return self.refuse(job, "offset and size together exceed 64 bits");
            };
            if kind == FileKind::Regular && end > real {
                self.plan.files[file as usize].size = Bytes(end);
                self.regular_bytes = self.regular_bytes.saturating_add(end - real);
                if self.regular_bytes > self.capacity {
                    let (need_bytes, room_bytes) = (self.regular_bytes, self.capacity);
                    return self.fail(job, Problem::NoRoom { job: job.name.clone(), need_bytes, room_bytes });
                }
            }
            let counted = match set.io_size {
                Some(Extent::Percent(percent)) => percent_of(length, percent),
                _ => length,
            };
            if job.access.random_map {
                self.mapped_blocks = self.mapped_blocks.saturating_add(length / block);
                let what = "blocks in random maps (norandommap does without)";
                self.bound(job, what, self.mapped_blocks, MAPPED_BLOCKS_MAX)?;
            }
            total = total.saturating_add(counted);
            regions.push(Region { file, start, length });
        }
        Ok((regions, total))
    }

    /// The file with that path, added if it is new.
    fn file(&mut self, path: String) -> u32 {
        if let Some(&file) = self.by_path.get(&path) {
            return file;
        }
        let file = self.plan.files.len() as u32;
        let (kind, size) = if path.starts_with("/dev/") {
            (FileKind::Device, Bytes(self.capacity))
        } else {
            (FileKind::Regular, Bytes(0))
        };
        self.by_path.insert(path.clone(), file);
        self.plan.files.push(FilePlan { path, kind, size, extents: Vec::new() });
        file
    }
}

/// `percent` of `whole`, rounded down.
fn percent_of(whole: u64, percent: u32) -> u64 {
    (u128::from(whole) * u128::from(percent) / 100) as u64
}

fn smallest_block(job: &JobSpec) -> u64 {
    let sizes = Direction::ALL.map(|d| BlockSizes::min(&job.access.block_sizes[d]));
    sizes.into_iter().min().map_or(1, u64::from)
}

/// The start of clone number `clone` in a file of `real` bytes (fio's `get_start_offset()`).
fn start_offset(job: &JobSpec, clone: u32, real: u64) -> u64 {
    let set = &job.files;
    let bytes = |extent| match extent {
        Extent::Bytes(bytes) => bytes.0,
        Extent::Percent(percent) => percent_of(real, percent),
    };
    let offset =
        bytes(set.offset).saturating_add(u64::from(clone).saturating_mul(bytes(set.offset_increment)));
    let in_percent =
        matches!(set.offset, Extent::Percent(_)) || matches!(set.offset_increment, Extent::Percent(_));
    if in_percent {
        let align = set.offset_align.map_or_else(|| smallest_block(job), |align| align.0.max(1));
        offset.div_ceil(align).saturating_mul(align)
    } else {
        offset
    }
}

/// Paths of one clone's files: the given names, or names by `filename_format`.
fn paths(job: &str, set: &FileSet, clone: u32) -> Vec<String> {
    let in_directory = |directory: Option<&String>, name: &str| match directory {
        Some(directory) if !name.starts_with('/') => format!("{}/{name}", directory.trim_end_matches('/')),
        _ => name.to_owned(),
    };
    if !set.names.is_empty() {
        return set.names.iter().map(|name| in_directory(set.directories.first(), name)).collect();
    }
    let directory = match set.directories.len() {
        0 => None,
        n => set.directories.get(clone as usize % n),
    };
    let name = |number: u32| {
        let name = set.name_format.replace("$jobname", job);
        let name = name.replace("$jobnum", &clone.to_string()).replace("$filenum", &number.to_string());
        in_directory(directory, &name.replace("$clientuid", "localhost"))
    };
    (0..set.count).map(name).collect()
}
