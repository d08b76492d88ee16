//! What a load is replayed on: the disk of the kernel rig's guest, or a real file or device.

use std::fs::{self, File};
use std::io::{self, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use blklab_core::request::Op;
use blklab_core::source::replay::ReplayIo;
use blklab_core::source::replay::stored::Load;
use blklab_core::units::{SECTOR_BYTES, Sector};
use blklab_disk::shared::Buffers;
use rustix::fs::OFlags;
use rustix::rand::{GetRandomFlags, getrandom};

/// A process of a guest has at most so many I/Os in flight; its queue has fewer requests.
const IN_FLIGHT_MAX: usize = 1 << 15;

/// The same on a real disk, where the kernel limits all contexts of the machine together. A process that
/// has more waits for completions.
const IN_FLIGHT_MAX_REAL: usize = 4096;

/// Room for notices beside them.
const NOTICES: usize = 64;

/// The limit of all contexts together, and their present number.
const AIO_MAX: &str = "/proc/sys/fs/aio-max-nr";
const AIO_NOW: &str = "/proc/sys/fs/aio-nr";

/// The data of a write begin at one of so many pages of random bytes, behind those of the write before, so
/// that a disk that recognises equal blocks finds few. A prime, so that large writes begin everywhere.
const PAGES: u64 = 4093;
const PAGE_BYTES: u64 = 4096;

/// How many I/Os contexts have room for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Depth {
    /// As many as a process may have in flight, whatever the system's limit was.
    Any,
    /// Within the system's limit.
    Limited,
}

/// An open disk, with the memory for all data.
pub struct Target {
    pub(crate) place: Place,
    /// At the addresses of `place`.
    _memory: Buffers,
}

/// What the threads of a replay share of a target.
pub(crate) struct Place {
    file: File,
    capacity: Sector,
    depth: Depth,
    requests: usize,
    /// The address of read data, and that of data to be written.
    read: u64,
    write: u64,
    /// Writes begin at one of so many pages, so many behind each other.
    pages: u64,
    step: u64,
}

/// Whether a process waits for an I/O of another one, which must not be told late.
fn has_followers(load: &Load) -> bool {
    let process = |io: u32| load.ios.get(io as usize).map(|io| io.process);
    load.ios.iter().any(|io| io.start.follows.and_then(process).is_some_and(|other| other != io.process))
}

fn longest(load: &Load) -> usize {
    let moved = load.ios.iter().filter(|io| io.op != Op::Discard).map(ReplayIo::bytes);
    moved.max().unwrap_or(0).max(1) as usize
}

impl Target {
    /// The disk `device` of a guest, of `capacity`. No disk model has data, so that one buffer serves all
    /// I/Os. Completions may be told late, since the guest's events have their times, but where another
    /// process waits for one.
    ///
    /// # Errors
    /// One line.
    pub fn model(device: &Path, capacity: Sector, load: &Load) -> Result<Target, String> {
        let open = || -> io::Result<Target> {
            fs::write(AIO_MAX, i32::MAX.to_string())?;
            let flags = OFlags::DIRECT.bits().cast_signed();
            let file = File::options().read(true).write(true).custom_flags(flags).open(device)?;
            let buffers = Buffers::new(1, longest(load))?;
            let address = buffers.address(0);
            let (read, write) = (address, address);
            let depth = Depth::Any;
            let requests = if has_followers(load) { 0 } else { usize::MAX };
            let place = Place { file, capacity, depth, requests, read, write, pages: 1, step: 0 };
            Ok(Target { place, _memory: buffers })
        };
        open().map_err(|error| format!("replay on {}: {error}", device.display()))
    }

