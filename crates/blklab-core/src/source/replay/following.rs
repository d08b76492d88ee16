//! Which processes of a recording wait for I/Os of others.
//!
//! A process follows another one if its I/Os come shortly after completions of the other's, and that
//! is too frequent to be chance: a commit of the journal comes after the data that a process has written,
//! and the process goes on after the commit.

use std::collections::HashMap;

use super::inferred::SOON;
use super::plan::Candidate;
use crate::request::ProcessId;
use crate::units::Nanos;

/// The least share of a process's I/Os that were free to come with which it follows another one, unless
/// they come at once, and how many times as often as by chance that must be. Estimates.
const SHARE: f64 = 0.5;
const BEYOND_CHANCE: f64 = 5.0;

/// With less than this share it follows another one only now and then. An estimate.
const SELDOM: f64 = 0.1;

/// How likely it may be that a process that follows no other seems to. An estimate.
pub const MISTAKEN: f64 = 0.01;

/// Parts of `SOON` within which completions are looked for. A process that is woken at once needs few I/Os
/// to show that it waits; one that has some work to do first needs more.
const WITHIN: [u64; 3] = [1, 10, 100];

/// So many endings before an I/O are looked at.
const LOOKED_AT: usize = 64;

/// A completion that a process may wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Ending {
    time: Nanos,
    io: u32,
}

/// What an I/O follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Followed {
    /// The I/O that completed right before, an index.
    pub ended: u32,
    /// With that its process paused: all of its I/Os are waited for, up to this one.
    pub last: Option<u32>,
    /// Its process seldom waits for this one: perhaps only for what that has under way.
    pub seldom: bool,
}

impl Followed {
    /// Only that I/O.
    pub fn one(ended: u32) -> Followed {
        Followed { ended, last: None, seldom: false }
    }

    /// The same so many I/Os later.
    pub fn later(self, ios: u32) -> Followed {
        Followed { ended: self.ended + ios, last: self.last.map(|last| last + ios), ..self }
    }
}

/// The completions of one kind.
struct Endings {
    sorted: Vec<Ending>,
    /// The number of each process.
    counts: Vec<usize>,
}

impl Endings {
    fn of(own: &[Vec<usize>], of_process: impl Fn(usize, &[usize]) -> Vec<Ending>) -> Endings {
        let found: Vec<_> = own.iter().enumerate().map(|(process, own)| of_process(process, own)).collect();
        let counts = found.iter().map(Vec::len).collect();
        let mut sorted = found.concat();
        sorted.sort_unstable();
        Endings { sorted, counts }
    }

    /// Those of other processes so shortly before an I/O, the latest first.
    fn before<'a>(
        &'a self,
        index: usize,
        soon: Nanos,
        kept: &'a [Candidate],
    ) -> impl Iterator<Item = u32> + 'a {
        let Candidate { recorded, replay, .. } = &kept[index];
        let until = self.sorted.partition_point(|ending| ending.time <= recorded.queued);
        self.sorted[..until]
            .iter()
            .rev()
            .take(LOOKED_AT)
            .take_while(move |ending| recorded.queued - ending.time <= soon)
            .map(|ending| ending.io)
            // A clock that stepped may show a completion before its I/O: none that comes later in the list.
            .filter(move |&io| (io as usize) < index && kept[io as usize].replay.process != replay.process)
    }
}

