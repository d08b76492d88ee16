//! Units as types: virtual time, disk addresses and sizes.
//!
//! All values are integers, so that a run gives the same bytes on any machine. A sector is always
//! 512 bytes, as in the kernel's block layer, for any logical or physical block size of the disk.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Sub, SubAssign};

/// Bytes in a sector (the kernel's `SECTOR_SIZE`).
pub const SECTOR_BYTES: u64 = 512;

/// A point in virtual time, or a duration, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Nanos(pub u64);

impl Nanos {
    /// The start of a run; an empty duration.
    pub const ZERO: Nanos = Nanos(0);
    /// Later than any event: "no event is due".
    pub const NEVER: Nanos = Nanos(u64::MAX);

    /// `us` microseconds.
    pub const fn from_micros(us: u64) -> Nanos {
        Nanos(us.saturating_mul(1_000))
    }

    /// `ms` milliseconds.
    pub const fn from_millis(ms: u64) -> Nanos {
        Nanos(ms.saturating_mul(1_000_000))
    }

    /// `s` seconds.
    pub const fn from_secs(s: u64) -> Nanos {
        Nanos(s.saturating_mul(1_000_000_000))
    }

    /// In seconds, for rates and printing; never converted back.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// `self - earlier`, or zero when `earlier` is later.
    #[must_use]
    pub const fn saturating_sub(self, earlier: Nanos) -> Nanos {
        Nanos(self.0.saturating_sub(earlier.0))
    }

    /// `self + span`, or `NEVER` when that overflows.
    #[must_use]
    pub const fn saturating_add(self, span: Nanos) -> Nanos {
        Nanos(self.0.saturating_add(span.0))
    }
}

impl Add for Nanos {
    type Output = Nanos;
    fn add(self, other: Nanos) -> Nanos {
        Nanos(self.0 + other.0)
    }
}

impl AddAssign for Nanos {
    fn add_assign(&mut self, other: Nanos) {
        self.0 += other.0;
    }
}

impl Sub for Nanos {
    type Output = Nanos;
    fn sub(self, other: Nanos) -> Nanos {
        Nanos(self.0 - other.0)
    }
}

impl SubAssign for Nanos {
    fn sub_assign(&mut self, other: Nanos) {
        self.0 -= other.0;
    }
}

impl Sum for Nanos {
    fn sum<I: Iterator<Item = Nanos>>(spans: I) -> Nanos {
        spans.fold(Nanos::ZERO, Add::add)
    }
}

impl fmt::Display for Nanos {
    /// The largest unit that keeps the number above one: `85 us`, `4.17 ms`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            u64::MAX => write!(f, "never"),
            ns if ns < 1_000 => write!(f, "{ns} ns"),
            ns if ns < 1_000_000 => write!(f, "{} us", ns as f64 / 1e3),
            ns if ns < 1_000_000_000 => write!(f, "{} ms", ns as f64 / 1e6),
            ns => write!(f, "{} s", ns as f64 / 1e9),
        }
    }
}

/// A disk address: the number of a 512-byte sector, counted from the disk's start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sector(pub u64);

impl Sector {
    /// The sector `sectors` above this one.
    #[must_use]
    pub const fn offset(self, sectors: u32) -> Sector {
        Sector(self.0 + sectors as u64)
    }

    /// Distance to `other` in sectors, either way.
    pub const fn distance(self, other: Sector) -> u64 {
        self.0.abs_diff(other.0)
    }

    /// The address in bytes.
    pub const fn to_bytes(self) -> Bytes {
        Bytes(self.0 * SECTOR_BYTES)
    }
}

/// A size or an offset in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(pub u64);

impl Bytes {
    /// `kib` KiB.
    pub const fn from_kib(kib: u64) -> Bytes {
        Bytes(kib * 1024)
    }

    /// `mib` MiB.
    pub const fn from_mib(mib: u64) -> Bytes {
        Bytes(mib * 1024 * 1024)
    }

    /// The sector that holds this byte offset.
    pub const fn to_sector(self) -> Sector {
        Sector(self.0 / SECTOR_BYTES)
    }

    /// Sectors needed to hold this many bytes.
    pub const fn sectors(self) -> u64 {
        self.0.div_ceil(SECTOR_BYTES)
    }
}

impl Add for Bytes {
    type Output = Bytes;
    fn add(self, other: Bytes) -> Bytes {
        Bytes(self.0 + other.0)
    }
}

impl AddAssign for Bytes {
    fn add_assign(&mut self, other: Bytes) {
        self.0 += other.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn sector_to_bytes_and_back_is_the_same_sector(s in 0..u64::MAX / SECTOR_BYTES) {
            prop_assert_eq!(Sector(s).to_bytes().to_sector(), Sector(s));
        }

        #[test]
        fn sectors_hold_the_bytes_and_no_whole_sector_more(b in 0..u64::MAX / 2) {
            let held = Bytes(b).sectors() * SECTOR_BYTES;
            prop_assert!(held >= b && held - b < SECTOR_BYTES);
        }

        #[test]
        fn adding_then_subtracting_a_span_gives_the_time_back(t in 0..u64::MAX / 2, d in 0..u64::MAX / 2) {
            prop_assert_eq!(Nanos(t) + Nanos(d) - Nanos(d), Nanos(t));
        }
    }

    #[test]
    fn time_prints_in_the_unit_a_person_would_choose() {
        assert_eq!(Nanos(850).to_string(), "850 ns");
        assert_eq!(Nanos(85_000).to_string(), "85 us");
        assert_eq!(Nanos(4_170_000).to_string(), "4.17 ms");
        assert_eq!(Nanos::from_secs(30).to_string(), "30 s");
        assert_eq!(Nanos::NEVER.to_string(), "never");
    }
}
