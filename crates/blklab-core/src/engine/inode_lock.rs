//! The lock of a file in a file system (`i_rwsem`): a process that writes through the page cache has it alone,
//! others share it.
//!
//! Follows `kernel/locking/rwsem.c` of Linux 7.3 without spinning. A process that finds the lock taken sleeps. When the
//! lock is free, the first sleeper is woken if it wants it alone, and an actor that comes before that one runs
//! takes it first; after 4 ms that is over: the lock is handed to the first. If the first sleeper wants to share it, all
//! that want to share it have it before they run. While others share it, an actor that comes passes no sleeper.
//!
//! Left out: locks of block devices; files of one process, which never waits for itself.

use std::collections::{HashMap, VecDeque};

use crate::owner::Actor;
use crate::pagecache::FileId;
use crate::ticks::Ticks;
use crate::units::Nanos;

/// After this time the lock is handed over (`RWSEM_WAIT_TIMEOUT`).
const PATIENCE: Nanos = Nanos::from_millis(4);

/// How an actor wants the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hold {
    /// With others.
    Shared,
    /// Alone.
    Alone,
}

#[derive(Clone, Copy, Debug)]
struct Sleeper {
    actor: Actor,
    hold: Hold,
    /// The tick until which it is patient.
    patient_until: u64,
}

#[derive(Debug, Default)]
struct Lock {
    alone: bool,
    sharing: u32,
    /// The latest that had it shared it (`RWSEM_READER_OWNED`, which stays when they free it).
    was_shared: bool,
    sleepers: VecDeque<Sleeper>,
    /// Only the first sleeper may take it (`RWSEM_FLAG_HANDOFF`).
    handed_over: bool,
    /// Sleepers that share it already, and have not run yet.
    granted: Vec<Actor>,
    /// Direct I/Os in flight (`i_dio_count`), and the actor that waits until there are none.
    direct: u32,
    waits_for_direct: Option<Actor>,
}

impl Lock {
    fn is_idle(&self) -> bool {
        !self.alone && self.sharing == 0 && self.sleepers.is_empty() && self.direct == 0
    }

    /// `rwsem_down_read_slowpath`.
    fn share(&mut self, actor: Actor, patient_until: u64, woken: &mut Vec<Actor>) -> bool {
        if let Some(place) = self.granted.iter().position(|&granted| granted == actor) {
            self.granted.swap_remove(place);
            return true;
        }
        if self.sleepers.iter().any(|sleeper| sleeper.actor == actor) {
            return false;
        }
        let has_sleepers = !self.sleepers.is_empty();
        let passes_none = self.was_shared && self.sharing > 0;
        if !self.alone && (!has_sleepers || (!self.handed_over && !passes_none)) {
            self.sharing += 1;
            self.was_shared = true;
            if self.sharing == 1 {
                self.grant(woken);
            }
            return true;
        }
        self.sleepers.push_back(Sleeper { actor, hold: Hold::Shared, patient_until });
        self.wake_next(woken);
        false
    }

    /// `rwsem_down_write_slowpath`, `rwsem_try_write_lock`.
    fn take(&mut self, actor: Actor, tick: u64, patient_until: u64, woken: &mut Vec<Actor>) -> bool {
        let place = match self.sleepers.iter().position(|sleeper| sleeper.actor == actor) {
            Some(place) => place,
            None => {
                self.sleepers.push_back(Sleeper { actor, hold: Hold::Alone, patient_until });
                if self.sleepers.len() > 1 {
                    self.wake_next(woken);
                }
                self.sleepers.len() - 1
            }
        };
        if self.handed_over && place != 0 {
            return false;
        }
        if self.alone || self.sharing > 0 {
            self.handed_over |= tick > self.sleepers[place].patient_until;
            return false;
        }
        self.sleepers.remove(place);
        (self.alone, self.handed_over, self.was_shared) = (true, false, false);
        true
    }

    /// Wakes the first sleeper, or shares the lock with all that want to share it, if that is possible now
    /// (`rwsem_cond_wake_waiter`).
    fn wake_next(&mut self, woken: &mut Vec<Actor>) {
        match self.sleepers.front() {
            Some(&Sleeper { actor, hold: Hold::Alone, .. }) if !self.alone && self.sharing == 0 => {
                woken.push(actor);
            }
            _ if !self.alone => self.grant(woken),
            _ => {}
        }
    }

