//! What each process of a recording waits for, inferred from its times.
//!
//! * A process follows a clock if the gaps between its I/Os vary less than its think times, or if those
//!   of its I/Os that come after a pause come at about `first + n * interval`, where `n` is the I/O's
//!   number. It is replayed open, with no more I/Os in flight than recorded; if it is late, it catches
//!   up.
//! * A process that mostly writes asynchronously is write-back, for which no process waits. It follows
//!   the progress of the processes that read and write synchronously.
//! * An I/O that comes shortly after completions of another process follows those, if that is no chance
//!   (`following.rs`).
//! * All else is closed: after completions of its own process, and the recorded think time.
//!
//! The bounds below are estimates: `tests/replay_truth.rs` records jobs of which is known what they
//! wait for, and holds the replays against true runs in other places.

use super::Start;
use super::following::{completed, followed, is_free};
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

fn is_write_back(own: &[usize], kept: &[Candidate]) -> bool {
    let is_asynchronous = |&&index: &&usize| {
        let one = &kept[index].replay;
        one.op == Op::Write && !one.sync
    };
    own.iter().filter(is_asynchronous).count() * 2 > own.len()
}

fn driver(own: &[usize], kept: &[Candidate], history: &History, follows: &[Option<u32>]) -> Driver {
    if is_write_back(own, kept) {
        return Driver::Progress;
    }
    let free = || own.iter().filter(|&&index| is_free(index, kept, history));
    if free().filter(|&&index| follows[index].is_some()).count() * 2 > free().count() {
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

/// Per I/O: what completed last before it, among those that `counts` is true of.
fn latest_before(kept: &[Candidate], counts: impl Fn(usize) -> bool) -> Vec<Option<u32>> {
    let mut ends: Vec<_> = (0..kept.len())
        .filter(|&index| counts(index))
        .filter_map(|index| Some((kept[index].recorded.completed?, index as u32)))
        .collect();
    ends.sort_unstable();
    let mut next = 0;
    let mut latest = None;
    let mut found = Vec::with_capacity(kept.len());
    for (index, one) in kept.iter().enumerate() {
        while let Some(&(time, ended)) = ends.get(next)
            && time <= one.recorded.queued
        {
            latest = Some(ended);
            next += 1;
        }
        // A clock that stepped may show a completion before its I/O: none that comes later in the list.
        found.push(latest.filter(|&one| (one as usize) < index));
    }
    found
}

/// The start of each I/O in `all`, of so many processes: `once`, or several loops of it one after the other,
/// each of that `length`. What drives a process is inferred from `once`: a clock does not know of loops.
pub fn inferred_starts(once: &[Candidate], all: &[Candidate], length: Nanos, processes: usize) -> Vec<Start> {
    let history = History::new(once, processes);
    let mut own = vec![Vec::new(); processes];
    for (index, one) in once.iter().enumerate() {
        own[one.replay.process.0 as usize].push(index);
    }
    let is_write_back: Vec<_> = own.iter().map(|own| is_write_back(own, once)).collect();
    let follows = followed(once, &own, &history, &is_write_back);
    let drivers: Vec<_> = own.iter().map(|own| driver(own, once, &history, &follows)).collect();
    let history = History::new(all, processes);
    let latest = latest_before(all, |index| !is_write_back[all[index].replay.process.0 as usize]);
    let mut index_in_process = vec![0_usize; processes];
    let mut starts = Vec::with_capacity(all.len());
    for (index, Candidate { recorded, replay, .. }) in all.iter().enumerate() {
        let process = replay.process.0 as usize;
        let queued = recorded.queued;
        let (number, in_loop) = (index / once.len(), index % once.len());
        let followed = follows[in_loop].map(|other| other + (number * once.len()) as u32);
        let start = match (drivers[process], followed) {
            (Driver::Progress, _) => match latest[index] {
                Some(ended) => Start {
                    follows: Some(ended),
                    think: queued - completed(all, ended).max(history.submitted[index]),
                    ..Start::default()
                },
                None => Start::at(queued),
            },
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
            (Driver::Completions, Some(ended)) => Start {
                follows: Some(ended),
                think: queued - completed(all, ended).max(history.since[index]),
                after: history.after[index],
                ..Start::default()
            },
            (Driver::Completions, None) => history.start(index, recorded),
        };
        index_in_process[process] += 1;
        starts.push(start);
    }
    starts
}

#[cfg(test)]
mod tests {
    use super::super::{Fit, Pace, ReplayPlan, Settings, Way, plan};
    use super::*;
    use crate::units::Sector;
    use blklab_base::recorded::{self, Flags, Io};

    const BIG: Sector = Sector(1 << 30);

    fn settings() -> Settings {
        let pace = Pace::default();
        Settings { way: Way::Inferred, fit: Fit::Refuse, recorded: Some(BIG), capacity: BIG, pace }
    }

    fn inferred(ios: &[Io]) -> ReplayPlan {
        plan(ios, &settings()).expect("it fits")
    }

    fn read(pid: u32, queued_us: u64, took_us: u64) -> Io {
        let queued = Nanos::from_micros(queued_us);
        Io {
            queued,
            completed: Some(queued + Nanos::from_micros(took_us)),
            sector: Sector(8 * queued_us),
            sectors: 8,
            flags: Flags::SYNC,
            pid,
            ..Io::default()
        }
    }

    /// Process 2 reads 50 us after each completion of process 1, which reads at irregular times.
    fn pairs() -> Vec<Io> {
        let times = [0, 9_000, 17_500, 31_000, 38_000, 52_300];
        times.into_iter().flat_map(|at| [read(1, at, 1000), read(2, at + 1050, 700)]).collect()
    }

    fn following(plan: &ReplayPlan) -> Vec<u32> {
        plan.ios.iter().filter_map(|io| io.start.follows).collect()
    }

    #[test]
    fn a_process_that_reads_after_another_ones_completions_follows_them() {
        assert_eq!(following(&inferred(&pairs())), [0, 2, 4, 6, 8, 10]);
    }

    #[test]
    fn an_io_without_a_recorded_completion_does_not_hide_what_the_later_ones_follow() {
        let mut ios = pairs();
        ios[1].completed = None;
        assert_eq!(following(&inferred(&ios)), [0, 2, 4, 6, 8, 10]);
    }

    fn write(pid: u32, queued_us: u64, took_us: u64) -> Io {
        Io { op: recorded::Op::Write, flags: Flags::default(), ..read(pid, queued_us, took_us) }
    }

    /// As `sync` of a copy: few I/Os, of which the first comes when the copy is done. Beside that is a
    /// process that reads all the time.
    fn one_after_a_copy() -> Vec<Io> {
        let mut ios: Vec<_> = (0..100).map(|n| read(1, 3_000 * n, 2_990)).collect();
        ios.extend((0..20).map(|n| read(2, 1_000 * n, 900)));
        ios.push(read(3, 19_910, 700));
        ios.push(read(3, 19_910, 900));
        ios.sort_by_key(|io| io.queued);
        ios
    }

    #[test]
    fn a_single_io_follows_a_process_that_paused_then_and_the_next_goes_on_from_it() {
        let ios = one_after_a_copy();
        let plan = inferred(&ios);
        let [first, second]: [usize; 2] = {
            let of_it = ios.iter().enumerate().filter(|(_, io)| io.pid == 3).map(|(index, _)| index);
            of_it.collect::<Vec<_>>().try_into().expect("two")
        };
        let followed = plan.ios[first].start.follows.expect("it follows one") as usize;
        assert_eq!((ios[followed].pid, ios[followed].queued), (2, Nanos::from_micros(19_000)));
        assert_eq!(plan.ios[first].start.think, Nanos::from_micros(10));
        let next = plan.ios[second].start;
        assert_eq!((next.goes_on, next.think, next.not_before), (true, Nanos::ZERO, Nanos::ZERO));
    }

    #[test]
    fn ios_beside_a_busy_process_follow_it_no_more_often_than_chance_would_have_it() {
        let mut ios: Vec<_> = (0..2_000).map(|n| read(1, 150 * n, 140)).collect();
        ios.extend((0..30).map(|n| read(2, 9_700 * n + 37 * (n % 11), 300)));
        ios.sort_by_key(|io| io.queued);
        let plan = inferred(&ios);
        let followers = ios.iter().zip(&plan.ios).filter(|(_, planned)| planned.start.follows.is_some());
        assert_eq!(followers.count(), 0);
    }

    #[test]
    fn a_commit_follows_write_back_when_all_of_it_is_done_and_not_its_parts() {
        // Three bursts of four writes each, that end one after the other; a commit after each burst, and
        // another process's read after the first write of each.
        let mut ios = Vec::new();
        for burst in 0..3 {
            let at = 400_000 * burst;
            ios.extend((0..4).map(|n| write(1, at + n, 20_000 * (n + 1))));
            ios.push(read(3, at + 20_030, 300));
            ios.push(read(2, at + 80_013, 5_000));
        }
        let plan = inferred(&ios);
        let follows = |first: usize| -> Vec<_> {
            plan.ios.iter().skip(first).step_by(6).map(|io| io.start.follows).collect()
        };
        assert_eq!(follows(5), [Some(3), Some(9), Some(15)], "commits");
        assert_eq!(follows(4), [None; 3], "after a part");
    }

    #[test]
    fn pauses_of_write_back_do_not_add_up_where_it_had_to_wait_for_requests() {
        // One process reads for 50 ms; then write-back's four writes, each in the block layer only when
        // the one before has ended.
        let mut ios = vec![read(1, 0, 50_000)];
        ios.extend((0..4).map(|n| Io {
            inserted: Some(Nanos::from_micros(60_000 + 10_000 * n)),
            ..write(2, 60_000 + if n == 0 { 0 } else { 10_000 * (n - 1) }, 10_000)
        }));
        let starts: Vec<_> = inferred(&ios).ios.iter().skip(1).map(|io| io.start.think).collect();
        assert_eq!(starts[0], Nanos::from_micros(10_000));
        assert!(starts[1..].iter().all(|&think| think <= Nanos::from_micros(10_000)), "{starts:?}");
    }

    #[test]
    fn a_process_that_had_to_wait_for_a_request_waits_for_no_completions_that_came_meanwhile() {
        let us = Nanos::from_micros;
        // The second waits for a request until the first has ended; the third comes right after it.
        let blocked = Io { inserted: Some(us(5_000)), ..read(1, 100, 9_000) };
        let ios = [read(1, 0, 4_990), blocked, read(1, 5_003, 700), read(1, 9_500, 700)];
        let settings = Settings { way: Way::Closed, ..settings() };
        let plan = plan(&ios, &settings).expect("it fits");
        let afters: Vec<_> = plan.ios.iter().map(|io| io.start.after).collect();
        assert_eq!(afters, [0, 0, 0, 3]);
        assert_eq!((plan.ios[2].start.goes_on, plan.ios[2].start.think), (true, us(3)));
    }

    #[test]
    fn ios_at_regular_times_come_at_those_times_even_where_one_was_late() {
        let mut ios: Vec<_> = (0..12).map(|n| read(1, 10_000 * n, 300 + 97 * (n % 5))).collect();
        // The seventh read took so long that the eighth came at once after it.
        ios[6].completed = Some(Nanos::from_micros(74_000));
        ios[7] = read(1, 74_000, 500);
        let starts: Vec<_> = inferred(&ios).ios.iter().map(|io| io.start.not_before).collect();
        assert_eq!(starts[5], Nanos::from_micros(50_000));
        let due = Nanos::from_micros(70_000);
        assert!(starts[7] <= due + Nanos(1000) && starts[7] + Nanos(1000) >= due, "{:?}", starts[7]);
    }
}
