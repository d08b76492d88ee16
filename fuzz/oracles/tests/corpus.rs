//! Every input that the fuzzer has kept, and every one that once failed, is asked again.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use blklab_oracles::{TARGETS, packed};

#[test]
fn every_kept_input_is_taken_or_refused_as_it_has_to_be() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpus/rust");
    for (name, target) in TARGETS {
        let text = fs::read_to_string(corpus.join(name)).expect("every target has kept inputs");
        let inputs = packed::read(&text);
        assert!(inputs.len() > 3, "{name} has {} inputs", inputs.len());
        for input in inputs {
            if std::panic::catch_unwind(|| target(&input)).is_err() {
                panic!("{name}: {}", input.escape_ascii());
            }
        }
    }
}

#[test]
fn every_target_can_be_fuzzed_and_no_other() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz_targets");
    let files = fs::read_dir(directory).expect("it is there");
    let found: BTreeSet<_> = files
        .map(|file| {
            file.expect("readable").path().file_stem().expect("a name").to_string_lossy().into_owned()
        })
        .collect();
    assert_eq!(found, TARGETS.iter().map(|(name, _)| (*name).to_owned()).collect());
}
