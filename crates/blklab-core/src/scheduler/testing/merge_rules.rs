//! How bios and requests are merged, by scheduler.

use super::{Rig, Submitted, bio, bio_of, limits};
use crate::request::Op::{Read, Write};
use crate::request::{Bio, IoPrio, PrioClass};
use crate::scheduler::{Merge, QueueLimits, registry};
use crate::units::Sector;

const ELEVATORS: [&str; 7] = ["noop", "deadline", "mq-deadline", "cfq", "bfq", "bfq-2008", "cfq-2008"];

fn sized(sector: u64, sectors: u32) -> Bio {
    Bio { sector: Sector(sector), sectors, ..bio(Read, 0) }
}

#[test]
fn a_bio_is_appended_to_a_request_that_ends_where_it_begins() {
    for info in registry::ALL {
        let mut rig = Rig::new(info.name, &[]);
        let Submitted::Waits(id) = rig.submit(bio(Read, 100)) else { panic!("nothing else waits") };
        assert_eq!(rig.submit(bio(Read, 108)), Submitted::Merged(Merge::Back(id)), "{}", info.name);
        assert_eq!(rig.dispatch_all(), [100]);
        assert_eq!(rig.in_flight[0].1.len(), 2);
    }
}

#[test]
fn operation_priority_and_fua_keep_bios_apart() {
    for info in registry::ALL {
        let others =
            [bio(Write, 108), bio_of(PrioClass::RealTime, Read, 108), Bio { fua: true, ..bio(Read, 108) }];
        for other in others {
            let mut rig = Rig::new(info.name, &[]);
            rig.submit(bio(Read, 100));
            assert!(matches!(rig.submit(other), Submitted::Waits(_)), "{}: {other:?}", info.name);
        }
        let mut rig = Rig::new(info.name, &[]);
        rig.submit(Bio { fua: true, ..bio(Write, 100) });
        let fua = Bio { fua: true, ..bio(Write, 108) };
        assert!(matches!(rig.submit(fua), Submitted::Waits(_)), "{}: FUA writes stay single", info.name);
    }
}

#[test]
fn a_priority_that_is_not_set_is_that_of_level_4() {
    for info in registry::ALL {
        for (level, merges) in [(3, false), (4, true)] {
            let mut rig = Rig::new(info.name, &[]);
            rig.submit(bio(Read, 100));
            let prio = IoPrio { class: PrioClass::BestEffort, level };
            let merged = matches!(rig.submit(Bio { prio, ..bio(Read, 108) }), Submitted::Merged(_));
            assert_eq!(merged, merges, "{}: {level}", info.name);
        }
    }
}

#[test]
fn before_linux_5_0_any_priorities_merge() {
    for name in ["noop", "deadline", "none", "kyber"] {
        let mut rig = Rig::with_limits(name, &[], QueueLimits { merges_priorities: true, ..limits() });
        rig.submit(bio(Read, 100));
        let merged = rig.submit(bio_of(PrioClass::RealTime, Read, 108));
        assert!(matches!(merged, Submitted::Merged(_)), "{name}");
    }
}

#[test]
fn an_elevator_finds_a_back_merge_among_any_number_and_a_list_only_among_the_latest_eight() {
    for info in registry::ALL {
        for others in [7, 8] {
            let mut rig = Rig::new(info.name, &[]);
            rig.submit(bio(Read, 0));
            for place in 1..=others {
                rig.submit(bio(Read, place * 100));
            }
            let merged = matches!(rig.submit(bio(Read, 8)), Submitted::Merged(_));
            assert_eq!(merged, ELEVATORS.contains(&info.name) || others < 8, "{}: {others}", info.name);
        }
    }
}

#[test]
fn a_request_once_refused_for_its_size_takes_no_more() {
    for name in ELEVATORS {
        let mut rig = Rig::new(name, &[]);
        rig.submit(sized(100, 60));
        // The limit is 64 sectors: 8 more do not fit, and after that neither do 4.
        assert!(matches!(rig.submit(sized(160, 8)), Submitted::Waits(_)), "{name}");
        assert!(matches!(rig.submit(sized(160, 4)), Submitted::Waits(_)), "{name}");
        let mut rig = Rig::new(name, &[]);
        rig.submit(sized(100, 60));
        assert!(matches!(rig.submit(sized(160, 4)), Submitted::Merged(_)), "{name}: would have fitted");
    }
}

