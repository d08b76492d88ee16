//! The I/O units of a fio process (`struct io_u`): which are free, which are in use, and fio's rules
//! of depth and batches.
//!
//! A process has `iodepth` units. An I/O takes a free one when it starts and gives it back when it
//! is reaped. Prepared I/Os are submitted in batches of `iodepth_batch_submit`. When all units are
//! in use, the process submits what is prepared, then reaps, until no more than `iodepth_low` are
//! in use; each time it waits for `iodepth_batch_complete_min` completions at least and reaps
//! `iodepth_batch_complete_max` at most.
//!
//! As with the [`Issuer`](super::issuer::Issuer), the simulator's process and the driver in the
//! kernel rig's guest share these rules. How an I/O is submitted and how completions are waited for
//! is different in the two: a simulated process returns to the event loop in the middle of a
//! submission, the driver blocks in a system call.

use crate::units::Nanos;
use crate::workload::pattern::IoUnit;
use crate::workload::spec::{Direction, Queueing};

/// A unit in use.
#[derive(Clone, Copy, Debug)]
pub struct Started {
    /// The I/O.
    pub unit: IoUnit,
    /// When it started.
    pub start: Nanos,
    /// When it was submitted; until then, when it started.
    pub issued: Nanos,
}

/// The units of one process.
#[derive(Debug)]
pub struct Units {
    units: Vec<Started>,
    free: Vec<u32>,
    batch_submit: u32,
    least: u32,
    most: u32,
    low: u32,
}

impl Units {
    /// All free.
    pub fn new(queueing: &Queueing) -> Units {
        let depth = queueing.depth();
        let unit = IoUnit { direction: Direction::Read, wrapped: false, file: 0, offset: 0, len: 0 };
        Units {
            units: vec![Started { unit, start: Nanos::ZERO, issued: Nanos::ZERO }; depth as usize],
            free: (0..depth).rev().collect(),
            batch_submit: queueing.batch_submit,
            least: queueing.batch_complete_min,
            most: queueing.batch_complete_max,
            low: queueing.low.min(depth - 1),
        }
    }

    /// An I/O starts; returns its slot.
    ///
    /// # Panics
    /// If [all are in use](Units::all_in_use).
    #[inline(always)]
    pub fn start(&mut self, unit: IoUnit, now: Nanos) -> u32 {
        let slot = self.free.pop().expect("a process reaps when all units are in use");
        self.units[slot as usize] = Started { unit, start: now, issued: now };
        slot
    }

    /// An I/O that is not submitted started later than [`Units::start`] was told.
    #[inline(always)]
    pub fn restart(&mut self, slot: u32, now: Nanos) {
        let io = &mut self.units[slot as usize];
        (io.start, io.issued) = (now, now);
    }

    /// The I/O of a slot.
    #[inline(always)]
    pub fn unit(&self, slot: u32) -> &IoUnit {
        &self.units[slot as usize].unit
    }

    /// An I/O was submitted.
    #[inline(always)]
    pub fn issued(&mut self, slot: u32, now: Nanos) {
        self.units[slot as usize].issued = now;
    }

    /// An I/O was reaped: its slot is free.
    #[inline(always)]
    pub fn reaped(&mut self, slot: u32) -> Started {
        self.free.push(slot);
        self.units[slot as usize]
    }

    /// I/Os started and not reaped (fio's `cur_depth`).
    #[inline(always)]
    pub fn depth(&self) -> u32 {
        self.units.len() as u32 - self.free.len() as u32
    }

    /// The next step is to reap.
    #[inline(always)]
    pub fn all_in_use(&self) -> bool {
        self.free.is_empty()
    }

    /// Whether this number of prepared I/Os is submitted now.
    #[inline(always)]
    pub fn is_batch(&self, prepared: usize) -> bool {
        prepared as u32 >= self.batch_submit || self.all_in_use()
    }

    /// Each prepared I/O is submitted at once.
    #[inline(always)]
    pub fn are_single(&self) -> bool {
        self.batch_submit <= 1
    }

    /// The least number of completions to wait for, and the largest to reap; some are in use.
    #[inline(always)]
    pub fn to_reap(&self) -> (u32, u32) {
        let least = self.least.clamp(1, self.depth());
        (least, self.most.max(least))
    }

    /// So few are in use that the process starts I/Os again.
    #[inline(always)]
    pub fn is_low(&self) -> bool {
        self.depth() <= self.low
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::spec::Engine;

    const UNIT: IoUnit =
        IoUnit { direction: Direction::Read, wrapped: false, file: 0, offset: 4096, len: 512 };

    fn units(batch_submit: u32, complete: (u32, u32), low: u32) -> Units {
        let (batch_complete_min, batch_complete_max) = complete;
        Units::new(&Queueing {
            engine: Engine::Libaio,
            direct: true,
            iodepth: 4,
            batch_submit,
            batch_complete_min,
            batch_complete_max,
            low,
        })
    }

    #[test]
    fn a_slot_is_in_use_from_the_start_of_an_io_until_it_is_reaped() {
        let mut units = units(1, (1, 1), 4);
        let slots: Vec<u32> = (0..4).map(|number| units.start(UNIT, Nanos(number))).collect();
        assert!(units.all_in_use() && units.depth() == 4);
        units.issued(slots[2], Nanos(9));
        let done = units.reaped(slots[2]);
        assert_eq!((done.start, done.issued, done.unit.len), (Nanos(2), Nanos(9), 512));
        assert_eq!((units.depth(), units.start(UNIT, Nanos(10))), (3, slots[2]));
        assert_eq!(units.reaped(slots[0]).issued, Nanos(0), "it was not submitted");
        units.restart(slots[1], Nanos(5));
        let done = units.reaped(slots[1]);
        assert_eq!((done.start, done.issued), (Nanos(5), Nanos(5)));
    }

    #[test]
    fn io_is_submitted_in_batches_or_when_all_units_are_in_use() {
        let mut three = units(3, (1, 1), 4);
        (0..3).for_each(|_| _ = three.start(UNIT, Nanos(0)));
        assert!(!three.is_batch(2) && three.is_batch(3) && !three.are_single());
        three.start(UNIT, Nanos(0));
        assert!(three.is_batch(1));
        assert!(units(1, (1, 1), 4).are_single());
    }

    #[test]
    fn a_process_waits_for_no_more_than_is_in_flight() {
        let mut units = units(1, (3, 2), 4);
        units.start(UNIT, Nanos(0));
        units.start(UNIT, Nanos(0));
        assert_eq!(units.to_reap(), (2, 2));
        units.start(UNIT, Nanos(0));
        units.start(UNIT, Nanos(0));
        assert_eq!(units.to_reap(), (3, 3), "never less than it waits for");
        let mut polls = self::units(1, (0, 8), 4);
        polls.start(UNIT, Nanos(0));
        assert_eq!(polls.to_reap(), (1, 8));
    }

    #[test]
    fn a_process_starts_again_at_the_low_depth_and_with_one_free_unit_at_least() {
        let mut low = units(1, (1, 1), 1);
        let mut full = units(1, (1, 1), 4);
        for units in [&mut low, &mut full] {
            (0..4).for_each(|_| _ = units.start(UNIT, Nanos(0)));
            assert!(!units.is_low());
            units.reaped(0);
        }
        assert!(!low.is_low() && full.is_low());
        low.reaped(1);
        low.reaped(2);
        assert!(low.is_low());
    }
}
