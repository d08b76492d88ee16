//! A disk model of `blklab-core` as a Linux block device.
//!
//! ublk (`Documentation/block/ublk.rst`) hands every request of `/dev/ublkbN` to a process
//! and takes its completion from it, both through io_uring. Here that process asks a disk
//! model when the request would be done, and completes it then.
//!
//! One thread serves all hardware queues, for the disk behind them is one. It sleeps in a
//! single system call, `io_uring_enter`, which hands over what is complete, and returns
//! when a request has arrived or when the model has something to do, by an absolute time on
//! `CLOCK_MONOTONIC`. Then it reads the clock, once. So a request costs at most four system
//! calls, however many arrive together; inside user-mode Linux, where they are what takes
//! the time, that decides how fast a run is.
//!
//! * [`timed`]: a disk model against a clock; [`lateness`]: how well the clock was kept.
//! * [`log`]: the first requests, as the disk saw them.
//! * [`store`]: what has been written.
//! * [`uapi`], [`control`], [`queue`]: the kernel's side.
//! * [`server`]: all of it together.

pub mod control;
mod error;
pub mod lateness;
pub mod log;
pub mod queue;
mod ring;
pub mod server;
pub mod shared;
pub mod store;
pub mod timed;
pub mod uapi;

pub use error::Error;
pub use server::{Config, Report, Server};