#[test]
fn a_request_once_refused_for_its_size_takes_no_more_in_front() {
    for name in ELEVATORS {
        let mut rig = Rig::new(name, &[]);
        rig.submit(sized(100, 60));
        assert!(matches!(rig.submit(sized(92, 8)), Submitted::Waits(_)), "{name}");
        assert!(matches!(rig.submit(sized(96, 4)), Submitted::Waits(_)), "{name}");
    }
}

#[test]
fn a_refusal_dies_with_its_request() {
    for name in ["deadline", "mq-deadline", "cfq", "bfq-2008", "cfq-2008"] {
        let mut rig = Rig::new(name, &[]);
        rig.submit(sized(100, 60));
        rig.submit(sized(92, 8));
        rig.dispatch_all();
        rig.complete_all();
        // New requests in the old requests' slots of the slab.
        let places = [1000, 2000, 3000];
        for place in places {
            rig.submit(bio(Read, place));
        }
        for place in places {
            let front = rig.submit(bio(Read, place - 8));
            assert!(matches!(front, Submitted::Merged(Merge::Front(_))), "{name}: {place}");
        }
    }
}

#[test]
fn in_a_list_the_first_request_that_adjoins_decides() {
    for name in ["none", "kyber"] {
        let mut rig = Rig::new(name, &[]);
        // Both end at 160; the later one cannot take eight more sectors.
        rig.submit(sized(152, 8));
        rig.submit(sized(100, 60));
        assert!(matches!(rig.submit(sized(160, 8)), Submitted::Waits(_)), "{name}");
    }
}

#[test]
fn a_request_once_refused_for_its_size_is_not_joined_either() {
    for name in ["deadline", "mq-deadline", "cfq", "bfq-2008", "cfq-2008"] {
        for refused in [false, true] {
            let mut rig = Rig::new(name, &[]);
            rig.submit(sized(100, 60));
            if refused {
                assert!(matches!(rig.submit(sized(92, 8)), Submitted::Waits(_)), "{name}");
            }
            rig.submit(sized(162, 2));
            let before = rig.waiting.len();
            assert!(matches!(rig.submit(sized(160, 2)), Submitted::Merged(_)), "{name}");
            assert_eq!(rig.waiting.len() < before, !refused, "{name}: 60 and 4 sectors would fit");
        }
    }
}

#[test]
fn filling_a_gap_joins_the_requests_on_both_sides() {
    for name in ["deadline", "mq-deadline", "cfq", "bfq-2008", "cfq-2008"] {
        let mut rig = Rig::new(name, &[]);
        rig.submit(bio(Read, 100));
        rig.submit(bio(Read, 500));
        rig.submit(bio(Read, 116));
        assert!(matches!(rig.submit(bio(Read, 108)), Submitted::Merged(Merge::Back(_))), "{name}");
        assert_eq!(rig.waiting.len(), 2, "{name}");
    }
}

#[test]
fn noop_joins_only_neighbours_in_its_fifo() {
    let waiting_after = |sectors: &[u64]| {
        let mut rig = Rig::new("noop", &[]);
        for &sector in sectors.iter() {
            rig.submit(bio(Read, sector));
        }
        rig.waiting.len()
    };
    assert_eq!(waiting_after(&[100, 116, 500, 108]), 2);
    assert_eq!(waiting_after(&[100, 500, 116, 108]), 3);
}

#[test]
fn a_new_request_from_a_plug_is_appended_to_a_waiting_one() {
    for name in ELEVATORS {
        // The plugs of two CPUs: the bios find no waiting request, the requests do.
        let mut rig = Rig::new(name, &[]);
        let Submitted::Waits(first) = rig.submit(bio(Read, 100)) else { panic!("nothing else waits") };
        rig.submit(bio(Read, 500));
        assert_eq!(rig.insert_from_plug(bio(Read, 108)), Submitted::Joined(first), "{name}");
        assert_eq!(rig.waiting.len(), 2, "{name}");
        assert_eq!(rig.submit(bio(Read, 116)), Submitted::Merged(Merge::Back(first)), "{name}");
    }
    for name in ["none", "kyber"] {
        let mut rig = Rig::new(name, &[]);
        rig.submit(bio(Read, 100));
        assert!(matches!(rig.insert_from_plug(bio(Read, 108)), Submitted::Waits(_)), "{name}");
    }
}
