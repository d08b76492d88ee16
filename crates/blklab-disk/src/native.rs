//! The driver of blklab's own kernels as a transport: a SATA or SAS disk behind the kernel's SCSI
//! layer, or an NVMe disk (`python/blklab/rigs/kernel/disk.c`).
//!
//! One call per event: it returns completed requests, waits, and comes back with those that have
//! arrived and with the data of writes.
#![allow(unsafe_code)]

use std::fs::{self, File};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use blklab_core::disk::{DiskModel, Op};
use blklab_core::units::{Nanos, SECTOR_BYTES};
use rustix::ioctl::{NoArg, Opcode, Setter, Updater, ioctl, opcode};

use crate::Error;
use crate::service::{Request, Transport};
use crate::shared::Room;
use crate::uapi::DISCARD_SECTORS_MAX;

/// The driver's device.
const PATH: &str = "/dev/blklab-disk";

/// Properties of a [`Told`] disk.
mod flag {
    pub const ROTATIONAL: u32 = 1 << 0;
    pub const WRITE_CACHE: u32 = 1 << 1;
    pub const FUA: u32 = 1 << 2;
    pub const DISCARDS: u32 = 1 << 3;
    pub const NO_DATA: u32 = 1 << 4;
}

const NVME: u32 = 0;
const SATA: u32 = 1;
const SAS: u32 = 2;

/// `struct blklab_disk`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct Told {
    kind: u32,
    flags: u32,
    sectors: u64,
    depth: u32,
    hw_queues: u32,
    max_sectors: u32,
    logical_bytes: u32,
    physical_bytes: u32,
    discard_sectors: u32,
    name: [u8; 40],
    real_depth: u32,
    real_hw_queues: u32,
    path: [u8; 32],
}

/// `struct blklab_done`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct Done {
    tag: u32,
    error: i32,
    data: u64,
}

/// `struct blklab_command`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct Arrived {
    arrived_ns: u64,
    sector: u64,
    sectors: u32,
    tag: u32,
    op: u32,
    fua: u32,
    data: u64,
}

/// `struct blklab_exchange`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct Exchange {
    done: u64,
    commands: u64,
    data: u64,
    data_bytes: u64,
    until_ns: u64,
    done_count: u32,
    command_count: u32,
    now_ns: u64,
    ended: u32,
    pad: u32,
}

const CREATE: Opcode = opcode::write::<Told>(b'B', 1);
const START: Opcode = opcode::read::<Told>(b'B', 2);
const STOP: Opcode = opcode::none(b'B', 3);
const EXCHANGE: Opcode = opcode::read_write::<Exchange>(b'B', 4);

/// The most commands of a call; more come with the next one.
const COMMANDS_MAX: usize = 256;

/// Room for the data of a call's writes, and for those of its reads. What does not fit goes with
/// the next call.
const ROOM_BYTES: usize = 4 << 20;

/// A disk that this driver has made.
#[derive(Debug)]
pub struct Native {
    file: Arc<File>,
    told: Told,
}

/// Whether the running kernel has the driver.
pub fn is_there() -> bool {
    fs::exists(PATH).unwrap_or(false)
}

