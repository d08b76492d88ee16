//! A disk model of `blklab-core` as a Linux block device.
//!
//! A driver of the kernel passes every request of the device to a process and takes its completion
//! back. Here that process asks a disk model when the request would be complete, and completes it
//! then. The driver is ublk (`Documentation/block/ublk.rst`), or in a guest of the kernel rig
//! blklab's own, with which a disk has the transport of the modelled one.
//!
//! One thread serves all hardware queues, because they share one disk. It sleeps in a single system
//! call, ublk's `io_uring_enter` or the own driver's `ioctl`. The call returns completed requests to
//! the driver; it ends when a request has arrived, or when the model has an event, at an absolute
//! time on `CLOCK_MONOTONIC`. So a request costs two system calls, however many arrive together;
//! inside user-mode Linux, where system calls take most of the time, this determines the speed of a
//! run.
//!
//! * [`timed`]: a disk model with a clock; [`lateness`]: how late it was.
//! * [`log`]: the first requests, as they reached the disk.
//! * [`store`]: the written data.
//! * [`service`]: the serving thread, on any transport.
//! * [`uapi`], [`control`], [`ublk`]: ublk; [`native`]: the own driver.
//! * [`server`]: the whole server.

mod config;
pub mod control;
mod error;
pub mod lateness;
pub mod log;
pub mod native;
mod ring;
pub mod server;
pub mod service;
pub mod shared;
pub mod store;
pub mod timed;
pub mod uapi;
pub mod ublk;

pub use config::{Config, Driver};
pub use error::Error;
pub use server::Server;
pub use service::Report;
