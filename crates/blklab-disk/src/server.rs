//! A device from its creation to its end.

use std::any::Any;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};

use blklab_core::disk::{DiskLimits, DiskModel};
use blklab_core::units::Nanos;

use crate::control::Control;
pub use crate::queue::Report;
use crate::queue::{Queues, Restart};
use crate::store::{DataKind, Store};
use crate::uapi::DeviceInfo;
use crate::{Error, uapi};

/// The configuration of a server.
#[derive(Clone, Debug)]
pub struct Config {
    /// The disk.
    pub model: DiskModel,
    /// The seed of its platter's position at the model's time zero.
    pub seed: u64,
    /// Where to keep data.
    pub data: DataKind,
    /// The N of `/dev/ublkbN`; the driver chooses if none is given.
    pub id: Option<u32>,
    /// The maximum of tags per hardware queue, if the disk itself takes more.
    pub queue_depth_max: u32,
    /// The number of requests in [`Report::log`].
    pub log_rows: usize,
}

/// A device in service. Dropping it without [`Server::stop`] leaves it until the process ends.
pub struct Server {
    control: Control,
    info: DeviceInfo,
    limits: DiskLimits,
    restart: Arc<Restart>,
    thread: JoinHandle<io::Result<Report>>,
}

impl Server {
    /// Creates the device and serves it from a thread. When this returns, the disk is there.
    /// `on_end` is called when the thread ends, for any reason.
    ///
    /// # Errors
    /// See [`Error`]. Then nothing is left behind.
    pub fn start(config: Config, on_end: impl FnOnce() + Send + 'static) -> Result<Server, Error> {
        let mut limits = config.model.limits().clone();
        limits.queue_depth = limits.queue_depth.min(config.queue_depth_max);
        // First: without it no data file must be created.
        let mut control = Control::open()?;
        let store = Store::open(&config.data, limits.capacity.to_bytes())?;
        let info = control.add(&limits, config.id)?;
        let restart = Arc::new(Restart::default());
        let (ready, is_ready) = mpsc::channel();
        let thread = thread::Builder::new().name("blklab-disk".into()).spawn({
            let restart = Arc::clone(&restart);
            move || match Queues::open(&info, &config, store, &restart) {
                Ok(queues) => {
                    let _ = ready.send(Ok(()));
                    let report = queues.serve();
                    on_end();
                    report
                }
                Err(error) => {
                    let _ = ready.send(Err(error));
                    Ok(Report::default())
                }
            }
        });
        let thread = match thread {
            Ok(thread) => thread,
            Err(error) => {
                control.delete(info.id)?;
                return Err(Error::Kernel { step: "starting the server's thread".into(), error });
            }
        };
        let opened = match is_ready.recv() {
            Ok(opened) => opened.map_err(Error::kernel("serving the device")),
            Err(_) => Err(Error::Model("the serving thread ended".into())),
        };
        if let Err(error) = opened.and_then(|()| control.start(info.id)) {
            // Ends the thread's commands; otherwise the thread would hold the device for ever.
            control.stop(info.id)?;
            control.delete(info.id)?;
            return Err(error);
        }
        Ok(Server { control, info, limits, restart, thread })
    }

    /// The N of `/dev/ublkbN`.
    pub fn id(&self) -> u32 {
        self.info.id
    }

    /// The disk.
    pub fn path(&self) -> PathBuf {
        format!("/dev/ublkb{}", self.info.id).into()
    }

    /// The driver's values for the model's queues and sizes.
    pub fn info(&self) -> &uapi::DeviceInfo {
        &self.info
    }

    /// The disk's limits.
    pub fn limits(&self) -> &DiskLimits {
        &self.limits
    }

    /// As soon as no request is in flight: the disk is at rest, with its data; the measurements are
    /// dropped, and the model's time counts from `epoch` of [`crate::queue::clock`].
    pub fn restart_model(&self, epoch: Nanos) {
        self.restart.ask(epoch);
    }

    /// Removes the disk and returns the report.
    ///
    /// # Errors
    /// The kernel refuses, or the server had failed before.
    pub fn stop(mut self) -> Result<Report, Error> {
        let id = self.info.id;
        // Another process may have removed it.
        let unless_gone = |done| match done {
            Err(Error::NoDevice(_)) => Ok(()),
            done => done,
        };
        let stopped = unless_gone(self.control.stop(id));
        let served = self.thread.join();
        let deleted = unless_gone(self.control.delete(id));
        let report = match served {
            Ok(report) => report.map_err(Error::kernel("serving the device"))?,
            Err(panic) => return Err(panic_text(&panic)),
        };
        stopped.and(deleted)?;
        Ok(report)
    }
}

fn panic_text(panic: &Box<dyn Any + Send>) -> Error {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    Error::Model(text.unwrap_or("no reason given").replace('\n', " "))
}
