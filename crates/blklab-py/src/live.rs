//! A job file for real fio, and fio's results.

use std::collections::BTreeMap;

use blklab_core::InputError;
use blklab_core::device::{DeviceId, Layout, PlacedFile};
use blklab_core::formats::fio::output;
use blklab_core::formats::fio::writer::{self, FioPath};
use blklab_core::formats::tracefs::Owners;
use blklab_core::result::RunResult;
use blklab_core::units::{Bytes, Sector};
use blklab_core::workload::plan::{self, FileKind, FilePlan, Plan};
use blklab_core::workload::spec::JobSpec;
use pyo3::prelude::*;

use crate::record::record;
use crate::run::Run;
use crate::specs::{Host, Job};
use crate::{bad_input, bad_job};

record! {
    /// A file of a job.
    FioFile {
        path: String,
        is_device: bool,
        size_bytes: u64,
        start_bytes: u64,
    }
}

record! {
    /// A cgroup of a job.
    FioCgroup {
        path: String,
        weight: u16,
    }
}

/// A job file planned on a given amount of space.
#[pyclass(frozen)]
pub struct FioJob {
    plan: Plan,
    seed: u64,
    room: Bytes,
}

#[pymethods]
impl FioJob {
    #[new]
    fn new(
        text: &str,
        path: &str,
        env: BTreeMap<String, String>,
        ignore_unsupported: bool,
        room_bytes: u64,
        seed: u64,
    ) -> PyResult<FioJob> {
        let job = Job::new(text, path, env, &Host::new(BTreeMap::new())?, ignore_unsupported, true)?;
        let room = Bytes(room_bytes);
        let plan = plan::plan(&job.file, room, seed).map_err(bad_job)?;
        Ok(FioJob { plan, seed, room })
    }

    /// Its files.
    #[getter]
    fn files(&self) -> Vec<FioFile> {
        let layout = Layout::in_a_row(&self.plan.files, DeviceId(0), Sector(self.room.sectors()));
        let file = |(number, (file, placed)): (usize, (&FilePlan, &PlacedFile))| FioFile {
            path: file.path.clone(),
            is_device: file.kind == FileKind::Device,
            size_bytes: match file.kind {
                FileKind::Device => self.plan.used(number as u32).0,
                FileKind::Regular => file.size.0,
            },
            start_bytes: placed.start().to_bytes().0,
        };
        self.plan.files.iter().zip(layout.files()).enumerate().map(file).collect()
    }

    /// How many processes it has.
    #[getter]
    fn processes(&self) -> usize {
        self.plan.processes.len()
    }

    /// When it ends, if it has a runtime.
    #[getter]
    fn ends_by_ns(&self) -> Option<u64> {
        self.plan.ends_by().map(|end| end.0)
    }

    /// A job writes or trims.
    #[getter]
    fn writes(&self) -> bool {
        self.jobs().any(|job| job.access.rw.writes() || job.access.rw.trims())
    }

    /// All I/O goes past the page cache.
    #[getter]
    fn direct(&self) -> bool {
        self.jobs().all(|job| job.queueing.direct)
    }

    /// Its cgroups without the root, each behind the one around it.
    #[getter]
    fn cgroups(&self) -> Vec<FioCgroup> {
        let named = self.plan.cgroups.all().iter().filter(|cgroup| !cgroup.path.is_empty());
        named.map(|cgroup| FioCgroup { path: cgroup.path.clone(), weight: cgroup.group.weight }).collect()
    }

    /// The job file for fio: `places` are path and, in a device, first byte of each file. All
    /// cgroups are inside `cgroup`, if there is one.
    fn write(&self, places: Vec<(String, Option<u64>)>, cgroup: Option<&str>) -> PyResult<String> {
        let places: Vec<_> =
            places.into_iter().map(|(path, piece_from)| FioPath { path, piece_from }).collect();
        if places.len() != self.plan.files.len() {
            let (found, expected) = (places.len(), self.plan.files.len());
            return Err(bad_input(InputError::new(format!("{found} places for {expected} files"))));
        }
        writer::job_file(&self.plan, &places, cgroup, self.seed)
            .map_err(|why| bad_input(InputError::new(why)))
    }

    /// The processes' results, from fio's ``json+`` output.
    fn read(&self, text: &str, duration_ns: u64) -> PyResult<Run> {
        let jobs = output::read(text, &self.plan).map_err(bad_input)?;
        Ok(Run::new(&RunResult { duration_ns, jobs, overview_stride: 1, ..RunResult::default() }))
    }
}

impl FioJob {
    fn jobs(&self) -> impl Iterator<Item = &JobSpec> {
        self.plan.processes.iter().map(|process| &*process.job)
    }

    /// The processes of the space's sectors.
    pub fn owners(&self) -> Owners {
        Owners::new(&self.plan, Sector(self.room.sectors()))
    }
}
