//! Order of time within a bounded window.
//!
//! A trace of several CPUs consists of parts that are in order each. A record waits in the lane of
//! its CPU until [`WINDOW`] records wait, or the trace ends; then the earliest goes first.

use std::collections::VecDeque;

/// How many records wait.
pub const WINDOW: usize = 1 << 16;

/// The most lanes; CPUs beyond share them.
const LANES_MAX: usize = 1 << 10;

/// What has a time.
pub trait Timed {
    /// The time by which it is ordered.
    fn time(&self) -> u64;
    /// Sets the time.
    fn set_time(&mut self, time: u64);
}

/// Records that wait.
pub struct Ordered<T> {
    lanes: Vec<VecDeque<T>>,
    /// The time of each lane's last record.
    lasts: Vec<u64>,
    waiting: usize,
    window: usize,
    /// The latest time that left.
    last: u64,
}

impl<T: Timed> Default for Ordered<T> {
    fn default() -> Ordered<T> {
        Ordered::of(WINDOW)
    }
}

impl<T: Timed> Ordered<T> {
    /// With a window of so many records.
    pub fn of(window: usize) -> Ordered<T> {
        Ordered { lanes: vec![VecDeque::new()], lasts: vec![0], waiting: 0, window, last: 0 }
    }

    /// Whether the window is full: the earliest record may leave.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.waiting >= self.window
    }

    /// The records that wait, in any order.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.lanes.iter().flatten()
    }

    /// Takes a record. Returns by how many ns it is earlier than the one before of its lane.
    #[inline]
    pub fn push(&mut self, lane: usize, record: T) -> u64 {
        let lane = lane % LANES_MAX;
        if lane >= self.lanes.len() {
            self.lanes.resize_with(lane + 1, VecDeque::new);
            self.lasts.resize(lane + 1, 0);
        }
        self.waiting += 1;
        let time = record.time();
        let back = self.lasts[lane].saturating_sub(time);
        self.lasts[lane] = time;
        let lane = &mut self.lanes[lane];
        if lane.back().is_none_or(|last| last.time() <= time) {
            lane.push_back(record);
            return back;
        }
        let place = lane.partition_point(|other| other.time() <= time);
        lane.insert(place, record);
        back
    }

    /// The earliest record, and whether it comes too late: then it has the time of the one before.
    #[inline]
    pub fn pop(&mut self) -> Option<(T, bool)> {
        let mut earliest = None;
        if self.lanes.len() == 1 {
            earliest = Some(0);
        } else {
            let mut least = u64::MAX;
            for (number, lane) in self.lanes.iter().enumerate() {
                if let Some(first) = lane.front()
                    && (first.time() < least || earliest.is_none())
                {
                    least = first.time();
                    earliest = Some(number);
                }
            }
        }
        let mut record = self.lanes[earliest?].pop_front()?;
        self.waiting -= 1;
        let late = record.time() < self.last;
        if late {
            record.set_time(self.last);
        }
        self.last = record.time();
        Some((record, late))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    impl Timed for (u64, u32) {
        fn time(&self) -> u64 {
            self.0
        }

        fn set_time(&mut self, time: u64) {
            self.0 = time;
        }
    }

    fn through(window: usize, records: &[(usize, u64)]) -> (Vec<(u64, u32)>, u32) {
        let (mut ordered, mut found, mut late) = (Ordered::of(window), Vec::new(), 0);
        for (number, (lane, time)) in records.iter().enumerate() {
            ordered.push(*lane, (*time, number as u32));
            while ordered.is_full() {
                let (record, is_late) = ordered.pop().expect("full");
                found.push(record);
                late += u32::from(is_late);
            }
        }
        while let Some((record, is_late)) = ordered.pop() {
            found.push(record);
            late += u32::from(is_late);
        }
        (found, late)
    }

    proptest! {
        #[test]
        fn every_record_leaves_once_and_none_before_an_earlier_one(
            records in prop::collection::vec((0..5_usize, 0..50_u64), 0..200), window in 1..50_usize
        ) {
            let (found, late) = through(window, &records);
            prop_assert!(found.is_sorted_by_key(|record| record.0));
            let mut numbers: Vec<_> = found.iter().map(|record| record.1).collect();
            numbers.sort_unstable();
            prop_assert_eq!(numbers, (0..records.len() as u32).collect::<Vec<_>>());
            if window > records.len() {
                prop_assert_eq!(late, 0);
            }
        }

        #[test]
        fn records_of_one_time_stay_in_their_order(lanes in 1..4_usize, count in 1..50_usize) {
            let records: Vec<_> = (0..count).map(|number| (number % lanes, 7)).collect();
            let (found, _) = through(1000, &records);
            for lane in 0..lanes {
                prop_assert!(
                    found.iter().map(|record| record.1).filter(|n| *n as usize % lanes == lane).is_sorted()
                );
            }
        }
    }

    #[test]
    fn a_record_behind_the_window_gets_the_time_of_the_one_before() {
        let (found, late) = through(2, &[(0, 10), (0, 20), (0, 5)]);
        assert_eq!((found, late), (vec![(10, 0), (10, 2), (20, 1)], 1));
    }
}
