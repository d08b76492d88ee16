//! The extents of a file, as its file system reports them: `FS_IOC_FIEMAP`.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

use rustix::ioctl::opcode;

/// Extents that one call reports.
const AT_ONCE: usize = 128;
/// Writes the file's dirty pages first.
const SYNC: u32 = 1;
const LAST: u32 = 1;
/// The place is that of the data: neither unknown, nor of delayed allocation, nor of anything encoded,
/// packed with other data, or allocated but not written.
const WITHOUT_A_PLACE: u32 = 0x2 | 0x4 | 0x8 | 0x80 | 0x100 | 0x200 | 0x400 | 0x800;

/// `struct fiemap_extent`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Extent {
    /// Its first byte in the file.
    pub logical: u64,
    /// Its first byte in the file system's addresses.
    pub physical: u64,
    /// Its bytes.
    pub length: u64,
    reserved: [u64; 2],
    /// `FIEMAP_EXTENT_*`.
    pub flags: u32,
    reserved_more: [u32; 3],
}

impl Extent {
    /// Its bytes are on the disk, as they are in the file.
    pub fn is_plain(&self) -> bool {
        self.flags & WITHOUT_A_PLACE == 0
    }
}

/// `struct fiemap` with its extents.
#[repr(C)]
struct Request {
    start: u64,
    length: u64,
    flags: u32,
    mapped: u32,
    count: u32,
    reserved: u32,
    extents: [Extent; AT_ONCE],
}

/// All extents, in order.
pub fn extents(file: &File) -> io::Result<Vec<Extent>> {
    /// The number has the size without extents.
    const FIEMAP: libc::Ioctl = opcode::read_write::<[u64; 4]>(b'f', 11) as libc::Ioctl;
    let mut all = Vec::new();
    let mut start = 0;
    loop {
        let mut request = Request {
            start,
            length: u64::MAX - start,
            flags: SYNC,
            mapped: 0,
            count: AT_ONCE as u32,
            reserved: 0,
            extents: [Extent::default(); AT_ONCE],
        };
        // SAFETY: the kernel writes at most `count` extents behind the header, and there is room for them.
        if unsafe { libc::ioctl(file.as_raw_fd(), FIEMAP, &raw mut request) } != 0 {
            return Err(io::Error::last_os_error());
        }
        let found = &request.extents[..(request.mapped as usize).min(AT_ONCE)];
        all.extend_from_slice(found);
        match found.last() {
            Some(last) if last.flags & LAST == 0 => start = last.logical + last.length,
            _ => return Ok(all),
        }
    }
}
