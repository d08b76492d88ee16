//! What each process of a recording waits for, inferred from its times.
//!
//! * A process follows a clock if the gaps between its I/Os vary less than its think times, or if those
//!   of its I/Os that come after a pause come at about `first + n * interval`, where `n` is the I/O's
//!   number. It is replayed open, with no more I/Os in flight than recorded; if it is late, it catches
//!   up.
//! * A process that mostly writes asynchronously is write-back, and so is a worker of the kernel's that
//!   mostly writes (for `sync` it writes synchronously). It waits for requests and for its
//!   own reads, but for none of its writes. If its bursts regularly follow the progress of one process,
//!   that process fills the page cache, and each burst begins after it. Otherwise a burst begins after
//!   the latest completion of any process that reads or writes synchronously.
//! * An I/O that comes shortly after completions of another process follows those, if that is no chance
//!   (`following.rs`). A process that does so only now and then, or once after an I/O that was under way when its pause
//!   began, waits for what the other one has under way, and not for what that does later.
//! * A process whose pauses all come while write-back is under way, and that has none otherwise, is paused
//!   by the kernel because too much memory is dirty: it goes on when as much is written as when it did, and does not
//!   pause where more is written than when its pause began.
//! * A process that begins to write while write-back is under way syncs what another process has written, which the
//!   kernel had paused: it begins when as much is written as when it did.
//! * A process that begins while no process waits for I/O goes on from the latest completion, as the next
//!   command of a script does; so does one that begins so soon after it that this is no chance.
//! * All else is closed: after completions of its own process, and the recorded think time.
//!
//! The bounds below are estimates: `tests/replay_truth.rs` records jobs of which is known what they
//! wait for, and holds the replays against true runs in other places.

use super::Start;
use super::following::{Followed, MISTAKEN, completed, followed, resolution};
use super::history::History;
use super::plan::Candidate;
use crate::request::Op;
use crate::units::Nanos;

/// An I/O this soon after a completion may have waited for it: a wake-up and a little work. An
/// estimate.
pub const SOON: Nanos = Nanos::from_micros(200);

/// With fewer I/Os than this a clock is not recognised. An estimate.
const ENOUGH: usize = 8;

/// I/Os lie on the line of a clock if their deviation from it is below this share of the interval. An
/// estimate: a timer's jitter is far below it, think times are above.
const JITTER: f64 = 0.1;

/// What drives a process.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Driver {
    /// Completions of its own I/O, or of another process.
    Completions,
    /// A clock.
    Clock {
        /// The most I/Os that it had in flight.
        in_flight: u32,
        /// If it has one, an I/O that came late was due at the beat of its number.
        beat: Option<Beat>,
    },
    /// The progress of others: write-back.
    Progress,
}

/// The times of a regular clock: the n-th I/O of the process at `first + n * interval`, in ns.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Beat {
    first: f64,
    interval: f64,
}

/// The variance of the values without the largest tenth of them, so that rare pauses of a program do
/// not hide how regular it is otherwise.
fn trimmed_variance(mut values: Vec<u64>) -> f64 {
    values.sort_unstable();
    values.truncate((values.len() * 9).div_ceil(10));
    let count = values.len() as f64;
    let mean = values.iter().map(|&value| value as f64).sum::<f64>() / count;
    values.iter().map(|&value| (value as f64 - mean).powi(2)).sum::<f64>() / count
}

impl Beat {
    /// The line through the I/Os that came after a pause, if they lie on one, and nearer to it than
    /// their think times are to each other.
    fn of(own: &[usize], kept: &[Candidate], history: &History) -> Option<Beat> {
        let queued = |index: usize| kept[index].recorded.queued;
        let think = |index: usize| queued(index) - history.since[index];
        let paused = own.iter().enumerate().filter(|&(_, &i)| history.after[i] > 0 && think(i) > SOON);
        let points: Vec<_> =
            paused.clone().map(|(number, &index)| (number as f64, queued(index).0 as f64)).collect();
        if points.len() < ENOUGH {
            return None;
        }
        let count = points.len() as f64;
        let mean = |f: fn(&(f64, f64)) -> f64| points.iter().map(f).sum::<f64>() / count;
        let (numbers, times) = (mean(|point| point.0), mean(|point| point.1));
        let covariance = points.iter().map(|(x, y)| (x - numbers) * (y - times)).sum::<f64>();
        let interval = covariance / points.iter().map(|(x, _)| (x - numbers).powi(2)).sum::<f64>();
        let first = times - interval * numbers;
        let off = points.iter().map(|(x, y)| (y - first - interval * x).powi(2)).sum::<f64>() / count;
        let thinks = trimmed_variance(paused.map(|(_, &index)| think(index).0).collect());
        (interval > 0.0 && off.sqrt() < interval * JITTER && off < thinks).then_some(Beat { first, interval })
    }

