//! The shipped disks: `catalogue/*.toml`, a file for each.

use super::DiskModel;

/// Each shipped disk's name and its file's text, by name.
pub static FILES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/catalogue.rs"));

/// The text of the shipped disk `name`.
pub fn text(name: &str) -> Option<&'static str> {
    FILES.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}

/// The model of the shipped disk `name`; `None` if there is none.
///
/// # Panics
/// If the file is not valid; a test reads each file.
pub fn model(name: &str) -> Option<DiskModel> {
    let model = DiskModel::parse(text(name)?, &format!("{name}.toml"));
    Some(model.expect("a test reads every shipped disk"))
}
