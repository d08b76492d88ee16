//! Data in memory: a table of pages; pages with zeros only are not stored.

use std::io;

use blklab_core::units::Bytes;

/// Bytes of a page.
pub(super) const PAGE: usize = 4096;
/// Pages per chunk: a terabyte needs half a million chunk pointers (4 MB).
const CHUNK: usize = 512;

type Page = Box<[u8; PAGE]>;
type Chunk = Box<[Option<Page>; CHUNK]>;

/// Bytes of memory that a process can still get.
pub fn available_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kib = line.and_then(|rest| rest.trim().trim_end_matches(" kB").parse::<u64>().ok());
    match kib {
        Some(kib) => kib << 10,
        // /proc is missing.
        None => {
            let info = rustix::system::sysinfo();
            info.freeram as u64 * u64::from(info.mem_unit)
        }
    }
}

/// A disk's data in memory.
#[derive(Debug)]
pub struct Memory {
    chunks: Vec<Option<Chunk>>,
    pages: u64,
    pages_max: u64,
}

impl Memory {
    /// Zeros; uses at most `bytes_max` of memory for data.
    pub fn new(capacity: Bytes, bytes_max: u64) -> Memory {
        let chunks = capacity.0.div_ceil((PAGE * CHUNK) as u64) as usize;
        let chunks = std::iter::repeat_with(|| None).take(chunks).collect();
        Memory { chunks, pages: 0, pages_max: bytes_max / PAGE as u64 }
    }

    /// Pages that hold data.
    pub fn pages(&self) -> u64 {
        self.pages
    }

    /// Pages of the whole disk, the last of which may go beyond it.
    pub(super) fn pages_all(&self) -> u64 {
        (self.chunks.len() * CHUNK) as u64
    }

    /// The number of each page that holds data, and the data, in their order.
    pub(super) fn kept(&self) -> impl Iterator<Item = (u64, &[u8; PAGE])> {
        self.chunks.iter().enumerate().flat_map(|(index, chunk)| {
            let pages = chunk.iter().flat_map(|chunk| chunk.iter().enumerate());
            pages.filter_map(move |(within, page)| Some(((index * CHUNK + within) as u64, &**page.as_ref()?)))
        })
    }

    /// Bytes of memory that hold data.
    pub fn bytes(&self) -> u64 {
        self.pages * PAGE as u64
    }

    /// Reads `data` from byte `at`.
    #[inline]
    pub fn read(&self, at: u64, data: &mut [u8]) {
        for (page, within, range) in pieces(at, data.len()) {
            let piece = &mut data[range];
            match self.chunks[page / CHUNK].as_ref().and_then(|chunk| chunk[page % CHUNK].as_ref()) {
                Some(page) => piece.copy_from_slice(&page[within..within + piece.len()]),
                None => piece.fill(0),
            }
        }
    }

    /// Stores `data` at byte `at`.
    ///
    /// # Errors
    /// `StorageFull` if it would use more memory than allowed; then a part of it is stored.
    #[inline]
    pub fn write(&mut self, at: u64, data: &[u8]) -> io::Result<()> {
        for (page, within, range) in pieces(at, data.len()) {
            let piece = &data[range];
            let zeros = is_zero(piece);
            if zeros && piece.len() == PAGE {
                self.drop_page(page);
                continue;
            }
            let chunk = &mut self.chunks[page / CHUNK];
            if zeros && chunk.as_ref().is_none_or(|chunk| chunk[page % CHUNK].is_none()) {
                continue;
            }
            let slot = &mut chunk.get_or_insert_with(|| Box::new([const { None }; CHUNK]))[page % CHUNK];
            if slot.is_none() {
                if self.pages == self.pages_max {
                    return Err(io::ErrorKind::StorageFull.into());
                }
                self.pages += 1;
            }
            let held = slot.get_or_insert_with(|| Box::new([0; PAGE]));
            held[within..within + piece.len()].copy_from_slice(piece);
            if zeros && is_zero(&held[..]) {
                self.drop_page(page);
            }
        }
        Ok(())
    }

    /// Drops `bytes` bytes at byte `at`.
    pub fn discard(&mut self, at: u64, bytes: u64) {
        for (page, within, range) in pieces(at, bytes as usize) {
            if range.len() == PAGE {
                self.drop_page(page);
                continue;
            }
            let slot = self.chunks[page / CHUNK].as_mut().and_then(|chunk| chunk[page % CHUNK].as_mut());
            let Some(held) = slot else { continue };
            held[within..within + range.len()].fill(0);
            if is_zero(&held[..]) {
                self.drop_page(page);
            }
        }
    }

    fn drop_page(&mut self, page: usize) {
        if let Some(chunk) = &mut self.chunks[page / CHUNK]
            && chunk[page % CHUNK].take().is_some()
        {
            self.pages -= 1;
        }
    }
}

#[inline]
fn is_zero(bytes: &[u8]) -> bool {
    // By lines: within one there is no branch, so that it is a few instructions.
    bytes.chunks(64).all(|line| line.iter().fold(0, |any, byte| any | byte) == 0)
}

/// The pages of a range: number, the range's start in the page, and the bytes of the range.
#[inline]
fn pieces(at: u64, len: usize) -> impl Iterator<Item = (usize, usize, std::ops::Range<usize>)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        (done < len).then(|| {
            let here = at + done as u64;
            let within = (here % PAGE as u64) as usize;
            let piece = (PAGE - within).min(len - done);
            done += piece;
            ((here / PAGE as u64) as usize, within, done - piece..done)
        })
    })
}
