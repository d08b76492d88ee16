//! The serving thread: takes requests, asks the model, returns completions.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicU64, Ordering};

use blklab_core::disk::{Command, Completion, Op, Tag};
use blklab_core::units::{Nanos, SECTOR_BYTES, Sector};
use io_uring::{IoUring, cqueue, opcode, squeue, types};
use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;

use crate::lateness::Summary;
use crate::log::Log;
use crate::ring::{self, Timer};
use crate::server::Config;
use crate::shared::{Buffers, Descriptors};
use crate::store::Store;
use crate::timed::Timed;
use crate::uapi::{self, DeviceInfo, Queue as QueueOp};

/// The maximum of entries in a ring (`IORING_MAX_ENTRIES`).
const RING_MAX: u32 = 32_768;

/// `CLOCK_MONOTONIC`.
pub fn clock() -> Nanos {
    let now = clock_gettime(ClockId::Monotonic);
    Nanos(now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64)
}

/// Requests served, by operation, and their lateness.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Report {
    /// Reads.
    pub reads: u64,
    /// Sectors read.
    pub read_sectors: u64,
    /// Writes.
    pub writes: u64,
    /// Sectors written.
    pub write_sectors: u64,
    /// Flushes.
    pub flushes: u64,
    /// Discards.
    pub discards: u64,
    /// Requests that failed because memory or the data file was full.
    pub errors: u64,
    /// How late completions were returned.
    pub lateness: Summary,
    /// Time that the model was busy, ns.
    pub busy_ns: u64,
    /// Bytes of memory that hold data.
    pub data_bytes: u64,
    /// The first requests.
    #[serde(skip)]
    pub log: Log,
}

/// Orders a new model from the serving thread. Zero: no order.
#[derive(Debug, Default)]
pub struct Restart(AtomicU64);

impl Restart {
    /// As soon as no request is in flight, the disk is at rest again, the measurements are dropped,
    /// and the model's time counts from `epoch` of [`clock`].
    pub fn ask(&self, epoch: Nanos) {
        self.0.store(epoch.0.max(1), Ordering::Release);
    }

    fn take(&self) -> Option<Nanos> {
        match self.0.load(Ordering::Acquire) {
            0 => None,
            epoch => {
                self.0.store(0, Ordering::Release);
                Some(Nanos(epoch))
            }
        }
    }
}

/// A request in the server.
#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    op: Op,
    sector: u64,
    bytes: u32,
    /// The kernel's error number if the store failed.
    failed: Option<i32>,
    /// Its row in the log.
    row: Option<u32>,
}

/// All queues of a device, ready to serve.
pub struct Queues<'a> {
    file: File,
    depth: u16,
    descriptors: Vec<Descriptors>,
    buffers: Buffers,
    // Declared after the buffers and so dropped after them. That is safe: the driver copies only
    // within our own calls.
    ring: IoUring<squeue::Entry>,
    timer: Timer,
    slots: Vec<Slot>,
    in_flight: u32,
    aborted: usize,
    arrived: Vec<u32>,
    config: &'a Config,
    timed: Timed,
    store: Store,
    restart: &'a Restart,
    report: Report,
}

