//! The data sets and other rows: each field with its unit.

mod written;

use blklab_base::recorded::Level;
use blklab_trace::Wanted;
use blklab_trace::formats;
use blklab_trace::notes::Kind;
use written::*;

/// Queue time, completion, sector, sectors, operation, device.
type Row = (u64, Option<u64>, u64, u32, &'static str, String);

fn rows(read: &Read) -> Vec<Row> {
    read.ios
        .iter()
        .map(|io| {
            let device = read.tables.devices.name(io.device).to_owned();
            (io.queued.0, io.completed.map(|at| at.0), io.sector.0, io.sectors, io.op.name(), device)
        })
        .collect()
}

fn check(format: &str, text: &[u8], expected: &[Row]) -> Read {
    let found = formats::detect(text).map(|format| format.name);
    assert_eq!(found, Some(format));
    let read = read_all(text);
    assert_eq!(rows(&read), expected, "{format}");
    read
}

#[test]
fn each_data_set_has_its_units() {
    let none = String::new;
    let read = check(
        "msr",
        b"128166372003061629,hm,1,Read,383496192,32768,113736\n128166372016382155,hm,1,Write,2822144,4096,1\n",
        &[
            (0, Some(11_373_600), 749_016, 64, "read", "hm.1".into()),
            (1_332_052_600, Some(1_332_052_700), 5512, 8, "write", "hm.1".into()),
        ],
    );
    assert_eq!(read.kinds(), ["absolute-times"]);
    assert_eq!(read.header.level, Level::Request);
    check(
        "alibaba",
        b"419,W,8792731648,16384,1577808144360767\n725,R,2003738624,4096,1577808144360999\n",
        &[
            (0, None, 17_173_304, 32, "write", "419".into()),
            (232_000, None, 3_913_552, 8, "read", "725".into()),
        ],
    );
    let spread = check(
        "tencent",
        b"1538323200,12910952,128,0,1063\n1538323200,6265662,8,1,1628\n1538323201,1,1,1,1063\n",
        &[
            (0, None, 12_910_952, 128, "read", "1063".into()),
            (500_000_000, None, 6_265_662, 8, "write", "1628".into()),
            (1_000_000_000, None, 1, 1, "write", "1063".into()),
        ],
    );
    assert!(spread.header.spread);
    assert_eq!(spread.note(Kind::CoarseTime), Some((2, 1)));
    let blank = check(
        "systor",
        b"Timestamp,Response,IOType,LUN,Offset,Size\n1455592920.004500,0.000105,W,2,30743490560,4096\n\
          1455592920.004600,0.1,,2,0,512\n",
        &[
            (0, Some(105_000), 60_045_880, 8, "write", "2".into()),
            (100_000, Some(100_100_000), 0, 1, "other", "2".into()),
        ],
    );
    assert_eq!(blank.note(Kind::BlankOperation), Some((1, 3)));
    check(
        "k5cloud",
        b"0,0.000000,W,409600,4096\n1,0.125000,R,0,8192\n",
        &[(0, None, 800, 8, "write", "0".into()), (125_000_000, None, 0, 16, "read", "1".into())],
    );
    let read = check(
        "fiu",
        b"89966400263042 4892 syslogd 904265560 8 W 6 0 531e779\n89966400263142 0 - 10 8 R 6 0 531e779\n",
        &[(0, None, 904_265_560, 8, "write", "6.0".into()), (100, None, 10, 8, "read", "6.0".into())],
    );
    assert_eq!((read.ios[0].pid, read.tables.processes.name(read.ios[0].process)), (4892, "syslogd"));
    check(
        "mqsim",
        b"938513000 4 264719034 16 0\n938828000 3 197570570 16 1\n",
        &[
            (0, None, 264_719_034, 16, "write", "4".into()),
            (315_000, None, 197_570_570, 16, "read", "3".into()),
        ],
    );
    check(
        "blkreplay",
        b"A licence; with a sign\n####\nstart ; sector; length ; op ;  replay_delay=0 ; replay_duration=0\n\
          \x20     0.449518165 ;     37766853 ;   64 ; W ; 0.0 ; 0.0\n      0.449518167 ; 0 ; 1 ; R ; 0.0 ; 0.0\n",
        &[(0, None, 37_766_853, 64, "write", none()), (2, None, 0, 1, "read", none())],
    );
}

#[test]
fn fios_logs_have_microseconds_and_milliseconds() {
    let file = || "/dev/null".to_owned();
    let read = check(
        "iolog",
        b"fio version 3 iolog\n30 /dev/null add\n31 /dev/null open\n36 /dev/null trim 0 2147483648\n\
          52 /dev/null write 4096 4096\n60 /dev/null sync 0 0\n61 /dev/null close\n",
        &[
            (0, None, 0, 4_194_304, "discard", file()),
            (16_000, None, 8, 8, "write", file()),
            (24_000, None, 0, 0, "flush", file()),
        ],
    );
    assert_eq!((read.header.level, read.header.source.as_str()), (Level::File, "fio iolog 3"));
    let read = check(
        "iolog",
        b"fio version 2 iolog\n/dev/null add\n/dev/null open\n/dev/null read 0 512\n/dev/null wait 20\n\
          /dev/null datasync 0 0\n/dev/null read 100 100\n",
        &[
            (0, None, 0, 1, "read", file()),
            (20_000_000, None, 0, 0, "flush", file()),
            (20_000_000, None, 0, 1, "read", file()),
        ],
    );
    assert_eq!((read.note(Kind::WaitUnit), read.note(Kind::Unaligned)), (Some((1, 5)), Some((1, 7))));
}

/// Row of vscsiStats.
fn vscsi(version: u16, command: u16, bytes: u32, sector: u64, us: u64) -> Vec<u8> {
    let (number, entries) = (1_u32.to_le_bytes(), 1_u32.to_le_bytes());
    let (command, version_field) = (command.to_le_bytes(), (version << 8 | 1).to_le_bytes());
    if version == 1 {
        [
            &number[..],
            &bytes.to_le_bytes(),
            &entries,
            &command,
            &version_field,
            &sector.to_le_bytes(),
            &us.to_le_bytes(),
        ]
        .concat()
    } else {
        let response = 7_u64.to_le_bytes();
        [
            &command[..],
            &version_field,
            &number,
            &bytes.to_le_bytes(),
            &entries,
            &sector.to_le_bytes(),
            &us.to_le_bytes(),
            &response,
        ]
        .concat()
    }
}

#[test]
fn one_trace_in_four_formats_is_one_recording() {
    let load =
        [(5_633_898_868_514_u64, 0x2a_u16, 512_u32, 42_932_745_u64), (5_633_899_000_000, 0x28, 6656, 7)];
    let first: Vec<_> = load.iter().flat_map(|row| vscsi(1, row.1, row.2, row.3, row.0)).collect();
    let second: Vec<_> = load.iter().flat_map(|row| vscsi(2, row.1, row.2, row.3, row.0)).collect();
    let oracle: Vec<_> = load
        .iter()
        .flat_map(|row| {
            let seconds = ((row.0 / 1_000_000) as u32).to_le_bytes();
            [&seconds[..], &row.3.to_le_bytes(), &row.2.to_le_bytes(), &(-1_i64).to_le_bytes()].concat()
        })
        .collect();
    let mut csv = "version,time,op,size,lbn\n".to_owned();
    for row in &load {
        csv += &format!("1,{},{:x},{},{}\n", row.0 / 1_000_000, row.1, row.2, row.3);
    }
    let list: String = load.iter().map(|row| format!("{}\n", row.3)).collect();
    let all = [
        ("vscsi", first),
        ("vscsi", second),
        ("oracle-general", oracle),
        ("csv", csv.into_bytes()),
        ("sectors", list.into_bytes()),
    ];
    let places: Vec<_> = load.iter().map(|row| row.3).collect();
    for (format, bytes) in &all {
        assert_eq!(formats::detect(bytes).map(|found| found.name), Some(*format));
        let read = read_all(bytes);
        let found: Vec<_> = read.ios.iter().map(|io| io.sector.0).collect();
        assert_eq!(found, places, "{format}");
        let lengths: Vec<_> = read.ios.iter().map(|io| io.sectors).collect();
        assert!(*format == "sectors" || lengths == [1, 13], "{format}");
        let operations: Vec<_> = read.ios.iter().map(|io| io.op.name()).collect();
        let known = matches!(*format, "vscsi" | "csv");
        assert_eq!(operations, if known { ["write", "read"] } else { ["other", "other"] }, "{format}");
        assert_eq!(read.note(Kind::NoOperation).is_some(), !known, "{format}");
        let us = if *format == "vscsi" { 131_486 } else { 1_000_000 };
        assert!(*format == "sectors" || read.ios[1].queued.0 == us * 1000, "{format}");
    }
    assert_eq!(read_all(&all[1].1).ios[0].completed.map(|at| at.0), Some(7000));
}

#[test]
fn hfplayers_dumps_join_arrivals_and_completions() {
    let text = b"#DUMP_OFFSET.I,ELAPSED_USECS.D,CMD.S,SEQID.I,PHASE.I,LBA.I,NBLKS.I,THINK_USECS.D\n\
        1,10.500,RD_IN,7,0,800,8,0\n2,11.000,WR_IN,8,0,16,8,0\n3,20.000,RD_OUT,7,1,0,0,0\n";
    let read = read_all(text);
    let none = String::new;
    let expected: [Row; 2] = [(0, Some(9500), 800, 8, "read", none()), (500, None, 16, 8, "write", none())];
    assert_eq!(rows(&read), expected);
    assert_eq!(read.note(Kind::NoCompletion), Some((1, 3)));
    let processed = b"#DUMP_OFFSET.I,ELAPSED_USECS.D,CMD.S,INFLIGHT_IOS.I,LBA.I,NBLKS.I,LATENCY_USECS.D\n\
        3610768,81442951.096,WR_IN,0,2254431928,8,56.910\n";
    let read = read_all(processed);
    assert_eq!(rows(&read), [(0, Some(56_910), 2_254_431_928, 8, "write", none())]);
}

#[test]
fn a_wrong_field_is_refused_with_its_line() {
    let error = |text: &[u8]| {
        let read = try_read_files(&[text], &Wanted::default(), None);
        let error = read.expect_err("wrong");
        (error.line, error.reason)
    };
    let good = "1,hm,1,Read,0,512,1\n";
    let wrong = |row: &str| error(format!("{good}{good}{row}\n").as_bytes());
    let expected = "msr: operation 'Erase'; expected R, W, Read, Write or another operation";
    assert_eq!(wrong("2,hm,1,Erase,0,512,1"), (Some(3), expected.to_owned()));
    assert_eq!(wrong("x,hm,1,Read,0,512,1"), (Some(3), "msr: time 'x'; expected a number".to_owned()));
    let few = "msr: too few fields in '2,hm'; expected 7 fields";
    assert_eq!(wrong("2,hm"), (Some(3), few.to_owned()));
    let beyond = "msr: place 18446744073709551615 and length 512 are beyond any disk";
    assert_eq!(wrong("2,hm,1,Read,18446744073709551615,512,1"), (Some(3), beyond.to_owned()));
    let log = error(b"fio version 3 iolog\n1 f read 0\n");
    let expected = "iolog: found '1 f read 0'; expected offset and length in bytes";
    assert_eq!(log, (Some(2), expected.to_owned()));
    assert_eq!(error(b"\0\x01\x02 nothing").1.split(';').next(), Some("the format is not known"));
    assert_eq!(error(b"").1, "the file is empty");
}
