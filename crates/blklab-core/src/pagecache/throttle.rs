//! Limits dirty memory: how long a process that writes must pause (`balance_dirty_pages`).
//!
//! Below the free-run ceiling, half-way between the background threshold and the hard limit, no
//! writer pauses. Above it every writer gets a rate, `dirty_ratelimit`, which follows the measured
//! writeback bandwidth divided by the number of writers, times `pos_ratio`: 2 at the ceiling, 1 at
//! the set point half-way between ceiling and limit, and 0 at the limit. A writer that has dirtied
//! a number of pages sleeps until its rate allows them; at the limit it is blocked.
//!
//! After Linux 7.3's `mm/page-writeback.c`, with its integers and its ticks. The dirty pages of all
//! disks count towards the limits; each disk has its own bandwidth and rate, which also depend on
//! its share of the limit ([`shares`](super::shares)). Left out: cgroups, strict limits, real-time
//! tasks' extra quarter, pages dirtied by exited tasks. The kernel checks per CPU that many young
//! tasks together do not overrun the limit; here one check for all CPUs acts after 1/32 of the limit,
//! as the kernel's checks do in sum. The limit is as soft as the kernel's: dirty pages may exceed it by
//! the pages that all writers together dirty between two checks.

use crate::ticks::{BEGINS, Ticks};
use crate::units::Nanos;

/// The assumed bandwidth of an unknown disk, in pages/s: 100 MiB/s.
const INITIAL_BANDWIDTH: u64 = 100 << (20 - 12);
/// Pages between two checks of the limits that justify a pause (128 KiB).
const POLL_PAGES: u64 = 32;
/// The same while the limit is exceeded (32 KiB).
const POLL_PAGES_EXCEEDED: u64 = 8;
/// `pos_ratio` is in 1/1024.
const RATIO_SHIFT: u32 = 10;

/// A task's write state, as in the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dirtier {
    /// Pages dirtied since the last pause.
    pages: u64,
    /// Pages until the next check of the limits.
    poll_pages: u64,
    /// End of the last pause, in ticks; advanced by pauses that were too short to take.
    paused_when: Option<u64>,
    /// Blocked at the limit: checks again, for this many pages, before it writes another.
    blocked: Option<u64>,
    /// When the timer of its last pause fires.
    woken: Nanos,
}

impl Default for Dirtier {
    fn default() -> Dirtier {
        Dirtier { pages: 0, poll_pages: POLL_PAGES, paused_when: None, blocked: None, woken: Nanos::NEVER }
    }
}

/// The dirty pages when a writer checks the limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Dirty {
    /// Dirty or under writeback, of all devices.
    pub all: u64,
    /// Dirty pages of all devices that are not under writeback.
    pub waiting: u64,
    /// Dirty or under writeback, of the writer's device.
    pub here: u64,
    /// The device's share of the limit.
    pub share: u64,
}

/// The result of a check of the limits: what the writer must do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Verdict {
    pub wake_flusher: bool,
    pub pause: Option<Nanos>,
}

/// The limits of all devices together; for one of them the measured bandwidth and the resulting
/// rate. Rates are in pages/s.
#[derive(Debug)]
pub(super) struct Throttle {
    ticks: Ticks,
    background: u64,
    limit: u64,
    /// Pages that may be missing in the counts of a device (`wb_stat_error`).
    count_error: u64,
    write_bandwidth: u64,
    average_bandwidth: u64,
    rate: u64,
    balanced_rate: u64,
    exceeded: bool,
    /// When the bandwidth was last measured, in ticks, and the counts then.
    measured: u64,
    measured_dirtied: u64,
    measured_written: u64,
    dirtied: u64,
    written: u64,
    /// When the bandwidth is measured if nothing else has measured it; never if no file's writeback has
    /// ended since (`bw_dwork`).
    measure_at: Nanos,
}

impl Throttle {
    pub fn new(background: u64, limit: u64, ticks: Ticks, cpus: u16) -> Throttle {
        let cpus = u64::from(cpus);
        Throttle {
            ticks,
            background,
            limit,
            count_error: cpus * 8 * u64::from(1 + cpus.ilog2()),
            write_bandwidth: INITIAL_BANDWIDTH,
            average_bandwidth: INITIAL_BANDWIDTH,
            rate: INITIAL_BANDWIDTH,
            balanced_rate: INITIAL_BANDWIDTH,
            exceeded: false,
            measured: 0,
            measured_dirtied: 0,
            measured_written: 0,
            dirtied: 0,
            written: 0,
            measure_at: Nanos::NEVER,
        }
    }

