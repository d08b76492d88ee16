//! Formats of other programs, one room for each: what is read of it and what is written in it.

pub mod fio;
pub mod tracefs;
