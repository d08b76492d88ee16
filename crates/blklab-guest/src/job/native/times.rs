//! The times at which modelled CPUs are free again: memory that the kernel's driver
//! (`rigs/kernel/worker.c`) and the processes share, because a buffered call computes in the kernel.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::ptr::{self, NonNull};

use blklab_core::units::Nanos;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// `CPUS` of the driver.
const CPUS: usize = 1024;
const BYTES: usize = CPUS * size_of::<u64>();

/// A mapping of them, which is removed with its owner. They count from the run's epoch.
#[derive(Debug)]
pub struct CpuTimes(NonNull<u64>);

impl CpuTimes {
    /// Maps the times of that driver, open for writing.
    pub fn map(driver: &File) -> io::Result<CpuTimes> {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at an address of the kernel's choice.
        let address = unsafe { mmap(ptr::null_mut(), BYTES, access, MapFlags::SHARED, driver, 0)? };
        NonNull::new(address.cast()).map(CpuTimes).ok_or_else(|| io::Error::other("mapped at zero"))
    }

    fn at(&self, cpu: u16) -> *mut u64 {
        assert!(usize::from(cpu) < CPUS, "a host has at most {CPUS} CPUs, not {cpu}");
        // SAFETY: within the mapping.
        unsafe { self.0.as_ptr().add(usize::from(cpu)) }
    }

    /// When the CPU is free.
    pub fn get(&self, cpu: u16) -> Nanos {
        // SAFETY: within the mapping, aligned; volatile, for the kernel writes it too. The guest has one
        // CPU, so never at the same time.
        Nanos(unsafe { self.at(cpu).read_volatile() })
    }

    /// The CPU is free at that time.
    pub fn set(&self, cpu: u16, at: Nanos) {
        // SAFETY: as above.
        unsafe { self.at(cpu).write_volatile(at.0) }
    }
}

// SAFETY: a mapping belongs to its process, not to a thread, and has one owner.
unsafe impl Send for CpuTimes {}

impl Drop for CpuTimes {
    fn drop(&mut self) {
        // SAFETY: made by mmap with this length. A failure has no effect any more.
        let _ = unsafe { munmap(self.0.as_ptr().cast(), BYTES) };
    }
}
