//! The interface of the ublk driver (`include/uapi/linux/ublk_cmd.h`), as far as it is used here.
//!
//! Structures that the kernel reads from memory keep its layout; commands inside an io_uring entry
//! are bytes.

use std::mem::size_of;

use blklab_core::disk::DiskLimits;
use blklab_core::units::SECTOR_BYTES;

/// The device that creates devices.
pub const CONTROL_PATH: &str = "/dev/ublk-control";

/// The maximum of tags per queue.
pub const QUEUE_DEPTH_MAX: u32 = 4096;

/// The maximum of bytes per request.
pub const IO_BYTES_MAX: u32 = 1 << 25;

/// Descriptors of queue `q` begin at `q` times this much of the character device.
pub const DESCRIPTORS_STRIDE: u64 = (QUEUE_DEPTH_MAX as u64 * DESCRIPTOR_BYTES as u64).next_multiple_of(4096);

/// Bytes of a descriptor.
pub const DESCRIPTOR_BYTES: usize = size_of::<Descriptor>();

/// The result of commands that the driver returns when the device must end.
pub const ABORTED: i32 = -19;

/// Features (`UBLK_F_*`).
pub mod feature {
    /// Commands have the encoding of ioctls.
    pub const CMD_IOCTL_ENCODE: u64 = 1 << 6;
    /// No scan for a partition table: the model would have to serve it.
    pub const NO_AUTO_PART_SCAN: u64 = 1 << 18;
}

/// Properties of a device (`UBLK_ATTR_*`).
pub mod attribute {
    /// It rotates.
    pub const ROTATIONAL: u32 = 1 << 1;
    /// A power failure loses data that was not flushed.
    pub const VOLATILE_CACHE: u32 = 1 << 2;
    /// It supports FUA.
    pub const FUA: u32 = 1 << 3;
}

/// Operations of a [`Descriptor`].
pub mod op {
    /// Read.
    pub const READ: u8 = 0;
    /// Write.
    pub const WRITE: u8 = 1;
    /// Flush.
    pub const FLUSH: u8 = 2;
    /// Discard.
    pub const DISCARD: u8 = 3;
    /// Flag: force unit access.
    pub const FLAG_FUA: u32 = 1 << 13;
}

const READ_WRITE: u32 = 3;
const READ_ONLY: u32 = 2;

/// `_IOC(direction, 'u', number, size)`.
const fn encode(direction: u32, number: u32, size: usize) -> u32 {
    direction << 30 | (size as u32) << 16 | (b'u' as u32) << 8 | number
}

/// Commands to [`CONTROL_PATH`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Control {
    /// Create a device.
    Add = encode(READ_WRITE, 0x04, 32),
    /// Delete it.
    Delete = encode(READ_WRITE, 0x05, 32),
    /// Make the disk appear.
    Start = encode(READ_WRITE, 0x06, 32),
    /// Remove the disk and end its server's commands.
    Stop = encode(READ_WRITE, 0x07, 32),
    /// Set the disk's properties.
    SetParams = encode(READ_WRITE, 0x08, 32),
    /// Get [`DeviceInfo`].
    Info = encode(READ_ONLY, 0x02, 32),
    /// Get the driver's features.
    Features = encode(READ_ONLY, 0x13, 32),
}

/// Commands to a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Queue {
    /// Fetch a request for this tag.
    Fetch = encode(READ_WRITE, 0x20, 16),
    /// Complete this request and fetch the next for its tag.
    CommitAndFetch = encode(READ_WRITE, 0x21, 16),
}

/// `struct ublksrv_ctrl_cmd` in the 80 bytes of a large entry.
pub fn control_command(device: u32, buffer: u64, bytes: u16, data: u64) -> [u8; 80] {
    let mut command = [0; 80];
    command[0..4].copy_from_slice(&device.to_ne_bytes());
    command[4..6].copy_from_slice(&u16::MAX.to_ne_bytes()); // for no queue
    command[6..8].copy_from_slice(&bytes.to_ne_bytes());
    command[8..16].copy_from_slice(&buffer.to_ne_bytes());
    command[16..24].copy_from_slice(&data.to_ne_bytes());
    command
}

