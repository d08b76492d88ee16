//! What the kernel rig's guest reads: its orders, and the kernel's records.

use std::path::Path;

use blklab_guest::config;
use blklab_guest::trace::record::Records;

use crate::check_message;

pub fn order(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match config::parse(text, Path::new("guest.json")) {
        Ok(config) => {
            // Names become paths of sysfs and /proc/sys: none leads out of there.
            for name in config.queue.keys().chain(config.iosched.keys()).chain([&config.scheduler]) {
                assert!(!name.to_string().contains(['/', '.', '\0']), "{name}");
            }
            for name in config.sysctl.keys() {
                let path = name.path();
                assert!(path.starts_with("/proc/sys") && !path.iter().any(|part| part == ".."), "{path:?}");
            }
        }
        Err(error) => {
            check_message(&error, data);
            assert!(error.starts_with("guest.json:"), "{error}");
        }
    }
}

/// The length of the pieces that the stream comes in, and the stream.
pub fn records(data: &[u8]) {
    let Some((&length, stream)) = data.split_first() else { return };
    let read = |pieces: &[&[u8]]| {
        let (mut records, mut found) = (Records::default(), Vec::new());
        let outcome = pieces.iter().try_for_each(|piece| records.take(piece, |record| found.push(*record)));
        (outcome, found)
    };
    let (outcome, whole) = read(&[stream]);
    let (in_pieces, cut) = read(&stream.chunks(usize::from(length).max(1)).collect::<Vec<_>>());
    assert_eq!((&outcome, &whole), (&in_pieces, &cut), "how a stream is cut makes no difference");
    for event in whole.iter().filter_map(|record| record.event()) {
        assert!(whole.iter().any(|record| record.time == event.time && !record.is_note()));
    }
    if let Err(error) = outcome {
        check_message(&error, data);
    }
}
