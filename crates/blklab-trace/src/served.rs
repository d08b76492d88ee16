//! What was served while others waited: a part of a recording by process and by cgroup, and its slowest
//! I/Os with what the disk did meanwhile.
//!
//! An I/O comes when it is queued, waits until it is issued, and is at the disk until it completes. The
//! first pass ([`Served`]) counts, and keeps the slowest; the second ([`Meanwhile`]) finds which I/Os were issued
//! while each waited, and which were completed while the disk had it. Both take bounded memory.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};

use blklab_base::recorded::{Flags, Io, NameId, Op, Tables};
use blklab_base::units::{Nanos, SECTOR_BYTES};

/// Processes, and cgroups, that are counted apart.
const ROWS_MAX: usize = 1 << 16;

/// The I/Os that are listed one by one for each slow one.
pub const LISTED: usize = 12;

/// What came, and what was served, in one step of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// I/Os that came.
    pub came: u64,
    /// I/Os that were issued: reads, others. Where no issue is recorded, those that were completed.
    pub ios: [u64; 2],
    /// Their bytes.
    pub bytes: [u64; 2],
    /// Those of them whose wait is known.
    pub waited: u64,
    /// The sum of their waits, from queue to issue.
    pub wait_ns: u64,
    /// The longest of their waits.
    pub wait_max_ns: u64,
    /// Those whose time at the disk is known.
    pub completed: u64,
    /// The sum of their times at the disk, from issue to completion.
    pub disk_ns: u64,
}

/// Whose I/O it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Owner {
    /// The process's number, or the cgroup's.
    pub number: u64,
    /// Its name, or path; empty if it is not known.
    pub name: String,
}

/// The rows of processes, or of cgroups.
#[derive(Debug, Default)]
struct Rows {
    owners: Vec<Owner>,
    known: HashMap<(u64, NameId), u32>,
    /// Only these have a row of their own.
    only: Option<Vec<Owner>>,
    /// The row of all others.
    others: Option<u32>,
    last: Option<((u64, NameId), u32)>,
    counts: BTreeMap<(u32, u32), Counts>,
}

impl Rows {
    fn row(&mut self, key: (u64, NameId), name: impl Fn() -> String) -> u32 {
        if let Some((last, row)) = self.last
            && last == key
        {
            return row;
        }
        let row = match self.known.get(&key) {
            Some(row) => *row,
            None => self.new_row(key, name()),
        };
        self.last = Some((key, row));
        row
    }

    fn new_row(&mut self, key: (u64, NameId), name: String) -> u32 {
        let owner = Owner { number: key.0, name };
        let is_own = match &self.only {
            Some(only) => only.contains(&owner),
            None => self.owners.len() < ROWS_MAX,
        };
        let next = self.owners.len() as u32;
        let row = if is_own {
            self.owners.push(owner);
            next
        } else if let Some(others) = self.others {
            others
        } else {
            self.owners.push(Owner { number: 0, name: OTHERS.to_owned() });
            self.others = Some(next);
            next
        };
        if self.known.len() < 2 * ROWS_MAX {
            self.known.insert(key, row);
        }
        row
    }

    fn at(&mut self, step: u32, row: u32) -> &mut Counts {
        self.counts.entry((step, row)).or_default()
    }
}

/// The name of the row of all that have none of their own.
pub const OTHERS: &str = "(others)";

/// An I/O that was kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slow {
    /// The I/O, which completes.
    pub io: Io,
    /// Its process: a row of [`Served::processes`].
    pub process: u32,
    /// Its cgroup: a row of [`Served::cgroups`].
    pub cgroup: u32,
    /// The step in which it came.
    pub step: u32,
}

impl Slow {
    /// From queue to completion.
    pub fn length(&self) -> Nanos {
        self.completed().saturating_sub(self.io.queued)
    }

    /// Until then it waits. Where no issue is recorded, the disk has it at once.
    fn issued(&self) -> Nanos {
        self.io.issued.unwrap_or(self.io.queued)
    }

    fn completed(&self) -> Nanos {
        self.io.completed.unwrap_or_else(|| self.issued())
    }
}

