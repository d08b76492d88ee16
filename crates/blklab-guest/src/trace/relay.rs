//! The block layer's events while they happen, as blktrace gets them: `ioctl`s on the disk start
//! and stop them, the records come through a relay file in debugfs.
//!
//! A thread reads them continuously, so that a run may have any length. The kernel stamps a record
//! with interrupts off, where reading the clock takes no virtual time: tracing does not change the
//! traced run.

#![allow(unsafe_code)]

use std::ffi::c_void;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::thread::{self, JoinHandle};

use super::version::AsSeven;
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::ioctl::{NoArg, Opcode, Updater, ioctl, opcode};

/// The directory of disk traces in debugfs.
const DEBUGFS: &str = "/sys/kernel/debug/block";

/// The kernel's buffer: the number of parts and the size of each. The tick wakes the reader when a
/// part is full, so there must be room for the events of 10 ms. The maximum comes from writeback of
/// single pages of a file: two events for each merged page.
const PARTS: u32 = 16;
const PART_BYTES: u32 = 1 << 20;

/// `struct blk_user_trace_setup`.
#[repr(C)]
#[derive(Default)]
struct Setup {
    /// The kernel's name of the disk.
    name: [u8; 32],
    /// The categories; 0 is all.
    act_mask: u16,
    buf_size: u32,
    buf_nr: u32,
    start_lba: u64,
    end_lba: u64,
    pid: u32,
}

/// `struct blk_user_trace_setup2`: records of version 8.
#[repr(C)]
struct Setup2 {
    /// The kernel's name of the disk.
    name: [u8; 64],
    /// The categories; 0 is all.
    act_mask: u64,
    buf_size: u32,
    buf_nr: u32,
    start_lba: u64,
    end_lba: u64,
    pid: u32,
    flags: u32,
    reserved: [u64; 11],
}

const SETUP2: Opcode = opcode::read_write::<Setup2>(0x12, 142);
const SETUP: Opcode = opcode::read_write::<Setup>(0x12, 115);
const START: Opcode = opcode::none(0x12, 116);
const STOP: Opcode = opcode::none(0x12, 117);

/// Consumer of the records.
pub trait Sink: Send + 'static {
    /// Takes the next bytes of the stream; a record may be cut.
    ///
    /// # Errors
    /// One line; no more bytes will come.
    fn take(&mut self, bytes: &[u8]) -> Result<(), String>;
}

/// A disk that can be traced from now on, until it is removed.
pub struct Ready {
    disk: File,
    /// The disk's directory in debugfs.
    directory: PathBuf,
    records: File,
}

/// Tracing that is switched on.
pub struct Relay<S> {
    disk: File,
    directory: PathBuf,
    /// Tells the reader that no more records will come.
    over: OwnedFd,
    reader: JoinHandle<Result<S, String>>,
}

impl Ready {
    /// Allocates buffers for the events of the disk `device`. This may take time; starting does
    /// not.
    ///
    /// # Errors
    /// One line: the kernel cannot do it.
    pub fn new(device: &Path) -> Result<Ready, String> {
        let fail = |error: io::Error| {
            format!(
                "blktrace: {}: {error}; the kernel needs CONFIG_BLK_DEV_IO_TRACE and CONFIG_DEBUG_FS",
                device.display()
            )
        };
        let disk = File::open(device).map_err(fail)?;
        set_up(&disk).map_err(fail)?;
        let directory = Path::new(DEBUGFS).join(device.file_name().unwrap_or_default());
        let records = File::open(directory.join("trace0")).map_err(fail)?;
        Ok(Ready { disk, directory, records })
    }

    /// Starts.
    ///
    /// # Errors
    /// One line: the kernel's error.
    pub fn start<S: Sink>(self, sink: S) -> Result<Relay<S>, String> {
        let Ready { disk, directory, records } = self;
        let start = || {
            let over = eventfd(0, EventfdFlags::CLOEXEC)?;
            let told = over.try_clone()?;
            ask::<START>(&disk)?;
            let read = move || drain(records, &told, sink);
            io::Result::Ok((over, thread::Builder::new().name("blktrace".to_owned()).spawn(read)?))
        };
        let (over, reader) = start().map_err(|error| format!("blktrace: {error}"))?;
        Ok(Relay { disk, directory, over, reader })
    }
}

