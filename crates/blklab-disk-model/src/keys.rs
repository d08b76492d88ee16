//! One table of keys per kind of disk: parser, overrides, docs and error messages come from it.

use std::fmt;

/// The type and range of a key's value. Bounds are inclusive and in the key's unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Allowed {
    /// A whole number.
    Integer(i64, i64),
    /// Any number.
    Number(f64, f64),
    /// `true` or `false`; an override may also be `on`, `off`, `1`, `0`.
    Flag,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// Any text on one line.
    Text,
    /// One to four numbers.
    Numbers(f64, f64),
    /// Pairs of numbers, rising or falling as described in the key's help.
    Pairs(f64, f64),
    /// Rows of this many numbers.
    Rows(usize, f64, f64),
}

impl fmt::Display for Allowed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Allowed::Integer(min, max) => write!(f, "a whole number from {min} to {max}"),
            Allowed::Number(min, max) => write!(f, "a number from {min} to {max}"),
            Allowed::Flag => write!(f, "true or false"),
            Allowed::Choice(words) => write!(f, "one of {}", words.join(", ")),
            Allowed::Text => write!(f, "text on one line"),
            Allowed::Numbers(min, max) => write!(f, "a list of 1 to 4 numbers from {min} to {max}"),
            Allowed::Pairs(min, max) => write!(f, "a list of 1 to 256 pairs of numbers from {min} to {max}"),
            Allowed::Rows(width, min, max) => {
                write!(f, "a list of 1 to 256 rows of {width} numbers from {min} to {max}")
            }
        }
    }
}

/// The default of a key that is missing in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Absent {
    /// The file is refused.
    Error,
    /// This value, in the form of an override.
    Default(&'static str),
    /// The feature is off.
    Without,
}

/// One key of a disk file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Key {
    /// Its name, with the unit last.
    pub name: &'static str,
    /// Unit of the value; empty for plain numbers and words.
    pub unit: &'static str,
    /// The type and range of its value.
    pub allowed: Allowed,
    /// Its default.
    pub absent: Absent,
    /// Its meaning, in one line.
    pub help: &'static str,
}

/// A value that its key allows.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A whole number or any number.
    Number(f64),
    /// True or false.
    Flag(bool),
    /// A word or a text.
    Text(String),
    /// A list of numbers.
    Numbers(Vec<f64>),
    /// A list of pairs.
    Pairs(Vec<(f64, f64)>),
    /// A list of rows of more than two numbers.
    Rows(Vec<Vec<f64>>),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Number(n) => write!(f, "{n}"),
            Value::Flag(b) => write!(f, "{b}"),
            Value::Text(t) => write!(f, "{t}"),
            Value::Numbers(list) => {
                let words: Vec<_> = list.iter().map(f64::to_string).collect();
                write!(f, "[{}]", words.join(", "))
            }
            Value::Pairs(list) => {
                let words: Vec<_> = list.iter().map(|(a, b)| format!("[{a}, {b}]")).collect();
                write!(f, "[{}]", words.join(", "))
            }
            Value::Rows(rows) => {
                let words: Vec<_> = rows.iter().map(|row| Value::Numbers(row.clone()).to_string()).collect();
                write!(f, "[{}]", words.join(", "))
            }
        }
    }
}

