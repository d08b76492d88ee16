//! Memory that the kernel reads or writes.
#![allow(unsafe_code)]

use std::ffi::c_void;
use std::io;
use std::os::fd::AsFd;
use std::ptr;

use rustix::mm::{MapFlags, ProtFlags, mmap, mmap_anonymous, munmap};

use crate::uapi::{DESCRIPTOR_BYTES, DESCRIPTORS_STRIDE, Descriptor};

const PAGE: usize = 4096;

/// A mapping that is removed with its owner.
#[derive(Debug)]
struct Mapping {
    address: *mut c_void,
    bytes: usize,
}

impl Mapping {
    /// Memory of zeros, which is taken where it is touched.
    fn anonymous(bytes: usize) -> io::Result<Mapping> {
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at an address of the kernel's choice.
        let address = unsafe { mmap_anonymous(ptr::null_mut(), bytes, access, flags)? };
        Ok(Mapping { address, bytes })
    }
}

// SAFETY: a mapping belongs to its process, not to a thread, and has one owner.
unsafe impl Send for Mapping {}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: made by mmap with this length, and borrows of it live no longer than self.
        // A failure has no effect any more.
        let _ = unsafe { munmap(self.address, self.bytes) };
    }
}

/// The descriptors of one queue; the driver writes them and the server reads them.
#[derive(Debug)]
pub struct Descriptors {
    mapping: Mapping,
    depth: u16,
}

impl Descriptors {
    /// Maps the descriptors of `queue`, which has `depth` tags.
    pub fn map(device: impl AsFd, queue: u16, depth: u16) -> io::Result<Descriptors> {
        let bytes = (usize::from(depth) * DESCRIPTOR_BYTES).next_multiple_of(PAGE);
        let offset = u64::from(queue) * DESCRIPTORS_STRIDE;
        let flags = MapFlags::SHARED | MapFlags::POPULATE;
        // SAFETY: a new mapping at an address of the kernel's choice.
        let address = unsafe { mmap(ptr::null_mut(), bytes, ProtFlags::READ, flags, device, offset)? };
        Ok(Descriptors { mapping: Mapping { address, bytes }, depth })
    }

    /// The request of `tag`.
    #[inline]
    pub fn get(&self, tag: u16) -> Descriptor {
        assert!(tag < self.depth, "the kernel names tag {tag} of {}", self.depth);
        // SAFETY: within the mapping, aligned (24-byte entries from a page's start), and any
        // bits are a Descriptor. The driver writes it before it completes the fetch command
        // and not again before the tag is committed; volatile, for it is not our write.
        unsafe { self.mapping.address.cast::<Descriptor>().add(usize::from(tag)).read_volatile() }
    }
}

/// The memory of one page table: 512 pages of 4 KiB.
const PAGE_TABLE_REACH: usize = 2 << 20;

/// A stretch of memory for the data of several requests. Only touched parts take memory.
#[derive(Debug)]
pub struct Room {
    /// None where there is no room at all.
    mapping: Option<Mapping>,
}

impl Room {
    /// Room for `bytes`.
    pub fn new(bytes: usize) -> io::Result<Room> {
        let mapping = if bytes == 0 { None } else { Some(Mapping::anonymous(bytes.next_multiple_of(PAGE))?) };
        Ok(Room { mapping })
    }

    /// Where it begins, for the driver.
    pub fn address(&self) -> u64 {
        self.mapping.as_ref().map_or(0, |mapping| mapping.address as u64)
    }

    /// Its size.
    pub fn bytes(&self) -> usize {
        self.mapping.as_ref().map_or(0, |mapping| mapping.bytes)
    }

    /// `bytes` bytes from `at` on.
    #[inline]
    pub fn get(&mut self, at: usize, bytes: usize) -> &mut [u8] {
        assert!(at <= self.bytes() && bytes <= self.bytes() - at);
        let Some(mapping) = &self.mapping else { return &mut [] };
        // SAFETY: within the mapping (just asserted), initialised by the kernel with zeros, and
        // borrowed from self. The driver touches it in our own system calls only.
        unsafe { std::slice::from_raw_parts_mut(mapping.address.cast::<u8>().add(at), bytes) }
    }
}

/// One buffer per request: the driver copies written data into it, and read data out of it. Only
/// touched parts take memory.
#[derive(Debug)]
pub struct Buffers {
    mapping: Mapping,
    each: usize,
}

impl Buffers {
    /// `count` buffers of `bytes` each.
    pub fn new(count: usize, bytes: usize) -> io::Result<Buffers> {
        let each = bytes.next_multiple_of(PAGE);
        let buffers = Buffers { mapping: Mapping::anonymous(count * each)?, each };
        buffers.make_page_tables();
        Ok(buffers)
    }

    /// Creates all page tables. Linux starts with a random tag: in a guest with little memory it
    /// would be random which buffers share a page table, and so how many tables there are and how
    /// much memory is left.
    fn make_page_tables(&self) {
        for offset in (0..self.mapping.bytes).step_by(PAGE_TABLE_REACH) {
            // SAFETY: within the mapping, initialised by the kernel with zeros. Reading makes the
            // table and maps the page of zeros that all share.
            unsafe { self.mapping.address.cast::<u8>().add(offset).read_volatile() };
        }
    }

    /// Writes to every page, so that all take memory.
    pub fn touch(&mut self) {
        for offset in (0..self.mapping.bytes).step_by(PAGE) {
            // SAFETY: within the mapping, initialised by the kernel with zeros, and borrowed from self.
            unsafe { self.mapping.address.cast::<u8>().add(offset).write_volatile(0) };
        }
    }

    /// The address of a buffer, for the driver.
    pub fn address(&self, index: usize) -> u64 {
        self.mapping.address as u64 + (index * self.each) as u64
    }

    /// The first `bytes` of the buffer of a request in the server.
    #[inline]
    pub fn get(&mut self, index: usize, bytes: usize) -> &mut [u8] {
        assert!(bytes <= self.each && (index + 1) * self.each <= self.mapping.bytes);
        // SAFETY: within the mapping (just asserted), initialised by the kernel with zeros,
        // and borrowed from self. The driver touches a buffer only between the commit of
        // one request and the arrival of the next, in our own system calls.
        unsafe {
            let start = self.mapping.address.cast::<u8>().add(index * self.each);
            std::slice::from_raw_parts_mut(start, bytes)
        }
    }
}
