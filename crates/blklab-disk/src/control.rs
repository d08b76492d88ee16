//! The control device: creates, starts, stops, deletes and lists devices.

use std::fs::File;
use std::io;
use std::mem::size_of;
use std::os::fd::AsRawFd;

use blklab_core::disk::DiskLimits;
use io_uring::squeue::Entry128;
use io_uring::{IoUring, cqueue, opcode, types};

use crate::uapi::{self, CONTROL_PATH, Control as Op, DeviceInfo, Params};
use crate::{Error, ring};

/// An open control device.
pub struct Control {
    ring: IoUring<Entry128, cqueue::Entry>,
    file: File,
}

impl Control {
    /// Opens it.
    ///
    /// # Errors
    /// The kernel has no ublk, or denies access.
    pub fn open() -> Result<Control, Error> {
        let file = File::options().read(true).write(true).open(CONTROL_PATH);
        let file = file.map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => Error::NoUblk,
            io::ErrorKind::PermissionDenied => Error::NotAllowed,
            _ => Error::Kernel { step: CONTROL_PATH.into(), error },
        })?;
        let ring = IoUring::builder().build(4).map_err(Error::kernel("io_uring"))?;
        Ok(Control { ring, file })
    }

    fn command<T>(&mut self, op: Op, device: u32, data: u64, buffer: Option<&mut T>) -> io::Result<i32> {
        let (address, bytes) = match buffer {
            Some(buffer) => (std::ptr::from_mut(buffer) as u64, size_of::<T>() as u16),
            None => (0, 0),
        };
        let command = uapi::control_command(device, address, bytes, data);
        let fd = types::Fd(self.file.as_raw_fd());
        ring::control(&mut self.ring, &opcode::UringCmd80::new(fd, op as u32).cmd(command).build())
    }

    /// The driver's features; none from a driver without that query (before 6.5).
    pub fn features(&mut self) -> u64 {
        let mut features = 0_u64;
        match self.command(Op::Features, u32::MAX, 0, Some(&mut features)) {
            Ok(_) => features,
            Err(_) => 0,
        }
    }

    /// Creates a device for a disk with these limits.
    ///
    /// # Errors
    /// The number is taken, or the driver refuses.
    pub fn add(&mut self, limits: &DiskLimits, id: Option<u32>) -> Result<DeviceInfo, Error> {
        let mut info = DeviceInfo::new(limits, id, self.features());
        self.command(Op::Add, info.id, 0, Some(&mut info)).map_err(|error| match (error.kind(), id) {
            (io::ErrorKind::AlreadyExists, Some(id)) => Error::Exists(id),
            (io::ErrorKind::PermissionDenied, _) => Error::NotAllowed,
            _ => Error::Kernel { step: "making a ublk device".into(), error },
        })?;
        let mut params = Params::new(limits, info.io_bytes_max);
        if let Err(error) = self.command(Op::SetParams, info.id, 0, Some(&mut params)) {
            self.delete(info.id)?;
            return Err(Error::Kernel { step: "setting the disk's parameters".into(), error });
        }
        Ok(info)
    }

    /// Makes the disk appear. Returns when it is there; its server must fetch requests meanwhile.
    ///
    /// # Errors
    /// The driver refuses.
    pub fn start(&mut self, id: u32) -> Result<(), Error> {
        let pid = u64::from(std::process::id());
        self.command::<()>(Op::Start, id, pid, None).map_err(Error::kernel("starting the disk"))?;
        Ok(())
    }

    /// Removes the disk. Its server's commands return as aborted.
    ///
    /// # Errors
    /// There is no such device.
    pub fn stop(&mut self, id: u32) -> Result<(), Error> {
        self.on_device(Op::Stop, id, "stopping the disk")
    }

    /// Deletes a device, with or without a server.
    ///
    /// # Errors
    /// There is no such device.
    pub fn delete(&mut self, id: u32) -> Result<(), Error> {
        self.on_device(Op::Delete, id, "deleting the device")
    }

    fn on_device(&mut self, op: Op, id: u32, step: &str) -> Result<(), Error> {
        match self.command::<()>(op, id, 0, None) {
            Ok(_) => Ok(()),
            Err(error) if is_absent(&error) => Err(Error::NoDevice(id)),
            Err(error) => Err(Error::Kernel { step: step.into(), error }),
        }
    }

    /// All devices, by number.
    ///
    /// # Errors
    /// The driver refuses.
    pub fn list(&mut self) -> Result<Vec<DeviceInfo>, Error> {
        let mut devices = Vec::new();
        for id in numbers().map_err(Error::kernel("/dev"))? {
            let mut info = DeviceInfo::default();
            match self.command(Op::Info, id, 0, Some(&mut info)) {
                Ok(_) => devices.push(info),
                // It was removed meanwhile, or belongs to another user.
                Err(error) if is_absent(&error) => {}
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {}
                Err(error) => return Err(Error::Kernel { step: format!("asking device {id}"), error }),
            }
        }
        Ok(devices)
    }
}

fn is_absent(error: &io::Error) -> bool {
    const ENODEV: i32 = 19;
    error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(ENODEV)
}

/// The N of every `/dev/ublkcN`, ascending.
fn numbers() -> io::Result<Vec<u32>> {
    let mut numbers = Vec::new();
    for entry in std::fs::read_dir("/dev")? {
        let name = entry?.file_name();
        let number = name.to_str().and_then(|name| name.strip_prefix("ublkc"));
        numbers.extend(number.and_then(|number| number.parse::<u32>().ok()));
    }
    numbers.sort_unstable();
    Ok(numbers)
}
