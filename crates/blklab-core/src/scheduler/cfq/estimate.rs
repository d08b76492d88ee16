//! What CFQ finds out about processes and the disk.

use super::Cfq;
use super::state::QueueId;
use crate::request::{Request, RequestId};

/// More sectors than this between two requests are a seek (`CFQQ_SEEK_THR`).
const SEEK_SECTORS: u64 = 8 * 100;
/// On flash a request of fewer sectors is a "seek": it has nothing to gain from order
/// (`CFQQ_SECT_THR_NONROT`).
const SMALL_SECTORS: u32 = 2 * 32;
/// A disk that has this many requests at once takes commands in a queue (`CFQ_HW_QUEUE_MIN`).
const QUEUE_MIN: u32 = 5;
/// How often one looks before one is sure.
const QUEUE_SAMPLES: u32 = 50;

impl Cfq {
    /// A request has come (`cfq_update_io_thinktime`, `cfq_update_io_seektime`).
    pub(super) fn learn_from(&mut self, id: RequestId, request: &Request) {
        let slot = self.slots[id.index()];
        let now = self.now;
        let queue = &mut self.queues[slot.queue];
        let group = &mut self.groups[queue.group];
        if queue.sync {
            self.contexts[slot.context].think.sample(now, self.tuned.slice_idle);
            let tree = queue.tree.expect("a queue with a request is in a service tree");
            group.trees[tree].think.sample(now, self.tuned.slice_idle);
        }
        group.think.sample(now, self.tuned.group_idle);

        let far = if self.limits.rotational {
            let last = queue.last_position;
            last != 0 && request.sector.0.abs_diff(last) > SEEK_SECTORS
        } else {
            request.sectors < SMALL_SECTORS
        };
        queue.seek_history = queue.seek_history << 1 | u32::from(far);
    }

    /// Next to the end of the last request (`cfq_rq_close`).
    pub(super) fn remember_position(&mut self, q: QueueId, request: &Request) {
        self.queues[q].last_position = request.end().0;
    }

    /// The disk takes several commands at once, as far as is known (`hw_tag`).
    pub(super) fn queues_commands(&self) -> bool {
        self.hw_tag != Some(false)
    }

    pub(super) fn is_flash(&self) -> bool {
        !self.limits.rotational
    }

    /// A request has ended: how many has the disk had at once (`cfq_update_hw_tag`)?
    pub(super) fn look_at_depth(&mut self) {
        self.hw_tag_depth = self.hw_tag_depth.max(self.in_driver);
        if self.hw_tag == Some(true) || (self.queued <= QUEUE_MIN && self.in_driver <= QUEUE_MIN) {
            return;
        }
        // Whom one idles for keeps the disk from being filled.
        if let Some(q) = self.active {
            let queue = &self.queues[q];
            let own = queue.dispatched + queue.sorted.len() as u32;
            if queue.flags.idle_window && own < QUEUE_MIN && self.in_driver < QUEUE_MIN {
                return;
            }
        }
        if self.hw_tag_samples < QUEUE_SAMPLES {
            self.hw_tag_samples += 1;
            return;
        }
        self.hw_tag = Some(self.hw_tag_depth >= QUEUE_MIN);
    }
}
