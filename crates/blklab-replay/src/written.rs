//! A result as files, which blklab reads.

use std::fs;
use std::path::Path;

use blklab_core::result::RunResult;
use serde_json::json;

/// Writes `run.json`, with the result's scalars and the names and lengths of its columns, and `run.i64`,
/// with the columns as little-endian 64-bit integers, one after the other.
///
/// # Errors
/// One line.
pub fn write(result: &RunResult, directory: &Path) -> Result<(), String> {
    let columns = result.columns();
    let names: Vec<_> = columns.iter().map(|(name, column)| (name, column.len())).collect();
    let text = json!({"summary": result, "columns": names}).to_string();
    let values = columns.iter().flat_map(|(_, column)| column.iter());
    let bytes: Vec<u8> = values.flat_map(|value| value.to_le_bytes()).collect();
    let written = fs::write(directory.join("run.json"), text)
        .and_then(|()| fs::write(directory.join("run.i64"), bytes));
    written.map_err(|error| format!("{}: {error}", directory.display()))
}