impl Key {
    /// `value` if this key allows it.
    pub(super) fn check(&self, value: Value) -> Option<Value> {
        let within = |n: &f64, min: f64, max: f64| n.is_finite() && *n >= min && *n <= max;
        let good = match (&self.allowed, &value) {
            (Allowed::Integer(min, max), Value::Number(n)) => {
                n.fract() == 0.0 && within(n, *min as f64, *max as f64)
            }
            (Allowed::Number(min, max), Value::Number(n)) => within(n, *min, *max),
            (Allowed::Flag, Value::Flag(_)) => true,
            (Allowed::Choice(words), Value::Text(word)) => words.contains(&word.as_str()),
            (Allowed::Text, Value::Text(text)) => !text.contains('\n'),
            (Allowed::Numbers(min, max), Value::Numbers(list)) => {
                (1..=4).contains(&list.len()) && list.iter().all(|n| within(n, *min, *max))
            }
            (Allowed::Pairs(min, max), Value::Pairs(list)) => {
                (1..=256).contains(&list.len())
                    && list.iter().all(|(a, b)| within(a, *min, *max) && within(b, *min, *max))
            }
            (Allowed::Rows(width, min, max), Value::Rows(rows)) => {
                let row = |row: &Vec<f64>| row.len() == *width && row.iter().all(|n| within(n, *min, *max));
                (1..=256).contains(&rows.len()) && rows.iter().all(row)
            }
            _ => false,
        };
        good.then_some(value)
    }

    /// The value of an override's text, if this key allows it. Lists are separated by `/`, because commas
    /// separate overrides.
    pub(super) fn read(&self, text: &str) -> Option<Value> {
        let text = text.trim();
        let value = match self.allowed {
            Allowed::Integer(..) | Allowed::Number(..) => Value::Number(text.parse().ok()?),
            Allowed::Flag => match text {
                "true" | "on" | "1" => Value::Flag(true),
                "false" | "off" | "0" => Value::Flag(false),
                _ => return None,
            },
            Allowed::Choice(_) | Allowed::Text => Value::Text(text.to_owned()),
            Allowed::Numbers(..) => {
                Value::Numbers(text.split('/').map(|n| n.trim().parse().ok()).collect::<Option<_>>()?)
            }
            Allowed::Pairs(..) | Allowed::Rows(..) => return None,
        };
        self.check(value)
    }
}

/// A table's keys with the values of one disk, defaults filled in.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Values {
    pub table: &'static [Key],
    pub values: Vec<Option<Value>>,
}

impl Values {
    fn get(&self, name: &str) -> Option<&Value> {
        let index = self.table.iter().position(|k| k.name == name);
        self.values[index.unwrap_or_else(|| panic!("no key '{name}' in the table"))].as_ref()
    }

    pub fn number(&self, name: &str) -> Option<f64> {
        match self.get(name) {
            Some(Value::Number(n)) => Some(*n),
            _ => None,
        }
    }

    /// A number that the table requires or has a default for.
    pub fn given(&self, name: &str) -> f64 {
        self.number(name).unwrap_or_else(|| panic!("key '{name}' has no value and no default"))
    }

    pub fn whole(&self, name: &str) -> u64 {
        self.given(name) as u64
    }

    /// Milliseconds as nanoseconds.
    pub fn ms(&self, name: &str) -> u64 {
        (self.given(name) * 1e6).round() as u64
    }

    /// Microseconds as nanoseconds.
    pub fn us(&self, name: &str) -> u64 {
        (self.given(name) * 1e3).round() as u64
    }

    pub fn flag(&self, name: &str) -> bool {
        matches!(self.get(name), Some(Value::Flag(true)))
    }

    pub fn text(&self, name: &str) -> &str {
        match self.get(name) {
            Some(Value::Text(text)) => text,
            _ => "",
        }
    }

    /// A list of microseconds as nanoseconds.
    pub fn list_us(&self, name: &str) -> Vec<u64> {
        match self.get(name) {
            Some(Value::Numbers(list)) => list.iter().map(|n| (n * 1e3).round() as u64).collect(),
            _ => Vec::new(),
        }
    }

    pub fn rows(&self, name: &str) -> Option<&[Vec<f64>]> {
        match self.get(name) {
            Some(Value::Rows(rows)) => Some(rows),
            _ => None,
        }
    }

    pub fn pairs(&self, name: &str) -> Option<&[(f64, f64)]> {
        match self.get(name) {
            Some(Value::Pairs(list)) => Some(list),
            _ => None,
        }
    }
}

const fn key(
    name: &'static str,
    unit: &'static str,
    allowed: Allowed,
    absent: Absent,
    help: &'static str,
) -> Key {
    Key { name, unit, allowed, absent, help }
}

