//! The link during a read from the medium, if the link is slower than the medium or the drive must reselect
//! first: it carries the sectors in order, each as soon as it is available.

/// A read's transfer over the link.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sending {
    /// Link time per sector, times 2^16.
    link_fx: u64,
    /// The drive reselects when this many sectors have come, and this takes so long.
    after: u64,
    reselect_ns: u64,
    came: u64,
    /// The time at which all available sectors have crossed the link.
    until: u64,
}

impl Sending {
    /// A transfer from `start` on, with `cached` sectors already available; the drive reselects after `after`
    /// more.
    pub fn new(start: u64, cached: u64, after: u64, reselect_ns: u64, link_fx: u64) -> Sending {
        let free = if after == 0 { start + reselect_ns } else { start };
        let until = free + ((cached * link_fx) >> 16);
        Sending { link_fx, after, reselect_ns, came: 0, until }
    }

    /// `sectors` pass the head, one after the other from `time` on.
    pub fn pass(&mut self, time: u64, sector_fx: u64, sectors: u64) {
        let before = self.after.saturating_sub(self.came).min(sectors);
        self.came += before;
        if before > 0 && self.came == self.after {
            let there = time + ((before * sector_fx) >> 32);
            self.until = there + self.reselect_ns + self.over(self.after);
        }
        let rest = sectors - before;
        if rest > 0 {
            let first = time + (((before + 1) * sector_fx) >> 32);
            let last = time + ((sectors * sector_fx) >> 32);
            let behind = self.until.max(first) + self.over(rest);
            self.until = behind.max(last + self.over(1));
            self.came += rest;
        }
    }

    /// `sectors` that came earlier cross the link now, in order.
    pub fn follow(&mut self, sectors: u64) {
        self.until += self.over(sectors);
    }

    pub fn until(&self) -> u64 {
        self.until
    }

    fn over(&self, sectors: u64) -> u64 {
        (sectors * self.link_fx) >> 16
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_last_sector_is_over_when_following_each_says(
            start in 0u64..10_000, cached in 0u64..10, gap in 0u64..50_000,
            sector in 1u64..2_000, link in 1u64..2_000, runs in prop::collection::vec(1u64..30, 1..4)
        ) {
            let mut sending = Sending::new(start, cached, 0, 70, link << 16);
            let mut over = start + 70 + cached * link;
            let mut time = start + gap;
            for run in runs {
                sending.pass(time, sector << 32, run);
                for number in 1..=run {
                    over = over.max(time + number * sector) + link;
                }
                time += run * sector + gap;
            }
            prop_assert_eq!(sending.until(), over);
        }
    }

    #[test]
    fn a_link_that_is_free_late_transfers_the_data_that_arrived_first() {
        let mut sending = Sending::new(0, 0, 6, 50, 100 << 16);
        sending.pass(1_000, 10 << 32, 4);
        sending.pass(2_000, 10 << 32, 4);
        // The sixth sector is available at 2,020; eight cross the link from 2,070 on.
        assert_eq!(sending.until(), 2_070 + 800);
    }
}
