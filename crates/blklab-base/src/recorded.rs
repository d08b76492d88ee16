//! A recorded I/O, whatever program recorded it: plain data for readers, replay and statistics.
//!
//! Times count from the recording's start. Names of devices and processes are numbers in a table
//! beside the records ([`Tables`]), so that a record is plain data of fixed size.

use std::collections::HashMap;
use std::fmt;

use crate::units::{Nanos, Sector};

/// The operation of a recorded I/O.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Op {
    /// Data are read.
    #[default]
    Read,
    /// Data are written.
    Write,
    /// Completed writes become durable; a write without data.
    Flush,
    /// The data are no longer needed: discard, trim, secure erase.
    Discard,
    /// Zeroes are written without a transfer of data.
    WriteZeroes,
    /// The operation is none of these: zone management, a command of the driver, or not recorded.
    Other,
}

impl Op {
    /// All, in the order of their numbers.
    pub const ALL: [Op; 6] = [Op::Read, Op::Write, Op::Flush, Op::Discard, Op::WriteZeroes, Op::Other];

    /// Its name in recordings and tables.
    pub const fn name(self) -> &'static str {
        match self {
            Op::Read => "read",
            Op::Write => "write",
            Op::Flush => "flush",
            Op::Discard => "discard",
            Op::WriteZeroes => "write-zeroes",
            Op::Other => "other",
        }
    }
}

/// Flags of a recorded I/O: a set of bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Flags(pub u16);

impl Flags {
    /// Synchronous (`REQ_SYNC`).
    pub const SYNC: Flags = Flags(1);
    /// Metadata of a file system (`REQ_META`).
    pub const META: Flags = Flags(1 << 1);
    /// Urgent for the kernel (`REQ_PRIO`).
    pub const PRIO: Flags = Flags(1 << 2);
    /// Durable when it completes (`REQ_FUA`).
    pub const FUA: Flags = Flags(1 << 3);
    /// Earlier writes become durable first (`REQ_PREFLUSH`).
    pub const PREFLUSH: Flags = Flags(1 << 4);
    /// Read-ahead (`REQ_RAHEAD`).
    pub const READ_AHEAD: Flags = Flags(1 << 5);
    /// All of it or nothing is written (`REQ_ATOMIC`).
    pub const ATOMIC: Flags = Flags(1 << 6);
    /// It completed with an error.
    pub const FAILED: Flags = Flags(1 << 7);
    /// The discarded data cannot be read again (`REQ_OP_SECURE_ERASE`).
    pub const SECURE: Flags = Flags(1 << 8);
    /// It came under the plug of the I/O of its process before it: a process hands over together
    /// what it has collected under a plug.
    pub const JOINS_PLUG: Flags = Flags(1 << 9);
    /// It came without a plug.
    pub const BARE: Flags = Flags(1 << 10);

    /// Each flag with its name, in the order of bits.
    pub const NAMES: [(Flags, &'static str); 11] = [
        (Flags::SYNC, "sync"),
        (Flags::META, "meta"),
        (Flags::PRIO, "prio"),
        (Flags::FUA, "fua"),
        (Flags::PREFLUSH, "preflush"),
        (Flags::READ_AHEAD, "read-ahead"),
        (Flags::ATOMIC, "atomic"),
        (Flags::FAILED, "failed"),
        (Flags::SECURE, "secure"),
        (Flags::JOINS_PLUG, "joins-plug"),
        (Flags::BARE, "bare"),
    ];

    /// Whether all of `other` are set.
    pub const fn has(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }

    /// These and `other`.
    #[must_use]
    pub const fn with(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }

    /// These, and `other` if `set`.
    #[must_use]
    pub const fn with_if(self, set: bool, other: Flags) -> Flags {
        if set { self.with(other) } else { self }
    }
}

/// A name's place in a table of [`Names`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NameId(pub u32);

impl NameId {
    /// Not recorded: the empty name.
    pub const NONE: NameId = NameId(0);
}

/// A recorded I/O.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Io {
    /// When it came to the recorded level: the time by which recordings are ordered.
    pub queued: Nanos,
    /// When its request entered the scheduler; the last one, if it was split.
    pub inserted: Option<Nanos>,
    /// When its request went to the disk; the last one, if it was split.
    pub issued: Option<Nanos>,
    /// When all of it was complete.
    pub completed: Option<Nanos>,
    /// First sector; 0 for a flush.
    pub sector: Sector,
    /// Length in sectors; 0 for a flush.
    pub sectors: u32,
    /// The operation.
    pub op: Op,
    /// Its flags.
    pub flags: Flags,
    /// The device, in [`Tables::devices`].
    pub device: NameId,
    /// The process that queued it; 0 if it is not known.
    pub pid: u32,
    /// The process's name, in [`Tables::processes`].
    pub process: NameId,
    /// The CPU that queued it.
    pub cpu: Option<u16>,
    /// The I/O priority as in ioprio_set(2): the class shifted by 13, and the level.
    pub prio: Option<u16>,
    /// The number of the cgroup, 0 if it is not known. [`Tables::cgroups`] may have its path.
    pub cgroup: u64,
    /// Events that were lost between the record before it and this one.
    pub lost: u32,
    /// Its line or record in the file that was read, from 1.
    pub number: u64,
}

