//! Threads that take the CPU from programs as soon as they wake.
#![allow(unsafe_code)]

use std::io;

/// Calls `work`; the threads that it starts are scheduled before all programs, as a disk waits for no CPU.
///
/// # Errors
/// One line: the kernel refuses.
pub fn in_first_place<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    // New threads have the policy of the one that makes them.
    set(libc::SCHED_FIFO, 1)?;
    let done = work();
    set(libc::SCHED_OTHER, 0)?;
    Ok(done)
}

fn set(policy: libc::c_int, priority: libc::c_int) -> Result<(), String> {
    let parameter = libc::sched_param { sched_priority: priority };
    // SAFETY: the kernel reads the parameter of this thread.
    let result = unsafe { libc::sched_setscheduler(0, policy, &raw const parameter) };
    if result == 0 { Ok(()) } else { Err(format!("a thread's priority: {}", io::Error::last_os_error())) }
}
