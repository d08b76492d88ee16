//! Each thing that goes wrong with traces, planted: it is found and named by record or line.

mod written;

use blklab_base::recorded::Op;
use blklab_trace::Wanted;
use blklab_trace::notes::{Kind, Weight};
use written::*;

const FORM: Form = Form(7, false);

fn many(count: u64, gap: u64) -> Vec<Raw> {
    let mut raws = vec![named(0, 10, "fio")];
    raws.extend((0..count).flat_map(|n| read(1_000 + n * gap, n * 8, 8, 10)));
    numbered(raws)
}

#[test]
fn a_trace_without_faults_has_no_findings() {
    let found = read_all(&FORM.stream(&many(200, 1_000_007)));
    assert_eq!((found.ios.len(), found.kinds()), (200, vec![]));
}

#[test]
fn parts_of_cpus_out_of_order_are_sorted_and_told() {
    let mut raws = many(3, 1_000_007);
    // Within one CPU the kernel's buffer is in order; a file that was sorted by another key is not.
    raws.swap(2, 4);
    let found = read_all(&FORM.stream(&raws));
    assert_eq!(found.note(Kind::Disorder), Some((2, 4)));
    assert!(found.ios.is_sorted_by_key(|io| io.queued));
}

#[test]
fn lost_records_are_counted_where_the_sequence_jumps() {
    let mut raws = many(4, 1_000_007);
    raws.drain(6..9);
    let found = read_all(&FORM.stream(&raws));
    assert_eq!(found.note(Kind::Lost), Some((3, 7)));
    assert_eq!(found.ios.iter().map(|io| io.lost).sum::<u32>(), 3);
    let text = "fio-1 [000] d..1. 1.000000: block_rq_issue: 8,0 R 4096 () 8 + 8 none,0,0 [fio]\n\
                CPU:0 [LOST 12 EVENTS]\n\
                fio-1 [000] d..1. 1.000100: block_rq_issue: 8,0 R 4096 () 16 + 8 none,0,0 [fio]\n";
    let found = read_all(text.as_bytes());
    assert_eq!((found.note(Kind::Lost), found.ios[1].lost), (Some((12, 2)), 12));
}

#[test]
fn an_io_at_two_levels_is_unusable_until_one_is_chosen() {
    let mut raws = Vec::new();
    for n in 0..3_u64 {
        let at = n * 1_000_007;
        let mut bytes = Vec::new();
        bytes.extend(MAPPED.to_be_bytes());
        bytes.extend(DISK.to_be_bytes());
        bytes.extend((n * 8).to_be_bytes());
        for (act, device, after, data) in [
            (QUEUE, MAPPED, 0, Vec::new()),
            (REMAP, DISK, 10, bytes),
            (QUEUE, DISK, 20, Vec::new()),
            (ISSUE, DISK, 30, Vec::new()),
            (COMPLETE, DISK, 40, Vec::new()),
            (COMPLETE, MAPPED, 50, Vec::new()),
        ] {
            raws.push(Raw {
                time: at + after,
                act,
                category: READ,
                sector: n * 8,
                sectors: 8,
                device,
                data,
                ..Raw::default()
            });
        }
    }
    let stream = FORM.stream(&numbered(raws));
    let found = read_all(&stream);
    let note = found.notes.iter().find(|note| note.kind == Kind::TwoLevels).expect("found");
    assert_eq!((note.kind.weight(), note.found.as_str()), (Weight::Unusable, "253:0 lies on 8:0"));
    assert_eq!(found.ios.len(), 6);
    let chosen = Wanted { device: Some("8:0".to_owned()), ..Wanted::default() };
    let found = try_read_files(&[&stream], &chosen, None).expect("a good trace");
    assert_eq!((found.ios.len(), found.note(Kind::TwoLevels)), (3, None));
    assert!(found.ios.iter().all(|io| io.issued.is_some()));
}

#[test]
fn merges_and_splits_are_told_since_bios_and_requests_differ() {
    let at = |time, act, sector, sectors| Raw {
        time,
        act,
        category: WRITE,
        sector,
        sectors,
        device: DISK,
        ..Raw::default()
    };
    let raws = [
        at(0, QUEUE, 0, 8),
        at(1, QUEUE, 8, 8),
        at(2, BACK_MERGE, 8, 8),
        at(3, ISSUE, 0, 16),
        at(9, COMPLETE, 0, 16),
    ];
    let found = read_all(&FORM.stream(&numbered(raws.to_vec())));
    assert_eq!((found.ios.len(), found.note(Kind::Merges)), (2, Some((1, 3))));
    assert!(found.ios.iter().all(|io| io.completed.is_some_and(|at| at.0 == 9)));
}

#[test]
fn an_io_without_completion_is_named_and_holds_nothing_back() {
    let mut raws = many(3, 1_000_007);
    let last = raws.iter().rposition(|raw| raw.act == COMPLETE && raw.sector == 8).expect("it completes");
    raws.remove(last);
    let found = read_all(&FORM.stream(&numbered(raws)));
    assert_eq!((found.ios.len(), found.note(Kind::NoCompletion)), (3, Some((1, 7))));
    // And a completion without a beginning.
    let mut raws = many(2, 1_000_007);
    raws.remove(1);
    let found = read_all(&FORM.stream(&numbered(raws)));
    assert_eq!((found.ios.len(), found.note(Kind::NoQueue)), (1, Some((2, 4))));
}

