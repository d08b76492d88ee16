//! Words that blklab reads in the plug-in's memory after a call.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// Bits of [`Mailbox::unused`]: functions that are left out and need not be called again.
pub const COMPLETED: u32 = 1;
pub const FRONT: u32 = 2;
pub const ALLOWS: u32 = 4;
pub const NEIGHBOUR: u32 = 8;
pub const DEPTH_LIMIT: u32 = 16;
pub const EXITED: u32 = 32;

/// Its layout is part of the interface.
#[repr(C)]
pub struct Mailbox {
    next_timer: AtomicU64,
    unused: AtomicU32,
    least_depth: AtomicU32,
    /// Where the text of a panic is, and its length.
    message: AtomicU32,
    message_length: AtomicU32,
}

static MAILBOX: Mailbox = Mailbox {
    next_timer: AtomicU64::new(u64::MAX),
    unused: AtomicU32::new(0),
    least_depth: AtomicU32::new(u32::MAX),
    message: AtomicU32::new(0),
    message_length: AtomicU32::new(0),
};

/// Its address.
pub fn address() -> u32 {
    (&raw const MAILBOX).addr() as u32
}

/// A function that is left out was called.
pub fn unused(bit: u32) {
    MAILBOX.unused.store(MAILBOX.unused.load(Relaxed) | bit, Relaxed);
}

/// What blklab reads after each call.
#[inline]
pub fn set_timer(next_timer: u64) {
    MAILBOX.next_timer.store(next_timer, Relaxed);
}

/// What blklab reads after the start.
pub fn set_least_depth(least_depth: u32) {
    MAILBOX.least_depth.store(least_depth, Relaxed);
}

/// The text of a panic, which is never freed: the plug-in has ended.
pub fn set_message(text: String) {
    let text: &'static str = text.leak();
    MAILBOX.message.store(text.as_ptr().addr() as u32, Relaxed);
    MAILBOX.message_length.store(text.len() as u32, Relaxed);
}
