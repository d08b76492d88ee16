//! `ioengine=io_uring`.
#![allow(unsafe_code)]

use std::io;

use io_uring::{IoUring, opcode, squeue, types};

use super::{Request, Taken, outcome};

/// A ring of one process.
pub struct Ring {
    ring: IoUring<squeue::Entry>,
}

impl Ring {
    /// With room for `depth` I/Os.
    pub fn new(depth: u32) -> io::Result<Ring> {
        let mut builder = IoUring::builder();
        builder.setup_single_issuer().setup_defer_taskrun();
        Ok(Ring { ring: builder.build(depth.next_power_of_two())? })
    }

    /// Prepares an I/O with the buffer at `address`.
    pub fn prepare(&mut self, request: Request, address: u64) {
        let Request { slot, fd, write, at, bytes, prio, .. } = request;
        let (fd, address) = (types::Fd(fd), address as *mut u8);
        let entry = if write {
            opcode::Write::new(fd, address, bytes).offset(at).ioprio(prio).build()
        } else {
            opcode::Read::new(fd, address, bytes).offset(at).ioprio(prio).build()
        };
        // SAFETY: the buffer is this slot's alone until its completion is taken, at least
        // `bytes` long, and outlives the ring (see Queue).
        unsafe { self.ring.submission().push(&entry.user_data(slot.into())) }.expect("a slot has an entry");
    }

    /// Submits what is prepared and waits until `least` completions are there.
    pub fn enter(&mut self, least: u32) -> io::Result<()> {
        loop {
            match self.ring.submit_and_wait(least as usize) {
                Ok(_) => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Waits until `least` completions are there.
    pub fn wait(&mut self, least: u32) -> io::Result<()> {
        if self.ready() >= least { Ok(()) } else { self.enter(least) }
    }

    /// Lets the kernel hand over the completions that are there.
    pub fn gather(&mut self) -> io::Result<()> {
        /// `IORING_ENTER_GETEVENTS`
        const GET_EVENTS: u32 = 1;
        // SAFETY: nothing is submitted, and there is no argument that the kernel reads.
        match unsafe { self.ring.submitter().enter::<libc::sigset_t>(0, 0, GET_EVENTS, None) } {
            Err(error) if error.kind() != io::ErrorKind::Interrupted => Err(error),
            _ => Ok(()),
        }
    }

    /// Completions that can be taken.
    pub fn ready(&mut self) -> u32 {
        self.ring.completion().len() as u32
    }

    /// The next completion.
    pub fn take(&mut self) -> Option<Taken> {
        let completion = self.ring.completion().next()?;
        Some((completion.user_data() as u32, outcome(completion.result().into())))
    }
}