impl Io {
    /// The sector after its last one.
    pub const fn end(&self) -> Sector {
        Sector(self.sector.0.saturating_add(self.sectors as u64))
    }
}

/// Where in the kernel the I/Os were recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Level {
    /// A program's reads and writes of a file, above the page cache.
    File,
    /// Bios as they come to the block layer, before merging and scheduling.
    #[default]
    Bio,
    /// Requests below merging, as a scheduler, a virtual disk or an array gets them.
    Request,
}

impl Level {
    /// Its name in recordings and tables.
    pub const fn name(self) -> &'static str {
        match self {
            Level::File => "file",
            Level::Bio => "bio",
            Level::Request => "request",
        }
    }

    /// The level of that name.
    pub fn named(name: &str) -> Option<Level> {
        [Level::File, Level::Bio, Level::Request].into_iter().find(|level| level.name() == name)
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The source of the simulator's recordings. CPU work may take no time there, so that I/Os of one burst have
/// one time.
pub const SIMULATOR: &str = "blklab's simulator";

/// Facts about a whole recording.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// The format that it was read from, such as `blktrace 7`.
    pub source: String,
    /// Where the I/Os were recorded.
    pub level: Level,
    /// The step of the recorded clock.
    pub resolution: Nanos,
    /// The wall clock at time 0, in ns since 1970, if it was recorded.
    pub begun_unix_ns: Option<i64>,
    /// The recorded machine.
    pub machine: Option<String>,
    /// The recorded disk's size, if it was recorded.
    pub capacity: Option<Sector>,
    /// The scheduler under which it was recorded, with its settings, if that is known.
    pub scheduler: Option<String>,
    /// I/Os with the same time were spread over the step of the clock.
    pub spread: bool,
}

/// The most names of a table. A trace that names more has one name for all later ones.
const NAMES_MAX: usize = 1 << 16;

/// The longest kept name, in bytes.
const NAME_BYTES_MAX: usize = 256;

/// Names by number, each once.
#[derive(Clone, Debug)]
pub struct Names {
    names: Vec<Box<str>>,
    ids: HashMap<Box<str>, NameId>,
}

impl Default for Names {
    fn default() -> Names {
        Names { names: vec!["".into()], ids: HashMap::from([("".into(), NameId::NONE)]) }
    }
}

impl Names {
    /// The name that stands for all that did not fit.
    pub const OTHERS: &'static str = "(others)";

    /// The number of this name; a new one if it is new.
    pub fn id(&mut self, name: &str) -> NameId {
        let mut end = name.len().min(NAME_BYTES_MAX);
        while !name.is_char_boundary(end) {
            end -= 1;
        }
        let name = &name[..end];
        if let Some(id) = self.ids.get(name) {
            return *id;
        }
        if self.names.len() >= NAMES_MAX - 1 && name != Names::OTHERS {
            return self.id(Names::OTHERS);
        }
        let id = NameId(self.names.len() as u32);
        self.names.push(name.into());
        self.ids.insert(name.into(), id);
        id
    }

    /// The same for bytes of a file; what is not UTF-8 is replaced.
    pub fn id_of_bytes(&mut self, name: &[u8]) -> NameId {
        match std::str::from_utf8(name) {
            Ok(name) => self.id(name),
            Err(_) => self.id(&String::from_utf8_lossy(name)),
        }
    }

    /// The name with this number; empty if there is none.
    pub fn name(&self, id: NameId) -> &str {
        self.names.get(id.0 as usize).map_or("", |name| name)
    }

    /// All, in the order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(|name| &**name)
    }

    /// How many names there are, the empty one included.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether there is no name but the empty one.
    pub fn is_empty(&self) -> bool {
        self.names.len() == 1
    }
}

/// Paths of cgroups by their numbers, each once.
#[derive(Clone, Debug, Default)]
pub struct Cgroups {
    paths: Names,
    ids: HashMap<u64, NameId>,
}

