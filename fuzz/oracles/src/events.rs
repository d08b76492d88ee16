//! The block layer's events: how tracefs says that they are written, and pages of them.

use std::io;
use std::sync::LazyLock;

use blklab_core::formats::tracefs::ring::{Format, Ring, TRACEPOINTS};
use blklab_core::formats::tracefs::{Owners, Watch};
use blklab_core::recorder::TraceRecorder;
use blklab_core::units::Nanos;
use blklab_trace::input::Input;
use blklab_trace::recording::Recording;
use blklab_trace::{Records, live};

use crate::check_message;

/// A 64-bit kernel's.
const PAGE: &str = include_str!("header_page.txt");
const EVENT: &str = include_str!("event_format.txt");
const DEVICE: u64 = 7 << 20;

fn all(text: &str) -> Vec<(String, String)> {
    let numbered = |(number, (name, _)): (usize, &(&str, _))| {
        ((*name).to_owned(), format!("ID: {}\n{text}", 100 + number))
    };
    TRACEPOINTS.iter().enumerate().map(numbered).collect()
}

/// A `header_page`, a form feed, and the `format` of every event.
pub fn formats(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let (page, event) = text.split_once('\u{c}').unwrap_or((text, EVENT));
    match Format::new(page, &all(event)) {
        // What a kernel says of its pages is trusted no more than the pages.
        Ok(format) => follow(format, &[data, &[0xff; 4096], &[0; 4096]].map(<[u8]>::to_vec)),
        Err(error) => check_message(&error, data),
    }
}

static FORMAT: LazyLock<Format> = LazyLock::new(|| Format::new(PAGE, &all(EVENT)).expect("a kernel's"));

/// Pages, each of two bytes for its length and so many more.
pub fn pages(data: &[u8]) {
    let (mut pages, mut rest) = (Vec::new(), data);
    while let Some((length, behind)) = rest.split_first_chunk::<2>() {
        let length = usize::from(u16::from_le_bytes(*length)).min(behind.len());
        pages.push(behind[..length].to_vec());
        rest = &behind[length..];
    }
    follow(FORMAT.clone(), &pages);
    record(&pages);
}

static LIVE: LazyLock<live::Format> = LazyLock::new(|| {
    let text = |(number, (name, ..)): (usize, &(&str, _, _))| {
        ((*name).to_owned(), format!("ID: {}\n{EVENT}", 100 + number))
    };
    let formats: Vec<_> = live::TRACEPOINTS.iter().enumerate().map(text).collect();
    live::Format::new(PAGE, &formats).expect("a kernel's")
});

/// A recording of the same pages can be read again, and its times are in order.
fn record(pages: &[Vec<u8>]) {
    let devices = [("7:0".to_owned(), vec![DEVICE])];
    let header = live::header("a machine", None, None, 0);
    let mut recorded = Vec::new();
    let recorder = live::Recorder::new(&mut recorded, LIVE.clone(), &devices, &header, Nanos(0));
    let mut recorder = recorder.expect("memory can be written");
    for (number, page) in pages.iter().enumerate() {
        recorder.take(number as u16 % 2, page);
        recorder.advance(Nanos(1 << 40)).expect("memory can be written");
    }
    let written = recorder.finish().expect("memory can be written");
    let input = Input::new(io::Cursor::new(recorded)).expect("memory can be read");
    let mut again = Recording::new(input).expect("it is ours");
    let (mut count, mut before) = (0, Nanos(0));
    while let Some(one) = again.next_io().expect("it is whole") {
        assert!(before <= one.queued, "{before:?}, {one:?}");
        (count, before) = (count + 1, one.queued);
    }
    assert_eq!(count, written);
}

fn follow(format: Format, pages: &[Vec<u8>]) {
    let watch = Watch::new(Nanos(1000), Owners::default(), TraceRecorder::default(), false);
    let mut ring = Ring::new(format, vec![DEVICE], watch);
    for page in pages {
        ring.take(page);
        // The clock of this machine: nothing that is told comes from behind it.
        ring.advance(1 << 40);
    }
    let seen = ring.into_watch().finish();
    let (overview, _, detail) = seen.commands;
    for trace in [overview, detail] {
        let rows = trace.queued_ns.iter().zip(&trace.issued_ns).zip(&trace.completed_ns);
        for ((queued, issued), completed) in rows {
            assert!(queued <= issued && issued <= completed, "{queued}, {issued}, {completed}");
        }
    }
}
