//! `guest.json`: the guest's orders. The host writes it into the run directory.
//!
//! ```json
//! {
//!   "disk": {"file": "disk.toml", "overrides": [["ncq", "off"]], "seed": 1, "data": "memory"},
//!   "scheduler": "mq-deadline",
//!   "queue": {"nr_requests": 64},
//!   "iosched": {"fifo_batch": 16},
//!   "sysctl": {"vm.dirty_bytes": 100000000},
//!   "page_cache_kib": 1048576,
//!   "host_directories": ["/home/me/jobs"],
//!   "file_system": {"kind": "ext4", "mountpoint": "/mnt"},
//!   "log_rows": 10000,
//!   "trace": "blktrace",
//!   "run": {"program": {"command": ["fio", "job.fio"], "environment": {"A": "b"}}}
//! }
//! ```
//!
//! or, to run a fio job file as the simulator would, `"run": {"job": {"text": "[a]\nrw=randread\n",
//! "seed": 1, "driver": "native", "host": {"cpus": 4, "submit_ns": 1200}}}`.
//!
//! or the same in a file system, whose files were laid out before: `"disk": {…, "image": {"from":
//! "disk.image"}}`, `"file_system": {"kind": "xfs", "mountpoint": "/mnt", "made": true}` and `"files":
//! [[[2048, 16384]]]` in the job, the sectors of each file.
//!
//! or, to lay files out, `"image": {"to": "disk.image"}`, a file system to make, and `"run": {"lay_out":
//! {"sizes": [8388608]}}`.
//!
//! or, to replay recorded I/O, `"run": {"replay": {"file": "replay.bin"}}`: see
//! [`Load`](blklab_core::source::replay::stored::Load).
//!
//! or, to measure a program as a job, `"run": {"workload": {"command": ["benchmark"], "directory":
//! "/mnt/work"}}`: see [`Workload`]. With `"nfs": {"mountpoint": "/run/nfs", "threads": 8}` in it, that directory can
//! be on an NFS mount of the same file system: see [`crate::nfs`].
//!
//! Relative paths start at the run directory. Unknown keys, values of the wrong type and invalid
//! names are refused with line and column.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::trace::Format;

/// The whole file.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The disk.
    pub disk: DiskConfig,
    /// As in `queue/scheduler`.
    pub scheduler: Name,
    /// Values for `queue/`.
    #[serde(default)]
    pub queue: BTreeMap<Name, Setting>,
    /// Values for `queue/iosched/`.
    #[serde(default)]
    pub iosched: BTreeMap<Name, Setting>,
    /// Values for `/proc/sys`: names as in sysctl(8), `vm.dirty_bytes`.
    #[serde(default)]
    pub sysctl: BTreeMap<SysctlName, Setting>,
    /// All that the page cache of a run can have; without it, the guest's memory decides. See [`crate::memory`].
    pub page_cache_kib: Option<u64>,
    /// Directories of the host that would be hidden (`/tmp` and `/run` are the guest's own).
    #[serde(default)]
    pub host_directories: Vec<PathBuf>,
    /// The same of files.
    #[serde(default)]
    pub host_files: Vec<PathBuf>,
    /// A file system to create and mount on the disk.
    pub file_system: Option<FileSystem>,
    /// The number of requests in `requests.i64`: the first requests of the program.
    #[serde(default)]
    pub log_rows: usize,
    /// Records the block layer's events in this format.
    pub trace: Option<Format>,
    /// The program, job or recording to run.
    pub run: Run,
}

/// The disk.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DiskConfig {
    /// Disk file (TOML).
    pub file: PathBuf,
    /// Changed keys.
    #[serde(default)]
    pub overrides: Vec<(String, String)>,
    /// The platter's position when the program starts.
    pub seed: u64,
    /// `memory`, `none` or a file's path, as in `blklab-disk create --data`.
    #[serde(default = "memory")]
    pub data: String,
    /// Images of the data in memory: one to begin with, one to write at the end.
    pub image: Option<Image>,
    /// A ublk device, where the kernel could have the disk's own transport too.
    #[serde(default)]
    pub ublk: bool,
}

/// Images of a disk's data.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Image {
    /// The first.
    pub from: Option<PathBuf>,
    /// The last.
    pub to: Option<PathBuf>,
}

/// The places of a file on the disk, one after the other: first sector and number of sectors.
pub type Sectors = Vec<(u64, u64)>;

fn memory() -> String {
    "memory".to_owned()
}

/// A file system.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileSystem {
    /// The kind.
    pub kind: FileSystemKind,
    /// The mountpoint; created if missing.
    pub mountpoint: PathBuf,
    /// It is on the disk already.
    #[serde(default)]
    pub made: bool,
    /// More arguments for mkfs.
    #[serde(default)]
    pub mkfs_options: Vec<String>,
    /// Mount options, separated by commas.
    #[serde(default)]
    pub mount_options: String,
    /// It has been in use for long.
    #[serde(default)]
    pub aged: Option<Aged>,
}

