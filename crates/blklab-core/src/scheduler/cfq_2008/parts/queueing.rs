//! Does the disk queue commands? If it does, the disk does not idle for processes that seek, and on flash
//! for none: it gains more from several requests at once.
//!
//! Each completion while more than five requests wait, or more than five are at the disk, is a sample. After
//! 51 of them the disk queues commands if there were ever five at it at once. Until then it counts as one
//! that does.
//!
//! Follows `hw_tag` and `cfq_update_hw_tag` of Linux 2.6.28.

/// `CFQ_HW_QUEUE_MIN`
const QUEUE_MIN: u32 = 5;
/// More samples than this give an answer.
const SAMPLES: u32 = 50;

/// The answer, and the samples for the next one.
#[derive(Clone, Copy, Debug)]
pub(in crate::scheduler::cfq_2008) struct QueueingWatch {
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
        if queued <= QUEUE_MIN && in_driver <= QUEUE_MIN {
            return;
        }
        self.samples += 1;
        if self.samples > SAMPLES {
            *self = QueueingWatch { queueing: self.in_driver_max >= QUEUE_MIN, ..QueueingWatch::NEW };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_that_never_has_more_than_one_command_does_not_queue() {
        let mut watch = QueueingWatch::NEW;
        (0..100).for_each(|_| watch.completed(1, 5));
        assert!(watch.is_queueing(), "too few wait for a sample");
        (0..50).for_each(|_| watch.completed(1, 6));
        assert!(watch.is_queueing(), "the answer comes with the 51st sample");
        watch.completed(1, 6);
        assert!(!watch.is_queueing());
    }

    #[test]
    fn five_commands_at_once_are_queueing() {
        for (most, queueing) in [(4, false), (5, true)] {
            let mut watch = QueueingWatch::NEW;
            watch.completed(most, 0);
            (0..51).for_each(|_| watch.completed(1, 6));
            assert_eq!(watch.is_queueing(), queueing, "{most}");
        }
    }
}
