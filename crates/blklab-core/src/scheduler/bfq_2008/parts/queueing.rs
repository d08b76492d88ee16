//! Does the disk queue commands? If it does, the disk does not idle for processes that seek: it
//! gains more from several requests at once.
//!
//! Follows `bfq_update_hw_tag` of the patch: at each completion with at least four requests waiting
//! or in flight it takes a sample, and after 33 samples it compares the maximum in flight with
//! four. Until the first answer the disk counts as one that queues commands.

/// With this many requests, in flight or waiting, the disk could queue commands
/// (`BFQ_HW_QUEUE_THRESHOLD`).
const THRESHOLD: u32 = 4;
/// More samples than this give an answer (`BFQ_HW_QUEUE_SAMPLES`).
const SAMPLES: u32 = 32;

/// The answer (`hw_tag`), and the samples for the next one.
#[derive(Clone, Copy, Debug)]
pub(in crate::scheduler::bfq_2008) struct QueueingWatch {
    queueing: bool,
    in_driver_max: u32,
    samples: u32,
}

impl QueueingWatch {
    /// Before the first sample.
    pub const NEW: QueueingWatch = QueueingWatch { queueing: true, in_driver_max: 0, samples: 0 };

    #[inline]
    pub fn is_queueing(&self) -> bool {
        self.queueing
    }

    /// A request completes while `in_driver` requests, including this one, are at the disk and
    /// `queued` wait.
    #[inline]
    pub fn completed(&mut self, in_driver: u32, queued: u32) {
        self.in_driver_max = self.in_driver_max.max(in_driver);
        if in_driver + queued < THRESHOLD {
            return;
        }
        self.samples += 1;
        if self.samples > SAMPLES {
            *self = QueueingWatch { queueing: self.in_driver_max > THRESHOLD, ..QueueingWatch::NEW };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_that_never_has_more_than_one_command_does_not_queue() {
        let mut watch = QueueingWatch::NEW;
        // Too few requests for a sample.
        (0..100).for_each(|_| watch.completed(1, 2));
        assert!(watch.is_queueing());
        (0..33).for_each(|_| watch.completed(1, 3));
        assert!(!watch.is_queueing());
        (0..33).for_each(|turn| watch.completed(turn % 5 + 1, 3));
        assert!(watch.is_queueing());
    }

    #[test]
    fn four_commands_at_once_are_not_yet_queueing() {
        let mut watch = QueueingWatch::NEW;
        (0..32).for_each(|_| watch.completed(4, 0));
        assert!(watch.is_queueing(), "the answer comes with the 33rd sample");
        watch.completed(4, 0);
        assert!(!watch.is_queueing());
    }
}