impl Native {
    /// A disk like the model, which does not appear yet. With `data` the data of requests are
    /// passed on.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn create(model: &DiskModel, data: bool) -> Result<Native, Error> {
        let file = File::options().read(true).write(true).open(PATH).map_err(Error::kernel(PATH))?;
        let told = told(model, data);
        // SAFETY: the opcode carries the type's size, and the driver only reads it.
        unsafe { ioctl(&file, Setter::<CREATE, Told>::new(told)) }
            .map_err(|error| Error::Kernel { step: "making a disk".into(), error: error.into() })?;
        Ok(Native { file: Arc::new(file), told })
    }

    /// The way of its requests.
    ///
    /// # Errors
    /// There is no memory.
    pub fn calls(&self) -> io::Result<Calls> {
        let bytes = self.told.max_sectors as usize * SECTOR_BYTES as usize;
        let has_data = self.told.flags & flag::NO_DATA == 0;
        let room = || Room::new(if has_data { bytes.max(ROOM_BYTES) } else { 0 });
        let slots = (self.told.depth as usize * self.told.hw_queues as usize).max(TAGS_MIN);
        Ok(Calls {
            file: Arc::clone(&self.file),
            slots,
            commands: vec![Arrived::default(); COMMANDS_MAX],
            arrived: Vec::with_capacity(COMMANDS_MAX),
            done: Vec::with_capacity(slots),
            written: room()?,
            read: room()?,
            read_used: 0,
            has_data,
            is_over: false,
        })
    }

    /// Makes the disk appear. Returns when it is there; its server must serve meanwhile.
    ///
    /// # Errors
    /// The kernel refuses, or does not find the disk.
    pub fn start(&mut self) -> Result<PathBuf, Error> {
        let failed = |error: io::Error| Error::Kernel { step: "starting the disk".into(), error };
        // SAFETY: the opcode carries the type's size, and the driver fills it.
        let started = unsafe { ioctl(&*self.file, Updater::<START, Told>::new(&mut self.told)) };
        started.map_err(|error| failed(error.into()))?;
        let end = self.told.path.iter().position(|byte| *byte == 0).unwrap_or(self.told.path.len());
        let name = String::from_utf8_lossy(&self.told.path[..end]).into_owned();
        if self.told.kind == NVME {
            return Ok(format!("/dev/{name}").into());
        }
        let blocks = fs::read_dir(format!("/sys/class/scsi_disk/{name}/device/block")).map_err(failed)?;
        let found = blocks.flatten().next().ok_or_else(|| failed(io::ErrorKind::NotFound.into()))?;
        Ok(PathBuf::from("/dev").join(found.file_name()))
    }

    /// Removes the disk; its server ends.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn stop(&self) -> Result<(), Error> {
        // SAFETY: this command takes no argument.
        let stopped = unsafe { ioctl(&*self.file, NoArg::<STOP>::new()) };
        stopped.map_err(|error| Error::Kernel { step: "stopping the disk".into(), error: error.into() })
    }

    /// Hardware queues, and commands that the disk takes in each.
    pub fn queues(&self) -> (u16, u32) {
        (self.told.real_hw_queues as u16, self.told.real_depth)
    }
}

/// Tags of the adapters of SCSI disks, whatever the disks take (`HBA_TAGS` in the driver).
const TAGS_MIN: usize = 1008;

fn told(model: &DiskModel, data: bool) -> Told {
    let limits = model.limits();
    let flags = [
        (limits.rotational, flag::ROTATIONAL),
        (limits.volatile_write_cache, flag::WRITE_CACHE),
        (limits.fua, flag::FUA),
        // Only flash takes discards; the kernel writes zeros itself.
        (!limits.rotational, flag::DISCARDS),
        (!data, flag::NO_DATA),
    ];
    let mut name = [0; 40];
    let letters = model.name().bytes().filter(|byte| (0x20..0x7f).contains(byte));
    name.iter_mut().take(39).zip(letters).for_each(|(to, letter)| *to = letter);
    Told {
        kind: match model.transport() {
            "sata" => SATA,
            "sas" => SAS,
            _ => NVME,
        },
        flags: flags.iter().filter(|(is, _)| *is).map(|(_, flag)| flag).sum(),
        sectors: limits.capacity.0,
        depth: limits.queue_depth,
        hw_queues: limits.hw_queues.into(),
        max_sectors: limits.max_hw_sectors,
        logical_bytes: limits.logical_block_bytes,
        physical_bytes: limits.physical_block_bytes,
        discard_sectors: DISCARD_SECTORS_MAX,
        name,
        real_depth: 0,
        real_hw_queues: 0,
        path: [0; 32],
    }
}

/// The calls of the serving thread.
#[derive(Debug)]
pub struct Calls {
    file: Arc<File>,
    slots: usize,
    commands: Vec<Arrived>,
    arrived: Vec<Request>,
    done: Vec<Done>,
    /// The data of the writes that have arrived.
    written: Room,
    /// The data of completed reads, one after the other.
    read: Room,
    read_used: usize,
    has_data: bool,
    is_over: bool,
}

impl Calls {
    /// Hands back what is done, and does what else is in `call`.
    fn call(&mut self, mut call: Exchange) -> io::Result<Exchange> {
        (call.done, call.done_count) = (self.done.as_ptr() as u64, self.done.len() as u32);
        loop {
            // SAFETY: the opcode carries the type's size; the addresses in it are those of memory
            // of ours of the lengths beside them, which the driver touches in this call only.
            match unsafe { ioctl(&*self.file, Updater::<EXCHANGE, Exchange>::new(&mut call)) } {
                Ok(()) => break,
                // The completed requests have been taken.
                Err(rustix::io::Errno::INTR) => call.done_count = 0,
                Err(error) => return Err(error.into()),
            }
        }
        self.done.clear();
        self.read_used = 0;
        Ok(call)
    }
}

