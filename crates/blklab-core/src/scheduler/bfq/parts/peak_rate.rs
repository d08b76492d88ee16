//! The disk's peak rate, estimated from dispatched requests.
//!
//! An observation counts the sectors dispatched over a time of dense dispatching: at least 300 ms
//! and 32 requests, at best about a second. The measured rate moves the estimate by a tenth to a
//! half: more for a longer and more sequential observation. A mostly random observation counts only
//! if its rate is higher than the estimate. The rate sets the largest budget and the time for which
//! an interactive process stays raised.

use super::seek::{DiskKind, is_seeky};
use crate::units::Sector;

/// Rates are in sectors per microsecond, with this many fractional bits.
pub(in crate::scheduler::bfq) const RATE_SHIFT: u32 = 16;
const MIN_SAMPLES: u32 = 32;
const MIN_INTERVAL_NS: u64 = 300_000_000;
const REF_INTERVAL_NS: u64 = 1_000_000_000;
/// A pause of the disk this long ends an observation.
const PAUSE_NS: u64 = 100_000_000;
/// `BFQ_MIN_TT`: until this long after a completion the disk does not count as idle.
const MIN_THINK_NS: u64 = 2_000_000;
/// A higher rate is an error (20 sectors/us).
const MAX_RATE: u32 = 20 << RATE_SHIFT;

/// The peak rates of the kernel's reference disks, rotational and not.
pub(in crate::scheduler::bfq) const REF_RATE: [u32; 2] = [14_000, 33_000];

/// The estimate and the current observation.
#[derive(Clone, Debug)]
pub(in crate::scheduler::bfq) struct PeakRate {
    rate: u32,
    samples: u32,
    sequential: u32,
    sectors: u64,
    largest: u32,
    first_dispatch: u64,
    last_dispatch: u64,
    /// From the first to the latest dispatch.
    span: u64,
    last_completion: u64,
}

/// A request is dispatched.
#[derive(Clone, Copy, Debug)]
pub(in crate::scheduler::bfq) struct Dispatch {
    pub now: u64,
    pub sector: Sector,
    pub sectors: u32,
    /// Where the previous dispatched request ended.
    pub last_position: Sector,
    /// Requests in flight, without this one.
    pub in_driver: u32,
}

impl PeakRate {
    pub fn new(disk: DiskKind) -> PeakRate {
        PeakRate {
            rate: REF_RATE[usize::from(!disk.rotational)] * 2 / 3,
            samples: 0,
            sequential: 0,
            sectors: 0,
            largest: 0,
            first_dispatch: 0,
            last_dispatch: 0,
            span: 0,
            last_completion: 0,
        }
    }

    /// Sectors per microsecond, shifted by [`RATE_SHIFT`].
    pub fn rate(&self) -> u32 {
        self.rate
    }

    /// Sectors that the disk moves in `ms` at its peak rate (`bfq_calc_max_budget`).
    pub fn sectors_in_ms(&self, ms: u64) -> i32 {
        ((u64::from(self.rate) * 1000 * ms) >> RATE_SHIFT) as i32
    }

    /// When the last request completed.
    pub fn last_completion(&self) -> u64 {
        self.last_completion
    }

    /// Counts a dispatched request. True if the estimate has changed.
    #[inline]
    pub fn dispatched(&mut self, disk: DiskKind, request: Dispatch) -> bool {
        let Dispatch { now, in_driver, .. } = request;
        let mut changed = false;
        if self.samples == 0 {
            self.begin(&request);
        } else if now - self.last_dispatch > PAUSE_NS && in_driver == 0 {
            changed = self.judge();
            self.begin(&request);
        } else {
            self.samples += 1;
            let dense = in_driver > 0 || now.wrapping_sub(self.last_completion) < MIN_THINK_NS;
            if dense && !is_seeky(disk, request.last_position, request.sector, request.sectors) {
                self.sequential += 1;
            }
            self.sectors += u64::from(request.sectors);
            // The recent maximum, which starts again every 32 samples.
            self.largest = match self.samples % 32 {
                0 => request.sectors,
                _ => self.largest.max(request.sectors),
            };
            self.span = now - self.first_dispatch;
            if self.span >= REF_INTERVAL_NS {
                changed = self.judge();
                self.begin(&request);
            }
        }
        self.last_dispatch = now;
        changed
    }

