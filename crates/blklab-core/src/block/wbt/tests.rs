//! The places of writes, how many there are, and which sleepers get them.

use super::*;
use crate::request::{IoPrio, ProcessId};
use crate::units::Sector;
use proptest::prelude::*;

const MS: fn(u64) -> Nanos = Nanos::from_millis;

fn throttle(queue_depth: u32, cache: bool) -> Wbt {
    Wbt::new(MS(75), queue_depth, cache, Ticks::per_second(1000))
}

fn bio(op: Op, sync: bool, background: bool) -> Bio {
    Bio {
        op,
        sector: Sector(0),
        sectors: 8,
        sync,
        fua: false,
        idle: false,
        background,
        process: ProcessId(0),
        prio: IoPrio::default(),
        cpu: 0,
        thread: ProcessId(0),
        hw_queue: 0,
        owner: 0,
    }
}

/// The number of writes of that kind that are admitted at once.
fn places(wbt: &mut Wbt, now: Nanos, bio: &Bio) -> usize {
    (0..100).take_while(|_| wbt.admit(now, bio)).count()
}

/// Ends a window in which the disk has served so many reads and writes.
fn window(wbt: &mut Wbt, reads: u64, latency: Nanos, writes: u64) {
    let now = wbt.timer();
    (0..reads).for_each(|_| wbt.served(Op::Read, latency));
    (0..writes).for_each(|_| wbt.served(Op::Write, MS(1)));
    wbt.expired(now);
}

#[test]
fn a_write_that_is_waited_for_has_all_places_and_the_background_a_quarter() {
    let now = MS(5000);
    let write = |sync, background| bio(Op::Write, sync, background);
    assert_eq!(places(&mut throttle(32, true), now, &write(true, false)), 16);
    assert_eq!(places(&mut throttle(32, true), now, &write(false, false)), 8);
    assert_eq!(places(&mut throttle(32, true), now, &write(false, true)), 4);
    assert_eq!(places(&mut throttle(32, true), now, &bio(Op::Discard, true, false)), 4);
    assert_eq!(places(&mut throttle(8, true), now, &write(true, false)), 8, "as many as the disk takes");
    assert_eq!(places(&mut throttle(1, true), now, &write(true, false)), 2, "one is ready when one ends");
}

#[test]
fn a_flush_takes_a_place_and_a_direct_write_none() {
    let (mut wbt, now) = (throttle(32, true), MS(5000));
    assert_eq!(places(&mut wbt, now, &Bio { idle: true, ..bio(Op::Write, true, false) }), 100);
    assert_eq!(places(&mut wbt, now, &bio(Op::Flush, true, false)), 16);
}

#[test]
fn a_tenth_of_a_second_after_a_read_other_writes_have_the_places_of_the_background() {
    let other = bio(Op::Write, false, false);
    for (later, found) in [(99, 4), (100, 8)] {
        let mut wbt = throttle(32, true);
        wbt.admit(MS(5000), &bio(Op::Read, true, false));
        assert_eq!(places(&mut wbt, MS(5000 + later), &other), found, "{later} ms after a read");
    }
}

#[test]
fn a_second_after_a_writer_has_paused_writes_have_all_places() {
    for (later, found) in [(999, 16), (1000, 4)] {
        let mut wbt = throttle(32, true);
        wbt.paused(MS(5000));
        let now = MS(5000 + later);
        assert_eq!(places(&mut wbt, now, &bio(Op::Write, false, true)), found, "{later} ms after");
    }
}

#[test]
fn slow_reads_halve_the_places_and_shorten_the_window_and_fast_ones_bring_them_back() {
    let mut wbt = throttle(32, true);
    assert!(wbt.admit(MS(5000), &bio(Op::Write, true, false)));
    assert_eq!(wbt.timer(), MS(5104), "100 ms and a tick, in the wheel's second level");
    let mut found = vec![wbt.limits[0]];
    for _ in 0..5 {
        window(&mut wbt, 1, MS(80), WRITES_MIN);
        found.push(wbt.limits[0]);
    }
    assert_eq!(found, [16, 8, 4, 2, 1, 1]);
    assert_eq!(wbt.window, Nanos(1_600_000_000 / 35), "divided by the root of five, rounded");
    for _ in 0..4 {
        window(&mut wbt, 1, MS(70), WRITES_MIN);
    }
    assert_eq!((wbt.limits[0], wbt.step), (16, 0));
}

#[test]
fn only_writes_have_up_to_three_quarters_of_the_disk_until_a_slow_read_comes() {
    let mut wbt = throttle(32, true);
    assert!(wbt.admit(MS(5000), &bio(Op::Write, true, false)));
    window(&mut wbt, 0, MS(0), 1);
    window(&mut wbt, 0, MS(0), 1);
    assert_eq!((wbt.limits, wbt.step), ([24, 12, 6], -1), "31 would be more than 24: there it ends");
    window(&mut wbt, 1, MS(80), WRITES_MIN);
    assert_eq!((wbt.limits[0], wbt.step), (16, 0), "straight to the initial number");
}

