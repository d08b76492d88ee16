//! The cgroups of a replay's processes.
//!
//! A recording has the cgroup of each I/O, so a process may be in several cgroups over time: it was
//! moved, or it is a kernel thread that writes the data of other processes. In the replay it is one
//! process: its I/Os wait for each other as recorded. For the schedulers there is a number for each of
//! these cgroups. BFQ knows that they are one process that moves ([`Task::mover`]); CFQ takes each for a
//! process of its own.
//!
//! [`Task::mover`]: crate::scheduler::Task::mover
//!
//! An I/O of which no cgroup is known is in that of the I/O before it of its process, or of the first
//! that is known; without any, it is in the root. So are threads of the kernel's in recordings of a
//! machine. A cgroup of which only a number is known is below the root, and named after the number;
//! number 1 is the kernel's root.

use std::collections::HashMap;

use blklab_base::recorded::{self, Io, NameId};

use super::{PlanError, ReplayIo};
use crate::request::ProcessId;
use crate::scheduler::CgroupId;
use crate::workload::cgroups::Cgroups;

/// The range of a weight: CFQ's least, and the most of BFQ and of CFQ.
pub const WEIGHT_RANGE: (u16, u16) = (10, 1000);

/// The most cgroups of a replay, with those around them.
pub const CGROUPS_MAX: usize = 4096;

/// The kernel's number of the root.
const ROOT: u64 = 1;

/// What gives a recording's cgroups their weights, where it is the only one.
pub const THE_RECORDING: &str = "the recording";

/// Which cgroups the processes of a replay are in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Grouping {
    /// All in the root.
    Root,
    /// The recorded ones. A recording has no weights: paths with theirs; 100 for all others.
    Recorded(Vec<(String, u16)>),
}

impl Default for Grouping {
    fn default() -> Self {
        Grouping::Recorded(Vec::new())
    }
}

/// The path without what means no level of it: empty for the root. A recording that was made in a
/// namespace has `..` for what is above it.
fn levels(path: &str) -> String {
    let parts = path.split('/').filter(|part| !matches!(*part, "" | "." | ".."));
    parts.collect::<Vec<_>>().join("/")
}

/// Finds the cgroup of each I/O of a recording, in order.
pub struct Groups<'a> {
    recorded: &'a recorded::Cgroups,
    all: Cgroups,
    /// Those without a path.
    unnamed: usize,
    /// By the recorded number.
    ids: HashMap<u64, CgroupId>,
    /// By process: the cgroup of its latest I/O, or of the first that is known.
    latest: HashMap<(u32, NameId), CgroupId>,
}

impl<'a> Groups<'a> {
    /// Those of all `ios`.
    ///
    /// # Errors
    /// [`PlanError::NoCgroup`], [`PlanError::TooManyCgroups`].
    pub fn new(
        ios: &[Io],
        recorded: &'a recorded::Cgroups,
        grouping: &Grouping,
    ) -> Result<Groups<'a>, PlanError> {
        let (all, unnamed, ids, latest) = Default::default();
        let mut groups = Groups { recorded, all, unnamed, ids, latest };
        let Grouping::Recorded(weights) = grouping else { return Ok(groups) };
        for io in ios.iter().filter(|io| io.cgroup != 0) {
            let id = groups.numbered(io.cgroup)?;
            groups.latest.entry((io.pid, io.process)).or_insert(id);
        }
        groups.weigh(weights)?;
        Ok(groups)
    }

    fn numbered(&mut self, number: u64) -> Result<CgroupId, PlanError> {
        if let Some(&id) = self.ids.get(&number) {
            return Ok(id);
        }
        let path = match self.recorded.path(number) {
            "" if number == ROOT => String::new(),
            "" => {
                self.unnamed += 1;
                number.to_string()
            }
            path => levels(path),
        };
        let id = self.all.place(&path);
        if self.all.all().len() > CGROUPS_MAX {
            return Err(PlanError::TooManyCgroups);
        }
        self.ids.insert(number, id);
        Ok(id)
    }

    fn weigh(&mut self, weights: &[(String, u16)]) -> Result<(), PlanError> {
        for (given, weight) in weights {
            let path = levels(given);
            let Some(id) = self.all.find(&path).filter(|&id| id != CgroupId::ROOT) else {
                let known = self.all.all().iter().skip(1).map(|cgroup| format!("/{}", cgroup.path));
                return Err(PlanError::NoCgroup { path: format!("/{path}"), known: known.collect() });
            };
            let weighed = self.all.weigh(id, *weight, THE_RECORDING);
            weighed.map_err(PlanError::Weights)?;
        }
        Ok(())
    }

    /// The cgroup of the next I/O.
    pub fn of(&mut self, io: &Io) -> CgroupId {
        if !self.all.has_any() {
            return CgroupId::ROOT;
        }
        let known = if io.cgroup == 0 { None } else { self.ids.get(&io.cgroup).copied() };
        let latest = self.latest.entry((io.pid, io.process)).or_default();
        *latest = known.unwrap_or(*latest);
        *latest
    }

    /// All of them, and the number of those without a path.
    pub fn finish(self) -> (Cgroups, usize) {
        (self.all, self.unnamed)
    }
}