#[test]
fn flushes_without_data_have_no_place() {
    let at = |time, act| Raw {
        time,
        act,
        category: WRITE | SYNC | FLUSH,
        sector: u64::MAX,
        device: DISK,
        ..Raw::default()
    };
    let found = read_all(&FORM.stream(&numbered(vec![at(0, QUEUE), at(9, COMPLETE)])));
    let io = found.ios[0];
    assert_eq!((io.op, io.sector.0, io.completed.map(|at| at.0)), (Op::Flush, 0, Some(9)));
    assert_eq!(found.note(Kind::Flushes), Some((1, 1)));
}

#[test]
fn cgroups_in_actions_hide_no_io() {
    let raws: Vec<_> = many(3, 1_000_007).into_iter().map(|raw| Raw { cgroup: Some(5), ..raw }).collect();
    let found = read_all(&FORM.stream(&raws[1..]));
    assert_eq!((found.ios.len(), found.note(Kind::CgroupBit)), (3, Some((15, 1))));
}

#[test]
fn a_record_of_another_version_is_refused_with_its_number() {
    let raws = many(2, 1_000_007);
    let mixed = [FORM.stream(&raws[..4]), Form(8, false).stream(&raws[4..])].concat();
    let error = try_read_files(&[&mixed], &Wanted::default(), None).expect_err("mixed");
    assert_eq!(error.reason, "record 5: is of version 8, the ones before of version 7");
    let mut broken = FORM.stream(&raws);
    broken[48 * 3 + 16] ^= 0xff;
    let error = try_read_files(&[&broken], &Wanted::default(), None).expect_err("broken");
    assert!(error.reason.starts_with("record 4: begins with 0x"), "{}", error.reason);
    let found = read_all(&Form(8, false).stream(&raws));
    assert_eq!(found.note(Kind::Version8), Some((1, 1)));
}

#[test]
fn seconds_are_spread_unless_they_are_wanted() {
    let text: String = (0..200).map(|n| format!("{},{},8,1,5\n", 1_538_323_200 + n / 100, n * 8)).collect();
    let spread = read_all(text.as_bytes());
    assert_eq!(spread.note(Kind::CoarseTime), Some((200, 1)));
    assert!(spread.ios.windows(2).all(|pair| pair[1].queued.0 - pair[0].queued.0 == 10_000_000));
    let kept = Wanted { keep_steps: true, ..Wanted::default() };
    let kept = try_read_files(&[text.as_bytes()], &kept, None).expect("a good trace");
    assert_eq!(kept.note(Kind::SharedTime), Some((198, 2)));
    assert_eq!(kept.ios[99].queued.0, 0);
}

#[test]
fn ios_beyond_the_disk_are_named() {
    let stream = FORM.stream(&many(10, 1_000_007));
    let found = try_read_files(&[&stream], &Wanted::default(), Some(72)).expect("a good trace");
    let note = found.notes.iter().find(|note| note.kind == Kind::Beyond).expect("found");
    assert_eq!((note.count, note.first, note.found.as_str()), (1, 47, "sectors 72 to 80; the disk has 72"));
    assert_eq!(note.kind.weight(), Weight::Unusable);
}

#[test]
fn writes_of_kernel_workers_are_told() {
    let mut raws = vec![named(0, 12, "kworker/u8:1-flush-8:0")];
    raws.push(Raw {
        time: 5,
        act: QUEUE,
        category: WRITE,
        sector: 8,
        sectors: 8,
        pid: 12,
        device: DISK,
        ..Raw::default()
    });
    let found = read_all(&FORM.stream(&raws));
    assert_eq!(found.note(Kind::Writeback), Some((1, 2)));
}

#[test]
fn ticks_since_1601_are_exact() {
    let text = "128166372003061629,hm,1,Read,0,512,1\n128166372003061630,hm,1,Read,0,512,1\n";
    let found = read_all(text.as_bytes());
    assert_eq!(found.ios[1].queued.0, 100);
    assert_eq!(found.note(Kind::Epoch), Some((1, 1)));
}

#[test]
fn times_cut_to_microseconds_are_told() {
    let raws: Vec<_> =
        many(200, 1_000_007).into_iter().map(|raw| Raw { time: raw.time / 1000 * 1000, ..raw }).collect();
    assert_eq!(read_all(&FORM.stream(&raws)).note(Kind::WholeMicroseconds), Some((200, 0)));
}

#[test]
fn joined_traces_are_told_by_their_clock() {
    let one: String = (0..3).map(|n| format!("{n}.5 ; {} ; 8 ; W ; 0.0 ; 0.0\n", n * 8)).collect();
    let found = read_all(format!("{one}{one}").as_bytes());
    assert_eq!(found.note(Kind::ClockStep), Some((1, 4)));
    let raws = many(3, 2_000_000_007);
    let blkparse = blkparse(&raws, &[]);
    let events = blkparse.split("CPU0").next().expect("events");
    let found = read_all(format!("{events}{events}").as_bytes());
    assert_eq!(found.note(Kind::ClockStep).map(|note| note.1), Some(16));
}

#[test]
fn a_trace_that_ends_inside_a_record_is_used_up_to_there() {
    let stream = FORM.stream(&many(3, 1_000_007));
    let found = read_all(&stream[..stream.len() - 1]);
    assert_eq!((found.ios.len(), found.note(Kind::Truncated)), (3, Some((1, 16))));
}

#[test]
fn a_trace_without_ios_is_unusable() {
    let found = read_all(&FORM.stream(&[named(0, 1, "fio")]));
    assert_eq!(found.kinds(), ["empty"]);
}
