//! Distances on a disk: what is a seek.
//!
//! A seek takes milliseconds on a hard disk. BFQ does not measure it; it looks at the distance in
//! sectors between the end of one request and the start of the next, and asks two questions:
//!
//! * Does a queue seek ([`SeekHistory`])? If mostly, the disk idles for it for a shorter time, it counts
//!   as slow, it is not merged with other queues, and a shared queue is split. If always, it is not
//!   soft real-time.
//! * Is a request close to the one before it at the disk ([`is_seeky`])? Then it belongs to the
//!   sequential part of a sample of the disk's rate (`peak_rate.rs`).
//!
//! A history is one bit for each of the last 32 requests of a queue, and the end of the last one. It
//! changes with each request that comes, before that request's end is stored. A new queue has one seek,
//! because the kernel assumes that its first request needs one. On flash a large request is no seek,
//! wherever it is.
//!
//! Follows `bfq_update_io_seektime`, `BFQ_RQ_SEEKY`, `BFQQ_SEEKY` and `BFQQ_TOTALLY_SEEKY`
//! of Linux 7.3. Left out: nothing; sector 0 means
//! "not known" in the kernel too.

use crate::units::Sector;

/// `BFQQ_SEEK_THR`: a request further than this from the end of the last one is a seek.
const SEEK_SECTORS: u64 = 8 * 100;
/// `BFQQ_SECT_THR_NONROT`: on flash large requests cost no seek, wherever they are.
pub(in crate::scheduler::bfq) const LARGE_SECTORS: u32 = 2 * 32;

/// `queue/rotational`.
#[derive(Clone, Copy, Debug)]
pub(in crate::scheduler::bfq) struct DiskKind {
    pub rotational: bool,
}

/// Whether a request costs a seek from `last`; from sector 0, which means "not known", none does.
pub(in crate::scheduler::bfq) fn is_seeky(
    disk: DiskKind,
    last: Sector,
    sector: Sector,
    sectors: u32,
) -> bool {
    last.0 != 0 && sector.0.abs_diff(last.0) > SEEK_SECTORS && (disk.rotational || sectors < LARGE_SECTORS)
}

/// The last 32 requests of a queue.
#[derive(Clone, Copy, Debug)]
pub(in crate::scheduler::bfq) struct SeekHistory {
    /// One bit each: 1 is a seek.
    seeks: u32,
    /// Where the last one ended; 0: there was none.
    last_end: Sector,
}

impl SeekHistory {
    /// The history of a new queue.
    pub const NEW: SeekHistory = SeekHistory { seeks: 1, last_end: Sector(0) };

    /// A request comes.
    pub fn request(&mut self, disk: DiskKind, sector: Sector, sectors: u32) {
        self.push(is_seeky(disk, self.last_end, sector, sectors));
    }

    fn push(&mut self, seek: bool) {
        self.seeks = self.seeks << 1 | u32::from(seek);
    }

    /// Sets the end with which the next request is compared.
    pub fn set_end(&mut self, end: Sector) {
        self.last_end = end;
    }

    /// Mostly seeks (`BFQQ_SEEKY`).
    #[inline]
    pub fn seeky(self) -> bool {
        self.seeks.count_ones() > 19
    }

    /// All requests were seeks (`BFQQ_TOTALLY_SEEKY`).
    #[inline]
    pub fn totally_seeky(self) -> bool {
        self.seeks == u32::MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_is_seeky_after_twenty_seeks_in_its_last_thirty_two_requests() {
        let mut history = SeekHistory::NEW;
        (0..18).for_each(|_| history.push(true));
        assert!(!history.seeky());
        history.push(true);
        assert!(history.seeky() && !history.totally_seeky());
        (0..13).for_each(|_| history.push(false));
        assert!(!history.seeky());
        (0..32).for_each(|_| history.push(true));
        assert!(history.totally_seeky());
    }

    #[test]
    fn on_flash_large_requests_are_no_seeks() {
        let far = |rotational, sectors| is_seeky(DiskKind { rotational }, Sector(1), Sector(9000), sectors);
        assert!(far(true, 8) && far(true, 256) && far(false, 8));
        assert!(!far(false, 64));
        assert!(!is_seeky(DiskKind { rotational: true }, Sector(0), Sector(9000), 8));
    }
}
