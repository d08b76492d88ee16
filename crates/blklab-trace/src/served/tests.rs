use blklab_base::units::Sector;
use proptest::prelude::*;

use super::*;

fn tables() -> Tables {
    let mut tables = Tables::default();
    for name in ["reader", "copy"] {
        tables.processes.id(name);
    }
    tables.cgroups.set(5, "/a.slice");
    tables
}

fn io(process: u32, queued: u64, issued: u64, completed: u64, op: Op) -> Io {
    Io {
        queued: Nanos(queued),
        issued: Some(Nanos(issued)),
        completed: Some(Nanos(completed)),
        sector: Sector(0),
        sectors: 8 * process,
        op,
        pid: 100 * process,
        process: NameId(process),
        cgroup: if process == 1 { 5 } else { 0 },
        number: queued,
        ..Io::default()
    }
}

fn both(served: &mut Served, ios: &[Io], listed: bool) -> Vec<Instead> {
    let tables = tables();
    for io in ios {
        served.take(io, &tables);
    }
    let mut meanwhile = served.meanwhile(listed);
    for io in ios {
        meanwhile.take(io, &tables);
    }
    meanwhile.finish()
}

#[test]
fn a_starved_read_shows_the_writes_that_the_disk_got_instead() {
    // Three writes come before the read and are issued after it came; a fourth is too late.
    let ios = [
        io(2, 0, 10, 20, Op::Write),
        io(2, 1, 30, 40, Op::Write),
        io(1, 5, 50, 60, Op::Read),
        io(2, 6, 45, 50, Op::Write),
        io(2, 7, 50, 55, Op::Write),
    ];
    let mut served = Served::new(Nanos(5), Nanos(60), 1, (1, false), (None, None));
    let waits = both(&mut served, &ios, true);
    let names: Vec<_> = served.processes().iter().map(|owner| &*owner.name).collect();
    assert_eq!(names, ["copy", "reader"]);
    let [wait] = waits.as_slice() else { panic!("{waits:?}") };
    assert_eq!((wait.slow.process, wait.slow.length()), (1, Nanos(55)));
    assert_eq!(wait.issued, [(0, Got { ios: [0, 3], bytes: [0, 3 * 8192] })]);
    // The last of them completes when the read is at the disk, as does the one that came too late.
    assert_eq!(wait.completed, [(0, Got { ios: [0, 2], bytes: [0, 2 * 8192] })]);
    let listed: Vec<_> = wait.listed.iter().map(|(row, io)| (*row, io.issued.unwrap().0)).collect();
    assert_eq!(listed, [(0, 10), (0, 30), (0, 45)]);
    let counts: Vec<_> = served.of_processes().map(|(_, row, counts)| (row, counts)).collect();
    let [(0, copy), (1, reader)] = counts.as_slice() else { panic!("{counts:?}") };
    assert_eq!((copy.came, copy.ios, copy.bytes), (2, [0, 4], [0, 4 * 8192]));
    assert_eq!((copy.wait_ns, copy.wait_max_ns, copy.disk_ns), (10 + 29 + 39 + 43, 43, 10 + 10 + 5 + 5));
    assert_eq!((reader.came, reader.ios, reader.wait_ns, reader.disk_ns), (1, [1, 0], 45, 10));
    let paths: Vec<_> = served.cgroups().iter().map(|one| (one.number, &*one.name)).collect();
    assert_eq!(paths, [(0, ""), (5, "/a.slice")]);
}

#[test]
fn a_window_has_what_came_and_what_was_served_in_it() {
    let ios = [
        io(1, 0, 100, 110, Op::Read),
        io(1, 40, 45, 50, Op::Read),
        io(1, 60, 70, 80, Op::Read),
        io(1, 90, 300, 310, Op::Read),
    ];
    let mut served = Served::new(Nanos(40), Nanos(90), 1, (9, false), (None, None));
    let waits = both(&mut served, &ios, false);
    let [(0, 0, counts)] = served.of_processes().collect::<Vec<_>>()[..] else { panic!() };
    assert_eq!((counts.came, counts.ios, waits.len()), (2, [2, 0], 2));
    assert!(waits[0].listed.is_empty());
}

#[test]
fn without_issues_completions_are_counted_and_no_wait_is_known() {
    let ios = [Io { issued: None, ..io(1, 0, 0, 30, Op::Read) }];
    let mut served = Served::new(Nanos(0), Nanos(100), 1, (9, false), (None, None));
    let slow = both(&mut served, &ios, true);
    assert_eq!((slow.len(), slow[0].slow.length(), slow[0].issued.len()), (1, Nanos(30), 0));
    let [(0, 0, counts)] = served.of_processes().collect::<Vec<_>>()[..] else { panic!() };
    assert_eq!((counts.ios, counts.waited, counts.completed), ([1, 0], 0, 0));
}

