//! Our own recordings: a stream of Arrow (IPC, streaming format) with columns compressed by zstd.
//!
//! A stream is only appended to. One that ends too early is read up to its last whole batch. The
//! schema's metadata are the header. [`schema`] has the columns.

mod read;
mod schema;
mod write;

pub use read::{Recording, is_ours};
pub use schema::{COLUMNS, COLUMNS_MIN, Column, VERSION, schema};
pub use write::Writer;

/// I/Os of a batch: what a killed writer loses at most, and what is in memory at once.
pub const BATCH: usize = 1 << 16;

#[cfg(test)]
mod tests;
