use blklab_base::ring_buffer::{MISSED, kind};
use proptest::prelude::*;

use super::super::Owners;
use super::*;
use crate::recorder::TraceRecorder;

const PAGE: &str = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;
\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;
\tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;
\tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;";
const DISK: u32 = 7 << 20;

fn formats() -> Vec<(String, String)> {
    let text = |id: usize| {
        format!(
            "name: it\nID: {id}\nformat:
\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;

\tfield:dev_t dev;\toffset:8;\tsize:4;\tsigned:0;
\tfield:sector_t sector;\toffset:16;\tsize:8;\tsigned:0;
\tfield:unsigned int nr_sector;\toffset:24;\tsize:4;\tsigned:0;
\tfield:char rwbs[10];\toffset:28;\tsize:10;\tsigned:0;\n"
        )
    };
    TRACEPOINTS.iter().enumerate().map(|(id, (name, _))| ((*name).to_owned(), text(id + 100))).collect()
}

fn ring() -> Ring {
    let format = Format::new(PAGE, &formats()).expect("good texts");
    let watch = Watch::new(Nanos(1000), Owners::default(), TraceRecorder::default(), false);
    Ring::new(format, vec![DISK.into()], watch)
}

/// An event as the kernel writes it, `delta` after the previous one.
fn event(delta: u32, letter: char, rwbs: &[u8], sector: u64, sectors: u32) -> Vec<u8> {
    of_device(DISK, delta, letter, rwbs, sector, sectors)
}

fn of_device(device: u32, delta: u32, letter: char, rwbs: &[u8], sector: u64, sectors: u32) -> Vec<u8> {
    let id = 100 + "IDRCMF".find(letter).expect("a letter of blkparse") as u16;
    let mut payload = vec![0; 40];
    payload[..2].copy_from_slice(&id.to_ne_bytes());
    payload[8..12].copy_from_slice(&device.to_ne_bytes());
    payload[16..24].copy_from_slice(&sector.to_ne_bytes());
    payload[24..28].copy_from_slice(&sectors.to_ne_bytes());
    payload[28..28 + rwbs.len()].copy_from_slice(rwbs);
    [&(delta << 5 | 10).to_ne_bytes()[..], &payload].concat()
}

fn page(time: u64, marks: u64, entries: &[Vec<u8>]) -> Vec<u8> {
    let data = entries.concat();
    let commit = data.len() as u64 | marks;
    [&time.to_ne_bytes()[..], &commit.to_ne_bytes(), &data].concat()
}

/// Queued, issued and completed times of each request, in order of issue; since the epoch.
fn times(ring: Ring) -> Vec<(i64, i64, i64)> {
    let (trace, ..) = ring.into_watch().finish().commands;
    let rows = trace.queued_ns.iter().zip(&trace.issued_ns).zip(&trace.completed_ns);
    rows.map(|((queued, issued), completed)| (*queued, *issued, *completed)).collect()
}

#[test]
fn requests_are_followed_over_cpus_and_kinds_of_entries() {
    let mut ring = ring();
    let padding = [&(5_u32 << 5 | kind::PADDING).to_ne_bytes()[..], &8_u32.to_ne_bytes(), &[0; 4]].concat();
    let extend = [&(7_u32 << 5 | kind::TIME_EXTEND).to_ne_bytes()[..], &1_u32.to_ne_bytes()].concat();
    // From one CPU: inserted at 1100, issued at 1200; between them an event of another kind and one
    // of another disk.
    ring.take(&page(
        1000,
        0,
        &[
            event(100, 'I', b"R", 64, 8),
            of_device(DISK + 1, 10, 'C', b"R", 64, 8),
            padding,
            event(85, 'D', b"R", 64, 8),
            extend,
            event(3, 'D', b"WS", 0, 8),
        ],
    ));
    // From the other CPU: completed at 1500, and long after.
    let stamp = |time: u64| {
        let low = (time & ((1 << 27) - 1)) as u32;
        [(low << 5 | kind::TIME_STAMP).to_ne_bytes(), ((time >> 27) as u32).to_ne_bytes()].concat()
    };
    let late = 1200 + (1 << 27) + 7 + 3;
    ring.take(&page(
        0,
        0,
        &[stamp(1500), event(0, 'C', b"R", 64, 8), stamp(late + 9), event(0, 'C', b"W", 0, 8)],
    ));
    ring.advance(u64::MAX);
    let late = late as i64 - 1000;
    assert_eq!(ring.gaps(), 0);
    assert_eq!(times(ring), [(100, 200, 500), (late, late, late + 9)]);
}