    /// The kernel's time in ticks.
    fn tick(&self, now: Nanos) -> u64 {
        self.ticks.at(now + BEGINS)
    }

    /// The longest pause, and the time between two measurements of the bandwidth: 200 ms.
    fn fifth(&self) -> u64 {
        self.ticks.hz() / 5
    }

    /// Pages of the device that are dirty or under writeback.
    pub fn dirty(&self) -> u64 {
        self.dirtied - self.written
    }

    /// Pages that the flusher writes of one file at a time (`writeback_chunk_size`): what the disk
    /// writes in half a second, in steps of 4 MiB.
    pub fn chunk_pages(&self, wanted: u64) -> u64 {
        const MIN_PAGES: u64 = 1024;
        let pages = (self.average_bandwidth / 2).min(self.limit / 8).min(wanted);
        (pages + MIN_PAGES) / MIN_PAGES * MIN_PAGES
    }

    #[inline]
    fn poll_pages(&self, dirtier: &Dirtier) -> u64 {
        if self.exceeded { dirtier.poll_pages.min(POLL_PAGES_EXCEEDED) } else { dirtier.poll_pages }
    }

    /// Clean pages that this process may dirty before it must check the limits.
    #[inline]
    pub fn room(&self, dirtier: &Dirtier) -> u64 {
        if dirtier.blocked.is_some() {
            return 0;
        }
        self.poll_pages(dirtier).saturating_sub(dirtier.pages)
    }

    /// It has dirtied clean pages.
    #[inline]
    pub fn dirtied(&mut self, dirtier: &mut Dirtier, pages: u64, now: Nanos) {
        self.measure_if_due(now);
        dirtier.pages += pages;
        self.dirtied += pages;
    }

    /// Pages have been written; `file_idle` if they were the last of their file under writeback
    /// (`__folio_end_writeback`).
    pub fn written(&mut self, pages: u64, file_idle: bool, now: Nanos) {
        self.measure_if_due(now);
        self.written += pages;
        if file_idle && self.measure_at == Nanos::NEVER {
            self.measure_at = self.ticks.timer(now, self.fifth());
        }
    }

    /// The writing of a file begins; `idle` if nothing is under writeback
    /// (`wb_bandwidth_estimate_start`).
    pub fn writing_begins(&mut self, idle: bool, now: Nanos) {
        self.measure_if_due(now);
        let now = self.tick(now);
        // After a second without writes the measurement starts again (`WB_BANDWIDTH_IDLE_JIF`).
        if idle && now > self.measured + self.ticks.hz() {
            self.measured_dirtied = self.dirtied;
            self.measured_written = self.written;
            self.measured = now;
        }
    }

    /// All that is to be written of a file now is under writeback (the end of `do_writepages`).
    pub fn writing_ends(&mut self, now: Nanos) {
        self.measure_if_due(now);
        let now = self.tick(now);
        if now > self.measured + self.fifth() {
            self.measure(now, None);
        }
    }

    /// 200 ms after no page of a file is under writeback any longer the kernel measures
    /// (`wb_inode_writeback_end`). Nothing happens then but this, so it may be done later, before any of
    /// the counts changes.
    #[inline]
    fn measure_if_due(&mut self, now: Nanos) {
        if self.measure_at <= now {
            self.measure_late();
        }
    }

    #[cold]
    fn measure_late(&mut self) {
        let at = std::mem::replace(&mut self.measure_at, Nanos::NEVER);
        self.measure(self.tick(at), None);
    }

