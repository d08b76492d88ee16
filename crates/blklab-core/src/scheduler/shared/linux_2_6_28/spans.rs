//! Tunables in milliseconds as spans of ticks.
//!
//! The kernel writes a default as a part of a second in ticks, rounded down: 8 ms are `HZ / 125`, which is
//! one tick of 10 ms, and 125 ms are twelve. A value that was set is rounded up (`msecs_to_jiffies`).

use crate::scheduler::Settings;
use crate::ticks::Ticks;
use crate::units::Nanos;

/// The tunable of that name in ticks: a tick at least, unless it was set to 0.
pub(in crate::scheduler) fn in_ticks(settings: &Settings, ticks: Ticks, name: &str, default_ms: u64) -> u64 {
    let ms = settings.get(name) as u64;
    if ms == default_ms {
        (ticks.hz() * default_ms / 1000).max(1)
    } else {
        ticks.span(Nanos::from_millis(ms))
    }
}
