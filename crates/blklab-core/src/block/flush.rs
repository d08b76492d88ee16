//! Flushes of the disk's cache: one request at a time, for all bios that wait for one (`blk-flush.c`).

use super::Block;
use super::tags::NO_TAG;
use crate::disk::AnyDisk;
use crate::request::{Op, ProcessId, Request, RequestId};
use crate::units::Nanos;

/// Flushes: one is in flight at a time; those that come meanwhile share the next one.
#[derive(Debug, Default)]
pub(super) struct Flushes {
    /// Owners of those that came since.
    pub waiting: Vec<u64>,
    /// Owners of those that are in flight.
    pub running: Vec<u64>,
    /// The request that carries `running`.
    pub request: Option<RequestId>,
    /// The driver keeps it until the disk has nothing else to do.
    pub deferred: bool,
}

impl Block {
    /// A flush waits and none is in flight.
    #[inline]
    pub(super) fn flush_is_due(&self) -> bool {
        !self.flushes.waiting.is_empty() && self.flushes.request.is_none()
    }

    /// The driver has a flush, beside which it takes nothing else.
    #[inline]
    pub(super) fn flush_excludes(&self) -> bool {
        self.rules.flush_alone && self.flushes.request.is_some()
    }

    /// Issues a flush for all bios that wait for one.
    pub(super) fn issue_flush(&mut self, now: Nanos, disk: &mut AnyDisk) {
        std::mem::swap(&mut self.flushes.waiting, &mut self.flushes.running);
        self.account(now);
        self.waiting += 1;
        let id = self.requests.insert(Request {
            op: Op::Flush,
            sync: true,
            process: ProcessId::KERNEL,
            clock_stands: false,
            inserted: now,
            ..Request::default()
        });
        let tag = self.hw_queues[0].tags.take(u32::MAX).unwrap_or(NO_TAG);
        self.set_tag(id, tag);
        self.hw_queues[0].allocated[1] += 1;
        self.flushes.request = Some(id);
        self.issue(now, id, disk);
    }

    /// A flush that the driver keeps goes to the disk, once that has nothing else to do.
    #[cold]
    pub(super) fn start_deferred(&mut self, now: Nanos, disk: &mut AnyDisk) {
        let flush = self.flushes.request.filter(|_| self.hw_queues[0].in_flight == 1);
        if let Some(flush) = flush {
            self.flushes.deferred = false;
            self.give(now, flush, disk);
        }
    }
}
