//! Properties that hold for processes with any behaviour and priority.

use super::*;
use crate::request::PrioClass::{BestEffort, Idle, RealTime};
use crate::scheduler::testing::world::{Reader, World};
use proptest::prelude::*;

const SLICE_IDLE: Nanos = Nanos::from_millis(8);
/// The longest request of the modelled disk: a seek and 64 sectors.
const REQUEST: Nanos = Nanos::from_millis(9);
const TICK: Nanos = Nanos::from_millis(1);

fn slice(level: u8) -> Nanos {
    ms(100 + 20 * 4 - 20 * u64::from(level))
}

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

/// A process's turns that ended by time: their first completions and their ends.
fn timed_turns(notes: &[Note], process: u32) -> Vec<(Nanos, Nanos)> {
    let mut began = None;
    let mut turns = Vec::new();
    for note in notes.iter().filter(|note| note.process == ProcessId(process)) {
        match note.decision {
            Decision::SliceTimed { .. } => began = Some(note.at),
            Decision::SliceEnd { reason: EndReason::TimeOut, .. } => {
                turns.push((began.take().expect("it had begun"), note.at));
            }
            _ => {}
        }
    }
    turns
}

/// How long between the two times there was no request at all.
fn quiet(world: &World, from: Nanos, until: Nanos) -> Nanos {
    let both = |&(begin, end): &(Nanos, Nanos)| end.min(until).saturating_sub(begin.max(from)).0;
    Nanos(world.quiet.iter().map(both).sum())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// A turn that ends by time is as long as the slice of its level, and at most a request and the idling
    /// after it longer. Only a dispatch looks at the time, so that a turn beyond its slice goes on while
    /// there is no request to dispatch.
    #[test]
    fn a_turn_is_as_long_as_the_slice_of_its_level(
        readers in prop::collection::vec(any_reader(any_class()), 2..9)
    ) {
        let mut world = World::new(NAME, &[], &readers);
        while world.step(Nanos::from_secs(4)).is_some() {}
        for (place, reader) in readers.iter().enumerate() {
            let at = if reader.task.prio.class == Idle { 7 } else { reader.task.prio.level };
            let least = slice(at) - TICK;
            for (began, ended) in timed_turns(&world.notes, place as u32) {
                let length = ended - began;
                let most = slice(at) + REQUEST + SLICE_IDLE + TICK + quiet(&world, began + slice(at), ended);
                prop_assert!(least <= length && length <= most, "{place} has {length} at level {at}");
            }
            for given in slices(&world.notes, place as u32) {
                prop_assert_eq!(given, slice(at));
            }
        }
    }

    /// Two sequential readers that always have requests share the disk's time by their slices.
    #[test]
    fn time_is_shared_by_the_slices_of_the_levels(levels in prop::collection::vec(0..8_u8, 2)) {
        let reader = |&at: &u8| Reader {
            task: level(BestEffort, at), sectors: 64, random: false, think: Nanos::ZERO, count: u32::MAX,
        };
        let readers: Vec<_> = levels.iter().map(reader).collect();
        let mut world = World::new(NAME, &[], &readers);
        // First the one far inside the disk counts as seeky.
        while world.step(Nanos::from_secs(10)).is_some() {}
        let before = world.served.clone();
        while world.step(Nanos::from_secs(40)).is_some() {}
        let found = (world.served[0] - before[0]) as f64 / (world.served[1] - before[1]) as f64;
        let due = slice(levels[0]).0 as f64 / slice(levels[1]).0 as f64;
        prop_assert!((found / due - 1.0).abs() < 0.15, "{levels:?}: {found} instead of {due}");
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
        readers in prop::collection::vec(any_reader(any_class()), 2..7), slice_idle in 0..20_i64
    ) {
        let mut world = World::new(NAME, &[("slice_idle", slice_idle)], &readers);
        while world.step(Nanos::from_secs(4)).is_some() {
            let most = ms(slice_idle as u64);
            prop_assert!(world.free_longest <= most, "free for {} at {}", world.free_longest, world.rig.now);
        }
    }

    /// A process is due after those that were due before it, at most two turns of each, and later by its
    /// lag: the difference to the longest slice for each of the others.
    #[test]
    fn no_process_starves(readers in prop::collection::vec(any_reader(Just(BestEffort)), 2..7)) {
        let mut world = World::new(NAME, &[], &readers);
        while world.step(Nanos::from_secs(8)).is_some() {}
        for (place, reader) in readers.iter().enumerate() {
            let turn = |other: &Reader| (slice(other.task.prio.level) + REQUEST + SLICE_IDLE).0;
            let others: u64 = readers.iter().map(turn).sum::<u64>() - turn(reader);
            let lag = (slice(0) - slice(reader.task.prio.level)).0 * (readers.len() as u64 - 1);
            let most = Nanos(2 * others + lag + slice(0).0);
            let longest = world.took[place];
            prop_assert!(longest <= most, "{place} waited for {longest} of {most}");
        }
    }
}