/// Replayed processes as the schedulers know them: one for each process, by its id, in the cgroup of
/// its first I/O; then one for each other cgroup that a process has I/Os in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Members {
    /// By process.
    first: Vec<CgroupId>,
    /// The rest.
    others: Vec<(ProcessId, CgroupId)>,
    numbers: HashMap<(ProcessId, CgroupId), u32>,
}

impl Members {
    /// Those of so many processes with these I/Os.
    pub fn new(ios: &[ReplayIo], processes: usize) -> Members {
        let mut members = Members { first: vec![CgroupId::ROOT; processes], ..Members::default() };
        let mut has_one = vec![false; processes];
        for io in ios {
            let index = io.process.0 as usize;
            if !has_one[index] {
                (has_one[index], members.first[index]) = (true, io.cgroup);
            } else if members.first[index] != io.cgroup {
                let next = (processes + members.others.len()) as u32;
                let place = (io.process, io.cgroup);
                if *members.numbers.entry(place).or_insert(next) == next {
                    members.others.push(place);
                }
            }
        }
        members
    }

    /// Process and cgroup of each, by number.
    pub fn iter(&self) -> impl Iterator<Item = (ProcessId, CgroupId)> {
        let first = (0..).map(ProcessId).zip(self.first.iter().copied());
        first.chain(self.others.iter().copied())
    }

    /// The number of the one that has this I/O.
    #[inline]
    pub fn of(&self, io: &ReplayIo) -> u32 {
        if self.first[io.process.0 as usize] == io.cgroup {
            return io.process.0;
        }
        self.numbers[&(io.process, io.cgroup)]
    }

    /// The process of the one with that number.
    pub fn process(&self, number: u32) -> ProcessId {
        let other = (number as usize).checked_sub(self.first.len());
        other.map_or(ProcessId(number), |other| self.others[other].0)
    }

    /// The numbers of those of a process beyond its first.
    pub fn others(&self, process: ProcessId) -> impl Iterator<Item = u32> {
        let numbered = (self.first.len() as u32..).zip(&self.others);
        numbered.filter(move |(_, (other, _))| *other == process).map(|(number, _)| number)
    }

    /// Processes that are in several cgroups.
    pub fn movers(&self) -> usize {
        let mut movers: Vec<_> = self.others.iter().map(|(process, _)| process.0).collect();
        movers.sort_unstable();
        movers.dedup();
        movers.len()
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Fit, Pace, ReplayPlan, Settings, Way, plan};
    use super::*;
    use crate::units::{Nanos, Sector};
    use blklab_base::recorded::Tables;

    const BIG: Sector = Sector(1 << 30);

    fn planned(ios: &[Io], paths: &[(u64, &str)], grouping: Grouping) -> Result<ReplayPlan, PlanError> {
        let settings = Settings {
            way: Way::Closed,
            fit: Fit::Refuse,
            recorded: Some(BIG),
            capacity: BIG,
            pace: Pace::default(),
            grouping,
        };
        let mut tables = Tables::default();
        paths.iter().for_each(|&(number, path)| tables.cgroups.set(number, path));
        plan(ios, &tables, &settings)
    }

    /// Reads of these processes in these cgroups, 1 ms after each other.
    fn reads(rows: &[(u32, u64)]) -> Vec<Io> {
        let read = |(n, &(pid, cgroup)): (u64, &(u32, u64))| Io {
            queued: Nanos::from_millis(n),
            completed: Some(Nanos(1_000_000 * n + 500)),
            sectors: 8,
            pid,
            cgroup,
            ..Io::default()
        };
        (0..).zip(rows).map(read).collect()
    }

    fn paths(plan: &ReplayPlan) -> Vec<&str> {
        plan.ios.iter().map(|io| plan.cgroups.path(io.cgroup)).collect()
    }

    #[test]
    fn each_io_is_in_its_recorded_cgroup_with_those_around_it() {
        let ios = reads(&[(1, 5), (2, 9), (3, 1), (4, 70), (5, 6)]);
        let known = [(5, "/a/b/c"), (9, "/a"), (6, "/")];
        let plan = planned(&ios, &known, Grouping::default()).expect("it fits");
        assert_eq!(paths(&plan), ["a/b/c", "a", "", "70", ""], "the kernel's root is number 1");
        let tree = plan.cgroups.all().iter();
        let tree: Vec<_> = tree.map(|one| (&*one.path, one.group.parent.map(|id| id.0))).collect();
        let expected = [("", None), ("a", Some(0)), ("a/b", Some(1)), ("a/b/c", Some(2)), ("70", Some(0))];
        assert_eq!(tree, expected);
        assert_eq!((plan.tasks().cgroups().len(), plan.unnamed), (5, 1));
    }