    /// `balance_dirty_pages`, up to its sleep. When called again after the pause, it decides itself
    /// whether the pause was long enough.
    pub fn balance(&mut self, now: Nanos, dirty: Dirty, dirtier: &mut Dirtier) -> Verdict {
        self.measure_if_due(now);
        let (clock, hz) = (now, self.ticks.hz());
        let mut now = self.tick(clock);
        let pages = dirtier.blocked.take().unwrap_or(dirtier.pages);
        if dirty.all <= self.free_run() {
            dirtier.paused_when = Some(now);
            dirtier.pages = 0;
            dirtier.poll_pages = 1 << (self.limit.saturating_sub(dirty.all).max(1).ilog2() / 2);
            return Verdict { wake_flusher: dirty.waiting > self.background, pause: None };
        }
        self.exceeded = dirty.all > self.limit && dirty.here > dirty.share;
        let pos_ratio = self.pos_ratio(dirty);
        if now > self.measured + self.fifth() {
            self.measure(now, Some((dirty.all, pos_ratio)));
        }
        let rate = (self.rate * pos_ratio) >> RATIO_SHIFT;
        let max_pause = self.max_pause(dirty.here);
        let (min_pause, poll_pages) = self.min_pause(max_pause, rate);
        let period = (hz * pages).checked_div(rate);
        let mut pause = max_pause;
        if let Some(period) = period {
            // Time since the last pause counts as part of this one.
            let thought = dirtier.paused_when.map_or(0, |when| now as i64 - when as i64);
            let wanted = period as i64 - thought;
            if wanted < min_pause as i64 {
                if wanted < -(hz as i64) {
                    dirtier.paused_when = Some(now);
                    dirtier.pages = 0;
                } else if period > 0 {
                    // Of a writer that has not been below the ceiling yet the kernel counts from boot:
                    // the next time it has thought for so long that its pauses begin then.
                    dirtier.paused_when = Some(dirtier.paused_when.unwrap_or(0) + period);
                    dirtier.pages = 0;
                } else if dirtier.poll_pages <= pages {
                    dirtier.poll_pages += pages;
                }
                return Verdict { wake_flusher: true, pause: None };
            }
            pause = wanted.unsigned_abs();
            if pause > max_pause {
                now += (pause - max_pause).min(max_pause);
                pause = max_pause;
            }
        }
        dirtier.paused_when = Some(now + pause);
        dirtier.pages = 0;
        dirtier.poll_pages = poll_pages;
        if rate == 0 && dirty.here <= self.count_error {
            // Others are at the limit, and this device has hardly any dirty pages: one more.
            dirtier.poll_pages = poll_pages.max(1);
        } else {
            dirtier.blocked = (rate == 0).then_some(pages);
        }
        dirtier.woken = match self.ticks.at(dirtier.woken) == self.ticks.at(clock) {
            true => self.ticks.timer_after_one(clock, pause),
            false => self.ticks.timer(clock, pause),
        };
        Verdict { wake_flusher: true, pause: Some(dirtier.woken - clock) }
    }

    /// `dirty_freerun_ceiling`.
    fn free_run(&self) -> u64 {
        (self.limit + self.background) / 2
    }

    /// The target number of dirty pages.
    fn set_point(&self) -> u64 {
        (self.free_run() + self.limit) / 2
    }

    /// The factor of the rate that brings the dirty pages to the set point, in 1/1024
    /// (`wb_position_ratio`).
    fn pos_ratio(&self, dirty: Dirty) -> u64 {
        if dirty.all >= self.limit {
            return 0;
        }
        let (limit, set_point) = (self.limit as i64, self.set_point() as i64);
        let x = ((set_point - dirty.all as i64) << RATIO_SHIFT) / ((limit - set_point) | 1);
        let cube = (((x * x) >> RATIO_SHIFT) * x) >> RATIO_SHIFT;
        let mut ratio = (cube + (1 << RATIO_SHIFT)).clamp(0, 2 << RATIO_SHIFT) as u64;
        // The disk's own control line: down to a quarter over eight seconds' bandwidth, or, beside
        // other disks, over its share.
        let part = (dirty.share << 16) / (self.limit | 1);
        let disk_set_point = (self.set_point() * part) >> 16;
        let span = ((self.limit - dirty.share + 8 * self.average_bandwidth) * part) >> 16;
        let intercept = disk_set_point + span;
        if dirty.here < intercept - span / 4 {
            ratio = ratio * (intercept - dirty.here) / ((intercept - disk_set_point) | 1);
        } else {
            ratio /= 4;
        }
        // A reserve that keeps the disk busy.
        let reserve = dirty.share / 2;
        if dirty.here < reserve {
            ratio = if dirty.here > reserve / 8 { ratio * reserve / dirty.here } else { ratio * 8 };
        }
        ratio
    }

    /// Measures the bandwidth. When a writer asks, with its number of dirty pages and that ratio,
    /// the rate follows (`__wb_update_bandwidth`).
    fn measure(&mut self, now: u64, writer: Option<(u64, u64)>) {
        let elapsed = (now - self.measured).max(1);
        if let Some((dirty, pos_ratio)) = writer {
            self.follow_rate(dirty, pos_ratio, elapsed);
        }
        self.follow_bandwidth(elapsed);
        self.measured_dirtied = self.dirtied;
        self.measured_written = self.written;
        self.measured = now;
    }

