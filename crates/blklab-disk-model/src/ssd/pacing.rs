//! Pacing: writes enter the buffer as fast as the dies empty it, so that none of them stalls.
//!
//! Without pacing, the buffer fills at the host's rate and then accepts no write until a program ends: most
//! writes are fast and a few wait long. Server drives promise even times: on an Intel S4610, all writes
//! during a collection take about the same time (fio-plot's sweep).
//!
//! The time that the dies take for a sector is measured while the buffer is in use; a write
//! then waits for its share of it, twice as long when the buffer is three quarters full and
//! not at all below a quarter, so that the buffer stays about half full. Data that have not arrived yet do
//! not count, nor those of a stripe that is not yet full: the measurement would take waiting dies for slow ones, and then slow
//! down the writes more and more.

/// The part of the buffer over which the dies' rate is measured.
const WINDOW: u64 = 8;

#[derive(Debug)]
pub(super) struct Pacing {
    buffer_sectors: u64,
    /// Sectors that have arrived in the buffer.
    arrived: u64,
    /// The start of the current measurement, and the sectors that the dies had written by then.
    since: u64,
    written: u64,
    /// The dies' time for a sector, ns times 2^16; 0: not known yet.
    sector_fx: u64,
}

impl Pacing {
    pub fn new(buffer_sectors: u64) -> Pacing {
        Pacing { buffer_sectors, arrived: 0, since: 0, written: 0, sector_fx: 0 }
    }

    /// A write has arrived.
    #[inline]
    pub fn arrive(&mut self, sectors: u64) {
        self.arrived += sectors;
    }

    /// The wait of a write for each of its sectors, ns times 2^16, if `used` of the arrived sectors are in
    /// the buffer, `open` of them in a stripe that is not yet full.
    pub fn wait(&mut self, now: u64, used: u64, open: u64) -> u64 {
        let (written, with_dies) = (self.arrived - used, used - open);
        let quarter = (self.buffer_sectors / 4).max(1);
        if with_dies < quarter {
            // The host is slower than the dies, which may have been idle.
            (self.since, self.written) = (now, written);
            return 0;
        }
        let meanwhile = written - self.written;
        if meanwhile >= self.buffer_sectors / WINDOW {
            let measured = ((now - self.since) << 16) / meanwhile.max(1);
            self.sector_fx = match self.sector_fx {
                0 => measured,
                before => (3 * before + measured) / 4,
            };
            (self.since, self.written) = (now, written);
        }
        self.sector_fx * ((with_dies - quarter) * 16 / quarter) / 16
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The dies have written all sectors except those in use.
    fn after(pacing: &mut Pacing, now: u64, written: u64, used: u64) -> u64 {
        pacing.arrive(written + used - pacing.arrived);
        pacing.wait(now, used, 0) >> 16
    }

    #[test]
    fn a_half_full_buffer_is_filled_as_fast_as_it_is_emptied() {
        let mut pacing = Pacing::new(1_024);
        after(&mut pacing, 0, 0, 100);
        // 128 sectors in 12.8 us.
        let waits = [256, 512, 768].map(|used| after(&mut pacing, 12_800, 128, used));
        assert_eq!(waits, [0, 100, 200]);
    }

    #[test]
    fn time_in_which_the_dies_had_nothing_to_do_does_not_count() {
        let mut pacing = Pacing::new(1_024);
        after(&mut pacing, 0, 0, 100);
        after(&mut pacing, 12_800, 128, 512);
        assert_eq!(after(&mut pacing, 9_000_000, 640, 0), 0);
        assert_eq!(after(&mut pacing, 9_012_800, 768, 512), 100);
    }

    #[test]
    fn a_stripe_that_is_not_yet_full_is_no_work_of_the_dies() {
        let mut pacing = Pacing::new(1_024);
        after(&mut pacing, 0, 0, 100);
        after(&mut pacing, 12_800, 128, 512);
        // 500 of 600 sectors wait for more, and the dies are idle for a second.
        pacing.arrive(600);
        assert_eq!(pacing.wait(1_000_000_000, 600, 500), 0);
        assert_eq!(after(&mut pacing, 1_000_012_800, 768, 512), 100);
    }
}
