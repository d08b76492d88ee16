//! `blklab-guest`: the first process of the kernel rig's guest.
//!
//! The host boots a kernel (user-mode Linux, which sees a read-only view of the host through hostfs) with
//! `init=.../blklab-guest blklab.run=DIRECTORY`, having written [`config`]'s `guest.json`
//! into that directory. The guest mounts what programs expect, serves the disk model as
//! `/dev/ublkb0` from a thread, sets the scheduler and its tunables and reads them back,
//! runs the program, and leaves in the directory
//!
//! * `program.stdout`, `program.stderr`, and the same of `mkfs`,
//! * of a job file, `run.json` and `run.i64`: see [`job`],
//! * the block layer's events (see [`trace`]) and `requests.i64` if asked for,
//! * `result.json`: how it ended and what was measured, or one line of what went wrong.
//!
//! Then it powers off. It never exits: a kernel without a first process panics.
//!
//! Time may be virtual: nothing here polls or waits for time to pass.

pub mod block;
pub mod config;
pub mod job;
pub mod mounts;
pub mod program;
pub mod session;
pub mod ticks;
pub mod trace;
