//! Writing a recording.

use std::io::{self, Write};
use std::sync::Arc;

use arrow_array::types::UInt16Type;
use arrow_array::{
    ArrayRef, DictionaryArray, Int64Array, RecordBatch, StringArray, UInt16Array, UInt32Array,
};
use arrow_ipc::CompressionType;
use arrow_ipc::writer::{IpcWriteOptions, StreamWriter};
use arrow_schema::{ArrowError, SchemaRef};
use blklab_base::recorded::{Header, Io, Names, Op, Tables};
use blklab_base::units::Nanos;

use super::{BATCH, schema};

/// The level of zstd at which times in ns take the fewest bytes of the fast ones; measured.
const ZSTD_LEVEL: i32 = 1;

/// A recording that is written.
pub struct Writer<W: Write> {
    stream: StreamWriter<W>,
    schema: SchemaRef,
    batch: Vec<Io>,
    /// The queue time of the last I/O that was written.
    last: Nanos,
    written: u64,
}

impl<W: Write> Writer<W> {
    /// Writes the header.
    ///
    /// # Errors
    /// The system's, of writing.
    pub fn new(out: W, header: &Header) -> io::Result<Writer<W>> {
        let schema = Arc::new(schema(header));
        let options = IpcWriteOptions::default()
            .try_with_compression(Some(CompressionType::ZSTD))
            .and_then(|options| options.try_with_compression_level(Some(ZSTD_LEVEL)))
            .map_err(system)?;
        let stream = StreamWriter::try_new_with_options(out, &schema, options).map_err(system)?;
        Ok(Writer { stream, schema, batch: Vec::with_capacity(BATCH), last: Nanos::ZERO, written: 0 })
    }

    /// Takes an I/O, in order of queue times. `tables` has its names.
    ///
    /// # Errors
    /// The system's, of writing.
    pub fn push(&mut self, io: &Io, tables: &Tables) -> io::Result<()> {
        self.batch.push(*io);
        if self.batch.len() == BATCH { self.flush(tables) } else { Ok(()) }
    }

    /// Writes all I/Os so far, as a batch of their own.
    ///
    /// # Errors
    /// The system's, of writing.
    pub fn flush(&mut self, tables: &Tables) -> io::Result<()> {
        if self.batch.is_empty() {
            return Ok(());
        }
        let batch = self.record_batch(tables).map_err(system)?;
        self.stream.write(&batch).map_err(system)?;
        self.stream.flush().map_err(system)?;
        self.written += self.batch.len() as u64;
        self.batch.clear();
        Ok(())
    }

    /// Writes the rest and the end.
    ///
    /// # Errors
    /// The system's, of writing.
    pub fn finish(mut self, tables: &Tables) -> io::Result<(W, u64)> {
        self.flush(tables)?;
        self.stream.finish().map_err(system)?;
        let written = self.written;
        Ok((self.stream.into_inner().map_err(system)?, written))
    }

    fn record_batch(&mut self, tables: &Tables) -> Result<RecordBatch, ArrowError> {
        let ios = &self.batch;
        let mut last = self.last;
        let gaps = ios.iter().map(|io| {
            let gap = io.queued.saturating_sub(last);
            last = last.max(io.queued);
            signed(gap)
        });
        let gaps = Int64Array::from_iter_values(gaps);
        self.last = last;
        let span = |from: Nanos, to: Option<Nanos>| to.map(|to| signed(to.saturating_sub(from)));
        let q2i = ios.iter().map(|io| span(io.queued, io.inserted)).collect::<Int64Array>();
        let i2d =
            ios.iter().map(|io| span(io.inserted.unwrap_or(io.queued), io.issued)).collect::<Int64Array>();
        let d2c = ios.iter().map(|io| span(io.issued.or(io.inserted).unwrap_or(io.queued), io.completed));
        let d2c = d2c.collect::<Int64Array>();
        let op_names = StringArray::from(Op::ALL.map(Op::name).to_vec());
        let ops = UInt16Array::from_iter_values(ios.iter().map(|io| io.op as u16));
        let columns: Vec<ArrayRef> = vec![
            Arc::new(gaps),
            Arc::new(q2i),
            Arc::new(i2d),
            Arc::new(d2c),
            Arc::new(Int64Array::from_iter_values(ios.iter().map(|io| io.sector.0 as i64))),
            Arc::new(UInt32Array::from_iter_values(ios.iter().map(|io| io.sectors))),
            Arc::new(DictionaryArray::try_new(ops, Arc::new(op_names))?),
            Arc::new(UInt16Array::from_iter_values(ios.iter().map(|io| io.flags.0))),
            Arc::new(names(ios.iter().map(|io| io.device.0 as u16), &tables.devices)?),
            Arc::new(UInt32Array::from_iter_values(ios.iter().map(|io| io.pid))),
            Arc::new(names(ios.iter().map(|io| io.process.0 as u16), &tables.processes)?),
            Arc::new(ios.iter().map(|io| io.cpu).collect::<UInt16Array>()),
            Arc::new(ios.iter().map(|io| io.prio).collect::<UInt16Array>()),
            Arc::new(Int64Array::from_iter_values(ios.iter().map(|io| io.cgroup as i64))),
            Arc::new(UInt32Array::from_iter_values(ios.iter().map(|io| io.lost))),
            Arc::new(names(
                ios.iter().map(|io| tables.cgroups.id(io.cgroup).0 as u16),
                tables.cgroups.paths(),
            )?),
        ];
        RecordBatch::try_new(Arc::clone(&self.schema), columns)
    }
}

/// Spans end at 292 years.
fn signed(span: Nanos) -> i64 {
    i64::try_from(span.0).unwrap_or(i64::MAX)
}

/// The whole table so far is the dictionary: a number of a name is its number there.
fn names(ids: impl Iterator<Item = u16>, names: &Names) -> Result<DictionaryArray<UInt16Type>, ArrowError> {
    let values = StringArray::from_iter_values(names.iter());
    DictionaryArray::try_new(UInt16Array::from_iter_values(ids), Arc::new(values))
}

fn system(error: ArrowError) -> io::Error {
    match error {
        ArrowError::IoError(_, error) => error,
        other => io::Error::other(other),
    }
}
