//! When memory runs out: one line and exit code 1, where Rust would abort.
//!
//! The core's tables grow while a simulation runs, with the number of processes and with the
//! measurements, so that the memory of a run is not known in advance, and other programs share the
//! machine's memory. Nothing is rolled back: a simulation has changed nothing outside its process,
//! and the next command finds what is journalled or in the store, as after a kill.

use std::alloc::{GlobalAlloc, Layout, System};
use std::io::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};

/// The system's allocator; the first failed allocation ends the process.
struct OrOneLine;

#[global_allocator]
static ALLOCATOR: OrOneLine = OrOneLine;

/// Ends the process unless `memory` is valid.
#[inline]
fn checked(memory: *mut u8, bytes: usize) -> *mut u8 {
    if memory.is_null() {
        exhausted(bytes)
    }
    memory
}

#[cold]
fn exhausted(bytes: usize) -> ! {
    static TOLD: AtomicBool = AtomicBool::new(false);
    // Several threads may run out of memory at the same moment.
    if !TOLD.swap(true, Ordering::Relaxed) {
        let mut line = [0u8; 160];
        let mut rest = &mut line[..];
        // Both work without heap memory; a failure cannot be reported.
        let _ = writeln!(
            rest,
            "blklab: out of memory: {bytes} bytes more are not to be had; use fewer jobs (numjobs), smaller \
             files or fewer --jobs"
        );
        let left = rest.len();
        let length = line.len() - left;
        let _ = std::io::stderr().write_all(&line[..length]);
    }
    // Not `exit`: other threads still run, and `exit` would destroy their data.
    // SAFETY: it takes a number and does not return.
    unsafe { libc::_exit(1) }
}

// SAFETY: all calls are passed on unchanged; if one returns no memory, this does not return.
unsafe impl GlobalAlloc for OrOneLine {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller promises.
        checked(unsafe { System.alloc(layout) }, layout.size())
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller promises.
        checked(unsafe { System.alloc_zeroed(layout) }, layout.size())
    }

    #[inline]
    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        // SAFETY: as the caller promises.
        checked(unsafe { System.realloc(memory, layout, bytes) }, bytes)
    }

    #[inline]
    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(memory, layout) }
    }
}
