//! Reading a recording, which may be damaged or made to do harm.
//!
//! Arrow's reader trusts the lengths in a message. So each message is read whole and its lengths are
//! checked here before Arrow decodes it.

use std::collections::{HashMap, VecDeque};
use std::io::{self, Read};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, UInt16Type, UInt32Type};
use arrow_array::{Array, ArrayRef, DictionaryArray, RecordBatch};
use arrow_buffer::Buffer;
use arrow_ipc::convert::try_schema_from_flatbuffer_bytes;
use arrow_ipc::reader::{read_dictionary, read_record_batch};
use arrow_ipc::{Message, MessageHeader, root_as_message};
use arrow_schema::SchemaRef;
use blklab_base::input_error::InputError;
use blklab_base::recorded::{Flags, Header, Io, NameId, Names, Op, Tables};
use blklab_base::units::{Nanos, SECTOR_BYTES, Sector};

use super::{COLUMNS, COLUMNS_MIN, schema};
use crate::Records;
use crate::input::Input;
use crate::notes::{Kind, Notes};

/// The first bytes of a message.
const CONTINUED: [u8; 4] = [0xff; 4];

/// The longest message without its body. Ours have some kilobytes.
const MESSAGE_BYTES_MAX: usize = 1 << 20;

/// The longest body, and the longest column of it, uncompressed. Ours have 4 MB at most.
const BODY_BYTES_MAX: i64 = 64 << 20;

/// The most rows of a batch, and values of a dictionary.
const ROWS_MAX: i64 = 1 << 20;

/// Whether a file begins like a stream of Arrow that says that it is a recording.
pub fn is_ours(head: &[u8]) -> bool {
    head.starts_with(&CONTINUED) && memchr::memmem::find(head, b"blklab.recording").is_some()
}

/// A recording that is read.
pub struct Recording {
    input: Input,
    schema: Option<SchemaRef>,
    /// Values of the columns of names, by number.
    dictionaries: HashMap<i64, ArrayRef>,
    header: Header,
    tables: Tables,
    notes: Notes,
    ready: VecDeque<Io>,
    /// The queue time of the last row.
    last: Nanos,
    rows: u64,
    messages: u64,
    ended: bool,
}

impl Recording {
    /// Reads the header.
    ///
    /// # Errors
    /// It is no recording, or one with other columns.
    pub fn new(input: Input) -> Result<Recording, InputError> {
        let mut recording = Recording {
            input,
            schema: None,
            dictionaries: HashMap::new(),
            header: Header::default(),
            tables: Tables::default(),
            notes: Notes::default(),
            ready: VecDeque::new(),
            last: Nanos::ZERO,
            rows: 0,
            messages: 0,
            ended: false,
        };
        recording.message()?;
        let Some(found) = recording.schema.clone() else {
            return Err(InputError::new("the file ends before the names of its columns"));
        };
        recording.header = schema::header(found.metadata())?;
        let expected = schema::schema(&recording.header);
        let count = found.fields().len();
        for (place, field) in expected.fields().iter().enumerate().take(count.max(COLUMNS_MIN)) {
            let same = |other: &Arc<arrow_schema::Field>| {
                other.name() == field.name() && other.data_type() == field.data_type()
            };
            if !found.fields().get(place).is_some_and(same) {
                let name = found.fields().get(place).map_or("nothing", |field| field.name());
                let name = blklab_base::text::shown(name);
                let wanted = COLUMNS[place];
                let expected = format!("{} ({})", wanted.name, wanted.kind.name());
                return Err(InputError::new(format!(
                    "column {}: found '{name}'; expected {expected}",
                    place + 1
                ))
                .found(name)
                .expected(expected));
            }
        }
        if count > COLUMNS.len() {
            return Err(InputError::new(format!("found {count} columns; expected {}", COLUMNS.len())));
        }
        Ok(recording)
    }

    fn refused(&self, reason: impl std::fmt::Display) -> InputError {
        let reason = blklab_base::text::shown(&reason.to_string());
        InputError::new(format!("after record {}: {reason}", self.rows))
    }

