//! The chunks of a btrfs, which map its addresses to those of the disk: `BTRFS_IOC_TREE_SEARCH`.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::path::Path;

use rustix::ioctl::opcode;

const CHUNK_TREE: u64 = 3;
const FIRST_CHUNK_TREE_OBJECTID: u64 = 256;
const CHUNK_ITEM: u32 = 228;
/// `BTRFS_BLOCK_GROUP_DATA`, and the bits of all profiles but the simple one.
const DATA: u64 = 1;
const PROFILES: u64 = 0x7f8;
const BUFFER: usize = 4096 - 104;
/// `struct btrfs_ioctl_search_header`.
const HEADER: usize = 32;

/// `struct btrfs_ioctl_search_args`, which is a page.
#[repr(C)]
struct Search {
    tree: u64,
    objectid: [u64; 2],
    offset: [u64; 2],
    transid: [u64; 2],
    kind: [u32; 2],
    items: u32,
    unused: u32,
    unused_more: [u64; 4],
    found: [u8; BUFFER],
}

/// A chunk of data: its bytes in btrfs's addresses, and the disk's first byte of it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Chunk {
    bytes: Range<u64>,
    at: u64,
}

/// The chunks of data, in the order of their addresses.
#[derive(Debug)]
pub struct Chunks(Vec<Chunk>);

impl Chunks {
    /// The chunks of the file system that is mounted there.
    pub fn of(mountpoint: &Path) -> io::Result<Chunks> {
        const SEARCH: libc::Ioctl = opcode::read_write::<[u8; 4096]>(0x94, 17) as libc::Ioctl;
        let directory = File::open(mountpoint)?;
        let (mut chunks, mut from) = (Vec::new(), 0);
        loop {
            let mut search = Search {
                tree: CHUNK_TREE,
                objectid: [FIRST_CHUNK_TREE_OBJECTID; 2],
                offset: [from, u64::MAX],
                transid: [0, u64::MAX],
                kind: [CHUNK_ITEM; 2],
                items: u32::MAX,
                unused: 0,
                unused_more: [0; 4],
                found: [0; BUFFER],
            };
            // SAFETY: the kernel reads and writes one page, which the structure is.
            if unsafe { libc::ioctl(directory.as_raw_fd(), SEARCH, &raw mut search) } != 0 {
                return Err(io::Error::last_os_error());
            }
            let Some(last) = read(&search.found, search.items, &mut chunks)? else {
                return Ok(Chunks(chunks));
            };
            from = last + 1;
        }
    }

    /// The disk's bytes of so many bytes of btrfs's addresses.
    pub fn on_disk(&self, from: u64, length: u64) -> Result<Vec<Range<u64>>, String> {
        let mut pieces = Vec::new();
        let (mut at, end) = (from, from + length);
        while at < end {
            let chunk = self.0.iter().find(|chunk| chunk.bytes.contains(&at));
            let chunk = chunk.ok_or_else(|| format!("no simple chunk of data has the address {at}"))?;
            let until = chunk.bytes.end.min(end);
            let on_disk = |address: u64| chunk.at + (address - chunk.bytes.start);
            pieces.push(on_disk(at)..on_disk(until));
            at = until;
        }
        Ok(pieces)
    }
}

/// Adds the chunks of data of so many items; returns the address of the last item.
fn read(mut found: &[u8], items: u32, chunks: &mut Vec<Chunk>) -> io::Result<Option<u64>> {
    let mut last = None;
    for _ in 0..items {
        let short = || io::Error::other("an item that is cut off");
        let (header, rest) = found.split_at_checked(HEADER).ok_or_else(short)?;
        let number = |bytes: &[u8], at: usize| {
            bytes.get(at..at + 8).map(|bytes| u64::from_le_bytes(bytes.try_into().expect("eight bytes")))
        };
        let address = number(header, 16).ok_or_else(short)?;
        let length = (number(header, 24).ok_or_else(short)? >> 32) as usize;
        let (item, rest) = rest.split_at_checked(length).ok_or_else(short)?;
        // `struct btrfs_chunk`: its length, owner, length of a stripe, type; then 20 bytes, and the first
        // stripe, a device's number and the first byte there.
        let fields = (number(item, 0), number(item, 24), number(item, 56));
        let (Some(bytes), Some(kind), Some(at)) = fields else { return Err(short()) };
        if kind & DATA != 0 && kind & PROFILES == 0 {
            chunks.push(Chunk { bytes: address..address + bytes, at });
        }
        (last, found) = (Some(address), rest);
    }
    Ok(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(address: u64, bytes: u64, kind: u64, at: u64) -> Vec<u8> {
        let mut item = Vec::new();
        for value in [1, 256, address, u64::from(CHUNK_ITEM) | 80 << 32, bytes, 2, 65536, kind] {
            item.extend(u64::to_le_bytes(value));
        }
        item.extend([0; 16]);
        for value in [1, at, 0, 0] {
            item.extend(u64::to_le_bytes(value));
        }
        item
    }

    #[test]
    fn addresses_are_mapped_by_simple_chunks_of_data_and_others_are_refused() {
        let mut found = item(0, 1000, 4 | 32, 77);
        found.extend(item(1000, 500, DATA, 9000));
        found.extend(item(1500, 500, DATA, 20_000));
        let mut chunks = Vec::new();
        assert_eq!(read(&found, 3, &mut chunks).expect("whole items"), Some(1500));
        let chunks = Chunks(chunks);
        assert_eq!(chunks.on_disk(1400, 200), Ok(vec![9400..9500, 20_000..20_100]));
        assert_eq!(chunks.on_disk(10, 5), Err("no simple chunk of data has the address 10".to_owned()));
        assert!(read(&found[..200], 3, &mut Vec::new()).is_err(), "cut off");
        assert_eq!(read(&found, 0, &mut Vec::new()).expect("nothing"), None);
    }
}
