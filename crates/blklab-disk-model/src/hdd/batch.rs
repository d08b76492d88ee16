//! Batches: a drive that takes several commands at once, serves them in order of address and reports them
//! together.
//!
//! A Samsung SpinPoint F1 does (fio-plot, its history): the least and the most random reads in half a second
//! are multiples of 2, 4, 8, 11 and 11 at depth 2, 4, 8, 16 and 32, and at 16 and 32 the times of reads are
//! multiples of the time that eleven reads take. Of the waiting commands it takes those with addresses
//! closest together: this explains how many reads stay behind and how often, and why it gains little up to
//! eight in flight, where each batch crosses the whole disk.

use super::queue::QueueIndex;
use super::{Hdd, Served};

impl Hdd {
    /// Plans the next batch after the end of the last one; false if it is not yet time for that: the host's
    /// answer to the last one, as many new commands, is waited for as long as the controller takes for a command.
    pub(super) fn take_batch(&mut self, now: u64) -> bool {
        if self.queue.next_planned().is_none() {
            if now < self.batch_at {
                self.look(self.batch_at);
                return false;
            }
            self.queue.plan_closest(self.config.batch);
        }
        true
    }

    pub(super) fn is_in_batch(&self, slot: QueueIndex) -> bool {
        self.config.batch > 1 && matches!(slot, QueueIndex::Planned(_))
    }

    /// A command has been served: it ends at `at`, or with its batch.
    pub(super) fn report(&mut self, at: u64, served: &Served) {
        if !served.in_batch {
            return self.end(at, served.tag, None);
        }
        self.batch.push(served.tag);
        if self.queue.next_planned().is_none() {
            self.batch_at = at + self.config.read_overhead_ns[0];
            for tag in std::mem::take(&mut self.batch) {
                self.end(at, tag, None);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::{HDD, Harness};
    use super::super::super::{DiskModel, Op};

    fn harness(batch: &str) -> Harness {
        let model = DiskModel::parse(HDD, "test").unwrap();
        let model = model.with_override("read_ahead", "off").unwrap();
        Harness::new(&model.with_override("ncq_batch", batch).unwrap())
    }

    #[test]
    fn a_batch_has_the_addresses_closest_together_and_is_reported_in_order_of_address_at_its_end() {
        let mut harness = harness("3");
        harness.submit(Op::Read, 0, 8, false);
        harness.drain();
        for sector in [100_000, 940_000, 300_000, 900_000, 920_000, 500_000] {
            harness.submit(Op::Read, sector, 8, false);
        }
        let ended = harness.drain();
        let tags: Vec<_> = ended.iter().map(|completion| completion.tag.0).collect();
        assert_eq!(tags, [4, 5, 2, 1, 3, 6]);
        let times: Vec<_> = ended.iter().map(|completion| completion.at).collect();
        assert!(times[0] == times[1] && times[1] == times[2] && times[2] < times[3], "{times:?}");
        assert!(times[3] == times[4] && times[4] == times[5], "{times:?}");
    }

    #[test]
    fn a_batch_of_one_is_reported_at_once() {
        let mut harness = harness("11");
        harness.submit(Op::Read, 500_000, 8, false);
        let first = harness.drain_one();
        let mut alone = self::harness("1");
        alone.submit(Op::Read, 500_000, 8, false);
        assert_eq!(first.at, alone.drain_one().at);
    }
}
