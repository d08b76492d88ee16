//! `blklab-guest`: the first process of the kernel rig's guest.
//!
//! The host writes [`config`]'s `guest.json` into a directory and boots a kernel (user-mode Linux,
//! which sees a read-only view of the host through hostfs) with
//! `init=.../blklab-guest blklab.run=DIRECTORY`. The guest mounts the file systems that programs
//! expect, serves the disk model from a thread (as a SATA, SAS or NVMe disk, or through ublk), sets the
//! scheduler and its tunables and reads them back, runs the program, and leaves in the directory
//!
//! * `program.stdout`, `program.stderr`, and the same of `mkfs`,
//! * for a job file, `run.json` and `run.i64`: see [`job`],
//! * the block layer's events (see [`trace`]) and `requests.i64`, if requested,
//! * `result.json`: the exit status and the measurements, or one line about the error.
//!
//! Then it powers off. It never exits: a kernel without a first process panics.
//!
//! Time may be virtual: nothing here polls or waits for time to pass.

pub mod aged;
pub mod block;
pub mod config;
pub mod costs;
pub mod file_system;
pub mod job;
pub mod laid_out;
pub mod memory;
pub mod mounts;
pub mod network;
pub mod nfs;
pub mod program;
pub mod realtime;
pub mod session;
pub mod ticks;
#[cfg(test)]
mod tools;
pub mod trace;