use Absent::{Default, Error, Without};
use Allowed::{Choice, Flag, Integer, Number, Numbers, Pairs, Rows, Text};

/// The kinds of disks.
pub(super) const KINDS: &[&str] = &["hdd", "ssd", "constant"];

const KIND: Key =
    key("kind", "", Choice(KINDS), Error, "hard disk, solid-state disk, or one of constant service time");
const NAME: Key = key("name", "", Text, Error, "maker's name of the disk");
const SUMMARY: Key = key("summary", "", Text, Error, "summary, in one line");
const TRANSPORT: Key =
    key("transport", "", Choice(&["sata", "sas", "nvme"]), Error, "how the host reaches the disk");
const CAPACITY: Key =
    key("capacity_sectors", "sectors", Integer(2_048, 1 << 40), Error, "size in sectors of 512 bytes");
const LOGICAL: Key =
    key("logical_block_bytes", "bytes", Integer(512, 4_096), Default("512"), "smallest unit of address");
const PHYSICAL: Key = key(
    "physical_block_bytes",
    "bytes",
    Integer(512, 65_536),
    Default("512"),
    "unit the medium is written in; smaller writes read, modify and write",
);
const LINK: Key =
    key("link_mb_s", "MB/s", Number(1.0, 100_000.0), Error, "payload rate of the link to the host");
const NCQ: Key = key("ncq", "", Flag, Default("true"), "accepts more than one command at a time");
const QUEUE_DEPTH: Key =
    key("queue_depth", "", Integer(1, 65_535), Default("32"), "commands taken at once, per hardware queue");
const HW_QUEUES: Key =
    key("hw_queues", "", Integer(1, 1_024), Default("1"), "hardware queues of the controller");
const MAX_HW: Key = key(
    "max_hw_sectors_kib",
    "KiB",
    Integer(4, 1 << 20),
    Default("32767"),
    "largest command (ATA: 65,535 sectors)",
);
const FUA: Key = key("fua", "", Flag, Default("false"), "reports FUA support to the host");
const WRITE_CACHE: Key = key(
    "write_cache",
    "",
    Flag,
    Default("true"),
    "completes a write when its data are in the cache, before they are on the medium",
);