    fn at(self, number: usize) -> Nanos {
        Nanos((self.first + self.interval * number as f64).max(0.0) as u64)
    }
}

/// Whether a process, or with `is_worker` a thread of the kernel's, is write-back.
fn is_write_back(own: &[usize], kept: &[Candidate], is_worker: bool) -> bool {
    let is_written = |&&index: &&usize| {
        let one = &kept[index].replay;
        one.op == Op::Write && (is_worker || !one.sync)
    };
    own.iter().filter(is_written).count() * 2 > own.len()
}

/// The I/Os of a process that came after a pause with none of its own in flight, so that their completions
/// may not have caused it; write-back waits only for its reads. With the length of the pause.
fn paused(
    own: &[usize],
    kept: &[Candidate],
    history: &History,
    own_read: Option<&[Option<u32>]>,
) -> Vec<(usize, Nanos)> {
    let pause = |(number, &index): (usize, &usize)| {
        let since = match own_read {
            None if !history.was_idle(index) => return None,
            None => history.since[index],
            Some(read) => could_go_on(kept, history, index, read[number]),
        };
        Some((index, kept[index].recorded.queued - since))
    };
    own.iter().enumerate().filter_map(pause).collect()
}

/// When write-back could go on: its I/O before was in the block layer, and what it read had come.
fn could_go_on(kept: &[Candidate], history: &History, index: usize, read: Option<u32>) -> Nanos {
    let submitted = history.submitted[index];
    read.map_or(submitted, |read| completed(kept, read).max(submitted)).min(kept[index].recorded.queued)
}

fn driver(
    own: &[usize],
    paused: &[(usize, Nanos)],
    kept: &[Candidate],
    history: &History,
    follows: &[Option<Followed>],
) -> Driver {
    let free: Vec<_> = paused.iter().filter(|(_, pause)| *pause > SOON).map(|&(index, _)| index).collect();
    if free.iter().filter(|&&index| follows[index].is_some()).count() * 2 > free.len() {
        return Driver::Completions;
    }
    let queued = |index: usize| kept[index].recorded.queued;
    let pairs = own.windows(2).filter(|pair| history.after[pair[1]] > 0);
    let gaps: Vec<_> = pairs.clone().map(|pair| (queued(pair[1]) - queued(pair[0])).0).collect();
    let thinks: Vec<_> = pairs.map(|pair| (queued(pair[1]) - history.since[pair[1]]).0).collect();
    let beat = Beat::of(own, kept, history);
    if beat.is_none() && (gaps.len() < ENOUGH || trimmed_variance(gaps) >= trimmed_variance(thinks)) {
        return Driver::Completions;
    }
    let in_flight = own.iter().map(|&index| {
        let with_this = history.counted_before[index] + u32::from(kept[index].replay.counted);
        with_this - history.after[index]
    });
    Driver::Clock { in_flight: in_flight.max().unwrap_or(1).max(1), beat }
}

/// For each of `asking`, which are in order: what completed last before it, of those I/Os.
fn latest_before(kept: &[Candidate], of: impl Iterator<Item = usize>, asking: &[usize]) -> Vec<Option<u32>> {
    let mut ends: Vec<_> =
        of.filter_map(|index| Some((kept[index].recorded.completed?, index as u32))).collect();
    ends.sort_unstable();
    let mut next = 0;
    let mut latest = None;
    let mut found = Vec::with_capacity(asking.len());
    for &index in asking {
        while let Some(&(time, ended)) = ends.get(next)
            && time <= kept[index].recorded.queued
        {
            latest = Some(ended);
            next += 1;
        }
        // A clock that stepped may show a completion before its I/O: none that comes later in the list.
        found.push(latest.filter(|&one| (one as usize) < index));
    }
    found
}

/// Per I/O of a process: what it had read last before.
fn own_reads(own: &[usize], kept: &[Candidate]) -> Vec<Option<u32>> {
    let reads = own.iter().copied().filter(|&index| kept[index].replay.op == Op::Read);
    latest_before(kept, reads, own)
}

/// Per I/O: none of `of` is in flight when it comes.
fn is_quiet(kept: &[Candidate], of: impl Fn(usize) -> bool) -> Vec<bool> {
    let mut until = Nanos::ZERO;
    let quiet = |(index, one): (usize, &Candidate)| {
        let is_quiet = until <= one.recorded.queued;
        if let Some(completed) = one.recorded.completed.filter(|_| of(index)) {
            until = until.max(completed);
        }
        is_quiet
    };
    kept.iter().enumerate().map(quiet).collect()
}

