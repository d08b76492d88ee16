//! libaio's system calls, without the library: `io_setup`, `io_submit`, `io_getevents`.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::RawFd;
use std::ptr;

use blklab_core::units::Nanos;

/// `struct iocb` of `linux/aio_abi.h`, little-endian. The kernel has copied it when `io_submit()`
/// returns.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Iocb {
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
pub struct Event {
    /// The number of the I/O that has completed.
    pub data: u64,
    iocb: u64,
    /// Bytes, or a negative error number.
    pub result: i64,
    /// Zero, but for blklab's kernels.
    pub result2: i64,
}

const _: () = assert!(size_of::<Iocb>() == 64 && size_of::<Event>() == 32);
const _: () = assert!(cfg!(target_endian = "little"), "Iocb's first fields stand the other way round");

/// `io_submit()` has a plug for more I/Os than these (`AIO_PLUG_THRESHOLD`).
pub const UNPLUGGED_MAX: usize = 2;
/// Completions that are taken at a time.
pub const TAKEN_MAX: usize = 256;

const CMD_PREAD: u16 = 0;
const CMD_PWRITE: u16 = 1;
const CMD_FDSYNC: u16 = 3;
const CMD_POLL: u16 = 5;
/// `reqprio` is valid.
const FLAG_IOPRIO: u32 = 1 << 1;
/// Durable when it completes (`RWF_DSYNC`): a direct write to a device is one with FUA.
const DSYNC: i32 = 2;

impl Iocb {
    /// A read or a write of `bytes` from byte `at` of an open file on, with the buffer at `address`. It
    /// has the submitter's priority, unless `prio`, encoded as for `ioprio_set(2)`, is not 0.
    pub fn moving(
        data: u64,
        fd: RawFd,
        write: bool,
        at: u64,
        (address, bytes): (u64, u64),
        prio: u16,
    ) -> Iocb {
        Iocb {
            data,
            opcode: if write { CMD_PWRITE } else { CMD_PREAD },
            // Without its own priority it gets the process's.
            flags: if prio == 0 { 0 } else { FLAG_IOPRIO },
            reqprio: prio.cast_signed(),
            fd: fd.cast_unsigned(),
            buffer: address,
            bytes,
            offset: at.cast_signed(),
            ..Iocb::default()
        }
    }

    /// The same, and durable when it completes.
    pub fn durable(self) -> Iocb {
        Iocb { rw_flags: DSYNC, ..self }
    }

    /// `fdatasync()`: a flush, where nothing of the file is in the page cache.
    pub fn sync(data: u64, fd: RawFd) -> Iocb {
        Iocb { data, opcode: CMD_FDSYNC, fd: fd.cast_unsigned(), ..Iocb::default() }
    }

    /// Completes when `fd` can be read.
    fn readable(data: u64, fd: RawFd) -> Iocb {
        let events = libc::POLLIN as u64;
        Iocb { data, opcode: CMD_POLL, fd: fd.cast_unsigned(), buffer: events, ..Iocb::default() }
    }
}

/// Makes a list long enough for a plug. The kernel ends with the first null.
pub fn lengthen_for_a_plug(addresses: &mut Vec<*mut Iocb>) {
    addresses.resize(addresses.len().max(UNPLUGGED_MAX + 1), ptr::null_mut());
}

/// An asynchronous I/O context. Any thread may submit to it, and wait for its completions.
#[derive(Debug)]
pub struct Context {
    /// `aio_context_t`.
    id: libc::c_ulong,
}

impl Context {
    /// With room for `depth` I/Os.
    pub fn new(depth: u32) -> io::Result<Context> {
        let mut id: libc::c_ulong = 0;
        // SAFETY: the kernel writes one number to the address.
        count(unsafe { libc::syscall(libc::SYS_io_setup, depth, &raw mut id) })?;
        Ok(Context { id })
    }

    /// Submits a list of control blocks by address; returns how many were taken. The kernel ends with
    /// the first address that is null, and with the first block that it refuses.
    ///
    /// # Safety
    /// Every address is null or that of a control block, to which the kernel writes. The buffers in them are as long as the blocks
    /// say, and are not freed before the I/Os have completed.
    pub unsafe fn submit(&self, blocks: &[*mut Iocb]) -> io::Result<usize> {
        // SAFETY: a list of so many addresses of control blocks, which the kernel uses within the call.
        count(unsafe { libc::syscall(libc::SYS_io_submit, self.id, blocks.len(), blocks.as_ptr()) })
    }

    /// Lets a completion with this number come at once. `ready` can be read.
    pub fn notify(&self, data: u64, ready: RawFd) -> io::Result<()> {
        let mut block = Iocb::readable(data, ready);
        // SAFETY: a control block without a buffer.
        unsafe { self.submit(&[ptr::from_mut(&mut block)]) }.map(|_| ())
    }

    /// Waits for `least` completions, no longer than `within`, and gets as many as there are and `room`
    /// has; returns the number.
    pub fn get(&self, least: usize, room: &mut [Event], within: Option<Nanos>) -> io::Result<usize> {
        let span = within.map(|Nanos(ns)| libc::timespec {
            tv_sec: (ns / 1_000_000_000).cast_signed(),
            tv_nsec: (ns % 1_000_000_000).cast_signed(),
        });
        let timeout = span.as_ref().map_or(ptr::null(), ptr::from_ref);
        // SAFETY: the kernel writes at most `room.len()` events there, and reads one span, if any.
        count(unsafe {
            libc::syscall(libc::SYS_io_getevents, self.id, least, room.len(), room.as_mut_ptr(), timeout)
        })
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: the context is ours; the call ends when nothing of it is under way. That it
        // fails cannot matter any more.
        let _ = unsafe { libc::syscall(libc::SYS_io_destroy, self.id) };
    }
}

/// The count that a system call returned.
fn count(result: libc::c_long) -> io::Result<usize> {
    usize::try_from(result).map_err(|_| io::Error::last_os_error())
}
