//! Does the disk queue commands? A disk that orders commands itself gains less from idling; flash
//! that works on many commands at once gains nothing.
//!
//! Follows `bfq_update_hw_tag` of Linux 7.3. At each completion with enough requests for more than
//! three in flight, it takes a sample: the maximum in flight. After 32 samples the disk queues
//! commands if it ever had more than three in flight. "Yes" is final, "no" is checked again. Until
//! the first answer the disk counts as one that queues commands, as with the kernel's `hw_tag` of
//! -1.

use super::seek::DiskKind;

/// With more requests in flight than this, the disk queues commands (`BFQ_HW_QUEUE_THRESHOLD`).
pub(in crate::scheduler::bfq) const QUEUEING_REQUESTS: u32 = 3;
/// Samples until the decision.
const QUEUEING_SAMPLES: u32 = 32;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    Unknown,
    No,
    Yes,
}

/// The samples so far and the answer.
#[derive(Debug)]
pub(in crate::scheduler::bfq) struct QueueingWatch {
    disk: DiskKind,
    found: Found,
    max_in_driver: u32,
    samples: u32,
}

impl QueueingWatch {
    pub fn new(disk: DiskKind) -> QueueingWatch {
        QueueingWatch { disk, found: Found::Unknown, max_in_driver: 0, samples: 0 }
    }

    /// The disk queues commands, or the answer is still open.
    #[inline]
    pub fn may_queue(&self) -> bool {
        self.found != Found::No
    }

    /// The disk is not rotational and queues commands (`nonrot_with_queueing`).
    #[inline]
    pub fn is_flash_with_queueing(&self) -> bool {
        !self.disk.rotational && self.may_queue()
    }

    /// The recent maximum of requests in flight.
    #[inline]
    pub fn max_in_driver(&self) -> u32 {
        self.max_in_driver
    }

    /// A request completes. `in_driver` requests are in flight, including this one, and `waiting`
    /// requests wait. `is_starved`: the queue in service leaves the disk without commands, so the
    /// sample says nothing.
    #[inline]
    pub fn completed(&mut self, in_driver: u32, waiting: u32, is_starved: impl FnOnce() -> bool) {
        self.max_in_driver = self.max_in_driver.max(in_driver);
        if self.found == Found::Yes || in_driver + waiting <= QUEUEING_REQUESTS || is_starved() {
            return;
        }
        self.samples += 1;
        if self.samples <= QUEUEING_SAMPLES {
            return;
        }
        self.found = if self.max_in_driver > QUEUEING_REQUESTS { Found::Yes } else { Found::No };
        self.max_in_driver = 0;
        self.samples = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(in_driver: u32, samples: u32) -> QueueingWatch {
        let mut watch = QueueingWatch::new(DiskKind { rotational: false });
        (0..samples).for_each(|_| watch.completed(in_driver, 10, || false));
        watch
    }

    #[test]
    fn a_disk_counts_as_queueing_until_33_samples_show_three_requests_at_most() {
        assert!(after(3, 32).is_flash_with_queueing());
        assert!(!after(3, 33).may_queue());
        assert!(after(4, 33).may_queue());
    }

    #[test]
    fn no_is_tried_again_and_yes_is_final() {
        let mut watch = after(1, 33);
        (0..33).for_each(|_| watch.completed(4, 0, || false));
        assert!(watch.may_queue());
        (0..100).for_each(|_| watch.completed(1, 10, || false));
        assert!(watch.may_queue());
    }

    #[test]
    fn a_starved_disk_gives_no_samples() {
        let mut watch = after(1, 0);
        (0..100).for_each(|_| watch.completed(1, 10, || true));
        (0..100).for_each(|_| watch.completed(1, 2, || false));
        assert!(watch.may_queue());
    }

    #[test]
    fn a_hard_disk_is_no_flash_whatever_it_queues() {
        assert!(!QueueingWatch::new(DiskKind { rotational: true }).is_flash_with_queueing());
    }
}