/// How likely it is that an I/O comes shortly after a completion by chance.
struct Chance {
    completions: usize,
    span: Nanos,
    /// The resolution of the times.
    resolution: Nanos,
}

impl Chance {
    /// Counts the completions of these I/Os.
    fn new(kept: &[Candidate], of: impl Fn(usize) -> bool) -> Chance {
        let counts = |&(index, one): &(usize, &Candidate)| one.recorded.completed.is_some() && of(index);
        let completions = kept.iter().enumerate().filter(counts).count();
        let span = kept.last().map_or(Nanos::ZERO, |last| last.recorded.queued - kept[0].recorded.queued);
        Chance { completions, span, resolution: resolution(kept) }
    }

    /// It is so unlikely to come that soon after one that it has waited for it.
    fn is_none(&self, since: Nanos) -> bool {
        since.max(self.resolution).0 as f64 * self.completions as f64 <= MISTAKEN * self.span.0 as f64
    }
}

/// The I/Os of write-back.
struct Written {
    /// When each was queued, and until when it or one before was in flight.
    busy: Vec<(Nanos, Nanos)>,
    /// When each completed, rising, and which it is.
    ended: Vec<(Nanos, u32)>,
}

impl Written {
    fn new(kept: &[Candidate], is_write_back: impl Fn(usize) -> bool) -> Written {
        let mut until = Nanos::ZERO;
        let (mut busy, mut ended) = (Vec::new(), Vec::new());
        for (index, one) in kept.iter().enumerate() {
            if let Some(completed) = one.recorded.completed
                && one.replay.op == Op::Write
                && is_write_back(index)
            {
                until = until.max(completed);
                busy.push((one.recorded.queued, until));
                ended.push((completed, index as u32));
            }
        }
        ended.sort_unstable();
        Written { busy, ended }
    }

    /// Write-back is under way at that time.
    fn is_under_way(&self, at: Nanos) -> bool {
        let begun = self.busy.partition_point(|&(queued, _)| queued <= at);
        begun > 0 && self.busy[begun - 1].1 > at
    }

    /// The last that was written before this I/O comes.
    fn last_before(&self, index: usize, kept: &[Candidate]) -> Option<u32> {
        let ended = self.ended.partition_point(|&(time, _)| time <= kept[index].recorded.queued);
        self.ended[..ended].last().map(|&(_, io)| io).filter(|&io| (io as usize) < index)
    }

    /// The start of an I/O that came after such a pause, which began at `since`: when as much is written as then, unless
    /// more is written than when the pause began.
    fn pause(&self, index: usize, kept: &[Candidate], since: Nanos, start: Start) -> Start {
        let first = self.ended.get(self.ended.partition_point(|ended| ended.0 <= since));
        let unless = first.map(|&(_, io)| io).filter(|&io| (io as usize) < index);
        let last = self.last_before(index, kept).filter(|&last| completed(kept, last) > since);
        let think = last.map_or(start.think, |last| kept[index].recorded.queued - completed(kept, last));
        Start { follows: last, unless, think, ..start }
    }

    /// Whether the kernel paused the process that has these I/Os.
    fn pauses(
        &self,
        own: &[usize],
        kept: &[Candidate],
        history: &History,
        follows: &[Option<Followed>],
    ) -> bool {
        let mut others = 0;
        for &index in own.iter().filter(|&&index| !history.is_first(index)) {
            let since = history.since[index];
            let is_paused = kept[index].recorded.queued - since > SOON && follows[index].is_none();
            match self.is_under_way(since) {
                true => {}
                false if is_paused => return false,
                false => others += 1,
            }
        }
        others >= ENOUGH
    }
}

/// Each process's I/Os, in their order.
fn by_process(kept: &[Candidate], processes: usize) -> Vec<Vec<usize>> {
    let mut own = vec![Vec::new(); processes];
    for (index, one) in kept.iter().enumerate() {
        own[one.replay.process.0 as usize].push(index);
    }
    own
}

