//! What has to hold of any input whatever: a parser takes it or refuses it in one line, and what
//! it took it can write so that it reads the same again.
//!
//! One function per format, listed in [`TARGETS`]. Each panics if something does not hold. The
//! fuzzer (`fuzz/fuzz_targets`) calls them with what it makes up, `cargo test` with what the
//! fuzzer has kept (`fuzz/corpus`).

mod disks;
mod events;
mod guest;
mod jobs;
pub mod packed;
mod specs;

/// A name, as of a file in `fuzz/corpus` and a target of the fuzzer, and what is asked of each
/// input.
pub type Target = (&'static str, fn(&[u8]));

/// All of them.
pub const TARGETS: &[Target] = &[
    ("disk_file", disks::file),
    ("disk_override", disks::overrides),
    ("event_formats", events::formats),
    ("event_pages", events::pages),
    ("fio_output", jobs::output),
    ("guest_order", guest::order),
    ("guest_records", guest::records),
    ("host_file", specs::host_file),
    ("host_setting", specs::host),
    ("job_file", jobs::file),
    ("scheduler_spec", specs::scheduler),
];

/// The target of that name.
///
/// # Panics
/// If there is none.
pub fn target(name: &str) -> fn(&[u8]) {
    TARGETS.iter().find(|(of, _)| *of == name).unwrap_or_else(|| panic!("no target '{name}'")).1
}

/// An error's text as a person gets it: something, and no more than can be read. That it is one
/// line without control characters is seen to where it is shown.
fn check_message(error: &impl std::fmt::Display, input: &[u8]) {
    let text = error.to_string();
    assert!(!text.trim().is_empty(), "an error without a word");
    // It may quote what it does not understand, once or twice, and list what there is.
    assert!(text.len() <= 4096 + 2 * input.len(), "{} bytes of message", text.len());
}
