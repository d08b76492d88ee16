//! System calls that the compiler cannot check.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::RawFd;

use blklab_core::request::{IoPrio, PrioClass};
use blklab_core::units::Nanos;
use blklab_disk::queue::clock;
use blklab_disk::shared::Buffers;
use io_uring::{IoUring, opcode, squeue, types};
use rustix::time::{ClockId, Timespec};

/// Sleep until a time of the clock; not at all if it is over.
pub fn sleep_until(at: Nanos) {
    let time = Timespec { tv_sec: (at.0 / 1_000_000_000) as i64, tv_nsec: (at.0 % 1_000_000_000) as _ };
    while clock() < at {
        // Interrupted: look at the clock again.
        let _ = rustix::thread::clock_nanosleep_absolute(ClockId::Monotonic, &time);
    }
}

/// As `ioprio_set(2)` and io_uring take it: the class above 13 bits of level.
pub fn priority(prio: IoPrio) -> u16 {
    let class = match prio.class {
        PrioClass::None => return 0,
        PrioClass::RealTime => 1,
        PrioClass::BestEffort => 2,
        PrioClass::Idle => 3,
    };
    class << 13 | u16::from(prio.level)
}

/// The priority of what this thread submits from now on.
pub fn set_priority(prio: IoPrio) -> io::Result<()> {
    const WHO_PROCESS: libc::c_int = 1;
    // SAFETY: takes three numbers and touches no memory; 0 is the calling thread.
    let result =
        unsafe { libc::syscall(libc::SYS_ioprio_set, WHO_PROCESS, 0, libc::c_int::from(priority(prio))) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Reads and writes under way, each in a buffer of its own.
pub struct Queue {
    // Before the buffers: the kernel is through with them when the ring is gone.
    ring: IoUring<squeue::Entry>,
    buffers: Buffers,
    unsubmitted: u32,
}

impl Queue {
    /// Room for `depth` I/Os of at most `bytes`.
    pub fn new(depth: u32, bytes: usize) -> io::Result<Queue> {
        let mut builder = IoUring::builder();
        builder.setup_single_issuer().setup_defer_taskrun();
        let ring = builder.build(depth.next_power_of_two())?;
        Ok(Queue { ring, buffers: Buffers::new(depth as usize, bytes)?, unsubmitted: 0 })
    }

    /// The buffer of `slot`, nothing of which is under way.
    pub fn buffer(&mut self, slot: u32, bytes: usize) -> &mut [u8] {
        self.buffers.get(slot as usize, bytes)
    }

    /// I/Os prepared and not handed over.
    pub fn unsubmitted(&self) -> u32 {
        self.unsubmitted
    }

    /// Prepare an I/O.
    pub fn prepare(&mut self, slot: u32, fd: RawFd, write: bool, at: u64, bytes: u32, prio: u16) {
        let address = self.buffers.address(slot as usize) as *mut u8;
        let entry = if write {
            opcode::Write::new(types::Fd(fd), address, bytes).offset(at).ioprio(prio).build()
        } else {
            opcode::Read::new(types::Fd(fd), address, bytes).offset(at).ioprio(prio).build()
        };
        // SAFETY: the buffer is this slot's alone until its completion is taken, at least
        // `bytes` long (Buffers::new), and lives as long as the ring.
        unsafe { self.ring.submission().push(&entry.user_data(slot.into())) }.expect("a slot has an entry");
        self.unsubmitted += 1;
    }

    /// Hand over what is prepared and wait until `least` completions are there.
    pub fn enter(&mut self, least: u32) -> io::Result<()> {
        loop {
            match self.ring.submit_and_wait(least as usize) {
                Ok(_) => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.unsubmitted = 0;
        Ok(())
    }

    /// Completions that are there.
    pub fn ready(&mut self) -> u32 {
        self.ring.completion().len() as u32
    }

    /// The next completion's slot and bytes.
    pub fn take(&mut self) -> Option<(u32, io::Result<u32>)> {
        let completion = self.ring.completion().next()?;
        let result = completion.result();
        let bytes = u32::try_from(result).map_err(|_| io::Error::from_raw_os_error(-result));
        Some((completion.user_data() as u32, bytes))
    }
}
