//! Does the disk queue commands? Flash that does gains nothing from idling; if it does and
//! `slice_idle` is 0, groups share requests instead of time.
//!
//! Follows `cfq_update_hw_tag` of Linux 4.12. At each completion with enough requests for more than
//! five in flight, it takes a sample: the maximum in flight so far. After 50 samples the answer is
//! known; "yes" is final, "no" is checked again with each further sample. Until then the disk
//! counts as one that queues commands.

/// A disk with this many requests in flight queues commands (`CFQ_HW_QUEUE_MIN`).
pub(in crate::scheduler::cfq) const QUEUE_MIN: u32 = 5;
/// Samples until the decision.
const QUEUE_SAMPLES: u32 = 50;

/// The samples so far and the answer (`hw_tag`).
#[derive(Debug, Default)]
pub(in crate::scheduler::cfq) struct QueueingWatch {
    found: Option<bool>,
    depth: u32,
    samples: u32,
}

impl QueueingWatch {
    /// The disk queues commands, or the answer is still open.
    #[inline]
    pub fn may_queue(&self) -> bool {
        self.found != Some(false)
    }

    /// A request completes while `in_driver` requests, including this one, are at the disk and
    /// `queued` requests wait. `is_starved`: the active queue, for which the disk idles, keeps the
    /// disk from being filled.
    pub fn completed(&mut self, in_driver: u32, queued: u32, is_starved: impl FnOnce() -> bool) {
        self.depth = self.depth.max(in_driver);
        if self.found == Some(true) || queued <= QUEUE_MIN && in_driver <= QUEUE_MIN || is_starved() {
            return;
        }
        if self.samples < QUEUE_SAMPLES {
            self.samples += 1;
            return;
        }
        self.found = Some(self.depth >= QUEUE_MIN);
    }

    /// The answer, once it is known.
    #[cfg(test)]
    pub fn found(&self) -> Option<bool> {
        self.found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(in_driver: u32, samples: u32) -> QueueingWatch {
        let mut watch = QueueingWatch::default();
        (0..samples).for_each(|_| watch.completed(in_driver, 10, || false));
        watch
    }

    #[test]
    fn fifty_samples_come_before_an_answer() {
        assert_eq!(after(4, 50).found(), None);
        assert_eq!(after(4, 51).found(), Some(false));
        assert_eq!(after(5, 51).found(), Some(true));
        assert!(after(1, 50).may_queue() && !after(1, 51).may_queue());
    }

    #[test]
    fn no_is_looked_at_again_and_yes_is_final() {
        let mut watch = after(4, 51);
        watch.completed(5, 10, || false);
        assert_eq!(watch.found(), Some(true));
        (0..100).for_each(|_| watch.completed(1, 10, || false));
        assert_eq!(watch.found(), Some(true));
    }

    #[test]
    fn a_disk_that_cannot_be_filled_gives_no_samples() {
        let mut watch = QueueingWatch::default();
        (0..100).for_each(|_| watch.completed(1, 10, || true));
        (0..100).for_each(|_| watch.completed(5, 5, || false));
        assert_eq!(watch.found(), None);
    }
}