/// The start of each I/O in `all`: `once`, or several loops of it one after the other, each of that
/// `length`. What drives a process is inferred from `once`: a clock does not know of loops. `is_worker`
/// says of each process whether it is a worker of the kernel's.
pub fn inferred_starts(
    once: &[Candidate],
    all: &[Candidate],
    length: Nanos,
    is_worker: &[bool],
) -> Vec<Start> {
    let processes = is_worker.len();
    let history = History::new(once, processes);
    let own = by_process(once, processes);
    let is_write_back: Vec<_> =
        own.iter().zip(is_worker).map(|(own, &is_worker)| is_write_back(own, once, is_worker)).collect();
    let paused: Vec<_> = own
        .iter()
        .zip(&is_write_back)
        .map(|(own, &writes)| paused(own, once, &history, writes.then(|| own_reads(own, once)).as_deref()))
        .collect();
    let follows = followed(once, &own, &paused, &is_write_back);
    let drivers: Vec<_> = (0..processes)
        .map(|process| match is_write_back[process] {
            true => Driver::Progress,
            false => driver(&own[process], &paused[process], once, &history, &follows),
        })
        .collect();
    let is_paused: Vec<_> = {
        let written = Written::new(once, |index| is_write_back[once[index].replay.process.0 as usize]);
        own.iter().map(|own| written.pauses(own, once, &history, &follows)).collect()
    };
    let history = History::new(all, processes);
    let written = Written::new(all, |index| is_write_back[all[index].replay.process.0 as usize]);
    let waits = |index: usize| !is_write_back[all[index].replay.process.0 as usize];
    let every: Vec<_> = (0..all.len()).collect();
    let latest = latest_before(all, every.iter().copied().filter(|&index| waits(index)), &every);
    let chance = Chance::new(once, waits);
    let is_quiet = is_quiet(all, waits);
    let mut own_read = vec![None; all.len()];
    for (own, _) in by_process(all, processes).iter().zip(&is_write_back).filter(|(_, writes)| **writes) {
        own.iter().zip(own_reads(own, all)).for_each(|(&index, read)| own_read[index] = read);
    }
    let mut index_in_process = vec![0_usize; processes];
    let mut starts = Vec::with_capacity(all.len());
    for (index, Candidate { recorded, replay, .. }) in all.iter().enumerate() {
        let process = replay.process.0 as usize;
        let queued = recorded.queued;
        let (number, in_loop) = (index / once.len(), index % once.len());
        let followed = follows[in_loop].map(|other| other.later((number * once.len()) as u32));
        let start = match (drivers[process], followed) {
            (Driver::Progress, followed) => {
                let since = could_go_on(all, &history, index, own_read[index]);
                let begins = history.is_first(index) || queued - since > SOON;
                let waits_for = match begins {
                    true => followed.or(latest[index].map(Followed::one)),
                    false => own_read[index].map(Followed::one),
                };
                match waits_for {
                    Some(Followed { ended, last, .. }) => Start {
                        follows: last.or(Some(ended)),
                        drains: last.is_some(),
                        think: queued - completed(all, ended).max(history.submitted[index]).min(queued),
                        ..Start::default()
                    },
                    None if begins => Start::at(queued),
                    None => Start { goes_on: true, think: queued - since, ..Start::default() },
                }
            }
            (Driver::Clock { in_flight, beat }, _) => {
                let is_late = history.after[index] > 0 && queued - history.since[index] <= SOON;
                let due = match beat {
                    Some(beat) if is_late => {
                        let begins = Nanos(length.0.saturating_mul(number as u64));
                        let beats = index_in_process[process] - number * own[process].len();
                        beat.at(beats).saturating_add(begins).min(queued)
                    }
                    _ => queued,
                };
                let after = (history.counted_before[index] + 1).saturating_sub(in_flight);
                Start { after, ..Start::at(due) }
            }
            (Driver::Completions, Some(Followed { ended, last, seldom })) => Start {
                follows: last.or(Some(ended)),
                drains: last.is_some(),
                if_begun: seldom,
                think: queued - completed(all, ended).max(history.since[index]),
                after: history.after[index],
                ..Start::default()
            },
            (Driver::Completions, None) => match latest[index].filter(|_| history.is_first(index)) {
                Some(ended) if is_quiet[index] || chance.is_none(queued - completed(all, ended)) => {
                    Start { follows: Some(ended), think: queued - completed(all, ended), ..Start::default() }
                }
                _ if history.is_first(index)
                    && replay.op == Op::Write
                    && written.is_under_way(queued)
                    && let Some(last) = written.last_before(index, all) =>
                {
                    Start { follows: Some(last), think: queued - completed(all, last), ..Start::default() }
                }
                _ => {
                    let start = history.start(index, recorded);
                    let pauses = is_paused[process]
                        && start.think > SOON
                        && written.is_under_way(history.since[index]);
                    match pauses {
                        true => written.pause(index, all, history.since[index], start),
                        false => start,
                    }
                }
            },
        };
        index_in_process[process] += 1;
        starts.push(start);
    }
    starts
}

#[cfg(test)]
mod tests;
