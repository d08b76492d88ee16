//! The thread of a driver: a worker of the loop device, a ublk server.
//!
//! It completes what the disk has served, one I/O after the other, on the CPU that is free first.
//! Without such a thread (NVMe, SCSI) the disk's completion is the driver's.

use std::collections::VecDeque;

use super::Cpus;
use crate::disk::Completion;
use crate::units::Nanos;

/// The thread of one device's driver.
#[derive(Debug)]
pub struct Driver {
    /// CPU time of one I/O; 0: there is no thread.
    cost: Nanos,
    /// The I/O that it works on, at the front, and those after it.
    waiting: VecDeque<Completion>,
    /// When it is done with the I/O at the front; never if there is none.
    due: Nanos,
    /// Its latest CPU.
    cpu: u16,
}

impl Driver {
    /// An idle thread that works for `cost` on each I/O.
    pub fn new(cost: Nanos) -> Driver {
        Driver { cost, waiting: VecDeque::new(), due: Nanos::NEVER, cpu: 0 }
    }

    /// The driver has a thread.
    #[inline]
    pub fn has_thread(&self) -> bool {
        self.cost > Nanos::ZERO
    }

    /// When the next I/O is done.
    #[inline]
    pub fn due(&self) -> Nanos {
        self.due
    }

    /// The disk has served an I/O.
    pub fn take(&mut self, now: Nanos, served: Completion, cpus: &mut Cpus) {
        self.waiting.push_back(served);
        if self.waiting.len() == 1 {
            self.cpu = cpus.first_free(now, self.cpu);
            self.due = cpus.work_woken(self.cpu, now, self.cost);
        }
    }

    /// The I/O that is done at `now`, if one is. The thread begins the next one.
    pub fn finish(&mut self, now: Nanos, cpus: &mut Cpus) -> Option<Completion> {
        if self.due > now {
            return None;
        }
        let done = self.waiting.pop_front();
        self.due = Nanos::NEVER;
        if !self.waiting.is_empty() {
            self.cpu = cpus.first_free(now, self.cpu);
            self.due = cpus.work(self.cpu, now, self.cost);
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

    #[test]
    fn the_thread_serves_one_io_after_the_other_on_the_cpu_that_is_free_first() {
        let mut cpus = Cpus::new(&Host { cpus: 2, ..Host::FREE });
        let mut driver = Driver::new(Nanos(100));
        cpus.work(0, Nanos(0), Nanos(150));
        for tag in 0..3 {
            driver.take(Nanos(10), served(tag), &mut cpus);
        }
        assert_eq!(driver.due(), Nanos(110), "on CPU 1, since a process has CPU 0");
        assert!(driver.finish(Nanos(109), &mut cpus).is_none());
        cpus.work(1, Nanos(110), Nanos(300));
        assert_eq!(driver.finish(Nanos(110), &mut cpus).map(|done| done.tag), Some(Tag(0)));
        assert_eq!(driver.due(), Nanos(250), "the second waits for CPU 0");
        assert_eq!(driver.finish(Nanos(250), &mut cpus).map(|done| done.tag), Some(Tag(1)));
        assert_eq!(driver.due(), Nanos(350), "and stays there while CPU 1 is busy");
        assert_eq!(driver.finish(Nanos(350), &mut cpus).map(|done| done.tag), Some(Tag(2)));
        assert_eq!(driver.due(), Nanos::NEVER);
    }
}
