//! Seek distance: how far apart a process's requests are.
//!
//! Idling for a process pays if its next request is close to its last one. On a disk that queues
//! commands there is no idling for a process that seeks, since several requests at once gain more; on
//! other disks the disk idles for it for 2 ms at most.
//!
//! The state of a process is a mean of the distances from the end of a request to the start of the next,
//! in sectors, in which each new one counts an eighth. It is kept as two sums in
//! 256ths, of samples and of distances, and changes with each request that comes, before the decision
//! about idling. A very long distance counts less than its length, so that one jump does not make a
//! process seeky for long: it is cut to four times the mean and a constant, which is larger for the
//! first samples. The mean decides about the idle window at once, and about the length of idling only
//! after enough samples.
//!
//! The two schedulers differ in a process's first request: CFQ takes its distance from the disk's first
//! sector, so that a process counts as seeky until it has read on for a while; BFQ's patch takes none.
//!
//! Follows `cfq_update_io_seektime` and `cfq_rq_close`. As there, only the distance counts, on flash too.

use crate::units::Sector;

/// A mean of more samples than this (in 256ths, weighted) is valid.
const ENOUGH: u32 = 80;
/// A longer mean distance between requests than this is seeky (`CIC_SEEKY`).
const SEEKY_SECTORS: u64 = 8 * 1024;

/// The distances of one process.
#[derive(Clone, Copy, Debug)]
pub(in crate::scheduler) struct SeekDistance {
    /// `None`: the first request has no distance.
    last_end: Option<Sector>,
    samples: u32,
    total: u64,
    mean: u64,
}

impl SeekDistance {
    /// The first request has no distance.
    pub const NONE: SeekDistance = SeekDistance { last_end: None, samples: 0, total: 0, mean: 0 };
    /// The first request's distance is that from the disk's first sector.
    pub const FROM_THE_FIRST_SECTOR: SeekDistance =
        SeekDistance { last_end: Some(Sector(0)), ..SeekDistance::NONE };

    /// A request comes. A very long distance counts less than its length.
    pub fn request(&mut self, sector: Sector, end: Sector) {
        let far = self.last_end.map_or(0, |last| sector.0.abs_diff(last.0));
        let distance = match self.samples {
            0..=60 => far.min(self.mean * 4 + 2 * 1024 * 1024),
            _ => far.min(self.mean * 4 + 2 * 1024 * 64),
        };
        self.samples = (7 * self.samples + 256) / 8;
        self.total = (7 * self.total + 256 * distance) / 8;
        self.mean = (self.total + u64::from(self.samples / 2)) / u64::from(self.samples);
        self.last_end = Some(end);
    }

    pub fn is_seeky(&self) -> bool {
        self.mean > SEEKY_SECTORS
    }

    /// The same, once the mean is valid.
    pub fn is_surely_seeky(&self) -> bool {
        self.samples > ENOUGH && self.is_seeky()
    }

    /// The mean is valid, and a request at this distance is as near as the process's own are.
    pub fn is_as_near(&self, distance: u64) -> bool {
        self.samples > ENOUGH && distance <= self.mean
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_reads_on_is_not_seeky_and_one_that_jumps_is() {
        let (mut straight, mut random) = (SeekDistance::NONE, SeekDistance::NONE);
        for turn in 0..20u64 {
            let on = Sector(5_000_000 + turn * 8);
            straight.request(on, on.offset(8));
            let there = Sector(turn % 2 * 10_000_000);
            random.request(there, there.offset(8));
        }
        assert!(!straight.is_seeky() && random.is_surely_seeky());
    }

    #[test]
    fn one_jump_is_not_believed_before_the_third_request() {
        let mut seeks = SeekDistance::NONE;
        seeks.request(Sector(0), Sector(8));
        seeks.request(Sector(10_000_000), Sector(10_000_008));
        assert!(seeks.is_seeky() && !seeks.is_surely_seeky());
        seeks.request(Sector(0), Sector(8));
        assert!(seeks.is_surely_seeky());
    }

    #[test]
    fn a_first_request_counts_from_the_first_sector_or_not_at_all() {
        let far = (Sector(100_000_000), Sector(100_000_008));
        let (mut cfq, mut bfq) = (SeekDistance::FROM_THE_FIRST_SECTOR, SeekDistance::NONE);
        cfq.request(far.0, far.1);
        bfq.request(far.0, far.1);
        assert!(cfq.is_seeky() && !bfq.is_seeky());
    }

    #[test]
    fn a_request_is_as_near_as_a_processs_own_within_its_mean_distance() {
        let mut seeks = SeekDistance::NONE;
        for turn in 0..40u64 {
            assert_eq!(seeks.is_as_near(0), turn > 2, "after {turn} requests");
            seeks.request(Sector(turn * 1008), Sector(turn * 1008 + 8));
        }
        // Samples are counted in whole 256ths, which makes the mean up to 3 % too large.
        assert!(seeks.is_as_near(990) && !seeks.is_as_near(1050));
    }
}
