//! One trace of the kernel in each format and version is one recording.

mod written;

use blklab_base::recorded::{Flags, Io, Level, Op};
use blklab_trace::Wanted;
use blklab_trace::notes::Kind;
use written::*;

const NAMES: &[(u32, &str)] = &[(10, "fio"), (11, "my prog[1]"), (12, "kworker/u8:1")];

fn event(time: u64, act: u64, category: u64, sector: u64, sectors: u32, pid: u32) -> Raw {
    Raw { time, act, category, sector, sectors, pid, device: DISK, ..Raw::default() }
}

/// Two bios that become one request, a flush with its request, a commit record on a disk without FUA, a
/// partial completion: events as Linux 7.3 gives them.
fn load() -> Vec<Raw> {
    let mut raws = vec![named(1_000_000, 10, "fio"), named(1_000_000, 11, "my prog[1]")];
    raws.push(named(1_000_000, 12, "kworker/u8:1"));
    raws.extend(read(2_000_000, 800, 8, 10));
    let write = WRITE | SYNC;
    raws.extend([
        event(3_000_000, QUEUE, WRITE, 1000, 8, 12),
        event(3_001_000, GET_REQUEST, WRITE, 1000, 8, 12),
        event(3_002_000, QUEUE, WRITE, 1008, 16, 12),
        event(3_003_000, BACK_MERGE, WRITE, 1008, 16, 12),
        event(3_004_000, INSERT, WRITE, 1000, 24, 12),
        event(3_010_000, ISSUE, WRITE, 1000, 24, 12),
        event(3_500_000, COMPLETE, WRITE, 1000, 12, 0),
        event(3_600_000, COMPLETE, WRITE, 1012, 12, 0),
        event(4_000_000, QUEUE, write | FLUSH, 0, 0, 11),
        event(4_001_000, ISSUE, FLUSH, 0, 0, 0),
        event(4_900_000, COMPLETE, FLUSH, 0, 0, 0),
        event(4_901_000, COMPLETE, write, 0, 0, 0),
        event(5_000_000, QUEUE, write | FLUSH | FUA | META, 5000, 8, 11),
        event(5_001_000, ISSUE, FLUSH, 0, 0, 0),
        event(5_400_000, COMPLETE, FLUSH, 0, 0, 0),
        event(5_500_000, ISSUE, write | META, 5000, 8, 11),
        event(5_600_000, COMPLETE, write | META, 5000, 8, 0),
        event(5_601_000, ISSUE, FLUSH, 0, 0, 0),
        event(5_900_000, COMPLETE, FLUSH, 0, 0, 0),
        event(5_901_000, COMPLETE, write | META, 5000, 0, 0),
    ]);
    raws.extend(read(6_000_000, 800, 8, 10));
    numbered(raws)
}

#[test]
fn versions_byte_orders_and_cgroups_give_one_recording() {
    let plain_trace = read_all(&Form(7, false).stream(&load()));
    let expected = plain(&plain_trace);
    assert_eq!(plain_trace.header.source, "blktrace 7");
    for form in [Form(7, true), Form(8, false), Form(8, true)] {
        assert_eq!(plain(&read_all(&form.stream(&load()))), expected, "{form:?}");
        let in_cgroups: Vec<_> = load().into_iter().map(|raw| Raw { cgroup: Some(77), ..raw }).collect();
        // Of processes' names the cgroup's number does not stand first.
        let in_cgroups: Vec<_> = in_cgroups
            .into_iter()
            .map(|raw| if raw.category & NOTIFY != 0 { Raw { cgroup: None, ..raw } } else { raw })
            .collect();
        let found = read_all(&form.stream(&in_cgroups));
        assert_eq!(plain(&found), expected, "{form:?}");
        assert!(found.ios.iter().all(|io| io.cgroup == 77));
        let paths = Wanted { cgroups: vec![(77, "/a/b".to_owned())], ..Wanted::default() };
        let found = try_read_files(&[&form.stream(&in_cgroups)], &paths, None).expect("a good trace");
        assert_eq!(found.tables.cgroups.path(77), "/a/b");
        assert_eq!(found.note(Kind::CgroupBit).map(|note| note.1), Some(4));
    }
}