/// Keys of `kind = "hdd"`.
pub static HDD_KEYS: &[Key] = &[
    KIND,
    NAME,
    SUMMARY,
    TRANSPORT,
    CAPACITY,
    LOGICAL,
    PHYSICAL,
    LINK,
    NCQ,
    QUEUE_DEPTH,
    MAX_HW,
    FUA,
    key("rpm", "1/min", Integer(1_000, 30_000), Error, "revolutions per minute"),
    key("heads", "", Integer(1, 64), Error, "surfaces with data"),
    key(
        "mapping",
        "",
        Choice(&["plain", "serpentine", "serpentine_heads"]),
        Default("plain"),
        "order of tracks: all heads of a cylinder in turn; back and forth over a band of cylinders; or all heads, in odd cylinders of a zone from the last to the first",
    ),
    key(
        "serpentine_cylinders",
        "cylinders",
        Integer(2, 100_000),
        Default("64"),
        "width of a serpentine band",
    ),
    key("zones", "", Integer(1, 256), Default("24"), "recording zones, unless zone_table gives them"),
    key(
        "outer_sectors_per_track",
        "sectors",
        Integer(16, 20_000),
        Without,
        "sectors per track of the outermost zone",
    ),
    key(
        "inner_sectors_per_track",
        "sectors",
        Integer(16, 20_000),
        Without,
        "sectors per track of the innermost zone; those between lie on a line",
    ),
    key(
        "zone_table",
        "",
        Pairs(1.0, 10_000_000.0),
        Without,
        "zones from outside in: [cylinders, sectors per track]",
    ),
    key(
        "zone_layout",
        "",
        Rows(8, 0.0, 1e12),
        Without,
        "instead of zone_table, from a drive's own map: [first cylinder, sectors per track, first address, track skew, cylinder skew and offset of the first sector in sectors, reserved and spare sectors, or spare tracks with sparing = zone_tracks]",
    ),
    key(
        "sparing",
        "",
        Choice(&["zone", "track", "cylinders", "disk", "zone_tracks"]),
        Default("zone"),
        "with zone_layout: the place of the spare sectors: at the end of each zone, track, sparing_cylinders or cylinder (disk: slips accumulate over the zone), or as tracks at the end of the zone",
    ),
    key(
        "sparing_cylinders",
        "cylinders",
        Integer(1, 100_000),
        Default("1"),
        "cylinders that share spare sectors, with sparing = cylinders",
    ),
    key(
        "slipped",
        "",
        Pairs(0.0, 1e12),
        Without,
        "with zone_layout: skipped places: [zone, from 0; sector, or track with sparing = zone_tracks, of the zone]",
    ),
    key(
        "seek_track_to_track_ms",
        "ms",
        Number(0.01, 50.0),
        Without,
        "seek over one cylinder, settling included",
    ),
    key(
        "seek_average_ms",
        "ms",
        Number(0.01, 100.0),
        Without,
        "mean seek between random cylinders, for reading",
    ),
    key("seek_full_stroke_ms", "ms", Number(0.01, 200.0), Without, "seek from edge to edge"),
    key(
        "seek_table",
        "",
        Pairs(0.01, 10_000_000.0),
        Without,
        "measured seeks: [cylinders, ms], rising; between them straight lines over the root of the distance",
    ),
    key(
        "seek_interpolation",
        "",
        Choice(&["root", "linear"]),
        Default("root"),
        "linear: straight lines over the distance between the pairs, which need not rise",
    ),
    key("write_settle_ms", "ms", Number(-5.0, 20.0), Error, "additional time of a seek before a write"),
    key(
        "head_switch_ms",
        "ms",
        Number(0.0, 20.0),
        Error,
        "change to another surface; with a seek, the longer of the two",
    ),
    key(
        "track_skew_ms",
        "ms",
        Number(0.0, 20.0),
        Error,
        "angle between a track's end and the next surface's start, as time",
    ),
    key(
        "cylinder_skew_ms",
        "ms",
        Number(0.0, 20.0),
        Error,
        "angle between a track's end and the next cylinder's start, as time",
    ),
    key("cache_kib", "KiB", Integer(64, 1 << 21), Error, "cache memory for read data"),
    key("cache_segments", "", Integer(1, 256), Error, "number of streams that the read cache distinguishes"),
    key(
        "cache_segment_sectors",
        "sectors",
        Integer(1, 1 << 22),
        Without,
        "sectors of a segment, if not cache_kib divided by cache_segments",
    ),
    key(
        "read_ahead_to",
        "",
        Choice(&["distance", "segment", "track", "next_track"]),
        Default("distance"),
        "end of read-ahead: after read_ahead_kib; at most there, when the segment is full; at the end of the track; or of the next one too if the read continued one",
    ),
    key(
        "read_ahead_keeps",
        "",
        Flag,
        Default("false"),
        "read-ahead does not replace requested data of the segment",
    ),
    key(
        "read_ahead_sectors",
        "sectors",
        Integer(0, 1 << 22),
        Without,
        "replaces read_ahead_kib, if that is not a whole number",
    ),
    key(
        "zero_latency_read",
        "",
        Flag,
        Default("false"),
        "a read begins with the first of its sectors on the track that reaches the head",
    ),
    key("zero_latency_write", "", Flag, Default("false"), "a write does"),
    key(
        "read_keeps_passed",
        "",
        Flag,
        Default("false"),
        "sectors that pass the head before the first one of a read, on its track, go to the read cache too",
    ),
    key(
        "read_ahead_after_hit",
        "",
        Flag,
        Default("false"),
        "a read that the cache serves wholly is followed by read-ahead too, unless read_ahead_to is distance, which always does so in the stream that the head is in",
    ),
    key(
        "read_ahead_ends_sector",
        "",
        Flag,
        Default("false"),
        "read-ahead stops at a sector's end, so that a new command waits for it",
    ),
    key(
        "write_drops_read",
        "",
        Flag,
        Default("false"),
        "a write empties the segments of the read cache that it overlaps",
    ),
    key("read_ahead", "", Flag, Default("true"), "reads ahead after a read while no other command waits"),
    key("read_ahead_kib", "KiB", Integer(0, 1 << 20), Error, "distance of read-ahead after the last read"),
    WRITE_CACHE,
    key("write_cache_kib", "KiB", Integer(4, 1 << 21), Error, "cache memory for written data"),
    key(
        "write_cache_extents",
        "",
        Integer(1, 4_096),
        Error,
        "separate pieces of data that the write cache can hold",
    ),
    key(
        "write_cache_keeps",
        "",
        Flag,
        Default("false"),
        "data that have been written to the medium stay in the write cache for later reads until other writes need the room",
    ),
    key(
        "destage_percent",
        "%",
        Number(0.0, 100.0),
        Default("50"),
        "fill of the write cache from which bursts of writing to the medium compete with reading",
    ),
    key(
        "destage_idle_ms",
        "ms",
        Number(0.0, 10_000.0),
        Default("20"),
        "idle time after which the write cache is written to the medium",
    ),
    key(
        "destage_burst",
        "",
        Integer(1, 4_096),
        Default("16"),
        "pieces of the write cache that are written in one burst, in order of address; then commands get the same length of time",
    ),
    key(
        "ncq_policy",
        "",
        Choice(&["fcfs", "clook", "sstf", "sptf"]),
        Default("sptf"),
        "order of queued commands: arrival, elevator, shortest seek, shortest positioning",
    ),
    key(
        "ncq_plan",
        "",
        Integer(1, 65_535),
        Default("1"),
        "number of commands with a fixed order, including the current one; with no more in flight, commands are served in order of arrival",
    ),
    key(
        "ncq_look_ahead",
        "",
        Integer(1, 65_535),
        Default("65535"),
        "commands compared for each choice; the next choice continues after them",
    ),
    key(
        "ncq_batch",
        "",
        Integer(1, 65_535),
        Default("1"),
        "commands that the drive takes at once: those with addresses closest together, served in order of address and reported together at the end; 1: one at a time, by ncq_policy and ncq_plan",
    ),
    key(
        "ncq_ageing",
        "",
        Number(0.0, 1.0),
        Default("0.02"),
        "head start of a waiting command, per waiting time",
    ),
    key(
        "ncq_deadline_ms",
        "ms",
        Number(1.0, 600_000.0),
        Default("2000"),
        "a command that has waited this long in the disk goes before all later ones",
    ),
    key(
        "ncq_deadline_batch",
        "",
        Integer(1, 65_535),
        Default("16"),
        "commands served in order of arrival after a deadline has passed; those of a stream do not count",
    ),
    key(
        "ncq_linger_ms",
        "ms",
        Number(0.0, 10_000.0),
        Default("0"),
        "time for which the head stays with a stream after the stream's last read, while other commands wait",
    ),
    key("read_overhead_us", "us", Number(0.0, 100_000.0), Error, "controller's work before a read's seek"),
    key(
        "read_hit_us",
        "us",
        Number(0.0, 100_000.0),
        Error,
        "controller's work for a read that hits the cache",
    ),
    key("write_overhead_us", "us", Number(0.0, 100_000.0), Error, "controller's work for a write"),
    key(
        "read_overhead_after_write_us",
        "us",
        Number(0.0, 100_000.0),
        Without,
        "read_overhead_us if the command before was a write",
    ),
    key(
        "read_hit_after_write_us",
        "us",
        Number(0.0, 100_000.0),
        Without,
        "read_hit_us if the command before was a write",
    ),
    key(
        "write_overhead_after_write_us",
        "us",
        Number(0.0, 100_000.0),
        Without,
        "write_overhead_us if the command before was a write",
    ),
    key(
        "write_data_us",
        "us",
        Number(0.0, 100_000.0),
        Without,
        "from a write's submission until its data begin to arrive, while the arm already seeks; without: data arrive before the seek",
    ),
    key(
        "write_seek_min_ms",
        "ms",
        Number(0.0, 20.0),
        Default("0"),
        "least positioning time of a write that is not cached",
    ),
    key(
        "read_reselect_us",
        "us",
        Number(0.0, 100_000.0),
        Default("0"),
        "time to reselect the host for a read's data",
    ),
    key(
        "read_reselect_percent",
        "%",
        Number(0.0, 100.0),
        Default("0"),
        "part of a read that has come from the medium when the drive reselects",
    ),
    key(
        "read_end_us",
        "us",
        Number(0.0, 100_000.0),
        Default("0"),
        "controller's work after a read's last byte",
    ),
    key("write_end_us", "us", Number(0.0, 100_000.0), Default("0"), "controller's work at a write's end"),
    key(
        "write_reselect_us",
        "us",
        Number(0.0, 100_000.0),
        Default("0"),
        "time to reselect the host at the end of a write that is not cached",
    ),
    key(
        "link_held",
        "",
        Flag,
        Default("false"),
        "a read from the medium occupies the link from its first sector to its end, also between sectors",
    ),
    key(
        "link_write_mb_s",
        "MB/s",
        Number(1.0, 100_000.0),
        Without,
        "payload rate of the link from the host, if not link_mb_s",
    ),
];