    /// If the first sleeper wants to share it, all that do have it (`rwsem_mark_wake`).
    fn grant(&mut self, woken: &mut Vec<Actor>) {
        let shares = |sleeper: &Sleeper| sleeper.hold == Hold::Shared;
        if !self.sleepers.front().is_some_and(shares) {
            return;
        }
        let granted = self.sleepers.iter().copied().filter(shares).map(|sleeper| sleeper.actor);
        let before = self.granted.len();
        self.granted.extend(granted);
        woken.extend(&self.granted[before..]);
        self.sharing += (self.granted.len() - before) as u32;
        self.sleepers.retain(|sleeper| !shares(sleeper));
        (self.was_shared, self.handed_over) = (true, false);
    }
}

/// The locks that are taken or waited for.
#[derive(Debug, Default)]
pub struct InodeLocks {
    locks: HashMap<FileId, Lock>,
    /// Files that have been written since they were read from the disk (`IS_NOSEC`).
    written: Vec<FileId>,
}

impl InodeLocks {
    /// Takes the lock; false if `actor` sleeps until it is woken and tries again. Appends to `woken` others that have it
    /// now.
    pub fn take(
        &mut self,
        file: FileId,
        hold: Hold,
        actor: Actor,
        (now, ticks): (Nanos, Ticks),
        woken: &mut Vec<Actor>,
    ) -> bool {
        let lock = self.locks.entry(file).or_default();
        let (tick, patient_until) = (ticks.at(now), ticks.at(now) + ticks.span(PATIENCE));
        match hold {
            Hold::Shared => lock.share(actor, patient_until, woken),
            Hold::Alone => lock.take(actor, tick, patient_until, woken),
        }
    }

    /// Frees the lock; appends the actors to wake.
    pub fn free(&mut self, file: FileId, hold: Hold, woken: &mut Vec<Actor>) {
        let Some(lock) = self.locks.get_mut(&file) else { return };
        match hold {
            Hold::Shared => lock.sharing -= 1,
            Hold::Alone => lock.alone = false,
        }
        if !lock.sleepers.is_empty() && lock.sharing == 0 {
            lock.wake_next(woken);
        }
        // With no sleeper it makes no difference how it was held.
        if lock.is_idle() {
            self.locks.remove(&file);
        }
    }

    /// The file's first write since it was read from the disk needs the lock alone: with it the file system finds that
    /// the file has no rights to remove (`file_remove_privs`).
    pub fn is_written(&self, file: FileId) -> bool {
        self.written.contains(&file)
    }

    /// The file is written.
    pub fn write(&mut self, file: FileId) {
        if !self.is_written(file) {
            self.written.push(file);
        }
    }

    /// A direct I/O to the file begins (`inode_dio_begin`).
    pub fn direct_begins(&mut self, file: FileId) {
        self.locks.entry(file).or_default().direct += 1;
    }

    /// It has ended; appends an actor to wake.
    pub fn direct_ends(&mut self, file: FileId, woken: &mut Vec<Actor>) {
        let Some(lock) = self.locks.get_mut(&file) else { return };
        lock.direct -= 1;
        if lock.direct == 0 {
            woken.extend(lock.waits_for_direct.take());
        }
        if lock.is_idle() {
            self.locks.remove(&file);
        }
    }

