//! The plug of the process that submits: requests that it has not given to the scheduler yet.

use super::Block;
use crate::disk::AnyDisk;
use crate::request::RequestId;
use crate::units::Nanos;

/// A plug is flushed when its first request has this size, in older kernels its last one (`BLK_PLUG_FLUSH_SIZE`).
const PLUG_SECTORS: u32 = 128 * 1024 / 512;

impl Block {
    /// Takes a request, after a flush if the plug holds enough (`blk_add_rq_to_plug`).
    #[inline]
    pub(super) fn add_to_plug(&mut self, now: Nanos, id: RequestId, disk: &mut AnyDisk) {
        let judged = if self.rules.plug_judged_by_first { self.plug.first() } else { self.plug.last() };
        let is_large = judged.is_some_and(|&id| self.requests[id].sectors >= PLUG_SECTORS);
        if self.plug.len() >= self.rules.plug_requests || is_large {
            self.unplug(now, disk);
        }
        self.requests[id].clock_stands = true;
        self.plug.push(id);
    }

    /// Flushes the plug to the scheduler, and dispatches requests to the disk (`blk_finish_plug`).
    #[inline]
    pub fn unplug(&mut self, now: Nanos, disk: &mut AnyDisk) {
        if !self.plug.is_empty() {
            self.unplug_all(now, false, disk);
        }
    }

    /// The same for a process that sleeps: the worker dispatches its requests (`from_schedule`).
    pub fn unplug_asleep(&mut self, now: Nanos, disk: &mut AnyDisk) {
        if let Some(&first) = self.plug.first() {
            self.not_later(self.requests[first].hw_queue);
            self.unplug_all(now, self.rules.refuses, disk);
        }
    }

    /// `to_queue`: nothing goes to the driver before it was in the software queue.
    fn unplug_all(&mut self, now: Nanos, to_queue: bool, disk: &mut AnyDisk) {
        if self.rules.plug_sorted {
            let requests = &self.requests;
            self.plug.reverse();
            self.plug.sort_by_key(|&id| requests[id].sector);
        }
        let mut may_refuse = self.rules.refuses && !to_queue;
        for index in 0..self.plug.len() {
            let id = self.plug[index];
            if !to_queue && self.issued_directly(now, id, disk) {
                continue;
            }
            if may_refuse && self.refuse_one(now, id, disk) {
                may_refuse = false;
                continue;
            }
            self.mark(self.requests[id].hw_queue);
            self.insert(now, id, true);
        }
        self.plug.clear();
        self.run_now(now, disk);
    }
}
