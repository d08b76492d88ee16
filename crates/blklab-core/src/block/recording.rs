//! A recording of all bios, as blktrace makes one of a real queue.

use std::collections::HashMap;

use blklab_base::recorded::{Flags, Io, Op as RecordedOp};

use super::{BioChain, BioNode, Block};
use crate::request::{Bio, IoPrio, KERNEL_CPU, Op, PrioClass, ProcessId, Request, RequestId};
use crate::units::Nanos;

/// All bios of a run, in order of arrival.
#[derive(Debug, Default)]
pub(super) struct Recording {
    ios: Vec<Io>,
    /// Bios that have not completed, by their owners: an I/O of several bios has one.
    open: HashMap<u64, Vec<u32>>,
}

/// The number under which a recording has a process: 1 for the first, [`KERNEL`] for the kernel's own threads.
fn pid(process: ProcessId) -> u32 {
    if process.is_kernels() { KERNEL } else { process.0 + 1 }
}

/// The number of the kernel's threads in a recording.
pub const KERNEL: u32 = u32::MAX;

/// A priority as in ioprio_set(2); `None` if it is not set.
fn prio(prio: IoPrio) -> Option<u16> {
    let class = match prio.class {
        PrioClass::None => return None,
        PrioClass::RealTime => 1,
        PrioClass::BestEffort => 2,
        PrioClass::Idle => 3,
    };
    Some(class << 13 | u16::from(prio.level))
}

impl Recording {
    /// A bio comes, with flags of its plug and of the flush before it.
    pub fn queued(&mut self, now: Nanos, bio: &Bio, manner: Flags) {
        self.open.entry(bio.owner).or_default().push(self.ios.len() as u32);
        self.ios.push(Io {
            queued: now,
            sector: bio.sector,
            sectors: bio.sectors,
            op: match bio.op {
                Op::Read => RecordedOp::Read,
                Op::Write => RecordedOp::Write,
                Op::Flush => RecordedOp::Flush,
                Op::Discard => RecordedOp::Discard,
            },
            flags: Flags::default()
                .with_if(bio.sync && bio.op != Op::Read, Flags::SYNC)
                .with_if(bio.fua, Flags::FUA)
                .with(manner),
            pid: pid(bio.process),
            cpu: (bio.cpu != KERNEL_CPU).then_some(bio.cpu),
            prio: prio(bio.prio),
            number: self.ios.len() as u64 + 1,
            ..Io::default()
        });
    }

    /// A bio of `owner` in `request` has completed.
    pub fn completed(&mut self, owner: u64, request: &Request, now: Nanos) {
        let within = |io: &Io| {
            (io.sectors == 0) == (request.op == Op::Flush)
                && io.sector >= request.sector
                && io.end() <= request.end()
        };
        let Some(open) = self.open.get_mut(&owner) else { return };
        let Some(place) = open.iter().position(|&index| within(&self.ios[index as usize])) else { return };
        let io = &mut self.ios[open.remove(place) as usize];
        // A bio that was merged into a request came after it.
        io.inserted = Some(request.inserted.max(io.queued));
        io.issued = Some(request.issued);
        io.completed = Some(now);
        if open.is_empty() {
            self.open.remove(&owner);
        }
    }

    /// The data of a durable write of `owner` are with the disk: it ends with a flush.
    fn data_ended(&mut self, owner: u64, request: &Request) {
        let Some(open) = self.open.get(&owner) else { return };
        let ios = &mut self.ios;
        if let Some(&index) = open.iter().find(|&&index| ios[index as usize].sector == request.sector) {
            let io = &mut ios[index as usize];
            (io.inserted, io.issued) = (Some(request.inserted.max(io.queued)), Some(request.issued));
        }
    }

    /// The flush after the data of a durable write of `owner` has ended.
    fn made_durable(&mut self, owner: u64, now: Nanos) {
        let Some(open) = self.open.get_mut(&owner) else { return };
        let Some(place) = open.iter().position(|&index| self.ios[index as usize].issued.is_some()) else {
            return;
        };
        self.ios[open.remove(place) as usize].completed = Some(now);
        if open.is_empty() {
            self.open.remove(&owner);
        }
    }

    /// All bios.
    pub fn finish(self) -> Vec<Io> {
        self.ios
    }
}

impl Block {
    #[cold]
    pub(super) fn record_completed(&mut self, now: Nanos, id: RequestId) {
        let Some(recording) = &mut self.recording else { return };
        let request = &self.requests[id];
        if request.op == Op::Flush {
            for waiter in &self.flushes.queues[usize::from(request.hw_queue)].running {
                match waiter.since {
                    Some(_) => recording.completed(waiter.owner, request, now),
                    None => recording.made_durable(waiter.owner, now),
                }
            }
            return;
        }
        if request.fua && self.flush_after_fua {
            recording.data_ended(request.owner, request);
            return;
        }
        recording.completed(request.owner, request, now);
        let mut node = request.rest.head;
        while node != BioChain::END {
            let BioNode { owner, next } = self.bios[node as usize];
            recording.completed(owner, request, now);
            node = next;
        }
    }

    /// Records all bios from now on.
    pub fn record(&mut self) {
        self.recording = Some(Box::default());
    }

    /// The recorded bios.
    pub fn recorded(&mut self) -> Vec<Io> {
        self.recording.take().map_or_else(Vec::new, |recording| recording.finish())
    }
}