    /// Fills `into`; false if the input ends before.
    fn fill(&mut self, into: &mut [u8]) -> Result<bool, InputError> {
        match self.input.read_exact(into) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
            Err(error) => Err(self.refused(format!("cannot be read further: {error}"))),
        }
    }

    /// Reads a message, and its rows if it has some.
    fn message(&mut self) -> Result<(), InputError> {
        self.messages += 1;
        let mut start = [0; 8];
        let cut = |reader: &mut Recording| {
            reader.ended = true;
            let rows = reader.rows;
            reader.notes.add(Kind::Truncated, rows, || format!("after {rows} whole records"));
            Ok(())
        };
        if !self.fill(&mut start)? {
            return cut(self);
        }
        if start[..4] != CONTINUED {
            return Err(self.refused("no message of Arrow"));
        }
        let length = u32::from_le_bytes([start[4], start[5], start[6], start[7]]) as usize;
        if length == 0 {
            self.ended = true;
            return Ok(());
        }
        if length > MESSAGE_BYTES_MAX {
            return Err(
                self.refused(format!("a message of {length} bytes; expected {MESSAGE_BYTES_MAX} at most"))
            );
        }
        let mut head = vec![0; length];
        if !self.fill(&mut head)? {
            return cut(self);
        }
        let message = root_as_message(&head).map_err(|error| self.refused(error))?;
        let mut body = vec![0; self.check(&message)?];
        if !self.fill(&mut body)? {
            return cut(self);
        }
        self.check_body(&message, &body)?;
        let (body, version) = (Buffer::from_vec(body), message.version());
        if let Some(dictionary) = message.header_as_dictionary_batch() {
            let Some(schema) = self.schema.clone() else { return Err(self.refused("no names of columns")) };
            let read = read_dictionary(&body, dictionary, &schema, &mut self.dictionaries, &version);
            read.map_err(|error| self.refused(error))?;
            if self.dictionaries.values().any(|values| values.len() > ROWS_MAX as usize) {
                return Err(self.refused(format!("a column of more than {ROWS_MAX} names")));
            }
        } else if let Some(batch) = message.header_as_record_batch() {
            let Some(schema) = self.schema.clone() else { return Err(self.refused("no names of columns")) };
            let batch = read_record_batch(&body, batch, schema, &self.dictionaries, None, &version);
            self.take(&batch.map_err(|error| self.refused(error))?)?;
        } else {
            let schema = try_schema_from_flatbuffer_bytes(&head).map_err(|error| self.refused(error))?;
            self.schema = Some(Arc::new(schema));
        }
        Ok(())
    }

    /// The length of a message's body.
    fn check(&self, message: &Message<'_>) -> Result<usize, InputError> {
        let is_schema = message.header_type() == MessageHeader::Schema;
        if is_schema != (self.messages == 1) {
            return Err(self.refused("the names of columns stand at the beginning, and once"));
        }
        let known = matches!(
            message.header_type(),
            MessageHeader::Schema | MessageHeader::RecordBatch | MessageHeader::DictionaryBatch
        );
        if !known {
            return Err(self.refused("a message of an unknown kind"));
        }
        let body = message.bodyLength();
        match usize::try_from(body) {
            Ok(length) if body <= BODY_BYTES_MAX => Ok(length),
            _ => Err(self.refused(format!("a body of {body} bytes; expected {BODY_BYTES_MAX} at most"))),
        }
    }

    /// The lengths that Arrow trusts.
    fn check_body(&self, message: &Message<'_>, body: &[u8]) -> Result<(), InputError> {
        let batch = match message.header_type() {
            MessageHeader::RecordBatch => message.header_as_record_batch(),
            MessageHeader::DictionaryBatch => match message.header_as_dictionary_batch() {
                Some(dictionary) => dictionary.data(),
                None => None,
            },
            _ => return Ok(()),
        };
        let Some(batch) = batch else { return Err(self.refused("a message without rows")) };
        let rows = 0..=ROWS_MAX;
        if !rows.contains(&batch.length()) {
            return Err(self.refused(format!("a batch of {} rows", batch.length())));
        }
        for node in batch.nodes().into_iter().flatten() {
            if node.length() != batch.length() || !(0..=node.length()).contains(&node.null_count()) {
                return Err(self.refused("a column whose length is not its batch's"));
            }
        }
        for buffer in batch.buffers().into_iter().flatten() {
            let (offset, length) = (buffer.offset(), buffer.length());
            let end = offset.checked_add(length).and_then(|end| usize::try_from(end).ok());
            let part = usize::try_from(offset).ok().zip(end).and_then(|(offset, end)| body.get(offset..end));
            let Some(part) = part else { return Err(self.refused("a column beyond its message")) };
            // Arrow panics on names that are not aligned.
            if offset % 8 != 0 {
                return Err(self.refused(format!("a column at byte {offset}; expected a multiple of 8")));
            }
            if batch.compression().is_some()
                && !part.is_empty()
                && let Some(prefix) = part.first_chunk::<8>()
            {
                let plain = i64::from_le_bytes(*prefix);
                if !(-1..=BODY_BYTES_MAX).contains(&plain) {
                    return Err(self.refused(format!("a column of {plain} bytes")));
                }
            } else if batch.compression().is_some() && !part.is_empty() {
                return Err(self.refused("a compressed column of fewer than 8 bytes"));
            }
        }
        Ok(())
    }

    /// The paths of a batch's cgroups, if the recording has them.
    fn paths(&mut self, batch: &RecordBatch, cgroup: &arrow_array::Int64Array) {
        let Some(column) = batch.column_by_name("cgroup_path") else { return };
        let column = column.as_dictionary::<UInt16Type>();
        let paths: Vec<_> = values(column).collect();
        let mut last = 0;
        for row in 0..batch.num_rows() {
            let number = cgroup.value(row) as u64;
            if number != last {
                last = number;
                let path = column.key(row).and_then(|key| paths.get(key)).copied().unwrap_or_default();
                self.tables.cgroups.set(number, path);
            }
        }
    }

    /// The rows of a batch.
    fn take(&mut self, batch: &RecordBatch) -> Result<(), InputError> {
        let column = |name: &str| {
            batch.column_by_name(name).ok_or_else(|| self.refused(format!("no column '{name}'")))
        };
        let whole = |name: &str| Ok::<_, InputError>(column(name)?.as_primitive::<Int64Type>().clone());
        let half = |name: &str| Ok::<_, InputError>(column(name)?.as_primitive::<UInt32Type>().clone());
        let short = |name: &str| Ok::<_, InputError>(column(name)?.as_primitive::<UInt16Type>().clone());
        let text = |name: &str| Ok::<_, InputError>(column(name)?.as_dictionary::<UInt16Type>().clone());
        let (gaps, q2i, i2d, d2c) = (whole("gap_ns")?, whole("q2i_ns")?, whole("i2d_ns")?, whole("d2c_ns")?);
        let (sector, sectors, flags) = (whole("sector")?, half("sectors")?, short("flags")?);
        let (pid, cpu, prio) = (half("pid")?, short("cpu")?, short("prio")?);
        let (cgroup, lost) = (whole("cgroup")?, half("lost")?);
        let (op, device, process) = (text("op")?, text("device")?, text("process")?);
        self.paths(batch, &cgroup);
        let ops: Vec<_> = values(&op)
            .map(|name| Op::ALL.into_iter().find(|op| op.name() == name).unwrap_or(Op::Other))
            .collect();
        let devices = ids(&device, &mut self.tables.devices);
        let processes = ids(&process, &mut self.tables.processes);
        let of = |ids: &[NameId], column: &DictionaryArray<UInt16Type>, row: usize| {
            column.key(row).and_then(|key| ids.get(key).copied()).unwrap_or_default()
        };
        for row in 0..batch.num_rows() {
            let number = self.rows + 1;
            let wrong = |what: &str, value: i64| {
                InputError::new(format!("record {number}: {what} {value}; expected 0 or more"))
            };
            let span = |column: &arrow_array::Int64Array, name: &str| {
                if column.is_null(row) {
                    return Ok(None);
                }
                let value = column.value(row);
                u64::try_from(value).map(|value| Some(Nanos(value))).map_err(|_| wrong(name, value))
            };
            let gap = span(&gaps, "gap_ns")?.unwrap_or_default();
            let queued = self.last.saturating_add(gap);
            let inserted = span(&q2i, "q2i_ns")?.map(|span| queued.saturating_add(span));
            let issued = span(&i2d, "i2d_ns")?.map(|span| inserted.unwrap_or(queued).saturating_add(span));
            let before = issued.or(inserted).unwrap_or(queued);
            let completed = span(&d2c, "d2c_ns")?.map(|span| before.saturating_add(span));
            let place = sector.value(row);
            if !(0..=(u64::MAX / SECTOR_BYTES) as i64).contains(&place) {
                return Err(InputError::new(format!("record {number}: sector {place} is on no disk")));
            }
            self.rows = number;
            self.last = queued;
            self.ready.push_back(Io {
                queued,
                inserted,
                issued,
                completed,
                sector: Sector(place as u64),
                sectors: sectors.value(row),
                op: op.key(row).and_then(|key| ops.get(key).copied()).unwrap_or(Op::Other),
                flags: Flags(flags.value(row)),
                device: of(&devices, &device, row),
                pid: pid.value(row),
                process: of(&processes, &process, row),
                cpu: cpu.is_valid(row).then(|| cpu.value(row)),
                prio: prio.is_valid(row).then(|| prio.value(row)),
                cgroup: cgroup.value(row) as u64,
                lost: lost.value(row),
                number,
            });
        }
        Ok(())
    }
}

fn values(column: &DictionaryArray<UInt16Type>) -> impl Iterator<Item = &str> {
    column.values().as_string::<i32>().iter().map(Option::unwrap_or_default)
}

fn ids(column: &DictionaryArray<UInt16Type>, names: &mut Names) -> Vec<NameId> {
    values(column).map(|name| names.id(name)).collect()
}

impl Records for Recording {
    fn next_io(&mut self) -> Result<Option<Io>, InputError> {
        loop {
            if let Some(io) = self.ready.pop_front() {
                return Ok(Some(io));
            }
            if self.ended {
                return Ok(None);
            }
            self.message()?;
        }
    }

    fn header(&self) -> &Header {
        &self.header
    }

    fn tables(&self) -> &Tables {
        &self.tables
    }

    fn notes(&self) -> &Notes {
        &self.notes
    }
}
