//! The two things done with a ring that the compiler cannot check.
#![allow(unsafe_code)]

use std::io;

use blklab_core::units::Nanos;
use io_uring::squeue::{Entry, Entry128, EntryMarker, Flags};
use io_uring::types::{SubmitArgs, Timespec};
use io_uring::{IoUring, cqueue, opcode};

const ENTER_GETEVENTS: u32 = 1 << 0;
const ENTER_EXT_ARG: u32 = 1 << 3;
const ENTER_ABS_TIMER: u32 = 1 << 5;

/// Put a command of a ublk device into the ring.
///
/// # Safety
/// What the command's bytes point to must stay until its completion, and be what the
/// driver takes it for.
unsafe fn push<E: EntryMarker>(ring: &mut IoUring<E, cqueue::Entry>, entry: &E) -> io::Result<()> {
    loop {
        // SAFETY: the caller's promise.
        if unsafe { ring.submission().push(entry) }.is_ok() {
            return Ok(());
        }
        ring.submit()?;
    }
}

/// Put a command of a queue into the ring. Its buffer lies in [`crate::shared::Buffers`].
pub fn push_queue(ring: &mut IoUring<Entry>, entry: &Entry) -> io::Result<()> {
    // SAFETY: the address in it is that of a buffer of the queue, which lives as long as
    // the ring; the driver checks every address it is given.
    unsafe { push(ring, entry) }
}

/// Hand a control command over and wait for its result.
pub fn control(ring: &mut IoUring<Entry128>, entry: &Entry128) -> io::Result<i32> {
    // SAFETY: we wait for the completion here, while the caller holds the buffer.
    unsafe { push(ring, entry)? };
    loop {
        match ring.submit_and_wait(1) {
            Ok(_) => {}
            // The command goes on; its result is waited for.
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        if let Some(completion) = ring.completion().next() {
            return match completion.result() {
                failed if failed < 0 => Err(io::Error::from_raw_os_error(-failed)),
                result => Ok(result),
            };
        }
    }
}

/// How a ring is told until when to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timer {
    /// Until a time of `CLOCK_MONOTONIC` (Linux 6.12).
    Absolute,
    /// For a span: a little late, by the way from reading the clock to the kernel.
    Relative,
}

/// How many entries are in the ring; one that does nothing and says nothing if there are
/// none. A wait that ends by its timer fails if nothing was handed over by the same call, and
/// user-mode Linux lets each call that fails take 1 us of virtual time.
fn hand_over_something(ring: &mut IoUring<Entry>) -> io::Result<u32> {
    if ring.submission().is_empty() {
        let nothing = opcode::Nop::new().build().flags(Flags::SKIP_SUCCESS);
        // SAFETY: it points to nothing.
        unsafe { push(ring, &nothing) }?;
    }
    Ok(ring.submission().len() as u32)
}

/// Hand over what is in the ring; wait for a completion, but not beyond `until`. `now` is
/// what the clock said last.
#[inline]
pub fn enter(
    ring: &mut IoUring<Entry>,
    timer: &mut Timer,
    now: Nanos,
    until: Option<Nanos>,
) -> io::Result<()> {
    let result = match until {
        None => ring.submit_and_wait(1),
        Some(until) => {
            let to_submit = hand_over_something(ring)?;
            let (span, flag) = match timer {
                Timer::Absolute => (until, ENTER_ABS_TIMER),
                Timer::Relative => (until.saturating_sub(now), 0),
            };
            let time = Timespec::new().sec(span.0 / 1_000_000_000).nsec((span.0 % 1_000_000_000) as u32);
            let args = SubmitArgs::new().timespec(&time);
            let flags = ENTER_GETEVENTS | ENTER_EXT_ARG | flag;
            // SAFETY: `args` is the structure that ENTER_EXT_ARG asks for, and lives, like
            // the time in it, until the call is over.
            unsafe { ring.submitter().enter(to_submit, 1, flags, Some(&args)) }
        }
    };
    match result {
        Ok(_) => Ok(()),
        Err(error) => match error.raw_os_error() {
            Some(ETIME | EINTR | EAGAIN | EBUSY) => Ok(()),
            Some(EINVAL) if *timer == Timer::Absolute && until.is_some() => {
                *timer = Timer::Relative;
                enter(ring, timer, now, until)
            }
            _ => Err(error),
        },
    }
}

const EINTR: i32 = 4;
const EAGAIN: i32 = 11;
const EBUSY: i32 = 16;
const EINVAL: i32 = 22;
const ETIME: i32 = 62;
