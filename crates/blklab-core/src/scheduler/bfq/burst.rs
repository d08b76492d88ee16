//! Bursts: many queues that become active together, as when a service starts its workers or
//! a build its compilers. For those throughput counts, not the latency of each, so they are
//! neither raised nor waited for.

use super::Bfq;
use super::queue::{Jiffies, QueueId};
use crate::scheduler::journal::Decision;

/// So many queues make a burst large (`bfq_large_burst_thresh`).
const LARGE: u32 = 8;
/// Queues that come within so long of each other belong to one burst (`bfq_burst_interval`).
const INTERVAL_MS: u64 = 180;
/// A queue so shortly after a split begins no burst.
const AFTER_SPLIT_MS: u64 = 10;

/// The burst that goes on.
#[derive(Debug)]
pub(super) struct Burst {
    pub interval: Jiffies,
    after_split: Jiffies,
    last_joined: Jiffies,
    size: u32,
    pub large: bool,
    /// The group of its queues.
    group: Option<u32>,
    /// Its queues, while it is not large.
    queues: Vec<QueueId>,
}

impl Burst {
    pub fn new(tuning: &super::tunables::Tuning) -> Burst {
        Burst {
            interval: tuning.ticks_of_ms(INTERVAL_MS),
            after_split: tuning.ticks_of_ms(AFTER_SPLIT_MS),
            last_joined: 0,
            size: 0,
            large: false,
            group: None,
            queues: Vec::new(),
        }
    }
}

impl Bfq {
    /// A request of a queue that has just been made: it begins a burst or joins one.
    pub(super) fn consider_burst(&mut self, q: QueueId) {
        let queue = &self.queues[q.index()];
        if !queue.just_created || (self.burst.size == 0 && self.total_busy() > 0) {
            return;
        }
        let after_split = !self.clock.is_past(queue.split_time + self.burst.after_split);
        if queue.in_burst_list || queue.in_large_burst || after_split {
            return;
        }
        let group = Some(self.group(q));
        if self.clock.is_past(self.burst.last_joined + self.burst.interval) || group != self.burst.group {
            self.burst.large = false;
            self.begin_burst(q, group);
        } else if self.burst.large {
            self.queues[q.index()].in_large_burst = true;
            self.note(q, Decision::LargeBurst);
        } else {
            self.join_burst(q);
        }
        self.burst.last_joined = self.clock.jiffies;
    }

    fn begin_burst(&mut self, q: QueueId, group: Option<u32>) {
        self.scatter_burst();
        self.burst.size = 0;
        if self.total_busy() == 0 {
            self.list_in_burst(q);
            self.burst.size = 1;
        }
        self.burst.group = group;
    }

    fn join_burst(&mut self, q: QueueId) {
        self.burst.size += 1;
        if self.burst.size != LARGE {
            return self.list_in_burst(q);
        }
        self.burst.large = true;
        self.list_in_burst(q);
        for index in 0..self.burst.queues.len() {
            let member = self.burst.queues[index];
            self.queues[member.index()].in_large_burst = true;
            self.note(member, Decision::LargeBurst);
        }
        self.scatter_burst();
    }

    /// Add a queue to the list without counting it.
    pub(super) fn list_in_burst(&mut self, q: QueueId) {
        self.queues[q.index()].in_burst_list = true;
        self.burst.queues.push(q);
    }

    fn scatter_burst(&mut self) {
        while let Some(member) = self.burst.queues.pop() {
            self.queues[member.index()].in_burst_list = false;
        }
    }

    /// A queue leaves the list; true if it stood there.
    pub(super) fn leave_burst(&mut self, q: QueueId) -> bool {
        let listed = std::mem::take(&mut self.queues[q.index()].in_burst_list);
        if listed {
            self.burst.queues.retain(|&other| other != q);
        }
        listed
    }

    /// A queue of one process is gone.
    pub(super) fn burst_member_gone(&mut self, q: QueueId) {
        if self.leave_burst(q) && self.queues[q.index()].owner.is_some() && self.burst.size > 0 {
            self.burst.size -= 1;
        }
    }
}
