//! Seek distance: how far apart a process's requests are.
//!
//! Idling for a process pays if its next request is close to its last one. On a disk that queues
//! commands there is no idling for a process that seeks, since several requests at once gain more; on
//! other disks the disk idles for it for 2 ms at most.
//!
//! The state of a process is a mean of the distances from the end of a request to the start of the next,
//! in sectors, in which each new one counts an eighth, as in CFQ of that time. It is kept as two sums in
//! 256ths, of samples and of distances, and changes with each request that comes, before the decision
//! about idling. A very long distance counts less than its length, so that one jump does not make a
//! process seeky for long: it is cut to four times the mean and a constant, which is larger for the
//! first samples. The mean decides about the idle window at once, and about the length of idling only
//! after enough samples.
//!
//! Follows `bfq_update_io_seektime` of the patch. As there, only the distance counts, on flash too.

use crate::units::Sector;

/// A mean of more samples than this (in 256ths, weighted) is valid.
const ENOUGH: u32 = 80;
/// A longer mean distance between requests than this is seeky (`BFQQ_SEEK_THR`).
const SEEKY_SECTORS: u64 = 8 * 1024;

/// The distances of one process.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::scheduler::bfq_2008) struct SeekDistance {
    last_end: Sector,
    samples: u32,
    total: u64,
    mean: u64,
}

impl SeekDistance {
    /// A request comes. A very long distance counts less than its length.
    pub fn request(&mut self, sector: Sector, end: Sector) {
        let far = sector.0.abs_diff(self.last_end.0);
        let distance = match self.samples {
            0 => 0,
            1..=60 => far.min(self.mean * 4 + 2 * 1024 * 1024),
            _ => far.min(self.mean * 4 + 2 * 1024 * 64),
        };
        self.samples = (7 * self.samples + 256) / 8;
        self.total = (7 * self.total + 256 * distance) / 8;
        self.mean = (self.total + u64::from(self.samples / 2)) / u64::from(self.samples);
        self.last_end = end;
    }

    pub fn is_seeky(&self) -> bool {
        self.mean > SEEKY_SECTORS
    }

    /// The same, once the mean is valid.
    pub fn is_surely_seeky(&self) -> bool {
        self.samples > ENOUGH && self.is_seeky()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_reads_on_is_not_seeky_and_one_that_jumps_is() {
        let (mut straight, mut random) = (SeekDistance::default(), SeekDistance::default());
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
        let mut seeks = SeekDistance::default();
        seeks.request(Sector(0), Sector(8));
        seeks.request(Sector(10_000_000), Sector(10_000_008));
        assert!(seeks.is_seeky() && !seeks.is_surely_seeky());
        seeks.request(Sector(0), Sector(8));
        assert!(seeks.is_surely_seeky());
    }
}