    /// An existing file or a device, only for reading if the load only reads. What is written is random,
    /// and never what was read. With more I/Os in flight than `requests` a process may have to wait for
    /// a request.
    ///
    /// # Errors
    /// One line.
    pub fn real(path: &Path, load: &Load, requests: usize) -> Result<Target, String> {
        let open = || -> io::Result<Target> {
            let writes = load.ios.iter().any(|io| matches!(io.op, Op::Write | Op::Discard));
            let flags = (OFlags::DIRECT | OFlags::NOFOLLOW).bits().cast_signed();
            let mut file = File::options().read(true).write(writes).custom_flags(flags).open(path)?;
            let capacity = Sector(file.seek(SeekFrom::End(0))? / SECTOR_BYTES);
            let step = (longest(load) as u64).div_ceil(PAGE_BYTES);
            let bytes = ((PAGES + step) * PAGE_BYTES) as usize;
            let mut buffers = Buffers::new(2, bytes)?;
            if writes {
                fill(buffers.get(1, bytes))?;
            }
            let (read, write) = (buffers.address(0), buffers.address(1));
            let place =
                Place { file, capacity, depth: Depth::Limited, requests, read, write, pages: PAGES, step };
            Ok(Target { place, _memory: buffers })
        };
        open().map_err(|error| match error.raw_os_error() {
            Some(libc::EINVAL) => format!("{}: its file system has no direct I/O", path.display()),
            _ => format!("{}: {error}", path.display()),
        })
    }
}

impl Place {
    /// The open file or device.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Its size.
    pub fn capacity(&self) -> Sector {
        self.capacity
    }

    /// With more I/Os in flight than these a process may have to wait for a request.
    pub fn requests(&self) -> usize {
        self.requests
    }

    /// Where the data of the I/O with this index are. No thread looks at them.
    pub fn address(&self, index: u32, is_write: bool) -> u64 {
        if is_write { self.write + u64::from(index) * self.step % self.pages * PAGE_BYTES } else { self.read }
    }

    /// The depths of the contexts of processes that have so many I/Os each.
    ///
    /// # Errors
    /// The system allows too few.
    pub fn depths(&self, ios: &[usize]) -> io::Result<Vec<u32>> {
        match self.depth {
            Depth::Any => Ok(ios.iter().map(|&ios| (ios.min(IN_FLIGHT_MAX) + NOTICES) as u32).collect()),
            Depth::Limited => {
                let number = |path| fs::read_to_string(path).map(|text| text.trim().parse().unwrap_or(0));
                shared(ios, number(AIO_MAX)?, number(AIO_NOW)?)
            }
        }
    }
}

/// The depths within a limit of which some are taken.
fn shared(ios: &[usize], limit: u64, taken: u64) -> io::Result<Vec<u32>> {
    let each = limit.saturating_sub(taken) as usize / ios.len().max(1);
    if each < 2 * NOTICES {
        let need = ios.len() * 2 * NOTICES;
        return Err(io::Error::other(format!(
            "{} processes need {need} of the system's {limit} (fs.aio-max-nr), of which {taken} are taken",
            ios.len()
        )));
    }
    Ok(ios.iter().map(|&ios| (ios.min(IN_FLIGHT_MAX_REAL) + NOTICES).min(each) as u32).collect())
}

/// Random bytes, which no disk can compress.
fn fill(mut bytes: &mut [u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        let filled = getrandom(&mut *bytes, GetRandomFlags::empty())?;
        bytes = &mut bytes[filled..];
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contexts_stay_within_the_systems_limit_and_too_few_are_one_line() {
        assert_eq!(shared(&[1, 9_999], 65_536, 0).expect("enough"), [65, 4160]);
        assert_eq!(shared(&[1_000; 100], 65_536, 536).expect("enough"), [650; 100]);
        let error = shared(&[1; 4096], 65_536, 1000).expect_err("too many").to_string();
        let expected =
            "4096 processes need 524288 of the system's 65536 (fs.aio-max-nr), of which 1000 are taken";
        assert_eq!(error, expected);
    }

    #[test]
    fn a_target_that_is_missing_a_link_or_without_direct_io_is_refused_in_one_line() {
        let folder = tempfile::tempdir_in(".").expect("a folder");
        let load = Load::default();
        let refused = |path: &Path| Target::real(path, &load, 0).err().expect("it is refused");
        let missing = folder.path().join("none");
        assert_eq!(
            refused(&missing),
            format!("{}: No such file or directory (os error 2)", missing.display())
        );
        let link = folder.path().join("link");
        fs::write(folder.path().join("file"), b"").expect("written");
        std::os::unix::fs::symlink("file", &link).expect("linked");
        assert!(refused(&link).ends_with("(os error 40)"));
        assert_eq!(
            refused(Path::new("/proc/self/status")),
            "/proc/self/status: its file system has no direct I/O"
        );
    }
}
