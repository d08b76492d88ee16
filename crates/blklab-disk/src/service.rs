//! The serving thread: takes requests, asks the model, returns completions, on any transport.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use blklab_core::disk::{Command, Completion, Op, Tag};
use blklab_core::units::{Nanos, Sector};
use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;

use crate::config::Config;
use crate::lateness::Summary;
use crate::log::Log;
use crate::store::Store;
use crate::timed::Timed;

/// `CLOCK_MONOTONIC`.
pub fn clock() -> Nanos {
    let now = clock_gettime(ClockId::Monotonic);
    Nanos(now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64)
}

/// A request of the kernel's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// Its number among the requests in flight: less than [`Transport::slots`].
    pub slot: u32,
    /// When the kernel issued it, if it says so.
    pub arrived: Option<Nanos>,
    /// The operation.
    pub op: Op,
    /// First sector; 0 for a flush.
    pub sector: u64,
    /// Length in sectors; 0 for a flush.
    pub sectors: u32,
    /// Force unit access.
    pub fua: bool,
}

/// The way of requests from the kernel to the server and back.
pub trait Transport {
    /// Requests that can be in flight.
    fn slots(&self) -> usize;

    /// Returns completed requests to the kernel; waits until a request has arrived, the device has
    /// ended, or it is `until`. Returns the clock; `now` is the last reading.
    ///
    /// # Errors
    /// The kernel refuses a call that it accepted before.
    fn wait(&mut self, now: Nanos, until: Option<Nanos>) -> io::Result<Nanos>;

    /// The device is gone, and no request is left.
    fn is_over(&self) -> bool;

    /// The requests that arrived in the last [`Transport::wait`], in order.
    fn arrived(&self) -> &[Request];

    /// The data of the write `index` of [`Transport::arrived`]; `None` if they are not wanted.
    fn written(&mut self, index: usize) -> Option<&[u8]>;

    /// Room for what a read returns; `None` if the kernel fills it with zeros.
    ///
    /// # Errors
    /// The kernel refuses a call that it accepted before.
    fn room(&mut self, slot: u32, bytes: usize) -> io::Result<Option<&mut [u8]>>;

    /// Completes a request of `bytes`: a read whose room is filled, or any other. With a number of
    /// an error it has failed.
    ///
    /// # Errors
    /// The kernel refuses a call that it accepted before.
    fn complete(&mut self, slot: u32, bytes: u32, error: Option<i32>) -> io::Result<()>;
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

/// Orders to the serving thread.
#[derive(Debug, Default)]
pub struct Orders {
    /// The epoch of a new model. Zero: no order.
    restart: AtomicU64,
    is_removed: AtomicBool,
}

impl Orders {
    /// As soon as no request is in flight, the disk is at rest again, the measurements are dropped,
    /// and the model's time counts from `epoch` of [`clock`].
    pub fn restart(&self, epoch: Nanos) {
        self.restart.store(epoch.0.max(1), Ordering::Release);
    }

    /// The disk is being removed: the flush that this may bring is not measured.
    pub fn removed(&self) {
        self.is_removed.store(true, Ordering::Release);
    }

    fn take_restart(&self) -> Option<Nanos> {
        match self.restart.load(Ordering::Acquire) {
            0 => None,
            epoch => {
                self.restart.store(0, Ordering::Release);
                Some(Nanos(epoch))
            }
        }
    }
}

/// A request in the server.
#[derive(Clone, Copy, Debug, Default)]
struct InFlight {
    op: Op,
    sector: u64,
    bytes: u32,
    /// The kernel's error number if the store failed.
    failed: Option<i32>,
    /// Its row in the log.
    row: Option<u32>,
}

/// A disk model behind a transport.
pub struct Service<'a, T> {
    transport: T,
    slots: Vec<InFlight>,
    in_flight: u32,
    config: &'a Config,
    timed: Timed,
    store: Store,
    orders: &'a Orders,
    report: Report,
    /// The report without the requests that the removal has brought.
    before_removal: Option<Report>,
}