#[test]
fn every_step_of_every_bio_is_found() {
    let found = read_all(&Form(7, false).stream(&load()));
    let sync = Flags::SYNC.with(Flags::PREFLUSH);
    let commit = sync.with(Flags::FUA).with(Flags::META);
    let expected: Vec<Plain> = vec![
        (0, Some(300), Some(700), Some(90_000), 800, 8, "read", 0, 10, "fio".into()),
        (
            1_000_000,
            Some(1_004_000),
            Some(1_010_000),
            Some(1_500_000),
            1000,
            8,
            "write",
            0,
            12,
            NAMES[2].1.into(),
        ),
        (
            1_002_000,
            Some(1_004_000),
            Some(1_010_000),
            Some(1_600_000),
            1008,
            16,
            "write",
            0,
            12,
            NAMES[2].1.into(),
        ),
        (2_000_000, None, Some(2_001_000), Some(2_901_000), 0, 0, "flush", sync.0, 11, NAMES[1].1.into()),
        (
            3_000_000,
            None,
            Some(3_500_000),
            Some(3_901_000),
            5000,
            8,
            "write",
            commit.0,
            11,
            NAMES[1].1.into(),
        ),
        (4_000_000, Some(4_000_300), Some(4_000_700), Some(4_090_000), 800, 8, "read", 0, 10, "fio".into()),
    ];
    assert_eq!(plain(&found), expected);
    assert_eq!((found.header.level, found.header.resolution.0), (Level::Bio, 1));
    assert_eq!(found.note(Kind::Merges).map(|note| note.0), Some(1));
}

#[test]
fn text_of_blkparse_gives_the_same() {
    let raws = load();
    let binary = plain(&read_all(&Form(7, false).stream(&raws)));
    let text = blkparse(&raws, NAMES);
    let found = read_all(text.as_bytes());
    assert_eq!(found.header.source, "blkparse");
    assert_eq!(plain(&found), binary);
}

#[test]
fn a_format_of_blkparse_without_cpu_and_sequence_is_found_too() {
    let text = "8,0 0.000000000 Q R 800 + 8 [fio]\n8,0 0.000000700 D R 800 + 8 [fio]\n\
                8,0 0.000090000 C R 800 + 8 [0]\n";
    let found = read_all(text.as_bytes());
    let expected: Vec<Plain> = vec![(0, None, Some(700), Some(90_000), 800, 8, "read", 0, 0, "fio".into())];
    assert_eq!(plain(&found), expected);
}

#[test]
fn the_cgroup_of_a_format_of_blkparse_is_read_behind_the_device_wherever_it_is() {
    let lines = |form: fn(&str, &str, &str) -> String| {
        let line = |time, act, end| form(time, act, end);
        let queue = line("0.000000000", "Q", "[fio]");
        queue + &line("0.000000700", "D", "[fio]") + &line("0.000090000", "C", "[0]")
    };
    let number = 0x3_0000_005b;
    let texts = [
        // %D %T.%9t %a %g %d %S + %n [%C], then with %g before the action, behind RWBS and as the last.
        lines(|time, act, end| format!("8,0 {time} {act} 5b,3 R 800 + 8 {end}\n")),
        lines(|time, act, end| format!("8,0 {time} 5b,3 {act} R 800 + 8 {end}\n")),
        lines(|time, act, end| format!("8,0 {time} {act} R 5b,3 800 + 8 {end}\n")),
        lines(|time, act, end| format!("8,0 {time} {act} R 800 + 8 5b,3 {end}\n")),
        // The default, with %g behind it.
        lines(|time, act, end| format!("8,0 0 1 {time} 77 {act} R 5b,3 800 + 8 {end}\n")),
    ];
    for text in texts {
        let found = read_all(text.as_bytes());
        let [io] = &found.ios[..] else { panic!("{} I/Os of {text}", found.ios.len()) };
        assert_eq!((io.cgroup, io.sector.0, io.sectors), (number, 800, 8), "{text}");
        assert_eq!(io.completed.map(|time| time.0), Some(90_000), "{text}");
    }
    // Zeroes where it is not known; digits alone look like a device, of which there is one already.
    for (of_cgroup, number) in [("0,0", 0), ("12,0", 0x12)] {
        let text = lines(|time, act, end| format!("8,0 {time} {act} @ R 800 + 8 {end}\n"));
        let found = read_all(text.replace('@', of_cgroup).as_bytes());
        assert_eq!(found.ios[0].cgroup, number);
        assert_eq!(found.tables.devices.name(found.ios[0].device), "8:0");
    }
}

