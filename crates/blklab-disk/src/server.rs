//! A device from its creation to its end.

use std::any::Any;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};

use blklab_core::units::Nanos;

use crate::Error;
use crate::config::{Config, Driver};
use crate::control::Control;
use crate::native::{self, Native};
use crate::service::{Orders, Report, Service, Transport};
use crate::store::{DataKind, Store};
use crate::uapi::DeviceInfo;
use crate::ublk::Queues;

enum Device {
    Ublk(Box<Control>, DeviceInfo),
    Native(Native),
}

impl Device {
    fn create(config: &Config) -> Result<Device, Error> {
        if config.driver == Driver::Own && native::is_there() {
            return Ok(Device::Native(Native::create(&config.model, config.data != DataKind::None)?));
        }
        let mut limits = config.model.limits().clone();
        limits.queue_depth = limits.queue_depth.min(config.queue_depth_max);
        let mut control = Control::open()?;
        let info = control.add(&limits, config.id)?;
        Ok(Device::Ublk(Box::new(control), info))
    }

    /// Makes it appear.
    fn start(&mut self) -> Result<PathBuf, Error> {
        match self {
            Device::Ublk(control, info) => {
                control.start(info.id)?;
                Ok(format!("/dev/ublkb{}", info.id).into())
            }
            Device::Native(disk) => disk.start(),
        }
    }

    /// Removes the disk; the serving thread ends.
    fn stop(&mut self) -> Result<(), Error> {
        match self {
            Device::Ublk(control, info) => unless_gone(control.stop(info.id)),
            Device::Native(disk) => disk.stop(),
        }
    }

    /// Deletes it, when the serving thread has ended.
    fn delete(&mut self) -> Result<(), Error> {
        match self {
            Device::Ublk(control, info) => unless_gone(control.delete(info.id)),
            Device::Native(_) => Ok(()),
        }
    }
}

/// Another process may have removed it.
fn unless_gone(done: Result<(), Error>) -> Result<(), Error> {
    match done {
        Err(Error::NoDevice(_)) => Ok(()),
        done => done,
    }
}

/// A device in service. Dropping it without [`Server::stop`] leaves it until the process ends.
pub struct Server {
    device: Device,
    path: PathBuf,
    orders: Arc<Orders>,
    thread: JoinHandle<io::Result<Report>>,
}

impl Server {
    /// Creates the device and serves it from a thread. When this returns, the disk is there.
    /// `on_end` is called when the thread ends, for any reason.
    ///
    /// # Errors
    /// See [`Error`]. Then nothing is left behind.
    pub fn start(config: Config, on_end: impl FnOnce() + Send + 'static) -> Result<Server, Error> {
        // First: without it no data file must be created.
        let mut device = Device::create(&config)?;
        let store = Store::open(&config.data, config.model.limits().capacity.to_bytes());
        let orders = Arc::new(Orders::default());
        let started = store.and_then(|store| match &device {
            Device::Ublk(_, info) => {
                let info = *info;
                serve(move || Queues::open(&info), config, store, Arc::clone(&orders), on_end)
            }
            Device::Native(disk) => {
                let calls = disk.calls();
                serve(move || calls, config, store, Arc::clone(&orders), on_end)
            }
        });
        let thread = match started {
            Ok(thread) => thread,
            Err(error) => {
                device.delete()?;
                return Err(error);
            }
        };
        match device.start() {
            Ok(path) => Ok(Server { device, path, orders, thread }),
            Err(error) => {
                // Ends the thread's commands; otherwise the thread would hold the device for ever.
                device.stop()?;
                device.delete()?;
                Err(error)
            }
        }
    }

    /// The disk.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The disk's name, as in `/sys/block/NAME`.
    pub fn name(&self) -> String {
        self.path.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// Hardware queues, and commands that the disk takes in each, as the kernel has them.
    pub fn queues(&self) -> (u16, u32) {
        match &self.device {
            Device::Ublk(_, info) => (info.hw_queues, info.queue_depth.into()),
            Device::Native(disk) => disk.queues(),
        }
    }

    /// Whether it is a ublk device.
    pub fn is_ublk(&self) -> bool {
        matches!(self.device, Device::Ublk(..))
    }

    /// As soon as no request is in flight: the disk is at rest, with its data; the measurements are
    /// dropped, and the model's time counts from `epoch` of [`crate::service::clock`].
    pub fn restart_model(&self, epoch: Nanos) {
        self.orders.restart(epoch);
    }

    /// Removes the disk and returns the report.
    ///
    /// # Errors
    /// The kernel refuses, or the server had failed before.
    pub fn stop(mut self) -> Result<Report, Error> {
        self.orders.removed();
        let stopped = self.device.stop();
        let served = self.thread.join();
        let deleted = self.device.delete();
        let report = match served {
            Ok(report) => report.map_err(Error::kernel("serving the device"))?,
            Err(panic) => return Err(panic_text(&panic)),
        };
        stopped.and(deleted)?;
        Ok(report)
    }
}

/// Starts the thread that serves what `open` opens; returns when it is open.
fn serve<T: Transport>(
    open: impl FnOnce() -> io::Result<T> + Send + 'static,
    config: Config,
    store: Store,
    orders: Arc<Orders>,
    on_end: impl FnOnce() + Send + 'static,
) -> Result<JoinHandle<io::Result<Report>>, Error> {
    let (ready, is_ready) = mpsc::channel();
    let serving = move || {
        let opened = open().and_then(|transport| Service::new(transport, &config, store, &orders));
        match opened {
            Ok(service) => {
                let _ = ready.send(Ok(()));
                let report = service.serve();
                on_end();
                report
            }
            Err(error) => {
                let _ = ready.send(Err(error));
                Ok(Report::default())
            }
        }
    };
    let thread = thread::Builder::new().name("blklab-disk".into()).spawn(serving);
    let thread = thread.map_err(Error::kernel("starting the server's thread"))?;
    match is_ready.recv() {
        Ok(opened) => opened.map_err(Error::kernel("serving the device"))?,
        Err(_) => return Err(Error::Model("the serving thread ended".into())),
    }
    Ok(thread)
}

fn panic_text(panic: &Box<dyn Any + Send>) -> Error {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    Error::Model(text.unwrap_or("no reason given").replace('\n', " "))
}
