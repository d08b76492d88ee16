//! The cgroups of a job file: their processes and weights.
//!
//! After fio 3.33's `cgroup_setup()`, which each process performs when it starts: create a
//! directory of that name below the root of the hierarchy, unless it exists; write the weight; move
//! in. So a name with slashes names a cgroup within another, and since fio creates one level only,
//! an earlier job must have created the outer one.
//!
//! Left out: a weight that changes while processes run. fio writes a job's weight when it starts
//! and overwrites that of an earlier job; here two weights of one cgroup are refused.

use super::spec::{JobSpec, Membership};
use crate::scheduler::{Cgroup, CgroupId};

/// The range of a job's weight (fio's `cgroup_weight`).
pub const WEIGHT_RANGE: (u16, u16) = (100, 1000);

/// The longest name, in bytes: fio 3.33 keeps the path, including the mount point, in 64.
pub const NAME_BYTES_MAX: usize = 48;

/// One cgroup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CgroupPlan {
    /// Names from the outermost inwards, with slashes between; empty for the root.
    pub path: String,
    /// The parent cgroup and its own weight.
    pub group: Cgroup,
}

/// The cgroups of the jobs so far; the root comes first.
#[derive(Debug)]
pub(super) struct Cgroups {
    all: Vec<CgroupPlan>,
    /// For each, the job that set its weight.
    weighed_by: Vec<Option<String>>,
}

impl Default for Cgroups {
    fn default() -> Self {
        Cgroups { all: vec![cgroup("", None)], weighed_by: vec![None] }
    }
}

impl Cgroups {
    /// The job's cgroup, added if it is new.
    ///
    /// # Errors
    /// The problem: no job created the parent cgroup, or the cgroup has another weight already.
    pub fn enter(&mut self, job: &JobSpec) -> Result<CgroupId, String> {
        let Membership { cgroup: Some(path), weight } = &job.membership else { return Ok(CgroupId::ROOT) };
        let index = match self.find(path) {
            Some(index) => index,
            None => self.add(path)?,
        };
        if let Some(weight) = *weight {
            let found = self.all[index].group.weight;
            if let Some(other) = self.weighed_by[index].as_ref().filter(|_| found != weight) {
                return Err(format!(
                    "cgroup_weight={weight}, but job '{other}' gives cgroup '{path}' the weight {found}"
                ));
            }
            self.all[index].group.weight = weight;
            self.weighed_by[index] = Some(job.name.clone());
        }
        Ok(CgroupId(index as u16))
    }

    /// All cgroups, each after its parent.
    pub fn finish(self) -> Vec<CgroupPlan> {
        self.all
    }

    fn find(&self, path: &str) -> Option<usize> {
        self.all.iter().position(|cgroup| cgroup.path == path)
    }

    fn add(&mut self, path: &str) -> Result<usize, String> {
        let outer = path.rsplit_once('/').map_or("", |(outer, _)| outer);
        let Some(parent) = self.find(outer) else {
            return Err(format!(
                "cgroup={path}: no job before it has cgroup={outer}, and fio makes one level only"
            ));
        };
        self.all.push(cgroup(path, Some(CgroupId(parent as u16))));
        self.weighed_by.push(None);
        Ok(self.all.len() - 1)
    }
}

fn cgroup(path: &str, parent: Option<CgroupId>) -> CgroupPlan {
    CgroupPlan { path: path.to_owned(), group: Cgroup { parent, weight: Cgroup::DEFAULT_WEIGHT } }
}

/// The name without redundant slashes; `None` if it is not a name.
pub(crate) fn path(name: &str) -> Option<String> {
    let parts: Vec<_> = name.split('/').filter(|part| !part.is_empty()).collect();
    let path = parts.join("/");
    let good = !parts.is_empty() && !parts.iter().any(|part| matches!(*part, "." | ".."));
    (good && path.len() <= NAME_BYTES_MAX).then_some(path)
}

#[cfg(test)]
mod tests {
    use crate::formats::fio::jobfile::{self, Bare};
    use crate::units::Bytes;
    use crate::workload::plan::{self, Plan};

    fn plan(text: &str) -> Result<Plan, String> {
        let mut machine = Bare { memory_mib: 1024, cpus: 1 };
        let file = jobfile::parse(text, "JOB.fio", &mut machine, Default::default());
        file.and_then(|file| plan::plan(&file, Bytes(1 << 30), 1)).map_err(|error| error.to_string())
    }

    #[test]
    fn processes_are_in_the_cgroup_of_their_job_and_the_others_in_the_root() {
        let plan = plan(
            "[global]\nsize=1m\n[a]\ncgroup=x\ncgroup_weight=200\n[b]\ncgroup=/x//y/\nnumjobs=2\n[c]\n[d]\ncgroup=x\n",
        )
        .expect("a good job file");
        let found = plan.cgroups.iter().map(|cgroup| {
            (cgroup.path.as_str(), cgroup.group.parent.map(|parent| parent.0), cgroup.group.weight)
        });
        assert_eq!(found.collect::<Vec<_>>(), [("", None, 100), ("x", Some(0), 200), ("x/y", Some(1), 100)]);
        let of_process = plan.processes.iter().map(|process| process.cgroup.0);
        assert_eq!(of_process.collect::<Vec<_>>(), [1, 2, 2, 0, 1]);
    }

    #[test]
    fn a_weight_without_a_cgroup_has_no_effect_as_in_fio() {
        let plan = plan("[a]\nsize=1m\ncgroup_weight=900\n").expect("a good job file");
        assert_eq!((plan.cgroups.len(), plan.cgroups[0].group.weight), (1, 100));
    }

    #[test]
    fn a_wrong_cgroup_or_weight_is_refused_with_its_line() {
        let refused = |text: &str| plan(text).expect_err("a bad job file");
        assert_eq!(
            refused("[a]\nsize=1m\ncgroup=x/y\n"),
            "JOB.fio:1: job 'a': cgroup=x/y: no job before it has cgroup=x, and fio makes one level only"
        );
        assert_eq!(
            refused("[a]\nsize=1m\ncgroup=x\ncgroup_weight=200\n[b]\nsize=1m\ncgroup=x\ncgroup_weight=300\n"),
            "JOB.fio:5: job 'b': cgroup_weight=300, but job 'a' gives cgroup 'x' the weight 200"
        );
        assert_eq!(
            refused("[a]\nsize=1m\ncgroup=../x\n"),
            "JOB.fio:3: option 'cgroup': found '../x', expected a name such as a, or a/b for one within a, of at most 48 bytes"
        );
        assert_eq!(
            refused("[a]\nsize=1m\ncgroup=x\ncgroup_weight=99\n"),
            "JOB.fio:4: option 'cgroup_weight': found '99', expected a whole number, 100 to 1000"
        );
    }
}
