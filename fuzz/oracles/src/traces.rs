//! Traces: each reader takes a file or refuses it at a place, its I/Os are in order, and a recording of
//! them is the same.

use std::io::Cursor;

use blklab_core::recorded::Io;
use blklab_trace::doctor::Doctor;
use blklab_trace::input::Input;
use blklab_trace::over_time::OverTime;
use blklab_trace::recording::Writer;
use blklab_trace::summary::Summary;
use blklab_trace::{Records, Trace, Wanted, formats};

use crate::check_message;

const EVENTS: &[&str] = &["blktrace", "blkparse", "ftrace"];

/// The number of a format of events, and behind it a trace of it.
pub fn events(data: &[u8]) {
    let Some((number, file)) = data.split_first() else { return };
    check(Some(EVENTS[usize::from(*number) % EVENTS.len()]), file);
}

/// The number of another format, and behind it a trace of it.
pub fn rows(data: &[u8]) {
    let Some((number, file)) = data.split_first() else { return };
    let others: Vec<_> = formats::all().into_iter().map(|format| format.name).collect();
    let others: Vec<_> =
        others.into_iter().filter(|name| !EVENTS.contains(name) && *name != "blklab").collect();
    check(Some(others[usize::from(*number) % others.len()]), file);
}

/// A file whose format is detected; compressed, a recording, or any other.
pub fn any(data: &[u8]) {
    check(None, data);
}

/// Steps of time lose no I/O.
fn over_time(ios: &[Io]) {
    if ios.is_empty() {
        return;
    }
    let mut over = OverTime::default();
    ios.iter().for_each(|io| over.take(io));
    let over = over.finish();
    let counted: u64 = over.steps().iter().flat_map(|step| step.ios).sum();
    assert_eq!(counted, ios.len() as u64);
}

fn check(format: Option<&str>, file: &[u8]) {
    let wanted = Wanted { format: format.map(str::to_owned), ..Wanted::default() };
    let trace = Input::new(Cursor::new(file.to_vec()))
        .map_err(|error| blklab_core::InputError::new(error.to_string()))
        .and_then(|input| Trace::new(vec![input], &wanted, "trace".to_owned()));
    let mut trace = match trace {
        Ok(trace) => trace,
        Err(error) => return check_message(&error, file),
    };
    let (mut doctor, mut summary) = (Doctor::new(None), Summary::default());
    let mut writer = Writer::new(Vec::new(), trace.header()).expect("memory");
    let mut ios: Vec<Io> = Vec::new();
    loop {
        match trace.next_io() {
            Ok(Some(io)) => {
                assert!(ios.last().is_none_or(|before| before.queued <= io.queued), "out of order");
                for step in [io.inserted, io.completed] {
                    assert!(step.is_none_or(|step| step >= io.queued), "a step before its arrival");
                }
                doctor.take(&io, trace.tables());
                summary.take(&io);
                writer.push(&io, trace.tables()).expect("memory");
                ios.push(io);
            }
            Ok(None) => break,
            Err(error) => {
                check_message(&error, file);
                break;
            }
        }
        // A compressed file of zeros has no end.
        if ios.len() >= 1 << 17 {
            break;
        }
    }
    assert_eq!(summary.finish().count, ios.len() as u64);
    doctor.findings(trace.header(), trace.notes(), false);
    over_time(&ios);
    let (bytes, _) = writer.finish(trace.tables()).expect("memory");
    let again = Input::new(Cursor::new(bytes)).expect("memory");
    let mut again = Trace::new(vec![again], &Wanted::default(), "recording".to_owned()).expect("a recording");
    for (number, io) in ios.iter().enumerate() {
        let found = again.next_io().expect("a good recording").expect("as many");
        let (names, read) = (trace.tables(), again.tables());
        assert_eq!(names.processes.name(io.process), read.processes.name(found.process));
        assert_eq!(names.devices.name(io.device), read.devices.name(found.device));
        let same = Io { number: io.number, device: io.device, process: io.process, ..found };
        assert_eq!(&same, io, "record {}", number + 1);
    }
    assert!(again.next_io().expect("a good recording").is_none());
}
