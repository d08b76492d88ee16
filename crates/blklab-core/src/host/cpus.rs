//! CPUs as next-free times.

use super::{Host, Lock};
use crate::units::Nanos;

/// The time at which each CPU is free again.
#[derive(Clone, Debug)]
pub struct Cpus {
    free: Vec<Nanos>,
    /// See [`Host::wake`].
    wake: Nanos,
}

impl Cpus {
    /// Idle CPUs.
    pub fn new(host: &Host) -> Cpus {
        Cpus { free: vec![Nanos::ZERO; usize::from(host.cpus)], wake: host.wake }
    }

    /// When the CPU is free.
    #[inline]
    pub fn free(&self, cpu: u16) -> Nanos {
        self.free[usize::from(cpu)]
    }

    /// The CPU is free at that time, with work that was done elsewhere.
    pub fn set_free(&mut self, cpu: u16, at: Nanos) {
        self.free[usize::from(cpu)] = at;
    }

    /// Whether the CPU is busy until exactly `at`.
    #[inline]
    pub fn works_until(&self, cpu: u16, at: Nanos) -> bool {
        self.free[usize::from(cpu)] == at
    }

    /// Work of length `cost` requested at `now` on `cpu`: returns when it is done.
    #[inline]
    pub fn work(&mut self, cpu: u16, now: Nanos, cost: Nanos) -> Nanos {
        let free = &mut self.free[usize::from(cpu)];
        *free = now.max(*free) + cost;
        *free
    }

    /// As [`Cpus::work`], for a thread that is woken for it.
    #[inline]
    pub fn work_woken(&mut self, cpu: u16, now: Nanos, cost: Nanos) -> Nanos {
        self.wake(cpu, now);
        self.work(cpu, now, cost)
    }

    /// A thread is woken: an idle CPU needs time until it runs.
    #[inline]
    pub fn wake(&mut self, cpu: u16, now: Nanos) {
        let free = &mut self.free[usize::from(cpu)];
        if *free < now {
            *free = now + self.wake;
        }
    }

    /// The CPU on which work can begin first; of several, `latest` if it is one of them.
    #[inline]
    pub fn first_free(&self, now: Nanos, latest: u16) -> u16 {
        let begin = |cpu: u16| self.free[usize::from(cpu)].max(now);
        let first = (0..self.free.len() as u16).min_by_key(|&cpu| (begin(cpu), cpu != latest));
        first.unwrap_or(latest)
    }

    /// Submission of one I/O: its CPU work, then its scheduler's lock, for which the CPU spins.
    #[inline(always)]
    pub fn submit(&mut self, cpu: u16, now: Nanos, cost: Nanos, lock: &mut Lock) -> Nanos {
        let worked = self.work(cpu, now, cost);
        if lock.submission() == Nanos::ZERO {
            return worked;
        }
        let released = lock.take(now, worked, lock.submission());
        self.free[usize::from(cpu)] = released;
        released
    }

    /// The scheduler's work at the end of `count` requests, on the CPU of the thread that ends them.
    pub fn end_requests(&mut self, cpu: u16, now: Nanos, count: u64, lock: &mut Lock) {
        let hold = Nanos(lock.end().0 * count);
        if hold > Nanos::ZERO {
            let free = &mut self.free[usize::from(cpu)];
            *free = lock.take(now, now.max(*free), hold);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_cpus_share_the_schedulers_lock_and_nothing_else() {
        let host = Host { cpus: 2, ..Host::FREE };
        let (mut cpus, mut none) = (Cpus::new(&host), Lock::new(Nanos::ZERO));
        assert_eq!(cpus.submit(0, Nanos(0), Nanos(100), &mut none), Nanos(100));
        assert_eq!(cpus.submit(1, Nanos(0), Nanos(100), &mut none), Nanos(100));
        let (mut cpus, mut lock) = (Cpus::new(&host), Lock::new(Nanos(30)));
        assert_eq!(cpus.submit(0, Nanos(0), Nanos(100), &mut lock), Nanos(130));
        assert_eq!(
            cpus.submit(1, Nanos(0), Nanos(100), &mut lock),
            Nanos(160),
            "the second waits for the lock"
        );
        assert_eq!(cpus.work(1, Nanos(0), Nanos(10)), Nanos(170), "and its CPU spins meanwhile");
        assert!(cpus.works_until(1, Nanos(170)) && !cpus.works_until(0, Nanos(170)));
    }

    #[test]
    fn a_process_whose_turn_is_far_away_does_not_hold_the_lock_meanwhile() {
        let host = Host { cpus: 2, ..Host::FREE };
        let (mut cpus, mut lock) = (Cpus::new(&host), Lock::new(Nanos(30)));
        cpus.work(0, Nanos(0), Nanos(1000));
        assert_eq!(cpus.submit(0, Nanos(0), Nanos(100), &mut lock), Nanos(1130));
        assert_eq!(cpus.submit(1, Nanos(0), Nanos(100), &mut lock), Nanos(130));
    }

    #[test]
    fn a_thread_that_is_woken_on_an_idle_cpu_runs_later_and_on_a_busy_one_at_once() {
        let mut cpus = Cpus::new(&Host { cpus: 1, wake: Nanos(50), ..Host::FREE });
        assert_eq!(cpus.work_woken(0, Nanos(100), Nanos(10)), Nanos(160));
        assert_eq!(cpus.work_woken(0, Nanos(120), Nanos(10)), Nanos(170));
        assert_eq!(cpus.work_woken(0, Nanos(170), Nanos(10)), Nanos(180), "the CPU has not gone idle");
        assert_eq!(cpus.work(0, Nanos(200), Nanos(10)), Nanos(210));
    }
}
