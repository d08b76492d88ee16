//! The data written to the disk.

mod file;
mod image;
mod memory;

use std::io;
use std::path::PathBuf;
use std::str::FromStr;

use blklab_core::units::{Bytes, SECTOR_BYTES};

pub use self::file::FileStore;
pub use self::memory::{Memory, available_bytes};
use crate::Error;

/// Where to keep data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DataKind {
    /// In memory, only written data that is not zero.
    Memory,
    /// In this sparse file, which is not removed.
    File(PathBuf),
    /// In memory, as an image has them at the start, and written to an image at the end.
    Image {
        /// The first image; without one the disk is new.
        from: Option<PathBuf>,
        /// The last image; without one the data are lost.
        to: Option<PathBuf>,
    },
    /// Not at all: reads return zeros, writes are discarded.
    None,
}

impl FromStr for DataKind {
    type Err = std::convert::Infallible;

    /// `memory`, `none`, or else a path.
    fn from_str(text: &str) -> Result<DataKind, Self::Err> {
        Ok(match text {
            "memory" => DataKind::Memory,
            "none" => DataKind::None,
            path => DataKind::File(path.into()),
        })
    }
}

/// The data of a disk. Unwritten sectors read as zeros.
#[derive(Debug)]
pub enum Store {
    /// See [`DataKind::Memory`].
    Memory(Memory),
    /// See [`DataKind::File`].
    File(FileStore),
    /// See [`DataKind::Image`]; the path is that of the last image.
    Image(Memory, Option<PathBuf>),
    /// See [`DataKind::None`].
    None,
}

impl Store {
    /// A store for a disk of `capacity`.
    ///
    /// # Errors
    /// A file that cannot be created or opened, or that is larger than the disk; a file that is no image
    /// of such a disk.
    pub fn open(kind: &DataKind, capacity: Bytes) -> Result<Store, Error> {
        let memory = || Memory::new(capacity, available_bytes() / 2);
        Ok(match kind {
            DataKind::Memory => Store::Memory(memory()),
            DataKind::Image { from, to } => {
                let mut memory = memory();
                if let Some(path) = from {
                    image::load(&mut memory, path)?;
                }
                Store::Image(memory, to.clone())
            }
            DataKind::File(path) => Store::File(FileStore::open(path, capacity)?),
            DataKind::None => Store::None,
        })
    }

    /// Reads `data` from `sector`.
    ///
    /// # Errors
    /// The file cannot be read.
    #[inline]
    pub fn read(&self, sector: u64, data: &mut [u8]) -> io::Result<()> {
        match self {
            Store::Memory(memory) | Store::Image(memory, _) => memory.read(sector * SECTOR_BYTES, data),
            Store::File(file) => return file.read(sector * SECTOR_BYTES, data),
            Store::None => data.fill(0),
        }
        Ok(())
    }

    /// Stores `data` at `sector`.
    ///
    /// # Errors
    /// The memory limit is reached, or the file cannot be written.
    #[inline]
    pub fn write(&mut self, sector: u64, data: &[u8]) -> io::Result<()> {
        match self {
            Store::Memory(memory) | Store::Image(memory, _) => memory.write(sector * SECTOR_BYTES, data),
            Store::File(file) => file.write(sector * SECTOR_BYTES, data),
            Store::None => Ok(()),
        }
    }

    /// Drops the data there.
    ///
    /// # Errors
    /// The file's file system does not support holes.
    pub fn discard(&mut self, sector: u64, sectors: u64) -> io::Result<()> {
        match self {
            Store::Memory(memory) | Store::Image(memory, _) => {
                memory.discard(sector * SECTOR_BYTES, sectors * SECTOR_BYTES);
            }
            Store::File(file) => return file.discard(sector * SECTOR_BYTES, sectors * SECTOR_BYTES),
            Store::None => {}
        }
        Ok(())
    }

    /// Makes stored data survive the server's end, if the store can.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn flush(&self) -> io::Result<()> {
        match self {
            Store::File(file) => file.flush(),
            Store::Memory(_) | Store::Image(..) | Store::None => Ok(()),
        }
    }

    /// The server ends: flushes, and writes the last image.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn close(&self) -> io::Result<()> {
        match self {
            Store::Image(memory, Some(path)) => image::save(memory, path),
            _ => self.flush(),
        }
    }

    /// Bytes of memory that hold data.
    pub fn memory_bytes(&self) -> u64 {
        match self {
            Store::Memory(memory) | Store::Image(memory, _) => memory.bytes(),
            Store::File(_) | Store::None => 0,
        }
    }
}

