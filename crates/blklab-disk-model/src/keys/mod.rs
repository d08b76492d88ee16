//! One table of keys per kind of disk: parser, overrides, docs and error messages come from it.
//!
//! Here are the types of keys and the keys that several kinds have; each kind has a file of its own.

mod constant;
mod hdd;
mod ssd;

use std::fmt;

pub use self::constant::CONSTANT_KEYS;
pub use self::hdd::HDD_KEYS;
pub use self::ssd::SSD_KEYS;

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

/// One parameter of a disk with its source, for lists and docs.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    /// The key.
    pub key: &'static str,
    /// Its value as text; empty when the feature is off.
    pub value: String,
    /// Unit of the value.
    pub unit: &'static str,
    /// Its meaning.
    pub help: &'static str,
    /// The comment beside it in the file; `default` or `override` where the file has none.
    pub source: String,
    /// The range of an estimate; for a list, of its first number.
    pub range: Option<[f64; 2]>,
}

/// Two values that cannot both be true.
pub(super) struct Conflict {
    pub key: &'static str,
    pub message: String,
}

pub(super) fn conflict<T>(key: &'static str, message: impl Into<String>) -> Result<T, Conflict> {
    Err(Conflict { key, message: message.into() })
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

use Absent::{Default, Error};
use Allowed::{Choice, Flag, Integer, Number, Text};

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
    "largest command (ATA: 65,535 sectors; NVMe: the controller's MDTS, at most 8 MiB by Linux's driver)",
);
const FUA: Key = key("fua", "", Flag, Default("false"), "reports FUA support to the host");
const WRITE_CACHE: Key = key(
    "write_cache",
    "",
    Flag,
    Default("true"),
    "completes a write when its data are in the cache, before they are on the medium",
);
