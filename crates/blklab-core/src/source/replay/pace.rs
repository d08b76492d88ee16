//! How fast a recording is replayed, and how often.
//!
//! The speed divides the times that a plan sets, and nothing else: in the open loop the times at which
//! I/Os come; in the closed loop the think times, and the times at which processes begin; in an inferred
//! replay both, process by process. What an I/O waits for stays: no disk gets faster.
//!
//! Loops come one after the other, as if the recording were that many times as long: each I/O comes again
//! at its address, a `length` later. In the closed loop a process begins its next loop after all I/Os
//! of its last one, and the pause until then. What drives a process is inferred from one loop.

use crate::units::Nanos;

/// How fast and how often.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// How fast.
    pub speed: Speed,
    /// How often.
    pub loops: u32,
    /// The recorded time of one loop; `None` is the time of the last arrival or completion.
    pub length: Option<Nanos>,
}

impl Default for Pace {
    /// Once, as fast as recorded.
    fn default() -> Pace {
        Pace { speed: Speed::RECORDED, loops: 1, length: None }
    }
}

/// How many times as fast as recorded, in millionths; never 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Speed(u64);

impl Speed {
    /// As fast as recorded.
    pub const RECORDED: Speed = Speed(1_000_000);

    /// So many millionths of the recorded speed; `None` for 0.
    pub fn of_millionths(millionths: u64) -> Option<Speed> {
        (millionths > 0).then_some(Speed(millionths))
    }

