//! `ioengine=libaio`: `io_setup`, `io_submit`, `io_getevents`, without the library.
//!
//! `io_submit()` sleeps when the disk has no tag left, and requests that complete meanwhile are
//! reaped later: this is how fio's processes compete for a short queue, and io_uring's do not.
#![allow(unsafe_code)]

use std::io;
use std::ptr;

use super::{Request, Taken, outcome};

/// `struct iocb` of `linux/aio_abi.h`, little-endian.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct Iocb {
    data: u64,
    key: u32,
    rw_flags: i32,
    opcode: u16,
    reqprio: i16,
    fd: u32,
    buffer: u64,
    bytes: u64,
    offset: i64,
    reserved: u64,
    flags: u32,
    resfd: u32,
}

/// `struct io_event`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct Event {
    data: u64,
    iocb: u64,
    result: i64,
    result2: i64,
}

const _: () = assert!(size_of::<Iocb>() == 64 && size_of::<Event>() == 32);
const _: () = assert!(cfg!(target_endian = "little"), "Iocb's first fields stand the other way round");

const CMD_PREAD: u16 = 0;
const CMD_PWRITE: u16 = 1;
/// `reqprio` is valid.
const FLAG_IOPRIO: u32 = 1 << 1;

/// An asynchronous I/O context.
#[derive(Debug)]
pub struct Aio {
    /// `aio_context_t`.
    context: libc::c_ulong,
    /// One per slot: the kernel takes a list of addresses.
    blocks: Box<[Iocb]>,
    /// Slots to submit, in order.
    prepared: Vec<*mut Iocb>,
    /// The first `got` are the kernel's; those before `next` have been taken.
    events: Box<[Event]>,
    got: usize,
    next: usize,
}

impl Aio {
    /// With room for `depth` I/Os.
    pub fn new(depth: u32) -> io::Result<Aio> {
        let mut context: libc::c_ulong = 0;
        // SAFETY: the kernel writes one number to the address.
        count(unsafe { libc::syscall(libc::SYS_io_setup, depth, &raw mut context) })?;
        let depth = depth as usize;
        Ok(Aio {
            context,
            blocks: vec![Iocb::default(); depth].into(),
            prepared: Vec::with_capacity(depth),
            events: vec![Event::default(); depth].into(),
            got: 0,
            next: 0,
        })
    }

    /// Prepares an I/O with the buffer at `address`.
    pub fn prepare(&mut self, request: Request, address: u64) {
        let block = &mut self.blocks[request.slot as usize];
        *block = Iocb {
            data: request.slot.into(),
            opcode: if request.write { CMD_PWRITE } else { CMD_PREAD },
            // Without its own priority it gets the process's.
            flags: if request.prio == 0 { 0 } else { FLAG_IOPRIO },
            reqprio: request.prio.cast_signed(),
            fd: request.fd.cast_unsigned(),
            buffer: address,
            bytes: request.bytes.into(),
            offset: request.at.cast_signed(),
            ..Iocb::default()
        };
        self.prepared.push(block);
    }

    /// Submits all that is prepared, in order.
    pub fn submit(&mut self) -> io::Result<()> {
        let mut done = 0;
        while done < self.prepared.len() {
            let left = &self.prepared[done..];
            // SAFETY: a list of so many addresses of control blocks, which the kernel copies
            // within the call. The buffers they name are their slots' alone until the
            // completion is taken, and outlive the context (see Queue).
            let result =
                unsafe { libc::syscall(libc::SYS_io_submit, self.context, left.len(), left.as_ptr()) };
            done += count(result)?;
        }
        self.prepared.clear();
        Ok(())
    }

    /// Waits until `least` completions can be taken, and gets at most `most`.
    pub fn wait(&mut self, least: u32, most: u32) -> io::Result<()> {
        self.move_to_front();
        let most = (most as usize).min(self.events.len());
        while self.got < least as usize {
            match self.get(least as usize - self.got, most) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => result?,
            }
        }
        Ok(())
    }

    /// Gets all completions that are there.
    pub fn gather(&mut self) -> io::Result<()> {
        self.move_to_front();
        self.get(0, self.events.len())
    }

    /// Some may be left over, or a call that a signal interrupted has returned some.
    fn move_to_front(&mut self) {
        self.events.copy_within(self.next..self.got, 0);
        (self.next, self.got) = (0, self.got - self.next);
    }

    /// Gets at least `missing` completions, into the room below `most`.
    fn get(&mut self, missing: usize, most: usize) -> io::Result<()> {
        let room = &mut self.events[self.got..most];
        // SAFETY: the kernel writes at most `room.len()` events there; no timeout.
        let result = unsafe {
            let (from, timeout) = (room.as_mut_ptr(), ptr::null::<libc::timespec>());
            libc::syscall(libc::SYS_io_getevents, self.context, missing, room.len(), from, timeout)
        };
        self.got += count(result)?;
        Ok(())
    }

    /// Completions that can be taken.
    pub fn ready(&self) -> u32 {
        (self.got - self.next) as u32
    }

    /// The next completion.
    pub fn take(&mut self) -> Option<Taken> {
        let event = self.events[..self.got].get(self.next)?;
        self.next += 1;
        Some((event.data as u32, outcome(event.result)))
    }
}

impl Drop for Aio {
    fn drop(&mut self) {
        // SAFETY: the context is ours; the call ends when nothing of it is under way. That it
        // fails cannot matter any more.
        let _ = unsafe { libc::syscall(libc::SYS_io_destroy, self.context) };
    }
}

/// The count that a system call returned.
fn count(result: libc::c_long) -> io::Result<usize> {
    usize::try_from(result).map_err(|_| io::Error::last_os_error())
}