/// Whether a process waits for it: a read that is no read-ahead, a synchronous write, a flush.
fn is_awaited(io: &Io) -> bool {
    io.op == Op::Read && !io.flags.has(Flags::READ_AHEAD) || io.op == Op::Flush || io.flags.has(Flags::SYNC)
}

/// I/Os for which processes wait before others, the slowest first; of equal ones the earlier.
type Rank = (bool, u64, Reverse<u64>);

/// The slowest of one step, with their places in the list of all.
#[derive(Clone, Debug, Default)]
struct Kept(Vec<(Rank, u32)>);

/// The first pass over a recording.
#[derive(Debug)]
pub struct Served {
    from: Nanos,
    until: Nanos,
    step: Nanos,
    kept: usize,
    processes: Rows,
    cgroups: Rows,
    /// At most one of each process is kept of a step.
    distinct: bool,
    slowest: Vec<Kept>,
    slow: Vec<Slow>,
    end: Nanos,
}

impl Served {
    /// I/O that comes or is served from `from` to before `until`, in at most `steps` steps of equal length,
    /// and the `kept` slowest I/Os of each step: those for which processes wait before others, of several bios
    /// of a request one, and of each process one if `distinct`. `only` has the processes and the cgroups with a row of
    /// their own; all of them if it is `None`.
    pub fn new(
        from: Nanos,
        until: Nanos,
        steps: u32,
        (kept, distinct): (usize, bool),
        only: (Option<Vec<Owner>>, Option<Vec<Owner>>),
    ) -> Served {
        let step = Nanos(until.saturating_sub(from).0.div_ceil(u64::from(steps.max(1))).max(1));
        Served {
            from,
            until,
            step,
            kept,
            distinct,
            processes: Rows { only: only.0, ..Rows::default() },
            cgroups: Rows { only: only.1, ..Rows::default() },
            slowest: vec![Kept::default(); steps.max(1) as usize],
            slow: Vec::new(),
            end: from,
        }
    }

    /// Takes the next I/O; false if no later one can belong to it.
    pub fn take(&mut self, io: &Io, tables: &Tables) -> bool {
        if io.queued >= self.until {
            return false;
        }
        let served = io.issued.or(io.completed);
        let is_served = served.is_some_and(|at| self.holds(at));
        let has_come = self.holds(io.queued);
        if !is_served && !has_come {
            return true;
        }
        let name = || tables.processes.name(io.process).to_owned();
        let process = self.processes.row((u64::from(io.pid), io.process), name);
        let cgroup =
            self.cgroups.row((io.cgroup, NameId::NONE), || tables.cgroups.path(io.cgroup).to_owned());
        if has_come {
            let step = self.step_of(io.queued);
            self.end = self.end.max(io.completed.unwrap_or(io.queued));
            self.processes.at(step, process).came += 1;
            self.cgroups.at(step, cgroup).came += 1;
            if io.completed.is_some() {
                self.rank(Slow { io: *io, process, cgroup, step });
            }
        }
        if let Some(at) = served.filter(|_| is_served) {
            let step = self.step_of(at);
            for counts in [self.processes.at(step, process), self.cgroups.at(step, cgroup)] {
                let kind = usize::from(io.op != Op::Read);
                counts.ios[kind] += 1;
                counts.bytes[kind] += u64::from(io.sectors) * SECTOR_BYTES;
                let Some(issued) = io.issued else { continue };
                let wait = issued.saturating_sub(io.queued).0;
                counts.waited += 1;
                counts.wait_ns = counts.wait_ns.saturating_add(wait);
                counts.wait_max_ns = counts.wait_max_ns.max(wait);
                if let Some(completed) = io.completed {
                    counts.completed += 1;
                    counts.disk_ns = counts.disk_ns.saturating_add(completed.saturating_sub(issued).0);
                }
            }
        }
        true
    }

    fn holds(&self, at: Nanos) -> bool {
        at >= self.from && at < self.until
    }

    fn step_of(&self, at: Nanos) -> u32 {
        ((at.saturating_sub(self.from).0 / self.step.0) as u32).min(self.slowest.len() as u32 - 1)
    }