    #[test]
    fn levels_above_a_namespace_and_empty_ones_are_none() {
        let known = [(5, "/../../a//b/"), (6, "/.")];
        let plan = planned(&reads(&[(1, 5), (2, 6)]), &known, Grouping::default()).expect("it fits");
        assert_eq!(paths(&plan), ["a/b", ""]);
    }

    #[test]
    fn an_io_without_a_known_cgroup_is_in_that_of_the_one_before_it_or_of_the_first_known() {
        let rows = [(1, 0), (2, 0), (1, 5), (1, 0), (1, 6), (1, 0), (2, 0)];
        let known = [(5, "/a"), (6, "/b")];
        let plan = planned(&reads(&rows), &known, Grouping::default()).expect("it fits");
        assert_eq!(paths(&plan), ["a", "", "a", "a", "b", "b", ""]);
    }

    #[test]
    fn a_process_in_several_cgroups_waits_as_one_and_is_one_for_the_schedulers_in_each() {
        let ios = reads(&[(1, 5), (2, 5), (1, 6), (1, 5), (2, 5), (1, 6)]);
        let known = [(5, "/a"), (6, "/b")];
        let plan = planned(&ios, &known, Grouping::default()).expect("it fits");
        let members = plan.members();
        let found: Vec<_> = plan.ios.iter().map(|io| members.of(io)).collect();
        assert_eq!((found, members.movers()), (vec![0, 1, 2, 0, 1, 2], 1));
        let owners: Vec<_> = (0..3).map(|number| members.process(number).0).collect();
        assert_eq!((owners, members.others(ProcessId(0)).collect()), (vec![0, 1, 0], vec![2]));
        let alone = planned(&ios, &known, Grouping::Root).expect("it fits");
        let starts = |plan: &ReplayPlan| plan.ios.iter().map(|io| io.start).collect::<Vec<_>>();
        assert_eq!(starts(&plan), starts(&alone));
        assert!(!alone.cgroups.has_any() && alone.members().movers() == 0);
    }

    #[test]
    fn weights_are_given_by_path_and_100_otherwise() {
        let ios = reads(&[(1, 5), (2, 6)]);
        let known = [(5, "/a/b"), (6, "/c")];
        let weights = vec![("a/b".to_owned(), 300), ("/a/".to_owned(), 50)];
        let plan = planned(&ios, &known, Grouping::Recorded(weights)).expect("it fits");
        let found: Vec<_> = plan.cgroups.groups().iter().map(|group| group.weight).collect();
        assert_eq!(found, [100, 50, 300, 100]);
    }

    #[test]
    fn a_weight_of_an_unknown_cgroup_or_of_the_root_and_two_weights_are_refused() {
        let refused = |weights: &[(&str, u16)], rows: &[(u32, u64)]| {
            let weights = weights.iter().map(|&(path, weight)| (path.to_owned(), weight)).collect();
            let error = planned(&reads(rows), &[(5, "/a/b")], Grouping::Recorded(weights));
            error.expect_err("it is wrong").to_string()
        };
        assert_eq!(refused(&[("/b", 200)], &[(1, 5)]), "no cgroup '/b' in it; there is: /a, /a/b");
        assert_eq!(refused(&[("/", 200)], &[(1, 5)]), "no cgroup '/' in it; there is: /a, /a/b");
        assert_eq!(refused(&[("a", 200)], &[(1, 0)]), "no cgroup '/a' in it; there is: none beside the root");
        assert_eq!(
            refused(&[("a", 200), ("/a", 300)], &[(1, 5)]),
            "cgroup_weight=300, but the recording gives cgroup 'a' the weight 200"
        );
    }

    #[test]
    fn too_many_cgroups_are_refused_in_one_line() {
        let rows: Vec<_> = (0..5000).map(|n| (n, u64::from(n) + 2)).collect();
        let refused = planned(&reads(&rows[..4096]), &[], Grouping::default()).expect_err("too many");
        assert_eq!(refused, PlanError::TooManyCgroups);
        assert!(refused.to_string().contains("cgroups=none replays it without"));
        assert!(planned(&reads(&rows[..4096]), &[], Grouping::Root).is_ok());
        let few = planned(&reads(&rows[..4095]), &[], Grouping::default()).expect("it fits");
        assert_eq!(few.cgroups.all().len(), 4096);
    }
}