#[test]
fn events_wait_for_earlier_ones_of_other_cpus() {
    let mut ring = ring();
    ring.take(&page(2000, 0, &[event(0, 'C', b"R", 64, 8)]));
    ring.advance(1900);
    ring.take(&page(1950, 0, &[event(0, 'D', b"R", 64, 8)]));
    ring.advance(2000);
    assert_eq!(times(ring), [(950, 950, 1000)]);
}

#[test]
fn requests_in_flight_when_events_were_lost_are_omitted() {
    let mut ring = ring();
    ring.take(&page(2000, 0, &[event(0, 'D', b"R", 64, 8), event(10, 'D', b"R", 800, 8)]));
    // The end of the first request and the start of the next are lost.
    ring.take(&page(3000, MISSED, &[event(0, 'C', b"R", 64, 8), event(10, 'D', b"R", 64, 8)]));
    ring.take(&page(4000, 0, &[event(0, 'C', b"R", 64, 8)]));
    ring.advance(u64::MAX);
    assert_eq!(ring.gaps(), 1);
    assert_eq!(times(ring), [(2010, 2010, 3000)]);
}

#[test]
fn requests_without_end_are_forgotten_before_they_fill_the_memory() {
    let mut ring = ring();
    for number in 0..u64::from(UNDER_WAY_MAX) + 10 {
        ring.take(&page(2000 + number, 0, &[event(0, 'D', b"R", number * 8, 8)]));
    }
    ring.advance(u64::MAX);
    assert_eq!(ring.gaps(), 1);
    assert_eq!(ring.watch.under_way(), 9);
}

#[test]
fn a_text_without_a_field_is_one_line() {
    let found = |page: &str, formats: &[(String, String)]| Format::new(page, formats).unwrap_err();
    assert_eq!(found("", &formats()), "tracefs: header_page: no field 'timestamp'");
    assert_eq!(found(PAGE, &[]), "tracefs: block_rq_insert: no field 'common_type'");
    let mut without = formats();
    without[3].1 = without[3].1.replace("rwbs", "other");
    assert_eq!(found(PAGE, &without), "tracefs: block_rq_complete: no field 'rwbs'");
}

proptest! {
    #[test]
    fn any_bytes_are_read_without_panic_and_a_cut_page_is_a_gap(
        pages in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..400), 0..20),
        cut in 1..44_usize,
        until in any::<u64>(),
    ) {
        let mut ring = ring();
        for bytes in &pages {
            ring.take(bytes);
        }
        let before = ring.gaps();
        let mut whole = page(2000, 0, &[event(0, 'D', b"R", 64, 8)]);
        whole.truncate(whole.len() - cut);
        ring.take(&whole);
        prop_assert_eq!(ring.gaps(), before + 1);
        ring.advance(until);
        ring.advance(u64::MAX);
        ring.into_watch().finish();
    }

    #[test]
    fn damaged_pages_give_no_more_requests_than_there_were(
        requests in 1..40_u64, flips in prop::collection::vec((0..3000_usize, any::<u8>()), 0..8)
    ) {
        let entries: Vec<_> = (0..requests)
            .flat_map(|n| [event(1, 'D', b"R", n * 8, 8), event(1, 'C', b"R", n * 8, 8)])
            .collect();
        let mut bytes = page(2000, 0, &entries);
        for (at, value) in &flips {
            let length = bytes.len();
            bytes[at % length] ^= value;
        }
        let mut ring = ring();
        ring.take(&bytes);
        // The reader's clock: no event is later than it.
        ring.advance(1 << 40);
        let found = times(ring);
        prop_assert!(found.len() as u64 <= requests);
        prop_assert!(found.iter().all(|(queued, issued, completed)| queued <= issued && issued <= completed));
        prop_assert!(!flips.is_empty() || found.len() as u64 == requests);
    }
}
