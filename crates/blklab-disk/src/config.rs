//! The configuration of a server.

use blklab_core::disk::DiskModel;

use crate::store::DataKind;

/// The driver that makes the disk a block device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Driver {
    /// ublk: every Linux has it from 6.0 on.
    Ublk,
    /// The disk's own transport, where the kernel has blklab's driver; ublk elsewhere.
    Own,
}

/// The configuration of a server.
#[derive(Clone, Debug)]
pub struct Config {
    /// The disk.
    pub model: DiskModel,
    /// The seed of its platter's position at the model's time zero.
    pub seed: u64,
    /// Where to keep data.
    pub data: DataKind,
    /// The driver.
    pub driver: Driver,
    /// The N of `/dev/ublkbN`; the driver chooses if none is given.
    pub id: Option<u32>,
    /// The maximum of tags per hardware queue of ublk, if the disk itself takes more.
    pub queue_depth_max: u32,
    /// The number of requests in [`crate::Report::log`].
    pub log_rows: usize,
}
