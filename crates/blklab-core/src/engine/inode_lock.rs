//! The lock of a file in a file system (`i_rwsem`): one process at a time writes it through the page cache.
//!
//! Follows `kernel/locking/rwsem.c` of Linux 7.3 without spinning: a process that finds the lock taken sleeps,
//! the first that sleeps is woken when it is free, and an actor that comes before that one runs takes it first. After 4 ms
//! that is over: the lock is handed to the first. The lock is held during the whole call, also while the process
//! works and while it is paused because too much memory is dirty.
//!
//! Left out: all that take it shared, such as XFS's reads through the page cache and direct I/O; files of one
//! process, which never waits for itself.

use std::collections::{HashMap, VecDeque};

use crate::owner::Actor;
use crate::pagecache::FileId;
use crate::ticks::Ticks;
use crate::units::Nanos;

/// After this time the lock is handed over (`RWSEM_WAIT_TIMEOUT`).
const PATIENCE: Nanos = Nanos::from_millis(4);

#[derive(Debug, Default)]
struct Lock {
    taken: bool,
    /// Each with the tick until which it is patient.
    sleepers: VecDeque<(Actor, u64)>,
    /// Only the first sleeper may take it (`RWSEM_FLAG_HANDOFF`).
    handed_over: bool,
}

/// The locks that are taken or waited for.
#[derive(Debug, Default)]
pub struct InodeLocks(HashMap<FileId, Lock>);

impl InodeLocks {
    /// Takes the lock; false if `actor` sleeps until it is woken and tries again.
    pub fn take(&mut self, file: FileId, actor: Actor, now: Nanos, ticks: Ticks) -> bool {
        let lock = self.0.entry(file).or_default();
        let place = lock.sleepers.iter().position(|&(sleeper, _)| sleeper == actor);
        if !lock.taken && (!lock.handed_over || place == Some(0)) {
            lock.taken = true;
            lock.handed_over &= place != Some(0);
            if let Some(place) = place {
                lock.sleepers.remove(place);
            }
            return true;
        }
        match place {
            None => lock.sleepers.push_back((actor, ticks.at(now) + ticks.span(PATIENCE))),
            Some(0) if ticks.at(now) > lock.sleepers[0].1 => lock.handed_over = true,
            Some(_) => {}
        }
        false
    }

    /// Frees the lock; returns the actor to wake.
    pub fn free(&mut self, file: FileId) -> Option<Actor> {
        let lock = self.0.get_mut(&file)?;
        lock.taken = false;
        match lock.sleepers.front() {
            Some(&(first, _)) => Some(first),
            None => {
                self.0.remove(&file);
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::ProcessId;

    const FILE: FileId = FileId(3);

    fn take(locks: &mut InodeLocks, process: u32, now: Nanos) -> bool {
        locks.take(FILE, Actor::Process(ProcessId(process)), now, Ticks::per_second(1000))
    }

    #[test]
    fn sleepers_are_woken_in_order_and_others_may_be_faster() {
        let (mut locks, now) = (InodeLocks::default(), Nanos::ZERO);
        assert!(take(&mut locks, 0, now) && !take(&mut locks, 1, now) && !take(&mut locks, 2, now));
        let first = Some(Actor::Process(ProcessId(1)));
        assert_eq!(locks.free(FILE), first);
        assert!(take(&mut locks, 0, now), "the first sleeper has not run yet");
        assert!(!take(&mut locks, 1, now));
        assert_eq!(locks.free(FILE), first);
        assert!(take(&mut locks, 1, now));
        assert_eq!(locks.free(FILE), Some(Actor::Process(ProcessId(2))));
        assert!(take(&mut locks, 2, now));
        assert_eq!(locks.free(FILE), None);
        assert!(locks.0.is_empty());
    }

    #[test]
    fn one_that_was_woken_in_vain_for_too_long_gets_the_lock_next() {
        let mut locks = InodeLocks::default();
        assert!(take(&mut locks, 0, Nanos::ZERO) && !take(&mut locks, 1, Nanos::ZERO));
        for ms in [4, 5] {
            locks.free(FILE);
            assert!(take(&mut locks, 0, Nanos::from_millis(ms)), "{ms} ms");
            assert!(!take(&mut locks, 1, Nanos::from_millis(ms)));
        }
        locks.free(FILE);
        let late = Nanos::from_millis(6);
        assert!(!take(&mut locks, 0, late), "it is handed over");
        assert!(take(&mut locks, 1, late));
        locks.free(FILE);
        assert!(take(&mut locks, 0, late));
    }
}
