use super::super::Start;
use super::*;

const US: fn(u64) -> Nanos = Nanos::from_micros;

fn io(process: u32, start: Start) -> ReplayIo {
    let process = ProcessId(process);
    ReplayIo { start, process, sectors: 8, counted: true, plug: Plug::None, ..ReplayIo::default() }
}

#[test]
fn an_io_that_follows_another_if_that_has_begun_waits_for_it_only_then() {
    let follows = Start { follows: Some(0), if_begun: true, think: US(5), after: 1, ..Start::default() };
    let ios = || vec![io(0, Start::at(US(100))), io(1, Start::at(US(0))), io(1, follows)];
    // It has not begun when the process's own I/O ends.
    let mut issuer = Issuer::new(ios());
    submit(&mut issuer, 1, US(0));
    assert_eq!(issuer.next(ProcessId(1), US(0)), Step::Wait);
    issuer.completed(1, US(40), |_| ());
    assert_eq!(issuer.next(ProcessId(1), US(40)), Step::Pause(US(45)));
    // It has.
    let mut issuer = Issuer::new(ios());
    submit(&mut issuer, 1, US(0));
    submit(&mut issuer, 0, US(100));
    issuer.completed(1, US(140), |_| ());
    assert_eq!(issuer.next(ProcessId(1), US(140)), Step::Wait);
    let mut woken = Vec::new();
    issuer.completed(0, US(300), |id| woken.push(id));
    // The other one ends.
    assert_eq!(woken, [ProcessId(0), ProcessId(1)]);
    assert_eq!(issuer.next(ProcessId(1), US(300)), Step::Pause(US(305)));
}

#[test]
fn an_io_neither_waits_nor_pauses_if_more_was_written_when_its_own_process_could_go_on() {
    let waits = Start { follows: Some(1), unless: Some(0), think: US(50), after: 1, ..Start::default() };
    let written = |ends: [u64; 2]| {
        let at = |time| Start::at(US(time));
        let mut issuer = Issuer::new(vec![io(0, at(0)), io(0, at(0)), io(1, at(0)), io(1, waits)]);
        submit(&mut issuer, 0, US(0));
        submit(&mut issuer, 0, US(0));
        submit(&mut issuer, 1, US(0));
        let mut events = vec![(ends[0], 0), (ends[1], 1), (100, 2)];
        events.sort_unstable();
        for (time, index) in events {
            issuer.completed(index, US(time), |_| ());
            let _ = issuer.next(ProcessId(1), US(time));
        }
        issuer.next(ProcessId(1), US(100.max(ends[1])))
    };
    assert_eq!(written([90, 400]), Step::Submit { io: 3, due: US(100) });
    // Written only after the pause has begun, it does not shorten it.
    assert_eq!(written([110, 400]), Step::Pause(US(450)));
}

/// Submits the process's next I/O at `now`, at which it must be due; its index.
fn submit(issuer: &mut Issuer, process: u32, now: Nanos) -> u32 {
    let step = issuer.next(ProcessId(process), now);
    let Step::Submit { io, due } = step else { panic!("{step:?} at {now}") };
    issuer.begin(io, due, now);
    issuer.submitted(io, now);
    io
}

fn completed(issuer: &mut Issuer, io: u32, now: Nanos) -> (Vec<u32>, Nanos) {
    let mut woken = Vec::new();
    let latency = issuer.completed(io, now, |process| woken.push(process.0));
    (woken, latency)
}

#[test]
fn in_the_open_loop_a_late_io_comes_at_once_and_its_latency_counts_from_its_time() {
    let mut issuer = Issuer::new(vec![io(0, Start::at(US(5))), io(0, Start::at(US(9)))]);
    assert_eq!(issuer.next(ProcessId(0), US(1)), Step::Pause(US(5)));
    assert_eq!(submit(&mut issuer, 0, US(5)), 0);
    assert_eq!(submit(&mut issuer, 0, US(12)), 1);
    assert_eq!(issuer.next(ProcessId(0), US(12)), Step::Wait);
    assert_eq!(completed(&mut issuer, 1, US(20)), (vec![], US(11)));
    assert_eq!(completed(&mut issuer, 0, US(21)), (vec![0], US(16)));
    assert_eq!(issuer.next(ProcessId(0), US(21)), Step::Finish);
    let (outcomes, jobs) = issuer.finish();
    assert_eq!(
        outcomes[1],
        Outcome { due: US(9), begun: US(12), late: US(3), held: US(0), issued: US(12), completed: US(20) }
    );
    assert_eq!((jobs[0].read.ios, jobs[0].start_ns, jobs[0].end_ns), (2, 5_000, 21_000));
}

#[test]
fn an_io_that_comes_late_because_its_process_waited_for_a_request_is_held_that_long() {
    let mut issuer = Issuer::new(vec![io(0, Start::at(US(5))), io(0, Start::at(US(9)))]);
    issuer.begin(0, US(5), US(6));
    issuer.submitted(0, US(11));
    assert_eq!(submit(&mut issuer, 0, US(12)), 1);
    let of = |outcome: Outcome| (outcome.late, outcome.held);
    let outcomes = issuer.finish().0;
    assert_eq!([of(outcomes[0]), of(outcomes[1])], [(US(1), US(0)), (US(3), US(2))]);
}

