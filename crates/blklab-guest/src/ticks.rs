//! The kernel's tick, and values that the kernel keeps in ticks.

use std::io;
use std::num::NonZeroU64;
use std::time::Duration;

use blklab_disk::service::clock;
use rustix::time::{ClockId, Timespec, clock_getres};

const NS_PER_MS: i64 = 1_000_000;

/// Length of a tick of the running kernel (a jiffy) in ns: the resolution of its coarse clocks.
pub fn tick_ns() -> i64 {
    let resolution = clock_getres(ClockId::MonotonicCoarse);
    resolution.tv_sec * 1_000_000_000 + resolution.tv_nsec
}

/// Sleeps until the first tick that is not before `time` of the clock. Linux has ticks at whole multiples of
/// their length on the monotonic clock (`tick_init_jiffy_update()`).
pub fn wait_for_one(time: Duration) -> io::Result<()> {
    // The default slack would let it end up to 50 us after the tick.
    let slack = rustix::thread::current_timer_slack()?;
    rustix::thread::set_current_timer_slack(NonZeroU64::new(1))?;
    let next = (time.as_nanos() as u64).next_multiple_of(tick_ns().cast_unsigned());
    // The least slack is 1 ns: it ends that much later, or with an interrupt before.
    let mut early = 1;
    while clock().0 < next {
        let at = next - early;
        let time = Timespec { tv_sec: (at / 1_000_000_000) as i64, tv_nsec: (at % 1_000_000_000) as _ };
        let _ = rustix::thread::clock_nanosleep_absolute(ClockId::Monotonic, &time);
        early = 0;
    }
    Ok(rustix::thread::set_current_timer_slack(NonZeroU64::new(slack))?)
}

/// Whether `found` is `asked`, both in ms, rounded up to whole ticks: the value of a tunable that
/// the kernel keeps in jiffies (`msecs_to_jiffies()`, `jiffies_to_msecs()`).
pub fn is_rounded(asked: &str, found: &str, tick_ns: i64) -> bool {
    let (Ok(asked), Ok(found)) = (asked.parse::<i64>(), found.parse::<i64>()) else { return false };
    let Some(asked_ns) = asked.checked_mul(NS_PER_MS).filter(|&ns| ns > 0) else { return false };
    let whole_ns = i128::from((asked_ns - 1) / tick_ns + 1) * i128::from(tick_ns);
    // Ticks that are not whole ms are shown as the next lower or higher number.
    let (below, ns_per_ms) = (i128::from(found) * i128::from(NS_PER_MS), i128::from(NS_PER_MS));
    (below - whole_ns).abs() < ns_per_ms
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_in_ticks_is_the_next_whole_tick() {
        let tick = 10_000_000;
        for (asked, found) in [("1", "10"), ("10", "10"), ("11", "20"), ("125", "130")] {
            assert!(is_rounded(asked, found, tick), "{asked} {found}");
        }
        // Any other value is a refusal.
        for (asked, found) in
            [("1", "20"), ("1", "0"), ("512", "256"), ("512", "510"), ("0", "10"), ("-1", "10"), ("on", "1")]
        {
            assert!(!is_rounded(asked, found, tick), "{asked} {found}");
        }
        assert!(!is_rounded(&i64::MAX.to_string(), "10", tick));
    }

    #[test]
    fn ticks_need_not_be_whole_milliseconds() {
        // 300 per second: 11 ms are four ticks.
        assert!(is_rounded("11", "13", 3_333_333));
        assert!(!is_rounded("11", "11", 3_333_333));
        assert!(!is_rounded("11", "16", 3_333_333));
    }

    #[test]
    fn it_waits_for_the_first_tick_that_is_not_before_a_time() {
        let (tick, begin) = (tick_ns().cast_unsigned(), clock().0);
        wait_for_one(Duration::from_nanos(begin + 2 * tick)).expect("the slack can be set");
        assert!(clock().0 / tick >= begin / tick + 2);
    }

    #[test]
    fn this_machines_tick_is_one_that_linux_can_have() {
        assert!((1_000_000..=10_000_000).contains(&tick_ns()), "{}", tick_ns());
    }
}
