//! Requests that wait and requests in flight, tracked by their events.
//!
//! An event identifies a request by sector and length, not by a number. Of requests alike in both it is
//! the oldest. One that waits may have grown since, so that its length is not known.

use std::collections::BTreeMap;

use super::{Act, Event};
use crate::request::Request;
use crate::units::{Nanos, SECTOR_BYTES, Sector};

/// First sector, operation, order of arrival.
type Key = (u64, u8, u64);

/// The tracked requests.
#[derive(Debug, Default)]
pub struct Requests {
    waiting: BTreeMap<Key, Waiting>,
    at_disk: BTreeMap<Key, Request>,
    seen: u64,
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    since: Nanos,
    /// Requeued with that many sectors; the insert event of the scheduler has not come yet, and does not if the
    /// driver has refused the request.
    given_back: Option<u32>,
}

impl Requests {
    /// The number of waiting requests.
    pub fn waiting(&self) -> u32 {
        self.waiting.len() as u32
    }

    /// The number of requests in flight.
    pub fn at_disk(&self) -> u32 {
        self.at_disk.len() as u32
    }

    /// Stops tracking all current requests.
    pub fn forget(&mut self) {
        self.waiting.clear();
        self.at_disk.clear();
    }

    /// Takes an event at `now`. Returns the request, if the event completes one.
    pub fn take(&mut self, now: Nanos, event: &Event) -> Option<Request> {
        let op = event.op;
        self.seen += 1;
        let key = (event.sector, op as u8, self.seen);
        let sectors = event.bytes / SECTOR_BYTES as u32;
        match event.act {
            Act::Insert => self.insert(key, sectors, now),
            // The request that began here is part of the one before it. (Or a bio was appended, and
            // no request begins here.)
            Act::BackMerge => drop(remove(&mut self.waiting, key)),
            Act::FrontMerge => self.grow_to_the_front(key, event),
            Act::Issue => {
                let waited = self.issued(key, sectors);
                let request = Request {
                    op,
                    sector: Sector(event.sector),
                    sectors,
                    inserted: waited.map_or(now, |waiting| waiting.since),
                    issued: now,
                    ..Request::default()
                };
                self.at_disk.insert(key, request);
            }
            Act::Requeue => {
                if let Some(request) = remove_such(&mut self.at_disk, key, |one| one.sectors == sectors) {
                    let waiting = Waiting { since: request.inserted, given_back: Some(request.sectors) };
                    self.waiting.insert(key, waiting);
                }
            }
            // A request that was never issued is a bio that needed a flush: the flush is a request
            // of its own.
            Act::Complete => return remove_such(&mut self.at_disk, key, |one| one.sectors == sectors),
            Act::Queue => {}
        }
        None
    }

    /// The waiting request that is issued with that length: one that was given back has not grown.
    fn issued(&mut self, key: Key, sectors: u32) -> Option<Waiting> {
        let alike = |&(_, waiting): &(&Key, &Waiting)| waiting.given_back == Some(sectors);
        let others = self.waiting.range(same(key));
        let found =
            others.clone().find(alike).or_else(|| others.clone().find(|(_, one)| one.given_back.is_none()));
        let (&found, _) = found.or_else(|| others.clone().next())?;
        self.waiting.remove(&found)
    }

    fn insert(&mut self, key: Key, sectors: u32, now: Nanos) {
        let mut others = self.waiting.range_mut(same(key));
        match others.find(|(_, waiting)| waiting.given_back == Some(sectors)) {
            Some((_, waiting)) => waiting.given_back = None,
            None => drop(self.waiting.insert(key, Waiting { since: now, given_back: None })),
        }
    }

    fn grow_to_the_front(&mut self, key: Key, event: &Event) {
        let behind = event.sector + u64::from(event.bytes) / SECTOR_BYTES;
        if let Some(waiting) = remove(&mut self.waiting, (behind, key.1, key.2)) {
            self.waiting.insert(key, waiting);
        }
    }
}

/// All requests with one sector and operation.
fn same((sector, op, _): Key) -> std::ops::RangeInclusive<Key> {
    (sector, op, 0)..=(sector, op, u64::MAX)
}

/// Removes the oldest request with one sector and operation.
fn remove<T>(map: &mut BTreeMap<Key, T>, key: Key) -> Option<T> {
    let oldest = *map.range(same(key)).next()?.0;
    map.remove(&oldest)
}

/// The same, but rather the oldest of which `is_it` is true.
fn remove_such<T>(map: &mut BTreeMap<Key, T>, key: Key, is_it: impl Fn(&T) -> bool) -> Option<T> {
    let found = map.range(same(key)).find(|(_, one)| is_it(one)).map(|(&found, _)| found);
    match found {
        Some(found) => map.remove(&found),
        None => remove(map, key),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::Op;

    /// Takes the events of reads at one sector, one each 10 ns: what was completed, as when it was inserted, its
    /// sectors, and when it completed.
    fn completed(events: &[(Act, u32)]) -> Vec<(u64, u32, u64)> {
        let mut requests = Requests::default();
        let take = |(at, &(act, sectors)): (u64, &(Act, u32))| {
            let bytes = sectors * SECTOR_BYTES as u32;
            let event = Event { time: at, sector: 800, bytes, act, op: Op::Read, sync: true };
            let request = requests.take(Nanos(at), &event)?;
            Some((request.inserted.0, request.sectors, at))
        };
        (0..).step_by(10).zip(events).filter_map(take).collect()
    }

    #[test]
    fn of_several_requests_at_one_sector_the_oldest_of_the_same_length_completes() {
        let two = [(Act::Insert, 8), (Act::Insert, 8), (Act::Issue, 16), (Act::Issue, 8)];
        let ends = [(Act::Complete, 8), (Act::Complete, 16)];
        assert_eq!(
            completed(&[two, [ends, ends].concat().try_into().expect("four")].concat()),
            [(10, 8, 40), (0, 16, 50)]
        );
        // A part has another length.
        assert_eq!(completed(&[(Act::Issue, 16), (Act::Complete, 8)]), [(0, 16, 10)]);
    }

    #[test]
    fn another_request_at_the_sector_of_a_refused_one_is_not_that_one() {
        let refused = [(Act::Insert, 8), (Act::Issue, 16), (Act::Requeue, 16), (Act::Insert, 8)];
        let issued = [(Act::Issue, 8), (Act::Issue, 16), (Act::Complete, 8), (Act::Complete, 16)];
        assert_eq!(completed(&[refused, issued].concat()), [(30, 8, 60), (0, 16, 70)]);
        // The scheduler has it again.
        let again = [(Act::Insert, 16), (Act::Issue, 16), (Act::Requeue, 16), (Act::Insert, 16)];
        let issued = [(Act::Issue, 16), (Act::Complete, 16)];
        assert_eq!(completed(&[&again[..], &issued].concat()), [(0, 16, 50)]);
    }
}
