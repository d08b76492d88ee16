//! Linux I/O schedulers, disk models and the block layer between them, in virtual time.
//!
//! Pure Rust: no I/O, no real clock, no global state.

pub mod block;
mod containers;
pub mod decisions;
pub mod device;
pub mod disk;
pub mod engine;
mod event_queue;
pub mod formats;
pub mod host;
pub mod pagecache;
pub mod recorder;
pub mod request;
pub mod result;
pub mod scheduler;
pub mod simulation;
pub mod source;
pub mod stats;
pub mod text;
pub mod ticks;
pub mod tunable;
pub mod units;
pub mod workload;