impl Cgroups {
    /// The cgroup with this number has this path; the first path of a number stays. Number 0 and the empty
    /// path stand for what is not known.
    pub fn set(&mut self, number: u64, path: &str) {
        if number == 0 || path.is_empty() || self.ids.len() >= NAMES_MAX || self.ids.contains_key(&number) {
            return;
        }
        let id = self.paths.id(path);
        self.ids.insert(number, id);
    }

    /// The number of its path in [`Cgroups::paths`].
    pub fn id(&self, number: u64) -> NameId {
        self.ids.get(&number).copied().unwrap_or_default()
    }

    /// Its path, below the root of its hierarchy, which is `/`; empty if it is not known.
    pub fn path(&self, number: u64) -> &str {
        self.paths.name(self.id(number))
    }

    /// All paths.
    pub fn paths(&self) -> &Names {
        &self.paths
    }
}

/// The names of a recording. They grow while it is read.
#[derive(Clone, Debug, Default)]
pub struct Tables {
    /// Devices, such as `8:0`.
    pub devices: Names,
    /// Processes.
    pub processes: Names,
    /// Paths of cgroups, where they are known.
    pub cgroups: Cgroups,
}

/// Sectors of an area: 16 MiB.
const AREA: u64 = 1 << 15;

/// The sector on a disk of `to` sectors that is as far from its start, in proportion, as `sector` on
/// a disk of `from`. Areas of 16 MiB move as a whole, so that neighbours stay neighbours and only
/// seeks change; whole pages stay whole pages. On a smaller disk areas overlap.
pub fn scaled(sector: u64, from: u64, to: u64) -> u64 {
    let start = u128::from(sector - sector % AREA) * u128::from(to) / u128::from(from.max(1));
    u64::try_from(start).unwrap_or(u64::MAX) / 8 * 8 + sector % AREA
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_stay_neighbours_on_a_disk_of_another_size() {
        let size = 1000 * AREA;
        for to in [size / 3, size, 5 * size / 2] {
            let at = 700 * AREA + 16;
            assert_eq!(scaled(at + 8, size, to), scaled(at, size, to) + 8);
            let part = scaled(at, size, to) as f64 / to as f64;
            assert!((part - 0.7).abs() < 0.001, "{part}");
        }
        assert_eq!(scaled(12_345, size, size), 12_345);
    }

    #[test]
    fn a_name_has_one_number_and_the_empty_name_is_none() {
        let mut names = Names::default();
        assert_eq!(names.id(""), NameId::NONE);
        let (fio, other) = (names.id("fio"), names.id_of_bytes(b"a\xff"));
        assert_eq!((names.id("fio"), names.name(fio)), (fio, "fio"));
        assert_eq!(names.name(other), "a\u{fffd}");
        assert_eq!(names.name(NameId(99)), "");
    }

    #[test]
    fn names_do_not_grow_with_a_hostile_file() {
        let mut names = Names::default();
        for number in 0..NAMES_MAX + 1000 {
            names.id(&number.to_string());
        }
        let last = names.id("one more");
        assert_eq!((names.name(last), names.len()), (Names::OTHERS, NAMES_MAX));
        let long = names.id(&"ü".repeat(NAME_BYTES_MAX));
        assert_eq!(names.name(long), Names::OTHERS);
        assert_eq!(Names::default().id(&"ü".repeat(NAME_BYTES_MAX)), NameId(1));
    }

    #[test]
    fn a_cgroup_keeps_its_first_path_and_number_0_has_none() {
        let mut cgroups = Cgroups::default();
        for (number, path) in [(7, ""), (7, "/a"), (7, "/b"), (0, "/c"), (9, "/a")] {
            cgroups.set(number, path);
        }
        assert_eq!([7, 0, 9, 8].map(|number| cgroups.path(number)), ["/a", "", "/a", ""]);
        assert_eq!(cgroups.id(7), cgroups.id(9));
        for number in 1..=NAMES_MAX as u64 + 10 {
            cgroups.set(number, "/many");
        }
        assert_eq!((cgroups.ids.len(), cgroups.paths.len()), (NAMES_MAX, 3));
    }

    #[test]
    fn flags_and_levels_have_the_names_of_their_bits() {
        let flags = Flags::SYNC.with(Flags::FUA).with_if(false, Flags::META);
        let names: Vec<_> = Flags::NAMES.iter().filter(|(one, _)| flags.has(*one)).map(|row| row.1).collect();
        assert_eq!(names, ["sync", "fua"]);
        for (bit, (flag, _)) in Flags::NAMES.iter().enumerate() {
            assert_eq!(flag.0, 1 << bit);
        }
        assert_eq!(Level::named("bio"), Some(Level::Bio));
        assert_eq!(Level::named("page"), None);
    }
}
