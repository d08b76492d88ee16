//! How the block layer of 4.12 differs from blk-mq: plugs, and a driver that peeks.

use super::*;

#[test]
fn only_the_plug_of_4_12_is_sorted_by_sector() {
    let sectors = [900, 100, 500];
    assert_eq!(order("noop", sectors), [100, 500, 900]);
    assert_eq!(order("none", sectors), sectors);
}

#[test]
fn of_two_plugged_requests_for_a_sector_the_later_one_goes_first() {
    let mut rig = Rig::new("noop");
    for owner in [1, 2, 3] {
        rig.block.submit(rig.now, &read(800, owner), Manner::PLUGGED, &mut rig.disk);
    }
    rig.block.unplug(rig.now, &mut rig.disk);
    assert_eq!(rig.end_all().concat(), [3, 2, 1]);
}

#[test]
fn a_plug_of_4_12_is_flushed_at_sixteen_requests_and_one_of_blk_mq_at_thirty_two() {
    let falling = |count: u64| (0..count).rev().map(|place| place * 100);
    let rising = |from: u64, to: u64| (from..to).map(|place| place * 100);
    let after_sixteen: Vec<_> = rising(4, 20).chain(rising(0, 4)).collect();
    assert_eq!(order("noop", falling(20)), after_sixteen);
    let mut rig = Rig::new("mq-deadline");
    falling(32).for_each(|sector| assert_eq!(rig.submit_as(sector, Manner::PLUGGED), Submitted::Taken));
    assert!(rig.disk.next_event() == Nanos::NEVER, "the plug holds thirty-two");
    assert_eq!(rig.submit_as(9000, Manner::PLUGGED), Submitted::Taken);
    assert!(rig.disk.next_event() < Nanos::NEVER, "a full plug goes to the disk before its owner is done");
}

#[test]
fn a_plug_is_flushed_before_the_next_request_if_its_first_one_is_large_or_in_4_12_its_last_one() {
    let of = |rig: &mut Rig, sizes: &[u32]| {
        for (number, &sectors) in (0..).zip(sizes) {
            let bio = Bio { sectors, ..read(number * 10_000, number) };
            rig.block.submit(rig.now, &bio, Manner::PLUGGED, &mut rig.disk);
        }
        rig.block.in_flight
    };
    for (sizes, in_4_12, in_7_3) in
        [(&[255, 8, 8][..], 0, 0), (&[256, 8, 8], 1, 1), (&[8, 256, 8], 2, 0), (&[8, 8, 256], 0, 0)]
    {
        for (number, at_disk) in [(4012, in_4_12), (6012, in_7_3), (7003, in_7_3)] {
            let mut rig = Rig::on(linux(number), "mq-deadline", 8);
            assert_eq!(of(&mut rig, sizes), at_disk, "{sizes:?} in {number}");
        }
    }
}

#[test]
fn a_bio_grows_any_request_of_a_plug_of_4_12_and_the_last_one_of_blk_mqs() {
    let merged = |scheduler| {
        let mut rig = Rig::new(scheduler);
        rig.plug([100, 500, 108]);
        rig.end_all()
    };
    assert_eq!(merged("noop"), [vec![100, 108], vec![500]]);
    assert_eq!(merged("none"), [[100], [500], [108]]);
}

#[test]
fn a_driver_that_peeks_has_seen_one_request_while_the_disk_is_full() {
    let served = |scheduler, budget| {
        let mut rig = Rig::with_budget(scheduler, budget);
        rig.plug([500_000]);
        rig.plug([700_000]);
        rig.plug([700_008]);
        rig.plug([600_000]);
        rig.end_all()
    };
    // The peeked request goes next, although another is nearer, and nothing merges with it.
    let peeked = [[500_000], [700_000], [700_008], [600_000]];
    assert_eq!(served("deadline", true), peeked);
    assert_eq!(served("mq-deadline", false), peeked, "as does a driver of today without a budget");
    let merged = [vec![500_000], vec![600_000], vec![700_000, 700_008]];
    assert_eq!(served("mq-deadline", true), merged);
}

#[test]
fn a_flush_goes_behind_the_request_that_the_driver_has_seen() {
    let served = |scheduler| {
        let mut rig = Rig::new(scheduler);
        rig.plug([100]);
        rig.plug([5_000]);
        rig.plug([9_000]);
        rig.flush();
        rig.end_all().concat()
    };
    assert_eq!(served("noop"), [100, 5_000, FLUSHED, 9_000]);
    assert_eq!(served("mq-deadline"), [100, FLUSHED, 5_000, 9_000]);
}

#[test]
fn in_4_12_an_unplugged_bio_is_not_merged_after_a_wait_for_a_request() {
    let served = |scheduler, manner| {
        let mut rig = Rig::new(scheduler);
        rig.plug([100]);
        rig.plug([2_000]);
        rig.plug([9_000]);
        assert_eq!(rig.submit_as(9_008, Manner { again: Some(u32::MAX), ..manner }), Submitted::Taken);
        rig.block.unplug(rig.now, &mut rig.disk);
        rig.end_all().len()
    };
    assert_eq!(served("noop", WITHOUT_PLUG), 4);
    assert_eq!(served("noop", Manner::PLUGGED), 3);
    assert_eq!(served("mq-deadline", WITHOUT_PLUG), 3);
}

#[test]
fn a_bio_that_was_refused_a_request_is_not_tried_for_merging_again() {
    let served = |again: bool| {
        let again = again.then_some(u32::MAX);
        let mut rig = Rig::new("mq-deadline");
        rig.plug([100]);
        rig.plug([9_000]);
        rig.submit_as(8_992, Manner { again, ..Manner::PLUGGED });
        rig.block.unplug(rig.now, &mut rig.disk);
        rig.end_all().len()
    };
    assert_eq!(served(false), 2, "in front of the one that waits");
    assert_eq!(served(true), 3, "a request can only be appended");
}