    /// `wb_update_write_bandwidth`.
    fn follow_bandwidth(&mut self, elapsed: u64) {
        let (old, mut average) = (self.write_bandwidth, self.average_bandwidth);
        let hz = self.ticks.hz();
        // The time over which it is averaged: three seconds, as a power of two.
        let period = (3 * hz).next_power_of_two();
        let written = (self.written - self.measured_written) * hz;
        let bandwidth;
        if elapsed > period {
            bandwidth = written / elapsed;
            average = bandwidth;
        } else {
            bandwidth = (written + old * (period - elapsed)) / period;
            if average > old && old >= bandwidth {
                average -= (average - old) >> 3;
            }
            if average < old && old <= bandwidth {
                average += (old - average) >> 3;
            }
        }
        self.write_bandwidth = bandwidth;
        self.average_bandwidth = average.max(1);
    }

    /// `wb_update_dirty_ratelimit`: moves towards bandwidth / writers, in small steps, and only
    /// where that also brings the dirty pages nearer to the set point.
    fn follow_rate(&mut self, dirty: u64, pos_ratio: u64, elapsed: u64) {
        let dirty_rate = (self.dirtied - self.measured_dirtied) * self.ticks.hz() / elapsed;
        let task_rate = ((self.rate * pos_ratio) >> RATIO_SHIFT) + 1;
        let balanced = (task_rate * self.average_bandwidth / (dirty_rate | 1)).min(self.average_bandwidth);
        let step = if dirty < self.set_point() {
            self.balanced_rate.min(balanced).min(task_rate).saturating_sub(self.rate)
        } else {
            self.rate.saturating_sub(self.balanced_rate.max(balanced).max(task_rate))
        };
        // Slower near the target.
        let shift = self.rate / (2 * step + 1);
        let step = if shift < u64::from(u64::BITS) { (step >> shift).div_ceil(8) } else { 0 };
        self.rate = if self.rate < balanced { self.rate + step } else { self.rate - step }.max(1);
        self.balanced_rate = balanced;
    }

    /// `wb_max_pause`: shorter with few dirty pages, to keep the disk busy.
    fn max_pause(&self, dirty: u64) -> u64 {
        let per_eighth = 1 + self.average_bandwidth / (1 + self.ticks.hz() / 8).next_power_of_two();
        (dirty / per_eighth + 1).min(self.fifth())
    }

