//! System calls that the compiler cannot check.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

use blklab_core::request::{IoPrio, PrioClass};
use blklab_core::units::Nanos;
use blklab_disk::service::clock;
use rustix::time::{ClockId, Timespec};

/// Sleeps until a time of the clock; returns at once if it has passed.
pub fn sleep_until(at: Nanos) {
    // The least slack of a timer is 1 ns: it ends that much later, or with an interrupt before.
    let mut slack = 1;
    while clock() < at {
        let time = at.0 - slack;
        let time = Timespec { tv_sec: (time / 1_000_000_000) as i64, tv_nsec: (time % 1_000_000_000) as _ };
        // Interrupted: check the clock again.
        let _ = rustix::thread::clock_nanosleep_absolute(ClockId::Monotonic, &time);
        slack = 0;
    }
}

/// The encoding of `ioprio_set(2)` and io_uring: the class above 13 bits of level.
pub fn priority(prio: IoPrio) -> u16 {
    let class = match prio.class {
        PrioClass::None => return 0,
        PrioClass::RealTime => 1,
        PrioClass::BestEffort => 2,
        PrioClass::Idle => 3,
    };
    class << 13 | u16::from(prio.level)
}

/// Discards `bytes` from byte `at` of a block device on, and waits for it.
pub fn discard(file: &File, at: u64, bytes: u64) -> io::Result<()> {
    /// `_IO(0x12, 119)` of `linux/fs.h`.
    const BLKDISCARD: libc::Ioctl = 0x1277;
    let range = [at, bytes];
    // SAFETY: the kernel reads two numbers from the address.
    let result = unsafe { libc::ioctl(file.as_raw_fd(), BLKDISCARD, range.as_ptr()) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Sets the priority of this thread's later submissions.
pub fn set_priority(prio: IoPrio) -> io::Result<()> {
    const WHO_PROCESS: libc::c_int = 1;
    // SAFETY: takes three numbers and touches no memory; 0 is the calling thread.
    let result =
        unsafe { libc::syscall(libc::SYS_ioprio_set, WHO_PROCESS, 0, libc::c_int::from(priority(prio))) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
