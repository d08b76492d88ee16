//! The block layer's events during a program.

mod events;
pub mod record;
pub mod relay;
mod version;

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use events::Events;
use record::Records;
use relay::{Ready, Relay, Sink};

/// The format of recorded events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// A line for each, in the text format of tracefs: `trace.txt`.
    Events,
    /// Records in the format of blktrace, for blkparse and btt: `DISK.blktrace.0`.
    Blktrace,
}

/// A finished recording.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Traced {
    /// The file's name in the run directory.
    pub file: String,
    /// Events.
    pub events: u64,
    /// Events that did not fit: the first ones with [`Format::Events`], later ones with
    /// [`Format::Blktrace`].
    pub lost: u64,
}

/// An option of the tracer since Linux 4.14: records carry the numbers of cgroups.
const CGROUPS: &str = "/sys/kernel/tracing/options/blk_cgroup";

/// The paths of cgroups by the kernel's numbers, beside the records: a line for each, with a tab between.
const CGROUP_NAMES: &str = "cgroups.txt";

/// Records of blktrace carry the numbers of cgroups from now on. These are all, with their paths, which go to
/// a file in `directory`.
///
/// # Errors
/// One line: the kernel cannot do it, or the file cannot be written.
pub fn name_cgroups(cgroups: &[(u64, String)], directory: &Path) -> Result<(), String> {
    std::fs::write(CGROUPS, "1").map_err(|error| format!("blktrace: {CGROUPS}: {error}"))?;
    let lines: String = cgroups.iter().map(|(number, path)| format!("{number}\t{path}\n")).collect();
    let path = directory.join(CGROUP_NAMES);
    std::fs::write(&path, lines).map_err(|error| format!("{}: {error}", path.display()))
}

/// Tracing that is switched on.
pub enum Trace {
    /// [`Format::Events`], with the file to write.
    Events(Events, PathBuf),
    /// [`Format::Blktrace`].
    Blktrace(Relay<RecordFile>),
}

impl Trace {
    /// Starts recording events of the disk `device`. The file is created in `directory`.
    ///
    /// # Errors
    /// One line: the kernel cannot do it.
    pub fn begin(format: Format, device: &Path, directory: &Path) -> Result<Trace, String> {
        match format {
            Format::Events => Ok(Trace::Events(Events::begin()?, directory.join("trace.txt"))),
            Format::Blktrace => {
                let file = RecordFile::of(device, directory)?;
                Ok(Trace::Blktrace(Ready::new(device)?.start(file)?))
            }
        }
    }

    /// Ends, with everything written.
    ///
    /// # Errors
    /// One line.
    pub fn end(self) -> Result<Traced, String> {
        match self {
            Trace::Events(trace, path) => {
                let (events, lost) = trace.end(&path)?;
                let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                Ok(Traced { file, events, lost })
            }
            Trace::Blktrace(relay) => {
                let (file, lost) = relay.end()?;
                Ok(file.traced(lost))
            }
        }
    }
}

/// A file of records.
pub struct RecordFile {
    path: PathBuf,
    file: File,
    records: Records,
    events: u64,
}

impl RecordFile {
    /// The file of the disk `device` in `directory`, new.
    ///
    /// # Errors
    /// One line.
    pub fn of(device: &Path, directory: &Path) -> Result<RecordFile, String> {
        let disk = device.file_name().unwrap_or_default().to_string_lossy();
        // The number is the CPU's; there is only one.
        RecordFile::create(directory.join(format!("{disk}.blktrace.0")))
    }

    fn create(path: PathBuf) -> Result<RecordFile, String> {
        let file = File::create(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(RecordFile { path, file, records: Records::default(), events: 0 })
    }

    /// What is recorded, with the number of events that did not fit.
    pub fn traced(&self, lost: u64) -> Traced {
        let file = self.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Traced { file, events: self.events, lost }
    }
}

impl Sink for RecordFile {
    fn take(&mut self, bytes: &[u8]) -> Result<(), String> {
        self.records.take(bytes, |record| self.events += u64::from(!record.is_note()))?;
        // Written at once: dirty pages count against the limits of the program.
        let written = self.file.write_all(bytes).and_then(|()| self.file.sync_data());
        written.map_err(|error| format!("{}: {error}", self.path.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_records_has_every_byte_and_counts_events() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut file = RecordFile::create(folder.path().join("ublkb0.blktrace.0")).expect("made");
        let stream = [('Q', 1), ('m', 2), ('C', 3)]
            .map(|(letter, at)| record::testing::written(at, letter, 'R', 0, 8));
        let bytes = stream.concat();
        file.take(&bytes[..60]).expect("taken");
        file.take(&bytes[60..]).expect("taken");
        assert_eq!(file.events, 2, "a note is no event");
        assert_eq!(std::fs::read(&file.path).expect("there"), bytes);
        assert_eq!(file.take(&[0; 48]).unwrap_err().lines().count(), 1);
    }
}