    /// A recorded span at this speed, to the nearest nanosecond.
    pub fn of(self, span: Nanos) -> Nanos {
        let millionths = u128::from(self.0);
        let scaled = (u128::from(span.0) * u128::from(Speed::RECORDED.0) + millionths / 2) / millionths;
        Nanos(u64::try_from(scaled).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{Fit, ReplayPlan, Settings, Start, Way, plan};
    use super::*;
    use crate::units::Sector;
    use blklab_base::recorded::{Flags, Io, Op, Tables};

    const BIG: Sector = Sector(1 << 30);

    fn planned(ios: &[Io], way: Way, pace: Pace) -> ReplayPlan {
        let settings = Settings {
            way,
            fit: Fit::Refuse,
            recorded: Some(BIG),
            capacity: BIG,
            pace,
            grouping: Default::default(),
        };
        plan(ios, &Tables::default(), &settings).expect("it fits")
    }

    fn looped(loops: u32, length: Nanos) -> Pace {
        Pace { loops, length: Some(length), ..Pace::default() }
    }

    fn at_speed(millionths: u64) -> Pace {
        Pace { speed: Speed::of_millionths(millionths).expect("not 0"), ..Pace::default() }
    }

    const WAYS: [Way; 3] = [Way::Open, Way::Closed, Way::Inferred];

    fn way() -> impl Strategy<Value = Way> {
        prop::sample::select(&WAYS)
    }

    /// Some I/Os of three processes within a second, some regular, some without a completion.
    fn ios() -> impl Strategy<Value = Vec<Io>> {
        let io = (0..900_000_000_u64, 0..3_u32, prop::option::of(0..90_000_000_u64), 0..5_u16, any::<u16>());
        prop::collection::vec(io, 1..60).prop_map(|rows| {
            let mut ios: Vec<_> = rows
                .into_iter()
                .map(|(queued, pid, took, kind, bits)| Io {
                    queued: Nanos(if pid == 2 { queued / 10_000_000 * 10_000_000 } else { queued }),
                    completed: took.map(|took| Nanos(queued + took)),
                    sector: Sector(queued / 1000 * 8),
                    sectors: 8,
                    op: [Op::Read, Op::Write, Op::Write, Op::Flush, Op::Discard][usize::from(kind)],
                    flags: Flags(
                        bits & (Flags::SYNC.0 | Flags::PREFLUSH.0 | Flags::JOINS_PLUG.0 | Flags::FUA.0),
                    ),
                    pid,
                    ..Io::default()
                })
                .collect();
            ios.sort_by_key(|io| io.queued);
            ios
        })
    }

    /// The recording written down so many times.
    fn written(ios: &[Io], loops: u32, length: Nanos) -> Vec<Io> {
        let later = |io: &Io, number: u32| {
            let begins = Nanos(length.0 * u64::from(number));
            let completed = io.completed.map(|time| time + begins);
            Io { queued: io.queued + begins, completed, ..*io }
        };
        (0..loops).flat_map(|number| ios.iter().map(move |io| later(io, number))).collect()
    }

    const LENGTH: Nanos = Nanos::from_secs(1);

    proptest! {
        #[test]
        fn once_at_the_recorded_speed_is_the_recording(ios in ios(), way in way(), length in any::<u64>()) {
            let pace = Pace { length: Some(Nanos(length)), ..at_speed(1_000_000) };
            prop_assert_eq!(planned(&ios, way, pace), planned(&ios, way, Pace::default()));
        }

        #[test]
        fn the_first_loop_is_the_recording(ios in ios(), way in way(), loops in 2..5_u32) {
            let (once, all) = (planned(&ios, way, Pace::default()), planned(&ios, way, looped(loops, LENGTH)));
            prop_assert_eq!(all.ios.len(), once.ios.len() * loops as usize);
            prop_assert_eq!(&all.ios[..once.ios.len()], &once.ios[..]);
            prop_assert_eq!(all.processes, once.processes);
        }

        #[test]
        fn loops_are_a_recording_that_is_as_many_times_as_long(
            ios in ios(),
            is_open in any::<bool>(),
            loops in 1..5_u32,
        ) {
            let way = if is_open { Way::Open } else { Way::Closed };
            let mut ios = ios;
            // In a recording of several loops the first of a later one might join the plug of an earlier.
            ios.iter_mut().for_each(|io| io.flags = Flags(io.flags.0 & !Flags::JOINS_PLUG.0));
            let again = planned(&written(&ios, loops, LENGTH), way, Pace::default());
            prop_assert_eq!(planned(&ios, way, looped(loops, LENGTH)).ios, again.ios);
        }

        #[test]
        fn every_io_of_every_loop_can_come(ios in ios(), way in way(), loops in 1..5_u32) {
            let plan = planned(&ios, way, looped(loops, LENGTH));
            prop_assert_eq!(super::super::check(&plan.ios, &[BIG.0]), Ok(()));
        }

        #[test]
        fn speed_divides_times_and_leaves_what_is_waited_for(
            ios in ios(),
            way in way(),
            loops in 1..3_u32,
            millionths in 1_000..1_000_000_000_u64,
        ) {
            let recorded = planned(&ios, way, looped(loops, LENGTH));
            let pace = Pace { loops, length: Some(LENGTH), ..at_speed(millionths) };
            let scaled = planned(&ios, way, pace);
            for (one, other) in recorded.ios.iter().zip(&scaled.ios) {
                let (from, to) = (one.start, other.start);
                prop_assert_eq!(Start { not_before: from.not_before, think: from.think, ..to }, from);
                for (from, to) in [(from.not_before, to.not_before), (from.think, to.think)] {
                    let exact = from.0 as f64 * 1e6 / millionths as f64;
                    prop_assert!((to.0 as f64 - exact).abs() <= 0.5 + exact * 1e-12, "{from} became {to}");
                }
            }
        }
    }

    #[test]
    fn a_clock_goes_on_in_every_loop() {
        let read = |n: u64| Io {
            queued: Nanos::from_millis(10 * n),
            completed: Some(Nanos(10_000_000 * n + 300_000 + 97_000 * (n % 5))),
            sectors: 8,
            flags: Flags::SYNC,
            ..Io::default()
        };
        let mut ios: Vec<_> = (0..12).map(read).collect();
        // The seventh took so long that the eighth came at once after it.
        ios[6].completed = Some(Nanos::from_millis(74));
        ios[7].queued = Nanos::from_millis(74);
        ios[7].completed = Some(Nanos::from_micros(74_500));
        let plan = planned(&ios, Way::Inferred, looped(2, Nanos::from_millis(125)));
        let starts: Vec<_> = plan.ios.iter().map(|io| io.start).collect();
        for (first, second) in starts[..12].iter().zip(&starts[12..]) {
            assert_eq!(second.not_before, first.not_before + Nanos::from_millis(125));
            assert_eq!(second.after, first.after + 12);
        }
        assert!(starts[7].not_before < Nanos::from_millis(71), "on its beat");
    }

    #[test]
    fn the_time_between_two_loops_makes_no_start_less_likely_by_chance() {
        let read = |pid: u32, queued: u64, completed: u64| Io {
            queued: Nanos::from_micros(queued),
            completed: Some(Nanos::from_micros(completed)),
            sectors: 8,
            flags: Flags::SYNC,
            pid,
            ..Io::default()
        };
        // Two processes of which one always has a read under way; a third one begins 40 us after a read has completed.
        let mut ios: Vec<_> = (0..20)
            .flat_map(|n| [read(0, 500 * n, 500 * n + 430), read(1, 500 * n + 250, 500 * n + 680)])
            .collect();
        ios.push(read(2, 5_970, 6_100));
        ios.sort_by_key(|io| io.queued);
        let third = ios.iter().position(|io| io.pid == 2).expect("it has a read");
        let once = planned(&ios, Way::Inferred, Pace::default());
        let twice = planned(&ios, Way::Inferred, looped(2, Nanos::from_secs(1_000)));
        assert_eq!(once.ios[third].start, Start::at(Nanos::from_micros(5_970)));
        assert_eq!(twice.ios[third].start, once.ios[third].start);
    }

    #[test]
    fn a_recording_of_unknown_length_ends_with_its_last_completion() {
        let io = |queued, completed: Option<u64>| Io {
            queued: Nanos(queued),
            completed: completed.map(Nanos),
            sectors: 8,
            ..Io::default()
        };
        let twice = Pace { loops: 2, ..Pace::default() };
        let second = |ios: &[Io]| planned(ios, Way::Open, twice).ios[ios.len()].start.not_before;
        assert_eq!(second(&[io(5, Some(70)), io(20, Some(30))]), Nanos(75));
        assert_eq!(second(&[io(5, None), io(20, None)]), Nanos(25));
    }
}