/// `struct ublksrv_io_cmd` in the 16 bytes of an entry.
pub fn queue_command(queue: u16, tag: u16, result: i32, buffer: u64) -> [u8; 16] {
    let mut command = [0; 16];
    command[0..2].copy_from_slice(&queue.to_ne_bytes());
    command[2..4].copy_from_slice(&tag.to_ne_bytes());
    command[4..8].copy_from_slice(&result.to_ne_bytes());
    command[8..16].copy_from_slice(&buffer.to_ne_bytes());
    command
}

/// `struct ublksrv_io_desc`: a request, as the driver describes it.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Descriptor {
    /// Operation in bits 0 to 7, flags above.
    pub op_flags: u32,
    /// Length in sectors.
    pub sectors: u32,
    /// First sector.
    pub sector: u64,
    /// The address of its data.
    pub address: u64,
}

/// `struct ublksrv_ctrl_dev_info`.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct DeviceInfo {
    /// Hardware queues; the driver lowers it to the number of CPUs.
    pub hw_queues: u16,
    /// Tags per queue.
    pub queue_depth: u16,
    /// 0: no disk, 1: the disk exists.
    pub state: u16,
    pad0: u16,
    /// The maximum of bytes per request.
    pub io_bytes_max: u32,
    /// The N of `/dev/ublkbN`; all ones: the driver chooses.
    pub id: u32,
    /// Its server; -1 if there is none.
    pub server_pid: i32,
    pad1: u32,
    /// [`feature`]s.
    pub flags: u64,
    server_flags: u64,
    owner: [u32; 2],
    reserved: [u64; 2],
}

impl DeviceInfo {
    /// The request to the driver for a disk with these limits.
    pub fn new(limits: &DiskLimits, id: Option<u32>, features: u64) -> DeviceInfo {
        let io_bytes_max = u64::from(limits.max_hw_sectors) * SECTOR_BYTES;
        DeviceInfo {
            hw_queues: limits.hw_queues,
            queue_depth: limits.queue_depth.min(QUEUE_DEPTH_MAX) as u16,
            io_bytes_max: io_bytes_max.min(IO_BYTES_MAX.into()) as u32,
            id: id.unwrap_or(u32::MAX),
            server_pid: -1,
            flags: feature::CMD_IOCTL_ENCODE | (features & feature::NO_AUTO_PART_SCAN),
            ..DeviceInfo::default()
        }
    }
}

/// `struct ublk_params` up to the parameters of discards.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Params {
    bytes: u32,
    types: u32,
    /// [`attribute`]s.
    pub attributes: u32,
    logical_block_shift: u8,
    physical_block_shift: u8,
    io_opt_shift: u8,
    io_min_shift: u8,
    max_sectors: u32,
    chunk_sectors: u32,
    sectors: u64,
    virt_boundary_mask: u64,
    discard_alignment: u32,
    discard_granularity: u32,
    max_discard_sectors: u32,
    max_write_zeroes_sectors: u32,
    max_discard_segments: u16,
    reserved: u16,
    pad: u32,
}

const TYPE_BASIC: u32 = 1 << 0;
const TYPE_DISCARD: u32 = 1 << 1;

