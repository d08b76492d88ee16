//! System calls that the compiler cannot check.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::ptr;

use blklab_core::units::Nanos;
use blklab_disk::service::clock;
use rustix::ioctl::opcode;

pub use blklab_replay::sys::{discard, priority, set_priority, sleep_until};

/// The device of `rigs/kernel/worker.c`.
pub const CPU: &str = "/dev/blklab-cpu";

/// The thread computes until a time of the clock; returns at once if it has passed.
pub fn work_until(driver: &File, at: Nanos) -> io::Result<()> {
    /// `BLKLAB_WORK`.
    const WORK: libc::Ioctl = opcode::write::<u64>(b'B', 16) as libc::Ioctl;
    if at <= clock() {
        return Ok(());
    }
    give(driver, WORK, &at.0)
}

/// What I/O of this thread costs (`struct costs`).
#[repr(C)]
pub struct ThreadCosts {
    /// The modelled CPU on which the thread stays.
    pub cpu: u64,
    /// A call through the page cache, without copying.
    pub call_ns: u64,
    /// Copying; 0 if it takes no time.
    pub copy_mb_s: u64,
    /// When the times of CPUs begin, on the clock.
    pub epoch_ns: u64,
    /// The end of an I/O of libaio; 0 if it takes no time.
    pub complete_ns: u64,
}

/// The calling thread stays on the modelled CPU of this number, counted round. An error if the kernel has queues for one CPU
/// only.
pub fn stay_on(driver: &File, number: u64) -> io::Result<()> {
    /// `BLKLAB_STAY`.
    const STAY: libc::Ioctl = opcode::write::<u64>(b'B', 20) as libc::Ioctl;
    give(driver, STAY, &number)
}

/// From now on the kernel charges this thread's I/O. An error if it cannot.
pub fn charge_thread(driver: &File, costs: &ThreadCosts) -> io::Result<()> {
    /// `BLKLAB_THREAD`.
    const THREAD: libc::Ioctl = opcode::write::<ThreadCosts>(b'B', 18) as libc::Ioctl;
    give(driver, THREAD, costs)
}

/// Tells that driver that a run begins.
pub fn begin_run(driver: &File) -> io::Result<()> {
    /// `BLKLAB_BEGIN`.
    const BEGIN: libc::Ioctl = opcode::none(b'B', 17) as libc::Ioctl;
    call(driver, BEGIN)
}

/// Tells that driver that writeback shall not know the disk yet.
pub fn forget_measurements(driver: &File) -> io::Result<()> {
    /// `BLKLAB_UNMEASURED`.
    const UNMEASURED: libc::Ioctl = opcode::none(b'B', 19) as libc::Ioctl;
    call(driver, UNMEASURED)
}

/// A request that takes no argument.
fn call(driver: &File, request: libc::Ioctl) -> io::Result<()> {
    give(driver, request, &())
}

/// A request that reads a `T`, whose size is part of its number.
fn give<T>(driver: &File, request: libc::Ioctl, value: &T) -> io::Result<()> {
    // SAFETY: the kernel reads no more than the value from the address.
    let result = unsafe { libc::ioctl(driver.as_raw_fd(), request, ptr::from_ref(value)) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