#[test]
fn text_of_tracefs_gives_the_same_in_its_microseconds() {
    let raws = load();
    let text = ftrace(&raws, NAMES);
    let found = read_all(text.as_bytes());
    let us = |time: Option<u64>| time.map(|time| time / 1000 * 1000);
    let binary = plain(&read_all(&Form(7, false).stream(&raws)));
    let expected: Vec<_> = binary
        .into_iter()
        .map(|io| {
            (
                us(Some(io.0)).expect("a time"),
                us(io.1),
                us(io.2),
                us(io.3),
                io.4,
                io.5,
                io.6,
                io.7,
                io.8,
                io.9,
            )
        })
        .collect();
    assert_eq!(plain(&found), expected);
    assert_eq!(found.header.resolution.0, 1000);
    // `be,0,4`, of the insert event.
    assert_eq!(found.ios[0].prio, Some(2 << 13 | 4));
}

#[test]
fn files_of_cpus_are_merged_by_time() {
    let raws = load();
    let whole = read_all(&Form(7, false).stream(&raws));
    let of_cpu = |cpu| {
        let of: Vec<_> = raws.iter().filter(|raw| raw.cpu == cpu).cloned().collect();
        Form(7, false).stream(&of)
    };
    let (first, second) = (of_cpu(0), of_cpu(1));
    // One stream with the CPUs' parts behind each other is what `blktrace -o -` writes.
    let joined = [second.clone(), first.clone()].concat();
    for files in [vec![&first[..], &second, b""], vec![&second, &first], vec![&joined]] {
        let found = try_read_files(&files, &Wanted::default(), None).expect("a good trace");
        assert_eq!(plain(&found), plain(&whole));
        assert_eq!(found.note(Kind::Disorder), None);
    }
}

#[test]
fn a_trace_of_requests_alone_has_the_level_of_requests() {
    let raws: Vec<_> = load().into_iter().filter(|raw| raw.act != QUEUE).collect();
    let found = read_all(&Form(7, false).stream(&raws));
    assert_eq!(found.header.level, Level::Request);
    // The two bios are one request; without an insert event a request has no beginning.
    let places: Vec<_> = found.ios.iter().map(|io| (io.sector.0, io.sectors)).collect();
    assert_eq!(places, [(800, 8), (1000, 24), (800, 8)]);
    let issues: Vec<_> = raws.into_iter().filter(|raw| raw.act != INSERT).collect();
    let found = read_all(&Form(7, false).stream(&issues));
    let places: Vec<_> = found.ios.iter().map(|io| (io.sector.0, io.sectors, io.op)).collect();
    let flush = (0, 0, Op::Flush);
    let expected = [
        (800, 8, Op::Read),
        (1000, 24, Op::Write),
        flush,
        flush,
        (5000, 8, Op::Write),
        flush,
        (800, 8, Op::Read),
    ];
    assert_eq!(places, expected);
    assert!(found.ios.iter().all(|io| io.completed.is_some()));
}

fn completions(found: &Read) -> Vec<Option<u64>> {
    found.ios.iter().map(|io| io.completed.map(|at| at.0)).collect()
}

/// As on a disk that takes FUA itself: a write with FUA alone completes once, one that the kernel flushed
/// for completes twice.
#[test]
fn a_disk_that_takes_fua_completes_a_write_twice_only_if_the_kernel_flushed_before_it() {
    let write = WRITE | SYNC | FUA;
    let raws = numbered(vec![
        event(0, QUEUE, write, 64, 8, 1),
        event(10, ISSUE, write, 64, 8, 1),
        event(20, COMPLETE, write, 64, 8, 0),
        event(30, QUEUE, write | FLUSH, 64, 8, 1),
        event(40, ISSUE, FLUSH, 0, 0, 0),
        event(50, COMPLETE, FLUSH, 0, 0, 0),
        event(60, ISSUE, write, 64, 8, 1),
        event(70, COMPLETE, write, 64, 8, 0),
        event(75, COMPLETE, write, 64, 0, 0),
        event(80, QUEUE, READ, 64, 8, 1),
        event(90, COMPLETE, READ, 64, 8, 0),
    ]);
    let found = read_all(&Form(7, false).stream(&raws));
    assert_eq!(completions(&found), [Some(20), Some(75), Some(90)]);
}

/// The trace ends, or the kernel had no room for the event.
#[test]
fn a_write_without_its_second_completion_has_the_first() {
    let write = WRITE | SYNC;
    let raws = numbered(vec![
        event(0, QUEUE, write | FLUSH, 64, 8, 1),
        event(10, ISSUE, write, 64, 8, 1),
        event(20, COMPLETE, write, 64, 8, 0),
        event(30, QUEUE, READ, 64, 8, 1),
        event(90, COMPLETE, READ, 64, 8, 0),
    ]);
    let found = read_all(&Form(7, false).stream(&raws));
    assert_eq!(completions(&found), [Some(20), Some(90)]);
    assert_eq!(found.note(Kind::NoCompletion), None);
}

