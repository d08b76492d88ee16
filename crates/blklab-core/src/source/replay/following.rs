//! Which processes of a recording wait for I/Os of others.
//!
//! A process follows another one if its I/Os come shortly after completions of the other's, and that
//! is too frequent to be chance: a commit of the journal comes after the data that a process has written,
//! and the process goes on after the commit.

use std::collections::HashMap;

use super::history::History;
use super::inferred::SOON;
use super::plan::Candidate;
use crate::request::ProcessId;
use crate::units::Nanos;

/// The least share of a process's I/Os that were free to come with which it follows another one, and
/// how many times as often as by chance that must be. Estimates.
const SHARE: f64 = 0.5;
const BEYOND_CHANCE: f64 = 5.0;

/// How likely it may be that a process that follows no other seems to. An estimate.
const MISTAKEN: f64 = 0.01;

/// So many endings before an I/O are looked at.
const LOOKED_AT: usize = 64;

/// A completion that a process may wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Ending {
    time: Nanos,
    io: u32,
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

    /// Those of other processes shortly before an I/O, the latest first.
    fn before<'a>(&'a self, index: usize, kept: &'a [Candidate]) -> impl Iterator<Item = u32> + 'a {
        let Candidate { recorded, replay, .. } = &kept[index];
        let until = self.sorted.partition_point(|ending| ending.time <= recorded.queued);
        self.sorted[..until]
            .iter()
            .rev()
            .take(LOOKED_AT)
            .take_while(|ending| recorded.queued - ending.time <= SOON)
            .map(|ending| ending.io)
            // A clock that stepped may show a completion before its I/O: none that comes later in the list.
            .filter(move |&io| (io as usize) < index && kept[io as usize].replay.process != replay.process)
    }
}

/// For each I/O the one of another process that it follows, an index. `own` are each process's I/Os in
/// their order. Two kinds of completions are looked at: all of them, but for write-back, and those with
/// which a process pauses, which are fewer, so that few I/Os after them suffice.
pub fn followed(
    kept: &[Candidate],
    own: &[Vec<usize>],
    history: &History,
    is_write_back: &[bool],
) -> Vec<Option<u32>> {
    let every = Endings::of(own, |process, own| match is_write_back[process] {
        true => Vec::new(),
        false => endings_of(kept, own),
    });
    let pauses = Endings::of(own, |_, own| pauses_of(kept, own));
    let process_of = |io: u32| kept[io as usize].replay.process;
    let span = kept.last().map_or(0, |last| (last.recorded.queued - kept[0].recorded.queued).0).max(1);
    let mut follows: Vec<Option<u32>> = vec![None; kept.len()];
    for own in own {
        let free: Vec<_> = own.iter().copied().filter(|&index| is_free(index, kept, history)).collect();
        for kind in [&every, &pauses] {
            let mut found: HashMap<ProcessId, Vec<(usize, u32)>> = HashMap::new();
            for &index in &free {
                for io in kind.before(index, kept) {
                    let pairs = found.entry(process_of(io)).or_default();
                    if pairs.last().is_none_or(|(other, _)| *other != index) {
                        pairs.push((index, io));
                    }
                }
            }
            found.retain(|other, pairs| {
                let chance = kind.counts[other.0 as usize] as f64 * SOON.0 as f64 / span as f64;
                !is_mistaken(pairs.len(), free.len(), chance, 2 * kind.counts.len())
            });
            for (index, io) in found.into_values().flatten() {
                let is_later = |before: u32| (completed(kept, io), io) > (completed(kept, before), before);
                if follows[index].is_none_or(is_later) {
                    follows[index] = Some(io);
                }
            }
        }
    }
    follows
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

/// It came with none of its process in flight, and after a pause: their completions did not cause it.
pub fn is_free(index: usize, kept: &[Candidate], history: &History) -> bool {
    history.was_idle(index) && kept[index].recorded.queued - history.since[index] > SOON
}

/// Whether so many I/Os of all that were free may have come by chance shortly after another process's,
/// of so many processes that each could have been.
fn is_mistaken(pairs: usize, free: usize, chance: f64, processes: usize) -> bool {
    let share = pairs as f64 / free as f64;
    if share <= SHARE || share <= BEYOND_CHANCE * chance {
        return true;
    }
    // Chernoff's bound of the binomial distribution's tail.
    let term = |share: f64, chance: f64| if share > 0.0 { share * (share / chance).ln() } else { 0.0 };
    let divergence = term(share, chance) + term(1.0 - share, 1.0 - chance);
    (-(free as f64) * divergence).exp() * processes as f64 > MISTAKEN
}
