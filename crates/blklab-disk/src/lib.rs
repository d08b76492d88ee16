//! A disk model of `blklab-core` as a Linux block device.
//!
//! ublk (`Documentation/block/ublk.rst`) passes every request of `/dev/ublkbN` to a process and
//! takes its completion back, both through io_uring. Here that process asks a disk model when the
//! request would be complete, and completes it then.
//!
//! One thread serves all hardware queues, because they share one disk. It sleeps in a single system
//! call, `io_uring_enter`. The call returns completed requests to the driver; it ends when a
//! request has arrived, or when the model has an event, at an absolute time on `CLOCK_MONOTONIC`.
//! Then the thread reads the clock once. So a request costs at most four system calls, however many
//! arrive together; inside user-mode Linux, where system calls take most of the time, this
//! determines the speed of a run.
//!
//! * [`timed`]: a disk model with a clock; [`lateness`]: how late it was.
//! * [`log`]: the first requests, as they reached the disk.
//! * [`store`]: the written data.
//! * [`uapi`], [`control`], [`queue`]: the kernel's interface.
//! * [`server`]: the whole server.

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
