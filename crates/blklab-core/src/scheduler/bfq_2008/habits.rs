//! A process's think time and seek distance, as in CFQ of that time: means, in 256ths, in which
//! each new sample counts an eighth.

use crate::units::Sector;

/// A mean of more samples than this (in 256ths, weighted) is valid.
const ENOUGH: u32 = 80;
/// A longer mean distance between requests than this is seeky.
const SEEKY_SECTORS: u64 = 8 * 1024;

/// Think time: from a completion to the next request, in ticks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Thinking {
    /// The tick of the last completion.
    pub last_end: u64,
    samples: u32,
    total: u64,
    mean: u64,
}

impl Thinking {
    /// The think time of a process that starts in this tick.
    pub fn since(tick: u64) -> Thinking {
        Thinking { last_end: tick, samples: 0, total: 0, mean: 0 }
    }

    /// A request comes; a pause longer than twice `slice_idle` counts as that.
    pub fn request(&mut self, tick: u64, slice_idle: u64) {
        let time = (tick - self.last_end).min(2 * slice_idle);
        self.samples = (7 * self.samples + 256) / 8;
        self.total = (7 * self.total + 256 * time) / 8;
        self.mean = (self.total + 128) / u64::from(self.samples);
    }

    /// True if the mean is longer; `None` while it is not valid.
    pub fn is_longer(&self, ticks: u64) -> Option<bool> {
        (self.samples > ENOUGH).then_some(self.mean > ticks)
    }
}

/// Distance from the end of a request to the next one.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Seeks {
    last_end: Sector,
    samples: u32,
    total: u64,
    mean: u64,
}

impl Seeks {
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

    /// Whether the process is seeky and the mean is valid.
    pub fn is_surely_seeky(&self) -> bool {
        self.samples > ENOUGH && self.is_seeky()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn think_time_is_believed_after_three_requests_and_follows_the_process() {
        let mut thinking = Thinking::since(0);
        let mut ask = |after: u64| {
            thinking.request(thinking.last_end + after, 8);
            thinking.is_longer(8)
        };
        assert_eq!([ask(40), ask(40), ask(40)], [None, None, Some(true)]);
        assert_eq!([ask(0), ask(0), ask(0)], [Some(true), Some(true), Some(false)]);
    }

    #[test]
    fn a_process_that_reads_on_is_not_seeky_and_one_that_jumps_is() {
        let (mut straight, mut random) = (Seeks::default(), Seeks::default());
        for turn in 0..20u64 {
            let on = Sector(5_000_000 + turn * 8);
            straight.request(on, on.offset(8));
            let there = Sector(turn % 2 * 10_000_000);
            random.request(there, there.offset(8));
        }
        assert!(!straight.is_seeky() && random.is_surely_seeky());
    }
}
