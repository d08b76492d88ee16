//! The queue in service: since when, for which process, and how many sectors it has got.
//!
//! One queue at a time is in service, or none, between the end of a turn and the choice of the next.
//! The scheduler needs four facts of the turn: the queue; the process of its first request, for which
//! the disk idles; when the timeout started, from which the rate of the turn is measured; and the
//! sectors chosen, which only the journal shows. The sectors that count against the budget are in
//! B-WF2Q+.
//!
//! A turn begins without a process and with no sectors. The first request that is chosen sets the
//! process; each one adds its sectors; the first completion sets the time. When the turn ends, queue
//! and process are none. The time stays: a turn that ends before its first completion has none of its
//! own, and is not measured (see [`turn`](super::turn)).
//!
//! Follows `active_queue`, `active_cic` and `last_budget_start` of `bfq_data` in the patch. The
//! sectors are not in the patch.

use super::QueueId;
use crate::scheduler::shared::linux_2_6_28::tasks::TaskIndex;
use crate::units::Nanos;

/// The turn of the queue in service, or of none.
#[derive(Debug)]
pub(in crate::scheduler::bfq_2008) struct Service {
    queue: Option<QueueId>,
    /// The process of the first request.
    task: Option<TaskIndex>,
    /// Sectors chosen.
    sectors: u32,
    /// When the timeout started.
    timed_from: Nanos,
}

impl Service {
    /// No queue is in service.
    pub const NONE: Service = Service { queue: None, task: None, sectors: 0, timed_from: Nanos::ZERO };

    #[inline]
    pub fn queue(&self) -> Option<QueueId> {
        self.queue
    }

    #[inline]
    pub fn is_of(&self, q: QueueId) -> bool {
        self.queue == Some(q)
    }

    /// The process of the turn's first request, which the disk idles for.
    pub fn task(&self) -> Option<TaskIndex> {
        self.task
    }

    pub fn sectors(&self) -> u32 {
        self.sectors
    }

    /// When the first request completed; until then the time of an earlier turn.
    pub fn timed_from(&self) -> Nanos {
        self.timed_from
    }

    pub fn begin(&mut self, q: QueueId) {
        *self = Service { queue: Some(q), timed_from: self.timed_from, ..Service::NONE };
    }

    /// A request of the process is chosen.
    #[inline]
    pub fn chosen(&mut self, task: TaskIndex, sectors: u32) {
        self.task.get_or_insert(task);
        self.sectors += sectors;
    }

    /// The first request completes.
    pub fn starts(&mut self, now: Nanos) {
        self.timed_from = now;
    }

    pub fn end(&mut self) {
        self.queue = None;
        self.task = None;
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::leaves;
    use super::*;

    #[test]
    fn a_turn_counts_its_sectors_and_keeps_the_process_of_its_first_request() {
        let (mut service, q) = (Service::NONE, leaves(2));
        service.begin(q[1]);
        assert!(service.is_of(q[1]) && !service.is_of(q[0]));
        service.chosen(7, 8);
        service.chosen(9, 16);
        assert_eq!((service.task(), service.sectors()), (Some(7), 24));
        service.starts(Nanos(5));
        service.end();
        assert_eq!((service.queue(), service.task()), (None, None));
        service.begin(q[0]);
        assert_eq!((service.task(), service.sectors(), service.timed_from()), (None, 0, Nanos(5)));
    }
}