#[test]
fn two_reads_of_one_sector_complete_in_their_order() {
    let at = |time, act, pid| event(time, act, READ, 64, 8, pid);
    let raws = numbered(vec![
        at(0, QUEUE, 1),
        at(10, QUEUE, 2),
        at(20, ISSUE, 1),
        at(30, ISSUE, 2),
        at(40, COMPLETE, 0),
        at(50, COMPLETE, 0),
    ]);
    let found = read_all(&Form(7, false).stream(&raws));
    let times: Vec<_> = plain(&found).into_iter().map(|io| (io.0, io.2, io.3, io.8)).collect();
    assert_eq!(times, [(0, Some(20), Some(40), 1), (10, Some(30), Some(50), 2)]);
}

#[test]
fn a_request_without_an_insert_event_was_inserted_when_its_bio_got_it() {
    // The first bio goes directly to the disk after it has slept for a request, the second to a scheduler.
    let found = read_all(&Form(7, false).stream(&numbered(vec![
        event(1_000_000, QUEUE, WRITE, 800, 8, 10),
        event(1_500_000, GET_REQUEST, WRITE, 800, 8, 10),
        event(1_500_000, ISSUE, WRITE, 800, 8, 10),
        event(1_900_000, COMPLETE, WRITE, 800, 8, 0),
        event(2_000_000, QUEUE, WRITE, 900, 8, 10),
        event(2_100_000, GET_REQUEST, WRITE, 900, 8, 10),
        event(2_200_000, INSERT, WRITE, 900, 8, 10),
        event(2_300_000, ISSUE, WRITE, 900, 8, 10),
        event(2_900_000, COMPLETE, WRITE, 900, 8, 0),
    ])));
    let inserted: Vec<_> = found.ios.iter().map(|io| io.inserted.map(|time| time.0)).collect();
    assert_eq!(inserted, [Some(500_000), Some(1_200_000)]);
}

#[test]
fn a_requeued_request_has_its_last_issue() {
    let at = |time, act| event(time, act, READ, 64, 8, 1);
    let raws = numbered(vec![
        at(0, QUEUE),
        at(5, INSERT),
        at(10, ISSUE),
        at(20, REQUEUE),
        at(30, ISSUE),
        at(40, COMPLETE),
    ]);
    let found = read_all(&Form(7, false).stream(&raws));
    assert_eq!((found.ios[0].issued.map(|at| at.0), found.note(Kind::Requeues)), (Some(30), Some((1, 4))));
}

#[test]
fn a_split_bio_is_complete_with_its_last_part() {
    let raws = numbered(vec![
        event(0, QUEUE, WRITE, 0, 100, 1),
        event(1, SPLIT, WRITE, 0, 60, 1),
        event(10, ISSUE, WRITE, 0, 60, 1),
        event(11, ISSUE, WRITE, 60, 40, 1),
        event(20, COMPLETE, WRITE, 60, 40, 0),
        event(30, COMPLETE, WRITE, 0, 60, 0),
    ]);
    let found = read_all(&Form(7, false).stream(&raws));
    assert_eq!(found.ios.len(), 1);
    assert_eq!((found.ios[0].sectors, found.ios[0].completed.map(|at| at.0)), (100, Some(30)));
    assert_eq!(found.note(Kind::Splits), Some((1, 2)));
}

#[test]
fn a_split_bio_is_inserted_with_the_last_part_for_whose_request_its_process_may_have_slept() {
    // The first bio's second part goes to a scheduler, the other's directly to the disk.
    let raws = numbered(vec![
        event(0, QUEUE, WRITE, 0, 100, 1),
        event(1, SPLIT, WRITE, 0, 60, 1),
        event(2, GET_REQUEST, WRITE, 0, 60, 1),
        event(3, INSERT, WRITE, 0, 60, 1),
        event(4, ISSUE, WRITE, 0, 60, 1),
        event(5, COMPLETE, WRITE, 0, 60, 0),
        event(6, GET_REQUEST, WRITE, 60, 40, 1),
        event(7, INSERT, WRITE, 60, 40, 1),
        event(8, ISSUE, WRITE, 60, 40, 1),
        event(9, COMPLETE, WRITE, 60, 40, 0),
        event(10, QUEUE, WRITE, 200, 100, 1),
        event(11, SPLIT, WRITE, 200, 60, 1),
        event(12, GET_REQUEST, WRITE, 200, 60, 1),
        event(12, ISSUE, WRITE, 200, 60, 1),
        event(15, COMPLETE, WRITE, 200, 60, 0),
        event(16, GET_REQUEST, WRITE, 260, 40, 1),
        event(16, ISSUE, WRITE, 260, 40, 1),
        event(18, COMPLETE, WRITE, 260, 40, 0),
    ]);
    let found = read_all(&Form(7, false).stream(&raws));
    let times = |io: &Io| [io.inserted, io.issued, io.completed].map(|at| at.expect("recorded").0);
    assert_eq!(found.ios.iter().map(times).collect::<Vec<_>>(), [[7, 8, 9], [16, 16, 18]]);
}

