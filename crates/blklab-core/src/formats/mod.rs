//! Formats of files, one module each: those of other programs, and host files.

pub mod fio;
pub mod host_file;
pub mod tracefs;
