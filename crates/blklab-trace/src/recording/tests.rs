use std::io::Cursor;

use blklab_base::recorded::{Flags, Header, Io, Level, Names, Op, Tables};
use blklab_base::units::{Nanos, Sector};
use proptest::prelude::*;

use super::*;
use crate::Records;
use crate::input::Input;
use crate::notes::Kind;

fn tables() -> Tables {
    let mut tables = Tables::default();
    for name in ["8:0", "259:1"] {
        tables.devices.id(name);
    }
    for name in ["fio", "kworker/u8:1", "Größe"] {
        tables.processes.id(name);
    }
    tables
}

prop_compose! {
    fn some_io()(
        gap in 0..5_000_000_000_u64,
        spans in prop::array::uniform3(prop::option::of(0..9_000_000_000_u64)),
        sector in 0..1_u64 << 55,
        sectors in any::<u32>(),
        op in 0..Op::ALL.len(),
        flags in 0..512_u16,
        names in (0..3_u32, 0..4_u32),
        pid in any::<u32>(),
        cpu in prop::option::of(any::<u16>()),
        prio in prop::option::of(any::<u16>()),
        cgroup in any::<u64>(),
        lost in any::<u32>(),
    ) -> (u64, [Option<u64>; 3], Io) {
        let io = Io {
            sector: Sector(sector), sectors, op: Op::ALL[op], flags: Flags(flags),
            device: blklab_base::recorded::NameId(names.0), process: blklab_base::recorded::NameId(names.1),
            pid, cpu, prio, cgroup, lost,
            ..Io::default()
        };
        (gap, spans, io)
    }
}

/// I/Os in order, their steps in order too.
fn ios(drawn: Vec<(u64, [Option<u64>; 3], Io)>) -> Vec<Io> {
    let mut now = 0;
    drawn
        .into_iter()
        .zip(1..)
        .map(|((gap, [q2i, i2d, d2c], mut io), number)| {
            now += gap;
            io.queued = Nanos(now);
            io.inserted = q2i.map(|span| Nanos(now + span));
            io.issued = i2d.map(|span| Nanos(io.inserted.unwrap_or(io.queued).0 + span));
            io.completed = d2c.map(|span| Nanos(io.issued.or(io.inserted).unwrap_or(io.queued).0 + span));
            io.number = number;
            io
        })
        .collect()
}

fn written(header: &Header, ios: &[Io], batch: usize) -> Vec<u8> {
    let tables = tables();
    let mut writer = Writer::new(Vec::new(), header).expect("memory");
    for (place, io) in ios.iter().enumerate() {
        writer.push(io, &tables).expect("memory");
        if (place + 1) % batch == 0 {
            writer.flush(&tables).expect("memory");
        }
    }
    let (bytes, count) = writer.finish(&tables).expect("memory");
    assert_eq!(count, ios.len() as u64);
    bytes
}

fn read(bytes: &[u8]) -> (Header, Vec<Io>, bool) {
    let input = Input::new(Cursor::new(bytes.to_vec())).expect("memory");
    let mut recording = Recording::new(input).expect("a recording");
    let mut found = Vec::new();
    while let Some(io) = recording.next_io().expect("good") {
        found.push(io);
    }
    (recording.header().clone(), found, recording.notes().count(Kind::Truncated) > 0)
}