/// Three writes under one plug, then one without: as binary records, as text of blkparse and of tracefs.
#[test]
fn ios_under_one_plug_are_known_in_every_format() {
    const PLUG: u64 = 9;
    const UNPLUG: u64 = 10;
    let write = WRITE | SYNC;
    let raws = numbered(vec![
        named(900_000, 10, "fio"),
        event(1_000_000, QUEUE, write, 800, 8, 10),
        event(1_001_000, PLUG, 0, 0, 0, 10),
        event(1_002_000, QUEUE, write, 900, 8, 10),
        event(1_003_000, QUEUE, write, 1000, 8, 10),
        event(1_004_000, UNPLUG, 0, 0, 0, 10),
        event(1_005_000, INSERT, write, 800, 8, 10),
        event(1_006_000, INSERT, write, 900, 8, 10),
        event(1_007_000, INSERT, write, 1000, 8, 10),
        event(2_000_000, QUEUE, write, 5000, 8, 10),
        event(2_001_000, INSERT, write, 5000, 8, 10),
    ]);
    let blkparse = "\
        8,0    0        1     0.000000000    10  Q  WS 800 + 8 [fio]\n\
        8,0    0        2     0.000001000    10  P   N [fio]\n\
        8,0    0        3     0.000002000    10  Q  WS 900 + 8 [fio]\n\
        8,0    0        4     0.000003000    10  Q  WS 1000 + 8 [fio]\n\
        8,0    0        5     0.000004000    10  U   N [fio] 3\n\
        8,0    0        6     0.000005000    10  I  WS 800 + 8 [fio]\n\
        8,0    0        7     0.000006000    10  I  WS 900 + 8 [fio]\n\
        8,0    0        8     0.000007000    10  I  WS 1000 + 8 [fio]\n\
        8,0    0        9     0.001000000    10  Q  WS 5000 + 8 [fio]\n\
        8,0    0       10     0.001001000    10  I  WS 5000 + 8 [fio]\n";
    let tracefs = "\
        fio-10 [000] ..... 1.000000: block_bio_queue: 8,0 WS 800 + 8 [fio]\n\
        fio-10 [000] ..... 1.000001: block_plug: [fio]\n\
        fio-10 [000] ..... 1.000002: block_bio_queue: 8,0 WS 900 + 8 [fio]\n\
        fio-10 [000] ..... 1.000003: block_bio_queue: 8,0 WS 1000 + 8 [fio]\n\
        fio-10 [000] ..... 1.000004: block_unplug: [fio] 3\n\
        fio-10 [000] ..... 1.000005: block_rq_insert: 8,0 WS 4096 () 800 + 8 [fio]\n\
        fio-10 [000] ..... 1.000006: block_rq_insert: 8,0 WS 4096 () 900 + 8 [fio]\n\
        fio-10 [000] ..... 1.000007: block_rq_insert: 8,0 WS 4096 () 1000 + 8 [fio]\n\
        fio-10 [000] ..... 1.001000: block_bio_queue: 8,0 WS 5000 + 8 [fio]\n\
        fio-10 [000] ..... 1.001001: block_rq_insert: 8,0 WS 4096 () 5000 + 8 [fio]\n";
    let binary = Form(7, false).stream(&raws);
    for (format, bytes) in
        [("binary", &*binary), ("blkparse", blkparse.as_bytes()), ("tracefs", tracefs.as_bytes())]
    {
        let found = read_all(bytes);
        let flags: Vec<_> = found.ios.iter().map(|io| io.flags).collect();
        let joins = Flags::SYNC.with(Flags::JOINS_PLUG);
        assert_eq!(flags, [Flags::SYNC, joins, joins, Flags::SYNC.with(Flags::BARE)], "{format}");
        assert!(found.ios.iter().all(|io| io.inserted.is_some()), "{format}");
    }
}
