//! Data in a sparse file, which remains after the server ends.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use blklab_core::units::Bytes;
use rustix::fs::FallocateFlags;

use crate::Error;

/// A disk's data in a file.
#[derive(Debug)]
pub struct FileStore {
    file: File,
}

impl FileStore {
    /// Opens or creates the file; it gets the disk's size, without allocating space.
    ///
    /// # Errors
    /// It cannot be opened or resized, is not a regular file, or is larger than the disk.
    pub fn open(path: &Path, capacity: Bytes) -> Result<FileStore, Error> {
        let refuse = |message: String| Error::Data { path: path.display().to_string(), message };
        let unusable = |error: io::Error| refuse(error.to_string());
        let options = File::options().read(true).write(true).create(true).truncate(false).to_owned();
        let file = options.open(path).map_err(unusable)?;
        let found = file.metadata().map_err(unusable)?;
        if !found.is_file() {
            return Err(refuse("is no regular file".into()));
        }
        if found.len() > capacity.0 {
            let (found, disk) = (found.len(), capacity.0);
            return Err(refuse(format!("has {found} bytes, the disk {disk}; give a file of its own")));
        }
        file.set_len(capacity.0).map_err(unusable)?;
        Ok(FileStore { file })
    }

    pub(super) fn read(&self, at: u64, data: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(data, at)
    }

    pub(super) fn write(&self, at: u64, data: &[u8]) -> io::Result<()> {
        self.file.write_all_at(data, at)
    }

    pub(super) fn discard(&self, at: u64, bytes: u64) -> io::Result<()> {
        let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        Ok(rustix::fs::fallocate(&self.file, hole, at, bytes)?)
    }

    pub(super) fn flush(&self) -> io::Result<()> {
        self.file.sync_data()
    }
}