    fn rank(&mut self, slow: Slow) {
        let Kept(kept) = &mut self.slowest[slow.step as usize];
        let rank = (is_awaited(&slow.io), slow.length().0, Reverse(slow.io.queued.0));
        let is_full = kept.len() >= self.kept;
        // They are in order: most I/Os are not among the slowest, and are told by the last.
        if is_full && kept.last().is_none_or(|(last, _)| rank <= *last) {
            return;
        }
        let of_one = |other: &Slow| match self.distinct {
            true => other.process == slow.process,
            false => {
                slow.io.issued.is_some()
                    && (other.io.issued, other.io.completed) == (slow.io.issued, slow.io.completed)
            }
        };
        let same = kept.iter().position(|(_, place)| of_one(&self.slow[*place as usize]));
        let place = match same {
            Some(same) if kept[same].0 >= rank => return,
            Some(same) => kept.remove(same).1,
            None if is_full => kept.pop().map_or(0, |(_, place)| place),
            None => {
                self.slow.push(slow.clone());
                self.slow.len() as u32 - 1
            }
        };
        self.slow[place as usize] = slow;
        let at = kept.partition_point(|(other, _)| *other > rank);
        kept.insert(at, (rank, place));
    }

    /// The length of a step.
    pub fn step(&self) -> Nanos {
        self.step
    }

    /// The last completion, or arrival, of what came.
    pub fn end(&self) -> Nanos {
        self.end
    }

    /// The processes with I/O, by row.
    pub fn processes(&self) -> &[Owner] {
        &self.processes.owners
    }

    /// The cgroups with I/O, by row; that of number 0 and an empty path is not known.
    pub fn cgroups(&self) -> &[Owner] {
        &self.cgroups.owners
    }

    /// Step, row of a process, counts; in this order.
    pub fn of_processes(&self) -> impl Iterator<Item = (u32, u32, Counts)> + '_ {
        self.processes.counts.iter().map(|((step, row), counts)| (*step, *row, *counts))
    }

    /// Step, row of a cgroup, counts; in this order.
    pub fn of_cgroups(&self) -> impl Iterator<Item = (u32, u32, Counts)> + '_ {
        self.cgroups.counts.iter().map(|((step, row), counts)| (*step, *row, *counts))
    }

    /// The second pass, with the I/Os that were kept, in order, and the I/Os that were issued while each
    /// waited one by one if `listed`.
    pub fn meanwhile(&mut self, listed: bool) -> Meanwhile<'_> {
        let mut slow = std::mem::take(&mut self.slow);
        slow.sort_by_key(|one| (Reverse((is_awaited(&one.io), one.length())), one.io.queued, one.io.number));
        Meanwhile::new(slow, &mut self.processes, listed)
    }
}

/// I/Os of one process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Got {
    /// Reads, others.
    pub ios: [u64; 2],
    /// Their bytes.
    pub bytes: [u64; 2],
}

impl Got {
    fn of(io: &Io) -> Got {
        let (mut one, kind) = (Got::default(), usize::from(io.op != Op::Read));
        (one.ios[kind], one.bytes[kind]) = (1, u64::from(io.sectors) * SECTOR_BYTES);
        one
    }

    fn add(&mut self, other: Got) {
        for kind in 0..2 {
            self.ios[kind] += other.ios[kind];
            self.bytes[kind] += other.bytes[kind];
        }
    }
}

/// A slow I/O, and what the disk did meanwhile. Lists of processes are by row, the one with the most bytes first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instead {
    /// The I/O.
    pub slow: Slow,
    /// I/Os that were issued while it waited: from its queue time to before its issue.
    pub issued: Vec<(u32, Got)>,
    /// I/Os that were completed while the disk had it: from its issue to before its completion.
    pub completed: Vec<(u32, Got)>,
    /// The first [`LISTED`] of `issued` in order of time, with the rows of their processes.
    pub listed: Vec<(u32, Io)>,
}

/// The I/Os that were issued first, the latest on top.
type Earliest = BinaryHeap<(u64, u64, u32, usize)>;

