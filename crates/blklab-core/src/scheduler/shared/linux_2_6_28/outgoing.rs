//! The dispatch list: chosen requests on their way to the disk, sorted once more.
//!
//! The single-queue block layer's `queue_head`, with `elv_dispatch_sort`, which is the same in 2.6.28 and 4.12: upwards from
//! the end of the last dispatched request, then from the lowest on. Reads, writes and discards keep
//! their order among each other.

use crate::containers::lists::{Links, List};
use crate::request::{Op, RequestId, RequestSlab};
use crate::units::Sector;

/// The list, and where the disk's head is.
#[derive(Debug)]
pub(in crate::scheduler) struct Outgoing {
    links: Links,
    list: List,
    count: usize,
    /// Where the last dispatched request ended.
    head: Sector,
}

impl Outgoing {
    pub fn new(requests: usize) -> Outgoing {
        Outgoing { links: Links::with_capacity(requests), list: List::EMPTY, count: 0, head: Sector(0) }
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    #[inline]
    pub fn len(&self) -> usize {
        self.count
    }

    /// Where the last dispatched request ended.
    #[inline]
    pub fn head(&self) -> Sector {
        self.head
    }

    /// Sorts a chosen request in.
    pub fn insert(&mut self, id: RequestId, requests: &RequestSlab) {
        let (op, sector) = (requests[id].op, requests[id].sector);
        let boundary = self.head;
        let goes_behind = |place: &RequestId| {
            let other = &requests[*place];
            let kind = |op: Op| (op.is_write(), op == Op::Discard);
            if kind(op) != kind(other.op) {
                return true;
            }
            // First the requests above the boundary, then those below.
            let below = |sector: Sector| sector < boundary;
            (below(sector), sector) >= (below(other.sector), other.sector)
        };
        let place = self.links.newest_first(&self.list).find(goes_behind);
        match place {
            Some(place) => self.links.insert_after(&mut self.list, place, id),
            None => self.links.push_front(&mut self.list, id),
        }
        self.count += 1;
    }

    /// The next request goes to the disk.
    #[inline]
    pub fn take(&mut self, requests: &RequestSlab) -> Option<RequestId> {
        let id = self.links.pop_front(&mut self.list)?;
        self.count -= 1;
        self.head = requests[id].end();
        Some(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::Request;

    /// The order in which requests at these sectors go to the disk.
    fn order(outgoing: &mut Outgoing, chosen: &[(Op, u64)]) -> Vec<u64> {
        let mut requests = RequestSlab::default();
        for &(op, sector) in chosen {
            let id =
                requests.insert(Request { op, sector: Sector(sector), sectors: 8, ..Request::default() });
            outgoing.insert(id, &requests);
        }
        assert_eq!(outgoing.len(), chosen.len());
        std::iter::from_fn(|| outgoing.take(&requests)).map(|id| requests[id].sector.0).collect()
    }

    #[test]
    fn requests_go_upwards_from_the_end_of_the_last_one_then_from_the_lowest() {
        let mut outgoing = Outgoing::new(8);
        assert_eq!(order(&mut outgoing, &[(Op::Read, 992)]), [992]);
        assert_eq!(outgoing.head(), Sector(1000));
        let reads = [2000, 500, 1000, 100].map(|sector| (Op::Read, sector));
        assert_eq!(order(&mut outgoing, &reads), [1000, 2000, 100, 500]);
        assert!(outgoing.is_empty());
    }

    #[test]
    fn a_read_does_not_pass_a_write() {
        let mixed = [(Op::Read, 300), (Op::Write, 200), (Op::Read, 100)];
        assert_eq!(order(&mut Outgoing::new(8), &mixed), [300, 200, 100]);
    }
}