fn header() -> Header {
    Header {
        source: "blktrace 7".to_owned(),
        level: Level::Bio,
        resolution: Nanos(1),
        begun_unix_ns: Some(-5),
        machine: Some("x".to_owned()),
        scheduler: Some("bfq:slice_idle=0".to_owned()),
        capacity: Some(Sector(1000)),
        spread: true,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_recording_is_read_as_it_was_written(
        drawn in prop::collection::vec(some_io(), 0..200), batch in 1..100_usize
    ) {
        let ios = ios(drawn);
        let bytes = written(&header(), &ios, batch);
        prop_assert!(is_ours(&bytes));
        let (read_header, found, cut) = read(&bytes);
        prop_assert_eq!(read_header, header());
        prop_assert_eq!(found, ios);
        prop_assert!(!cut);
    }

    #[test]
    fn a_cut_recording_has_all_records_of_its_whole_batches(
        drawn in prop::collection::vec(some_io(), 1..60), batch in 1..20_usize, at in any::<prop::sample::Index>()
    ) {
        let ios = ios(drawn);
        let bytes = written(&header(), &ios, batch);
        let schema = written(&header(), &[], batch).len() - 8;
        let length = schema + at.index(bytes.len() - schema);
        let (_, found, cut) = read(&bytes[..length]);
        prop_assert_eq!(&found[..], &ios[..found.len()]);
        prop_assert!(found.len() % batch == 0 || found.len() == ios.len());
        prop_assert!(cut);
    }

    #[test]
    fn a_damaged_recording_is_read_or_refused(
        drawn in prop::collection::vec(some_io(), 1..60),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let mut bytes = written(&header(), &ios(drawn), 20);
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        let input = Input::new(Cursor::new(bytes)).expect("memory");
        if let Ok(mut recording) = Recording::new(input) {
            while let Ok(Some(_)) = recording.next_io() {}
        }
    }
}

#[test]
fn a_recording_of_other_columns_is_refused_with_the_column() {
    use arrow_schema::{DataType, Field, Schema};

    let mut fields: Vec<_> = schema(&header()).fields().iter().map(|field| (**field).clone()).collect();
    fields[5] = Field::new("bytes", DataType::UInt32, false);
    let schema = Schema::new_with_metadata(fields, schema(&header()).metadata().clone());
    let mut bytes = Vec::new();
    arrow_ipc::writer::StreamWriter::try_new(&mut bytes, &schema).expect("memory");
    let error = Recording::new(Input::new(Cursor::new(bytes)).expect("memory")).err().expect("refused");
    assert_eq!(error.reason, "column 6: found 'bytes'; expected sectors (uint32)");
}

#[test]
fn paths_of_cgroups_are_kept_and_recordings_without_them_are_read() {
    use arrow_ipc::reader::StreamReader;
    use arrow_ipc::writer::StreamWriter;

    let mut tables = Tables::default();
    tables.cgroups.set(8, "/system.slice");
    tables.cgroups.set(3, "/");
    let mut writer = Writer::new(Vec::new(), &header()).expect("memory");
    for cgroup in [0, 8, 3, 8, 5] {
        writer.push(&Io { cgroup, op: Op::Flush, ..Io::default() }, &tables).expect("memory");
    }
    let (bytes, _) = writer.finish(&tables).expect("memory");
    let read = |bytes: Vec<u8>| {
        let mut recording =
            Recording::new(Input::new(Cursor::new(bytes)).expect("memory")).expect("readable");
        let mut found = Vec::new();
        while let Some(io) = recording.next_io().expect("good") {
            found.push((io.cgroup, recording.tables().cgroups.path(io.cgroup).to_owned()));
        }
        found
    };
    let expected = [(0, ""), (8, "/system.slice"), (3, "/"), (8, "/system.slice"), (5, "")];
    assert_eq!(read(bytes.clone()), expected.map(|(number, path)| (number, path.to_owned())));
    // As blklab wrote them before there were paths.
    let mut stream = StreamReader::try_new(Cursor::new(bytes), None).expect("a stream");
    let batch = stream.next().expect("a batch").expect("whole");
    let old = batch.project(&(0..COLUMNS_MIN).collect::<Vec<_>>()).expect("fewer columns");
    let mut bytes = Vec::new();
    let mut writer = StreamWriter::try_new(&mut bytes, &old.schema()).expect("memory");
    writer.write(&old).expect("memory");
    writer.finish().expect("memory");
    drop(writer);
    assert_eq!(read(bytes), expected.map(|(number, _)| (number, String::new())));
}

#[test]
fn names_that_come_later_keep_their_numbers() {
    let mut tables = Tables::default();
    let mut writer = Writer::new(Vec::new(), &header()).expect("memory");
    for round in 0..3 {
        let process = tables.processes.id(&format!("process {round}"));
        let io = Io { process, op: Op::Flush, ..Io::default() };
        writer.push(&io, &tables).expect("memory");
        writer.flush(&tables).expect("memory");
    }
    let (bytes, _) = writer.finish(&tables).expect("memory");
    let mut recording = Recording::new(Input::new(Cursor::new(bytes)).expect("memory")).expect("a recording");
    let mut found = Vec::new();
    while let Some(io) = recording.next_io().expect("good") {
        found.push(recording.tables().processes.name(io.process).to_owned());
    }
    assert_eq!(found, ["process 0", "process 1", "process 2"]);
    let names: &Names = &recording.tables().processes;
    assert_eq!(names.len(), 4);
}