#[test]
fn a_read_that_does_not_end_is_a_slow_one() {
    let mut wbt = throttle(32, true);
    assert!(wbt.admit(MS(5000), &bio(Op::Write, true, false)));
    wbt.track(RequestId(3), &bio(Op::Read, true, false));
    wbt.issued(MS(5010), RequestId(3));
    window(&mut wbt, 0, MS(0), 1);
    assert_eq!(wbt.limits[0], 8);
    wbt.freed(MS(5110), RequestId(3));
    window(&mut wbt, 0, MS(0), 1);
    assert_eq!(wbt.limits[0], 16, "it has ended");
}

#[test]
fn without_anything_to_see_the_places_return_after_five_windows() {
    let mut wbt = throttle(32, true);
    assert!(wbt.admit(MS(5000), &bio(Op::Write, true, false)));
    wbt.track(RequestId(0), &bio(Op::Write, true, false));
    window(&mut wbt, 1, MS(80), WRITES_MIN);
    wbt.freed(MS(5200), RequestId(0));
    let found: Vec<_> = (0..5)
        .map(|_| {
            window(&mut wbt, 0, MS(0), 0);
            wbt.limits[0]
        })
        .collect();
    assert_eq!(found, [8, 8, 8, 8, 16]);
    assert_eq!(wbt.timer(), Nanos::NEVER, "nothing is in flight, and there are the initial places");
}

/// Takes all places, lets `sleepers` sleep, and frees places one by one: those woken after each.
fn woken(cache: bool, sleepers: u64) -> Vec<Vec<u64>> {
    let (mut wbt, now) = (throttle(32, cache), MS(5000));
    let write = bio(Op::Write, false, false);
    let taken = places(&mut wbt, now, &write) as u32;
    (0..taken).for_each(|id| wbt.track(RequestId(id), &write));
    for actor in 0..sleepers {
        assert!(!wbt.admit(now, &write), "others sleep before it");
        assert_eq!(wbt.wake(now, actor), Place::Unasked);
        wbt.sleep(actor, &write);
        assert_eq!(wbt.wake(now, actor), Place::Awaited);
    }
    let mut found: Vec<Vec<u64>> = Vec::new();
    for id in 0..taken {
        wbt.freed(now, RequestId(id));
        found.push(wbt.take_woken().collect());
    }
    let given: Vec<_> = (0..sleepers).map(|actor| wbt.wake(now, actor)).collect();
    assert_eq!(given.iter().filter(|&&place| place == Place::Taken).count(), found.concat().len());
    found
}

#[test]
fn sleepers_are_woken_in_order_when_several_places_are_free_or_a_write_cache_has_drained() {
    let none = Vec::new();
    let found = woken(false, 3);
    assert_eq!(found[..4], [none.clone(), vec![0, 1], none.clone(), vec![2]]);
    let found = woken(true, 3);
    assert!(found[..7].iter().all(Vec::is_empty), "the cache drains");
    assert_eq!(found[7], [0, 1, 2]);
}

proptest! {
    /// Places are given back, and sleepers are woken once all requests have ended.
    #[test]
    fn no_sleeper_sleeps_for_ever(
        steps in prop::collection::vec((0u8..4, any::<bool>(), any::<bool>(), 0u64..50), 1..300),
        depth in 1u32..64,
        cache: bool,
    ) {
        let mut wbt = throttle(depth, cache);
        let (mut now, mut next_id, mut actor) = (MS(5000), 0, 0);
        let mut in_flight: VecDeque<RequestId> = VecDeque::new();
        let mut asleep: Vec<(u64, Bio)> = Vec::new();
        let drain = vec![(3, false, false, 1); 1000];
        for (what, sync, background, ms) in steps.into_iter().chain(drain) {
            now += MS(ms);
            while wbt.timer() <= now {
                wbt.expired(wbt.timer());
            }
            let bio = bio([Op::Write, Op::Read, Op::Discard, Op::Write][usize::from(what)], sync, background);
            let mut begins = Vec::new();
            if what == 3 {
                if let Some(id) = in_flight.pop_front() {
                    wbt.served(Op::Write, MS(ms));
                    wbt.freed(now, id);
                }
            } else if wbt.admit(now, &bio) {
                begins.push(bio);
            } else {
                wbt.sleep(actor, &bio);
                asleep.push((actor, bio));
                actor += 1;
            }
            let woken: Vec<_> = wbt.take_woken().collect();
            for one in woken {
                let at = asleep.iter().position(|(sleeper, _)| *sleeper == one).expect("it sleeps");
                prop_assert_eq!(wbt.wake(now, one), Place::Taken);
                begins.push(asleep.remove(at).1);
            }
            for bio in begins {
                let id = RequestId(next_id);
                next_id += 1;
                wbt.track(id, &bio);
                wbt.issued(now, id);
                in_flight.push_back(id);
            }
        }
        prop_assert!(asleep.is_empty() && in_flight.is_empty());
        prop_assert_eq!((wbt.writing.taken, wbt.discarding.taken), (0, 0));
    }
}
