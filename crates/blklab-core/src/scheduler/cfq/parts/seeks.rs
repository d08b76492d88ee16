//! Seek history: how many of a queue's last 32 requests were seeks.
//!
//! Follows `cfq_update_io_seektime` of Linux 4.12. On a rotating disk a request is a seek if it
//! begins more than 800 sectors from the end of the last one; on flash if it is small, because then
//! it gains nothing from order. A queue is seeky after more than four seeks: CFQ idles only for all
//! seeky queues together, and does not let them cooperate.

use crate::units::Sector;

/// A longer distance between two requests than this is a seek (`CFQQ_SEEK_THR`).
const SEEK_SECTORS: u64 = 8 * 100;
/// On flash a request of fewer sectors is a "seek" (`CFQQ_SECT_THR_NONROT`).
const SMALL_SECTORS: u32 = 2 * 32;
/// With more seeks than this in the last 32 requests a queue is seeky (`CFQQ_SEEKY`).
const SEEKY: u32 = 4;

/// The seek history of one queue.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::scheduler::cfq) struct SeekHistory {
    /// A bit for each request: 1 is a seek.
    seeks: u32,
    /// Where the last request ended; 0: there was none.
    last_end: Sector,
}

impl SeekHistory {
    /// A request comes.
    pub fn request(&mut self, sector: Sector, sectors: u32, rotational: bool) {
        let seek = if rotational {
            self.last_end.0 != 0 && sector.0.abs_diff(self.last_end.0) > SEEK_SECTORS
        } else {
            sectors < SMALL_SECTORS
        };
        self.seeks = self.seeks << 1 | u32::from(seek);
    }

    /// Sets the end with which the next request is compared.
    pub fn set_end(&mut self, end: Sector) {
        self.last_end = end;
    }

    #[inline]
    pub fn is_seeky(&self) -> bool {
        self.seeks.count_ones() > SEEKY
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The history after requests of 8 sectors, at these distances from each other's ends.
    fn history(distances: &[u64], rotational: bool) -> SeekHistory {
        let (mut history, mut sector) = (SeekHistory::default(), 1000);
        for distance in distances {
            history.request(Sector(sector + distance), 8, rotational);
            sector += distance + 8;
            history.set_end(Sector(sector));
        }
        history
    }

    #[test]
    fn a_queue_is_seeky_after_five_seeks_and_the_first_request_is_none() {
        assert!(!history(&[801; 5], true).is_seeky());
        assert!(history(&[801; 6], true).is_seeky());
        assert!(!history(&[800; 32], true).is_seeky());
    }

    #[test]
    fn seeks_are_forgotten_after_32_requests() {
        let near = [[801; 6].as_slice(), &[0; 27]].concat();
        assert!(history(&near, true).is_seeky());
        assert!(!history(&[near.as_slice(), &[0]].concat(), true).is_seeky());
    }

    #[test]
    fn on_flash_small_requests_are_seeks_wherever_they_are() {
        assert!(history(&[0; 5], false).is_seeky());
        let mut large = SeekHistory::default();
        (0..32u64).for_each(|turn| large.request(Sector(turn * 1_000_000), SMALL_SECTORS, false));
        assert!(!large.is_seeky());
    }
}
