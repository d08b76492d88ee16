//! Linux I/O schedulers and the block layer between them and modelled disks, in virtual time.
//!
//! Pure Rust: no I/O, no real clock, no global state.

pub mod block;
mod containers;
pub mod decisions;
pub mod device;
pub mod engine;
pub mod formats;
pub mod host;
pub mod kernel;
pub mod owner;
pub mod pagecache;
pub mod recorder;
pub mod request;
pub mod result;
pub mod scheduler;
pub mod simulation;
pub mod source;
pub mod stats;
pub mod ticks;
pub mod tunable;
pub mod workload;

pub use blklab_base::input_error::InputError;
pub use blklab_base::{blktrace, pairs, recorded, text, units};
pub use blklab_disk_model as disk;