#[test]
fn reads_come_before_writeback_and_of_each_process_one_is_kept() {
    let ios = [
        io(2, 0, 50, 900, Op::Write),
        io(1, 1, 5, 90, Op::Read),
        io(1, 2, 6, 70, Op::Read),
        io(1, 3, 6, 70, Op::Read),
        Io { flags: Flags::READ_AHEAD, ..io(1, 4, 9, 950, Op::Read) },
    ];
    let lengths = |distinct| {
        let mut served = Served::new(Nanos(0), Nanos(99), 1, (3, distinct), (None, None));
        both(&mut served, &ios, false).iter().map(|one| one.slow.length().0).collect::<Vec<_>>()
    };
    // The two bios of one request count once.
    assert_eq!(lengths(false), [89, 68, 946]);
    assert_eq!(lengths(true), [89, 900]);
}

#[test]
fn processes_that_are_not_asked_for_share_a_row() {
    let ios = [io(2, 0, 1, 2, Op::Write), io(1, 5, 6, 7, Op::Read), io(2, 8, 9, 10, Op::Write)];
    let only = vec![Owner { number: 100, name: "reader".into() }];
    let mut served = Served::new(Nanos(0), Nanos(20), 2, (1, false), (Some(only), None));
    both(&mut served, &ios, false);
    let names: Vec<_> = served.processes().iter().map(|owner| &*owner.name).collect();
    assert_eq!(names, [OTHERS, "reader"]);
    let found: Vec<_> = served.of_processes().map(|(step, row, counts)| (step, row, counts.came)).collect();
    assert_eq!((served.step(), found), (Nanos(10), vec![(0, 0, 2), (0, 1, 1)]));
}

proptest! {
    #[test]
    fn waits_and_what_the_disk_got_are_those_of_a_plain_search(
        drawn in prop::collection::vec((1..3_u32, 0..50_u64, 0..200_u64, 0..50_u64, any::<bool>()), 0..80),
        from in 0..300_u64, length in 1..900_u64, kept in 0..5_usize,
    ) {
        let mut now = 0;
        let ios: Vec<_> = drawn
            .into_iter()
            .zip(1..)
            .map(|((process, gap, wait, disk, read), number)| {
                now += gap;
                let op = if read { Op::Read } else { Op::Write };
                Io { number, ..io(process, now, now + wait, now + wait + disk, op) }
            })
            .collect();
        let window = from..from + length;
        let mut served = Served::new(Nanos(from), Nanos(from + length), 1, (kept, false), (None, None));
        let found = both(&mut served, &ios, true);
        let issued = |io: &Io| io.issued.unwrap_or_default().0;
        let completed = |io: &Io| io.completed.unwrap_or_default().0;
        let mut ranked: Vec<_> = ios.iter().filter(|io| window.contains(&io.queued.0)).collect();
        ranked.sort_by_key(|io| (Reverse((is_awaited(io), completed(io) - io.queued.0)), io.queued));
        let mut slowest: Vec<&Io> = Vec::new();
        for io in ranked {
            // Bios of one request are issued and completed together.
            let is_new = |other: &&Io| (other.issued, other.completed) != (io.issued, io.completed);
            if slowest.iter().all(is_new) && slowest.len() < kept {
                slowest.push(io);
            }
        }
        let key = |io: &Io| (is_awaited(io), completed(io) - io.queued.0);
        let kept_keys: Vec<_> = found.iter().map(|one| key(&one.slow.io)).collect();
        // One that was pushed out by two bios of one request does not come back.
        prop_assert!(kept_keys.len() <= slowest.len());
        for (own, plain) in kept_keys.iter().zip(&slowest) {
            prop_assert!(*own <= key(plain));
        }
        if kept > 0 && !slowest.is_empty() {
            prop_assert_eq!(kept_keys[0], key(slowest[0]), "the slowest of all is exact");
        }
        let all = |got: &[(u32, Got)]| {
            let sum = |part: fn(&Got) -> [u64; 2]| {
                got.iter().map(|(_, got)| part(got)).map(|[a, b]| a + b).sum::<u64>()
            };
            (sum(|got| got.ios), sum(|got| got.bytes))
        };
        let plain = |ios: &[&Io]| {
            (ios.len() as u64, ios.iter().map(|io| u64::from(io.sectors) * 512).sum::<u64>())
        };
        for one in &found {
            let io = &one.slow.io;
            let waits = io.queued.0..issued(io);
            let during: Vec<_> = ios.iter().filter(|io| waits.contains(&issued(io))).collect();
            prop_assert_eq!(all(&one.issued), plain(&during));
            prop_assert_eq!(one.listed.len(), during.len().min(LISTED));
            prop_assert!(one.listed.is_sorted_by_key(|(_, io)| issued(io)));
            let served = issued(io)..completed(io);
            let during: Vec<_> = ios.iter().filter(|io| served.contains(&completed(io))).collect();
            prop_assert_eq!(all(&one.completed), plain(&during));
        }
        let came: u64 = served.of_processes().map(|(_, _, counts)| counts.came).sum();
        prop_assert_eq!(came, ios.iter().filter(|io| window.contains(&io.queued.0)).count() as u64);
        let served: u64 = served.of_cgroups().map(|(_, _, counts)| counts.ios[0] + counts.ios[1]).sum();
        prop_assert_eq!(served, ios.iter().filter(|io| window.contains(&issued(io))).count() as u64);
    }
}
