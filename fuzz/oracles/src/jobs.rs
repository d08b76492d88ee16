//! Job files, what real fio is given of them, and what it answers.

use std::sync::LazyLock;

use blklab_core::device::{DeviceId, Layout, PlacedFile};
use blklab_core::formats::fio::changes::{self, Written};
use blklab_core::formats::fio::jobfile::{self, ParseOptions, Resolver};
use blklab_core::formats::fio::options;
use blklab_core::formats::fio::options::real::{self as policy, Handing};
use blklab_core::formats::fio::output;
use blklab_core::formats::fio::writer::{self, FioPath};
use blklab_core::units::{Bytes, Sector};
use blklab_core::workload::plan::{self, FileKind, Plan, ProcessSpec};
use blklab_core::workload::spec::{JobFile, JobSpec};

use crate::check_message;

/// The capacity of the disk for the jobs.
const CAPACITY: Bytes = Bytes(1 << 40);
const SEED: u64 = 7;
/// Larger plans are made, but not written out and read again: the time exceeds the benefit.
const PROCESSES_WRITTEN: usize = 64;
/// The same of files, whose names stand on a line together.
const FILES_WRITTEN: usize = 256;

/// What stands behind the first form feed is file `1`, what stands behind the next one file `2`.
struct Included<'a>(Vec<&'a str>);

impl Resolver for Included<'_> {
    fn variable(&self, name: &str) -> Option<String> {
        name.strip_prefix("V").map(ToOwned::to_owned)
    }

    fn include(&mut self, path: &str) -> Result<String, String> {
        let number: usize = path.parse().map_err(|_| "no such file".to_owned())?;
        self.0.get(number).map(|text| (*text).to_owned()).ok_or_else(|| "no such file".to_owned())
    }

    fn memory_mib(&self) -> u64 {
        16384
    }

    fn cpus(&self) -> u64 {
        8
    }
}

pub fn file(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let mut files = Included(text.split('\u{c}').collect());
    let main = files.0[0].to_owned();
    for (ignore_unsupported, real) in [(false, false), (true, false), (true, true)] {
        let options = ParseOptions { ignore_unsupported, real };
        let file = match jobfile::parse(&main, "job.fio", &mut files, options) {
            Ok(file) => file,
            Err(error) => {
                check_message(&error, data);
                continue;
            }
        };
        assert!(!file.jobs.is_empty());
        if !real {
            check_changes(&main, &file, data);
        }
        if real {
            check_handed(&file);
        }
        match plan::plan(&file, CAPACITY, SEED) {
            Ok(plan) => {
                check_plan(&plan);
                if plan.processes.len() <= PROCESSES_WRITTEN
                    && plan.files.len() <= FILES_WRITTEN
                    && let Err(error) = written_reads_the_same(&plan, options)
                {
                    check_message(&error, data);
                }
            }
            Err(error) => check_message(&error, data),
        }
        if !ignore_unsupported {
            return;
        }
    }
}

/// The last line as changes of the options: they are refused in one line, or they are in a text that has
/// the same sections.
fn check_changes(text: &str, file: &JobFile, data: &[u8]) {
    let changes = text.lines().last().unwrap_or_default();
    match changes::changed(Written { name: "job", path: "job.fio", text, file }, changes) {
        Ok(changed) => {
            let sections = |text: &str| text.split('\n').filter(|line| line.trim().starts_with('[')).count();
            let (before, after) = (sections(text), sections(&changed));
            assert!(after == before || after == before + 1, "{changed:?}");
        }
        Err(error) => check_message(&error, data),
    }
}

/// What real fio is given on a real disk is on the list.
fn check_handed(file: &JobFile) {
    for (name, value) in file.jobs.iter().flat_map(|job| &job.given) {
        let option = options::find(name).expect("it was accepted").name;
        let handing = policy::handing(option, value);
        assert!(matches!(handing, Handing::Handed(_) | Handing::Rewritten(_)), "{name}={value}");
    }
}

