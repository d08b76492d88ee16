//! Linux I/O schedulers, disk models and the block layer between them, in virtual time.
//!
//! Pure Rust: no I/O, no real clock, no global state.

pub mod disk;
pub mod request;
pub mod result;
pub mod scheduler;
pub mod text;
pub mod units;
pub mod workload;
