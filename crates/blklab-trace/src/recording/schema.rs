//! The columns of a recording, and its header.

use arrow_schema::{DataType, Field, Metadata, Schema};
use blklab_base::input_error::InputError;
use blklab_base::recorded::{Header, Level};
use blklab_base::units::{Nanos, Sector};

/// The version of the columns, in the metadata as `blklab.recording`.
pub const VERSION: &str = "1";

/// A column, and what it means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name.
    pub name: &'static str,
    /// Its type, as of Arrow.
    pub kind: Kind,
    /// Whether it may be missing.
    pub nullable: bool,
    /// What it means.
    pub help: &'static str,
}

/// Types of columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A signed number of 64 bits: pandas has it without rounding.
    Int64,
    /// An unsigned number of 32 bits.
    UInt32,
    /// An unsigned number of 16 bits.
    UInt16,
    /// A text, stored once.
    Name,
}

impl Kind {
    /// Arrow's type.
    pub fn arrow(self) -> DataType {
        match self {
            Kind::Int64 => DataType::Int64,
            Kind::UInt32 => DataType::UInt32,
            Kind::UInt16 => DataType::UInt16,
            Kind::Name => DataType::Dictionary(Box::new(DataType::UInt16), Box::new(DataType::Utf8)),
        }
    }

    /// Its name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Int64 => "int64",
            Kind::UInt32 => "uint32",
            Kind::UInt16 => "uint16",
            Kind::Name => "text",
        }
    }
}

const fn column(name: &'static str, kind: Kind, help: &'static str) -> Column {
    Column { name, kind, nullable: false, help }
}

const fn optional(name: &'static str, kind: Kind, help: &'static str) -> Column {
    Column { name, kind, nullable: true, help }
}

/// The columns, in their order. Times are spans, which take fewer bytes than times.
pub const COLUMNS: &[Column] = &[
    column("gap_ns", Kind::Int64, "queue time, from the queue time of the record before"),
    optional("q2i_ns", Kind::Int64, "from queue to insert into the scheduler, of its last part"),
    optional("i2d_ns", Kind::Int64, "to issue to the disk, from insert; from queue if there is none"),
    optional("d2c_ns", Kind::Int64, "to completion, from issue; from the last known step if there is none"),
    column("sector", Kind::Int64, "first sector of 512 bytes; 0 for a flush"),
    column("sectors", Kind::UInt32, "length in sectors; 0 for a flush"),
    column("op", Kind::Name, "read, write, flush, discard, write-zeroes or other"),
    column(
        "flags",
        Kind::UInt16,
        "bits: 1 sync, 2 meta, 4 prio, 8 fua, 16 preflush, 32 read-ahead, 64 atomic, 128 failed, 256 secure erase",
    ),
    column("device", Kind::Name, "the device, such as 8:0; empty if not known"),
    column("pid", Kind::UInt32, "the process that queued it; 0 if not known"),
    column("process", Kind::Name, "the process's name; empty if not known"),
    optional("cpu", Kind::UInt16, "the CPU that queued it"),
    optional("prio", Kind::UInt16, "I/O priority: class << 13 | level, as in ioprio_set(2)"),
    column("cgroup", Kind::Int64, "the cgroup's number; 0 if not known"),
    column("lost", Kind::UInt32, "events that were lost before this record"),
    column(
        "cgroup_path",
        Kind::Name,
        "the cgroup's path, from the root of its hierarchy; empty if not known",
    ),
];

/// The least columns of a recording: those of before there were paths of cgroups.
pub const COLUMNS_MIN: usize = 15;

/// The schema of a recording with this header.
pub fn schema(header: &Header) -> Schema {
    let fields: Vec<_> =
        COLUMNS.iter().map(|column| Field::new(column.name, column.kind.arrow(), column.nullable)).collect();
    Schema::new_with_metadata(fields, metadata(header))
}

fn metadata(header: &Header) -> Metadata {
    let mut rows = Metadata::from([
        ("blklab.recording".to_owned(), VERSION.to_owned()),
        ("source".to_owned(), header.source.clone()),
        ("level".to_owned(), header.level.name().to_owned()),
        ("resolution_ns".to_owned(), header.resolution.0.to_string()),
        ("spread".to_owned(), header.spread.to_string()),
    ]);
    let optional = [
        ("begun_unix_ns", header.begun_unix_ns.map(|ns| ns.to_string())),
        ("machine", header.machine.clone()),
        ("scheduler", header.scheduler.clone()),
        ("capacity_sectors", header.capacity.map(|capacity| capacity.0.to_string())),
    ];
    rows.extend(optional.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))));
    rows
}

/// The header of a recording's metadata.
pub fn header(metadata: &Metadata) -> Result<Header, InputError> {
    let text = |key: &str| metadata.get(key).map(String::as_str);
    let wrong = |key: &str, expected: &str| {
        let found = blklab_base::text::shown(text(key).unwrap_or("nothing"));
        InputError::new(format!("metadata '{key}': found '{found}'; expected {expected}"))
            .option(key)
            .found(found)
            .expected(expected)
    };
    if text("blklab.recording") != Some(VERSION) {
        return Err(wrong("blklab.recording", VERSION));
    }
    let number = |key: &str| match text(key) {
        None => Ok(None),
        Some(value) => value.parse::<u64>().map(Some).map_err(|_| wrong(key, "a whole number")),
    };
    Ok(Header {
        source: text("source").unwrap_or_default().to_owned(),
        level: text("level").and_then(Level::named).ok_or_else(|| wrong("level", "file, bio or request"))?,
        resolution: Nanos(number("resolution_ns")?.unwrap_or(1)),
        begun_unix_ns: match text("begun_unix_ns") {
            None => None,
            Some(value) => Some(value.parse().map_err(|_| wrong("begun_unix_ns", "a whole number"))?),
        },
        machine: text("machine").map(str::to_owned),
        scheduler: text("scheduler").map(str::to_owned),
        capacity: number("capacity_sectors")?.map(Sector),
        spread: text("spread") == Some("true"),
    })
}
