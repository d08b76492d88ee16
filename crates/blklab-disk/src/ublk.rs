//! ublk as a transport: requests come and go through io_uring.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

use blklab_core::disk::Op;
use blklab_core::units::{Nanos, SECTOR_BYTES};
use io_uring::{IoUring, cqueue, opcode, squeue, types};

use crate::ring::{self, Timer};
use crate::service::{Request, Transport, clock};
use crate::shared::{Buffers, Descriptors};
use crate::uapi::{self, DeviceInfo, Queue as QueueOp};

/// The maximum of entries in a ring (`IORING_MAX_ENTRIES`).
const RING_MAX: u32 = 32_768;

/// All queues of a device.
pub struct Queues {
    file: File,
    depth: u16,
    descriptors: Vec<Descriptors>,
    buffers: Buffers,
    // Declared after the buffers and so dropped after them. That is safe: the driver copies only
    // within our own calls.
    ring: IoUring<squeue::Entry>,
    timer: Timer,
    slots: usize,
    aborted: usize,
    arrived: Vec<Request>,
}

impl Queues {
    /// Opens the character device of `info` and fetches requests.
    ///
    /// # Errors
    /// The kernel refuses a step.
    pub fn open(info: &DeviceInfo) -> io::Result<Queues> {
        let file = File::options().read(true).write(true).open(format!("/dev/ublkc{}", info.id))?;
        let descriptors = (0..info.hw_queues).map(|queue| Descriptors::map(&file, queue, info.queue_depth));
        let descriptors = descriptors.collect::<io::Result<Vec<_>>>()?;
        let slots = usize::from(info.hw_queues) * usize::from(info.queue_depth);
        let mut queues = Queues {
            file,
            depth: info.queue_depth,
            descriptors,
            buffers: Buffers::new(slots, info.io_bytes_max as usize)?,
            ring: new_ring(slots)?,
            timer: Timer::Absolute,
            slots,
            aborted: 0,
            arrived: Vec::with_capacity(slots),
        };
        for index in 0..slots as u32 {
            queues.push(index, QueueOp::Fetch, 0)?;
        }
        queues.ring.submit()?;
        Ok(queues)
    }

    fn push(&mut self, index: u32, op: QueueOp, result: i32) -> io::Result<()> {
        let (queue, tag) = self.place(index);
        let command = uapi::queue_command(queue, tag, result, self.buffers.address(index as usize));
        let fd = types::Fd(self.file.as_raw_fd());
        let entry = opcode::UringCmd16::new(fd, op as u32).cmd(command).build().user_data(index.into());
        ring::push_queue(&mut self.ring, &entry)
    }

    /// Queue and tag of a slot.
    fn place(&self, index: u32) -> (u16, u16) {
        let depth = u32::from(self.depth);
        ((index / depth) as u16, (index % depth) as u16)
    }

    /// A request as the driver describes it.
    fn request(&self, slot: u32) -> Request {
        let (queue, tag) = self.place(slot);
        let told = self.descriptors[usize::from(queue)].get(tag);
        let op = match told.op_flags as u8 {
            uapi::op::READ => Op::Read,
            uapi::op::WRITE => Op::Write,
            uapi::op::FLUSH => Op::Flush,
            uapi::op::DISCARD => Op::Discard,
            // The parameters offer no other operation to the driver.
            other => unreachable!("the kernel asks for operation {other}"),
        };
        let (sector, sectors) = if op == Op::Flush { (0, 0) } else { (told.sector, told.sectors) };
        let fua = op == Op::Write && told.op_flags & uapi::op::FLAG_FUA != 0;
        Request { slot, arrived: None, op, sector, sectors, fua }
    }
}

impl Transport for Queues {
    fn slots(&self) -> usize {
        self.slots
    }

    fn wait(&mut self, now: Nanos, until: Option<Nanos>) -> io::Result<Nanos> {
        ring::enter(&mut self.ring, &mut self.timer, now, until)?;
        let now = clock();
        self.arrived.clear();
        loop {
            let next = self.ring.completion().next();
            let Some(completion) = next else { return Ok(now) };
            match completion.result() {
                0 => self.arrived.push(self.request(completion.user_data() as u32)),
                uapi::ABORTED => self.aborted += 1,
                error => return Err(io::Error::from_raw_os_error(-error)),
            }
        }
    }

    fn is_over(&self) -> bool {
        self.aborted >= self.slots
    }

    fn arrived(&self) -> &[Request] {
        &self.arrived
    }

    fn written(&mut self, index: usize) -> Option<&[u8]> {
        let request = self.arrived[index];
        Some(self.buffers.get(request.slot as usize, request.sectors as usize * SECTOR_BYTES as usize))
    }

    fn room(&mut self, slot: u32, bytes: usize) -> io::Result<Option<&mut [u8]>> {
        Ok(Some(self.buffers.get(slot as usize, bytes)))
    }

    fn complete(&mut self, slot: u32, bytes: u32, error: Option<i32>) -> io::Result<()> {
        self.push(slot, QueueOp::CommitAndFetch, error.map_or(bytes as i32, |error| -error))
    }
}

/// A ring for one thread that runs the driver's work while it waits; on kernels before 6.1, without
/// that.
fn new_ring(requests: usize) -> io::Result<IoUring<squeue::Entry>> {
    let entries = (requests as u32).next_power_of_two().min(RING_MAX);
    let plain = || {
        let mut builder = IoUring::<squeue::Entry, cqueue::Entry>::builder();
        builder.setup_cqsize(2 * entries).setup_clamp();
        builder
    };
    let fast = plain().setup_single_issuer().setup_defer_taskrun().build(entries);
    match fast {
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => plain().build(entries),
        ring => ring,
    }
}