impl Params {
    /// A disk with these limits. Only flash takes discards; the kernel writes zeros itself.
    pub fn new(limits: &DiskLimits, io_bytes_max: u32) -> Params {
        let flags = [
            (limits.rotational, attribute::ROTATIONAL),
            (limits.volatile_write_cache, attribute::VOLATILE_CACHE),
            (limits.fua, attribute::FUA),
        ];
        let discards = !limits.rotational;
        Params {
            bytes: size_of::<Params>() as u32,
            types: if discards { TYPE_BASIC | TYPE_DISCARD } else { TYPE_BASIC },
            attributes: flags.iter().filter(|(is, _)| *is).map(|(_, flag)| flag).sum(),
            logical_block_shift: limits.logical_block_bytes.trailing_zeros() as u8,
            physical_block_shift: limits.physical_block_bytes.trailing_zeros() as u8,
            io_opt_shift: 0,
            io_min_shift: limits.physical_block_bytes.trailing_zeros() as u8,
            max_sectors: io_bytes_max / SECTOR_BYTES as u32,
            sectors: limits.capacity.0,
            discard_granularity: if discards { limits.physical_block_bytes } else { 0 },
            max_discard_sectors: if discards { DISCARD_SECTORS_MAX } else { 0 },
            max_discard_segments: u16::from(discards),
            ..Params::default()
        }
    }
}

/// Largest discard: 2 GiB, the size of SATA's TRIM in one page of ranges (64 x 65,535 sectors),
/// rounded down to a power of two.
pub const DISCARD_SECTORS_MAX: u32 = 1 << 22;

#[cfg(test)]
mod tests {
    use blklab_core::units::Sector;

    use super::*;

    fn limits() -> DiskLimits {
        DiskLimits {
            capacity: Sector(1000),
            rotational: true,
            queue_depth: 32,
            adapter_tags: Some(32),
            flush_alone: true,
            hw_queues: 1,
            max_hw_sectors: 2560,
            logical_block_bytes: 512,
            physical_block_bytes: 4096,
            volatile_write_cache: true,
            fua: false,
        }
    }

    #[test]
    fn layouts_are_the_kernels() {
        assert_eq!(size_of::<Descriptor>(), 24);
        assert_eq!(size_of::<DeviceInfo>(), 64);
        assert_eq!(std::mem::offset_of!(DeviceInfo, flags), 24);
        assert_eq!(std::mem::offset_of!(Params, sectors), 24);
        assert_eq!(std::mem::offset_of!(Params, discard_alignment), 40);
        assert_eq!(Control::Add as u32, 0xc020_7504);
        assert_eq!(Queue::CommitAndFetch as u32, 0xc010_7521);
        assert_eq!(DESCRIPTORS_STRIDE, 98_304);
    }

    #[test]
    fn the_models_limits_reach_the_driver() {
        let hdd = Params::new(&limits(), 1 << 20);
        assert_eq!(hdd.attributes, attribute::ROTATIONAL | attribute::VOLATILE_CACHE);
        assert_eq!((hdd.logical_block_shift, hdd.physical_block_shift), (9, 12));
        assert_eq!((hdd.max_sectors, hdd.sectors, hdd.types), (2048, 1000, TYPE_BASIC));
        let ssd = DiskLimits { rotational: false, fua: true, volatile_write_cache: false, ..limits() };
        let ssd = Params::new(&ssd, 1 << 20);
        assert_eq!(ssd.attributes, attribute::FUA);
        assert_eq!((ssd.types, ssd.discard_granularity), (TYPE_BASIC | TYPE_DISCARD, 4096));
    }

    #[test]
    fn a_device_never_asks_for_more_than_the_driver_gives() {
        let huge = DiskLimits { queue_depth: 65_535, max_hw_sectors: 1 << 22, hw_queues: 8, ..limits() };
        let info = DeviceInfo::new(&huge, None, u64::MAX);
        assert_eq!((info.queue_depth, info.hw_queues, info.id), (4096, 8, u32::MAX));
        assert_eq!(info.io_bytes_max, IO_BYTES_MAX);
        assert_eq!(info.flags, feature::CMD_IOCTL_ENCODE | feature::NO_AUTO_PART_SCAN);
        assert_eq!(DeviceInfo::new(&huge, Some(3), 0).flags, feature::CMD_IOCTL_ENCODE);
    }
}