    /// A request completes. After a pause in which the disk moved almost nothing, the observation
    /// is over. True if the estimate has changed.
    #[inline]
    pub fn completed(&mut self, now: u64) -> bool {
        let pause_us = ((now - self.last_completion) / 1000) as u32;
        let slow = u64::from(pause_us) > MIN_THINK_NS / 1000
            && u64::from(self.largest.wrapping_shl(RATE_SHIFT) / pause_us) < 1 << (RATE_SHIFT - 10);
        let changed = slow && self.judge();
        if slow {
            self.samples = 0;
        }
        self.last_completion = now;
        changed
    }

    fn begin(&mut self, request: &Dispatch) {
        self.first_dispatch = request.now;
        self.last_dispatch = request.now;
        self.samples = 1;
        self.sequential = 0;
        self.sectors = u64::from(request.sectors);
        self.largest = request.sectors;
    }

    /// Updates the estimate, if the observation is good enough.
    fn judge(&mut self) -> bool {
        if self.samples < MIN_SAMPLES || self.span < MIN_INTERVAL_NS {
            return false;
        }
        self.span = self.span.max(self.last_completion.wrapping_sub(self.first_dispatch));
        let rate = ((self.sectors << RATE_SHIFT) / (self.span / 1000)) as u32;
        let random = self.sequential < (3 * self.samples) >> 2;
        if random && rate <= self.rate || rate > MAX_RATE {
            return false;
        }
        let sequential = u64::from(9 * self.sequential / self.samples);
        // The span is huge if nothing has completed since the first dispatch: 64 bits, as in C.
        let weight = ((sequential.wrapping_mul(self.span) / REF_INTERVAL_NS) as u32).min(8);
        let divisor = 10 - weight;
        self.rate = (self.rate * (divisor - 1) / divisor + rate / divisor).max(1);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DISK: DiskKind = DiskKind { rotational: true };

    /// `seconds` of requests of 256 sectors, one every `period_us`.
    fn run(rate: &mut PeakRate, seconds: u64, period_us: u64, step: u64) {
        let mut position = Sector(0);
        for turn in 0..seconds * 1_000_000 / period_us {
            let now = 1_000_000_000 + turn * period_us * 1000;
            let sector = Sector(1000 + turn * step);
            rate.dispatched(
                DISK,
                Dispatch { now, sector, sectors: 256, last_position: position, in_driver: 0 },
            );
            position = sector.offset(256);
            rate.completed(now + period_us * 900);
        }
    }

    fn mb_s(rate: &PeakRate) -> f64 {
        f64::from(rate.rate()) / f64::from(1 << RATE_SHIFT) * 512.0
    }

    #[test]
    fn sequential_dispatching_brings_the_estimate_to_the_disks_rate() {
        let mut rate = PeakRate::new(DISK);
        assert!((mb_s(&rate) - 72.9).abs() < 0.1);
        // 256 sectors every 1 ms: 131 MB/s.
        run(&mut rate, 10, 1000, 256);
        assert!((mb_s(&rate) - 131.0).abs() < 2.0, "{}", mb_s(&rate));
    }

    #[test]
    fn random_dispatching_does_not_lower_it() {
        let mut rate = PeakRate::new(DISK);
        run(&mut rate, 10, 8000, 1_000_000);
        assert_eq!(rate.rate(), 14_000 * 2 / 3);
    }

    #[test]
    fn a_disk_that_pauses_after_small_requests_is_not_judged_by_the_pauses() {
        let mut rate = PeakRate::new(DISK);
        // 8 ms between requests of one sector.
        for turn in 0..1000u64 {
            let now = 1_000_000_000 + turn * 8_000_000;
            let sector = Sector(1000 + turn);
            rate.dispatched(DISK, Dispatch { now, sector, sectors: 1, last_position: sector, in_driver: 0 });
            rate.completed(now + 100_000);
        }
        assert_eq!(rate.rate(), 14_000 * 2 / 3);
    }

    #[test]
    fn the_largest_budget_is_what_moves_at_the_peak_rate() {
        // 9333/65536 sectors/us for 125 ms.
        assert_eq!(PeakRate::new(DISK).sectors_in_ms(125), 17_801);
    }
}
