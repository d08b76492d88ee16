//! Properties that hold for processes with any behaviour and priority.

use super::*;
use crate::request::PrioClass::{BestEffort, Idle, RealTime};
use crate::scheduler::testing::world::{Reader, World};
use proptest::prelude::*;

const SLICE_IDLE: Nanos = Nanos::from_millis(8);
/// Three quarters of what the modelled disk moves in `timeout_sync`, and a little more for turns
/// that look faster than they were.
const LARGEST_BUDGET: u64 = 20_000;

fn any_reader(class: impl Strategy<Value = PrioClass>) -> impl Strategy<Value = Reader> {
    let think = prop::sample::select(vec![0, 0, 0, 2, 7, 12, 50, 200]);
    let count = prop_oneof![2 => Just(u32::MAX), 1 => 1..200_u32];
    (class, 0..8_u8, 1..=8_u32, any::<bool>(), think, count).prop_map(
        |(class, at, size, random, think, count)| Reader {
            task: level(class, at),
            sectors: size * 8,
            random,
            think: ms(think),
            count,
        },
    )
}

fn any_class() -> impl Strategy<Value = PrioClass> {
    prop::sample::select(vec![RealTime, BestEffort, BestEffort, BestEffort, Idle])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// At most a budget and a request ahead of the ideal share; at most twice a budget (see the
    /// bound of B-WF2Q+) and a request behind it.
    #[test]
    fn an_always_busy_process_gets_its_weights_share_of_the_sectors(
        levels in prop::collection::vec((0..8_u8, 1..=8_u32), 2..8), max_budget in 200..4000_i64,
    ) {
        let reader = |&(at, size): &(u8, u32)| Reader {
            task: level(BestEffort, at), sectors: size * 8, random: false, think: Nanos::ZERO, count: u32::MAX,
        };
        let readers: Vec<_> = levels.iter().map(reader).collect();
        let mut world = World::new(NAME, &[("max_budget", max_budget)], &readers);
        let all: f64 = levels.iter().map(|&(at, _)| f64::from(8 - at)).sum();
        while world.step(Nanos::from_secs(3)).is_some() {
            let total: u64 = world.served.iter().sum();
            for (place, &(at, size)) in levels.iter().enumerate() {
                let phi = f64::from(8 - at) / all;
                let ahead = world.served[place] as f64 - phi * total as f64;
                let (budget, request) = (max_budget as f64, f64::from(size * 8));
                prop_assert!(ahead <= budget + request, "{place} is ahead by {ahead}");
                prop_assert!(-ahead <= budget * (1.0 + phi) + request, "{place} is behind by {}", -ahead);
            }
        }
        prop_assert!(world.served.iter().all(|&sectors| sectors > 0));
    }

    #[test]
    fn a_turn_begins_only_while_no_higher_class_waits(
        readers in prop::collection::vec(any_reader(any_class()), 2..7)
    ) {
        let rank = |class| [RealTime, BestEffort, Idle].iter().position(|&other| other == class);
        let mut world = World::new(NAME, &[], &readers);
        while let Some(begun) = world.step(Nanos::from_secs(4)) {
            for process in begun {
                let own = rank(readers[process].task.prio.class);
                let mut others = world.rig.waiting.keys().filter(|&&id| world.is_in_queue(id));
                let higher = others.find(|&&id| {
                    rank(readers[world.rig.requests[id].process.0 as usize].task.prio.class) < own
                });
                prop_assert!(higher.is_none(), "{process} goes before {higher:?} at {}", world.rig.now);
            }
        }
    }

    #[test]
    fn no_process_holds_the_disk_beyond_slice_idle_while_others_wait(
        readers in prop::collection::vec(any_reader(any_class()), 2..7)
    ) {
        let mut world = World::new(NAME, &[], &readers);
        while world.step(Nanos::from_secs(4)).is_some() {
            prop_assert!(world.free_longest <= SLICE_IDLE, "free for {} at {}", world.free_longest, world.rig.now);
        }
    }

    /// While a process waits, the others get their weights' share of its budget and a budget each,
    /// and the same again for a turn that began before. This is in sectors, not in time: seeky
    /// processes that pause are not charged for their time, see the traits that are kept.
    #[test]
    fn no_process_starves(readers in prop::collection::vec(any_reader(Just(BestEffort)), 2..7)) {
        let mut world = World::new(NAME, &[], &readers);
        while world.step(Nanos::from_secs(8)).is_some() {}
        let weight = |reader: &Reader| 8 - u64::from(reader.task.prio.level);
        for (place, reader) in readers.iter().enumerate() {
            let others = readers.iter().map(|other| weight(other).div_ceil(weight(reader)) + 1);
            let most = 2 * LARGEST_BUDGET * (others.sum::<u64>() - 2);
            let still = if world.is_waiting(place) { world.waits(place) } else { 0 };
            let longest = world.waited[place].max(still);
            prop_assert!(longest <= most, "{place} waited for {longest} sectors of {most}");
        }
    }
}