impl<'a, T: Transport> Service<'a, T> {
    /// Ready to serve.
    ///
    /// # Errors
    /// The kernel refuses a step.
    pub fn new(
        transport: T,
        config: &'a Config,
        store: Store,
        orders: &'a Orders,
    ) -> io::Result<Service<'a, T>> {
        // Otherwise a timer may fire 50 us late, so that it can be combined with others.
        rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1))?;
        Ok(Service {
            slots: vec![InFlight::default(); transport.slots()],
            transport,
            in_flight: 0,
            config,
            timed: Timed::new(&config.model, config.seed, clock()),
            store,
            orders,
            report: Report { log: Log::new(config.log_rows), ..Report::default() },
            before_removal: None,
        })
    }

    /// Serves until the device is stopped.
    ///
    /// # Errors
    /// The kernel refuses a call that it accepted before.
    pub fn serve(mut self) -> io::Result<Report> {
        let mut now = clock();
        while !self.transport.is_over() {
            let before = now;
            now = self.transport.wait(now, self.timed.deadline())?;
            // The model's time until which everything has happened.
            let mut reached = None;
            for index in 0..self.transport.arrived().len() {
                // No request arrives before the last ones, whatever the clocks of CPUs say.
                let at = self.transport.arrived()[index]
                    .arrived
                    .unwrap_or(now)
                    .clamp(reached.unwrap_or(before), now);
                if reached != Some(at) {
                    self.complete(at, now)?;
                    self.restart_if_asked();
                    reached = Some(at);
                }
                self.accept(at, index);
            }
            if reached.is_none_or(|at| at < now) {
                self.complete(now, now)?;
                self.restart_if_asked();
            }
        }
        self.store.close()?;
        Ok(self.before_removal.take().unwrap_or_else(|| self.measured()))
    }

    fn measured(&mut self) -> Report {
        Report {
            lateness: self.timed.lateness().summary(),
            busy_ns: self.timed.busy_ns(),
            data_bytes: self.store.memory_bytes(),
            ..std::mem::take(&mut self.report)
        }
    }

    fn restart_if_asked(&mut self) {
        if self.in_flight == 0
            && let Some(epoch) = self.orders.take_restart()
        {
            self.timed = Timed::new(&self.config.model, self.config.seed, epoch);
            self.report.log.restart();
            // What has gone wrong before does not come right.
            self.report = Report {
                log: std::mem::take(&mut self.report.log),
                errors: self.report.errors,
                ..Report::default()
            };
        }
    }

    /// Returns the requests that completed until `until`; it is `now`.
    fn complete(&mut self, until: Nanos, now: Nanos) -> io::Result<()> {
        self.timed.run_to(until, now);
        for done in 0..self.timed.done().len() {
            let Completion { tag: Tag(slot_index), at, .. } = self.timed.done()[done];
            self.in_flight -= 1;
            let slot = self.slots[slot_index as usize];
            if let Some(row) = slot.row {
                self.report.log.ended(row, at);
            }
            let mut error = slot.failed;
            if slot.op == Op::Read
                && let Some(room) = self.transport.room(slot_index, slot.bytes as usize)?
                && let Err(failed) = self.store.read(slot.sector, room)
            {
                self.report.errors += 1;
                error = Some(error_number(&failed));
            }
            self.transport.complete(slot_index, slot.bytes, error)?;
        }
        Ok(())
    }

    /// Submits an arrived request to the model.
    fn accept(&mut self, at: Nanos, index: usize) {
        if self.before_removal.is_none() && self.orders.is_removed.load(Ordering::Acquire) {
            self.before_removal = Some(self.measured());
        }
        let Request { slot: slot_index, op, sector, sectors, fua, .. } = self.transport.arrived()[index];
        let mut slot = InFlight { op, sector, ..InFlight::default() };
        let bytes = Sector(sectors.into()).to_bytes().0 as u32;
        let outcome = match op {
            Op::Read => {
                slot.bytes = bytes;
                self.report.reads += 1;
                self.report.read_sectors += u64::from(sectors);
                Ok(())
            }
            Op::Write => {
                slot.bytes = bytes;
                self.report.writes += 1;
                self.report.write_sectors += u64::from(sectors);
                match self.transport.written(index) {
                    Some(data) => self.store.write(sector, data),
                    None => Ok(()),
                }
            }
            Op::Flush => {
                self.report.flushes += 1;
                self.store.flush()
            }
            Op::Discard => {
                self.report.discards += 1;
                self.store.discard(sector, u64::from(sectors))
            }
        };
        slot.failed = outcome.err().as_ref().map(error_number);
        self.report.errors += u64::from(slot.failed.is_some());
        self.in_flight += 1;
        let tag = Tag(slot_index);
        // No transport passes on a request's priority.
        let command = Command { tag, op, sector: Sector(sector), sectors, fua };
        slot.row = self.report.log.arrived(self.timed.model_time(at), &command);
        self.slots[slot_index as usize] = slot;
        self.timed.submit(at, command);
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