#[test]
fn an_io_that_follows_the_last_of_several_waits_for_all_of_them() {
    let follows = |drains| Start { follows: Some(2), drains, think: US(5), ..Start::default() };
    let ios = || (0..3).map(|_| io(0, Start::default()));
    for (drains, due) in [(false, 15), (true, 35)] {
        let mut issuer = Issuer::new(ios().chain([io(1, follows(drains))]).collect());
        assert_eq!([0; 3].map(|_| submit(&mut issuer, 0, US(0))), [0, 1, 2]);
        assert_eq!(issuer.next(ProcessId(1), US(0)), Step::Wait);
        let woken = [(2, 10), (0, 20), (1, 30)].map(|(io, at)| completed(&mut issuer, io, US(at)).0);
        let expected = if drains { [vec![], vec![], vec![0, 1]] } else { [vec![1], vec![], vec![0]] };
        assert_eq!(woken.map(|mut all| (all.sort_unstable(), all).1), expected);
        assert_eq!(
            issuer.next(ProcessId(1), US(30)),
            match due {
                35 => Step::Pause(US(35)),
                due => Step::Submit { io: 3, due: US(due) },
            }
        );
    }
}

#[test]
fn in_the_closed_loop_an_io_comes_a_pause_after_so_many_completions_in_any_order() {
    let closed = Start { after: 2, think: US(3), ..Start::default() };
    let mut issuer = Issuer::new(vec![io(0, Start::default()), io(0, Start::default()), io(0, closed)]);
    assert_eq!([submit(&mut issuer, 0, US(0)), submit(&mut issuer, 0, US(0))], [0, 1]);
    assert_eq!(issuer.next(ProcessId(0), US(0)), Step::Wait);
    assert_eq!(completed(&mut issuer, 1, US(4)).0, [] as [u32; 0]);
    assert_eq!(completed(&mut issuer, 0, US(7)).0, [0]);
    assert_eq!(issuer.next(ProcessId(0), US(7)), Step::Pause(US(10)));
    assert_eq!(submit(&mut issuer, 0, US(10)), 2);
}

#[test]
fn jobs_that_are_told_again_are_what_they_were_and_with_earlier_completions_faster() {
    let starts = [Start::at(US(5)), Start::at(US(9)), Start { after: 2, think: US(3), ..Start::default() }];
    let ios: Vec<_> = starts.into_iter().map(|start| io(0, start)).collect();
    let mut issuer = Issuer::new(ios.clone());
    assert_eq!([submit(&mut issuer, 0, US(5)), submit(&mut issuer, 0, US(12))], [0, 1]);
    assert_eq!(completed(&mut issuer, 1, US(20)).0, [] as [u32; 0]);
    assert_eq!(completed(&mut issuer, 0, US(21)).0, [0]);
    assert_eq!(submit(&mut issuer, 0, US(24)), 2);
    completed(&mut issuer, 2, US(24));
    let (mut outcomes, jobs) = issuer.finish();
    assert_eq!(format!("{:?}", retold(ios.clone(), &outcomes)), format!("{jobs:?}"));
    outcomes[1].completed = US(14);
    let [earlier] = &retold(ios, &outcomes)[..] else { panic!("one process") };
    assert_eq!((earlier.read.lat.min_ns, earlier.read.ios), (0, 3));
    assert_eq!(jobs[0].read.lat.max_ns - earlier.read.lat.max_ns, 0);
    assert!((jobs[0].read.lat.mean_ns - earlier.read.lat.mean_ns - 2_000.0).abs() < 1e-6);
}

#[test]
fn a_process_that_waits_for_a_request_is_not_woken_by_its_completions() {
    let closed = Start { after: 1, ..Start::default() };
    let mut issuer = Issuer::new(vec![io(0, Start::default()), io(0, Start::default()), io(0, closed)]);
    assert_eq!(submit(&mut issuer, 0, US(0)), 0);
    issuer.begin(1, US(0), US(0));
    assert_eq!(completed(&mut issuer, 0, US(4)).0, [] as [u32; 0], "it asks when it is back");
    issuer.submitted(1, US(5));
    assert_eq!(issuer.next(ProcessId(0), US(5)), Step::Submit { io: 2, due: US(5) });
}

#[test]
fn a_follower_is_named_when_the_io_of_another_process_completes() {
    let follows = Start { follows: Some(0), think: US(2), ..Start::default() };
    let mut issuer = Issuer::new(vec![io(0, Start::default()), io(1, follows), io(2, follows)]);
    assert_eq!(submit(&mut issuer, 0, US(0)), 0);
    for process in [2, 1] {
        assert_eq!(issuer.next(ProcessId(process), US(0)), Step::Wait);
    }
    // The first process has no more I/Os, and only ends.
    assert_eq!(completed(&mut issuer, 0, US(4)).0, [0, 1, 2], "in the order in which they were recorded");
    assert_eq!(issuer.next(ProcessId(1), US(4)), Step::Pause(US(6)));
}

#[test]
fn an_io_of_a_plug_is_due_when_its_process_has_got_a_request_for_the_one_before() {
    let goes_on = Start { goes_on: true, ..Start::default() };
    for (start, due) in [(goes_on, 40), (Start::at(US(5)), 5)] {
        let first = ReplayIo { plug: Plug::GoesOn, ..io(0, Start::at(US(5))) };
        let mut issuer = Issuer::new(vec![first, io(0, start)]);
        issuer.begin(0, US(5), US(5));
        issuer.submitted(0, US(40));
        assert_eq!(issuer.next(ProcessId(0), US(40)), Step::Submit { io: 1, due: US(due) });
    }
}

#[test]
fn ios_under_one_plug_are_due_together_whatever_their_own_starts() {
    let first = ReplayIo { plug: Plug::GoesOn, ..io(0, Start::at(US(5))) };
    let mut issuer = Issuer::new(vec![first, io(0, Start::at(US(900)))]);
    issuer.begin(0, US(5), US(5));
    assert_eq!(issuer.next(ProcessId(0), US(5)), Step::Submit { io: 1, due: US(5) });
    assert_eq!(issuer.in_flight(ProcessId(0)), 1);
}