/// Compares a store with a plain vector of all bytes.
#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SECTORS: u64 = 4500;

    #[derive(Clone, Debug)]
    enum Step {
        Write(u64, u64, u8),
        Discard(u64, u64),
        Read(u64, u64),
    }

    fn step() -> impl Strategy<Value = Step> {
        let range = (0..SECTORS, prop_oneof![1..24_u64, 1..1200_u64])
            .prop_map(|(from, sectors)| (from, sectors.min(SECTORS - from)));
        let content = prop_oneof![Just(0_u8), any::<u8>()];
        prop_oneof![
            (range.clone(), content).prop_map(|((from, sectors), byte)| Step::Write(from, sectors, byte)),
            range.clone().prop_map(|(from, sectors)| Step::Discard(from, sectors)),
            range.prop_map(|(from, sectors)| Step::Read(from, sectors)),
        ]
    }

    /// Bytes that differ between sectors, or zeros.
    fn content(from: u64, sectors: u64, byte: u8) -> Vec<u8> {
        let sector = |n: u64| [if byte == 0 { 0 } else { byte.wrapping_add(n as u8) }; SECTOR_BYTES as usize];
        (from..from + sectors).flat_map(sector).collect()
    }

    fn agrees_with_a_vector(store: &mut Store, steps: &[Step]) {
        let mut model = vec![0_u8; (SECTORS * SECTOR_BYTES) as usize];
        let range = |from: u64, sectors: u64| {
            (from * SECTOR_BYTES) as usize..((from + sectors) * SECTOR_BYTES) as usize
        };
        for step in steps {
            match *step {
                Step::Write(from, sectors, byte) => {
                    let data = content(from, sectors, byte);
                    store.write(from, &data).expect("there is room");
                    model[range(from, sectors)].copy_from_slice(&data);
                }
                Step::Discard(from, sectors) => {
                    store.discard(from, sectors).expect("holes can be made");
                    model[range(from, sectors)].fill(0);
                }
                Step::Read(from, sectors) => {
                    let mut data = vec![0xaa; (sectors * SECTOR_BYTES) as usize];
                    store.read(from, &mut data).expect("it can be read");
                    assert!(data == model[range(from, sectors)], "sectors {from}+{sectors} differ");
                }
            }
        }
        let mut all = vec![0xaa; model.len()];
        store.read(0, &mut all).expect("it can be read");
        assert!(all == model);
        if let Store::Memory(memory) = store {
            let held = model.chunks(4096).filter(|page| page.iter().any(|byte| *byte != 0)).count();
            assert_eq!(memory.pages(), held as u64, "pages of zeros take no memory");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn memory_and_file_hold_what_was_written(steps in prop::collection::vec(step(), 1..40)) {
            let capacity = Bytes(SECTORS * SECTOR_BYTES);
            agrees_with_a_vector(&mut Store::Memory(Memory::new(capacity, u64::MAX)), &steps);
            let folder = tempfile::tempdir().expect("a folder");
            let kind = DataKind::File(folder.path().join("data"));
            agrees_with_a_vector(&mut Store::open(&kind, capacity).expect("a new file"), &steps);
        }
    }

    #[test]
    fn without_a_store_reads_give_zeros() {
        let mut store = Store::open(&DataKind::None, Bytes(1 << 20)).expect("nothing to open");
        store.write(0, &[1; 512]).expect("forgotten");
        let mut data = [7; 512];
        store.read(0, &mut data).expect("zeros");
        assert_eq!(data, [0; 512]);
    }

    #[test]
    fn memory_has_an_end_that_is_an_error_and_not_a_crash() {
        let mut memory = Memory::new(Bytes(1 << 30), 8192);
        memory.write(0, &[1; 8192]).expect("two pages");
        let error = memory.write(8192, &[1; 4096]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        memory.write(8192, &[0; 4096]).expect("zeros need no page");
        memory.write(4096, &[2; 4096]).expect("a page that is there");
        memory.discard(0, 4096);
        memory.write(8192, &[1; 4096]).expect("a page is free again");
    }

    #[test]
    fn a_file_that_cannot_be_the_disk_is_refused_in_one_line() {
        let folder = tempfile::tempdir().expect("a folder");
        let refused = |path: PathBuf| {
            Store::open(&DataKind::File(path), Bytes(4096)).map(|_| ()).unwrap_err().to_string()
        };
        assert!(refused(folder.path().join("no/such")).ends_with("No such file or directory (os error 2)"));
        let large = folder.path().join("large");
        std::fs::write(&large, [1; 5000]).expect("written");
        assert!(refused(large).ends_with("large: has 5000 bytes, the disk 4096; give a file of its own"));
        assert!(refused("/dev/null".into()).ends_with("/dev/null: is no regular file"));
    }
}