fn check_plan(plan: &Plan) {
    let capacity = Sector(CAPACITY.sectors());
    let layout = Layout::in_a_row(&plan.files, DeviceId(0), capacity);
    assert_eq!(layout.files().len(), plan.files.len());
    let mut extents = layout.files().iter().flat_map(PlacedFile::extents);
    assert!(extents.all(|extent| extent.range().end <= capacity.0));
    for process in &plan.processes {
        assert!(!process.regions.is_empty() && process.pass_bytes > 0);
        for region in &process.regions {
            let size = plan.files[region.file as usize].size.0;
            assert!(region.start + region.length <= size, "{region:?} of {size} bytes");
        }
    }
    plan.ends_by();
}

/// The job file for real fio, read by ourselves, is the same plan: nothing is lost or changed on
/// the way to it.
///
/// # Errors
/// Why it cannot be written for fio.
fn written_reads_the_same(plan: &Plan, options: ParseOptions) -> Result<(), String> {
    let place = |(number, file): (usize, &plan::FilePlan)| {
        FioPath::whole(if file.kind == FileKind::Device {
            format!("/dev/{number}")
        } else {
            number.to_string()
        })
    };
    let places: Vec<_> = plan.files.iter().enumerate().map(place).collect();
    let text = writer::job_file(plan, &places, None, SEED)?;
    let file = jobfile::parse(&text, "fio.job", &mut Included(Vec::new()), options)
        .unwrap_or_else(|error| panic!("{error}\n{text}"));
    let again = plan::plan(&file, CAPACITY, SEED).unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert_eq!(again.processes.len(), plan.processes.len(), "{text}");
    for (found, expected) in again.processes.iter().zip(&plan.processes) {
        check_process(found, expected, &text);
    }
    Ok(())
}

fn check_process(found: &ProcessSpec, expected: &ProcessSpec, text: &str) {
    let of = |process: &ProcessSpec| {
        let JobSpec {
            name,
            access,
            queueing,
            think,
            rate,
            durability,
            priorities,
            invalidate,
            advice,
            drop_caches,
            ..
        } = &*process.job;
        format!(
            "{name} {access:?} {queueing:?} {think:?} {rate:?} {durability:?} {priorities:?} {invalidate} \
             {advice:?} {drop_caches}"
        )
    };
    let without_seed = |process: &ProcessSpec| {
        let mut process = process.clone();
        let job = std::sync::Arc::make_mut(&mut process.job);
        // Written out where the job leaves it open.
        job.access.randseed = None;
        job.access.randrepeat = false;
        process
    };
    assert_eq!(of(&without_seed(found)), of(&without_seed(expected)), "{text}");
    let timing = |process: &ProcessSpec| {
        let timing = &process.job.timing;
        // fio takes whole microseconds.
        (timing.runtime, timing.time_based, timing.ramp_time, timing.loops, process.start.not_before.0 / 1000)
    };
    assert_eq!(timing(found), timing(expected), "{text}");
    assert_eq!(found.start.barrier, expected.start.barrier, "{text}");
    let sizes = |process: &ProcessSpec| (process.pass_bytes, process.io_bytes, process.regions.clone());
    assert_eq!(sizes(found), sizes(expected), "{text}");
}

static TWO: LazyLock<Plan> = LazyLock::new(|| {
    let mut nothing = Included(Vec::new());
    let text = "[a]\nsize=1m\nrw=randrw\n[b]\nsize=1m\nstonewall\nfsync=1\n";
    let file = jobfile::parse(text, "job.fio", &mut nothing, Default::default()).expect("a good job");
    plan::plan(&file, CAPACITY, SEED).expect("it fits")
});

/// fio's answer to a job file of two processes.
pub fn output(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match output::read(text, &TWO) {
        Ok(jobs) => {
            assert_eq!(jobs.len(), TWO.processes.len());
            for job in &jobs {
                assert!(job.start_ns <= job.end_ns, "{} to {}", job.start_ns, job.end_ns);
            }
        }
        Err(error) => check_message(&error, data),
    }
}