    /// `wb_min_pause`: the shortest useful pause, and the pages until the next check.
    fn min_pause(&self, max_pause: u64, rate: u64) -> (u64, u64) {
        let hz = self.ticks.hz();
        let pages_in = |rate: u64, pause: u64| rate * pause / hz.next_power_of_two();
        // 10 ms for one writer, plus 10 ms for every doubling of their number.
        let doublings = self.average_bandwidth.ilog2().saturating_sub(self.rate.ilog2());
        let mut target = (hz / 100).max(1) + u64::from(doublings) * (10 * hz) / 1024;
        target = target.min(1 + max_pause / 2);
        let mut pages = pages_in(self.rate, target);
        if pages < POLL_PAGES {
            target = max_pause;
            pages = pages_in(self.rate, target);
            if pages > POLL_PAGES {
                pages = POLL_PAGES;
                target = hz * POLL_PAGES / self.rate;
            }
        }
        if hz * pages / (rate + 1) > max_pause {
            target = max_pause;
            pages = pages_in(rate, target);
        }
        (if pages >= POLL_PAGES { 1 + target / 2 } else { target }, pages)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICKS: Ticks = Ticks::per_second(1000);

    /// All on one device.
    fn dirty(pages: u64) -> Dirty {
        Dirty { all: pages, waiting: pages, here: pages, share: 20_000 }
    }

    #[test]
    fn the_ratio_is_one_at_the_set_point_and_nothing_at_the_limit() {
        // Ceiling 15,000, set point 17,500. The disk's own line is 1 at its set point, too;
        // at the ceiling it adds (2500 + 8 * 25,600) / (8 * 25,600) to the factor of 2.
        let throttle = Throttle::new(10_000, 20_000, TICKS, 4);
        assert!(throttle.pos_ratio(dirty(17_500)).abs_diff(1024) <= 1);
        assert!(throttle.pos_ratio(dirty(15_000)).abs_diff(2 * 1024 * 2073 / 2048) <= 8);
        assert!(throttle.pos_ratio(dirty(18_750)).abs_diff((1024 - 128) * 2035 / 2048) <= 8);
        assert_eq!(throttle.pos_ratio(dirty(20_000)), 0);
        assert!(
            (15_000..20_000)
                .all(|pages| throttle.pos_ratio(dirty(pages + 1)) <= throttle.pos_ratio(dirty(pages)))
        );
    }

    #[test]
    fn a_writer_blocked_at_the_limit_still_pauses_for_its_pages_when_it_falls() {
        let mut throttle = Throttle::new(1000, 2000, TICKS, 4);
        let full = |pages| Dirty { share: 2000, ..dirty(pages) };
        let mut dirtier = Dirtier::default();
        throttle.dirtied(&mut dirtier, 500, Nanos::ZERO);
        let blocked = throttle.balance(Nanos::ZERO, full(2100), &mut dirtier);
        let pause = blocked.pause.expect("above the limit every writer pauses");
        assert_eq!(throttle.room(&dirtier), 0);
        // Below it: 500 pages at 25,600/s times a ratio of about 1/8 are about 155 ms, cut to the
        // maximum for so few dirty pages: 1990 / (1 + 25,600 / 128) + 1.
        let paused = throttle.balance(pause, full(1990), &mut dirtier).pause;
        assert_eq!(paused, Some(Nanos::from_millis(11)), "and a tick, since timers are never early");
        assert!(throttle.room(&dirtier) > 0);
    }

    /// As a guest's kernel had it: pauses too short to take add up, but the first one does not count.
    #[test]
    fn a_writer_that_begins_above_the_ceiling_pauses_at_its_fifth_check() {
        let mut throttle = Throttle::new(26_176, 52_416, TICKS, 1);
        throttle.writing_begins(true, Nanos::ZERO);
        let mut dirtier = Dirtier::default();
        let pauses = [39_424, 39_456, 39_488, 39_520, 39_552].map(|pages| {
            throttle.dirtied(&mut dirtier, 32, Nanos::ZERO);
            let share = (52_416 - pages) / 8;
            let dirty = Dirty { all: pages, waiting: pages, here: pages, share };
            throttle.balance(Nanos::ZERO, dirty, &mut dirtier).pause
        });
        assert_eq!(pauses, [None, None, None, None, Some(Nanos::from_millis(7))], "6 ms and a tick");
    }

    /// As a guest's kernel had it: 3400 pages/s 3.552 s after the disk came.
    #[test]
    fn a_writer_that_comes_before_the_flusher_counts_the_time_without_writes() {
        let measured = |flusher_first: bool| {
            let mut throttle = Throttle::new(10_000, 20_000, TICKS, 4);
            if flusher_first {
                throttle.writing_begins(true, Nanos::ZERO);
            }
            throttle.balance(Nanos::ZERO, dirty(16_000), &mut Dirtier::default());
            throttle.write_bandwidth
        };
        assert_eq!(measured(true), INITIAL_BANDWIDTH);
        assert_eq!(measured(false), INITIAL_BANDWIDTH * (4096 - 3600) / 4096);
    }

    #[test]
    fn the_bandwidth_is_measured_208_ms_after_the_last_page_of_a_file_was_written() {
        let mut throttle = Throttle::new(10_000, 20_000, TICKS, 4);
        throttle.writing_begins(true, Nanos::ZERO);
        let mut dirtier = Dirtier::default();
        throttle.dirtied(&mut dirtier, 1000, Nanos::ZERO);
        throttle.written(500, true, Nanos::from_millis(5));
        // The first timer stays: a later end does not put it off.
        throttle.written(250, true, Nanos::from_millis(100));
        throttle.dirtied(&mut dirtier, 1, Nanos::from_millis(207));
        assert_eq!(throttle.write_bandwidth, INITIAL_BANDWIDTH);
        throttle.written(250, true, Nanos::from_millis(208));
        let of_750 = (750 * 1000 + INITIAL_BANDWIDTH * (4096 - 208)) / 4096;
        assert_eq!(throttle.write_bandwidth, of_750, "5 ms and 200 ms, in the wheel's steps of 8 ms");
        throttle.writing_ends(Nanos::from_millis(300));
        assert_eq!(throttle.write_bandwidth, of_750, "measured less than 200 ms ago");
    }

    #[test]
    fn the_bandwidth_follows_the_disk_within_some_seconds() {
        let mut throttle = Throttle::new(10_000, 20_000, TICKS, 4);
        throttle.writing_begins(true, Nanos::ZERO);
        for tick in 1..=3000 {
            // 100 pages every 10 ms.
            throttle.written(100, false, Nanos::from_millis(tick * 10));
            throttle.writing_ends(Nanos::from_millis(tick * 10));
        }
        assert!(throttle.average_bandwidth.abs_diff(10_000) < 500, "{}", throttle.average_bandwidth);
    }
}