impl<'a> Queues<'a> {
    /// Opens the character device of `info` and fetches requests.
    ///
    /// # Errors
    /// The kernel refuses a step.
    pub fn open(
        info: &DeviceInfo,
        config: &'a Config,
        store: Store,
        restart: &'a Restart,
    ) -> io::Result<Queues<'a>> {
        // Otherwise a timer may fire 50 us late, so that it can be combined with others.
        rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1))?;
        let file = File::options().read(true).write(true).open(format!("/dev/ublkc{}", info.id))?;
        let descriptors = (0..info.hw_queues).map(|queue| Descriptors::map(&file, queue, info.queue_depth));
        let descriptors = descriptors.collect::<io::Result<Vec<_>>>()?;
        let count = usize::from(info.hw_queues) * usize::from(info.queue_depth);
        let now = clock();
        let mut queues = Queues {
            file,
            depth: info.queue_depth,
            descriptors,
            buffers: Buffers::new(count, info.io_bytes_max as usize)?,
            ring: new_ring(count)?,
            timer: Timer::Absolute,
            slots: vec![Slot::default(); count],
            in_flight: 0,
            aborted: 0,
            arrived: Vec::with_capacity(count),
            config,
            timed: Timed::new(&config.model, config.seed, now),
            store,
            restart,
            report: Report { log: Log::new(config.log_rows), ..Report::default() },
        };
        for index in 0..count as u32 {
            queues.push(index, QueueOp::Fetch, 0)?;
        }
        queues.ring.submit()?;
        Ok(queues)
    }

    /// Serves until the device is stopped.
    ///
    /// # Errors
    /// The kernel refuses a call that it accepted before.
    pub fn serve(mut self) -> io::Result<Report> {
        let mut now = clock();
        while self.aborted < self.slots.len() {
            ring::enter(&mut self.ring, &mut self.timer, now, self.timed.deadline())?;
            now = clock();
            self.complete(now)?;
            self.collect()?;
            if self.in_flight == 0
                && let Some(epoch) = self.restart.take()
            {
                self.timed = Timed::new(&self.config.model, self.config.seed, epoch);
                self.report.log.restart();
                self.report = Report { log: std::mem::take(&mut self.report.log), ..Report::default() };
            }
            self.accept(now);
        }
        self.store.flush()?;
        Ok(Report {
            lateness: self.timed.lateness().summary(),
            busy_ns: self.timed.busy_ns(),
            data_bytes: self.store.memory_bytes(),
            ..self.report
        })
    }

    /// Returns the requests that completed until `now`.
    fn complete(&mut self, now: Nanos) -> io::Result<()> {
        self.timed.run_to(now);
        for done in 0..self.timed.done().len() {
            let Completion { tag: Tag(slot_index), at, .. } = self.timed.done()[done];
            self.in_flight -= 1;
            let slot = self.slots[slot_index as usize];
            if let Some(row) = slot.row {
                self.report.log.ended(row, at);
            }
            let mut result = slot.failed.map_or(slot.bytes as i32, |error| -error);
            if slot.op == Op::Read {
                let data = self.buffers.get(slot_index as usize, slot.bytes as usize);
                if let Err(error) = self.store.read(slot.sector, data) {
                    self.report.errors += 1;
                    result = -error_number(&error);
                }
            }
            self.push(slot_index, QueueOp::CommitAndFetch, result)?;
        }
        Ok(())
    }

    /// Takes the driver's completions: new requests, or the end.
    fn collect(&mut self) -> io::Result<()> {
        self.arrived.clear();
        for completion in self.ring.completion() {
            match completion.result() {
                0 => self.arrived.push(completion.user_data() as u32),
                uapi::ABORTED => self.aborted += 1,
                error => return Err(io::Error::from_raw_os_error(-error)),
            }
        }
        Ok(())
    }

    /// Submits arrived requests to the model.
    fn accept(&mut self, now: Nanos) {
        for at in 0..self.arrived.len() {
            let index = self.arrived[at];
            let (queue, tag) = self.place(index);
            let request = self.descriptors[usize::from(queue)].get(tag);
            let sectors = request.sectors;
            let mut slot = Slot { sector: request.sector, ..Slot::default() };
            match request.op_flags as u8 {
                uapi::op::READ => {
                    slot.bytes = sectors * SECTOR_BYTES as u32;
                    self.report.reads += 1;
                    self.report.read_sectors += u64::from(sectors);
                }
                uapi::op::WRITE => {
                    slot.op = Op::Write;
                    slot.bytes = sectors * SECTOR_BYTES as u32;
                    self.report.writes += 1;
                    self.report.write_sectors += u64::from(sectors);
                    let data = self.buffers.get(index as usize, slot.bytes as usize);
                    slot.failed = self.store.write(slot.sector, data).err().as_ref().map(error_number);
                }
                uapi::op::FLUSH => {
                    slot.op = Op::Flush;
                    self.report.flushes += 1;
                    slot.failed = self.store.flush().err().as_ref().map(error_number);
                }
                uapi::op::DISCARD => {
                    slot.op = Op::Discard;
                    self.report.discards += 1;
                    let gone = self.store.discard(slot.sector, u64::from(sectors));
                    slot.failed = gone.err().as_ref().map(error_number);
                }
                // The parameters offer no other operation to the driver.
                other => unreachable!("the kernel asks for operation {other}"),
            }
            self.report.errors += u64::from(slot.failed.is_some());
            self.in_flight += 1;
            let flush = slot.op == Op::Flush;
            let command = Command {
                tag: Tag(index),
                op: slot.op,
                sector: Sector(if flush { 0 } else { slot.sector }),
                sectors: if flush { 0 } else { sectors },
                fua: slot.op == Op::Write && request.op_flags & uapi::op::FLAG_FUA != 0,
                // ublk does not pass on a request's priority.
            };
            slot.row = self.report.log.arrived(self.timed.model_time(now), &command);
            self.slots[index as usize] = slot;
            self.timed.submit(now, command);
        }
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

fn error_number(error: &io::Error) -> i32 {
    const EIO: i32 = 5;
    const ENOSPC: i32 = 28;
    match error.kind() {
        io::ErrorKind::StorageFull => ENOSPC,
        _ => error.raw_os_error().unwrap_or(EIO),
    }
}
