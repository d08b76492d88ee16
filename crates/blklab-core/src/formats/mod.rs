//! Formats of other programs, one module each: reading and writing.

pub mod fio;
pub mod tracefs;