impl Transport for Calls {
    fn slots(&self) -> usize {
        self.slots
    }

    fn wait(&mut self, _: Nanos, until: Option<Nanos>) -> io::Result<Nanos> {
        let commands = self.commands.as_mut_ptr();
        let call = self.call(Exchange {
            commands: commands as u64,
            data: self.written.address(),
            data_bytes: self.written.bytes() as u64,
            until_ns: until.map_or(u64::MAX, |until| until.0),
            command_count: self.commands.len() as u32,
            ..Exchange::default()
        })?;
        let count = (call.command_count as usize).min(self.commands.len());
        self.arrived.clear();
        self.arrived.extend(self.commands[..count].iter().map(request));
        self.is_over = call.ended != 0 && count == 0;
        Ok(Nanos(call.now_ns))
    }

    fn is_over(&self) -> bool {
        self.is_over
    }

    fn arrived(&self) -> &[Request] {
        &self.arrived
    }

    fn written(&mut self, index: usize) -> Option<&[u8]> {
        let command = self.commands[index];
        let bytes = command.sectors as usize * SECTOR_BYTES as usize;
        self.has_data.then(|| self.written.get(command.data as usize, bytes) as &[u8])
    }

    fn room(&mut self, slot: u32, bytes: usize) -> io::Result<Option<&mut [u8]>> {
        if !self.has_data {
            return Ok(None);
        }
        if bytes > self.read.bytes() - self.read_used {
            self.call(Exchange::default())?;
        }
        let at = self.read_used;
        self.read_used += bytes;
        self.done.push(Done { tag: slot, error: 0, data: self.read.address() + at as u64 });
        Ok(Some(self.read.get(at, bytes)))
    }

    fn complete(&mut self, slot: u32, _: u32, error: Option<i32>) -> io::Result<()> {
        let error = error.map_or(0, |error| -error);
        match self.done.last_mut() {
            // A read that has got room.
            Some(done) if done.tag == slot => done.error = error,
            _ => self.done.push(Done { tag: slot, error, data: 0 }),
        }
        Ok(())
    }
}

fn request(command: &Arrived) -> Request {
    let op = match command.op {
        0 => Op::Read,
        1 => Op::Write,
        2 => Op::Flush,
        3 => Op::Discard,
        other => unreachable!("the kernel asks for operation {other}"),
    };
    Request {
        slot: command.tag,
        arrived: Some(Nanos(command.arrived_ns)),
        op,
        sector: command.sector,
        sectors: command.sectors,
        fua: command.fua != 0,
    }
}

#[cfg(test)]
mod tests {
    use std::mem::size_of;

    use blklab_core::disk::catalogue;

    use super::*;

    fn model(name: &str) -> DiskModel {
        catalogue::model(name).expect("a shipped disk")
    }

    #[test]
    fn layouts_are_the_drivers() {
        assert_eq!((size_of::<Told>(), size_of::<Done>()), (120, 16));
        assert_eq!((size_of::<Arrived>(), size_of::<Exchange>()), (40, 64));
        assert_eq!(std::mem::offset_of!(Told, name), 40);
        assert_eq!(std::mem::offset_of!(Told, real_depth), 80);
        assert_eq!(std::mem::offset_of!(Exchange, now_ns), 48);
    }

    #[test]
    fn the_models_limits_reach_the_driver() {
        let hdd = told(&model("wd10ezrx").with_override("ncq", "off").expect("a key"), true);
        assert_eq!((hdd.kind, hdd.depth, hdd.hw_queues), (SATA, 1, 1));
        assert_eq!(hdd.flags, flag::ROTATIONAL | flag::WRITE_CACHE);
        assert_eq!(hdd.name[39], 0);
        assert!(hdd.name.starts_with(b"Western Digital"));
        let fast = told(&model("optane-900p"), false);
        assert_eq!((fast.kind, fast.flags), (NVME, flag::FUA | flag::DISCARDS | flag::NO_DATA));
        assert_eq!(told(&model("sas-10k"), true).kind, SAS);
    }
}