impl<S: Sink> Relay<S> {
    /// Ends. Returns the sink, and the number of records that did not fit.
    ///
    /// # Errors
    /// One line: the sink's or the kernel's error.
    pub fn end(self) -> Result<(S, u64), String> {
        let stopped = ask::<STOP>(&self.disk);
        rustix::io::write(&self.over, &1_u64.to_ne_bytes()).map_err(|error| format!("blktrace: {error}"))?;
        let sink = self.reader.join().map_err(|_| "blktrace: the reader panicked")?;
        let lost = fs::read_to_string(self.directory.join("dropped"));
        let lost = stopped.and(lost).map_err(|error| format!("blktrace: {error}"))?;
        Ok((sink?, lost.trim().parse().unwrap_or(0)))
    }
}

/// In version 8 where the kernel has it, since its version 7 then lacks writes with FUA.
fn set_up(disk: &File) -> io::Result<()> {
    let mut setup = Setup2 {
        name: [0; 64],
        act_mask: 0,
        buf_size: PART_BYTES,
        buf_nr: PARTS,
        start_lba: 0,
        end_lba: 0,
        pid: 0,
        flags: 0,
        reserved: [0; 11],
    };
    // SAFETY: the opcode carries the type's size, and the kernel writes `name` only.
    match unsafe { ioctl(disk, Updater::<SETUP2, Setup2>::new(&mut setup)) } {
        Err(rustix::io::Errno::NOTTY | rustix::io::Errno::INVAL) => {}
        result => return Ok(result?),
    }
    let mut setup = Setup { buf_size: PART_BYTES, buf_nr: PARTS, ..Setup::default() };
    // SAFETY: as above.
    Ok(unsafe { ioctl(disk, Updater::<SETUP, Setup>::new(&mut setup)) }?)
}

fn ask<const OPCODE: Opcode>(disk: &File) -> io::Result<()> {
    // SAFETY: these commands take no argument.
    Ok(unsafe { ioctl(disk, NoArg::<OPCODE>::new()) }?)
}

/// Passes everything to `sink` until `over` reports the end.
fn drain<S: Sink>(mut relay: File, over: &OwnedFd, mut sink: S) -> Result<S, String> {
    let mut buffer = vec![0; PART_BYTES as usize];
    let mut records = AsSeven::default();
    let mut last = false;
    while !last {
        let mut files =
            [PollFd::new(&relay, PollFlags::IN), PollFd::from_borrowed_fd(over.as_fd(), PollFlags::IN)];
        match poll(&mut files, None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(format!("blktrace: {error}")),
        }
        last = files[1].revents().contains(PollFlags::IN);
        loop {
            match relay.read(&mut buffer) {
                Ok(0) => break,
                Ok(bytes) => sink.take(records.take(&buffer[..bytes]))?,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(format!("blktrace: {error}")),
            }
        }
    }
    Ok(sink)
}

/// The structure has the kernel's size.
const _: () = assert!(
    size_of::<Setup2>() == 64 + 40 + 88
        && size_of::<Setup>() == 72
        && align_of::<Setup>() == align_of::<*mut c_void>()
);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::record::testing::written;

    struct Kept(Vec<u8>);

    impl Sink for Kept {
        fn take(&mut self, bytes: &[u8]) -> Result<(), String> {
            self.0.extend_from_slice(bytes);
            if bytes.starts_with(b"bad") { Err("bad".to_owned()) } else { Ok(()) }
        }
    }

    #[test]
    fn everything_is_taken_until_it_is_over() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("trace0");
        let over = eventfd(1, EventfdFlags::CLOEXEC).expect("there is room");
        let drained = |text: &[u8]| {
            fs::write(&path, text).expect("written");
            drain(File::open(&path).expect("there"), &over, Kept(Vec::new())).map(|kept| kept.0)
        };
        let long = written(1, 'Q', 'R', 0, 8).repeat(3 * PART_BYTES as usize / 48 + 1);
        assert!(drained(&long) == Ok(long));
        assert_eq!(drained(b"bad record"), Err("bad".to_owned()));
    }

    #[test]
    fn a_path_of_no_disk_is_one_line() {
        let error = Ready::new(Path::new("/dev/null")).map(|_| ()).unwrap_err();
        assert!(error.starts_with("blktrace: /dev/null: ") && error.contains("CONFIG_BLK_DEV_IO_TRACE"));
    }
}
