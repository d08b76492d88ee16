//! The two uses of a ring that the compiler cannot check.
#![allow(unsafe_code)]

use std::io;

use blklab_core::units::Nanos;
use io_uring::squeue::{Entry, Entry128, EntryMarker, Flags};
use io_uring::types::{SubmitArgs, Timespec};
use io_uring::{IoUring, cqueue, opcode};

const ENTER_GETEVENTS: u32 = 1 << 0;
const ENTER_EXT_ARG: u32 = 1 << 3;
const ENTER_ABS_TIMER: u32 = 1 << 5;

/// Puts a command of a ublk device into the ring.
///
/// # Safety
/// The memory that the command's bytes point to must exist until its completion, and have the type
/// that the driver expects.
unsafe fn push<E: EntryMarker>(ring: &mut IoUring<E, cqueue::Entry>, entry: &E) -> io::Result<()> {
    loop {
        // SAFETY: the caller guarantees it.
        if unsafe { ring.submission().push(entry) }.is_ok() {
            return Ok(());
        }
        ring.submit()?;
    }
}

/// Puts a command of a queue into the ring. Its buffer is in [`crate::shared::Buffers`].
pub fn push_queue(ring: &mut IoUring<Entry>, entry: &Entry) -> io::Result<()> {
    // SAFETY: the address in it is that of a buffer of the queue, which lives as long as
    // the ring; the driver checks every address it is given.
    unsafe { push(ring, entry) }
}

/// Submits a control command and waits for its result.
pub fn control(ring: &mut IoUring<Entry128>, entry: &Entry128) -> io::Result<i32> {
    // SAFETY: we wait for the completion here, while the caller holds the buffer.
    unsafe { push(ring, entry)? };
    loop {
        match ring.submit_and_wait(1) {
            Ok(_) => {}
            // The command continues; wait for its result.
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

/// How a ring gets the end of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timer {
    /// As a time of `CLOCK_MONOTONIC` (Linux 6.12).
    Absolute,
    /// As a duration: slightly late, by the time from reading the clock to the kernel.
    Relative,
}

/// The number of entries in the ring; adds an entry without effect or completion if there are none.
/// A wait that ends by its timer fails if its call submitted nothing, and user-mode Linux lets each
/// failing call take 1 us of virtual time.
fn hand_over_something(ring: &mut IoUring<Entry>) -> io::Result<u32> {
    if ring.submission().is_empty() {
        let nothing = opcode::Nop::new().build().flags(Flags::SKIP_SUCCESS);
        // SAFETY: it points to nothing.
        unsafe { push(ring, &nothing) }?;
    }
    Ok(ring.submission().len() as u32)
}

/// Submits the entries in the ring and waits for a completion, until `until` at the latest. `now`
/// is the last reading of the clock.
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
