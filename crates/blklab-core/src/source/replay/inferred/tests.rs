use super::super::{Fit, Pace, ReplayPlan, Settings, Way, plan};
use super::*;
use crate::units::Sector;
use blklab_base::recorded::{self, Flags, Io, Tables};

const MS_7: Nanos = Nanos::from_millis(7);
const BIG: Sector = Sector(1 << 30);

fn settings() -> Settings {
    Settings {
        way: Way::Inferred,
        fit: Fit::Refuse,
        recorded: Some(BIG),
        capacity: BIG,
        pace: Pace::default(),
        grouping: Default::default(),
    }
}

fn inferred(ios: &[Io]) -> ReplayPlan {
    plan(ios, &Tables::default(), &settings()).expect("it fits")
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
fn a_commit_follows_write_back_when_all_of_it_is_done_and_a_reader_the_part_that_it_waits_for() {
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
    assert_eq!(follows(4), [Some(0), Some(6), Some(12)], "after a part");
    let drains = |first: usize| plan.ios[first..].iter().step_by(6).all(|io| io.start.drains);
    assert_eq!([drains(5), drains(4)], [true, false]);
}

#[test]
fn a_commit_at_once_after_the_data_follows_them_though_its_own_last_one_ended_shortly_before() {
    // A fast disk: the data take 40 us, less than what counts as a pause elsewhere.
    let ios: Vec<_> = (0..30)
        .flat_map(|n| {
            let at = 1_000 * n + 7 * (n * n % 13);
            [write(1, at, 40), read(2, at + 40, 900 - 7 * (n * n % 13))]
        })
        .collect();
    let plan = inferred(&ios);
    let commits: Vec<_> = plan.ios.iter().skip(3).step_by(2).map(|io| io.start.follows).collect();
    let data: Vec<_> = (1..30).map(|n| Some(2 * n)).collect();
    assert_eq!(commits, data);
}

#[test]
fn a_process_that_begins_at_once_after_a_completion_follows_it_beside_the_io_of_others() {
    let begins = |at: u64| {
        let mut ios: Vec<_> = (0..50).map(|n| read(1, 1_000 * n, 999)).collect();
        ios.push(read(2, 10_000 + at, 300));
        ios.sort_by_key(|io| io.queued);
        let first = ios.iter().position(|io| io.pid == 2).expect("one");
        inferred(&ios).ios[first].start
    };
    let think = Nanos::from_micros(1);
    assert_eq!(begins(0), Start { follows: Some(9), think, ..Start::default() });
    assert_eq!(begins(400), Start::at(Nanos::from_micros(10_400)), "by chance");
}

#[test]
fn equal_times_of_a_trace_in_milliseconds_may_be_chance() {
    let begins = |more_us: u64| {
        let mut ios: Vec<_> = (0..50).map(|n| read(1, 10_000 * n, 9_000)).collect();
        // Busy all the time; its end has the resolution of the others, or a finer one.
        ios.extend([read(2, 0, 490_000 + more_us), read(3, 109_000, 3_000)]);
        ios.sort_by_key(|io| io.queued);
        let first = ios.iter().position(|io| io.pid == 3).expect("one");
        inferred(&ios).ios[first].start
    };
    assert_eq!(begins(0), Start::at(Nanos::from_millis(109)));
    assert_eq!(begins(1).not_before, Nanos::ZERO, "in microseconds it is no chance");
}

#[test]
fn a_process_that_begins_to_write_during_write_back_waits_for_that_and_a_reader_does_not() {
    let begins = |first: Io| {
        let mut ios: Vec<_> = (0..40).map(|n| write(1, 2_000 * n, 9_000)).collect();
        ios.extend((0..60).map(|n| read(2, 1_400 * n, 1_390)));
        ios.push(first);
        ios.sort_by_key(|io| io.queued);
        let at = ios.iter().position(|io| io.pid == 3).expect("one");
        let start = inferred(&ios).ios[at].start;
        (start, start.follows.map(|followed| ios[followed as usize].queued))
    };
    let syncs = Io { op: recorded::Op::Write, ..read(3, 40_500, 300) };
    let (start, followed) = begins(syncs);
    // What was queued at 30 ms had ended at 39 ms.
    assert_eq!(followed, Some(Nanos::from_millis(30)));
    assert_eq!(start.think, Nanos::from_micros(1_500));
    assert_eq!(begins(read(3, 40_500, 300)).0, Start::at(Nanos::from_micros(40_500)));
}

#[test]
fn a_process_that_seldom_waits_for_another_one_waits_only_for_what_that_has_under_way() {
    // Process 1 commits after the data of process 2, and twice after those of process 3.
    let mut ios: Vec<_> = (0..60)
        .flat_map(|n| {
            let at = 10_000 * n + 130 * (n * n % 17);
            [write(2, at, 50), read(1, at + 50, 400)]
        })
        .collect();
    for at in [305_000, 505_000] {
        ios.push(Io { flags: Flags::SYNC, ..write(3, at, 400) });
        ios.push(read(1, at + 400, 400));
    }
    ios.sort_by_key(|io| io.queued);
    let plan = inferred(&ios);
    let starts = |pid: u32| ios.iter().zip(&plan.ios).filter(move |(io, _)| io.pid == pid);
    let seldom: Vec<_> = starts(1).filter(|(_, io)| io.start.if_begun).map(|(io, _)| io.queued).collect();
    assert_eq!(seldom, [305_400, 505_400].map(Nanos::from_micros));
    assert_eq!(starts(1).filter(|(_, io)| io.start.follows.is_some()).count(), 62);
}

#[test]
fn a_worker_of_the_kernel_writes_after_the_reader_and_waits_only_for_what_it_reads_itself() {
    let mut tables = Tables::default();
    let worker = tables.processes.id("kworker/u4:0");
    let of_it = |op, at, took| Io { op, process: worker, ..read(9, at, took) };
    let ios = [
        read(1, 0, 5_000),
        of_it(recorded::Op::Write, 5_600, 9_000),
        of_it(recorded::Op::Write, 5_600, 9_500),
        of_it(recorded::Op::Read, 5_610, 300),
        of_it(recorded::Op::Write, 5_915, 9_000),
        // A second burst, after no completion but its own.
        of_it(recorded::Op::Write, 40_000, 500),
    ];
    let plan = plan(&ios, &tables, &settings()).expect("it fits");
    let us = Nanos::from_micros;
    let after = |io, think| Start { follows: Some(io), think: us(think), ..Start::default() };
    let goes_on = |think| Start { goes_on: true, think: us(think), ..Start::default() };
    let found: Vec<_> = plan.ios[1..].iter().map(|io| io.start).collect();
    assert_eq!(found, [after(0, 600), goes_on(0), goes_on(10), after(3, 5), after(0, 34_085)]);
}

#[test]
fn a_process_begins_after_the_latest_completion_if_no_process_waits_for_io_and_else_at_its_time() {
    let mut ios: Vec<_> = (0..5).map(|n| read(1, 3_000 * n, 1_000)).collect();
    ios.extend([read(2, 17_000, 900), read(3, 17_300, 400)]);
    let starts: Vec<_> = inferred(&ios).ios.iter().map(|io| io.start).collect();
    let think = Nanos::from_micros(4_000);
    assert_eq!(starts[5], Start { follows: Some(4), think, ..Start::default() });
    assert_eq!(starts[6], Start::at(Nanos::from_micros(17_300)));
}

#[test]
fn few_ios_that_come_at_once_after_completions_suffice_and_many_are_needed_if_they_come_later() {
    // The second process reads twice, so long after a completion of the first, which reads all the time.
    let followers = |after: u64| {
        let mut ios: Vec<_> = (0..300).map(|n| read(1, 1_500 * n, 400 + 7 * (n % 13))).collect();
        // It begins beside the first one.
        ios.push(read(2, 200, 100));
        for n in [90_u64, 211] {
            let ended = ios[n as usize].completed.expect("it has").0 / 1_000;
            ios.push(read(2, ended + after, 300));
        }
        ios.sort_by_key(|io| io.queued);
        let plan = inferred(&ios);
        ios.iter().zip(&plan.ios).filter(|(io, plan)| io.pid == 2 && plan.start.follows.is_some()).count()
    };
    assert_eq!([followers(0), followers(150)], [2, 0]);
}

/// Twelve reads of process 1, one of them perhaps after a pause, then some of it beside four long writes, which end 7.9, 15.9,
/// 23.9 and 31.9 ms after its last; `at` are these reads' times since then.
fn beside_writes(pauses_before: bool, at: &[u64]) -> Vec<Start> {
    let (mut ios, mut now) = (Vec::new(), 0);
    for n in 0..12 {
        now += if pauses_before && n == 9 { 700 } else { 0 };
        let took = 500 + 450 * (n % 3);
        ios.push(read(1, now, took));
        now += took;
    }
    ios.extend((0..4).map(|n| write(2, now - 100, 8_000 * (n + 1))));
    ios.extend(at.iter().zip(0..).map(|(at, n)| read(1, now + at, 500 + 450 * n)));
    ios.sort_by_key(|io| io.queued);
    inferred(&ios).ios[16..].iter().map(|io| io.start).collect()
}

#[test]
fn a_process_that_pauses_only_while_memory_is_written_goes_on_when_as_much_is_written() {
    let reads = [8_200, 17_200, 26_200];
    let waits = |start: &Start| (start.follows, start.unless, start.think);
    let written = |io, rest| (Some(io), Some(io), Nanos::from_micros(rest));
    assert_eq!(
        beside_writes(false, &reads).iter().map(waits).collect::<Vec<_>>(),
        [written(12, 300), written(13, 1_300), written(14, 2_300)]
    );
    let goes_on = |start: &Start| (start.follows, start.unless) == (None, None) && start.think >= MS_7;
    assert!(beside_writes(true, &reads).iter().all(goes_on));
}

#[test]
fn a_process_that_was_paused_until_nothing_more_was_written_pauses_unless_more_is() {
    // The second pause ends before the second write does, the third after the third.
    let starts = beside_writes(false, &[8_200, 13_000, 24_500]);
    let [_, second, third] = starts[..] else { panic!("three") };
    assert_eq!((second.follows, second.unless, second.think), (None, Some(13), Nanos::from_micros(4_300)));
    assert_eq!((third.follows, third.unless, third.think), (Some(14), Some(13), Nanos::from_micros(600)));
}

#[test]
fn a_single_pause_that_ends_with_what_was_under_way_waits_for_that_and_for_nothing_later() {
    // Process 1 reads at irregular times, once 20 us after a write of process 2.
    let thinks = [700, 2_900, 5_300, 9_100, 3_300, 7_700, 12_100, 4_100];
    let ios = |begins_before: u64| {
        let (mut ios, mut now) = (Vec::new(), 0);
        for (n, think) in (0..40).zip(thinks.into_iter().cycle()) {
            now += think;
            if n == 20 {
                ios.push(write(2, now - begins_before, begins_before - 20));
            }
            ios.push(read(1, now, 400));
            now += 400;
        }
        ios.sort_by_key(|io| io.queued);
        inferred(&ios).ios
    };
    let waiting = |begins_before| {
        let of_it =
            ios(begins_before).into_iter().filter(|io| io.process.0 == 0 && io.start.follows.is_some());
        of_it.map(|io| (io.start.if_begun, io.start.think)).collect::<Vec<_>>()
    };
    // That pause is of 3.3 ms. The write begins before it, or during it.
    assert_eq!(waiting(5_000), [(true, Nanos::from_micros(20))]);
    assert_eq!(waiting(2_000), []);
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
    let plan = plan(&ios, &Tables::default(), &settings).expect("it fits");
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
