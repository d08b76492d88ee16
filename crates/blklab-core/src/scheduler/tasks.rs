//! The schedulers' view of processes: I/O context and cgroup.

use crate::request::{IoPrio, ProcessId};

/// A cgroup's index in [`Tasks::cgroups`]; a parent comes before its children.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CgroupId(pub u16);

impl CgroupId {
    /// The group of all processes without a cgroup.
    pub const ROOT: CgroupId = CgroupId(0);
}

/// A group of processes that share the disk as one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cgroup {
    /// The parent group; `None` for the root only.
    pub parent: Option<CgroupId>,
    /// Weight against its siblings (`io.bfq.weight`, `blkio.weight`); 100 by default.
    pub weight: u16,
}

impl Cgroup {
    /// The weight of a group without a setting (`CGROUP_WEIGHT_DFL`).
    pub const DEFAULT_WEIGHT: u16 = 100;
}

/// One process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Task {
    /// The priority of its I/O context; single I/Os may carry another.
    pub prio: IoPrio,
    /// Its cgroup.
    pub cgroup: CgroupId,
    /// The process that this one is, after it has moved to this cgroup; it comes before this one.
    pub mover: Option<ProcessId>,
}

/// All processes of a run and their cgroups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tasks {
    tasks: Vec<Task>,
    cgroups: Vec<Cgroup>,
}

impl Default for Tasks {
    /// No processes, only the root group.
    fn default() -> Tasks {
        Tasks { tasks: Vec::new(), cgroups: vec![Cgroup { parent: None, weight: Cgroup::DEFAULT_WEIGHT }] }
    }
}

impl Tasks {
    /// Processes in the order of their ids, all in the root group if `cgroups` has no others.
    ///
    /// # Panics
    /// If `cgroups` does not begin with the one root, if a parent comes after its child, if a task is
    /// in a group that does not exist, or if one that has moved does not come after the process that
    /// it is.
    pub fn new(tasks: Vec<Task>, cgroups: Vec<Cgroup>) -> Tasks {
        let is_root = |index: usize| cgroups[index].parent.is_none();
        assert!(!cgroups.is_empty() && is_root(0), "the root group comes first");
        for (index, group) in cgroups.iter().enumerate().skip(1) {
            let before = group.parent.is_some_and(|parent| usize::from(parent.0) < index);
            assert!(before, "group {index} has its parent before it");
        }
        assert!(tasks.iter().all(|task| usize::from(task.cgroup.0) < cgroups.len()), "groups exist");
        let is_before = |(index, task): (usize, &Task)| task.mover.is_none_or(|one| (one.0 as usize) < index);
        assert!(tasks.iter().enumerate().all(is_before), "a process comes before itself elsewhere");
        Tasks { tasks, cgroups }
    }

    /// These, and then others. `cgroups` begin with those of these; `ids` are the places there of those of
    /// the others.
    ///
    /// # Panics
    /// As [`Tasks::new`], or if a group of the others has no place.
    #[must_use]
    pub fn and(self, others: &Tasks, cgroups: Vec<Cgroup>, ids: &[CgroupId]) -> Tasks {
        let before = self.tasks.len() as u32;
        let moved = |task: &Task| Task {
            cgroup: ids[usize::from(task.cgroup.0)],
            mover: task.mover.map(|process| ProcessId(before + process.0)),
            ..*task
        };
        let both = self.tasks.iter().copied().chain(others.tasks.iter().map(moved));
        Tasks::new(both.collect(), cgroups)
    }

    /// One process; the kernel's own threads and unknown processes are in the root group, and only the journal's
    /// thread has a priority.
    #[inline]
    pub fn get(&self, process: ProcessId) -> Task {
        self.tasks.get(process.0 as usize).copied().unwrap_or_else(|| Task {
            prio: if process == ProcessId::JOURNAL { IoPrio::JOURNAL } else { IoPrio::default() },
            ..Task::default()
        })
    }

    /// A process moves to another cgroup.
    pub fn has_moves(&self) -> bool {
        self.tasks.iter().any(|task| task.mover.is_some())
    }

    /// Every group; the root is the first.
    pub fn cgroups(&self) -> &[Cgroup] {
        &self.cgroups
    }
}