/// For each I/O the one of another process that it follows, an index. `own` are each process's I/Os in
/// their order, `paused` those of them that came after a pause, of that length: it may have issued one because of
/// others that comes sooner after theirs. Two kinds of completions are looked at: all of them, and those with which
/// a process pauses, which are fewer, so that few I/Os after them suffice. A single pause that no process explains may
/// have been a wait for what another one had under way, such as a block that is written; write-back waits for no such
/// thing.
pub fn followed(
    kept: &[Candidate],
    own: &[Vec<usize>],
    paused: &[Vec<(usize, Nanos)>],
    is_write_back: &[bool],
) -> Vec<Option<Followed>> {
    let every = Endings::of(own, |_, own| endings_of(kept, own));
    let pauses = Endings::of(own, |_, own| pauses_of(kept, own));
    let process_of = |io: u32| kept[io as usize].replay.process;
    let span = kept.last().map_or(0, |last| (last.recorded.queued - kept[0].recorded.queued).0).max(1);
    let resolution = resolution(kept);
    let mut follows: Vec<Option<Followed>> = vec![None; kept.len()];
    for paused in paused {
        let kinds = [(&every, false), (&pauses, true)];
        for ((kind, drains), part) in kinds.into_iter().flat_map(|kind| WITHIN.map(|part| (kind, part))) {
            let soon = Nanos(SOON.0 / part);
            let mut found: HashMap<ProcessId, Vec<(usize, u32)>> = HashMap::new();
            let is_free = |&&(_, pause): &&(usize, Nanos)| pause > soon;
            let free: Vec<_> = paused.iter().filter(is_free).map(|&(index, _)| index).collect();
            for &index in &free {
                for io in kind.before(index, soon, kept) {
                    let pairs = found.entry(process_of(io)).or_default();
                    if pairs.last().is_none_or(|(other, _)| *other != index) {
                        pairs.push((index, io));
                    }
                }
            }
            found.retain(|other, pairs| {
                let within = soon.max(resolution);
                let chance = kind.counts[other.0 as usize] as f64 * within.0 as f64 / span as f64;
                let share = if part == 1 { SHARE } else { 0.0 };
                !is_mistaken(pairs.len(), free.len(), chance, share, 2 * WITHIN.len() * kind.counts.len())
            });
            let is_seldom = |pairs: &Vec<_>| (pairs.len() as f64) < SELDOM * free.len() as f64;
            let found = found.into_values().flat_map(|pairs| {
                let seldom = is_seldom(&pairs);
                pairs.into_iter().map(move |(index, io)| (index, io, seldom))
            });
            for (index, io, seldom) in found {
                let place = |io: u32, drains: bool| (completed(kept, io), io, drains);
                if follows[index].is_none_or(|one| place(io, drains) > place(one.ended, one.last.is_some())) {
                    let last = drains.then(|| last_before(&own[process_of(io).0 as usize], index));
                    follows[index] = Some(Followed { ended: io, last, seldom });
                }
            }
        }
    }
    for (paused, _) in paused.iter().zip(is_write_back).filter(|(_, writes)| !**writes) {
        let is_alone = |&&(index, pause): &&(usize, Nanos)| pause > SOON && follows[index].is_none();
        let alone: Vec<_> = paused.iter().filter(is_alone).copied().collect();
        for &(index, pause) in &alone {
            let queued = kept[index].recorded.queued;
            let was_under_way = |&io: &u32| kept[io as usize].recorded.queued <= queued - pause;
            let Some(io) = every.before(index, SOON, kept).find(was_under_way) else { continue };
            let within = (queued - completed(kept, io)).max(resolution);
            let chance = every.counts[process_of(io).0 as usize] as f64 * within.0 as f64 / span as f64;
            if chance * alone.len() as f64 <= MISTAKEN {
                follows[index] = Some(Followed { ended: io, last: None, seldom: true });
            }
        }
    }
    follows
}

/// The resolution of the recorded times: a millisecond, a microsecond or a nanosecond. Two that are equal may be that far
/// apart.
pub fn resolution(kept: &[Candidate]) -> Nanos {
    let times = || kept.iter().flat_map(|one| [Some(one.recorded.queued), one.recorded.completed]).flatten();
    let is_of = |unit: &Nanos| times().all(|time| time.0 % unit.0 == 0);
    let units = [Nanos::from_millis(1), Nanos::from_micros(1)];
    units.into_iter().find(is_of).unwrap_or(Nanos(1))
}

/// The last of these I/Os before that one; there is one.
fn last_before(own: &[usize], index: usize) -> u32 {
    own[own.partition_point(|&other| other < index) - 1] as u32
}

fn endings_of(kept: &[Candidate], own: &[usize]) -> Vec<Ending> {
    let ending = |&index: &usize| Some(Ending { time: kept[index].recorded.completed?, io: index as u32 });
    let mut endings: Vec<_> = own.iter().filter_map(ending).collect();
    endings.sort_unstable();
    endings
}

/// Completions that leave their process without any I/O in flight, for longer than a moment.
fn pauses_of(kept: &[Candidate], own: &[usize]) -> Vec<Ending> {
    let queued: Vec<_> = own
        .iter()
        .filter(|&&index| kept[index].replay.counted)
        .map(|&index| kept[index].recorded.queued)
        .collect();
    let pauses = |(count, ending): &(usize, Ending)| {
        queued.get(count + 1).is_none_or(|&next| next > ending.time && next - ending.time > SOON)
    };
    endings_of(kept, own).into_iter().enumerate().filter(pauses).map(|(_, ending)| ending).collect()
}

/// When a followed I/O completed.
pub fn completed(kept: &[Candidate], io: u32) -> Nanos {
    kept[io as usize].recorded.completed.expect("an ending has a completion")
}

/// Whether so many I/Os of all that were free may have come by chance shortly after another process's,
/// of so many processes that each could have been; or they are no more than that share.
fn is_mistaken(pairs: usize, free: usize, chance: f64, most: f64, processes: usize) -> bool {
    let share = pairs as f64 / free as f64;
    if share <= most || share <= BEYOND_CHANCE * chance {
        return true;
    }
    // Chernoff's bound of the binomial distribution's tail.
    let term = |share: f64, chance: f64| if share > 0.0 { share * (share / chance).ln() } else { 0.0 };
    let divergence = term(share, chance) + term(1.0 - share, 1.0 - chance);
    (-(free as f64) * divergence).exp() * processes as f64 > MISTAKEN
}
