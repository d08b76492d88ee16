//! Errors, in one line each.

use std::io;

use thiserror::Error;

/// An error of the disk server.
#[derive(Debug, Error)]
pub enum Error {
    /// The kernel has no ublk.
    #[error(
        "/dev/ublk-control is missing: load the module with `modprobe ublk_drv`; \
         the kernel needs CONFIG_BLK_DEV_UBLK (Linux 6.0 or newer)"
    )]
    NoUblk,
    /// No permission to use it.
    #[error("/dev/ublk-control: permission denied; run it as root")]
    NotAllowed,
    /// No such device.
    #[error("there is no ublk device {0}; `blklab-disk list` shows those there are")]
    NoDevice(u32),
    /// The number is taken.
    #[error("ublk device {0} exists already; `blklab disk remove {0}` deletes it")]
    Exists(u32),
    /// The kernel refused a step.
    #[error("{step}: {error}")]
    Kernel {
        /// The step.
        step: String,
        /// The kernel's answer.
        error: io::Error,
    },
    /// The file for the data cannot be used.
    #[error("{path}: {message}")]
    Data {
        /// The file.
        path: String,
        /// The reason.
        message: String,
    },
    /// The serving thread has panicked: a bug in blklab.
    #[error("the disk model failed: {0}; please report this")]
    Model(String),
}

impl Error {
    pub(crate) fn kernel(step: impl Into<String>) -> impl FnOnce(io::Error) -> Error {
        let step = step.into();
        move |error| Error::Kernel { step, error }
    }
}
