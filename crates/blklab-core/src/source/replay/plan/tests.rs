use proptest::prelude::*;

use super::*;

const SIZE: u64 = 1 << 20;

fn ios() -> impl Strategy<Value = Vec<ReplayIo>> {
    let io = (0..SIZE - 4096, 0..4096_u32, 0..3_u32, prop::option::of(any::<prop::sample::Index>()));
    prop::collection::vec(io, 1..40).prop_map(|rows| {
        let planned = |(index, (sector, sectors, process, follows)): (usize, Row)| ReplayIo {
            op: if sectors == 0 { Op::Flush } else { Op::Write },
            place: Location { sector: Sector(if sectors == 0 { 0 } else { sector }), ..Location::default() },
            sectors,
            process: ProcessId(process),
            start: Start {
                follows: follows.filter(|_| index > 0).map(|other| other.index(index) as u32),
                ..Start::default()
            },
            ..ReplayIo::default()
        };
        rows.into_iter().enumerate().map(planned).collect()
    })
}

#[test]
fn the_thread_of_ext4s_journal_has_its_own_priority_where_a_recording_tells_none() {
    let mut tables = Tables::default();
    let [journal, other] = ["jbd2/sda-8", "cp"].map(|name| tables.processes.id(name));
    let io = |pid, process, prio| Io { sectors: 8, pid, process, prio, ..Io::default() };
    let ios = [
        io(1, journal, None),
        io(2, other, None),
        // ionice -c 3; and a journal that was mounted with `journal_ioprio=5`.
        io(3, other, Some(3 << 13)),
        io(4, journal, Some(2 << 13 | 5)),
    ];
    let settings = Settings {
        way: Way::Open,
        fit: Fit::Refuse,
        recorded: None,
        capacity: Sector(SIZE),
        pace: Pace::default(),
        grouping: Grouping::default(),
    };
    let plan = plan(&ios, &tables, &settings).expect("it fits");
    let prios: Vec<_> =
        plan.processes.iter().map(|process| (process.prio.class, process.prio.level)).collect();
    let none = IoPrio::default();
    let best_effort = PrioClass::BestEffort;
    assert_eq!(prios, [(best_effort, 3), (none.class, none.level), (PrioClass::Idle, 0), (best_effort, 5)]);
}

type Row = (u64, u32, u32, Option<prop::sample::Index>);

fn plan_of(ios: Vec<ReplayIo>) -> ReplayPlan {
    ReplayPlan { ios, processes: vec![ReplayProcess::default(); 3], ..ReplayPlan::default() }
}

proptest! {
    #[test]
    fn aligned_ios_are_the_least_whole_blocks_that_hold_them(ios in ios(), shift in 0..5_u32) {
        let block = 1 << shift;
        let mut plan = plan_of(ios.clone());
        plan.align(Sector(block));
        let mut enlarged = 0;
        for (was, is) in ios.iter().zip(&plan.ios) {
            let (begin, end) = (is.place.sector.0, is.place.sector.0 + u64::from(is.sectors));
            let (first, last) = (was.place.sector.0, was.place.sector.0 + u64::from(was.sectors));
            prop_assert!(begin % block == 0 && end % block == 0 && begin <= first && end >= last);
            prop_assert!(first - begin < block && end - last < block && end <= SIZE);
            prop_assert_eq!(is.sectors == 0, was.op == Op::Flush);
            enlarged += u64::from((begin, end) != (first, last));
        }
        prop_assert_eq!((plan.enlarged, block > 1 || enlarged == 0), (enlarged, true));
    }

    #[test]
    fn places_hold_every_io_apart_from_each_other_and_no_more_than_gaps_that_were_to_be_filled(
        ios in ios(),
        near in 0..(1_u64 << 20),
    ) {
        let plan = plan_of(ios);
        let places = plan.places(Bytes(near));
        for pair in places.windows(2) {
            prop_assert!(pair[0].0.0 + pair[0].1.0 + near < pair[1].0.0);
        }
        let moved = plan.ios.iter().filter(|io| io.op != Op::Flush);
        for io in moved.clone() {
            let (begin, end) = (io.place.sector.to_bytes().0, io.place.sector.to_bytes().0 + io.bytes());
            let holds = |(at, bytes): &(Bytes, Bytes)| at.0 <= begin && end <= at.0 + bytes.0;
            prop_assert!(places.iter().any(holds));
        }
        let all: u64 = places.iter().map(|(_, bytes)| bytes.0).sum();
        let own: u64 = moved.clone().map(ReplayIo::bytes).sum();
        prop_assert!(all <= own + near * moved.count() as u64);
    }

    #[test]
    fn plans_beside_each_other_are_what_they_were_with_processes_and_ios_of_their_own(
        ios in prop::collection::vec(ios(), 1..4),
    ) {
        let plans: Vec<_> = ios.into_iter().map(plan_of).collect();
        let names = Names::default();
        let parts: Vec<_> = plans.iter().map(|plan| Part { plan, names: &names, label: "a" }).collect();
        let (all, names) = beside(&parts).expect("few");
        let (mut ios, mut processes) = (0, 0);
        for plan in &plans {
            for (was, is) in plan.ios.iter().zip(&all.ios[ios..]) {
                let start = Start { follows: is.start.follows.map(|other| other - ios as u32), ..is.start };
                let process = ProcessId(is.process.0 - processes);
                prop_assert_eq!(ReplayIo { start, process, ..*is }, *was);
            }
            ios += plan.ios.len();
            processes += plan.processes.len() as u32;
        }
        prop_assert_eq!((all.ios.len(), all.processes.len()), (ios, processes as usize));
        prop_assert_eq!(super::super::check(&all.ios, &[SIZE]), Ok(()));
        prop_assert!(all.job_names(&names).iter().all(|name| name.starts_with('a')));
    }
}

#[test]
fn too_many_processes_beside_each_other_are_one_line() {
    let many = ReplayPlan { processes: vec![ReplayProcess::default(); 3000], ..ReplayPlan::default() };
    let part = Part { plan: &many, names: &Names::default(), label: "a" };
    let error = beside(&[part, part]).expect_err("too many").to_string();
    assert_eq!(error, "6000 processes; at most 4096 in all");
}

#[test]
fn names_of_processes_have_their_recordings_before_them() {
    let mut names = Names::default();
    let processes = [("reader", 7), ("", 7), ("", 0)].map(|(name, pid)| ReplayProcess {
        name: names.id(name),
        pid,
        ..ReplayProcess::default()
    });
    let plan = ReplayPlan { processes: processes.to_vec(), ..ReplayPlan::default() };
    assert_eq!(plan.job_names(&names), ["reader-7", "7", "trace"]);
    let (all, names) = beside(&[Part { plan: &plan, names: &names, label: "a.rec" }]).expect("few");
    assert_eq!(all.job_names(&names), ["a.rec:reader-7", "a.rec-7", "a.rec"]);
}