/// Keys of `kind = "ssd"`.
pub static SSD_KEYS: &[Key] = &[
    KIND,
    NAME,
    SUMMARY,
    TRANSPORT,
    CAPACITY,
    LOGICAL,
    PHYSICAL,
    LINK,
    NCQ,
    QUEUE_DEPTH,
    HW_QUEUES,
    MAX_HW,
    FUA,
    key(
        "medium",
        "",
        Choice(&["flash", "3dxpoint"]),
        Default("flash"),
        "flash is written in pages and erased in blocks; 3dxpoint is written in place, without a buffer",
    ),
    key("channels", "", Integer(1, 64), Error, "buses to the dies"),
    key("dies_per_channel", "", Integer(1, 64), Error, "dies that share a bus"),
    key("planes", "", Integer(1, 8), Default("1"), "pages of a die read or programmed in one step"),
    key("page_kib", "KiB", Integer(1, 64), Error, "data in a page"),
    key("pages_per_block", "", Integer(1, 8_192), Default("256"), "pages erased together, per plane"),
    key(
        "read_us",
        "us",
        Numbers(0.1, 100_000.0),
        Error,
        "from array to page register; one value per kind of page (lower, middle, upper)",
    ),
    key("program_us", "us", Numbers(0.1, 100_000.0), Error, "from page register to array; as read_us"),
    key("erase_ms", "ms", Number(0.0, 1_000.0), Default("3"), "erase of a block"),
    key(
        "suspend_us",
        "us",
        Number(0.0, 10_000.0),
        Default("0"),
        "time to interrupt a program for a read; 0: it is not interrupted",
    ),
    key("channel_mb_s", "MB/s", Number(1.0, 100_000.0), Error, "payload rate of one channel"),
    key(
        "command_us",
        "us",
        Number(0.0, 10_000.0),
        Error,
        "controller's serial time for each command: the limit of IOPS",
    ),
    key(
        "link_command_us",
        "us",
        Number(0.0, 1_000.0),
        Default("0"),
        "link time of a command besides its data: the frames of SATA's NCQ",
    ),
    key(
        "read_latency_us",
        "us",
        Number(0.0, 10_000.0),
        Error,
        "firmware's time for a read, in parallel with others",
    ),
    key(
        "write_latency_us",
        "us",
        Number(0.0, 10_000.0),
        Error,
        "firmware's time for a write, in parallel with others",
    ),
    key(
        "write_command_us",
        "us",
        Number(0.0, 10_000.0),
        Default("0"),
        "firmware's serial time for a write: the new mapping and its journal",
    ),
    key(
        "stream_read_us",
        "us",
        Number(0.0, 10_000.0),
        Without,
        "controller's serial time for a read that continues a stream",
    ),
    key(
        "stream_read_mb_s",
        "MB/s",
        Number(1.0, 100_000.0),
        Without,
        "rate of reads that continue a stream, after their first 4 KiB, if below that of link and dies",
    ),
    key(
        "stream_write_us",
        "us",
        Number(0.0, 10_000.0),
        Without,
        "write_command_us for a write that continues a stream",
    ),
    key(
        "stream_write_mb_s",
        "MB/s",
        Number(1.0, 100_000.0),
        Without,
        "rate of writes that continue a stream, after their first 4 KiB, if below that of link and dies: when they bypass the SLC cache",
    ),
    key(
        "read_ahead_kib",
        "KiB",
        Integer(0, 65_536),
        Default("0"),
        "distance of the controller's read-ahead after a sequential read",
    ),
    WRITE_CACHE,
    key("write_buffer_kib", "KiB", Integer(0, 1 << 21), Default("0"), "buffer for data to be programmed"),
    key(
        "power_loss_protection",
        "",
        Flag,
        Default("false"),
        "capacitors save the buffer: a flush has no work",
    ),
    key(
        "flush_us",
        "us",
        Number(0.0, 1_000_000.0),
        Default("0"),
        "a flush's own work (mapping tables) after the data are programmed",
    ),
    key(
        "mapping_unit_kib",
        "KiB",
        Integer(1, 1_024),
        Default("4"),
        "unit of the mapping; a smaller write first reads the rest of its unit; needs 8 bytes of memory per written unit",
    ),
    key(
        "overprovision_percent",
        "%",
        Number(1.0, 400.0),
        Default("7"),
        "flash beyond the capacity, in per cent of the capacity",
    ),
    key(
        "collect_kib",
        "KiB",
        Integer(0, 1 << 16),
        Default("0"),
        "host data after which garbage collection frees the same space in one step; 0: with each unit",
    ),
    key(
        "paced",
        "",
        Flag,
        Default("false"),
        "admits writes at the rate of the dies from a half full buffer on, instead of stalling them when it is full",
    ),
    key(
        "fill_percent",
        "%",
        Number(0.0, 100.0),
        Default("0"),
        "share of the addresses, from the first on, with data before the run",
    ),
    key(
        "preconditioned",
        "",
        Flag,
        Default("true"),
        "unwritten sectors are read from a die by address, as after one sequential fill",
    ),
    key(
        "slc_cache_mib",
        "MiB",
        Integer(0, 1 << 22),
        Default("0"),
        "data accepted at SLC speed when the disk is empty",
    ),
    key(
        "slc_cache_full_mib",
        "MiB",
        Integer(0, 1 << 22),
        Default("0"),
        "data accepted at SLC speed when the disk is full; linear in between",
    ),
    key("slc_program_us", "us", Number(0.1, 100_000.0), Default("200"), "program time in SLC mode"),
    key(
        "slc_idle_ms",
        "ms",
        Number(0.0, 100_000.0),
        Default("100"),
        "idle time after which SLC data are folded into the main cells",
    ),
];

/// Keys of `kind = "constant"`.
pub static CONSTANT_KEYS: &[Key] = &[
    KIND,
    NAME,
    SUMMARY,
    TRANSPORT,
    CAPACITY,
    LOGICAL,
    PHYSICAL,
    QUEUE_DEPTH,
    HW_QUEUES,
    MAX_HW,
    key(
        "rotational",
        "",
        Flag,
        Default("true"),
        "the kernel treats it as a hard disk: schedulers idle for it",
    ),
    key(
        "service_us",
        "us",
        Number(0.001, 60_000_000.0),
        Error,
        "service time of each command; queue_depth of them are served at once",
    ),
];
