//! The share of each backing device in the limits of dirty memory. The only device has everything, but
//! not before its first write is complete.
//!
//! After `lib/flex_proportions.c` and `__wb_calc_thresh` of Linux 7.3: a device's share is its part
//! of all pages written lately, of which those of each earlier period of three seconds count half as
//! much. So a fast device may have many dirty pages and a slow one few, and both take about as long
//! to write. A device that has written nothing has an eighth of what is left below the limit; in 6.12
//! it has no share of the background threshold.
//!
//! A share is no limit of its own: it slows the device's writers down
//! ([`Throttle`](super::throttle::Throttle)) and starts its flusher. Left out: `min_ratio` and
//! `max_ratio` of a device, and strict limits.

use crate::ticks::Ticks;
use crate::units::Nanos;

/// Completed pages count half as much after this many seconds (`VM_COMPLETIONS_PERIOD_LEN`).
const PERIOD_SECONDS: u64 = 3;
/// File systems were mounted for this long before the run, as in a guest of the kernel rig: within the
/// second period after it.
const MOUNTED_BEFORE: Nanos = Nanos::from_millis(3545);

/// Pages written by all devices, aged (`struct fprop_global`).
#[derive(Debug)]
pub(super) struct Completions {
    ticks: Ticks,
    /// One at the start, so that it is never a divisor of zero.
    pages: u64,
    period: u64,
    /// The tick at which the period ends; `None` while nothing is written.
    ends: Option<u64>,
}

/// Pages written by one device, aged up to its `period` (`struct fprop_local_percpu`).
#[derive(Debug, Default)]
pub(super) struct Completed {
    pages: u64,
    period: u64,
}

impl Completions {
    /// `mounts` devices have written `pages` pages each when their file systems were mounted.
    pub fn new(ticks: Ticks, mounts: u64, pages: u64) -> Completions {
        let new = Completions { ticks, pages: 1, period: 0, ends: None };
        if pages == 0 {
            return new;
        }
        let mounted = ticks.at(MOUNTED_BEFORE);
        let ends = (2 * PERIOD_SECONDS * ticks.hz()).saturating_sub(mounted);
        Completions { pages: (1 + mounts * pages) >> 1, ends: Some(ends), ..new }
    }

    /// Ends the periods that are over.
    fn age(&mut self, now: u64) {
        while let Some(ends) = self.ends.filter(|&ends| ends <= now) {
            if self.pages <= 1 {
                self.ends = None;
                return;
            }
            self.pages >>= 1;
            self.period += 1;
            self.ends = Some(ends + PERIOD_SECONDS * self.ticks.hz());
        }
    }

    /// The device has written pages.
    pub fn add(&mut self, completed: &mut Completed, pages: u64, now: Nanos) {
        let now = self.ticks.at(now);
        self.age(now);
        completed.age(self.period);
        completed.pages += pages;
        self.pages += pages;
        self.ends.get_or_insert(now + PERIOD_SECONDS * self.ticks.hz());
    }

    /// The device's share of `limit`, while `dirty` pages of all devices count towards it.
    pub fn share(&mut self, completed: &mut Completed, limit: u64, dirty: u64, now: Nanos) -> u64 {
        self.of_written(completed, limit, now).max(limit.saturating_sub(dirty) / 8)
    }

    /// Its part of `limit` by what it has written.
    pub fn of_written(&mut self, completed: &mut Completed, limit: u64, now: Nanos) -> u64 {
        self.age(self.ticks.at(now));
        completed.age(self.period);
        limit * completed.pages / self.pages.max(completed.pages).max(1)
    }
}

impl Completed {
    /// What is left of the pages that were written by the mount.
    pub fn by_mount(pages: u64) -> Completed {
        Completed { pages: pages / 2, period: 0 }
    }

    fn age(&mut self, period: u64) {
        let periods = u32::try_from(period - self.period).unwrap_or(u32::MAX);
        self.pages = self.pages.checked_shr(periods).unwrap_or(0);
        self.period = period;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_devices_share_is_its_part_of_what_was_written_lately() {
        let mut all = Completions::new(Ticks::per_second(1000), 2, 0);
        let [mut fast, mut slow] = [Completed::default(), Completed::default()];
        let second = Nanos::from_secs;
        assert_eq!(all.share(&mut fast, 8000, 0, second(0)), 1000, "an eighth of what is left");
        assert_eq!(all.share(&mut fast, 8000, 7200, second(0)), 100);
        all.add(&mut fast, 9000, second(1));
        all.add(&mut slow, 1000, second(1));
        let shares = |all: &mut Completions, fast: &mut Completed, slow: &mut Completed, now| {
            [all.share(fast, 10_000, 10_000, now), all.share(slow, 10_000, 10_000, now)]
        };
        // Of 10,001: one is counted from the start.
        assert_eq!(shares(&mut all, &mut fast, &mut slow, second(2)), [8999, 999]);
        // At 4 s the period ends, and half of both is left; then the slow one writes more.
        all.add(&mut slow, 5001, second(4));
        assert_eq!(shares(&mut all, &mut fast, &mut slow, second(4)), [4499, 5500]);
        // After a long rest all is forgotten.
        assert_eq!(shares(&mut all, &mut fast, &mut slow, second(400)), [0, 0]);
    }

    #[test]
    fn pages_that_a_mount_has_written_are_a_share_until_their_period_ends() {
        let (ticks, millis) = (Ticks::per_second(1000), Nanos::from_millis);
        let mut all = Completions::new(ticks, 1, 16);
        let mut disk = Completed::by_mount(16);
        assert_eq!(all.of_written(&mut disk, 8000, millis(0)), 8000);
        all.add(&mut disk, 3, millis(1));
        // The mount was 3.545 s before: at 2.455 s its second period ends.
        assert_eq!((disk.pages, all.pages), (11, 11));
        all.of_written(&mut disk, 8000, millis(2454));
        assert_eq!(disk.pages, 11);
        all.of_written(&mut disk, 8000, millis(2455));
        assert_eq!((disk.pages, all.pages), (5, 5));
        // One page is forgotten at the next, for which the clock stops.
        let mut few = Completions::new(ticks, 1, 2);
        let mut its = Completed::by_mount(2);
        assert_eq!(few.of_written(&mut its, 8000, millis(3000)), 8000);
        assert_eq!(few.ends, None);
    }
}
