//! The thread of a driver: a worker of the loop device, a ublk server.
//!
//! Without such a thread (NVMe, SCSI) the disk's completion is the driver's. With one, each I/O takes CPU time in it, that of
//! the scheduler's work when a request ends (`finish_request`, `completed_request`), and so does each switch to it. It
//! works on all that waits when it gets a CPU: the more processes have their turn before it, the fewer switches an
//! I/O needs.

use std::collections::VecDeque;

use super::{Cpus, Lock};
use crate::disk::Completion;
use crate::units::Nanos;

/// The thread of one device's driver.
#[derive(Debug)]
pub struct Driver {
    costs: DriverCosts,
    /// The I/Os that it works on, at the front, and those after them.
    waiting: VecDeque<Completion>,
    /// How many it works on.
    working: usize,
    /// When it is done with the first of them; never if there is none.
    due: Nanos,
    /// Its latest CPU.
    cpu: u16,
}

/// CPU time of a driver's thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DriverCosts {
    /// For one I/O; 0: there is no thread.
    pub io: Nanos,
    /// For each switch to it.
    pub switch: Nanos,
}

impl Driver {
    /// An idle thread.
    pub fn new(costs: DriverCosts) -> Driver {
        Driver { costs, waiting: VecDeque::new(), working: 0, due: Nanos::NEVER, cpu: 0 }
    }

    /// The driver has a thread.
    #[inline]
    pub fn has_thread(&self) -> bool {
        self.costs.io > Nanos::ZERO
    }

    /// When the next I/O is done.
    #[inline]
    pub fn due(&self) -> Nanos {
        self.due
    }

    /// The disk has served an I/O.
    pub fn take(&mut self, now: Nanos, served: Completion, cpus: &mut Cpus, lock: &mut Lock) {
        self.waiting.push_back(served);
        if self.working == 0 {
            self.cpu = cpus.first_free(now, self.cpu);
            cpus.wake(self.cpu, now);
            self.begin(now, cpus, lock);
        }
    }

    /// Works on all that waits, on the CPU that is free first.
    fn begin(&mut self, now: Nanos, cpus: &mut Cpus, lock: &mut Lock) {
        self.working = self.waiting.len();
        cpus.work(self.cpu, now, self.costs.switch);
        cpus.end_requests(self.cpu, now, self.working as u64, lock);
        self.due = cpus.work(self.cpu, now, self.costs.io);
        cpus.work(self.cpu, now, Nanos(self.costs.io.0 * (self.working as u64 - 1)));
    }

    /// The I/O that is done at `now`, if one is. The thread begins the next ones.
    pub fn finish(&mut self, now: Nanos, cpus: &mut Cpus, lock: &mut Lock) -> Option<Completion> {
        if self.due > now {
            return None;
        }
        let done = self.waiting.pop_front();
        self.working -= 1;
        if self.working > 0 {
            self.due += self.costs.io;
        } else if self.waiting.is_empty() {
            self.due = Nanos::NEVER;
        } else {
            self.cpu = cpus.first_free(now, self.cpu);
            self.begin(now, cpus, lock);
        }
        done
    }
}

#[cfg(test)]
mod tests {
    use super::super::Host;
    use super::*;
    use crate::disk::Tag;

    fn served(tag: u32) -> Completion {
        Completion { tag: Tag(tag), at: Nanos::ZERO, began: None }
    }

    fn costs(io: u64, switch: u64) -> DriverCosts {
        DriverCosts { io: Nanos(io), switch: Nanos(switch) }
    }

    #[test]
    fn the_thread_serves_one_io_after_the_other_on_the_cpu_that_is_free_first() {
        let mut cpus = Cpus::new(&Host { cpus: 2, ..Host::FREE });
        let (mut driver, mut lock) = (Driver::new(costs(100, 0)), Lock::new(Nanos::ZERO));
        cpus.work(0, Nanos(0), Nanos(150));
        for tag in 0..3 {
            driver.take(Nanos(10), served(tag), &mut cpus, &mut lock);
        }
        let mut finish = |now, cpus: &mut Cpus| {
            let done = driver.finish(Nanos(now), cpus, &mut lock).map(|done| done.tag.0);
            (done, driver.due())
        };
        assert_eq!(finish(109, &mut cpus), (None, Nanos(110)), "on CPU 1, since a process has CPU 0");
        cpus.work(1, Nanos(110), Nanos(300));
        assert_eq!(finish(110, &mut cpus), (Some(0), Nanos(250)), "the others wait for CPU 0");
        cpus.work(0, Nanos(110), Nanos(500));
        assert_eq!(finish(250, &mut cpus), (Some(1), Nanos(350)), "which they have until both are done");
        assert_eq!(finish(350, &mut cpus), (Some(2), Nanos::NEVER));
    }

    #[test]
    fn a_switch_to_the_thread_costs_the_same_for_all_that_waits_and_the_scheduler_for_each() {
        let mut cpus = Cpus::new(&Host { cpus: 1, ..Host::FREE });
        let mut lock = Lock::new(Nanos(20)).of_two_threads();
        let mut driver = Driver::new(costs(100, 1000));
        for tag in 0..4 {
            driver.take(Nanos(0), served(tag), &mut cpus, &mut lock);
        }
        let mut times = Vec::new();
        while driver.due() < Nanos::NEVER {
            let now = driver.due();
            while driver.finish(now, &mut cpus, &mut lock).is_some() {}
            times.push(now.0);
        }
        assert_eq!(times, [1110, 2240, 2340, 2440], "the first was alone: 1000 + 10 + 100");
        assert_eq!(cpus.free(0), Nanos(2440));
    }
}
