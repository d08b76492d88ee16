//! Requests that wait and requests in flight, tracked by their events.
//!
//! An event identifies a request by sector and length, not by a number. Of two requests at one
//! sector it is the older.

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
    /// Requeued; the insert event of the scheduler has not come yet.
    given_back: bool,
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
        match event.act {
            Act::Insert => self.insert(key, now),
            // The request that began here is part of the one before it. (Or a bio was appended, and
            // no request begins here.)
            Act::BackMerge => drop(remove(&mut self.waiting, key)),
            Act::FrontMerge => self.grow_to_the_front(key, event),
            Act::Issue => {
                let waited = remove(&mut self.waiting, key);
                let request = Request {
                    op,
                    sector: Sector(event.sector),
                    sectors: event.bytes / SECTOR_BYTES as u32,
                    inserted: waited.map_or(now, |waiting| waiting.since),
                    issued: now,
                    ..Request::default()
                };
                self.at_disk.insert(key, request);
            }
            Act::Requeue => {
                if let Some(request) = remove(&mut self.at_disk, key) {
                    self.waiting.insert(key, Waiting { since: request.inserted, given_back: true });
                }
            }
            // A request that was never issued is a bio that needed a flush: the flush is a request
            // of its own.
            Act::Complete => return remove(&mut self.at_disk, key),
            Act::Queue => {}
        }
        None
    }

    fn insert(&mut self, key: Key, now: Nanos) {
        let back = self.waiting.range_mut(same(key)).find(|(_, waiting)| waiting.given_back);
        match back {
            Some((_, waiting)) => waiting.given_back = false,
            None => drop(self.waiting.insert(key, Waiting { since: now, given_back: false })),
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