/// The past of a file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Aged {
    /// The part of its space that old files have.
    pub percent: u8,
    /// The seed of the random numbers that decide which.
    pub seed: u64,
}

/// Kinds of file systems.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FileSystemKind {
    /// ext4
    Ext4,
    /// XFS
    Xfs,
    /// Btrfs
    Btrfs,
    /// F2FS
    F2fs,
}

/// The program, job or recording to run.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Run {
    /// A program.
    Program(Program),
    /// A fio job file.
    Job(JobConfig),
    /// Recorded I/O.
    Replay(ReplayConfig),
    /// Files to lay out in the file system.
    LayOut(LayOut),
    /// A program that is measured as a job is.
    Workload(Workload),
}

/// Files to lay out in the file system.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LayOut {
    /// Their sizes in bytes.
    pub sizes: Vec<u64>,
}

/// A program that is measured as a job is. It prepares its data first: it writes a line to standard
/// output when it is ready, and begins the measured part when it has read a line.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Workload {
    /// As of a [`Program`].
    pub command: Command,
    /// As of a [`Program`].
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    /// Its working directory, which is created if it is missing.
    pub directory: PathBuf,
    /// Its CPU work takes the time that it uses of the host's CPU, times so many thousandths, if the kernel
    /// can do that; 0: no time.
    #[serde(default)]
    pub cpu_permille: u32,
    /// The file system is exported, and mounted again by NFS.
    pub nfs: Option<NfsConfig>,
    /// A part of the run that is kept request by request.
    pub window: Option<WindowConfig>,
}

/// An NFS server and its only client, in the same guest.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NfsConfig {
    /// The client's mountpoint; created if missing.
    pub mountpoint: PathBuf,
    /// Threads of the server.
    pub threads: u32,
}

/// Recorded I/O to replay.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReplayConfig {
    /// The file with the I/Os and their processes.
    pub file: PathBuf,
    /// A part of the run that is kept request by request.
    pub window: Option<WindowConfig>,
}

/// A job file to run.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JobConfig {
    /// The job file without variables and includes, which the host has replaced.
    pub text: String,
    /// The seed of all random choices.
    pub seed: u64,
    /// The driver that issues the I/O.
    pub driver: Driver,
    /// The file with recorded I/Os and their processes that the native driver replays beside the job's.
    #[serde(default)]
    pub beside: Option<PathBuf>,
    /// Values of the modelled host by name, for the native driver: the CPU work of its processes, and whether
    /// files are partitions. Without them work takes no time, and they are.
    #[serde(default)]
    pub host: BTreeMap<String, i64>,
    /// The places of its files in the file system; without them each file is a partition.
    pub files: Option<Vec<Sectors>>,
    /// A part of the run that is kept request by request.
    pub window: Option<WindowConfig>,
}

/// A part of the run: ns from its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WindowConfig {
    /// Its start.
    pub from_ns: u64,
    /// Its end.
    pub until_ns: u64,
    /// The maximum of requests to keep.
    pub requests: usize,
}

/// The driver that issues the I/O.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Driver {
    /// fio itself.
    Fio,
    /// The simulator's own I/O sequence; see [`crate::job`].
    Native,
}

/// A program of the host.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Program {
    /// Its name or path, and its arguments; `{disk}` in them is the disk.
    pub command: Command,
    /// Additions to the guest's environment, which has only `PATH`, `HOME` and `BLKLAB_DISK`.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    /// Its working directory; the run directory by default.
    #[serde(default)]
    pub directory: PathBuf,
}

/// A command line of at least one word.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Vec<String>")]
pub struct Command(pub Vec<String>);

impl TryFrom<Vec<String>> for Command {
    type Error = &'static str;

    fn try_from(words: Vec<String>) -> Result<Command, Self::Error> {
        match words.first().is_some_and(|program| !program.is_empty()) {
            true if words.iter().any(|word| word.contains('\0')) => Err("a word has a null character"),
            true => Ok(Command(words)),
            false => Err("an empty command; expected a program and its arguments"),
        }
    }
}

/// The name of a scheduler or of a file in sysfs: letters, digits, `_` and `-`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(try_from = "String")]
pub struct Name(String);

impl TryFrom<String> for Name {
    type Error = String;

