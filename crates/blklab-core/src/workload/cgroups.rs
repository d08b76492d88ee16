//! The cgroups of a run: their processes and weights.
//!
//! Those of a job file follow fio 3.33's `cgroup_setup()`, which each process performs when it
//! starts: create a directory of that name below the root of the hierarchy, unless it exists; write
//! the weight; move in. So a name with slashes names a cgroup within another, and since fio creates
//! one level only, an earlier job must have created the outer one. Those of a recording have their
//! parents with them.
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
    /// What gave the weight: a job or a recording, in words for a message.
    pub weighed_by: Option<String>,
}

/// The cgroups of a run, each after its parent; the root comes first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cgroups {
    all: Vec<CgroupPlan>,
}

impl Default for Cgroups {
    /// The root alone.
    fn default() -> Self {
        Cgroups { all: vec![cgroup("", None)] }
    }
}

impl Cgroups {
    /// The job's cgroup, added if it is new.
    ///
    /// # Errors
    /// The problem: no job created the parent cgroup, or the cgroup has another weight already.
    pub(super) fn enter(&mut self, job: &JobSpec) -> Result<CgroupId, String> {
        let Membership { cgroup: Some(path), weight } = &job.membership else { return Ok(CgroupId::ROOT) };
        let outer = outer(path);
        if self.find(path).is_none() && self.find(outer).is_none() {
            return Err(format!(
                "cgroup={path}: no job before it has cgroup={outer}, and fio makes one level only"
            ));
        }
        let id = self.place(path);
        if let Some(weight) = *weight {
            self.weigh(id, weight, &format!("job '{}'", job.name))?;
        }
        Ok(id)
    }

    /// The cgroup of that path, added with those around it if it is new.
    pub fn place(&mut self, path: &str) -> CgroupId {
        if let Some(id) = self.find(path) {
            return id;
        }
        let parent = self.place(outer(path));
        self.all.push(cgroup(path, Some(parent)));
        CgroupId((self.all.len() - 1) as u16)
    }

    /// Gives a cgroup its weight; `by` is a job or a recording, in words for a message.
    ///
    /// # Errors
    /// The cgroup has another weight already, in one line.
    pub fn weigh(&mut self, id: CgroupId, weight: u16, by: &str) -> Result<(), String> {
        let CgroupPlan { path, group, weighed_by } = &mut self.all[usize::from(id.0)];
        if let Some(other) = weighed_by.as_ref().filter(|_| group.weight != weight) {
            let found = group.weight;
            return Err(format!(
                "cgroup_weight={weight}, but {other} gives cgroup '{path}' the weight {found}"
            ));
        }
        group.weight = weight;
        *weighed_by = Some(by.to_owned());
        Ok(())
    }

    /// Adds `others`: cgroups of one path are one. Returns the id that each of them has here. `by` is what
    /// gave them their weights, in words for a message.
    ///
    /// # Errors
    /// A cgroup has two weights, in one line.
    pub fn join(&mut self, others: &Cgroups, by: &str) -> Result<Vec<CgroupId>, String> {
        let mut ids = Vec::with_capacity(others.all.len());
        for CgroupPlan { path, group, weighed_by } in &others.all {
            let id = self.place(path);
            if weighed_by.is_some() {
                self.weigh(id, group.weight, by)?;
            }
            ids.push(id);
        }
        Ok(ids)
    }

    /// The cgroup of that path.
    pub fn find(&self, path: &str) -> Option<CgroupId> {
        let found = self.all.iter().position(|cgroup| cgroup.path == path);
        found.map(|index| CgroupId(index as u16))
    }

    /// The path of one.
    pub fn path(&self, id: CgroupId) -> &str {
        &self.all[usize::from(id.0)].path
    }

    /// All, by id.
    pub fn all(&self) -> &[CgroupPlan] {
        &self.all
    }

    /// All for the schedulers, by id.
    pub fn groups(&self) -> Vec<Cgroup> {
        self.all.iter().map(|cgroup| cgroup.group.clone()).collect()
    }

    /// There are others than the root.
    pub fn has_any(&self) -> bool {
        self.all.len() > 1
    }
}

fn outer(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(outer, _)| outer)
}

fn cgroup(path: &str, parent: Option<CgroupId>) -> CgroupPlan {
    let group = Cgroup { parent, weight: Cgroup::DEFAULT_WEIGHT };
    CgroupPlan { path: path.to_owned(), group, weighed_by: None }
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
        let found = plan.cgroups.all().iter().map(|cgroup| {
            (cgroup.path.as_str(), cgroup.group.parent.map(|parent| parent.0), cgroup.group.weight)
        });
        assert_eq!(found.collect::<Vec<_>>(), [("", None, 100), ("x", Some(0), 200), ("x/y", Some(1), 100)]);
        let of_process = plan.processes.iter().map(|process| process.cgroup.0);
        assert_eq!(of_process.collect::<Vec<_>>(), [1, 2, 2, 0, 1]);
    }

    #[test]
    fn a_weight_without_a_cgroup_has_no_effect_as_in_fio() {
        let plan = plan("[a]\nsize=1m\ncgroup_weight=900\n").expect("a good job file");
        assert_eq!((plan.cgroups.has_any(), plan.cgroups.all()[0].group.weight), (false, 100));
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