/// The second pass over a recording.
///
/// The times of all slow I/Os cut the time into pieces. An I/O counts for the piece in which it was issued, and for
/// that in which it completed; a slow I/O is a row of pieces.
#[derive(Debug)]
pub struct Meanwhile<'a> {
    slow: Vec<Slow>,
    cuts: Vec<Nanos>,
    /// Issued, completed.
    pieces: [Vec<HashMap<u32, Got>>; 2],
    rows: &'a mut Rows,
    /// For each slow I/O the earliest: issue time, number, row, place in the list beside.
    listed: Option<Vec<(Earliest, Vec<Io>)>>,
    last: Nanos,
}

impl<'a> Meanwhile<'a> {
    fn new(slow: Vec<Slow>, rows: &'a mut Rows, listed: bool) -> Meanwhile<'a> {
        let times = |one: &Slow| [one.io.queued, one.issued(), one.completed()];
        let mut cuts: Vec<_> = slow.iter().flat_map(times).collect();
        cuts.sort_unstable();
        cuts.dedup();
        let listed = listed.then(|| slow.iter().map(|_| (BinaryHeap::new(), Vec::new())).collect());
        let last = cuts.last().copied().unwrap_or_default();
        let pieces = std::array::from_fn(|_| vec![HashMap::new(); cuts.len()]);
        Meanwhile { slow, cuts, pieces, rows, listed, last }
    }

    /// Takes the next I/O, of the same recording from its start; false if no later one can matter.
    pub fn take(&mut self, io: &Io, tables: &Tables) -> bool {
        if io.queued >= self.last {
            return false;
        }
        let mut row = None;
        for (kind, at) in [io.issued, io.completed].into_iter().enumerate() {
            let Some(at) = at else { continue };
            let piece = self.cuts.partition_point(|cut| *cut <= at);
            if piece == 0 || piece == self.cuts.len() {
                continue;
            }
            let row = *row.get_or_insert_with(|| {
                let name = || tables.processes.name(io.process).to_owned();
                self.rows.row((u64::from(io.pid), io.process), name)
            });
            self.pieces[kind][piece - 1].entry(row).or_default().add(Got::of(io));
        }
        if let (Some(listed), Some(issued), Some(row)) = (&mut self.listed, io.issued, row) {
            for (slow, (earliest, ios)) in self.slow.iter().zip(listed) {
                if issued < slow.io.queued || issued >= slow.issued() {
                    continue;
                }
                if earliest.len() < LISTED {
                    earliest.push((issued.0, io.number, row, ios.len()));
                    ios.push(*io);
                } else if let Some(mut latest) = earliest.peek_mut()
                    && (issued.0, io.number) < (latest.0, latest.1)
                {
                    let place = latest.3;
                    *latest = (issued.0, io.number, row, place);
                    ios[place] = *io;
                }
            }
        }
        true
    }

    /// The slow I/Os, in order.
    pub fn finish(self) -> Vec<Instead> {
        let Meanwhile { slow, cuts, pieces, listed, .. } = self;
        let mut listed = listed.map(Vec::into_iter);
        let sums = |kind: usize, from: Nanos, until: Nanos| {
            let place = |at: Nanos| cuts.partition_point(|cut| *cut < at);
            let mut sums: HashMap<u32, Got> = HashMap::new();
            for (row, got) in pieces[kind].get(place(from)..place(until)).unwrap_or_default().iter().flatten()
            {
                sums.entry(*row).or_default().add(*got);
            }
            let mut got: Vec<_> = sums.into_iter().collect();
            got.sort_by_key(|(row, got)| (Reverse(got.bytes[0] + got.bytes[1]), *row));
            got
        };
        let mut with = |slow: Slow| {
            let issued = sums(0, slow.io.queued, slow.issued());
            let completed = sums(1, slow.issued(), slow.completed());
            let listed = listed.as_mut().and_then(Iterator::next).map_or_else(Vec::new, |(earliest, ios)| {
                let in_order = earliest.into_sorted_vec();
                in_order.into_iter().map(|(_, _, row, place)| (row, ios[place])).collect()
            });
            Instead { slow, issued, completed, listed }
        };
        slow.into_iter().map(&mut with).collect()
    }
}

#[cfg(test)]
mod tests;