    fn try_from(text: String) -> Result<Name, String> {
        let good = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if !text.is_empty() && text.chars().all(good) {
            return Ok(Name(text));
        }
        Err(format!("'{text}' is no name: expected letters, digits, '_' and '-'"))
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl AsRef<Path> for Name {
    fn as_ref(&self) -> &Path {
        Path::new(&self.0)
    }
}

/// The name of a sysctl: names as above with dots between.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
pub struct SysctlName(String);

impl TryFrom<String> for SysctlName {
    type Error = String;

    fn try_from(text: String) -> Result<SysctlName, String> {
        for part in text.split('.') {
            Name::try_from(part.to_owned())?;
        }
        Ok(SysctlName(text))
    }
}

impl SysctlName {
    /// The file of the sysctl.
    pub fn path(&self) -> PathBuf {
        Path::new("/proc/sys").join(self.0.replace('.', "/"))
    }
}

/// A value for sysfs.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum Setting {
    /// A number.
    Number(i64),
    /// A word.
    Text(String),
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Setting::Number(number) => number.fmt(f),
            Setting::Text(text) => text.fmt(f),
        }
    }
}

/// Reads `guest.json`. `path` is only for the message.
///
/// # Errors
/// One line: the place, the value found and the values expected.
pub fn parse(text: &str, path: &Path) -> Result<Config, String> {
    serde_json::from_str(text).map_err(|error| {
        // serde_json's text ends with the position; here it comes first.
        let message = error.to_string();
        let what = message.rsplit_once(" at line ").map_or(message.as_str(), |(what, _)| what);
        let what = what.replace('\n', " ");
        format!("{}:{}:{}: {what}", path.display(), error.line(), error.column())
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const GOOD: &str = r#"{
  "disk": {"file": "disk.toml", "overrides": [["ncq", "off"]], "seed": 1, "data": "none"},
  "scheduler": "mq-deadline",
  "queue": {"nr_requests": 64},
  "iosched": {"fifo_batch": 16, "front_merges": "1"},
  "file_system": {"kind": "ext4", "mountpoint": "/mnt"},
  "trace": "events",
  "run": {"program": {"command": ["fio", "job.fio"], "environment": {"A": "b"}}}
}"#;

    fn refused(text: &str) -> String {
        parse(text, Path::new("guest.json")).unwrap_err()
    }

    #[test]
    fn a_whole_file_is_understood() {
        let config = parse(GOOD, Path::new("guest.json")).expect("good");
        assert_eq!(config.disk.overrides, [("ncq".to_owned(), "off".to_owned())]);
        assert_eq!(config.scheduler.to_string(), "mq-deadline");
        let iosched: Vec<_> = config.iosched.iter().map(|(name, value)| format!("{name}={value}")).collect();
        assert_eq!(iosched, ["fifo_batch=16", "front_merges=1"]);
        let Run::Program(program) = config.run else { panic!("found {:?}", config.run) };
        assert_eq!(program.command.0, ["fio", "job.fio"]);
        assert_eq!(program.directory, Path::new(""));
    }

    #[test]
    fn mistakes_are_located() {
        let unknown = refused(&GOOD.replace("\"trace\"", "\"tracing\""));
        assert!(
            unknown.starts_with("guest.json:7:11: unknown field `tracing`, expected one of `disk`"),
            "{unknown}"
        );
        let kind = refused(&GOOD.replace("ext4", "vfat"));
        assert!(kind.starts_with("guest.json:6:32: unknown variant `vfat`"), "{kind}");
        let name = refused(&GOOD.replace("nr_requests", "../../x"));
        assert!(name.starts_with("guest.json:4:") && name.contains("'../../x' is no name"), "{name}");
        let empty = refused(&GOOD.replace("\"fio\", \"job.fio\"", ""));
        assert!(empty.starts_with("guest.json:8:") && empty.contains("an empty command"), "{empty}");
        assert_eq!(refused("{"), "guest.json:1:1: EOF while parsing an object");
        assert!(refused("{}").starts_with("guest.json:1:2: missing field `disk`"));
    }

    proptest! {
        #[test]
        fn anything_is_understood_or_refused_in_one_located_line(
            cut in 0..GOOD.len(), length in 0..20_usize, noise in "\\PC{0,12}|[{}\\[\\],:\"0-9a-z \n\\\\]{0,12}",
        ) {
            let from = GOOD.floor_char_boundary(cut);
            let to = GOOD.floor_char_boundary((cut + length).min(GOOD.len()));
            let text = format!("{}{noise}{}", &GOOD[..from], &GOOD[to..]);
            if let Err(message) = parse(&text, Path::new("guest.json")) {
                prop_assert!(!message.contains('\n'));
                let mut parts = message.splitn(4, ':');
                prop_assert_eq!(parts.next(), Some("guest.json"));
                prop_assert!(parts.next().is_some_and(|line| line.parse::<u32>().is_ok()), "{}", message);
                prop_assert!(parts.next().is_some_and(|column| column.parse::<u32>().is_ok()));
                prop_assert!(parts.next().is_some_and(|what| !what.trim().is_empty()));
            }
        }
    }
}