    /// True if no direct I/O is in flight; otherwise the actor is woken then (`inode_dio_wait`).
    pub fn await_direct(&mut self, file: FileId, actor: Actor) -> bool {
        match self.locks.get_mut(&file).filter(|lock| lock.direct > 0) {
            Some(lock) => {
                lock.waits_for_direct = Some(actor);
                false
            }
            None => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::ProcessId;

    const FILE: FileId = FileId(3);

    fn actor(process: u32) -> Actor {
        Actor::Process(ProcessId(process))
    }

    /// Takes and frees one lock, and keeps which processes were woken.
    #[derive(Default)]
    struct Bench {
        locks: InodeLocks,
        woken: Vec<Actor>,
        now: Nanos,
    }

    impl Bench {
        fn take(&mut self, process: u32, hold: Hold) -> bool {
            let time = (self.now, Ticks::per_second(1000));
            self.locks.take(FILE, hold, actor(process), time, &mut self.woken)
        }

        fn alone(&mut self, process: u32) -> bool {
            self.take(process, Hold::Alone)
        }

        fn share(&mut self, process: u32) -> bool {
            self.take(process, Hold::Shared)
        }

        /// Frees it; returns the processes that were woken since the last call.
        fn free(&mut self, hold: Hold) -> Vec<u32> {
            self.locks.free(FILE, hold, &mut self.woken);
            // One that comes wakes the next sleeper once more.
            self.woken.dedup();
            self.woken.drain(..).map(|actor| actor.process().0).collect()
        }
    }

    #[test]
    fn sleepers_are_woken_in_order_and_others_may_be_faster() {
        let mut bench = Bench::default();
        assert!(bench.alone(0) && !bench.alone(1) && !bench.alone(2));
        assert_eq!(bench.free(Hold::Alone), [1]);
        assert!(bench.alone(0), "the first sleeper has not run yet");
        assert!(!bench.alone(1));
        assert_eq!(bench.free(Hold::Alone), [1]);
        assert!(bench.alone(1));
        assert_eq!(bench.free(Hold::Alone), [2]);
        assert!(bench.alone(2));
        assert_eq!(bench.free(Hold::Alone), [0; 0]);
        assert!(bench.locks.locks.is_empty());
    }

    #[test]
    fn one_that_was_woken_in_vain_for_too_long_gets_the_lock_next() {
        let mut bench = Bench::default();
        assert!(bench.alone(0) && !bench.alone(1));
        for ms in [4, 5] {
            bench.free(Hold::Alone);
            bench.now = Nanos::from_millis(ms);
            assert!(bench.alone(0), "{ms} ms");
            assert!(!bench.alone(1));
        }
        bench.free(Hold::Alone);
        bench.now = Nanos::from_millis(6);
        assert!(!bench.alone(0) && !bench.share(2), "it is handed over");
        assert!(bench.alone(1));
        bench.woken.clear();
        assert_eq!(bench.free(Hold::Alone), [0]);
    }

    #[test]
    fn those_that_share_it_have_it_together_and_come_after_one_that_waits_to_have_it_alone() {
        let mut bench = Bench::default();
        assert!(bench.share(0) && bench.share(1));
        assert!(!bench.alone(2) && !bench.share(3) && !bench.alone(4) && !bench.share(5));
        assert_eq!(bench.free(Hold::Shared), [0; 0]);
        assert_eq!(bench.free(Hold::Shared), [2], "the last of them wakes it");
        assert!(bench.alone(2));
        assert_eq!(bench.free(Hold::Alone), [3, 5], "all that share it, before the one between them");
        assert!(bench.share(3) && bench.share(5) && !bench.alone(4));
        assert_eq!(bench.free(Hold::Shared), [0; 0]);
        assert_eq!(bench.free(Hold::Shared), [4]);
    }

    #[test]
    fn one_that_shares_it_passes_a_sleeper_that_has_not_run_only_if_nothing_shares_it() {
        let mut bench = Bench::default();
        assert!(bench.alone(0) && !bench.alone(1));
        assert_eq!(bench.free(Hold::Alone), [1]);
        assert!(bench.share(2), "it is free");
        assert!(!bench.share(3), "it is shared, and one waits");
        assert!(!bench.alone(1));
        assert_eq!(bench.free(Hold::Shared), [1]);
    }

    #[test]
    fn one_that_waits_for_direct_io_is_woken_with_the_last() {
        let mut bench = Bench::default();
        bench.locks.direct_begins(FILE);
        bench.locks.direct_begins(FILE);
        assert!(bench.alone(0) && !bench.locks.await_direct(FILE, actor(0)));
        bench.locks.direct_ends(FILE, &mut bench.woken);
        assert_eq!(bench.woken, []);
        bench.locks.direct_ends(FILE, &mut bench.woken);
        assert_eq!(bench.woken, [actor(0)]);
        assert!(bench.locks.await_direct(FILE, actor(0)));
    }
}
