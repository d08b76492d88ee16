//! A disk's data as a file: the pages that are not zeros, each behind its number.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::Path;

use super::memory::{Memory, PAGE};
use crate::Error;

/// Fills `memory` with the pages of an image.
///
/// # Errors
/// It cannot be read, ends within a page, has a page outside the disk, or more than `memory` takes.
pub fn load(memory: &mut Memory, path: &Path) -> Result<(), Error> {
    let refuse = |message: String| Error::Data { path: path.display().to_string(), message };
    let unusable = |error: io::Error| refuse(error.to_string());
    let file = File::open(path).map_err(unusable)?;
    let bytes = file.metadata().map_err(unusable)?.len();
    let record = (size_of::<u64>() + PAGE) as u64;
    if bytes % record != 0 {
        return Err(refuse(format!("has {bytes} bytes, which are no whole pages of an image")));
    }
    let mut file = BufReader::new(file);
    let (mut number, mut page) = ([0; size_of::<u64>()], [0; PAGE]);
    for _ in 0..bytes / record {
        file.read_exact(&mut number).and_then(|()| file.read_exact(&mut page)).map_err(unusable)?;
        let number = u64::from_le_bytes(number);
        if number >= memory.pages_all() {
            return Err(refuse(format!("page {number} is not on the disk")));
        }
        memory.write(number * PAGE as u64, &page).map_err(unusable)?;
    }
    Ok(())
}

/// Writes all pages of `memory` to a new file, in their order.
///
/// # Errors
/// The file cannot be written.
pub fn save(memory: &Memory, path: &Path) -> io::Result<()> {
    let mut file = BufWriter::new(File::create(path)?);
    for (number, page) in memory.kept() {
        file.write_all(&number.to_le_bytes())?;
        file.write_all(page)?;
    }
    file.flush()
}

#[cfg(test)]
mod tests {
    use super::*;
    use blklab_core::units::Bytes;
    use proptest::prelude::*;

    const CAPACITY: Bytes = Bytes(8 << 20);

    proptest! {
        #[test]
        fn a_saved_disk_is_loaded_with_the_same_pages(
            writes in prop::collection::vec((0..2048_u64, any::<u8>()), 0..40)
        ) {
            let mut memory = Memory::new(CAPACITY, u64::MAX);
            for (page, byte) in writes {
                memory.write(page * 4096, &[byte; 4096]).expect("there is room");
            }
            let folder = tempfile::tempdir().expect("a folder");
            let path = folder.path().join("image");
            save(&memory, &path).expect("it can be written");
            let mut again = Memory::new(CAPACITY, u64::MAX);
            load(&mut again, &path).expect("it is whole");
            prop_assert!(memory.kept().eq(again.kept()));
            prop_assert_eq!(memory.pages(), memory.kept().count() as u64);
        }
    }

    #[test]
    fn a_file_that_is_no_image_of_the_disk_is_refused_in_one_line() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("image");
        let refused = |content: &[u8]| {
            std::fs::write(&path, content).expect("written");
            load(&mut Memory::new(CAPACITY, u64::MAX), &path).unwrap_err().to_string()
        };
        assert!(refused(&[1; 5000]).ends_with("image: has 5000 bytes, which are no whole pages of an image"));
        let mut beyond = 2048_u64.to_le_bytes().to_vec();
        beyond.resize(4104, 1);
        assert!(refused(&beyond).ends_with("image: page 2048 is not on the disk"));
        let missing = load(&mut Memory::new(CAPACITY, u64::MAX), &folder.path().join("none")).unwrap_err();
        assert!(missing.to_string().ends_with("No such file or directory (os error 2)"), "{missing}");
    }
}
